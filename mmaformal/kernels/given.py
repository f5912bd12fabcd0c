"""Formats and roundings as arguments of compiled code: numbers in one array, which become tuples there.

The tuples have the fields that the executable's stages read of a `Format` and a `Conversion`, so that the stages are
compiled once for all.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mmaformal.encodings.executable.blocks import Flag, Lane, decode
from mmaformal.formats import Format, Layout
from mmaformal.kernels.compiled import ROUNDINGS, inlined
from mmaformal.kernels.kernel import Plane
from mmaformal.rounding import Conversion
from mmaformal.spec import DotAdd

_FORMAT = 12  #: numbers that a format takes
#: where the numbers of each begin
_A, _B, _C, _D, _SCALE, _SCALE_BLOCK = (i * _FORMAT for i in range(6))
OWN = _SCALE_BLOCK + 1  #: where those of the algorithm begin
CONVERSION = 4  #: numbers that a conversion to a known format takes


class GivenFormat(NamedTuple):
    """The fields of a `Format` that stages read."""

    layout: Layout
    storage_bits: int
    exponent_bits: int
    fraction_bits: int
    min_exponent: int
    max_exponent: int
    least_special: int  #: the least magnitude that is a special value's, above all if there is none
    minus_zero: int  #: whether the code of −0 is a special value's


class GivenConversion(NamedTuple):
    """The fields of a `Conversion` that stages read."""

    format: GivenFormat
    fraction_bits: int
    rounding: int  #: its place in `ROUNDINGS`
    signed_zero: bool
    ieee: bool
    stays: bool  #: as `ieee`: no compiled algorithm has a ρ that saturates


class GivenFormats(NamedTuple):
    """The formats of a `DotAdd`, as stages read them."""

    a_format: Format
    b_format: Format
    c_format: Format
    d_format: Format


@lru_cache(maxsize=1024)
def numbers(spec: DotAdd, *own: int | Conversion) -> NDArray[np.int64]:
    """The formats of `spec`, then the algorithm's own parameters."""
    of = spec.a_format, spec.b_format, spec.c_format, spec.d_format
    return numbers_of(of, *own, scale_format=spec.scale_format, scale_block=spec.scale_block)


def numbers_of(
    of: Iterable[Format], *own: int | Conversion, scale_format: Format | None = None, scale_block: int = 0
) -> NDArray[np.int64]:
    """Return the numbers of these formats of a, b, c and d, then the algorithm's own parameters."""
    found: list[int] = []
    for fmt in (*of, scale_format):
        found += _of_format(fmt) if fmt is not None else (0,) * _FORMAT
    found.append(scale_block)
    for each in own:
        found += _of_conversion(each) if isinstance(each, Conversion) else (each,)
    return np.array(found, np.int64)


@lru_cache(maxsize=256)
def _of_format(fmt: Format) -> tuple[int, ...]:
    return (*map(int, fmt.layout), fmt.storage_bits, fmt.min_exponent, fmt.max_exponent, *_specials(fmt))


def _specials(fmt: Format) -> tuple[int, int]:
    """Return what `is_special_code` is given: special values are the largest magnitudes, and −0 in some formats."""

    def special(code: int) -> bool:
        x = decode(np.int64(code), fmt.layout)
        return bool(x.nan | x.infinite)

    bits = _magnitude_bits(fmt)
    largest = (1 << bits) - 1
    none = largest + 1 if bits < 63 else largest
    least = bisect_left(range(largest), True, hi=largest, key=special) if special(largest) else none
    return least, int(bits < 63 and special(largest + 1))


def _magnitude_bits(fmt: Format) -> int:
    return fmt.layout.ignored_low_bits + fmt.layout.fraction_bits + fmt.layout.exponent_bits


@inlined
def is_special_code(code: Lane, fmt: Format) -> Flag:
    """Whether a code of a format with a sign is an infinity or a NaN, as `decode` says, without a case for each kind of
    format: those would keep a loop from being made vectors."""
    given: GivenFormat = fmt  # type: ignore[assignment]
    bits = given.layout.ignored_low_bits + given.layout.fraction_bits + given.layout.exponent_bits
    minus_zero = np.int64(1) << bits
    return ((code & (minus_zero - 1)) >= given.least_special) | (
        (code == minus_zero) & (given.minus_zero != 0)
    )


@lru_cache(maxsize=256)
def _of_conversion(rho: Conversion) -> tuple[int, ...]:
    return rho.fraction_bits, ROUNDINGS.index(rho.rounding), int(rho.signed_zero), int(rho.ieee)


@inlined
def _format(given: Plane, at: int, layout: Layout) -> Format:
    lengths = given[at + 7], given[at], given[at + 1], given[at + 8], given[at + 9]
    return GivenFormat(layout, *lengths, given[at + 10], given[at + 11])  # type: ignore[return-value]  # all that stages read of one


@inlined
def _number_format(given: Plane, at: int) -> Format:
    """A format of numbers: that it has a sign and a zero is known, and need not be looked at for each."""
    layout = Layout(
        given[at], given[at + 1], given[at + 2], given[at + 3], given[at + 4], signed=True, has_zero=True
    )
    return _format(given, at, layout)


@inlined
def formats(given: Plane) -> DotAdd:
    """The formats of a, b, c and d, which is all that stages read of a `DotAdd`."""
    a, b = _number_format(given, _A), _number_format(given, _B)
    c, d = _number_format(given, _C), _number_format(given, _D)
    return GivenFormats(a, b, c, d)  # type: ignore[return-value]


@inlined
def scale_format(given: Plane) -> Format:
    at = _SCALE
    layout = Layout(
        given[at],
        given[at + 1],
        given[at + 2],
        given[at + 3],
        given[at + 4],
        signed=given[at + 5] != 0,
        has_zero=given[at + 6] != 0,
    )
    return _format(given, at, layout)


@inlined
def scale_block(given: Plane) -> int:
    block: int = given[_SCALE_BLOCK]
    return block


@inlined
def conversion(given: Plane, at: int, target: Format) -> Conversion:
    """The conversion whose numbers begin at `at`."""
    rounding, signed_zero, ieee = given[at + 1], given[at + 2] != 0, given[at + 3] != 0
    return GivenConversion(target, given[at], rounding, signed_zero, ieee, ieee)  # type: ignore[arg-type, return-value]
