"""A slice of the campaign of `random_units.py`: no exception, no wrong number, no wrong answer."""

from __future__ import annotations

import itertools
import random

import pytest
import random_units

from mmaformal import ampere
from mmaformal.encodings.executable import fda

QUICK, SLOW = 12, 500


@pytest.mark.parametrize("seed", [100])
def test_random_units_compute_what_exact_arithmetic_does(seed: int) -> None:
    for number, unit in itertools.islice(random_units.units(seed), QUICK):
        given = random_units.cases(unit.spec, random.Random(number), 40)
        assert not random_units.wrong_values(unit, given), unit.spec


def test_answers_about_random_units_are_right() -> None:
    plan = random_units.Plan(cases=5, properties=1, timeout=0.7)
    for number, unit in itertools.islice(random_units.units(101), 4):
        wrong, _ = random_units.try_unit(number, unit, plan)
        assert not wrong, unit.spec


def test_a_wrong_number_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    align = fda.align
    monkeypatch.setattr(fda, "align", lambda *given: align(*given) & ~1)
    found = [
        random_units.wrong_values(unit, random_units.cases(unit.spec, random.Random(number), 40))
        for number, unit in itertools.islice(random_units.units(100), QUICK)
        if unit.algorithm == "fda"
    ]
    assert any("dot_add" in line for lines in found for line in lines)
    assert not any("terms" in line for lines in found for line in lines)


def test_a_wrong_answer_is_noticed() -> None:
    rng = random.Random(0)
    assert random_units.attack("order-independence-across-blocks", ampere["HMMA.16816.F32"], rng)
    assert random_units.attack("correct-rounding", ampere["HMMA.1688.F32"], rng)
    assert random_units.attack("lossless-width", ampere["HMMA.1688.F32"], rng)
    assert random_units.attack("zero-padding", ampere["HMMA.1688.F32"].replace(e_zero=10), rng)
    assert random_units.attack("order-independence", ampere["HMMA.1688.F32"], rng) is None


@pytest.mark.slow
def test_five_hundred_random_units() -> None:
    assert random_units.main(["--count", str(SLOW), "--seed", "1", "--properties", "1"]) == 0
