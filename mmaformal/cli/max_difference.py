"""`mmaformal max-difference`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from mmaformal.architectures import Architecture
from mmaformal.cli import options
from mmaformal.cli.recall import Recalled, RecallKey
from mmaformal.cli.running import SETTLED, UNKNOWN, UsageError, answered
from mmaformal.cli.terminal import Status, told
from mmaformal.instruction import Instruction

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from mmaformal.queries.max_difference import Apart

#: Seconds for the search, where none are given.
_SEARCHED = 20.0
#: And for each proof.
_PROVED = 600.0


@click.command()
@click.argument("x", metavar="ARCH", type=options.ARCHITECTURE)
@click.argument("y", metavar="ARCH", type=options.ARCHITECTURE)
@options.name()
@click.argument("other", metavar="[INSTRUCTION]", type=options.INSTRUCTION, required=False)
@options.chain
@options.replace
@options.model
@options.where
@click.option(
    "--searches",
    type=click.IntRange(1, 1 << 20),
    default=1,
    metavar="N",
    help="The best of N searches, each from numbers of its own (default 1).",
)
@options.here
@options.cluster
@click.option("--prove", "proving", is_flag=True, help="Prove the bound too.")
@click.option(
    "--timeout",
    cls=options.Renamed,
    old=["--seconds"],
    type=options.SECONDS,
    metavar="S",
    help="Seconds for each search (default 20), and for each proof (default 600).",
)
@options.memory(4096)
@options.solver
@options.evidence
@options.verbose
@options.json
def max_difference(
    x: Architecture,
    y: Architecture,
    name: str,
    other: str | None,
    chain: int | None,
    changes: tuple[options.ParameterChange, ...],
    where: tuple[str, ...],
    searches: int,
    jobs: int | None,
    cluster: str | None,
    proving: bool,
    timeout: float | None,
    memory: int,
    solvers: tuple[str, ...],
    evidence: Path | None,
    no_cache: bool,
    verbose: bool,
    as_json: bool,
) -> int:
    """Find how far apart two instructions' results are: at most, and on the input found.

    Relative to σ = w(c) + Σ w(a)·w(b), w(x) = max(|x|, the least normal number). A second INSTRUCTION is that of the
    second ARCH, if it has another there; --k is about both, --replace about the second. --where is about the inputs
    that are searched.

    Exit status: 0 an answer, 3 if the bound was to be proved and is not or the time was up before any input was tried,
    2 wrong use.
    """
    left = options.instruction_of(x, name, (), chain)
    right = options.instruction_of(y, other or name, changes, chain)
    with options.remembering_option(evidence, no_cache) as store:

        def ask() -> Apart:
            with options.asked_workers(cluster, jobs) as executor:
                return _asked(left, right, where, (searches, executor), proving, timeout, memory, solvers)

        said = [*(["--prove"] if proving else []), *([f"--searches {searches}"] if searches > 1 else [])]
        question = RecallKey("max-difference", (left, right), *where, *said, *solvers)
        kept = store if evidence is None else None
        found = question.ask(kept, timeout or _SEARCHED, ask, whole=_is_whole, improvable=True)
    text = json.dumps(found.to_json(), indent=2) if as_json else told(found, verbose)
    return answered(text, SETTLED if isinstance(found, Recalled) or _is_answer(found) else UNKNOWN)


def _asked(
    left: Instruction,
    right: Instruction,
    where: tuple[str, ...],
    searching: tuple[int, Executor | None],
    proving: bool,
    timeout: float | None,
    memory: int,
    solvers: tuple[str, ...],
) -> Apart:
    from mmaformal.queries.find_difference import IncomparableError
    from mmaformal.queries.max_difference import max_difference as query

    try:
        with Status() as status:
            return query(
                left,
                right,
                where=where,
                searches=searching[0],
                executor=searching[1],
                prove=proving,
                timeout=timeout or _SEARCHED,
                proof_timeout=timeout or _PROVED,
                memory=memory,
                solver=solvers or None,
                progress=status.show,
            )
    except IncomparableError as error:
        raise UsageError(options.made_comparable(left, right) or str(error)) from None
    except ValueError as error:
        raise UsageError(str(error)) from None


def _is_answer(found: Apart) -> bool:
    """Whether inputs were searched, and the bound proved if it was to be."""
    from mmaformal.solver.answers import Unknown

    return found.searched and not isinstance(found.proof, Unknown)


def _is_whole(found: Apart) -> bool:
    """Whether nothing of the answer is missing for want of time."""
    return _is_answer(found) and (found.random is not None or found.witness is None)
