"""Inputs to test with, and the strategies that draw them."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import hypothesis
import numpy as np
import pytest
import safetensors.numpy

from mmaformal import check, matmul
from mmaformal.architectures.meant import instruction_meant
from mmaformal.formats import exponent_of
from mmaformal.shown_stages import exact_dot_add
from mmaformal.testing import inputs, strategies
from mmaformal.testing.strategies import DotRow

AMPERE, HOPPER = "a100 HMMA.16816.F32", "h100 HMMA.16816.F32"


def test_units_differ_on_all_or_agree_on_all() -> None:
    for where, same in (("differ", False), ("agree", True)):
        found = inputs(AMPERE, HOPPER, 300, where=where)  # type: ignore[arg-type]
        x = found.codes()
        d = [instruction_meant(name).dot_add(x["a"], x["b"], x["c"]) for name in (AMPERE, HOPPER)]
        nan = [np.isnan(each.view(np.float32)) for each in d]
        assert (((d[0] == d[1]) | (nan[0] & nan[1])) == same).all()
        assert (
            len(
                {
                    (*a, *b, c)
                    for a, b, c in zip(x["a"].tolist(), x["b"].tolist(), x["c"].tolist(), strict=True)
                }
            )
            == 300
        )
        assert len(found) == 300
    assert (
        str(inputs(AMPERE, HOPPER, 3))
        == "3 inputs of 16 products, for ampere HMMA.16816.F32, hopper HMMA.16816.F32"
    )


@pytest.mark.parametrize("unit", [HOPPER, "v100 HMMA.884.F16.F16", "h100 QGMMA.64x8x32.F32.E4M3.E4M3"])
def test_ties_are_ties(unit: str) -> None:
    found = inputs(unit, n=100, kind="ties")
    i = found.instructions[0]
    for row in range(100):
        codes = found.rows[row]
        exact = exact_dot_add(i.spec, codes.a, codes.b, codes.c)
        assert exact is not None
        halves = exact / Fraction(2) ** (exponent_of(exact) - i.d_format.fraction_bits - 1)
        assert halves.denominator == 1
        assert halves.numerator % 2 == 1


def test_subnormal_ones_and_a_distribution_of_ones_own() -> None:
    found = inputs(HOPPER, n=200, kind="subnormal").numpy()
    tiny = [np.abs(found[name].astype(np.float64)) for name in "abcd"]
    least = (2.0**-14, 2.0**-14, 2.0**-126, 2.0**-126)
    some = [((x > 0) & (x < y)).reshape(200, -1).any(axis=1) for x, y in zip(tiny, least, strict=True)]
    assert np.logical_or.reduce(some).all()
    own = inputs(HOPPER, n=200, kind=lambda rng, shape: 3 + rng.random(shape), seed=5).numpy()
    assert ((own["a"] >= 3) & (own["a"] <= 4)).all()
    assert not own["c"].any()
    again = inputs(HOPPER, n=200, kind=lambda rng, shape: 3 + rng.random(shape), seed=5).numpy()
    assert (own["b"] == again["b"]).all()


def test_files(tmp_path: Path) -> None:
    found = inputs(HOPPER, n=50)
    found.save(tmp_path / "rows.npz")
    assert check(tmp_path / "rows.npz").verdict == "matches" or not check(tmp_path / "rows.npz").json().count(
        "wrong"
    )
    found.save(tmp_path / "rows.safetensors")
    tensors = safetensors.numpy.load_file(tmp_path / "rows.safetensors")
    assert (tensors["a"].view(np.uint16) == found.codes()["a"]).all()
    assert tensors["d"].dtype == np.float32
    with pytest.raises(ValueError, match="written as"):
        found.save(tmp_path / "rows.xyz")
    assert {each.name for each in tmp_path.iterdir()} == {"rows.npz", "rows.safetensors"}


def test_as_matrices_the_results_stand_on_the_diagonal() -> None:
    found = inputs(AMPERE, HOPPER, 40)
    x = found.matrices()
    D = matmul(x["A"], x["B"], x["C"], instruction=AMPERE)
    d = found.numpy()["d"]
    assert (np.diagonal(D).view(np.uint32) == d.view(np.uint32))[~np.isnan(d)].all()


def test_what_there_is_not() -> None:
    with pytest.raises(ValueError, match="do not take the same inputs"):
        inputs(HOPPER, "h100 HMMA.16816.F16")
    with pytest.raises(ValueError, match=r"0 of 10 inputs on which the units differ found.*mmaformal diff"):
        inputs("h100 HMMA.16816.F32", "b200 HMMA.16816.F32", 10)
    with pytest.raises(ValueError, match="name another"):
        inputs(HOPPER, where="agree")
    with pytest.raises(ValueError, match="where is one of differ, agree, not 'agre'"):
        inputs(AMPERE, HOPPER, where="agre")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="kind is one of"):
        inputs(HOPPER, kind="odd")  # type: ignore[arg-type]


@hypothesis.given(strategies.rows(HOPPER, finite=True))
@hypothesis.settings(max_examples=50, deadline=None)
def test_rows_are_operands(row: DotRow) -> None:
    instruction_meant(HOPPER).dot_add(*row)  # it has no scales, and none are drawn
    assert np.isfinite(row.a.view(np.float16)).all()
    assert np.isfinite(row.c.view(np.float32))


def test_rows_shrink_to_what_matters() -> None:
    """The least row on which ampere and hopper differ has few products that are not zero."""
    a, h = instruction_meant(AMPERE), instruction_meant(HOPPER)

    def differ(row: DotRow) -> bool:
        x, y = (each.dot_add(row.a, row.b, row.c) for each in (a, h))
        return bool(x != y and not np.isnan(np.array([x, y], np.uint32).view(np.float32)).all())

    settings = hypothesis.settings(max_examples=3000, deadline=None, database=None, derandomize=True)
    found = hypothesis.find(strategies.rows(HOPPER, finite=True), differ, settings=settings)
    assert differ(found)


def test_scales_are_drawn_where_there_are_some() -> None:
    unit = "b200 UTCQMMA.SF.F32.E4M3.E4M3.E8"
    row = hypothesis.find(
        strategies.rows(unit), lambda row: True, settings=hypothesis.settings(database=None)
    )
    instruction_meant(unit).dot_add(*row)
