"""Planes of operands, and a step after its products, which kernels of aligned sums share."""

from __future__ import annotations

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
from mmaformal.kernels.widths import Widths
from mmaformal.rounding import Conversion, Rounding
from mmaformal.spec import DotAdd


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

    def __init__(self, spec: DotAdd, wide: Widths, L: int, zero: int | None) -> None:
        super().__init__(spec)
        self.widths = wide
        self.L = L
        self.zero = zero  #: the exponent of zeros in the planes; None for that of the format's fields
        self.steps = spec.k // L
        self.bytes_per_element = wide.bytes_per_element
        self.description = f"{spec.parameters.algorithm}: {wide}"
        self._order: NDArray[np.int64] | None = None  #: of the products of one step
        self._decode_rows, self._decode_panels = Direct(decode_rows), Direct(decode_panels)

    def _planes(self, shape: tuple[int, ...]) -> Planes:
        """Room for exponents, values and kinds."""
        types, place = (self.widths.exponent, self.widths.value, np.uint8), room.current()
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
        planes = self._planes(codes.shape)
        special = np.empty((len(codes), codes.shape[1] // self.L), np.bool_)
        self._decode_rows(fmt, codes, self.L, self._zero_of(fmt), *planes, special)
        return (*planes, special)

    def _columns(self, codes: CodeArray) -> Planes:
        order, fmt = self._ordered(len(codes)), self.spec.b_format
        codes = codes if order is None else codes[order]
        shape, line = panel_shape(codes), in_line(codes)
        planes, special = self._planes(shape), np.empty((shape[0], shape[1] // self.L), np.bool_)
        self._decode_panels(fmt, *line, codes.shape[1], self.L, self._zero_of(fmt), *planes, special)
        return (*planes, special)

    def _zero_of(self, fmt: Format) -> int:
        return fmt.min_exponent if self.zero is None else self.zero


def zero_exponent(e_zero: int | None, c_format: Format) -> int:
    """Returns the exponent of a c that is zero."""
    return c_format.min_exponent if e_zero is None else e_zero


def fda_numbers(spec: DotAdd, p: Fda | Lowered | Gfda) -> tuple[int, ...]:
    """Return the numbers that the step takes besides formats, ρ and L."""
    e_zero = zero_exponent(p.e_zero, spec.c_format)
    return p.F, e_zero, p.e_zero is None, canonical_nan(spec.d_format), p.cut is Rounding.RO
