"""dpa_e9s12, the dot product-add of E9S12 halves, executable.  Specification: semantics §11; Desrentes et al. §III, IV.

An E9S12 number is `(-1)^sign · significand · 2^(exponent - 139 - 11)`, 0 ≤ significand < 2^12, not normalised.  An
fp16 or bf16 factor is one: its significand with zeros below, its exponent with another bias.  An fp32 factor is two,
its significand's upper and lower 12 bits; the lower one has the exponent of the factor's own fields, the upper one 12
more.  A subnormal factor has the exponent field 1, as IEEE 754 has it (the paper says 0: `unpack`).

One step:

1. special values as IEEE 754: of the factors, each once;
2. products of E9S12 numbers, all pairs of an fp32 product's halves; exact, 24 bits;
3. aligned to the largest exponent, of those that are not zero; 2 + F bits and a sign are kept, rounded down, as a
   right shift in two's complement does; L = 3 + F + the bits that carries need;
4. summed exactly.  The sum S is one term of the exponent `top` of the place above its highest, and c is added to it
   in a frame of L - 1 + 26 fractional bits, the last one sticky (`limbs.add_term`), as to efda's sum of products;
5. rounded with ρ.  An exact zero is −0 if all products and c are.

Why 26 places below S's last one are enough for c is said in `efda`: what c loses is below a quarter of that place, and
S, if it is not zero, is at least that place.

S and the products take two limbs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import accumulate
from typing import NamedTuple

from mmaformal.encodings.dpa_e9s12 import DpaE9s12
from mmaformal.encodings.executable import limbs
from mmaformal.encodings.executable.blocks import (
    Flag,
    Lane,
    Operand,
    Rounded,
    Special,
    Term,
    clamp,
    classify_addend,
    classify_product,
    decode,
    encode,
    maximum,
    merge_special,
    quiet_nan,
    resolve_special,
    round_sum,
    select_special,
    signed,
    term,
    where,
)
from mmaformal.encodings.executable.chain import looped
from mmaformal.formats import Format
from mmaformal.spec import DotAdd

BIAS = 139  #: of an E9S12 exponent
FRACTION = 11  #: fractional bits of an E9S12 significand
BELOW = 26  #: places below the last one of the sum of products at which c is still distinguished
HALF = limbs.BITS - BELOW


class E9S12(NamedTuple):
    """An E9S12 number; infinities and NaNs are told of the factor."""

    sign: Lane
    exponent: Lane
    significand: Lane
    zero: Flag


@dataclass(frozen=True)
class DpaE9s12Step:
    """The interfaces between the stages of one step, in order."""

    a: tuple[Operand, ...]  #: decode
    b: tuple[Operand, ...]
    c: Operand
    special: Special  #: classify
    x: tuple[tuple[E9S12, ...], ...]  #: unpack: of each factor its halves
    y: tuple[tuple[E9S12, ...], ...]
    products: tuple[Term, ...]  #: multiply: of E9S12 numbers; exponents of bias 2 · 139
    addend: Term
    e_max: Lane  #: align
    placed: tuple[limbs.Wide, ...]  #: signed, rounded down, in the frame's last place
    partials: tuple[limbs.Wide, ...]  #: accumulate
    term: limbs.WideTerm  #: their sum as a term
    wide: limbs.WideSum  #: with c
    zero_sign: Lane  #: of a sum that is exactly zero
    rounded: Rounded  #: normalise & round
    result: Lane  #: encode


def unpack(x: Operand, fmt: Format, subnormal: int = 1) -> tuple[E9S12, ...]:
    """The E9S12 number of an fp16 or bf16 operand, or the two of an fp32 one, the upper half first.

    `subnormal` is the exponent field that a subnormal operand is taken to have: the paper says 0, which halves it.
    """
    field = x.exponent + fmt.bias
    field = where(x.significand < 1 << fmt.fraction_bits, subnormal, field)
    if fmt.fraction_bits <= FRACTION:
        significand = x.significand << (FRACTION - fmt.fraction_bits)
        return (E9S12(x.sign, field + (BIAS - fmt.bias), significand, significand == 0),)
    high, low = x.significand >> 12, x.significand & 0xFFF
    return E9S12(x.sign, field + 12, high, high == 0), E9S12(x.sign, field, low, low == 0)


def multiply(x: E9S12, y: E9S12, detects_zeros: bool) -> Term:
    """The product, of exponent bias 2 · 139; of one that is found zero, the exponent is 0."""
    exponent = x.exponent + y.exponent
    if detects_zeros:
        exponent = where(x.zero | y.zero, 0, exponent)
    return Term(x.sign ^ y.sign, exponent, x.significand * y.significand)


def carries(n: int) -> int:
    """Bits that the sum of n numbers needs above those of one."""
    return (n - 1).bit_length()


def place(x: Term, e_max: Lane, F: int) -> limbs.Wide:
    """The product in units of 2^(e_max - F - 26), a multiple of 2^26; rounded down.

    A lane holds 30 of the places that it is shifted left; the rest, 30 more, are taken of the number's parts above and
    below 2^30, and 30 + 26 are the low limb.
    """
    left = F - 2 * FRACTION - (e_max - x.exponent)
    kept = signed(x.sign, x.significand) >> clamp(-left, 0, 63)
    first = clamp(left, 0, HALF)
    kept, rest = kept << first, clamp(left - HALF, 0, HALF)
    above, below = (kept >> HALF) << rest, (kept & ((1 << HALF) - 1)) << rest
    return limbs.Wide(above + (below >> HALF), (below & ((1 << HALF) - 1)) << BELOW)


def step(spec: DotAdd, parameters: DpaE9s12, a: Sequence[Lane], b: Sequence[Lane], c: Lane) -> DpaE9s12Step:
    rho, fmt, least = parameters.rho, spec.a_format, spec.c_format.min_exponent
    a_operands = tuple(decode(x, fmt.layout) for x in a)
    b_operands = tuple(decode(x, fmt.layout) for x in b)
    c_operand = decode(c, spec.c_format.layout)

    parts = [classify_product(x, y) for x, y in zip(a_operands, b_operands, strict=True)]
    special = resolve_special(reduce(merge_special, parts, classify_addend(c_operand)))

    xs, ys = (tuple(unpack(each, fmt) for each in operands) for operands in (a_operands, b_operands))
    products = tuple(
        multiply(u, v, parameters.detects_zeros) for x, y in zip(xs, ys, strict=True) for u in x for v in y
    )
    e_max = reduce(maximum, (p.exponent for p in products))
    F = parameters.accumulator_bits - 3 - carries(len(products))
    placed = tuple(place(p, e_max, F) for p in products)
    partials = tuple(accumulate(placed, limbs.add))

    sign, magnitude = limbs.magnitude(partials[-1])
    top = e_max - 2 * BIAS + (parameters.accumulator_bits - 1 - F)
    dot = limbs.WideTerm(sign, where(limbs.is_zero(partials[-1]), least, top), magnitude)
    addend, frame = term(c_operand), parameters.accumulator_bits - 1 + BELOW
    wide = limbs.add_term(dot, addend, spec.c_format.fraction_bits, frame)

    zero_sign = reduce(lambda x, y: x & y, (p.sign for p in products), addend.sign)
    rounded = round_sum(wide.narrowed, zero_sign, rho)
    result = select_special(special, encode(rounded, rho), rho, quiet_nan(rho.format))
    return DpaE9s12Step(
        a_operands,
        b_operands,
        c=c_operand,
        special=special,
        x=xs,
        y=ys,
        products=products,
        addend=addend,
        e_max=e_max,
        placed=placed,
        partials=partials,
        term=dot,
        wide=wide,
        zero_sign=zero_sign,
        rounded=rounded,
        result=result,
    )


dot_add = looped(lambda spec, a, b, c, stages: step(spec, spec.parameters_as(DpaE9s12), a, b, c))
