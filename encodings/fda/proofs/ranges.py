"""Codes that fda never gives."""

from __future__ import annotations

import z3

from mmaformal.cases.codes import is_nan
from mmaformal.cases.inputs import symbolic_inputs
from mmaformal.encodings import smt
from mmaformal.proof.lemmas import ArgumentError, Link
from mmaformal.proof.related_runs import Pairing, operand_codes
from mmaformal.spec import DotAdd


def ends_in_zeros(spec: DotAdd) -> tuple[Pairing, int, str]:
    """That the low bits that ρ does not keep are zero."""
    rho = spec.parameters.rho  # type: ignore[attr-defined]
    bits = rho.format.fraction_bits - rho.fraction_bits
    if bits == 0:
        raise ArgumentError("ρ keeps every bit")
    pairing, x = Pairing(), symbolic_inputs(spec)
    step = smt.dot_add(spec, x.a, x.b, x.c, x.scale_a, x.scale_b).steps[-1]
    numbers = z3.Or(is_nan(step.result, spec.d_format), z3.Extract(bits - 1, 0, step.result) == 0)
    link = Link(numbers, ())
    text = f"the low {bits} bits of every number are zero"
    pairing.derive("encode", text, [link], [], [*step.special, *step.rounded])
    pairing.conclude(text, link)
    return pairing, 1, text


def too_large(spec: DotAdd) -> tuple[Pairing, int, str]:
    """That no sum is rounded to the largest finite number, by what the exponents allow (fda)."""
    from mmaformal.encodings.fda.smt import exponents_of

    pairing, x = Pairing(), symbolic_inputs(spec)
    step = smt.dot_add(spec, x.a, x.b, x.c, x.scale_a, x.scale_b).steps[-1]
    exponents = exponents_of(spec, spec.parameters)  # type: ignore[arg-type]
    highest = z3.BitVecVal(exponents.high - exponents.low, exponents.bits)
    below = {}
    for operands, term in [
        *(((u, v), p) for u, v, p in zip(step.a, step.b, step.products, strict=True)),
        ((step.c,), step.addend),
    ]:
        link = Link(z3.ULE(term.exponent, highest), (term.exponent,))
        codes = [code for each in operands for code in operand_codes(each)]
        pairing.derive("multiply", "exponents are in range", [link], [], codes)
        below[term.exponent.get_id()] = link
    top = pairing.at_most_all(step.e_max, highest, below)
    largest = spec.d_format.infinity
    assert largest is not None
    largest -= 1
    link = Link(step.result != largest, ())
    text = "no sum is rounded to the largest finite number"
    pairing.derive("round", text, [link], [top], [step.total, *step.special])
    pairing.conclude(text, link)
    return pairing, largest, text
