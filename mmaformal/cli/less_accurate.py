"""`mmaformal less-accurate`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click

from mmaformal.architectures import ARCHITECTURES, UnknownInstructionError
from mmaformal.cli import options
from mmaformal.cli.recall import RecallKey
from mmaformal.cli.running import SETTLED, UNKNOWN, UsageError, answered, tabulated, wrong_use
from mmaformal.cli.solving import Solving, solving
from mmaformal.cli.terminal import Status
from mmaformal.instruction import Instruction

if TYPE_CHECKING:
    from mmaformal.solver.answers import Answer


@click.command()
@click.argument("x", metavar="EMULATION")
@click.argument("y", metavar="[EMULATION]", required=False)
@click.option(
    "--products",
    type=options.PRODUCTS,
    default=1,
    show_default=True,
    help="At most so many nonzero products.",
)
@click.option("--random", type=click.IntRange(1), help="Instead: how often, on so many rows of random data.")
@click.option("--never", is_flag=True, help="Instead: prove of one alone where its product is the nearest.")
@options.model
@solving(600.0, verbose=False, table=True, smtlib=False)
def less_accurate(
    x: str,
    y: str | None,
    products: int,
    random: int | None,
    never: bool,
    request: Solving,
) -> int:
    """Find the smallest input on which an emulation is farther from the exact sum than another, or prove there is none.

    EMULATION is spelled as `mmaformal list emulation` does: 'ootomo(hopper HMMA.16816.F32)'.

    Exit status: 0 an answer, 3 if it is not settled, 2 wrong use.
    """
    one = _emulation(x)
    if never == (y is not None):
        raise UsageError("two emulations are compared; of one, --never says where nothing is nearer")
    if request.table is not None and random is None:
        raise UsageError("--csv and --latex print the table of --random N; without it there is none")
    other = None if y is None else _emulation(y)
    if other is not None and random is not None:
        return _often(one, other, random, request)

    def ask() -> Answer:
        return _asked(one, other, products, request)

    models = (one, *([] if other is None else [other]))
    answer = request.recall(RecallKey("less-accurate", models, f"{products}", *request.solvers), ask)
    return request.show(answer, UNKNOWN if answer.verdict == "unknown" else SETTLED)


def _asked(one: Instruction, other: Instruction | None, products: int, request: Solving) -> Answer:
    from mmaformal.solver.asking import watching
    from mmaformal.studies.emulation.less_accurate import less_accurate as query
    from mmaformal.studies.emulation.less_accurate import nearest_product

    with Status() as status, watching(status.show), wrong_use(ValueError):
        if other is None:
            return nearest_product(one, **request.limits)
        return query(one, other, products=products, **request.limits, progress=status.show)


def _often(one: Instruction, other: Instruction, rows: int, request: Solving) -> int:
    from mmaformal.studies.emulation.less_accurate import DRAWN, how_often

    with Status(), wrong_use(ValueError):
        found = [how_often(one, other, drawn, rows) for drawn in DRAWN]
    told = [each.to_json() for each in found]
    if request.table is not None:
        return tabulated(request.table, told, SETTLED)
    return answered(json.dumps(told, indent=2) if request.as_json else "\n".join(map(str, found)), SETTLED)


def _emulation(name: str) -> Instruction:
    with wrong_use(UnknownInstructionError):
        return ARCHITECTURES["emulation"][name]
