"""A theorem's argument as text, which `certificates/check.py` follows without z3 and without this project.

The text begins with the statement: what is assumed, which lanes are taken to be in their ranges and the lemmas that
give these, what rules gave, and what is concluded.  Steps follow, each with the lemmas that show it and the terms that
a lemma's constants stand for.  Of all this `statement_of` alone is trusted: a step that is written down wrongly does
not check.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TypeAlias

import z3

from mmaformal.proof.claims import Conclusion, Inference, Lemma, LemmaUse, RuleStep
from mmaformal.proof.kernel import ArgumentError, Theorem
from mmaformal.solver.asking import TermCut
from mmaformal.solver.evidence import digest
from mmaformal.solver.script import definitions, smtlib, symbol

#: The beginnings of names of terms: those of the statement, and those of the steps.
_STATED, _STEPS = "$", "%"

#: A line as words, terms and lists of these.
Line: TypeAlias = "str | z3.ExprRef | list[Line]"


@dataclass(frozen=True)
class WrittenArgument:
    """An argument as text, and the lemmas that it names."""

    text: str
    lemmas: dict[str, tuple[str, str]]  #: script and statement, by the script's SHA-256


def statement_of(theorem: Theorem) -> str:
    """Return what a theorem states, as text that depends on its terms alone.

    Raises ArgumentError if nothing is concluded, ValueError for real numbers.
    """
    return _stated(theorem)[1]


def _stated(theorem: Theorem) -> tuple[set[str], str]:
    """Return the lines that declare constants, and the whole text."""
    conclusion = theorem.conclusion
    if conclusion is None:
        raise ArgumentError("a theorem without a conclusion states nothing")
    assumed = [claim for each in theorem.inferences if each.assumed for claim in each.claims]
    lanes, rules = theorem.lanes
    ranges = list({each.get_id(): each for each in (lane.in_range for lane in lanes)}.values())
    lines: list[Line] = [["assumed", each] for each in assumed]
    lines += [["range", each] for each in ranges]
    lines += [
        ["by-rule", each.rule.name, each.claim, list(each.premises)]
        for each in theorem.history
        if isinstance(each, RuleStep)
    ]
    lines += [["rule", name] for name in sorted({digest(smtlib([z3.Not(rule)])) for rule in rules})]
    declared, text = _written([*lines, ["concluded", conclusion]], _STATED, set())
    return declared, f"(set-logic QF_BV)\n{text}"


def _written(lines: Iterable[Line], prefix: str, declared: set[str]) -> tuple[set[str], str]:
    """Return the lines that declare constants of lines, and these, those that define terms, and the lines as text."""
    lines = list(lines)
    terms = {each.get_id(): each for each in _terms_of(lines)}
    new, defined, said, _ = definitions(list(terms.values()), prefix)
    names = dict(zip(terms, said, strict=True))
    new = [line for line in new if line not in declared]
    return set(new), "".join([*new, *defined, *(f"{_text(line, names)}\n" for line in lines)])


def _terms_of(line: Line) -> Iterator[z3.ExprRef]:
    if isinstance(line, list):
        for each in line:
            yield from _terms_of(each)
    elif not isinstance(line, str):
        yield line


def _text(line: Line, names: dict[int, str]) -> str:
    if isinstance(line, str):
        return line
    if isinstance(line, list):
        return f"({' '.join(_text(each, names) for each in line)})"
    return names[line.get_id()]


def argument_of(theorem: Theorem) -> WrittenArgument:
    """Return a theorem's argument.  Raises ArgumentError and ValueError as `statement_of`."""
    writing = _Steps()
    lines = [line for step in theorem.history if (line := writing.line(step)) is not None]
    for rule in theorem.lanes[1]:
        writing.lemma(Lemma("lanes", "what an operation on lanes gives is in its range", z3.Not(rule)))
    declared, stated = _stated(theorem)
    return WrittenArgument(stated + _written(lines, _STEPS, declared)[1], writing.lemmas)


@dataclass
class _Steps:
    """The steps of an argument as lines."""

    lemmas: dict[str, tuple[str, str]] = field(default_factory=dict)
    _names: dict[int, str] = field(default_factory=dict)

    def line(self, step: Inference | Conclusion | RuleStep) -> Line | None:
        """Return the line of a step, None for what the statement tells."""
        if isinstance(step, RuleStep):
            return ["use-rule", step.claim]
        if isinstance(step, Conclusion):
            return ["conclude", self.lemma(step.lemma), _pairs(step.propositions, constants_first=True)]
        if step.assumed:
            return None
        lanes = {id(lane): lane for link in step.given for lane in link.lanes}.values()
        return [
            "cases" if step.cases else "infer",
            [[link.claim, _pairs(link.defined)] for link in step.given],
            list(step.claims),
            [lane.in_range for lane in lanes],
            [self._use(each) for each in step.uses],
        ]

    def _use(self, use: LemmaUse) -> Line:
        return [self.lemma(use.lemma), _pairs(use.cut, constants_first=True), _pairs(use.values)]

    def lemma(self, lemma: Lemma) -> str:
        """Return the name of a lemma, which is its script's SHA-256."""
        number = lemma.refuted.get_id()
        if number not in self._names:
            script = smtlib([lemma.refuted])
            self._names[number] = digest(script)
            self.lemmas.setdefault(self._names[number], (script, lemma.statement))
        return self._names[number]


def _pairs(pairs: TermCut, constants_first: bool = False) -> Line:
    """Return pairs of terms; of those that were cut the constant, by its name alone, comes first."""
    if constants_first:
        return [[symbol(constant.decl().name()), term] for term, constant in pairs]
    return [[term, value] for term, value in pairs]
