"""rvbna, the pseudo-code of RISC-V's bulk-normalised dot product, as bit-vector terms, expression by expression.

Specification: RISC-V ISA, RVBNA (commit 260dd933).  Products, their exponents, and the addition of c are the terms that
other algorithms have; alignment and what follows it are the text's.  Widths: an aligned product has q + 1 + g bits,
the sum of n one sign and g + q + 1 + o; the exponent of the result, which may be negative, two more than the
largest.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import z3

from mmaformal.encodings.rvbna import Rvbna
from mmaformal.encodings.smt.blocks import (
    BitVec,
    ExponentRange,
    Operand,
    Special,
    Term,
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
from mmaformal.encodings.smt.chain import looped
from mmaformal.encodings.smt.ieee import Addition, add
from mmaformal.formats import fp32
from mmaformal.rounding import RO_FP32
from mmaformal.spec import DotAdd

Q, F = fp32.fraction_bits + 1, fp32.exponent_bits


class Normalised(NamedTuple):
    """The interfaces of normalising and rounding a sum, in order."""

    magnitude: BitVec
    lzc: BitVec
    shifted: BitVec  #: accAbs << lzc
    res_exp: BitVec  #: two's complement
    normal: BitVec  #: q bits
    subnormal: BitVec  #: f + q bits, or as many as the sum has
    code: BitVec


@dataclass(frozen=True)
class RvbnaStep:
    """The interfaces of one step, in order."""

    factors: tuple[tuple[Operand, Operand], ...]  #: decode
    special: Special  #: classify
    products: tuple[Term, ...]  #: multiply
    max_exp: BitVec  #: align
    aligned: tuple[BitVec, ...]  #: magnitudes; the signs are the products'
    accumulator: BitVec  #: accumulate, two's complement
    number: Normalised  #: normalise & round, encode
    dot: BitVec  #: the code, or that of a special value
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


def _leading_zeros(x: BitVec, bits: int) -> BitVec:
    """Returns how many zeros x begins with, in `bits` bits; its width, if it is zero."""
    count = z3.BitVecVal(x.size(), bits)
    for place in range(x.size()):
        count = z3.If(z3.Extract(place, place, x) == 1, z3.BitVecVal(x.size() - 1 - place, bits), count)
    return count


def round_normal(shifted: BitVec, lzc: BitVec, p: Rvbna) -> BitVec:
    """Returns roundedSig, q bits, of a normalised sum."""
    width, t = shifted.size(), 2 * p.guard_bits + 1
    mask = z3.BitVecVal((1 << t) - 1, width)
    if 1 not in p.corrected:
        most = z3.BitVecVal(t, lzc.size())
        jamMaskShift = z3.If(z3.UGT(lzc, most), z3.BitVecVal(0, lzc.size()), most - lzc)
        mask = z3.LShR(mask, resize(jamMaskShift, width))
    return z3.Extract(width - 1, t, shifted) | resize(bit((shifted & mask) != 0), width - t)


def round_subnormal(magnitude: BitVec, shifted: BitVec, exponent: BitVec, p: Rvbna) -> BitVec:
    """Returns denormalizedSig and forceLSB, of an exponent from 1 − q to 0; of others, a number without meaning.

    As meant, the bits of the normalised sum that a normal result has, and as many fewer as the exponent is below 1.
    """
    width, t, bits = max(magnitude.size(), Q + F), 2 * p.guard_bits + 1, exponent.size()
    x, normal = resize(magnitude, width), resize(shifted, width)
    exponent = z3.If(
        exponent < 1 - Q, z3.BitVecVal(1 - Q, bits), z3.If(exponent > 0, z3.BitVecVal(0, bits), exponent)
    )
    printed = resize(exponent + z3.BitVecVal(Q - 1, bits), width)
    meant = resize(z3.BitVecVal(t + 1, bits) - exponent, width)
    sig = z3.LShR(normal, meant) if 2 in p.corrected else z3.LShR(x, printed)
    discardedBits = x & z3.LShR(z3.BitVecVal((1 << (Q - 1)) - 1, width), printed)
    if 3 in p.corrected:
        discardedBits = normal & ~(z3.BitVecVal(-1, width) << meant)
    return sig | resize(bit(discardedBits != 0), width)


def code_of_sum(accumulator: BitVec, max_exp: BitVec, low: int, p: Rvbna) -> Normalised:
    """Returns the code of the sum of the aligned products; `low` is what the offset exponent 0 stands for."""
    width = accumulator.size() - 1
    negative = z3.Extract(width, width, accumulator)
    magnitude = z3.Extract(width - 1, 0, negate_if(negative, accumulator))
    bits = max(max_exp.size(), F, abs(low).bit_length(), width.bit_length()) + 3
    lzc = _leading_zeros(magnitude, width.bit_length())
    offset = low + p.guard_bits + 1 + fp32.bias
    resExp = resize(max_exp, bits) + z3.BitVecVal(offset % (1 << bits), bits) - resize(lzc, bits)
    infinity = z3.BitVecVal(((1 << F) - 1) << (Q - 1), Q + F)
    shifted = magnitude << resize(lzc, width)
    normal, subnormal = round_normal(shifted, lzc, p), round_subnormal(magnitude, shifted, resExp, p)
    fields = z3.Concat(z3.BitVecVal(0, 1), z3.Extract(F - 1, 0, resExp), z3.Extract(Q - 2, 0, normal))
    tiny = z3.If(resExp < 1 - Q, z3.BitVecVal(1, Q + F), resize(subnormal, Q + F))
    fields = z3.If(resExp >= (1 << F) - 1, infinity, z3.If(resExp >= 1, fields, tiny))
    code = z3.If(magnitude == 0, z3.BitVecVal(0, Q + F), fields | pad(negative, Q + F - 1))
    return Normalised(magnitude, lzc, shifted, resExp, normal, subnormal, code)


def step(spec: DotAdd, p: Rvbna, a: Sequence[BitVec], b: Sequence[BitVec], c: BitVec) -> RvbnaStep:
    """Returns one step: BulkNormalizedDotProduct, and c added to it."""
    exponents, bias = exponents_of(spec, p), spec.a_format.bias + spec.b_format.bias
    formats = p.read(spec.a_format), p.read(spec.b_format)
    factors = tuple((decode(x, formats[0]), decode(y, formats[1])) for x, y in zip(a, b, strict=True))
    special = classify(factors, [])
    products = tuple(multiply(x, y, bias, exponents, p.zero_exponent(spec)) for x, y in factors)
    max_exp = maximum([each.exponent for each in products])
    aligned = tuple(align_product(each, max_exp, p.guard_bits) for each in products)
    signed = [(each.sign, magnitude) for each, magnitude in zip(products, aligned, strict=True)]
    accumulator = signed_sum(signed, p.width + 1)
    number, nan = code_of_sum(accumulator, max_exp, exponents.low, p), quiet_nan(fp32)
    dot = select_special(special, number.code, fp32, nan)
    addition = add(dot, c, RO_FP32, nan)
    return RvbnaStep(
        factors,
        special,
        products,
        max_exp,
        aligned,
        accumulator=accumulator,
        number=number,
        dot=dot,
        addition=addition,
        result=addition.result,
    )


dot_add = looped(Rvbna, lambda spec, p, a, b, c, stages: step(spec, p, a, b, c))
