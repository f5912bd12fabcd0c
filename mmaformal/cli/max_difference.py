"""`mmaformal max-difference`."""

from __future__ import annotations

import json
from pathlib import Path

import click

from mmaformal.architectures import Architecture
from mmaformal.cli import options
from mmaformal.cli.running import SETTLED, UNKNOWN, UsageError, answered


@click.command()
@click.argument("x", metavar="ARCH", type=options.ARCHITECTURE)
@click.argument("y", metavar="ARCH", type=options.ARCHITECTURE)
@options.name()
@click.argument("other", metavar="[INSTRUCTION]", type=options.INSTRUCTION, required=False)
@options.chain
@options.replace
@options.model
@options.where
@click.option("--prove", "proving", is_flag=True, help="Prove the bound too.")
@click.option(
    "--timeout",
    cls=options.Renamed,
    old=["--seconds"],
    type=options.SECONDS,
    metavar="S",
    help="Seconds for the search (default 20), and for each proof (default 600).",
)
@options.evidence
@options.verbose
@options.json
def max_difference(
    x: Architecture,
    y: Architecture,
    name: str,
    other: str | None,
    chain: int | None,
    changes: tuple[options.Change, ...],
    where: tuple[str, ...],
    proving: bool,
    timeout: float | None,
    evidence: Path | None,
    no_cache: bool,
    verbose: bool,
    as_json: bool,
) -> int:
    """How far apart two instructions' results are: at most, and on the input found.

    Relative to σ = w(c) + Σ w(a)·w(b), w(x) = max(|x|, the least normal number). A second INSTRUCTION is that of the
    second ARCH, if it has another there; --k is about both, --replace about the second. --where is about the inputs
    that are searched.

    Exit status: 0 an answer, 3 if the bound was to be proved and is not or the time was up before any input was tried,
    2 wrong use.
    """
    from mmaformal.queries.find_difference import IncomparableError
    from mmaformal.queries.max_difference import max_difference as query
    from mmaformal.solver.answers import Unknown

    left = options.instruction_of(x, name, (), chain)
    right = options.instruction_of(y, other or name, changes, chain)
    with options.remembering(evidence, no_cache):
        try:
            found = query(
                left, right, where=where, seconds=timeout or 20.0, prove=proving, timeout=timeout or 600.0
            )
        except IncomparableError as error:
            raise UsageError(options.made_comparable(left, right) or str(error)) from None
        except ValueError as error:
            raise UsageError(str(error)) from None
    text = json.dumps(found.to_json(), indent=2) if as_json else found.verbose() if verbose else str(found)
    settled = found.searched and not isinstance(found.proof, Unknown)
    return answered(text, SETTLED if settled else UNKNOWN)
