"""Cuts of claims: propositions, and the integers that sums are made of; each claim is of any values of those."""

from __future__ import annotations

import pytest
import z3

from mmaformal.proof.cuts import follows, of_sums, propositions, sum_parts
from mmaformal.proof.kernel import NotProvedError
from mmaformal.proof.rules import Theory

x, y, k = z3.BitVecs("x y k", 64)
short = z3.BitVec("short", 8)
shift = x << k


def same(found: list[z3.ExprRef], expected: list[z3.ExprRef]) -> bool:
    return {term.get_id() for term in found} == {term.get_id() for term in expected}


def test_propositions_are_what_connectives_join() -> None:
    p, q = z3.ULT(x, y), z3.Extract(0, 0, x) == 1
    assert same(propositions([z3.Implies(p, z3.Or(q, z3.Not(p)))]), [p, q])
    assert same(propositions([z3.If(p, q, z3.BoolVal(True)) == p]), [p, q])
    assert same(propositions([z3.And(z3.Or(p, q), p)], whole=[z3.Or(p, q)]), [z3.Or(p, q), p])


def test_summands_are_what_is_added() -> None:
    claim = z3.If(short == 1, -shift, shift) + y - 3 >= 0
    assert same(sum_parts([claim], 64), [shift, y, short])
    assert same(
        sum_parts([z3.Extract(63, 60, shift + y) == 0, z3.ULT(short, short + 1)], 64),
        [shift, y, z3.ULT(short, short + 1)],
    )


def test_a_claim_follows_from_others(theory: Theory) -> None:
    p, q = z3.ULE(x, y), z3.ULE(y, x)
    known = theory.claim("either", "x and y are in some order", z3.Or(p, q))
    follows(
        theory, "the other", "if not in one order, they are in the other", z3.Implies(z3.Not(p), q), [known]
    )
    with pytest.raises(NotProvedError, match="does not hold"):
        follows(theory, "one", "they are in one order", z3.Implies(p, z3.Not(q)), [known])


def test_sums_are_of_any_integers(theory: Theory) -> None:
    of_sums(theory, "sum", "what is added may be taken off", shift + y - shift == y, [], 64)
    of_sums(
        theory,
        "shift",
        "where the sum does not tell, its terms are opened",
        z3.Implies(x == 0, shift == 0),
        [],
        64,
    )
    with pytest.raises(NotProvedError, match="does not hold"):
        of_sums(theory, "shift", "a shift may be zero", shift != 0, [], 64)
