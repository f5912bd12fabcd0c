"""Planes of operands, and a step after its products, which kernels of aligned sums share."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

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

#: types of values
VALUES: tuple[type[np.floating], ...] = (np.float32, np.float64)


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
        self._decode_rows = {value: Direct(decode_rows) for value in VALUES}
        self._decode_panels = {value: Direct(decode_panels) for value in VALUES}

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
        for planes in self._rooms(codes.shape):
            decode = self._decode_rows[planes[1].dtype.type]
            decode(fmt, codes, self.L, self._zero_of(fmt), *planes, special)
            if self._serve(planes):
                break
        return (*planes, special)

    def _columns(self, codes: CodeArray) -> Planes:
        order, fmt = self._ordered(len(codes)), self.spec.b_format
        codes = codes if order is None else codes[order]
        shape, line = panel_shape(codes), in_line(codes)
        special = np.empty((shape[0], shape[1] // self.L), np.bool_)
        for planes in self._rooms(shape):
            decode = self._decode_panels[planes[1].dtype.type]
            decode(fmt, *line, codes.shape[1], self.L, self._zero_of(fmt), *planes, special)
            if self._serve(planes):
                break
        return (*planes, special)

    def _rooms(self, shape: tuple[int, ...]) -> Iterator[Planes]:
        """Rooms for planes, the narrowest first."""
        if self.near is not None:
            yield self._planes(shape, np.float32)
        yield self._planes(shape, self.widths.value)

    def _serve(self, planes: Planes) -> bool:
        """Whether the values of planes that were made hold all their numbers."""
        exponents, values, kinds = planes
        if self.near is None or values.dtype.type is self.widths.value:
            return True
        return bool(are_within(exponents.reshape(-1), kinds.reshape(-1), self.near.low, self.near.high))

    def _alike(self, a: Planes, b: Planes) -> tuple[int, Planes, Planes]:
        """The exponent of the least scale, and both planes with values of one type, the wider."""
        types = {a[1].dtype, b[1].dtype}
        if self.near is not None and types == {np.dtype(np.float32)}:
            return self.near.floor, a, b
        if len(types) > 1:
            a, b = ((x[0], x[1].astype(self.widths.value, copy=False), *x[2:]) for x in (a, b))
        return self.widths.floor, a, b

    def _zero_of(self, fmt: Format) -> int:
        return fmt.min_exponent if self.zero is None else self.zero


def zero_exponent(e_zero: int | None, c_format: Format) -> int:
    """Returns the exponent of a c that is zero."""
    return c_format.min_exponent if e_zero is None else e_zero


def fda_numbers(spec: DotAdd, p: Fda | Lowered | Gfda) -> tuple[int, ...]:
    """Return the numbers that the step takes besides formats, ρ and L."""
    e_zero = zero_exponent(p.e_zero, spec.c_format)
    return p.F, e_zero, p.e_zero is None, canonical_nan(spec.d_format), p.cut is Rounding.RO
