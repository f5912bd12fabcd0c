"""Some rows as compiled code takes them: few types, so that few functions are compiled; and rows on NumPy's lanes."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mmaformal.display import short_repr
from mmaformal.encodings import executable
from mmaformal.encodings.executable.ieee import convert_exactly
from mmaformal.formats import Format
from mmaformal.spec import DotAdd

#: Formats of codes of so many bits are converted by a table.
_TABLE_BITS = 16


class Batch(NamedTuple):
    """Codes of some rows, products in the order in which they are taken, and room for the results."""

    a: NDArray[Any]  #: (rows, K), contiguous; words of 32 bits, of 64 where a format of a or b needs them
    b: NDArray[Any]
    c: NDArray[np.int64]  #: (rows,), as lanes
    scale_a: NDArray[np.uint32]  #: (rows, K / block); no columns without scales
    scale_b: NDArray[np.uint32]
    d: NDArray[np.int64]

    def __repr__(self) -> str:
        return short_repr(self)

    def at(self, where: NDArray[np.intp]) -> Batch:
        """Return some of the rows, with room of their own for the results."""
        a, b, c = self.a[where], self.b[where], self.c[where]
        return Batch(a, b, c, self.scale_a[where], self.scale_b[where], self.d[where])


def batch(
    spec: DotAdd,
    a: NDArray[Any],
    b: NDArray[Any],
    c: NDArray[Any],
    scale_a: NDArray[Any] | None,
    scale_b: NDArray[Any] | None,
) -> Batch:
    """The rows of `dot_add`'s arguments."""
    wide = max(spec.a_format.storage_bits, spec.b_format.storage_bits) > 32
    word = np.uint64 if wide else np.uint32
    if spec.product_order:
        a, b = (x.take(spec.taken, 1) for x in (a, b))
    if spec.scale_format is None or scale_a is None or scale_b is None:
        scale_a = scale_b = np.empty((len(c), 0), np.uint32)
    return Batch(
        np.ascontiguousarray(a, word),
        np.ascontiguousarray(b, word),
        c=np.ascontiguousarray(c.astype(np.int64)),
        scale_a=np.ascontiguousarray(scale_a, np.uint32),
        scale_b=np.ascontiguousarray(scale_b, np.uint32),
        d=np.empty(len(c), np.int64),
    )


def converted(rows: Batch, spec: DotAdd, to_a: Format, to_b: Format) -> Batch:
    """Return the rows with a and b in other formats, which hold all their values."""
    a, b = in_format(rows.a, spec.a_format, to_a), in_format(rows.b, spec.b_format, to_b)
    return rows._replace(a=a, b=b)


def in_format(codes: NDArray[Any], source: Format, target: Format) -> NDArray[Any]:
    """Codes in a format that holds all their values."""
    if source is target:
        return codes
    if source.storage_bits <= _TABLE_BITS:
        return _table(source, target).take(codes)
    lanes = convert_exactly(codes.astype(np.int64), source, target)
    return np.ascontiguousarray(lanes, np.uint64 if target.storage_bits > 32 else np.uint32)


@lru_cache(maxsize=64)
def _table(source: Format, target: Format) -> NDArray[Any]:
    codes: NDArray[np.int64] = convert_exactly(np.arange(source.codes, dtype=np.int64), source, target)
    return codes.astype(np.uint64 if target.storage_bits > 32 else np.uint32)


def on_lanes(spec: DotAdd, rows: Batch) -> None:
    """Fill in the results, by the executable on NumPy's lanes."""
    sides = (rows.a, rows.b, rows.scale_a, rows.scale_b)
    a, b, scale_a, scale_b = ([lane.astype(np.int64) for lane in side.T] for side in sides)
    rows.d[:] = executable.dot_add(spec.in_order, a, b, rows.c, scale_a, scale_b).result
