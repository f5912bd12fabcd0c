"""pfma, paired fused multiply-add, executable.  Specification: semantics §10 (Intel AMX, TDPBF16PS).

Two sums start at +0; product k goes to sum k mod 2, `t = fma(a_k, b_k, t)`; then `d = c + (t_0 + t_1)`.  All in fp32,
to nearest even; a subnormal operand counts as zero of its sign (DAZ), a tiny result becomes one (FTZ).

Tiny is what lies below 2^-126, either *before* or *after* rounding to 24 bits with exponents that have no least.  So an
fma is rounded that way, and its exponent looked at before or after the rounding carries into the next.  A sum of two
fp32 numbers is a multiple of 2^-149, hence exact wherever it is below 2^-126, and it does not matter there when one
looks.

The exact product has 14 fraction bits, or 20, the addend 23; no operand is subnormal, so `blocks.add` may have z = 0
and needs a frame of 24 + 2 bits.  fp16 is converted to fp32 first, where it has no subnormals, and 13 last bits are 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

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
    clamp,
    classify_addend,
    classify_product,
    decode,
    encode,
    merge_special,
    multiply,
    resolve_special,
    select_special,
    term,
    where,
    with_zero_exponent,
)
from mmaformal.encodings.executable.chain import looped
from mmaformal.encodings.executable.ieee import Addition, convert_exactly, ieee_add
from mmaformal.encodings.executable.stages import Code, Stages
from mmaformal.encodings.ffma import Ffma
from mmaformal.encodings.pfma import Pfma, on_taken, taken_as
from mmaformal.formats import Format, fp32
from mmaformal.rounding import IEEE_FP32, NanRule, Tininess
from mmaformal.spec import DotAdd

RHO, FRAME = IEEE_FP32, 26
INVALID = 0xFFC00000  #: the NaN of 0·∞ and ∞ − ∞


class FmaStages(NamedTuple):
    """The interfaces of one fma, in order."""

    a: Operand  #: decode; no subnormals
    b: Operand
    c: Operand
    special: Special  #: classify
    product: Term  #: multiply
    addend: Term
    total: Sum  #: align, accumulate
    rounded: Rounded  #: normalise & round; exponents have no least
    tiny: Flag
    number: Lane  #: encode; the code where no operand is special
    result: Lane


@dataclass(frozen=True)
class PfmaStep:
    """The interfaces of one instruction: fma for fma in the order of the products, then two sums."""

    fmas: tuple[FmaStages, ...]
    pair: Addition  #: t_0 + t_1; not flushed yet
    sum: Lane
    addition: Addition  #: c + that
    result: Lane


def without_subnormal(code: Lane) -> Lane:
    """An fp32 code, a subnormal made zero of its sign; for operands and for results."""
    return where(code & 0x7F800000 == 0, code & 0x80000000, code)


def operand(code: Lane, of: Format) -> Operand:
    """A decoded operand, a subnormal made zero of its sign."""
    x = decode(code, of.layout)
    return x._replace(significand=where(x.significand < 1 << of.fraction_bits, 0, x.significand))


def first_nan(operands: Sequence[tuple[Flag, Lane]], otherwise: Lane) -> Lane:
    """The first NaN of (whether it is one, its fp32 code), made quiet; or something else."""
    for nan, code in reversed(operands):
        otherwise = where(nan, code | 0x00400000, otherwise)
    return otherwise


def round_without_least(x: Sum, zero_sign: Lane) -> Rounded:
    """To 24 bits, to nearest even, whatever the exponent; the significand of zero is 0."""
    magnitude = where(x.total < 0, -x.total, x.total)
    length = bit_length(magnitude)
    right, left = clamp(length - 24, 0, 62), clamp(24 - length, 0, 24)
    kept = (magnitude >> right) << left
    twice, one = (magnitude - ((magnitude >> right) << right)) * 2, (magnitude * 0 + 1) << right
    up = (right > 0) & ((twice > one) | ((twice == one) & (kept & 1 == 1)))
    sign = where(x.total == 0, zero_sign, where(x.total < 0, 1, 0))
    return Rounded(sign, length - 1 + x.unit, where(up, kept + 1, kept))


def tiny_before(spec: DotAdd) -> bool:
    """Whether a result is tiny by what it is before it is rounded."""
    parameters = spec.parameters
    assert isinstance(parameters, (Pfma, Ffma))
    return parameters.tiny is Tininess.BEFORE


def gives_first_nan(spec: DotAdd) -> bool:
    """Whether the first NaN of the operands is the result; if not, which one is the result is not known."""
    parameters = spec.parameters
    assert isinstance(parameters, (Pfma, Ffma))
    return parameters.nan is NanRule.FIRST


def fma(a: Lane, b: Lane, c: Lane, spec: DotAdd, before: Flag, first: Flag) -> FmaStages:
    """`a·b + c`: codes of the factors' formats and of fp32.  before: whether a result is tiny by the exact sum; first:
    whether a NaN is the first one of the operands, factors of bf16."""
    x, y, z = operand(a, spec.a_format), operand(b, spec.b_format), operand(c, fp32)
    special = resolve_special(merge_special(classify_product(x, y), classify_addend(z)))
    least = fp32.min_exponent
    product = with_zero_exponent(multiply(x, y), least)
    fraction_bits = spec.a_format.fraction_bits + spec.b_format.fraction_bits
    total = add(product, fraction_bits, term(z), fp32.fraction_bits, FRAME)
    rounded = round_without_least(total, product.sign & z.sign)
    carried = (rounded.significand == 1 << 24) & (before ^ True)  # to the next power of two
    small = (rounded.exponent < least - 1) | ((rounded.exponent == least - 1) & (carried ^ True))
    tiny = small | (rounded.significand == 0)
    exponent = clamp(rounded.exponent, least - 1, fp32.max_exponent + 1)
    number = encode(Rounded(rounded.sign, exponent, rounded.significand), RHO)
    number = where(tiny, rounded.sign << 31, number)
    code = select_special(special, number, RHO, INVALID)
    result = where(first, first_nan(((x.nan, a << 16), (y.nan, b << 16), (z.nan, c)), code), code)
    return FmaStages(
        x,
        y,
        c=z,
        special=special,
        product=product,
        addend=term(z),
        total=total,
        rounded=rounded,
        tiny=tiny,
        number=number,
        result=result,
    )


def recorded_fma(stages: Stages, spec: DotAdd, a: Lane, b: Lane, c: Lane) -> FmaStages:
    """An fma, with its stages recorded: compiled kernels are made of `fma` without them."""
    first = gives_first_nan(spec)
    made = fma(a, b, c, spec, tiny_before(spec), first)
    x, y, z = made.a, made.b, made.c
    for code, operand, fmt in ((a, x, spec.a_format), (b, y, spec.b_format), (c, z, fp32)):
        stages.flushed_operand(code, operand, fmt)
    stages.made("classify", [x, y, z], made.special)
    stages.made("multiply", [x, y], made.product)
    stages.made("addend", [z], made.addend)
    stages.made("sticky_sum", [made.product, made.addend], made.total, wide=None)
    number = Code(made.total.total, made.rounded, made.number)
    stages.made("round_flushed", [made.total, made.product, made.addend], number, rho=RHO)
    nans = [a, x, b, y, c, z] if first else []
    stages.code("select", [made.number, made.special, *nans], made.result, fp32)
    return made


def converted(stages: Stages, codes: Sequence[Lane], fmt: Format) -> Sequence[Lane]:
    """The codes of factors; those of fp16 converted to fp32, and read as tf32."""
    if fmt.exponent_bits == fp32.exponent_bits:
        return codes
    return [stages.code("convert", [x], convert_exactly(x, fmt, fp32), taken_as(fmt)) for x in codes]


class FlushedAddition(NamedTuple):
    """The interfaces of an addition of fp32 codes."""

    x: Lane  #: flushed
    y: Lane
    addition: Addition
    number: Lane  #: the sum flushed: the code where no operand is a NaN
    result: Lane


def add_codes(x: Lane, y: Lane, first: Flag) -> FlushedAddition:
    """`x + y` of fp32 codes; first: whether a NaN is the first one of both."""
    u, v = without_subnormal(x), without_subnormal(y)
    addition = ieee_add(u, v, RHO, INVALID)
    number = without_subnormal(addition.result)
    result = where(first, first_nan(((addition.x.nan, x), (addition.y.nan, y)), number), number)
    return FlushedAddition(u, v, addition, number, result)


def recorded_sum(stages: Stages, x: Lane, y: Lane, first: bool) -> FlushedAddition:
    """A sum of two codes, with its stages recorded."""
    made = add_codes(x, y, first)
    stages.code("flush", [x], made.x, fp32)
    stages.code("flush", [y], made.y, fp32)
    stages.made("add", [made.x, made.y], made.addition, rho=RHO)
    stages.code("flush", [made.addition.result], made.number, fp32)
    if first:
        stages.code("select", [made.number, x, y], made.result, fp32)
    return made


def step(spec: DotAdd, a: Sequence[Lane], b: Sequence[Lane], c: Lane, stages: Stages) -> PfmaStep:
    sums, fmas, first = [stages.zero(c), stages.zero(c)], list[FmaStages](), gives_first_nan(spec)
    a, b = converted(stages, a, spec.a_format), converted(stages, b, spec.b_format)
    for k, (x, y) in enumerate(zip(a, b, strict=True)):
        fmas.append(recorded_fma(stages, on_taken(spec), x, y, sums[k % 2]))
        sums[k % 2] = fmas[-1].result
    pair = recorded_sum(stages, sums[0], sums[1], first)
    last = recorded_sum(stages, c, pair.result, first)
    return PfmaStep(tuple(fmas), pair.addition, pair.result, last.addition, last.result)


dot_add = looped(lambda spec, a, b, c, stages: step(spec, a, b, c, stages))
