"""fda, the fused dot-add, executable.  Specification: semantics §3; seed 000 §IV-C (FDA) and §IV-D (chains).

One step takes L products and c:

1. special values: NaN if any input is NaN, for 0·∞, or if products and c hold infinities of both signs; else an
   infinity if there is one;
2. exact products, not renormalised; a term that is exactly zero takes the exponent e_zero;
3. all terms aligned to the largest exponent, F fractional bits kept, toward zero; summed exactly;
4. the sum converted with ρ; zero is +0.

K > L is a chain: one step's result is the next one's c.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

from mmaformal.algorithms import DotAdd, Fda
from mmaformal.encodings.executable.blocks import (
    Lane,
    Operand,
    Rounded,
    Special,
    Term,
    align,
    classify_addend,
    classify_product,
    decode,
    encode,
    maximum,
    merge_special,
    multiply,
    normalise_and_round,
    resolve_special,
    select_special,
    with_zero_exponent,
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
    e_max: Lane  #: align
    aligned: tuple[Lane, ...]
    aligned_c: Lane
    total: Lane  #: accumulate
    rounded: Rounded  #: normalise & round
    result: Lane  #: encode


@dataclass(frozen=True)
class Trace:
    steps: tuple[Step, ...]
    result: Lane


def step(spec: DotAdd, parameters: Fda, a: Sequence[Lane], b: Sequence[Lane], c: Lane) -> Step:
    F, rho = parameters.F, parameters.rho
    a_operands = tuple(decode(x, spec.a_format.layout) for x in a)
    b_operands = tuple(decode(x, spec.b_format.layout) for x in b)
    c_operand = decode(c, spec.c_format.layout)

    parts = [classify_product(x, y) for x, y in zip(a_operands, b_operands, strict=True)]
    special = resolve_special(reduce(merge_special, parts, classify_addend(c_operand)))

    products = tuple(
        with_zero_exponent(multiply(x, y), parameters.e_zero) for x, y in zip(a_operands, b_operands, strict=True)
    )
    addend = with_zero_exponent(
        Term(c_operand.sign, c_operand.exponent, c_operand.significand), parameters.e_zero
    )

    e_max = reduce(maximum, (p.exponent for p in products), addend.exponent)
    product_fraction_bits = spec.a_format.fraction_bits + spec.b_format.fraction_bits
    aligned = tuple(align(p, e_max, product_fraction_bits, F) for p in products)
    aligned_c = align(addend, e_max, spec.c_format.fraction_bits, F)

    total = sum(aligned, aligned_c)
    rounded = normalise_and_round(total, e_max - F, rho)
    result = select_special(special, encode(rounded, rho), rho, CANONICAL_NAN[rho.format.name])
    return Step(
        a_operands,
        b_operands,
        c_operand,
        special,
        products,
        addend,
        e_max,
        aligned,
        aligned_c,
        total,
        rounded,
        result,
    )


def dot_add(spec: DotAdd, a: Sequence[Lane], b: Sequence[Lane], c: Lane) -> Trace:
    """The trace of `c + Σ a_k·b_k`: `a` and `b` are the K codes of each side, one lane each, `c` is one lane."""
    parameters = spec.parameters
    assert isinstance(parameters, Fda)
    steps = []
    for start in range(0, spec.k, parameters.L):
        stop = start + parameters.L
        steps.append(step(spec, parameters, a[start:stop], b[start:stop], c))
        c = steps[-1].result
    return Trace(tuple(steps), c)
