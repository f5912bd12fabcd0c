"""`mmaformal identify`: which arithmetic a hardware design computes, before anything is proved."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Unpack

import click

from mmaformal.cli import options
from mmaformal.cli.running import SETTLED, UNKNOWN, answered, wrong_use
from mmaformal.cli.signoff import DesignOptions, design_options, design_unit
from mmaformal.cli.terminal import Status


@click.command()
@click.argument("files", nargs=-1, metavar="DESIGN…", type=options.FILE)
@click.option("--k", type=options.PRODUCTS, required=True, metavar="K", help="Products that d has.")
@click.option(
    "--types", required=True, metavar="A[,B],C[,D]", help="Formats, as fp16,fp32 or e4m3,e5m2,fp32,fp16."
)
@design_options
@click.option("--probe", is_flag=True, help="Only probe it: order, accumulator, roundings, special values.")
@click.option(
    "--out", type=options.OUTPUT_FILE, metavar="FILE", help="Only record random rows of it, in FILE.npz."
)
@click.option("--rows", type=options.ROWS, default=100_000, metavar="N", help="Of --out (default 100000).")
@options.timeout(300.0)
@options.memory(4096)
@options.solver
@options.evidence
@options.json
def identify(
    files: tuple[Path, ...],
    k: int,
    types: str,
    probe: bool,
    out: Path | None,
    rows: int,
    timeout: float,
    memory: int,
    solvers: tuple[str, ...],
    evidence: Path | None,
    no_cache: bool,
    as_json: bool,
    **given: Unpack[DesignOptions],
) -> int:
    """Find which arithmetic a DESIGN computes, as of a black box that is asked for results.

    DESIGN is read as `mmaformal signoff` reads it, and compiled. --probe tells what is seen of its roundings; --out
    records rows, for `mmaformal diagnose` and others. What it is found to be, `mmaformal signoff` proves.

    Exit status: 0; 3 if nothing explains it, or the time was up; 2 for wrong use.
    """
    from mmaformal.hardware.module import HardwareError
    from mmaformal.probes import probe as probed
    from mmaformal.queries.identify import identify as identified

    unit = design_unit(files, k, types, given)
    with wrong_use(HardwareError):
        if out is not None:
            count = unit.record(out, rows)
            return answered(f"{out}: {count:,} rows of {unit.name}", SETTLED)
        if probe:
            with Status() as status:
                found = probed(unit, timeout=timeout, progress=status.show)
            text = json.dumps(found.to_json(), indent=2) if as_json else str(found)
            return answered(text, SETTLED if found.complete else UNKNOWN)
        with options.remembering_option(evidence, no_cache), Status() as status:
            answer = identified(
                unit, timeout=timeout, memory=memory, solver=solvers or None, progress=status.show
            )
    text = json.dumps(answer.to_json(), indent=2) if as_json else str(answer)
    return answered(text, UNKNOWN if answer.verdict in ("none", "unknown") else SETTLED)
