"""How far apart: the input that is found shows it, is within the bound, and is near what can be told by hand."""

from __future__ import annotations

import json
import time
from fractions import Fraction

import pytest

from mmaformal import ampere, cdna2, hopper, rtx_blackwell, turing
from mmaformal.cli import main
from mmaformal.facts import product_bound
from mmaformal.queries import max_difference as module
from mmaformal.queries.find_difference import IncomparableError
from mmaformal.queries.max_difference import Apart, max_difference
from mmaformal.solver.answers import Holds, Unknown

U = Fraction(1, 1 << 24)


@pytest.fixture(autouse=True)
def few_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """The search ends by itself, whatever else the machine does."""
    monkeypatch.setattr(module, "_PATIENCE", 12)


def exactly(found: Apart) -> Fraction:
    """|d - d'| / (|c| + Σ|a·b|) of the witness, of codes that are normal numbers or zero."""
    assert found.witness is not None
    w = found.witness
    x = w.x
    one, other = (x.d_format.value(code) for code in w.results)
    sigma = max(abs(x.c_format.value(int(w.c))), Fraction(2) ** x.c_format.min_exponent)
    for a, b in zip(w.a.tolist(), w.b.tolist(), strict=True):
        factors = (
            max(abs(f.value(v)), Fraction(2) ** f.min_exponent) for f, v in ((x.a_format, a), (x.b_format, b))
        )
        sigma += next(factors) * next(factors)
    return abs(one - other) / sigma


def test_ampere_and_hopper() -> None:
    """Ampere loses 16 products of nearly 2^-24 beside c = 1, of which Hopper keeps half: eight times 2^-24."""
    found = max_difference(ampere, hopper, "HMMA.16816.F32", timeout=60.5)
    assert exactly(found) == found.found
    assert 4 * U <= found.found <= found.bound
    assert 29 * U < found.bound < 31 * U
    assert found.gap == float(found.bound / found.found)
    assert found.ulps >= 1
    assert found.random is not None
    assert 0 < found.random < found.found
    assert "from the bounds of their steps" in str(found)


def test_five_last_places_by_hand() -> None:
    """c = 1; in each half of the products seven just below 2^-24, one just below 2^-23."""
    below, power = 1.9990234375 * 2.0**-13, 2.0**-12
    a, b = [below] * 16, [power] * 7 + [2 * power] + [power] * 7 + [2 * power]
    assert float(ampere["HMMA.16816.F32"].dot_add(a, b, 1.0)) == 1
    assert float(hopper["HMMA.16816.F32"].dot_add(a, b, 1.0)) == 1 + 5 * 2.0**-23


def test_results_of_fp16_differ_by_as_much_as_the_bound() -> None:
    found = max_difference(turing, hopper, "HMMA.1688.F16", timeout=60)
    assert 0.5 * found.bound < found.found <= found.bound


def test_one_function_is_not_apart() -> None:
    same = max_difference(hopper["HMMA.16816.F32"], hopper["HMMA.16816.F32"])
    assert (same.bound, same.found, same.witness) == (0, 0, None)
    assert str(same) == "they are one function"


def test_what_is_refused() -> None:
    with pytest.raises(IncomparableError):
        max_difference(hopper["HMMA.16816.F32"], hopper["HMMA.16816.F16"])
    flushing = cdna2["v_mfma_f32_16x16x16f16"]
    with pytest.raises(ValueError, match="takes subnormal numbers for zero"):
        max_difference(flushing, flushing)


def test_block_scales() -> None:
    """One unit keeps two places less: it cuts what is between."""
    scaled = rtx_blackwell["OMMA.SF.16864.F32.E2M1.E2M1.UE4M3.4X"]
    found = max_difference(scaled, scaled.replace(F=33), timeout=60)
    assert found.witness is not None
    assert 0 < found.found <= found.bound


def test_where_and_units() -> None:
    """c is given, and what is found is within the range that is allowed."""
    where = ["c=0x3f800000", "magnitude 0x1p-14 1 ab", "finite"]
    found = max_difference(turing, hopper, "HMMA.1688.F32", where=where, timeout=60)
    assert found.witness is not None
    assert found.witness.c == 0x3F800000
    assert all(abs(x) <= 1 for x in found.witness.a.view("float16"))
    assert found.units is not None
    assert found.units.F == 24
    assert 0 < found.units.found <= found.units.bound
    nothing = max_difference(
        turing, hopper, "HMMA.1688.F32", where="magnitude 0x1p-1000 0x1p-999", timeout=60
    )
    assert nothing.witness is None


def test_a_chain_is_farther_apart() -> None:
    one, many = (
        max_difference(turing["HMMA.1688.F32"].chained(k), hopper["HMMA.1688.F32"].chained(k), timeout=60)
        for k in (8, 64)
    )
    assert one.units is not None
    assert many.units is None
    assert one.found < many.found <= many.bound


@pytest.mark.slow
def test_the_bound_is_proved(monkeypatch: pytest.MonkeyPatch) -> None:
    small = turing["HMMA.1688.F32"], hopper["HMMA.1688.F32"]
    found = max_difference(*small, timeout=0.2, prove=True, proof_timeout=120)
    assert isinstance(found.proof, Holds)
    assert "steps of a product" in str(found.proof)
    right = product_bound.is_within
    monkeypatch.setattr("mmaformal.facts.product_bound.is_within", lambda x, bound: right(x, bound * 2))
    assert isinstance(max_difference(*small, timeout=0.2, prove=True, proof_timeout=120).proof, Unknown)


@pytest.mark.parametrize("times", [{"timeout": -1.0}, {"proof_timeout": 0.0}], ids=str)
def test_times_are_refused_before_anything_is_proved(times: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="a number of seconds above 0"):
        max_difference(turing, hopper, "HMMA.1688.F32", prove=True, progress=pytest.fail, **times)


def test_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    command = ["max-difference", "ampere", "hopper"]
    assert main([*command, "HMMA.16816.F32", "--timeout", "0.5"]) == 0
    assert "at most  30 · 2^-24" in capsys.readouterr().out
    assert main([*command, "nothing"]) == 2
    capsys.readouterr()
    assert main([*command, "HMMA.16816.F32", "HMMA.1688.F32"]) == 2
    assert "--k 16" in capsys.readouterr().err
    assert main([*command, "HMMA.16816.F32", "--timeout", "0.5", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["bound"] == pytest.approx(30 * 2**-24, rel=1e-4)


@pytest.mark.parametrize("terms", [16, 256])
def test_no_answer_is_later_than_its_limit(terms: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_PATIENCE", 10**9)
    x, y = (arch["HMMA.16816.F32"].chained(terms) for arch in (ampere, hopper))
    start = time.monotonic()
    found = max_difference(x, y, timeout=1)
    assert time.monotonic() - start < 11
    assert found.searched or "the time was up before any input was tried" in str(found)


def test_what_the_time_did_not_suffice_for_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    found = max_difference(ampere, hopper, "HMMA.16816.F32", timeout=1e-3)
    assert (found.searched, found.witness, found.random) == (False, None, None)
    assert found.bound > 29 * U
    assert "the time was up before any input was tried" in str(found)
    assert found.to_json()["searched"] is False
    assert main(["max-difference", "ampere", "hopper", "HMMA.16816.F32", "--timeout", "0.001"]) == 3
    assert "the time was up before any input was tried" in capsys.readouterr().out
