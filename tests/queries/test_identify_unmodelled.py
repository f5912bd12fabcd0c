"""A unit that no model is: special values of its own are findings, and a wrong model is told as the nearest."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from support.slow import slow
from support.unmodelled import (
    BF16,
    BF16_FDA,
    FP16,
    GPS,
    Unit,
    by_call,
    by_place,
    cut_down,
    fda,
    flushes_c,
    flushes_results,
    kahan,
    minus_zeros,
    noisy,
    own_nan,
    plain_loop,
    saturates,
    tree,
    wide_chain,
)

from mmaformal import ARCHITECTURES, identify
from mmaformal.cases.in_common import in_common
from mmaformal.cases.inputs import Codes, Rows
from mmaformal.encodings.efda import Efda
from mmaformal.encodings.fda import space as fda_space
from mmaformal.encodings.gfda import space as gfda
from mmaformal.encodings.muladd import Muladd
from mmaformal.encodings.muladd import space as muladd
from mmaformal.encodings.sfma import space as sfma
from mmaformal.encodings.wfma import Wfma
from mmaformal.encodings.wfma import space as wfma
from mmaformal.formats import FORMATS
from mmaformal.instruction import Instruction
from mmaformal.queries import asking_units, identify_search
from mmaformal.queries import identify as module
from mmaformal.queries.special_rules import SpecialRules, rows_without_special, wrong
from mmaformal.rounding import IEEE_FP32, RZ_FP32
from mmaformal.spaces import sticky
from mmaformal.spaces.common import Types
from mmaformal.spec import DotAdd

QUICK: dict[str, Any] = {"k": 4, "timeout": 60.0, "solver_timeout": 3.0, "confirm": 1500}
_TYPES = Types.of(fda().spec)


def some(k: int = 4) -> list[DotAdd]:
    """A few models of each kind."""
    one = fda(k)
    fdas = [one.replace(**x).spec for x in ({}, {"F": 23}, {"F": 25}, {"rho": "RNE-FP32"}, {"e_zero": None})]
    others = [_TYPES.model(k, parameters) for parameters in (Wfma(IEEE_FP32), Efda(k, IEEE_FP32))]
    return [*fdas, GPS.replace(k=k).spec, GPS.replace(k=k, G=k).spec, *others]


OWN: dict[Unit, str] = {
    own_nan: "its NaN is 0x7fc00000, the model's 0x7fffffff",
    flushes_c: "a subnormal c is taken for zero",
    flushes_results: "a subnormal result is zero",
    minus_zeros: "a zero result is always −0",
}


@pytest.mark.parametrize("unit", slow(OWN, {flushes_results, minus_zeros}))
def test_special_values_of_its_own_are_a_finding(unit: Unit) -> None:
    found = OWN[unit]
    asked = identify(unit, among=some(), **FP16, **QUICK)
    assert (asked.verdict, asked.findings, asked.wrong) == ("special", (found,), ())
    assert asked.classes[0].model == fda().spec
    assert asked.summary.startswith(f"{fda().spec.text}, but {found}, by ")
    assert not asked
    assert asked.to_json()["findings"] == [found]


@pytest.mark.slow
def test_saturation_is_a_finding() -> None:
    models = [BF16_FDA, BF16_FDA.replace(F=25), BF16_FDA.replace(rho="RNE-FP32")]
    asked = identify(saturates, among=models, **BF16, **QUICK)
    assert asked.verdict == "special"
    assert asked.findings == ("an overflow of finite inputs is the largest number",)
    assert asked.classes[0].model == BF16_FDA.spec


@pytest.mark.parametrize("bits", slow([25, 30, 53], {25, 53}))
def test_an_accumulator_that_is_rounded_at_the_end_is_none(bits: int) -> None:
    asked = identify(wide_chain(bits), among=some(), **FP16, **QUICK)
    assert (asked.verdict, asked.repeated) == ("none", ())
    assert asked.wrong
    assert "; the nearest, " in asked.summary
    assert "the smallest of them: " in str(asked)


@pytest.mark.slow
@pytest.mark.parametrize("unit", [kahan, cut_down])
def test_what_is_no_model_is_none(unit: Unit) -> None:
    asked = identify(unit, among=some(), **FP16, **QUICK)
    assert (asked.verdict, asked.repeated) == ("none", ())


def test_a_tree_is_that_of_gps_but_for_subnormal_numbers() -> None:
    """gps flushes subnormal factors and this does not; no finding says that, the rows have it in common."""
    asked = identify(tree, among=some(8), **FP16, **(QUICK | {"k": 8}))
    assert asked.verdict == "special"
    assert asked.classes[0].model == GPS.replace(k=8, G=8).spec
    assert "rows with special values are otherwise" in asked.summary
    assert str(asked.in_common[0]).startswith("a subnormal factor")


def test_the_same_input_with_other_answers_is_noise() -> None:
    asked = identify(noisy(1e-2), among=some(), **FP16, **QUICK)
    assert asked.verdict == "noise"
    assert asked.classes[0].model == fda().spec
    assert asked.repeated


@pytest.mark.parametrize("unit", slow(["by_call", "by_place"], {"by_call"}))
def test_two_models_by_turns_are_a_mixture(unit: str) -> None:
    asked = identify({"by_call": by_call(), "by_place": by_place}[unit], among=some(), **FP16, **QUICK)
    assert asked.verdict == "mixture"
    assert {each.model for each in asked.classes} == {fda().spec, GPS.replace(k=4).spec}
    assert "answers are others when asked again" in asked.summary


def test_special_values_split_no_function_in_two() -> None:
    """A second model that has the unit's NaN explains all that the first does not."""
    nan = ARCHITECTURES["cdna3"]["v_mfma_f32_32x32x8_f16"].replace(k=4, L=4)
    asked = identify(own_nan, among=[*some(), nan], **FP16, **QUICK)
    assert asked.verdict == "special"


SPACE = {
    "own_nan": (own_nan, 4, "special"),
    "flushes_c": (flushes_c, 4, "special"),
    "tree": (tree, 8, "special"),
    "wide_chain": (wide_chain(30), 4, "none"),
    "kahan": (kahan, 4, "none"),
    "by_place": (by_place, 4, "mixture"),
    "noisy": (noisy(), 4, "noise"),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", SPACE)
def test_of_all_models_there_are(name: str) -> None:
    unit, k, verdict = SPACE[name]
    asked = identify(unit, k=k, timeout=60, solver_timeout=5, **FP16)
    assert asked.verdict == verdict
    if verdict == "special":
        assert (asked.findings == (OWN[unit],)) == (unit in OWN)
        assert asked.classes[0].model.text.startswith(
            "gps G=8" if name == "tree" else "fda F=24 L=4 ρ=RZ-FP32"
        )


# ---- which models are tried ------------------------------------------------------------------------------------------


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A space of a few algorithms, and one design."""
    monkeypatch.setattr(module, "algorithms", lambda: ["sfma", "ffma"])
    monkeypatch.setattr(identify_search, "design_spaces", lambda: ["muladd"])
    for space in (sfma, muladd):
        monkeypatch.setattr(space, "conversions", lambda fmt: iter((IEEE_FP32, RZ_FP32)))
    asking_units.everything.cache_clear()
    yield
    asking_units.everything.cache_clear()


@pytest.mark.usefixtures("few")
def test_designs_are_tried_where_nothing_else_explains() -> None:
    fp32 = FORMATS["fp32"]
    spec = Types(fp32, fp32, fp32, fp32).model(2, Muladd(IEEE_FP32, IEEE_FP32))
    unit = Instruction("X", "a unit", 1, 1, spec)
    asked = identify(unit, **{x: QUICK[x] for x in ("timeout", "solver_timeout", "confirm")})
    assert asked.verdict in ("one", "several")
    assert spec in asked.classes[0].members
    asked = identify(unit, only=["sfma"], **{x: QUICK[x] for x in ("timeout", "solver_timeout", "confirm")})
    assert asked.verdict == "none"
    assert {each.model.parameters.algorithm for each in asked.classes} == {"sfma"}


@pytest.mark.usefixtures("few")
def test_a_unit_is_named_where_a_design_that_leaves_nans_open_explains_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A plain loop is IEEE's fused multiply-add, but for its NaNs; a design on paper explains these too."""
    monkeypatch.setattr(module, "algorithms", lambda: ["wfma", "dpa_e9s12"])
    asked = identify(plain_loop, **FP16, **QUICK)
    assert (asked.verdict, asked.wrong) == ("special", ())
    assert asked.classes[0].model == _TYPES.model(4, Wfma(IEEE_FP32))
    assert asked.summary.startswith("wfma ρ=IEEE-FP32, but its NaN is ")


@pytest.mark.slow
def test_a_sticky_alignment_is_a_design(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "algorithms", lambda: ["wfma"])
    monkeypatch.setattr(identify_search, "design_spaces", lambda: ["sticky"])
    monkeypatch.setattr(sticky, "lowered", sticky.gfda)
    monkeypatch.setattr(fda_space, "PLACES", range(18, 22))
    for space in (fda_space, gfda, wfma):
        monkeypatch.setattr(space, "conversions", lambda fmt: iter((RZ_FP32,)))
    unit = fda(4).replace(F=20, cut="RO")
    found = identify(unit, solver_timeout=3, confirm=600)
    assert unit.spec.parameters.algorithm == found.classes[0].model.parameters.algorithm
    assert found.verdict in ("one", "several")
    assert found.classes[0].model.replace(e_zero=-131) == unit.spec


def test_an_algorithm_or_a_format_that_there_is_not_is_told() -> None:
    with pytest.raises(ValueError, match="no algorithm 'fmac'; there are acc_e9s12, "):
        identify(fda().dot_add, only=["fmac"], **FP16, k=4)
    with pytest.raises(ValueError, match="a_format: no format 'fp17'; there are fp64, ") as error:
        identify(fda().dot_add, a_format="fp17", c_format="fp32", k=4)
    assert "\n" not in str(error.value)


# ---- what the search rests on ----------------------------------------------------------------------------------------


def rows_of(*cases: tuple[list[int], list[int], int]) -> Rows:
    return Rows.of([Codes(tuple(a), tuple(b), c) for a, b, c in cases])


def test_a_rule_that_an_answer_contradicts_explains_nothing() -> None:
    spec, rules = fda(1).spec, SpecialRules(frozenset("d"))
    rows = rows_of(([0], [0], 1), ([0], [0], 1))
    assert wrong(spec, rows, np.array([0, 1], np.uint64), rules).tolist() == [False, True]


def test_plain_rows_have_no_special_values() -> None:
    one = 0x3C00
    rows = rows_of(
        ([one], [one], 0x3F800000), ([1], [one], 0x3F800000), ([one], [one], 1), ([0], [one], 0x3F800000)
    )
    d = np.full(4, 0x40000000, np.uint64)
    types = Types.of(fda(1).spec)
    assert rows_without_special(rows, d, types).tolist() == [True, False, False, False]
    assert not rows_without_special(rows, np.full(4, 0x7F800000, np.uint64), types).any()


def test_what_rows_have_in_common() -> None:
    """Those whose two products cancel, of 40."""
    one, minus, two = 0x3C00, 0xBC00, 0x4000
    cases = [([one, minus if i % 4 == 0 else two], [one, one], 0x33800000) for i in range(40)]
    formats = [FORMATS[x] for x in ("fp16", "fp16", "fp32", "fp32")]
    first, *_ = in_common(formats, rows_of(*cases), np.arange(40) % 4 == 0)
    assert first.fact == "terms that cancel: the sum is 24 or more places below the largest of them"
    assert str(first).endswith("(100 % of them; of the other rows 0 %)")
