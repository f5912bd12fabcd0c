"""fma_flags, the exceptions of a fused multiply-add, executable.  Specification: semantics §3.

The sum is that of fma.  It is inexact where bits are left below ρ's last place, or where it overflows, which is told by
the exponent of what is rounded.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import or_
from typing import NamedTuple

from mmaformal.encodings.executable.blocks import (
    Flag,
    Lane,
    Operand,
    Special,
    Sum,
    bit_length,
    clamp,
    invert,
    is_zero,
    maximum,
    normalise_and_round,
    where,
)
from mmaformal.encodings.executable.chain import looped
from mmaformal.encodings.executable.stages import Stages
from mmaformal.encodings.fma.executable import is_tiny, product_of, sum_of
from mmaformal.encodings.fma_flags import INEXACT, INVALID, OVERFLOW, UNDERFLOW, FmaFlags
from mmaformal.formats import Format, Specials
from mmaformal.rounding import Conversion
from mmaformal.spec import DotAdd


class Raised(NamedTuple):
    """The exceptions; but for the first, of a sum, whether or not it is one of numbers."""

    invalid: Flag
    overflow: Flag
    lost: Flag
    tiny: Flag


class FlagsStep(NamedTuple):
    """The interfaces between the stages, in order."""

    a: Operand
    b: Operand
    c: Operand
    special: Special
    total: Sum
    raised: Raised
    result: Lane


def is_signalling(x: Operand, code: Lane, fmt: Format) -> Flag:
    """Whether an operand is a signalling NaN, the first bit of whose fraction is 0; other formats have quiet ones."""
    if fmt.specials is not Specials.IEEE:
        return x.nan & invert(x.nan)
    return x.nan & ((code >> (fmt.ignored_low_bits + fmt.fraction_bits - 1)) & 1 == 0)


def is_invalid(p: FmaFlags, operands: Sequence[tuple[Operand, Lane, Format]]) -> Flag:
    """Whether a NaN is signalling, a product is 0·∞, or infinities are subtracted."""
    (x, _, _), (y, _, _), (z, _, _) = operands
    number = invert(x.nan | y.nan)
    undefined = ((x.infinite & is_zero(y)) | (y.infinite & is_zero(x))) & number
    if p.hides:
        undefined = undefined & invert(z.nan)
    difference = (x.infinite | y.infinite) & z.infinite & ((x.sign ^ y.sign ^ z.sign) == 1) & number
    return reduce(or_, (is_signalling(*each) for each in operands)) | undefined | difference


def of_sum(x: Sum, p: FmaFlags) -> tuple[Flag, Flag, Flag]:
    """Whether a sum overflows, loses bits, and is tiny but not zero."""
    rho: Conversion = p.rounds
    rounded = normalise_and_round(x.total, x.unit, rho)
    beyond = rounded.exponent > rho.format.max_exponent
    carried = rounded.significand >= 2 << rho.fraction_bits
    overflow = beyond | ((rounded.exponent == rho.format.max_exponent) & carried)
    magnitude = where(x.total < 0, -x.total, x.total)
    exponent = maximum(bit_length(magnitude) - 1 + x.unit, rho.format.min_exponent)
    drop = clamp(exponent - rho.fraction_bits - x.unit, 0, 62)
    return overflow, (magnitude >> drop) << drop != magnitude, is_tiny(x, rho, p.tiny) & (magnitude != 0)


def step(spec: DotAdd, p: FmaFlags, a: Lane, b: Lane, c: Lane, stages: Stages) -> FlagsStep:
    """The exceptions of `ρ(a·b + c)`."""
    inner, own = p.inner(spec), p.own
    formats = spec.a_format, spec.b_format, spec.c_format
    x, y, z = (stages.decode(u, fmt, p.flush_inputs) for u, fmt in zip((a, b, c), formats, strict=True))
    special = stages.classify([(x, y)], [z])
    product = product_of(own, inner, x, y, stages)
    addend = stages.addend(z, own.zero_exponent(inner))
    total = sum_of(own, inner, product, addend, stages)
    invalid = is_invalid(p, list(zip((x, y, z), (a, b, c), formats, strict=True)))
    overflow, lost, tiny = of_sum(total, p)
    number = invert(special.nan | special.positive_infinity | special.negative_infinity)
    raised = Raised(invalid, overflow, lost, tiny)
    inexact = overflow | lost
    code = where(invalid, INVALID, total.total * 0)
    for flag, value in ((overflow, OVERFLOW), (inexact & tiny, UNDERFLOW), (inexact, INEXACT)):
        code = code + where(flag & number, value, 0)
    inputs = [total, special, x, y, z, a, b, c]
    return FlagsStep(x, y, z, special, total, raised, stages.made("raised", inputs, code, raised=raised))


dot_add = looped(
    lambda spec, a, b, c, stages: step(spec, spec.parameters_as(FmaFlags), a[0], b[0], c, stages)
)
