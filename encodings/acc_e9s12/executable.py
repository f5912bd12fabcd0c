"""acc_e9s12, dpa_e9s12 with a looped accumulator, executable.  Specification: semantics §3; Desrentes et al., IV-D.

c is no addend of its own: its two E9S12 numbers times 1 are two more products of the first pass.  What is accumulated
is a term of each pass but the first, of the exponent that it has; it is shifted right to the largest one, rounded down,
as the products are, and takes part unless it is zero.  Only what is there after the last pass is rounded, once, with
ρ; a sum of exactly zero is +0.

The accumulator is two limbs, in units of its exponent's 2^(E - F).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import accumulate
from typing import NamedTuple

from mmaformal.encodings.acc_e9s12 import AccE9s12
from mmaformal.encodings.dpa_e9s12.executable import BELOW, BIAS, E9S12, FRACTION, multiply, place, unpack
from mmaformal.encodings.executable import limbs
from mmaformal.encodings.executable.blocks import (
    Lane,
    Operand,
    Rounded,
    Special,
    Sum,
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
    where,
)
from mmaformal.encodings.executable.chain import looped
from mmaformal.spec import DotAdd


class Pass(NamedTuple):
    """The interfaces of one pass."""

    products: tuple[Term, ...]  #: multiply
    e_max: Lane  #: align
    before: limbs.Wide  #: what was accumulated, shifted; signed, in the frame's last place
    placed: tuple[limbs.Wide, ...]
    partials: tuple[limbs.Wide, ...]  #: accumulate: from what was
    exponent: Lane  #: of what is accumulated; 0 if that is zero


@dataclass(frozen=True)
class AccE9s12Step:
    """The interfaces of all passes, in order."""

    a: tuple[Operand, ...]  #: decode
    b: tuple[Operand, ...]
    c: Operand
    special: Special  #: classify
    passes: tuple[Pass, ...]
    total: Sum
    rounded: Rounded  #: normalise & round
    result: Lane  #: encode


def shift_down(x: limbs.Wide, n: Lane) -> limbs.Wide:
    """x / 2^n for a signed x, |x| < 2^112, and n ≥ 0, rounded down."""
    far = n >= limbs.BITS  # a whole limb drops out
    mask = (1 << limbs.BITS) - 1
    high = where(far, x.high >> limbs.BITS, x.high)
    low = where(far, x.high & mask, x.low)
    n = clamp(where(far, n - limbs.BITS, n), 0, limbs.BITS)
    above = high + (1 << limbs.BITS)  # not negative, and the same modulo 2^n
    moved = above - ((above >> n) << n)
    return limbs.Wide(high >> n, (moved << clamp(limbs.BITS - n, 0, limbs.BITS)) + (low >> n))


def run_pass(terms: Sequence[Term], before: limbs.Wide, exponent: Lane, F: int) -> Pass:
    """One pass over products, onto what was accumulated in units of 2^(exponent - F - 26)."""
    e_max = reduce(maximum, (p.exponent for p in terms), exponent)
    shifted = shift_down(before, e_max - exponent)
    kept = limbs.Wide(shifted.high, (shifted.low >> BELOW) << BELOW)
    placed = tuple(place(p, e_max, F) for p in terms)
    partials = tuple(accumulate(placed, limbs.add, initial=kept))
    zero = limbs.is_zero(partials[-1])
    return Pass(tuple(terms), e_max, kept, placed, partials, where(zero, 0, e_max))


def step(spec: DotAdd, parameters: AccE9s12, a: Sequence[Lane], b: Sequence[Lane], c: Lane) -> AccE9s12Step:
    rho, fmt, N = parameters.rho, spec.a_format, parameters.N
    a_operands = tuple(decode(x, fmt.layout) for x in a)
    b_operands = tuple(decode(x, fmt.layout) for x in b)
    c_operand = decode(c, spec.c_format.layout)
    parts = [classify_product(x, y) for x, y in zip(a_operands, b_operands, strict=True)]
    special = resolve_special(reduce(merge_special, parts, classify_addend(c_operand)))

    zero = c_operand.sign * 0
    one = E9S12(zero, zero + BIAS, zero + (1 << FRACTION), zero != 0)
    terms = [multiply(u, one, detects_zeros=True) for u in unpack(c_operand, spec.c_format)]
    total, exponent, passes = limbs.Wide(zero, zero), zero, []
    factors = list(zip(a_operands, b_operands, strict=True))
    count = len(factors) * (4 if len(unpack(a_operands[0], fmt)) == 2 else 1)
    F = parameters.accumulator_bits - 3 - (count + 1).bit_length()
    for start in range(0, len(factors), N):
        terms += [
            multiply(u, v, detects_zeros=True)
            for x, y in factors[start : start + N]
            for u in unpack(x, fmt)
            for v in unpack(y, fmt)
        ]
        passes.append(run_pass(terms, total, exponent, F))
        total, exponent, terms = passes[-1].partials[-1], passes[-1].exponent, []

    narrowed = limbs.narrow(total, passes[-1].e_max - 2 * BIAS - F - BELOW)
    rounded = round_sum(narrowed, zero, rho)
    result = select_special(special, encode(rounded, rho), rho, quiet_nan(rho.format))
    return AccE9s12Step(
        a_operands,
        b_operands,
        c=c_operand,
        special=special,
        passes=tuple(passes),
        total=narrowed,
        rounded=rounded,
        result=result,
    )


dot_add = looped(lambda spec, a, b, c, stages: step(spec, spec.parameters_as(AccE9s12), a, b, c))
