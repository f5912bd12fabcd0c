"""efda, exact fused dot-add, as bit-vector terms.  Specification: semantics §3.

The exact sum is rounded once, yet no accumulator from the least product to the largest c is needed.  Which of two
ways is taken depends on the range of the products.

Fixed point (formats of up to 5 exponent bits).  The products are summed in the fixed point that holds every one
of them: for fp16 from 2^-48 up to 2^32, so 82 bits for L = 4 (|Σ| ≤ L times the largest product), and the sign.  To
that c is added by `wide.add_to_wide`, with 26 places above and, since nothing is known of the sum but that it is
at least its own last place, 26 below; that module shows that one fewer of either is too few.

Floating window (more exponent bits, L ≤ 2, so n ≤ 3 terms).  bf16 products reach from 2^-266 to 2^256.  Let every
nonzero term t be normalised, 2^e ≤ |t| < 2^(e+1), with at most w = 24 significant bits; q ≥ w as in `wide`, whose
*boundaries* are meant below; e_max the largest e, or one less than the least normal exponent if that is more; and

    D = w + q + 1 = 49;   a term is near if e ≥ e_max - D, else far;   N = Σ near, U = Σ far, exactly.

N has at most 3 + D + w - 1 = 75 bits.  Claim: if N ≠ 0, no boundary lies between N and N + U, nor at N + U unless
U = 0, so for rounding N + U may be replaced by N and a last place, half of N's, with the sign of U.
Let there be a far term, and t1 be a term of exponent e_max.
- Only t1 is near: t1 and the boundaries by it are multiples of 2^(e_max-1-q); |U| < 2·2^(e_max-D), which is no more.
- t1 and t2 are near, e2 ≥ e_max - 1: N ≠ 0 is a multiple of 2^(e_max-w), hence the boundaries by it are multiples of
  2^(e_max-w-1-q) = 2^(e_max-D), and the one far term is less.
- t1 and t2 are near, e2 < e_max - 1: then |N| ≥ 2^(e_max-1), and boundaries by it are multiples of 2^(e_max-2-q).  If
  e2 ≥ e_max - q - 2, t2 and so N are multiples of 2^(e_max-D); the far term is less.  If not, t1 is a boundary, and t2
  and t2 + t3 have the same sign, since |t3| < 2^(e_max-D) ≤ |t2|, and are both less than 2^(e_max-1-q): N and N + U are
  between t1 and the same next boundary.
- No term has the exponent e_max, which is one less than the least normal one: boundaries are multiples of
  β = 2^(e_max+1-q), c is a multiple of 2β and near, far products are less than 2^(e_max-D).  A near product p of at
  least β/4 is a multiple of 2^(e_max-D+1), more than U; a smaller one is more than U, and |p + U| < β/2.
D is the least possible: for D - 1, t1 = 2^e, t2 = -(2^e - 2^(e-w)) and a far t3 just above -2^(e-D+1) would be rounded
wrongly.  If N = 0, its terms cancel, and what is left is one far term, alone and exact; or no term has the exponent
e_max, and far products are too small for more than their sign to matter.  U is summed at its own largest exponent
with w places and a sticky one: the larger term is exact, so with at most two the sign is right, and one alone is exact.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import z3

from mmaformal.algorithms import DotAdd, Efda
from mmaformal.encodings.smt.blocks import (
    BitVec,
    Bool,
    ExponentRange,
    Operand,
    Rounded,
    Special,
    Term,
    Trace,
    addend,
    classify,
    decode,
    encode,
    exponent_range,
    is_zero,
    maximum,
    multiply,
    negate_if,
    normalise,
    normalise_and_round,
    pad,
    product_range,
    quiet_nan,
    resize,
    select_special,
    signed_sum,
    sticky_shift_right,
)
from mmaformal.encodings.smt.wide import add_to_wide, places_above, places_below


@dataclass(frozen=True)
class FixedStep:
    """The interfaces between the stages of one step in fixed point, in order."""

    a: tuple[Operand, ...]  #: decode
    b: tuple[Operand, ...]
    c: Operand
    special: Special  #: classify
    products: tuple[Term, ...]  #: multiply; exponents from the least
    placed: tuple[BitVec, ...]  #: align: magnitudes in units of the least product's last place
    dot: BitVec  #: accumulate: their sum, two's complement
    addend: Term
    e_top: BitVec
    total: BitVec  #: with c, two's complement
    rounded: Rounded  #: normalise & round
    result: BitVec  #: encode


@dataclass(frozen=True)
class WindowStep:
    """The interfaces between the stages of one step in the floating window, in order."""

    a: tuple[Operand, ...]  #: decode
    b: tuple[Operand, ...]
    c: Operand
    special: Special  #: classify
    terms: tuple[Term, ...]  #: multiply: the products, then c; normalised, w bits
    e_max: BitVec  #: align
    near: tuple[Bool, ...]
    near_sum: BitVec  #: accumulate: N, two's complement, D + w - 1 fractional bits
    e_far: BitVec
    far_sum: BitVec  #: U, two's complement, w fractional bits, the last one sticky
    e_total: BitVec
    total: BitVec  #: both, two's complement, D + w fractional bits
    rounded: Rounded  #: normalise & round
    result: BitVec  #: encode


Step: TypeAlias = FixedStep | WindowStep


@dataclass(frozen=True)
class Inputs:
    a: tuple[Operand, ...]
    b: tuple[Operand, ...]
    c: Operand
    special: Special


def reach(w: int, q: int) -> int:
    """D: how far below the largest exponent a term is still near."""
    return w + q + 1


def precision(spec: DotAdd, parameters: Efda) -> int:
    """q: the significand bits of c or of the rounding, whichever are more."""
    return max(spec.c_format.fraction_bits, parameters.rho.fraction_bits) + 1


def in_fixed_point(spec: DotAdd) -> bool:
    return max(spec.a_format.exponent_bits, spec.b_format.exponent_bits) <= 5


def fraction_bits(spec: DotAdd) -> int:
    return spec.a_format.fraction_bits + spec.b_format.fraction_bits


# ---- fixed point ------------------------------------------------------------------------------------------------


def fixed_step(spec: DotAdd, parameters: Efda, x: Inputs) -> FixedStep:
    """One step, the products summed in fixed point."""
    a_format, b_format, rho = spec.a_format, spec.b_format, parameters.rho
    own = product_range(a_format, b_format)
    bias = a_format.bias + b_format.bias
    products = tuple(multiply(y, z, bias, own, e_zero=None) for y, z in zip(x.a, x.b, strict=True))
    highest = a_format.max_exponent + b_format.max_exponent
    largest = ((2 << a_format.fraction_bits) - 1) * ((2 << b_format.fraction_bits) - 1) << (highest - own.low)
    product_bits, bits = largest.bit_length(), (len(products) * largest).bit_length()
    placed = tuple(resize(p.significand, product_bits) << resize(p.exponent, product_bits) for p in products)
    dot = signed_sum([(p.sign, y) for p, y in zip(products, placed, strict=True)], bits + 1)

    q = precision(spec, parameters)
    above, below = places_above(q), places_below(q, least_bits=1)
    singles = exponent_range(spec.c_format)
    window = own.low - fraction_bits(spec) + bits - 1 + above
    exponents = singles.union(window)
    c_term = addend(x.c, spec.c_format.bias, exponents, e_zero=None)
    at = z3.If(dot == 0, exponents.constant(exponents.low), exponents.constant(window))
    total, e_top, F = add_to_wide(dot, at, c_term, above, below)
    rounded = normalise_and_round(total, e_top, exponents, F, rho, singles.low)
    result = select_special(x.special, encode(rounded, rho), rho.format, quiet_nan(rho.format))
    return FixedStep(x.a, x.b, x.c, x.special, products, placed, dot, c_term, e_top, total, rounded, result)


# ---- floating window --------------------------------------------------------------------------------------------


def normalised(term: Term, zero: Bool, w: int, exponents: ExponentRange) -> Term:
    """The term with its leading one on top, in w bits; zero takes the least exponent.

    `term.exponent` is that of the significand's highest place, far enough from the least for any shift.
    """
    significand, exponent = normalise(term.significand, term.exponent)
    least = exponents.constant(exponents.low)
    return Term(term.sign, z3.If(zero, least, exponent), pad(significand, w - significand.size()))


def window_step(spec: DotAdd, parameters: Efda, x: Inputs) -> WindowStep:
    """One step of at most three terms, summed in a floating window."""
    rho, c_format = parameters.rho, spec.c_format
    w = max(fraction_bits(spec) + 2, c_format.fraction_bits + 1)
    q = max(w, precision(spec, parameters))
    D = reach(w, q)
    own, singles = product_range(spec.a_format, spec.b_format), exponent_range(c_format)
    floor = rho.format.min_exponent - 1
    exponents = ExponentRange(own.low - fraction_bits(spec), own.high + 1).union(
        singles.low - c_format.fraction_bits, singles.high, floor
    )
    bias = spec.a_format.bias + spec.b_format.bias - 1  # the highest place of a product is 2^(e + 1)
    terms = [
        normalised(multiply(y, z, bias, exponents, None), z3.Or(is_zero(y), is_zero(z)), w, exponents)
        for y, z in zip(x.a, x.b, strict=True)
    ]
    terms.append(normalised(addend(x.c, c_format.bias, exponents, None), is_zero(x.c), w, exponents))
    assert len(terms) <= 3

    least = exponents.constant(floor)
    e_max = maximum([*(t.exponent for t in terms), least])
    near = tuple(z3.ULE(e_max - t.exponent, z3.BitVecVal(D, exponents.bits)) for t in terms)
    zero = z3.BitVecVal(0, w + D)
    near_magnitudes = [
        z3.If(is_near, z3.LShR(pad(t.significand, D), resize(e_max - t.exponent, w + D)), zero)
        for t, is_near in zip(terms, near, strict=True)
    ]
    near_bits = (len(terms) * ((1 << (w + D)) - 1)).bit_length() + 1
    near_sum = signed_sum([(t.sign, y) for t, y in zip(terms, near_magnitudes, strict=True)], near_bits)

    lowest = exponents.constant(exponents.low)
    e_far = maximum([z3.If(is_near, lowest, t.exponent) for t, is_near in zip(terms, near, strict=True)])
    far_magnitudes = [
        z3.If(is_near, z3.BitVecVal(0, w + 1), sticky_shift_right(pad(t.significand, 1), e_far - t.exponent))
        for t, is_near in zip(terms, near, strict=True)
    ]
    far_sum = signed_sum([(t.sign, y) for t, y in zip(terms, far_magnitudes, strict=True)], w + 3)

    # U where N is zero: not below the floor, as e_max.
    far_sign = z3.Extract(w + 2, w + 2, far_sum)
    deficit = z3.If(z3.ULT(e_far, least), least - e_far, z3.BitVecVal(0, exponents.bits))
    far_magnitude = sticky_shift_right(negate_if(far_sign, far_sum), deficit)
    alone = pad(negate_if(far_sign, far_magnitude), D)
    bits = near_bits + 1
    tail = z3.If(
        far_sum == 0, z3.BitVecVal(0, bits), z3.SignExt(bits - 2, z3.Concat(far_sign, z3.BitVecVal(1, 1)))
    )
    both = pad(near_sum, 1) + tail
    only_far = near_sum == 0
    total = z3.If(only_far, z3.SignExt(bits - alone.size(), alone), both)
    e_total = z3.If(only_far, maximum([e_far, least]), e_max)
    rounded = normalise_and_round(total, e_total, exponents, D + w, rho, floor)
    result = select_special(x.special, encode(rounded, rho), rho.format, quiet_nan(rho.format))
    return WindowStep(
        x.a,
        x.b,
        x.c,
        x.special,
        tuple(terms),
        e_max,
        near,
        near_sum,
        e_far,
        far_sum,
        e_total,
        total,
        rounded,
        result,
    )


# ---- the chain --------------------------------------------------------------------------------------------------


def step(spec: DotAdd, parameters: Efda, a: Sequence[BitVec], b: Sequence[BitVec], c: BitVec) -> Step:
    """One step over L products."""
    a_operands = tuple(decode(x, spec.a_format) for x in a)
    b_operands = tuple(decode(x, spec.b_format) for x in b)
    c_operand = decode(c, spec.c_format)
    special = classify(list(zip(a_operands, b_operands, strict=True)), [c_operand])
    inputs = Inputs(a_operands, b_operands, c_operand, special)
    return (fixed_step if in_fixed_point(spec) else window_step)(spec, parameters, inputs)


def dot_add(spec: DotAdd, a: Sequence[BitVec], b: Sequence[BitVec], c: BitVec) -> Trace[Step]:
    """The trace of `c + Σ a_k·b_k`: `a` and `b` are K codes each, c one."""
    parameters = spec.parameters
    assert isinstance(parameters, Efda)
    steps = []
    for start in range(0, spec.k, parameters.L):
        stop = start + parameters.L
        steps.append(step(spec, parameters, a[start:stop], b[start:stop], c))
        c = steps[-1].result
    return Trace(tuple(steps), c)


__all__ = ["FixedStep", "Step", "Trace", "WindowStep", "dot_add", "step"]
