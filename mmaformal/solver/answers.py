"""What a query answers, and the evidence it gives.

A verdict is never a bare bool: `Different` carries a witness that was re-run, `Equal` a proof whose every obligation
can be solved again, `Unknown` says why and what was proved on the way.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from mmaformal.solver.evidence import digest
from mmaformal.solver.portfolio import Portfolio

if TYPE_CHECKING:
    from mmaformal.witness import Witness


@dataclass(frozen=True)
class Obligation:
    """One statement that was proved: its SMT-LIB 2 script, which asserts the opposite, is unsatisfiable."""

    name: str  #: a few words, unique in its proof
    statement: str  #: what holds for all inputs, in words
    script: str  #: SMT-LIB 2, ends with (check-sat); the answer is `unsat`
    solver: str
    version: str
    seconds: float
    memory: int = 0  #: the most that the solver's process held, in bytes; 0 if not known

    @property
    def digest(self) -> str:
        """SHA-256 of the script."""
        return digest(self.script)

    def to_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "statement": self.statement,
            "solver": self.solver,
            "version": self.version,
            "seconds": round(self.seconds, 3),
            "memory": self.memory,
            "sha256": self.digest,
        }

    def __str__(self) -> str:
        return f"{self.statement}  [{self.solver} {self.version}, {self.seconds:.2f} s]"


@dataclass(frozen=True)
class Proof:
    """Obligations that together give the conclusion; the last one is the conclusion itself, under the others."""

    obligations: tuple[Obligation, ...]

    def __str__(self) -> str:
        return "\n".join(f"  {i}. {o}" for i, o in enumerate(self.obligations, 1))

    def to_json(self) -> dict[str, Any]:
        return {"obligations": [o.to_json() for o in self.obligations]}

    def write_smtlib(self, folder: str | Path) -> list[Path]:
        """Write each obligation as a file that stock z3, Bitwuzla and cvc5 answer with `unsat`."""
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        paths = []
        for i, obligation in enumerate(self.obligations, 1):
            path = folder / f"{i:02d}-{re.sub(r'[^a-z0-9]+', '-', obligation.name.lower()).strip('-')}.smt2"
            path.write_text(f"; {obligation.statement}\n{obligation.script}")
            paths.append(path)
        return paths

    def confirm(self, backend: str, timeout: float = 600.0) -> dict[str, str]:
        """Solve every obligation again with one solver; returns name → `unsat`, or what it said instead.

        Raises NoSolverError if that solver is not installed.
        """
        with Portfolio([backend]) as portfolio:
            verdicts = {}
            for obligation in self.obligations:
                outcome = portfolio.ask(obligation.script, {}, timeout)
                verdicts[obligation.name] = (
                    outcome.verdict if outcome.verdict != "unknown" else f"unknown: {outcome.why}"
                )
            return verdicts


class Answer:
    """Base of all answers: `Different` or `Equal`, `Holds` or `Fails`, or `Unknown`."""

    question: str
    seconds: float

    def __bool__(self) -> bool:
        raise TypeError(
            f"{type(self).__name__} is not true or false: ask for its type, as in isinstance(answer, Equal)"
        )

    def to_json(self) -> dict[str, Any]:
        raise NotImplementedError


@dataclass(frozen=True)
class Different(Answer):
    """The two sides differ; `witness` is an input on which they do, re-run through both executables."""

    question: str
    witness: Witness
    minimality: tuple[str, ...]  #: per objective: proved minimal, or only the best found, and why
    obligations: tuple[Obligation, ...]  #: what was proved on the way: that no smaller witness exists
    seconds: float

    def to_json(self) -> dict[str, Any]:
        return {
            "answer": "different",
            "question": self.question,
            "witness": self.witness.to_json(),
            "minimality": list(self.minimality),
            "obligations": [o.to_json() for o in self.obligations],
            "seconds": round(self.seconds, 3),
        }

    def __str__(self) -> str:
        lines = [f"Different: {self.question}  ({self.seconds:.1f} s)", "", str(self.witness), "", "minimal?"]
        return "\n".join(lines + [f"  {line}" for line in self.minimality])


@dataclass(frozen=True)
class Equal(Answer):
    """The two sides agree on every input allowed; `proof` says how that is known."""

    question: str
    proof: Proof
    seconds: float

    def to_json(self) -> dict[str, Any]:
        return {
            "answer": "equal",
            "question": self.question,
            "proof": self.proof.to_json(),
            "seconds": round(self.seconds, 3),
        }

    def __str__(self) -> str:
        return f"Equal: {self.question}  ({self.seconds:.1f} s)\nproved:\n{self.proof}"


class Evidence(Protocol):
    """An input that shows something, re-run before anyone sees it."""

    def to_json(self) -> dict[str, Any]: ...


@dataclass(frozen=True)
class Holds(Answer):
    """A statement about all inputs is true."""

    question: str
    proof: Proof
    seconds: float

    def to_json(self) -> dict[str, Any]:
        return {
            "answer": "holds",
            "question": self.question,
            "proof": self.proof.to_json(),
            "seconds": round(self.seconds, 3),
        }

    def __str__(self) -> str:
        return f"Holds: {self.question}  ({self.seconds:.1f} s)\nproved:\n{self.proof}"


@dataclass(frozen=True)
class Fails(Answer):
    """A statement about all inputs is false: `witness` is an input for which it is not true."""

    question: str
    witness: Evidence
    why: str  #: what is wrong
    seconds: float

    def to_json(self) -> dict[str, Any]:
        return {
            "answer": "fails",
            "question": self.question,
            "witness": self.witness.to_json(),
            "why": self.why,
            "seconds": round(self.seconds, 3),
        }

    def __str__(self) -> str:
        return f"Fails: {self.question}  ({self.seconds:.1f} s)\n{self.why}\n\n{self.witness}"


@dataclass(frozen=True)
class Unknown(Answer):
    """Neither was settled in the limits given."""

    question: str
    why: str
    obligations: tuple[Obligation, ...]  #: what was proved all the same
    seconds: float

    def to_json(self) -> dict[str, Any]:
        return {
            "answer": "unknown",
            "question": self.question,
            "why": self.why,
            "obligations": [o.to_json() for o in self.obligations],
            "seconds": round(self.seconds, 3),
        }

    def __str__(self) -> str:
        lines = [f"Unknown: {self.question}  ({self.seconds:.1f} s)", f"why: {self.why}"]
        if self.obligations:
            lines += ["proved on the way:", str(Proof(_unique(self.obligations)))]
        return "\n".join(lines)


def _unique(obligations: Iterable[Obligation]) -> tuple[Obligation, ...]:
    return tuple({o.digest: o for o in obligations}.values())
