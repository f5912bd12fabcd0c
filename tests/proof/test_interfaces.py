"""A claim that is not settled uncut is cut at the terms that it shares with its premises, then within these."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pytest
import z3

from mmaformal.proof.composition import Composing
from mmaformal.proof.interfaces import HARD, HINT, UNCUT, Ways, hard, shared
from mmaformal.proof.kernel import NotProvedError
from mmaformal.solver.asking import Asker
from mmaformal.solver.portfolio import Outcome, Portfolio

x, y, k = z3.BitVecs("x y k", 32)
SHIFT = x << k
ONE, OTHER = SHIFT * SHIFT, y + 3
FORMULAS = [z3.ULE(ONE, OTHER), z3.UGE(OTHER + 1, ONE)]


class Counting(Portfolio):
    """Tells the scripts that it was asked."""

    def ask(self, script: str, constants: Mapping[str, int], timeout: float) -> Outcome:
        self.asked.append(script)
        return super().ask(script, constants, timeout)

    def __init__(self) -> None:
        super().__init__(["bitwuzla"])
        self.asked: list[str] = []


class Weak(Counting):
    """Does not know of an operation."""

    def __init__(self, operation: str) -> None:
        super().__init__()
        self.operation = operation

    def ask(self, script: str, constants: Mapping[str, int], timeout: float) -> Outcome:
        if self.operation in script:
            return Outcome("unknown", "", "", 0.0, why="too hard")
        return super().ask(script, constants, timeout)


@pytest.fixture
def portfolio() -> Iterator[Counting]:
    made = Counting()
    with made:
        yield made


@pytest.fixture
def proving(portfolio: Counting) -> Composing:
    return Composing(Asker(portfolio, 20.0))


def test_the_largest_terms_that_are_used_twice_come_first_then_those_within() -> None:
    levels = [[str(each) for each in level] for level in shared(FORMULAS)]
    assert levels == [[str(ONE), str(OTHER)], [str(SHIFT)]]


def test_a_premise_that_the_claim_has_is_one_proposition() -> None:
    p, q = z3.ULE(ONE, OTHER), z3.ULE(OTHER, ONE)
    (level, *_) = shared([p, z3.Implies(p, q), q])
    assert {each.get_id() for each in level} == {p.get_id(), q.get_id()}


def test_ways_are_the_hint_the_computed_ones_and_no_cut() -> None:
    assert [number for number, _ in Ways(FORMULAS, [x]).beginning_with(None)] == [HINT, 1, 2, HARD, UNCUT]
    assert [number for number, _ in Ways(FORMULAS).beginning_with(2)] == [2, 1, HARD, UNCUT]
    assert [number for number, _ in Ways(FORMULAS).beginning_with(UNCUT)] == [UNCUT, 1, 2, HARD]
    assert [number for number, _ in Ways(FORMULAS).beginning_with(9)] == [
        1,
        2,
        HARD,
        UNCUT,
    ]  # there is no ninth
    assert dict(Ways(FORMULAS, [x]).beginning_with(None))[HINT] == [x]
    assert dict(Ways(FORMULAS).beginning_with(None))[UNCUT] == []


def test_uncut_comes_after_the_first_cut_that_is_not_settled() -> None:
    unsettled = {HINT}
    ways = Ways(FORMULAS, [x]).beginning_with(None, unsettled)
    assert [next(ways)[0] for _ in range(2)] == [HINT, 1]
    unsettled.add(1)
    assert [number for number, _ in ways] == [HARD, UNCUT, 2]  # nothing is hard of what is left of the first


def test_products_and_shifts_by_what_is_no_constant_are_hard() -> None:
    sum_ = z3.ULE(ONE + 2 * y, z3.LShR(y, 3))
    assert [str(each) for each in hard([sum_])] == [str(ONE)]
    assert [str(each) for each in hard([sum_], [ONE])] == []
    assert [str(each) for each in hard([z3.ULE(SHIFT, OTHER)])] == [str(SHIFT)]


def test_a_claim_is_proved_of_any_values_of_what_it_shares() -> None:
    with Weak("bvshl") as portfolio:
        proving = Composing(Asker(portfolio, 20.0))
        given = z3.And(z3.ULE(ONE, OTHER), OTHER != -1)
        proving.claim("next", "the next number is above", z3.Implies(given, z3.ULT(ONE, OTHER + 1)))
    (obligation,) = proving.obligations
    assert "bvshl" not in obligation.script
    assert "bvmul" not in obligation.script


def test_where_a_cut_forgets_too_much_it_is_opened() -> None:
    odd = z3.And(z3.Extract(1, 1, ONE) == 1, z3.ULE(ONE, OTHER))
    claim = z3.Implies(odd, z3.ULE(OTHER, ONE))
    with Weak("bvshl") as portfolio:
        Composing(Asker(portfolio, 20.0)).claim("square", "a square is 0 or 1 modulo 4", claim)
    assert ["bvmul" in script for script in portfolio.asked] == [False, True]
    assert "bvshl" not in portfolio.asked[-1]


def test_a_false_claim_is_refuted_uncut(proving: Composing) -> None:
    with pytest.raises(NotProvedError) as error:
        proving.claim("less", "it is less", z3.ULE(ONE, OTHER))
    assert error.value.refuted
    assert not proving.obligations
    assert not proving.lemmas
    failure = proving.asker.failed
    assert failure is not None
    assert "refuted" in str(failure())


def test_a_claim_that_is_refuted_only_where_it_is_cut_is_not_refuted() -> None:
    with Weak("bvmul") as portfolio, pytest.raises(NotProvedError, match="too hard") as error:
        Composing(Asker(portfolio, 20.0)).claim("less", "it is less", z3.ULE(ONE, OTHER + ONE))
    assert error.value.verdict == "unknown"
    assert len(portfolio.asked) == 2  # cut in two ways: it does not hold, and is not asked again


def test_what_was_not_proved_is_not_asked_again(portfolio: Counting) -> None:
    asker = Asker(portfolio, 20.0)
    for _ in range(2):
        with pytest.raises(NotProvedError):
            Composing(asker).claim("less", "it is less", z3.ULE(ONE, OTHER))
    assert len(portfolio.asked) == len(set(portfolio.asked))


def test_the_way_that_was_proved_at_a_place_is_the_first_there(
    proving: Composing, portfolio: Counting
) -> None:
    asked = []
    for n in range(3):
        a = z3.BitVec(f"a{n}", 8)
        before = len(portfolio.asked)
        proving.claim(f"even {n}", "it is even", z3.URem(a + a + z3.BitVecVal(2 * n, 8), 2) == 0)
        asked.append(len(portfolio.asked) - before)
    assert asked[0] >= asked[1] == asked[2]


def test_a_claim_by_each_value_of_a_narrow_term(proving: Composing, portfolio: Counting) -> None:
    """A lemma for each value; a claim that holds of the term, but not of all values of what is cut, is asked whole."""
    x, places = z3.BitVec("x", 8), z3.BitVec("places", 3)
    wide = z3.ZeroExt(5, places)
    kept = z3.LShR(x, wide) << wide
    proving.claim_each("cut", "what is left is not above", z3.ULE(kept, x), places, (), [x])
    assert len(proving.lemmas) == 8
    odd = (x << 1) | 1
    proving.claim_each("odd", "an odd number is none of them", odd & (wide << 1) != odd, places, (), [odd])
    with pytest.raises(NotProvedError, match="does not hold"):
        proving.claim_each("below", "what is left is below", z3.ULT(kept, x), places, (), [x])
    proving.conclude("both", z3.And(z3.ULE(kept, x), odd & (wide << 1) != odd))
    assert proving.proof()
