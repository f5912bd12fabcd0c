"""Partial maxima of a model's exponents, in whatever order a design compares them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import z3
from numpy.typing import NDArray

from mmaformal.display import ShortRepr, counted, short_text
from mmaformal.hardware.sums import CaseValues
from mmaformal.proof.lemmas import Argument, Link, is_maximum


@dataclass(frozen=True, repr=False)
class Largest(ShortRepr):
    """The largest of several terms in a model, and that none of them is above it."""

    top: z3.BitVecRef
    terms: tuple[z3.BitVecRef, ...]
    below: tuple[Link, ...]
    significands: tuple[z3.BitVecRef, ...]  #: of the terms
    total: z3.BitVecRef | None  #: the sum of the aligned terms
    definitions: tuple[
        Link, ...
    ] = ()  #: of terms as functions of the inputs, as a claim that cuts all else takes it


@dataclass(frozen=True, repr=False)
class Maximum(ShortRepr):
    """The largest of some of the terms, compared in the design's order."""

    of: Largest
    places: frozenset[int]  #: of the terms
    term: z3.BitVecRef

    @property
    def whole(self) -> bool:
        return len(self.places) == len(self.of.terms)


def largest_exponents(theorem: Argument, steps: Sequence[object]) -> list[Largest]:
    """The largest exponents that each step of the model aligns terms to, and that no exponent is above them."""
    found = []
    for step in steps:
        parts = _terms_of(step)
        for top, total in _tops_of(step):
            below = [x for x in _leaves(top, parts) if x.get_id() in parts]
            if len(below) > 1 and is_maximum(top, below):
                links = theorem.not_below("align", "exponents", top, below)
                significands = tuple(parts[x.get_id()] for x in below)
                found.append(Largest(top, tuple(below), tuple(links), significands, total))
    return found


def _tops_of(step: object) -> Iterator[tuple[z3.BitVecRef, z3.BitVecRef | None]]:
    """The terms that may be the largest exponents of a step, each with the sum of what is aligned to it."""
    pairs = [
        ("e_max", getattr(step, "total", getattr(getattr(step, "sum", None), "total", None))),
        ("e_products", getattr(step, "dot", None)),
    ]
    for name, total in pairs:
        yield from _pair(getattr(step, name, None), total)
    sums = getattr(step, "groups", ())
    for top, total in zip(getattr(step, "e_groups", ()), sums, strict=False):
        yield from _pair(top, total)


def _pair(top: object, total: object) -> Iterator[tuple[z3.BitVecRef, z3.BitVecRef | None]]:
    if isinstance(top, z3.BitVecRef):
        yield top, total if isinstance(total, z3.BitVecRef) else None


def _leaves(top: z3.ExprRef, parts: Mapping[int, z3.BitVecRef]) -> list[z3.BitVecRef]:
    """Return the terms that a tree of maxima is made of, from left to right."""
    if top.get_id() in parts or not z3.is_app_of(top, z3.Z3_OP_ITE):
        return [top]
    return [x for i in (1, 2) for x in _leaves(top.arg(i), parts)]


def _terms_of(step: object) -> dict[int, z3.BitVecRef]:
    """The significands of what a step may align, by the ids of their exponents: products or groups of them, and c."""
    groups = [getattr(group, "term", group) for group in getattr(step, "groups", ())]
    every = (
        *getattr(step, "terms", ()),
        *getattr(step, "products", ()),
        *groups,
        getattr(step, "addend", None),
    )
    found = {}
    for x in every:
        exponent, significand = getattr(x, "exponent", None), getattr(x, "significand", None)
        if isinstance(exponent, z3.BitVecRef) and isinstance(significand, z3.BitVecRef):
            found[exponent.get_id()] = significand
    return found


class Maxima(ShortRepr):
    """The partial maxima that were met in a design, by their values."""

    def __init__(self, largest: Sequence[Largest], values: dict[int, CaseValues]) -> None:
        self.pools: list[tuple[list[Maximum], NDArray[np.int64]]] = []
        for each in largest:
            found = [Maximum(each, frozenset((i,)), term) for i, term in enumerate(each.terms)]
            seen = np.array([values[term.get_id()] for term in each.terms], np.int64)
            self.pools.append((found, seen))

    def __repr__(self) -> str:
        return short_text(self, counted(len(self.pools), "largest exponent"))

    def of(self, numbers: CaseValues) -> tuple[Maximum, int] | None:
        """The larger of two that were met before, if some numbers are that and an offset; and the offset."""
        seen = np.array(numbers, np.int64)
        for found, rows in self.pools:
            for i in reversed(range(len(found))):
                apart = seen - np.maximum(rows[i], rows[:i])
                for j in np.flatnonzero((apart == apart[:, :1]).all(axis=1)):
                    x, y = found[i], found[int(j)]
                    if not x.places & y.places:
                        term = z3.If(z3.UGT(x.term, y.term), x.term, y.term)
                        return Maximum(x.of, x.places | y.places, term), int(apart[j, 0])
        return None

    def add(self, maximum: Maximum, numbers: CaseValues, offset: int) -> None:
        """A maximum that a node of the design is, with its offset."""
        for at, (found, rows) in enumerate(self.pools):
            if found[0].of is maximum.of:
                row = np.array(numbers, np.int64) - offset
                self.pools[at] = ([*found, maximum], np.vstack([rows, row]))
