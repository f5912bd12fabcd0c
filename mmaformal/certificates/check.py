"""Check a folder of certificates: python check.py FOLDER.  This file stands alone: it needs Python and nothing else.

`mmaformal certify` writes such a folder.  Its manifest has statements, and for each the lemmas that it rests on.  A
lemma is three files under its name, the SHA-256 of the first:

    lemmas/NAME.smt2    the lemma's opposite, in SMT-LIB 2
    lemmas/NAME.cnf     clauses that can be met if and only if the opposite can (DIMACS)
    lemmas/NAME.lrat    a derivation of the empty clause from them (LRAT)

What a statement assumes is three files under its own name: premises/NAME.smt2, its clauses NAME.cnf, and NAME.model, an
assignment that meets them, so that the statement is not about nothing.

What is checked here: that each file is the one that the manifest tells by its SHA-256, that each derivation derives
the empty clause from the clauses, step by step, that each statement's lemmas are among those, and that assignments
meet clauses.  `mmaformal check-certificate` checks the rest: that clauses are those of the texts, that the lemmas give
the statement under these premises, and that both encodings give the witness the result that is told.

A step of LRAT is a clause and the numbers of earlier clauses, its hints.  It follows if, once its literals are taken to
be false, each hint in turn has one literal left that is not false, which is taken to be true, and the last hint has
none.  Steps by resolution asymmetric tautologies (RAT) are refused: none is needed.  Cruz-Filipe, Heule, Hunt, Kaufmann
and Schneider-Kamp, "Efficient certified RAT verification" (2017).
"""

from __future__ import annotations

import hashlib
import json
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

FORMAT = "mmaformal certificate 2"

Clause = tuple[int, ...]

_ROW = re.compile(r"(-?[0-9]+ )*-?[0-9]+", re.ASCII)


class RefusedError(Exception):
    """A certificate does not show what it is to show; the text says where."""


class ChangedError(RefusedError):
    """A file is not the one that the manifest tells."""


# ---- derivations -----------------------------------------------------------------------------------------------------


def clauses_in(text: str, name: str) -> dict[int, Clause]:
    """Return the clauses of a DIMACS text by number, from 1.  Raises RefusedError."""
    lines = text.splitlines()
    head = re.fullmatch(r"p cnf ([0-9]+) ([0-9]+)", lines[0]) if lines else None
    if head is None:
        raise RefusedError(f"{name}, line 1: not `p cnf VARIABLES CLAUSES`")
    variables, count = int(head[1]), int(head[2])
    found: dict[int, Clause] = {}
    for number, line in enumerate(lines[1:], 1):
        *literals, end = _integers(line, f"{name}, line {number + 1}")
        if end != 0 or 0 in literals or any(abs(literal) > variables for literal in literals):
            raise RefusedError(f"{name}, line {number + 1}: not a clause of {variables} variables")
        found[number] = tuple(literals)
    if len(found) != count:
        raise RefusedError(f"{name}: {len(found)} clauses, not the {count} that its first line tells")
    return found


def check_derivation(clauses: Mapping[int, Clause], lines: Sequence[str], name: str) -> None:
    """Raises RefusedError unless the lines of an LRAT text derive the empty clause."""
    known = dict(clauses)
    for place, line in enumerate(lines, 1):
        where = f"{name}, line {place}"
        if re.match(r"[0-9]+ d ", line):
            _, _, rest = line.split(" ", 2)
            for number in _integers(rest, where)[:-1]:
                known.pop(number, None)
            continue
        number, *parts = _integers(line, where)
        if parts.count(0) != 2 or parts[-1] != 0 or number in known or number < 1:
            raise RefusedError(f"{where}: not `NUMBER LITERALS 0 HINTS 0` with a new number")
        split = parts.index(0)
        clause, hints = parts[:split], parts[split + 1 : -1]
        _follow(known, clause, hints, where)
        if not clause:
            return
        known[number] = tuple(clause)
    raise RefusedError(f"{name}: ends before the empty clause")


def _follow(known: Mapping[int, Clause], clause: Sequence[int], hints: Sequence[int], where: str) -> None:
    """Raises RefusedError unless the hints show that the clause follows."""
    false = set(clause)
    for hint in hints:
        if hint not in known:
            raise RefusedError(f"{where}: there is no clause {hint} then")
        left = [literal for literal in known[hint] if literal not in false]
        if not left:
            return
        if len(left) > 1:
            raise RefusedError(f"{where}: of clause {hint}, {len(left)} literals are left")
        false.add(-left[0])
    raise RefusedError(f"{where}: no hint is false in the end")


def _integers(line: str, where: str) -> list[int]:
    if not _ROW.fullmatch(line):
        raise RefusedError(f"{where}: not a row of integers")
    return list(map(int, line.split()))


def check_assignment(clauses: Mapping[int, Clause], text: str, name: str) -> None:
    """Raises RefusedError unless an assignment, a row of literals and 0, meets every clause."""
    *literals, end = _integers(text.removesuffix("\n"), f"{name}.model, line 1")
    true = set(literals)
    if end != 0 or 0 in true or any(-literal in true for literal in true):
        raise RefusedError(f"{name}.model, line 1: not one literal of each variable, and 0")
    for number, clause in clauses.items():
        if true.isdisjoint(clause):
            raise RefusedError(f"{name}.cnf, line {number + 1}: the values of {name}.model do not meet it")


# ---- folders ---------------------------------------------------------------------------------------------------------


def read_file(path: Path, sha256: str) -> str:
    """Return a file's text.  Raises RefusedError if it is not there or has another SHA-256."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise RefusedError(f"{path.name}: {error.strerror}") from None
    if hashlib.sha256(data).hexdigest() != sha256:
        raise ChangedError(f"{path.name}: not the file that the manifest tells: another SHA-256")
    try:
        return data.decode("ascii" if path.suffix != ".json" else "utf-8")
    except UnicodeDecodeError:
        raise RefusedError(f"{path.name}: not text") from None


def manifest_of(folder: Path) -> dict[str, object]:
    """Return the manifest.  Raises RefusedError if it is none, or a statement's lemma is not in it."""
    try:
        manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
        lemmas, statements = manifest["lemmas"], manifest["statements"]
        if manifest["format"] != FORMAT or not statements:
            raise RefusedError(f"manifest.json: not of the format {FORMAT!r}, or without a statement")
        for statement in statements:
            if not statement["lemmas"] or not isinstance(statement["statement"], str):
                raise RefusedError("manifest.json: a statement that rests on no lemma, or says nothing")
            for name in statement["lemmas"]:
                if name not in lemmas:
                    raise RefusedError(f"manifest.json: a statement's lemma {name} is not there")
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise RefusedError(f"manifest.json: {type(error).__name__}: {error}") from None
    return dict(manifest)


def lemma_texts(folder: Path, name: str, digests: Mapping[str, str]) -> tuple[str, str, str]:
    """Return a lemma's opposite, its clauses and their derivation.  Raises RefusedError."""
    return _texts(folder / "lemmas", name, digests, "lrat")


def _texts(folder: Path, name: object, digests: Mapping[str, str], last: str) -> tuple[str, str, str]:
    if not isinstance(name, str) or not re.fullmatch(r"[0-9a-f]{64}", name):
        raise RefusedError(f"manifest.json: a lemma's name is a SHA-256, and not {str(name)[:70]!r}")
    try:
        told = {"smt2": name, "cnf": digests["cnf"], last: digests[last]}
    except (KeyError, TypeError):
        raise RefusedError(f"manifest.json: lemma {name} without the SHA-256 of its files") from None
    script, clauses, shown = (read_file(folder / f"{name}.{kind}", told[kind]) for kind in told)
    return script, clauses, shown


def check_premises(folder: Path, statement: Mapping[str, object]) -> list[str]:
    """Return in words what a statement assumes, after checking that values meet it.  Raises RefusedError."""
    said, premises = statement["statement"], statement.get("premises")
    if not isinstance(premises, list) or not premises:
        raise RefusedError(f"manifest.json: {said}: without a witness that its premises can be met")
    found: list[str] = []
    for each in premises:
        if not isinstance(each, dict) or "d" not in each or not isinstance(each.get("assumed"), list):
            raise RefusedError(f"manifest.json: {said}: a witness is without what is assumed, or its result")
        found += [str(words) for words in each["assumed"] if words not in found]
        if each["assumed"]:
            name = each.get("smt2")
            _, clauses, model = _texts(folder / "premises", name, each, "model")
            check_assignment(clauses_in(clauses, f"{name}.cnf"), model, str(name))
    return found


def check_folder(folder: Path) -> Iterator[str]:
    """Yield the name of each lemma that is checked.  Raises RefusedError."""
    lemmas = manifest_of(folder)["lemmas"]
    assert isinstance(lemmas, dict)
    for name, digests in lemmas.items():
        check_lemma(folder, name, digests)
        yield name


def check_lemma(folder: Path, name: str, digests: Mapping[str, str]) -> None:
    """Raises RefusedError unless a lemma's files are those told and derive the empty clause; a wrong line is
    told first."""
    changed = None
    try:
        _, clauses, derivation = lemma_texts(folder, name, digests)
    except ChangedError as error:
        changed = error
        clauses, derivation = (_as_it_is(folder / "lemmas" / f"{name}.{kind}") for kind in ("cnf", "lrat"))
    check_derivation(clauses_in(clauses, f"{name}.cnf"), derivation.splitlines(), f"{name}.lrat")
    if changed is not None:
        raise changed


def _as_it_is(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii", errors="replace")
    except OSError as error:
        raise RefusedError(f"{path.name}: {error.strerror}") from None


def main(arguments: Sequence[str]) -> int:
    """Return 0 if everything is checked, 1 if something is refused, 2 for wrong use."""
    if len(arguments) != 1 or arguments[0].startswith("-"):
        print("python check.py FOLDER", file=sys.stderr)
        return 2
    folder = Path(arguments[0])
    try:
        count = sum(1 for _ in check_folder(folder))
        statements = manifest_of(folder)["statements"]
        assert isinstance(statements, list)
        assumed = [check_premises(folder, each) for each in statements]
    except RefusedError as error:
        print(f"refused: {error}", file=sys.stderr)
        return 1
    print(f"{count} lemmas checked, each by its derivation; they are those of:")
    for each, words in zip(statements, assumed, strict=True):
        print(f"  {each['statement']}  ({len(each['lemmas'])} lemmas)")
        for premise in words:
            print(f"    assumed, and met by a witness: {premise}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
