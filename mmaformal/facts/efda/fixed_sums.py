"""The sum of products in fixed point and c is the exact one, or odd with room for rounding and less than one unit off.

1. *sum*:      what is kept of both terms, compared by `at_least` in `exact_steps`, is so as integers;
2. *products*: the first term is the sum of the products, each in its place;
3. *codes*:    those, and c, are the numbers of the codes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import z3

from mmaformal.encodings.smt import efda
from mmaformal.encodings.smt.blocks import ExponentRange, Term, negate_if, product_range
from mmaformal.facts.efda.code_numbers import CodeNumbers, total_of
from mmaformal.facts.efda.near_sums import Kept, NearSum, Part, Shown
from mmaformal.facts.exact_steps import Sticky
from mmaformal.proof.composition import wide
from mmaformal.proof.definitions import fit
from mmaformal.proof.rules import instance
from mmaformal.proof.sticky_sums import has_room
from mmaformal.proof.wide_numbers import Scaled, WideNumbers


@dataclass(frozen=True)
class FixedSum:
    """Claims about the sum of a step; those of `exact_steps` by their names."""

    w: WideNumbers
    step: efda.FixedStep
    terms: Sticky
    said: Mapping[str, z3.BoolRef]
    codes: CodeNumbers

    def size(self, x: Term, bits: int) -> Scaled:
        """The magnitude of one of the two terms, of so many fraction bits."""
        low = self.terms.exponents.low
        return Scaled(x.significand, fit(x.exponent, self.w.exponent_bits) + (low - bits))

    @property
    def first(self) -> Scaled:
        return self.size(self.terms.x, self.terms.x_bits)

    @property
    def addend(self) -> Scaled:
        return self.size(self.terms.y, self.terms.y_bits)

    @property
    def exact(self) -> z3.BitVecRef:
        x, y = self.terms.x, self.terms.y
        return self.w.number(x.sign, self.first) + self.w.number(y.sign, self.addend)

    # ---- the sum of two terms

    def prove(self) -> Shown:
        """Raises NotProvedError."""
        w, s, kept, total = self.w, self.terms, Kept(self.w), self.terms.sum.total
        u = fit(s.sum.e_max, w.exponent_bits) + (s.exponents.low - s.frame)
        in_u = w.in_range(u, [self.said["least e_max"]], [s.sum.e_max])
        sizes, ranges = (self.first, self.addend), []
        for term, size, known in zip((s.x, s.y), sizes, s.invariants, strict=True):
            ranges.append(w.in_range(size.t, [known], [term.exponent, term.significand]))
        x = Part(s.x.sign, Scaled(s.sum.x, u), self.first)
        y = Part(s.y.sign, Scaled(s.sum.y, u), self.addend)
        given = [kept.prove(part, [in_u, each]) for part, each in zip((x, y), ranges, strict=True)]
        given += kept.sum_of_two(total, x, y)
        values = [(kept.kept(part), kept.number(part)) for part in (x, y)]
        given += kept.off_by_one(w.point.signed(total, u), w.point.unit(u), (values[0], values[1]))
        given += [self.said["room"], self.said["larger exponent"]]
        given += [
            self.said[f"{name} {what}"] for name in ("product", "c") for what in ("sticky", "at the top")
        ]
        sum_ = NearSum(total, u, has_room(total, s.sum.e_max, s.exponents, s.frame, s.rho))
        text = "the sum is the exact one, or odd with room, and less than one unit off"
        claim = w.follows("sum of two terms", text, sum_.claim(w, self.exact), given)
        rooms = [w.roomy(size, each).arg(0) for size, each in zip(sizes, ranges, strict=True)]
        text = "the sum is far from the ends"
        far = w.of_sums("range of the sum of both", text, w.point.is_near(self.exact, 5), rooms)
        return Shown(sum_, self.exact, claim, in_u, far)

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
        cut = [*self.exact.children(), *numbers, *codes.integers]
        text = "the sum is that of the codes' numbers"
        return w.theory.claim("sum of codes", text, self.exact == codes.total, same, cut)

    def _prove_products(self) -> z3.BoolRef:
        """That the first term is the sum of the products."""
        w, point, step, k = self.w, self.w.point, self.step, self._place
        parts = [negate_if(t.sign, point.integer(q)) for t, q in zip(step.products, step.placed, strict=True)]
        total, dot = total_of(parts), wide(step.dot, point.bits)
        cut = [part for t, q in zip(step.products, step.placed, strict=True) for part in (t.sign, q)]
        small = [z3.ULE(q, self._largest << self._highest) for q in step.placed]
        inner = w.theory.claim("integers of products", "the sum does not wrap", dot == total, small, cut)
        values = [w.number(t.sign, self.product(i)) for i, t in enumerate(step.products)]
        running, known = parts[0], self._prove_placed(0)
        for i, part in enumerate(parts[1:], start=1):
            after, so_far = running + part, total_of(values[:i])
            said = instance(
                w.theory, point.addition, [(point.x, running), (point.y, part), (point.amount, k)]
            )
            cut = [*(point.shifted(v, k) for v in (after, running, part)), so_far, values[i]]
            claim, text = (
                point.shifted(after, k) == so_far + values[i],
                "a sum is shifted as its summands are",
            )
            given = [said, known, self._prove_placed(i)]
            known = w.theory.claim("sum of placed", text, claim, given, cut)
            running = after
        first, sum_ = w.number(self.terms.x.sign, self.first), total_of(values)
        given = [self._prove_first(), inner, w.same_shift(dot, total, k), known]
        cut = [first, point.shifted(dot, k), point.shifted(total, k), sum_, dot == total]
        text = "so the first term is the sum of the products"
        return w.theory.claim("sum of products as a number", text, first == sum_, given, cut)

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
        signed = w.signed_shift(wide(dot, point.bits), term.sign == 1, x, k, known, [dot])
        claim, text = z3.Or(m == 0, own == k), "the sum has the place of the products, or is zero"
        at = w.theory.claim("place of the sum", text, claim, [self.terms.invariants[0]], [term.exponent, m])
        here, there = point.shifted(x, own), point.shifted(x, k)
        claim = z3.Implies(m == 0, here == there)
        zero = w.theory.claim("zero shifted", "zero is zero", claim, (), [m, own])
        claim = z3.Implies(own == k, here == there)
        same = w.theory.claim("same place", "equal shifts give the same", claim, (), [x, own])
        whole, first = point.shifted(wide(dot, point.bits), k), w.number(term.sign, self.first)
        cut = [here, there, whole, term.sign, own == k, m == 0]
        text = "the first term is the sum of products"
        return w.theory.claim("sum as a term", text, first == whole, [signed, at, zero, same], cut)

    def _prove_placed(self, i: int) -> z3.BoolRef:
        """That a product in its place, with its sign, is the number."""
        w, point, term, q, k = self.w, self.w.point, self.step.products[i], self.step.placed[i], self._place
        inside, x = z3.ULE(term.exponent, self._highest), point.integer(q)
        value, placed = w.value(self.product(i)), point.shifted(x, k)
        claim, cut = z3.Implies(inside, placed == value), [term.significand, term.exponent]
        one = w.theory.claim("placed", "a product in its place is the number", claim, (), cut)
        signed = negate_if(term.sign, x)
        sign = w.signed_shift(signed, term.sign == 1, x, k, [], [term.sign, x])
        goal = point.shifted(signed, k) == w.number(term.sign, self.product(i))
        cut = [point.shifted(signed, k), placed, value, term.sign, term.exponent]
        return w.theory.claim("placed number", "with its sign, too", goal, [one, sign, inside], cut)
