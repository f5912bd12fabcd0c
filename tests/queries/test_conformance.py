"""Whether every result is one that RISC-V's standard allows: what it allows of one input, and what is proved."""

from __future__ import annotations

import random
from fractions import Fraction

import pytest

from mmaformal import ARCHITECTURES, hopper, prove, riscv
from mmaformal.analysis.riscv_freedom import TooManyError, allowed, cuts, is_of_standard, single, to_odd
from mmaformal.cases.generate import generate
from mmaformal.encodings.rvbna.proofs import model
from mmaformal.formats import fp32
from mmaformal.instruction import Instruction
from mmaformal.queries import conformance
from mmaformal.solver.answers import Fails, Holds, Unknown

SMALL = "vfqwbdota.vv.E4M3.n2"
CONFORMING = ("riscv", "riscv@corrected", "riscv@products", "riscv@pairs", "riscv@fours")
ONE = Fraction(1)


def test_cutting_twice_is_cutting_once() -> None:
    rng = random.Random(5)
    for _ in range(500):
        x = Fraction(rng.randrange(1, 1 << 40)) * rng.choice([1, -1])
        low = rng.randrange(0, 20)
        assert to_odd(to_odd(x, low), low + 7) == to_odd(x, low + 7)


def test_what_a_number_may_become_ends_at_the_precision_of_the_instruction() -> None:
    assert set(cuts(ONE)) == {ONE}
    x = 1 + Fraction(2) ** -26
    assert set(cuts(x)) == {x, 1 + Fraction(2) ** -25, 1 + Fraction(2) ** -24, 1 + Fraction(2) ** -23}
    assert set(cuts(Fraction(2) ** 128)) == {Fraction(2) ** 128, float("inf")}
    assert {single(x) for x in cuts(Fraction(2) ** -160)} == {1}


def test_single_is_to_odd() -> None:
    for code in (0, 1, 0x7FFFFF, 0x800000, 0x3F800001, 0x7F7FFFFF, 0x80000001, 0xFF7FFFFF):
        x = fp32.value(code)
        assert single(x) == code
        if x:
            assert single(x * (1 + Fraction(2) ** -40)) == code | 1
    assert single(Fraction(2) ** 128) == 0x7F800000


@pytest.mark.parametrize("name", ["vfwbdota.vv.n4", "vfqwbdota.alt.vv.E4M3.n4"])
@pytest.mark.parametrize("mood", ["near", "least", "largest", "special"])
def test_conforming_units_give_what_is_allowed(name: str, mood: str) -> None:
    units = [ARCHITECTURES[reading][name] for reading in CONFORMING]
    spec, known = units[0].spec, 0
    for codes in generate(spec, 20, 1, [mood]).cases():  # type: ignore[list-item]
        try:
            right = allowed(spec, codes.a, codes.b, codes.c, 500)
        except TooManyError:
            continue
        known += 1
        for i in units:
            assert int(i.dot_add(list(codes.a), list(codes.b), codes.c)) in right, (i.label, codes)
    assert known > 5


def test_a_product_and_c_have_one_result() -> None:
    spec = riscv["vfwbdota.vv.n8"].spec
    for c in (0x30000000, 0xB0000000, 0x3F800000, 0xBF800000):
        assert len(allowed(spec, [0x3F81] + [0] * 7, [0x3F80] + [0] * 7, c)) == 1


def test_sets_give_more_than_one_result() -> None:
    """2^24 + 1 + 1: to odd at each addition, or summed first."""
    spec = riscv["vfwbdota.vv.n2"].spec
    one, large = 0x3F80, 0x4B80
    assert allowed(spec, [one, one], [one, one], 0x4B800000) == {0x4B800001}
    right = allowed(riscv["vfwbdota.vv.n4"].spec, [large, one, one, one], [one] * 4, 0)
    assert right == {0x4B800001, 0x4B800002}


@pytest.mark.parametrize("reading", ["riscv", "riscv@corrected", "riscv@products"])
def test_conforming_units_are_proved(reading: str) -> None:
    answer = prove("conformance", ARCHITECTURES[reading][SMALL], timeout=200)
    assert isinstance(answer, Holds)
    assert "conforming unit of" in answer.notes[0]


@pytest.mark.slow
@pytest.mark.parametrize("reading", CONFORMING)
@pytest.mark.parametrize("name", ["vfwbdota.vv.n4", "vfwbdota.vv.n8", "vfqwbdota.vv.E4M3.n8"])
def test_more_conforming_units_are_proved(reading: str, name: str) -> None:
    assert isinstance(prove("conformance", ARCHITECTURES[reading][name], timeout=900), Holds)


def not_conforming() -> list[Instruction]:
    one = riscv["vfwbdota.vv.n2"]
    return [
        ARCHITECTURES["riscv@printed-1"]["vfwbdota.vv.n2"],
        ARCHITECTURES["riscv@printed-2"]["vfwbdota.vv.n2"],
        ARCHITECTURES["riscv@printed"][SMALL],
        one.replace(addition="IEEE-FP32"),
        one.replace(rho="RZ-FP32"),
        one.replace(cut="RZ"),
    ]


@pytest.mark.parametrize("i", not_conforming(), ids=lambda i: i.label)
def test_other_units_have_an_input_outside(i: Instruction) -> None:
    answer = prove("conformance", i, timeout=100)
    assert isinstance(answer, Fails)
    codes = answer.witness.runs[0].codes  # type: ignore[attr-defined]
    d = int(i.dot_add(list(codes.a), list(codes.b), codes.c))
    assert d not in allowed(i.spec, codes.a, codes.b, codes.c)


def test_units_of_other_types_are_not_judged() -> None:
    assert not is_of_standard(hopper["HMMA.16816.F32"].spec)
    assert isinstance(prove("conformance", hopper["HMMA.16816.F32"]), Unknown)


def test_nothing_holds_by_a_wrong_member(monkeypatch: pytest.MonkeyPatch) -> None:
    """Were the members the printed text, the model would not be proved to be one."""
    right = conformance.member
    monkeypatch.setattr(conformance, "member", lambda spec, size: right(spec, size).replace(corrected=()))
    monkeypatch.setattr(
        model, "applies", lambda x, y: x.parameters.step_products == y.parameters.step_products
    )
    monkeypatch.setattr(conformance, "_CASES", 200)
    assert not isinstance(prove("conformance", riscv[SMALL], timeout=30), Holds)
