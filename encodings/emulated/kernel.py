"""The kernel of emulations: words by the executable on NumPy's lanes, their products by the unit's kernel, and the sums
outside of it by the processor's fp32.

Exponents in common are a plane more: the largest exponent field of each row, or column, in each program.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from mmaformal.encodings.emulated import Emulated, Part
from mmaformal.encodings.emulated.executable import words_of
from mmaformal.encodings.executable.blocks import canonical_nan
from mmaformal.formats import Format, fp32
from mmaformal.kernels import rows as units
from mmaformal.kernels.batch import Batch
from mmaformal.kernels.kernel import CodeArray, Kernel, Planes
from mmaformal.kernels.processor import check_processor
from mmaformal.kernels.room import part_of_several
from mmaformal.spec import DotAdd

#: Codes whose words are made at a time: their lanes stay in the cache.
_CHUNK = 1 << 13


def words(
    codes: CodeArray,
    p: Emulated,
    fmt: Format,
    largest: CodeArray | None = None,
    narrower: Format | None = None,
) -> list[CodeArray]:
    """The words of each code, in words of their format `fmt`; `largest` is the field of its exponent in common.

    `narrower`: the codes' own format, where it is not `fmt` and there is no φ.
    """
    flat = codes.reshape(-1)
    tops = None if largest is None else np.broadcast_to(largest, codes.shape).reshape(-1)
    found = np.empty((p.words, flat.size), fmt.word)
    for start in range(0, flat.size, _CHUNK):
        part = slice(start, start + _CHUNK)
        top = None if tops is None else tops[part]
        found[:, part] = words_of(flat[part].astype(np.int64), p, fmt, top, narrower).codes
    return [each.reshape(codes.shape) for each in found]


def largest_fields(codes: CodeArray, p: Emulated) -> CodeArray:
    """(m, K) codes of fp32 → (m, K / products of a program): the largest exponent field of each program's."""
    parts = codes.reshape(len(codes), -1, p.step_products)
    fields: CodeArray = (parts.astype(np.int64) >> fp32.fraction_bits & ((1 << fp32.exponent_bits) - 1)).max(
        2
    )
    return fields


def add_to(total: CodeArray, partial: CodeArray, shift: int | CodeArray) -> CodeArray:
    """The codes of total + partial / 2^shift, each rounded as IEEE 754 has it; a NaN is the unit's."""
    scaled = partial.astype(np.uint32).view(np.float32)
    with np.errstate(all="ignore"):
        if np.any(shift):  # exact in fp64, whose exponents suffice, so that it is rounded once
            scaled = np.ldexp(scaled.astype(np.float64), np.negative(shift)).astype(np.float32)
        sums: NDArray[np.float32] = total.astype(np.uint32).view(np.float32) + scaled
    return np.where(np.isnan(sums), np.uint32(canonical_nan(fp32)), sums.view(np.uint32))


def taken(part: Part, p: Emulated, of_a: CodeArray, of_b: CodeArray) -> CodeArray:
    """Return the exponent that a part's sum is to be divided by, from the largest exponent fields of a and b."""
    return part.shift + 2 * (p.common + fp32.bias - 1) - (of_a + of_b)


def run_programs(
    p: Emulated,
    programs: range,
    total: CodeArray,
    shift_of: Callable[[Part, int], CodeArray],
    multiply: Callable[[int, int, CodeArray, int], CodeArray],
) -> CodeArray:
    """The total after some programs; `multiply` adds the products of word i of a and word j of b in a block to a sum.

    `shift_of` tells what a part's sum in a program is to be divided by, where exponents are in common.
    """
    check_processor()
    for program in programs:
        first = program * p.blocks
        for part in p.parts:
            shift = shift_of(part, program) if p.common else part.shift
            each = part.every or p.blocks
            for start in range(0, p.blocks, each):
                partial = np.zeros_like(total) if part.every else total
                for block in range(first + start, first + min(start + each, p.blocks)):
                    for i, j in part.products:
                        partial = multiply(i, j, partial, block)
                total = add_to(total, partial, shift) if part.every else partial
    return total


class EmulatedKernel(Kernel):
    """emulated: the planes of each word, one after the other."""

    def __init__(self, spec: DotAdd) -> None:
        from mmaformal.kernels import kernel_for

        super().__init__(spec)
        p = spec.parameters_as(Emulated)
        self.p, self.unit = p, kernel_for(p.unit)
        self.description = f"emulated: {self.unit.description}"
        self.bytes_per_element = p.words * self.unit.bytes_per_element
        self.task = self.unit.task

    def rows(self, codes: CodeArray, scales: CodeArray | None = None) -> Planes:
        if not self.p.common:
            return self._planes(
                words(codes, self.p, self.p.unit.a_format, narrower=self.spec.a_format), self.unit.rows
            )
        tops = largest_fields(codes, self.p)
        parts = words(codes, self.p, self.p.unit.a_format, np.repeat(tops, self.p.step_products, 1))
        return *self._planes(parts, self.unit.rows), tops

    def columns(self, codes: CodeArray, scales: CodeArray | None = None) -> Planes:
        if not self.p.common:
            return self._planes(
                words(codes, self.p, self.p.unit.b_format, narrower=self.spec.b_format), self.unit.columns
            )
        tops = largest_fields(codes.T, self.p)
        parts = words(codes.T, self.p, self.p.unit.b_format, np.repeat(tops, self.p.step_products, 1))
        return *self._planes([each.T for each in parts], self.unit.columns), tops

    def _planes(self, parts: Sequence[CodeArray], made: Callable[[CodeArray], Planes]) -> Planes:
        planes: Planes = ()
        for n, part in enumerate(parts):
            with part_of_several(n):
                planes = (*planes, *made(part))
        return planes

    def _word(self, planes: Planes, i: int) -> Planes:
        each = (len(planes) - bool(self.p.common)) // self.p.words
        return planes[i * each : (i + 1) * each]

    def run(self, a: Planes, b: Planes, d: CodeArray, start: int, stop: int) -> None:
        def shift(part: Part, program: int) -> CodeArray:
            return taken(part, self.p, a[-1][:, program, None], b[-1][: d.shape[1], program])

        def multiply(i: int, j: int, partial: CodeArray, block: int) -> CodeArray:
            self.unit.run(self._word(a, i), self._word(b, j), partial, block, block + 1)
            return partial

        programs = self.spec.k // self.p.step_products
        d[...] = run_programs(self.p, range(start * programs, stop * programs), d, shift, multiply)

    @staticmethod
    def run_rows(spec: DotAdd, rows: Batch) -> None:
        p = spec.parameters_as(Emulated)
        sides = (rows.a, p.unit.a_format, spec.a_format), (rows.b, p.unit.b_format, spec.b_format)
        tops = [largest_fields(codes, p) for codes, _, _ in sides] if p.common else []
        spread = (np.repeat(top, p.step_products, 1) for top in tops)
        a, b = (words(codes, p, fmt, next(spread, None), own) for codes, fmt, own in sides)

        def shift(part: Part, program: int) -> CodeArray:
            return taken(part, p, *(top[:, program] for top in tops))

        def multiply(i: int, j: int, partial: CodeArray, block: int) -> CodeArray:
            some = slice(block * p.unit.k, (block + 1) * p.unit.k)
            return units.dot_add(p.unit, a[i][:, some], b[j][:, some], partial)

        programs = range(spec.k // p.step_products)
        rows.d[:] = run_programs(p, programs, rows.c.astype(np.uint32), shift, multiply)


KERNEL = EmulatedKernel
