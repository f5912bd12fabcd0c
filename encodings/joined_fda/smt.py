"""joined_fda, fused dot-add with one sticky bit for all terms, as bit-vector terms.  Specification: semantics §3.

A term loses what lies below the place that alignment shifts to its last one: the bits under a mask that is as long as
the shift.  One bit for all of them goes below the sum's magnitude.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import z3

from mmaformal.encodings.joined_fda import JoinedFda
from mmaformal.encodings.smt.blocks import (
    BitVec,
    Bool,
    ExponentRange,
    Operand,
    Special,
    Term,
    any_of,
    bit,
    canonical_nan,
    exponent_range,
    negate_if,
    pad,
    product_range,
    resize,
)
from mmaformal.encodings.smt.chain import looped
from mmaformal.encodings.smt.stages import Aligned, Code, Stages
from mmaformal.spec import DotAdd


@dataclass(frozen=True)
class JoinedStep:
    """The interfaces between the stages of one step, in order."""

    a: tuple[Operand, ...]  #: decode
    b: tuple[Operand, ...]
    c: Operand
    special: Special  #: classify
    terms: tuple[Term, ...]  #: multiply; c last
    e_max: BitVec  #: align
    sum: Aligned  #: accumulate
    lost: tuple[Bool, ...]
    joined: Aligned
    code: Code  #: normalise & round, encode
    result: BitVec


def _exponents_of(spec: DotAdd, p: JoinedFda) -> ExponentRange:
    """Those of products and c, and of zeros."""
    c = exponent_range(spec.c_format)
    found = product_range(spec.a_format, spec.b_format).union(c.low, c.high)
    return found if p.e_zero is None else found.union(p.e_zero)


def is_lost(x: Term, e_max: BitVec, places: int, F: int) -> Bool:
    """Whether bits of a term lie below the F places that are kept at e_max."""
    significand, excess = pad(x.significand, F - places), max(places - F, 0)
    bits = max(significand.size(), e_max.size()) + 7
    by = resize(e_max - x.exponent, bits) + excess
    below = ~(z3.BitVecVal(-1, bits) << by)
    return resize(significand, bits) & below != 0


def join(total: BitVec, lost: Sequence[Bool]) -> BitVec:
    """The sum with a bit below its magnitude, set where anything was lost."""
    top = total.size() - 1
    sign = z3.Extract(top, top, total)
    magnitude = z3.Concat(negate_if(sign, total), bit(any_of(lost)))
    return negate_if(sign, magnitude)


def step(
    spec: DotAdd, p: JoinedFda, a: Sequence[BitVec], b: Sequence[BitVec], c: BitVec, stages: Stages
) -> JoinedStep:
    """One step over L products."""
    exponents, bias = _exponents_of(spec, p), spec.a_format.bias + spec.b_format.bias
    x = tuple(stages.decode(code, spec.a_format) for code in a)
    y = tuple(stages.decode(code, spec.b_format) for code in b)
    z = stages.decode(c, spec.c_format)
    special = stages.classify(list(zip(x, y, strict=True)), [z])
    products = [stages.multiply(u, v, bias, exponents, p.e_zero) for u, v in zip(x, y, strict=True)]
    terms = (*products, stages.addend(z, spec.c_format.bias, exponents, p.e_zero))
    bits, c_bits = spec.a_format.fraction_bits + spec.b_format.fraction_bits, spec.c_format.fraction_bits
    with_places = [(term, c_bits if k == len(x) else bits) for k, term in enumerate(terms)]
    e_max = stages.largest(terms, exponents)
    total = stages.accumulate(with_places, e_max, p.F, None)
    lost = tuple(is_lost(term, e_max, places, p.F) for term, places in with_places)
    joined = stages.made("join", [*terms, e_max, total], Aligned((), join(total.total, lost)), lost=lost)
    nan = canonical_nan(p.rho.format)
    code = stages.round(joined, e_max, exponents, p.F + 1, p.rho, exponents.low, special, nan)
    return JoinedStep(x, y, z, special, terms, e_max, total, lost, joined, code, code.result)


dot_add = looped(JoinedFda, lambda spec, p, a, b, c, stages: step(spec, p, a, b, c, stages))
