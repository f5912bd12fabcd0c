"""Why efda in fixed point gives no −0."""

from __future__ import annotations

import z3

from mmaformal.encodings.efda import Efda
from mmaformal.encodings.efda import smt as efda
from mmaformal.encodings.smt.blocks import exponent_range, product_range
from mmaformal.facts.ranges import places_in
from mmaformal.proof.lemmas import Link
from mmaformal.proof.related_runs import Pairing, operand_codes
from mmaformal.spec import DotAdd


def places_of(pairing: Pairing, spec: DotAdd, step: efda.FixedStep) -> Link:
    """The sum of products is zero, or has the exponent above its highest place."""
    p = spec.parameters
    assert isinstance(p, Efda)
    frame = step.sum.y.size() - 1  # c has one integer bit
    bits = frame - efda.places_below(efda.precision(spec, p))
    lowest = product_range(spec.a_format, spec.b_format).low - efda.fraction_bits(spec)
    exponents, d = exponent_range(spec.c_format).union(lowest + bits), spec.d_format
    least = exponents.constant(spec.c_format.min_exponent)
    enough = exponents.constant(d.min_exponent - d.fraction_bits + frame)
    term = Link(
        z3.If(
            step.term.significand == 0,
            step.term.exponent == least,
            z3.UGE(step.term.exponent, enough),
        ),
        (step.term.exponent, step.term.significand),
    )
    text = "the sum of products is zero, or its exponent is far above the least place of d"
    bound = pairing.bounded(step.dot, len(step.products))
    pairing.derive("align", text, [term], [bound])
    c = Link(z3.UGE(step.addend.exponent, least), (step.addend.exponent,))
    pairing.derive("multiply", "c's exponent is at least its format's least", [c], [], operand_codes(step.c))
    link = places_in(step.sum.total, step.sum.e_max, exponents, frame, spec)
    text = "the sum with c is c, or its last place is far above the least one of d"
    inputs = [step.term.sign, step.addend.sign, step.addend.significand]
    return pairing.derive("accumulate", text, [link], [term, c], inputs)[0]
