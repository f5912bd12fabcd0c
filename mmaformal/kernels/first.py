"""The first products of a process: on NumPy's lanes, before a compiled kernel pays.

numba and LLVM take seconds to compile a kernel, and most of a second to load one that they compiled before.  Small
products are made by the executable on NumPy's lanes meanwhile; once these have taken `rows.PATIENCE` seconds for one
specification, or would take them, or for many products at once, it is given its compiled kernel, for good.  The bits
are the same.

Both are four times as much where the kernel was not compiled before (`compiled_before`).
"""

from __future__ import annotations

import time
from functools import cached_property, lru_cache

import numpy as np

from mmaformal.encodings import executable
from mmaformal.identity import identity
from mmaformal.kernels import kernel_for, rows
from mmaformal.kernels.compiled_before import note_compiled, was_compiled
from mmaformal.kernels.kernel import CodeArray, Kernel, Planes
from mmaformal.spec import DotAdd

#: With so many products at once a kernel is read from disk sooner than lanes are done.
MANY = rows.MANY
#: So many times as much is made by lanes if the kernel is not on disk.
UNCOMPILED = rows.UNCOMPILED
#: Outputs at a time, whose lanes stay in the second-level cache.
_OUTPUTS = 1 << 13


class LanesKernel(Kernel):
    """The executable on NumPy's lanes, one for each output; operands are decoded once for a row or a column.

    What is left of a product when a compiled kernel pays is made by that.
    """

    bytes_per_element = 4
    task = MANY << 5

    def __init__(self, spec: DotAdd) -> None:
        super().__init__(spec)
        self.description = "plain: the executable on NumPy lanes, until a compiled kernel pays"
        self.seconds = 0.0  #: that it has taken
        self.compiled: Kernel | None = None  #: what pays by now

    def for_products(self, count: int, left: float = 0.0) -> Kernel:
        """The kernel for so many products, or for what would take lanes so many seconds: this one, or the compiled."""
        taken = self.seconds + left
        if self.compiled is None and (count >= MANY * self._times or taken > rows.PATIENCE * self._times):
            self.compiled = kernel_for(self.spec)
            note_compiled(identity(self.spec))
        return self.compiled or self

    @cached_property
    def _times(self) -> int:
        """How many times as long lanes may take as where the kernel is on disk."""
        return 1 if was_compiled(identity(self.spec)) else UNCOMPILED

    def rows(self, codes: CodeArray, scales: CodeArray | None = None) -> Planes:
        return (codes,) if scales is None else (codes, scales)

    def columns(self, codes: CodeArray, scales: CodeArray | None = None) -> Planes:
        return self.rows(codes, scales)

    def run(self, a: Planes, b: Planes, d: CodeArray, start: int, stop: int) -> None:
        n = d.shape[1]
        each = max(_OUTPUTS // max(n, 1), 1)
        right, before = tuple(x[:, :n] for x in b), self.seconds
        for row in range(0, len(d), each):
            some = slice(row, row + each)
            left, out = tuple(x[some] for x in a), d[some]
            rate = (self.seconds - before) / max(row, 1)
            kernel = self.for_products(0, rate * (len(d) - row))
            if kernel is not self:
                kernel.run(kernel.rows(*left), kernel.columns(*right), out, start, stop)
                continue
            began = time.thread_time()
            for step in range(start, stop):
                self._step(left, right, out, step)
            self.seconds += time.thread_time() - began

    def _step(self, a: Planes, b: Planes, d: CodeArray, step: int) -> None:
        """Take `d` through an instruction."""
        places = [range(step * size, (step + 1) * size) for size in (self.spec.k, self.spec.scales)]
        left = [[x[:, k : k + 1].astype(np.int64) for k in own] for x, own in zip(a, places, strict=False)]
        right = [[x[k : k + 1].astype(np.int64) for k in own] for x, own in zip(b, places, strict=False)]
        scales = (left[1], right[1]) if len(left) > 1 else ((), ())
        d[...] = executable.dot_add(self.spec, left[0], right[0], d.astype(np.int64), *scales).result


@lru_cache(maxsize=256)
def lanes_of(spec: DotAdd) -> LanesKernel:
    """The lanes of a specification, which count what they take."""
    return LanesKernel(spec)
