"""A certificate of one lemma: its opposite as clauses, and their refutation, in three files (`check.py`)."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from mmaformal.certificates.blaster import clauses_of
from mmaformal.certificates.check import RefusedError, texts_of
from mmaformal.certificates.elaboration import ElaboratedClause, ElaborationError, elaborated
from mmaformal.certificates.expressions import ScriptError
from mmaformal.certificates.refuting import NotRefutedError, dimacs, refutation, sat_solver
from mmaformal.display import ShortRepr

#: Seconds for each way to make clauses of sums, before those left open are tried for longer.
_PATIENCE = (2.0, 20.0, 1e9)


@dataclass(frozen=True, repr=False)
class LemmaFiles(ShortRepr):
    """The files that were written for one lemma."""

    name: str  #: the SHA-256 of its script
    cnf: str  #: SHA-256 of the clauses
    lrat: str  #: SHA-256 of the derivation
    multiplied_out: bool  #: how the clauses were made (`blaster.Blaster`)
    size: int  #: bytes of clauses and derivation
    seconds: float  #: that it took to make

    def to_json(self) -> dict[str, str | bool]:
        """Return what the manifest has of it."""
        return {"cnf": self.cnf, "lrat": self.lrat, "multiplied_out": self.multiplied_out}


@dataclass(frozen=True, repr=False)
class NoCertificate(ShortRepr):
    """Why a lemma has no certificate."""

    name: str
    why: str
    seconds: float


def write_certificate(script: str, folder: Path, seconds: float) -> LemmaFiles | NoCertificate:
    """Write a certificate that a script is unsatisfiable to a folder, in so many seconds for the SAT solver.

    Raises NoSolverError if there is no SAT solver that writes proofs, OSError if a file cannot be written.
    """
    start, name = time.monotonic(), hashlib.sha256(script.encode()).hexdigest()
    solver = sat_solver()
    why = ""
    for limit, multiplied_out in _tries(seconds):
        left = start + seconds - time.monotonic()
        if left <= 0:
            break
        try:
            variables, clauses = clauses_of(script, multiplied_out)
            text = dimacs(variables, clauses)
            drat = refutation(text, min(limit, left), solver)
            steps = elaborated(variables, clauses, drat)
        except NotRefutedError as error:
            why = str(error)
            continue
        except (ScriptError, ElaborationError) as error:
            return NoCertificate(name, str(error), time.monotonic() - start)
        derivation = derivation_text(steps)
        for kind, content in (("smt2", script), ("cnf", text), ("lrat", derivation)):
            write_whole(folder / f"{name}.{kind}", content)
        cnf, lrat = (hashlib.sha256(each.encode()).hexdigest() for each in (text, derivation))
        size = len(text) + len(derivation)
        return LemmaFiles(name, cnf, lrat, multiplied_out, size, time.monotonic() - start)
    if why.startswith("not settled"):  # in the time of the last try
        why = ""
    return NoCertificate(name, why or f"not settled in {seconds:g} s", time.monotonic() - start)


def kept_lemma(folder: Path, name: str, entry: Mapping[str, str]) -> LemmaFiles | None:
    """Return what was written of a lemma before, as its manifest tells it; None if the files are others."""
    try:
        _, clauses, derivation = texts_of(folder / "lemmas", name, entry, "lrat")
    except RefusedError:
        return None
    size = len(clauses) + len(derivation)
    return LemmaFiles(name, entry["cnf"], entry["lrat"], bool(entry.get("multiplied_out")), size, 0.0)


def _tries(seconds: float) -> Iterator[tuple[float, bool]]:
    for patience in _PATIENCE:
        for multiplied_out in (False, True):
            yield min(patience, seconds), multiplied_out


def derivation_text(steps: list[ElaboratedClause]) -> str:
    """Return steps as LRAT text."""
    lines = (" ".join(map(str, (step.number, *step.clause, 0, *step.hints, 0))) for step in steps)
    return "".join(f"{line}\n" for line in lines)


def write_whole(path: Path, text: str) -> None:
    """Write a file whole or not at all."""
    draft = path.with_name(f"{path.name}.{os.getpid()}")
    try:
        draft.write_text(text, encoding="utf-8", newline="\n")
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)
