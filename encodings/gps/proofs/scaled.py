"""What doubling a and c does to a step of gps."""

from __future__ import annotations

import z3

from mmaformal.cases.codes import magnitude
from mmaformal.encodings.gps import smt as gps
from mmaformal.encodings.gps.smt import flush
from mmaformal.encodings.smt.blocks import any_of
from mmaformal.facts.scaling_codes import assumed_results, normal_or_special
from mmaformal.formats import fp32
from mmaformal.proof.lemmas import ArgumentError, Link
from mmaformal.proof.related_runs import operand_codes
from mmaformal.proof.scaling import DoubledRuns, addition, same_double


def derive(two: DoubledRuns[gps.GpsStep]) -> Link:
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
            code = addition(two.derive, fp32, u, v, given, known)
            x, y = (flush(z.result, keep_sign=True) for z in (u, v))
            flushed = same_double(x, y, fp32), _between(x, low, high)
            two.derive("encode", "flushed, it is the same", flushed[0], [code, bounds])
            two.derive("encode", "flushed, it is the same", flushed[1], [bounds])
            pairs.append(flushed)
        level = pairs
    ((group, bounds),) = level
    known = assumed_results(two)
    for each, sides in ((left, [two.c, bounds]), (right, [two.c, bounds, group])):
        result = each.addition.result
        link = Link(normal_or_special(result), ())
        text = "the sum of a group and c is no subnormal"
        known.append(two.derive("accumulate", text, link, sides))
    sum_ = addition(two.derive, fp32, left.addition, right.addition, [two.c, group, bounds], known)
    two.derive("encode", "flushed, it is the same", two.result, [sum_])
    return two.result


def _between(x: z3.BitVecRef, low: int, high: int, free: bool = True) -> Link:
    """That x is zero or 2^low ≤ |x| ≤ 2^high; a code of fp32."""
    if low <= fp32.min_exponent or high >= fp32.max_exponent:
        raise ArgumentError("products or their sums may leave the range of normal numbers")
    size = magnitude(x, fp32)
    bounds = [(e + fp32.bias) << fp32.fraction_bits for e in (low, high)]
    claim = z3.Or(size == 0, z3.And(z3.UGE(size, bounds[0]), z3.ULE(size, bounds[1])))
    return Link(claim, (x,) if free else ())
