"""Rows of a unit that changes signs or does not read c (`DotAdd.negated`): those of the same unit without, given so."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mmaformal.encodings.executable.blocks import decode
from mmaformal.formats import Format
from mmaformal.kernels.batch import Batch
from mmaformal.kernels.kernel import Kernel
from mmaformal.kernels.plain import RowsKernel
from mmaformal.spec import DotAdd

RunRows = Callable[[DotAdd, Batch], None]


def _negated(codes: NDArray[Any], fmt: Format) -> NDArray[Any]:
    """Codes, in words of any width, with their signs changed; NaNs as they are."""
    changed: NDArray[Any] = codes ^ np.uint64(fmt.sign_mask).astype(codes.dtype)
    return np.where(decode(codes.astype(np.int64), fmt.layout).nan, codes, changed)


def run_signed(spec: DotAdd, rows: Batch, run: RunRows) -> None:
    """Fill in the results of rows; `run` does so for `spec.plain`."""
    a = _negated(rows.a, spec.a_format) if "a" in spec.negated else rows.a
    c = rows.c
    if not spec.reads_c:
        c = np.full_like(c, np.uint64(spec.c_format.sign_mask).astype(np.int64))
    elif "c" in spec.negated:
        c = _negated(c, spec.c_format)
    run(spec.plain, rows._replace(a=a, c=c))
    if "d" in spec.negated:
        rows.d[:] = _negated(rows.d, spec.d_format)


class SignedKernel(RowsKernel):
    """The rows of a unit without changes of signs, given changed codes, instruction by instruction."""

    def __init__(self, spec: DotAdd, of: type[Kernel]) -> None:
        super().__init__(spec, of)
        self.description = f"{self.description}, signs changed"
        own = of.run_rows
        self.of_rows = lambda spec, rows: run_signed(spec, rows, own)

    def chains(self, start: int, stop: int) -> Iterable[tuple[int, int]]:
        return ((step, step + 1) for step in range(start, stop))
