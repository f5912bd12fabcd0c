"""Values are put in the place of terms as z3's own substitution puts them there."""

from __future__ import annotations

from itertools import pairwise

import pytest
import z3
from hypothesis import given
from hypothesis import strategies as st

from mmaformal.solver.terms import Substitution

NAMES = "pqrstuvw"


def terms() -> st.SearchStrategy[z3.BitVecRef]:
    """Sums, products and differences of eight words of a byte."""
    words = st.sampled_from(NAMES).map(lambda name: z3.BitVec(name, 8))
    return st.recursive(
        words,
        lambda inner: st.tuples(st.sampled_from("+*-"), inner, inner).map(
            lambda made: {"+": made[1] + made[2], "*": made[1] * made[2], "-": made[1] - made[2]}[made[0]]
        ),
        max_leaves=12,
    )


@given(terms(), st.dictionaries(st.sampled_from(NAMES), terms(), max_size=8))
def test_all_are_put_in_at_once(term: z3.BitVecRef, values: dict[str, z3.BitVecRef]) -> None:
    pairs = [(z3.BitVec(name, 8), value) for name, value in values.items()]
    expected = z3.substitute(term, *pairs) if pairs else term
    assert Substitution(pairs)(term).eq(expected)


def test_more_than_there_is_room_for_at_first() -> None:
    words = [z3.BitVec(f"x{i}", 8) for i in range(100)]
    substituted = Substitution()
    for before, after in pairwise(words):
        substituted.add(before, after)
    assert substituted(z3.Concat(*words[:99])).eq(z3.Concat(*words[1:]))


def test_what_is_added_counts_from_then_on() -> None:
    x, y, z = z3.BitVecs("x y z", 8)
    substituted = Substitution([(x, y)])
    assert substituted(x + z).eq(y + z)
    substituted.add(z, x)
    assert substituted(x + z).eq(y + x)


@pytest.mark.parametrize("value", [z3.BitVec("y", 9), z3.Bool("y"), z3.BitVec("y", 8, ctx=z3.Context())])
def test_a_value_of_another_sort_or_context_is_refused(value: z3.ExprRef) -> None:
    with pytest.raises(ValueError, match="in the place of"):
        Substitution([(z3.BitVec("x", 8), value)])
