"""What RISC-V's standard leaves open of its dot product of fp32, `vfbdota.vv`: the results that it allows, of one input.

The text (riscv-isa-manual, src/zvdota.adoc, stored version 0256d622, "Zvfbdota32f"; the sum is that of `vfredusum.vs`):

1. The products are exact.  Each may be rounded to fp32.
2. They and c are added by a tree of two-operand additions.  Each rounds its exact sum once, to a format whose range and
   precision are no less than fp32's, any one for each.
3. The result is converted to fp32, which rounds again.

The rounding is the dynamic one; here to nearest, ties to even.  Zeros, infinities and NaNs are those of IEEE 754, a NaN
the canonical one.  A zero among the terms counts as a term: adding it rounds once more.  Whether all products are to be
rounded or none the text does not say; here each may be or not.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Final

from mmaformal.analysis.riscv_freedom import NAN, TooManyError, Value, lowest, top, trees
from mmaformal.formats import fp32
from mmaformal.spec import DotAdd

_TOO_LARGE: Final = Fraction(2) ** (fp32.max_exponent + 1)
_LAST: Final = fp32.min_exponent - fp32.fraction_bits  #: the place of fp32's least number

#: Terms of which all trees are listed.
_TERMS = 9


def is_of_standard(spec: DotAdd) -> bool:
    """Whether a unit is one of fp32 throughout, with a power of two of products."""
    formats = {spec.a_format, spec.b_format, spec.c_format, spec.d_format}
    return formats == {fp32} and spec.k & (spec.k - 1) == 0 and not spec.scale_block


def number(code: int) -> Value:
    """Returns the number of a code; zeros, which have signs, infinities and NaNs are floats."""
    if fp32.is_nan(code):
        return math.nan
    sign = -1.0 if code & fp32.sign_mask else 1.0
    if not fp32.is_finite(code):
        return sign * math.inf
    return fp32.value(code) or sign * 0.0


def multiply(x: Value, y: Value) -> Value:
    """Returns the exact product."""
    if isinstance(x, Fraction) and isinstance(y, Fraction):
        return x * y
    one, other = (math.copysign(1.0, z) if isinstance(z, Fraction) else z for z in (x, y))
    return one * other


def add(x: Value, y: Value) -> Value:
    """Returns the exact sum."""
    if isinstance(x, Fraction) and isinstance(y, Fraction):
        return x + y or 0.0
    if isinstance(x, Fraction):
        return x if y == 0 else y
    if isinstance(y, Fraction):
        return y if x == 0 else x
    return x + y


def nearest(x: Fraction, place: int) -> Value:
    """Returns x rounded to a multiple of 2^place, to nearest, ties to even."""
    grid = Fraction(2) ** place
    return round(x / grid) * grid or math.copysign(0.0, x)


def _last_place(x: Fraction) -> int:
    """Returns the place of fp32's last bit of a number."""
    return max(top(x) - fp32.fraction_bits, _LAST)


def cuts(x: Value) -> Iterator[Value]:
    """Yields what x may become by rounding once to a format that has fp32's numbers."""
    yield x
    if not isinstance(x, Fraction):
        return
    for place in range(lowest(x), _last_place(x) + 1):
        y = nearest(x, place)
        yield y
        if abs(y) >= _TOO_LARGE:
            yield math.copysign(math.inf, y)


def single(x: Value) -> int:
    """Returns the code of x, rounded to fp32."""
    if isinstance(x, Fraction):
        sign, e = fp32.sign_mask if x < 0 else 0, max(top(x), fp32.min_exponent)
        if e > fp32.max_exponent:
            return sign | 0x7F800000
        whole = round(abs(x) / Fraction(2) ** (e - fp32.fraction_bits))
        return sign | whole + ((e - fp32.min_exponent) << fp32.fraction_bits)
    if math.isnan(x):
        return NAN
    return (fp32.sign_mask if math.copysign(1.0, x) < 0 else 0) | (0x7F800000 if x else 0)


def allowed(a: Sequence[int], b: Sequence[int], c: int, limit: int = 20_000) -> set[int]:
    """Returns the codes of d that a conforming unit may give for an input.

    Raises TooManyError where there are more than `limit` results on the way, or more than eight products.
    """
    if len(a) >= _TERMS:
        raise TooManyError(f"more than {_TERMS - 1} products")
    exact = [multiply(number(x), number(y)) for x, y in zip(a, b, strict=True)]
    leaves = [{x, number(single(x))} for x in exact]
    return {single(x) for x in trees([*leaves, {number(c)}], limit, cuts, add)}


__all__ = ["allowed", "cuts", "is_of_standard", "nearest", "single"]
