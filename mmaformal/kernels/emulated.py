"""The kernel of emulations: words by the executable on NumPy's lanes, their products by the unit's kernel, and the sums
outside of it by the processor's fp32."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mmaformal.algorithms import DotAdd, Emulated, Part
from mmaformal.encodings.executable.blocks import canonical_nan
from mmaformal.encodings.executable.emulated import words_of
from mmaformal.formats import Format, fp32
from mmaformal.kernels.ieee import check_processor
from mmaformal.kernels.kernel import Codes, Kernel, Planes

#: Codes whose words are made at a time: their lanes stay in the cache.
_CHUNK = 1 << 13


def words(codes: Codes, p: Emulated, fmt: Format) -> list[Codes]:
    """The words of each code, in words of their format `fmt`."""
    flat = codes.reshape(-1)
    found = np.empty((p.words, flat.size), fmt.word)
    for start in range(0, flat.size, _CHUNK):
        part = slice(start, start + _CHUNK)
        found[:, part] = words_of(flat[part].astype(np.int64), p, fmt).codes
    return [each.reshape(codes.shape) for each in found]


def add_to(total: Codes, partial: Codes, shift: int) -> Codes:
    """The codes of total + partial / 2^shift, each rounded as IEEE 754 has it; a NaN is the unit's."""
    with np.errstate(all="ignore"):
        scaled = partial.astype(np.uint32).view(np.float32) * np.float32(2.0**-shift)
        sums: NDArray[np.float32] = total.astype(np.uint32).view(np.float32) + scaled
    return np.where(np.isnan(sums), np.uint32(canonical_nan(fp32)), sums.view(np.uint32))


class EmulatedKernel(Kernel):
    """emulated: the planes of each word, one after the other."""

    algorithms = ("emulated",)

    def __init__(self, spec: DotAdd) -> None:
        from mmaformal.kernels import kernel_for

        super().__init__(spec)
        p = spec.parameters
        assert isinstance(p, Emulated)
        self.p, self.unit = p, kernel_for(p.unit)
        self.description = f"emulated: {self.unit.description}"
        self.bytes_per_element = p.words * self.unit.bytes_per_element
        self.task = self.unit.task

    def rows(self, codes: Codes, scales: Codes | None = None) -> Planes:
        parts = words(codes, self.p, self.p.unit.a_format)
        return tuple(plane for part in parts for plane in self.unit.rows(part))

    def columns(self, codes: Codes, scales: Codes | None = None) -> Planes:
        parts = words(codes, self.p, self.p.unit.b_format)
        return tuple(plane for part in parts for plane in self.unit.columns(part))

    def _word(self, planes: Planes, i: int) -> Planes:
        each = len(planes) // self.p.words
        return planes[i * each : (i + 1) * each]

    def run(self, a: Planes, b: Planes, d: Codes, start: int, stop: int) -> None:
        check_processor()
        p = self.p
        programs = self.spec.k // p.step_products
        for program in range(start * programs, stop * programs):
            first = program * p.blocks
            for part in p.parts:
                each = part.every or p.blocks
                for block in range(0, p.blocks, each):
                    last = min(block + each, p.blocks)
                    self._sum(part, a, b, d, range(first + block, first + last))

    def _sum(self, part: Part, a: Planes, b: Planes, d: Codes, blocks: range) -> None:
        """One sum of a part, onto the total d."""
        partial = np.zeros_like(d) if part.every else d
        for block in blocks:
            for i, j in part.products:
                self.unit.run(self._word(a, i), self._word(b, j), partial, block, block + 1)
        if part.every:
            d[...] = add_to(d, partial, part.shift)
