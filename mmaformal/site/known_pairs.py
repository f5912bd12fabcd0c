"""Verdicts on any two instructions of the same types, and classes of instructions that are equal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from mmaformal.architectures import ARCHITECTURES
from mmaformal.display import ShortRepr
from mmaformal.instruction import Instruction
from mmaformal.site.pairs import (
    FunctionPair,
    PairAnswer,
    PairStore,
    TwoInstructions,
    comparisons,
    questions,
    types_of_pair,
)
from mmaformal.spec import DotAdd

#: Verdicts on two instructions, with the signs that a map has for them.
SIGNS = {"equal": "=", "different": "≠", "unknown": "?", "not comparable": "–", "not compared": "·"}


@dataclass(frozen=True, repr=False)
class Verdict(ShortRepr):
    """A verdict on two instructions of the tables."""

    compared: TwoInstructions
    word: str  #: one of SIGNS
    how: str  #: proved, one function, why not, …
    answer: PairAnswer | None = None

    def other(self, i: Instruction) -> Instruction:
        """The one of both that is not this one."""
        return self.compared.y if self.compared.x.label == i.label else self.compared.x


def types_slug(spec: DotAdd) -> str:
    """The name of the page of some types: `fp16-fp16-fp32-fp32`, `e2m1-e2m1-fp32-fp32-ue8m0-32`."""
    return "-".join(str(each) for each in types_of_pair(spec) if each)


def pair_slug(pair: FunctionPair) -> str:
    """The path of a pair's page below the folder of pairs: `hopper.HMMA.16816.F32/ampere.HMMA.1688.F32.K16`."""

    def of(i: Instruction) -> str:
        return i.label.replace(" ", ".").replace("[K=", ".K").replace("]", "")

    return f"{of(pair.x)}/{of(pair.y)}"


def pair_of(x: Instruction, y: Instruction) -> tuple[FunctionPair, str]:
    """Return the question of two instructions that has a page, and the page's path.

    Raises ValueError where they cannot be compared, or are one function.
    """
    every = comparisons([i for architecture in ARCHITECTURES.values() for i in architecture])
    both = {x.label, y.label}
    found = next((each.pair for each in every if {each.x.label, each.y.label} == both), None)
    if found is None or found.one_function:
        raise ValueError(f"{x.label} and {y.label} have no page: they take other types, or are one function")
    asked = questions(every)[found.key]
    return asked, pair_slug(asked)


class KnownPairs:
    """All pairs of some instructions, with what a store knows of them."""

    def __init__(self, instructions: Sequence[Instruction], store: Path | None) -> None:
        """Raises PairStoreError and OSError as the store does."""
        self.instructions = instructions
        self.compared = comparisons(instructions)
        self.questions = questions(self.compared)
        self.answers: dict[str, PairAnswer] = {}
        if store is not None:
            self.answers = PairStore(store, self.questions).answers
        self._asked_by: dict[str, list[TwoInstructions]] = {}
        for each in self.compared:
            if each.pair is not None and not each.pair.one_function:
                self._asked_by.setdefault(each.pair.key, []).append(each)

    @cached_property
    def verdicts(self) -> list[Verdict]:
        """One for each two instructions that take the same types."""
        return [self._verdict(each) for each in self.compared]

    @cached_property
    def _of(self) -> dict[str, list[Verdict]]:
        found: dict[str, list[Verdict]] = {}
        for each in self.verdicts:
            for i in (each.compared.x, each.compared.y):
                found.setdefault(i.label, []).append(each)
        return found

    def of(self, i: Instruction) -> list[Verdict]:
        """The verdicts on an instruction and each other one of its types."""
        return self._of.get(i.label, [])

    def asked_by(self, key: str) -> list[TwoInstructions]:
        """The instructions that a question is about."""
        return self._asked_by[key]

    def _verdict(self, compared: TwoInstructions) -> Verdict:
        pair = compared.pair
        if pair is None:
            return Verdict(compared, "not comparable", compared.why)
        if pair.one_function:
            chained = "" if compared.x.k == compared.y.k else f", chained to K = {pair.x.k}"
            return Verdict(compared, "equal", f"one function{chained}")
        answer = self.answers.get(pair.key)
        if answer is None:
            return Verdict(compared, "not compared", "the store has no answer")
        if answer.answer == "equal":
            return Verdict(compared, "equal", "proved", answer)
        if answer.answer == "unknown":
            return Verdict(compared, "unknown", answer.why, answer)
        how = "the smallest input, proved" if answer.smallest else "an input, not proved smallest"
        return Verdict(compared, "different", how, answer)

    # ---- classes ---------------------------------------------------------------------------------------------------

    def types(self) -> dict[str, list[Instruction]]:
        """The instructions of each types, of which there are two at least, those of most first."""
        found: dict[str, list[Instruction]] = {}
        for i in self.instructions:
            found.setdefault(types_slug(i.spec), []).append(i)
        several = {slug: some for slug, some in found.items() if len(some) > 1}
        return dict(sorted(several.items(), key=lambda item: -len(item[1])))

    def classes(self, some: Iterable[Instruction]) -> list[list[Instruction]]:
        """Instructions of the same types and K that are equal, by proof or as one function, together."""
        found: list[list[Instruction]] = []
        for i in some:
            for each in found:
                if self._equal(each[0], i):
                    each.append(i)
                    break
            else:
                found.append([i])
        return found

    def _equal(self, x: Instruction, y: Instruction) -> bool:
        if x.spec == y.spec:
            return True
        return x.k == y.k and self.between(x, y).word == "equal"

    @cached_property
    def _between(self) -> dict[frozenset[str], Verdict]:
        return {frozenset((each.compared.x.label, each.compared.y.label)): each for each in self.verdicts}

    def between(self, x: Instruction, y: Instruction) -> Verdict:
        """The verdict on two instructions of the same types."""
        return self._between[frozenset((x.label, y.label))]

    # ---- tables ----------------------------------------------------------------------------------------------------

    def rows(self) -> Iterator[dict[str, object]]:
        """Every two instructions of the same types, with what is known, as plain values."""
        for each in self.verdicts:
            pair, answer = each.compared.pair, each.answer
            yield {
                "x": each.compared.x.label,
                "y": each.compared.y.label,
                "types": each.compared.x.spec.types,
                "k": None if pair is None else pair.x.k,
                "verdict": each.word,
                "how": each.how,
                "input": "" if answer is None or answer.codes is None else answer.codes.text,
                "proofs": 0 if answer is None else len(answer.obligations),
                "page": ""
                if answer is None or pair is None
                else f"pair/{pair_slug(self.questions[pair.key])}.html",
            }
