"""Proofs of what the terms of a step of fda and gdfs lose where they are aligned, at most; and that they lose no more.

Either c has the largest exponent, or a product has it; products of one scale block lie close to each other, and lose
less then.  Every term is an integer of one fixed point, so a loss is a difference, and its bound a comparison.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import z3

from mmaformal.encodings.fda import Fda
from mmaformal.encodings.gdfs import Gdfs
from mmaformal.encodings.smt.blocks import Operand
from mmaformal.facts.fused_steps import (
    E2M1_PRODUCT,
    AlignedTerms,
    Fused,
    prove_e_max,
    prove_highest,
    prove_rounding,
    prove_small,
)
from mmaformal.proof.composition import Composing
from mmaformal.proof.definitions import fit
from mmaformal.proof.fixed_sums import (
    Placed,
    limited,
    placed_term,
    prove_accumulated,
    prove_error,
    prove_errors_add_up,
    total_of,
)
from mmaformal.proof.fused import Loss, Summand, largest_loss
from mmaformal.proof.kernel import demand
from mmaformal.rounding import Rounding
from mmaformal.spec import DotAdd, LossModel

NOTHING = Loss(Fraction(0), 0, 0)


@dataclass(frozen=True)
class Case:
    """One way of who has the largest exponent, and what is lost then."""

    largest: str  #: `c` or `product`
    neighbours: int  #: products that lose `near`: those of the same scale block
    near: Loss
    others: int  #: products that lose `far`
    far: Loss
    addend: Loss  #: of c
    at_top: Loss  #: of the term that has the largest exponent

    @property
    def losses(self) -> list[Fraction]:
        each = [self.near] * self.neighbours + [self.far] * self.others + [self.addend, self.at_top]
        return [loss.units for loss in each if loss.units]

    @property
    def n(self) -> Fraction:
        return sum(self.losses, Fraction(0))


# ---- fda and gdfs: what can be lost --------------------------------------------------------------------------------


def factor_bits(x: Summand) -> tuple[int, ...]:
    return tuple(factor.size() for factor in x.factors)


def loss_of(x: Summand, places: int, group_reach: int) -> Loss:
    """The most that a term can lose whose last place is at most `places` below the unit."""
    if x.name == "group":  # its first factor is a sum in two's complement, at most `group_reach`
        return largest_loss((0, *factor_bits(x)[1:]), places, limit=group_reach)
    return largest_loss(factor_bits(x), places)


def most_lost(cut: Rounding, bits: tuple[int, ...], places: int) -> Loss:
    """The most that a product of factors of so many bits is off where it is cut, if its last place is at most `places`
    below the unit.

    Cut to odd, it is the least number there is, which becomes one unit.
    """
    if cut is Rounding.RZ or places <= 0:
        return largest_loss(bits, places)
    demand(cut is Rounding.RO, f"terms that are cut by {cut.name}")
    return Loss(1 - Fraction(1, 1 << places), 1, places)


@dataclass(frozen=True)
class Ranges:
    """Exponents that finite terms have; of products, `near` counts from their scales' exponents."""

    near: tuple[int, int]
    far: tuple[int, int]
    c: tuple[int, int]


def exponent_ranges(spec: DotAdd, x: Fused) -> Ranges:
    far, c = (x.low[0], x.high[0]), (x.low[-1], x.high[-1])
    if spec.scale_format is None:
        return Ranges(far, far, c)
    scale = spec.scale_format
    return Ranges((far[0] - 2 * scale.min_exponent, far[1] - 2 * scale.max_exponent), far, c)


def cases_of(spec: DotAdd, x: Fused) -> tuple[Case, Case]:
    """Return the losses where c has the largest exponent, and those where a product has it."""
    p, r, group = spec.parameters, exponent_ranges(spec, x), group_reach(spec)
    assert isinstance(p, (Fda, Gdfs))
    product, c = x.summands[0], x.summands[-1]
    f, M, count = product.fraction_bits, c.fraction_bits, len(x.summands) - 1

    def product_loss(top: int, low: int) -> Loss:
        return loss_of(product, (top - x.F) - (low - f), group)

    same = count_in_block(spec) - 1
    under_c = product_loss(r.c[1], r.far[0])
    case_c = Case(
        "c", 0, near=NOTHING, others=count, far=under_c, addend=NOTHING, at_top=loss_of(c, M - x.F, group)
    )
    near, far = product_loss(r.near[1], r.near[0]), product_loss(r.far[1], r.far[0])
    lost_c = loss_of(c, (r.far[1] - x.F) - (r.c[0] - M), group)
    at_top = loss_of(product, f - x.F, group)
    return case_c, Case(
        "product", same, near=near, others=count - 1 - same, far=far, addend=lost_c, at_top=at_top
    )


def group_reach(spec: DotAdd) -> int:
    """The largest sum of a group's products, in units of its last place; 0 where there are no groups."""
    p = spec.parameters
    return p.group * E2M1_PRODUCT if p.loss is LossModel.GROUPS else 0


def count_in_block(spec: DotAdd) -> int:
    """How many terms of a step share their scales; all of them if there are none."""
    p = spec.parameters
    assert isinstance(p, (Fda, Gdfs))
    each = p.group
    return p.L // each if spec.scale_format is None else min(p.L, spec.scale_block) // each


# ---- fda and gdfs: proof -------------------------------------------------------------------------------------------


def prove_fused_losses(
    proving: Composing, spec: DotAdd, x: Fused, known: KnownTerm | None = None
) -> z3.BoolRef:
    """Prove that no more is lost than `cases_of` says, or what is `known`, and d is ρ of the sum; returns what was
    proved of both."""
    p = spec.parameters
    assert isinstance(p, (Fda, Gdfs))
    none = z3.Not(z3.Or(*x.step.special))
    at_most, some = prove_e_max(proving, x)
    prove_small(proving, x, at_most)
    rounded = prove_rounding(proving, x, prove_highest(proving, x, at_most, some))
    _claim_finite(proving, x, none)
    losses = Alignment(
        proving, spec, x, none, known or KnownTerm(exponent_ranges(spec, x), cases_of(spec, x))
    )
    losses.within_ranges(at_most, some)
    facts = [losses.of_product(k, below) for k, below in enumerate(at_most[:-1])]
    blocks = [losses.of_block(b, facts) for b in range(losses.blocks)]
    linked, _ = prove_accumulated(proving, losses.terms, x.step.total, x.bounds)
    bounded = errors_together(losses, blocks, losses.of_c(at_most[-1]), linked, some)
    return z3.And(bounded, rounded)


@dataclass(frozen=True)
class KnownTerm:
    """Knowledge of a step's inputs, and so of what is lost: ranges and cases, and claims made before, or assumed."""

    ranges: Ranges
    cases: tuple[Case, Case]
    of_product: Sequence[Sequence[z3.BoolRef]] = ()  #: claims about the factors of each
    of_c: Sequence[z3.BoolRef] = ()


def placed_terms(x: Fused | AlignedTerms) -> list[Placed]:
    """The terms of a step, or of a group, in a fixed point that holds every one of them exactly."""
    x = x.whole if isinstance(x, Fused) else x
    most = max(s.fraction_bits for s in x.summands)
    places = (1 << x.exponents.bits) - 1 + max(most - x.F, 0)
    bits = places + sum(x.bounds).bit_length() + 3
    terms = []
    for s in x.summands:
        below, lift = x.e_max - s.term.exponent, x.F - s.fraction_bits
        terms.append(
            placed_term(s.name, s.term.sign, s.term.significand, below, s.aligned, places, bits, lift)
        )
    return terms


class Alignment:
    """The losses of a step's terms where they are aligned, in a fixed point that holds every term exactly."""

    def __init__(
        self, proving: Composing, spec: DotAdd, x: Fused, none: z3.BoolRef, known: KnownTerm
    ) -> None:
        self.proving, self.spec, self.x, self.none = proving, spec, x, none
        ex, self.terms = x.exponents, placed_terms(x)
        self.places = self.terms[0].places
        self.wide = max(ex.bits + 2, *(abs(e).bit_length() + 3 for e in (ex.low, ex.high)))
        self.ranges, self.top, self.known = known.ranges, fit(x.step.e_max, self.wide) + ex.low, known
        self.tops = [s.term.exponent == x.step.e_max for s in x.summands]
        self.cases = known.cases
        self.each = count_in_block(spec)  #: terms that share their scales

    @property
    def either_way(self) -> bool:
        """Whether a term that is aligned may become larger."""
        return self.spec.parameters.cuts_to_odd

    @property
    def blocks(self) -> int:
        return (len(self.terms) - 1) // self.each

    def members(self, b: int) -> range:
        return range(b * self.each, (b + 1) * self.each)

    def any_of(self, b: int) -> z3.BoolRef:
        """Whether a product of the b-th block has the largest exponent."""
        return z3.Or([self.tops[k] for k in self.members(b)])

    def exponent(self, k: int) -> z3.BitVecRef:
        return fit(self.x.summands[k].term.exponent, self.wide) + self.x.exponents.low

    def fixed(self, units: Fraction) -> int:
        scaled = units * (1 << self.places)
        demand(scaled.denominator == 1, "a bound that the fixed point does not have")
        return int(scaled)

    def within_ranges(self, at_most: Sequence[z3.BoolRef], some: z3.BoolRef) -> None:
        """How large e_max is, if c has it; if a product of a block has it; if any product has it."""
        proving, x, none, r = self.proving, self.x, self.none, self.ranges
        e_zero = self.spec.parameters.e_zero  # type: ignore[attr-defined]
        c = x.summands[-1]
        e, zero = self.exponent(-1), c.term.significand == 0
        text = "c's exponent is at most that of the largest number"
        proving.claim("c high", text, z3.Implies(_finite(x, -1), e <= r.c[1]))
        high = z3.Implies(none, e <= r.c[1])
        text = "so if c has the largest exponent, that is at most as large"
        self.under_c = z3.Implies(self.when_c, self.top <= r.c[1])
        proving.claim("e_max of c", text, self.under_c, [high])
        given = []
        if e_zero is not None:
            text = "a term that is not zero has an exponent that numbers of its format have, and zero e_zero"
            low = z3.And(z3.Or(zero, e >= r.c[0]), z3.Implies(zero, e == e_zero))
            proving.claim("exponent of c", text, low)
            text = "c is zero if e_zero is the largest exponent, so c's is the largest"
            is_c = z3.Implies(self.top == e_zero, self.tops[-1])
            given = [proving.claim("e_zero", text, is_c, [at_most[-1], low])]
        self.under_block: list[z3.BoolRef] = []
        far: list[z3.BoolRef] = []
        for b in range(self.blocks):
            scales = scale_exponents(self.spec, x, self.members(b)[0], self.wide)
            near: list[z3.BoolRef] = []
            for k in self.members(b):
                for bound, claims in ((scales + r.near[1], near), (z3.BitVecVal(r.far[1], self.wide), far)):
                    claims.append(self._top_at_most(k, bound, given))
            claim = z3.Implies(self.when_block(b), self.top <= scales + r.near[1])
            text = "so if a product of a block has the largest exponent, that is at most as large"
            self.under_block.append(proving.claim("e_max of a block", text, claim, near))
        self.under_far = z3.Implies(self.when_product, self.top <= r.far[1])
        text = "so if c has not the largest exponent, that is at most that of the largest products"
        proving.claim("e_max of products", text, self.under_far, [*far, some])

    def _top_at_most(self, k: int, bound: z3.BitVecRef, given: Sequence[z3.BoolRef]) -> z3.BoolRef:
        """Return the claim that e_max is at most `bound` where the k-th product has it and c has not."""
        e, e_zero = self.exponent(k), self.spec.parameters.e_zero  # type: ignore[attr-defined]
        at_most = z3.Or(e <= bound, e == e_zero) if e_zero is not None else e <= bound
        text = "a product's exponent is at most that of the largest numbers, or e_zero"
        self.proving.claim("product high", text, z3.Implies(_finite(self.x, k), at_most))
        high = z3.Implies(self.none, at_most)
        claim = z3.Implies(z3.And(self.when_product, self.tops[k]), self.top <= bound)

        text = "so if it has the largest exponent, and c has not, that is at most as large"
        return self.proving.claim("e_max of a product", text, claim, [high, *given])

    @property
    def when_c(self) -> z3.BoolRef:
        return z3.And(self.none, self.tops[-1])

    @property
    def when_product(self) -> z3.BoolRef:
        return z3.And(self.none, z3.Not(self.tops[-1]))

    def when_block(self, b: int) -> z3.BoolRef:
        return z3.And(self.none, z3.Not(self.tops[-1]), self.any_of(b))

    def of_product(self, k: int, below: z3.BoolRef) -> list[z3.BoolRef]:
        """Bounds of the k-th product's error: if c has the largest exponent, or one of its block, or any, or it."""
        proving, x, r = self.proving, self.x, self.ranges
        s, e, b, term = x.summands[k], self.exponent(k), k // self.each, self.terms[k]
        scales = scale_exponents(self.spec, x, k, self.wide)
        given = [below, *(self.known.of_product[k] if self.known.of_product else ())]
        if self.spec.parameters.loss is LossModel.GROUPS:
            reach = group_reach(self.spec)
            given.append(z3.And(s.factors[0] <= reach, s.factors[0] >= -reach))
        low, near_low = (self._low(k, e >= least) for least in (r.far[0], scales + r.near[0]))
        with_c, with_product = self.cases
        cases = [
            (self.when_c, with_c.far, [low, self.under_c], "if c has the largest exponent"),
            (self.when_product, with_product.far, [low, self.under_far], "if a product has it"),
            (
                self.when_block(b),
                with_product.near,
                [near_low, self.under_block[b]],
                "if one of its block has it",
            ),
        ]
        cases.append((self.tops[k], with_product.at_top, [], "if it has it itself"))
        made_of = [x.step.e_max, s.term.exponent, s.term.significand] if self.either_way else []
        return [
            prove_error(
                proving,
                term,
                self.fixed(loss.units),
                when,
                [*given, *more],
                why,
                self.either_way,
                made_of if when.eq(self.tops[k]) or not made_of else [when, *made_of],
            )
            for when, loss, more, why in cases
        ]

    def _low(self, k: int, low: z3.BoolRef) -> z3.BoolRef:
        """Prove that the k-th product has at least the least exponent, or a factor that is zero; or is zero itself,
        where it is cut to odd: what it is off at most does not depend on its factors then."""
        s = self.x.summands[k]
        claim = _claim_low(self.proving, s, z3.Or([f == 0 for f in s.factors]), low)
        if not self.either_way:
            return claim
        text = "so it is zero, or has such an exponent"
        return self.proving.claim(f"low {s.name}", text, z3.Or(s.term.significand == 0, low), [claim])

    def of_c(self, below: z3.BoolRef) -> list[z3.BoolRef]:
        """Bounds of c's error: if c has the largest exponent, or a product has it."""
        proving, x, term, (with_c, with_product) = self.proving, self.x, self.terms[-1], self.cases
        c, e = x.summands[-1], self.exponent(-1)
        low = _claim_low(proving, c, c.term.significand == 0, e >= self.ranges.c[0])
        at_top, lost = (self.fixed(loss.units) for loss in (with_c.at_top, with_product.addend))
        given, why = [below, *self.known.of_c], "if a product has the largest exponent"
        more = [below, low, self.under_far, *self.known.of_c]
        return [
            prove_error(proving, term, at_top, self.when_c, given, "if c has it itself", self.either_way),
            prove_error(proving, term, lost, self.when_product, more, why, self.either_way),
        ]

    def of_block(self, b: int, facts: Sequence[Sequence[z3.BoolRef]]) -> z3.BoolRef:
        """The bound of the sum of the errors of a block."""
        members, with_product = self.members(b), self.cases[1]
        near, at_top = (self.fixed(loss.units) for loss in (with_product.near, with_product.at_top))
        tops = [self.tops[k] for k in members]
        seen = [tops[0]]
        for top in tops[1:]:
            seen.append(z3.Or(top, seen[-1]))  # not the term of `any_of`: that is cut away

        def bound(n: int, error: z3.BitVecRef) -> z3.BoolRef:
            some = z3.And(self.when_block(b), seen[n - 1])
            return z3.And(
                z3.Implies(self.when_block(b), limited(error, n * near)),
                z3.Implies(some, limited(error, (n - 1) * near + at_top)),
                self.apart(n, error),
            )

        terms = [self.terms[k] for k in members]
        added = prove_errors_add_up(self.proving, terms, [facts[k] for k in members], bound)
        error, n = total_of([term.error for term in terms]), len(members)
        least = z3.Implies(self.when_block(b), limited(error, (n - 1) * near + at_top))
        text = "of a block whose products have the largest exponent, one loses least"
        claim = z3.And(least, self.apart(n, error))
        return self.proving.claim("error of a block", text, claim, [added])

    def apart(self, n: int, error: z3.BitVecRef) -> z3.BoolRef:
        """The bound of n products' errors, where none of their block has the largest exponent."""
        under_c, far = (self.fixed(case.far.units) for case in self.cases)
        of_product = z3.Implies(self.when_product, limited(error, n * far))
        return z3.And(z3.Implies(self.when_c, limited(error, n * under_c)), of_product)


def errors_together(
    at: Alignment,
    blocks: Sequence[z3.BoolRef],
    of_c: Sequence[z3.BoolRef],
    linked: z3.BoolRef,
    some: z3.BoolRef,
) -> z3.BoolRef:
    """The bound of the sum's error, from those of blocks and of c."""
    proving, none, with_product = at.proving, at.none, at.cases[1]
    errors = [total_of([at.terms[k].error for k in at.members(b)]) for b in range(at.blocks)]
    near, far, at_top = (
        at.fixed(loss.units) for loss in (with_product.near, with_product.far, with_product.at_top)
    )
    one = (at.each - 1) * near + at_top
    running, seen = errors[0], at.any_of(0)

    def bound(m: int, error: z3.BitVecRef, seen: z3.BoolRef) -> z3.BoolRef:
        least = z3.Implies(z3.And(at.when_product, seen), limited(error, (m - 1) * at.each * far + one))
        return z3.And(least, at.apart(m * at.each, error))

    known, text = bound(1, running, seen), "errors of blocks add up"
    for b in range(1, at.blocks):
        after, more = running + errors[b], z3.Or(seen, at.any_of(b))
        proving.claim(f"errors of {b + 1} blocks", text, bound(b + 1, after, more), [known, blocks[b]])
        running, seen = after, more
        known = bound(b + 1, running, seen)
    own = at.terms[-1].error
    most = at.fixed(max(case.n for case in at.cases))
    bounded = z3.Implies(none, limited(running + own, most))
    text = "with c, they are at most n units"
    proving.claim("error", text, bounded, [known, *of_c, some])
    total = total_of([term.error for term in at.terms])
    same = proving.claim("order", "the order of adding errors does not matter", total == running + own)
    off = linked.arg(0)
    claim = z3.Implies(none, limited(off, most))
    text = "so the sum is off by at most n units"
    return proving.claim("error of the sum", text, claim, [linked, same, bounded])


def _operands(x: Fused, k: int) -> list[Operand]:
    """Return the operands of the k-th product (or group), with their scales; c's, for -1."""
    step = x.step
    if k == -1:
        return [step.c]
    scales = [side[k] for side in x.scales if side]
    return scales if x.summands[k].name == "group" else [step.a[k], step.b[k], *scales]


def _finite(x: Fused, k: int) -> z3.BoolRef:
    """Whether no operand of the k-th summand is special."""
    return z3.Not(z3.Or([flag for operand in _operands(x, k) for flag in (operand.infinite, operand.nan)]))


def _claim_finite(proving: Composing, x: Fused, none: z3.BoolRef) -> None:
    indices = [*range(len(x.summands) - 1), -1]
    claim = z3.Implies(none, z3.And([_finite(x, k) for k in indices]))
    proving.claim("finite", "where nothing is special, all operands are numbers", claim)


def _claim_low(proving: Composing, x: Summand, zero: z3.BoolRef, low: z3.BoolRef) -> z3.BoolRef:
    text = "a term that is not zero has an exponent that numbers of its format have"
    return proving.claim(f"{x.name} low", text, z3.Or(zero, low))


def scale_exponents(spec: DotAdd, x: Fused, k: int, bits: int) -> z3.BitVecRef:
    """The sum of the exponents of the k-th term's scales, 0 without them."""
    if spec.scale_format is None:
        return z3.BitVecVal(0, bits)
    a, b = x.scales
    fields = fit(a[k].field, bits) + fit(b[k].field, bits)
    return fields - 2 * spec.scale_format.bias
