"""`mmaformal bound`."""

from __future__ import annotations

import json
from pathlib import Path

import click

from mmaformal.architectures import Architecture
from mmaformal.cli import options
from mmaformal.cli.running import SETTLED, UNKNOWN, UsageError, answered
from mmaformal.cli.terminal import Status, told


@click.command()
@options.arch()
@options.name()
@click.option(
    "--k", "K", type=click.IntRange(1, 1 << 24), help="Products in all (default: of one instruction)."
)
@click.option(
    "--promote-every", type=click.IntRange(1), metavar="N", help="Added to fp32 after N instructions."
)
@click.option(
    "--within", type=click.FloatRange(0, min_open=True), metavar="F", help="Say how often to promote."
)
@options.replace
@options.timeout(600.0)
@options.memory(4096)
@options.solver
@options.evidence
@options.verbose
@options.json
@options.smtlib
def bound(
    arch: Architecture,
    name: str,
    K: int | None,
    promote_every: int | None,
    within: float | None,
    changes: tuple[options.Change, ...],
    timeout: float,
    memory: int,
    solvers: tuple[str, ...],
    evidence: Path | None,
    no_cache: bool,
    verbose: bool,
    as_json: bool,
    smtlib: Path | None,
) -> int:
    """How far a product of K on an instruction is from the exact one, at most: proved from the bound of its steps.

    Relative to w(c) + Σ w(a)·w(b), w(x) = max(|x|, the least normal number), where all results are finite.

    With --within F: after how many instructions an accumulator is to be added to a total in fp32 at most, for the bound
    to be F or less, and that bound.

    Exit status: 0 Holds, 3 Unknown, 2 wrong use.
    """
    from mmaformal.analysis.units import Unit
    from mmaformal.queries.product_bound import most_promoted, of_instruction
    from mmaformal.solver.answers import Holds
    from mmaformal.solver.asking import watching
    from mmaformal.solver.portfolio import Relay

    instruction = options.instruction_of(arch, name, changes, None)
    if within is not None and promote_every is not None:
        raise UsageError("--within says how often to promote: leave out either it or --promote-every")
    if within is not None:
        products = K or instruction.k
        try:
            promote_every = most_promoted(instruction, products, within)
            alone = Unit.of(instruction).factor(products) <= within
        except ValueError as error:
            raise UsageError(str(error)) from None
        if promote_every is None and not alone:
            raise UsageError(f"{instruction.label}: no promotion keeps {products} products within {within:g}")
    with (
        options.remembering(evidence, no_cache),
        Relay(solvers or None, memory) as portfolio,
        Status() as status,
        watching(status.show),
    ):
        try:
            answer = of_instruction(instruction, portfolio, K, promote_every=promote_every, timeout=timeout)
        except ValueError as error:
            raise UsageError(str(error)) from None
    if smtlib is not None:
        answer.write_smtlib(smtlib)
    text = json.dumps(answer.to_json(), indent=2) if as_json else told(answer, verbose)
    return answered(text, SETTLED if isinstance(answer, Holds) else UNKNOWN)
