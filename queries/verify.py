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

from typing import Self

from mmaformal.architectures.meant import instruction_meant
from mmaformal.checked import Progress, caller
from mmaformal.facts.equality import question_of, settle_equality
from mmaformal.instruction import Instruction
from mmaformal.renamed import keywords, names
from mmaformal.solver.answers import Answer, Holds, Proof
from mmaformal.solver.asking import Asker, watching
from mmaformal.solver.deadline import checked_timeout
from mmaformal.solver.portfolio import DEFAULT_MEMORY, LazyPortfolio
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
    progress: Progress | None = None,
    cache: Cache = False,
) -> Answer:
    """Prove that both encodings of an instruction agree on every input, at its full K, and that nothing wraps.

    Equal means the same code, NaNs included.  Returns `Holds` with the proof, `Fails` with a `CaseWitness`, or
    `Unknown`.  `timeout` is in seconds, `memory` in megabytes for each process of `solver` (default: all that are
    installed); `progress` is called with a line of text for each question; `cache`: as `prove` has it.

    Raises NoSolverError if there is no solver, WitnessError if a solver's model does not hold when re-run.
    """
    caller(progress)
    with remembering(cache), watching(progress), Prover(solver, memory) as prover:
        return prover.prove(instruction_meant(instruction), timeout)


__getattr__ = names(__name__, prove_encodings="verify")
