"""fma, fused multiply-add of any formats, executable.  Specification: semantics §3.

`d = c`, then `d = ρ(a_k·b_k + d)` for k = 0 … K-1.  Product and addend are added in a frame of `Fma.frame` fractional
bits under the larger exponent, the last one sticky; a zero has the least exponent of all.  Where frame and carry do not
fit a lane, the sum takes two limbs; so does the product of two fp64 significands.

A result is tiny before rounding where the sum is below the least normal number, after it where the sum is still below
when it is rounded to the places that the binade below the least normal number would have: one more than there are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mmaformal.encodings.executable import limbs
from mmaformal.encodings.executable.blocks import (
    Flag,
    Lane,
    Operand,
    Rounded,
    Special,
    Sum,
    Term,
    add,
    bit_length,
    canonical_nan,
    clamp,
    encode,
    is_zero,
    quiet_nan,
    round_sum,
    select_special,
    sign_word,
    sum_sign,
    where,
)
from mmaformal.encodings.executable.chain import looped
from mmaformal.encodings.executable.saturating import saturated, the_nan
from mmaformal.encodings.executable.stages import Code, Stages
from mmaformal.encodings.fma import Fma
from mmaformal.rounding import Conversion, Rounding, Tininess
from mmaformal.spec import DotAdd


@dataclass(frozen=True)
class FmaStep:
    """The interfaces between the stages of one fma, in order."""

    a: Operand  #: decode
    b: Operand
    c: Operand
    special: Special  #: classify
    product: Term | limbs.WideTerm  #: multiply
    addend: Term
    total: Sum  #: align, accumulate
    rounded: Rounded  #: normalise & round
    result: Lane  #: encode


def default_nan(p: Fma) -> Lane:
    """The NaN of an operation without one among its operands."""
    target = p.rho.format
    if p.rho.saturation is not None:
        return the_nan(target)
    code = canonical_nan(target) if p.ones else quiet_nan(target)
    return code + (sign_word(target) if p.nan.default_is_negative else 0)


def product_of(p: Fma, spec: DotAdd, x: Operand, y: Operand, stages: Stages) -> Term | limbs.WideTerm:
    """The exact product; one of two long significands has the places of the frame."""
    bits, zero = p.product_bits(spec), p.zero_exponent(spec)
    if bits + 2 <= 48:
        return stages.multiply(x, y, zero)
    shift = p.frame(spec) - bits
    long = limbs.multiply(x.significand, y.significand, shift)
    exponent = where(is_zero(x) | is_zero(y), zero, x.exponent + y.exponent)
    product = limbs.WideTerm(x.sign ^ y.sign, exponent, long.product)
    return stages.made("multiply", [x, y], product, long=long, shift=shift)


def sum_of(p: Fma, spec: DotAdd, product: Term | limbs.WideTerm, addend: Term, stages: Stages) -> Sum:
    """The sum of both, in a lane where that holds it."""
    frame, bits, c_bits = p.frame(spec), p.product_bits(spec), spec.c_format.fraction_bits
    wide: limbs.WideSum | None = None
    if isinstance(product, Term) and frame + 3 <= 61:
        total = add(product, bits, addend, c_bits, frame)
    else:
        if isinstance(product, Term):
            significand = limbs.shift_left(product.significand, product.sign * 0 + (frame - bits))
            long = limbs.WideTerm(product.sign, product.exponent, significand)
        else:
            long = product
        wide = limbs.add_term(long, addend, c_bits, frame)
        total = wide.narrowed
    return stages.made("sticky_sum", [product, addend], total, wide=wide)


def is_tiny(x: Sum, rho: Conversion, tiny: Tininess) -> Flag:
    """Whether a sum is below the least normal number of ρ, as it is or rounded as if exponents had no least."""
    magnitude, least = where(x.total < 0, -x.total, x.total), rho.format.min_exponent
    if tiny is Tininess.BEFORE:
        return bit_length(magnitude) + x.unit <= least
    place = least - 1 - rho.fraction_bits  # the last one of the binade below
    right, left = clamp(place - x.unit, 0, 62), clamp(x.unit - place, 0, rho.fraction_bits + 2)
    kept = magnitude >> right
    lost, half = magnitude - (kept << right), (magnitude * 0 + 1) << clamp(right - 1, 0, 61)
    inexact, negative = lost > 0, x.total < 0
    up = inexact & (right < 0)
    if rho.rounding is Rounding.RNE:
        up = inexact & ((lost > half) | ((lost == half) & (kept & 1 == 1)))
    elif rho.rounding is Rounding.RNA:
        up = inexact & (lost >= half)
    elif rho.rounding is Rounding.RD:
        up = inexact & negative
    elif rho.rounding is Rounding.RU:
        up = inexact & (negative ^ True)
    rounded = where(up, kept + 1, kept)
    return (
        rounded < (magnitude * 0 + (2 << rho.fraction_bits)) >> left
    )  # 2^least in units of the sum or the place


def round_and_select(
    p: Fma,
    spec: DotAdd,
    total: Sum,
    terms: tuple[Term | limbs.WideTerm, Term],
    operands: Sequence[tuple[Lane, Operand]],
    special: Special,
    stages: Stages,
) -> tuple[Rounded, Lane]:
    """The rounded sum, and the code of d."""
    rho, nan = p.rho, default_nan(p)
    rounded = round_sum(total, sum_sign(rho, terms[0].sign, terms[1].sign), rho)
    if rho.saturation is not None:
        code = Code(total.total, rounded, saturated(rounded, special, rho))
        return rounded, stages.made("round_sum", [total, *terms, special], code, rho=rho).result
    if p.tiny is None:
        code = Code(total.total, rounded, select_special(special, encode(rounded, rho), rho, nan))
        result = stages.made("round_sum", [total, *terms, special], code, rho=rho).result
    else:
        zero = encode(
            rounded._replace(exponent=rounded.exponent * 0 + rho.format.min_exponent, significand=0), rho
        )
        number = where(is_tiny(total, rho, p.tiny), zero, encode(rounded, rho))
        stages.made("round_flushed", [total, *terms], Code(total.total, rounded, number), rho=rho)
        result = stages.code(
            "special", [number, special], select_special(special, number, rho, nan), rho.format
        )
    if p.nan.order:
        formats = {"a": spec.a_format, "b": spec.b_format, "c": spec.c_format}
        of = dict(zip("abc", operands, strict=True))
        nans = [(of[name][1], of[name][0], formats[name]) for name in p.nan.order]
        result = stages.first_nan(nans, result, rho.format)
    return rounded, result


def step(spec: DotAdd, p: Fma, a: Lane, b: Lane, c: Lane, stages: Stages) -> FmaStep:
    """`ρ(a·b + c)`."""
    formats = spec.a_format, spec.b_format, spec.c_format
    x, y, z = (stages.decode(u, fmt, p.flush_inputs) for u, fmt in zip((a, b, c), formats, strict=True))
    special = stages.classify([(x, y)], [z])
    product = product_of(p, spec, x, y, stages)
    addend = stages.addend(z, p.zero_exponent(spec))
    total = sum_of(p, spec, product, addend, stages)
    operands = ((a, x), (b, y), (c, z))
    rounded, result = round_and_select(p, spec, total, (product, addend), operands, special, stages)
    return FmaStep(x, y, z, special, product, addend, total, rounded, result)


dot_add = looped(lambda spec, a, b, c, stages: step(spec, spec.parameters_as(Fma), a[0], b[0], c, stages))
