"""dpa_e9s12, the dot product-add of E9S12 halves, as bit-vector terms.  Specification: semantics §11; Desrentes et al.

E9S12 (§III of the paper): a sign, an exponent of 9 bits and of bias 139, a significand of 12 bits with one integer bit,
and whether it is zero.  Widths of a step of n products of such numbers, from N products of factors (n = N, or 4·N of
fp32):

- exponents of products: 10 bits, bias 278, from 0; a product that is found zero has 0, none that counts is below 2;
- products: 24 bits, two of them above the point; 25 in two's complement;
- aligned: 3 + F bits, shifted right as a signed number, so rounded down;
- the sum S: L = 3 + F + ⌈log2 n⌉ bits, which hold every partial sum: a summand is above −2^(F+2);
- S as a term: L − 1 bits, and the exponent of the place above them; or, of zero, c's least exponent;
- S and c: L − 1 + 26 fractional bits under the larger of their exponents, the last one sticky (`efda`, *Fixed point*,
  says why 26 below S's last place suffice, and no fewer).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import accumulate
from typing import NamedTuple

import z3

from mmaformal.encodings.dpa_e9s12 import DpaE9s12
from mmaformal.encodings.smt.blocks import (
    BitVec,
    Bool,
    ExponentRange,
    Operand,
    Rounded,
    Special,
    StickySum,
    Term,
    addend,
    classify,
    decode,
    encode,
    exponent_range,
    maximum,
    negate_if,
    normalise_and_round,
    pad,
    quiet_nan,
    resize,
    select_special,
    sticky_sum,
)
from mmaformal.encodings.smt.chain import looped
from mmaformal.formats import Format
from mmaformal.spec import DotAdd

EXPONENT_BITS, SIGNIFICAND_BITS, BIAS = 9, 12, 139
PRODUCT_BITS = 2 * SIGNIFICAND_BITS
PLACES = PRODUCT_BITS - 2  #: fractional bits of a product
FRACTION = SIGNIFICAND_BITS - 1
GUARD = 26  #: places below S's last one


class E9S12(NamedTuple):
    """`(-1)^sign · significand · 2^(exponent - 139 - 11)`."""

    sign: BitVec
    exponent: BitVec
    significand: BitVec
    zero: Bool


@dataclass(frozen=True)
class DpaE9s12Step:
    """The interfaces between the stages of one step, in order."""

    a: tuple[Operand, ...]  #: decode
    b: tuple[Operand, ...]
    c: Operand
    special: Special  #: classify
    x: tuple[tuple[E9S12, ...], ...]  #: unpack
    y: tuple[tuple[E9S12, ...], ...]
    products: tuple[Term, ...]  #: multiply
    addend: Term
    e_max: BitVec  #: align
    placed: tuple[BitVec, ...]  #: two's complement, L bits
    partials: tuple[BitVec, ...]  #: accumulate: the last one is S
    term: Term
    sum: StickySum  #: with c
    zero_sign: BitVec
    rounded: Rounded  #: normalise & round
    result: BitVec  #: encode


def unpack(x: Operand, fmt: Format, subnormal: int = 1) -> tuple[E9S12, ...]:
    """An fp16 or bf16 operand as one E9S12 number, an fp32 one as two, the upper bits of its significand first.

    `subnormal`: the exponent field of a number without a leading one; 1 in IEEE 754, 0 in the paper's words.
    """
    field = resize(x.field, EXPONENT_BITS)
    top = x.significand.size() - 1
    small = z3.Extract(top, top, x.significand) == 0
    field = z3.If(small, z3.BitVecVal(subnormal, EXPONENT_BITS), field)
    if x.significand.size() <= SIGNIFICAND_BITS:
        significand = pad(x.significand, SIGNIFICAND_BITS - x.significand.size())
        return (E9S12(x.sign, field + (BIAS - fmt.bias), significand, significand == 0),)
    high = z3.Extract(2 * SIGNIFICAND_BITS - 1, SIGNIFICAND_BITS, x.significand)
    low = z3.Extract(SIGNIFICAND_BITS - 1, 0, x.significand)
    return (
        E9S12(x.sign, field + SIGNIFICAND_BITS, high, high == 0),
        E9S12(x.sign, field, low, low == 0),
    )


def multiply(x: E9S12, y: E9S12, detects_zeros: bool) -> Term:
    """The exact product; exponents from 0, of bias 2 · 139."""
    bits = EXPONENT_BITS + 1
    exponent = resize(x.exponent, bits) + resize(y.exponent, bits)
    if detects_zeros:
        exponent = z3.If(z3.Or(x.zero, y.zero), z3.BitVecVal(0, bits), exponent)
    significand = resize(x.significand, PRODUCT_BITS) * resize(y.significand, PRODUCT_BITS)
    return Term(x.sign ^ y.sign, exponent, significand)


def kept(width: int, products: int) -> int:
    """F: fractional bits of the accumulator, of so many products."""
    return width - 3 - (products - 1).bit_length()


def place(x: Term, e_max: BitVec, F: int, bits: int, places: int = PLACES) -> BitVec:
    """The product in units of 2^(e_max - F), rounded down, in two's complement of so many bits; or another term, that
    has as many fractional bits."""
    signed = negate_if(x.sign, resize(x.significand, x.significand.size() + 1))
    aligned = pad(signed, F - places)
    aligned = aligned >> resize(e_max - x.exponent, aligned.size())
    return z3.SignExt(bits - aligned.size(), aligned)


def exponents_of(spec: DotAdd, width: int, products: int) -> ExponentRange:
    """Return the range of the exponents of the sum of products, and of c."""
    above = width - 1 - kept(width, products) - 2 * BIAS
    return exponent_range(spec.c_format).union(above, above + (1 << EXPONENT_BITS + 1) - 1)


def step(
    spec: DotAdd, parameters: DpaE9s12, a: Sequence[BitVec], b: Sequence[BitVec], c: BitVec
) -> DpaE9s12Step:
    rho, fmt, width = parameters.rho, spec.a_format, parameters.accumulator_bits
    a_operands, b_operands = (tuple(decode(each, fmt) for each in codes) for codes in (a, b))
    c_operand = decode(c, spec.c_format)
    special = classify(list(zip(a_operands, b_operands, strict=True)), [c_operand])

    xs, ys = (tuple(unpack(each, fmt) for each in operands) for operands in (a_operands, b_operands))
    products = tuple(
        multiply(u, v, parameters.detects_zeros) for x, y in zip(xs, ys, strict=True) for u in x for v in y
    )
    e_max, F = maximum([p.exponent for p in products]), kept(width, len(products))
    placed = tuple(place(p, e_max, F, width) for p in products)
    partials = tuple(accumulate(placed, lambda x, y: x + y))

    exponents, least = exponents_of(spec, width, len(products)), spec.c_format.min_exponent
    dot = partials[-1]
    sign = z3.Extract(width - 1, width - 1, dot)
    top = resize(e_max, exponents.bits) + z3.BitVecVal(
        width - 1 - F - 2 * BIAS - exponents.low, exponents.bits
    )
    term = Term(
        sign, z3.If(dot == 0, exponents.constant(least), top), resize(negate_if(sign, dot), width - 1)
    )
    c_term = addend(c_operand, spec.c_format.bias, exponents, e_zero=None)
    frame = width - 1 + GUARD
    sum_ = sticky_sum(term, width - 1, c_term, spec.c_format.fraction_bits, frame)

    rounded = normalise_and_round(sum_.total, sum_.e_max, exponents, frame, rho, least)
    zero_sign = reduce(lambda x, y: x & y, (p.sign for p in products), c_term.sign)
    rounded = rounded._replace(sign=z3.If(sum_.total == 0, zero_sign, rounded.sign))
    result = select_special(special, encode(rounded, rho), rho.format, quiet_nan(rho.format))
    return DpaE9s12Step(
        a_operands,
        b_operands,
        c=c_operand,
        special=special,
        x=xs,
        y=ys,
        products=products,
        addend=c_term,
        e_max=e_max,
        placed=placed,
        partials=partials,
        term=term,
        sum=sum_,
        zero_sign=zero_sign,
        rounded=rounded,
        result=result,
    )


dot_add = looped(DpaE9s12, lambda spec, p, a, b, c, stages: step(spec, p, a, b, c))
