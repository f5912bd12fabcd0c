"""Proofs that need no trust in a solver: each lemma with a certificate that a small program checks.

    certify("hopper HMMA.16816.F32", "certificate", properties=["monotonicity-in-c"])
    certify("ampere HMMA.16816.F32", "certificate", against="hopper HMMA.16816.F32")
    check_certificate("certificate")

A proof is made as always.  Then the opposite of each lemma is made clauses, a SAT solver refutes those, and its
refutation is written as a derivation of the empty clause (`mmaformal/certificates/check.py` has the files).  How a
theorem follows from its lemmas is written down step by step.  What a statement then rests on is the terms that both
encodings give, the blaster that makes clauses of lemmas, and the checker: docs/certificates.md.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import as_completed
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType

from mmaformal.architectures.meant import instruction_meant
from mmaformal.cases.inputs import plain_codes
from mmaformal.certificates import check
from mmaformal.certificates.lemmas import (
    LemmaFiles,
    NoCertificate,
    kept_lemma,
    write_certificate,
    write_whole,
)
from mmaformal.certificates.refuting import sat_solver
from mmaformal.checked import Progress, caller
from mmaformal.display import counted
from mmaformal.executors import checked_jobs
from mmaformal.facts import both_encodings, laws
from mmaformal.instruction import Instruction
from mmaformal.proof.kernel import Noted, noting
from mmaformal.proof.written import WrittenArgument, argument_of
from mmaformal.queries.certified_statements import DIFFERENCE, EQUALITY, Statement
from mmaformal.queries.check_certificate import established, not_argued
from mmaformal.queries.find_difference import comparable
from mmaformal.queries.properties import property_named
from mmaformal.queries.witnesses import NoWitnessError, witnesses
from mmaformal.result import Result
from mmaformal.solver.answers import Answer, Different
from mmaformal.solver.deadline import checked_timeout
from mmaformal.solver.evidence import digest
from mmaformal.solver.pool import processes
from mmaformal.solver.portfolio import DEFAULT_MEMORY
from mmaformal.solver.session import Cache, Solver, remembering
from mmaformal.witness import WitnessError


@dataclass(frozen=True, repr=False)
class Certificates(Result):
    """Statements, their lemmas that certificates were written of, and those that have none."""

    folder: Path
    statements: tuple[tuple[str, int], ...]  #: each with how many lemmas it rests on
    not_proved: tuple[str, ...]  #: statements that have no proof, with what was found instead
    lemmas: tuple[LemmaFiles, ...]
    without: tuple[tuple[str, NoCertificate], ...]  #: with what they say
    argued: int  #: theorems whose argument is written down, for the checker to follow
    by_kernel: int  #: theorems that the kernel is believed of
    solving: float  #: seconds that solvers took for the proofs
    seconds: float

    @property
    def verdict(self) -> str:
        """`certified`, or `incomplete` where a statement has no proof or a lemma no certificate."""
        return "incomplete" if self.not_proved or self.without else "certified"

    @property
    def size(self) -> int:
        """Bytes of all clauses and derivations."""
        return sum(each.size for each in self.lemmas)

    @property
    def summary(self) -> str:
        """One line."""
        of = len(self.lemmas) + len(self.without)
        return (
            f"{self.verdict}: {counted(len(self.statements), 'statement')}, {len(self.lemmas)} of "
            f"{counted(of, 'lemma')} with a certificate, {self.size / 1e6:.1f} MB"
        )

    def __str__(self) -> str:
        out = [self.summary]
        out += [f"  {statement}  ({counted(count, 'lemma')})" for statement, count in self.statements]
        out += [f"  not proved: {each}" for each in self.not_proved]
        out += [f"  no certificate: {statement}: {none.why}" for statement, none in self.without[:10]]
        if len(self.without) > 10:
            out.append(f"  and {len(self.without) - 10} more without")
        if self.statements:
            out.append(_argued(self.argued, self.by_kernel))
        making = sum(each.seconds for each in self.lemmas)
        out.append(
            f"solving took {self.solving:.1f} s, certificates {making:.1f} s; {self.seconds:.1f} s in all"
        )
        if self.statements:
            out.append(
                f"to check: mmaformal check-certificate {self.folder}, or python {self.folder}/check.py {self.folder}"
            )
        return "\n".join(out)

    def to_json(self) -> dict[str, object]:
        """Return plain values; sizes in bytes, times in seconds."""
        return {
            "verdict": self.verdict,
            "folder": str(self.folder),
            "statements": [{"statement": text, "lemmas": count} for text, count in self.statements],
            "not_proved": list(self.not_proved),
            "certificates": len(self.lemmas),
            "without": [
                {"sha256": none.name, "statement": text, "why": none.why} for text, none in self.without
            ],
            "argued": self.argued,
            "by_kernel": self.by_kernel,
            "bytes": self.size,
            "solving_seconds": self.solving,
            "certificate_seconds": sum(each.seconds for each in self.lemmas),
            "seconds": self.seconds,
        }


def certify(
    instruction: Instruction | str | Sequence[Instruction],
    out: str | Path,
    *,
    properties: Sequence[str] = (),
    against: Instruction | str | None = None,
    timeout: float = 600.0,
    memory: int = DEFAULT_MEMORY,
    jobs: int | None = None,
    solver: Solver = None,
    progress: Progress | None = None,
    cache: Cache = False,
) -> Certificates:
    """Prove that both encodings agree, and the properties named, and write a certificate of each lemma to a folder.

    `against` is another instruction, whose encodings are proved to agree as well: that both instructions are equal is
    certified, or that an input on which they differ is the smallest (`find_difference`).  `timeout` is in seconds, for
    each proof and for the SAT solver at each lemma; `memory` in megabytes for each process of `solver`; `jobs`
    processes make certificates (default: one for each core).  What the folder has already is kept.

    Raises NoSolverError if there is no solver, or no SAT solver that writes proofs; OSError if the folder cannot be
    written; ValueError for a property that there is not, IncomparableError for instructions that take other inputs.
    """
    caller(progress)
    checked_timeout(timeout)
    sat_solver()
    start, folder = time.monotonic(), Path(out)
    asked = [
        Statement(name, each.architecture, each.name)
        for each in (
            [instruction_meant(instruction)] if isinstance(instruction, (str, Instruction)) else instruction
        )
        for name in (EQUALITY, *map(_canonical, properties))
    ]
    if against is not None:
        asked += _against(instruction_meant(against), asked)
    for part in ("lemmas", "premises", "arguments"):
        (folder / part).mkdir(parents=True, exist_ok=True)
    writing = _Writing(folder, timeout, checked_jobs(jobs), progress or (lambda _: None))
    with remembering(cache):
        for statement in asked:
            writing.tell(f"proving {statement.property} of {statement.architecture} {statement.instruction}")
            if statement.property == DIFFERENCE:  # what is certified is asked of the input that is found
                found = statement.question()(timeout=timeout, memory=memory, solver=solver, progress=progress)
                if isinstance(found, Different):
                    statement = replace(statement, known=plain_codes(found.witness).to_json())
            both_encodings.forget_equalities()  # what is remembered notes no theorems
            laws.forget_laws()
            with noting() as noted:
                answer = statement.question()(timeout=timeout, memory=memory, solver=solver)
            writing.add(statement, answer, noted)
    return writing.finished(start)


def _argued(argued: int, by_kernel: int) -> str:
    """Return a line that says which theorems are argued in steps, and which the kernel is believed of."""
    if not by_kernel:
        return f"{counted(argued, 'theorem')} argued step by step, for the checker to follow"
    return f"of {counted(argued + by_kernel, 'theorem')}, {argued} argued step by step; {by_kernel} by the kernel"


def _against(other: Instruction, asked: Sequence[Statement]) -> list[Statement]:
    """Return what is asked besides, so that instructions are compared with another.

    Raises IncomparableError for instructions that take other inputs.
    """
    for each in asked:
        comparable(each.architecture, other.architecture, each.instruction, other.name)
    label = f"{other.architecture} {other.name}"
    compared = [
        Statement(DIFFERENCE, each.architecture, each.instruction, label)
        for each in asked
        if each.property == EQUALITY
    ]
    return [Statement(EQUALITY, other.architecture, other.name), *compared]


def _canonical(name: str) -> str:
    return EQUALITY if name == EQUALITY else property_named(name).name


class _Writing:
    """A folder of certificates that is being written, its manifest after each statement."""

    def __init__(self, folder: Path, seconds: float, jobs: int, tell: Progress) -> None:
        self._folder, self._seconds, self._jobs, self.tell = folder, seconds, jobs, tell
        self._lemmas: dict[str, LemmaFiles] = {}
        self._without: dict[str, tuple[str, NoCertificate]] = {}
        self._said: dict[str, str] = {}
        self._statements: list[dict[str, object]] = []
        self._not_proved: list[str] = []
        self._solving: dict[str, float] = {}
        self._argued = self._by_kernel = 0
        self._needed: set[str] = set()  #: lemmas that no argument stands for
        self._before = _lemmas_before(folder)

    def add(self, statement: Statement, answer: Answer, noted: Sequence[Noted]) -> None:
        """Write certificates of the lemmas of an answer's proof that have none yet."""
        proved = established(answer)
        if isinstance(proved, str):
            self._not_proved.append(proved)
            return
        try:
            premises = [each.premises for each in noted]
            met = witnesses(statement.meant(), premises, self._folder / "premises", self._seconds)
        except (NoWitnessError, WitnessError) as error:
            self._not_proved.append(f"{proved.statement}: {error}")
            self._write_manifest()
            return
        arguments = [_argument_of(each) for each in noted]
        self._certify_all({name: each for argument in arguments for name, each in argument.lemmas.items()})
        followed = [self._is_followed(each) for each in arguments]
        needed = {each.digest: each for each in not_argued(proved.obligations, noted, followed)}
        self._certify_all({name: (each.script, each.statement) for name, each in needed.items()})
        self._without = {
            name: none for name, none in self._without.items() if name in needed or name in self._needed
        }
        self._needed |= needed.keys()
        self._solving |= {each.digest: each.seconds for each in proved.obligations}
        if needed.keys() <= self._lemmas.keys():
            argued = [argument for argument, is_ in zip(arguments, followed, strict=True) if is_]
            names = list(dict.fromkeys(map(self._write_argument, argued)))
            self._argued, self._by_kernel = self._argued + len(names), self._by_kernel + followed.count(False)
            entry: dict[str, object] = {"statement": proved.statement, "asked": statement.to_json()}
            lemmas = dict.fromkeys([*(name for each in argued for name in each.lemmas), *needed])
            parts = {"premises": met, "arguments": names, "lemmas": list(lemmas)}
            self._statements.append(entry | parts | {"rules": list(proved.rules)})
        else:
            self._not_proved.append(f"{proved.statement}: a lemma has no certificate")
        self._write_manifest()

    def _certify_all(self, lemmas: Mapping[str, tuple[str, str]]) -> None:
        """Write certificates of lemmas, each a script and what it says, that have none yet."""
        self._said |= {name: said for name, (_, said) in lemmas.items() if name not in self._said}
        try:
            self._certify({name: script for name, (script, _) in lemmas.items() if name not in self._lemmas})
        except BaseException:  # interrupted: what was written is not made again
            for draft in (self._folder / "lemmas").glob("*.*.[0-9]*"):  # of a process that was ended
                draft.unlink(missing_ok=True)
            self._write_manifest(self._before)
            raise

    def _is_followed(self, argument: WrittenArgument) -> bool:
        """Whether the checker follows an argument, and each of its lemmas has a certificate."""
        if not argument.lemmas or not argument.lemmas.keys() <= self._lemmas.keys():
            return False
        try:
            check.FollowedArgument(lambda name: argument.lemmas[name][0]).follow(argument.text, "")
        except check.RefusedError:
            return False
        return True

    def _write_argument(self, argument: WrittenArgument) -> str:
        """Write an argument, and return its name."""
        name = digest(argument.text)
        write_whole(self._folder / "arguments" / f"{name}.txt", argument.text)
        return name

    def _certify(self, scripts: dict[str, str]) -> None:
        """Write certificates of scripts, by their digests."""
        for name in [name for name in scripts if name in self._before]:
            if (there := kept_lemma(self._folder, name, self._before[name])) is not None:
                self._lemmas[name] = there
                del scripts[name]
        if not scripts:
            return
        with processes(self._jobs) as executor:
            waiting = [
                executor.submit(write_certificate, script, self._folder / "lemmas", self._seconds)
                for script in scripts.values()
            ]
            for count, future in enumerate(as_completed(waiting), 1):
                found = future.result()
                if isinstance(found, LemmaFiles):
                    self._lemmas[found.name] = found
                else:
                    self._without[found.name] = self._said[found.name], found
                self.tell(f"certificates: {count} of {len(waiting)} lemmas")

    def _write_manifest(self, others: Mapping[str, Mapping[str, str]] = MappingProxyType({})) -> None:
        """Write the checker and the manifest, with other lemmas that the folder has."""
        write_whole(self._folder / "check.py", Path(check.__file__).read_text(encoding="utf-8"))
        manifest = {
            "format": check.FORMAT,
            "statements": self._statements,
            "lemmas": dict(others)
            | {
                name: {"statement": self._said[name], **each.to_json()} for name, each in self._lemmas.items()
            },
        }
        text = json.dumps(manifest, indent=1, ensure_ascii=False)
        write_whole(self._folder / "manifest.json", text)

    def finished(self, start: float) -> Certificates:
        """Return what was written."""
        return Certificates(
            self._folder,
            tuple((str(each["statement"]), len(list(_names(each)))) for each in self._statements),
            tuple(self._not_proved),
            tuple(self._lemmas.values()),
            tuple(self._without.values()),
            self._argued,
            self._by_kernel,
            sum(self._solving.values()),
            time.monotonic() - start,
        )


def _argument_of(noted: Noted) -> WrittenArgument:
    """Return a theorem's argument; one without text and lemmas if it is over real numbers."""
    try:
        return argument_of(noted.theorem)
    except ValueError:
        return WrittenArgument("", {})


def _lemmas_before(folder: Path) -> Mapping[str, Mapping[str, str]]:
    """Return the lemmas of a manifest that the folder has already, which may have no statement yet."""
    try:
        manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
        lemmas = manifest["lemmas"] if manifest["format"] == check.FORMAT else {}
    except (OSError, ValueError, KeyError, TypeError):
        return {}
    return {name: each for name, each in lemmas.items() if isinstance(each, dict)}


def _names(statement: Mapping[str, object]) -> Iterator[str]:
    names = statement["lemmas"]
    assert isinstance(names, list)
    yield from names
