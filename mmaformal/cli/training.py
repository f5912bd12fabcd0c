"""`mmaformal training`."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from mmaformal.cli import options
from mmaformal.cli.running import SETTLED, UsageError, answered, tabulated
from mmaformal.cli.terminal import Status

if TYPE_CHECKING:
    from mmaformal.studies.training.runs import Job
    from mmaformal.studies.training.sweep import Results

#: Known here, so that completion need not import torch.
PARTS = ("bits", "groups", "orders", "units")
STUDIES = {"digits": ("transformer", "convolutional"), "language": ("language",), "step": ("step",)}
NETWORK_NAMES = STUDIES["digits"]


@click.command("training")
@click.option(
    "--out",
    type=options.OUTPUT_FOLDER,
    default=Path(),
    metavar="DIR",
    help="Where results, tables and figures go, and where results of an earlier run are (default: here).",
)
@click.option(
    "--study",
    type=click.Choice(tuple(STUDIES)),
    default="digits",
    help="Two small networks on digits, or a character model on Python's sources: its training, or one step of one "
    "that fp32 has trained (default: digits).",
)
@click.option(
    "--part", "parts", multiple=True, type=click.Choice(PARTS), help="This part alone; again for others."
)
@click.option(
    "--network",
    "networks",
    multiple=True,
    type=click.Choice(NETWORK_NAMES),
    help="This network of the digits alone.",
)
@click.option(
    "--seeds",
    type=click.IntRange(1, 1000),
    help="How often each is trained (default 5; of the language model 3).",
)
@options.jobs
@options.cluster
@click.option("--no-plot", is_flag=True, help="Draw no figures, which need matplotlib.")
@options.json
@options.table_options
def training(
    out: Path,
    study: str,
    parts: tuple[str, ...],
    networks: tuple[str, ...],
    seeds: int | None,
    jobs: int | None,
    cluster: str | None,
    no_plot: bool,
    as_json: bool,
    table: str | None,
) -> int:
    """Train small networks on accumulators of chosen widths, group sizes and orders, and on units of the registry.

    The language model runs its backward pass on them too; what one run proves of wider accumulators is not trained.

    A run that was interrupted goes on where it was: results are kept in DIR/training.jsonl and DIR/weights. Beside them
    are written tables, training.md, and figures, training-*.png.

    Exit status: 0; 2 for wrong use.
    """
    try:
        from mmaformal.statistics import matplotlib_pyplot
        from mmaformal.studies.training import figures, report, sweep
        from mmaformal.studies.training.networks import digit_images

        if study == "digits":
            digit_images()
        if not no_plot:
            matplotlib_pyplot()
    except ImportError as error:
        raise UsageError(f"{error}; 'mmaformal[training]' has all that training needs") from None
    if study != "digits" and (networks or "units" in parts):
        raise UsageError("the language model is one network, and has no part `units`")
    chosen, seeds = networks or STUDIES[study], seeds or sweep.STUDIES[study].seeds
    found = sweep.settings(sweep.STUDIES[study], parts or PARTS)
    wanted = sweep.jobs(found, chosen, seeds)
    results = sweep.Results(out)
    with Status() as status:
        _trained(wanted, results, jobs or os.cpu_count() or 1, cluster, status)
        whole = report.StudyReport(results, found, chosen, seeds)
        told = report.report_text(whole)
        (out / "training.md").write_text(told, encoding="utf-8")
        if not no_plot:
            status.show("drawing")
            figures.draw_training(whole, out)
    if table is not None:
        return tabulated(table, report.report_rows(whole), SETTLED)
    if as_json:
        rows = [vars(results[job]) for job in wanted]
        return answered(json.dumps({"results": rows}, indent=2), SETTLED)
    return answered(told, SETTLED)


def _trained(wanted: list[Job], results: Results, width: int, cluster: str | None, status: Status) -> None:
    """Train what is not known, on so many workers."""
    from mmaformal import executors
    from mmaformal.studies.training import sweep

    if all(job in results for job in wanted):
        return
    status.show(f"0 of {len(wanted)}: starting {width} workers")
    with executors.workers(cluster, width) as executor:
        sweep.run_sweep(
            wanted,
            results,
            executor,
            executors.width_of(executor),
            lambda done, of: status.show(f"{done} of {of} trainings"),
        )
