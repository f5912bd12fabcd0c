"""Why a step of the pseudo-code gives the same code on the same products in another order, or factors exchanged."""

from __future__ import annotations

from mmaformal.encodings.rvbna import smt as smt_rvbna
from mmaformal.facts.protocol import UnsupportedError
from mmaformal.proof.lemmas import Link
from mmaformal.proof.related_runs import Same, same, terms_of
from mmaformal.proof.related_steps import RelatedStep


def link_runs(step: RelatedStep[smt_rvbna.RvbnaStep]) -> Link:
    """Derives the link of the results of two runs on the same products.  Raises ArgumentError."""
    left, right = step.left, step.right
    if step.dropped or not isinstance(step.kind, Same):
        raise UnsupportedError("rvbna", "how runs on other than the same products are related")
    terms = [
        step.product(left.products[i], right.products[j], terms_of(left.factors[i], right.factors[j]), [])
        for j, i in enumerate(step.order)
    ]
    special = step.special(terms, left.factors, right.factors)
    exponents = [[product.exponent for product in run.products] for run in (left, right)]
    e_max = step.largest(left.max_exp, exponents[0], right.max_exp, exponents[1], terms)
    given = [[term] for term in terms]
    total = step.sum_of(left.accumulator, right.accumulator, step.order, given, [e_max])
    dot, text = same(left.dot, right.dot), "equal sums are rounded to one code"
    step.derive("round", text, dot, [total, e_max, special])
    result = step.kind.code(left.result, right.result, step.runs.left_spec.d_format)
    return step.derive("add c", "the same c is added to the same code", result, [dot, step.c])
