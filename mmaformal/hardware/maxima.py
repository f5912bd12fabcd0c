"""Partial maxima of a model's exponents, in whatever order a design compares them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import z3
from numpy.typing import NDArray

from mmaformal.display import ShortRepr, counted, short_text
from mmaformal.hardware.sums import Value
from mmaformal.proof.lemmas import Argument, Link, is_maximum


@dataclass(frozen=True, repr=False)
class Largest(ShortRepr):
    """The largest of several terms in a model, and that none of them is above it."""

    top: z3.BitVecRef
    terms: tuple[z3.BitVecRef, ...]
    below: tuple[Link, ...]
    significands: tuple[z3.BitVecRef, ...]  #: of the terms
    total: z3.BitVecRef | None  #: the sum of the aligned terms


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
    """The largest exponent of each step of the model, and that no exponent is above it."""
    found = []
    for step in steps:
        top = getattr(step, "e_max", None)
        for terms in _terms_of(step) if isinstance(top, z3.BitVecRef) else ():
            below = [exponent for exponent, _ in terms]
            if not below or not is_maximum(top, below):
                continue
            links = theorem.not_below("align", "exponents", top, below)
            total = getattr(step, "total", getattr(getattr(step, "sum", None), "total", None))
            total = total if isinstance(total, z3.BitVecRef) else None
            found.append(Largest(top, tuple(below), tuple(links), tuple(x for _, x in terms), total))
            break
    return found


def _terms_of(step: object) -> Iterator[list[tuple[z3.BitVecRef, z3.BitVecRef]]]:
    """Exponents and significands of what a step may align: its terms, or products or groups of them, and c."""
    c = getattr(step, "addend", None)
    groups = [getattr(group, "term", group) for group in getattr(step, "groups", ())]
    for every in (getattr(step, "terms", ()), (*getattr(step, "products", ()), c), (*groups, c)):
        parts = [(getattr(x, "exponent", None), getattr(x, "significand", None)) for x in every]
        yield [(e, s) for e, s in parts if isinstance(e, z3.BitVecRef) and isinstance(s, z3.BitVecRef)]


class Maxima(ShortRepr):
    """The partial maxima that were met in a design, by their values."""

    def __init__(self, largest: Sequence[Largest], values: dict[int, Value]) -> None:
        self.pools: list[tuple[list[Maximum], NDArray[np.int64]]] = []
        for each in largest:
            found = [Maximum(each, frozenset((i,)), term) for i, term in enumerate(each.terms)]
            seen = np.array([values[term.get_id()] for term in each.terms], np.int64)
            self.pools.append((found, seen))

    def __repr__(self) -> str:
        return short_text(self, counted(len(self.pools), "largest exponent"))

    def of(self, numbers: Value) -> tuple[Maximum, int] | None:
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

    def add(self, maximum: Maximum, numbers: Value, offset: int) -> None:
        """A maximum that a node of the design is, with its offset."""
        for at, (found, rows) in enumerate(self.pools):
            if found[0].of is maximum.of:
                row = np.array(numbers, np.int64) - offset
                self.pools[at] = ([*found, maximum], np.vstack([rows, row]))
