"""Models that round one exact sum once give one code: proved, and not of models that do not."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import pytest
import z3

from mmaformal import apple_amx, cdna1, e9s12, find_difference
from mmaformal.architectures.datapaths import mul_add
from mmaformal.cases.inputs import symbolic_inputs
from mmaformal.encodings.dpa_e9s12.proofs.exact_sums import OneFma, ShortSum
from mmaformal.encodings.efda.proofs.exact_sums import EfdaSum
from mmaformal.encodings.muladd.proofs import exactness as exact_sums
from mmaformal.encodings.muladd.proofs.exactness import ProductSum, holds_products, prove_is_fma
from mmaformal.encodings.sfma import Sfma
from mmaformal.encodings.sfma import smt as sfma
from mmaformal.encodings.sfma.proofs import FmaSum
from mmaformal.encodings.wfma.proofs.exact_sums import Factor, WideFmaSum
from mmaformal.facts.one_code import ModelPair, prove_codes_equal, prove_one_code
from mmaformal.formats import e2m1, e3m2, fp32
from mmaformal.proof.kernel import NotProvedError
from mmaformal.proof.rules import Theory
from mmaformal.rounding import IEEE_FP32, Conversion, NanRule, Rounding
from mmaformal.solver.answers import Different, Equal
from mmaformal.spec import DotAdd
from mmaformal.studies.e9s12.prover import FMA, WIDE_FMA
from mmaformal.studies.e9s12.short_fma import OneShortFma
from mmaformal.theory.fixed_point import FixedPoint, WideNumbers
from mmaformal.theory.numbers import CodeNumbers
from mmaformal.theory.rounded_sums import grid_of

SMALL = cdna1["v_mfma_f32_32x32x4f16"].spec.replace(k=2, L=2, a_format=e3m2, b_format=e2m1)
FIRST = DotAdd(1, fp32, fp32, fp32, fp32, Sfma(IEEE_FP32, NanRule.FIRST))
DP4A = e9s12["DP4A.FP32"].spec
MUL_ADD = mul_add(k=1, a="fp16")
FP16_FMA = apple_amx["fma16.F32"].spec
SHORT = OneShortFma(e9s12["DP4A.BF16"].spec, 3)


# ---- what is proved ------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_models_of_one_sum(theory: Theory) -> None:
    prove_one_code(theory, ModelPair(EfdaSum(SMALL), EfdaSum(SMALL)))
    assert {rule.name for rule in theory.rules} == {"instance", "ascent"}


@pytest.mark.slow
def test_an_fma_and_the_operator() -> None:
    """Both are equal on all inputs, NaNs among them; sums of fp16 are but where all is −0."""
    assert isinstance(find_difference(e9s12["DP1A.FP32"], cdna1["v_mfma_f32_4x4x1f32"], timeout=600), Equal)
    pair = e9s12["DP4A.FP16"], cdna1["v_mfma_f32_4x4x4f16"]
    assert isinstance(find_difference(*pair, where=["nonzero"], timeout=900), Equal)


def test_zeros_of_two_signs_are_found() -> None:
    pair = e9s12["DP4A.FP16"], cdna1["v_mfma_f32_4x4x4f16"]
    assert isinstance(find_difference(*pair, timeout=20), Different)


# ---- what it says ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "pair",
    [
        ModelPair(OneFma(DP4A, 1), FmaSum(FMA, OneFma(DP4A, 1).inputs)),
        ModelPair(SHORT, WideFmaSum(WIDE_FMA, SHORT.inputs)),
        ModelPair(ShortSum(e9s12["DP4A.FP16"].spec), EfdaSum(cdna1["v_mfma_f32_4x4x4f16"].spec)),
    ],
)
def test_the_statement_holds_of_random_codes(pair: ModelPair) -> None:
    """And its conclusion fails where its premise does: where all terms are −0, and zeros have two signs."""
    rng, spec = random.Random(1), pair.first.spec
    constants = symbolic_inputs(spec).flat()
    special = [0, 1 << (spec.a_format.storage_bits - 1), spec.a_format.infinity or 0, 1]
    held = set()
    for i in range(12):
        codes = [rng.choice(special) if i % 2 else rng.randrange(1 << x.size()) for x in constants]
        if i == 11:
            codes = [0x8000_0000 >> (32 - x.size()) if str(x)[0] != "b" else 0 for x in constants]
        values = [(x, z3.BitVecVal(code, x.size())) for x, code in zip(constants, codes, strict=True)]
        given, goal = (z3.is_true(z3.simplify(z3.substitute(t, *values))) for t in pair.statement.children())
        assert goal or not given
        held.add(given)
    assert True in held


def test_the_sum_is_that_of_the_codes(theory: Theory) -> None:
    """By rationals."""
    rng, low = random.Random(2), -420
    w = WideNumbers(theory, FixedPoint(low, 300, 60, 8), 13)
    model = OneFma(DP4A, 2)
    codes = CodeNumbers(w, model.spec, model.inputs)
    for _ in range(20):
        values = [rng.randrange(0x7F80_0000) | rng.choice([0, 1 << 31]) for _ in range(3)]
        numbers = [(x, z3.BitVecVal(v, 32)) for x, v in zip(model.inputs.flat(), values, strict=True)]
        total = z3.simplify(z3.substitute(codes.total, *numbers)).as_signed_long()
        a, b, c = map(fp32.value, values)
        assert total * Fraction(2) ** low == a * b + c


# ---- what is not -----------------------------------------------------------------------------------------------------


def test_special_values_of_two_kinds(theory: Theory) -> None:
    ModelPair(OneFma(DP4A, 3), FmaSum(FMA, OneFma(DP4A, 3).inputs)).prove_special(theory)
    with pytest.raises(NotProvedError, match="does not hold"):
        ModelPair(FmaSum(FMA), FmaSum(FIRST)).prove_special(theory)


@pytest.mark.parametrize("other", [FIRST, FMA.replace(rho=replace(IEEE_FP32, rounding=Rounding.RZ)), SMALL])
def test_models_that_are_not_alike_are_left_to_the_search(theory: Theory, other: DotAdd) -> None:
    assert prove_codes_equal(theory.asker, FMA, other, z3.BoolVal(True)) is None


def test_zeros_of_two_signs_are_not_allowed(theory: Theory) -> None:
    x, y = e9s12["DP4A.FP16"].spec, cdna1["v_mfma_f32_4x4x4f16"].spec
    assert prove_codes_equal(theory.asker, x, y, z3.BoolVal(True)) is None


@dataclass(frozen=True)
class MinusZero(EfdaSum):
    """A sum whose exact zeros are taken for −0."""

    @property
    def zero(self) -> z3.BitVecRef:
        return z3.BitVecVal(1, 1)


@pytest.mark.slow
def test_a_wrong_sign_of_zero(theory: Theory) -> None:
    with pytest.raises(NotProvedError, match=r"d has the sign of the sum.* does not hold"):
        prove_one_code(theory, ModelPair(EfdaSum(SMALL), MinusZero(SMALL)))


@pytest.mark.slow
def test_a_tiny_result_without_its_sign(theory: Theory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where d is zero and the sum is not, it is not by its magnitude that the sign is seen to be wrong."""
    encode = sfma.encode

    def plus(rounded: Any, rho: Any) -> Any:
        code = encode(rounded, rho)
        return z3.If(z3.Extract(30, 0, code) == 0, z3.BitVecVal(0, 32), code)

    monkeypatch.setattr(sfma, "encode", plus)
    with pytest.raises(NotProvedError, match=r"d has the sign of the sum.* does not hold"):
        prove_one_code(theory, ModelPair(FmaSum(FMA), FmaSum(FMA)))


@pytest.mark.slow
@pytest.mark.parametrize("change", [{"accumulator_bits": 52}, {"detects_zeros": False}])
def test_an_operator_that_is_no_fma(theory: Theory, change: dict[str, Any]) -> None:
    one = OneFma(DP4A.replace(**change))
    with pytest.raises(NotProvedError, match="does not hold"):
        prove_one_code(theory, ModelPair(one, FmaSum(FMA, one.inputs)))


@pytest.mark.slow
def test_a_subnormal_factor_that_is_not_shifted(theory: Theory, monkeypatch: pytest.MonkeyPatch) -> None:
    """A subnormal fp16 number is a normal one in fp32: zeros below its significand are not all."""
    monkeypatch.setattr(Factor, "up", z3.BitVecVal(0, 8))
    wide = WideFmaSum(FP16_FMA)
    with pytest.raises(NotProvedError, match="its significand shifted does not hold"):
        wide.prove(grid_of(theory, IEEE_FP32, wide.span))


# ---- a product that is rounded, and added --------------------------------------------------------------------------


def test_products_that_fp32_holds() -> None:
    def holds(a: str, product: str = "IEEE-FP32", rho: str = "IEEE-FP32") -> bool:
        return holds_products(mul_add(k=1, a=a, product=product, rho=rho).spec)

    assert all(map(holds, ("fp16", "e4m3", "e5m2")))
    assert not any(map(holds, ("bf16", "fp32", "tf32")))
    assert not holds("fp16", product="RNE-E8M10")
    assert not holds("fp16", "IEEE-FP16", "IEEE-FP16")


def test_an_addition_is_an_fma_of_a_summand_and_one(theory: Theory, monkeypatch: pytest.MonkeyPatch) -> None:
    rho = Conversion.named("IEEE-FP16")
    prove_is_fma(theory, rho)
    monkeypatch.setattr(exact_sums, "_one", lambda _: z3.BitVecVal(0x3C01, 16))
    with pytest.raises(NotProvedError, match="does not hold"):
        prove_is_fma(theory, rho)


@pytest.mark.slow
def test_a_rounded_product_that_is_exact_is_an_fma() -> None:
    assert isinstance(find_difference(MUL_ADD, apple_amx["fma16.F32"], timeout=600), Equal)


@pytest.mark.slow
@pytest.mark.parametrize("change", [{"product": "RNE-E8M10"}, {"a": "bf16"}])
def test_a_product_that_loses_bits(theory: Theory, change: dict[str, str]) -> None:
    short = ProductSum(mul_add(k=1, **{"a": "fp16", **change}).spec)
    with pytest.raises(NotProvedError, match="the rounded product is the product does not hold"):
        short.prove(grid_of(theory, IEEE_FP32, short.span))


@pytest.mark.slow
def test_numbers_that_are_others(theory: Theory) -> None:
    """The active product is not the first."""
    with pytest.raises(NotProvedError):
        prove_one_code(theory, ModelPair(OneFma(DP4A, 1), FmaSum(FMA, OneFma(DP4A, 0).inputs)))
