"""The sum of E9S12 products, and the case with the largest."""

from __future__ import annotations

from dataclasses import replace

from mmaformal.algorithms import DotAdd, DpaE9s12, aligned, widest
from mmaformal.cases.inputs import Codes
from mmaformal.encodings.smt import dpa_e9s12
from mmaformal.facts.sums import Sum, case_of
from mmaformal.formats import fp32
from mmaformal.proof.lemmas import ArgumentError


def sums_of(spec: DotAdd, step: dpa_e9s12.Step) -> list[Sum]:
    """Of fp16 and bf16 factors.  Raises ArgumentError for fp32: the four products of two factors are never all at the
    largest exponent, so that their sum needs fewer bits than their number says."""
    p = spec.parameters
    assert isinstance(p, DpaE9s12)
    if spec.a_format == fp32:
        raise ArgumentError("no argument for the bits that four products of halves need together")
    largest = (widest(spec.a_format) << (dpa_e9s12.FRACTION - spec.a_format.fraction_bits)) ** 2
    n = len(step.products)
    bound = aligned(largest, dpa_e9s12.PLACES, dpa_e9s12.kept(p.L, n))
    made = tuple((x.significand, largest, (x.sign, x.exponent, step.e_max)) for x in step.products)
    return [Sum("products", step.partials[-1], step.placed, (bound,) * n, made, step)]


def largest_products(spec: DotAdd) -> Codes:
    return replace(case_of(spec, 0, 0, 0), c=0)
