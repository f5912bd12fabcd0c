"""Counts over all inputs of a small unit: each is what a count by definition gives, and a wrong claim shows."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from enumerated_results import Every, both_of, broken, every_row, not_the_rounded_sum
from enumeration_table import asked, cells

from mmaformal.encodings.efda import Efda
from mmaformal.encodings.fda import Fda
from mmaformal.encodings.muladd import Muladd
from mmaformal.formats import Format, Specials, e5m2
from mmaformal.proof.definitions import is_correct
from mmaformal.queries.properties import PROPERTIES
from mmaformal.rounding import Conversion, Rounding
from mmaformal.shown_stages import exact_dot_add
from mmaformal.solver.answers import Holds
from mmaformal.spec import DotAdd

TINY = Format("e1m1", 3, 1, 1, 0, Specials.NONE, None)
RZ = Conversion("RZ-E5M2", e5m2, 2, Rounding.RZ)
LOSSY = DotAdd(1, TINY, TINY, e5m2, e5m2, Fda(2, 1, RZ, None))
EXACT = replace(LOSSY, parameters=Efda(1, RZ))
APART = replace(LOSSY, parameters=Muladd(RZ, RZ))


@pytest.mark.parametrize("spec", [LOSSY, APART], ids=["lossy", "apart"])
def test_counts_are_those_of_the_definitions(spec: DotAdd) -> None:
    every = Every(spec)
    codes = np.concatenate([np.column_stack([rows.a, rows.b, rows.c]) for rows in every_row(spec)]).tolist()
    exact = [exact_dot_add(spec, [a], [b], c) for a, b, c in codes]
    results = every.results.tolist()
    wrong = sum(x is not None and not is_correct(d, x, RZ) for x, d in zip(exact, results, strict=True))
    assert every.misrounded(is_correct) == wrong > 0
    d = np.array([float(e5m2.value(x)) if e5m2.is_finite(x) else _infinite(x) for x in range(256)])
    table = d[every.results].reshape(64, 256)
    below = sum(
        bool(((d[c] <= d) & (row < row[c])).any()) for row in table for c in range(256) if not np.isnan(d[c])
    )
    assert every.out_of_order_in_c() == below
    value = np.array([float(TINY.value(x)) for x in range(8)])
    products = (value[:, None] * value).reshape(-1)
    out = sum(
        bool(((products[i] <= products) & (table[:, c] < table[i, c])).any())
        for i in range(64)
        for c in range(256)
    )
    assert every.out_of_order_in_products() == out


def _infinite(code: int) -> float:
    return np.nan if e5m2.is_nan(code) else -np.inf if code & e5m2.sign_mask else np.inf


@pytest.mark.parametrize("name", ["accumulator-width", "error-bound"])
def test_a_number_that_is_not_the_least_is_seen(name: str) -> None:
    answer = asked(LOSSY, name, 60.0)
    assert isinstance(answer, Holds)
    unit, step = both_of(LOSSY)
    assert broken(name, unit, step, answer) == 0
    for off in (Fraction(-1, 8), Fraction(1, 8)) if name == "error-bound" else (-1, 1):
        numbers = [replace(each, value=each.value + off) for each in answer.numbers]
        found = broken(name, unit, step, replace(answer, numbers=tuple(numbers)))
        assert found is not None
        assert (found > 0) == (off < 0)
        assert found != 0


def test_a_wrong_result_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    unit, step = both_of(EXACT)
    told = {name: asked(EXACT, name, 60.0) for name in ("exactness", "correct-rounding", "every-number")}
    assert all(isinstance(answer, Holds) for answer in told.values())
    assert [broken(name, unit, step, answer) for name, answer in told.items()] == [0, 0, 0]
    results = unit.results.copy()
    results[results == 0x3C] = 0x3D  # 1 is never a result
    wrong = Every(EXACT)
    wrong.__dict__["results"] = results
    assert [bool(broken(name, wrong, wrong, answer)) for name, answer in told.items()] == [True, True, True]


def test_two_roundings_are_those_of_the_definition() -> None:
    assert not_the_rounded_sum(Every(APART)) == 0
    upward = replace(RZ, name="RU-E5M2", rounding=Rounding.RU)
    other = Every(replace(APART, parameters=Muladd(upward, RZ)))
    other.__dict__["results"] = Every(APART).results
    assert not_the_rounded_sum(other)


def test_a_row_has_every_property() -> None:
    found = list(cells(EXACT, 30.0))
    assert len(found) == len(PROPERTIES)
    assert all(agrees for _, agrees in found)
    assert sum(cell == "proved" for cell, _ in found) >= 9
