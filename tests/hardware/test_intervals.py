"""Bounds of words by interval arithmetic, which a prover has to agree with."""

from __future__ import annotations

import z3
from support.provers import Prover

from mmaformal.hardware.intervals import Bounds, _says_nothing
from mmaformal.proof.lemmas import Link

W, X, Y, Z = z3.BitVecs("w x y z", 4)  # more inputs than a range is asked of
ANY, ALL = W ^ X ^ Y ^ Z, W & X & Y & Z


def largest(term: z3.BitVecRef) -> int | None:
    link = Bounds(Prover()).of(term)
    return None if link is None else link.claim.arg(1).as_long()


def test_bounds_of_words() -> None:
    product = z3.ZeroExt(8, ANY) * z3.ZeroExt(8, ALL)
    assert largest(product) == 225
    assert largest(z3.LShR(z3.Concat(product, z3.BitVecVal(0, 4)), z3.ZeroExt(12, X))) == 225 << 4
    assert largest(z3.If(X == 0, product, z3.ZeroExt(8, ANY))) == 225
    assert largest(z3.ZeroExt(3, ANY) * z3.ZeroExt(3, ALL)) is None  # it wraps around
    assert largest(ANY) is None


def test_bounds_of_sums_of_magnitudes_with_a_sign() -> None:
    magnitude = z3.ZeroExt(4, ANY)
    term = z3.If(X == 1, -magnitude, magnitude)
    prover = Prover()
    link = Bounds(prover).of(term + z3.If(Y == 1, -magnitude, magnitude))
    assert link is not None
    assert link.claim.arg(0).arg(1).as_long() == 30
    assert prover.below[-1][1] is link
    narrow = z3.ZeroExt(1, ANY)
    two = z3.If(X == 1, -narrow, narrow)
    assert Bounds(Prover()).of(two + two) is None  # 30 is no number of five bits


def test_both_ends_of_differences_and_of_the_larger_of_two() -> None:
    word = z3.If(X == 0, z3.BitVecVal(20, 8), z3.BitVecVal(40, 8)) + z3.ZeroExt(4, ANY)
    other = z3.If(Y == 0, z3.BitVecVal(1, 8), z3.BitVecVal(7, 8))
    larger = z3.If(z3.UGT(word, other), word, other)
    ends = {}
    for name, term in {"word": word, "difference": word - other, "larger": larger}.items():
        link = Bounds(Prover()).of(term)
        assert link is not None
        ends[name] = [each.arg(1).as_long() for each in link.claim.children()]
    assert ends == {"word": [20, 55], "difference": [13, 54], "larger": [20, 55]}
    assert Bounds(Prover()).of(other - word) is None  # it wraps around


def test_ends_that_no_case_reaches() -> None:
    """A field of 1 to 15 is seen up to 14, and a sum of 0 to 28 up to 17."""
    field = z3.If(X == 0, z3.BitVecVal(1, 4), X)
    both = z3.ZeroExt(2, z3.Extract(3, 1, X)) + z3.ZeroExt(2, z3.Extract(3, 1, Y)) * 3
    prover = Prover({field.get_id(): (1, 14), both.get_id(): (0, 17)})
    of = Bounds(prover).of
    said = {}
    for name, term in {"field": field, "both": both}.items():
        link = of(term)
        assert link is not None
        claims = link.claim.children() if z3.is_and(link.claim) else [link.claim]
        said[name] = [each.arg(1).as_long() for each in claims]
    assert said == {"field": [1, 15], "both": [28]}


def test_the_bound_of_a_number_with_a_sign_says_something() -> None:
    """A known bound is kept, although as a range of words it is that of the width."""
    magnitude = z3.ZeroExt(4, ANY)
    total = z3.If(X == 1, -magnitude, magnitude) + z3.If(Y == 1, -magnitude, magnitude)
    known = Link(z3.And(total <= 20, total >= -20), (total,))  # from the parts alone it is 30
    prover = Prover()
    prover.below.append(({total.get_id()}, known))
    assert Bounds(prover).of(total) is known
    gap = Link(z3.And(z3.UGE(X, 0), z3.ULE(X, 15), z3.Or(X == 0, z3.UGE(X, 8))), (X,))
    assert not _says_nothing(X, gap)
    assert _says_nothing(X, Link(z3.ULE(X, 15), (X,)))
