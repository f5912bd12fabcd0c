"""Why both wings' steps of fda give the same code."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mmaformal.algorithms import DotAdd, Fda, Gdfs
from mmaformal.cases.encodings import Traces
from mmaformal.encodings.smt import fda as smt_fda
from mmaformal.facts.operands import step_operands
from mmaformal.proof.encoding_links import (
    OperandLinks,
    TermLinks,
    align,
    classify,
    decode,
    flags_and_zeros,
    inputs,
    multiply,
    round_and_encode,
    summands,
)
from mmaformal.proof.lemmas import Argument, Link


def derive(argument: Argument, traces: Traces) -> None:
    spec, parameters = traces.spec, traces.spec.parameters
    assert isinstance(parameters, Fda)
    a, b, c, *scales = inputs(argument, traces)
    for i, (mine, other) in enumerate(zip(traces.executable.steps, traces.smt.steps, strict=True)):
        products = range(i * parameters.L, (i + 1) * parameters.L)
        x, y, z = step_operands(argument, spec, (a, b, c), products, mine, other)
        s = [
            [
                decode(argument, codes[k // spec.scale_block], u, v, spec.scale_format)
                for k, u, v in zip(products, us, vs, strict=True)
            ]
            for codes, us, vs in zip(
                scales, (mine.scale_a, mine.scale_b), (other.scale_a, other.scale_b), strict=True
            )
            if spec.scale_format is not None
        ]
        c = fda_step(argument, spec, parameters=parameters, factors=[x, y, *s], c=z, mine=mine, other=other)


def fda_step(
    argument: Argument,
    spec: DotAdd,
    parameters: Fda,
    factors: Sequence[Sequence[OperandLinks]],
    c: OperandLinks,
    mine: Any,
    other: Any,
) -> Link:
    """The link of a step's result; `factors` are the links of a, b and maybe both scales, each one per product."""
    low = smt_fda.exponents_of(spec, parameters).low
    special = classify(
        argument, flags_and_zeros([*(x for each in factors for x in each), c]), mine.special, other.special
    )
    terms = [multiply(argument, [c], mine.addend, other.addend, low)]
    for operands, u, v in zip(zip(*factors, strict=True), mine.products, other.products, strict=True):
        terms.append(multiply(argument, operands, u, v, low))
    return fused_sum(argument, parameters, terms=terms, low=low, special=special, mine=mine, other=other)


def fused_sum(
    argument: Argument,
    parameters: Fda | Gdfs,
    terms: Sequence[TermLinks],
    low: int,
    special: Link,
    mine: Any,
    other: Any,
) -> Link:
    """The link of the result, from those of the terms: c first, as the executable adds them."""
    exponents = [term.exponent for term in terms]
    e_max, below = argument.largest("align", "exponents", mine.e_max, other.e_max, exponents, low)
    *added, added_c = summands(other.total, len(terms))
    lanes = (mine.aligned_c, *mine.aligned)
    aligned = align(argument, terms, e_max, below, lanes, (added_c, *added))
    total = argument.add_up("accumulate", "aligned terms", mine.total, other.total, aligned)
    rounding = mine.rounded, other.rounded, parameters.rho, (mine.result, other.result)
    return round_and_encode(argument, [total, e_max], special, *rounding)
