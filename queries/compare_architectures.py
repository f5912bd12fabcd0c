"""Every pair of architectures that share an instruction: equal, or the smallest input that tells them apart.

Two architectures whose instruction is the same `DotAdd` are compared once for all such pairs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import combinations

from mmaformal.architectures import Architecture
from mmaformal.display import ShortRepr, columns_of
from mmaformal.instruction import Instruction
from mmaformal.queries.find_difference import find_difference
from mmaformal.solver.answers import Answer, Different
from mmaformal.spec import DotAdd


@dataclass(frozen=True, repr=False)
class Comparison(ShortRepr):
    """One pair that shares an instruction, and the answer."""

    name: str
    x: Instruction
    y: Instruction
    answer: Answer

    def row(self) -> dict[str, object]:
        """Plain values; `table` makes columns of many."""
        witness = self.answer.witness if isinstance(self.answer, Different) else None
        results = witness.results if witness is not None else (None, None)
        return {
            "instruction": self.name,
            "x": self.x.architecture,
            "y": self.y.architecture,
            "answer": type(self.answer).__name__.lower(),
            "inputs": witness.case_text if witness is not None else None,
            "x_result": None if results[0] is None else f"{results[0]:#x}",
            "y_result": None if results[1] is None else f"{results[1]:#x}",
            "seconds": round(self.answer.seconds, 3),
        }


def compare_architectures(
    architectures: Iterable[Architecture],
    wanted: Callable[[str], bool] = lambda _: True,
    *,
    timeout: float = 120.0,
    progress: Callable[[str], None] = lambda _: None,
) -> Iterator[Comparison]:
    """The answers for every pair and every instruction name that both have and `wanted` accepts, as they come."""
    known: dict[tuple[DotAdd, DotAdd], Answer] = {}
    for x, y in combinations(list(architectures), 2):
        for instruction in x:
            if not wanted(instruction.name) or instruction.name not in y:
                continue
            other = y[instruction.name]
            key = (instruction.spec, other.spec)
            if key not in known:
                progress(f"{instruction.label} and {other.label}")
                known[key] = find_difference(instruction, other, timeout=timeout)
            yield Comparison(instruction.name, instruction, other, known[key])


def table(comparisons: Iterable[Comparison]) -> dict[str, list[object]]:
    """Columns of plain values: `pandas.DataFrame(table(compare_architectures(…)))`."""
    return columns_of([each.row() for each in comparisons])
