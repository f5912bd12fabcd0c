"""Every model of the registry as a black box: how many inputs are chosen until it is identified.

python tools/docs/identify_table.py "fp16"       # the tables of docs/identify.md, by the beginning of types
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import click

from mmaformal.architectures import ARCHITECTURES
from mmaformal.cli import options
from mmaformal.cli.running import REFUTED, SETTLED, answered, run_command
from mmaformal.display import ShortRepr
from mmaformal.instruction import Instruction
from mmaformal.queries.identify import Identified, identify
from mmaformal.spaces.common import Types
from mmaformal.spec import DotAdd


@dataclass(frozen=True, repr=False)
class Named(ShortRepr):
    """A model of the registry, and what it was identified as."""

    label: str
    spec: DotAdd
    found: Identified

    @property
    def right(self) -> bool:
        """Whether it is among what is left, which no case tells from it."""
        return self.found.verdict in ("one", "several") and self.spec in self.found.classes[0].members

    @property
    def settled(self) -> bool:
        """Whether all that is left is proved to be this function."""
        return self.right and self.found.verdict == "one"


def registry(timeout: float, prefix: str = "") -> Iterator[Named]:
    """Every model of the registry whose types begin so, those of the same inputs one after the other."""
    first: dict[DotAdd, str] = {}
    for i in (i for arch in ARCHITECTURES.values() for i in arch):
        first.setdefault(i.spec, i.label)
    for spec, label in sorted(first.items(), key=lambda each: (str(Types.of(each[0])), each[0].k)):
        if not str(Types.of(spec)).startswith(prefix):
            continue
        asked = Instruction(label, "a model", 1, 1, spec)
        yield Named(label, spec, identify(asked, timeout=600.0, solver_timeout=timeout))


def markdown(named: Sequence[Named]) -> str:
    """How many inputs were chosen, by types, and each model that was not found."""
    lines = [
        "| types | K | models | right | proved alone | inputs chosen: mean, most | models there are |",
        "|---|---|---|---|---|---|---|",
    ]
    by_types: dict[tuple[str, int], list[Named]] = {}
    for each in named:
        by_types.setdefault((str(Types.of(each.spec)), each.spec.k), []).append(each)
    for (types, k), group in by_types.items():
        chosen = [each.found.chosen for each in group]
        right, settled = sum(each.right for each in group), sum(each.settled for each in group)
        mean = f"{sum(chosen) / len(chosen):.1f}, {max(chosen)}"
        lines.append(
            f"| {types} | {k} | {len(group)} | {right} | {settled} | {mean} | {group[0].found.models:,} |"
        )
    counts = Counter(each.found.chosen for each in named)
    told = ", ".join(f"{n}: {counts[n]}" for n in sorted(counts))
    lines += ["", f"Inputs chosen, and for how many of {len(named)} models: {told}."]
    lines += [f"- not found: {each.label}: {each.found.summary}" for each in named if not each.right]
    return "\n".join(lines)


@click.command(help="Identify every model of the registry whose types begin with PREFIX as a black box.")
@click.argument("prefix", default="")
@options.timeout(5.0, "for solvers, of each model")
def command(prefix: str, timeout: float) -> int:
    named = []
    for each in registry(timeout, prefix):
        named.append(each)
        print(f"{len(named)} {each.label}: {each.found.summary}", file=sys.stderr, flush=True)
    return answered(markdown(named), SETTLED if all(each.right for each in named) else REFUTED)


def main(argv: Sequence[str] | None = None) -> int:
    """Returns 0 if every model is found, 1 if not."""
    return run_command(command, sys.argv[1:] if argv is None else argv, "identify_table")


if __name__ == "__main__":
    sys.exit(main())
