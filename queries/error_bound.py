"""How far d is from the exact sum: the tightest bound of the form n · 2^(e_max − F) + rounding.

    python -m mmaformal.queries.error_bound hopper HMMA.16816.F32

One step of a fused algorithm rounds S = Σ (aligned terms) once, d = ρ(S), and

    |S − (c + Σ a·b)| ≤ n · 2^(e_max − F),

e_max the step's largest exponent.  n is a fraction: the most that alignment can cut off all terms together, counted
for the significands and exponents that the formats have.  It is proved for all inputs that are numbers, and reached:
the witness is an input whose |S − exact| *is* n · 2^(e_max − F), so no smaller n holds.  With ρ = RZ, d is then less
than one last place of d from S; with RNE, at most half of one (`exactness` proves that d = ρ(S) by definition).

A term loses at most λ < 1 units, and one that has the exponent e_max at most λ₀ (0 if its last place is not below the
unit).  Either c has the largest exponent, and all L products lose: n = L·λ + λ₀; or a product has it, and the others
and c lose: n = (L − 1)·λ + λ₀ + λ_c.  Products of one scale block lie close to each other, and lose less then.

In a chain each step's result enters the next exactly, so the errors of the steps, each with its own e_max, add up:
d_m − (c + Σ P_i) = Σ (d_i − (d_(i−1) + P_i)), P_i the sum of the products of the i-th step.

Every term, and every sum, is an integer of one fixed point (`composition`), so what is lost is a difference; and that
the lemmas give the bound is the last obligation.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache
from typing import Any

import z3

from mmaformal.algorithms import DotAdd, Efda, Fda, Fdrda, Gdfs, Gps, Sfma
from mmaformal.cases.inputs import Codes, symbolic_inputs
from mmaformal.cases.low_bits import encode_number, pairs_losing, product_codes
from mmaformal.cases.numerical import Shown, exact, inputs_text, run_both, with_products, zeros
from mmaformal.encodings import executable
from mmaformal.encodings.smt.blocks import Operand
from mmaformal.facts import error_bound_round_down as round_down
from mmaformal.facts.exact_steps import prove_step
from mmaformal.facts.exact_terms import prove_chain, prove_inputs
from mmaformal.facts.fused_steps import (
    E2M1_PRODUCT,
    Fused,
    fused_step,
    one_step,
    prove_e_max,
    prove_highest,
    prove_rounding,
    prove_total,
)
from mmaformal.formats import Format, e2m1
from mmaformal.instruction import Instruction
from mmaformal.proof.composition import (
    Composing,
    place,
    prove_accumulated,
    prove_error,
    prove_errors_add_up,
    total_of,
    within,
)
from mmaformal.proof.definitions import fit
from mmaformal.proof.fused import Loss, Summand, largest_loss
from mmaformal.proof.proving import NotProvedError, Proving
from mmaformal.queries.property import Property
from mmaformal.solver.answers import Answer, Fails, Holds, Number, Unknown
from mmaformal.solver.asking import Asker
from mmaformal.witness import WitnessError

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


@dataclass(frozen=True)
class Ranges:
    """Exponents that finite terms have; of products, `near` counts from their scales' exponents."""

    near: tuple[int, int]
    far: tuple[int, int]
    c: tuple[int, int]


def ranges_of(spec: DotAdd, x: Fused) -> Ranges:
    far, c = (x.low[0], x.high[0]), (x.low[-1], x.high[-1])
    if spec.scale_format is None:
        return Ranges(far, far, c)
    scale = spec.scale_format
    return Ranges((far[0] - 2 * scale.min_exponent, far[1] - 2 * scale.max_exponent), far, c)


def cases_of(spec: DotAdd, x: Fused) -> tuple[Case, Case]:
    """What is lost where c has the largest exponent, and where a product has it."""
    p, r, group = spec.parameters, ranges_of(spec, x), group_reach(spec)
    assert isinstance(p, (Fda, Gdfs))
    product, c = x.summands[0], x.summands[-1]
    f, M, count = product.fraction_bits, c.fraction_bits, len(x.summands) - 1

    def product_loss(top: int, low: int) -> Loss:
        return loss_of(product, (top - x.F) - (low - f), group)

    same = count_in_block(spec) - 1
    under_c = product_loss(r.c[1], r.far[0])
    case_c = Case("c", 0, NOTHING, count, under_c, NOTHING, loss_of(c, M - x.F, group))
    near, far = product_loss(r.near[1], r.near[0]), product_loss(r.far[1], r.far[0])
    lost_c = loss_of(c, (r.far[1] - x.F) - (r.c[0] - M), group)
    at_top = loss_of(product, f - x.F, group)
    return case_c, Case("product", same, near, count - 1 - same, far, lost_c, at_top)


def group_reach(spec: DotAdd) -> int:
    """The largest sum of a group's products, in units of its last place; 0 where there are no groups."""
    return spec.parameters.G * E2M1_PRODUCT if isinstance(spec.parameters, Gdfs) else 0


def count_in_block(spec: DotAdd) -> int:
    """How many terms of a step share their scales; all of them if there are none."""
    p = spec.parameters
    assert isinstance(p, (Fda, Gdfs))
    each = p.G if isinstance(p, Gdfs) else 1
    return p.L // each if spec.scale_format is None else min(p.L, spec.scale_block) // each


# ---- fda and gdfs: proof -------------------------------------------------------------------------------------------


def prove_fused(proving: Composing, spec: DotAdd, x: Fused) -> z3.BoolRef:
    """That no more is lost than `cases_of` says, and d is ρ of the sum; returns what was proved of both."""
    p = spec.parameters
    assert isinstance(p, (Fda, Gdfs))
    none = z3.Not(z3.Or(*x.step.special))
    at_most, some = prove_e_max(proving, x)
    prove_total(proving, x, at_most)
    rounded = prove_rounding(proving, x, prove_highest(proving, x, at_most, some))
    _claim_finite(proving, x, none)
    losses = Alignment(proving, spec, x, none)
    losses.within_ranges(at_most, some)
    facts = [losses.of_product(k, below) for k, below in enumerate(at_most[:-1])]
    blocks = [losses.of_block(b, facts) for b in range(losses.blocks)]
    total, reach = x.step.total, sum(x.bounds)
    linked, small = prove_accumulated(proving, losses.terms, total, x.bounds)
    in_range = z3.And(total <= reach, total >= -reach)
    proving.claim("range of the sum", "the sum is at most that of the bounds", in_range, [small], [total])
    bounded = losses.together(blocks, losses.of_c(at_most[-1]), linked, some)
    return z3.And(bounded, rounded)


class Alignment:
    """What the terms of a step lose where they are aligned, in a fixed point that holds every term exactly."""

    def __init__(self, proving: Composing, spec: DotAdd, x: Fused, none: z3.BoolRef) -> None:
        self.proving, self.spec, self.x, self.none = proving, spec, x, none
        ex, most = x.exponents, max(s.fraction_bits for s in x.summands)
        self.places = (1 << ex.bits) - 1 + max(most - x.F, 0)
        self.bits = self.places + sum(x.bounds).bit_length() + 3
        self.terms = [
            place(
                s.name,
                s.term.sign,
                s.term.significand,
                x.step.e_max - s.term.exponent,
                s.aligned,
                self.places,
                self.bits,
                x.F - s.fraction_bits,
            )
            for s in x.summands
        ]
        self.wide = max(ex.bits + 2, *(abs(e).bit_length() + 3 for e in (ex.low, ex.high)))
        self.ranges, self.top = ranges_of(spec, x), fit(x.step.e_max, self.wide) + ex.low
        self.tops = [s.term.exponent == x.step.e_max for s in x.summands]
        self.cases = cases_of(spec, x)
        self.each = count_in_block(spec)  #: terms that share their scales

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
        assert scaled.denominator == 1, "a bound that the fixed point does not have"
        return int(scaled)

    def within_ranges(self, at_most: Sequence[z3.BoolRef], some: z3.BoolRef) -> None:
        """How large e_max is, if c has it; if a product of a block has it; if any product has it."""
        proving, x, none, r = self.proving, self.x, self.none, self.ranges
        e_zero = self.spec.parameters.e_zero  # type: ignore[attr-defined]
        e_max, c = x.step.e_max, x.summands[-1]
        e, zero = self.exponent(-1), c.term.significand == 0
        text = "c's exponent is at most that of the largest number"
        proving.claim("c high", text, z3.Implies(_finite(x, -1), e <= r.c[1]))
        high = z3.Implies(none, e <= r.c[1])
        text = "so if c has the largest exponent, that is at most as large"
        self.under_c = z3.Implies(self.when_c, self.top <= r.c[1])
        proving.claim("e_max of c", text, self.under_c, [high], [c.term.exponent, e_max, none])
        given = []
        if e_zero is not None:
            text = "a term that is not zero has an exponent that numbers of its format have, and zero e_zero"
            low = z3.And(z3.Or(zero, e >= r.c[0]), z3.Implies(zero, e == e_zero))
            proving.claim("exponent of c", text, low)
            text = "c is zero if e_zero is the largest exponent, so c's is the largest"
            is_c = z3.Implies(self.top == e_zero, self.tops[-1])
            cut = [c.term.exponent, e_max, c.term.significand]
            given = [proving.claim("e_zero", text, is_c, [at_most[-1], low], cut)]
        self.under_block: list[z3.BoolRef] = []
        far: list[z3.BoolRef] = []
        for b in range(self.blocks):
            scales = scale_exponents(self.spec, x, self.members(b)[0], self.wide)
            near: list[z3.BoolRef] = []
            for k in self.members(b):
                for bound, claims in ((scales + r.near[1], near), (z3.BitVecVal(r.far[1], self.wide), far)):
                    claims.append(self._top_at_most(k, bound, scales, given))
            tops = [self.tops[k] for k in self.members(b)]
            claim = z3.Implies(self.when_block(b), self.top <= scales + r.near[1])
            text = "so if a product of a block has the largest exponent, that is at most as large"
            cut = [e_max, *_letters(scales), *tops, none, self.tops[-1]]
            self.under_block.append(proving.claim("e_max of a block", text, claim, near, cut))
        self.under_far = z3.Implies(self.when_product, self.top <= r.far[1])
        text = "so if c has not the largest exponent, that is at most that of the largest products"
        proving.claim("e_max of products", text, self.under_far, [*far, some], [e_max, *self.tops, none])

    def _top_at_most(
        self, k: int, bound: z3.BitVecRef, scales: z3.BitVecRef, given: Sequence[z3.BoolRef]
    ) -> z3.BoolRef:
        """That e_max is at most `bound` where the k-th product has it and c has not."""
        e, e_zero = self.exponent(k), self.spec.parameters.e_zero  # type: ignore[attr-defined]
        at_most = z3.Or(e <= bound, e == e_zero) if e_zero is not None else e <= bound
        text = "a product's exponent is at most that of the largest numbers, or e_zero"
        self.proving.claim("product high", text, z3.Implies(_finite(self.x, k), at_most))
        high = z3.Implies(self.none, at_most)
        claim = z3.Implies(z3.And(self.when_product, self.tops[k]), self.top <= bound)
        exponent, c = self.x.summands[k].term.exponent, self.tops[-1]
        cut = [c, exponent, self.x.step.e_max, *_letters(scales), self.none]
        text = "so if it has the largest exponent, and c has not, that is at most as large"
        return self.proving.claim("e_max of a product", text, claim, [high, *given], cut)

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
        proving, x, r, none, c = self.proving, self.x, self.ranges, self.none, self.tops[-1]
        s, e, b, term = x.summands[k], self.exponent(k), k // self.each, self.terms[k]
        scales = scale_exponents(self.spec, x, k, self.wide)
        zero = z3.Or([f == 0 for f in s.factors])
        given = [below]
        if isinstance(self.spec.parameters, Gdfs):
            reach = group_reach(self.spec)
            given.append(z3.And(s.factors[0] <= reach, s.factors[0] >= -reach))
        low = _claim_low(proving, s, zero, e >= r.far[0])
        near_low = _claim_low(proving, s, zero, e >= scales + r.near[0])
        own = [s.term.exponent, x.step.e_max, *s.factors]
        with_c, with_product = self.cases
        cases = [
            (self.when_c, with_c.far, [low, self.under_c], [none, c], "if c has the largest exponent"),
            (self.when_product, with_product.far, [low, self.under_far], [none, c], "if a product has it"),
            (
                self.when_block(b),
                with_product.near,
                [near_low, self.under_block[b]],
                [self.any_of(b), *_letters(scales), none, c],
                "if one of its block has it",
            ),
        ]
        claims = [
            prove_error(proving, term, self.fixed(loss.units), when, [*given, *more], [*cut, *own], why)
            for when, loss, more, cut, why in cases
        ]
        at_top = self.fixed(with_product.at_top.units)
        return [*claims, prove_error(proving, term, at_top, self.tops[k], given, own, "if it has it itself")]

    def of_c(self, below: z3.BoolRef) -> list[z3.BoolRef]:
        """Bounds of c's error: if c has the largest exponent, or a product has it."""
        proving, x, term, (with_c, with_product) = self.proving, self.x, self.terms[-1], self.cases
        c, e = x.summands[-1], self.exponent(-1)
        low = _claim_low(proving, c, c.term.significand == 0, e >= self.ranges.c[0])
        cut, at_top = [c.term.exponent, x.step.e_max, c.term.significand, self.none], with_c.at_top.units
        lost, why = self.fixed(with_product.addend.units), "if a product has the largest exponent"
        given = [below, low, self.under_far]
        return [
            prove_error(proving, term, self.fixed(at_top), self.when_c, [below], cut, "if c has it itself"),
            prove_error(proving, term, lost, self.when_product, given, cut, why),
        ]

    def of_block(self, b: int, facts: Sequence[Sequence[z3.BoolRef]]) -> z3.BoolRef:
        """The bound of the sum of the errors of a block."""
        members, with_product = self.members(b), self.cases[1]
        near, at_top = (self.fixed(loss.units) for loss in (with_product.near, with_product.at_top))
        tops, c, none = [self.tops[k] for k in members], self.tops[-1], self.none
        seen = [tops[0]]
        for top in tops[1:]:
            seen.append(z3.Or(top, seen[-1]))  # not the term of `any_of`: that is cut away

        def bound(n: int, error: z3.BitVecRef) -> z3.BoolRef:
            some = z3.And(self.when_block(b), seen[n - 1])
            return z3.And(
                z3.Implies(self.when_block(b), within(error, n * near)),
                z3.Implies(some, within(error, (n - 1) * near + at_top)),
                self._apart(n, error),
            )

        flags = [[self.any_of(b), none, c, *seen[max(i - 1, 0) : i], top] for i, top in enumerate(tops)]
        terms = [self.terms[k] for k in members]
        added = prove_errors_add_up(self.proving, terms, [facts[k] for k in members], bound, flags)
        error, n = total_of([term.error for term in terms]), len(members)
        least = z3.Implies(self.when_block(b), within(error, (n - 1) * near + at_top))
        text = "of a block whose products have the largest exponent, one loses least"
        claim = z3.And(least, self._apart(n, error))
        return self.proving.claim("error of a block", text, claim, [added], [error, *tops, c, none])

    def _apart(self, n: int, error: z3.BitVecRef) -> z3.BoolRef:
        """The bound of n products' errors, where none of their block has the largest exponent."""
        under_c, far = (self.fixed(case.far.units) for case in self.cases)
        of_product = z3.Implies(self.when_product, within(error, n * far))
        return z3.And(z3.Implies(self.when_c, within(error, n * under_c)), of_product)

    def together(
        self, blocks: Sequence[z3.BoolRef], of_c: Sequence[z3.BoolRef], linked: z3.BoolRef, some: z3.BoolRef
    ) -> z3.BoolRef:
        """The bound of the sum's error, from those of blocks and of c."""
        proving, none, c, with_product = self.proving, self.none, self.tops[-1], self.cases[1]
        errors = [total_of([self.terms[k].error for k in self.members(b)]) for b in range(self.blocks)]
        near, far, at_top = (
            self.fixed(loss.units) for loss in (with_product.near, with_product.far, with_product.at_top)
        )
        one = (self.each - 1) * near + at_top
        running, seen = errors[0], self.any_of(0)

        def bound(m: int, error: z3.BitVecRef, seen: z3.BoolRef) -> z3.BoolRef:
            least = z3.Implies(
                z3.And(self.when_product, seen), within(error, (m - 1) * self.each * far + one)
            )
            return z3.And(least, self._apart(m * self.each, error))

        known, text = bound(1, running, seen), "errors of blocks add up"
        for b in range(1, self.blocks):
            after, more = running + errors[b], z3.Or(seen, self.any_of(b))
            cut = [running, errors[b], seen, self.any_of(b), none, c]
            proving.claim(
                f"errors of {b + 1} blocks", text, bound(b + 1, after, more), [known, blocks[b]], cut
            )
            running, seen = after, more
            known = bound(b + 1, running, seen)
        own = self.terms[-1].error
        most = self.fixed(max(case.n for case in self.cases))
        bounded = z3.Implies(none, within(running + own, most))
        text = "with c, they are at most n units"
        cut = [running, own, *self.tops, none]
        proving.claim("error", text, bounded, [known, *of_c, some], cut)
        total, each = total_of([term.error for term in self.terms]), [term.error for term in self.terms]
        same = proving.claim(
            "order", "the order of adding errors does not matter", total == running + own, (), each
        )
        off = linked.arg(0)
        claim = z3.Implies(none, within(off, most))
        text = "so the sum is off by at most n units"
        return proving.claim(
            "error of the sum", text, claim, [linked, same, bounded], [off, total, running + own, none]
        )


def _operands(x: Fused, k: int) -> list[Operand]:
    """What the k-th product (or group) is made of; c, for -1."""
    step = x.step
    if k == -1:
        return [step.c]
    scales = [side[k] for side in (step.scale_a, step.scale_b) if side]
    return scales if x.summands[k].name == "group" else [step.a[k], step.b[k], *scales]


def _finite(x: Fused, k: int) -> z3.BoolRef:
    """Whether no operand of the k-th summand is special."""
    return z3.Not(z3.Or([flag for operand in _operands(x, k) for flag in (operand.infinite, operand.nan)]))


def _claim_finite(proving: Proving, x: Fused, none: z3.BoolRef) -> None:
    indices = [*range(len(x.summands) - 1), -1]
    flags = [
        part
        for k in indices
        for operand in _operands(x, k)
        for part in (operand.infinite, operand.nan, operand.significand, operand.sign)
        if not (z3.is_false(part) or z3.is_bv_value(part))
    ]
    claim = z3.Implies(none, z3.And([_finite(x, k) for k in indices]))
    proving.claim("finite", "where nothing is special, all operands are numbers", claim, (), flags)


def _letters(scales: z3.BitVecRef) -> list[z3.BitVecRef]:
    """What can be cut away of it."""
    return [] if z3.is_bv_value(scales) else [scales]


def _claim_low(proving: Proving, x: Summand, zero: z3.BoolRef, low: z3.BoolRef) -> z3.BoolRef:
    text = "a term that is not zero has an exponent that numbers of its format have"
    return proving.claim(f"{x.name} low", text, z3.Or(zero, low))


def scale_exponents(spec: DotAdd, x: Fused, k: int, bits: int) -> z3.BitVecRef:
    """The sum of the exponents of the k-th term's scales, 0 without them."""
    if spec.scale_format is None:
        return z3.BitVecVal(0, bits)
    fields = fit(x.step.scale_a[k].field, bits) + fit(x.step.scale_b[k].field, bits)
    return fields - 2 * spec.scale_format.bias


# ---- fda and gdfs: an input that reaches the bound -------------------------------------------------------------------


def reaching(spec: DotAdd, x: Fused, case: Case) -> Codes | None:
    """An input of one step that loses `case.n` units."""
    p, M = spec.parameters, spec.c_format.fraction_bits
    assert isinstance(p, (Fda, Gdfs))
    r, f = ranges_of(spec, x), x.summands[0].fraction_bits
    high = r.c[1] if case.largest == "c" else r.far[1]
    low = r.c[0] if case.largest == "c" else r.far[0]
    for e_max in sorted(range(low, high + 1), key=abs):
        codes = _reaching_at(spec, x, case, e_max, f, M)
        if codes is not None:
            return codes
    return None


def _reaching_at(spec: DotAdd, x: Fused, case: Case, e_max: int, f: int, M: int) -> Codes | None:
    codes = zeros(spec)
    if case.largest == "c":
        c = encode_number(1 << M | case.at_top.significand, e_max, spec.c_format)
    elif case.addend.units:
        part, places = case.addend.significand, case.addend.places
        exponent = e_max - x.F - places + M
        normal = encode_number(1 << M | part, exponent, spec.c_format) if places <= M else None
        c = encode_number(part, exponent, spec.c_format) if normal is None else normal
    else:
        c = 0
    if c is None:
        return None
    codes = replace(codes, c=c)
    if isinstance(spec.parameters, Gdfs):
        return _groups(spec, x, case, e_max, f, codes)
    formats = spec.a_format, spec.b_format
    wanted = [(case.at_top, e_max)] if case.largest == "product" else []
    wanted += [(case.near, e_max - x.F - case.near.places + f)] * case.neighbours
    wanted += [(case.far, e_max - x.F - case.far.places + f)] * case.others
    shift = 0
    if spec.scale_format is not None:  # one block: scales that bring its products to both sides of 0
        shift = 2 * ((wanted[0][1] + wanted[-1][1]) // 4)
        scale = spec.scale_format
        half = shift // 2 + scale.bias
        if not 0 <= half < (1 << scale.exponent_bits) - 1:
            return None
        codes = replace(codes, scale_a=(half,) * spec.scales, scale_b=(half,) * spec.scales)
    made: dict[tuple[Loss, int], tuple[int, int] | None] = {}
    for each in dict.fromkeys(wanted):
        loss, exponent = each
        part = loss.significand % (1 << loss.places)
        pairs = pairs_losing(part, loss.places, formats) if loss.units or loss is case.at_top else []
        made[each] = product_codes(pairs, exponent - shift, formats) if pairs else (0, 0)
        if made[each] is None:
            return None
    return with_products(codes, {k: made[each] for k, each in enumerate(wanted)})  # type: ignore[misc]


def _groups(spec: DotAdd, x: Fused, case: Case, e_max: int, f: int, codes: Codes) -> Codes | None:
    """The same for gdfs: sums of groups, and the scales of each."""
    p, scale = spec.parameters, spec.scale_format
    assert isinstance(p, Gdfs)
    assert scale is not None
    m, count = scale.fraction_bits, p.L // p.G
    wanted = [(NOTHING, e_max)] if case.largest == "product" else []
    wanted += [(case.near, e_max - x.F - case.near.places + f)] * case.neighbours
    wanted += [(case.far, e_max - x.F - case.far.places + f)] * case.others
    scales_a, scales_b = list(codes.scale_a), list(codes.scale_b)
    products: dict[int, tuple[int, int]] = {}
    for g, (loss, exponent) in zip(range(count), wanted, strict=True):
        made = _group(loss, exponent, m, scale, p.G)
        if made is None:
            return None
        pairs, (alpha, beta) = made
        products |= {g * p.G + k: pair for k, pair in enumerate(pairs)}
        block = g * p.G // spec.scale_block
        scales_a[block], scales_b[block] = alpha, beta
    return with_products(replace(codes, scale_a=tuple(scales_a), scale_b=tuple(scales_b)), products)


def _group(
    loss: Loss, exponent: int, m: int, scale: Format, G: int
) -> tuple[list[tuple[int, int]], tuple[int, int]] | None:
    """(e2m1 factors, scales) of a group whose significand ends with the part that `loss` loses."""
    low, high = scale.min_exponent, scale.max_exponent
    for u, v in sorted(
        ((u, v) for u in range(1, 2 << m) for v in range(1, 2 << m)), key=lambda pair: -min(pair)
    ):
        total = loss.significand // (u * v) if loss.units else 4
        if loss.units and total * u * v != loss.significand:
            continue
        pairs = _e2m1_sum(total, G)
        if pairs is None:
            continue
        for e in sorted(range(low, high + 1), key=lambda e: abs(2 * e - exponent)):
            a, b = _scale_code(u, e, scale), _scale_code(v, exponent - e, scale)
            if a is not None and b is not None:
                return pairs, (a, b)
    return None


def _scale_code(significand: int, exponent: int, scale: Format) -> int | None:
    if scale.has_zero:
        return encode_number(significand, exponent, scale)
    field = exponent + scale.bias
    return field if 0 <= field < (1 << scale.exponent_bits) - 1 else None


@cache
def _e2m1_sums(G: int) -> list[dict[int, tuple[int, int, int]]]:
    """After each of G products: sum (in units of 1/4) → the sum before, and the codes of the last product's factors."""
    codes = {int(2 * e2m1.value(code)): code for code in range(8)}
    minus = {-x: code | e2m1.sign_mask for x, code in codes.items() if x}
    coins = {x * y: (codes[x], code) for x in codes for y, code in (codes | minus).items()}
    layers: list[dict[int, tuple[int, int, int]]] = [{0: (0, 0, 0)}]
    for _ in range(G):
        layer: dict[int, tuple[int, int, int]] = {}
        for before in layers[-1]:
            for coin, pair in coins.items():
                layer.setdefault(before + coin, (before, *pair))
        layers.append(layer)
    return layers


def _e2m1_sum(total: int, G: int) -> list[tuple[int, int]] | None:
    """Codes of G pairs of e2m1 numbers whose products add up to `total` / 4; None if there are none."""
    layers = _e2m1_sums(G)
    if total not in layers[G]:
        return None
    pairs = []
    for layer in reversed(layers[1:]):
        total, a, b = layer[total]
        pairs.append((a, b))
    return pairs


# ---- chains ----------------------------------------------------------------------------------------------------------


def prove_steps(proving: Composing, spec: DotAdd) -> z3.BoolRef:
    """That each step of a chain is one step of the model, with the result before as its c; and that the error of the
    last result is the sum of the errors of all."""
    claims, count = prove_chain(proving, spec), spec.k // spec.parameters.step_products
    bits = 4 << spec.d_format.exponent_bits  # of a fixed point: the identity holds in any
    d = [z3.BitVec(f"d{i}", bits) for i in range(count + 1)]  # c, and the results
    sums = [z3.BitVec(f"sum{i}", bits) for i in range(count)]  # of the products of a step
    errors = [after - (before + own) for before, after, own in zip(d[:-1], d[1:], sums, strict=True)]
    text = "the error of the last result is the sum of the errors of all steps"
    error = d[-1] - total_of([d[0], *sums]) == total_of(errors)
    return z3.And(*claims, proving.claim("errors of steps", text, error))


def prove_terms(proving: Composing, spec: DotAdd, step: Any) -> tuple[z3.BoolRef, z3.BoolRef]:
    """That the terms are the products and c of the codes: (that every input is a number, all that was claimed)."""
    before = set(proving.steps)
    ordinary = prove_inputs(proving, spec, symbolic_inputs(spec), step)
    return ordinary, z3.And([claim for key, (_, claim) in proving.steps.items() if key not in before])


# ---- the property ----------------------------------------------------------------------------------------------------


def rounded_sum(spec: DotAdd, x: Fused, codes: Codes) -> tuple[Fraction, int]:
    """(S, e_max) of one step of the executable wing."""
    scales = (list(codes.scale_a), list(codes.scale_b)) if spec.scale_format is not None else ()
    step = executable.dot_add(spec, list(codes.a), list(codes.b), codes.c, *scales).steps[0]
    return Fraction(step.total) * Fraction(2) ** (step.e_max - x.F), step.e_max


_CHAIN = "; where every step's result is a number, the error of the last is the sum of the steps' errors"


#: Bits of products' significands whose losses are found by listing them all: some hundred megabytes.
_LISTED = 26


def settle(instruction: Instruction, asker: Asker) -> Answer:
    spec = one_step(instruction.spec)
    proving = Composing(asker)
    bits = spec.a_format.fraction_bits + spec.b_format.fraction_bits + 2
    if isinstance(spec.parameters, (Fda, Fdrda)) and bits > _LISTED:
        question = f"{instruction.label}: |S − exact| ≤ n · 2^(e_max − F)"
        why = f"the significands of products of {bits} bits are too many to list; {_LISTED} bits are listed"
        return Unknown(question, why, (), asker.elapsed)
    if isinstance(spec.parameters, Fdrda):
        return _round_down(instruction, proving)
    if not isinstance(spec.parameters, (Fda, Gdfs)):
        return _without_alignment(instruction, proving)
    x = fused_step(spec)
    case = max(cases_of(spec, x), key=lambda case: case.n)
    n = Number("n", case.n, f"what the sum of a step is off at most, in units of 2^(e_max − {x.F})")
    question = (
        f"{instruction.label}: in each step d = {spec.parameters.last_rounding}(S) with "
        f"|S − exact| ≤ n · 2^(e_max − {x.F}), {n.text}, and no smaller n will do"
    )
    try:
        ordinary, terms = prove_terms(proving, spec, x.step)
        conclusion = z3.And(terms, prove_fused(proving, spec, x))
        if spec != instruction.spec:
            conclusion = z3.And(conclusion, prove_steps(proving, instruction.spec))
            question += _CHAIN
        none = z3.Not(z3.Or(*x.step.special))
        proving.conclude("d is ρ of a sum within these bounds", conclusion, [ordinary, none])
    except NotProvedError as error:
        return Unknown(question, str(error), proving.obligations, asker.elapsed)
    witness = reach(instruction)
    if witness is None:
        why = "the bound is proved, but no input was found that reaches it"
        return Unknown(question, why, proving.obligations, asker.elapsed)
    reached = " ".join(inputs_text(witness.instruction.spec, witness.codes)[-1].split())
    note = f"reached (`error_bound.reach`), with {reached}: {witness.notes[0]}"
    return Holds(question, proving.proof(), asker.elapsed, (n,), (note,))


def _round_down(instruction: Instruction, proving: Composing) -> Answer:
    """fdrda and gfdrda: a bound on either side."""
    x, asker = round_down.frame_of(instruction.spec), proving.asker
    low, high = (round_down.text_of(x.losses, above=above) for above in (False, True))
    unit = f"the sum of a step is off at most so far {{}}, in units of 2^(e_max − {x.p.F})"
    numbers = (
        Number("below", x.losses.below, unit.format("below the exact one")),
        Number("above", x.losses.above, unit.format("above it")),
    )
    notes: list[str] = []
    question = (
        f"{instruction.label}: in each step d = {x.spec.parameters.last_rounding}(S) with"
        f" {low} ≤ (S − exact) / 2^(e_max − {x.p.F}) ≤ {high}, and no closer bounds will do,"
        " products below 2^128"
    )
    try:
        none = z3.Not(z3.Or(*x.step.special))
        ordinary, terms = prove_terms(proving, x.spec, x.step)
        conclusion = z3.And(terms, round_down.prove_round_down(proving, x))
        if x.spec != instruction.spec:
            conclusion = z3.And(conclusion, prove_steps(proving, instruction.spec))
            question += _CHAIN
        proving.conclude("d is ρ of a sum within these bounds", conclusion, [ordinary, none])
    except NotProvedError as error:
        return Unknown(question, str(error), proving.obligations, asker.elapsed)
    for above in (False, True):
        witness = round_down.reach(instruction, above=above)
        if witness is None:
            why = f"both bounds are proved, but no input was found that reaches {high if above else low}"
            return Unknown(question, why, proving.obligations, asker.elapsed)
        codes = ", ".join(
            map(" ".join, map(str.split, inputs_text(witness.instruction.spec, witness.codes)[-1:]))
        )
        notes.append(f"{high if above else low} reached, with {codes}: {witness.notes[0]}")
    return Holds(question, proving.proof(), asker.elapsed, numbers, tuple(notes))


def least_n(instruction: Instruction) -> Fraction:
    """The n of an instruction of fda or gdfs."""
    spec = one_step(instruction.spec)
    return max(case.n for case in cases_of(spec, fused_step(spec)))


def reach(instruction: Instruction) -> Shown | None:
    """An input of one step of fda or gdfs that loses n units, in both wings; None if none was found.

    Raises WitnessError if it loses another number.
    """
    spec = one_step(instruction.spec)
    x = fused_step(spec)
    case = max(cases_of(spec, x), key=lambda case: case.n)
    codes = reaching(spec, x, case)
    if codes is None:
        return None
    block = {"scale_block": spec.scale_block} if spec.scale_block else {}
    single = instruction.replace(k=spec.k, **block)
    result, value = run_both(single, codes), exact(spec, codes)
    total, e_max = rounded_sum(spec, x, codes)
    if value is None or abs(total - value) != case.n * Fraction(2) ** (e_max - x.F):
        raise WitnessError(f"{instruction.label}: {codes} was to lose {case.n} units, and does not")
    notes = (f"S − exact = {(total - value) / Fraction(2) ** (e_max - x.F)} · 2^({e_max} − {x.F})",)
    return Shown(single, codes, result, value, notes)


def _without_alignment(instruction: Instruction, proving: Proving) -> Answer:
    """sfma and efda align nothing for good, n = 0: each rounding is of an exact sum.  gps flushes: there is no n."""
    spec, asker = instruction.spec, proving.asker
    if isinstance(spec.parameters, Gps):
        question = f"{instruction.label}: |d − exact| is at most the rounding of each step's sums"
        witness = flushed(instruction)
        return Fails(
            question, witness, "it is not so that errors are bounded by those of rounding", asker.elapsed
        )
    if not isinstance(spec.parameters, (Sfma, Efda)):
        why = f"no argument for what {instruction.algorithm} loses; exactness says when it loses nothing"
        return Unknown(
            f"{instruction.label}: |d − exact| ≤ n · 2^(e_max − F) + rounding", why, (), asker.elapsed
        )
    n = Number("n", 0, "what a sum is off before it is rounded")
    question = f"{instruction.label}: {n.text}, each rounding is of an exact sum"
    try:
        prove_step(proving, spec)
    except NotProvedError as error:
        return Unknown(question, str(error), proving.obligations, asker.elapsed)
    return Holds(question, proving.proof(), asker.elapsed, (n,))


def flushed(instruction: Instruction) -> Shown:
    """gps: a subnormal factor counts as zero, whatever it is multiplied with.

    Raises WitnessError if the product is not lost.
    """
    spec = instruction.spec
    a, b = 1 << spec.a_format.ignored_low_bits, spec.b_format.code(f"0x1p{spec.b_format.max_exponent}")
    codes = with_products(zeros(spec), {0: (a, b)})
    result, value = run_both(instruction, codes), exact(spec, codes)
    if value is None or result != 0 or value <= spec.d_format.value(1 << spec.d_format.fraction_bits):
        raise WitnessError(f"{instruction.label}: {codes} was to be flushed, and is not")
    notes = ("a subnormal factor counts as zero, so a product that d's format holds exactly is lost",)
    return Shown(instruction, codes, result, value, notes)


PROPERTY = Property(
    "error-bound",
    "in each step d = ρ(S) and |S − exact| ≤ n · 2^(e_max − F), for a number n that no smaller one can replace",
    settle,
)
main = PROPERTY.main

if __name__ == "__main__":
    sys.exit(main())
