"""Do the two encodings of an instruction agree on every input, and does no operation of the executable one wrap?

    from mmaformal import hopper
    from mmaformal.queries.prove_encodings import prove_encodings
    print(prove_encodings(hopper["HMMA.16816.F32"]))

The executable wing is traced on symbolic lanes: the very functions that run (`lanes`).  Its interfaces are linked to
those of the SMT wing stage by stage (`facts/*/equal.py`), by lemmas over fresh constants (`lemmas`).  docs/proofs.md
has the argument.  Where it fails, an input is looked for on which the wings differ or an operation wraps; it is
re-run in both wings before anyone sees it.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType

import click

from mmaformal.algorithms import DotAdd
from mmaformal.architectures import ARCHITECTURES, Architecture
from mmaformal.cli import options
from mmaformal.cli.running import REFUTED, SETTLED, UNKNOWN, execute
from mmaformal.facts.equality import question_of, settle
from mmaformal.instruction import Instruction
from mmaformal.solver.answers import Answer, Fails, Holds, Proof, Unknown
from mmaformal.solver.asking import Asker
from mmaformal.solver.deadline import checked_timeout
from mmaformal.solver.portfolio import Relay


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


# ---- looking for an input ----------------------------------------------------------------------------------------


@click.command(help=(__doc__ or "").splitlines()[0])
@options.arch(required=False)
@options.name(required=False)
@options.timeout(600.0, "for each instruction")
@options.smtlib
def command(arch: Architecture | None, name: str | None, timeout: float, smtlib: Path | None) -> int:
    architectures = [arch] if arch else list(ARCHITECTURES.values())
    instructions = [arch[name]] if arch and name else [i for each in architectures for i in each]
    status = SETTLED
    start = time.monotonic()
    with Prover() as prover:
        for instruction in instructions:
            answer = prover.prove(instruction, timeout)
            if len(instructions) == 1:
                print(answer)
            else:
                print(f"{type(answer).__name__:8} {instruction.label}  ({answer.seconds:.1f} s)", flush=True)
            if smtlib and isinstance(answer, Holds):
                answer.proof.write_smtlib(smtlib)
            status = max(status, {Holds: SETTLED, Fails: REFUTED, Unknown: UNKNOWN}[type(answer)])
    noun = "instruction" if len(instructions) == 1 else "instructions"
    print(f"{len(instructions)} {noun} in {time.monotonic() - start:.0f} s", file=sys.stderr)
    return status


def main(argv: Sequence[str] | None = None) -> int:
    """`python -m mmaformal.queries.prove_encodings hopper HMMA.16816.F32`; without an instruction, all of them.

    Returns 0 if every answer is `Holds`, 1 if one is `Fails`, 3 if one is `Unknown`.
    """
    return execute(command, sys.argv[1:] if argv is None else argv, "prove_encodings")


if __name__ == "__main__":
    sys.exit(main())
