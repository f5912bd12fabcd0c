"""`mmaformal probe`: what the classical probes read of a model or a hardware design, as of a black box."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Unpack

import click

from mmaformal.architectures import Architecture
from mmaformal.cli import options
from mmaformal.cli.running import SETTLED, UNKNOWN, UsageError, answered, tabulated
from mmaformal.cli.signoff import DesignOptions, design_unit, is_design, unit_options
from mmaformal.cli.terminal import Status
from mmaformal.instruction import Instruction

if TYPE_CHECKING:
    from mmaformal.hardware.blackbox import DesignUnit


@click.command()
@click.argument("arch", metavar="ARCH|DESIGN", type=options.ARCHITECTURE_OR_DESIGN, required=False)
@options.name(required=False)
@click.argument("files", nargs=-1, metavar="[FILE…]", type=options.FILE)
@click.option(
    "--k",
    "chain",
    cls=options.Renamed,
    old=["--chain"],
    type=options.PRODUCTS,
    metavar="K",
    help="Chain the instruction to K products, d being the next c; of a DESIGN, the products that d has.",
)
@options.replace
@options.model
@unit_options
@click.option("--svg", type=options.OUTPUT_FILE, metavar="FILE", help="Draw the order of summation, as SVG.")
@options.timeout(600.0)
@options.json
@options.table_options
def probe(
    arch: Architecture | str | None,
    name: str | None,
    files: tuple[Path, ...],
    chain: int | None,
    changes: tuple[options.ParameterChange, ...],
    types: str | None,
    svg: Path | None,
    timeout: float,
    as_json: bool,
    table: str | None,
    **given: Unpack[DesignOptions],
) -> int:
    """Probe a model, or a DESIGN, as a black box: how many accumulator bits does it keep, and what else.

    It is asked for results of chosen inputs, as a chip would be, and known by its types alone: the order of summation,
    the places kept beside larger terms, roundings, zeros, subnormal numbers, overflow, NaNs. What its types cannot
    tell is said to be so. A DESIGN is read as `mmaformal signoff` reads it, and compiled; --k and --types say what it
    takes. For a chip of your own: mmaformal.probe, in Python.

    Exit status: 0; 3 if the time was up before everything was read; 2 for wrong use.
    """
    from mmaformal.probes import probe as probed

    unit = _unit(arch, name, files, chain, changes, types, given)
    with Status() as status:
        found = probed(unit, timeout=timeout, progress=status.show)
    if svg is not None and (found.complete or found.tree is not None):
        if found.tree is None:
            raise ValueError(f"no drawing: the order of summation is not told ({found.order})")
        svg.write_text(found.tree.to_svg())
    code = SETTLED if found.complete else UNKNOWN
    if table is not None:
        return tabulated(table, found.rows(), code)
    return answered(json.dumps(found.to_json(), indent=2) if as_json else str(found), code)


def _unit(
    arch: Architecture | str | None,
    name: str | None,
    files: tuple[Path, ...],
    k: int | None,
    changes: tuple[options.ParameterChange, ...],
    types: str | None,
    given: DesignOptions,
) -> Instruction | DesignUnit:
    """Return the instruction that is named, or the design.  Raises UsageError where none or too much is named."""
    if isinstance(arch, Architecture):
        if name is None:
            raise UsageError(f"which INSTRUCTION? `mmaformal list {arch.name}` shows those there are")
        if files:
            raise UsageError(f"one INSTRUCTION is probed: {files[0]} is one too many")
        return options.instruction_of(arch, name, changes, k)
    named = [Path(each) for each in (arch, name) if each is not None] + list(files)
    if not is_design(named, given):
        raise UsageError("name an ARCH and an INSTRUCTION, or the files of a DESIGN")
    return design_unit(named, k, types, given)
