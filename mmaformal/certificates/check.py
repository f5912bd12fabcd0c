"""Check a folder of certificates: python check.py FOLDER.  This file stands alone: it needs Python and nothing else.

`mmaformal certify` writes such a folder.  Its manifest has statements, and for each the lemmas that it rests on.  Files
are named by their SHA-256, those of a lemma or of premises by that of the first:

    lemmas/NAME.smt2, .cnf, .lrat      a lemma's opposite (SMT-LIB 2), clauses that can be met if and only if the
                                       opposite can (DIMACS), and a derivation of the empty clause from them (LRAT)
    arguments/NAME.txt                 what a theorem states, and steps, each with the lemmas that show it and the
                                       terms that stand in the places of a lemma's constants
    premises/NAME.smt2, .cnf, .model   what a statement assumes, its clauses, and an assignment that meets them, so
                                       that the statement is not about nothing

What is checked here: that each file is the one that the manifest tells, that each derivation derives the empty clause
from the clauses, step by step, that each argument reaches what it states from lemmas that are among those, and that
assignments meet clauses.  `mmaformal check-certificate` checks the rest: that clauses are those of the texts, that what
arguments state is the statement, of the encodings as they are now, under these premises, and that both encodings give
the witness the result that is told.

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
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

FORMAT = "mmaformal certificate 3"

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


# ---- arguments -------------------------------------------------------------------------------------------------------

#: An expression: a word, or a list of them.
Expression = str | list["Expression"]

_WORD = re.compile(r"[ \t\r\n]+|;[^\n]*|([()]|\|[^|\\]*\||[^\s()|;\"]+)")

#: Operators whose value is a Bool; those of bit-vectors begin with `bv`, or are named below.
_BOOLS = {"and", "or", "not", "=>", "xor", "=", "distinct"}
_BOOLS |= {f"bv{signs}{order}" for signs in "us" for order in ("lt", "le", "gt", "ge")}

#: The bits of what other operators give, from those of their operands and the numbers that they have.
_SIZES: Mapping[str, Callable[[Sequence[int], Sequence[int]], int]] = {
    "concat": lambda sizes, _: sum(sizes),
    "bvcomp": lambda _, __: 1,
    "ite": lambda sizes, _: sizes[1],
    "extract": lambda _, ends: ends[0] - ends[1] + 1,
    "zero_extend": lambda sizes, more: sizes[0] + more[0],
    "sign_extend": lambda sizes, more: sizes[0] + more[0],
    "repeat": lambda sizes, times: sizes[0] * times[0],
}


def read_expressions(text: str, name: str) -> Iterator[Expression]:
    """Yield the expressions of a text.  Raises RefusedError if it is no list of them."""
    at, lists = 0, list[list[Expression]]()
    while at < len(text):
        token = _WORD.match(text, at)
        if token is None:
            raise RefusedError(f"{name}: not SMT-LIB 2: {text[at : at + 20]!r}")
        at, word = token.end(), token[1]
        if word == ")" and not lists:
            raise RefusedError(f"{name}: a parenthesis closes nothing")
        if word == "(":
            lists.append([])
        elif word is not None:
            found: Expression = lists.pop() if word == ")" else word
            if lists:
                lists[-1].append(found)
            else:
                yield found
    if lists:
        raise RefusedError(f"{name}: a parenthesis is not closed")


class TermTable:
    """Terms, each once, as numbers: two that are written alike are the same number."""

    def __init__(self) -> None:
        self._numbers: dict[tuple[str, tuple[int, ...], int], int] = {}
        self.nodes: list[tuple[str, tuple[int, ...], int]] = []  #: head, operands, bits (0: a Bool)
        self.true = self.make("true", ())

    def make(self, head: str, operands: tuple[int, ...], bits: int | None = None) -> int:
        """Return the number of a term, x = y being y = x.  Raises RefusedError for an operator that is not known."""
        if head == "=":
            operands = tuple(sorted(operands))
        node = head, operands, self._bits(head, operands) if bits is None else bits
        found = self._numbers.setdefault(node, len(self.nodes))
        if found == len(self.nodes):
            self.nodes.append(node)
        return found

    def _bits(self, head: str, operands: tuple[int, ...]) -> int:
        sizes = [self.nodes[each][2] for each in operands]
        word, *numbers = head.split()
        if (word in _BOOLS and operands) or (word in ("true", "false") and not operands):
            return 0
        if operands and word in _SIZES:
            return _SIZES[word](sizes, list(map(int, numbers)))
        if operands and word.startswith(("bv", "rotate_")):
            return sizes[0]
        raise RefusedError(f"{head} has no meaning")

    def read(self, expression: Expression, names: Mapping[str, int]) -> int:
        """Return the term of an expression.  Raises RefusedError."""
        match expression:
            case str(word):
                return names[word] if word in names else self.make(word, ())
            case ["_", str(numeral), str(bits)] if re.fullmatch(r"bv[0-9]+", numeral):
                return self.make(numeral, (), int(bits))
            case [["_", *words], *operands] if operands and all(isinstance(each, str) for each in words):
                head = " ".join(map(str, words))
            case [str(head), *operands] if operands:
                pass
            case _:
                raise RefusedError(f"not a term: {str(expression)[:60]}")
        return self.make(head, tuple(self.read(each, names) for each in operands))

    def command(self, expression: Expression, names: dict[str, int]) -> Expression | None:
        """Obey what declares or defines a name; return anything else.  Raises RefusedError."""
        match expression:
            case ["set-logic", "QF_BV"] | ["check-sat"]:
                return None
            case ["declare-fun", str(name), [], sort]:
                made = self.make(f"constant {name}", (), _bits_of(sort))
            case ["define-fun", str(name), [], sort, body]:
                made = self.read(body, names)
                if self.nodes[made][2] != _bits_of(sort):
                    raise RefusedError(f"{name} is not of its sort")
            case _:
                return expression
        if name in names:
            raise RefusedError(f"{name} has a meaning already")
        names[name] = made
        return None

    def put(self, term: int, places: dict[int, int]) -> int:
        """Return a term with others in the places of some, all at once; `places` remembers what was found."""
        stack = [term]
        while stack:
            if stack[-1] in places:
                stack.pop()
                continue
            head, operands, bits = self.nodes[stack[-1]]
            missing = [each for each in operands if each not in places]
            if missing:
                stack += missing
            else:
                places[stack.pop()] = self.make(head, tuple(places[each] for each in operands), bits)
        return places[term]

    def parts(self, term: int) -> frozenset[int]:
        """Return what a conjunction is made of, those within it too; nothing of `true`."""
        found, stack = set(), [term]
        while stack:
            each = stack.pop()
            head, operands, _ = self.nodes[each]
            if head == "and":
                stack += operands
            elif each != self.true:
                found.add(each)
        return frozenset(found)

    def all_of(self, terms: Sequence[int]) -> int:
        """Return the conjunction of terms."""
        return terms[0] if len(terms) == 1 else self.make("and", tuple(terms), 0) if terms else self.true


def _bits_of(sort: Expression) -> int:
    match sort:
        case "Bool":
            return 0
        case ["_", "BitVec", str(bits)] if int(bits) > 0:
            return int(bits)
    raise RefusedError(f"not a sort: {str(sort)[:60]}")


def _rows(expression: Expression, width: int = 2) -> list[list[Expression]]:
    """Return lists of so many expressions each.  Raises RefusedError for anything else."""
    rows = [each for each in expression if isinstance(each, list) and len(each) == width]
    if isinstance(expression, str) or len(rows) != len(expression):
        raise RefusedError(f"not lists of {width}: {str(expression)[:60]}")
    return rows


class FollowedArgument:
    """A theorem's argument that is followed step by step; `scripts` gives the opposite of a lemma that is proved."""

    def __init__(self, scripts: Callable[[str], str]) -> None:
        self.terms = TermTable()
        self.lemmas: set[str] = set()  #: those that were used
        self.rules: list[str] = []  #: rules by which something was concluded, and not by lemmas
        self._stated: dict[
            int, tuple[str, list[int]]
        ] = {}  #: what rules give, by the claim: their names and premises
        self._supposed = False  #: whether anything is known that was not shown
        self._scripts, self._names = scripts, dict[str, int]()
        self._refuted: dict[str, tuple[int, dict[str, int]]] = {}
        self._known: set[int] = set()
        self._inferred: set[tuple[frozenset[int], frozenset[int]]] = set()
        self._concluded: int | None = None

    def follow(self, text: str, name: str) -> None:
        """Follow an argument to the end.  Raises RefusedError."""
        for number, expression in enumerate(read_expressions(text, name), 1):
            try:
                rest = self.terms.command(expression, self._names)
                if rest is not None:
                    self._step(rest)
            except (RefusedError, ValueError, KeyError, IndexError, TypeError, RecursionError) as error:
                raise RefusedError(f"{name}, expression {number}: {error}") from None
        if self._concluded is None or not self._holds(self._concluded):
            raise RefusedError(f"{name}: does not reach what it states")

    def _term(self, expression: Expression) -> int:
        return self.terms.read(expression, self._names)

    def _step(self, line: Expression) -> None:
        match line:
            case ["assumed" | "range" | "by-rule" | "rule" | "concluded", *_] if self._concluded is not None:
                raise RefusedError("something is stated after the statement")
            case ["assumed" | "range", claim]:
                self._supposed, self._known = True, self._known | self.terms.parts(self._term(claim))
            case ["by-rule", str(name), claim, [*premises]]:
                self._stated[self._term(claim)] = name, [self._term(each) for each in premises]
            case ["use-rule", claim]:
                self._use_rule(self._term(claim))
            case ["rule", str(name)]:
                self._lemma(name)
            case ["concluded", claim]:
                self._concluded = self._term(claim)
            case ["infer" | "cases" as kind, given, [*claims], [*ranges], uses]:
                self._infer(kind == "cases", given, [self._term(each) for each in claims], ranges, uses)
            case ["conclude", str(name), pairs]:
                self._conclude(name, pairs)
            case _:
                raise RefusedError(f"not a step: {str(line)[:60]}")

    def _lemma(self, name: str) -> tuple[int, dict[str, int]]:
        """Return what is refuted by a lemma, and its constants."""
        if name not in self._refuted:
            names: dict[str, int] = {}
            asserted = []
            for each in read_expressions(self._scripts(name), name):
                match self.terms.command(each, names):
                    case ["assert", claim]:
                        asserted.append(self.terms.read(claim, names))
                    case rest if rest is not None:
                        raise RefusedError(f"{name}: not a script of a lemma")
            self._refuted[name] = self.terms.all_of(asserted), names
            self.lemmas.add(name)
        return self._refuted[name]

    def _instance(self, name: str, pairs: Sequence[Sequence[Expression]]) -> int:
        """Return what a lemma refutes with terms in the places of its constants."""
        refuted, names = self._lemma(name)
        places: dict[int, int] = {}
        for constant, expression in pairs:
            if str(constant) not in names:  # the lemma says nothing of it
                continue
            place, term = names[str(constant)], self._term(expression)
            if self.terms.nodes[place][2] != self.terms.nodes[term][2]:
                raise RefusedError(f"{name}: {constant} is of another sort than what it stands for")
            if not self.terms.nodes[place][0].startswith("constant ") or place in places:
                raise RefusedError(f"{name}: {constant} is no constant, or stands for two terms")
            places[place] = term
        return self.terms.put(refuted, places)

    def _readings(self, refuted: int) -> list[tuple[frozenset[int], int]]:
        """Return (premises, claim) of what is refuted, premises and not claim; and where that is p => q, with p too."""
        terms = self.terms
        head, operands, _ = terms.nodes[refuted]
        *before, last = operands if head == "and" else (refuted,)
        head, operands, _ = terms.nodes[last]
        if head != "not":
            raise RefusedError("a lemma is no implication")
        found = [(terms.parts(terms.all_of(before)), operands[0])]
        head, operands, _ = terms.nodes[operands[0]]
        if head == "=>" and len(operands) == 2:
            found.append((found[0][0] | terms.parts(operands[0]), operands[1]))
        return found

    def _infer(
        self,
        cases: bool,
        given: Expression,
        claims: list[int],
        ranges: Sequence[Expression],
        uses: Expression,
    ) -> None:
        """Note that the claims, or one of them, follow from what is given: by one lemma, or one for each value."""
        terms = self.terms
        premises, defined = [], []
        for claim, pairs in _rows(given):
            premises.append(self._term(claim))
            defined += self._terms(pairs)
        if any(terms.nodes[term][2] != terms.nodes[value][2] for term, value in defined):
            raise RefusedError("a term is given a value of another sort")
        known = [self._term(each) for each in ranges]
        if not all(map(self._holds, known)):
            raise RefusedError("a range that is not known")
        goal = terms.make("or", tuple(claims), 0) if cases and len(claims) > 1 else terms.all_of(claims)
        values: dict[int, set[int]] = {}
        for name, pairs, fixed in _rows(uses, 3):
            self._look_at(str(name), _rows(pairs), self._terms(fixed), defined, [*premises, *known], goal)
            for term, value in self._terms(fixed):
                values.setdefault(term, set()).add(value)
        if not uses or len(values) > 1 or not all(self._is_every(*each) for each in values.items()):
            raise RefusedError("no lemma, or not one for each value")
        supposed = terms.parts(terms.all_of([*premises, *(terms.make("=", pair, 0) for pair in defined)]))
        self._inferred.add((supposed, terms.parts(goal)))
        if not supposed:
            self._known |= terms.parts(goal)

    def _look_at(
        self, name: str, pairs: Sequence[Sequence[Expression]], fixed: Sequence[tuple[int, int]],
        defined: Sequence[tuple[int, int]], premises: Sequence[int], goal: int,
    ) -> None:  # fmt: skip
        """Raises RefusedError unless a lemma says that a goal follows from premises; terms may have their values."""
        terms, places = self.terms, dict(fixed)
        for constant, expression in pairs:
            if str(constant) in self._lemma(name)[1]:  # such a term stays as it is
                places.setdefault(self._term(expression), self._term(expression))
        for term, value in defined:
            head, operands, _ = terms.nodes[term]
            if term not in places and (operands or head.startswith("constant ")):  # a number stays what it is
                places[term] = terms.put(value, dict(places))
        may = {part for each in premises for part in terms.parts(terms.put(each, places))}
        for said, claim in self._readings(self._instance(name, pairs)):
            if said <= may and terms.parts(terms.put(goal, places)) <= terms.parts(claim):
                return
        raise RefusedError(f"lemma {name} says something else")

    def _terms(self, pairs: Expression) -> list[tuple[int, int]]:
        return [(self._term(one), self._term(other)) for one, other in _rows(pairs)]

    def _is_every(self, term: int, values: set[int]) -> bool:
        bits = self.terms.nodes[term][2]
        return bits <= 16 and {self.terms.make(f"bv{n}", (), bits) for n in range(1 << bits)} == values

    def _holds(self, claim: int) -> bool:
        """Whether a claim is known, or an inference that was noted, or all parts of it are."""
        terms = self.terms
        for part in terms.parts(claim):
            if part in self._known:
                continue
            head, operands, _ = terms.nodes[part]
            if head != "=>" or len(operands) != 2:
                return False
            inferred = terms.parts(operands[0]), terms.parts(operands[1])
            if inferred not in self._inferred and not self._holds(operands[1]):
                return False
        return True

    def _use_rule(self, claim: int) -> None:
        """Take what a rule gives of theorems, which hold for all values of their constants."""
        name, premises = self._stated[claim]
        if self._supposed or not all(map(self._holds, premises)):
            raise RefusedError(f"the rule {name} is given what is no theorem")
        self.rules.append(name)
        self._known |= self.terms.parts(claim)

    def _conclude(self, name: str, pairs: Expression) -> None:
        premises, claim = self._readings(self._instance(name, _rows(pairs)))[-1]
        if not all(map(self._holds, premises)):
            raise RefusedError(f"lemma {name} supposes what is not inferred")
        self._known |= self.terms.parts(claim)


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


def manifest_of(folder: Path) -> tuple[list[dict[str, Sequence[str]]], dict[str, dict[str, str]]]:
    """Return a manifest's statements and lemmas.  Raises RefusedError if it is none, or lacks a statement's lemma."""
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
    return statements, lemmas


def texts_of(folder: Path, name: object, digests: Mapping[str, str], last: str) -> tuple[str, str, str]:
    """Return the script, the clauses and the last file of a lemma, or of premises.  Raises RefusedError."""
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
            _, clauses, model = texts_of(folder / "premises", name, each, "model")
            check_assignment(clauses_in(clauses, f"{name}.cnf"), model, str(name))
    return found


def check_arguments(folder: Path, statement: Mapping[str, Sequence[str]]) -> dict[str, FollowedArgument]:
    """Return a statement's arguments by their texts, after following each, but for lemmas.  Raises RefusedError."""
    said, names = statement["statement"], statement.get("arguments")
    if not isinstance(names, list):
        raise RefusedError(f"manifest.json: {said}: without arguments")
    found = {}

    def script(name: str) -> str:
        if name not in statement["lemmas"]:
            raise RefusedError(f"a lemma that the statement does not name: {name[:70]}")
        return read_file(folder / "lemmas" / f"{name}.smt2", name)

    for name in names:
        text, argument = read_file(folder / "arguments" / f"{name}.txt", name), FollowedArgument(script)
        argument.follow(text, f"{name}.txt")
        found[text] = argument
    return found


def check_folder(folder: Path) -> Iterator[str]:
    """Yield the name of each lemma that is checked.  Raises RefusedError."""
    for name, digests in manifest_of(folder)[1].items():
        check_lemma(folder, name, digests)
        yield name


def check_lemma(folder: Path, name: str, digests: Mapping[str, str]) -> None:
    """Raises RefusedError, of a wrong line first, unless a lemma's files are those told and derive the empty clause."""
    changed = None
    try:
        _, clauses, derivation = texts_of(folder / "lemmas", name, digests, "lrat")
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
        statements, _ = manifest_of(folder)
        assumed = [check_premises(folder, each) for each in statements]
        argued = [check_arguments(folder, each).values() for each in statements]
    except RefusedError as error:
        print(f"refused: {error}", file=sys.stderr)
        return 1
    print(f"{count} lemmas checked, each by its derivation; from them, argued step by step:")
    for each, words, followed in zip(statements, assumed, argued, strict=True):
        how = f"arguments: {len(followed)}" if followed else "not argued here"
        print(f"  {each['statement']}  (lemmas: {len(each['lemmas'])}, {how})")
        for premise in words:
            print(f"    assumed, and met by a witness: {premise}")
        for rule in sorted({rule for argument in followed for rule in argument.rules}):
            print(f"    concluded by a rule, and not by lemmas: {rule}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
