"""What doubling a and c does to each step of a chain, of every algorithm (`proof/scaling`); here, gps and lowered."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import z3

from mmaformal.algorithms import DotAdd
from mmaformal.cases.relations import magnitude
from mmaformal.encodings.smt.blocks import any_of
from mmaformal.encodings.smt.gps import flush
from mmaformal.encodings.smt.ieee import Addition
from mmaformal.facts.scaling_fused import of_fda, of_fdrda
from mmaformal.facts.scaling_sums import of_efda, of_sfma
from mmaformal.formats import fp32
from mmaformal.proof.lemmas import ArgumentError, Link
from mmaformal.proof.related_runs import Pairing, operand_codes, same
from mmaformal.proof.scaling import Two, one_up, same_double, well_inside

# ---- sums of two codes: gps, lowered -----------------------------------------------------------------------------


def _addition(two: Two, x: Addition, y: Addition, given: Sequence[Link], known: Sequence[Link]) -> Link:
    """That the sum of two codes doubles, from those of the codes, and what is known of the sums' ranges."""
    kept, changed, claims = [], [], []
    for name in ("big", "small"):
        u, v = getattr(x, name), getattr(y, name)
        kept += [u.sign, u.field, u.significand, v.field]
        changed += [(v.sign, u.sign), (v.significand, u.significand)]
        claims.append(z3.Or(one_up(u.field, v.field), u.significand == 0))
    claims += [v == u for v, u in changed]
    for each in (x, y):
        claims.append(z3.ULE(each.small.field, each.big.field))
    claims.append(z3.Implies(x.big.significand == 0, x.small.significand == 0))
    operands = Link(z3.And(claims), tuple(kept), tuple(changed))
    text = "sorted by magnitude, exponents go up by one, unless they are of zeros"
    two.derive("decode", text, operands, given)
    flags = [*x.special, *y.special]
    none = Link(z3.Not(any_of(flags)), tuple(flags))
    two.derive("classify", "the sum of finite numbers is of no special value", none, given)
    zero = z3.Implies(x.big.significand == 0, x.total == 0)
    total = Link(z3.And(y.total == x.total, zero), (x.total, x.big.significand), ((y.total, x.total),))
    two.derive("accumulate", "aligned terms are the same, and so are their sums", total, [operands])
    sign = same(x.zero_sign, y.zero_sign)
    two.derive("accumulate", "the sign of a sum that is zero is the same", sign, [operands])
    field = Link(
        z3.Or(one_up(x.big.field, y.big.field), x.big.significand == 0),
        (x.big.sign, x.big.field, x.big.significand, y.big.field),
        ((y.big.sign, x.big.sign),),
    )
    field = Link(z3.And(field.claim, y.big.sign == x.big.sign), field.free, field.defined)
    two.derive("decode", "the larger exponent goes up by one, unless all is zero", field, [operands])
    result = same_double(x.result, y.result, two.spec.d_format)
    text = "the same sum at twice the unit is twice the number"
    return two.derive("round", text, result, [total, field, none, sign, *known])


def _between(x: z3.BitVecRef, low: int, high: int, free: bool = True) -> Link:
    """That x is zero or 2^low ≤ |x| ≤ 2^high; a code of fp32."""
    if low <= fp32.min_exponent or high >= fp32.max_exponent:
        raise ArgumentError("products or their sums may leave the range of normal numbers")
    size = magnitude(x, fp32)
    bounds = [(e + fp32.bias) << fp32.fraction_bits for e in (low, high)]
    claim = z3.Or(size == 0, z3.And(z3.UGE(size, bounds[0]), z3.ULE(size, bounds[1])))
    return Link(claim, (x,) if free else ())


def _gps(two: Two) -> Link:
    """Products and sums of them are far from subnormal numbers and from infinity: products are zero or at least 2^m,
    so they are multiples of 2^(m - 23), and so is their sum; and so on.  What is rounded there doubles too."""
    spec, left, right = two.spec, two.left, two.right
    low = spec.a_format.min_exponent + spec.b_format.min_exponent
    high = spec.a_format.max_exponent + spec.b_format.max_exponent + 3
    level: list[tuple[Link, Link]] = []  # that a code doubles, and its bounds
    for k, (x, y) in enumerate(zip(left.products, right.products, strict=True)):
        factor, field = two.factors(k)
        operands = left.a[k], right.a[k], left.b[k]
        codes = operand_codes(*operands)
        flags = [flag for z in operands for flag in (z.nan, z.infinite)]
        finite = Link(z3.Not(any_of(flags)), tuple(flags))
        assumed = [two.assumed[code.get_id()] for code in codes]
        two.derive("decode", "factors are finite", finite, assumed, codes)
        b, given = left.b[k], [factor, field, finite]
        code, bounds = same_double(x, y, fp32), _between(x, low, high)
        two.derive("multiply", "a product doubles", code, [*given], [b.sign, b.significand])
        text = "a product is zero or within bounds"
        two.derive("multiply", text, bounds, given, [b.sign, b.significand])
        level.append((code, bounds))
    sums = list(zip(left.sums, right.sums, strict=True))
    while len(level) > 1:
        low, high = low - fp32.fraction_bits, high + 1
        pairs = []
        for i in range(0, len(level), 2):
            u, v = sums.pop(0)
            (first, b0), (second, b1) = level[i : i + 2]
            bounds = _between(u.result, low, high)
            two.derive("accumulate", "a sum is zero or within bounds", bounds, [b0, b1])
            given = [first, second, b0, b1]
            text = "a sum of doubles is zero or within bounds"
            two.derive("accumulate", text, _between(v.result, low, high + 1), given)
            known = [_between(u.result, low, high, free=False), _between(v.result, low, high + 1, free=False)]
            code = _addition(two, u, v, given, known)
            x, y = (flush(z.result, keep_sign=True) for z in (u, v))
            flushed = same_double(x, y, fp32), _between(x, low, high)
            two.derive("encode", "flushed, it is the same", flushed[0], [code, bounds])
            two.derive("encode", "flushed, it is the same", flushed[1], [bounds])
            pairs.append(flushed)
        level = pairs
    ((group, bounds),) = level
    known = _assumed_results(two)
    for each, sides in ((left, [two.c, bounds]), (right, [two.c, bounds, group])):
        result = each.addition.result
        link = Link(normal_or_special(result), ())
        text = "the sum of a group and c is no subnormal"
        known.append(two.derive("accumulate", text, link, sides))
    sum_ = _addition(two, left.addition, right.addition, [two.c, group, bounds], known)
    two.derive("encode", "flushed, it is the same", two.result, [sum_])
    return two.result


def normal_or_special(code: z3.BitVecRef) -> z3.BoolRef:
    """Whether a code is zero, or no subnormal."""
    size = magnitude(code, fp32)
    return z3.Or(size == 0, z3.UGE(size, 1 << fp32.fraction_bits))


def _assumed_results(two: Two) -> list[Link]:
    what = "every step's result is zero or above the least normal number"
    fmt = two.spec.d_format
    return [two.pairing.assume(what, Link(well_inside(s.result, fmt), ())) for s in (two.left, two.right)]


def _lowered(two: Two) -> Link:
    left, right, spec = two.left, two.right, two.spec
    inner = spec.parameters.inner_dot_add(spec)  # type: ignore[attr-defined]
    zero = z3.BitVecVal(0, spec.d_format.storage_bits)
    start = two.derive("inputs", "the inner steps start from +0", same_double(zero, zero, spec.d_format))
    dot = chain(two.pairing, inner, (left.inner, right.inner), start, two.assumed)
    return _addition(two, left.addition, right.addition, [dot, two.c], _assumed_results(two))


_STEPS: dict[str, Callable[[Two], Link]] = {
    "fda": of_fda,
    "fdrda": of_fdrda,
    "gfdrda": of_fdrda,
    "sfma": of_sfma,
    "efda": of_efda,
    "gps": _gps,
    "lowered": _lowered,
}


def chain(
    pairing: Pairing,
    spec: DotAdd,
    steps: tuple[Sequence[Any], Sequence[Any]],
    c: Link,
    assumed: dict[int, Link],
) -> Link:
    """From the link of c, step by step, to that of d; `assumed`: what is known of a, b and scales, by their codes."""
    if spec.parameters.algorithm not in _STEPS:
        raise ArgumentError(f"no argument for {spec.parameters.algorithm}")
    for left, right in zip(*steps, strict=True):
        c = _STEPS[spec.parameters.algorithm](Two(pairing, spec, left, right, c, assumed))
    return c
