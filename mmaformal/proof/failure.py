"""Why a proof failed: the claim, where it is argued, and values for which it does not hold, named as interfaces.

A lemma is about fresh constants that stand for terms of the encodings' traces.  Where a solver refutes it, its model
has values of those constants; here they get back the names of the interfaces that they were cut at.  Such values need
not come from any input: what makes them impossible may have been cut away.  So they tell where to look, and nothing is
concluded from them.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

import z3

from mmaformal.display import ShortRepr, clipped
from mmaformal.lanes import SymbolicFlag, SymbolicLane
from mmaformal.solver.answers import Answer, Failed, Fails, Unknown
from mmaformal.solver.asking import Asker, constants_of
from mmaformal.solver.deadline import Deadline
from mmaformal.solver.evidence import digest
from mmaformal.solver.portfolio import Outcome
from mmaformal.solver.script import smtlib

if TYPE_CHECKING:
    from mmaformal.proof.kernel import Lemma, Theorem

#: Seconds for the values of a claim that was refuted before.
_PATIENCE = 5.0

#: The most values that are told: of more, the first.
_TOLD = 24

#: The files that only pass a claim on; the line of an argument is outside of them.
_PASSING_ON = (
    "kernel.py",
    "lemmas.py",
    "related_runs.py",
    "related_stages.py",
    "related_steps.py",
    "failure.py",
    "composition.py",
    "proving.py",
)


@dataclass(frozen=True, repr=False)
class Failure(ShortRepr):
    """The claim that a proof ended at."""

    stage: str
    claim: str  #: in words
    refuted: bool  #: if not, it was not settled
    why: str  #: if it was not settled
    place: str  #: file, line and function of the argument
    values: tuple[tuple[str, str], ...]  #: interfaces, and values for which the claim does not hold
    script: str  #: SMT-LIB 2, satisfiable if refuted

    def to_json(self) -> dict[str, object]:
        return {
            "stage": self.stage,
            "claim": self.claim,
            "refuted": self.refuted,
            "why": self.why,
            "place": self.place,
            "values": dict(self.values),
            "sha256": digest(self.script),
        }

    def write_smtlib(self, folder: str | Path) -> Path:
        """Write the script as `failing.smt2`, and return its path."""
        path = Path(folder) / "failing.smt2"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"; not proved: {self.claim}\n{self.script}", encoding="utf-8")
        return path

    def __str__(self) -> str:
        verdict = "refuted" if self.refuted else f"not settled ({self.why})"
        lines = [f"where the proof failed, {self.stage}: {verdict}", f"  claim:     {self.claim}"]
        lines += [f"  argued at: {self.place}"] if self.place else []
        if self.values:
            lines.append("  it does not hold for these values, cut from where they come from:")
            width = max(len(name) for name, _ in self.values)
            lines += [f"    {name:{width}}  {value}" for name, value in self.values[:_TOLD]]
        if len(self.values) > _TOLD:
            lines.append(f"    … and {len(self.values) - _TOLD} more (--json has them all)")
        return "\n".join(
            [*lines, f"  script:    SHA-256 {digest(self.script)[:12]}…; --smtlib DIR writes it"]
        )


def place() -> str:
    """Where in an argument a claim is made: the caller, but for what passes claims on."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        path = Path(frame.f_code.co_filename)
        if path.name not in _PASSING_ON:
            return f"{path.parent.name}/{path.name}:{frame.f_lineno}, {frame.f_code.co_name}"
        frame = frame.f_back
    return ""


def labelled(prefix: str, x: object) -> Iterator[tuple[str, z3.ExprRef]]:
    """The terms in nested tuples and dataclasses, with the way to them: `smt.steps[0].products[3].exponent`."""
    if isinstance(x, z3.ExprRef):
        yield prefix, x
    elif isinstance(x, (SymbolicLane, SymbolicFlag)):
        yield prefix, x.term
    elif isinstance(x, tuple) and hasattr(x, "_fields"):
        for name in x._fields:
            yield from labelled(f"{prefix}.{name}", getattr(x, name))
    elif is_dataclass(x):
        for each in fields(x):
            yield from labelled(f"{prefix}.{each.name}", getattr(x, each.name))
    elif isinstance(x, (tuple, list)):
        for i, each in enumerate(x):
            yield from labelled(f"{prefix}[{i}]", each)


def examine(
    asker: Asker,
    refuted: z3.BoolRef,
    cut: Sequence[tuple[z3.ExprRef, z3.ExprRef]],
    interfaces: Iterable[tuple[str, z3.ExprRef]],
) -> tuple[tuple[str, str], ...]:
    """Values for which a claim does not hold, by the names of the terms that its constants were cut at.

    `refuted` is the claim's opposite, and `cut` has its constants, by the terms that they stand for.
    """
    names: dict[int, list[str]] = {}
    for name, term in interfaces:
        names.setdefault(term.get_id(), []).append(name)
    bits = {}
    pairs = []
    for _, constant in cut:
        said = str(constant)
        bits[said] = constant.size() if isinstance(constant, z3.BitVecRef) else 1
        if isinstance(constant, z3.BoolRef):
            pairs.append((constant, z3.BitVec(said, 1) == 1))
    question = z3.substitute(refuted, *pairs) if pairs else refuted
    outcome = asker.portfolio.ask(smtlib([question]), bits, _PATIENCE)
    if outcome.verdict != "sat":
        return ()
    return tuple(
        (
            " = ".join(names.get(term.get_id(), [])[:2]) or _unnamed(term),
            _value(term, outcome.model[str(constant)]),
        )
        for term, constant in cut
    )


def failure_of(asker: Asker, theorem: Theorem, lemma: Lemma, outcome: Outcome) -> Failure:
    """Return where a proof ended: a lemma that was refuted, with values, or not settled."""
    refuted = outcome.verdict == "sat"
    terms = {constant.get_id(): term for term, constant in lemma.cut}
    cut = [(terms.get(constant.get_id(), constant), constant) for constant in constants_of(lemma.refuted)]
    return Failure(
        lemma.stage,
        lemma.statement,
        refuted=refuted,
        why=outcome.why,
        place=lemma.place,
        values=examine(asker, lemma.refuted, cut, theorem.interfaces()) if refuted else (),
        script=smtlib([lemma.refuted]),
    )


def _unnamed(term: z3.ExprRef) -> str:
    return clipped(" ".join(str(term.sexpr()[:400]).split()), 40)


def _value(term: z3.ExprRef, value: int) -> str:
    if isinstance(term, z3.BoolRef):
        return "true" if value else "false"
    bits = term.size() if isinstance(term, z3.BitVecRef) else 1
    signed = value - (1 << bits) if bits > 1 and value >> (bits - 1) else value
    return f"{value:#x} = {value}" + (f" ({signed} in two's complement)" if signed < 0 else "")


def with_failure(answer: Answer, asker: Asker) -> Answer:
    """An answer that is no proof with what the last proof ended at that failed with this asker."""
    if asker.failed is None or not isinstance(answer, (Unknown, Fails)):
        return answer
    found: list[Failed | None] = []
    with Deadline(2 * _PATIENCE):
        found.append(asker.failed())
    return replace(answer, failure=found[0]) if found else answer
