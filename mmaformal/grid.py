"""A product of matrices as a grid of blocks of D, each made by a worker of an executor."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from mmaformal.checked import Progress
from mmaformal.executors import results_in_order, told_parts
from mmaformal.operands import ProductCodes

if TYPE_CHECKING:
    from mmaformal.gemm import Division

CodeArray = NDArray[Any]

#: Products of a block, at most: a second or so; and rows and columns, whose operands are sent to the worker.
_PRODUCTS, _SIDE = 1 << 31, 4096


def blocks(m: int, n: int, k: int) -> list[tuple[slice, slice]]:
    """The blocks of D (m, n), of K = k, row by row; they depend on nothing else."""
    side = min(_SIDE, max(int((_PRODUCTS / max(k, 1)) ** 0.5) // 256 * 256, 256))
    rows, columns = ([slice(x, min(x + side, size)) for x in range(0, size, side)] for size in (m, n))
    return [(i, j) for i in rows for j in columns]


def on_workers(
    executor: Executor,
    make: Callable[[ProductCodes, Division], CodeArray],
    operands: ProductCodes,
    d: CodeArray,
    how: Division,
    progress: Progress | None,
) -> None:
    """Fill D, as codes, with what `make`, `gemm.block_made`, makes of its blocks: each element is as it is alone.

    Raises LostWorkerError.
    """
    places = blocks(d.shape[0], d.shape[1], operands.a.shape[1])
    parts = [(_block(operands, *place), how) for place in places]
    told = told_parts(progress, len(parts))
    for n, made in results_in_order(executor, make, parts):
        d[places[n]] = made
        told(n + 1)


def _block(x: ProductCodes, rows: slice, columns: slice) -> ProductCodes:
    """The operands of a block, as views."""
    return ProductCodes(
        x.a[rows],
        x.b[:, columns],
        None if x.c is None else x.c[rows, columns],
        None if x.scale_a is None else x.scale_a[rows],
        None if x.scale_b is None else x.scale_b[:, columns],
    )
