"""`mmaformal narrow-range`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from mmaformal.cli import options
from mmaformal.cli.running import REFUTED, SETTLED, UNKNOWN, UsageError, answered, tabulated, wrong_use
from mmaformal.cli.terminal import Status, told

if TYPE_CHECKING:
    from mmaformal.studies.narrow_range.experiments import Combination

#: Known here, so that completion need not import a kernel.
FIGURE_NAMES = ("5.1", "5.2")
THEOREM_NAMES = ("3.1", "4.1")


@click.command("narrow-range")
@click.argument(
    "what", metavar="[5.1|5.2|3.1|4.1]", required=False, type=click.Choice(FIGURE_NAMES + THEOREM_NAMES)
)
@click.option(
    "--input", "input_", metavar="FORMAT", help="Of A and B, in place of a figure's: e2m1, fp6-E3M2, bf16, …"
)
@click.option("--sums", metavar="FORMAT", help="In which products are added up (default fp32), with --input.")
@click.option(
    "--out",
    type=options.OUTPUT_FOLDER,
    default=Path(),
    metavar="DIR",
    help="Where rows, table and figure go, and where rows of an earlier run are (default: here).",
)
@click.option(
    "--published",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    metavar="DIR",
    help="The published curves (.dat files), to be compared.",
)
@click.option("--seed", type=click.IntRange(0, 2**31), default=1, help="Of the matrices (default 1).")
@click.option(
    "--largest",
    type=click.IntRange(10, 10**6),
    default=10**6,
    metavar="N",
    help="No n above this (default 10^6).",
)
@click.option("--no-plot", is_flag=True, help="Draw no figure, which needs matplotlib.")
@options.json
@options.table_options
def narrow_range(
    what: str | None,
    input_: str | None,
    sums: str | None,
    out: Path,
    published: Path | None,
    seed: int,
    largest: int,
    no_plot: bool,
    as_json: bool,
    table: str | None,
) -> int:
    """Measure errors of products in narrow-range formats, Figures 5.1 and 5.2 of the paper or those of any formats; or
    prove its Theorems 3.1 and 4.1.

    A run that was interrupted goes on where it was: rows are kept in DIR/figure-….jsonl. Beside it are written a
    table, .md, and the figure, .png.

    Exit status: 0; 1 if an error exceeds its bound; 2 for wrong use; 3 if a proof is not settled.
    """
    if (what is None) == (input_ is None):
        raise UsageError("give a figure (5.1, 5.2), a theorem (3.1, 4.1), or --input FORMAT")
    if sums is not None and input_ is None:
        raise UsageError("--sums goes with --input FORMAT")
    if what in THEOREM_NAMES and table is not None:
        raise UsageError(f"--csv and --latex print the table of a figure; {what} is a theorem")
    if what in THEOREM_NAMES:
        return _theorem(what, as_json)
    from mmaformal.studies.narrow_range import experiments as narrow_range

    if what is not None:
        return _measured(
            *(what, narrow_range.combinations([what]), out, published, seed, largest, no_plot, as_json, table)
        )
    assert input_ is not None
    with wrong_use(ValueError):
        wanted = narrow_range.of_formats([(input_, sums or "fp32")])
    name = f"{input_}-{sums or 'fp32'}"
    return _measured(*(name, wanted, out, published, seed, largest, no_plot, as_json, table))


def _theorem(number: str, as_json: bool) -> int:
    from mmaformal.solver.answers import Holds
    from mmaformal.studies.narrow_range.theorems import prove_theorem

    answer = prove_theorem(number)
    code = SETTLED if isinstance(answer, Holds) else UNKNOWN
    return answered(json.dumps(answer.to_json(), indent=2) if as_json else told(answer, False), code)


def _measured(
    name: str,
    wanted: Sequence[Combination],
    out: Path,
    published: Path | None,
    seed: int,
    largest: int,
    no_plot: bool,
    as_json: bool,
    table: str | None,
) -> int:
    """The errors of some curves; `name` is what their files are called by."""
    from mmaformal.statistics import matplotlib_pyplot
    from mmaformal.studies.narrow_range import experiments as narrow_range
    from mmaformal.studies.narrow_range import figures
    from mmaformal.studies.narrow_range import published as curves

    if not no_plot:
        try:
            matplotlib_pyplot()
        except ImportError as error:
            raise UsageError(f"{error}; --no-plot draws none") from None
    out.mkdir(parents=True, exist_ok=True)
    stem = out / f"figure-{name}"
    lengths = [n for n in narrow_range.LENGTHS if n <= largest]
    if published is not None:  # before minutes are spent
        for each in wanted:
            curves.curve(published, each)
        if len(lengths) < 2:
            raise UsageError("--published compares curves: --largest of 13 or more")
    rows = []
    of_figure = name in FIGURE_NAMES
    with Status() as status:
        for row in narrow_range.measure(wanted, stem.with_name(f"{stem.name}.jsonl"), lengths, seed):
            rows.append(row)
            status.show(f"{len(rows)} of {len(wanted) * len(lengths)}: n = {row.n}, {row.combination}")
        found = (
            {} if published is None else {c.combination: c for c in curves.compare_curves(rows, published)}
        )
        text = curves.published_table(rows, found, curves.FIGURE_ABOVE if of_figure else 0)
        stem.with_name(f"{stem.name}.md").write_text(text + "\n", encoding="utf-8")
        if not no_plot:
            status.show("drawing")
            figures.draw_figures(
                f"Figure {name}" if of_figure else name, rows, found, stem.with_name(f"{stem.name}.png")
            )
    violated = [row for row in rows if row.violated]
    overflowed = [row for row in rows if row.overflowed]
    code = REFUTED if violated else SETTLED
    if table is not None:
        return tabulated(table, [row.to_json() for row in rows], code)
    if as_json:
        told_ = {
            "rows": [row.to_json() for row in rows],
            "violated": len(violated),
            "overflowed": len(overflowed),
        }
        return answered(json.dumps(told_, indent=2, allow_nan=False), code)
    more = f"; {len(overflowed)} overflow, of which the bounds say nothing" if overflowed else ""
    return answered(f"{text}\n\n{len(rows)} errors; {len(violated)} exceed their bounds{more}", code)
