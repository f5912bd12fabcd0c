"""Where all products but one of fp16 or bf16 factors are zero, a step is that product and c, rounded once."""

from __future__ import annotations

from dataclasses import dataclass

import z3

from mmaformal.encodings.dpa_e9s12.proofs.exact import OneProduct, Summation
from mmaformal.encodings.dpa_e9s12.proofs.exact_sums import OneOfMany, ShortNumbers
from mmaformal.facts.exact_steps import TwoTerms
from mmaformal.studies.e9s12.dot_claims import prove_single
from mmaformal.theory.numbers import CodeNumbers
from mmaformal.theory.rounded_sums import SumTheorem, prove_finite
from mmaformal.theory.rounding import RoundingGrid


@dataclass(frozen=True)
class OneShortFma(OneOfMany):
    """A step whose products but one are zero, of fp16 or bf16 factors."""

    def prove(self, grid: RoundingGrid) -> SumTheorem:
        """Raises NotProvedError."""
        theory = grid.numbers.theory
        x = Summation.of(theory, self.spec)
        prove_single(theory, self.spec, self.active)
        sticky = x.prove_rounded()
        codes = CodeNumbers(grid.numbers, self.spec, self.inputs)
        sums = TwoTerms(grid.numbers, sticky, dict(theory.named))
        at = OneShortNumber(grid, x, sums, codes, self.active, self.given)
        return at.conclude(at.prove_products(), codes.integers[:-1], self.given)


@dataclass(frozen=True)
class OneShortNumber(ShortNumbers):
    """S as the number of one product, which is placed exactly, beside products that are placed as zeros."""

    active: int
    given: z3.BoolRef

    def prove_products(self) -> z3.BoolRef:
        """Prove that S · 2^u is the one product of codes, where nothing is special and the others are zero."""
        premise, one = z3.And(self.none, self.given), OneProduct(self.x, self.active)
        idle = {k: one.prove_idle(k)[0] for k in one.others}
        finite = prove_finite(self.theory, self.x.step, [*self.x.step.a, *self.x.step.b, self.x.step.c])
        (mine,) = one.products(self.active)
        at_top = z3.Implies(mine.exponent == self.x.step.e_max, self._is_placed(self.active))
        alone = z3.Implies(z3.And([one.idle(k) for k in one.others]), mine.exponent == self.x.step.e_max)
        known, text = self._is_placed(self.active), "the one product is placed without a loss"
        exact = self.w.follows("placed", text, z3.Implies(premise, known), [alone, at_top, finite], known)
        each = [self._prove_number(self.active, 0, premise, exact)]
        each += [self._prove_nothing(k, premise, claim) for k, claim in idle.items()]
        goal = z3.Implies(premise, self.signed(self.x.S) == self.codes.integers[0])
        text = "S is the product of the codes"
        return self.theory.claim("sum of products", text, goal, [self._prove_sum(), *each])

    def _prove_nothing(self, k: int, premise: z3.BoolRef, idle: z3.BoolRef) -> z3.BoolRef:
        """Prove that an idle product is placed as zero."""
        product, placed = self.x.step.products[k], self.x.step.placed[k]
        claim, text = z3.Implies(product.significand == 0, placed == 0), "a product of zero is placed as zero"
        zero = self.theory.claim("placed zero", text, claim)
        claim = z3.Implies(placed == 0, self.signed(placed) == 0)
        number = self.theory.claim("zero placed", text, claim)
        goal = z3.Implies(premise, self.signed(placed) == 0)
        return self.w.follows("idle place", text, goal, [idle, zero, number])
