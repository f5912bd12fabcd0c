"""Every pair of architectures that share an instruction: equal, or the smallest input that tells them apart.

    python -m mmaformal.queries.compare_architectures HMMA            # the table of docs/who-agrees.md
    python -m mmaformal.queries.compare_architectures HMMA --json

Two architectures whose instruction is the same `DotAdd` are compared once for all such pairs.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

import click

from mmaformal.algorithms import DotAdd
from mmaformal.architectures import ARCHITECTURES, Architecture
from mmaformal.cli import options
from mmaformal.cli.running import SETTLED, UNKNOWN, UsageError, answered, execute
from mmaformal.display import ShortRepr, columns_of
from mmaformal.instruction import Instruction
from mmaformal.queries.find_difference import find_difference
from mmaformal.solver.answers import Answer, Different, Equal
from mmaformal.witness import Witness


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


def markdown(comparisons: Sequence[Comparison]) -> str:
    """One row per instruction and pair of distinct models; equal architectures are written together."""
    lines = ["| instruction | equal | differ | smallest input | results |", "|---|---|---|---|---|"]
    for name in dict.fromkeys(c.name for c in comparisons):
        here = [c for c in comparisons if c.name == name]
        groups = _groups(here)
        equal = "; ".join(" = ".join(group) for group in groups if len(group) > 1) or "–"
        told: set[tuple[tuple[str, ...], ...]] = set()
        for c in here:
            pair = tuple(next(g for g in groups if i.architecture in g) for i in (c.x, c.y))
            if pair[0] == pair[1] or pair in told:
                continue
            told.add(pair)
            sides = " / ".join(", ".join(group) for group in pair)
            if isinstance(c.answer, Different):
                w = c.answer.witness
                results = " / ".join(f"`{r:#x}`" for r in w.results)
                lines.append(f"| {name} | {equal} | {sides} | {inputs_text(w)} | {results} |")
            else:
                lines.append(f"| {name} | {equal} | {sides}: unknown | – | – |")
            name, equal = "", ""
        if not told:
            lines.append(f"| {name} | {equal} | – | – | – |")
    return "\n".join(lines)


def _groups(comparisons: Sequence[Comparison]) -> list[tuple[str, ...]]:
    """Architectures with equal models, in order of age."""
    groups: list[list[str]] = []
    for name in dict.fromkeys(i.architecture for c in comparisons for i in (c.x, c.y)):
        for group in groups:
            if any(
                isinstance(c.answer, Equal) and {c.x.architecture, c.y.architecture} == {group[0], name}
                for c in comparisons
            ):
                group.append(name)
                break
        else:
            groups.append([name])
    return [tuple(group) for group in groups]


def inputs_text(w: Witness) -> str:
    """`0x1p+0·0x1p+0 + (-0x1p-25)`: the nonzero products in order, then c if it is not zero."""
    return f"`{w.case_text}`"


@click.command(help=(__doc__ or "").splitlines()[0])
@click.argument("prefix", default="")
@options.timeout(120.0, "for each pair")
@options.json
def command(prefix: str, timeout: float, as_json: bool) -> int:
    names = {i.name for architecture in ARCHITECTURES.values() for i in architecture}
    if not any(name.startswith(prefix) for name in names):
        raise UsageError(f"no instruction starts with {prefix!r}; `mmaformal list` shows them")
    comparisons = list(
        compare_architectures(
            ARCHITECTURES.values(),
            lambda name: name.startswith(prefix),
            timeout=timeout,
            progress=lambda text: print(text, file=sys.stderr),
        )
    )
    if as_json:
        text = json.dumps([{"name": c.name, **c.answer.to_json()} for c in comparisons], indent=2)
    else:
        text = markdown(comparisons)
    settled = all(isinstance(c.answer, (Different, Equal)) for c in comparisons)
    return answered(text, SETTLED if settled else UNKNOWN)


def main(argv: Sequence[str] | None = None) -> int:
    """Returns 0 if every pair is settled, 3 if not."""
    return execute(command, sys.argv[1:] if argv is None else argv, "compare_architectures")


if __name__ == "__main__":
    sys.exit(main())
