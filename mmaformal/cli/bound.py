"""`mmaformal bound`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from mmaformal.architectures import Architecture
from mmaformal.cli import options
from mmaformal.cli.recall import RecallKey
from mmaformal.cli.running import SETTLED, UNKNOWN, UsageError, wrong_use
from mmaformal.cli.solving import Solving, solving
from mmaformal.cli.terminal import Status
from mmaformal.formats import FORMATS
from mmaformal.instruction import Instruction

if TYPE_CHECKING:
    from mmaformal.solver.answers import Answer


@click.command()
@options.arch()
@options.name()
@click.option(
    "--k",
    "K",
    cls=options.Renamed,
    old=["--chain"],
    type=options.PRODUCTS,
    metavar="K",
    help="Products in all (default: of one instruction).",
)
@click.option(
    "--promote-every", type=click.IntRange(1), metavar="N", help="Added to fp32 after N instructions."
)
@click.option("--d-format", metavar="FORMAT", help="Rounded to it in the end, to nearest (bf16, fp16, …).")
@click.option(
    "--within", type=click.FloatRange(0, min_open=True), metavar="F", help="Say how often to promote."
)
@click.option(
    "--least", type=int, metavar="E", help="Of programs: factors count as 2^E at least (default: its own E)."
)
@options.replace
@options.model
@solving(600.0)
def bound(
    arch: Architecture,
    name: str,
    K: int | None,
    promote_every: int | None,
    d_format: str | None,
    within: float | None,
    least: int | None,
    changes: tuple[options.ParameterChange, ...],
    request: Solving,
) -> int:
    """Prove how far a product of K on an instruction is from the exact one, at most, from the bound of its steps.

    Relative to w(c) + Σ w(a)·w(b), w(x) = max(|x|, the least normal number), where all results are finite.

    With --within F: after how many instructions an accumulator is to be added to a total in fp32 at most, for the bound
    to be F or less, and that bound.

    Of a program (`mmaformal bound emulation 'ootomo(hopper HMMA.16816.F32)'`), from the bound of its unit and of words:
    α · Σ w(a)·w(b) + β · w(c) + γ, w(a) = max(|a|, 2^E).

    Exit status: 0 Holds, 3 Unknown, 2 wrong use.
    """
    instruction = options.instruction_of(arch, name, changes, None)
    of_program = instruction.parameters.is_program
    if d_format is not None and d_format not in FORMATS:
        raise UsageError(f"no format {d_format!r}; there are {', '.join(FORMATS)}")
    if of_program and d_format is not None:
        raise UsageError(f"{instruction.label} is a program, and its d is of {instruction.d_format}")
    if of_program and (promote_every or within is not None):
        raise UsageError(
            f"{instruction.label} says itself where its sums go: `promoted(…, every=N)` is a program"
        )
    if least is not None and not of_program:
        raise UsageError(f"{instruction.label} is no program, so it cuts no words")
    if within is not None:
        promote_every = _promotion(instruction, K or instruction.k, within, promote_every)

    def ask() -> Answer:
        return _asked(instruction, K, promote_every, d_format, least, request)

    words = f"K={K}", f"promote={promote_every}", f"d={d_format}", f"least={least}", *request.solvers
    answer = request.recall(RecallKey("bound", (instruction,), *words), ask)
    request.write_smtlib(answer)
    return request.show(answer, SETTLED if answer.verdict == "holds" else UNKNOWN)


def _asked(
    instruction: Instruction,
    K: int | None,
    promote_every: int | None,
    d_format: str | None,
    least: int | None,
    request: Solving,
) -> Answer:
    from mmaformal.queries import bound as query
    from mmaformal.solver.asking import watching
    from mmaformal.solver.portfolio import LazyPortfolio
    from mmaformal.studies.emulation import program_bound

    timeout = request.timeout
    portfolio = LazyPortfolio(request.solvers or None, request.memory)
    with portfolio, Status() as status, watching(status.show), wrong_use(ValueError):
        if instruction.parameters.is_program:
            return program_bound.of_program(instruction, portfolio, K, least=least, timeout=timeout)
        fmt = None if d_format is None else FORMATS[d_format]
        return query.of_instruction(
            instruction, portfolio, K, promote_every=promote_every, d_format=fmt, timeout=timeout
        )


def _promotion(instruction: Instruction, K: int, within: float, promote_every: int | None) -> int | None:
    """How often to promote, at most; None for never."""
    from mmaformal.analysis.units import Unit
    from mmaformal.queries.bound import most_promoted

    if promote_every is not None:
        raise UsageError("--within says how often to promote: leave out either it or --promote-every")
    with wrong_use(ValueError):
        every = most_promoted(instruction, K, within)
        alone = Unit.of(instruction).factor(K) <= within
    if every is None and not alone:
        raise UsageError(f"{instruction.label}: no promotion keeps {K} products within {within:g}")
    return every
