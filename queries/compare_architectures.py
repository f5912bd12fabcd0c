"""Every pair of architectures that share an instruction: equal, or the smallest input that tells them apart.

    python -m mmaformal.queries.compare_architectures HMMA            # the table in the README
    python -m mmaformal.queries.compare_architectures HMMA --json

Two architectures whose instruction is the same `DotAdd` are compared once for all such pairs.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

from mmaformal.algorithms import DotAdd
from mmaformal.architectures import ARCHITECTURES, Architecture
from mmaformal.formats import hex_float
from mmaformal.instruction import Instruction
from mmaformal.queries.find_difference import find_difference
from mmaformal.solver.answers import Answer, Different, Equal
from mmaformal.witness import Witness


@dataclass(frozen=True)
class Comparison:
    """One pair that shares an instruction, and the answer."""

    name: str
    x: Instruction
    y: Instruction
    answer: Answer


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

    def text(code: int, side: str) -> str:
        fmt = w.x.a_format if side == "a" else w.x.b_format if side == "b" else w.x.c_format
        value = hex_float(fmt.value(code)) if fmt.is_finite(code) else fmt.text(code)
        return f"({value})" if value.startswith("-") else value

    parts = [
        f"{text(a, 'a')}·{text(b, 'b')}" + (f" [k={k}]" if k else "")
        for k, (a, b) in enumerate(zip(w.a.tolist(), w.b.tolist(), strict=True))
        if (a, b) != (0, 0)
    ]
    if int(w.c):
        parts.append(text(int(w.c), "c"))
    return "`" + " + ".join(parts) + "`"


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("prefix", nargs="?", default="", help="only instructions whose name starts so")
    parser.add_argument("--timeout", type=float, default=120.0, metavar="S", help="seconds per pair")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args(argv)
    comparisons = list(
        compare_architectures(
            ARCHITECTURES.values(),
            lambda name: name.startswith(args.prefix),
            timeout=args.timeout,
            progress=lambda text: print(text, file=sys.stderr),
        )
    )
    if args.json:
        print(json.dumps([{"name": c.name, **c.answer.to_json()} for c in comparisons], indent=2))
    else:
        print(markdown(comparisons))
    unsettled = [c for c in comparisons if not isinstance(c.answer, (Different, Equal))]
    return 3 if unsettled else 0


if __name__ == "__main__":
    sys.exit(main())
