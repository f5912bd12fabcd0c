"""gps, group pairwise sum, as bit-vector terms.  Specification: semantics §3; MMA-Sim §IV-B.

Sums are `ieee.add` in fp32, flushed.  A product needs no rounding: its factors are normal, with at most 11
significand bits each, so it is s·2^e with 1 ≤ s < 4 and s a multiple of 2^-20.  If it is at least 2^-126 it is an fp32
number, or too large for one.  If not, it is a multiple of 2^-148, which rounding to fp32's subnormals (multiples of
2^-149) leaves alone, or below 2^-127, which rounding cannot bring to 2^-126: flushed in either case.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import z3

from mmaformal.encodings.smt.blocks import (
    BitVec,
    Operand,
    Trace,
    classify,
    decode,
    is_zero,
    pad,
    product_range,
    quiet_nan,
    resize,
    select_special,
)
from mmaformal.encodings.smt.chain import chained
from mmaformal.encodings.smt.ieee import Addition
from mmaformal.encodings.smt.stages import Stages
from mmaformal.formats import Format, fp32
from mmaformal.rounding import IEEE_FP32
from mmaformal.spec import DotAdd

NAN = quiet_nan(fp32)


@dataclass(frozen=True)
class GpsStep:
    """The interfaces of one group, in order; from the products on, codes of fp32."""

    a: tuple[Operand, ...]  #: decode; no subnormals
    b: tuple[Operand, ...]
    products: tuple[BitVec, ...]
    sums: tuple[Addition, ...]  #: of pairs, then of pairs of those, …; results not flushed yet
    group: BitVec  #: the group's sum, flushed
    c: BitVec  #: what the group is added to
    addition: Addition
    result: BitVec  #: flushed


def flush(code: BitVec, *, keep_sign: bool) -> BitVec:
    """An fp32 code with subnormals replaced by zero, of the same sign or positive; −0 counts as one of them."""
    field = z3.Extract(fp32.storage_bits - 2, fp32.fraction_bits, code)
    sign = z3.Extract(fp32.storage_bits - 1, fp32.storage_bits - 1, code)
    zero = pad(sign, fp32.storage_bits - 1) if keep_sign else z3.BitVecVal(0, fp32.storage_bits)
    return z3.If(field == 0, zero, code)


def decode_flushed(code: BitVec, fmt: Format) -> Operand:
    """An operand with subnormals and −0 replaced by +0."""
    x = decode(code, fmt)
    top = fmt.fraction_bits
    normal = z3.Extract(top, top, x.significand) == 1
    return x._replace(
        sign=z3.If(normal, x.sign, z3.BitVecVal(0, 1)),
        significand=z3.If(normal, x.significand, z3.BitVecVal(0, top + 1)),
    )


def multiply(a: Operand, b: Operand, a_format: Format, b_format: Format) -> BitVec:
    """The fp32 product of two flushed operands, flushed."""
    bits = a.significand.size() + b.significand.size()
    exact = resize(a.significand, bits) * resize(b.significand, bits)
    carry = z3.Extract(bits - 1, bits - 1, exact)
    fraction = z3.If(carry == 1, z3.Extract(bits - 2, 0, exact), pad(z3.Extract(bits - 3, 0, exact), 1))

    # The product's exponent field, in two's complement since it may leave the range of fields.
    exponents = product_range(a_format, b_format)
    lowest, highest = exponents.low + fp32.bias, exponents.high + 1 + fp32.bias
    field_bits = max(highest.bit_length(), (-lowest).bit_length(), fp32.exponent_bits) + 1
    field = resize(a.field, field_bits) + resize(b.field, field_bits) + resize(carry, field_bits)
    field = field - (a_format.bias + b_format.bias - fp32.bias)
    zero, infinity = (z3.BitVecVal(code or 0, fp32.storage_bits - 1) for code in (0, fp32.infinity))
    number = z3.Concat(
        z3.Extract(fp32.exponent_bits - 1, 0, field), pad(fraction, fp32.fraction_bits - (bits - 1))
    )
    if highest > fp32.max_exponent + fp32.bias:
        number = z3.If(field > fp32.max_exponent + fp32.bias, infinity, number)
    if lowest < 1:
        number = z3.If(field < 1, zero, number)
    code = z3.Concat(a.sign ^ b.sign, z3.If(z3.Or(is_zero(a), is_zero(b)), zero, number))
    return select_special(classify([(a, b)], []), code, fp32, NAN)


def flush_result(code: BitVec) -> BitVec:
    return flush(code, keep_sign=True)


def product(
    spec: DotAdd, a: BitVec, b: BitVec, decoded: Callable[[BitVec, Format], Operand], stages: Stages
) -> tuple[Operand, Operand, BitVec]:
    """Two operands, decoded and flushed, and the code of their product."""
    x = stages.flushed_operand(a, decoded(a, spec.a_format), spec.a_format)
    y = stages.flushed_operand(b, decoded(b, spec.b_format), spec.b_format)
    return x, y, stages.code("product", [x, y], multiply(x, y, spec.a_format, spec.b_format), fp32)


def step(spec: DotAdd, a: Sequence[BitVec], b: Sequence[BitVec], c: BitVec, stages: Stages) -> GpsStep:
    """One group of G products, added to c."""
    each = [product(spec, x, y, decode_flushed, stages) for x, y in zip(a, b, strict=True)]
    a_operands, b_operands, products = zip(*each, strict=True)
    sums: list[Addition] = []
    level = products
    while len(level) > 1:
        pairs = [stages.add(x, y, IEEE_FP32, NAN) for x, y in zip(level[::2], level[1::2], strict=True)]
        sums += pairs
        level = tuple(stages.code("flush", [each.result], flush_result(each.result), fp32) for each in pairs)
    addition = stages.add(c, level[0], IEEE_FP32, NAN)
    result = stages.code("flush", [addition.result], flush_result(addition.result), fp32)
    return GpsStep(
        a_operands,
        b_operands,
        products=products,
        sums=tuple(sums),
        group=level[0],
        c=c,
        addition=addition,
        result=result,
    )


def dot_add(spec: DotAdd, a: Sequence[BitVec], b: Sequence[BitVec], c: BitVec) -> Trace[GpsStep]:
    """The trace of `c + Σ a_k·b_k`: `a` and `b` are K codes each, c one."""
    stages = Stages()
    start = stages.code("flush", [c], flush(c, keep_sign=False), fp32)
    return chained(spec, lambda k, c: step(spec, a[k], b[k], c, stages), start, stages)
