"""A black box is identified as the model that it is; one that lies is told as such."""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Callable
from itertools import islice
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from support.late import late
from support.slow import slow

from mmaformal import ARCHITECTURES, identify
from mmaformal.architectures.known import rarity
from mmaformal.cases.run import results
from mmaformal.encodings.dpa_e9s12 import DpaE9s12
from mmaformal.encodings.efda import Efda
from mmaformal.instruction import Instruction
from mmaformal.queries import asking_units, classes, identify_narrowing, identify_search
from mmaformal.rounding import IEEE_FP32
from mmaformal.solver.answers import Unknown
from mmaformal.spaces import algorithms, details, models
from mmaformal.spaces.common import Types
from mmaformal.spec import DotAdd

Codes = NDArray[Any]
Unit = Callable[[Codes, Codes, Codes], Codes]
GPS, PFMA = ARCHITECTURES["cdna2"]["v_mfma_f32_16x16x8bf16"], ARCHITECTURES["sapphire_rapids"]["TDPBF16PS"]


def unit(one: Instruction, other: Instruction | None = None, part: float = 0.5, seed: int = 0) -> Unit:
    """A model, or two mixed by chance."""
    rng = np.random.default_rng(seed)

    def asked(a: Codes, b: Codes, c: Codes) -> Codes:
        d = one.dot_add(a, b, c)
        return d if other is None else np.where(rng.random(len(d)) < part, other.dot_add(a, b, c), d)

    return asked


#: A space of some algorithms alone, so that it is quick.
FEW = ["gps", "pfma", "efda", "oddsum", "ffma", "sfma"]
BF16: dict[str, Any] = {
    "a_format": "bf16",
    "c_format": "fp32",
    "k": 8,
    "timeout": 60.0,
    "solver_timeout": 5.0,
    "confirm": 1500,
    "only": FEW,
}


def test_a_black_box_is_what_it_is() -> None:
    found = identify(unit(GPS), **BF16)
    assert found
    assert found.verdict == "one"
    assert GPS.spec in found.classes[0].members
    assert found.chosen <= 12
    assert found.calls == found.chosen + 1
    assert len(found.d) == found.chosen + 1500
    assert np.array_equal(results(GPS.spec, found.inputs.codes), found.d)
    assert "cdna2 v_mfma_f32_16x16x8bf16" in str(found)
    assert json.loads(json.dumps(found.to_json()))["verdict"] == "one"


def test_a_unit_that_has_noise_is_named_so() -> None:
    rng = np.random.default_rng(3)

    def noisy(a: Codes, b: Codes, c: Codes) -> Codes:
        d = GPS.dot_add(a, b, c).copy()
        d[rng.random(len(d)) < 2e-3] ^= 8
        return d

    found = identify(noisy, **BF16)
    assert not found
    assert found.verdict == "noise"
    assert found.classes[0].model == GPS.spec
    assert len(found.repeated) > len(found.wrong) > 0
    assert "answers are others when asked again; the nearest model, gps G=" in found.summary


def test_a_unit_that_is_two_models_mixed_is_named_so() -> None:
    other = PFMA.configured(8)
    found = identify(unit(GPS, other), **BF16)
    assert found.verdict == "mixture"
    assert {each.model for each in found.classes} == {GPS.spec, other.spec}
    assert len(found.repeated) > 0

    def by_input(a: Codes, b: Codes, c: Codes) -> Codes:
        return np.where(c & 1, GPS.dot_add(a, b, c), other.dot_add(a, b, c))

    found = identify(by_input, **BF16)
    assert found.verdict == "mixture"
    assert {each.model for each in found.classes} == {GPS.spec, other.spec}
    assert len(found.repeated) == 0


def test_rows_that_repeat_are_a_function_and_no_exceptions() -> None:
    def odd(a: Codes, b: Codes, c: Codes) -> Codes:
        return GPS.dot_add(a, b, c) ^ (c % 211 == 7).astype(np.uint32)

    found = identify(odd, **BF16)
    assert (found.verdict, len(found.repeated)) == ("none", 0)
    assert found.classes[0].model == GPS.spec
    assert f"the nearest, {GPS.spec.text}, is wrong in" in found.summary


def test_what_no_model_is_is_none() -> None:
    found = identify(lambda a, b, c: c ^ np.uint32(12345), **BF16)
    assert found.verdict == "none"
    assert "the nearest, " in found.summary


def test_what_is_not_proved_the_same_is_several(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two models that are one function, and no solver that says so."""
    one, other = (GPS.replace(G=4) for _ in "ab")
    same = other.spec.replace(product_order=(0, 1, 3, 2, 4, 5, 7, 6))
    monkeypatch.setattr(
        classes, "find_difference", lambda x, y, **_: Unknown("the same?", "no time", (), 0.0)
    )
    found = identify(unit(one), among=[one, same], **BF16)
    assert found.verdict == "several"
    assert not found
    assert [len(each.open) for each in found.classes] == [1]
    assert "not distinguished from 1 model" in found.summary


def test_only_what_is_given_is_told_apart() -> None:
    others = [GPS, GPS.replace(G=4), PFMA.configured(8)]
    found = identify(unit(GPS.replace(G=4)), among=others, **BF16)
    assert found.classes[0].model == others[1].spec
    assert (found.models, found.chosen) == (3, 1)
    with pytest.raises(ValueError, match="takes other inputs than"):
        identify(unit(GPS), among=[PFMA], **BF16)


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (lambda n: np.zeros(n + 1, np.uint32), r"of shape \(2,\) for 1 rows"),
        (lambda n: np.zeros(n, np.float32), "float32 of shape"),
        (lambda n: np.full(n, 1 << 40, np.uint64), "is no code of fp32"),
    ],
)
def test_answers_that_are_none_are_told(answer: Callable[[int], Codes], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        identify(lambda a, b, c: answer(len(c)), **BF16)


def test_what_is_missing_is_told() -> None:
    with pytest.raises(TypeError, match="needs a_format, c_format and k"):
        identify(unit(GPS), a_format="bf16")


# ---- what the search rests on ----------------------------------------------------------------------------------------


def some_models(types: Types, k: int, algorithm: str) -> list[DotAdd]:
    """One in many of an algorithm's models."""
    found = list(models(types, k, algorithm))
    return found[:: max(1, len(found) // 5)]


@pytest.mark.parametrize("algorithm", slow(algorithms(), {"lowered", "gdfs"}))
def test_details_do_not_show_on_ordinary_cases(algorithm: str) -> None:
    """But in the signs of zeros."""
    i = next(i for arch in ARCHITECTURES.values() for i in arch if i.algorithm == algorithm)
    types, k = Types.of(i.spec), i.spec.period
    several = 0
    for spec in some_models(types, k, algorithm):
        rows = asking_units.ordinary_cases(
            asking_units.pool([spec], 300, ("near", "edge", "bits"), 5), types, 5
        )
        (sure,) = asking_units.sure_of([spec], rows)
        assert sure.sum() > 10
        given = results(spec, rows.codes)
        for other in islice(details(spec), 1, 400, 7):
            differ = results(other, rows.codes) != given
            assert not (differ & sure & ((given & ~np.uint64(types.d.sign_mask)) != 0)).any(), (spec, other)
            several += 1
    assert several or not any(len(list(islice(details(x), 2))) > 1 for x in some_models(types, k, algorithm))


def test_nan_of_an_unknown_code_agrees_with_any() -> None:
    spec = ARCHITECTURES["hopper"]["DMMA.884"].spec
    rows = asking_units.pool([spec], 40, ("special",), 1)
    table = asking_units.Table.of([spec], rows)
    nan = np.uint64(0xFFF8000000000123)
    case = next(i for i, d in enumerate(table.d[0]) if spec.d_format.is_nan(int(d)))
    assert table.agree(case, nan).all()
    assert not table.agree(case, np.uint64(0)).any()


BOXES = {
    "volta HMMA.884.F32.F32": 12,
    "cdna2 v_mfma_f32_32x32x8f16": 8,
    "cdna3 v_mfma_f32_32x32x8_f16": 14,
    "cdna1 v_mfma_f32_32x32x8f16": 12,
    "hopper HMMA.16816.F16": 14,
    "hopper mma.m16n8k32.f32.e4m3.e4m3.f32": 14,
}


@pytest.mark.parametrize("label", slow(BOXES, set(BOXES)))
def test_instructions_are_identified(label: str) -> None:
    arch, name = label.split()
    i = ARCHITECTURES[arch][name]
    found = identify(i, solver_timeout=5)
    assert found.verdict == ("several" if found.classes[0].open else "one")
    assert i.spec in found.classes[0].members
    assert found.chosen <= BOXES[label]


# ---- the time limit --------------------------------------------------------------------------------------------------

UNSETTLED = "not settled when the time was up; "


@pytest.mark.parametrize("label", ["hopper HMMA.16816.F32", "hopper mma.m16n8k32.f32.e4m3.e4m3.f32"])
def test_no_answer_is_later_than_its_limit(label: str) -> None:
    arch, name = label.split()
    asking_units.everything.cache_clear()
    start = time.monotonic()
    found = identify(ARCHITECTURES[arch][name], timeout=1)
    assert time.monotonic() - start < 11
    assert (found.verdict, bool(found)) == ("unknown", False)
    assert found.summary == f"{UNSETTLED}nothing was asked yet"
    assert "the time was up while listing the models: give it more with timeout=" in str(found)
    assert json.loads(json.dumps(found.to_json()))["classes"] == []


@pytest.mark.parametrize(
    ("target", "name", "doing"),
    [
        (identify_narrowing.Narrowing, "_with_details", "choosing inputs"),
        (identify_narrowing, "Classes", "comparing [0-9]+ models? by solvers"),
        (identify_search, "pool", "asking many cases at once"),
    ],
)
def test_what_was_found_until_the_time_was_up_is_told(
    target: Any, name: str, doing: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    late(target, name, monkeypatch)
    found = identify(unit(GPS), **BF16)
    assert found.verdict == "unknown"
    assert 0 < found.left < found.models
    left = "1 model left" if found.left == 1 else f"{found.left} models left"
    assert found.summary.startswith(f"{UNSETTLED}{left} of {found.models:,}, by {found.chosen} inputs chosen")
    assert re.search(f"the time was up while {doing}: ", str(found))
    assert found.chosen > 2


@pytest.mark.parametrize(
    ("target", "name", "said"),
    [
        (identify_search.Search, "_again", "no model explains every answer, by"),
        (identify_search.Search, "_function", "no model explains every answer, and all are the same when"),
    ],
)
def test_that_no_model_explains_the_answers_is_told(
    target: Any, name: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    late(target, name, monkeypatch)
    found = identify(lambda a, b, c: c ^ np.uint32(12345), **BF16)
    assert found.verdict == "unknown"
    assert found.summary.startswith(f"{UNSETTLED}{said}")


def test_a_verdict_stands_where_only_what_is_common_was_not_found(monkeypatch: pytest.MonkeyPatch) -> None:
    late(identify_search, "in_common", monkeypatch)
    found = identify(lambda a, b, c: c ^ np.uint32(12345), **BF16)
    assert (found.verdict, found.in_common) == ("none", ())
    assert "the time was up while looking for what the wrong answers have in common" in str(found)
    assert "nothing that was looked for" not in str(found)


def test_other_threads_end_in_time_too() -> None:
    asking_units.everything.cache_clear()
    found: list[Any] = []
    start = time.monotonic()
    thread = threading.Thread(target=lambda: found.append(identify(GPS, timeout=1)))
    thread.start()
    thread.join()
    assert time.monotonic() - start < 11
    assert found[0].verdict == "unknown"


def test_a_design_on_paper_is_named_after_units_that_explain_alike() -> None:
    """A chain of fused multiply-adds that no table has, and the halves of a design that give the same."""
    fp16_fp32 = Types.of(ARCHITECTURES["hopper"]["HMMA.16816.F32"].spec)
    chain, halves = (fp16_fp32.model(4, each) for each in (Efda(1, IEEE_FP32), DpaE9s12(1, 57, IEEE_FP32)))
    table = ARCHITECTURES["apple_amx"]["fma16.F32"].replace(k=4).spec
    assert [rarity(each) for each in (table, chain, halves)] == [0, 1, 2]
    assert rarity(ARCHITECTURES["e9s12"]["DP4A.FP16"].spec) == 0
    for order in ([halves, chain], [chain, halves]):
        assert identify_narrowing._not_told_apart(order).model == chain
        assert classes.Classes([(x, x) for x in order], 1.0, print).specs[0] == chain
