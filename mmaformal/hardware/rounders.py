"""Proves a code that a design makes of a sum to be the model's, in a case for each place of the sum's leading one.

Where two designs normalise a sum in two ways, all that they share is that sum; its leading one known, their shifts are.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Container, Iterable, Sequence
from dataclasses import replace
from typing import Protocol

import z3

from mmaformal.hardware.between import Cutting, between
from mmaformal.hardware.maxima import Largest
from mmaformal.hardware.normalised import leading_one
from mmaformal.proof.lemmas import Argument, Link

#: A word of fewer bits is no sum.
_WORD = 8
#: Words that are tried in the first round.
_WORDS = 3
#: Seconds for each case, in the first round.
_PATIENCE = 10.0


class NodeProver(Cutting, Protocol):
    """A prover of nodes, one after the other."""

    theorem: Argument
    effort: float
    largest: list[Largest]
    progress: Callable[[str], None]

    def range_of(self, term: z3.ExprRef) -> Link | None:
        """Prove in which range a word is; None where nothing but its width is known."""

    def given(
        self, node: z3.ExprRef, term: z3.ExprRef, level: int, only: Callable[[Link], bool] | None = None
    ) -> list[Link]:
        """Return the links that are cut at."""


def sums_of_codes(interfaces: Iterable[tuple[str, z3.ExprRef]]) -> dict[int, z3.BitVecRef]:
    """Return what each code of a model is made of: the `total` beside a `result`."""
    by_name = dict(interfaces)
    found = {}
    for name, term in by_name.items():
        total = by_name.get(f"{name.removesuffix('.result')}.total")
        if name.endswith(".result") and isinstance(total, z3.BitVecRef):
            found[term.get_id()] = total
    return found


def prove_rounder(by: NodeProver, node: z3.BitVecRef, term: z3.BitVecRef) -> Link | None:
    """The link of a node to a code of the model, proved in a case for each place of the leading one of a word.

    The word is the one that both are made of which is made of most; nothing is cut that is made of it.  Later rounds
    try the next word too.
    """
    link = Link(node == term, (term,), ((node, term),))
    first = by.given(node, term, 0, lambda each: all(x.get_id() != term.get_id() for x in each.free))
    words = {
        each.free[0].get_id(): each.free[0] for each in first if len(each.free) == 1 and is_word(each.free[0])
    }
    last = sorted(words.values(), key=lambda word: -len(by.graph.nodes([word])))
    for word in last[: round(_WORDS * by.effort**0.5)]:
        above = by.graph.above([node, term], word)
        given = by.given(node, term, 0, functools.partial(_beside, above))
        given += between(by, given, by.largest)
        cut = {free.get_id(): free for each in given for free in each.free}
        given += [each for each in map(by.range_of, cut.values()) if each is not None]
        at = [
            i
            for i, each in enumerate(given)
            if len(each.free) == 1 and each.free[0].get_id() == word.get_id()
        ]
        if at and _in_cases(by, link, given, at[0]):
            return link
    return None


def _beside(above: Container[int], link: Link) -> bool:
    """Whether a link cuts nothing that is made of a word."""
    return not any(x.get_id() in above for x in link.free)


def _in_cases(by: NodeProver, last: Link, given: Sequence[Link], at: int) -> bool:
    """Whether a link is proved for each place of the leading one of the word that is cut at a place."""
    word, said = given[at].term, replace(given[at], free=())
    bits, others = word.size(), [*given[:at], *given[at + 1 :]]
    cases = [leading_one(word, i) for i in range(-1, bits)]
    for i, case in enumerate(cases):
        by.progress(f"a code, where the leading one of {bits} bits is at {i - 1}")
        if not by.attempt(last, [case, said, *others], _PATIENCE):
            return False
    by.theorem.split("a word has a leading one, or is 0", cases, terms=[word])
    return True


def is_word(term: z3.ExprRef) -> bool:
    """Whether a term is as wide as sums are."""
    return isinstance(term, z3.BitVecRef) and term.size() >= _WORD


__all__ = ["is_word", "prove_rounder", "sums_of_codes"]
