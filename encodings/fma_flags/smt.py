"""fma_flags, the exceptions of a fused multiply-add, as bit-vector terms.  Specification: semantics §3.

The sum is that of fma, shifted to ρ's least exponent.  It is inexact where rounding down and up do not give one number,
or where it overflows: its fields, rounded with ρ, reach those of infinity.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import z3

from mmaformal.encodings.fma.smt import exponents_of, is_tiny, shifted_to_least
from mmaformal.encodings.fma_flags import FmaFlags
from mmaformal.encodings.smt.blocks import (
    BitVec,
    Bool,
    Operand,
    Special,
    StickySum,
    any_of,
    bit,
    is_zero,
    normalise_and_round,
)
from mmaformal.encodings.smt.chain import looped
from mmaformal.encodings.smt.stages import Stages
from mmaformal.formats import Format, Specials
from mmaformal.rounding import Rounding
from mmaformal.spec import DotAdd


@dataclass(frozen=True)
class Raised:
    """The exceptions; but for the first, of a sum, whether or not it is one of numbers."""

    invalid: Bool
    overflow: Bool
    lost: Bool
    tiny: Bool


@dataclass(frozen=True)
class FlagsStep:
    """The interfaces between the stages, in order."""

    a: Operand
    b: Operand
    c: Operand
    special: Special
    sum: StickySum
    raised: Raised
    result: BitVec


def signals(x: Operand, code: BitVec, fmt: Format) -> list[Bool]:
    """Whether an operand is a signalling NaN, of formats that have some."""
    if fmt.specials is not Specials.IEEE:
        return []
    quiet = fmt.ignored_low_bits + fmt.fraction_bits - 1
    return [z3.And(x.nan, z3.Extract(quiet, quiet, code) == 0)]


def invalid(p: FmaFlags, operands: Sequence[tuple[Operand, BitVec, Format]]) -> Bool:
    """Whether an operand signals, or the operation on what is no NaN has no value."""
    x, y, z = (each[0] for each in operands)
    none = z3.Not(z3.Or(x.nan, y.nan))
    product = z3.And(none, z3.Or(z3.And(x.infinite, is_zero(y)), z3.And(is_zero(x), y.infinite)))
    opposite = z3.And(none, z3.Or(x.infinite, y.infinite), z.infinite, x.sign ^ y.sign ^ z.sign == 1)
    if p.hides:
        product = z3.And(product, z3.Not(z.nan))
    signalling = [fact for each in operands for fact in signals(*each)]
    return any_of([*signalling, product, opposite])


def of_sum(p: FmaFlags, x: StickySum, spec: DotAdd, frame: int) -> tuple[Bool, Bool, Bool]:
    """Whether a sum overflows, loses bits, and is tiny but not zero; `spec`: the fma's."""
    rho, exponents = p.rounds, exponents_of(spec)
    least = rho.format.min_exponent
    total, e_max = shifted_to_least(x, exponents, least)
    down, up, nearest = (
        normalise_and_round(total, e_max, exponents, frame, each, max(least, exponents.low)).code
        for each in (replace(rho, rounding=Rounding.RD), replace(rho, rounding=Rounding.RU), rho)
    )
    infinity = ((1 << rho.format.exponent_bits) - 1) << rho.fraction_bits
    overflow = z3.UGE(nearest, z3.BitVecVal(infinity, nearest.size()))
    tiny = z3.And(total != 0, is_tiny(p.own, total, e_max, exponents, frame))
    return overflow, down != up, tiny


def step(spec: DotAdd, p: FmaFlags, a: BitVec, b: BitVec, c: BitVec, stages: Stages) -> FlagsStep:
    """The exceptions of `ρ(a·b + c)`."""
    inner, own = p.inner(spec), p.own
    formats = spec.a_format, spec.b_format, spec.c_format
    x, y, z = (stages.decode(u, fmt, p.flush_inputs) for u, fmt in zip((a, b, c), formats, strict=True))
    special = stages.classify([(x, y)], [z])
    frame, zero, exponents = own.frame(inner), own.zero_exponent(inner), exponents_of(inner)
    product = stages.multiply(x, y, spec.a_format.bias + spec.b_format.bias, exponents, zero)
    addend = stages.addend(z, spec.c_format.bias, exponents, zero)
    places = own.product_bits(inner), spec.c_format.fraction_bits
    sum_ = stages.sticky_sum(product, places[0], addend, places[1], frame, exponents)
    raised = Raised(
        invalid(p, list(zip((x, y, z), (a, b, c), formats, strict=True))), *of_sum(p, sum_, inner, frame)
    )
    number = z3.Not(z3.Or(*special))
    inexact = z3.And(number, z3.Or(raised.overflow, raised.lost))
    no = z3.BitVecVal(0, 1)
    bits = (raised.overflow, z3.And(raised.tiny, inexact), inexact)
    code = z3.Concat(bit(raised.invalid), no, *(bit(z3.And(number, each)) for each in bits))
    result = stages.made("raised", [sum_, special, x, y, z, a, b, c], code, raised=raised)
    return FlagsStep(x, y, z, special, sum_, raised, result)


dot_add = looped(FmaFlags, lambda spec, p, a, b, c, stages: step(spec, p, a[0], b[0], c, stages))
