"""efda of three sorted terms: correctly rounded, whatever the order; and neither is proved of a broken model."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import z3

from mmaformal import cdna1
from mmaformal.encodings.efda import smt as efda
from mmaformal.encodings.smt import blocks
from mmaformal.facts.exact_steps import prove_each_step_rounds
from mmaformal.proof.composition import Composing
from mmaformal.proof.kernel import ArgumentError, LemmaUse, NotProvedError, prove
from mmaformal.queries import order_independence
from mmaformal.solver.asking import Asker
from mmaformal.solver.portfolio import LazyPortfolio

BF16 = cdna1["v_mfma_f32_32x32x2bf16"].spec


def test_a_step_is_correctly_rounded(solvers: LazyPortfolio) -> None:
    proving = Composing(Asker(solvers, 60))
    prove_each_step_rounds(proving, BF16)
    assert len(proving.obligations) > 25


def only_two_sorted(x: Any, y: Any, z: Any) -> Any:
    swap = z3.ULT(x.exponent, y.exponent)
    return efda.select(swap, y, x), efda.select(swap, x, y), z


sticky_sum = efda.sticky_sum


def without_the_last_place(x: Any, x_bits: int, y: Any, y_bits: int, frame: int) -> Any:
    return sticky_sum(x._replace(significand=x.significand & -2), x_bits, y, y_bits, frame)


BREAKS: dict[str, Callable[[pytest.MonkeyPatch], None]] = {
    "near is one binade": lambda m: m.setattr(efda, "NEAR", 1),
    "no sticky place in sums": lambda m: m.setattr(blocks, "sticky_shift_right", blocks.shift_right),
    "no sticky place below the least exponent": lambda m: m.setattr(
        efda, "sticky_shift_right", blocks.shift_right
    ),
    "the third term is not sorted": lambda m: m.setattr(efda, "sorted_terms", only_two_sorted),
    "the first of two terms loses its last place": lambda m: m.setattr(
        efda, "sticky_sum", without_the_last_place
    ),
}


@pytest.mark.parametrize("broken", BREAKS)
def test_a_broken_step_is_not(solvers: LazyPortfolio, broken: str, monkeypatch: pytest.MonkeyPatch) -> None:
    BREAKS[broken](monkeypatch)
    with pytest.raises(NotProvedError, match="does not hold"):
        prove_each_step_rounds(Composing(Asker(solvers, 60)), BF16)


def order_matters_not(solvers: LazyPortfolio) -> None:
    orders = order_independence.within_blocks(BF16)
    assert orders
    prove(Asker(solvers, 60), *(order_independence.argue_order(BF16, order) for order in orders))


@pytest.mark.slow
def test_order_does_not_matter(solvers: LazyPortfolio) -> None:
    order_matters_not(solvers)


@pytest.mark.parametrize(
    "broken", ["the third term is not sorted", "the first of two terms loses its last place"]
)
def test_order_of_a_broken_step_matters(
    solvers: LazyPortfolio, broken: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    BREAKS[broken](monkeypatch)
    with pytest.raises((NotProvedError, ArgumentError)):
        order_matters_not(solvers)


@pytest.mark.parametrize(
    "dropped", ["nothing", "sorted terms are in order", "the sum of two, normalised", "e_max is in its range"]
)
def test_a_claim_that_is_dropped_is_missed(dropped: str, solvers: LazyPortfolio) -> None:
    """The last obligation: every premise is a claim that was proved, or that the inputs are numbers."""

    class Forgetful(Composing):
        def claim(self, name: str, statement: str, claim: Any, using: Any = (), cut: Any = ()) -> Any:
            return (
                claim if statement.startswith(dropped) else super().claim(name, statement, claim, using, cut)
            )

        def _prove_some_way(self, *claim: Any) -> list[LemmaUse]:
            """Takes it for proved."""
            return []

        def _settle(self, lemmas: Any) -> None:
            super()._settle([lemma for lemma in lemmas if lemma.stage == "composition"])

    proving = Forgetful(Asker(solvers, 30))
    if dropped == "nothing":
        prove_each_step_rounds(proving, BF16)
    else:
        with pytest.raises(NotProvedError, match="does not hold"):
            prove_each_step_rounds(proving, BF16)
