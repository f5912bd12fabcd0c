"""The pair of rnd2 is the exact sum of two products, rounded once: as claims, and as a theorem about codes.

The pair is the sticky sum of two products (`facts/exact_steps`).  The larger one is not less than 2^(frame − max(M_a,
M_b)) units, M the fraction bits of a format: one factor at least has its leading bit, or else no exponent is smaller,
and nothing is cut off.  So where the other one loses bits, there is room for rounding (`Rnd2.frame`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import z3

from mmaformal.cases.inputs import Inputs
from mmaformal.cases.interfaces import AnyStep
from mmaformal.cases.one_step import one_step
from mmaformal.encodings.rnd2 import Rnd2
from mmaformal.encodings.rnd2 import smt as rnd2
from mmaformal.encodings.smt.blocks import Operand, Rounded, Special, Term, product_range, quiet_nan
from mmaformal.encodings.smt.stages import Stages
from mmaformal.facts import growing_pairs
from mmaformal.facts.exact_steps import OneStepModel, Sticky, prove_not_below_factors
from mmaformal.facts.growing_pairs import prove_pair, span_of_pair
from mmaformal.facts.monotone_addition import ieee_addition
from mmaformal.proof.composition import Composing
from mmaformal.proof.rules import Theory
from mmaformal.rounding import Conversion, NanRule
from mmaformal.spec import DotAdd
from mmaformal.theory.rounded_sums import Span, SumTheorem
from mmaformal.theory.rounding import RoundingGrid


class Pair(NamedTuple):
    """The interfaces of the sum of a step's pair of products, before c is added."""

    special: Special
    rounded: Rounded
    result: z3.BitVecRef


def _operands_of(step: rnd2.Rnd2Step) -> list[Operand]:
    return [x for pair in step.factors for x in pair]


def pair_terms(proving: Composing, spec: DotAdd, step: rnd2.Rnd2Step) -> Sticky:
    """Both products, and what is known of them."""
    p, formats = spec.parameters_as(Rnd2), (spec.a_format, spec.b_format)
    ex, bits = product_range(*formats), sum(fmt.fraction_bits for fmt in formats)
    finite = z3.Not(z3.Or([flag for x in _operands_of(step) for flag in (x.infinite, x.nan)]))
    known = []
    for pair, term in zip(step.factors, step.products, strict=True):
        product = _prove_product(proving, spec, pair, term)
        high = z3.ULE(term.exponent, ex.constant(sum(fmt.max_exponent for fmt in formats)))
        text = "the exponent of a product of numbers is in its range"
        claim = z3.Implies(finite, z3.And(high, product))
        proving.claim("exponents in range", text, claim, [product])
        known.append(z3.And(high, product))
    text = "where nothing is special, the factors are finite"
    proving.claim("finite", text, z3.Or(finite, *step.special))
    (x, y), frame, result = step.products, p.frame(spec), step.pair.result
    names = "first product", "second product"
    invariants = known[0], known[1]
    return Sticky(
        x, bits, y, bits, step.sum, frame, ex, p.pair, step.special, result, invariants, names, ex.low
    )


def _prove_product(proving: Composing, spec: DotAdd, pair: tuple[Operand, Operand], term: Term) -> z3.BoolRef:
    """Prove that a product has the least exponent, or the leading bit of one factor at least."""
    formats = spec.a_format, spec.b_format
    least = product_range(*formats).constant(sum(fmt.min_exponent for fmt in formats))
    text = "a factor has its leading bit, or the least exponent"
    leading = [
        z3.Or(z3.UGE(x.significand, 1 << fmt.fraction_bits), x.field == 1)
        for x, fmt in zip(pair, formats, strict=True)
    ]
    normal = proving.claim("factors", text, z3.And(leading))
    parts = [x.significand for x in pair]
    large = prove_not_below_factors(proving, term, parts)
    text = "a product of zero has the least exponent"
    zeros = z3.Or([part == 0 for part in parts])
    zero = proving.claim("product of zero", text, z3.Implies(zeros, term.exponent == least))
    text = "a product has the least exponent, or the leading bit of one factor at least"
    claim = z3.Or(
        term.exponent == least, z3.UGE(term.significand, 1 << min(f.fraction_bits for f in formats))
    )
    return proving.claim("exponent of a product", text, claim, [normal, *large, zero])


@dataclass(frozen=True)
class PairSum(OneStepModel):
    """The pair of one step of a model of rnd2: that of the unit that does not read c."""

    @property
    def parameters(self) -> Rnd2:
        return self.model.parameters_as(Rnd2)

    @property
    def phi(self) -> Conversion:
        return self.parameters.pair

    @property
    def spec(self) -> DotAdd:
        one = one_step(self.model)
        return one.replace(rho=self.phi, nan=NanRule.DEFAULT, negate_pair=False, negated="", reads_c=False)

    def whole(self, x: Inputs) -> rnd2.Rnd2Step:
        """The step on these codes."""
        return rnd2.step(one_step(self.model), self.parameters, x.a, x.b, x.c, Stages())

    def run(self, x: Inputs) -> Pair:
        step = self.whole(x)
        return Pair(step.special, step.pair.rounded, step.pair.result)

    @property
    def step(self) -> Pair:
        return self.run(self.inputs)

    @property
    def zero(self) -> z3.BitVecRef:
        x, y = self.whole(self.inputs).products
        return x.sign & y.sign

    @property
    def span(self) -> Span:
        spec, total = self.model, self.whole(self.inputs).sum.total
        exponents = product_range(spec.a_format, spec.b_format)
        return span_of_pair(exponents, self.parameters.frame(spec), total, self.phi)

    def prove(self, grid: RoundingGrid) -> SumTheorem:
        """Raises NotProvedError."""
        step = self.whole(self.inputs)
        terms = pair_terms(grid.numbers.theory, one_step(self.model), step)
        return prove_pair(grid, self, terms, step.factors)


def prove_in_products(theory: Theory, spec: DotAdd) -> None:
    """`larger_product(spec, k).statement` of each k, of a model that adds its pairs.  Raises NotProvedError."""
    add = ieee_addition(spec.parameters_as(Rnd2).rho, quiet_nan(spec.d_format))

    def taken(step: AnyStep) -> tuple[z3.BitVecRef, z3.BitVecRef]:
        assert isinstance(step, rnd2.Rnd2Step)
        return step.pair.result, step.summand

    growing_pairs.prove_in_products(theory, spec, PairSum(spec), add, taken)
