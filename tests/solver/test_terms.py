"""Terms walked by their handles give what z3's Python says of them, whatever was walked before."""

import random
from collections import Counter

import pytest
import z3

from mmaformal.solver import terms
from mmaformal.solver.script import smtlib
from mmaformal.solver.terms import Substitution, apart, constant_like, constants_of, operands_first

X, Y = z3.BitVecs("x y", 8)


def some_term(rng: random.Random, depth: int = 5) -> z3.BitVecRef:
    if depth == 0 or rng.random() < 0.1:
        return rng.choice([X, Y, z3.BitVecVal(rng.randrange(256), 8), z3.BitVec(f"v{rng.randrange(4)}", 8)])
    left, right = some_term(rng, depth - 1), some_term(rng, depth - 1)
    return rng.choice([left + right, left * right, z3.If(z3.ULT(left, right), left, right), left & ~right])


def by_python(roots: list[z3.ExprRef]) -> tuple[list[int], Counter[int]]:
    """The ids of all terms, operands first and from left to right, and how often each is used."""
    order: dict[int, None] = {}
    uses: Counter[int] = Counter()

    def walk(term: z3.ExprRef) -> None:
        if term.get_id() in order:
            return
        for each in term.children():
            walk(each)
        order[term.get_id()] = None
        uses.update(each.get_id() for each in term.children())

    for root in roots:
        walk(root)
    return list(order), uses


@pytest.mark.parametrize("remembered", [0, 40, 400_000])
def test_a_walk_is_that_of_z3s_python(remembered: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Terms die between walks, so that ids are used again; what is remembered of them is not."""
    monkeypatch.setattr(terms, "_REMEMBERED", remembered)
    rng = random.Random(1)
    kept = [some_term(rng) for _ in range(3)]
    for _ in range(200):
        roots = [some_term(rng), rng.choice(kept), some_term(rng, 2)]
        nodes, uses = operands_first(roots)
        assert ([node.id for node in nodes], uses) == by_python(roots)
        del roots, nodes


def test_constants_are_z3s() -> None:
    b, r = z3.Bool("b"), z3.Real("r")
    term = z3.And(b, z3.If(r > 1, X, Y) == 3)
    assert {str(each): each.sort() for each in constants_of(term)} == {
        str(each): each.sort() for each in (b, r, X, Y)
    }
    for like in (b, r, X):
        assert constant_like("n", like).eq(z3.Const("n", like.sort()))
        assert constant_like("n", like) is constant_like("n", like)


def test_constants_apart_are_in_none_of_the_terms() -> None:
    other = z3.BitVec("x", 4)  # of one name, and of another sort
    assert apart([X, other], [Y + 1])[0].eq(X)
    assert apart([other], [X + 1])[0].eq(other)
    found = apart([X, Y], [X + 1])
    assert [str(each) for each in found] == ["x!", "y"]
    with pytest.raises(ValueError, match="in the place of"):
        Substitution([(X, other)])


@pytest.mark.parametrize("name", ["a b", "3a", "a;b", "a[0]", "a!1", "A.b-c"])
def test_a_script_names_the_constants_that_were_asked_about(name: str) -> None:
    x = z3.BitVec(name, 8)
    read = z3.Solver()
    read.from_string(smtlib([x == 3]))
    assert read.check() == z3.sat
    assert [(str(each), read.model()[each]) for each in read.model()] == [(str(x), 3)]
