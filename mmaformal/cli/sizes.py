"""`mmaformal sizes`."""

from __future__ import annotations

import json
import os
from dataclasses import asdict
from pathlib import Path

import click

from mmaformal.architectures import ARCHITECTURES, datapaths
from mmaformal.architectures.meant import instruction_meant
from mmaformal.cli import options
from mmaformal.cli.running import SETTLED, UsageError, answered, tabulated, wrong_use
from mmaformal.cli.terminal import Status
from mmaformal.instruction import Instruction

#: Known here, so that completion need not import what measures them.
KIND_NAMES = ("mul_add", "fma", "fda", "sda")


def _numbers(_: click.Context, param: click.Parameter, value: str | None) -> tuple[int, ...] | None:
    if value is None:
        return None
    try:
        found = tuple(int(x) for x in value.split(","))
    except ValueError:
        raise UsageError(
            f"{param.opts[0]} is numbers with commas between, 8,16,24 for example, not {value!r}"
        ) from None
    return found


def _chosen(kinds: tuple[str, ...]) -> tuple[list[str], list[Instruction]]:
    """The organisations that are named, and the instructions: `ARCH INSTRUCTION`, or a datapath spelled out."""
    organisations, others = [], []
    left = iter(kinds)
    for each in left:
        if ARCHITECTURES.canonical(each.partition("@")[0]) is not None:  # its instruction is the next word
            others.append(instruction_meant(f"{each} {next(left, '')}"))
        elif each in KIND_NAMES:
            organisations.append(each)
        elif " " in each.strip().partition("(")[0]:
            others.append(instruction_meant(each))
        elif "(" in each:
            others.append(ARCHITECTURES[datapaths.NAME][each])
        else:
            raise UsageError(
                f"no KIND {each!r}: it is one of {', '.join(KIND_NAMES)}, a datapath as `mmaformal show datapath` "
                "spells it, or 'ARCH INSTRUCTION'"
            )
    return organisations, others


@click.command()
@click.argument("kinds", metavar="[KIND]…", nargs=-1)
@click.option("--k", "groups", callback=_numbers, metavar="N,…", help="Group sizes (default 2,4,8,16,32).")
@click.option("--frac-bits", callback=_numbers, metavar="N,…", help="Fractional bits (default 8,12,…,28,40).")
@click.option(
    "--a-format",
    "fmt",
    cls=options.Renamed,
    old=["--a"],
    default="bf16",
    metavar="FORMAT",
    help="Of a and b (default bf16, as the paper has it).",
)
@click.option(
    "--cut",
    type=click.Choice(("RZ", "RO")),
    default="RZ",
    help="Toward zero (default), or with a sticky place.",
)
@click.option(
    "--out", type=options.OUTPUT_FILE, metavar="FILE", help="Keep rows there, and take those that are there."
)
@options.jobs
@options.model
@options.timeout(900.0, "for each datapath")
@options.json
@options.table_options
def sizes(
    kinds: tuple[str, ...],
    groups: tuple[int, ...] | None,
    frac_bits: tuple[int, ...] | None,
    fmt: str,
    cut: str,
    out: Path | None,
    jobs: int | None,
    timeout: float,
    as_json: bool,
    table: str | None,
) -> int:
    """Measure how large datapaths are: gates and depth after generic synthesis, over group size and fractional bits.

    KIND is mul_add, fma, fda or sda of the design space (`mmaformal show datapath`; default: all four), one of its
    datapaths spelled out, or 'ARCH INSTRUCTION'. Each is written as a module and mapped by yosys to gates of two
    inputs, inverters and multiplexers. Rows are printed as they are done. With --out a run that was interrupted goes on
    where it was.

    \b
    mmaformal sizes fda --k 4,8,16
    mmaformal sizes 'hopper HMMA.16816.F32' 'fda(k=16,frac_bits=20)'

    Exit status: 0, or 2 for wrong use.
    """
    from mmaformal.hardware import sizes as study
    from mmaformal.hardware.module import HardwareError
    from mmaformal.solver.pool import processes

    organisations, points = _chosen(kinds)
    with wrong_use(TypeError, ValueError):
        if organisations or not points:
            points += study.points(
                organisations or study.KINDS,
                groups or study.GROUPS,
                frac_bits or study.FRAC_BITS,
                a=fmt,
                cut=cut,
            )
    rows = []
    with wrong_use(HardwareError), Status() as status, processes(jobs or os.cpu_count() or 1) as executor:
        status.show(f"0 of {len(points)} datapaths")
        for row in study.measure_all(points, out, executor, timeout):
            rows.append(row)
            if not as_json and table is None:
                status.line(f"{row.datapath}: {row.cells:,} gates, {row.depth:,} deep")
            status.show(f"{len(rows)} of {len(points)} datapaths: {row.datapath}")
    order = {study.name_of(each): number for number, each in enumerate(points)}
    rows.sort(key=lambda row: order[row.datapath])
    if table is not None:
        return tabulated(table, [{**asdict(row), "per_product": row.per_product} for row in rows], SETTLED)
    if as_json:
        return answered(json.dumps([asdict(row) for row in rows], indent=2), SETTLED)
    return answered(study.in_markdown(rows), SETTLED)
