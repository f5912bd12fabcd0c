"""Kernels on the processor's own arithmetic whose rare doubtful results are computed again, by the executable."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mmaformal.encodings import executable
from mmaformal.encodings.pfma import on_taken
from mmaformal.formats import fp32
from mmaformal.kernels.batch import Batch, converted, in_format
from mmaformal.kernels.kernel import WIDTH, CodeArray, Kernel, Plane, Planes, in_panels
from mmaformal.kernels.processor import check_processor, has_fma
from mmaformal.spec import DotAdd


class AgainKernel(Kernel):
    """Steps of `L` products; the last plane of A and of B holds their codes, or words whose upper half is the code."""

    bytes_per_element = 4
    #: how far a code lies above the low end of a word of its plane
    code_shift = 0
    #: as many products are taken before doubtful results are looked for; at least those of one step
    products_at_once = 32

    def __init__(self, spec: DotAdd) -> None:
        super().__init__(spec)
        self.taken = spec  #: the same, of factors that are converted already
        self.L = spec.parameters.step_products

    @abstractmethod
    def steps(
        self,
        a: Planes,
        b: Planes,
        d: CodeArray,
        after: CodeArray,
        doubtful: NDArray[np.bool_],
        first: int,
        last: int,
    ) -> None:
        """The steps of products first … last - 1: codes `after` from `d`, and which of them are `doubtful`."""

    def run(self, a: Planes, b: Planes, d: CodeArray, start: int, stop: int) -> None:
        check_processor()
        after, doubtful = np.empty_like(d), np.empty(d.shape, np.bool_)
        end, many = stop * self.spec.k, max(self.products_at_once // self.L, 1) * self.L
        for first in range(start * self.spec.k, end, many):
            last = min(first + many, end)
            self.steps(a, b, d, after, doubtful, first, last)
            if doubtful.any():
                self._again(a[-1], b[-1], d, after, np.nonzero(doubtful), range(first, last))
            d[...] = after

    def _again(
        self,
        a: Plane,
        b: Plane,
        c: CodeArray,
        after: CodeArray,
        where: tuple[NDArray[np.intp], ...],
        products: range,
    ) -> None:
        """Some elements, by the executable."""
        i, j = where
        lanes_a = [self._code(a[i, k]) for k in products]
        lanes_b = [self._code(b[j // WIDTH, k, j % WIDTH]) for k in products]
        spec = self.taken.replace(k=len(products))
        after[i, j] = executable.dot_add(spec, lanes_a, lanes_b, c[i, j].astype(np.int64)).result.astype(
            after.dtype
        )

    def _code(self, word: NDArray[Any]) -> NDArray[np.int64]:
        return (word.view(f"u{word.itemsize}") >> self.code_shift).astype(np.int64)


class FlushedKernel(AgainKernel):
    """A kernel of factors that are numbers of fp32, subnormal ones zero, and of c and d of fp32, in planes of fp32."""

    def __init__(self, spec: DotAdd) -> None:
        super().__init__(spec)
        self.taken = on_taken(spec)
        self.code_shift = fp32.storage_bits - self.taken.a_format.storage_bits

    @classmethod
    def of(cls, spec: DotAdd) -> FlushedKernel | None:
        """None unless the processor has fma."""
        return cls(spec) if has_fma() else None

    def _values(self, codes: CodeArray) -> NDArray[np.float32]:
        """The numbers of codes as fp32; subnormals of fp32 zero, with their signs."""
        fmt, taken = self.spec.a_format, self.taken.a_format
        words = in_format(np.ascontiguousarray(codes), fmt, fp32 if taken != fmt else fmt)
        bits = words.astype(np.uint32) << self.code_shift >> taken.ignored_low_bits << taken.ignored_low_bits
        bits[bits & 0x7F800000 == 0] &= np.uint32(1 << 31)
        return bits.view(np.float32)

    def rows(self, codes: CodeArray, scales: CodeArray | None = None) -> Planes:
        return (self._values(codes),)

    def columns(self, codes: CodeArray, scales: CodeArray | None = None) -> Planes:
        return (self._values(in_panels(codes)),)

    @staticmethod
    def in_words(spec: DotAdd, rows: Batch) -> tuple[DotAdd, Batch]:
        """Returns the same of converted factors, and the rows of those."""
        taken = on_taken(spec)
        to_a, to_b = (
            fp32 if of != fmt else fmt
            for fmt, of in ((spec.a_format, taken.a_format), (spec.b_format, taken.b_format))
        )
        return taken, converted(rows, spec, to_a, to_b)
