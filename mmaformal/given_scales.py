"""Block scales of one product as people have them: of which format, of how many products, and how they lie.

Scales are told by their type, or by the format named; how they lie, by their shape (`mmaformal.scale_layouts`): a row
for each row of A, or of the transpose of B, *plain*, *padded* to whole tiles, or in cuBLAS's *tiles*.  Where several
of these fit, that is taken of which D is the product.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product
from typing import Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from mmaformal.display import ShortRepr
from mmaformal.formats import Format, e4m3, format_called, fp64, ue4m3, ue8m0
from mmaformal.gemm import CodeArray, values
from mmaformal.operands import Matrix, as_operand, float_format, is_tensor
from mmaformal.scale_layouts import from_tiles, padded_shape, unpadded

#: How scales lie; `auto` is by their shape.
ScaleLayout = Literal["auto", "plain", "padded", "tiles"]
LAYOUTS = get_args(ScaleLayout)
#: What types of scales mean: torch has ue4m3 as float8_e4m3fn, whose codes without a sign it is.
_OF_TYPES = {ue8m0: ue8m0, e4m3: ue4m3}
#: Products that share a pair of scales, of each format, as units take them.
_BLOCKS = {ue8m0: (32, 16), ue4m3: (16,)}


class Way(NamedTuple):
    """Scales of one side as they may have been meant: (rows, blocks), and how they lie."""

    codes: CodeArray
    words: str


@dataclass(frozen=True, repr=False)
class GivenScales(ShortRepr):
    """Scales of A (M, blocks) and of B (blocks, N) as codes of a format, one for `block` products."""

    a: CodeArray
    b: CodeArray
    fmt: Format
    block: int
    words: str = "plain"  #: how they lay
    turned: bool = False  #: whether those of B had a row for each column of B
    typed: bool = False  #: whether they were of torch's type, which has a sign where ue4m3 has none

    def part(self, rows: NDArray[np.intp], columns: NDArray[np.intp]) -> GivenScales:
        """Returns those of some rows and columns of D."""
        b = np.ascontiguousarray(self.b[:, columns])
        return replace(self, a=self.a[rows], b=b)

    def numbers(self, K: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Returns the scale of each element of A (M, K) and B (K, N)."""
        each = (
            np.repeat(values(x, self.fmt, fp64), self.block, axis) for x, axis in ((self.a, 1), (self.b, 0))
        )
        a, b = each
        return a[:, :K], b[:K]


def ways(
    scale_a: Matrix,
    scale_b: Matrix,
    shape: tuple[int, int, int],
    formats: tuple[Format, Format],
    layout: ScaleLayout = "auto",
    named: str | Format | None = None,
) -> list[GivenScales]:
    """Returns what scales of a product of M, K, N may be, the likeliest first; formats are those of A and B.

    Raises ValueError for what fits nowhere, and for another layout or format than there is.
    """
    if layout not in LAYOUTS:
        raise ValueError(f"scales lie {', '.join(LAYOUTS)}, not {layout!r}")
    (a, of_a), (b, of_b) = (_codes(x, name) for x, name in ((scale_a, "scale_a"), (scale_b, "scale_b")))
    M, K, N = shape
    kinds = [
        (fmt, block)
        for fmt in _formats(named, of_a, of_b)
        for block in _BLOCKS[fmt]
        if block > 16 or all(x.storage_bits == 4 for x in formats)
    ]
    found = []
    for fmt, block in kinds:
        blocks = -(-K // block)
        for x, y in product(_ways(a, M, blocks, layout), _ways(b, N, blocks, layout)):
            if x.words == y.words:
                codes, turned = np.ascontiguousarray(y.codes.T), b.shape == y.codes.shape
                typed = fmt == ue4m3 and of_a is not None
                found.append(GivenScales(x.codes, codes, fmt, block, x.words, turned, typed))
    if not found:
        needed = ", or ".join(f"{M}×{-(-K // n)} and {-(-K // n)}×{N} of {fmt}" for fmt, n in kinds)
        raise ValueError(
            f"scales of shapes {a.shape} and {b.shape}; {needed or 'none'} are needed, or these padded, or in tiles of"
            " 128×4"
        )
    return found


def _codes(x: Matrix, name: str) -> tuple[CodeArray, Format | None]:
    """The bytes of scales, and their format, if their type says it."""
    if is_tensor(x):
        fmt = format_called(str(getattr(x, "dtype", "")))
        array = np.asarray(as_operand(x, fmt, name).codes if fmt is not None else np.from_dlpack(x))
    else:
        array, fmt = np.asarray(x), float_format(x)
    if array.dtype.itemsize != 1 or (fmt is not None and fmt not in _OF_TYPES):
        raise ValueError(
            f"{name} is {array.dtype}: block scales are bytes of ue8m0 or ue4m3; scales of a tensor or a row are"
            " applied to sums, which no unit does: where they are powers of two, divide D by them"
        )
    return array.view(np.uint8), None if fmt is None else _OF_TYPES[fmt]


def _formats(named: str | Format | None, *given: Format | None) -> list[Format]:
    """The formats that scales may be of.  Raises ValueError for another one named, or two."""
    if named is not None:
        fmt = named if isinstance(named, Format) else format_called(named)
        fmt = ue4m3 if fmt == e4m3 else fmt
        if fmt not in _BLOCKS:
            raise ValueError(f"block scales are of {', '.join(x.name for x in _BLOCKS)}, not {named}")
        return [fmt]
    told = {x for x in given if x is not None}
    if len(told) > 1:
        raise ValueError("scale_a and scale_b are of two formats")
    return list(told or _BLOCKS)


def _ways(x: CodeArray, rows: int, blocks: int, layout: ScaleLayout) -> Iterator[Way]:
    """How scales of so many rows and blocks may lie."""
    padded = padded_shape(rows, blocks)
    if layout in ("auto", "plain"):
        if x.shape == (rows, blocks):
            yield Way(x, "plain")
        elif x.shape == (blocks, rows):
            yield Way(np.ascontiguousarray(x.T), "plain")
    if layout in ("auto", "padded") and x.shape == padded and padded != (rows, blocks):
        yield Way(unpadded(x, rows, blocks), "padded")
    if layout == "padded" and x.shape == padded == (rows, blocks):
        yield Way(x, "padded")
    if layout in ("auto", "tiles") and x.size == padded[0] * padded[1]:
        yield Way(from_tiles(x, rows, blocks), "tiles")
