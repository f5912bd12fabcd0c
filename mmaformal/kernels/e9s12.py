"""The kernel of dpa_e9s12 and acc_e9s12: rows, compiled, a row for each output."""

from __future__ import annotations

import numpy as np

from mmaformal.kernels.kernel import Codes, Kernel, Planes
from mmaformal.kernels.rows import acc_e9s12, dpa_e9s12
from mmaformal.kernels.rows.batch import batch


class E9s12Kernel(Kernel):
    """dpa_e9s12, and with a looped accumulator."""

    algorithms = ("dpa_e9s12", "acc_e9s12")
    bytes_per_element = 4
    description = "dpa_e9s12, acc_e9s12: the stages of the executable encoding, compiled"
    task = 1 << 22

    def rows(self, codes: Codes, scales: Codes | None = None) -> Planes:
        return (np.ascontiguousarray(codes),)

    def columns(self, codes: Codes, scales: Codes | None = None) -> Planes:
        return (np.ascontiguousarray(codes.T),)

    def run(self, a: Planes, b: Planes, d: Codes, start: int, stop: int) -> None:
        part = slice(start * self.spec.k, stop * self.spec.k)
        spec = self.spec.replace(k=part.stop - part.start)
        run = acc_e9s12.run if spec.parameters.algorithm == "acc_e9s12" else dpa_e9s12.run
        for x, row in zip(a[0], d, strict=True):
            columns = b[0][: row.size, part]
            done = batch(spec, np.broadcast_to(x[part], columns.shape), columns, row, None, None)
            run(spec, done)
            row[:] = done.d
