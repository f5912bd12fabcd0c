"""Compile the kernels of instructions before anybody waits for one: `mmaformal warm-up`.

Compiled code is kept on disk (numba's cache) and is good for the processor that it was made on, so no package can bring
it along.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import as_completed
from dataclasses import dataclass
from time import monotonic

import numpy as np
from numba.core import event

from mmaformal.cases.inputs import Rows
from mmaformal.cases.run import compiled_results
from mmaformal.display import ShortRepr, counted
from mmaformal.gemm import matmul
from mmaformal.instruction import Instruction
from mmaformal.kernels.first import MANY, UNCOMPILED, lanes_of
from mmaformal.losses import LossModel
from mmaformal.solver.pool import processes


@dataclass(frozen=True, repr=False)
class WarmUp(ShortRepr):
    """Counts of what was compiled, and the time that took."""

    specifications: int  #: different ones of the instructions
    functions: int  #: that were not on disk
    seconds: float

    def __str__(self) -> str:
        made = counted(self.functions, "function") if self.functions else "nothing"
        return f"{counted(self.specifications, 'specification')} ready: {made} compiled, {self.seconds:.0f} s"

    def to_json(self) -> dict[str, object]:
        return {"specifications": self.specifications, "functions": self.functions, "seconds": self.seconds}


def compile_all(instructions: Sequence[Instruction], jobs: int, told: Callable[[str], object]) -> WarmUp:
    """Compile what `matmul` and rows of cases need of these instructions, in so many processes.

    Instructions of one algorithm share most of their code, so each process takes whole algorithms, the most work first.
    """
    start = monotonic()
    distinct = list({i.spec: i for i in instructions}.values())
    groups: dict[str, list[Instruction]] = {}
    for i in distinct:
        groups.setdefault(i.algorithm, []).append(i)
    functions, done = 0, 0
    with processes(min(jobs, len(groups))) as executor:
        running = {
            executor.submit(_compile, groups[name]): name
            for name in sorted(groups, key=lambda name: _work(groups[name][0]))
        }
        for future in as_completed(running):
            functions, done = functions + future.result(), done + 1
            told(f"{running[future]}: ready; {counted(len(groups) - done, 'algorithm')} to compile")
    return WarmUp(len(distinct), functions, monotonic() - start)


def _work(instruction: Instruction) -> int:
    """A place in the order of work: the fused sums have the most ways through their code."""
    return 0 if instruction.parameters.loss is LossModel.TERMS else 1


def _compile(instructions: Sequence[Instruction]) -> int:
    """Run each instruction on a product of zeros, one of the least numbers, for which a kernel may have wider planes,
    and two rows, as special values may take another way; returns how many functions that compiled."""
    compiled = _Compiled()
    event.register("numba:compile", compiled)
    for i in instructions:
        spec = i.spec
        scales = spec.scales if spec.scale_format is not None else 0
        one = np.ones((1, scales), np.uint8)
        scale_a, scale_b = (one, one.T) if scales else (None, None)
        lanes_of(spec).for_products(MANY * UNCOMPILED)  # or these would be made by NumPy's lanes
        for least in (0, 1):
            a = np.full((1, i.k), least << i.a_format.ignored_low_bits, _word(i, "a"))
            b = np.full((i.k, 1), least << i.b_format.ignored_low_bits, _word(i, "b"))
            matmul(a, b, instruction=i, scale_a=scale_a, scale_b=scale_b, jobs=1)
        rows, ones = np.zeros((2, i.k), np.uint64), np.ones((2, scales), np.uint64)
        c = np.array([0, spec.c_format.codes - 1], np.uint64)
        compiled_results(spec, Rows(rows, rows, c, ones, ones))
    return compiled.count


def _word(i: Instruction, side: str) -> np.dtype[np.unsignedinteger]:
    """The type of the bit patterns of a side's codes."""
    return np.dtype(f"u{-(-i.format_of(side).storage_bits // 8)}")


class _Compiled(event.Listener):  # type: ignore[misc]
    """Counts the functions that numba compiles, having found none on disk."""

    def __init__(self) -> None:
        self.count = 0

    def on_start(self, told: object) -> None:
        self.count += 1

    def on_end(self, told: object) -> None:
        """The function is there."""
