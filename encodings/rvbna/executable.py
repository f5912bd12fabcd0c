"""rvbna, the pseudo-code of RISC-V's bulk-normalised dot product, executable, expression by expression.

Specification: RISC-V ISA, RVBNA (commit 260dd933); names are the text's, q = 24 and f = 8 those of fp32.  Formats are
decoded as they are, which the text allows, or as IEEE 754's, which it has.
The text returns a code on f + q bits: what its expressions set above
these is not there.  c is added last, to odd (Zvfwbdota16bf, Zvfqwbdota8f).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import NamedTuple

from mmaformal.encodings.executable.blocks import (
    Lane,
    Operand,
    Special,
    Term,
    bit_length,
    clamp,
    classify_product,
    decode,
    maximum,
    merge_special,
    multiply,
    quiet_nan,
    resolve_special,
    select_special,
    where,
    with_zero_exponent,
)
from mmaformal.encodings.executable.chain import looped
from mmaformal.encodings.executable.ieee import Addition, ieee_add
from mmaformal.encodings.rvbna import Rvbna
from mmaformal.formats import fp32
from mmaformal.rounding import RO_FP32
from mmaformal.spec import DotAdd

Q, F = fp32.fraction_bits + 1, fp32.exponent_bits
OVERFLOW = (1 << F) - 1


class Normalised(NamedTuple):
    """The interfaces of normalising and rounding a sum, in order."""

    magnitude: Lane
    lzc: Lane
    shifted: Lane  #: accAbs << lzc
    res_exp: Lane
    normal: Lane
    subnormal: Lane
    code: Lane


class RvbnaStep(NamedTuple):
    """The interfaces of one step, in order."""

    factors: tuple[tuple[Operand, Operand], ...]  #: decode
    special: Special  #: classify
    products: tuple[Term, ...]  #: multiply
    max_exp: Lane  #: align
    aligned: tuple[Lane, ...]
    signed: tuple[Lane, ...]  #: the same with their signs
    accumulator: Lane  #: accumulate
    number: Normalised  #: normalise & round, encode
    dot: Lane  #: the code, or that of a special value
    addition: Addition
    result: Lane


def align_product(product: Term, max_exp: Lane, bits: int, guard_bits: int) -> Lane:
    """Returns alignedProducts[i]: a product of `bits` bits at the largest exponent, to odd, without its sign."""
    shift = max_exp - product.exponent
    width = Q + 1 + guard_bits
    aligned = (product.significand << (width - bits)) >> clamp(shift, 0, 63)
    mask = ((1 << bits) - 1) >> clamp(width - shift, 0, 63)
    discarded = where(shift >= width, product.significand, product.significand & mask)
    return aligned | where(discarded != 0, 1, 0)


def _normalise(magnitude: Lane, width: int) -> tuple[Lane, Lane]:
    """Returns lzc, how many zeros a magnitude of `width` bits begins with, and the magnitude without them."""
    lzc = clamp(width - bit_length(magnitude), 0, width)
    return lzc, magnitude << lzc


def round_normal(shifted: Lane, lzc: Lane, p: Rvbna) -> Lane:
    """Returns roundedSig: the first q bits of a normalised sum, the last of them set where jamMask finds a bit."""
    t = p.guard_bits + p.guard_bits + 1
    raw = (1 << t) - 1
    mask = raw if 1 in p.corrected else raw >> where(lzc > t, 0, clamp(t - lzc, 0, t))
    return (shifted >> t) | where((shifted & mask) != 0, 1, 0)


def round_subnormal(magnitude: Lane, shifted: Lane, res_exp: Lane, p: Rvbna) -> Lane:
    """Returns denormalizedSig and forceLSB, of an exponent from 1 − q to 0; of others, a number without meaning.

    As meant, the normalised sum loses as many bits more than that of a normal result as the exponent is below 1.
    """
    exponent = clamp(res_exp, 1 - Q, 0)
    printed, meant = Q - 1 + exponent, p.guard_bits + p.guard_bits + 2 - exponent
    sig = shifted >> meant if 2 in p.corrected else magnitude >> printed
    lost = magnitude & (((1 << (Q - 1)) - 1) * (magnitude * 0 + 1) >> printed)
    if 3 in p.corrected:
        lost = shifted - (shifted >> meant << meant)
    return sig | where(lost != 0, 1, 0)


def code_of_sum(accumulator: Lane, max_exp: Lane, p: Rvbna) -> Normalised:
    """Returns the code of the sum of the aligned products; `max_exp` is unbiased, so that prodOpBias is not there."""
    negative = accumulator < 0
    magnitude = where(negative, -accumulator, accumulator)
    lzc, shifted = _normalise(magnitude, p.width)
    res_exp = max_exp + (p.guard_bits + 1 + fp32.bias) - lzc
    normal, subnormal = round_normal(shifted, lzc, p), round_subnormal(magnitude, shifted, res_exp, p)
    fields = (clamp(res_exp, 1, OVERFLOW) << (Q - 1)) | (normal & ((1 << (Q - 1)) - 1))
    fields = where(res_exp >= OVERFLOW, OVERFLOW << (Q - 1), fields)
    fields = where(res_exp >= 1, fields, where(res_exp < 1 - Q, 1, subnormal))
    code = fields | where(negative, 1 << (Q + F - 1), 0)
    code = where(magnitude == 0, 0, code & ((1 << (Q + F)) - 1))
    return Normalised(magnitude, lzc, shifted, res_exp, normal, subnormal, code)


def step(spec: DotAdd, p: Rvbna, a: Sequence[Lane], b: Sequence[Lane], c: Lane) -> RvbnaStep:
    """Returns one step: BulkNormalizedDotProduct, and c added to it."""
    bits = spec.a_format.fraction_bits + spec.b_format.fraction_bits + 2
    factors = tuple(
        (decode(x, p.read(spec.a_format).layout), decode(y, p.read(spec.b_format).layout))
        for x, y in zip(a, b, strict=True)
    )
    special = resolve_special(reduce(merge_special, [classify_product(x, y) for x, y in factors]))
    products = tuple(with_zero_exponent(multiply(x, y), p.zero_exponent(spec)) for x, y in factors)
    max_exp = reduce(maximum, [each.exponent for each in products])
    aligned = tuple(align_product(each, max_exp, bits, p.guard_bits) for each in products)
    signed = tuple(where(x.sign == 1, -y, y) for x, y in zip(products, aligned, strict=True))
    accumulator, nan = sum(signed[1:], signed[0]), quiet_nan(fp32)
    number = code_of_sum(accumulator, max_exp, p)
    dot = select_special(special, number.code, RO_FP32, nan)
    addition = ieee_add(dot, c, RO_FP32, nan)
    return RvbnaStep(
        factors,
        special,
        products,
        max_exp,
        aligned,
        signed=signed,
        accumulator=accumulator,
        number=number,
        dot=dot,
        addition=addition,
        result=addition.result,
    )


dot_add = looped(lambda spec, a, b, c, stages: step(spec, spec.parameters_as(Rvbna), a, b, c))
