"""gps, group pairwise sum, as bit-vector terms.  Specification: semantics §3; seed 000 §IV-B.

Sums are `ieee.add` in fp32, flushed.  A product needs no rounding: of normal factors with p and q significand bits
it has p + q bits, at most 22 (p, q ≤ 11), so one of at least 2^-126 is an fp32 number, and one below would be
2^-128 times a number in [1, 4), a multiple of 2^-148, which the subnormals of fp32 are fine enough to hold: rounded
to them it stays below 2^-126, and is flushed.  So a product is its p + q bits, shifted by one place if the highest
is 0, with an exponent that says whether it is flushed, a number, or infinite.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import z3

from mmaformal.algorithms import IEEE_FP32, DotAdd, Gps
from mmaformal.encodings.smt.blocks import (
    BitVec,
    Operand,
    Special,
    Trace,
    classify,
    decode,
    is_zero,
    pad,
    product_range,
    quiet_nan,
    select_special,
)
from mmaformal.encodings.smt.ieee import add
from mmaformal.formats import Format, fp32


@dataclass(frozen=True)
class Step:
    """The interfaces of one group, in order; from the products on, codes of fp32."""

    a: tuple[Operand, ...]  #: decode; no subnormals
    b: tuple[Operand, ...]
    products: tuple[BitVec, ...]
    sums: tuple[BitVec, ...]  #: of pairs, then of pairs of those, …; the last is the group's
    c: BitVec  #: what the group is added to
    result: BitVec


def flush(code: BitVec, fmt: Format, *, keep_sign: bool) -> BitVec:
    """A code with subnormals replaced by zero, of the same sign or positive; zeros are treated alike."""
    low = fmt.ignored_low_bits + fmt.fraction_bits
    field = z3.Extract(low + fmt.exponent_bits - 1, low, code)
    sign = z3.Extract(fmt.storage_bits - 1, fmt.storage_bits - 1, code)
    zero = z3.BitVecVal(0, fmt.storage_bits)
    if keep_sign:
        zero = pad(sign, fmt.storage_bits - 1)
    return z3.If(field == 0, zero, code)


def multiply(a: Operand, b: Operand, a_format: Format, b_format: Format) -> BitVec:
    """The fp32 product of two operands that are not subnormal, flushed."""
    exponents = product_range(a_format, b_format)
    bits = a.significand.size() + b.significand.size()
    exact = z3.ZeroExt(bits - a.significand.size(), a.significand) * z3.ZeroExt(
        bits - b.significand.size(), b.significand
    )
    carry = z3.Extract(bits - 1, bits - 1, exact)
    fraction = z3.If(carry == 1, z3.Extract(bits - 2, 0, exact), pad(z3.Extract(bits - 3, 0, exact), 1))

    # The field of the product, as two's complement: below 1 it is flushed, above 254 an infinity.
    lowest = exponents.low + fp32.bias
    highest = exponents.high + 1 + fp32.bias
    field_bits = max(highest.bit_length(), (-lowest).bit_length(), fp32.exponent_bits) + 1
    bias = a_format.bias + b_format.bias - fp32.bias
    field = (
        z3.ZeroExt(field_bits - a.field.size(), a.field)
        + z3.ZeroExt(field_bits - b.field.size(), b.field)
        + z3.ZeroExt(field_bits - 1, carry)
        - bias
    )
    sign = a.sign ^ b.sign
    number = z3.Concat(
        z3.Extract(fp32.exponent_bits - 1, 0, field), pad(fraction, fp32.fraction_bits - bits + 1)
    )
    assert fp32.infinity is not None
    infinity = z3.BitVecVal(fp32.infinity, fp32.storage_bits - 1)
    zero = z3.BitVecVal(0, fp32.storage_bits - 1)
    flushed = z3.Or(is_zero(a), is_zero(b), field < 1)
    overflow = field > (1 << fp32.exponent_bits) - 2
    code = z3.Concat(sign, z3.If(flushed, zero, z3.If(overflow, infinity, number)))
    special: Special = classify([(a, b)], [])
    return select_special(special, code, fp32, quiet_nan(fp32))


def pairwise(xs: Sequence[BitVec]) -> list[BitVec]:
    """Every sum on the way to the pairwise sum of a power of two of codes, which is the last."""
    sums: list[BitVec] = []
    while len(xs) > 1:
        xs = [_add(x, y) for x, y in zip(xs[::2], xs[1::2], strict=True)]
        sums += xs
    return sums


def _add(x: BitVec, y: BitVec) -> BitVec:
    return flush(add(x, y, IEEE_FP32), fp32, keep_sign=True)


def step(spec: DotAdd, a: Sequence[BitVec], b: Sequence[BitVec], c: BitVec) -> Step:
    """One group of G products, added to c."""
    a_operands, b_operands = (
        tuple(decode(flush(x, fmt, keep_sign=False), fmt) for x in codes)
        for codes, fmt in ((a, spec.a_format), (b, spec.b_format))
    )
    products = tuple(
        multiply(x, y, spec.a_format, spec.b_format) for x, y in zip(a_operands, b_operands, strict=True)
    )
    sums = tuple(pairwise(products))
    return Step(a_operands, b_operands, products, sums, c, _add(c, sums[-1]))


def dot_add(spec: DotAdd, a: Sequence[BitVec], b: Sequence[BitVec], c: BitVec) -> Trace[Step]:
    """The trace of `c + Σ a_k·b_k`: `a` and `b` are K codes each, c one."""
    parameters = spec.parameters
    assert isinstance(parameters, Gps)
    c = flush(c, fp32, keep_sign=False)
    steps = []
    for start in range(0, spec.k, parameters.G):
        stop = start + parameters.G
        steps.append(step(spec, a[start:stop], b[start:stop], c))
        c = steps[-1].result
    return Trace(tuple(steps), c)


__all__ = ["Step", "Trace", "dot_add", "step"]
