"""The sum of products in fixed point and c is the exact one, or odd with room for rounding and less than one unit off.

1. *sum*:      `exact_steps.TwoTerms`;
2. *products*: the first term is the sum of the products, each in its place;
3. *codes*:    those, and c, are the numbers of the codes.
"""

from __future__ import annotations

from dataclasses import dataclass

import z3

from mmaformal.encodings.efda import smt as efda
from mmaformal.encodings.smt.blocks import ExponentRange, negate_if, product_range
from mmaformal.facts.exact_steps import TwoTerms
from mmaformal.proof.composition import wide
from mmaformal.proof.definitions import fit
from mmaformal.proof.rules import instance
from mmaformal.proof.wide_numbers import Scaled
from mmaformal.theory.code_numbers import CodeNumbers, total_of


@dataclass(frozen=True)
class FixedSum(TwoTerms):
    """The same of a step, and that its terms are those of its codes."""

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

    def product(self, k: int) -> Scaled:
        term = self.step.products[k]
        return Scaled(term.significand, fit(term.exponent, self.w.exponent_bits) + self.last_place)

    @property
    def _place(self) -> z3.BitVecRef:
        """How far the last place of all products is shifted."""
        return z3.BitVecVal(self.last_place - self.w.point.low, self.w.point.shift_bits)

    def prove_codes(self) -> z3.BoolRef:
        """That the exact sum is that of the codes' numbers.  Raises NotProvedError."""
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
        """That the first term is the sum of the products."""
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
        """That the first term is the sum in fixed point, its last place that of all products."""
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
        """That a product in its place, with its sign, is the number."""
        w, point, term, q, k = self.w, self.w.point, self.step.products[i], self.step.placed[i], self._place
        inside, x = z3.ULE(term.exponent, self._highest), point.integer(q)
        value, placed = w.value(self.product(i)), point.shifted(x, k)
        claim = z3.Implies(inside, placed == value)
        one = w.theory.claim("placed", "a product in its place is the number", claim)
        signed = negate_if(term.sign, x)
        sign = w.signed_shift(signed, term.sign == 1, x, k, [])
        goal = point.shifted(signed, k) == w.number(term.sign, self.product(i))
        return w.theory.claim("placed number", "with its sign, too", goal, [one, sign, inside])
