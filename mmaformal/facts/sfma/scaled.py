"""What doubling a and c does to a step of sfma: a sum with a sticky last place (`proof/scaling`)."""

from __future__ import annotations

import z3

from mmaformal.encodings.smt import sfma
from mmaformal.facts.scaling_parts import halved, jammed_half
from mmaformal.proof.lemmas import Link
from mmaformal.proof.related_runs import same, together
from mmaformal.proof.scaling import Two, is_up, rounded_up, up_or


def doubled(two: Two[sfma.Step]) -> Link:
    """The larger exponent goes up by one, or is c's least one in both runs: then c is zero, and the product, whose
    exponent is below, is cut at one place more in the first run, with a sticky place.
    """
    left, right, pairing, fmt = two.left, two.right, two.pairing, two.spec.d_format
    x, y = left.sum, right.sum
    least = sfma.exponents_of(fmt).constant(fmt.min_exponent)
    term = two.only_product(least, *two.only_factors())
    addend, low = two.addend(least)
    at_least = z3.And(x.e_max == least, y.e_max == least)
    e_max = up_or(x.e_max, y.e_max, at_least)
    text = "the larger exponent goes up by one, or is c's least one"
    two.derive("align", text, e_max, [term, addend, low])
    orders = two.ordered(lambda step: (step.sum.e_max, step.product.exponent, step.addend.exponent))
    up, still = is_up(x.e_max, y.e_max), Link(at_least, (x.e_max, y.e_max))
    pairing.split(text, [up, still], [e_max])
    in_range = two.in_range()
    signs = together(same(left.product.sign, right.product.sign), same(left.addend.sign, right.addend.sign))
    two.derive("multiply", "signs are the same", signs, [term, addend])

    text = "where the larger exponent goes up, aligned terms are the same"
    aligned = [
        two.derive("align", text, same(u, v), [link, up, *orders])
        for u, v, link in ((x.x, y.x, term), (x.y, y.y, addend))
    ]
    total = two.derive("accumulate", "equal terms, equal sums", same(x.total, y.total), [*aligned, signs])
    rounded_up(two, total, up, [*in_range, signs])

    text = "where it is c's least one, c is zero"
    nothing = z3.BitVecVal(0, x.y.size())
    none = Link(z3.And(x.y == 0, y.y == 0), (), ((x.y, nothing), (y.y, nothing)))
    two.derive("align", text, none, [addend, low, still, *orders])
    text = "and the product is cut at one place more in the first run"
    half = Link(x.x == jammed_half(y.x), (y.x,), ((x.x, jammed_half(y.x)),))
    two.derive("align", text, half, [term, still, *orders])
    text = "the first sum is half the second, with a sticky place"
    _, total = halved(x.total, y.total)
    two.derive("accumulate", text, total, [half, none, signs])
    text = "half a sum, with a sticky place, is rounded to half the number"
    two.derive("round", text, two.result, [total, still, *in_range, signs])
    return two.result
