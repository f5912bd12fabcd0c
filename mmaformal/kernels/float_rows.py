"""Rows on the processor's own floating point: each operation on the numbers of many rows, product after product."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mmaformal.encodings.executable.blocks import Lane, quiet_nan
from mmaformal.kernels.batch import Batch
from mmaformal.kernels.compiled import driver, fma, vectorised
from mmaformal.kernels.kernel import Plane
from mmaformal.kernels.processor import check_processor
from mmaformal.spec import DotAdd

#: Rows taken through all products at a time: their numbers stay in the first-level cache.
WIDTH = 256


@driver
def chain_of_fma(nan: Lane, a: Plane, b: Plane, d: Plane) -> None:
    """d = fma(a_k, b_k, d) of numbers (K, rows), for one k after the other; NaNs become `nan`."""
    vectorised()
    for start in range(0, d.size, WIDTH):
        row = d[start : start + WIDTH]
        w = row.size
        for k in range(a.shape[0]):
            x, y = a[k, start : start + w], b[k, start : start + w]
            for j in range(w):
                row[j] = fma(x[j], y[j], row[j])
        for j in range(w):
            row[j] = row[j] if row[j] == row[j] else nan


@driver
def chain_of_products(nan: Lane, a: Plane, b: Plane, d: Plane) -> None:
    """d = d + a_k·b_k of numbers (K, rows), two roundings each; NaNs become `nan`."""
    vectorised()
    for start in range(0, d.size, WIDTH):
        row = d[start : start + WIDTH]
        w = row.size
        for k in range(a.shape[0]):
            x, y = a[k, start : start + w], b[k, start : start + w]
            for j in range(w):
                row[j] = row[j] + x[j] * y[j]
        for j in range(w):
            row[j] = row[j] if row[j] == row[j] else nan


def floats_of(codes: NDArray[Any], kind: type[np.floating]) -> Plane:
    """Return codes (rows, K) of a float's format as its numbers, (K, rows)."""
    return np.ascontiguousarray(codes.T, f"u{np.dtype(kind).itemsize}").view(kind)


def run_in_floats(spec: DotAdd, rows: Batch, a: Plane, b: Plane, run: Callable[..., None], *own: int) -> None:
    """Fill in the results of rows by `run(nan, …, a, b, d)`, given the numbers of a and b (K, rows).

    Raises FloatingPointError if this thread's arithmetic is not IEEE 754's.
    """
    check_processor()
    word = f"u{a.dtype.itemsize}"
    nan = np.array(quiet_nan(spec.d_format), word).view(a.dtype)[()]
    d = rows.c.astype(word).view(a.dtype)
    run(nan, *own, a, b, d)
    rows.d[:] = d.view(word)
