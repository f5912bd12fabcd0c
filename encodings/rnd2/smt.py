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
    Operand,
    Special,
    StickySum,
    Term,
    encode,
    normalise_and_round,
    product_range,
    quiet_nan,
    select_special,
    sign_of_zero,
)
from mmaformal.encodings.smt.chain import looped
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
    summand: BitVec  #: the pair, with the sign that it is added with
    addition: Addition
    result: BitVec
    factors: tuple[tuple[Operand, Operand], ...]  #: decode
    nans: tuple[tuple[Operand | Special, BitVec], ...] = ()  #: which NaN it is: the first one's code


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
    rounded = rounded._replace(
        sign=z3.If(total.total == 0, sign_of_zero([first.sign, second.sign], phi), rounded.sign)
    )
    code = select_special(special, encode(rounded, phi), phi.format, nan)
    pair = stages.round_sum(total, (first, second), special, Code(total.total, rounded, code), phi)
    summand = stages.change_sign(pair.result, fmt) if parameters.negate_pair else pair.result
    addition = stages.add(c, summand, parameters.rho, nan)
    result, taken = addition.result, list[tuple[Operand | Special, BitVec]]()  # in the order of the rule
    if rule.order:
        invalid = stages.constant("nan", default_nan(rule, spec.a_format), spec.a_format)
        product = stages.classify(factors[1:])
        for name in rule.order:
            if name == "c":
                taken += [(factors[1][0], a[1]), (factors[1][1], b[1]), (product, invalid)]
            else:
                taken.append((factors[0][0], a[0]) if name == "a" else (factors[0][1], b[0]))
        taken.append((special, invalid))
        nans = [(flags, code, spec.a_format) for flags, code in taken]
        taken.append((stages.decode(c, fmt), c))
        result = stages.first_nan([*nans, (*taken[-1], fmt)], result, fmt)
    operands, products = tuple(factors), (first, second)
    return Rnd2Step(special, products, total, pair, summand, addition, result, operands, tuple(taken))


def default_nan(rule: NanRule, fmt: Format) -> int:
    """The code of the NaN that an operation gives without one among its operands."""
    return quiet_nan(fmt) | (fmt.sign_mask if rule.default_is_negative else 0)


dot_add = looped(Rnd2, lambda spec, p, a, b, c, stages: step(spec, p, a, b, c, stages))
