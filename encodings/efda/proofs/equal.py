"""Why both encodings' steps of efda give the same code."""

from __future__ import annotations

from collections.abc import Sequence

import z3

from mmaformal.cases.encodings import Traces
from mmaformal.encodings.efda import Efda
from mmaformal.encodings.efda import executable as executable_efda
from mmaformal.encodings.efda import smt as smt_efda
from mmaformal.encodings.executable import blocks as executable_blocks
from mmaformal.encodings.smt import blocks as smt_blocks
from mmaformal.facts.operands import step_operands
from mmaformal.proof.encoding_links import (
    TermLinks,
    add_long,
    classify,
    flags_and_zeros,
    inputs,
    least_excluded,
    multiply,
    round_and_encode,
    summands,
    wide_number,
)
from mmaformal.proof.lemmas import Argument, Link, number
from mmaformal.spec import DotAdd


def derive(argument: Argument, traces: Traces[smt_efda.FixedStep | smt_efda.SortedStep]) -> None:
    spec, parameters = traces.spec, traces.spec.parameters
    assert isinstance(parameters, Efda)
    rho = parameters.rho
    a, b, c, *_ = inputs(argument, traces)
    for i, (executable, smt) in enumerate(zip(traces.executable.steps, traces.smt.steps, strict=True)):
        assert isinstance(executable, executable_efda.EfdaStep)
        products = range(i * parameters.L, (i + 1) * parameters.L)
        x, y, z = step_operands(argument, spec, (a, b, c), products, executable, smt)
        special = classify(argument, flags_and_zeros([*x, *y, z]), executable.special, smt.special)
        fixed = isinstance(smt, smt_efda.FixedStep)
        own = smt_blocks.product_range(spec.a_format, spec.b_format)
        low = own.low if fixed else smt_efda.exponents_of(spec).low
        terms = [
            multiply(argument, pair, u, v, low)
            for pair, u, v in zip(zip(x, y, strict=True), executable.products, smt.products, strict=True)
        ]
        c_low = spec.c_format.min_exponent if fixed else low
        addend = multiply(argument, [z], executable.addend, smt.addend, c_low)
        if isinstance(smt, smt_efda.FixedStep):
            total = _fixed_sum(argument, spec, terms, addend, executable, smt, low)
        else:
            total = _sorted_sum(argument, spec, terms, addend, executable, smt, low)
        rounding = executable.rounded, smt.rounded, rho, (executable.result, smt.result)
        c = round_and_encode(argument, total, special, *rounding)


def _fixed_sum(
    argument: Argument,
    spec: DotAdd,
    terms: Sequence[TermLinks],
    addend: TermLinks,
    executable: executable_efda.EfdaStep,
    smt: smt_efda.FixedStep,
    low: int,
) -> list[Link]:
    """Products in fixed point.  The executable's unit lies below the SMT encoding's by the places that c may need."""
    assert isinstance(spec.parameters, Efda)
    fixed = executable.sum
    assert isinstance(fixed, executable_efda.FixedSum)
    below = smt_efda.places_below(smt_efda.precision(spec, spec.parameters))
    placed: list[Link] = []
    bits = smt.placed[0].size()
    for term, lanes, summand in zip(terms, fixed.placed, summands(smt.dot, len(terms)), strict=True):
        link = wide_number(lanes, summand, signed=True, below=below)
        inside = Link(z3.And(summand < 1 << bits, summand > -(1 << bits)), (summand,))
        text = "products in fixed point are the same"
        placed += argument.derive("align", text, [link, inside], term)
    dot = wide_number(fixed.dot, smt.dot, signed=True, below=below)
    sums = argument.derive(
        "accumulate", "the sums of products are equal", [dot, least_excluded(smt.dot)], placed
    )
    u, v, least = fixed.term, smt.term, spec.c_format.min_exponent
    significand = wide_number(u.significand, v.significand, below=below)
    product = [number(u.sign, v.sign), number(u.exponent, v.exponent, low=least), significand]
    argument.derive("accumulate", "the sum of products is the same term", product, sums)
    signs = v.sign, smt.addend.sign
    return add_long(argument, product, y=addend, executable=fixed.wide, signs=signs, smt=smt.sum, low=least)


def _sorted_sum(
    argument: Argument,
    spec: DotAdd,
    terms: Sequence[TermLinks],
    addend: TermLinks,
    executable: executable_efda.EfdaStep,
    smt: smt_efda.SortedStep,
    low: int,
) -> list[Link]:
    exponents = smt_efda.exponents_of(spec)
    zero = exponents.constant(smt_efda.lowest(spec))

    def link(u: executable_blocks.Term, v: smt_blocks.Term) -> list[Link]:
        exponent = number(u.exponent, v.exponent, low=low)
        above = Link(z3.UGE(v.exponent, zero), (v.exponent,))
        return [number(u.sign, v.sign), exponent, number(u.significand, v.significand), above]

    def sum_links(u: executable_blocks.Sum, v: smt_blocks.StickySum, frame: int) -> list[Link]:
        total, unit = number(u.total, v.total, signed=True), number(u.unit, v.e_max, low=low - frame)
        return [total, unit, least_excluded(v.total), Link(z3.UGE(v.e_max, zero), (v.e_max,))]

    sum_, p = executable.sum, spec.parameters.last_rounding.fraction_bits
    assert isinstance(sum_, executable_efda.SortedSum)
    none = argument.derive("align", "both encodings have the same zero", [Link(z3.BoolVal(True), ())])
    normal: list[Link] = []
    given = [*terms, *[none] * (2 - len(terms)), addend]
    for term, u, v in zip(given, sum_.terms, smt.terms, strict=True):
        normal += argument.derive("align", "terms are normalised alike", link(u, v), term)
    links = [link(u, v) for u, v in zip(sum_.sorted, smt.sorted, strict=True)]
    first, second, _ = (term.exponent for term in smt.sorted)
    in_order = [each for term in links for each in term] + [Link(z3.ULE(second, first), ())]
    argument.derive("align", "terms are sorted alike", in_order, normal)
    partial = sum_links(sum_.partial, smt.partial, p + smt_efda.NEAR)
    argument.derive("accumulate", "partial sums are equal", partial, in_order)
    carried = link(sum_.normal, smt.normal)[:3]  # far below all terms, if not for what the terms are made of
    argument.derive("accumulate", "partial sums are normalised alike", carried, partial)
    total = sum_links(sum_.total, smt.sum, p + smt_efda.NEAR + 2)[:3]
    argument.derive("accumulate", "the sums are equal", total, [*carried, *in_order])
    return total
