"""Do the two encodings of an instruction agree on every input, and does no operation of the executable one wrap?

    from mmaformal import hopper
    from mmaformal.queries.verify import verify
    print(verify(hopper["HMMA.16816.F32"]))

The executable encoding is traced on symbolic lanes: the very functions that run (`lanes`).  Its interfaces are
linked to those of the SMT encoding stage by stage (`proof/simulation`; stages of one algorithm alone are linked in
`encodings/*/proofs/`), by lemmas over fresh constants (`lemmas`).  docs/proofs.md has the argument.  Where it fails, an
input is looked for on which the encodings differ or an operation wraps; it is re-run in both encodings before anyone
sees it.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import replace
from typing import Self

from mmaformal.architectures.meant import instruction_meant
from mmaformal.campaign import Campaign
from mmaformal.checked import Progress, caller
from mmaformal.executors import telling_lost_workers, width_of, workers_given
from mmaformal.facts.equality import question_of, settle_equality
from mmaformal.instruction import Instruction
from mmaformal.renamed import keywords, names
from mmaformal.solver.answers import Answer, Holds, Proof, Unknown
from mmaformal.solver.asking import Asker, watching
from mmaformal.solver.deadline import Deadline, checked_timeout
from mmaformal.solver.evidence import current_store
from mmaformal.solver.portfolio import DEFAULT_MEMORY, LazyPortfolio, Portfolio
from mmaformal.solver.session import Cache, Solver, remembering
from mmaformal.spec import DotAdd


class ProverOfMany:
    """Proves one thing after another; what was proved for one is not asked again for the next.

    `memory` in megabytes for each solver process.  Raises NoSolverError if there is no solver.
    """

    def __init__(self, solver: Solver = None, memory: int = DEFAULT_MEMORY) -> None:
        self.portfolio = LazyPortfolio(solver, memory)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.portfolio.close()


class Prover(ProverOfMany):
    """Proves one instruction after another."""

    def __init__(self, solver: Solver = None, memory: int = DEFAULT_MEMORY) -> None:
        super().__init__(solver, memory)
        self._proofs: dict[DotAdd, Proof] = {}

    def prove(self, instruction: Instruction, timeout: float = 600.0) -> Answer:
        """`Holds`, `Fails` or `Unknown`; `timeout` in seconds for proof and search together."""
        asker = Asker(self.portfolio, checked_timeout(timeout))
        if instruction.spec in self._proofs:
            return Holds(question_of(instruction), self._proofs[instruction.spec], asker.elapsed)
        answer = asker.within(question_of(instruction), lambda: settle_equality(instruction, asker))
        if isinstance(answer, Holds):
            self._proofs[instruction.spec] = answer.proof
        return answer


@keywords(backends="solver")
def verify(
    instruction: Instruction | str,
    *,
    timeout: float = 600.0,
    memory: int = DEFAULT_MEMORY,
    solver: Solver = None,
    jobs: int | None = None,
    executor: Executor | None = None,
    progress: Progress | None = None,
    cache: Cache = False,
) -> Answer:
    """Prove that both encodings of an instruction agree on every input, at its full K, and that nothing wraps.

    Equal means the same code, NaNs included.  Returns `Holds` with the proof, `Fails` with a `CaseWitness`, or
    `Unknown`.  `timeout` is in seconds, `memory` in megabytes for each process of `solver` (default: all that are
    installed); `progress` is called with a line of text for each question; `cache`: as `prove` has it.  `jobs` worker
    processes (default: this one), or those of an `executor`, divide the lemmas among each other; then an answer that
    is no proof does not say at which stage it failed, `Answer.failure`.

    Raises NoSolverError if there is no solver, WitnessError if a solver's model does not hold when re-run,
    LostWorkerError.
    """
    caller(progress)
    given = instruction_meant(instruction)
    with (
        remembering(cache),
        watching(progress),
        Prover(solver, memory) as prover,
        workers_given(executor, jobs) as workers,
    ):
        if workers is None:
            return prover.prove(given, timeout)
        return _divided(given, timeout, prover.portfolio, workers, progress)


def _divided(
    instruction: Instruction,
    timeout: float,
    portfolio: Portfolio,
    workers: Executor,
    progress: Progress | None,
) -> Answer:
    """Returns the answer of workers that divide the lemmas, asked of the solvers that a portfolio has."""
    campaign = Campaign(
        [instruction],
        current_store(),
        timeout=checked_timeout(timeout),
        memory=portfolio.memory,
        solver=portfolio.backends,
        told=_told(progress),
    )
    with telling_lost_workers("it is not proved"), Deadline(timeout):
        campaign.run(workers, width_of(workers))
    (goal,) = campaign.goals.values()
    answer = campaign.answer(goal, instruction)
    if isinstance(answer, Unknown) and not goal.done:
        return replace(answer, why=goal.why or "the time given was used up", seconds=timeout)
    return answer


def _told(progress: Progress | None) -> Callable[[Campaign], None]:
    """Returns a function that tells `progress` how far a campaign is, once it is farther."""
    said = [0]

    def told(campaign: Campaign) -> None:
        if progress is not None and len(campaign.outcomes) != said[0]:
            said[0] = len(campaign.outcomes)
            progress(f"{said[0]} of {len(campaign.claims)} obligations")

    return told


__getattr__ = names(__name__, prove_encodings="verify")
