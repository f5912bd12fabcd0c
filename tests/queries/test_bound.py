"""The bound of a whole product, proved from its steps; its parts, and their breaks."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
import z3

from mmaformal import ARCHITECTURES, ampere, hopper, matmul, volta
from mmaformal.analysis.units import Unit
from mmaformal.architectures import datapaths
from mmaformal.cli import main
from mmaformal.facts import product_bound
from mmaformal.facts.product_bound import (
    prove_apart,
    prove_beside,
    prove_growth,
    prove_join,
    prove_largest_exponent,
    prove_narrowed,
)
from mmaformal.proof.composition import Composing
from mmaformal.proof.kernel import NotProvedError
from mmaformal.queries import bound as query
from mmaformal.queries.bound import bound, most_promoted, rounded_up
from mmaformal.rounding import CONVERSIONS
from mmaformal.solver.answers import Holds, Proof
from mmaformal.solver.asking import Asker
from mmaformal.solver.portfolio import DEFAULT_MEMORY, LazyPortfolio
from mmaformal.witness import WitnessError


def proof_of(claims: Callable[[Composing], None]) -> Proof | None:
    """None if a claim is refuted."""
    with LazyPortfolio(None, DEFAULT_MEMORY) as portfolio:
        proving = Composing(Asker(portfolio, 60.0))
        try:
            claims(proving)
        except NotProvedError as error:
            if error.refuted:
                return None
            raise
        return proving.proof()


@pytest.mark.parametrize("claims", [prove_growth, prove_join, prove_beside, prove_apart, prove_narrowed])
def test_real_numbers(claims: Callable[[Composing], None]) -> None:
    proof = proof_of(claims)
    assert proof is not None
    assert proof.rules == (f"{product_bound.STEPS.name}: {product_bound.STEPS.statement}",)
    assert all(each.script.startswith("(set-logic QF_NRA)") for each in proof.obligations[:1])


def test_rounding_that_is_off_by_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the premise |d − S| ≤ u · max(|S|, least) is twice as wide, nothing follows."""
    right, seen = product_bound.is_within, []

    def of_rounding(x: z3.ArithRef, bound: z3.ArithRef) -> z3.BoolRef:
        if str(bound) not in ("u*S", "-u*S", "u*least"):
            return right(x, bound)
        seen.append(str(bound))
        return right(x, 2 * bound)

    monkeypatch.setattr(product_bound, "is_within", of_rounding)
    assert proof_of(prove_growth) is None
    assert len(seen) == 3


@pytest.mark.parametrize(
    ("architecture", "name"),
    [
        ("hopper", "HMMA.16816.F32"),
        ("volta", "HMMA.884.F16.F16"),
        ("cdna3", "v_mfma_f32_16x16x16_bf16"),
        ("cdna3", "v_mfma_f32_16x16x32_fp8_fp8"),
        ("blackwell", "UTCOMMA.F32.E2M1.E2M1.UE4M3.4X"),
        ("e9s12", "DP4A.BF16"),
    ],
)
def test_the_largest_exponent_is_some_terms(
    monkeypatch: pytest.MonkeyPatch, architecture: str, name: str
) -> None:
    spec = ARCHITECTURES[architecture][name].spec
    assert proof_of(lambda proving: prove_largest_exponent(proving, spec)) is not None
    right = product_bound._exponent
    monkeypatch.setattr(product_bound, "_exponent", lambda x, fmt: right(x, fmt) - 1)
    assert proof_of(lambda proving: prove_largest_exponent(proving, spec)) is None


def test_a_whole_product() -> None:
    i = ampere["HMMA.16816.F32"]
    answer = bound(i, 4096, timeout=200)
    assert isinstance(answer, Holds)
    f, U = answer.numbers
    assert f.name == "f"
    assert 0 <= f.value / Unit.of(i).factor(4096) - 1 < Fraction(1, 1 << 20)
    assert 0 <= U.value / Unit.of(i).stages[0].U - 1 < Fraction(1, 1 << 20)
    assert "by the rule: steps of a product" in str(answer)


@pytest.mark.parametrize("order", [(3, 2, 1, 0, 7, 6, 5, 4), (0, 2, 4, 6, 1, 3, 5, 7)])
def test_in_another_order_of_products(order: tuple[int, ...]) -> None:
    """Within steps, or so that a step is of products that are not one after the other: the same bound."""
    plain = volta["HMMA.884.F32.F32"].replace(k=8)
    reordered = plain.replace(product_order=order)
    answer = bound(reordered, 64, timeout=200)
    assert isinstance(answer, Holds)
    assert answer.numbers[0].value == rounded_up(Unit.of(plain).factor(64))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("architecture", "name"),
    [
        ("hopper", "QGMMA.64x8x32.F32.E4M3.E4M3"),
        ("hopper", "mma.m16n8k32.f32.e4m3.e4m3.f32"),
        ("cdna3", "v_mfma_f32_16x16x16_bf16"),
        ("e9s12", "DP4A.BF16"),
        ("datapath", "mul_add(k=4, a=fp32)"),
    ],
)
def test_whole_products_of_other_algorithms(architecture: str, name: str) -> None:
    assert isinstance(bound(ARCHITECTURES[architecture][name], 1024, timeout=600), Holds)


def test_a_bound_that_is_too_small_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The n of `analysis/units` is that of the proof, or the answer is none."""
    right = query.Unit.of

    def smaller(instruction: object) -> Unit:
        unit = right(instruction)  # type: ignore[arg-type]
        (stage,) = unit.stages
        return Unit(unit.instruction, (type(stage)(stage.n / 2, stage.F, stage.rho, stage.products),))

    monkeypatch.setattr(query.Unit, "of", smaller)
    with pytest.raises(WitnessError, match="the proved n is"):
        bound(ampere["HMMA.1688.F32"], timeout=100)


@pytest.mark.parametrize(
    "change",
    [
        {"F": 44},
        pytest.param({"products": 16}, marks=pytest.mark.slow),
        pytest.param({"rho": "IEEE-FP32"}, marks=pytest.mark.slow),
    ],
    ids=["F", "products", "ρ"],
)
def test_other_steps_than_those_proved_are_noticed(
    monkeypatch: pytest.MonkeyPatch, change: dict[str, object]
) -> None:
    right = query.Unit.of

    def other(instruction: object) -> Unit:
        unit = right(instruction)  # type: ignore[arg-type]
        (stage,) = unit.stages
        fields = {"F": stage.F, "products": stage.products, "rho": stage.rho} | {
            name: CONVERSIONS[value] if isinstance(value, str) else value for name, value in change.items()
        }
        return Unit(unit.instruction, (type(stage)(stage.n, **fields),))  # type: ignore[arg-type]

    monkeypatch.setattr(query.Unit, "of", other)
    with pytest.raises(WitnessError, match="the proved steps are"):
        bound(ampere["HMMA.1688.F32"], timeout=100)


def test_roundings_and_chains_without_a_theorem() -> None:
    up = datapaths.fda(k=2, frac_bits=20, a="e4m3", rho="RU-FP16")
    with pytest.raises(ValueError, match="neither to nearest even, nor toward zero, nor to odd"):
        bound(up)
    with pytest.raises(ValueError, match="has no chain"):
        bound(volta["HMMA.884.F32.F16"], 4096)


def test_parameters_that_allow_no_bound() -> None:
    for point in (
        datapaths.fda(k=16, frac_bits=25, c="fp32", rho="RU-FP16"),
        datapaths.fda(k=16, frac_bits=20, c="fp32", rho="RZ-FP32", e_zero=10),
    ):
        with pytest.raises(ValueError, match="no bound relative to its terms"):
            Unit.of(point)


def test_promotion() -> None:
    """DeepSeek-V3 promotes on hopper as often as has to be for 2%."""
    i, one = hopper["QGMMA.64x8x32.F32.E4M3.E4M3"], Fraction(1, 1 << 24)
    unit = Unit.of(i)
    U = unit.stages[0].U
    assert 0 <= unit.promoted_factor(4096, 4) - ((1 + U) ** 4 * (1 + one) ** 32 - 1) < one / 2**60
    assert unit.promoted_factor(128, 4) == (1 + unit.factor(128)) * (1 + one) - 1
    assert most_promoted(i, 4096, 0.02) == 4
    assert most_promoted(i, 4096, 0.001) is None
    assert most_promoted(ampere["HMMA.16816.F32"], 4096, 0.02) is None
    with pytest.raises(ValueError, match="of results of fp32"):
        bound(ampere["HMMA.16816.F16"], 64, promote_every=2)


def test_promoted_products_are_within_their_bound() -> None:
    i, rng = hopper["QGMMA.64x8x32.F32.E4M3.E4M3"], np.random.default_rng(0)
    for low, high in ((0x30, 0x40), (0x38, 0x39)):  # of one sign; ones
        A, B = (rng.integers(low, high, shape).astype(np.uint8) for shape in ((20, 1024), (1024, 20)))
        numbers = np.array([float(i.a_format.value(code)) for code in range(0x40)])
        exact = numbers[A] @ numbers[B]
        for every in (1, 2, 8):
            d = np.asarray(matmul(A, B, instruction=i, promote_every=every)).view(np.float32)
            assert (np.abs(d - exact) <= float(Unit.of(i).promoted_factor(1024, every)) * exact).all()


def test_what_has_none(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bound", "cdna2", "v_mfma_f32_16x16x16f16"]) == 2
    assert "argued, not proved" in capsys.readouterr().err
    assert main(["bound", "e9s12", "DP4ACC8.FP16"]) == 3
    assert "no argument" in capsys.readouterr().out
    assert main(["bound", "hopper", "HMMA.1688.F32", "--k", "64", "--timeout", "0.01"]) == 3
