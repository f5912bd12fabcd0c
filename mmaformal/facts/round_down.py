"""Steps of fdrda and gfdrda where nothing is cut off: each stage is exact, and d is ρ of the exact sum.

The stages of one step are the products at their largest exponent (by parity of their index in gfdrda), their sum, cut
at e_max, c cut at e_max, and the sum of both, cut to `sum_bits` and rounded with ρ.  For each it is proved that it is
exact, or is ρ by definition, where the number that enters it has no bit below the last place that it keeps.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import z3

from mmaformal.algorithms import DotAdd, Fdrda, Gfdrda
from mmaformal.cases.inputs import symbolic_inputs
from mmaformal.encodings.smt import fdrda, gfdrda
from mmaformal.encodings.smt.blocks import product_range
from mmaformal.facts.exact_terms import prove_chain, prove_inputs
from mmaformal.facts.fused_steps import one_step, prove_rounded
from mmaformal.proof.definitions import at_least, fit
from mmaformal.proof.fused import Summand, prove_alignment, prove_largest, prove_sum
from mmaformal.proof.proving import Proving
from mmaformal.proof.sticky_sums import magnitude_of


def no_bit_below(m: z3.BitVecRef, places: z3.BitVecRef) -> z3.BoolRef:
    """Whether the lowest `places` bits of m are 0; `places` in two's complement."""
    wide = max(m.size(), places.size())
    low = fit(m, wide) & ((z3.BitVecVal(1, wide) << fit(places, wide)) - 1)
    return z3.Or(places <= 0, z3.If(places >= m.size(), m == 0, low == 0))


def prove_cut(
    proving: Proving,
    what: str,
    before: tuple[z3.BitVecRef, z3.BitVecRef],
    after: tuple[z3.BitVecRef, z3.BitVecRef],
    premises: Sequence[z3.BoolRef],
    cut: Sequence[z3.ExprRef],
) -> None:
    """That a number (two's complement, exponent of its last place) stays the same when cut to another last place, where
    it has no bit below that."""
    (x, t), (y, u) = before, after
    (x_negative, m), (y_negative, n) = magnitude_of(x), magnitude_of(y)
    same = z3.And(at_least(m, t, n, u), at_least(n, u, m, t), z3.Or(m == 0, x_negative == y_negative))
    proving.claim(
        f"{what} cut",
        f"{what} without a bit below the last place kept is cut exactly",
        z3.Implies(no_bit_below(m, u - t), same),
        premises,
        cut,
    )


def prove_round_down(proving: Proving, spec: DotAdd) -> None:
    """Raises NotProvedError."""
    p, inputs = spec.parameters, symbolic_inputs(one_step(spec))
    assert isinstance(p, Fdrda)
    own, wide_range = product_range(spec.a_format, spec.b_format), fdrda.exponents_of(spec)
    grouped = isinstance(p, Gfdrda)
    step: Any = (gfdrda if grouped else fdrda).step(spec, p, inputs.a, inputs.b, inputs.c)
    prove_inputs(proving, one_step(spec), inputs, step)
    prove_chain(proving, spec)
    f, M = fdrda.fraction_bits(spec), spec.c_format.fraction_bits
    bits = max(wide_range.bits, own.bits, abs(wide_range.low).bit_length(), p.dot_bits.bit_length()) + 5

    def place(e: z3.BitVecRef, low: int, fraction_bits: int) -> z3.BitVecRef:
        return fit(e, bits) + (low - fraction_bits)

    parities = [range(parity, p.L, 2) for parity in range(2)] if grouped else [range(p.L)]
    tops = step.e_groups if grouped else (step.e_products,)
    for members, e_top in zip(parities, tops, strict=True):
        terms = [step.products[k] for k in members]
        at_most, _ = prove_largest(proving, "exponents", e_top, [term.exponent for term in terms])
        for k, term, below in zip(members, terms, at_most, strict=True):
            factors = (step.a[k].significand, step.b[k].significand)
            prove_alignment(proving, Summand("product", term, step.aligned[k], f, factors), e_top, p.F, below)
    prove_ranges(proving, p, step)
    if grouped:
        _groups(proving, p, step, place, own.low)
    e_dot, e_max, c = step.e_dot, step.e_max, step.addend
    bound = fdrda.dot_bound(p, p.L)
    small = within(step.dot, bound)
    larger = proving.claim(
        "e_max",
        "e_max is the larger of the exponents of the dot product and of c",
        z3.And(z3.ULE(e_dot, e_max), z3.ULE(c.exponent, e_max)),
        (),
        [e_dot, c.exponent],
    )
    dot_place, low = place(e_dot, wide_range.low, p.F), wide_range.low
    kept = place(e_max, low, p.dot_bits)
    cut = [e_dot, e_max, c.exponent]
    prove_cut(
        proving,
        "the dot product",
        (step.dot, dot_place),
        (step.dot_cut, kept),
        [larger, small],
        [*cut, step.dot],
    )
    signed_c = z3.If(c.sign == 1, -fit(c.significand, M + 3), fit(c.significand, M + 3))
    c_place, c_kept = place(c.exponent, low, M), place(e_max, low, p.F)
    near = [z3.ULE(e_max - c.exponent, p.c_reach)] if isinstance(p, Gfdrda) else []
    prove_cut(
        proving,
        "c",
        (signed_c, c_place),
        (step.c_cut, c_kept),
        [larger, *near],
        [*cut, c.significand, c.sign],
    )
    _sum_with_c(proving, p, step, bound)
    _round(proving, spec, p, step, kept, larger, bound)


def within(x: z3.BitVecRef, bound: int) -> z3.BoolRef:
    wide = z3.SignExt(2, x)  # a bound may be one more than x can hold
    return z3.And(wide <= bound, wide >= -bound)


def prove_ranges(proving: Proving, p: Fdrda, step: Any) -> None:
    """No sum of products wraps, and how large they, what is left of them, and c are at most."""
    grouped = isinstance(p, Gfdrda)
    parities = [range(parity, p.L, 2) for parity in range(2)] if grouped else [range(p.L)]
    for members, total in zip(parities, step.groups if grouped else (step.dot,), strict=True):
        aligned = [step.aligned[k] for k in members]
        bounds = [(1 << magnitude.size()) - 1 for magnitude in aligned]
        small = [z3.ULE(magnitude, bound) for magnitude, bound in zip(aligned, bounds, strict=True)]
        prove_sum(proving, total, [(step.products[k].sign, step.aligned[k]) for k in members], bounds, small)
    bound = fdrda.dot_bound(p, p.L)
    if grouped:
        cuts = []
        for members, group, cut, e in zip(parities, step.groups, step.groups_cut, step.e_groups, strict=True):
            own = fdrda.dot_bound(p, len(members))
            text = "a group's sum is no larger when cut"
            claim = within(cut, own)
            cuts.append(
                proving.claim(
                    "range of a group", text, claim, [within(group, own)], [group, e, step.e_products]
                )
            )
        text = "so the sum of both groups is at most that of their bounds"
        proving.claim("range of both", text, within(step.dot, bound), cuts, list(step.groups_cut))
    reach = bound << (p.dot_bits - p.F)
    proving.claim(
        "range of the dot product",
        "the dot product is no larger when cut",
        within(step.dot_cut, reach),
        [within(step.dot, bound)],
        [step.dot, step.e_dot, step.e_max],
    )
    c = step.addend
    proving.claim(
        "range of c",
        "c is below 2",
        within(step.c_cut, 1 << (p.F + 1)),
        (),
        [c.significand, c.exponent, c.sign, step.e_max],
    )


def _groups(proving: Proving, p: Gfdrda | Fdrda, step: Any, place: Any, low: int) -> None:
    """gfdrda: the sums of both groups at the larger exponent, and their sum."""
    at_most, _ = prove_largest(proving, "exponents of groups", step.e_products, step.e_groups)
    for group, e, cut, below in zip(step.groups, step.e_groups, step.groups_cut, at_most, strict=True):
        top = group.size() - 1
        prove_cut(
            proving,
            "a group's sum",
            (group, place(e, low, p.F)),
            (cut, place(step.e_products, low, p.F)),
            [below, group != 1 << top],
            [group, e, step.e_products],
        )
    wide = step.dot.size() + 2
    both = [z3.SignExt(wide - cut.size(), cut) for cut in step.groups_cut]
    least = [cut != 1 << (cut.size() - 1) for cut in step.groups_cut]
    exact = z3.SignExt(2, step.dot) == both[0] + both[1]
    proving.claim(
        "sum of groups", "the sum of both groups does not wrap", exact, least, list(step.groups_cut)
    )


def _sum_with_c(proving: Proving, p: Fdrda, step: Any, bound: int) -> None:
    wide = step.total.size() + 2
    dot, c = (z3.SignExt(wide - x.size(), x) for x in (step.dot_cut, step.c_cut))
    reach = bound << (p.dot_bits - p.F)
    small = [step.dot_cut <= reach, step.dot_cut >= -reach, c <= 1 << (p.F + 1), c >= -(1 << (p.F + 1))]
    exact = z3.SignExt(2, step.total) == dot + (c << (p.dot_bits - p.F))
    text = "the sum of the dot product and c does not wrap"
    proving.claim("sum with c", text, exact, small, [step.dot_cut, step.c_cut])


def _round(
    proving: Proving, spec: DotAdd, p: Fdrda, step: Any, unit: z3.BitVecRef, larger: z3.BoolRef, bound: int
) -> None:
    """ρ of a sum that `sum_bits` hold: its set bits are at most that many places apart."""
    _, m = magnitude_of(step.total)
    ex = fdrda.exponents_of(spec)
    span = m.size() if p.sum_bits is None else p.sum_bits + 1
    short = [
        z3.And(z3.ULT(m, 1 << top), z3.Extract(top - span - 1, 0, m) == 0)
        for top in range(span + 1, m.size())
    ]
    few = z3.Or(z3.ULT(m, 1 << span), *short) if span < m.size() else z3.BoolVal(True)
    if p.sum_bits is not None:  # and none below what is kept of a subnormal number
        few = z3.And(few, no_bit_below(m, spec.d_format.min_exponent - p.sum_bits - unit))
    lowest = proving.claim(
        "c's exponent",
        "c's exponent is at least the least",
        z3.And(z3.UGE(step.addend.exponent, ex.constant(spec.c_format.min_exponent))),
        (),
        [step.c.significand],
    )
    premise = proving.claim(
        "least e_max",
        "so e_max is",
        z3.UGE(step.e_max, ex.constant(spec.c_format.min_exponent)),
        [lowest, larger],
        [step.e_max, step.addend.exponent, step.e_dot],
    )
    highest = z3.ULE(step.e_max, ex.constant(ex.high))
    proving.claim(
        "e_max in range",
        "e_max is in its range",
        highest,
        (),
        [s.significand for s in (*step.a, *step.b, step.c)],
    )
    reach = (bound + (1 << (p.F + 1))) << (p.dot_bits - p.F)
    prove_rounded(
        proving,
        step.result,
        step.total,
        unit,
        p.rho,
        step.special,
        [premise, highest, few],
        [step.e_max],
        reach,
    )
