"""fdrda, fused dot, round-down add, as bit-vector terms.  Specification: semantics §3; MMA-Sim §IV-F.

Widths of one step of L products:

- exponents of products: the range of the products' fields alone, so that aligning them needs few shift bits; from
  e_dot on, the range that c's exponents are in too;
- aligned magnitudes: 2 + F bits; the dot product: |Σ| ≤ L·(2^(F+2) - 1), and the sign;
- the dot product at e_max: `dot_bits - F` bits more below; c: sign, one integer bit, F fractional bits (F ≥ 23, so
  nothing is lost before the cut);
- their sum: the sum of both bounds, and the sign.  e_max is at least c's exponent, hence at least the least normal
  one, so normalising only shifts left.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import z3

from mmaformal.encodings.fdrda import Fdrda
from mmaformal.encodings.smt.blocks import (
    BitVec,
    Bool,
    ExponentRange,
    Operand,
    Rounded,
    Special,
    Term,
    addend,
    align,
    all_of,
    any_of,
    classify,
    decode,
    encode,
    exponent_range,
    is_zero,
    maximum,
    multiply,
    negate_if,
    normalise_and_round,
    pad,
    product_range,
    quiet_nan,
    resize,
    select_special,
    shift_right_signed,
    signed_sum,
)
from mmaformal.encodings.smt.chain import looped
from mmaformal.formats import fp32
from mmaformal.rounding import Rounding
from mmaformal.spec import DotAdd

OVERFLOW = fp32.max_exponent + 1  #: a product of this exponent counts as an infinity


@dataclass(frozen=True)
class FdrdaStep:
    """The interfaces between the stages of one step, in order."""

    a: tuple[Operand, ...]  #: decode
    b: tuple[Operand, ...]
    c: Operand
    special: Special  #: classify
    products: tuple[Term, ...]  #: multiply; exponents in the products' own range
    addend: Term  #: from here on, exponents in the range of both
    e_products: BitVec  #: align: the largest exponent of the products, in their own range
    aligned: tuple[BitVec, ...]  #: magnitudes; the signs are the terms'
    dot: BitVec  #: accumulate: the sum of the products, two's complement, F fractional bits
    e_dot: BitVec
    e_max: BitVec
    dot_cut: BitVec  #: the same at e_max, dot_bits fractional bits
    c_cut: BitVec  #: c at e_max, two's complement, F fractional bits
    total: BitVec  #: two's complement, dot_bits fractional bits
    rounded: Rounded  #: normalise & round
    result: BitVec  #: encode


@dataclass(frozen=True)
class FdrdaInputs:
    """The part of a step up to the products, which fdrda and gfdrda have in common."""

    a: tuple[Operand, ...]
    b: tuple[Operand, ...]
    c: Operand
    special: Special
    products: tuple[Term, ...]
    all_zero: Bool


def exponents_of(spec: DotAdd) -> ExponentRange:
    c = exponent_range(spec.c_format)
    return product_range(spec.a_format, spec.b_format).union(c.low, c.high)


def overflows(product: Term, exponents: ExponentRange) -> Bool:
    """Whether the exponent, plus one if the significand is ≥ 2, is ≥ 128.

    That is |p| ≥ 2^128: a subnormal factor, whose product's leading bit may be lower, has an exponent that brings
    the product's to 2 at most.
    """
    if exponents.high < OVERFLOW - 1:
        return z3.BoolVal(False)
    top = product.significand.size() - 1
    at_least_two = z3.Extract(top, top, product.significand) == 1
    last = exponents.constant(OVERFLOW - 1)
    return z3.Or(z3.UGT(product.exponent, last), z3.And(product.exponent == last, at_least_two))


def inputs_of(
    spec: DotAdd, parameters: Fdrda, a: Sequence[BitVec], b: Sequence[BitVec], c: BitVec
) -> FdrdaInputs:
    """Decode, classify, multiply.  A zero product takes the least exponent, where it cannot be the largest."""
    a_operands = tuple(decode(x, spec.a_format) for x in a)
    b_operands = tuple(decode(x, spec.b_format) for x in b)
    c_operand = decode(c, spec.c_format)
    factors = list(zip(a_operands, b_operands, strict=True))
    exponents = product_range(spec.a_format, spec.b_format)
    bias = spec.a_format.bias + spec.b_format.bias
    e_zero = exponents.low if parameters.skip_zero_products else None
    products = tuple(multiply(x, y, bias, exponents, e_zero) for x, y in factors)
    too_big = [overflows(p, exponents) for p in products]
    if not parameters.skip_zero_products:
        # A zero has the least exponent of its format, so its product's is small.  The proof that both encodings are
        # equal knows exponents and significands apart, and needs it said.
        too_big = [z3.And(flag, p.significand != 0) for flag, p in zip(too_big, products, strict=True)]
    if parameters.inputs_first:
        first, decided = classify(factors, [c_operand]), classify(factors, [], overflows=too_big)
        number = z3.Not(any_of(list(first)))
        special = Special(*(z3.Or(x, z3.And(number, y)) for x, y in zip(first, decided, strict=True)))
    else:
        special = classify(factors, [c_operand], overflows=too_big)
    all_zero = all_of([z3.Or(is_zero(x), is_zero(y)) for x, y in factors])
    return FdrdaInputs(a_operands, b_operands, c_operand, special, products, all_zero)


def dot_bound(parameters: Fdrda, products: int) -> int:
    """A bound of |Σ| of aligned products, in units of 2^-F."""
    return products * ((1 << (parameters.F + 2)) - 1)


def fraction_bits(spec: DotAdd) -> int:
    return spec.a_format.fraction_bits + spec.b_format.fraction_bits


def _widen(e: BitVec, own: ExponentRange, wide: ExponentRange) -> BitVec:
    """An exponent of one range as one of a range that contains it."""
    return resize(e, wide.bits) + z3.BitVecVal(own.low - wide.low, wide.bits)


def exponent_of_dot(spec: DotAdd, parameters: Fdrda, e_products: BitVec, all_zero: Bool) -> BitVec:
    """e_dot in the range of both.  If every product is skipped it is below any exponent of c."""
    own, wide = product_range(spec.a_format, spec.b_format), exponents_of(spec)
    e_dot = _widen(e_products, own, wide)
    least_c = exponent_range(spec.c_format).low
    if parameters.skip_zero_products and own.low > least_c:
        e_dot = z3.If(all_zero, wide.constant(least_c), e_dot)
    return e_dot


def c_at(e_max: BitVec, c: Term, bits: int, parameters: Fdrda) -> BitVec:
    """c in two's complement in units of 2^(e_max - F), cut; `bits` is its number of fractional bits."""
    F, distance = parameters.F, e_max - c.exponent
    if parameters.cut is Rounding.RZ:
        magnitude = align(c, e_max, bits, F)
        return negate_if(c.sign, resize(magnitude, F + 2))
    signed = negate_if(c.sign, resize(pad(c.significand, F - bits), F + 2))
    return shift_right_signed(signed, distance, parameters.cut)


def add_c(
    spec: DotAdd, parameters: Fdrda, dot_cut: BitVec, c_cut: BitVec, e_max: BitVec, bound: int
) -> tuple[BitVec, Rounded]:
    """(total, rounded): the sum at e_max, normalised, cut to sum_bits and rounded with ρ.

    `bound` is that of the dot product, in units of 2^-F.
    """
    F, dot_bits = parameters.F, parameters.dot_bits
    c_bound = 1 << (F + 1)
    bits = ((bound + c_bound) << (dot_bits - F)).bit_length() + 1
    c_wide = pad(c_cut, dot_bits - F)
    total = z3.SignExt(bits - dot_cut.size(), dot_cut) + z3.SignExt(bits - c_wide.size(), c_wide)
    cuts = () if parameters.sum_bits is None else ((parameters.sum_bits, parameters.cut),)
    lowest = exponent_range(spec.c_format).low
    rounded = normalise_and_round(
        total, e_max, exponents_of(spec), dot_bits, parameters.rho, lowest=lowest, cuts=cuts
    )
    return total, rounded


def result_of(spec: DotAdd, parameters: Fdrda, special: Special, rounded: Rounded) -> BitVec:
    return select_special(special, encode(rounded, parameters.rho), spec.d_format, quiet_nan(spec.d_format))


def step(spec: DotAdd, parameters: Fdrda, a: Sequence[BitVec], b: Sequence[BitVec], c: BitVec) -> FdrdaStep:
    """One step over L products."""
    F = parameters.F
    x = inputs_of(spec, parameters, a, b, c)
    e_products = maximum([p.exponent for p in x.products])
    aligned = tuple(align(p, e_products, fraction_bits(spec), F) for p in x.products)
    bound = dot_bound(parameters, len(a))
    signed = [(p.sign, magnitude) for p, magnitude in zip(x.products, aligned, strict=True)]
    dot = signed_sum(signed, bound.bit_length() + 1)
    e_dot = exponent_of_dot(spec, parameters, e_products, x.all_zero)

    c_term = addend(x.c, spec.c_format.bias, exponents_of(spec), e_zero=None)
    e_max = maximum([e_dot, c_term.exponent])
    dot_cut = shift_right_signed(pad(dot, parameters.dot_bits - F), e_max - e_dot, parameters.cut)
    c_cut = c_at(e_max, c_term, spec.c_format.fraction_bits, parameters)
    total, rounded = add_c(spec, parameters, dot_cut, c_cut, e_max, bound)
    result = result_of(spec, parameters, x.special, rounded)
    return FdrdaStep(
        x.a,
        x.b,
        c=x.c,
        special=x.special,
        products=x.products,
        addend=c_term,
        e_products=e_products,
        aligned=aligned,
        dot=dot,
        e_dot=e_dot,
        e_max=e_max,
        dot_cut=dot_cut,
        c_cut=c_cut,
        total=total,
        rounded=rounded,
        result=result,
    )


dot_add = looped(Fdrda, lambda spec, p, a, b, c, stages: step(spec, p, a, b, c))
