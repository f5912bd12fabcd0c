"""pfma, paired fused multiply-add, as bit-vector terms.  Specification: semantics §10 (Intel AMX, TDPBF16PS).

fp16 is converted to fp32, where its numbers are normal, and taken as tf32, whose places suffice for them.

One fma.  Factors and addend are normal or zero, and a zero has the exponent -126, so that the larger exponent e of
both is no less.  They are aligned to e with F = 26 fractional bits, the last one sticky (a product has 14 or 20 of its
own, the addend 23):

- *the addend loses bits*: it lies 4 or more places below the product, which is at least 2^e, and is less than 2^(e-3);
  the sum is above 2^(e-1), and rounding looks no further down than 2^(e-25), one place above the sticky one;
- *the product loses bits*: it lies 7 or more places below the addend, which is at least 2^e, or zero with e = -126.
  The first is as before.  In the second the sum is less than 2^-131: flushed.

Tiny after rounding is |sum| < 2^-126 - 2^-151, which is what 24 bits round to less than 2^-126 where exponents have no
least; tiny before is |sum| < 2^-126.  `encode` rounds to a multiple of 2^-149 there, which may go up to 2^-126 from
2^-126 - 2^-150 on, so that not every tiny number has the code of a subnormal.  Where e is -123 or more, the sum is a
multiple of 2^-149 as it is; for the three exponents below, it is compared with the bound.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import z3

from mmaformal.encodings.pfma import Pfma, on_taken
from mmaformal.encodings.smt import ieee
from mmaformal.encodings.smt.blocks import (
    BitVec,
    Bool,
    ExponentRange,
    Operand,
    Rounded,
    Special,
    StickySum,
    Term,
    decode,
    encode,
    negate_if,
    normalise_and_round,
    pad,
    product_range,
    select_special,
)
from mmaformal.encodings.smt.chain import looped
from mmaformal.encodings.smt.stages import Code, Stages
from mmaformal.formats import Format, fp16, fp32, tf32
from mmaformal.rounding import IEEE_FP32, NanRule, Tininess
from mmaformal.spec import DotAdd

INVALID = 0xFFC00000
FRAME = fp32.fraction_bits + 3
LEAST = fp32.min_exponent


class FmaStages(NamedTuple):
    """The interfaces of one fma, in order."""

    codes: tuple[BitVec, BitVec, BitVec]  #: of a, b and c
    a: Operand  #: decode; a subnormal is zero
    b: Operand
    c: Operand
    special: Special  #: classify
    product: Term  #: multiply
    addend: Term
    sum: StickySum  #: align, accumulate
    rounded: Rounded  #: normalise & round
    tiny: Bool
    number: BitVec  #: encode; the code where no operand is special
    result: BitVec


@dataclass(frozen=True)
class PfmaStep:
    """The interfaces of one instruction."""

    fmas: tuple[FmaStages, ...]  #: in the order of the products: of t_0, t_1, t_0, …
    pair: ieee.Addition  #: t_0 + t_1; not flushed yet
    sum: BitVec
    c: BitVec
    addition: ieee.Addition  #: c + that
    result: BitVec


def flush(code: BitVec) -> BitVec:
    """An fp32 code with a subnormal replaced by zero of its sign."""
    sign, rest = z3.Extract(31, 31, code), z3.Extract(30, 0, code)
    subnormal = z3.Extract(30, 23, code) == 0
    return z3.Concat(sign, z3.If(subnormal, z3.BitVecVal(0, 31), rest))


def decode_flushed(code: BitVec, fmt: Format) -> Operand:
    x = decode(code, fmt)
    normal = z3.Extract(fmt.fraction_bits, fmt.fraction_bits, x.significand) == 1
    return x._replace(significand=z3.If(normal, x.significand, z3.BitVecVal(0, x.significand.size())))


def quiet(code: BitVec) -> BitVec:
    """The fp32 NaN of a NaN of fp32 or bf16, made quiet; sign and payload are kept."""
    return pad(code, 32 - code.size()) | (1 << (fp32.fraction_bits - 1))


def exponents_of(spec: DotAdd) -> ExponentRange:
    """From the least exponent of a product to the greatest; the addend's are among them."""
    return product_range(spec.a_format, spec.b_format)


def fma(spec: DotAdd, a: BitVec, b: BitVec, c: BitVec, stages: Stages | None = None) -> FmaStages:
    """`a·b + c`; c a code of fp32."""
    stages = Stages() if stages is None else stages
    x, y, z = (
        stages.flushed_operand(code, decode_flushed(code, fmt), fmt)
        for code, fmt in ((a, spec.a_format), (b, spec.b_format), (c, fp32))
    )
    special = stages.classify([(x, y)], [z])
    exponents = exponents_of(spec)
    product = stages.multiply(x, y, spec.a_format.bias + spec.b_format.bias, exponents, LEAST)
    third = stages.addend(z, fp32.bias, exponents)
    fraction_bits = spec.a_format.fraction_bits + spec.b_format.fraction_bits
    sum_ = stages.sticky_sum(product, fraction_bits, third, fp32.fraction_bits, FRAME, exponents, LEAST)

    rounded = normalise_and_round(sum_.total, sum_.e_max, exponents, FRAME, IEEE_FP32, LEAST)
    rounded = rounded._replace(sign=z3.If(sum_.total == 0, product.sign & third.sign, rounded.sign))
    code = encode(rounded, IEEE_FP32)
    top = sum_.total.size() - 1
    magnitude = negate_if(z3.Extract(top, top, sum_.total), sum_.total)
    lifted = (
        (0, 0, 0) if spec.parameters["tiny"] is Tininess.BEFORE else (2, 1, 0)
    )  # 2^-151, cut off at 2^(e - 26)
    below = [
        z3.And(sum_.e_max == exponents.constant(LEAST + i), z3.ULT(magnitude, (1 << FRAME - i) - places))
        for i, places in enumerate(lifted)
    ]
    tiny = z3.Or(z3.Extract(30, 23, code) == 0, *below)
    number = z3.Concat(rounded.sign, z3.If(tiny, z3.BitVecVal(0, 31), z3.Extract(30, 0, code)))
    made = Code(sum_.total, rounded, number)
    stages.made("round_flushed", [sum_, product, third], made, rho=IEEE_FP32)

    result = select_special(special, number, fp32, INVALID)
    if spec.parameters["nan"] is NanRule.FIRST:
        result = z3.If(x.nan, quiet(a), z3.If(y.nan, quiet(b), z3.If(z.nan, quiet(c), result)))
        stages.code("select", [number, special, a, x, b, y, c, z], result, fp32)
    else:
        stages.code("select", [number, special], result, fp32)
    return FmaStages(
        (a, b, c),
        x,
        y,
        c=z,
        special=special,
        product=product,
        addend=third,
        sum=sum_,
        rounded=rounded,
        tiny=tiny,
        number=number,
        result=result,
    )


def widened(codes: Sequence[BitVec], fmt: Format, stages: Stages) -> Sequence[BitVec]:
    """The codes of factors; those of fp16 as codes of fp32 whose last places tf32 does without."""
    if fmt != fp16:
        return codes
    return [stages.code("convert", [code], ieee.convert(code, fmt, fp32), tf32) for code in codes]


def add(x: BitVec, y: BitVec, stages: Stages, rule: NanRule) -> tuple[ieee.Addition, BitVec]:
    """The interfaces of `x + y`, and its code."""
    u, v = (stages.code("flush", [each], flush(each), fp32) for each in (x, y))
    addition = stages.add(u, v, IEEE_FP32, INVALID)
    number = stages.code("flush", [addition.result], flush(addition.result), fp32)
    if rule is NanRule.ANY:
        return addition, number
    return addition, stages.code("select", [number, x, y], nan_or(x, y, number), fp32)


def nan_or(x: BitVec, y: BitVec, code: BitVec) -> BitVec:
    """x if that is a NaN, else y if that is one, made quiet; else the code."""
    return z3.If(decode(x, fp32).nan, quiet(x), z3.If(decode(y, fp32).nan, quiet(y), code))


def step(spec: DotAdd, a: Sequence[BitVec], b: Sequence[BitVec], c: BitVec, stages: Stages) -> PfmaStep:
    sums, fmas = [stages.zero(fp32), stages.zero(fp32)], []
    a, b = widened(a, spec.a_format, stages), widened(b, spec.b_format, stages)
    for k, (x, y) in enumerate(zip(a, b, strict=True)):
        fmas.append(fma(on_taken(spec), x, y, sums[k % 2], stages))
        sums[k % 2] = fmas[-1].result
    rule = spec.parameters["nan"]
    assert isinstance(rule, NanRule)
    pair, sum_ = add(sums[0], sums[1], stages, rule)
    addition, result = add(c, sum_, stages, rule)
    return PfmaStep(tuple(fmas), pair, sum_, c, addition, result)


dot_add = looped(Pfma, lambda spec, p, a, b, c, stages: step(spec, a, b, c, stages))
