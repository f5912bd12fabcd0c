"""Planes of operands, and a step after its products, which kernels of aligned sums share."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

import numpy as np
from numpy.typing import NDArray

from mmaformal.display import short_text
from mmaformal.encodings.executable.blocks import (
    Flag,
    Lane,
    Special,
    canonical_nan,
    decode,
)
from mmaformal.encodings.fda import Fda
from mmaformal.encodings.gfda import Gfda
from mmaformal.encodings.lowered import Lowered
from mmaformal.formats import Format
from mmaformal.kernels import room
from mmaformal.kernels.compiled import (
    Direct,
    inlined,
)
from mmaformal.kernels.kernel import CodeArray, Kernel, Plane, Planes
from mmaformal.kernels.planes import (
    are_within,
    decode_panels,
    decode_rows,
    in_line,
    panel_shape,
)
from mmaformal.kernels.products import (
    or_special,
    settle_zeros,
    sum_with_c,
)
from mmaformal.kernels.widths import Widths, near_one
from mmaformal.rounding import Conversion, Rounding
from mmaformal.spec import DotAdd


class _Side:
    """Decoders of A or B, for each type of values, and whether the planes made last could be narrow."""

    def __init__(self, decode: Callable[..., None]) -> None:
        self.decoders = {value: Direct(decode) for value in (np.float32, np.float64)}
        self.narrow = True

    def __repr__(self) -> str:
        return short_text(self, "narrow" if self.narrow else "wide")


class PlaneValues:
    """The values of planes; of narrow ones the wide are made when they are first asked for, and kept with them."""

    def __init__(self, array: Plane) -> None:
        self.array = array
        self._wide: Plane | None = None

    def __repr__(self) -> str:
        return short_text(self, str(self.array.dtype))

    @property
    def narrow(self) -> bool:
        return self.array.dtype == np.float32

    def widened(self, value: type[np.floating]) -> Plane:
        """Return them in the type that planes have by `Widths`."""
        if self._wide is None:
            self._wide = self.array.astype(value, copy=False)
        return self._wide


@inlined
def summed(
    of: DotAdd,
    rho: Conversion,
    F: int,
    e_zero: int,
    by_fields: bool,
    nan: int,
    odd: bool,
    special: Flag,
    found: Special,
    value: Plane,
    exponent: Plane,
    a: Plane,
    b: Plane,
    code: Lane,
) -> Lane:
    """One step of one output, after its products."""
    if not by_fields:
        settle_zeros(value, exponent, e_zero)
    bits = of.a_format.fraction_bits + of.b_format.fraction_bits
    c = decode(code, of.c_format.layout)
    number = sum_with_c(of, rho, F, e_zero, odd, value, exponent, bits, c)
    return or_special(of, rho, nan, special, found, a, b, c, number)


class FusedPlanes(Kernel):
    """The planes that fda and fdrda have in common."""

    def __init__(self, spec: DotAdd, wide: Widths, F: int, L: int, zero: int | None) -> None:
        super().__init__(spec)
        self.widths = wide
        self.L = L
        self.zero = zero  #: the exponent of zeros in the planes; None for that of the format's fields
        self.steps = spec.k // L
        self.bytes_per_element = wide.bytes_per_element
        self.description = f"{spec.parameters.algorithm}: {wide}"
        self.near = near_one(spec, F, wide)  #: where values may be narrower than `widths` has them
        self._order: NDArray[np.int64] | None = None  #: of the products of one step
        self._of_rows, self._of_columns = _Side(decode_rows), _Side(decode_panels)

    def _planes(self, shape: tuple[int, ...], value: type[np.floating]) -> Planes:
        """Room for exponents, values and kinds."""
        types, place = (self.widths.exponent, value, np.uint8), room.current()
        if place is None:
            return tuple(np.empty(shape, each) for each in types)
        return tuple(place.array((use, len(shape)), shape, each) for use, each in enumerate(types))

    def _ordered(self, k: int) -> NDArray[np.int64] | None:
        if self._order is None:
            return None
        return (np.arange(0, k, self.L)[:, None] + self._order).reshape(-1)

    def _rows(self, codes: CodeArray) -> Planes:
        order, fmt = self._ordered(codes.shape[1]), self.spec.a_format
        codes = np.ascontiguousarray(codes if order is None else codes[:, order])
        special = np.empty((len(codes), codes.shape[1] // self.L), np.bool_)
        planes = self._made(
            self._of_rows,
            codes.shape,
            lambda decode, room: decode(fmt, codes, self.L, self._zero_of(fmt), *room, special),
        )
        return (*planes, special)

    def _columns(self, codes: CodeArray) -> Planes:
        order, fmt = self._ordered(len(codes)), self.spec.b_format
        codes = codes if order is None else codes[order]
        shape, line = panel_shape(codes), in_line(codes)
        special = np.empty((shape[0], shape[1] // self.L), np.bool_)
        planes = self._made(
            self._of_columns,
            shape,
            lambda decode, room: decode(
                fmt, *line, codes.shape[1], self.L, self._zero_of(fmt), *room, special
            ),
        )
        return (*planes, special)

    def _made(self, side: _Side, shape: tuple[int, ...], fill: Callable[[Direct, Planes], None]) -> Planes:
        """Return planes that are filled by a decoder: narrow ones if they hold all numbers, and the last ones did."""
        wide, near = self.widths.value, self.near
        value = wide if near is None or not side.narrow else np.float32
        fill(side.decoders[value], planes := self._planes(shape, value))
        if near is not None:
            exponents, _, kinds = (x.reshape(-1) for x in planes)
            side.narrow = narrow = bool(are_within(exponents, kinds, near.low, near.high))
            if value is not wide and not narrow:
                fill(side.decoders[wide], planes := self._planes(shape, wide))
        exponents, values, kinds = planes
        # PlaneValues stand for an array until `run`, which takes them by `_alike`.
        return exponents, cast(Plane, PlaneValues(values)), kinds

    def _alike(self, a: Planes, b: Planes) -> tuple[int, Planes, Planes]:
        """The exponent of the least scale, and both planes with arrays of values of one type, the wider."""
        of_a, of_b = cast(PlaneValues, a[1]), cast(PlaneValues, b[1])
        if self.near is not None and of_a.narrow and of_b.narrow:
            return self.near.floor, (a[0], of_a.array, *a[2:]), (b[0], of_b.array, *b[2:])
        x, y = of_a.widened(self.widths.value), of_b.widened(self.widths.value)
        return self.widths.floor, (a[0], x, *a[2:]), (b[0], y, *b[2:])

    def _zero_of(self, fmt: Format) -> int:
        return fmt.min_exponent if self.zero is None else self.zero


def zero_exponent(e_zero: int | None, c_format: Format) -> int:
    """Returns the exponent of a c that is zero."""
    return c_format.min_exponent if e_zero is None else e_zero


def fda_numbers(spec: DotAdd, p: Fda | Lowered | Gfda) -> tuple[int, ...]:
    """Return the numbers that the step takes besides formats, ρ and L."""
    e_zero = zero_exponent(p.e_zero, spec.c_format)
    return p.F, e_zero, p.e_zero is None, canonical_nan(spec.d_format), p.cut is Rounding.RO
