"""The sum of E9S12 products, how large it is, and the case in which it is.

The four products of two fp32 factors' halves, (2^12 − 1)² at most each, are never all at one exponent: the first is 12
above the next two, and 24 above the last, and where it is zero, so is one of the next two.  So they add up to no more
than (2^24 − 1)² in the place of the first, and so do the first of them; they have one sign.
"""

from __future__ import annotations

from dataclasses import replace

import z3

from mmaformal.cases.inputs import Codes
from mmaformal.encodings.dpa_e9s12 import DpaE9s12
from mmaformal.encodings.dpa_e9s12 import smt as dpa_e9s12
from mmaformal.encodings.dpa_e9s12.proofs.exact import LARGEST, OFFSETS
from mmaformal.encodings.smt.blocks import Operand
from mmaformal.facts.sums import StepSum, case_of
from mmaformal.formats import fp32
from mmaformal.limits import aligned, widest
from mmaformal.proof.definitions import fit
from mmaformal.proof.lemmas import Link, at_most, within
from mmaformal.proof.related_runs import Pairing, operand_codes
from mmaformal.spec import DotAdd


def sums_of(spec: DotAdd, step: dpa_e9s12.DpaE9s12Step) -> list[StepSum]:
    p = spec.parameters_as(DpaE9s12)
    n = len(step.products)
    F = dpa_e9s12.kept(p.accumulator_bits, n)
    if spec.a_format == fp32:
        four = tuple((LARGEST << F - dpa_e9s12.PLACES) >> offset for offset in OFFSETS)
        return [StepSum("products of halves", step.partials[-1], step.placed, four * (n // 4), (), step)]
    largest = (widest(spec.a_format) << (dpa_e9s12.FRACTION - spec.a_format.fraction_bits)) ** 2
    bound = aligned(largest, dpa_e9s12.PLACES, F)
    made = tuple((x.significand, largest, (x.sign, x.exponent, step.e_max)) for x in step.products)
    return [StepSum("products", step.partials[-1], step.placed, (bound,) * n, made, step)]


def largest_products(spec: DotAdd) -> Codes:
    return replace(case_of(spec, 0, 0, 0), c=0)


def fours_fit(pairing: Pairing, each: StepSum) -> None:
    """Derive that every partial sum of products of fp32 factors' halves is within the sum of its bounds."""
    step = each.step
    assert isinstance(step, dpa_e9s12.DpaE9s12Step)
    exponents = [product.exponent for product in step.products]
    running: Link | None = None
    x, bound = None, 0
    for k in range(len(step.a)):
        places = range(4 * k, 4 * k + 4)
        four = _four(pairing, step, k)
        given = []
        for i in places:
            below = at_most(exponents[i], step.e_max)
            pairing.under(step.e_max, exponents, below, exponents[i])
            given.append(below)
        own, most = None, 0
        for i in places:
            term, of = each.terms[i], each.bounds[i]
            own, most = term if own is None else own + term, most + of
            link = within(own, most)
            text = "products of halves of two factors are within their bounds"
            pairing.derive("align", text, [link], [four, *given], [step.products[i].sign])
            x = term if x is None else x + term
            known = [link]
            if running is not None:
                (base,) = running.free
                text = "a partial sum is that of the pairs before and of this one"
                added = Link(x == base + own, (base, own), ((x, base + own),))
                pairing.derive("accumulate", text, [added], [], [base, *each.terms[places[0] : i + 1]])
                known += [running, added]
            after = within(x, bound + most)
            text = "a partial sum is within the sum of its terms' bounds"
            pairing.derive("accumulate", text, [after], known)
        running, bound = after, bound + most


def _four(pairing: Pairing, step: dpa_e9s12.DpaE9s12Step, k: int) -> Link:
    """Exponents and sizes of the four products of a pair's halves."""
    u, v = step.a[k], step.b[k]
    four = step.products[4 * k : 4 * k + 4]
    top = fit(u.field, four[0].exponent.size()) + fit(v.field, four[0].exponent.size()) + OFFSETS[-1]
    ways = [
        z3.Or(
            z3.And(p.significand == 0, p.exponent == 0),
            z3.And(p.significand != 0, p.exponent == top - offset),
        )
        for p, offset in zip(four, OFFSETS, strict=True)
    ]
    high, left, right, _ = (p.significand for p in four)
    claim = z3.And(
        *ways,
        z3.UGE(top, OFFSETS[-1] + 2),
        z3.ULE(top, 2 * 255 + OFFSETS[-1]),
        z3.Or(high != 0, left == 0, right == 0),
        *(z3.ULE(p.significand, LARGEST) for p in four),
    )
    link = Link(claim, (top, *(part for p in four for part in (p.exponent, p.significand))))
    text = "products of halves have the exponents of both, or are zero with the exponent 0"
    given = [_normal(pairing, x) for x in (u, v)]
    pairing.derive("multiply", text, [link], given)
    return link


def _normal(pairing: Pairing, x: Operand) -> Link:
    leading = z3.Or(z3.UGE(x.significand, 1 << fp32.fraction_bits), x.field == 1)
    link = Link(z3.And(z3.UGE(x.field, 1), leading), (x.field, x.significand))
    text = "an operand has its leading bit, or the exponent field 1"
    pairing.derive("decode", text, [link], [], operand_codes(x))
    return link
