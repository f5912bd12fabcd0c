"""rnd2, a pair of products rounded once, then added, executable.  Specification: semantics §11.

`d = c`, then for k = 0, 2 … K-2: the exact sum of two products, rounded with φ to a code of ρ's format, its sign
changed if it is to be, then `d = pair + d`, an IEEE 754 addition rounded with ρ.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from mmaformal.encodings.executable.blocks import (
    Lane,
    Operand,
    Special,
    Sum,
    Term,
    add,
    encode,
    quiet_nan,
    round_sum,
    select_special,
    sign_word,
    sum_sign,
)
from mmaformal.encodings.executable.chain import looped
from mmaformal.encodings.executable.ieee import Addition
from mmaformal.encodings.executable.stages import Code, Stages
from mmaformal.encodings.rnd2 import Rnd2
from mmaformal.formats import Format
from mmaformal.rounding import NanRule
from mmaformal.spec import DotAdd


class Rnd2Step(NamedTuple):
    """A pair of products, and its addition to c."""

    products: tuple[Term, Term]  #: multiply
    total: Sum  #: align, accumulate
    pair: Code  #: normalise & round, encode
    summand: Lane  #: the pair, with the sign that it is added with
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
    rounded = round_sum(total, sum_sign(phi, first.sign, second.sign), phi)
    code = Code(total.total, rounded, select_special(special, encode(rounded, phi), phi, nan))
    pair = stages.made("round_sum", [total, first, second, special], code, rho=phi)
    summand = stages.change_sign(pair.result, fmt) if parameters.negate_pair else pair.result
    addition = stages.add(c, summand, parameters.rho, nan)
    if not rule.order:
        return Rnd2Step((first, second), total, pair, summand, addition, addition.result)
    nans = _nans(spec, rule, factors, special, (a, b, c), stages)
    result = stages.first_nan(nans, addition.result, fmt)
    return Rnd2Step((first, second), total, pair, summand, addition, result)


def _nans(
    spec: DotAdd,
    rule: NanRule,
    factors: Sequence[tuple[Operand, Operand]],
    special: Special,
    codes: tuple[Sequence[Lane], Sequence[Lane], Lane],
    stages: Stages,
) -> list[tuple[Operand | Special, Lane, Format]]:
    """Return what a step's NaN may be, the first of which counts: the fma of product 0 onto product 1, then c."""
    ((u, v), (x, y)), (a, b, c), fmt = factors, codes, spec.a_format
    invalid = stages.constant("nan", c, _default(rule, fmt), fmt)
    of_product = stages.classify([(x, y)])
    operands: dict[str, list[tuple[Operand | Special, Lane, Format]]] = {
        "a": [(u, a[0], fmt)],
        "b": [(v, b[0], fmt)],
        "c": [(x, a[1], fmt), (y, b[1], fmt), (of_product, invalid, fmt)],
    }
    pair = [each for name in rule.order for each in operands[name]]
    last = stages.decode(c, spec.c_format)
    return [*pair, (special, invalid, fmt), (last, c, spec.c_format)]


def _default(rule: NanRule, fmt: Format) -> int:
    """The code of the NaN of an operation without one among its operands."""
    return quiet_nan(fmt) | (1 << fmt.storage_bits - 1 if rule.default_is_negative else 0)


dot_add = looped(lambda spec, a, b, c, stages: step(spec, spec.parameters_as(Rnd2), a, b, c, stages))
