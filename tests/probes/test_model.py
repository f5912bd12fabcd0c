"""The model that was read is run on other rows, and the report says how many answers it gives."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from support.slow import slow
from support.unmodelled import (
    BF16,
    FP16,
    Unit,
    by_call,
    by_place,
    cut_down,
    fda,
    flushes_c,
    flushes_results,
    kahan,
    noisy,
    own_nan,
    saturates,
    tree,
    wide_chain,
)

from mmaformal import ARCHITECTURES, probe
from mmaformal.probes import model
from mmaformal.probes.sums import ProbedSum

ALL = "the model read reproduces 1,000 of 1,000 rows of finite numbers"
TWICE = f"{ALL}, the last sum being rounded as those before it and then to d"


@pytest.mark.parametrize("bits", slow([25, 30, 53], {25}))
def test_an_accumulator_that_is_rounded_at_the_end_is_seen(bits: int) -> None:
    found = probe(wide_chain(bits), k=4, name="chain", **FP16)
    nearest = "rounded to nearest, ties to even (RNE)"
    first = f"chain: keeps {bits - 1} fractional bits from one sum to the next, {nearest}; results have 23, {nearest}"
    assert found.summary == first
    assert found.check is not None
    assert found.check.says == (ALL if bits == 53 else TWICE)
    assert found.check.right


def test_kahan_is_no_chain() -> None:
    found = probe(kahan, k=4, name="kahan", a_format="fp16", c_format="fp32")  # those of b and d are the same
    assert found.check is not None
    assert 0 < found.check.agree < found.check.rows == 1000
    assert f": the model read reproduces only {found.check.agree} of 1,000 rows" in found.summary
    assert "read, but not confirmed" in found.summary
    assert "  rows that it gets wrong: " in str(found)
    assert json.loads(json.dumps(found.to_json()))["check"]["agree"] == found.check.agree


RIGHT: dict[str, tuple[Unit, int, dict[str, Any]]] = {
    "tree": (tree, 8, FP16),
    "own_nan": (own_nan, 4, FP16),
    "flushes_c": (flushes_c, 4, FP16),
    "flushes_results": (flushes_results, 4, FP16),
    "saturates": (saturates, 4, BF16),
    "cut_down": (cut_down, 4, FP16),
}


@pytest.mark.parametrize("name", slow(RIGHT, {"own_nan", "flushes_results", "saturates"}))
def test_what_is_read_reproduces_every_row(name: str) -> None:
    unit, k, types = RIGHT[name]
    found = probe(unit, k=k, **types)
    assert found.check is not None
    assert found.check.says == ALL
    assert ALL in str(found)


def test_places_beside_c_are_not_told_of_terms_that_are_cut_down() -> None:
    """However much of a term is cut, it is seen there."""
    found = probe(cut_down, k=4, check=0, **FP16)
    assert [each.product.places for each in found.sums if each.product] == [24]
    assert [each.beside_c for each in found.sums] == [None]
    assert " or more" not in str(found)
    assert found.check is None


def test_products_are_aligned_with_or_without_normalising() -> None:
    """`cut_down` aligns numbers; fda aligns by the exponents of the factors."""
    assert [
        [x.normalised for x in probe(unit, k=4, check=0, **FP16).sums] for unit in (cut_down, fda().dot_add)
    ] == [
        [True],
        [False],
    ]


@pytest.mark.parametrize("unit", slow(["noisy", "by_place", "by_call"], {"by_call"}))
def test_a_unit_that_is_no_function_is_told(unit: str) -> None:
    asked = {"noisy": noisy(), "by_place": by_place, "by_call": by_call()}[unit]
    found = probe(asked, k=4, **FP16)
    assert found.check is not None
    assert found.check.changed
    assert "the unit is no function: " in str(found)


@pytest.mark.parametrize(
    "label",
    [
        "volta HMMA.884.F16.F16",
        "ampere HMMA.1688.F32.TF32",
        "cdna2 v_mfma_f32_32x32x4bf16_1k",
        "cdna3 v_mfma_f32_32x32x8_f16",
        "armv8_6 BFMMLA",
    ],
)
def test_models_are_reproduced(label: str) -> None:
    architecture, name = label.split()
    found = probe(ARCHITECTURES[architecture][name])
    assert found.check is not None
    assert found.check.right, found.check.says


def test_what_is_missing_is_said() -> None:
    found = probe(ARCHITECTURES["cdna3"]["v_mfma_f32_32x32x16_fp8_fp8"])
    assert found.check is not None
    assert (
        found.check.says == "no model can be made of this reading: how several groups are aligned is not read"
    )
    assert found.check.rows == 0


def test_a_wrong_reading_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """One place fewer is kept than is read."""
    cut = model.ReadModel._cut

    def less(self: model.ReadModel, each: ProbedSum, child: Any) -> model._Cut | None:
        kept = cut(self, each, child)
        return None if kept is None else model._Cut(kept.places - 1, kept.mode)

    monkeypatch.setattr(model.ReadModel, "_cut", less)
    found = probe(fda(), k=None)
    assert found.check is not None
    assert not found.check.right
    assert "only" in found.check.says


def test_the_check_asks_finite_numbers() -> None:
    asked: list[NDArray[Any]] = []

    def unit(a: NDArray[Any], b: NDArray[Any], c: NDArray[Any]) -> NDArray[Any]:
        asked.append(a)
        return fda().dot_add(a, b, c)

    found = probe(unit, k=4, **FP16)
    first, again = asked[-2:]
    assert len(first) == 1000
    assert np.array_equal(first, again[::-1])
    assert ((first & 0x7C00) != 0x7C00).all()
    assert found.asked == probe(unit, k=4, check=0, **FP16).asked
