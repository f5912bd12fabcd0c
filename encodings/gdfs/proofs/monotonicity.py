"""gdfs: d grows with every product, if all else is the same.  Proof for the groups of one step, one after another.

Two runs share all scales, c and all groups but one, in which no product of the second is smaller.  Then

1. *group*:    its sum is not smaller, nor is it once scaled, for scales have no sign;
2. *exponent*: that of a group is its scales', whatever the products are, unless all of them are zero in one run.  The
               other run's sum is then of one sign and not zero;
3. *e_max*:    so it is the same in both, or the run whose group is not zero has the larger one, which is its group's;
4. *same e_max*:  the group's aligned magnitude is the larger in the second run if it was (a cut toward zero keeps the
               order), so is the total, and ρ of it;
5. *e_max r higher*:  every other term loses less than one coarser unit, L/G and c together, and the group is worth at
               least 2^(F − 2 − 2m) of them.  So ⌈T / 2^r⌉ ≤ T', T and T' the totals on the finer and the coarser grid,
               and ρ keeps the order of such numbers.

A group at a time, all products may grow: ≤ is transitive.  NaN and infinity are decided by c and the scales.
"""

from __future__ import annotations

from collections.abc import Sequence

import z3

from mmaformal.cases.out_of_order import order
from mmaformal.encodings.gdfs import Gdfs
from mmaformal.encodings.gdfs import smt as gdfs
from mmaformal.encodings.gdfs.proofs.larger_group import LargerGroup, TwoSteps
from mmaformal.encodings.gdfs.proofs.larger_total import Risen, Totals, worth
from mmaformal.proof.kernel import NotProvedError
from mmaformal.proof.rules import Theory, instance
from mmaformal.spec import DotAdd
from mmaformal.theory.numbers import LargerProduct, larger_product


def prove_in_products(theory: Theory, spec: DotAdd) -> None:
    """That a gdfs model is monotone in its products: `larger_product(spec, k).statement`.  Raises NotProvedError."""
    p = spec.parameters
    assert isinstance(p, Gdfs)
    if spec.k != p.L:
        raise NotProvedError("a chain of steps is monotone in a product", "unknown", "no argument for it")
    if worth(spec) < p.L // p.G:
        raise NotProvedError("a group is worth what the other terms lose", "sat", "")
    for start in range(0, spec.k, p.G):
        group = larger_product(spec, *range(start, start + p.G))
        x, y = group.traces
        first, second = x.steps[0], y.steps[0]
        assert isinstance(first, gdfs.GdfsStep)
        assert isinstance(second, gdfs.GdfsStep)
        end = _prove_group(TwoSteps(theory, spec, p, first, second, start // p.G), group.premises)
        results = [first.result, second.result]
        theory.claim("d", "d is the result of the step", group.in_order, [end], results)
        text = "d is not smaller if no product of a group is"
        _prove_each(theory, group, theory.theorem(text, group.statement))


def _prove_each(theory: Theory, group: LargerProduct, theorem: z3.BoolRef) -> None:
    """Of a single product: the others are what they are, so they are not smaller."""
    for k in group.places:
        rest = [i for i in group.places if i != k]
        pairs = [(mine[i], own[i]) for i in rest for own, mine in _sides(group)]
        said = instance(theory, theorem, pairs)
        alone = larger_product(group.spec, k)
        for premise in (each for i, each in zip(group.places, said.arg(0).children(), strict=True) if i != k):
            theory.claim("the same product", "a product is not smaller than itself", premise)
        theory.theorem(f"d is not smaller if product {k} is not", alone.statement)


def _sides(group: LargerProduct) -> list[tuple[Sequence[z3.BitVecRef], Sequence[z3.BitVecRef]]]:
    return [(group.x.a, group.y.a), (group.x.b, group.y.b)]


def _prove_group(pair: TwoSteps, larger: Sequence[z3.BoolRef]) -> z3.BoolRef:
    """That d is not smaller, from the claims that the products of one group are not."""
    x, y = sides = pair.x, pair.y
    group, total, risen = LargerGroup(*pair.parts), Totals(*pair.parts), Risen(*pair.parts)
    groups = [[group.products(side, i) for i in range(len(x.groups))] for side in sides]
    mine = groups[0][pair.g], groups[1][pair.g]
    products = group.larger(mine, larger)
    terms = group.terms(mine, group.ordered("products", mine, products))
    kinds = group.kinds(mine, group.zeros(mine, products))
    below = [total.below(side) for side in sides]
    maxima = total.e_max(kinds)
    totals = [total.totals(side, *each) for side, *each in zip(sides, groups, below, strict=True)]
    ranges = [claim for side, under in zip(sides, below, strict=True) for claim in total.ranges(side, under)]
    cases = [total.same_e_max(totals, terms, kinds, below, ranges)]
    cases += [risen.prove(totals, maxima, below, ranges, falls) for falls in (False, True)]
    goal = order(x.result) <= order(y.result)
    text = "d is not smaller, whether e_max stays, rises or falls"
    inside = [x.e_max, y.e_max, x.result, y.result, *pair.own()]
    return pair.derive("cases", text, goal, [maxima, *cases], inside)
