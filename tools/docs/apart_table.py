"""How far apart HMMA instructions are: tables/max-difference.md, and a table of docs/who-agrees.md.

python tools/docs/apart_table.py --seconds 20 --out tables/max-difference.md
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Sequence
from itertools import combinations
from pathlib import Path

import click

from mmaformal.architectures import ARCHITECTURES
from mmaformal.cli import options
from mmaformal.cli.running import SETTLED, answered, run_command
from mmaformal.cli.terminal import Status
from mmaformal.instruction import Instruction
from mmaformal.queries.max_difference import Apart, max_difference

#: Products of one instruction, and of a chain.
STEPS = (16, 1024)
UNIT = 2.0**24


def functions() -> Iterator[list[Instruction]]:
    """Yield for each combination of types one HMMA instruction of each function that there is."""
    found: dict[str, dict[object, Instruction]] = {}
    for architecture in ARCHITECTURES.values():
        for i in architecture:
            if i.name.startswith("HMMA"):
                found.setdefault(i.spec.types, {}).setdefault(i.parameters, i)
    yield from (list(each.values()) for each in found.values() if len(each) > 1)


def pairs() -> list[tuple[Instruction, Instruction]]:
    """All pairs of such functions."""
    return [pair for each in functions() for pair in combinations(each, 2)]


def row(x: Instruction, y: Instruction, seconds: float) -> str:
    """One line of the table."""
    cells = []
    for K in STEPS:
        found = compare(x, y, K, seconds)
        cells += [
            f"{float(found.bound) * UNIT:.4g}",
            f"{float(found.found) * UNIT:.4g} ({found.ulps:.3g} ulp)",
            "" if found.random is None else f"{found.random * UNIT:.3g}",
        ]
    return f"| {x.label} | {y.label} | {' | '.join(cells)} |"


def compare(x: Instruction, y: Instruction, K: int, seconds: float) -> Apart:
    """Both chained to K products, or to as few as both can be."""
    k = math.lcm(x.k, y.k, K)
    return max_difference(x.chained(k), y.chained(k), timeout=seconds)


HEAD = """\
| | | K = 16: at most | found | random | K = 1024: at most | found | random |
|---|---|---:|---:|---:|---:|---:|---:|"""

TEXT = """\
# How far apart?

`mmaformal max-difference ARCH ARCH INSTRUCTION`: the largest |d − d'| relative to w(c) + Σ w(a)·w(b), w(x) = max(|x|,
the least normal number), in units of 2^-24. *At most*: from the bounds of both ([unit-bounds.md](unit-bounds.md);
`--prove` proves them); *found*: the most that a search came upon, and in ulps of d; *random*: the most of 1,024 results
of normally distributed numbers, c too. Every pair of functions that HMMA instructions are, chained to equally many
products; named after the first architecture that has them. Made by `python tools/docs/apart_table.py`.

The bounds of both are added, as if each could be off in its own direction, by as much as it can, on one input. Where
both cut toward zero they cannot, which is part of the gap.

By hand, of Ampere and Hopper at K = 16: c = 1, in each half of the products seven just below 2^-24 and one just below
2^-23. Ampere gives 1, Hopper 1 + 5 · 2^-23. Whether it can be more, up to 30, is open.
"""


@click.command()
@click.option("--seconds", type=options.SECONDS, default=10.0, help="For each search (default 10).")
@click.option("--out", type=options.OUTPUT_FILE, help="Where the page goes (default: printed).")
def command(seconds: float, out: Path | None) -> int:
    """How far apart all HMMA instructions are."""
    lines = []
    with Status() as status:
        for x, y in pairs():
            status.show(f"{x.label} and {y.label}")
            lines.append(row(x, y, seconds))
    text = f"{TEXT}\n{HEAD}\n" + "\n".join(lines) + "\n"
    if out is not None:
        out.write_text(text, encoding="utf-8")
        return SETTLED
    return answered(text, SETTLED)


def main(argv: Sequence[str] | None = None) -> int:
    return run_command(command, sys.argv[1:] if argv is None else argv, "apart_table")


if __name__ == "__main__":
    sys.exit(main())
