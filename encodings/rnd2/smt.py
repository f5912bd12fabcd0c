"""rnd2, a pair of products rounded once, then added, as bit-vector terms.  Specification: semantics §11.

The pair is added with `Rnd2.frame` fractional bits, the last one sticky, and rounded; the addition is `ieee.add`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import z3

from mmaformal.encodings.rnd2 import Rnd2
from mmaformal.encodings.smt.blocks import (
    BitVec,
    Special,
    StickySum,
    Term,
    Trace,
    encode,
    normalise_and_round,
    product_range,
    quiet_nan,
    select_special,
)
from mmaformal.encodings.smt.chain import chained
from mmaformal.encodings.smt.ieee import Addition
from mmaformal.encodings.smt.stages import Code, Stages
from mmaformal.formats import Format
from mmaformal.rounding import NanRule
from mmaformal.spec import DotAdd


@dataclass(frozen=True)
class Rnd2Step:
    """A pair of products, and its addition to c."""

    special: Special  #: classify
    products: tuple[Term, Term]  #: multiply
    sum: StickySum  #: align, accumulate
    pair: Code  #: normalise & round, encode
    summand: BitVec  #: which NaN the pair is, and its sign
    addition: Addition
    result: BitVec


def step(
    spec: DotAdd, parameters: Rnd2, a: Sequence[BitVec], b: Sequence[BitVec], c: BitVec, stages: Stages
) -> Rnd2Step:
    """The pair of two products, added to c."""
    phi, frame, fmt, rule = parameters.pair, parameters.frame(spec), spec.d_format, parameters.nan
    nan = default_nan(rule, fmt)
    exponents, bias = product_range(spec.a_format, spec.b_format), spec.a_format.bias + spec.b_format.bias
    bits = spec.a_format.fraction_bits + spec.b_format.fraction_bits
    factors = [
        (stages.decode(x, spec.a_format), stages.decode(y, spec.b_format)) for x, y in zip(a, b, strict=True)
    ]
    special = stages.classify(factors)
    first, second = (
        stages.multiply(x, y, bias, exponents, parameters.zero_exponent(spec)) for x, y in factors
    )
    total = stages.sticky_sum(first, bits, second, bits, frame, exponents)
    rounded = normalise_and_round(total.total, total.e_max, exponents, frame, phi, exponents.low)
    rounded = rounded._replace(sign=z3.If(total.total == 0, first.sign & second.sign, rounded.sign))
    code = select_special(special, encode(rounded, phi), phi.format, nan)
    pair = stages.round_sum(total, (first, second), special, Code(total.total, rounded, code), phi)
    summand = pair.result
    if rule.order:
        x, y = factors
        of_product = stages.classify([y])
        invalid = stages.constant(default_nan(rule, spec.a_format), spec.a_format)
        of = {
            "a": [(x[0], a[0])],
            "b": [(x[1], b[0])],
            "c": [(y[0], a[1]), (y[1], b[1]), (of_product, invalid)],
        }
        nans = [each for name in rule.order for each in of[name]]
        summand = stages.first_nan(nans, summand, spec.a_format, fmt)
    if parameters.negate_pair:
        summand = stages.negate(summand, fmt)
    addition = stages.add(c, summand, parameters.rho, nan)
    result = addition.result
    if rule.order:
        both = [(stages.decode(code, fmt), code) for code in (summand, c)]
        result = stages.first_nan(both, result, fmt, fmt)
    return Rnd2Step(special, (first, second), total, pair, summand, addition, result)


def default_nan(rule: NanRule, fmt: Format) -> int:
    """The code of the NaN that an operation gives without one among its operands."""
    return quiet_nan(fmt) | (fmt.sign_mask if rule.default_is_negative else 0)


def dot_add(spec: DotAdd, a: Sequence[BitVec], b: Sequence[BitVec], c: BitVec) -> Trace[Rnd2Step]:
    """The trace of `c + Σ a_k·b_k`: `a` and `b` are K codes each, c one."""
    parameters, stages = spec.parameters, Stages()
    assert isinstance(parameters, Rnd2)
    return chained(spec, lambda k, c: step(spec, parameters, a[k], b[k], c, stages), c, stages)
