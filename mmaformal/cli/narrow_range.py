"""`mmaformal narrow-range`."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import click

from mmaformal.cli import options
from mmaformal.cli.running import REFUTED, SETTLED, UsageError, answered
from mmaformal.cli.terminal import Status

#: Known here, so that completion need not import a kernel.
FIGURE_NAMES = ("5.1", "5.2")


@click.command("narrow-range")
@click.argument("figure", type=click.Choice(FIGURE_NAMES))
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
def narrow_range(
    figure: str, out: Path, published: Path | None, seed: int, largest: int, no_plot: bool, as_json: bool
) -> int:
    """Reproduce FIGURE 5.1 or 5.2 of the error analysis of narrow-range formats: errors of Model 1 over n.

    A run that was interrupted goes on where it was: rows are kept in DIR/figure-FIGURE.jsonl. Beside it are written a
    table, .md, and the figure, .png.

    Exit status: 0; 1 if an error exceeds its bound; 2 for wrong use.
    """
    from mmaformal.analysis import figures, narrow_range
    from mmaformal.analysis import published as curves
    from mmaformal.statistics import matplotlib_pyplot

    if not no_plot:
        try:
            matplotlib_pyplot()
        except ImportError as error:
            raise UsageError(f"{error}; --no-plot draws none") from None
    out.mkdir(parents=True, exist_ok=True)
    stem = out / f"figure-{figure}"
    wanted = narrow_range.combinations([figure])
    lengths = [n for n in narrow_range.LENGTHS if n <= largest]
    if published is not None:  # before minutes are spent
        for each in wanted:
            curves.curve(published, each)
        if len(lengths) < 2:
            raise UsageError("--published compares curves: --largest of 13 or more")
    rows = []
    with Status() as status:
        for row in narrow_range.measure(wanted, stem.with_name(f"{stem.name}.jsonl"), lengths, seed):
            rows.append(row)
            status.show(f"{len(rows)} of {len(wanted) * len(lengths)}: n = {row.n}, {row.combination}")
        found = {} if published is None else {c.combination: c for c in curves.compare(rows, published)}
        table = curves.table(rows, found)
        stem.with_name(f"{stem.name}.md").write_text(table + "\n", encoding="utf-8")
        if not no_plot:
            status.show("drawing")
            figures.draw(figure, rows, found, stem.with_name(f"{stem.name}.png"))
    violated = [row for row in rows if row.violated]
    code = REFUTED if violated else SETTLED
    if as_json:
        told = {"rows": [asdict(row) for row in rows], "violated": len(violated)}
        return answered(json.dumps(told, indent=2), code)
    return answered(f"{table}\n\n{len(rows)} errors; {len(violated)} exceed their bounds", code)
