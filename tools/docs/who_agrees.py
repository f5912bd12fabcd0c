"""Every pair of architectures that share an instruction: equal, or the smallest input that tells them apart.

python tools/docs/who_agrees.py HMMA            # the table of docs/who-agrees.md
python tools/docs/who_agrees.py HMMA --json
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence

import click

from mmaformal.architectures import ARCHITECTURES
from mmaformal.cli import options
from mmaformal.cli.running import SETTLED, UNKNOWN, UsageError, answered, run_command
from mmaformal.queries.compare_architectures import Comparison, compare_architectures
from mmaformal.solver.answers import Different, Equal
from mmaformal.witness import Witness


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
    return run_command(command, sys.argv[1:] if argv is None else argv, "who_agrees")


if __name__ == "__main__":
    sys.exit(main())
