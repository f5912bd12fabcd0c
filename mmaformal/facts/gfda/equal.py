"""Why both wings' steps of gfda give the same code."""

from __future__ import annotations

from collections.abc import Sequence

from mmaformal.algorithms import Gfda
from mmaformal.cases.encodings import Traces
from mmaformal.encodings.executable import gfda as executable_gfda
from mmaformal.encodings.smt import gfda as smt_gfda
from mmaformal.facts.fda.equal import fused_sum
from mmaformal.facts.operands import step_operands
from mmaformal.proof.encoding_links import (
    TermLinks,
    align,
    classify,
    flags_and_zeros,
    inputs,
    least_excluded,
    multiply,
    summands,
)
from mmaformal.proof.lemmas import Argument, number


def derive(argument: Argument, traces: Traces[smt_gfda.Step]) -> None:
    spec, parameters = traces.spec, traces.spec.parameters
    assert isinstance(parameters, Gfda)
    low, G = smt_gfda.exponents_of(spec, parameters).low, parameters.G
    a, b, c, *_ = inputs(argument, traces)
    for i, (executable, smt) in enumerate(zip(traces.executable.steps, traces.smt.steps, strict=True)):
        assert isinstance(executable, executable_gfda.Step)
        places = range(i * parameters.L, (i + 1) * parameters.L)
        x, y, z = step_operands(argument, spec, (a, b, c), places, executable, smt)
        special = classify(argument, flags_and_zeros([*x, *y, z]), executable.special, smt.special)
        addend = multiply(argument, [z], executable.addend, smt.addend, low)
        products = [
            multiply(argument, pair, u, v, low)
            for pair, u, v in zip(zip(x, y, strict=True), executable.products, smt.products, strict=True)
        ]
        groups = [
            _group(argument, products[g * G : (g + 1) * G], u, v, low)
            for g, (u, v) in enumerate(zip(executable.groups, smt.groups, strict=True))
        ]
        c = fused_sum(
            argument,
            parameters,
            terms=[addend, *groups],
            low=low,
            special=special,
            executable=executable,
            smt=smt,
        )


def _group(
    argument: Argument,
    products: Sequence[TermLinks],
    executable: executable_gfda.Group,
    smt: smt_gfda.Group,
    low: int,
) -> TermLinks:
    """The sum of a group as a term, from its products."""
    exponents = [term.exponent for term in products]
    e_max, below = argument.largest("align", "exponents", executable.e_max, smt.e_max, exponents, low)
    parts = summands(smt.total, len(products))
    aligned = align(argument, products, e_max, below, executable.aligned, parts)
    total = argument.add_up("accumulate", "products of a group", executable.total, smt.total, aligned)
    u, v = executable.term, smt.term
    links = TermLinks(number(u.sign, v.sign), e_max, number(u.significand, v.significand))
    least = least_excluded(smt.total)
    text = "the sum of a group is no least number"
    argument.derive("accumulate", text, [least], aligned)
    text = "the sum of a group has the same sign and magnitude"
    argument.derive("accumulate", text, [links.sign, links.significand], [total, least])
    return links
