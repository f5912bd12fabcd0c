"""gps, group pairwise sum, executable.  Specification: semantics §3; MMA-Sim §IV-B (GPS, Algorithms 2 and 3).

Every operation is IEEE fp32, rounded to nearest even, and a subnormal result becomes zero of the same sign.

1. an a, b or c of magnitude below its format's least normal number becomes +0 (so does -0);
2. products `p_k = a_k·b_k`;
3. each G consecutive products are summed pairwise: `p0+p1`, for G = 4 `(p0+p1)+(p2+p3)`;
4. `d = c`, then `d = d + group`, group after group.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from mmaformal.encodings.executable.blocks import (
    Lane,
    Operand,
    Rounded,
    Special,
    Sum,
    Term,
    Trace,
    classify_product,
    decode,
    encode,
    multiply,
    quiet_nan,
    round_sum,
    select_special,
    signed,
    where,
)
from mmaformal.encodings.executable.chain import chain
from mmaformal.encodings.executable.ieee import Addition
from mmaformal.encodings.executable.stages import Stages
from mmaformal.formats import Format, fp32
from mmaformal.rounding import IEEE_FP32
from mmaformal.spec import DotAdd

RHO, NAN = IEEE_FP32, quiet_nan(fp32)


class FlushedProduct(NamedTuple):
    """The interfaces of one product."""

    a: Operand  #: decode
    b: Operand
    special: Special  #: classify
    exact: Term  #: multiply
    rounded: Rounded  #: normalise & round
    result: Lane  #: encode; flushed


@dataclass(frozen=True)
class GpsStep:
    """The interfaces of one step: a group's products, their sums in order, and the group added to d."""

    products: tuple[FlushedProduct, ...]
    sums: tuple[Addition, ...]  #: results not flushed yet
    group: Lane  #: the group's sum, flushed
    addition: Addition
    result: Lane  #: flushed


def flush_operand(code: Lane, layout_of: Format) -> Operand:
    """A decoded operand with a subnormal or zero made +0."""
    x = decode(code, layout_of.layout)
    small = x.significand < 1 << layout_of.fraction_bits
    return Operand(where(small, 0, x.sign), x.exponent, where(small, 0, x.significand), x.infinite, x.nan)


def flush_input(code: Lane) -> Lane:
    """An fp32 code with a subnormal or zero made +0."""
    return where((code & 0x7F800000) == 0, 0, code)


def flush_result(code: Lane) -> Lane:
    """An fp32 code with a subnormal made zero of the same sign."""
    return where((code & 0x7F800000) == 0, code & 0x80000000, code)


def product(spec: DotAdd, a: Lane, b: Lane) -> FlushedProduct:
    x, y = flush_operand(a, spec.a_format), flush_operand(b, spec.b_format)
    special, exact = classify_product(x, y), multiply(x, y)
    unit = exact.exponent - spec.a_format.fraction_bits - spec.b_format.fraction_bits
    rounded = round_sum(Sum(signed(exact.sign, exact.significand), unit), exact.sign, RHO)
    code = select_special(special, encode(rounded, RHO), RHO, NAN)
    return FlushedProduct(x, y, special, exact, rounded, flush_result(code))


def recorded(stages: Stages, spec: DotAdd, a: Lane, b: Lane, made: FlushedProduct) -> FlushedProduct:
    """The product of two codes, after its stages are recorded: compiled kernels are made of it without them."""
    stages.flushed_operand(a, made.a, spec.a_format)
    stages.flushed_operand(b, made.b, spec.b_format)
    stages.code("product", [made.a, made.b], made.result, fp32)
    return made


def step(spec: DotAdd, a: Sequence[Lane], b: Sequence[Lane], d: Lane, stages: Stages) -> GpsStep:
    products = tuple(recorded(stages, spec, x, y, product(spec, x, y)) for x, y in zip(a, b, strict=True))
    sums: list[Addition] = []
    level = [p.result for p in products]
    while len(level) > 1:
        pairs = [stages.add(x, y, RHO, NAN) for x, y in zip(level[0::2], level[1::2], strict=True)]
        sums += pairs
        level = [stages.code("flush", [each.result], flush_result(each.result), fp32) for each in pairs]
    addition = stages.add(d, level[0], RHO, NAN)
    result = stages.code("flush", [addition.result], flush_result(addition.result), fp32)
    return GpsStep(products, tuple(sums), level[0], addition, result)


def dot_add(
    spec: DotAdd,
    a: Sequence[Lane],
    b: Sequence[Lane],
    c: Lane,
    scale_a: Sequence[Lane] = (),
    scale_b: Sequence[Lane] = (),
) -> Trace[GpsStep]:
    """The trace of `c + Σ a_k·b_k`: K codes a, K codes b, one c; no scales."""
    stages = Stages()
    start = stages.code("flush", [c], flush_input(c), fp32)
    return chain(spec, lambda k, c: step(spec, a[k], b[k], c, stages), start, stages)
