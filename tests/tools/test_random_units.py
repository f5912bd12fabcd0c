"""A slice of the campaign of `random_units.py`: no exception, no wrong number, no wrong answer."""

from __future__ import annotations

import dataclasses
import itertools
import random
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from support import attacks, random_cases, random_units
from support.attacks import attack
from support.minimality import claims
from support.proofs import some_proof
from support.rounded_once import Exactness

from mmaformal import Different, ampere, cdna2, cdna3, find_difference
from mmaformal.cases.inputs import Codes
from mmaformal.encodings.executable import stages
from mmaformal.formats import fp16, fp32
from mmaformal.queries.constraints import finite, fixed, magnitude, nonzero, normal
from mmaformal.queries.properties import PROPERTIES
from mmaformal.solver.answers import Holds, Number

QUICK, SLOW = 12, 500


@pytest.mark.parametrize("seed", [100])
def test_random_units_compute_what_exact_arithmetic_does(seed: int) -> None:
    for number, unit in itertools.islice(random_units.units(seed), QUICK):
        given = random_cases.cases(unit.spec, random.Random(number), 40)
        assert not random_units.wrong_values(unit, given), unit.spec


def test_answers_about_random_units_are_right() -> None:
    plan = random_units.Plan(cases=5, properties=1, timeout=0.7)
    for number, unit in itertools.islice(random_units.units(101), 2):
        wrong, _ = random_units.try_unit(number, unit, plan)
        assert not wrong, unit.spec


def test_a_wrong_number_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    align = stages.align
    monkeypatch.setattr(stages, "align", lambda *given: align(*given) & ~1)
    found = [
        random_units.wrong_values(unit, random_cases.cases(unit.spec, random.Random(number), 40))
        for number, unit in itertools.islice(random_units.units(100), QUICK)
        if unit.algorithm == "fda"
    ]
    assert any("dot_add" in line for lines in found for line in lines)
    assert not any("terms" in line for lines in found for line in lines)


def test_a_property_that_holds_is_attacked_in_vain() -> None:
    assert attack("order-independence", ampere["HMMA.1688.F32"], random.Random(0)) is None


#: name → a unit of which the property does not hold, which some random case shows
NOT_SO = {
    "order-independence-across-blocks": ampere["HMMA.16816.F32"],
    "commutativity": ampere["HMMA.16816.F32"].replace(k=1, L=1),  # its executable is changed below
    "sign-symmetry": cdna3["v_mfma_f32_32x32x8_f16"],
    "zero-padding": ampere["HMMA.1688.F32"].replace(e_zero=10),
    "power-of-two-scaling": ampere["HMMA.1688.F32"].replace(e_zero=10),
    "no-nan-from-finite": cdna2["v_mfma_f32_16x16x8bf16"],
    "never-minus-zero": ampere["DMMA.884"],
    "every-number": cdna2["v_mfma_f32_16x16x8bf16"],
    "monotonicity-in-c": ampere["HMMA.1688.F32"].replace(F=6),
    "monotonicity-in-a-product": ampere["HMMA.1688.F32"].replace(F=6),
    "lossless-width": ampere["HMMA.1688.F32"],
    "correct-rounding": ampere["HMMA.1688.F32"],
    "faithful-rounding": ampere["HMMA.1688.F32"],
    "correct-rounding-of-each-step": ampere["HMMA.16816.F32"],
}


@pytest.mark.parametrize("name", NOT_SO)
def test_a_property_that_does_not_hold_is_attacked_with_success(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    if name == "commutativity":
        multiply = stages.multiply
        monkeypatch.setattr(stages, "multiply", lambda x, y, *more: multiply(x, x, *more))
    assert attack(name, NOT_SO[name], random.Random(0), 3000)


@pytest.mark.slow
def test_products_that_are_flushed_away_are_attacked_with_success() -> None:
    """Few cases have some."""
    unit = cdna2["v_mfma_f32_16x16x8bf16"]
    assert attack("power-of-two-scaling", unit, random.Random(0), 3000)


def test_numbers_that_are_too_small_are_attacked_with_success() -> None:
    unit = ampere["HMMA.1688.F32"]
    for name, number, value, enough in (
        ("error-bound", "n", Fraction(1, 2), 8),
        ("accumulator-width", "sum bits", 24, 31),
    ):
        for stated, found in ((value, True), (enough, False)):
            answer = Holds("", some_proof(), 0.0, (Number(number, stated, ""),))
            assert bool(attack(name, unit, random.Random(0), 400, answer)) == found, (name, stated)


def test_conditions_of_exactness_that_are_too_weak_are_attacked_with_success(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert attack("exactness", ampere["HMMA.1688.F32"], random.Random(0), 400) is None
    monkeypatch.setattr(attacks, "examine", lambda *_: Exactness(True, False))
    assert attack("exactness", ampere["HMMA.1688.F32"], random.Random(0), 400)


def test_every_property_has_an_attack() -> None:
    assert attacks.ATTACKS.keys() == PROPERTIES.keys()


def test_a_witness_that_is_not_the_smallest_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    unit = ampere["HMMA.1688.F32"].replace(k=1, L=1)
    other, rng = unit.replace(F=20), random.Random(0)
    answer = find_difference(unit, other)
    assert isinstance(answer, Different)
    assert random_units.wrong_difference(unit, other, rng, 20.0) == ("Different", [])
    large = dataclasses.replace(answer.witness, a=answer.witness.a | np.uint16(1))
    assert large.rerun()[0] != large.rerun()[1]
    sizes = claims(answer.minimality)
    bits = sizes[2][0] + 1
    false = (*answer.minimality[:2], f"significand bits set: {bits}: proved minimal", *answer.minimality[3:])
    module = "support.random_units.find_difference"
    monkeypatch.setattr(module, lambda *_, **__: dataclasses.replace(answer, witness=large, minimality=false))
    _, wrong = random_units.wrong_difference(unit, other, rng, 20.0)
    assert any("but there is a case of size" in line for line in wrong)


def test_constraints_are_read_off_values() -> None:
    spec, one = ampere["HMMA.1688.F32"].replace(k=1, L=1).spec, fp16.code("1")
    x = Codes((one,), (1,), fp32.code("inf"))
    for where, so in (
        (finite(), False),
        (normal(), False),
        (nonzero(), True),
        (magnitude(0.5, 2, "a"), True),
        (magnitude(0.5, 2, "b"), False),
        (fixed(b={0: 1}), True),
        (fixed(c=0), False),
    ):
        assert random_units.allowed([where], spec, x) == so, where


def test_a_campaign_goes_on_where_it_was(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = tmp_path / "log"
    plan = ["--seed", "5", "--cases", "5", "--properties", "0", "--no-difference", "--log", str(log)]
    assert random_units.main(["--count", "2", *plan]) == 0
    first = log.read_text()
    log.write_text(first + '{"number": 50')  # broken off
    assert random_units.main(["--count", "3", *plan]) == 0
    assert log.read_text().startswith(first)
    assert capsys.readouterr().out.count("0 with something wrong") == 2


@pytest.mark.slow
def test_five_hundred_random_units() -> None:
    plan = ["--properties", "1", "--kernel-every", "20", "--chain-every", "15", "--encodings-every", "10"]
    assert random_units.main(["--count", str(SLOW), "--seed", "1", *plan]) == 0
