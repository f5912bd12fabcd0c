"""oddsum, pairs rounded to odd, executable.  Specification: semantics §10 (Arm, BFDOT and BFMMLA).

Two products at a time: `d = c ⊕ (a_0·b_0 ⊕ a_1·b_1)`, each product and each sum in fp32, rounded with ρ; a subnormal
operand counts as zero of its sign.

A result is zero of its sign if it is tiny *before* rounding.  ρ cuts toward zero, and may then make the last place
odd: what is below 2^-126 stays below, what is not stays too.  So it suffices to look at the code that came out.

`ieee_add` keeps a sticky place below all that ρ looks at, hence it is as good for a ρ that asks if anything was lost.
"""

from __future__ import annotations

from collections.abc import Sequence

from mmaformal.encodings.executable.blocks import (
    Lane,
    Sum,
    classify_product,
    encode,
    multiply,
    quiet_nan,
    round_sum,
    select_special,
    signed,
)
from mmaformal.encodings.executable.chain import looped
from mmaformal.encodings.executable.stages import Stages
from mmaformal.encodings.gps.executable import FlushedProduct, GpsStep, recorded
from mmaformal.encodings.oddsum import Oddsum
from mmaformal.encodings.pfma.executable import operand, without_subnormal
from mmaformal.formats import fp32
from mmaformal.rounding import Conversion
from mmaformal.spec import DotAdd

NAN = quiet_nan(fp32)


def product(spec: DotAdd, rho: Conversion, a: Lane, b: Lane) -> FlushedProduct:
    x, y = operand(a, spec.a_format), operand(b, spec.b_format)
    special, exact = classify_product(x, y), multiply(x, y)
    unit = exact.exponent - spec.a_format.fraction_bits - spec.b_format.fraction_bits
    rounded = round_sum(Sum(signed(exact.sign, exact.significand), unit), exact.sign, rho)
    code = select_special(special, encode(rounded, rho), rho, NAN)
    return FlushedProduct(x, y, special, exact, rounded, without_subnormal(code))


def step(
    spec: DotAdd, rho: Conversion, a: Sequence[Lane], b: Sequence[Lane], c: Lane, stages: Stages
) -> GpsStep:
    products = tuple(
        recorded(stages, spec, x, y, product(spec, rho, x, y)) for x, y in zip(a, b, strict=True)
    )
    pair = stages.add(products[0].result, products[1].result, rho, NAN)
    group = stages.code("flush", [pair.result], without_subnormal(pair.result), fp32)
    start = stages.code("flush", [c], without_subnormal(c), fp32)
    addition = stages.add(start, group, rho, NAN)
    result = stages.code("flush", [addition.result], without_subnormal(addition.result), fp32)
    return GpsStep(products, (pair,), group, addition, result)


dot_add = looped(lambda spec, a, b, c, stages: step(spec, spec.parameters_as(Oddsum).rho, a, b, c, stages))
