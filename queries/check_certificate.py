"""Check certificates without a solver: their derivations, that their clauses are the lemmas', and what these give.

    check_certificate("certificate")      # Checked, or RefusedError that says which line is wrong

A lemma counts once its derivation is checked and its clauses are those that the blaster makes of its script.  Then
each statement is asked anew, of the encodings as they are now, with a store of evidence that knows those lemmas and no
others.  What each of its theorems states has to be what an argument of the folder states, which is followed step by
step.  A theorem that has none is told, as one that the kernel is believed of: every lemma of it has to be among those.
Solvers are asked for the rest, and not believed.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from mmaformal.cases.inputs import plain_codes
from mmaformal.certificates.blaster import clauses_of
from mmaformal.certificates.check import (
    ChangedError,
    RefusedError,
    check_arguments,
    check_lemma,
    check_premises,
    manifest_of,
    texts_of,
)
from mmaformal.certificates.expressions import ScriptError
from mmaformal.certificates.fast_check import accepts
from mmaformal.certificates.other_checkers import check_also, checker_named
from mmaformal.certificates.refuting import dimacs
from mmaformal.checked import Progress, caller
from mmaformal.display import counted
from mmaformal.executors import checked_jobs, each_in_order, workers_given
from mmaformal.facts import both_encodings, laws
from mmaformal.proof.kernel import Noted, noting
from mmaformal.proof.written import statement_of
from mmaformal.queries.certified_statements import DIFFERENCE, Statement
from mmaformal.queries.witnesses import check_witnesses
from mmaformal.result import Result
from mmaformal.solver.answers import Answer, Different, Equal, Holds, Obligation
from mmaformal.solver.evidence import EvidenceStore, recording
from mmaformal.solver.portfolio import DEFAULT_MEMORY, Outcome

#: The solver of what a certificate proves.
_CHECKED = "certificate"

#: Lemmas of which a process of its own is worth starting.
_EACH = 500


@dataclass(frozen=True, repr=False)
class Checked(Result):
    """Statements that certificates prove."""

    statements: tuple[str, ...]
    lemmas: int
    argued: int  #: theorems whose arguments were followed step by step
    by_kernel: int  #: theorems that the kernel is believed of
    by_search: int  #: comparisons of instructions, whose search is believed of what the lemmas give
    also: str | None  #: the other checker that accepted each lemma, if one was asked
    checking: float  #: seconds that the lemmas took
    seconds: float

    @property
    def verdict(self) -> str:
        """`checked`: what is not raises RefusedError."""
        return "checked"

    @property
    def summary(self) -> str:
        """One line."""
        by_kernel = f", {self.by_kernel} by the kernel" if self.by_kernel else ""
        by_search = f", {self.by_search} by the search" if self.by_search else ""
        also = f" (by {self.also} too)" if self.also else ""
        return (
            f"checked: {counted(len(self.statements), 'statement')}, {counted(self.lemmas, 'lemma')}{also}, "
            f"{counted(self.argued, 'argument')}{by_kernel}{by_search}"
        )

    def __str__(self) -> str:
        times = f"lemmas {self.checking:.1f} s, statements {self.seconds - self.checking:.1f} s"
        return "\n".join([self.summary, *(f"  {each}" for each in self.statements), times])

    def to_json(self) -> dict[str, object]:
        """Return plain values; times in seconds."""
        names = "lemmas", "argued", "by_kernel", "by_search", "also", "seconds"
        numbers = {name: getattr(self, name) for name in names}
        said = {"verdict": self.verdict, "statements": list(self.statements)}
        return {**said, **numbers, "checking_seconds": self.checking}


def check_certificate(
    folder: str | Path,
    *,
    also: str | None = None,
    timeout: float = 600.0,
    memory: int = DEFAULT_MEMORY,
    jobs: int | None = None,
    progress: Progress | None = None,
) -> Checked:
    """Check every lemma and every statement of a folder that `certify` wrote.

    `also` is the name or the path of another checker, which is given each lemma's clauses and derivation as well:
    cake_lpr, which is itself proved correct (Tan, Heule and Myreen, "cake_lpr: Verified Propagation Redundancy Checking
    in CakeML", 2021), lrat-check or lrat-trim.  `timeout` is in seconds, for each statement's argument, and for that
    checker at each lemma; `memory` in megabytes for each solver's process.  `jobs` processes check lemmas (default: one
    for each core), where there are many.

    Raises RefusedError, which says which line of which file is wrong, or which lemma a statement lacks; OSError if
    there is no such checker.
    """
    caller(progress)
    program = None if also is None else checker_named(also)
    start, tell, path = time.monotonic(), progress or (lambda _: None), Path(folder)
    statements, lemmas = manifest_of(path)
    argued = by_kernel = by_search = 0
    with EvidenceStore(":memory:") as store:
        parts = [(path, name, entry, program, timeout) for name, entry in lemmas.items()]
        with workers_given(None, min(checked_jobs(jobs), -(-len(parts) // _EACH) or 1)) as workers:
            for count, name in enumerate(each_in_order(workers, _checked_lemma, parts), 1):
                outcome = Outcome("unsat", _CHECKED, "1", 0.0, asked=name)
                store.add(name, "lemma", str(lemmas[name].get("statement", "")), outcome)
                tell(f"{count} of {len(lemmas)} lemmas")
        checking = time.monotonic() - start
        for each in statements:
            tell(f"asking anew: {each['statement']}")
            check_premises(path, each)
            arguments = check_arguments(path, each)
            both_encodings.forget_equalities()  # what this process proved before is by solvers, and notes no theorems
            laws.forget_laws()
            with recording(store), noting() as noted:
                statement, proved = _ask(each, timeout, memory)
            premises, told = [theorem.premises for theorem in noted], each["premises"]
            assert isinstance(told, list)
            check_witnesses(statement.meant(), premises, told, str(each["statement"]))
            followed = [_is_argued(theorem, arguments) for theorem in noted]
            for lemma in not_argued(proved.obligations, noted, followed):
                if lemma.solver != _CHECKED and lemma.digest not in lemmas:
                    raise RefusedError(
                        f"{each['statement']}: no certificate of its lemma {lemma.digest}: {lemma.statement}"
                    )
            argued, by_kernel = argued + sum(followed), by_kernel + followed.count(False)
            by_search += statement.property == DIFFERENCE
    said = tuple(str(each["statement"]) for each in statements)
    other = program and Path(program).name
    return Checked(said, len(lemmas), argued, by_kernel, by_search, other, checking, time.monotonic() - start)


def _checked_lemma(
    folder: Path, name: str, entry: Mapping[str, str], program: str | None, timeout: float
) -> str:
    """Returns the name of a lemma that is checked, by `program` too.  Raises RefusedError."""
    _check(folder, name, entry)
    if program is not None:
        check_also(program, folder / "lemmas" / name, timeout)
    return name


def _is_argued(noted: Noted, arguments: Iterable[str]) -> bool:
    """Whether one of the arguments, which were followed, is of what a theorem states."""
    try:
        statement = statement_of(noted.theorem)
    except ValueError:  # of real numbers
        return False
    return any(text.startswith(statement) for text in arguments)


def _check(folder: Path, name: str, entry: Mapping[str, str]) -> None:
    """Raises RefusedError unless a lemma's clauses are its script's, and cannot be met."""
    try:
        script, clauses, derivation = texts_of(folder / "lemmas", name, entry, "lrat")
        accepted = accepts(clauses, derivation)
    except ChangedError:
        accepted = False
    if not accepted:  # then this says why, or accepts it after all
        check_lemma(folder, name, entry)
    try:
        made = dimacs(*clauses_of(script, bool(entry.get("multiplied_out"))))
    except ScriptError as error:
        raise RefusedError(f"{name}.smt2: {error}") from None
    if made != clauses:
        raise RefusedError(f"{name}.cnf: not the clauses of {name}.smt2")


def _ask(entry: Mapping[str, object], timeout: float, memory: int) -> tuple[Statement, Established]:
    """Return a statement, asked anew, and what that establishes.  Raises RefusedError."""
    asked, said = entry.get("asked"), entry["statement"]
    if not isinstance(asked, dict):
        raise RefusedError(f"manifest.json: {said}: cannot be asked: no question")
    try:
        statement = Statement(**asked)
        answer = statement.question()(timeout=timeout, memory=memory)
    except (TypeError, ValueError, KeyError) as error:
        raise RefusedError(f"manifest.json: {said}: cannot be asked: {error}") from None
    proved = established(answer)
    if isinstance(proved, str):
        raise RefusedError(f"{said}: asked anew, the answer is {answer.verdict}: {proved}")
    if proved.statement != said:
        raise RefusedError(f"{said}: what is proved is another statement: {proved.statement}")
    return statement, proved


class Established(NamedTuple):
    """A statement that an answer establishes, and what it rests on."""

    statement: str
    obligations: tuple[Obligation, ...]
    rules: tuple[str, ...] = ()


def established(answer: Answer) -> Established | str:
    """Return what an answer establishes; if it is no proof, a line that says what was found instead."""
    if isinstance(answer, (Holds, Equal)):
        return Established(answer.headline, answer.proof.obligations, answer.proof.rules)
    if not isinstance(answer, Different):
        return str(answer).partition("\n")[0]
    open_ = [each for each in answer.minimality if not each.endswith("proved minimal")]
    if open_:
        return f"{answer.headline}: the input found is not proved to be the smallest: {'; '.join(open_)}"
    least = "; ".join(each.partition(": proved")[0] for each in answer.minimality)
    return Established(
        f"{answer.headline} at {plain_codes(answer.witness).text}, and at no smaller input: {least}",
        answer.obligations,
    )


def not_argued(
    obligations: Iterable[Obligation], noted: Sequence[Noted], followed: Sequence[bool]
) -> list[Obligation]:
    """Return the obligations but for lemmas of theorems that are followed, and of no others."""
    argued, others = (
        {name for each, is_ in zip(noted, followed, strict=True) if is_ == kind for name in each.obligations}
        for kind in (True, False)
    )
    return [each for each in obligations if each.whole or each.digest in others or each.digest not in argued]
