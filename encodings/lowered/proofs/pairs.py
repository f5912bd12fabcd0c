"""The sum of two products, aligned, added and rounded to odd, is the exact sum rounded once.

What is cut off a product that is far below the other is remembered in its last place, and so is what rounding cuts off:
to odd, that comes to the same as rounding once.  It does where the sum is so large, with the other product, that ρ has
no place below the last one that is kept (`has_room`): where that has both leading bits.  A product of a subnormal
factor has a small exponent, and so small a product loses nothing, if formats are narrow enough.
"""

from __future__ import annotations

from dataclasses import dataclass

import z3

from mmaformal.cases.inputs import Inputs
from mmaformal.cases.interfaces import AnyStep
from mmaformal.cases.one_step import one_step
from mmaformal.encodings.fda import smt as fda
from mmaformal.encodings.lowered import Lowered
from mmaformal.encodings.lowered import smt as lowered
from mmaformal.encodings.smt.blocks import Operand, StickySum
from mmaformal.encodings.smt.stages import Stages
from mmaformal.facts import growing_pairs
from mmaformal.facts.exact_steps import OneStepModel, Sticky, prove_not_below_factors
from mmaformal.facts.growing_pairs import prove_pair, span_of_pair
from mmaformal.facts.monotone_addition import ieee_addition
from mmaformal.proof.composition import Composing
from mmaformal.proof.rules import Theory
from mmaformal.rounding import Rounding
from mmaformal.spec import DotAdd
from mmaformal.theory.rounded_sums import Span, SumTheorem
from mmaformal.theory.rounding import RoundingGrid


def adds_odd_pairs(spec: DotAdd) -> bool:
    """Whether a step is one sum of two products, taken as they are, to odd, and c."""
    p = spec.parameters_as(Lowered)
    to_odd = p.cut is Rounding.RO and p.rho.rounding is Rounding.RO and not p.rho.signed_zero
    return to_odd and p.L == len(p.order) == 2 and p.order == (0, 1) and p.operands is None


@dataclass(frozen=True)
class OddPair(OneStepModel):
    """The sum of the two products of one step: that of its fda, which c is not read by."""

    @property
    def parameters(self) -> Lowered:
        return self.model.parameters_as(Lowered)

    @property
    def spec(self) -> DotAdd:
        return self.parameters.inner_dot_add(one_step(self.model)).replace(reads_c=False)

    def run(self, x: Inputs) -> fda.FdaStep:
        return lowered.step(one_step(self.model), self.parameters, x.a, x.b, x.c, Stages()).inner[0]

    @property
    def step(self) -> fda.FdaStep:
        return self.run(self.inputs)

    @property
    def zero(self) -> z3.BitVecRef:
        return z3.BitVecVal(0, 1)

    @property
    def span(self) -> Span:
        p = self.parameters
        exponents = fda.exponents_of(p.inner_dot_add(self.model), p.inner)
        return span_of_pair(exponents, p.F, self.step.total, p.rho)

    def prove(self, grid: RoundingGrid) -> SumTheorem:
        """Raises NotProvedError."""
        step = self.step
        factors = list(zip(step.a, step.b, strict=True))
        return prove_pair(grid, self, self._terms(grid.numbers.theory, step, factors), factors)

    def _terms(self, proving: Composing, step: fda.FdaStep, factors: list[tuple[Operand, Operand]]) -> Sticky:
        """Both products, and what is known of them."""
        spec, p, known = self.spec, self.parameters, []
        ex, formats = fda.exponents_of(p.inner_dot_add(self.model), p.inner), (spec.a_format, spec.b_format)
        bits = sum(fmt.fraction_bits for fmt in formats)
        finite = z3.Not(z3.Or([flag for pair in factors for x in pair for flag in (x.infinite, x.nan)]))
        for k, pair in enumerate(factors):
            product = self._prove_product(proving, step, k, pair)
            high = z3.ULE(step.products[k].exponent, ex.constant(sum(fmt.max_exponent for fmt in formats)))
            text = "the exponent of a product of numbers is in its range"
            proving.claim("exponents in range", text, z3.Implies(finite, z3.And(high, product)), [product])
            known.append(z3.And(high, product))
        proving.claim(
            "finite", "where nothing is special, the factors are finite", z3.Or(finite, *step.special)
        )
        (x, y), (first, second) = step.products, step.aligned
        sum_ = StickySum(step.e_max, first, second, step.total)
        names, both = ("first product", "second product"), (known[0], known[1])
        return Sticky(x, bits, y, bits, sum_, p.F, ex, p.rho, step.special, step.result, both, names, ex.low)

    def _prove_product(
        self, proving: Composing, step: fda.FdaStep, k: int, pair: tuple[Operand, Operand]
    ) -> z3.BoolRef:
        """Prove that a product has both leading bits; or the leading bit of one factor, and the least exponent of the
        other; or the least exponent that one has."""
        spec, term, p = self.spec, step.products[k], self.parameters
        ex, (a, b) = fda.exponents_of(p.inner_dot_add(self.model), p.inner), (spec.a_format, spec.b_format)
        text = "a factor has its leading bit, or the least exponent"
        leading = [z3.UGE(x.significand, 1 << fmt.fraction_bits) for x, fmt in zip(pair, (a, b), strict=True)]
        least = z3.And([z3.Or(one, x.field == 1) for one, x in zip(leading, pair, strict=True)])
        normal = proving.claim("factors", text, least)
        large = prove_not_below_factors(proving, term, [x.significand for x in pair])
        both = z3.UGE(term.significand, 1 << (a.fraction_bits + b.fraction_bits))
        text = "factors with their leading bits have a product with both"
        whole = proving.claim("product of both", text, z3.Implies(z3.And(leading), both))
        text = "a product has both leading bits, or an exponent of a subnormal factor"
        high = max(a.min_exponent + b.max_exponent, a.max_exponent + b.min_exponent)
        finite = z3.Not(z3.Or([flag for x in pair for flag in (x.infinite, x.nan)]))
        claim = z3.Or(both, z3.ULE(term.exponent, ex.constant(high)), z3.Not(finite))
        return proving.claim("exponent of a product", text, claim, [normal, *large, whole])


def prove_in_products(theory: Theory, spec: DotAdd) -> None:
    """Prove `larger_product(spec, k).statement` of each k, of a model that `adds_odd_pairs`.  Raises NotProvedError."""
    p = spec.parameters_as(Lowered)
    add = ieee_addition(p.addition, lowered.nan_code(p, spec.d_format), c_first=False)

    def taken(step: AnyStep) -> tuple[z3.BitVecRef, z3.BitVecRef]:
        assert isinstance(step, lowered.LoweredStep)
        return step.dot, step.dot

    growing_pairs.prove_in_products(theory, spec, OddPair(spec), add, taken)
