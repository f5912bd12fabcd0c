"""Exactness of a step of fdrda and gfdrda: where no cut takes anything off, what is rounded is the exact sum.

The stages are those of `bounds`, each in a fixed point that holds its exact numbers: products aligned
to the largest exponent of their group; gfdrda's sums of groups cut at the larger exponent; their sum cut at e_max, and
c too; and the sum of both, cut below its own leading bit.  The condition is that at each cut the bits below the last
place kept are 0.  Then each stage is the exact one, and d is ρ of the last, by definition.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import z3

from mmaformal.cases.inputs import Codes, symbolic_inputs
from mmaformal.encodings.fdrda import Fdrda
from mmaformal.encodings.fdrda import smt as fdrda
from mmaformal.encodings.fdrda.proofs.bounds import (
    Frame,
    Sum,
    frame_of,
    prove_e_dot,
    prove_last_cut,
    rounded_down,
    unit_of,
)
from mmaformal.encodings.gfdrda import smt as gfdrda
from mmaformal.facts.exact_terms import prove_inputs
from mmaformal.facts.exactness import (
    Exact,
    Number,
    Roundings,
    addend,
    claims_of,
    has_no_bit_below,
    no_bit_below,
    prove_kept,
    prove_number,
    roundings_of_steps,
    total,
)
from mmaformal.formats import fp32
from mmaformal.proof.composition import (
    Composing,
    Placed,
    place,
    prove_accumulated,
    scaled,
    total_of,
    wide,
    within,
)
from mmaformal.proof.fused import prove_largest
from mmaformal.spec import DotAdd


@dataclass(frozen=True)
class Stage:
    """A stage's sum as an integer of a fixed point, and the exact one."""

    total: z3.BitVecRef
    value: z3.BitVecRef
    exact: z3.BitVecRef
    places: int
    condition: z3.BoolRef  #: of all cuts so far
    same: z3.BoolRef  #: claimed: where it holds, both are the same
    small: z3.BoolRef  #: claimed: the range of the sum


# ---- the numbers -----------------------------------------------------------------------------------------------------


def _terms(x: Frame, g: int) -> list[Placed]:
    members, e_top, _ = x.groups[g]
    lift = x.p.F - fdrda.fraction_bits(x.spec)
    return [
        place(
            "product",
            x.step.products[k].sign,
            x.step.products[k].significand,
            below=e_top - x.step.products[k].exponent,
            aligned=x.step.aligned[k],
            places=x.product_places,
            bits=x.bits,
            lift=lift,
        )
        for k in members
    ]


def _addend(x: Frame) -> Placed:
    c, M = x.step.addend, x.spec.c_format.fraction_bits
    below = x.step.e_max - c.exponent
    return place(
        "c",
        c.sign,
        significand=c.significand,
        below=below,
        aligned=c.significand,
        places=x.all_places,
        bits=x.bits,
        lift=x.p.F - M,
    )


def _exact_sums(x: Frame) -> tuple[list[z3.BitVecRef], z3.BitVecRef, z3.BitVecRef]:
    """The exact sums of groups, each in units of 2^(e_group − F); gfdrda's in units of 2^(e_dot − F), and so their sum;
    that sum in units of 2^(e_max − F)."""
    groups = [total_of([term.signed_exact for term in _terms(x, g)]) for g in range(len(x.groups))]
    raised, step = groups, x.step
    if isinstance(step, gfdrda.GfdrdaStep):
        pairs = zip(groups, step.e_groups, strict=True)
        raised = [scaled(exact, ~(step.e_products - e)) for exact, e in pairs]
    dot = total_of(raised)
    return raised, dot, scaled(dot, ~(step.e_max - step.e_dot))


def condition(spec: DotAdd) -> z3.BoolRef:
    """That no cut of a step takes anything off."""
    x = frame_of(spec)
    raised, _, dot = _exact_sums(x)
    parts = [no_bit_below(term.exact, term.places) for g in range(len(x.groups)) for term in _terms(x, g)]
    if x.p.groups == 2:
        parts += [no_bit_below(exact, x.dot_places) for exact in raised]
    c = _addend(x)
    parts += [no_bit_below(dot, x.all_places - (x.p.dot_bits - x.p.F)), no_bit_below(c.exact, c.places)]
    return z3.And([*parts, rounded_down(x) == x.step.total])


# ---- stages ----------------------------------------------------------------------------------------------------------


def prove_round_down(proving: Composing, spec: DotAdd) -> Exact:
    """Raises NotProvedError."""
    x = frame_of(spec)
    step = x.step
    inputs = symbolic_inputs(x.spec)
    ordinary, terms = claims_of(proving, lambda: prove_inputs(proving, x.spec, inputs, step))
    none = z3.Not(z3.Or(*step.special))
    raised, exact_dot, exact_raised = _exact_sums(x)
    groups = [_group(proving, x, g) for g in range(len(x.groups))]
    dot = _both_groups(proving, x, groups, raised, exact_dot) if x.p.groups == 2 else groups[0]
    larger = proving.claim(
        "e_max",
        "e_max is the larger of the exponents of the dot product and of c",
        z3.And(
            z3.ULE(step.e_dot, step.e_max),
            z3.ULE(step.addend.exponent, step.e_max),
            z3.Or(step.e_dot == step.e_max, step.addend.exponent == step.e_max),
        ),
    )
    kept = _at_e_max(proving, x, larger, dot, exact_raised)
    c = _c(proving, x, larger)
    as_sum = Sum(
        kept.total,
        kept.value,
        exact=kept.exact,
        bounded=kept.same,
        small=dot.small,
        most=0,
        places=kept.places,
    )
    before = Sum(
        dot.total, dot.value, exact=dot.exact, bounded=dot.same, small=dot.small, most=0, places=dot.places
    )
    rounded, (S_value, value, _, _) = prove_last_cut(proving, x, none, larger, before, as_sum)
    same = _together(proving, x, kept, c, S_value, value)
    S = rounded_down(x)
    number = prove_number(
        proving, step.result, total=S, t=unit_of(x), rho=x.p.rho, rounded=rounded, none=none
    )
    exponent = prove_e_dot(proving, x)
    rho = x.p.rho
    text = (
        f"in each step d = {rho}(S), and S = c + Σ a·b where products are below 2^128 and no cut (of products, of their"
        f" sums, of c, of the sum of all) takes anything off; if S is a number of {rho}'s, d = S"
    )
    conclusion = z3.And(terms, exponent, same, number)
    return Exact(ordinary, same.arg(0), conclusion, (ordinary, none), text)


def _group(proving: Composing, x: Frame, g: int) -> Stage:
    """The sum of a group's products, in units of 2^(e_group − F)."""
    members, e_top, total = x.groups[g]
    products = [x.step.products[k] for k in members]
    at_most, _ = prove_largest(proving, "exponents", e_top, [product.exponent for product in products])
    terms = _terms(x, g)
    kept = [
        prove_kept(proving, term, [below])
        for term, product, below in zip(terms, products, at_most, strict=True)
    ]
    linked, small = prove_accumulated(proving, terms, total, [(1 << t.aligned.size()) - 1 for t in terms])
    exact = total_of([term.signed_exact for term in terms])
    value = wide(total, x.bits) << x.product_places
    whole = z3.And([claim.arg(0) for claim in kept])
    same = z3.Implies(whole, value == exact)
    proving.claim("exact group", "so a group's sum is the exact one", same, [linked, *kept])
    return Stage(total, value, exact=exact, places=x.product_places, condition=whole, same=same, small=small)


def _cut(
    proving: Composing,
    what: str,
    before: Stage,
    after: tuple[z3.BitVecRef, int],
    exact: z3.BitVecRef,
    distance: z3.BitVecRef,
    premises: Sequence[z3.BoolRef],
    places: int,
) -> tuple[z3.BoolRef, z3.BoolRef]:
    """(condition, claimed under it): what is kept of a sum, raised to an exponent `distance` above its own and cut
    `places` above the fixed point's last place, is the exact sum raised, `exact`."""
    value, (kept, _) = scaled(before.value, ~distance), after
    raised = z3.Implies(before.condition, value == exact)
    text = f"{what} is the exact one at the larger exponent, too"
    proving.claim(f"{what} raised", text, raised, [before.same])
    whole = z3.Implies(no_bit_below(value, places), kept == value)
    text = f"{what} without a bit below the last place kept is cut exactly"
    proving.claim(f"{what} cut", text, whole, [*premises, before.small])
    condition = z3.And(before.condition, no_bit_below(exact, places))
    same = z3.Implies(condition, kept == exact)
    return condition, proving.claim(f"exact {what}", f"so {what} is exact", same, [raised, whole])


def _both_groups(
    proving: Composing,
    x: Frame,
    groups: Sequence[Stage],
    raised: Sequence[z3.BitVecRef],
    exact_dot: z3.BitVecRef,
) -> Stage:
    """gfdrda: the sums of both groups in units of 2^(e_dot − F), cut there, and their sum."""
    step, places, bits = x.step, x.dot_places, x.bits
    assert isinstance(step, gfdrda.GfdrdaStep)
    at_most, _ = prove_largest(proving, "exponents of groups", step.e_products, step.e_groups)
    kept, conditions, facts, small = [], [], [], []
    bounds = [fdrda.dot_bound(x.p, len(members)) for members, _, _ in x.groups]
    for g, (e, cut, below) in enumerate(zip(step.e_groups, step.groups_cut, at_most, strict=True)):
        before, after = groups[g], wide(cut, bits) << places
        condition, same = _cut(
            proving,
            "a group's sum",
            before,
            after=(after, places),
            exact=raised[g],
            distance=step.e_products - e,
            premises=[below],
            places=places,
        )
        text = "a group's sum is no larger when cut"
        own = within(cut, bounds[g])
        small.append(proving.claim("range of a cut group", text, own, [before.small]))
        kept.append(after)
        conditions.append(condition)
        facts.append(same)
    value, reach = wide(step.dot, bits) << places, within(step.dot, sum(bounds))
    text = "the sum of both groups does not wrap"
    claim = z3.And(value == total_of(kept), reach)
    added = proving.claim("sum of groups", text, claim, small)
    both = z3.And(conditions)
    same = z3.Implies(both, value == exact_dot)
    proving.claim("exact dot product", "so the dot product is exact", same, [added, *facts])
    return Stage(step.dot, value, exact=exact_dot, places=places, condition=both, same=same, small=reach)


def _at_e_max(proving: Composing, x: Frame, larger: z3.BoolRef, dot: Stage, exact: z3.BitVecRef) -> Stage:
    """The dot product in units of 2^(e_max − F), cut there."""
    step, places = x.step, x.all_places - (x.p.dot_bits - x.p.F)
    kept = wide(step.dot_cut, x.bits) << places
    condition, same = _cut(
        proving,
        "the dot product",
        dot,
        after=(kept, places),
        exact=exact,
        distance=step.e_max - step.e_dot,
        premises=[larger],
        places=places,
    )
    return Stage(
        step.dot_cut, kept, exact=exact, places=places, condition=condition, same=same, small=dot.small
    )


def _c(proving: Composing, x: Frame, larger: z3.BoolRef) -> z3.BoolRef:
    """That c is kept where it has no bit below the unit."""
    c, placed = x.step.addend, _addend(x)
    kept = wide(x.step.c_cut, x.bits) << placed.places
    claim = z3.Implies(no_bit_below(placed.exact, placed.places), kept == placed.signed_exact)
    text = "c without a bit below the last place kept is cut exactly"
    least = z3.UGE(c.exponent, x.all.constant(x.spec.c_format.min_exponent))
    proving.claim("c's exponent", "c's exponent is at least the least", least)
    return proving.claim("c cut", text, claim, [larger])


def _together(
    proving: Composing,
    x: Frame,
    kept: Stage,
    c: z3.BoolRef,
    S_value: z3.BitVecRef,
    value: z3.BitVecRef,
) -> z3.BoolRef:
    """That where no cut takes anything off, what is rounded is the exact sum."""
    step, S = x.step, rounded_down(x)
    whole, same = step.total == S, z3.Implies(step.total == S, S_value == value)
    text = "a sum without a bit below the last place kept is rounded as it is"
    proving.claim("last cut", text, same)
    c_kept, c_exact = c.arg(1).children()
    condition = z3.And(kept.condition, c.arg(0), whole)
    exact = kept.exact + c_exact
    added = value == kept.value + c_kept
    claim = z3.Implies(condition, S_value == exact)
    text = "so what is rounded is the exact sum"
    return proving.claim("exact sum", text, claim, [kept.same, c, same, added])


# ---- on codes --------------------------------------------------------------------------------------------------------


def on_codes(spec: DotAdd, codes: Codes) -> Roundings:
    p = spec.parameters
    assert isinstance(p, Fdrda)
    return roundings_of_steps(spec, codes, lambda _, terms, c: _loses_nothing(p, terms, c))


def _loses_nothing(p: Fdrda, terms: Sequence[Number], c: Number) -> bool:
    """Whether no term loses a bit where it is aligned, nor the sum where it is cut to `sum_bits`."""
    groups = [[terms[k] for k in members] for members in p.members()]
    e_dot = max(e for _, e in terms)
    e_max = max(e_dot, c[1])
    dot, everything = total(terms), total([*terms, c])
    if p.reach is not None and c[0] and c[1] < e_max - p.reach:
        return False
    top = addend(everything, fp32)[1]
    return (
        # What counts as infinite is told by the exponent, also of a product of subnormals, which may be far smaller.
        all(e + (abs(x) >= Fraction(2) ** (e + 1)) <= fp32.max_exponent for x, e in terms if x)
        and all(has_no_bit_below(x, max(e for _, e in group) - p.F) for group in groups for x, _ in group)
        and all(has_no_bit_below(total(group), e_dot - p.F) for group in groups)
        and has_no_bit_below(dot, e_max - p.dot_bits)
        and has_no_bit_below(c[0], e_max - p.F)
        and (p.sum_bits is None or has_no_bit_below(everything, top - p.sum_bits))
    )
