"""`mmaformal probe`: what the classical probes read of a model, as of a black box."""

from __future__ import annotations

import json
from pathlib import Path

import click

from mmaformal.architectures import Architecture
from mmaformal.cli import options
from mmaformal.cli.running import SETTLED, UNKNOWN, answered, tabulated


@click.command()
@options.arch()
@options.name()
@options.chain
@options.replace
@options.model
@click.option(
    "--svg", type=click.Path(path_type=Path), metavar="FILE", help="Draw the order of summation, as SVG."
)
@options.timeout(600.0)
@options.json
@options.table
def probe(
    arch: Architecture,
    name: str,
    chain: int | None,
    changes: tuple[options.Change, ...],
    svg: Path | None,
    timeout: float,
    as_json: bool,
    table: str | None,
) -> int:
    """Probe a model as a black box: how many accumulator bits does it keep, and what else.

    It is asked for results of chosen inputs, as a chip would be, and known by its types alone: the order of summation,
    the places kept beside larger terms, roundings, zeros, subnormal numbers, overflow, NaNs. What its types cannot
    tell is said to be so. For a chip of your own: mmaformal.probe, in Python.

    Exit status: 0; 3 if the time was up before everything was read; 2 for wrong use.
    """
    from mmaformal.probes import probe as probed

    found = probed(options.instruction_of(arch, name, changes, chain), timeout=timeout)
    if svg is not None and (found.complete or found.tree is not None):
        if found.tree is None:
            raise ValueError(f"no drawing: the order of summation is not told ({found.order})")
        svg.write_text(found.tree.to_svg())
    code = SETTLED if found.complete else UNKNOWN
    if table is not None:
        return tabulated(table, found.rows(), code)
    return answered(json.dumps(found.to_json(), indent=2) if as_json else str(found), code)
