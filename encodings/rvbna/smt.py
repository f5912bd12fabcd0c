"""rvbna, the pseudo-code of RISC-V's bulk-normalised dot product, as bit-vector terms, expression by expression.

Specification: RISC-V ISA, RVBNA (commit 260dd933).  Products, their exponents, and the addition of c are the terms that
other algorithms have; alignment and what follows it are the text's.  Widths: an aligned product has q + 1 + g bits,
the sum of n one sign and g + q + 1 + o; the exponent of the result, which may be negative, two more than the
largest.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import z3

from mmaformal.encodings.rvbna import Rvbna
from mmaformal.encodings.smt.blocks import (
    BitVec,
    ExponentRange,
    Special,
    Term,
    Trace,
    bit,
    classify,
    decode,
    maximum,
    multiply,
    negate_if,
    pad,
    product_range,
    quiet_nan,
    resize,
    select_special,
    shift_right,
    signed_sum,
)
from mmaformal.encodings.smt.chain import chained
from mmaformal.encodings.smt.ieee import Addition, add
from mmaformal.formats import fp32
from mmaformal.rounding import RO_FP32
from mmaformal.spec import DotAdd

Q, F = fp32.fraction_bits + 1, fp32.exponent_bits


@dataclass(frozen=True)
class RvbnaStep:
    """The interfaces of one step, in order."""

    special: Special  #: classify
    products: tuple[Term, ...]  #: multiply
    max_exp: BitVec  #: align
    aligned: tuple[BitVec, ...]  #: magnitudes; the signs are the products'
    accumulator: BitVec  #: accumulate, two's complement
    number: BitVec  #: normalise & round, encode
    dot: BitVec  #: the same, or a special value
    addition: Addition  #: of c
    result: BitVec


def exponents_of(spec: DotAdd, p: Rvbna) -> ExponentRange:
    """Returns the exponents of products, zeros included."""
    return product_range(spec.a_format, spec.b_format).union(p.zero_exponent(spec))


def align_product(product: Term, max_exp: BitVec, guard_bits: int) -> BitVec:
    """Returns alignedProducts[i], q + 1 + g bits: a product at the largest exponent, to odd, without its sign."""
    sig, shift = product.significand, max_exp - product.exponent
    bits, width = sig.size(), Q + 1 + guard_bits
    aligned = shift_right(pad(sig, width - bits), shift)
    amount = max(shift.size(), width.bit_length() + 1)
    alignShift, most = resize(shift, amount), z3.BitVecVal(width, amount)
    mask = shift_right(z3.BitVecVal(-1, bits), most - alignShift)
    jam = z3.If(z3.UGE(alignShift, most), sig, sig & mask) != 0
    return aligned | resize(bit(jam), width)


def leading_zeros(x: BitVec, bits: int) -> BitVec:
    """Returns how many zeros x begins with, in `bits` bits; its width, if it is zero."""
    count = z3.BitVecVal(x.size(), bits)
    for place in range(x.size()):
        count = z3.If(z3.Extract(place, place, x) == 1, z3.BitVecVal(x.size() - 1 - place, bits), count)
    return count


def round_normal(magnitude: BitVec, lzc: BitVec, p: Rvbna) -> BitVec:
    """Returns roundedSig, q bits."""
    width, t = magnitude.size(), 2 * p.guard_bits + 1
    shifted = magnitude << resize(lzc, width)
    raw = z3.BitVecVal((1 << t) - 1, width)
    mask = raw
    if 1 not in p.corrected:
        most = z3.BitVecVal(t, lzc.size())
        jamMaskShift = z3.If(z3.UGT(lzc, most), z3.BitVecVal(0, lzc.size()), most - lzc)
        mask = z3.LShR(raw, resize(jamMaskShift, width))
    return z3.Extract(width - 1, t, shifted) | resize(bit((shifted & mask) != 0), width - t)


def round_subnormal(magnitude: BitVec, lzc: BitVec, exponent: BitVec, p: Rvbna) -> BitVec:
    """Returns denormalizedSig and forceLSB, where the exponent is from 1 − q to 0, in f + q bits."""
    width, t, bits = max(magnitude.size(), Q + F), 2 * p.guard_bits + 1, exponent.size()
    x = resize(magnitude, width)

    def amount(shift: BitVec) -> BitVec:  # what is no number of places shifts everything out
        return z3.If(
            z3.Or(shift < 0, shift > width),
            z3.BitVecVal(width, width),
            resize(z3.SignExt(width, shift), width),
        )

    meant = z3.BitVecVal(t + 1, bits) - exponent - resize(lzc, bits)
    printed = exponent + z3.BitVecVal(Q - 1, bits)
    sig = z3.LShR(x, amount(printed))
    if 2 in p.corrected:
        sig = z3.If(meant >= 0, z3.LShR(x, amount(meant)), x << amount(-meant))
    mask = z3.LShR(z3.BitVecVal((1 << (Q - 1)) - 1, width), amount(printed))
    if 3 in p.corrected:
        mask = ~(z3.BitVecVal(-1, width) << z3.If(meant < 0, z3.BitVecVal(0, width), amount(meant)))
    return resize(sig | resize(bit((x & mask) != 0), width), Q + F)


def code_of_sum(accumulator: BitVec, max_exp: BitVec, low: int, p: Rvbna) -> BitVec:
    """Returns the code of the sum of the aligned products; `low` is what the offset exponent 0 stands for."""
    width = accumulator.size() - 1
    negative = z3.Extract(width, width, accumulator)
    magnitude = z3.Extract(width - 1, 0, negate_if(negative, accumulator))
    bits = max(max_exp.size(), F, abs(low).bit_length(), width.bit_length()) + 3
    lzc = leading_zeros(magnitude, width.bit_length())
    offset = low + p.guard_bits + 1 + fp32.bias
    resExp = resize(max_exp, bits) + z3.BitVecVal(offset % (1 << bits), bits) - resize(lzc, bits)
    infinity = z3.BitVecVal(((1 << F) - 1) << (Q - 1), Q + F)
    fraction = z3.Extract(Q - 2, 0, round_normal(magnitude, lzc, p))
    normal = z3.Concat(z3.BitVecVal(0, 1), z3.Extract(F - 1, 0, resExp), fraction)
    tiny = z3.If(resExp < 1 - Q, z3.BitVecVal(1, Q + F), round_subnormal(magnitude, lzc, resExp, p))
    number = z3.If(resExp >= (1 << F) - 1, infinity, z3.If(resExp >= 1, normal, tiny))
    code = number | pad(negative, Q + F - 1)
    return z3.If(magnitude == 0, z3.BitVecVal(0, Q + F), code)


def step(spec: DotAdd, p: Rvbna, a: Sequence[BitVec], b: Sequence[BitVec], c: BitVec) -> RvbnaStep:
    """Returns one step: BulkNormalizedDotProduct, and c added to it."""
    exponents, bias = exponents_of(spec, p), spec.a_format.bias + spec.b_format.bias
    factors = [(decode(x, spec.a_format), decode(y, spec.b_format)) for x, y in zip(a, b, strict=True)]
    special = classify(factors, [])
    products = tuple(multiply(x, y, bias, exponents, p.zero_exponent(spec)) for x, y in factors)
    max_exp = maximum([each.exponent for each in products])
    aligned = tuple(align_product(each, max_exp, p.guard_bits) for each in products)
    signed = [(each.sign, magnitude) for each, magnitude in zip(products, aligned, strict=True)]
    accumulator = signed_sum(signed, p.width + 1)
    number, nan = code_of_sum(accumulator, max_exp, exponents.low, p), quiet_nan(fp32)
    dot = select_special(special, number, fp32, nan)
    addition = add(dot, c, RO_FP32, nan)
    return RvbnaStep(special, products, max_exp, aligned, accumulator, number, dot, addition, addition.result)


def dot_add(spec: DotAdd, a: Sequence[BitVec], b: Sequence[BitVec], c: BitVec) -> Trace[RvbnaStep]:
    """Returns the trace of `c + Σ a_k·b_k`: `a` and `b` are K codes each, c one."""
    parameters = spec.parameters
    assert isinstance(parameters, Rvbna)
    return chained(spec, lambda k, c: step(spec, parameters, a[k], b[k], c), c)


__all__ = ["RvbnaStep", "Trace", "dot_add", "step"]
