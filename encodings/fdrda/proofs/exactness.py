"""Exactness of a step of fdrda and gfdrda: where no cut takes anything off, what is rounded is the exact sum.

The stages are those of `bounds`, each in a fixed point that holds its exact numbers: products aligned
to the largest exponent of their group; gfdrda's sums of groups cut at the larger exponent; their sum cut at e_max, and
c too; and the sum of both, cut below its own leading bit.  The condition is that at each cut the bits below the last
place kept are 0.  Then each stage is the exact one, and d is ρ of the last, by definition.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import z3

from mmaformal.cases.inputs import symbolic_inputs
from mmaformal.encodings.fdrda.proofs.bounds import (
    StageSum,
    StepFrame,
    exponent_of_unit,
    prove_e_dot,
    prove_group,
    prove_larger,
    prove_last_cut,
    prove_sum_of_groups,
    rounded_down,
    step_frame,
)
from mmaformal.encodings.gfdrda import smt as gfdrda
from mmaformal.facts.exact_terms import prove_inputs
from mmaformal.facts.exactness import (
    Exact,
    claims_of,
    no_bit_below,
    prove_kept,
    prove_number,
)
from mmaformal.proof.composition import Composing
from mmaformal.proof.fixed_sums import shifted_by, total_of, wide
from mmaformal.proof.fused import prove_largest
from mmaformal.spec import DotAdd


@dataclass(frozen=True)
class ExactStage(StageSum):
    """A stage's sum that is the exact one under a condition on all cuts so far, which `near` claims."""

    condition: z3.BoolRef


def _exact_sums(x: StepFrame) -> tuple[list[z3.BitVecRef], z3.BitVecRef, z3.BitVecRef]:
    """The exact sums of groups, each in units of 2^(e_group − F); gfdrda's in units of 2^(e_dot − F), and so their sum;
    that sum in units of 2^(e_max − F)."""
    groups = [total_of([term.signed_exact for term in x.terms(g)]) for g in range(len(x.groups))]
    raised, step = groups, x.step
    if isinstance(step, gfdrda.GfdrdaStep):
        pairs = zip(groups, step.e_groups, strict=True)
        raised = [shifted_by(exact, ~(step.e_products - e)) for exact, e in pairs]
    dot = total_of(raised)
    return raised, dot, shifted_by(dot, ~(step.e_max - step.e_dot))


# ---- stages ----------------------------------------------------------------------------------------------------------


def prove_round_down(proving: Composing, spec: DotAdd) -> Exact:
    """Raises NotProvedError."""
    x = step_frame(spec)
    step, rho, inputs = x.step, x.p.rho, symbolic_inputs(x.spec)
    ordinary, terms = claims_of(proving, lambda: prove_inputs(proving, x.spec, inputs, step))
    none = z3.Not(z3.Or(*step.special))
    raised, exact_dot, exact_raised = _exact_sums(x)
    groups = [_group(proving, x, g) for g in range(len(x.groups))]
    dot = _both_groups(proving, x, groups, raised, exact_dot) if x.p.groups == 2 else groups[0]
    larger = prove_larger(proving, x)
    kept = _at_e_max(proving, x, larger, dot, exact_raised)
    placed = x.addend
    c_kept, text = (
        wide(step.c_cut, x.bits) << placed.places,
        "c without a bit below the last place kept is cut exactly",
    )
    claim = z3.Implies(no_bit_below(placed.exact, placed.places), c_kept == placed.signed_exact)
    c = proving.claim("c cut", text, claim, [larger])
    rounded, (S_value, value, _) = prove_last_cut(proving, x, none, larger, dot, kept)
    S, whole = rounded_down(x), step.total == rounded_down(x)
    text = "a sum without a bit below the last place kept is rounded as it is"
    last = proving.claim("last cut", text, z3.Implies(whole, S_value == value))
    all_whole = z3.And(kept.condition, c.arg(0), whole)
    same = z3.Implies(all_whole, S_value == kept.exact + placed.signed_exact)
    using = [kept.near, c, last, value == kept.value + c_kept]
    proving.claim("exact sum", "so what is rounded is the exact sum", same, using)
    number = prove_number(proving, step.result, S, exponent_of_unit(x), rho, rounded, none)
    text = (
        f"in each step d = {rho}(S), and S = c + Σ a·b where products are below 2^128 and no cut (of products, of their"
        f" sums, of c, of the sum of all) takes anything off; if S is a number of {rho}'s, d = S"
    )
    conclusion = z3.And(terms, prove_e_dot(proving, x), same, number)
    return Exact(ordinary, all_whole, conclusion, (ordinary, none), text)


def _group(proving: Composing, x: StepFrame, g: int) -> ExactStage:
    """The sum of a group's products, in units of 2^(e_group − F)."""
    at = prove_group(proving, x, g)
    kept = [prove_kept(proving, *each) for each in zip(at.terms, [[e] for e in at.at_most], strict=True)]
    whole = z3.And([claim.arg(0) for claim in kept])
    same = z3.Implies(whole, at.value == at.exact)
    proving.claim("exact group", "so a group's sum is the exact one", same, [at.linked, *kept])
    return ExactStage(x.groups[g][2], at.value, at.exact, x.product_places, same, at.small, 0, whole)


def _cut(
    proving: Composing,
    what: str,
    before: ExactStage,
    kept: z3.BitVecRef,
    exact: z3.BitVecRef,
    distance: z3.BitVecRef,
    premise: z3.BoolRef,
    places: int,
) -> tuple[z3.BoolRef, z3.BoolRef]:
    """(condition, claimed under it): what is kept of a sum, raised to an exponent `distance` above its own and cut
    `places` above the fixed point's last place, is the exact sum raised, `exact`."""
    value = shifted_by(before.value, ~distance)
    raised = z3.Implies(before.condition, value == exact)
    text = f"{what} is the exact one at the larger exponent, too"
    proving.claim(f"{what} raised", text, raised, [before.near])
    whole = z3.Implies(no_bit_below(value, places), kept == value)
    text = f"{what} without a bit below the last place kept is cut exactly"
    proving.claim(f"{what} cut", text, whole, [premise, before.small])
    condition = z3.And(before.condition, no_bit_below(exact, places))
    same = z3.Implies(condition, kept == exact)
    return condition, proving.claim(f"exact {what}", f"so {what} is exact", same, [raised, whole])


def _both_groups(
    proving: Composing,
    x: StepFrame,
    groups: Sequence[ExactStage],
    raised: Sequence[z3.BitVecRef],
    exact: z3.BitVecRef,
) -> ExactStage:
    """gfdrda: the sums of both groups in units of 2^(e_dot − F), cut there, and their sum."""
    step, places = x.step, x.dot_places
    assert isinstance(step, gfdrda.GfdrdaStep)
    at_most, _ = prove_largest(proving, "exponents of groups", step.e_products, step.e_groups)
    sum_ = prove_sum_of_groups(proving, x.p, step, x.bits, places)
    distances = [step.e_products - e for e in step.e_groups]
    cuts = [
        _cut(proving, "a group's sum", *each, places)
        for each in zip(groups, sum_.terms, raised, distances, at_most, strict=True)
    ]
    both = z3.And([condition for condition, _ in cuts])
    same = z3.Implies(both, sum_.value == exact)
    known = [sum_.prove_total(proving), *(fact for _, fact in cuts)]
    proving.claim("exact dot product", "so the dot product is exact", same, known)
    return ExactStage(step.dot, sum_.value, exact, places, same, sum_.in_range, 0, both)


def _at_e_max(
    proving: Composing, x: StepFrame, larger: z3.BoolRef, dot: ExactStage, exact: z3.BitVecRef
) -> ExactStage:
    """The dot product in units of 2^(e_max − F), cut there."""
    step, places = x.step, x.all_places - (x.p.dot_bits - x.p.F)
    kept, distance = wide(step.dot_cut, x.bits) << places, step.e_max - step.e_dot
    condition, same = _cut(proving, "the dot product", dot, kept, exact, distance, larger, places)
    return ExactStage(step.dot_cut, kept, exact, places, same, dot.small, 0, condition)
