"""Why both wings' steps of fda give the same code."""

from __future__ import annotations

from collections.abc import Sequence

from mmaformal.algorithms import DotAdd, Fda, Gdfs, Gfda
from mmaformal.cases.encodings import Traces
from mmaformal.encodings.executable import fda as executable_fda
from mmaformal.encodings.executable import gdfs as executable_gdfs
from mmaformal.encodings.executable import gfda as executable_gfda
from mmaformal.encodings.smt import fda as smt_fda
from mmaformal.encodings.smt import gdfs as smt_gdfs
from mmaformal.encodings.smt import gfda as smt_gfda
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


def derive(argument: Argument, traces: Traces[smt_fda.Step]) -> None:
    spec, parameters = traces.spec, traces.spec.parameters
    assert isinstance(parameters, Fda)
    a, b, c, *scales = inputs(argument, traces)
    for i, (executable, smt) in enumerate(zip(traces.executable.steps, traces.smt.steps, strict=True)):
        assert isinstance(executable, executable_fda.Step)
        products = range(i * parameters.L, (i + 1) * parameters.L)
        x, y, z = step_operands(argument, spec, (a, b, c), products, executable, smt)
        s = [
            [
                decode(argument, codes[k // spec.scale_block], u, v, spec.scale_format)
                for k, u, v in zip(products, us, vs, strict=True)
            ]
            for codes, us, vs in zip(
                scales, (executable.scale_a, executable.scale_b), (smt.scale_a, smt.scale_b), strict=True
            )
            if spec.scale_format is not None
        ]
        c = fda_step(
            argument, spec, parameters=parameters, factors=[x, y, *s], c=z, executable=executable, smt=smt
        )


def fda_step(
    argument: Argument,
    spec: DotAdd,
    parameters: Fda,
    factors: Sequence[Sequence[OperandLinks]],
    c: OperandLinks,
    executable: executable_fda.Step,
    smt: smt_fda.Step,
) -> Link:
    """The link of a step's result; `factors` are the links of a, b and maybe both scales, each one per product."""
    low = smt_fda.exponents_of(spec, parameters).low
    special = classify(
        argument,
        flags_and_zeros([*(x for each in factors for x in each), c]),
        executable.special,
        smt.special,
    )
    terms = [multiply(argument, [c], executable.addend, smt.addend, low)]
    for operands, u, v in zip(zip(*factors, strict=True), executable.products, smt.products, strict=True):
        terms.append(multiply(argument, operands, u, v, low))
    return fused_sum(
        argument, parameters, terms=terms, low=low, special=special, executable=executable, smt=smt
    )


def fused_sum(
    argument: Argument,
    parameters: Fda | Gdfs | Gfda,
    terms: Sequence[TermLinks],
    low: int,
    special: Link,
    executable: executable_fda.Step | executable_gdfs.Step | executable_gfda.Step,
    smt: smt_fda.Step | smt_gdfs.Step | smt_gfda.Step,
) -> Link:
    """The link of the result, from those of the terms: c first, as the executable adds them."""
    exponents = [term.exponent for term in terms]
    e_max, below = argument.largest("align", "exponents", executable.e_max, smt.e_max, exponents, low)
    *added, added_c = summands(smt.total, len(terms))
    lanes = (executable.aligned_c, *executable.aligned)
    aligned = align(argument, terms, e_max, below, lanes, (added_c, *added))
    total = argument.add_up("accumulate", "aligned terms", executable.total, smt.total, aligned)
    rounding = executable.rounded, smt.rounded, parameters.rho, (executable.result, smt.result)
    return round_and_encode(argument, [total, e_max], special, *rounding)
