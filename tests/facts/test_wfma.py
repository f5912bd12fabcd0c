"""wfma: what is known of sfma is known of its converted factors, and of no others."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TypeAlias

import pytest
import z3
from support.settling import settled
from support.slow import slow

from mmaformal import apple_amx
from mmaformal.encodings.sfma import smt as sfma
from mmaformal.encodings.smt import ieee
from mmaformal.encodings.smt.stages import Stages
from mmaformal.encodings.wfma import smt as wfma
from mmaformal.encodings.wfma.proofs.exact_sums import WideFmaSum, prove_claims
from mmaformal.facts.exact_steps import prove_each_step_rounds, rounded_once
from mmaformal.formats import Format, bf16
from mmaformal.proof.kernel import ArgumentError, NotProvedError, prove
from mmaformal.proof.rules import Theory
from mmaformal.queries import power_of_two_scaling, sign_symmetry
from mmaformal.queries.properties import PROPERTIES
from mmaformal.solver.answers import Fails, Holds
from mmaformal.spec import DotAdd
from mmaformal.theory import monotone
from mmaformal.theory.rounded_sums import RoundsExactly

FMA = apple_amx["fma16.F32"]
SPEC = FMA.spec


BitVec: TypeAlias = z3.BitVecRef
Convert: TypeAlias = Callable[[BitVec, Format, Format], BitVec]


def one_off(right: Convert) -> Convert:
    """The next number."""
    return lambda code, *formats: right(code, *formats) ^ 1


def without_sign(right: Convert) -> Convert:
    return lambda code, *formats: right(code, *formats) & 0x7FFFFFFF


def flushed(right: Convert) -> Convert:
    """Subnormal numbers are zero."""
    return lambda code, *formats: z3.If(
        z3.Extract(14, 10, code) == 0, z3.BitVecVal(0, 32), right(code, *formats)
    )


def quieted(right: Convert) -> Convert:
    """Infinities are NaNs."""
    return lambda code, *formats: z3.If(
        z3.Extract(14, 0, code) == 0x7C00, z3.BitVecVal(0x7FC00000, 32), right(code, *formats)
    )


CONVERSIONS = (one_off, without_sign, flushed, quieted)


def first_twice(spec: DotAdd, a: BitVec, b: BitVec, c: BitVec, stages: Stages) -> wfma.WfmaStep:
    """A step that squares a."""
    return RIGHT_STEP(spec, a, a, c, stages)


def factors_as_they_are(spec: DotAdd, a: BitVec, b: BitVec, c: BitVec, stages: Stages) -> wfma.WfmaStep:
    """A step whose factors are the upper halves of fp32 codes."""
    x, y = (z3.Concat(code, z3.BitVecVal(0, 16)) for code in (a, b))
    return wfma.WfmaStep(x, y, sfma.step(spec.parameters.last_rounding, x, y, c, stages=stages))


RIGHT_STEP = wfma.step
STEPS = (first_twice, factors_as_they_are)


@pytest.mark.parametrize("change", CONVERSIONS)
def test_factors_that_are_other_numbers_are_not_rounded_once(
    change: Callable[[Convert], Convert], theory: Theory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ieee, "convert", change(ieee.convert))
    with pytest.raises(NotProvedError, match="converted to fp32 exactly does not hold"):
        prove_each_step_rounds(theory, SPEC, prove_claims)


@pytest.mark.parametrize("change", STEPS)
def test_a_step_that_is_another_fma_is_not_rounded_once(
    change: Callable[..., wfma.WfmaStep], theory: Theory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wfma, "step", change)
    with pytest.raises(NotProvedError, match="an fma of the converted factors does not hold"):
        rounded_once(theory, SPEC, prove_claims)


@pytest.mark.parametrize("change", slow(CONVERSIONS[:3], CONVERSIONS[:3]))
def test_factors_that_are_other_numbers_are_in_another_order(
    change: Callable[[Convert], Convert], theory: Theory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ieee, "convert", change(ieee.convert))
    with pytest.raises(NotProvedError, match=r"its significand shifted does not hold"):
        monotone.prove_in_products(theory, SPEC, WideFmaSum(SPEC))


@pytest.mark.parametrize("change", [one_off, flushed])
def test_factors_that_are_other_numbers_do_not_scale(
    change: Callable[[Convert], Convert], theory: Theory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """But for flushed ones: subnormal factors are out of range."""
    monkeypatch.setattr(ieee, "convert", change(ieee.convert))
    argument = partial(power_of_two_scaling.argue_doubled, SPEC)
    if change is flushed:
        assert prove(theory.asker, argument())
        return
    with pytest.raises((NotProvedError, ArgumentError)):
        prove(theory.asker, argument())


def test_factors_without_a_sign_are_not_symmetric(theory: Theory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ieee, "convert", without_sign(ieee.convert))
    with pytest.raises(NotProvedError):
        prove(theory.asker, sign_symmetry.argue_negated(sign_symmetry.relation_negated(SPEC)))


@pytest.mark.parametrize("name", ["power-of-two-scaling", "sign-symmetry"])
def test_two_runs(name: str) -> None:
    assert isinstance(settled(PROPERTIES[name], FMA), Holds)


# ---- long ones -------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("change", STEPS)
@pytest.mark.parametrize("prove_order", [monotone.prove_in_c, monotone.prove_in_products])
def test_a_step_that_is_another_fma_is_not_proved_monotone(
    prove_order: Callable[[Theory, DotAdd, RoundsExactly], None],
    change: Callable[..., wfma.WfmaStep],
    theory: Theory,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The theorem is of a step of sfma; that the chain has it is asked last."""
    monkeypatch.setattr(wfma, "step", change)
    with pytest.raises(NotProvedError, match="does not hold"):
        prove_order(theory, SPEC, WideFmaSum(SPEC))


NUMERICAL = (
    "monotonicity-in-c",
    "monotonicity-in-a-product",
    "exactness",
    "error-bound",
    "lossless-width",
    "correct-rounding-of-each-step",
)


@pytest.mark.slow
@pytest.mark.parametrize("name", NUMERICAL)
@pytest.mark.parametrize("k", [1, 3])
@pytest.mark.parametrize("fmt", [SPEC.a_format, bf16], ids=str)
def test_what_is_known_of_sfma_is_known_of_it(fmt: Format, k: int, name: str) -> None:
    assert isinstance(settled(PROPERTIES[name], FMA.replace(k=k, a_format=fmt), 600.0), Holds)


@pytest.mark.parametrize("k", slow([1, 3], [1]))
@pytest.mark.parametrize("name", ["correct-rounding", "faithful-rounding"])
def test_one_step_is_correctly_rounded_and_a_chain_is_not(name: str, k: int) -> None:
    answer = settled(PROPERTIES[name], FMA.replace(k=k))
    assert isinstance(answer, Holds if k == 1 else Fails)
