"""The error bound of fdrda and gfdrda, which round down: how far below and above the exact sum S may be.

One step of L products aligns those (all of them, or the even and the odd ones apart) to their largest exponent, with F
fractional bits, toward zero; cuts the groups' sums at e_dot, their sum and c at e_max, and what these add up to at
`sum_bits` below its own leading bit, all toward −∞; and rounds once, d = ρ(S).  With u = 2^(e_max − F),

    −n · u ≤ S − (c + Σ a·b) ≤ n' · u.

- The product with the largest exponent of its group loses nothing, the others at most λ units of 2^(e_group − F) each,
  of either sign.  A group cut at e_dot, d > 0 places up, has lost no more than λ · 2^-d of each, and loses less than
  1 − 2^-d: together no more than as many times λ, if 1 ≤ that.
- If e_dot = e_max, the sum is not cut again, and c loses up to λ_c, down alone: n = (L − g)·λ + λ_c for g groups.
  In gfdrda a c far below is dropped whatever its sign: n' = (L − g)·λ + λ_c'; in fdrda n' = (L − g)·λ.
- If e_dot < e_max, c has the largest exponent and loses nothing; products lose half as much, and the cuts of their sum
  and of S lose so little, 2^-(dot_bits − F) and 2^(e_S − sum_bits − e_max + F) units, that it is less than n.

Both are reached by inputs (`reach`), so neither can be smaller.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import z3

from mmaformal.cases.inputs import Inputs, symbolic_inputs
from mmaformal.cases.low_bits import pairs_losing, product_codes
from mmaformal.cases.one_step import one_step
from mmaformal.encodings.fdrda import Fdrda
from mmaformal.encodings.fdrda import smt as fdrda
from mmaformal.encodings.fdrda.proofs.stages import AnyFdrda
from mmaformal.encodings.gfdrda import Gfdrda
from mmaformal.encodings.gfdrda import smt as gfdrda
from mmaformal.encodings.smt.blocks import ExponentRange, product_range
from mmaformal.facts.exactness import no_bit_below
from mmaformal.proof.composition import Composing
from mmaformal.proof.definitions import fit, is_rounded
from mmaformal.proof.fixed_sums import (
    Accumulated,
    Placed,
    accumulate_signed,
    if_else,
    is_between,
    limited,
    placed_term,
    prove_accumulated,
    prove_cut_error,
    prove_error,
    prove_errors_add_up,
    prove_scaled,
    total_of,
    wide,
)
from mmaformal.proof.fused import Loss, largest_loss, prove_largest
from mmaformal.proof.kernel import NotProvedError, demand
from mmaformal.proof.sticky_sums import magnitude_of
from mmaformal.rounding import Rounding
from mmaformal.spec import DotAdd


@dataclass(frozen=True)
class StepLosses:
    """The most that one step can lose, in units of 2^(e_max − F)."""

    product: Loss  #: λ, of a product
    losing: int  #: how many of them can lose at once
    places: int  #: how far the last place of a c that is cut lies below the unit
    c_below: Fraction  #: λ_c: the most that c's cut takes away
    c_above: Fraction  #: and the most that it adds, by dropping a negative c

    @property
    def below(self) -> Fraction:
        return self.losing * self.product.units + self.c_below

    @property
    def above(self) -> Fraction:
        return self.losing * self.product.units + self.c_above


@dataclass(frozen=True)
class StepFrame:
    """A step in the SMT encoding, with the fixed points of its stages."""

    spec: DotAdd
    p: Fdrda
    step: AnyFdrda
    own: ExponentRange  #: of products
    all: ExponentRange  #: of products and c
    high: int  #: the largest exponent of a product that is no infinity
    losses: StepLosses

    @property
    def groups(self) -> list[tuple[range, z3.BitVecRef, z3.BitVecRef]]:
        """(indices of products, their largest exponent, their sum)."""
        if not isinstance(self.step, gfdrda.GfdrdaStep):
            return [(range(self.p.L), self.step.e_products, self.step.dot)]
        indices = [range(parity, self.p.L, 2) for parity in range(2)]
        return list(zip(indices, self.step.e_groups, self.step.groups, strict=True))

    @property
    def product_places(self) -> int:
        """Places below 2^(e_group − F) that products can have, and the denominators of λ."""
        f = fdrda.fraction_bits(self.spec)
        return max(
            (1 << self.own.bits) - 1 + f - self.p.F, self.losses.product.units.denominator.bit_length()
        )

    @property
    def dot_places(self) -> int:
        """The places below 2^(e_dot − F) that the sum of products can have."""
        return self.product_places + ((1 << self.own.bits) - 1 if self.p.groups == 2 else 0)

    @property
    def all_places(self) -> int:
        """The places below 2^(e_max − F) that the sum with c can have."""
        return self.dot_places + (1 << self.all.bits) - 1

    @property
    def bits(self) -> int:
        """The bits of a number in the last of these fixed points."""
        return self.all_places + fdrda.dot_bound(self.p, self.p.L).bit_length() + 6

    def terms(self, g: int) -> list[Placed]:
        """The products of a group, in units of 2^(e_group − F)."""
        members, e_top, _ = self.groups[g]
        fixed = {"places": self.product_places, "bits": self.bits}
        fixed["lift"] = self.p.F - fdrda.fraction_bits(self.spec)
        pairs = [(self.step.products[k], self.step.aligned[k]) for k in members]
        return [
            placed_term("product", each.sign, each.significand, e_top - each.exponent, aligned, **fixed)
            for each, aligned in pairs
        ]

    @property
    def addend(self) -> Placed:
        """c, in units of 2^(e_max − F)."""
        c, lift = self.step.addend, self.p.F - self.spec.c_format.fraction_bits
        below = self.step.e_max - c.exponent
        fixed = {"places": self.all_places, "bits": self.bits, "lift": lift}
        return placed_term("c", c.sign, c.significand, below, c.significand, **fixed)


def losses_of(spec: DotAdd, p: Fdrda) -> StepLosses:
    M, F = spec.c_format.fraction_bits, p.F
    high, f = prove_highest_exponent(spec), fdrda.fraction_bits(spec)
    low = spec.a_format.min_exponent + spec.b_format.min_exponent
    factors = (spec.a_format.fraction_bits + 1, spec.b_format.fraction_bits + 1)
    product = largest_loss(factors, (high - F) - (low - f))
    places = (high - F) - (spec.c_format.min_exponent - M)
    dropped = Fraction(0)
    if p.reach is not None:
        places = min(places, p.reach - F + M)
        dropped = Fraction(2 * (1 << M) - 1, 1 << M) * Fraction(2) ** (F - p.reach - 1)
    places = max(places, 0)  # where c reaches no lower, the cut takes nothing off it
    cut = 1 - Fraction(1, 1 << places)
    return StepLosses(product, p.L - p.groups, places, max(cut, dropped), dropped)


def losing_product(spec: DotAdd, p: Fdrda, loss: Loss, e_max: int) -> tuple[int, int] | None:
    """Codes of two factors whose product loses that much under e_max."""
    formats, f = (spec.a_format, spec.b_format), fdrda.fraction_bits(spec)
    for places in range(loss.units.denominator.bit_length() - 1, f + 3):
        pairs = pairs_losing(int(loss.units * (1 << places)), places, formats)
        codes = product_codes(pairs, e_max - p.F - places + f, formats)
        if codes is not None:
            return codes
    return None


def prove_highest_exponent(spec: DotAdd) -> int:
    high = spec.a_format.max_exponent + spec.b_format.max_exponent
    return min(high, fdrda.OVERFLOW - 1)


def step_of(spec: DotAdd, x: Inputs) -> AnyFdrda:
    """One step of a model of fdrda or gfdrda."""
    p = spec.parameters_as(Fdrda)
    if p.groups > 1:
        return gfdrda.step(spec, spec.parameters_as(Gfdrda), x.a, x.b, x.c)
    return fdrda.step(spec, p, x.a, x.b, x.c)


def step_frame(spec: DotAdd) -> StepFrame:
    spec = one_step(spec)
    p, step = spec.parameters_as(Fdrda), step_of(spec, symbolic_inputs(spec))
    own = product_range(spec.a_format, spec.b_format)
    return StepFrame(
        spec,
        p,
        step=step,
        own=own,
        all=fdrda.exponents_of(spec),
        high=prove_highest_exponent(spec),
        losses=losses_of(spec, p),
    )


# ---- stages, whose errors are bounded here, and nothing in `exactness` -----------------------------------------------


@dataclass(frozen=True)
class StageSum:
    """A stage's sum as an integer of a fixed point, and the exact one."""

    total: z3.BitVecRef
    value: z3.BitVecRef  #: the same in the fixed point
    exact: z3.BitVecRef
    places: int  #: of the fixed point
    near: z3.BoolRef  #: claimed: how far both are apart
    small: z3.BoolRef  #: claimed: the range of the sum
    most: int  #: how far they may be apart


@dataclass(frozen=True)
class GroupClaims:
    """The terms that are added up of a group, and claims about them."""

    terms: list[Placed]
    at_most: list[z3.BoolRef]  #: that each exponent is at most the largest
    some: z3.BoolRef  #: that the largest is one of them
    linked: z3.BoolRef  #: that the error of the sum is the sum of the errors
    small: z3.BoolRef
    value: z3.BitVecRef
    exact: z3.BitVecRef


def prove_group(proving: Composing, x: StepFrame, g: int) -> GroupClaims:
    """Prove that the sum of a group's products is that of what is kept of them."""
    members, e_top, total = x.groups[g]
    exponents = [x.step.products[k].exponent for k in members]
    at_most, some = prove_largest(proving, "exponents", e_top, exponents)
    terms = x.terms(g)
    widths = [(1 << term.aligned.size()) - 1 for term in terms]
    linked, small = prove_accumulated(proving, terms, total, widths)
    value, exact = wide(total, x.bits) << x.product_places, total_of([term.signed_exact for term in terms])
    return GroupClaims(terms, at_most, some, linked, small, value, exact)


def prove_sum_of_groups(
    proving: Composing, p: Fdrda, step: gfdrda.GfdrdaStep, bits: int | None = None, places: int = 0
) -> Accumulated:
    """Prove that the sum of gfdrda's groups, as they are cut at e_dot, does not wrap; no group does, as was proved."""
    bounds = [fdrda.dot_bound(p, len(members)) for members in p.members()]
    text = "a group's sum is no larger when cut"
    small = [
        proving.claim("range of a cut group", text, limited(cut, bound), [limited(before, bound)])
        for cut, before, bound in zip(step.groups_cut, step.groups, bounds, strict=True)
    ]
    return accumulate_signed(proving, step.dot, step.groups_cut, bounds, small, bits, places)


def prove_larger(proving: Composing, x: StepFrame) -> z3.BoolRef:
    """Prove that e_max is the larger of the exponents of the dot product and of c, and c's at least the least."""
    step, c = x.step, x.step.addend
    at_least = z3.UGE(c.exponent, x.all.constant(x.spec.c_format.min_exponent))
    proving.claim("c's exponent", "c's exponent is at least the least", at_least)
    below = z3.And(z3.ULE(step.e_dot, step.e_max), z3.ULE(c.exponent, step.e_max))
    claim = z3.And(*below.children(), z3.Or(step.e_dot == step.e_max, c.exponent == step.e_max))
    text = "e_max is the larger of the exponents of the dot product and of c"
    return proving.claim("e_max", text, claim)


def prove_e_dot(proving: Composing, x: StepFrame) -> z3.BoolRef:
    """e_dot is the products' largest exponent, or all products are 0."""
    step, all_zero = x.step, z3.And([product.significand == 0 for product in x.step.products])
    same = step.e_dot == fit(step.e_products, x.all.bits) + (x.own.low - x.all.low)
    zeros = []
    for a, b, product in zip(step.a, step.b, step.products, strict=True):
        zero = z3.Implies(z3.Or(a.significand == 0, b.significand == 0), product.significand == 0)
        zeros.append(proving.claim("zero product", "a product is 0 if a factor is", zero))
    text = "e_dot is the largest exponent of the products, or they are all 0"
    return proving.claim("e_dot", text, z3.Or(same, all_zero), zeros)


# ---- bounds ----------------------------------------------------------------------------------------------------------


def prove_bound_of_rounding(proving: Composing, x: StepFrame) -> z3.BoolRef:
    """Proves the bounds and the rounding; returns what was proved of them.  Raises NotProvedError."""
    longest = max(fdrda.fraction_bits(x.spec), x.spec.c_format.fraction_bits)
    if x.p.cut is not Rounding.RD or longest > x.p.F:
        raise NotProvedError("a step loses no more than that", "unknown", "no argument for its widths")
    bounds = CutBounds(proving, x)
    groups = [bounds.group(g) for g in range(len(x.groups))]
    dot = bounds.both_groups(groups) if x.p.groups == 2 else groups[0]
    same, larger = prove_e_dot(proving, x), prove_larger(proving, x)
    kept = bounds.at_e_max(larger, dot)
    c_kept, c_exact, of_c = bounds.addend(larger)
    rounded, error = prove_last_cut(proving, x, bounds.none, larger, dot, kept)
    return z3.And(bounds.together(larger, kept, (c_kept, c_exact, of_c), error), rounded, same)


@dataclass(frozen=True)
class CutBounds:
    """Claims about what the stages of a step are off at most."""

    proving: Composing
    x: StepFrame

    @property
    def none(self) -> z3.BoolRef:
        """Return the claim that nothing is special."""
        return z3.Not(z3.Or(*self.x.step.special))

    def in_range(self, e: z3.BitVecRef) -> z3.BoolRef:
        """Return the claim that an exponent of products is at most the highest, where nothing is special."""
        return z3.Implies(self.none, z3.ULE(e, self.x.own.constant(self.x.high)))

    def group(self, g: int) -> StageSum:
        """The sum of a group's products, in units of 2^(e_group − F)."""
        x, proving, none = self.x, self.proving, self.none
        members, e_top, total = x.groups[g]
        text = f"where nothing is special, a product's exponent is at most {x.high}"
        products = [x.step.products[k] for k in members]
        inside = [proving.claim("product in range", text, self.in_range(each.exponent)) for each in products]
        at = prove_group(proving, x, g)
        finite = self.in_range(e_top)
        proving.claim("largest in range", "so the largest is", finite, [at.some, *inside])
        most = int(x.losses.product.units * (1 << x.product_places))
        tops = [product.exponent == e_top for product in products]
        facts = [
            [
                prove_error(proving, term, most, none, [below, finite], "under the largest"),
                prove_error(proving, term, 0, top, [], "at the largest exponent"),
            ]
            for term, below, top in zip(at.terms, at.at_most, tops, strict=True)
        ]
        seen = [tops[0]]
        for top in tops[1:]:
            seen.append(z3.Or(seen[-1], top))

        def bound(n: int, error: z3.BitVecRef) -> z3.BoolRef:
            all_but_one = z3.Implies(z3.And(none, seen[n - 1]), limited(error, (n - 1) * most))
            return z3.And(z3.Implies(none, limited(error, n * most)), all_but_one)

        added = prove_errors_add_up(proving, at.terms, facts, bound)
        least = (len(members) - 1) * most
        near = z3.Implies(none, limited(at.value - at.exact, least))
        text = "a group's sum is off by no more than all but one of its products lose"
        proving.claim("error of a group", text, near, [added, at.linked, at.some])
        return StageSum(total, at.value, at.exact, x.product_places, near, at.small, least)

    def both_groups(self, groups: Sequence[StageSum]) -> StageSum:
        """gfdrda: the sums of both groups in units of 2^(e_dot − F), cut there, and their sum."""
        x, proving, step = self.x, self.proving, self.x.step
        assert isinstance(step, gfdrda.GfdrdaStep)
        at_most, _ = prove_largest(proving, "exponents of groups", step.e_products, step.e_groups)
        sum_ = prove_sum_of_groups(proving, x.p, step, x.bits, x.dot_places)
        kept, value, added = sum_.terms, sum_.value, sum_.prove_total(proving)
        distances = [step.e_products - e for e in step.e_groups]
        cuts = [self._cut_group(*each) for each in zip(groups, kept, distances, at_most, strict=True)]
        exacts = [exact for exact, _ in cuts]
        exact, up = total_of(exacts), (1 << distances[0].size()) - 1
        most = sum(before.most for before in groups) << up
        both = total_of([after - one for after, one in zip(kept, exacts, strict=True)])
        text = "the error of the sum of both groups is the sum of their errors"
        identity = proving.claim("errors of groups", text, total_of(kept) - exact == both)
        claim = proving.claim("error of the sum", text, value - exact == both, [added, identity])
        near = z3.Implies(self.none, limited(value - exact, most))
        text = "so the dot product is off by no more than both together"
        proving.claim("error of the dot product", text, near, [claim, *(fact for _, fact in cuts)])
        return StageSum(step.dot, value, exact, x.dot_places, near, sum_.in_range, most)

    def _cut_group(
        self, before: StageSum, after: z3.BitVecRef, distance: z3.BitVecRef, below: z3.BoolRef
    ) -> tuple[z3.BitVecRef, z3.BoolRef]:
        """(the exact sum of a group in units of 2^(e_dot − F), the bound of its error where it is cut there)."""
        proving, bits, up = self.proving, self.x.bits, (1 << distance.size()) - 1
        value, exact, error = prove_scaled(proving, before.value, before.exact, ~distance)
        lost, one = value - after, z3.BitVecVal(1, bits) << fit(up - fit(distance, bits), bits)
        text = "rounding a group's sum down to a place d higher takes away at most 1 − 2^-d units"
        most = (z3.BitVecVal(1, bits) << self.x.dot_places) - (one << before.places)
        floor = z3.And(lost >= 0, lost <= most)
        floor = proving.claim("cut of a group", text, floor, [below, before.small])
        text = "an error in units 2^d larger is so much smaller"
        raised = z3.Implies(self.none, z3.And(error <= one * before.most, error >= -(one * before.most)))
        raised = proving.claim("error of a raised group", text, raised, [before.near])
        apart = prove_cut_error(proving, value, exact, error, after)
        text = "so a group's error is no larger where it is cut"
        claim = z3.Implies(self.none, limited(after - exact, before.most << up))
        return exact, proving.claim("error of a cut group", text, claim, [floor, raised, apart])

    def at_e_max(self, larger: z3.BoolRef, dot: StageSum) -> StageSum:
        """The dot product in units of 2^(e_max − F), cut there."""
        x, proving, step, none = self.x, self.proving, self.x.step, self.none
        distance, gap = step.e_max - step.e_dot, x.p.dot_bits - x.p.F
        places, bits = x.all_places - gap, x.bits
        value, exact, error = prove_scaled(proving, dot.value, dot.exact, ~distance)
        most, up = dot.most, (1 << distance.size()) - 1
        after, same = wide(step.dot_cut, bits) << places, distance == 0
        lost = value - after
        text = f"rounding the dot product down takes nothing up to {gap} places, and less than 2^-{gap} units beyond"
        floor = z3.And(lost >= 0, z3.Implies(z3.ULE(distance, gap), lost == 0), lost < (1 << places))
        floor = proving.claim("cut of the dot product", text, floor, [larger, dot.small])
        text = "an error in larger units is smaller, at least by half"
        halved = if_else(same, limited(error, most << up), limited(error, most << (up - 1)))
        raised = z3.Implies(none, halved)
        raised = proving.claim("error of the raised dot product", text, raised, [dot.near])
        apart = prove_cut_error(proving, value, exact, error, after)
        cut = is_between(-(most << (up - 1)) - (1 << places) + 1, after - exact, most << (up - 1))
        near = z3.Implies(none, if_else(same, limited(after - exact, most << up), cut))
        text = "so the dot product is off by as much, or by half and what the cut takes"
        inside = [after - exact, error, lost, distance, none]
        proving.claim("error of the cut dot product", text, near, [floor, raised, apart], inside)
        return StageSum(step.dot_cut, after, exact, places, near, dot.small, most << up)

    def addend(self, larger: z3.BoolRef) -> tuple[z3.BitVecRef, z3.BitVecRef, z3.BoolRef]:
        """(c as it is kept, c, the bound of the difference)."""
        x, proving, step, none = self.x, self.proving, self.x.step, self.none
        c, high, in_range = step.addend, x.all.constant(x.high), self.in_range(step.e_products)
        if isinstance(step, gfdrda.GfdrdaStep):
            each = [self.in_range(e) for e in step.e_groups]
            proving.claim("largest in range", "so the largest is", in_range, each)
        dot = z3.Implies(none, z3.ULE(step.e_dot, high))
        proving.claim("e_dot in range", "so is e_dot", dot, [in_range])
        at_top = c.exponent == step.e_max
        top = z3.Implies(none, z3.Or(at_top, z3.ULE(step.e_max, high)))
        text = "e_max is that of c, or no larger than a product's"
        proving.claim("e_max where c is not the largest", text, top, [dot, larger])
        exact, kept = x.addend.signed_exact, wide(step.c_cut, x.bits) << x.all_places
        below, above = (_fixed(loss, x.all_places) for loss in (x.losses.c_below, x.losses.c_above))
        bounded = is_between(-below, kept - exact, above)
        claim = z3.Implies(none, if_else(at_top, kept == exact, bounded))
        text = f"where c's exponent is e_max it is kept, elsewhere at most 1 − 2^-{x.losses.places} units are taken"
        text += " away" + (f", or {x.losses.c_above} added" if above else "")
        least = z3.UGE(c.exponent, x.all.constant(x.spec.c_format.min_exponent))
        inside = [c.sign, c.significand, c.exponent, step.e_max, none]
        proving.claim("cut of c", text, claim, [larger, top, least], inside)
        error = z3.Implies(none, if_else(at_top, kept - exact == 0, bounded))
        proving.claim("error of c", "an error of c is 0, or in its bounds", error, [claim])
        return kept, exact, error

    def together(
        self,
        larger: z3.BoolRef,
        kept: StageSum,
        c: tuple[z3.BitVecRef, z3.BitVecRef, z3.BoolRef],
        S: tuple[z3.BitVecRef, z3.BitVecRef, z3.BoolRef],
    ) -> z3.BoolRef:
        """The bounds of S less the exact sum, from those of the dot product, of c, and of the last cut."""
        x, proving, step = self.x, self.proving, self.x.step
        (S_value, value, of_S), (c_kept, c_exact, of_c) = S, c
        whole = S_value - (kept.exact + c_exact)
        parts = [S_value - (kept.value + c_kept), kept.value - kept.exact, c_kept - c_exact]
        text = "the error of S is the sum of the errors of its last cut, the dot product and c"
        identity = proving.claim("parts", text, whole == total_of(parts))
        last = parts[0] == S_value - value
        proving.claim("last cut", text, last, [value == kept.value + c_kept])
        same, at_top = step.e_max - step.e_dot == 0, step.addend.exponent == step.e_max
        text = "e_max is that of the dot product or that of c"
        one = proving.claim("either", text, z3.Or(same, at_top), [larger])
        of_sum = if_else(same, S_value - value == 0, of_S.arg(1).arg(1))
        text = "an error of the last cut, in both cases"
        proving.claim("error of the last cut", text, of_sum, [of_S])
        below, above = (_fixed(loss, x.all_places) for loss in (x.losses.below, x.losses.above))
        bounded = z3.Implies(self.none, is_between(-below, whole, above))
        text = f"S is at most {float(x.losses.below):.6g} units below the exact sum, {float(x.losses.above):.6g} above"
        return proving.claim("error of S", text, bounded, [identity, last, one, kept.near, of_c, of_sum])


def _fixed(units: Fraction, places: int) -> int:
    scaled_up = units * (1 << places)
    demand(scaled_up.denominator == 1, "a bound that the fixed point does not have")
    return int(scaled_up)


def exponent_of_unit(x: StepFrame) -> z3.BitVecRef:
    """The exponent of the total's last place, in two's complement."""
    bits = max(x.all.bits, abs(x.all.low).bit_length(), x.p.dot_bits.bit_length()) + 5
    return fit(x.step.e_max, bits) + (x.all.low - x.p.dot_bits)


def rounded_down(x: StepFrame) -> z3.BitVecRef:
    """S: the total without what is more than `sum_bits` places below its own leading bit, rounded down."""
    p, total = x.p, x.step.total
    if p.sum_bits is None:
        return total
    least, size = x.spec.d_format.min_exponent, total.size()
    _, m = magnitude_of(total)
    drop = z3.BitVecVal(0, size)
    for i in reversed(range(p.dot_bits - p.sum_bits)):  # exponents below the least normal one count as that
        subnormal = x.step.e_max == x.all.constant(least + i)
        drop = z3.If(subnormal, z3.BitVecVal(p.dot_bits - p.sum_bits - i, size), drop)
    for j in range(1, m.size() - p.sum_bits):
        larger = z3.And(z3.UGE(m, 1 << (p.sum_bits + j)), z3.ULT(drop, j))
        drop = z3.If(larger, z3.BitVecVal(j, size), drop)
    return (total >> drop) << drop


def prove_last_cut(
    proving: Composing, x: StepFrame, none: z3.BoolRef, larger: z3.BoolRef, dot: StageSum, kept: StageSum
) -> tuple[z3.BoolRef, tuple[z3.BitVecRef, z3.BitVecRef, z3.BoolRef]]:
    """(d = ρ(S); S, the total in the fixed point, the bounds of what S's cut takes)."""
    step, p, bits = x.step, x.p, x.bits
    total, gap, bound = step.total, p.dot_bits - p.F, fdrda.dot_bound(p, p.L)
    same, halved = step.e_max - step.e_dot == 0, limited(step.dot_cut, (bound << gap) + 1 >> 1)
    text = "the dot product is no larger when cut, and without bits below where it is not cut"
    uncut = z3.And(limited(step.dot_cut, bound << gap), no_bit_below(step.dot_cut, gap))
    of_dot = if_else(same, uncut, halved)
    proving.claim("range of the cut dot product", text, of_dot, [larger, dot.small])
    c_bound = 1 << (p.F + 1)
    of_c = proving.claim("range of c", "c is below 2", limited(step.c_cut, c_bound))
    c_value, value = wide(step.c_cut, bits) << x.all_places, wide(total, bits) << kept.places
    reaches = (bound + c_bound) << gap, ((bound << gap) + 1 >> 1) + (c_bound << gap)
    whole = z3.And(limited(total, reaches[0]), no_bit_below(total, gap))
    in_range = if_else(same, whole, limited(total, reaches[1]))
    text = "the sum of the dot product and c does not wrap"
    proving.claim("sum with c", text, z3.And(value == kept.value + c_value, in_range), [of_dot, of_c])
    least = x.all.constant(x.spec.c_format.min_exponent)
    text, known = "e_max is at least c's exponent, so at least the least", z3.UGE(step.addend.exponent, least)
    at_least = proving.claim("least e_max", text, z3.UGE(step.e_max, least), [larger, known])
    S, sum_bits = rounded_down(x), p.sum_bits or p.dot_bits
    longest = reaches[1].bit_length() - 1 - sum_bits if p.sum_bits else 0
    most = (1 << max(longest, p.dot_bits - sum_bits, 0)) - 1
    text = "rounding the sum down takes nothing where e_dot is e_max, and little elsewhere"
    of_S = if_else(same, total == S, is_between(0, total - S, most))
    proving.claim("cut of the sum", text, of_S, [in_range, at_least])
    S_value = wide(S, bits) << kept.places
    error = if_else(same, S_value == value, is_between(-(most << kept.places), S_value - value, 0))
    proving.claim("error of the sum", "the same in the fixed point", error, [of_S, in_range])
    return _rounded(proving, x, none, S, at_least, in_range, reaches[0]), (S_value, value, error)


def _rounded(
    proving: Composing,
    x: StepFrame,
    none: z3.BoolRef,
    S: z3.BitVecRef,
    at_least: z3.BoolRef,
    in_range: z3.BoolRef,
    reach: int,
) -> z3.BoolRef:
    """Return the claim that d = ρ(S)."""
    total, e_max, code, rho = x.step.total, x.step.e_max, x.step.result, x.p.rho
    negative, m = magnitude_of(S)
    sign = z3.Extract(code.size() - 1, code.size() - 1, code) == 1
    zero = z3.Extract(code.size() - 2, 0, code) == 0
    top = z3.ULE(e_max, x.all.constant(x.all.high))
    highest = proving.claim("e_max in range", "e_max is in its range", top)
    text = "the sum is in its range"
    of_total = proving.claim("range of the sum", text, limited(total, reach), [in_range])
    right = z3.And(is_rounded(m, exponent_of_unit(x), code, rho, negative), z3.Or(zero, sign == negative))
    text = f"d is {rho} of S: by definition, no other number of the format is the right one"
    inside = [total, e_max, *x.step.special]
    return proving.claim(
        f"rounded by {rho}", text, z3.Implies(none, right), [at_least, highest, of_total], inside
    )
