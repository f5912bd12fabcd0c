"""`mmaformal unit-study`."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from mmaformal.cli import options
from mmaformal.cli.running import SETTLED, UNKNOWN, UsageError, answered, tabulated
from mmaformal.cli.solving import Solving, solving
from mmaformal.cli.terminal import Status

if TYPE_CHECKING:
    from mmaformal.studies.unit_study.enough_width import Enough
    from mmaformal.studies.unit_study.errors import Design


@click.command("unit-study")
@click.option(
    "--out",
    type=options.OUTPUT_FOLDER,
    default=Path(),
    metavar="DIR",
    help="Where rows, table and figure go, and where rows of an earlier run are (default: here).",
)
@click.option(
    "--a-format",
    "factors",
    cls=options.Renamed,
    old=["--a"],
    default="fp16",
    metavar="FORMAT",
    help="Of a and b (default fp16).",
)
@click.option("--rho", default="RNE-FP32", metavar="ρ", help="Conversion of the sum (default RNE-FP32).")
@click.option("--cut", type=click.Choice(("RZ", "RO")), default="RZ", help="At the alignment (default RZ).")
@click.option("--samples", type=click.IntRange(2, 10**6), default=10_000, help="Of each K (default 10000).")
@click.option("--seed", type=click.IntRange(0, 2**31), default=1, help="Of the samples (default 1).")
@click.option("--jobs", type=options.PROCESSES, default=2, metavar="N", help="Threads (default 2).")
@click.option("--no-proof", is_flag=True, help="Measure only.")
@click.option("--no-plot", is_flag=True, help="Draw no figure, which needs matplotlib.")
@solving(300.0, "for each proof", solvers=False, verbose=False, table=True, smtlib=False)
def unit_study(
    out: Path,
    factors: str,
    rho: str,
    cut: str,
    samples: int,
    seed: int,
    jobs: int,
    no_proof: bool,
    no_plot: bool,
    request: Solving,
) -> int:
    """Measure errors of fused and separated dot-adds over FracBits and K, as TensorGauge's Fig. 6; and from which
    FracBits on the error of alignment is below half a last place of the sum, proved.

    Samples are normal numbers, the exact result is exact.

    A run that was interrupted goes on where it was: rows are kept in DIR/unit-study.jsonl. Beside it are written a
    table, .md, and the figure, .png.

    Exit status: 0; 3 if a width is not proved; 2 for wrong use.
    """
    from mmaformal.studies.unit_study import errors as study
    from mmaformal.studies.unit_study import tables as unit_tables

    if not no_plot:
        _check_plots()
    wanted = study.designs(factors, rho, cut)
    wanted[0].instruction  # noqa: B018 - raises before minutes are spent
    out.mkdir(parents=True, exist_ok=True)
    rows, widths = [], {}
    with Status() as status:
        for row in study.measure_errors(wanted, out / "unit-study.jsonl", samples, seed, jobs):
            rows.append(row)
            status.show(f"{len(rows)} of {len(wanted)}: {row.design}")
        if not no_proof and cut == "RZ":
            widths = _derived(wanted, request, status)
    told = {curve: f"{each.F}{'' if each.proved else ' (not proved)'}" for curve, each in widths.items()}
    text = unit_tables.unit_table(rows, told)
    stem = out / f"unit-study-{factors}-{rho}-{cut}"
    Path(f"{stem}.md").write_text(text + "\n", encoding="utf-8")
    if not no_plot:
        title = f"{factors} × {factors} + fp32, {rho}, alignment cut {cut}; {samples:,} normal samples"
        unit_tables.draw_unit_study(
            rows, {curve: each.F for curve, each in widths.items()}, Path(f"{stem}.png"), title=title
        )
    code = SETTLED if all(each.proved for each in widths.values()) else UNKNOWN
    if request.table is not None:
        return tabulated(request.table, unit_tables.curves(rows, told), code)
    if request.as_json:
        found = [_width_json(curve, each) for curve, each in widths.items()]
        return answered(json.dumps({"rows": [asdict(row) for row in rows], "widths": found}, indent=2), code)
    return answered(text, code)


def _check_plots() -> None:
    from mmaformal.statistics import matplotlib_pyplot

    try:
        matplotlib_pyplot()
    except ImportError as error:
        raise UsageError(f"{error}; --no-plot draws none") from None


def _width_json(curve: tuple[str, int], width: Enough) -> dict[str, object]:
    kind, k = curve
    numbers = {"F": width.F, "n": float(width.n)}
    return {"kind": kind, "k": k, **numbers, "proved": width.proved, "obligations": width.obligations}


def _derived(wanted: list[Design], request: Solving, status: Status) -> dict[tuple[str, int], Enough]:
    """Return by kind and K the least FracBits with which alignment is off by less than half an ulp of the sum."""
    from mmaformal.studies.unit_study.enough_width import enough

    found = {}
    curves, timeout = {(each.kind, each.k): each for each in wanted}, request.timeout
    with options.remembering_option(request.evidence, request.no_cache):
        for curve, each in curves.items():
            status.show(f"proving the error bound of {each.kind}, K = {each.k}")
            width = enough(lambda F, each=each: replace(each, frac_bits=F).instruction, timeout=timeout)  # type: ignore[misc]
            if width is not None:
                found[curve] = width
    return found
