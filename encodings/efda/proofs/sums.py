"""The sums of efda, the case with the largest numbers, and why sums in fixed point give no −0."""

from __future__ import annotations

import z3

from mmaformal.cases.inputs import Codes
from mmaformal.encodings.efda import Efda
from mmaformal.encodings.efda import smt as efda
from mmaformal.encodings.smt.blocks import exponent_range, product_range
from mmaformal.facts.ranges import places_in
from mmaformal.facts.sums import StepSum, largest_product, sum_of_two
from mmaformal.formats import Format
from mmaformal.proof.encoding_links import summands
from mmaformal.proof.lemmas import Link
from mmaformal.proof.related_runs import Pairing, operand_codes
from mmaformal.spec import DotAdd


def sums_of(spec: DotAdd, step: efda.FixedStep | efda.SortedStep) -> list[StepSum]:
    if isinstance(step, efda.SortedStep):
        return [
            sum_of_two(step, "two of three sorted terms", step.partial),
            sum_of_two(step, "that and the third", step.sum),
        ]
    highest = spec.a_format.max_exponent + spec.b_format.max_exponent
    lowest = spec.a_format.min_exponent + spec.b_format.min_exponent
    bound = largest_product(spec) << (highest - lowest)
    count = len(step.placed)
    return [StepSum("products", step.dot, tuple(summands(step.dot, count)), (bound,) * count, (), step)]


def largest_numbers(spec: DotAdd) -> Codes:
    """Every a and b the largest number, c = 0: the sum is in fixed point."""
    return Codes((_largest(spec.a_format),) * spec.k, (_largest(spec.b_format),) * spec.k, 0)


def _largest(fmt: Format) -> int:
    """The code of the largest number."""
    code = (1 << (fmt.exponent_bits + fmt.fraction_bits)) - 1
    while not fmt.is_finite(code << fmt.ignored_low_bits):  # at most the fractions of one exponent
        code = code - 1 if fmt.infinity is None else (fmt.infinity >> fmt.ignored_low_bits) - 1
    return code << fmt.ignored_low_bits


def places_of(pairing: Pairing, spec: DotAdd, step: efda.FixedStep) -> Link:
    """The sum of products is zero, or has the exponent above its highest place."""
    p = spec.parameters_as(Efda)
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
