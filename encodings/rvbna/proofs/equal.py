"""Why both encodings of the pseudo-code give the same code, in the order of its lines."""

from __future__ import annotations

from mmaformal.cases.encodings import Traces
from mmaformal.encodings.rvbna import Rvbna
from mmaformal.encodings.rvbna import executable as executable_rvbna
from mmaformal.encodings.rvbna import smt as smt_rvbna
from mmaformal.formats import fp32
from mmaformal.proof.encoding_links import (
    flags_and_zeros,
    link_addition,
    link_code,
    link_inputs,
    link_operand,
    link_product,
    link_special,
    summands,
)
from mmaformal.proof.lemmas import Argument, Link, number
from mmaformal.rounding import RO_FP32


def link_encodings(argument: Argument, traces: Traces[smt_rvbna.RvbnaStep]) -> None:
    """Derives the links of every step.  Raises ArgumentError."""
    spec, p = traces.spec, traces.spec.parameters_as(Rvbna)
    a, b, c, *_ = link_inputs(argument, traces)
    low = smt_rvbna.exponents_of(spec, p).low
    for i, (mine, other) in enumerate(zip(traces.executable.steps, traces.smt.steps, strict=True)):
        assert isinstance(mine, executable_rvbna.RvbnaStep)
        operands, terms = [], []
        for k, (u, v) in enumerate(zip(mine.factors, other.factors, strict=True)):
            pair = [
                link_operand(argument, a[i * p.n + k], u[0], v[0], p.read(spec.a_format)),
                link_operand(argument, b[i * p.n + k], u[1], v[1], p.read(spec.b_format)),
            ]
            operands += pair
            terms.append(link_product(argument, pair, mine.products[k], other.products[k], low))
        special = link_special(argument, flags_and_zeros(operands), mine.special, other.special)
        e_max, below = argument.largest(
            "align", "exponents", mine.max_exp, other.max_exp, [x.exponent for x in terms], low
        )
        summed, links = summands(other.accumulator, p.n), []
        for k, term in enumerate(terms):
            aligned = number(mine.aligned[k], other.aligned[k])
            argument.derive("align", "aligned products are the same", [aligned], [e_max, below[k], *term])
            links.append(number(mine.signed[k], summed[k], signed=True))
            argument.derive("align", "so they are with their signs", [links[-1]], [aligned, term.sign])
        total = argument.add_up("accumulate", "aligned products", mine.accumulator, other.accumulator, links)
        code = _rounded(argument, mine.number, other.number, [total, e_max])
        dot = link_code(mine.dot, other.dot)
        argument.derive("encode", "equal numbers and specials give the same code", [dot], [code, special])
        c = link_addition(argument, [dot, c], mine.addition, other.addition, RO_FP32)


def _rounded(
    argument: Argument, mine: executable_rvbna.Normalised, other: smt_rvbna.Normalised, given: list[Link]
) -> Link:
    """Derives the link of the code of a sum, from those of the sum and of the largest exponent."""
    magnitude, lzc = number(mine.magnitude, other.magnitude), number(mine.lzc, other.lzc)
    argument.derive("round", "the sums have the same magnitude", [magnitude], given[:1])
    argument.derive("round", "magnitudes have as many leading zeros", [lzc], [magnitude])
    exponent = number(mine.res_exp, other.res_exp, signed=True)
    argument.derive("round", "the exponents of the results are the same", [exponent], [given[1], lzc])
    shifted, normal = number(mine.shifted, other.shifted), number(mine.normal, other.normal)
    argument.derive("round", "normalised sums are the same", [shifted], [magnitude])
    argument.derive("round", "normal results are rounded alike", [normal], [shifted, lzc])
    subnormal, code = number(mine.subnormal, other.subnormal), link_code(mine.code, other.code)
    argument.derive(
        "round", "subnormal results are rounded alike", [subnormal], [magnitude, shifted, exponent]
    )
    text = f"the codes of {fp32} are the same"
    argument.derive("encode", text, [code], [*given, magnitude, exponent, normal, subnormal])
    return code
