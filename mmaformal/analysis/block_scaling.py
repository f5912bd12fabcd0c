"""The cost of block scales: by how much a number may be changed, relative to the largest one of its block.

With m the largest magnitude of a block, s its scale and x one of its numbers, t = m/s is in a range that the rule of
the scale gives (`mmaformal.quantise`): of powers of two (MX) from 2^e to below 2^(e + 1), e the exponent of the
format's largest number; of ue4m3 (NVFP4) that number's 17/18 to 17/16, since a scale is off m over that number by as
much as rounding to four bits is.  x/s is rounded to nearest, and what is above the largest number becomes that.

|x − s·q| is piecewise linear in x, with its maxima halfway between two numbers of the format and at the end, so that
the largest |x − s·q|/m is the largest of finitely many: no search, but all there are.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

from mmaformal.display import ShortRepr
from mmaformal.formats import Format


@dataclass(frozen=True, repr=False)
class BlockError(ShortRepr):
    """The most that a number of a block is changed."""

    error: Fraction  #: relative to the block's largest magnitude
    x: Fraction  #: the number, over the scale
    largest: Fraction  #: the block's largest magnitude, over the scale; if it is at the open end, the limit


def worst_in_block(fmt: Format, scale_format: Format) -> BlockError:
    """Return the largest error of any number in blocks of `fmt` with scales of `scale_format`, none of them subnormal.

    Raises ValueError for scales that are neither powers of two nor have three fraction bits.
    """
    numbers = sorted({fmt.value(code) for code in range(fmt.codes) if fmt.is_finite(code)} - _negative(fmt))
    most = numbers[-1]
    if not scale_format.has_zero:
        power = Fraction(2) ** (most.numerator // most.denominator).bit_length() / 2
        low, high = power, 2 * power
    elif scale_format.fraction_bits == 3:
        low, high = most * Fraction(17, 18), most * Fraction(17, 16)
    else:
        raise ValueError(f"no rule for block scales of {scale_format}")
    halves = [(x + y) / 2 for x, y in pairwise(numbers)]
    found = [BlockError((x - y) / max(x, low), x, max(x, low)) for x, y in zip(halves, numbers, strict=False)]
    found.append(BlockError((high - most) / high, high, high))
    return max(found, key=lambda each: each.error)


def _negative(fmt: Format) -> set[Fraction]:
    return {x for code in range(fmt.codes) if fmt.is_finite(code) and (x := fmt.value(code)) < 0}
