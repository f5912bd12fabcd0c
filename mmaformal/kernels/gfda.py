"""The kernel of gfda: each row of outputs as compiled rows (`kernels.rows.gfda`), a row of A beside all columns."""

from __future__ import annotations

import numpy as np

from mmaformal.kernels.kernel import Codes, Kernel, Planes
from mmaformal.kernels.rows import gfda
from mmaformal.kernels.rows.batch import batch
from mmaformal.spec import DotAdd


class GfdaKernel(Kernel):
    """gfda."""

    algorithms = ("gfda",)
    bytes_per_element = 4
    description = "gfda: the stages of the executable encoding, compiled, a row of outputs at a time"

    def __init__(self, spec: DotAdd) -> None:
        super().__init__(spec)
        wide = max(spec.a_format.storage_bits, spec.b_format.storage_bits) > 32
        self.word = np.uint64 if wide else np.uint32

    def rows(self, codes: Codes, scales: Codes | None = None) -> Planes:
        return (np.ascontiguousarray(codes, self.word),)

    def columns(self, codes: Codes, scales: Codes | None = None) -> Planes:
        return (np.ascontiguousarray(codes.T, self.word),)

    def run(self, a: Planes, b: Planes, d: Codes, start: int, stop: int) -> None:
        own = slice(start * self.spec.k, stop * self.spec.k)
        spec, n = self.spec.replace(k=own.stop - own.start), d.shape[1]
        columns = b[0][:n, own]
        for i in range(len(d)):
            row = np.broadcast_to(a[0][i, own], columns.shape)
            done = batch(spec, row, columns, d[i], None, None)
            gfda.run(spec, done)
            d[i] = done.d  # NumPy cuts a lane to the word with the same bits
