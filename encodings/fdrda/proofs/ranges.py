"""Why fdrda and gfdrda give no −0."""

from __future__ import annotations

from collections.abc import Sequence

import z3

from mmaformal.encodings.fdrda import Fdrda
from mmaformal.encodings.fdrda import smt as fdrda
from mmaformal.encodings.fdrda.smt import dot_bound
from mmaformal.encodings.gfdrda import smt as gfdrda
from mmaformal.encodings.smt.blocks import all_of
from mmaformal.facts.ranges import places_in
from mmaformal.proof.encoding_links import summands
from mmaformal.proof.lemmas import ArgumentError, Link
from mmaformal.proof.related_runs import Pairing, operand_codes
from mmaformal.spec import DotAdd


def places_of(pairing: Pairing, spec: DotAdd, step: fdrda.FdrdaStep | gfdrda.GfdrdaStep) -> Link:
    """If every product is zero, the sum is c; else e_dot is at least the least exponent of a product."""
    exponents, d, p = fdrda.exponents_of(spec), spec.d_format, spec.parameters_as(Fdrda)
    least, count = exponents.constant(spec.c_format.min_exponent), len(step.a)
    none, nothing = _nothing(pairing, step)
    enough = exponents.constant(d.min_exponent - d.fraction_bits + p.dot_bits)
    e_dot = Link(z3.If(none, step.e_dot == least, z3.UGE(step.e_dot, enough)), (none, step.e_dot))
    text = "the exponent of products that are not all zero is far above the least place of d"
    pairing.derive("align", text, [e_dot], [], [step.e_products, none])
    c = Link(z3.UGE(step.addend.exponent, least), (step.addend.exponent,))
    pairing.derive("multiply", "c's exponent is at least its format's least", [c], [], operand_codes(step.c))
    if isinstance(step, gfdrda.GfdrdaStep):
        groups = len(step.groups)
        each = [pairing.bounded(x, len(step.products[g::groups])) for g, x in enumerate(step.groups)]
        most = dot_bound(p, count)
        bound = Link(z3.And(step.dot <= most, step.dot >= -most), (step.dot,))
        text = "a sum of groups is within the sum of their bounds"
        pairing.derive("accumulate", text, [bound], each, [*step.e_groups, step.e_products])
    else:
        bound = pairing.bounded(step.dot, count)
    link = places_in(step.total, step.e_max, exponents, p.dot_bits, spec)
    text = "the sum with c is c, or its last place is far above the least one of d"
    inputs = [step.addend.sign, step.addend.significand]
    return pairing.derive("accumulate", text, [link], [nothing, bound, e_dot, c], inputs)[0]


def _nothing(pairing: Pairing, step: fdrda.FdrdaStep | gfdrda.GfdrdaStep) -> tuple[z3.BoolRef, Link]:
    """(whether every product is zero, that their sum is then)."""
    zeros = [z3.Or(x.significand == 0, y.significand == 0) for x, y in zip(step.a, step.b, strict=True)]
    significands = [[x.significand, y.significand] for x, y in zip(step.a, step.b, strict=True)]
    none = all_of(zeros)

    def add_up(total: z3.BitVecRef, places: Sequence[int], e_max: z3.BitVecRef) -> Link:
        """Return the link that says that a sum of products is zero if they are."""
        terms = summands(total, len(places))
        if len(terms) != len(places):
            raise ArgumentError("the sum is not made of its products")
        links = []
        for k, term in zip(places, terms, strict=True):
            product = step.products[k]
            zero = Link(z3.Implies(zeros[k], product.significand == 0), (zeros[k], product.significand))
            pairing.derive("multiply", "a product with a zero is zero", [zero], [], significands[k])
            aligned = Link(z3.Implies(zeros[k], term == 0), (zeros[k], term))
            inputs = [product.sign, product.exponent, e_max]
            pairing.derive("align", "a zero is aligned to zero", [aligned], [zero], inputs)
            links.append(aligned)
        own = [zeros[k] for k in places]
        link = Link(z3.Implies(all_of(own), total == 0), (*own, total))
        return pairing.derive("accumulate", "a sum of zeros is zero", [link], links)[0]

    nothing = Link(z3.Implies(none, step.dot == 0), (none, step.dot))
    text = "if every product is zero, their sum is"
    if isinstance(step, gfdrda.GfdrdaStep):
        count = len(step.groups)
        links: list[Link] = []
        for g, (group, cut) in enumerate(zip(step.groups, step.groups_cut, strict=True)):
            places = range(g, len(zeros), count)
            own = [zeros[k] for k in places]
            total = add_up(group, places, step.e_groups[g])
            link = Link(z3.Implies(all_of(own), cut == 0), (*own, cut))
            inputs = [step.e_products, step.e_groups[g]]
            links += pairing.derive("align", "a group that is zero is cut to zero", [link], [total], inputs)
        pairing.derive("accumulate", text, [nothing], links)
    else:
        pairing.derive(
            "accumulate", text, [nothing], [add_up(step.dot, range(len(zeros)), step.e_products)], zeros
        )
    return none, nothing
