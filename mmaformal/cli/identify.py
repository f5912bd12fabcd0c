"""`mmaformal identify`: which arithmetic a hardware design computes, before anything is proved."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import TypedDict

import click

from mmaformal.cli import options
from mmaformal.cli.running import SETTLED, UNKNOWN, UsageError, answered
from mmaformal.cli.signoff import design_of, design_options
from mmaformal.cli.terminal import Status


@click.command()
@click.argument("files", nargs=-1, metavar="DESIGN…", type=click.Path(path_type=Path))
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
@options.timeout(300.0, "for everything")
@options.json
def identify(
    files: tuple[Path, ...],
    k: int,
    types: str,
    lists: tuple[Path, ...],
    top: str | None,
    includes: tuple[Path, ...],
    defines: tuple[str, ...],
    parameters: tuple[str, ...],
    ports: tuple[str, ...],
    ties: tuple[str, ...],
    mapping: Path | None,
    cycles: int | None,
    held: bool,
    probe: bool,
    out: Path | None,
    rows: int,
    timeout: float,
    as_json: bool,
) -> int:
    """Find which arithmetic a DESIGN computes, as of a black box that is asked for results.

    DESIGN is read as `mmaformal signoff` reads it, and compiled. --probe tells what is seen of its roundings; --out
    records rows, for `mmaformal diagnose` and others. What it is found to be, `mmaformal signoff` proves.

    Exit status: 0; 3 if nothing explains it, or the time was up; 2 for wrong use.
    """
    from mmaformal.hardware.blackbox import from_rtl
    from mmaformal.hardware.module import HardwareError
    from mmaformal.probes import probe as probed
    from mmaformal.queries.identify import identify as identified

    try:
        design = design_of(
            files, lists, top, includes, defines, parameters, ports, ties, mapping, cycles, held
        )
        told = partial(click.echo, err=True)
        unit = from_rtl(design.sources, k=k, **_formats(types), ports=design.said, held=held, told=told)
        if out is not None:
            count = unit.record(out, rows)
            return answered(f"{out}: {count:,} rows of {unit.name}", SETTLED)
        if probe:
            found = probed(unit, **unit.takes, name=unit.name, timeout=timeout)
            text = json.dumps(found.to_json(), indent=2) if as_json else str(found)
            return answered(text, SETTLED if found.complete else UNKNOWN)
        with Status() as status:
            answer = identified(unit, **unit.takes, timeout=timeout, progress=status.show)
    except HardwareError as error:
        raise UsageError(str(error)) from None
    text = json.dumps(answer.to_json(), indent=2) if as_json else str(answer)
    return answered(text, UNKNOWN if answer.verdict in ("none", "unknown") else SETTLED)


class _Formats(TypedDict):
    a_format: str
    b_format: str
    c_format: str
    d_format: str


def _formats(types: str) -> _Formats:
    """The formats by their keywords.  `fp16,fp32`: of a and b, and of c and d; of three, a, b, and c and d."""
    words = [word.strip() for word in types.split(",")]
    if not 2 <= len(words) <= 4:
        raise UsageError(f"--types {types}: two to four formats are needed, as fp16,fp32")
    if len(words) == 2:
        words = [words[0], words[0], words[1]]
    a, b, c, d = [*words, words[-1]][:4]
    return {"a_format": a, "b_format": b, "c_format": c, "d_format": d}
