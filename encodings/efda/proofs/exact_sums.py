"""A step of efda gives d = ρ(c + Σ a·b), as a theorem about codes: all numbers are integers of one fixed point.

`exact_steps` and `sorted_steps` prove what is kept of each term, and what d is ρ of.  These are put together:

1. *sum*:      the sum that is rounded is the exact one, or odd, with room, and less than one unit off (`sorted_sums`,
               or `two_terms`, of the sum of products in fixed point and c);
2. *rounding*: so d is the exact sum rounded, and has its sign (`rounded_sums`);
3. *terms*:    and that is the sum of the numbers of the codes (`SortedTerms`, or `FixedSum`).
"""

from __future__ import annotations

from dataclasses import dataclass

import z3

from mmaformal.encodings.efda import Efda
from mmaformal.encodings.efda import smt as efda
from mmaformal.encodings.efda.proofs.sorted_sums import ShiftedSum, SortedSumClaims, SortedTerms
from mmaformal.encodings.smt.blocks import (
    ExponentRange,
    exponent_range,
    negate_if,
    product_range,
    sign_of_zero,
)
from mmaformal.facts.exact_steps import OneStepModel, TwoTerms, fixed_terms, prove_sticky, span_of
from mmaformal.facts.exact_terms import smt_step
from mmaformal.facts.sorted_steps import Sorted, prove_sorted
from mmaformal.proof.definitions import fit
from mmaformal.proof.fixed_sums import total_of, wide
from mmaformal.proof.rules import instance
from mmaformal.theory.fixed_point import Shifted
from mmaformal.theory.numbers import CodeNumbers
from mmaformal.theory.rounded_sums import Span, SumTheorem, conclude, prove_finite
from mmaformal.theory.rounding import RoundingGrid


@dataclass(frozen=True)
class ExactFixedSum(TwoTerms):
    """A step's sum of two terms, exact or near, whose terms are those of its codes."""

    step: efda.FixedStep
    codes: CodeNumbers

    # ---- the terms are those of the codes

    @property
    def products(self) -> ExponentRange:
        return product_range(self.codes.spec.a_format, self.codes.spec.b_format)

    @property
    def last_place(self) -> int:
        """The exponent of the last place of all products."""
        return self.products.low - efda.fraction_bits(self.codes.spec)

    def product(self, k: int) -> Shifted:
        term = self.step.products[k]
        return Shifted(term.significand, fit(term.exponent, self.w.exponent_bits) + self.last_place)

    @property
    def _place(self) -> z3.BitVecRef:
        """How far the last place of all products is shifted."""
        return z3.BitVecVal(self.last_place - self.w.point.low, self.w.point.shift_bits)

    def prove_codes(self) -> z3.BoolRef:
        """Prove that the exact sum is that of the codes' numbers.  Raises NotProvedError."""
        w, step, codes = self.w, self.step, self.codes
        same, yes, numbers = [self._prove_products()], z3.BoolVal(True), []
        for k, term in enumerate(step.products):
            place = self.product(k).t
            same.append(codes.prove_term(k, term, place, [step.a[k], step.b[k]], yes))
            numbers.append(w.number(term.sign, self.product(k)))
        same.append(codes.prove_term(len(step.products), step.addend, self.addend.t, [step.c], yes))
        text = "the sum is that of the codes' numbers"
        return w.theory.claim("sum of codes", text, self.exact == codes.total, same)

    def _prove_products(self) -> z3.BoolRef:
        """Prove that the first term is the sum of the products."""
        w, point, step, k = self.w, self.w.point, self.step, self._place
        parts = [negate_if(t.sign, point.integer(q)) for t, q in zip(step.products, step.placed, strict=True)]
        total, dot = total_of(parts), wide(step.dot, point.bits)
        small = [z3.ULE(q, self._largest << self._highest) for q in step.placed]
        inner = w.theory.claim("integers of products", "the sum does not wrap", dot == total, small)
        values = [w.number(t.sign, self.product(i)) for i, t in enumerate(step.products)]
        running, known = parts[0], self._prove_placed(0)
        for i, part in enumerate(parts[1:], start=1):
            after, so_far = running + part, total_of(values[:i])
            said = instance(
                w.theory, point.addition, [(point.x, running), (point.y, part), (point.amount, k)]
            )
            claim, text = (
                point.shifted(after, k) == so_far + values[i],
                "a sum is shifted as its summands are",
            )
            given = [said, known, self._prove_placed(i)]
            known = w.theory.claim("sum of placed", text, claim, given)
            running = after
        first, sum_ = w.number(self.terms.x.sign, self.first), total_of(values)
        given = [self._prove_first(), inner, w.same_shift(dot, total, k), known]
        text = "so the first term is the sum of the products"
        return w.theory.claim("sum of products as a number", text, first == sum_, given)

    @property
    def _largest(self) -> int:
        a, b = self.codes.spec.a_format, self.codes.spec.b_format
        return ((2 << a.fraction_bits) - 1) * ((2 << b.fraction_bits) - 1)

    @property
    def _highest(self) -> int:
        """The exponent of the largest product, from the least one."""
        return (
            self.codes.spec.a_format.max_exponent + self.codes.spec.b_format.max_exponent - self.products.low
        )

    def _prove_first(self) -> z3.BoolRef:
        """Prove that the first term is the sum in fixed point, its last place that of all products."""
        w, point, term, dot = self.w, self.w.point, self.terms.x, self.step.dot
        m, x, k, own = (
            term.significand,
            point.integer(term.significand),
            self._place,
            point.shift(self.first.t),
        )
        known = [self.said["range of the sum"]]
        signed = w.signed_shift(wide(dot, point.bits), term.sign == 1, x, k, known)
        claim, text = z3.Or(m == 0, own == k), "the sum has the place of the products, or is zero"
        at = w.theory.claim("place of the sum", text, claim, [self.terms.invariants[0]])
        here, there = point.shifted(x, own), point.shifted(x, k)
        claim = z3.Implies(m == 0, here == there)
        zero = w.theory.claim("zero shifted", "zero is zero", claim)
        claim = z3.Implies(own == k, here == there)
        same = w.theory.claim("same place", "equal shifts give the same", claim)
        whole, first = point.shifted(wide(dot, point.bits), k), w.number(term.sign, self.first)
        text = "the first term is the sum of products"
        return w.theory.claim("sum as a term", text, first == whole, [signed, at, zero, same])

    def _prove_placed(self, i: int) -> z3.BoolRef:
        """Prove that a product in its place, with its sign, is the number."""
        w, point, term, q, k = self.w, self.w.point, self.step.products[i], self.step.placed[i], self._place
        inside, x = z3.ULE(term.exponent, self._highest), point.integer(q)
        value, placed = w.value(self.product(i)), point.shifted(x, k)
        claim = z3.Implies(inside, placed == value)
        one = w.theory.claim("placed", "a product in its place is the number", claim)
        signed = negate_if(term.sign, x)
        sign = w.signed_shift(signed, term.sign == 1, x, k, [])
        goal = point.shifted(signed, k) == w.number(term.sign, self.product(i))
        return w.theory.claim("placed number", "with its sign, too", goal, [one, sign, inside])


@dataclass(frozen=True)
class EfdaSum(OneStepModel):
    """One step of a model of efda."""

    @property
    def step(self) -> efda.FixedStep | efda.SortedStep:
        step = smt_step(self.spec, self.inputs)
        assert isinstance(step, (efda.FixedStep, efda.SortedStep))
        return step

    @property
    def p(self) -> Efda:
        return self.spec.parameters_as(Efda)

    @property
    def span(self) -> Span:
        step = self.step
        if isinstance(step, efda.SortedStep):
            at = Sorted(self.spec, step)
            return Span(at.ex.low - at.bits, at.ex.high, step.sum.total.size(), at.wide)
        bits = efda.sum_places(self.spec, self.p.L)
        own = product_range(self.spec.a_format, self.spec.b_format)
        low = own.low - efda.fraction_bits(self.spec) + bits
        exponents = exponent_range(self.spec.c_format).union(low)
        frame = bits + efda.places_below(efda.precision(self.spec, self.p))
        return span_of(exponents, frame, step.sum.total, self.p.rho)

    @property
    def zero(self) -> z3.BitVecRef:
        step = self.step
        if not self.p.minus_zero:
            return z3.BitVecVal(0, 1)
        return sign_of_zero([x.sign for x in (*step.products, step.addend)], self.p.rho)

    def prove(self, grid: RoundingGrid) -> SumTheorem:
        step = self.step
        if isinstance(step, efda.SortedStep):
            return self._prove_sorted(grid, step)
        return self._prove_fixed(grid, step)

    def _prove_sorted(self, grid: RoundingGrid, step: efda.SortedStep) -> SumTheorem:
        theory, at = grid.numbers.theory, Sorted(self.spec, step)
        prove_sorted(theory, self.spec, step)
        said, codes = dict(theory.named), CodeNumbers(grid.numbers, self.spec)
        sums = SortedSumClaims(grid.numbers, at, said)
        shown = ShiftedSum(grid.numbers, at, said, sums.prove()).prove()
        same = SortedTerms(sums, codes).prove()
        return conclude(grid, shown, step, self.zero, same, codes.total)

    def _prove_fixed(self, grid: RoundingGrid, step: efda.FixedStep) -> SumTheorem:
        theory, codes = grid.numbers.theory, CodeNumbers(grid.numbers, self.spec)
        terms = fixed_terms(theory, self.spec, self.p, step)
        prove_sticky(theory, terms)
        sums = ExactFixedSum(grid.numbers, terms, dict(theory.named), step, codes)
        shown, same = sums.prove(), sums.prove_codes()
        prove_finite(theory, step, [*step.a, *step.b, step.c])
        return conclude(grid, shown, step, self.zero, same, codes.total)
