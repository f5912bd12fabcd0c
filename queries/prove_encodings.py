"""Do the two encodings of an instruction agree on every input, and does no operation of the executable one wrap?

    from mmaformal import hopper
    from mmaformal.queries.prove_encodings import prove_encodings
    print(prove_encodings(hopper["HMMA.16816.F32"]))

The executable wing is traced on symbolic lanes: the very functions that run (`lanes`).  Its interfaces are linked to
those of the SMT wing stage by stage (`proof/simulation`, `facts/*/equal.py`), by lemmas over fresh constants
(`lemmas`).  docs/proofs.md has the argument.  Where it fails, an input is looked for on which the wings differ or an
operation wraps; it is re-run in both wings before anyone sees it.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType

from mmaformal.facts.equality import question_of, settle
from mmaformal.instruction import Instruction
from mmaformal.solver.answers import Answer, Holds, Proof
from mmaformal.solver.asking import Asker
from mmaformal.solver.deadline import checked_timeout
from mmaformal.solver.portfolio import Relay
from mmaformal.spec import DotAdd


class Prover:
    """Proves one instruction after another; what was proved for one is not asked again for the next.

    Raises NoSolverError if no solver of `backends` is installed.
    """

    def __init__(self, backends: Sequence[str] | None = None) -> None:
        self.portfolio = Relay(backends)
        self._proofs: dict[DotAdd, Proof] = {}

    def __enter__(self) -> Prover:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        self.portfolio.close()

    def prove(self, instruction: Instruction, timeout: float = 600.0) -> Answer:
        """`Holds`, `Fails` or `Unknown`; `timeout` in seconds for proof and search together."""
        asker = Asker(self.portfolio, checked_timeout(timeout))
        if instruction.spec in self._proofs:
            return Holds(question_of(instruction), self._proofs[instruction.spec], asker.elapsed)
        answer = asker.within(question_of(instruction), lambda: settle(instruction, asker))
        if isinstance(answer, Holds):
            self._proofs[instruction.spec] = answer.proof
        return answer


def prove_encodings(
    instruction: Instruction, *, timeout: float = 600.0, backends: Sequence[str] | None = None
) -> Answer:
    """Prove that both encodings of an instruction agree on every input, at its full K, and that nothing wraps.

    Equal means the same code, NaNs included.  Returns `Holds` with the proof, `Fails` with a `CaseWitness`, or
    `Unknown`.  `timeout` is in seconds.  Raises NoSolverError if no solver of `backends` is installed, WitnessError
    if a solver's model does not hold when re-run.
    """
    with Prover(backends) as prover:
        return prover.prove(instruction, timeout)
