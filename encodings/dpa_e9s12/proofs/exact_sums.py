"""Where no product loses a bit, d = ρ(c + Σ a·b), as a theorem about codes; numbers are integers of one fixed point.

`exact` and `fma` compare magnitudes; here the same is said of integers, and concluded as of efda (`efda`):

1. *first*:    the term that c is added to is S, in units of 2^u, u the exponent of S's last place;
2. *products*: of fp16, each placed product is the number of its codes, and S is their sum (`ShortSum`); of fp32, where
               all products but one are zero, S is the number of that one's codes (`OneFma`);
3. *c*:        is its number.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import z3

from mmaformal.cases.inputs import Inputs, symbolic_inputs
from mmaformal.encodings.dpa_e9s12 import DpaE9s12
from mmaformal.encodings.dpa_e9s12 import smt as smt_dpa
from mmaformal.encodings.dpa_e9s12.proofs.exact import HALF, OneProduct, Summation, is_placed, prove_fma
from mmaformal.encodings.dpa_e9s12.proofs.losses import prove_exact
from mmaformal.encodings.smt.blocks import Term
from mmaformal.facts.exact_steps import OneStepModel, TwoTerms, span_of
from mmaformal.proof.definitions import fit
from mmaformal.proof.fixed_sums import total_of, wide
from mmaformal.proof.rules import Theory, instance
from mmaformal.proof.sticky_sums import magnitude_of
from mmaformal.theory.fixed_point import Shifted, WideNumbers
from mmaformal.theory.numbers import CodeNumbers, coded_number
from mmaformal.theory.rounded_sums import Span, SumTheorem, conclude, prove_finite
from mmaformal.theory.rounding import RoundingGrid

#: The bias that exponents of products are held with.
BIAS = 2 * smt_dpa.BIAS


@dataclass(frozen=True)
class Model(OneStepModel):
    """A step of a model of dpa_e9s12."""

    @property
    def step(self) -> smt_dpa.DpaE9s12Step:
        p, x = self.spec.parameters_as(DpaE9s12), symbolic_inputs(self.spec)
        return smt_dpa.step(self.spec, p, x.a, x.b, x.c)

    @property
    def zero(self) -> z3.BitVecRef:
        return self.step.zero_sign

    @property
    def span(self) -> Span:
        spec, p, step = self.spec, self.spec.parameters_as(DpaE9s12), self.step
        exponents = smt_dpa.exponents_of(spec, p.accumulator_bits, len(step.products))
        frame = p.accumulator_bits - 1 + smt_dpa.GUARD
        return span_of(exponents, frame, step.sum.total, p.rho)


@dataclass(frozen=True)
class Numbers:
    """S and c as integers; `x`'s claims were made in the theory of the grid."""

    grid: RoundingGrid
    x: Summation
    sums: TwoTerms
    codes: CodeNumbers

    @property
    def w(self) -> WideNumbers:
        return self.grid.numbers

    @property
    def theory(self) -> Theory:
        return self.w.theory

    @cached_property
    def u(self) -> z3.BitVecRef:
        """The exponent of S's last place."""
        return fit(self.x.step.e_max, self.w.exponent_bits) - (self.x.F + BIAS)

    @cached_property
    def in_u(self) -> z3.BoolRef:
        return self.w.in_range(self.u, [])

    def signed(self, m: z3.BitVecRef) -> z3.BitVecRef:
        """m · 2^u, m in two's complement."""
        return self.w.point.signed(m, self.u)

    def size(self, m: z3.BitVecRef) -> Shifted:
        """|m| · 2^u."""
        return Shifted(magnitude_of(m)[1], self.u)

    def prove_signed(self, m: z3.BitVecRef, known: z3.BoolRef) -> z3.BoolRef:
        """Prove that m · 2^u is its magnitude with its sign, if m is not the least number, as is `known`."""
        point, (negative, size) = self.w.point, magnitude_of(m)
        k = point.shift(self.u)
        return self.w.signed_shift(wide(m, point.bits), negative, point.integer(size), k, [known])

    def prove_first(self) -> z3.BoolRef:
        """Prove that the term that c is added to is S · 2^u."""
        w, S, term, at = self.w, self.x.S, self.x.step.term, self.sums.first.t
        said, size = self.sums.said["term"], self.size(S)
        text = "S is not the least number of its width"
        known = self.theory.claim("S", text, is_not_least(S), [said.arg(0)])
        signed = self.prove_signed(S, known)
        text = "the term has the place of S, or is zero"
        place = self.theory.claim("place of S", text, z3.Or(size.m == 0, at == self.u), [said.arg(1)])
        text = "the term's magnitude is that of S"
        same = self.theory.claim("magnitude of S", text, term.significand == size.m)
        mine, other = w.value(self.sums.first), w.value(size)
        claim = z3.Implies(size.m == 0, w.value(Shifted(size.m, at)) == other)
        moved = self.theory.claim("place of zero", "zero has any place", claim)
        claim = z3.Implies(at == self.u, w.value(Shifted(size.m, at)) == other)
        alike = self.theory.claim("same place", "equal places give the same", claim)
        claim = z3.Implies(term.significand == size.m, mine == w.value(Shifted(size.m, at)))
        equal = self.theory.claim("same magnitude", "so do equal magnitudes", claim)
        goal = w.number(term.sign, self.sums.first) == self.signed(S)
        text = "the term that c is added to is the sum of products"
        return self.theory.claim("first", text, goal, [signed, place, same, moved, alike, equal])

    def conclude(
        self, products: z3.BoolRef, integers: list[z3.BitVecRef], given: z3.BoolRef | None = None
    ) -> SumTheorem:
        """The theorem, from: S · 2^u is the sum of the products' integers, if nothing is special and `given` holds."""
        step = self.x.step
        shown, first = self.sums.prove(), self.prove_first()
        k = len(integers)
        c = self.codes.prove_term(k, step.addend, self.sums.addend.t, [step.c], z3.BoolVal(True))
        premise = products.arg(0)
        exact, total = self.sums.exact, self.codes.total
        text = "the sum is that of the codes' numbers"
        same = self.theory.claim(
            "sum of codes", text, z3.Implies(premise, exact == total), [products, first, c]
        )
        return conclude(self.grid, shown, step, step.zero_sign, same=same, total=total, given=given)


def is_not_least(m: z3.BitVecRef) -> z3.BoolRef:
    negative, size = magnitude_of(m)
    return z3.Or(z3.Not(negative), size != 0)


# ---- fp16 ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ShortSum(Model):
    """The exact sum of a step of fp16 factors, whose products lose no bit."""

    def prove(self, grid: RoundingGrid) -> SumTheorem:
        """Raises NotProvedError."""
        theory = grid.numbers.theory
        x = Summation.of(theory, self.spec)
        prove_exact(theory, self.spec)
        sticky = x.prove_rounded()
        codes = CodeNumbers(grid.numbers, self.spec, self.inputs)
        at = ShortNumbers(grid, x, TwoTerms(grid.numbers, sticky, dict(theory.named)), codes)
        return at.conclude(at.prove_products(), codes.integers[:-1])


@dataclass(frozen=True)
class ShortNumbers(Numbers):
    """S as the sum of the products' numbers."""

    @cached_property
    def none(self) -> z3.BoolRef:
        return z3.Not(z3.Or(*self.x.step.special))

    def prove_products(self) -> z3.BoolRef:
        """Prove that S · 2^u is the sum of the products of codes, where nothing is special."""
        placed, integers = self.x.step.placed, self.codes.integers[:-1]
        finite = prove_finite(self.theory, self.x.step, [*self.x.step.a, *self.x.step.b, self.x.step.c])
        each = [self._prove_number(k, k, self.none, self._prove_exact(k, finite)) for k in range(len(placed))]
        known = self._prove_sum()
        goal = z3.Implies(self.none, self.signed(self.x.S) == total_of(integers))
        text = "S is the sum of the products of codes"
        return self.theory.claim("sum of products", text, goal, [known, *each])

    def _prove_sum(self) -> z3.BoolRef:
        """Prove that S · 2^u is the sum of the placed products, each times 2^u."""
        point, step, k = self.w.point, self.x.step, self.w.point.shift(self.u)
        running, known, steps = self.signed(step.placed[0]), None, self.x.prove_sum().steps
        for i, (before, after) in enumerate(zip(step.partials[:-1], step.partials[1:], strict=True), start=1):
            part = step.placed[i]
            x, y, z = (wide(each, point.bits) for each in (before, part, after))
            text = "a partial sum is the sum"
            inner = self.theory.claim(f"partial sum of integers {i}", text, z == x + y, [steps[i - 1]])
            shifted = instance(self.theory, point.addition, [(point.x, x), (point.y, y), (point.amount, k)])
            total = running + self.signed(part)
            given = [inner, shifted, self.w.same_shift(z, x + y, k), *([] if known is None else [known])]
            text = "a sum is shifted as its summands are"
            known = self.theory.claim("sum of placed", text, self.signed(after) == total, given)
            running = total
        assert known is not None
        return known

    def _is_placed(self, k: int) -> z3.BoolRef:
        step = self.x.step
        return is_placed(step.products[k], step.placed[k], step.e_max, self.x.F)

    def _prove_exact(self, k: int, finite: z3.BoolRef) -> z3.BoolRef:
        """Prove that the k-th product is placed without a loss, where nothing is special."""
        known, text = self._is_placed(k), "where nothing is special, a product is placed without a loss"
        return self.theory.claim("placed", text, z3.Implies(self.none, known), [known, finite])

    def _prove_number(self, k: int, j: int, premise: z3.BoolRef, exact: z3.BoolRef) -> z3.BoolRef:
        """Prove that the k-th product, placed, is the j-th number of the codes, from: it is `exact` where the premise
        is."""
        placed = self.x.step.placed[k]
        known, size = self._is_placed(k), self.size(placed)
        top = placed.size() - 1
        sign = z3.Extract(top, top, placed)
        term = self.codes.is_term(j, sign, size)
        parts = self._prove_parts(k, j)
        text = "a placed product is the number of its codes, in comparisons"
        moved = self.theory.claim("placed term", text, z3.Implies(known, term), parts)
        given = self.w.follows("term", text, z3.Implies(premise, term), [exact, moved], known, term)
        value = self.codes.prove_number(j, sign, size, given, self.in_u)
        text = "a placed product is not the least number of its width"
        least = self.theory.claim("placed product", text, is_not_least(placed))
        signed = self.prove_signed(placed, least)
        other = self.codes.integers[j]
        goal = z3.Implies(premise, self.signed(placed) == other)
        text = "a placed product is the number of its codes"
        return self.theory.claim("placed number", text, goal, [value, signed])

    def _prove_parts(self, k: int, j: int) -> list[z3.BoolRef]:
        """Prove of the k-th product that its sign, significand, with zeros below, and exponent are those of the j-th
        number's codes; a zero may have another exponent."""
        step, n, spec, x = self.x.step, self.codes.numbers[j], self.codes.spec, self.codes.inputs
        product, below = step.products[k], step.products[k].significand.size() - n.significand.size()
        codes = (coded_number(x.a[j], spec.a_format), coded_number(x.b[j], spec.b_format))
        whole = self.codes.prove_parts(j, product, (step.a[k], step.b[k]))
        zeros = z3.Or([u.significand == 0 for u in codes])
        place = fit(product.exponent, self.w.exponent_bits) - (smt_dpa.PLACES + BIAS - below)
        text = "the exponent is that of the numbers, if none is zero"
        exponent = self.theory.claim("exponent of a product", text, z3.Or(zeros, place == n.exponent))
        text = "a product with zero is zero"
        nothing = z3.Implies(zeros, n.significand == 0)
        zero = self.theory.claim("nothing", text, nothing)
        claim = z3.Or(n.significand == 0, place == n.exponent)
        own = self.theory.claim("place of a product", text, claim, [exponent, zero])
        return [whole, own]


# ---- one fp32 product ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class OneOfMany(Model):
    """All products but the `active` one are zero."""

    active: int = 0

    @property
    def inputs(self) -> Inputs:
        x = symbolic_inputs(self.spec)
        return Inputs((x.a[self.active],), (x.b[self.active],), x.c)

    @property
    def given(self) -> z3.BoolRef:
        """Whether the other products are zero, of numbers."""
        step = self.step
        pairs = [pair for k, pair in enumerate(zip(step.a, step.b, strict=True)) if k != self.active]
        zero = [z3.Or(u.significand == 0, v.significand == 0) for u, v in pairs]
        finite = [z3.Not(flag) for pair in pairs for x in pair for flag in (x.infinite, x.nan)]
        return z3.And(z3.BoolVal(True), *zero, *finite)


@dataclass(frozen=True)
class OneFma(OneOfMany):
    """The exact sum of a step of fp32 factors whose products but one are zero."""

    def prove(self, grid: RoundingGrid) -> SumTheorem:
        """Raises NotProvedError."""
        theory = grid.numbers.theory
        x = Summation.of(theory, self.spec)
        prove_fma(theory, self.spec, self.active)
        sticky = x.prove_rounded()
        codes = CodeNumbers(grid.numbers, self.spec, self.inputs)
        at = OneNumber(
            grid, x, TwoTerms(grid.numbers, sticky, dict(theory.named)), codes, self.active, self.given
        )
        return at.conclude(at.prove_product(), codes.integers[:-1], self.given)


@dataclass(frozen=True)
class OneNumber(Numbers):
    """S as the number of one product."""

    active: int
    given: z3.BoolRef

    @cached_property
    def one(self) -> OneProduct:
        return OneProduct(self.x, self.active)

    def prove_product(self) -> z3.BoolRef:
        """Prove that S · 2^u is the one product of codes, where nothing is special and the others are zero."""
        x, S = self.x, self.x.S
        size = self.size(S)
        sign = z3.Extract(S.size() - 1, S.size() - 1, S)
        none = z3.Not(z3.Or(*x.step.special))
        premise = z3.And(none, self.given)
        term = self.codes.is_term(0, sign, size)
        known = self._prove_term(premise, term)
        value = self.codes.prove_number(0, sign, size, known, self.in_u)
        text = "S is not the least number of its width"
        least = self.theory.claim("S", text, is_not_least(S), [self.sums.said["term"].arg(0)])
        signed = self.prove_signed(S, least)
        other = self.codes.integers[0]
        goal = z3.Implies(premise, self.signed(S) == other)
        text = "S is the product of the codes"
        return self.theory.claim("sum of products", text, goal, [value, signed])

    def _prove_term(self, premise: z3.BoolRef, term: z3.BoolRef) -> z3.BoolRef:
        """Prove that S is the number of the one product's codes, in comparisons."""
        x, one, theory = self.x, self.one, self.theory
        finite = prove_finite(theory, x.step, [*x.step.a, *x.step.b, x.step.c])
        sums, places = one.prove_sum()
        exact, nothing = places[0].arg(1), sums[-1].arg(1)
        text = "no sum is no product"
        zero = theory.claim("zero as a product", text, z3.Implies(nothing, exact))
        n = self.codes.numbers[0]
        product = Term(one.sign, one.top, one.product)
        parts = self.codes.prove_parts(0, product, one.factors)
        place = fit(one.top, self.w.exponent_bits) - (4 * HALF - 2 + BIAS)
        text = "the exponent is that of the codes"
        exponent = theory.claim("exponent of the product", text, place == n.exponent)
        text = "the sum of products is the number of the codes"
        moved = theory.claim("exact product", text, z3.Implies(exact, term), [parts, exponent])
        given = [finite, *sums, *places, zero, moved]
        return self.w.follows("term", text, z3.Implies(premise, term), given, exact, term)
