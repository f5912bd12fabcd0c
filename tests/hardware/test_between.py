"""Claims about nodes that are cut at once."""

from __future__ import annotations

import z3
from support.provers import Prover

from mmaformal.hardware.between import between
from mmaformal.hardware.maxima import Largest
from mmaformal.proof.kernel import Link

X, Y, Z = z3.BitVecs("x y z", 8)
TOP, TOTAL = z3.If(z3.UGT(X, Y), X, Y), z3.LShR(Z, 1) + (Z << X)


def _cut(*terms: z3.ExprRef) -> list[Link]:
    return [Link(term == term, (term,)) for term in terms]


def test_what_is_cut_is_a_function_of_what_is_cut_before_it() -> None:
    negated = -TOTAL
    (found,) = between(Prover(), _cut(TOTAL, negated), [])
    assert {x.get_id() for x in found.free} == {TOTAL.get_id(), negated.get_id()}
    t, n = z3.BitVecs("t n", 8)  # cut, the claim still says how one is made of the other
    claim = z3.substitute(found.claim, (negated, n), (TOTAL, t))
    solver = z3.Solver()
    solver.add(claim)
    assert solver.check(t == 3, n != -3) == z3.unsat
    assert solver.check(t == 3, n == -3) == z3.sat


def test_what_is_behind_a_shift_is_not_said() -> None:
    assert between(Prover(), _cut(TOTAL, X), []) == []


def test_a_largest_exponent_is_in_the_range_that_is_proved_and_no_other() -> None:
    x, y = z3.ZeroExt(4, z3.Extract(3, 0, X)), z3.ZeroExt(4, z3.Extract(3, 0, Y))
    top = z3.If(z3.UGT(x, y), x, y)
    largest = Largest(top, (x, y), (), (X, Y), None)
    for of_x, of_y, said in (
        (15, 15, True),
        (14, 15, True),
        (14, 14, False),
    ):  # x has the range of y, if not its own
        seen = {x.get_id(): (0, of_x), y.get_id(): (0, of_y), top.get_id(): (0, max(of_x, of_y))}
        claims = [str(link.claim) for link in between(Prover(seen), _cut(top), [largest])]
        assert any("ULE(If" in claim for claim in claims) is said


def test_a_negative_number_is_not_0_and_a_magnitude_has_the_bits_that_its_bound_shows() -> None:
    number = X - Y
    sign = z3.Extract(7, 7, number)
    size = z3.If(sign == 1, -number, number)
    prover = Prover({size.get_id(): (0, 3)})
    prover.below = [({number.get_id()}, Link(z3.And(number <= 5, number >= -5), (number,)))]
    found = {str(z3.simplify(link.claim)): link for link in between(prover, _cut(size, sign), [])}
    s, m = z3.BitVec("s", 1), z3.BitVec("m", 8)
    solver = z3.Solver()
    solver.add(*(z3.substitute(link.claim, (size, m), (sign, s)) for link in found.values()))
    assert solver.check(s == 1, m == 0) == z3.unsat
    assert solver.check(m == 6) == z3.unsat
    assert solver.check(s == 1, m == 5) == z3.sat
    other = between(prover, _cut(size, z3.Extract(7, 7, X)), [])
    assert all(len(link.free) == 1 for link in other)  # the sign of another number says nothing
