"""A product of matrices as a grid of blocks of D, each made by a worker of an executor."""

from __future__ import annotations

from concurrent.futures import Executor
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mmaformal.checked import Progress
from mmaformal.executors import in_order, told_parts
from mmaformal.instruction import Instruction
from mmaformal.operands import ProductCodes

if TYPE_CHECKING:
    from mmaformal.gemm import Division

Codes = NDArray[Any]

#: Products of a block, at most: a second or so; and rows and columns, whose operands are sent to the worker.
_PRODUCTS, _SIDE = 1 << 31, 4096


def blocks(m: int, n: int, k: int) -> list[tuple[slice, slice]]:
    """The blocks of D (m, n), of K = k, row by row; they depend on nothing else."""
    side = min(_SIDE, max(int((_PRODUCTS / max(k, 1)) ** 0.5) // 256 * 256, 256))
    rows, columns = ([slice(x, min(x + side, size)) for x in range(0, size, side)] for size in (m, n))
    return [(i, j) for i in rows for j in columns]


def on_workers(
    executor: Executor,
    instruction: Instruction,
    operands: ProductCodes,
    d: Codes,
    how: Division,
    progress: Progress | None,
) -> None:
    """Fill D, as codes, with what `matmul` makes of its blocks: each element is computed as it is alone.

    Raises LostWorkerError.
    """
    places = blocks(*d.shape, operands.a.shape[1])
    parts = [(instruction, _block(operands, *place), how) for place in places]
    told = told_parts(progress, len(parts))
    for n, made in in_order(executor, _made, parts):
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


def _made(instruction: Instruction, x: ProductCodes, how: Division) -> Codes:
    """A block of D, in a worker."""
    from mmaformal.gemm import matmul

    made: Codes = matmul(
        x.a, x.b, x.c, instruction=instruction, scale_a=x.scale_a, scale_b=x.scale_b, **how
    )
    return np.ascontiguousarray(made)
