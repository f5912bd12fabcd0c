"""gdfs, group dot, fused sum, as bit-vector terms.  Specification: semantics §3; MMA-Sim §IV-E.

Widths of one step of L/G groups of G products of e2m1, with scales of m fractional bits:

- an e2m1 magnitude is fixed-point, 0 to 6 in steps of 2^-1: 4 bits; a product 0 to 36 in steps of 2^-2: 8 bits;
- a group's sum: |σ| ≤ 36·G, in steps of 2^-2, and the sign;
- a scaled group: |σ·s_α·s_β| ≤ 36·G·(2 - 2^-m)^2, in steps of 2^-(2 + 2m), exact;
- exponents: the range that contains every pair of scales', every c's, and e_zero;
- aligned magnitudes: the integer bits of a scaled group (of c: one) and F fractional bits, F ≥ 2 + 2m;
- the sum: the sum of those bounds, and the sign;
- rounding: e_max is at least c's exponent, as in fda.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import z3

from mmaformal.encodings.fda.smt import lowest_e_max, scales_per_product
from mmaformal.encodings.gdfs import Gdfs
from mmaformal.encodings.smt.blocks import (
    BitVec,
    Bool,
    ExponentRange,
    Operand,
    Rounded,
    Special,
    Term,
    Trace,
    all_of,
    decode,
    exponent_range,
    is_zero,
    negate_if,
    resize,
    signed_sum,
)
from mmaformal.encodings.smt.chain import chained
from mmaformal.encodings.smt.stages import ScaledSum, Stages
from mmaformal.spec import DotAdd

_PRODUCT_FRACTION_BITS = 2
_MAX_PRODUCT = 36 << _PRODUCT_FRACTION_BITS  #: in units of the last place


@dataclass(frozen=True)
class GdfsStep:
    """The interfaces between the stages of one step, in order."""

    a: tuple[Operand, ...]  #: decode
    b: tuple[Operand, ...]
    c: Operand
    scale_a: tuple[Operand, ...]  #: one for each group
    scale_b: tuple[Operand, ...]
    special: Special  #: classify
    products: tuple[tuple[BitVec, BitVec], ...]  #: multiply: signs and magnitudes, in units of 2^-2
    sums: tuple[BitVec, ...]  #: σ of each group, two's complement, in units of 2^-2
    groups: tuple[Term, ...]  #: scaled
    addend: Term
    e_max: BitVec  #: align
    aligned: tuple[BitVec, ...]  #: magnitudes; the signs are the terms'
    aligned_c: BitVec
    total: BitVec  #: accumulate, two's complement
    rounded: Rounded  #: normalise & round
    result: BitVec  #: encode


def exponents_of(spec: DotAdd, parameters: Gdfs) -> ExponentRange:
    assert spec.scale_format is not None
    scale, c = exponent_range(spec.scale_format), exponent_range(spec.c_format)
    both = ExponentRange(2 * scale.low, 2 * scale.high).union(c.low, c.high)
    return both if parameters.e_zero is None else both.union(parameters.e_zero)


def fixed_point(x: Operand) -> BitVec:
    """The magnitude of an e2m1 operand, in units of 2^-1; its exponent field is 1 to 3, the bias 1."""
    return resize(x.significand, 4) << resize(x.field - 1, 4)


def scale(
    total: BitVec,
    all_zero: Bool,
    scales: tuple[Operand, Operand],
    spec: DotAdd,
    parameters: Gdfs,
) -> Term:
    """`σ · s_α · s_β · 2^(e_α + e_β)`; the significand in units of 2^-(2 + 2m)."""
    assert spec.scale_format is not None
    exponents, m = exponents_of(spec, parameters), spec.scale_format.fraction_bits
    sign = z3.Extract(total.size() - 1, total.size() - 1, total)
    magnitude = resize(negate_if(sign, total), total.size() - 1)
    first, second = scales
    if m:
        bits = group_bound(spec, parameters).bit_length()
        both = resize(first.significand, 2 * (m + 1)) * resize(second.significand, 2 * (m + 1))
        magnitude = resize(magnitude, bits) * resize(both, bits)
    field = resize(first.field, exponents.bits) + resize(second.field, exponents.bits)
    exponent = exponents.from_field(field, 2 * spec.scale_format.bias)
    if parameters.e_zero is not None:
        zero = z3.Or(all_zero, is_zero(first), is_zero(second))
        exponent = z3.If(zero, exponents.constant(parameters.e_zero), exponent)
    return Term(sign, exponent, magnitude)


def group_bound(spec: DotAdd, parameters: Gdfs) -> int:
    """The largest `|σ| · s_α · s_β`, in units of 2^-(2 + 2m)."""
    assert spec.scale_format is not None
    largest_scale = (2 << spec.scale_format.fraction_bits) - 1
    return int(parameters.G * _MAX_PRODUCT * largest_scale**2)


def scaled_sum(
    spec: DotAdd,
    parameters: Gdfs,
    a: Sequence[Operand],
    b: Sequence[Operand],
    scales: tuple[Operand, Operand],
) -> ScaledSum:
    """A group's products, summed in fixed point and scaled."""
    product_bits = _MAX_PRODUCT.bit_length()
    products = tuple(
        (x.sign ^ y.sign, resize(fixed_point(x), product_bits) * resize(fixed_point(y), product_bits))
        for x, y in zip(a, b, strict=True)
    )
    sum_bits = (parameters.G * _MAX_PRODUCT).bit_length() + 1
    total = signed_sum(products, sum_bits)
    all_zero = all_of([magnitude == 0 for _, magnitude in products])
    return ScaledSum(products, total, scale(total, all_zero, scales, spec, parameters))


def step(
    spec: DotAdd,
    parameters: Gdfs,
    a: Sequence[BitVec],
    b: Sequence[BitVec],
    c: BitVec,
    scale_a: Sequence[Operand],
    scale_b: Sequence[Operand],
    stages: Stages,
) -> GdfsStep:
    """One step over L products; `scale_a` and `scale_b` are one scale for each group."""
    F, G, fmt = parameters.F, parameters.G, spec.scale_format
    assert fmt is not None
    exponents = exponents_of(spec, parameters)
    a_operands = tuple(decode(x, spec.a_format) for x in a)
    b_operands = tuple(decode(x, spec.b_format) for x in b)
    c_operand = stages.decode(c, spec.c_format)
    special = stages.classify([], [c_operand], [*scale_a, *scale_b])

    sums = []
    for g, pair in enumerate(zip(scale_a, scale_b, strict=True)):
        k = slice(g * G, (g + 1) * G)
        made = scaled_sum(spec, parameters, a_operands[k], b_operands[k], pair)
        sums.append(stages.scaled_sum([*a[k], *b[k]], pair, made, exponents))
    groups = tuple(x.term for x in sums)
    addend = stages.addend(c_operand, spec.c_format.bias, exponents, parameters.e_zero)

    fraction_bits = _PRODUCT_FRACTION_BITS + 2 * fmt.fraction_bits
    aligned_bound = group_bound(spec, parameters) << (F - fraction_bits)
    bound = len(groups) * aligned_bound + (1 << (F + 1)) - 1
    terms = [*((g, fraction_bits) for g in groups), (addend, spec.c_format.fraction_bits)]
    lowest = lowest_e_max(spec, parameters.e_zero)
    end = stages.fused_sum(terms, exponents, F, bound.bit_length() + 1, parameters.rho, lowest, special)
    return GdfsStep(
        a_operands,
        b_operands,
        c=c_operand,
        scale_a=tuple(scale_a),
        scale_b=tuple(scale_b),
        special=special,
        products=tuple(x for each in sums for x in each.products),
        sums=tuple(x.total for x in sums),
        groups=groups,
        addend=addend,
        **end._asdict(),
    )


def dot_add(
    spec: DotAdd,
    a: Sequence[BitVec],
    b: Sequence[BitVec],
    c: BitVec,
    scale_a: Sequence[BitVec],
    scale_b: Sequence[BitVec],
) -> Trace[GdfsStep]:
    """The trace of `c + Σ a_k·b_k`: `a` and `b` are K codes each, c one; K / scale_block scales of each side."""
    parameters = spec.parameters_as(Gdfs)
    stages = Stages()
    per_a, per_b = (scales_per_product(spec, side, stages) for side in (scale_a, scale_b))

    def of_groups(k: slice, c: BitVec) -> GdfsStep:
        groups = slice(k.start, k.stop, parameters.G)
        return step(spec, parameters, a[k], b[k], c, per_a[groups], per_b[groups], stages)

    return chained(spec, of_groups, c, stages)
