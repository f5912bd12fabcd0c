"""`mmaformal less-accurate`."""

from __future__ import annotations

import json
from pathlib import Path

import click

from mmaformal.architectures import ARCHITECTURES, UnknownInstructionError
from mmaformal.cli import options
from mmaformal.cli.running import SETTLED, UNKNOWN, UsageError, answered, tabulated
from mmaformal.cli.terminal import Status
from mmaformal.instruction import Instruction


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
@options.timeout(600.0, "for everything")
@options.evidence
@options.json
@options.table
def less_accurate(
    x: str,
    y: str | None,
    products: int,
    random: int | None,
    never: bool,
    timeout: float,
    evidence: Path | None,
    no_cache: bool,
    as_json: bool,
    table: str | None,
) -> int:
    """Whether an emulation is ever farther from the exact sum than another: the smallest input.

    EMULATION is spelled as `mmaformal list emulation` does: 'ootomo(hopper HMMA.16816.F32)'.

    Exit status: 0 an answer, 3 if it is not settled, 2 wrong use.
    """
    from mmaformal.queries.less_accurate import DRAWN, how_often, nearest_product
    from mmaformal.queries.less_accurate import less_accurate as query
    from mmaformal.solver.answers import Unknown
    from mmaformal.solver.asking import watching

    one = _emulation(x)
    if never == (y is not None):
        raise UsageError("two emulations are compared; of one, --never says where nothing is nearer")
    if table is not None and random is None:
        raise UsageError("--csv and --latex print the table of --random N; without it there is none")
    with options.remembering(evidence, no_cache), Status() as status, watching(status.show):
        try:
            if y is None:
                answer = nearest_product(one, timeout=timeout)
            elif random is None:
                answer = query(one, _emulation(y), products=products, timeout=timeout, progress=status.show)
            else:
                found = [how_often(one, _emulation(y), drawn, random) for drawn in DRAWN]
                rows = [each.to_json() for each in found]
                if table is not None:
                    return tabulated(table, rows, SETTLED)
                return answered(
                    json.dumps(rows, indent=2) if as_json else "\n".join(map(str, found)), SETTLED
                )
        except ValueError as error:
            raise UsageError(str(error)) from None
    text = json.dumps(answer.to_json(), indent=2) if as_json else str(answer)
    return answered(text, UNKNOWN if isinstance(answer, Unknown) else SETTLED)


def _emulation(name: str) -> Instruction:
    try:
        return ARCHITECTURES["emulation"][name]
    except UnknownInstructionError as error:
        raise UsageError(str(error)) from None
