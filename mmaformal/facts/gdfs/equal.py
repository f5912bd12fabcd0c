"""Why both wings' steps of gdfs give the same code."""

from __future__ import annotations

from collections.abc import Sequence

from mmaformal.algorithms import Gdfs
from mmaformal.cases.encodings import Traces
from mmaformal.encodings.executable import gdfs as executable_gdfs
from mmaformal.encodings.smt import gdfs as smt_gdfs
from mmaformal.proof.encoding_links import (
    OperandLinks,
    TermLinks,
    addends,
    align,
    classify,
    decode,
    flags_and_zeros,
    inputs,
    multiply,
    round_and_encode,
    summands,
)
from mmaformal.proof.lemmas import Argument, Link, number


def derive(argument: Argument, traces: Traces[smt_gdfs.Step]) -> None:
    spec, parameters = traces.spec, traces.spec.parameters
    assert isinstance(parameters, Gdfs)
    assert spec.scale_format is not None
    G, low = parameters.G, smt_gdfs.exponents_of(spec, parameters).low
    a, b, c, *scales = inputs(argument, traces)
    for i, (executable, smt) in enumerate(zip(traces.executable.steps, traces.smt.steps, strict=True)):
        assert isinstance(executable, executable_gdfs.Step)
        first = i * parameters.L
        z = decode(argument, c, executable.c, smt.c, spec.c_format)
        s = [
            [
                decode(argument, codes[(first + g * G) // spec.scale_block], u, v, spec.scale_format)
                for g, (u, v) in enumerate(zip(us, vs, strict=True))
            ]
            for codes, us, vs in zip(
                scales, (executable.scale_a, executable.scale_b), (smt.scale_a, smt.scale_b), strict=True
            )
        ]
        given = [link for each in s for x in each for link in (x.nan,)]
        special = classify(argument, [*given, *flags_and_zeros([z])], executable.special, smt.special)
        terms = [multiply(argument, [z], executable.addend, smt.addend, low)]
        for g, (scale_a, scale_b) in enumerate(zip(*s, strict=True)):
            terms.append(
                _group(
                    argument,
                    a,
                    b=b,
                    first=first,
                    g=g,
                    G=G,
                    scales=(scale_a, scale_b),
                    executable=executable,
                    smt=smt,
                    low=low,
                )
            )
        c = _fused_sum(
            argument, parameters, terms=terms, low=low, special=special, executable=executable, smt=smt
        )


def _group(
    argument: Argument,
    a: Sequence[Link],
    b: Sequence[Link],
    first: int,
    g: int,
    G: int,
    scales: tuple[OperandLinks, OperandLinks],
    executable: executable_gdfs.Step,
    smt: smt_gdfs.Step,
    low: int,
) -> TermLinks:
    """Term g, from the codes of its products and the links of its scales."""
    lanes, sum_ = addends(executable.group_sums[g], G), smt.sums[g]
    links, zeros = [], []
    for k, lane, summand in zip(range(g * G, (g + 1) * G), lanes, summands(sum_, G), strict=True):
        significand, magnitude = executable.products[k].significand, smt.products[k][1]
        link = number(lane, summand, signed=True)
        zero = Link(
            (significand.term == 0) == (magnitude == 0), (significand.term, magnitude), (), (significand,)
        )
        codes = [a[first + k], b[first + k]]
        argument.derive("multiply", "products in fixed point are the same", [link, zero], codes)
        links.append(link)
        zeros.append(zero)
    total = argument.add_up("multiply", "products of a group", executable.group_sums[g], sum_, links)
    u, v = executable.groups[g], smt.groups[g]
    term = TermLinks(
        number(u.sign, v.sign), number(u.exponent, v.exponent, low=low), number(u.significand, v.significand)
    )
    given = [link for scale in scales for link in (scale.exponent, scale.significand)]
    # σ·s_α·s_β and σ·(s_α·s_β) are hard to see equal unless one factor is known; it has a few bits.
    few = scales[1].significand.term if scales[1].significand.term.size() > 1 else None
    text = "scaled sums of groups are the same"
    argument.derive("multiply", text, term, [total, *zeros, *given], each_value_of=few)
    return term


def _fused_sum(
    argument: Argument,
    parameters: Gdfs,
    terms: Sequence[TermLinks],
    low: int,
    special: Link,
    executable: executable_gdfs.Step,
    smt: smt_gdfs.Step,
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
