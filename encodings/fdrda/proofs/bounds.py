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

from mmaformal.cases.inputs import symbolic_inputs
from mmaformal.cases.low_bits import pairs_losing, product_codes
from mmaformal.cases.one_step import one_step
from mmaformal.encodings.fdrda import Fdrda
from mmaformal.encodings.fdrda import smt as fdrda
from mmaformal.encodings.gfdrda import Gfdrda
from mmaformal.encodings.gfdrda import smt as gfdrda
from mmaformal.encodings.smt.blocks import ExponentRange, product_range
from mmaformal.proof.composition import (
    Composing,
    between,
    place,
    prove_accumulated,
    prove_cut_error,
    prove_error,
    prove_errors_add_up,
    prove_scaled,
    total_of,
    where,
    wide,
    within,
)
from mmaformal.proof.definitions import fit, is_rounded
from mmaformal.proof.fused import Loss, largest_loss, prove_largest
from mmaformal.proof.kernel import NotProvedError, demand
from mmaformal.proof.sticky_sums import magnitude_of
from mmaformal.rounding import Rounding
from mmaformal.spec import DotAdd


@dataclass(frozen=True)
class Losses:
    """What one step can lose, in units of 2^(e_max − F)."""

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
class Frame:
    """A step in the SMT encoding, with the fixed points of its stages."""

    spec: DotAdd
    p: Fdrda
    step: fdrda.FdrdaStep | gfdrda.GfdrdaStep
    own: ExponentRange  #: of products
    all: ExponentRange  #: of products and c
    high: int  #: the largest exponent of a product that is no infinity
    losses: Losses

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
        """The same below 2^(e_dot − F)."""
        return self.product_places + ((1 << self.own.bits) - 1 if self.p.groups == 2 else 0)

    @property
    def all_places(self) -> int:
        """The same below 2^(e_max − F)."""
        return self.dot_places + (1 << self.all.bits) - 1

    @property
    def bits(self) -> int:
        """Of a number in the last of these fixed points."""
        return self.all_places + fdrda.dot_bound(self.p, self.p.L).bit_length() + 6


def losses_of(spec: DotAdd, p: Fdrda) -> Losses:
    M, F = spec.c_format.fraction_bits, p.F
    high, f = largest_exponent(spec), fdrda.fraction_bits(spec)
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
    return Losses(product, p.L - p.groups, places, max(cut, dropped), dropped)


def losing_product(spec: DotAdd, p: Fdrda, loss: Loss, e_max: int) -> tuple[int, int] | None:
    """Codes of two factors whose product loses that much under e_max."""
    formats, f = (spec.a_format, spec.b_format), fdrda.fraction_bits(spec)
    for places in range(loss.units.denominator.bit_length() - 1, f + 3):
        pairs = pairs_losing(int(loss.units * (1 << places)), places, formats)
        codes = product_codes(pairs, e_max - p.F - places + f, formats)
        if codes is not None:
            return codes
    return None


def largest_exponent(spec: DotAdd) -> int:
    high = spec.a_format.max_exponent + spec.b_format.max_exponent
    return min(high, fdrda.OVERFLOW - 1)


def frame_of(spec: DotAdd) -> Frame:
    spec = one_step(spec)
    p, x = spec.parameters, symbolic_inputs(spec)
    assert isinstance(p, Fdrda)
    step: fdrda.FdrdaStep | gfdrda.GfdrdaStep
    step = (
        gfdrda.step(spec, p, x.a, x.b, x.c) if isinstance(p, Gfdrda) else fdrda.step(spec, p, x.a, x.b, x.c)
    )
    own = product_range(spec.a_format, spec.b_format)
    return Frame(
        spec,
        p,
        step=step,
        own=own,
        all=fdrda.exponents_of(spec),
        high=largest_exponent(spec),
        losses=losses_of(spec, p),
    )


# ---- stages --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Sum:
    """A stage's sum, and the exact one in its fixed point."""

    total: z3.BitVecRef
    value: z3.BitVecRef  #: the same in the fixed point
    exact: z3.BitVecRef
    bounded: z3.BoolRef  #: the difference's bound, claimed
    small: z3.BoolRef  #: the sum's, claimed
    most: int  #: the difference's bound
    places: int  #: of the fixed point


def prove_round_down(proving: Composing, x: Frame) -> z3.BoolRef:
    """Proves the bounds and the rounding; returns what was proved of them.  Raises NotProvedError."""
    p, spec, step = x.p, x.spec, x.step
    longest = max(fdrda.fraction_bits(spec), spec.c_format.fraction_bits)
    if p.cut is not Rounding.RD or longest > p.F:
        raise NotProvedError("a step loses no more than that", "unknown", "no argument for its widths")
    none = z3.Not(z3.Or(*step.special))
    in_range = [_in_range(proving, x, k, none) for k in range(p.L)]
    sums = [_group(proving, x, g, none, in_range) for g in range(len(x.groups))]
    dot = _both_groups(proving, x, none, sums) if p.groups == 2 else sums[0]
    same = prove_e_dot(proving, x)
    larger = proving.claim(
        "e_max",
        "e_max is the larger of the exponents of the dot product and of c",
        z3.And(
            z3.ULE(step.e_dot, step.e_max),
            z3.ULE(step.addend.exponent, step.e_max),
            z3.Or(step.e_dot == step.e_max, step.addend.exponent == step.e_max),
        ),
    )
    kept = _at_e_max(proving, x, none, larger, dot)
    c_kept, c_exact, of_c = _c(proving, x, none, larger)
    rounded, error = prove_last_cut(proving, x, none, larger, dot, kept)
    bounded = _together(proving, x, none=none, larger=larger, kept=kept, c=(c_kept, c_exact, of_c), S=error)
    return z3.And(bounded, rounded, same)


def prove_e_dot(proving: Composing, x: Frame) -> z3.BoolRef:
    """e_dot is the products' largest exponent, or all products are 0."""
    step, all_zero = x.step, z3.And([product.significand == 0 for product in x.step.products])
    same = step.e_dot == fit(step.e_products, x.all.bits) + (x.own.low - x.all.low)
    text = "e_dot is the largest exponent of the products, or they are all 0"
    zeros = [
        proving.claim(
            "zero product",
            "a product is 0 if a factor is",
            z3.Implies(z3.Or(a.significand == 0, b.significand == 0), product.significand == 0),
        )
        for a, b, product in zip(step.a, step.b, step.products, strict=True)
    ]
    return proving.claim("e_dot", text, z3.Or(same, all_zero), zeros)


def _in_range(proving: Composing, x: Frame, k: int, none: z3.BoolRef) -> z3.BoolRef:
    claim = z3.Implies(none, z3.ULE(x.step.products[k].exponent, x.own.constant(x.high)))
    text = f"where nothing is special, a product's exponent is at most {x.high}"
    return proving.claim("product in range", text, claim)


def _group(proving: Composing, x: Frame, g: int, none: z3.BoolRef, in_range: Sequence[z3.BoolRef]) -> Sum:
    """The sum of a group's products, in units of 2^(e_group − F)."""
    members, e_top, total = x.groups[g]
    step, places = x.step, x.product_places
    lift = x.p.F - fdrda.fraction_bits(x.spec)
    bits = x.bits
    products = [step.products[k] for k in members]
    exponents = [product.exponent for product in products]
    at_most, some = prove_largest(proving, "exponents", e_top, exponents)
    finite = z3.Implies(none, z3.ULE(e_top, x.own.constant(x.high)))
    proving.claim(
        "largest in range",
        "so the largest is",
        finite,
        [some, *(in_range[k] for k in members)],
    )
    terms, facts, tops = [], [], []
    most = int(x.losses.product.units * (1 << places))
    for k, product, below in zip(members, products, at_most, strict=True):
        gap = e_top - product.exponent
        term = place(
            "product",
            product.sign,
            significand=product.significand,
            below=gap,
            aligned=step.aligned[k],
            places=places,
            bits=bits,
            lift=lift,
        )
        top = product.exponent == e_top
        facts.append(
            [
                prove_error(
                    proving,
                    term,
                    most=most,
                    when=none,
                    premises=[below, finite],
                    why="under the largest",
                ),
                prove_error(proving, term, most=0, when=top, premises=[], why="at the largest exponent"),
            ]
        )
        terms.append(term)
        tops.append(top)
    seen = [tops[0]]
    for top in tops[1:]:
        seen.append(z3.Or(seen[-1], top))

    def bound(n: int, error: z3.BitVecRef) -> z3.BoolRef:
        all_but_one = z3.Implies(z3.And(none, seen[n - 1]), within(error, (n - 1) * most))
        return z3.And(z3.Implies(none, within(error, n * most)), all_but_one)

    added = prove_errors_add_up(proving, terms, facts, bound)
    widths = [(1 << term.aligned.size()) - 1 for term in terms]
    linked, small = prove_accumulated(proving, terms, total, widths)
    value, exact = wide(total, bits) << places, total_of([term.signed_exact for term in terms])
    least = (len(members) - 1) * most
    bounded = z3.Implies(none, within(value - exact, least))
    text = "a group's sum is off by no more than all but one of its products lose"
    proving.claim("error of a group", text, bounded, [added, linked, some])
    return Sum(total, value, exact=exact, bounded=bounded, small=small, most=least, places=places)


def _raised(
    proving: Composing, x: Sum, distance: z3.BitVecRef
) -> tuple[z3.BitVecRef, z3.BitVecRef, z3.BitVecRef]:
    """A sum, the exact one and the difference, in units of 2^distance of theirs, with as many more places as make
    the scaling exact; the difference still is one."""
    return prove_scaled(proving, x.value, x.exact, ~distance)


def _both_groups(proving: Composing, x: Frame, none: z3.BoolRef, sums: Sequence[Sum]) -> Sum:
    """gfdrda: the sums of both groups in units of 2^(e_dot − F), cut there, and their sum."""
    step, places, bits = x.step, x.dot_places, x.bits
    assert isinstance(step, gfdrda.GfdrdaStep)
    at_most, _ = prove_largest(proving, "exponents of groups", step.e_products, step.e_groups)
    kept, exacts, facts = [], [], []
    for g, (e, cut, below) in enumerate(zip(step.e_groups, step.groups_cut, at_most, strict=True)):
        before, distance = sums[g], step.e_products - e
        value, exact, error = _raised(proving, before, distance)
        most, up = before.most, (1 << distance.size()) - 1
        after = wide(cut, bits) << places
        lost = value - after
        one = z3.BitVecVal(1, bits) << fit((1 << distance.size()) - 1 - fit(distance, bits), bits)
        floor = proving.claim(
            "cut of a group",
            "rounding a group's sum down to a place d higher takes away at most 1 − 2^-d units",
            z3.And(lost >= 0, lost <= (z3.BitVecVal(1, bits) << places) - (one << before.places)),
            [below, before.small],
        )
        raised = proving.claim(
            "error of a raised group",
            "an error in units 2^d larger is so much smaller",
            z3.Implies(none, z3.And(error <= one * most, error >= -(one * most))),
            [before.bounded],
        )
        claim = z3.Implies(none, within(after - exact, most << up))
        apart = prove_cut_error(proving, value, exact, error, after)
        facts.append(
            proving.claim(
                "error of a cut group",
                "so a group's error is no larger where it is cut",
                claim,
                [floor, raised, apart],
            )
        )
        kept.append(after)
        exacts.append(exact)
    bounds = [fdrda.dot_bound(x.p, len(members)) for members, _, _ in x.groups]
    small = [
        proving.claim(
            "range of a cut group",
            "a group's sum is no larger when cut",
            within(cut, bound),
            [before.small],
        )
        for cut, e, before, bound in zip(step.groups_cut, step.e_groups, sums, bounds, strict=True)
    ]
    value, text = wide(step.dot, bits) << places, "the sum of both groups does not wrap"
    reach = within(step.dot, sum(bounds))
    added = proving.claim("sum of groups", text, z3.And(value == total_of(kept), reach), small)
    exact, most = total_of(exacts), sum(before.most for before in sums) << up
    both = [after - one for after, one in zip(kept, exacts, strict=True)]
    text = "the error of the sum of both groups is the sum of their errors"
    identity = total_of(kept) - exact == total_of(both)
    proving.claim("errors of groups", text, identity)
    claim = value - exact == total_of(both)
    proving.claim("error of the sum", text, claim, [added, identity])
    bounded = z3.Implies(none, within(value - exact, most))
    text = "so the dot product is off by no more than both together"
    proving.claim("error of the dot product", text, bounded, [claim, *facts])
    return Sum(step.dot, value, exact=exact, bounded=bounded, small=reach, most=most, places=places)


def _at_e_max(proving: Composing, x: Frame, none: z3.BoolRef, larger: z3.BoolRef, dot: Sum) -> Sum:
    """The dot product in units of 2^(e_max − F), cut there."""
    step, p, bits, places = x.step, x.p, x.bits, x.all_places
    distance, gap = step.e_max - step.e_dot, p.dot_bits - p.F
    value, exact, error = _raised(proving, dot, distance)
    most, up = dot.most, (1 << distance.size()) - 1
    after, same = wide(step.dot_cut, bits) << (places - gap), distance == 0
    lost = value - after
    floor = proving.claim(
        "cut of the dot product",
        f"rounding the dot product down takes nothing up to {gap} places, and less than 2^-{gap} units beyond",
        z3.And(
            lost >= 0,
            z3.Implies(z3.ULE(distance, gap), lost == 0),
            lost < z3.BitVecVal(1 << (places - gap), bits),
        ),
        [larger, dot.small],
    )
    raised = proving.claim(
        "error of the raised dot product",
        "an error in larger units is smaller, at least by half",
        z3.Implies(
            none,
            where(same, within(error, most << up), within(error, most << (up - 1))),
        ),
        [dot.bounded],
    )
    apart = prove_cut_error(proving, value, exact, error, after)
    cut_most = (1 << (places - gap)) - 1
    bounded = z3.Implies(
        none,
        where(
            same,
            within(after - exact, most << up),
            between(-(most << (up - 1)) - cut_most, after - exact, most << (up - 1)),
        ),
    )
    proving.claim(
        "error of the cut dot product",
        "so the dot product is off by as much, or by half and what the cut takes",
        bounded,
        [floor, raised, apart],
        [after - exact, error, lost, distance, none],
    )
    return Sum(
        step.dot_cut,
        after,
        exact=exact,
        bounded=bounded,
        small=dot.small,
        most=most << up,
        places=places - gap,
    )


def _c(
    proving: Composing, x: Frame, none: z3.BoolRef, larger: z3.BoolRef
) -> tuple[z3.BitVecRef, z3.BitVecRef, z3.BoolRef]:
    """(c as it is kept, c, the bound of the difference)."""
    step, p, bits, places = x.step, x.p, x.bits, x.all_places
    c, M = step.addend, x.spec.c_format.fraction_bits
    high = x.all.constant(x.high)
    in_range = z3.Implies(none, z3.ULE(step.e_products, x.own.constant(x.high)))
    if isinstance(step, gfdrda.GfdrdaStep):
        each = [z3.Implies(none, z3.ULE(e, x.own.constant(x.high))) for e in step.e_groups]
        text = "so the largest is"
        proving.claim("largest in range", text, in_range, each)
    dot = proving.claim(
        "e_dot in range",
        "so is e_dot",
        z3.Implies(none, z3.ULE(step.e_dot, high)),
        [in_range],
    )
    at_top = c.exponent == step.e_max
    top = proving.claim(
        "e_max where c is not the largest",
        "e_max is that of c, or no larger than a product's",
        z3.Implies(none, z3.Or(at_top, z3.ULE(step.e_max, high))),
        [dot, larger],
    )
    least = proving.claim(
        "c's exponent",
        "c's exponent is at least the least",
        z3.UGE(c.exponent, x.all.constant(x.spec.c_format.min_exponent)),
    )
    placed = place(
        "c",
        c.sign,
        significand=c.significand,
        below=step.e_max - c.exponent,
        aligned=c.significand,
        places=places,
        bits=bits,
        lift=p.F - M,
    )
    exact, kept = placed.signed_exact, wide(step.c_cut, bits) << places
    below, above = (_fixed(loss, places) for loss in (x.losses.c_below, x.losses.c_above))
    bounded = between(-below, kept - exact, above)
    claim = z3.Implies(none, where(at_top, kept == exact, bounded))
    proving.claim(
        "cut of c",
        f"where c's exponent is e_max it is kept, elsewhere at most 1 − 2^-{x.losses.places} units are taken away"
        + (f", or {x.losses.c_above} added" if above else ""),
        claim,
        [larger, top, least],
        [c.sign, c.significand, c.exponent, step.e_max, none],
    )
    error = z3.Implies(none, where(at_top, kept - exact == 0, bounded))
    text = "an error of c is 0, or in its bounds"
    proving.claim("error of c", text, error, [claim])
    return kept, exact, error


def _fixed(units: Fraction, places: int) -> int:
    scaled_up = units * (1 << places)
    demand(scaled_up.denominator == 1, "a bound that the fixed point does not have")
    return int(scaled_up)


def unit_of(x: Frame) -> z3.BitVecRef:
    """The exponent of the total's last place, in two's complement."""
    bits = max(x.all.bits, abs(x.all.low).bit_length(), x.p.dot_bits.bit_length()) + 5
    return fit(x.step.e_max, bits) + (x.all.low - x.p.dot_bits)


def rounded_down(x: Frame) -> z3.BitVecRef:
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
    proving: Composing, x: Frame, none: z3.BoolRef, larger: z3.BoolRef, dot: Sum, kept: Sum
) -> tuple[z3.BoolRef, tuple[z3.BitVecRef, z3.BitVecRef, z3.BoolRef, int]]:
    """(d = ρ(S); S, the total in the fixed point, the bounds of what S's cut takes)."""
    step, p, bits = x.step, x.p, x.bits
    total, e_max, gap, bound = step.total, step.e_max, p.dot_bits - p.F, fdrda.dot_bound(p, p.L)
    distance = e_max - step.e_dot
    same = distance == 0
    of_dot = proving.claim(
        "range of the cut dot product",
        "the dot product is no larger when cut, and without bits below where it is not cut",
        where(
            same,
            z3.And(within(step.dot_cut, bound << gap), z3.Extract(gap - 1, 0, step.dot_cut) == 0)
            if gap
            else within(step.dot_cut, bound),
            within(step.dot_cut, (bound << gap) + 1 >> 1),
        ),
        [larger, dot.small],
    )
    c_bound, c = 1 << (p.F + 1), step.addend
    of_c = proving.claim(
        "range of c",
        "c is below 2",
        within(step.c_cut, c_bound),
    )
    c_value, value = wide(step.c_cut, bits) << x.all_places, wide(total, bits) << kept.places
    text = "the sum of the dot product and c does not wrap"
    reaches = (bound + c_bound) << gap, ((bound << gap) + 1 >> 1) + (c_bound << gap)
    whole = z3.Extract(gap - 1, 0, total) == 0 if gap else z3.BoolVal(True)
    in_range = where(same, z3.And(within(total, reaches[0]), whole), within(total, reaches[1]))
    added = value == kept.value + c_value
    proving.claim("sum with c", text, z3.And(added, in_range), [of_dot, of_c])
    least = x.all.constant(x.spec.c_format.min_exponent)
    at_least = proving.claim(
        "least e_max",
        "e_max is at least c's exponent, so at least the least",
        z3.UGE(e_max, least),
        [larger, z3.UGE(c.exponent, least)],
    )
    S = rounded_down(x)
    longest = max(
        reaches[1].bit_length() - 1 - (p.sum_bits or p.dot_bits + 64), p.dot_bits - (p.sum_bits or p.dot_bits)
    )
    most = (1 << max(longest, 0)) - 1
    of_S = proving.claim(
        "cut of the sum",
        "rounding the sum down takes nothing where e_dot is e_max, and little elsewhere",
        where(same, total == S, between(0, total - S, most)),
        [in_range, at_least],
    )
    S_value = wide(S, bits) << kept.places
    error = where(same, S_value == value, between(-(most << kept.places), S_value - value, 0))
    proving.claim("error of the sum", "the same in the fixed point", error, [of_S, in_range])
    rounded = _rounded(proving, x, none=none, S=S, at_least=at_least, in_range=in_range, reach=reaches[0])
    return rounded, (S_value, value, error, most << kept.places)


def _rounded(
    proving: Composing,
    x: Frame,
    none: z3.BoolRef,
    S: z3.BitVecRef,
    at_least: z3.BoolRef,
    in_range: z3.BoolRef,
    reach: int,
) -> z3.BoolRef:
    """That d = ρ(S)."""
    step, p = x.step, x.p
    total, e_max = step.total, step.e_max
    negative, m = magnitude_of(S)
    code, rho = step.result, p.rho
    sign = z3.Extract(code.size() - 1, code.size() - 1, code) == 1
    zero = z3.Extract(code.size() - 2, 0, code) == 0
    unit = unit_of(x)
    highest = proving.claim(
        "e_max in range",
        "e_max is in its range",
        z3.ULE(e_max, x.all.constant(x.all.high)),
    )
    of_total = proving.claim(
        "range of the sum",
        "the sum is in its range",
        within(total, reach),
        [in_range],
    )
    return proving.claim(
        f"rounded by {rho}",
        f"d is {rho} of S: by definition, no other number of the format is the right one",
        z3.Implies(none, z3.And(is_rounded(m, unit, code, rho, negative), z3.Or(zero, sign == negative))),
        [at_least, highest, of_total],
        [total, e_max, *step.special],
    )


def _together(
    proving: Composing,
    x: Frame,
    none: z3.BoolRef,
    larger: z3.BoolRef,
    kept: Sum,
    c: tuple[z3.BitVecRef, z3.BitVecRef, z3.BoolRef],
    S: tuple[z3.BitVecRef, z3.BitVecRef, z3.BoolRef, int],
) -> z3.BoolRef:
    """The bounds of S less the exact sum, from those of the dot product, of c, and of the last cut."""
    step, places = x.step, x.all_places
    dot_kept, dot_exact, c_kept, c_exact = kept.value, kept.exact, *c[:2]
    S_value, value, of_S, _ = S
    whole = S_value - (dot_exact + c_exact)
    parts = [S_value - (dot_kept + c_kept), dot_kept - dot_exact, c_kept - c_exact]
    text = "the error of S is the sum of the errors of its last cut, the dot product and c"
    identity = proving.claim("parts", text, whole == total_of(parts))
    last = proving.claim(
        "last cut",
        text,
        parts[0] == S_value - value,
        [value == dot_kept + c_kept],
    )
    same, at_top = step.e_max - step.e_dot == 0, step.addend.exponent == step.e_max
    one = proving.claim(
        "either",
        "e_max is that of the dot product or that of c",
        z3.Or(same, at_top),
        [larger],
    )
    below, above = (_fixed(loss, places) for loss in (x.losses.below, x.losses.above))
    bounded = z3.Implies(none, between(-below, whole, above))
    of_sum = proving.claim(
        "error of the last cut",
        "an error of the last cut, in both cases",
        where(same, S_value - value == 0, of_S.arg(1).arg(1)),
        [of_S],
    )
    text = f"S is at most {float(x.losses.below):.6g} units below the exact sum, {float(x.losses.above):.6g} above"
    given = [identity, last, one, kept.bounded, c[2], of_sum]
    return proving.claim("error of S", text, bounded, given)
