"""TensorGauge's Table I again, every width proved: bits of a data path that loses nothing, without carries.

python tools/docs/lossless_table.py
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass

import click

from mmaformal.cli import options
from mmaformal.cli.running import SETTLED, run_command
from mmaformal.formats import Format, Specials, bf16, e2m1, e4m3, e5m2, fp16, fp32
from mmaformal.proof.composition import Composing
from mmaformal.queries.lossless_width import Width, prove_width
from mmaformal.solver.asking import Asker
from mmaformal.solver.portfolio import LazyPortfolio

#: The format that Table I calls FP8 (E5M3): it holds both e5m2 and e4m3.  No unit has codes of it.
e5m3 = Format("e5m3", 9, exponent_bits=5, fraction_bits=3, bias=15, specials=Specials.IEEE, dtype=None)


@dataclass(frozen=True)
class Row:
    """Widths of a data path, without carries: proved, and as the paper has them (None: it does not have the format)."""

    fmt: Format
    separated: Width
    fused: Width  #: with an fp32 c
    paper: tuple[int, int] | None  #: separated, fused


TABLE_I: tuple[tuple[Format, tuple[int, int] | None], ...] = (
    (bf16, (522, 522)),
    (fp16, (80, 178)),
    (e5m3, (66, 164)),
    (e5m2, None),
    (e4m3, None),
    (e2m1, (6, 132)),
)


def table(proving: Composing) -> Iterator[Row]:
    """Table I again, every width proved and tight.  Raises NotProvedError."""
    for fmt, paper in TABLE_I:
        yield Row(fmt, prove_width(proving, fmt, fmt, None), prove_width(proving, fmt, fmt, fp32), paper)


@click.command(help="Table I: bits of the data path, without carries.")
@options.timeout(600.0)
def command(timeout: float) -> int:
    with LazyPortfolio() as portfolio:
        proving = Composing(Asker(portfolio, timeout))
        print("format   SDA  paper   FDA  paper    (bits of the data path, without carries)")
        for row in table(proving):
            paper = row.paper or ("–", "–")
            widths = row.separated.data_path, row.fused.data_path
            print(f"{row.fmt!s:6} {widths[0]:5} {paper[0]:>6} {widths[1]:5} {paper[1]:>6}", flush=True)
    return SETTLED


if __name__ == "__main__":
    sys.exit(run_command(command, sys.argv[1:], "lossless_table"))
