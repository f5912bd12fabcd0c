"""The results that RISC-V's standard allows its dot product of fp32, `vfbdota.vv`, to give for one input.

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
from enum import Enum
from fractions import Fraction
from typing import Final, TypeAlias

from mmaformal.analysis.riscv_freedom import NAN, TooManyError, last_bit_place, trees
from mmaformal.formats import exponent_of, fp32
from mmaformal.spec import DotAdd

_TOO_LARGE: Final = Fraction(2) ** (fp32.max_exponent + 1)
_LAST: Final = fp32.min_exponent - fp32.fraction_bits  #: the place of fp32's least number

#: Terms of which all trees are listed; of more, those that are zeros may be left out.
_TERMS = 9


def is_fp32_of_standard(spec: DotAdd) -> bool:
    """Whether a unit is one of fp32 throughout, with a power of two of products."""
    formats = {spec.a_format, spec.b_format, spec.c_format, spec.d_format}
    return formats == {fp32} and spec.k & (spec.k - 1) == 0 and not spec.scale_block


class Zero(Enum):
    """A zero, which has a sign."""

    PLUS = "+0"
    MINUS = "−0"


Fp32Number: TypeAlias = Fraction | Zero | float  #: a number that is not zero, a zero, or an infinity or NaN


def _zero(negative: bool) -> Zero:
    return Zero.MINUS if negative else Zero.PLUS


def _number(code: int) -> Fp32Number:
    """Returns the number of a code."""
    negative = bool(code & fp32.sign_mask)
    if fp32.is_nan(code):
        return math.nan
    if not fp32.is_finite(code):
        return -math.inf if negative else math.inf
    return fp32.value(code) or _zero(negative)


def _is_negative(x: Fp32Number) -> bool:
    return x is Zero.MINUS if isinstance(x, Zero) else x < 0


def _multiply(x: Fp32Number, y: Fp32Number) -> Fp32Number:
    """Returns the exact product."""
    if isinstance(x, Fraction) and isinstance(y, Fraction):
        return x * y
    if all(isinstance(z, (Fraction, Zero)) for z in (x, y)):
        return _zero(_is_negative(x) != _is_negative(y))
    if any(isinstance(z, Zero) or z != z for z in (x, y)):  # 0·∞, and a NaN, which is not itself
        return math.nan
    return -math.inf if _is_negative(x) != _is_negative(y) else math.inf


def _add(x: Fp32Number, y: Fp32Number) -> Fp32Number:
    """Returns the exact sum."""
    if isinstance(x, Zero):
        return _zero(x is y is Zero.MINUS) if isinstance(y, Zero) else y
    if isinstance(y, Zero):
        return x
    if isinstance(x, Fraction):
        return (x + y or Zero.PLUS) if isinstance(y, Fraction) else y
    return x if isinstance(y, Fraction) else x + y


def _nearest(x: Fraction, place: int) -> Fraction | Zero:
    """Returns x rounded to a multiple of 2^place, to nearest, ties to even."""
    grid = Fraction(2) ** place
    return round(x / grid) * grid or _zero(x < 0)


def _last_place(x: Fraction) -> int:
    """Returns the place of fp32's last bit of a number."""
    return max(exponent_of(x) - fp32.fraction_bits, _LAST)


def _cuts(x: Fp32Number) -> Iterator[Fp32Number]:
    """Yields what x may become by rounding once to a format that has fp32's numbers."""
    yield x
    if not isinstance(x, Fraction):
        return
    for place in range(last_bit_place(x), _last_place(x) + 1):
        y = _nearest(x, place)
        yield y
        if isinstance(y, Fraction) and abs(y) >= _TOO_LARGE:
            yield -math.inf if y < 0 else math.inf


def _repeated(x: Fp32Number) -> Iterator[Fp32Number]:
    """Yields what x may become by rounding any number of times."""
    found, new = {x}, [x]
    while new:
        new = [y for y in {z for each in new for z in _cuts(each)} if y not in found]
        found.update(new)
    yield from found


def _single(x: Fp32Number) -> int:
    """Returns the code of x, rounded to fp32."""
    if isinstance(x, Fraction):
        sign, e = fp32.sign_mask if x < 0 else 0, max(exponent_of(x), fp32.min_exponent)
        if e > fp32.max_exponent:
            return sign | 0x7F800000
        whole = round(abs(x) / Fraction(2) ** (e - fp32.fraction_bits))
        return sign | whole + ((e - fp32.min_exponent) << fp32.fraction_bits)
    if isinstance(x, Zero):
        return fp32.sign_mask if x is Zero.MINUS else 0
    return NAN if math.isnan(x) else (fp32.sign_mask if x < 0 else 0) | 0x7F800000


def allowed_fp32(a: Sequence[int], b: Sequence[int], c: int, limit: int = 20_000) -> set[int]:
    """Returns the codes of d that a conforming unit may give for an input.

    Of more than eight products, zeros are left out but one of each sign, and a number may be rounded as often as one
    likes, which is all that adding a zero does to it: no less is listed than is allowed, and where the zeros are too
    few for that, maybe more.  Raises TooManyError where there are more than `limit` results on the way, or more than
    nine terms without those.
    """
    exact = [_multiply(_number(x), _number(y)) for x, y in zip(a, b, strict=True)]
    leaves: list[set[Fp32Number]] = [*({x, _number(_single(x))} for x in exact), {_number(c)}]
    rounded = _cuts
    if len(leaves) > _TERMS:
        plain = [leaf for leaf in leaves if not all(isinstance(x, Zero) for x in leaf)]
        kinds: list[set[Fp32Number]] = [{zero} for zero in Zero]
        leaves = [*plain, *(kind for kind in kinds if kind in leaves)]
        rounded = _repeated
    if len(leaves) > _TERMS:
        raise TooManyError(f"more than {_TERMS - 1} products that are not zero")
    return {_single(x) for x in trees(leaves, limit, rounded, _add)}


def fp32_off_at_most(k: int) -> Fraction:
    """Returns how far a conforming unit of k products is off the exact sum at most, relative to |c| + Σ|a·b|.

    Where no number on the way is too small or too large.  A product is rounded, added k times at most, and the sum is
    converted, each time off by 2^-24 of what is rounded.
    """
    return (1 + Fraction(1, 1 << fp32.fraction_bits + 1)) ** (k + 2) - 1
