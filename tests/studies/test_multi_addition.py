"""The multi-addition of E9S12 halves against exact rational arithmetic, in both encodings; its proofs, and their
breaks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
import z3
from hypothesis import given, settings
from hypothesis import strategies as st
from support.e9s12_numbers import halves, nearest
from support.proofs import some_proof

from mmaformal.encodings.dpa_e9s12.executable import E9S12, FRACTION
from mmaformal.encodings.executable.blocks import Term
from mmaformal.encodings.ma_e9s12 import executable as executable_ma
from mmaformal.encodings.ma_e9s12 import smt as smt_ma
from mmaformal.encodings.smt import blocks
from mmaformal.formats import bf16, fp16, fp32
from mmaformal.proof.composition import Composing
from mmaformal.proof.kernel import NotProvedError, prove
from mmaformal.solver.answers import Fails, Holds
from mmaformal.solver.asking import Asker
from mmaformal.solver.portfolio import DEFAULT_MEMORY, LazyPortfolio
from mmaformal.studies.e9s12 import sum_claims as claims
from mmaformal.studies.e9s12.operators import OPERATORS, MultiAddition
from mmaformal.studies.e9s12.prover import E9s12Prover
from mmaformal.studies.e9s12.same_sums import argue_same_sums
from mmaformal.studies.e9s12.sum_claims import prove_near, prove_sum_rounded, prove_two
from mmaformal.studies.e9s12.sums_of_terms import SUMS, least_exact, least_two, run_both_sums
from mmaformal.witness import WitnessError

REFUTED = ("sum-rounded-narrower", "sum-near-wider", "sum-of-two-narrower", "sum-faithful")
_TWO = OPERATORS["MA2.FP32"]
SMALL = (
    MultiAddition("three", fp32, 3, 3, 60),
    MultiAddition("passes", fp32, 4, 2, 40),
    MultiAddition("one each", bf16, 3, 1, 30),
)


def expected(operator: MultiAddition, codes: list[int]) -> int:
    """d of finite codes, from the paper's words, in integers and rational numbers."""
    total, exponent = 0, 0
    for start in range(0, operator.D, operator.N):
        terms = [half for x in codes[start : start + operator.N] for half in halves(operator.fmt, x)]
        largest = max([e for m, e in terms if m] + ([exponent] if total else []), default=0)
        total >>= largest - exponent if total else 0
        for m, e in terms:
            left = operator.F - 11 - (largest - e)
            total += m << left if left >= 0 else m >> -left
        exponent = largest
    return nearest(total * Fraction(2) ** (exponent - operator.F)) if total else 0


def some_terms(operator: MultiAddition, seed: int) -> list[int]:
    """Finite codes: near each other or anywhere, some zero, some cancelling."""
    rng = np.random.default_rng(seed)
    fmt, M = operator.fmt, operator.fmt.fraction_bits
    middle, reach = int(rng.integers(0, 2 * fmt.bias)), int(rng.choice([2, 30, 90, 300]))
    codes = []
    for _ in range(operator.D):
        field = min(max(middle + int(rng.integers(-reach, reach + 1)), 0), 2 * fmt.bias)
        fraction = int(rng.choice([0, 1, (1 << M) - 1, int(rng.integers(0, 1 << M))]))
        codes.append(field << M | fraction | (fmt.sign_mask if rng.integers(2) else 0))
        if len(codes) > 1 and rng.integers(4) == 0:
            codes[-1] = codes[-2] ^ fmt.sign_mask
        if rng.integers(5) == 0:
            codes[-1] &= fmt.sign_mask
    return codes


@pytest.mark.parametrize("operator", [*OPERATORS.values(), *SMALL], ids=lambda x: x.name)
def test_exact_arithmetic_and_both_encodings(operator: MultiAddition) -> None:
    cases = [some_terms(operator, seed) for seed in range(400)]
    found = operator(np.array(cases, operator.fmt.word)).tolist()
    assert found == [expected(operator, codes) for codes in cases]
    for codes, d in list(zip(cases, found, strict=True))[:25]:
        assert run_both_sums(operator, codes) == d


@given(st.integers(0, 1 << 32))
@settings(max_examples=200, deadline=None)
def test_two_terms_are_added_as_numpy_adds_them(seed: int) -> None:
    codes = np.array(some_terms(_TWO, seed), np.uint32)
    x, y = codes.view(np.float32)
    with np.errstate(over="ignore"):
        want = x + y
    assert _TWO(codes.view(np.float32)) == want
    assert replace(_TWO, accumulator_bits=least_two(_TWO))(codes.view(np.float32)) == want


def test_special_values() -> None:
    inf, nan = np.inf, np.nan
    terms = [[inf, 1], [1, -inf], [inf, -inf], [nan, 1], [-0.0, -0.0]]
    d = _TWO(np.array(terms, np.float32))
    assert np.array_equal(d, np.array([inf, -inf, nan, nan, 0.0], np.float32), equal_nan=True)
    assert not np.signbit(d[-1])


def test_what_it_takes() -> None:
    assert repr(_TWO) == "<MultiAddition: MA2.FP32: 2 terms of fp32, 83 bits>"
    assert "in passes of 4" in repr(OPERATORS["MA8X2.FP32"])
    assert _TWO([1.0, 2.0**-10]) == 1 + 2.0**-10
    with pytest.raises(ValueError, match="adds 2 terms along the last axis"):
        _TWO([1.0])
    with pytest.raises(ValueError, match="a multiple of N"):
        MultiAddition("odd", fp32, 3, 2, 60)
    with pytest.raises(ValueError, match="≤ accumulator_bits ≤ 85"):
        MultiAddition("wide", fp16, 4, 4, 86)
    with pytest.raises(ValueError, match="fp16, bf16 or fp32"):
        MultiAddition("long", replace(fp32, name="other", bias=120), 2, 2, 60)


# ---- proofs ----------------------------------------------------------------------------------------------------------


def proved(claim: Callable[[Composing, MultiAddition], z3.BoolRef], operator: MultiAddition) -> bool:
    with LazyPortfolio(None, DEFAULT_MEMORY) as portfolio:
        proving = Composing(Asker(portfolio, 120.0))
        try:
            proving.conclude_all(claim(proving, operator))
        except NotProvedError as error:
            if error.refuted:
                return False
            raise
        return bool(proving.proof().obligations)


@pytest.mark.parametrize(
    ("claim", "name"), [(each.name, name) for each in SUMS if each.name in REFUTED for name in each.of]
)
def test_cases_that_refute(claim: str, name: str) -> None:
    with E9s12Prover() as prover:
        answer = prover.prove(claim, name, 20.0)
    assert isinstance(answer, Fails)
    assert name in str(answer.witness)
    assert name in str(answer.to_json())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("claim", "name"), [(each.name, name) for each in SUMS if each.name not in REFUTED for name in each.of]
)
def test_what_holds(claim: str, name: str) -> None:
    with E9s12Prover() as prover:
        assert isinstance(prover.prove(claim, name, 900.0), Holds)


def test_one_bit_less_is_not_proved() -> None:
    narrow = replace(OPERATORS["MA16.FP16"], accumulator_bits=least_exact(OPERATORS["MA16.FP16"]) - 1)
    assert not proved(prove_sum_rounded, narrow)


@pytest.mark.slow
def test_two_terms_with_one_bit_less_are_not_proved() -> None:
    assert proved(prove_two, replace(_TWO, accumulator_bits=least_two(_TWO)))
    assert not proved(prove_two, replace(_TWO, accumulator_bits=least_two(_TWO) - 1))


def test_a_wider_spread_is_not_proved(monkeypatch: pytest.MonkeyPatch) -> None:
    right = claims.spread_of_sum
    monkeypatch.setattr(claims, "spread_of_sum", lambda operator: right(operator) + 1)
    assert not proved(prove_near, replace(OPERATORS["MA16.BF16"], D=3, N=3))


@pytest.mark.slow
def test_a_case_that_is_left_out_is_missed(monkeypatch: pytest.MonkeyPatch) -> None:
    """With L = 45 exponents 19 to 26 apart are neither near nor far."""
    monkeypatch.setattr(claims._Apart, "prove_between", lambda pair, n: z3.BoolVal(False))
    assert not proved(prove_two, replace(_TWO, accumulator_bits=45))


def test_what_is_assumed_of_nothing_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(claims, "are_near", lambda operands, most: [z3.BoolVal(False)])
    monkeypatch.setattr(
        "mmaformal.studies.e9s12.sums_of_terms._both", lambda operator, asker: Holds("", some_proof(), 0.0)
    )  # type: ignore[arg-type]
    monkeypatch.setitem(OPERATORS, "MA8.FP32", replace(OPERATORS["MA8.FP32"], D=2, N=2, accumulator_bits=40))
    with E9s12Prover() as prover, pytest.raises(WitnessError, match="does not hold of ones"):
        prover.prove("sum-near", "MA8.FP32", 60.0)


def test_zeros_that_count_are_not_proved(monkeypatch: pytest.MonkeyPatch) -> None:
    """A zero half has an exponent, which would put the others lower."""
    monkeypatch.setattr(smt_ma, "term_of", lambda x: blocks.Term(x.sign, x.exponent, x.significand))
    assert not proved(prove_near, replace(OPERATORS["MA8.FP32"], D=2, N=2))


def encodings_agree(operator: MultiAddition) -> bool:
    with LazyPortfolio(None, DEFAULT_MEMORY) as portfolio:
        try:
            return bool(prove(Asker(portfolio, 120.0), argue_same_sums(operator)).obligations)
        except NotProvedError as error:
            return not error.refuted


def test_an_encoding_that_is_changed_is_not_proved_equal(monkeypatch: pytest.MonkeyPatch) -> None:
    def deaf(x: E9S12) -> Term:
        return Term(x.sign, x.exponent, x.significand << FRACTION)

    monkeypatch.setattr(executable_ma, "term_of", deaf)
    assert not encodings_agree(replace(_TWO, accumulator_bits=30))
