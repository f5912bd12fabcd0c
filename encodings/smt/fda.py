"""fda, the fused dot-add, as bit-vector terms.  Specification: semantics §3; seed 000 §IV-C and §IV-D.

Widths of one step of L products with p fractional bits (two integer bits) and a c (one integer bit):

- exponents: the range that contains every product's, every c's, and e_zero;
- aligned magnitudes: 2 + F bits for a product, 1 + F bits for c;
- the sum: |Σ| ≤ L·(2^(F+2) - 1) + 2^(F+1) - 1, and one bit for the sign.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mmaformal.algorithms import DotAdd, Fda
from mmaformal.encodings.smt.blocks import (
    BitVec,
    ExponentRange,
    Operand,
    Rounded,
    Special,
    Term,
    addend,
    align,
    classify,
    decode,
    encode,
    exponent_range,
    maximum,
    multiply,
    normalise_and_round,
    product_range,
    select_special,
    signed_sum,
)

CANONICAL_NAN = {"fp16": 0x7FFF, "fp32": 0x7FFFFFFF}  # seed 000 §IV-C step 1


@dataclass(frozen=True)
class Step:
    """The interfaces between the stages of one step, in order."""

    a: tuple[Operand, ...]  #: decode
    b: tuple[Operand, ...]
    c: Operand
    special: Special  #: classify
    products: tuple[Term, ...]  #: multiply
    addend: Term
    e_max: BitVec  #: align
    aligned: tuple[BitVec, ...]  #: magnitudes; the signs are the terms'
    aligned_c: BitVec
    total: BitVec  #: accumulate, two's complement
    rounded: Rounded  #: normalise & round
    result: BitVec  #: encode


@dataclass(frozen=True)
class Trace:
    steps: tuple[Step, ...]
    result: BitVec


def exponents_of(spec: DotAdd, parameters: Fda) -> ExponentRange:
    products, c = product_range(spec.a_format, spec.b_format), exponent_range(spec.c_format)
    both = products.union(c.low, c.high)
    return both if parameters.e_zero is None else both.union(parameters.e_zero)


def sum_bits(parameters: Fda) -> int:
    """Bits of the accumulator, sign included: provably enough for any partial sum."""
    F, L = parameters.F, parameters.L
    return (L * ((1 << (F + 2)) - 1) + (1 << (F + 1)) - 1).bit_length() + 1


def step(spec: DotAdd, parameters: Fda, a: Sequence[BitVec], b: Sequence[BitVec], c: BitVec) -> Step:
    F, rho = parameters.F, parameters.rho
    exponents = exponents_of(spec, parameters)
    a_operands = tuple(decode(x, spec.a_format) for x in a)
    b_operands = tuple(decode(x, spec.b_format) for x in b)
    c_operand = decode(c, spec.c_format)
    special = classify(list(zip(a_operands, b_operands, strict=True)), [c_operand])

    bias = spec.a_format.bias + spec.b_format.bias
    products = tuple(
        multiply(x, y, bias, exponents, parameters.e_zero)
        for x, y in zip(a_operands, b_operands, strict=True)
    )
    c_term = addend(c_operand, spec.c_format.bias, exponents, parameters.e_zero)

    e_max = maximum([*(p.exponent for p in products), c_term.exponent])
    fraction_bits = spec.a_format.fraction_bits + spec.b_format.fraction_bits
    aligned = tuple(align(p, e_max, fraction_bits, F) for p in products)
    aligned_c = align(c_term, e_max, spec.c_format.fraction_bits, F)

    terms = [(p.sign, magnitude) for p, magnitude in zip(products, aligned, strict=True)]
    total = signed_sum([*terms, (c_term.sign, aligned_c)], sum_bits(parameters))
    rounded = normalise_and_round(total, e_max, exponents, F, rho)
    result = select_special(special, encode(rounded, rho), rho.format, CANONICAL_NAN[rho.format.name])
    return Step(
        a_operands,
        b_operands,
        c_operand,
        special,
        products,
        c_term,
        e_max,
        aligned,
        aligned_c,
        total,
        rounded,
        result,
    )


def dot_add(spec: DotAdd, a: Sequence[BitVec], b: Sequence[BitVec], c: BitVec) -> Trace:
    """The trace of `c + Σ a_k·b_k`: `a` and `b` are K terms each, of their formats' storage bits, c one."""
    parameters = spec.parameters
    assert isinstance(parameters, Fda)
    steps = []
    for start in range(0, spec.k, parameters.L):
        stop = start + parameters.L
        steps.append(step(spec, parameters, a[start:stop], b[start:stop], c))
        c = steps[-1].result
    return Trace(tuple(steps), c)


__all__ = ["Step", "Trace", "dot_add", "exponents_of", "sum_bits"]
