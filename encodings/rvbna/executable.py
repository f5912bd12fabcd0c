"""rvbna, the pseudo-code of RISC-V's bulk-normalised dot product, executable, expression by expression.

Specification: RISC-V ISA, RVBNA (commit 260dd933); names are the text's, q = 24 and f = 8 those of fp32.  Formats are
decoded as they are, which the text allows.  The text returns a code on f + q bits: what its expressions set above
these is not there.  c is added last, to odd (Zvfwbdota16bf, Zvfqwbdota8f).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from mmaformal.encodings.executable.blocks import (
    Addition,
    Lane,
    Special,
    Term,
    Trace,
    bit_length,
    clamp,
    classify_product,
    decode,
    ieee_add,
    maximum,
    merge_special,
    multiply,
    quiet_nan,
    resolve_special,
    select_special,
    where,
    with_zero_exponent,
)
from mmaformal.encodings.executable.chain import chain
from mmaformal.encodings.rvbna import Rvbna
from mmaformal.formats import fp32
from mmaformal.rounding import RO_FP32
from mmaformal.spec import DotAdd

Q, F = fp32.fraction_bits + 1, fp32.exponent_bits
OVERFLOW = (1 << F) - 1


class RvbnaStep(NamedTuple):
    """The interfaces of one step, in order."""

    special: Special
    products: tuple[Term, ...]
    max_exp: Lane
    aligned: tuple[Lane, ...]
    accumulator: Lane
    number: Lane
    dot: Lane
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


def round_normal(magnitude: Lane, lzc: Lane, p: Rvbna) -> Lane:
    """Returns roundedSig: the first q bits of a magnitude, whose last is set where jamMask finds a bit."""
    t = p.guard_bits + p.guard_bits + 1
    shifted = magnitude << lzc
    raw = (1 << t) - 1
    mask = raw if 1 in p.corrected else raw >> where(lzc > t, 0, clamp(t - lzc, 0, t))
    return (shifted >> t) | where((shifted & mask) != 0, 1, 0)


def round_subnormal(magnitude: Lane, lzc: Lane, res_exp: Lane, p: Rvbna) -> Lane:
    """Returns denormalizedSig and forceLSB, of an exponent from 1 − q to 0; of others, a number without meaning."""
    t, exponent = p.guard_bits + p.guard_bits + 1, clamp(res_exp, 1 - Q, 0)
    meant, printed = t + 1 - exponent - lzc, Q - 1 + exponent
    sig = magnitude >> printed
    if 2 in p.corrected:
        sig = where(meant >= 0, magnitude >> clamp(meant, 0, 63), magnitude << clamp(-meant, 0, Q))
    ones = magnitude * 0 + 1
    mask = (((1 << (Q - 1)) - 1) * ones) >> printed
    if 3 in p.corrected:
        mask = (ones << clamp(meant, 0, p.width)) - 1
    return sig | where((magnitude & mask) != 0, 1, 0)


def code_of_sum(accumulator: Lane, max_exp: Lane, bias: int, p: Rvbna) -> Lane:
    """Returns the code of the sum of the aligned products; `max_exp` is unbiased, `bias` what the text's has more."""
    negative = accumulator < 0
    magnitude = where(negative, -accumulator, accumulator)
    lzc = p.width - bit_length(magnitude)
    res_exp = max_exp + bias + (p.guard_bits + 1) - lzc - bias + fp32.bias
    rounded = round_normal(magnitude, lzc, p)
    number = (clamp(res_exp, 1, OVERFLOW) << (Q - 1)) | (rounded & ((1 << (Q - 1)) - 1))
    number = where(res_exp >= OVERFLOW, OVERFLOW << (Q - 1), number)
    low = where(res_exp < 1 - Q, 1, round_subnormal(magnitude, lzc, res_exp, p))
    number = where(res_exp >= 1, number, low)
    code = number | where(negative, 1 << (Q + F - 1), 0)
    return where(magnitude == 0, 0, code & ((1 << (Q + F)) - 1))


def step(spec: DotAdd, p: Rvbna, a: Sequence[Lane], b: Sequence[Lane], c: Lane) -> RvbnaStep:
    """Returns one step: BulkNormalizedDotProduct, and c added to it."""
    bits = spec.a_format.fraction_bits + spec.b_format.fraction_bits + 2
    factors = [
        (decode(x, spec.a_format.layout), decode(y, spec.b_format.layout)) for x, y in zip(a, b, strict=True)
    ]
    special, max_exp = classify_product(*factors[0]), p.zero_exponent(spec)
    for x, y in factors[1:]:
        special = merge_special(special, classify_product(x, y))
    products = tuple(with_zero_exponent(multiply(x, y), p.zero_exponent(spec)) for x, y in factors)
    for each in products:
        max_exp = maximum(each.exponent, max_exp)
    aligned = tuple(align_product(each, max_exp, bits, p.guard_bits) for each in products)
    accumulator = aligned[0] * 0
    for each, magnitude in zip(products, aligned, strict=True):
        accumulator = accumulator + where(each.sign == 1, -magnitude, magnitude)
    special, nan = resolve_special(special), quiet_nan(fp32)
    number = code_of_sum(accumulator, max_exp, spec.a_format.bias + spec.b_format.bias, p)
    dot = select_special(special, number, RO_FP32, nan)
    addition = ieee_add(dot, c, RO_FP32, nan)
    return RvbnaStep(special, products, max_exp, aligned, accumulator, number, dot, addition, addition.result)


def dot_add(
    spec: DotAdd,
    a: Sequence[Lane],
    b: Sequence[Lane],
    c: Lane,
    scale_a: Sequence[Lane] = (),
    scale_b: Sequence[Lane] = (),
) -> Trace[RvbnaStep]:
    """Returns the trace of `c + Σ a_k·b_k`: K codes a, K codes b, one c; no scales."""
    parameters = spec.parameters
    assert isinstance(parameters, Rvbna)
    return chain(spec, lambda k, c: step(spec, parameters, a[k], b[k], c), c)
