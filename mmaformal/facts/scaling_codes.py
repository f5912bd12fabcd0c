"""What doubling does to the sum of two codes: gps and lowered instructions."""

from __future__ import annotations

from collections.abc import Sequence

import z3

from mmaformal.cases.codes import magnitude
from mmaformal.cases.interfaces import AnyStep
from mmaformal.encodings.smt.blocks import any_of
from mmaformal.encodings.smt.ieee import Addition
from mmaformal.formats import fp32
from mmaformal.proof.lemmas import Link
from mmaformal.proof.related_runs import same
from mmaformal.proof.scaling import DoubledRuns, one_up, same_double, well_inside


def addition(
    two: DoubledRuns[AnyStep], x: Addition, y: Addition, given: Sequence[Link], known: Sequence[Link]
) -> Link:
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


def assumed_results(two: DoubledRuns[AnyStep]) -> list[Link]:
    what = "every step's result is zero or above the least normal number"
    fmt = two.spec.d_format
    return [two.pairing.assume(what, Link(well_inside(s.result, fmt), ())) for s in (two.left, two.right)]


def normal_or_special(code: z3.BitVecRef) -> z3.BoolRef:
    """Whether a code is zero, or no subnormal."""
    size = magnitude(code, fp32)
    return z3.Or(size == 0, z3.UGE(size, 1 << fp32.fraction_bits))
