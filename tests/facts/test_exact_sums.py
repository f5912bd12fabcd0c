"""efda: d is the exact sum of the codes' numbers rounded once, so it grows with c and products; broken, it is not."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest
import z3
from support.slow import slow

from mmaformal import cdna1
from mmaformal.cases.inputs import symbolic_inputs
from mmaformal.encodings.efda import Efda
from mmaformal.encodings.efda import smt as efda
from mmaformal.encodings.efda.proofs.exact_sums import EfdaSum
from mmaformal.encodings.smt import blocks, stages
from mmaformal.formats import e2m1, e3m2
from mmaformal.proof.definitions import index_of, rounded_index
from mmaformal.proof.kernel import NotProvedError
from mmaformal.proof.rules import Theory
from mmaformal.queries import monotonicity
from mmaformal.rounding import IEEE_FP32, Rounding
from mmaformal.solver.answers import Holds
from mmaformal.solver.asking import Asker
from mmaformal.solver.portfolio import LazyPortfolio
from mmaformal.spec import DotAdd
from mmaformal.theory import monotone
from mmaformal.theory.fixed_point import FixedPoint, WideNumbers
from mmaformal.theory.numbers import CodeNumbers
from mmaformal.theory.rounded_sums import grid_of
from mmaformal.theory.rounding import RoundingGrid

#: In fixed point; sorted, where no sum is narrow enough for that.
SMALL = cdna1["v_mfma_f32_32x32x4f16"].spec.replace(k=2, L=2, a_format=e3m2, b_format=e2m1)


KINDS = ("fixed point", "sorted")


def take(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sum the small model's terms this way."""
    if kind == "sorted":
        monkeypatch.setattr(efda, "WIDEST", 0)
    assert isinstance(SMALL.parameters, Efda)
    assert efda.in_fixed_point(SMALL, SMALL.parameters) == (kind == "fixed point")


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_d_grows(theory: Theory, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    take(kind, monkeypatch)
    monotone.prove_in_products(theory, SMALL, EfdaSum(SMALL))
    assert {rule.name for rule in theory.rules} == {"instance", "ascent"}


CASES = [
    (query, name)
    for query in (monotonicity.settle_addend, monotonicity.settle_product)
    for name in ("v_mfma_f32_16x16x16f16", "v_mfma_f32_16x16x8bf16")
]


@pytest.mark.slow
@pytest.mark.parametrize(("query", "name"), CASES)
def test_instructions_of_cdna1_hold(query: Callable[..., Any], name: str) -> None:
    with LazyPortfolio() as portfolio:
        assert isinstance(query(cdna1[name], Asker(portfolio, 300.0)), Holds)


# ---- what the theorem says ---------------------------------------------------------------------------------------


def claims(w: WideNumbers, spec: DotAdd) -> tuple[z3.BoolRef, z3.BitVecRef]:
    """(that a code is the sum of a step's numbers rounded, the code)."""
    code = z3.BitVec("code", spec.d_format.storage_bits)
    return RoundingGrid(w, IEEE_FP32).rounds(CodeNumbers(w, spec).total, code), code


def test_the_exact_sum_is_rounded_to_one_code(theory: Theory) -> None:
    """By rationals: of a code and its neighbours, the claim holds of the right one alone."""
    spec, generator = SMALL, random.Random(1)
    w = WideNumbers(theory, FixedPoint(-300, 280, 40, 8), 14)
    claim, code = claims(w, spec)
    x = symbolic_inputs(spec)
    for _ in range(60):
        c = generator.choice([0, 1, 0x3F000000, 0x80000001, 0xC0000000]) + generator.randrange(4)
        codes = [generator.randrange(1 << v.size()) for v in (*x.a, *x.b)]
        values = [f.value(v) for f, v in zip([e3m2, e3m2, e2m1, e2m1], codes, strict=True)]
        exact = Fraction(values[0] * values[2] + values[1] * values[3] + spec.c_format.value(c))
        right = rounded_index(exact, IEEE_FP32)
        pairs = list(zip((*x.a, *x.b, x.c), (*codes, c), strict=True))
        for magnitude in {right, right + 1, max(right - 1, 0)}:
            for sign in (0, 1):
                d = magnitude | sign << 31
                numbers = [(u, z3.BitVecVal(v, u.size())) for u, v in (*pairs, (code, d))]
                said = z3.is_true(z3.simplify(z3.substitute(claim, *numbers)))
                own_sign = exact == 0 or right == 0 or (exact < 0) == bool(sign)
                assert said == (index_of(d, IEEE_FP32) == right and own_sign)


# ---- breaks -------------------------------------------------------------------------------------------------------

multiply, round_ = stages.multiply, efda.normalise_and_round


def wrong_sign(x: Any, y: Any, *given: Any, **more: Any) -> Any:
    return multiply(x, y, *given, **more)._replace(sign=x.sign)


def one_binade_off(x: Any, y: Any, *given: Any, **more: Any) -> Any:
    product = multiply(x, y, *given, **more)
    return product._replace(exponent=product.exponent + 1)


def toward_zero(total: Any, e_max: Any, exponents: Any, frame: int, rho: Any, least: int) -> Any:
    return round_(total, e_max, exponents, frame, replace(rho, rounding=Rounding.RZ), least)


def only_two_sorted(x: Any, y: Any, z: Any) -> Any:
    swap = z3.ULT(x.exponent, y.exponent)
    return efda.select(swap, y, x), efda.select(swap, x, y), z


BREAKS: dict[str, tuple[str, Any, str, Any]] = {
    "a product has the sign of one factor": ("both", stages, "multiply", wrong_sign),
    "a product is placed one bit off": ("both", stages, "multiply", one_binade_off),
    "rounded toward zero": ("both", efda, "normalise_and_round", toward_zero),
    "no sticky place in sums": ("both", blocks, "sticky_shift_right", blocks.shift_right),
    "near is one binade": ("sorted", efda, "NEAR", 1),
    "the third term is not sorted": ("sorted", efda, "sorted_terms", only_two_sorted),
}


BROKEN = [(kind, broken) for kind in KINDS for broken in BREAKS if BREAKS[broken][0] in ("both", kind)]
QUICK = [("sorted", "a product is placed one bit off")]


@pytest.mark.parametrize("case", slow(BROKEN, [case for case in BROKEN if case not in QUICK]))
def test_a_broken_step_is_not_exact(
    theory: Theory, case: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    kind, broken = case
    take(kind, monkeypatch)
    _, module, name, change = BREAKS[broken]
    monkeypatch.setattr(module, name, change)
    model = EfdaSum(SMALL)
    grid = grid_of(theory, model.p.rho, model.span)
    with pytest.raises(NotProvedError, match="does not hold"):
        model.prove(grid)


@pytest.mark.slow
@pytest.mark.parametrize("rounding", [Rounding.RNE, Rounding.RO], ids=str)
def test_an_order_without_even_numbers_is_not_kept(
    rounding: Rounding, theory: Theory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If a midpoint were rounded to both codes, equal numbers would be rounded to codes in no order."""
    monkeypatch.setattr(RoundingGrid, "even", lambda self, index: z3.BoolVal(True))
    w = WideNumbers(theory, FixedPoint(-300, 280, 32, 8), 14)
    w.prove()
    with pytest.raises(NotProvedError, match="does not hold"):
        RoundingGrid(w, replace(IEEE_FP32, rounding=rounding)).prove()


def test_other_roundings_are_not_claimed(theory: Theory) -> None:
    w = WideNumbers(theory, FixedPoint(-300, 280, 32, 8), 14)
    with pytest.raises(NotProvedError, match="RNE"):
        RoundingGrid(w, replace(IEEE_FP32, rounding=Rounding.RZ))
