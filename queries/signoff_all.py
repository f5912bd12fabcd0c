"""In which ways does a design not compute a model?  Each kind of difference, with its smallest input and its rate.

    print(signoff_all("dpa.sv", volta["HMMA.884.F32.F32"], ports=…))

A kind is what one change of the model explains, of those that `mismatches` knows (`mmaformal.spaces.variants`): rows on
which the design differs from the model, and gives what the model so changed gives.  What no change explains is told by
what is seen: another NaN, a special value, the sign of a zero, another number.  So none hides behind another.

Random rows come first.  What is left is asked of the solvers: whether the design computes the model with all changes,
or whether it differs on an input that is of no kind yet; such an input is added to the rows, and the kinds are found
anew.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeVar

import numpy as np
import z3
from numpy.typing import NDArray

from mmaformal.architectures.meant import instruction_meant
from mmaformal.cases.inputs import Codes, Inputs, Rows
from mmaformal.cases.run import quick_results
from mmaformal.cases.witness import CaseWitness, case_text
from mmaformal.checked import Progress, caller
from mmaformal.display import ShortRepr, counted, minimality_lines
from mmaformal.encodings import smt
from mmaformal.facts.both_encodings import of_both_encodings
from mmaformal.formats import Format
from mmaformal.hardware.ports import PortMap
from mmaformal.hardware.sources import sources_of
from mmaformal.hardware.unread import UnreadProgramError
from mmaformal.instruction import Instruction
from mmaformal.listing import change_text
from mmaformal.proof.kernel import direct
from mmaformal.queries.chance import Some
from mmaformal.queries.comparing import Agreement, Comparing
from mmaformal.queries.constraints import Constraint, as_constraints
from mmaformal.queries.elimination import RecordedRows
from mmaformal.queries.mismatches import Descent
from mmaformal.queries.mismatching_rows import TRIED, stage_of
from mmaformal.queries.sights import SEEN
from mmaformal.queries.signing import Signing, SmallestWrong
from mmaformal.queries.signoff import port_map, read_or_run
from mmaformal.queries.signoff_run import SigningRuns
from mmaformal.renamed import keywords
from mmaformal.result import Result
from mmaformal.solver.answers import Fails, Holds, Proof, Unknown
from mmaformal.solver.asking import Asker
from mmaformal.solver.deadline import Deadline, checked_timeout
from mmaformal.solver.portfolio import DEFAULT_MEMORY
from mmaformal.solver.session import Cache, Solver, session
from mmaformal.spaces.common import Types
from mmaformal.spec import DotAdd, parameter_text
from mmaformal.witness import WitnessError

#: Random rows by which kinds are found: of a design that is compiled, and of one that is not.
_ROWS, _FEW_ROWS = 100_000, 4_000
#: Shares of the time that is left: for finding changes, for each smallest input, and for whether there are other kinds.
_DESCENDING, _EACH, _REST = 0.3, 0.4, 0.7
#: Seconds that reading a design may take, however little time there is, and those below which nothing is asked.
_READING, _LEAST = 60.0, 1.0
_SEED = 5

NamedChange = tuple[str, object]
_S = TypeVar("_S", bound=Comparing)


@dataclass(frozen=True, repr=False)
class DifferenceKind(ShortRepr):
    """One kind of difference."""

    kind: str  #: the stage and what of it, or what is seen
    change: NamedChange | None  #: the parameter of the model and its value that explain it
    rows: int  #: random rows that are of it
    answer: (
        Fails | None
    )  #: the smallest input; None of what several changes explain together, and where time is up

    @property
    def explained(self) -> bool:
        """Whether one change of the model explains it."""
        return self.change is not None


@dataclass(frozen=True, repr=False)
class Kinds(Result):
    """In which ways a design does not compute a model."""

    question: str
    instruction: Instruction  #: the model
    random_rows: int
    kinds: tuple[DifferenceKind, ...]
    rest: Holds | Fails | Unknown | None  #: what is known of there being others
    changed: Instruction | None  #: the model with all changes, where that explains every row
    seconds: float
    complete: bool  #: whether it was found what there is; if not, the time was up, or it was broken off

    def __bool__(self) -> bool:
        """Whether there are any."""
        return bool(self.kinds)

    @property
    def verdict(self) -> str:
        """`fails` if there is a kind; else what signing it off says: `holds` or `unknown`."""
        if self.kinds:
            return "fails"
        return "unknown" if self.rest is None else self.rest.verdict

    @property
    def summary(self) -> str:
        """One line."""
        if not self.kinds:
            return self.question
        count = counted(len(self.kinds), "kind") + " of differences"
        return f"it is not true that {self.question}: {count}  ({self.seconds:.1f} s)"

    def __str__(self) -> str:
        if not self.kinds:
            return str(self.rest) if self.rest is not None else f"Unknown: {self.question}"
        lines = [f"Fails: {self.summary}"]
        for number, each in enumerate(self.kinds, 1):
            first, *others = self._kind_lines(each)
            lines += [f"{number}. {first}", *(f"   {line}" for line in others)]
        return "\n".join([*lines, *self._notes(), self._rest_line()])

    def _kind_lines(self, each: DifferenceKind) -> list[str]:
        rate = f"{each.rows:,} of {counted(self.random_rows, 'random row')}"
        change = change_text(self.instruction.spec, each.change)
        lines = [f"{each.kind}{change}: {rate} ({each.rows / max(self.random_rows, 1):.2g})"]
        if each.answer is None:
            return lines
        witness = each.answer.witness
        assert isinstance(witness, CaseWitness)
        d = self.instruction.d_format
        mine, model = (_told(code, d) for code in witness.results)
        text = case_text(self.instruction.spec, witness.codes)
        lines.append(f"smallest input: {text}: the design gives {mine}, the model {model}")
        return lines + [f"  {line}" for line in minimality_lines(witness.minimality)]

    def _notes(self) -> list[str]:
        found = [each.answer.witness for each in self.kinds if each.answer is not None]
        return list(dict.fromkeys(n for w in found if isinstance(w, CaseWitness) for n in w.notes))

    def _rest_line(self) -> str:
        if isinstance(self.rest, Holds) and self.changed is not None:
            return f"proved: with these changes it is the model for every input: {self.changed.spec.text}"
        if isinstance(self.rest, Holds):
            return "proved: there is no difference of another kind"
        why = self.rest.why if self.rest is not None else "the time was up, or it was broken off"
        return f"whether there are other kinds is not settled: {why}"

    def rows(self) -> list[dict[str, object]]:
        """Returns a dict for each kind: what it is, its rate, and its smallest input."""
        return [
            {
                "kind": each.kind,
                "change": None
                if each.change is None
                else {each.change[0]: parameter_text(each.change[1], each.change[0])},
                "rows": each.rows,
                "rate": each.rows / max(self.random_rows, 1),
                "answer": None if each.answer is None else each.answer.to_json(),
            }
            for each in self.kinds
        ]

    def to_json(self) -> dict[str, object]:
        """Plain values."""
        return {
            "answer": self.verdict,
            "question": self.question,
            "random_rows": self.random_rows,
            "kinds": self.rows(),
            "rest": None if self.rest is None else self.rest.to_json(),
            "changed": None if self.changed is None else self.changed.spec.text,
            "complete": self.complete,
            "seconds": round(self.seconds, 3),
        }


def _told(code: int, fmt: Format) -> str:
    return f"NaN {code:#x}" if fmt.is_nan(code) else fmt.text(code)


@keywords(told="progress")
def signoff_all(
    files: str | Path | Sequence[str | Path],
    instruction: Instruction | str,
    *,
    top: str | None = None,
    defines: Sequence[str] = (),
    parameters: Mapping[str, int | str] | None = None,
    includes: Sequence[str | Path] = (),
    lists: Sequence[str | Path] = (),
    ports: PortMap | Mapping[str, str] | None = None,
    ties: Mapping[str, str | int] | None = None,
    cycles: int | None = None,
    held: bool = False,
    where: Constraint | str | Iterable[Constraint | str] = (),
    alike: Collection[str] = (),
    timeout: float = 600.0,
    memory: int = DEFAULT_MEMORY,
    solver: Solver = None,
    progress: Progress | None = None,
    cache: Cache = False,
) -> Kinds:
    """Find every kind of input on which a design does not compute a model, each with its smallest.

    The arguments are those of `signoff`, and it raises what that raises.  Where the time is up, or at Ctrl-C, the
    answer has what was found until then.
    """
    caller(progress)
    same = Agreement(as_constraints(where), alike)
    if "standard" in alike:
        raise ValueError("kinds are of differences from one model: alike is nan or zero here")
    instruction, say = instruction_meant(instruction), progress or (lambda _: None)
    sources = sources_of(files, top, defines, parameters)
    sources = replace(sources, includes=tuple(map(Path, includes)), lists=tuple(map(Path, lists)))
    said, limit = port_map(ports, ties, cycles), max(checked_timeout(timeout), _READING)
    design = read_or_run(sources, instruction, said, held, limit, progress)
    with session(solver, memory, cache) as portfolio:
        asker = Asker(portfolio, timeout)
        if isinstance(design, UnreadProgramError):
            return _kinds_of(SigningRuns(design, instruction, asker, say, same))
        return _kinds_of(Signing.of(design, instruction, asker, say, same))


def _kinds_of(signed: Signing | SigningRuns) -> Kinds:
    """The kinds of a design that is being signed off, or of a program that is only run."""
    work = _Work(signed)
    try:
        with Deadline(signed.asker.left) as deadline:
            work.run()
        work.complete &= not deadline.expired
    except KeyboardInterrupt:
        work.complete = False
    return Kinds(
        signed.question,
        signed.instruction,
        len(work.rows),
        tuple(work.found.values()),
        work.rest,
        work.changed if work.explains else None,
        signed.asker.elapsed,
        work.complete and work.rest is not None and work.rest.verdict == "holds",
    )


# ---- kinds ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, repr=False)
class _Class(ShortRepr):
    """A kind of difference: a changed model explains it, or none does and a test says what is seen."""

    name: str
    change: NamedChange | None
    explaining: tuple[DotAdd, ...] = ()  #: of these models one gives the design's d
    other: tuple[DotAdd, ...] = ()  #: and none of these
    seen: str = ""  #: which of `SEEN` fits first, if nothing explains it

    def claims(self, signed: Signing, inputs: Inputs, mine: z3.BitVecRef, model: z3.BitVecRef) -> z3.BoolRef:
        """The claim that a case on which the design differs is of it."""

        def gives(spec: DotAdd) -> z3.BoolRef:
            d = smt.dot_add(spec, inputs.a, inputs.b, inputs.c, inputs.scale_a, inputs.scale_b).result
            return z3.Not(signed.differ(mine, d))

        said = [z3.Or([gives(spec) for spec in self.explaining])] if self.explaining else []
        said += [z3.Not(gives(spec)) for spec in self.other]
        if self.seen:
            for name, test in SEEN.items():
                fits = test(mine, model, signed.spec.d_format)
                said.append(fits if name == self.seen else z3.Not(fits))
                if name == self.seen:
                    break
        return z3.And(said)

    def has(
        self, signed: Comparing, rows: Rows, mine: NDArray[np.uint64], model: NDArray[np.uint64]
    ) -> NDArray[np.bool_]:
        """The rows, of those on which the design differs, that are of it."""

        def gives(spec: DotAdd) -> NDArray[np.bool_]:
            d = quick_results(spec, rows)
            return np.asarray(signed.one_of_each(d) == signed.one_of_each(mine))

        found = np.ones(len(rows), np.bool_)
        if self.explaining:
            found &= np.logical_or.reduce([gives(spec) for spec in self.explaining])
        for spec in self.other:
            found &= ~gives(spec)
        if self.seen:
            for name, test in SEEN.items():
                fits = np.broadcast_to(np.asarray(test(mine, model, signed.spec.d_format)), len(rows))
                found &= fits if name == self.seen else ~fits
                if name == self.seen:
                    break
        return found


@dataclass
class _OfKind:
    """Makes of a signing one that looks for a difference of one class, or of none of several."""

    signed: Signing | SigningRuns
    classes: Sequence[_Class]
    none_of_them: bool = False

    def run_with_time(self, seconds: float) -> _NarrowedRuns:
        """The program that is only run, with so much time."""
        made = _NarrowedRuns.__new__(_NarrowedRuns)
        self._narrow(made, seconds)
        return made

    def with_time(self, seconds: float) -> _Narrowed:
        """The signing, with so much time."""
        made = _Narrowed.__new__(_Narrowed)
        self._narrow(made, seconds)
        names = ", ".join(each.name for each in self.classes)
        made.nothing = f"the design is right, but for {names}," if self.none_of_them else f"no {names}"
        if self.none_of_them:
            made.question = f"{self.signed.question}, but for {names}"
        return made

    def _narrow(self, made: _Narrowed | _NarrowedRuns, seconds: float) -> None:
        made.__dict__.update(self.signed.__dict__)
        made.asker = Asker(self.signed.asker.portfolio, seconds)
        made.classes, made.none_of_them = self.classes, self.none_of_them


class _Narrows(Comparing):
    """Looks for differences of some classes alone, or of no class."""

    classes: Sequence[_Class]
    none_of_them: bool

    def is_shown(self, rows: Rows, mine: NDArray[np.uint64], model: NDArray[np.uint64]) -> NDArray[np.bool_]:
        shown = super().is_shown(rows, mine, model)
        where = np.flatnonzero(shown)
        some = (rows.at(where), mine[where], model[where])
        found = np.zeros(len(where), np.bool_)
        for each in self.classes:
            found |= each.has(self, *some)
        shown[where] = ~found if self.none_of_them else found
        return shown


class _NarrowedRuns(_Narrows, SigningRuns):
    """A program that is only run, of which such differences are looked for."""


class _Narrowed(_Narrows, Signing):
    """A signing that looks for such differences."""

    def claims(self, inputs: Inputs, mine: z3.BitVecRef, model: z3.BitVecRef) -> list[z3.BoolRef]:
        found = z3.Or([each.claims(self, inputs, mine, model) for each in self.classes])
        return [*super().claims(inputs, mine, model), z3.Not(found) if self.none_of_them else found]

    def in_both_encodings(self, proof: Proof) -> Holds | Fails | Unknown:
        """The answer where the SMT encodings of the model and of those that explain kinds have a proof."""
        models = [spec for each in self.classes for spec in (*each.explaining, *each.other)]
        notes = (*self.notes, *self.open_nans)
        holds = Holds(self.question, proof, self.asker.elapsed, notes=notes)
        return of_both_encodings(holds, self.instruction, [self.spec, *models], self.asker)


# ---- finding them ---------------------------------------------------------------------------------------------------


@dataclass
class _Work:
    """Findings about a design, step by step, so that they are there when the time is up."""

    signed: Signing | SigningRuns
    found: dict[str, DifferenceKind] = field(default_factory=dict)
    rest: Holds | Fails | Unknown | None = None
    complete: bool = True
    explains: bool = False

    def __post_init__(self) -> None:
        self.asker, self.spec = self.signed.asker, self.signed.spec
        self.changed = self.signed.instruction
        self.rows = Rows.of([])
        self.extra: list[Codes] = []  #: inputs that solvers found

    def run(self) -> None:
        """Rows, kinds, what is left; and anew where an input of no kind is found."""
        signed = self.signed
        signed.check_some_input()
        signed.progress("random rows")
        if isinstance(signed, SigningRuns):
            self.rows = signed.rows_of_all_kinds()
        else:
            self.rows = signed.drawn(_ROWS if signed.compile() else _FEW_ROWS, _SEED)
        while True:
            wrong = signed.wrong(self._all())
            if not wrong.any():
                answer = self._within(signed, 1.0)
                if not isinstance(answer, Fails):
                    self.rest = answer
                    return
                assert isinstance(answer.witness, CaseWitness)
                self.extra.append(answer.witness.codes)
                continue
            classes = self._classes(wrong)
            self._smallest_of(classes, wrong)
            more = self._others(classes)
            if more is None or more in self.extra or "undefined" in self.found:
                return
            self.extra.append(more)

    def _all(self) -> Rows:
        return Rows.join([self.rows, Rows.of(self.extra)]) if self.extra else self.rows

    def _within(self, signed: Signing | SigningRuns, share: float) -> Holds | Fails | Unknown:
        """The answer of signing off with a share of the time that is left."""
        limited = _copied(signed, self.asker.left * share)
        answer = limited.asker.within(limited.question, limited.answer)
        assert isinstance(answer, Holds | Fails | Unknown)
        return answer

    def _classes(self, wrong: NDArray[np.bool_]) -> list[_Class]:
        """Return the kinds that explain rows on which the design is wrong."""
        changes = self._changes(wrong)
        classes = [
            _Class(self._named(name, value), (name, value), (self.spec.replace(**{name: value}),))
            for name, value in changes.items()
            if self._alone(name, value)
        ]
        single = tuple(each.explaining[0] for each in classes)
        if len(changes) > 1:
            together = self.spec.replace(**changes)
            classes.append(_Class("several of these together", None, (together,), single))
            single = (*single, together)
        return [*classes, *(_Class(f"unexplained: {name}", None, (), single, name) for name in SEEN)]

    def _named(self, name: str, value: object) -> str:
        return stage_of(name, value, None if name == "product_order" else self.spec.parameters[name])

    def _alone(self, name: str, value: object) -> bool:
        """Whether a change makes sense alone."""
        try:
            self.spec.replace(**{name: value})
        except ValueError:
            return False
        return True

    def _changes(self, wrong: NDArray[np.bool_]) -> dict[str, object]:
        """The changes of the model that make most rows right, as `mismatches` finds them."""
        rows, types = self._all(), Types.of(self.spec)
        bad, good = np.flatnonzero(wrong), np.flatnonzero(~wrong)
        chosen = [np.concatenate([bad[-len(self.extra) - 1 :], bad[:TRIED]]), good[:TRIED]]
        sides = [rows.at(np.unique(each)) for each in chosen]
        parts = [RecordedRows(side, self._results(side), types, self.spec.k) for side in sides]
        some = Some(parts[0], parts[1], len(bad), len(good))
        descent = Descent(some, self.signed.progress)
        with Deadline(max(self.asker.left, 0) * _DESCENDING):
            descent.from_model(self.spec)
        self.explains = not descent.wrong
        nearest = descent.current if self.explains else descent.beyond_chance()
        changes = descent.named(self.spec, nearest)
        self.changed = self.signed.instruction.replace(**changes) if changes else self.signed.instruction
        return changes

    def _results(self, rows: Rows) -> NDArray[np.uint64]:
        """The design's d, as the model writes it where the two are alike; what is undefined is 0."""
        signed = self.signed
        mine, model = signed.results_known(rows), quick_results(self.spec, rows)
        return np.where(signed.one_of_each(mine) == signed.one_of_each(model), model, mine)

    def _smallest_of(self, classes: Sequence[_Class], wrong: NDArray[np.bool_]) -> None:
        """The kinds that rows are of, with the smallest input of each."""
        rows, where = self._all(), np.flatnonzero(wrong)
        some = rows.at(where)
        mine, model = self.signed.results_known(some), quick_results(self.spec, some)
        before, self.found = self.found, {}
        waiting: list[tuple[str, _Class, Codes]] = []
        for each in classes:
            of_it = each.has(self.signed, some, mine, model)
            of_it &= np.asarray(self.signed.one_of_each(mine) != self.signed.one_of_each(model))
            if not of_it.any():
                continue
            key = f"{each.name} {each.change}"
            known = before.get(key)
            count = int((where[of_it] < len(self.rows)).sum())
            self.found[key] = DifferenceKind(each.name, each.change, count, known.answer if known else None)
            if self.found[key].answer is None and each.name != "several of these together":
                waiting.append((key, each, some[int(np.flatnonzero(of_it)[0])]))
        if not self.found:  # wrong for other values of what is undefined
            self.found["undefined"] = before.get("undefined") or self._undefined(some[0], len(where))
        for place, (key, each, codes) in enumerate(waiting):
            answer = self._least(each, codes, _EACH / (len(waiting) - place) ** 0.5)
            self.found[key] = replace(self.found[key], answer=answer)

    def _undefined(self, codes: Codes, rows: int) -> DifferenceKind:
        """The kind of what depends on signals that the design leaves undefined."""
        limited = _copied(self.signed, self.asker.left * _EACH)
        answer = limited.asker.within(limited.question, lambda: limited.fails(codes))
        return DifferenceKind("what is undefined", None, rows, answer if isinstance(answer, Fails) else None)

    def _least(self, each: _Class, codes: Codes, share: float) -> Fails | None:
        """The smallest input of a class, from one that is."""
        if self.asker.left < _LEAST:
            return None
        self.signed.progress(f"the smallest input: {each.name}")
        of_kind, seconds = _OfKind(self.signed, [each]), self.asker.left * share
        narrowed: _Narrowed | _NarrowedRuns
        if isinstance(self.signed, SigningRuns):
            narrowed = of_kind.run_with_time(seconds)
        else:
            narrowed = of_kind.with_time(seconds)
        answer = narrowed.asker.within(narrowed.question, lambda: narrowed.fails(codes))
        if not isinstance(answer, Fails):
            return None
        assert isinstance(answer.witness, CaseWitness)
        if not narrowed.wrong(Rows.of([answer.witness.codes])).all():
            raise WitnessError(f"{answer.witness.codes} was to be a case of: {each.name}, and is not")
        return answer

    def _others(self, classes: Sequence[_Class]) -> Codes | None:
        """An input of no kind that was found, if there is one; what is known of that is the `rest`."""
        if isinstance(self.signed, SigningRuns):
            self.rest, self.explains = self.signed.unknown(), False
            return None
        if self.asker.left < _LEAST:
            return None
        self.signed.progress("whether there are other kinds")
        if self.explains and self.changed is not self.signed.instruction:
            changed = _against(self.signed, self.changed)
            answer = self._within(changed, _REST)
            if isinstance(answer, Fails):
                assert isinstance(answer.witness, CaseWitness)
                codes = answer.witness.codes
                if self.signed.wrong(Rows.of([codes])).any():
                    return codes
                self.explains = False  # the changes spoil what was right
            elif isinstance(answer, Holds):
                self.rest = answer
                return None
            else:
                self.rest = answer
        there = [each for each in classes if f"{each.name} {each.change}" in self.found]
        rest = _OfKind(self.signed, there, none_of_them=True).with_time(max(self.asker.left, 0))
        outcome, found = SmallestWrong(rest).least(self.asker.left)
        if found is not None:
            return found.codes
        if outcome.verdict == "unsat":
            self.rest, self.explains = rest.in_both_encodings(direct(outcome)), False
        elif self.rest is None:
            why = outcome.why or "the time given was used up"
            self.rest = Unknown(rest.question, why, tuple(rest.asker.proved), self.asker.elapsed)
        return None


def _copied(signed: _S, seconds: float) -> _S:
    """The signing, with so much time."""
    made = copy(signed)
    made.asker = Asker(signed.asker.portfolio, seconds)
    return made


def _against(signed: Signing, instruction: Instruction) -> Signing:
    """The signing against another model of the same types."""
    made = _copied(signed, signed.asker.left)
    made.instruction, made.spec = instruction, instruction.spec
    name = signed.module.name
    made.question = f"{name} gives the d of {instruction.label} for every input{signed.same.said}"
    return made
