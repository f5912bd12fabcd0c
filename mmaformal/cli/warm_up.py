"""`mmaformal warm-up`."""

from __future__ import annotations

import json
import os

import click

from mmaformal.architectures import Architecture
from mmaformal.cli import options
from mmaformal.cli.running import SETTLED, answered
from mmaformal.cli.terminal import Status


@click.command("warm-up")
@click.argument("archs", metavar="[ARCH]…", nargs=-1, type=options.ARCHITECTURE)
@options.model
@options.jobs
@options.json
def warm_up(archs: tuple[Architecture, ...], jobs: int | None, as_json: bool) -> int:
    """Compile the kernels of `matmul` now, for all instructions or those of ARCH.

    Each is compiled when it is first used else, which takes some seconds; what
    is compiled is kept on disk, for this processor and this version.
    """
    from mmaformal.listing import every_instruction
    from mmaformal.warming import compile_all

    instructions = [i for each in archs for i in each] or every_instruction()
    with Status() as status:
        done = compile_all(instructions, jobs or os.cpu_count() or 1, status.show)
    return answered(json.dumps(done.to_json()) if as_json else str(done), SETTLED)
