"""rnd2, a pair of products rounded once, then added, executable.  Specification: semantics §11.

`d = c`, then for k = 0, 2 … K-2: the exact sum of two products, rounded with φ to a code of ρ's format, its sign
changed if it is to be, then `d = pair + d`, an IEEE 754 addition rounded with ρ.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from mmaformal.encodings.executable.blocks import (
    Addition,
    Lane,
    Operand,
    Special,
    Sum,
    Term,
    Trace,
    add,
    encode,
    quiet_nan,
    round_sum,
    select_special,
    sign_word,
)
from mmaformal.encodings.executable.chain import chain
from mmaformal.encodings.executable.stages import Code, Stages
from mmaformal.encodings.rnd2 import Rnd2
from mmaformal.rounding import NanRule
from mmaformal.spec import DotAdd


class Rnd2Step(NamedTuple):
    """A pair of products, and its addition to c."""

    products: tuple[Term, Term]  #: multiply
    total: Sum  #: align, accumulate
    pair: Code  #: normalise & round, encode
    summand: Lane  #: which NaN it is, and its sign
    addition: Addition
    result: Lane


def step(
    spec: DotAdd, parameters: Rnd2, a: Sequence[Lane], b: Sequence[Lane], c: Lane, stages: Stages
) -> Rnd2Step:
    """The pair of two products, added to c."""
    phi, rule, fmt = parameters.pair, parameters.nan, spec.d_format
    bits = spec.a_format.fraction_bits + spec.b_format.fraction_bits
    nan = quiet_nan(fmt) + (sign_word(fmt) if rule.default_is_negative else 0)
    factors = [
        (stages.decode(x, spec.a_format), stages.decode(y, spec.b_format)) for x, y in zip(a, b, strict=True)
    ]
    special = stages.classify(factors)
    first, second = (stages.multiply(x, y, parameters.zero_exponent(spec)) for x, y in factors)
    total = add(first, bits, second, bits, parameters.frame(spec))
    stages.made("sticky_sum", [first, second], total, wide=None)
    rounded = round_sum(total, first.sign & second.sign, phi)
    code = Code(total.total, rounded, select_special(special, encode(rounded, phi), phi, nan))
    pair = stages.made("round_sum", [total, first, second, special], code, rho=phi)
    summand = pair.result
    if rule.order:
        summand = stages.first_nan(_nans(spec, rule, factors, a, b, stages), summand, spec.a_format, fmt)
    if parameters.negate_pair:
        summand = stages.negate(summand, fmt)
    addition = stages.add(c, summand, parameters.rho, nan)
    result = addition.result
    if rule.order:
        nans = [(stages.decode(code, fmt), code) for code in (summand, c)]
        result = stages.first_nan(nans, result, fmt, fmt)
    return Rnd2Step((first, second), total, pair, summand, addition, result)


def _nans(
    spec: DotAdd,
    rule: NanRule,
    factors: Sequence[tuple[Operand, Operand]],
    a: Sequence[Lane],
    b: Sequence[Lane],
    stages: Stages,
) -> list[tuple[Operand | Special, Lane]]:
    """What the pair's NaN is the first of: of the fma of product 0 onto product 1."""
    (u, v), (x, y) = factors
    invalid = quiet_nan(spec.a_format) + (sign_word(spec.a_format) if rule.default_is_negative else 0)
    special = stages.classify([(x, y)])
    product = [(x, a[1]), (y, b[1]), (special, stages.constant(a[1], invalid, spec.a_format))]
    operands = {"a": [(u, a[0])], "b": [(v, b[0])], "c": product}
    return [each for name in rule.order for each in operands[name]]


def dot_add(
    spec: DotAdd,
    a: Sequence[Lane],
    b: Sequence[Lane],
    c: Lane,
    scale_a: Sequence[Lane] = (),
    scale_b: Sequence[Lane] = (),
) -> Trace[Rnd2Step]:
    """The trace of `c + Σ a_k·b_k`: K codes a, K codes b, one c; no scales."""
    parameters, stages = spec.parameters, Stages()
    assert isinstance(parameters, Rnd2)
    return chain(spec, lambda k, c: step(spec, parameters, a[k], b[k], c, stages), c, stages)
