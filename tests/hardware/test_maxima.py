"""Which maximum a node of a design may be."""

from __future__ import annotations

import numpy as np
import z3

from mmaformal.hardware.maxima import Largest, Maxima

TERMS = tuple(z3.BitVecs("x y z", 9))
TOP = z3.BitVec("top", 9)
ROWS = np.random.default_rng(1).integers(0, 500, (3, 50))
VALUES = {term.get_id(): tuple(map(int, row)) for term, row in zip(TERMS, ROWS, strict=True)}


def numbers(*places: int, offset: int = 0) -> tuple[int, ...]:
    return tuple(int(x) + offset for x in ROWS[list(places)].max(axis=0))


def test_partial_maxima_are_found_in_any_order_and_with_an_offset() -> None:
    maxima = Maxima([Largest(TOP, TERMS, (), (), None)], VALUES)
    assert maxima.of(numbers(0, 1, 2)) is None  # no two of those met before
    found = maxima.of(numbers(0, 2, offset=-133))
    assert found is not None
    maximum, offset = found
    assert (maximum.places, offset, maximum.whole) == ({0, 2}, -133, False)
    maxima.add(maximum, numbers(0, 2, offset=-133), offset)
    found = maxima.of(numbers(0, 1, 2, offset=7))
    assert found is not None
    assert (found[0].places, found[1], found[0].whole) == ({0, 1, 2}, 7, True)
    assert maxima.of(tuple(int(x) for x in ROWS[:2].sum(axis=0))) is None
    assert maxima.of(tuple(int(x) for x in ROWS[:2].min(axis=0))) is None
