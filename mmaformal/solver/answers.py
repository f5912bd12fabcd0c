"""Answers to queries, and the evidence that they give.

A verdict is never a bare bool: `Different` carries a witness that was re-run, `Equal` a proof whose every obligation
can be solved again, `Unknown` says why and what was proved on the way.

`str` of an answer is for reading: the verdict, its numbers and its time in a few lines, a witness in full.  The
obligations, of which there may be a hundred, are in `verbose()`; `repr` is a few lines of what a prompt can bear.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import InitVar, dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from mmaformal.display import (
    Tabular,
    clipped,
    counted,
    escaped,
    html_folded,
    html_table,
    html_text,
    html_title,
    minimality_lines,
)
from mmaformal.result import Result
from mmaformal.solver.confirming import Question, confirming, others, put
from mmaformal.solver.evidence import digest
from mmaformal.solver.portfolio import Outcome, Portfolio

if TYPE_CHECKING:
    from mmaformal.witness import Witness


_KEYS = {"mmaformal.proof.kernel": object(), "mmaformal.solver.asking": object()}


def made_by(module: str) -> object:
    """The key with which a module makes what was proved: the asker obligations, the kernel proofs.

    Raises TypeError for any other module.
    """
    if module not in _KEYS:
        raise TypeError(
            f"{module} proves nothing: mmaformal.solver.asking makes obligations, mmaformal.proof.kernel proofs"
        )
    return _KEYS[module]


@dataclass(frozen=True)
class Obligation:
    """One statement that was proved: its SMT-LIB 2 script, which asserts the opposite, is unsatisfiable.

    Only the asker makes one, of a solver's answer (`mmaformal.solver.asking`).  Raises TypeError for anybody else; so
    `dataclasses.replace` does too.
    """

    name: str  #: a few words; several lemmas of a proof may have one name
    statement: str  #: what holds for all inputs, in words
    script: str  #: SMT-LIB 2, ends with (check-sat); the answer is `unsat`
    solver: str
    version: str
    seconds: float
    memory: int = 0  #: the most that the solver's process held, in bytes; 0 if not known
    #: whether the statement tells all that the script asserts; a theorem's lemma, and a claim proved from others, has
    #: premises besides, and does not prove its words
    whole: bool = field(default=False, compare=False)
    key: InitVar[object] = None

    def __init_subclass__(cls) -> None:
        raise TypeError("obligations have no subclasses, which anybody could make")

    def __post_init__(self, key: object) -> None:
        if key is not _KEYS["mmaformal.solver.asking"]:
            raise TypeError(
                "obligations are made by mmaformal.solver.asking alone, of what a solver answered"
            )

    @property
    def digest(self) -> str:
        """SHA-256 of the script."""
        return digest(self.script)

    def to_json(self) -> dict[str, object]:
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

    def __repr__(self) -> str:
        return f"<Obligation {clipped(str(self))}>"


@dataclass(frozen=True)
class Obligations(Tabular):
    """A list of obligations that were proved, whatever it is for."""

    obligations: tuple[Obligation, ...]

    def __str__(self) -> str:
        return "\n".join(f"  {i}. {o}" for i, o in enumerate(self.obligations, 1))

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.summary}>"

    def _repr_html_(self) -> str:
        return html_folded(f"{type(self).__name__}: {self.summary}", self._html_table())

    def _html_table(self) -> str:
        head = "", "statement", "solver", "seconds", "SHA-256"
        rows = [
            (i, o.statement, f"{o.solver} {o.version}", f"{o.seconds:.2f}", f"{o.digest[:12]}…")
            for i, o in enumerate(self.obligations, 1)
        ]
        return html_table(head, rows, "verbose(), table(), write_smtlib(folder)")

    @property
    def summary(self) -> str:
        """`12 obligations (bitwuzla 0.9.1, z3 4.13.4)`."""
        solvers = sorted({f"{o.solver} {o.version}".strip() for o in self.obligations} - {""})
        return counted(len(self.obligations), "obligation") + (f" ({', '.join(solvers)})" if solvers else "")

    def rows(self) -> list[dict[str, object]]:
        """A dict of plain values for each obligation."""
        return [o.to_json() for o in self.obligations]

    def to_json(self) -> dict[str, object]:
        return {"obligations": [o.to_json() for o in self.obligations]}

    def write_smtlib(self, folder: str | Path) -> list[Path]:
        """Write each obligation as a file that stock z3, Bitwuzla and cvc5 answer with `unsat`."""
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        paths = []
        for i, obligation in enumerate(self.obligations, 1):
            path = folder / f"{i:02d}-{re.sub(r'[^a-z0-9]+', '-', obligation.name.lower()).strip('-')}.smt2"
            path.write_text(f"; {obligation.statement}\n{obligation.script}", encoding="utf-8")
            paths.append(path)
        return paths

    def confirm(self, backend: str | None = None, timeout: float = 600.0) -> dict[str, str]:
        """Have every obligation solved again; returns name → `unsat`, or what was said instead.

        One solver does it all, or, where none is named, any of those that did not prove the obligation before: each
        for a moment first, then for longer, then in cases (`confirming`), within `timeout` seconds for each
        obligation.  Raises NoSolverError if there is none.
        """
        with ExitStack() as stack:
            portfolios: dict[str, Portfolio] = {}

            def ask(question: Question) -> Outcome:
                if question.solver not in portfolios:
                    portfolios[question.solver] = stack.enter_context(Portfolio([question.solver]))
                return portfolios[question.solver].ask(question.script, {}, question.limit)

            verdicts: dict[str, str] = {}
            for obligation in self.obligations:
                solvers = others(obligation.solver) if backend is None else [backend]
                said = put(confirming(obligation.script, solvers, timeout), ask)
                # of one name, the first that is not confirmed
                if verdicts.get(obligation.name, "unsat") == "unsat":
                    verdicts[obligation.name] = str(said) if said.verdict == "unknown" else said.verdict
            return verdicts


@dataclass(frozen=True, repr=False)
class Proof(Obligations):
    """Obligations that together give the conclusion; the last one is the conclusion itself, under the others.

    Only the kernel makes one (`mmaformal.proof.kernel`), and of obligations.  Raises TypeError for anything else.
    """

    rules: tuple[str, ...] = ()  #: what was inferred by more than propositional logic, each a sentence
    key: InitVar[object] = None

    def __init_subclass__(cls) -> None:
        raise TypeError("proofs have no subclasses, which anybody could make")

    def __post_init__(self, key: object) -> None:
        if key is not _KEYS["mmaformal.proof.kernel"]:
            raise TypeError("proofs are made by mmaformal.proof.kernel alone")
        if not self.obligations or not all(isinstance(each, Obligation) for each in self.obligations):
            raise TypeError("a proof is made of obligations, of one at least")

    def __str__(self) -> str:
        return "\n".join([super().__str__(), *(f"  by the rule: {rule}" for rule in self.rules)])

    def to_json(self) -> dict[str, object]:
        return super().to_json() | ({"rules": list(self.rules)} if self.rules else {})


_LONG = 48  #: bits of a denominator above which nobody reads the digits


def _exactly(x: Fraction) -> str:
    """A fraction; one of a large power of two by what it lacks to the next integer."""
    bits = x.denominator.bit_length() - 1
    if bits <= _LONG or x.denominator != 1 << bits:
        return str(x)
    return f"{math.ceil(x)} − {(math.ceil(x) - x).numerator}/2^{bits}"


@dataclass(frozen=True)
class Number:
    """A number that an answer is about, with what it means: how many bits, how large an error."""

    name: str  #: as in the statement: `n`, `F`
    value: Fraction | int  #: exactly
    meaning: str  #: a few words, with the unit

    def __float__(self) -> float:
        return float(self.value)

    @property
    def text(self) -> str:
        """`n = 15.99999`: seven significant digits."""
        return f"{self.name} = {float(self.value):.7g}"

    def to_json(self) -> dict[str, object]:
        return {"name": self.name, "value": str(self.value), "float": float(self), "meaning": self.meaning}

    def __str__(self) -> str:
        short = f"{float(self.value):.7g}"
        exactly = "" if Fraction(short) == self.value else f" (exactly {_exactly(Fraction(self.value))})"
        return f"{self.text}{exactly}: {self.meaning}"

    def __repr__(self) -> str:
        return f"<Number {clipped(str(self))}>"


class Answer(Result):
    """Base of all answers: `Different` or `Equal`, `Holds` or `Fails`, or `Unknown`."""

    question: str
    seconds: float
    numbers: tuple[Number, ...] = ()

    def __bool__(self) -> bool:
        raise TypeError(
            f"{type(self).__name__} is not true or false: ask for its type, as in isinstance(answer, Equal)"
        )

    @property
    def verdict(self) -> str:
        """`different`, `equal`, `holds`, `fails` or `unknown`."""
        return type(self).__name__.lower()

    @property
    def number(self) -> Number | None:
        """The first of `numbers`: what `accumulator-width`, `error-bound` and `lossless-width` find; None elsewhere."""
        return self.numbers[0] if self.numbers else None

    @property
    def evidence(self) -> Obligations:
        """All that was proved for this answer."""
        proof = getattr(self, "proof", None)
        if isinstance(proof, Proof):
            return proof
        holder = self if hasattr(self, "obligations") else getattr(self, "witness", None)
        return Obligations(_unique(getattr(holder, "obligations", ())))

    def to_json(self) -> dict[str, object]:
        raise NotImplementedError

    def _text(self, whole: bool) -> str:
        """The answer for reading; the `whole` witness, or the first part of one that is long."""
        raise NotImplementedError

    def __str__(self) -> str:
        return self._text(whole=False)

    def verbose(self) -> str:
        """`str` of the answer with the whole witness, what its proof failed at, and every obligation."""
        proof, failure = self.evidence, getattr(self, "failure", None)
        parts = [self._text(whole=True), *([str(failure)] if failure is not None else [])]
        return "\n".join([*parts, *([f"proved:\n{proof}"] if proof.obligations else [])])

    def write_smtlib(self, folder: str | Path) -> list[Path]:
        """Write what was proved (`Proof.write_smtlib`), and the claim that was not as `failing.smt2`."""
        failure: Failed | None = getattr(self, "failure", None)
        return [*self.evidence.write_smtlib(folder), *([failure.write_smtlib(folder)] if failure else [])]

    def _failure_json(self) -> dict[str, object]:
        failure: Failed | None = getattr(self, "failure", None)
        return {"failed_at": failure.to_json()} if failure is not None else {}

    def rows(self) -> list[dict[str, object]]:
        """Its obligations, a dict of plain values for each."""
        return self.evidence.rows()

    @property
    def headline(self) -> str:
        """The words of an answer on the question, after its verdict."""
        return self.question

    def _first_line(self) -> str:
        return f"{type(self).__name__}: {self.headline}  ({self.seconds:.1f} s)"

    def _numbers_json(self) -> dict[str, object]:
        return {"numbers": [each.to_json() for each in self.numbers]} if self.numbers else {}

    def _repr_lines(self) -> list[str]:
        """Return what a repr says after its first line: two lines at most."""
        return []

    def __repr__(self) -> str:
        head = f"{type(self).__name__}: {clipped(self.headline)} ({self.seconds:.1f} s)"
        return "<" + "\n  ".join([head, *(clipped(line) for line in self._repr_lines()[:2])]) + ">"

    def _html_lines(self) -> list[str]:
        """Return what the HTML says between the title and the proof, as HTML."""
        return []

    def _repr_html_(self) -> str:
        parts = [html_title(type(self).__name__, self.headline, f"{self.seconds:.1f} s"), *self._html_lines()]
        proof = self.evidence
        if proof.obligations:
            parts.append(html_folded(f"proved: {proof.summary}", proof._html_table()))
        return "".join(parts)


def _html_list(lines: Iterable[object]) -> str:
    return "<ul>" + "".join(f"<li>{escaped(line)}</li>" for line in lines) + "</ul>"


def _witness_text(witness: object, whole: bool) -> str:
    verbose = getattr(witness, "verbose", None)
    return verbose() if whole and verbose is not None else str(witness)


def _html_of(evidence: object) -> str:
    own = getattr(evidence, "_repr_html_", None)
    return own() if own is not None else html_text(str(evidence))


@dataclass(frozen=True, repr=False)
class Different(Answer):
    """The two sides differ; `witness` is an input on which they do, re-run through both executables."""

    question: str
    witness: Witness
    minimality: tuple[str, ...]  #: per objective: proved minimal, or only the best found, and why
    obligations: tuple[Obligation, ...]  #: what was proved on the way: that no smaller witness exists
    seconds: float

    @property
    def headline(self) -> str:
        """The question, whether one is the other, answered: `X ≠ Y`."""
        return self.question.replace(" = ", " ≠ ", 1)

    def to_json(self) -> dict[str, object]:
        return {
            "answer": "different",
            "question": self.question,
            "witness": self.witness.to_json(),
            "minimality": list(self.minimality),
            "obligations": [o.to_json() for o in self.obligations],
            "seconds": round(self.seconds, 3),
        }

    def _text(self, whole: bool) -> str:
        lines = [self._first_line(), "", _witness_text(self.witness, whole), ""]
        return "\n".join(lines + minimality_lines(self.minimality))

    def _repr_lines(self) -> list[str]:
        return [self.witness.summary, "print(answer) tells where they part; answer.witness is the input"]

    def _html_lines(self) -> list[str]:
        return [_html_of(self.witness), html_folded("minimal?", _html_list(self.minimality))]


@dataclass(frozen=True, repr=False)
class Equal(Answer):
    """The two sides agree on every input allowed; `proof` says how that is known."""

    question: str
    proof: Proof
    seconds: float

    def __post_init__(self) -> None:
        _demand_proof(self.proof)

    def to_json(self) -> dict[str, object]:
        return {
            "answer": "equal",
            "question": self.question,
            "proof": self.proof.to_json(),
            "seconds": round(self.seconds, 3),
        }

    def _text(self, whole: bool) -> str:
        lines = [self._first_line(), f"proved: {self.proof.summary}", *_by_rules(self.proof)]
        return "\n  ".join(lines)

    def _repr_lines(self) -> list[str]:
        return [f"proved: {self.proof.summary}"]

    def _html_lines(self) -> list[str]:
        return [_html_list(_by_rules(self.proof))] if self.proof.rules else []


def _demand_proof(proof: object) -> None:
    """Raises TypeError for what is no proof."""
    if not isinstance(proof, Proof):
        raise TypeError(f"it takes a proof to say that something holds, not {proof!r}")


def _by_rules(proof: Proof) -> list[str]:
    return [f"by the rule: {each}" for each in proof.rules]


class Evidence(Protocol):
    """An input that shows something, re-run before anyone sees it."""

    def to_json(self) -> dict[str, object]: ...


class Failed(Protocol):
    """The claim that a proof ended at (`mmaformal.proof.failure.Failure`)."""

    def to_json(self) -> dict[str, object]: ...

    def write_smtlib(self, folder: str | Path) -> Path: ...


@dataclass(frozen=True, repr=False)
class Holds(Answer):
    """A statement about all inputs is true."""

    question: str
    proof: Proof
    seconds: float
    numbers: tuple[Number, ...] = ()  #: those in the statement
    notes: tuple[str, ...] = ()  #: what else was found, such as an input that reaches a bound; a line each

    def __post_init__(self) -> None:
        _demand_proof(self.proof)

    def to_json(self) -> dict[str, object]:
        return {
            "answer": "holds",
            "question": self.question,
            **self._numbers_json(),
            **({"notes": list(self.notes)} if self.notes else {}),
            "proof": self.proof.to_json(),
            "seconds": round(self.seconds, 3),
        }

    def _text(self, whole: bool) -> str:
        lines = [f"proved: {self.proof.summary}", *_by_rules(self.proof)]
        return "\n  ".join([self._first_line(), *self._told(), *lines])

    def _told(self) -> list[str]:
        return [*map(str, self.numbers), *self.notes]

    def _repr_lines(self) -> list[str]:
        numbers = [", ".join(each.text for each in self.numbers)] if self.numbers else []
        return [*numbers, f"proved: {self.proof.summary}"]

    def _html_lines(self) -> list[str]:
        told = [*self._told(), *_by_rules(self.proof)]
        return [_html_list(told)] if told else []


@dataclass(frozen=True, repr=False)
class Fails(Answer):
    """A statement about all inputs is false: `witness` is an input for which it is not true."""

    question: str
    witness: Evidence
    why: str  #: what is wrong
    seconds: float
    numbers: tuple[Number, ...] = ()  #: those in the statement
    failure: Failed | None = None  #: what the proof ended at, if one was tried

    @property
    def headline(self) -> str:
        """The statement, said to be false."""
        about, colon, statement = self.question.partition(": ")
        return f"not true of {about}: {statement}" if colon else f"it is not true that {self.question}"

    def to_json(self) -> dict[str, object]:
        return {
            "answer": "fails",
            "question": self.question,
            **self._numbers_json(),
            "witness": self.witness.to_json(),
            "why": self.why,
            **self._failure_json(),
            "seconds": round(self.seconds, 3),
        }

    def _text(self, whole: bool) -> str:
        witness = _witness_text(self.witness, whole)
        return "\n".join([self._first_line(), self.why, *map(str, self.numbers), "", witness])

    def _repr_lines(self) -> list[str]:
        summary = getattr(self.witness, "summary", None)
        return [self.why, *([summary] if isinstance(summary, str) else [])]

    def _html_lines(self) -> list[str]:
        parts = [_html_list([self.why, *self.numbers]), _html_of(self.witness)]
        return [
            *parts,
            *([html_folded("where the proof ended", html_text(str(self.failure)))] if self.failure else []),
        ]


@dataclass(frozen=True, repr=False)
class Unknown(Answer):
    """Neither was settled in the limits given."""

    question: str
    why: str
    obligations: tuple[Obligation, ...]  #: what was proved all the same
    seconds: float
    failure: Failed | None = None  #: what the proof ended at, if one was tried

    def to_json(self) -> dict[str, object]:
        return {
            "answer": "unknown",
            "question": self.question,
            "why": self.why,
            **self._failure_json(),
            "obligations": [o.to_json() for o in self.obligations],
            "seconds": round(self.seconds, 3),
        }

    def _text(self, whole: bool) -> str:
        lines = [self._first_line(), f"  why: {self.why}"]
        return "\n".join(
            lines + ([f"  proved on the way: {self.evidence.summary}"] if self.obligations else [])
        )

    def _repr_lines(self) -> list[str]:
        return [f"why: {self.why}"]

    def _html_lines(self) -> list[str]:
        return [_html_list([f"why: {self.why}"])]


def _unique(obligations: Iterable[Obligation]) -> tuple[Obligation, ...]:
    return tuple({o.digest: o for o in obligations}.values())
