"""`mmaformal verilog`: a model as hardware."""

from __future__ import annotations

from pathlib import Path

import click

from mmaformal.architectures import Architecture
from mmaformal.cli import options
from mmaformal.cli.running import SETTLED, UsageError, answered, printed, wrong_use

_FORMATS = ("sv", "btor2", "aiger")


@click.command()
@options.arch()
@options.name()
@options.chain
@options.replace
@options.model
@click.option("--out", type=options.OUTPUT_FILE, metavar="FILE", help="Write it there (default: print it).")
@click.option(
    "--format",
    "kind",
    type=click.Choice(_FORMATS),
    help="SystemVerilog, BTOR2 or AIGER (default: by the suffix of FILE, else SystemVerilog).",
)
@click.option(
    "--name", "module_name", metavar="NAME", help="Of the module (default: that of the instruction)."
)
def verilog(
    arch: Architecture,
    name: str,
    chain: int | None,
    changes: tuple[options.ParameterChange, ...],
    out: Path | None,
    kind: str | None,
    module_name: str | None,
) -> int:
    """Write a model as a combinational module: SystemVerilog, BTOR2, or (by yosys) AIGER.

    Its ports are a and b, K codes each, the first in the lowest bits; c; scale_a and scale_b, if there are block
    scales; and d. It is the SMT encoding's formula, term by term, with the interfaces between its stages by name.

    Exit status: 0, or 2 for wrong use.
    """
    from mmaformal.hardware.module import HardwareError
    from mmaformal.hardware.verilog import verilog

    instruction = options.instruction_of(arch, name, changes, chain)
    if out is None and kind == "aiger":
        raise UsageError("AIGER is binary: --out says where to write it")
    with wrong_use(HardwareError):
        found = verilog(instruction, out, format=kind, name=module_name)
    if out is None:
        return printed(found.text.rstrip("\n"), SETTLED)
    return answered(found.summary, SETTLED)
