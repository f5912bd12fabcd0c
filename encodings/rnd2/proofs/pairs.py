"""The pair of rnd2 is the exact sum of two products, rounded once: as claims, and as a theorem about codes.

The pair is the sticky sum of two products (`facts/exact_steps`).  The larger one is not less than 2^(frame − max(M_a,
M_b)) units, M the fraction bits of a format: one factor at least has its leading bit, or else no exponent is smaller,
and nothing is cut off.  So where the other one loses bits, there is room for rounding (`Rnd2.frame`).

d grows with a product: the pair does, since ρ keeps the order of exact sums, and d grows with the pair as with c.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import z3

from mmaformal.cases.inputs import Inputs
from mmaformal.cases.interfaces import AnyStep
from mmaformal.cases.one_step import one_step
from mmaformal.encodings.rnd2 import Rnd2
from mmaformal.encodings.rnd2 import smt as rnd2
from mmaformal.encodings.smt import ieee
from mmaformal.encodings.smt.blocks import Operand, Rounded, Special, Term, Trace, product_range, quiet_nan
from mmaformal.encodings.smt.stages import Stages
from mmaformal.facts.exact_steps import (
    OneStepModel,
    Sticky,
    TwoTerms,
    prove_not_below_factors,
    prove_sticky,
    span_of,
)
from mmaformal.facts.monotone_addition import AdditionOfC, MonotoneLastAddition, added
from mmaformal.proof.composition import Composing
from mmaformal.proof.kernel import demand
from mmaformal.proof.rules import Theory, instance
from mmaformal.rounding import Conversion, NanRule
from mmaformal.spec import DotAdd
from mmaformal.theory.monotone import Link, OrderedSums, prove_chain, same_results
from mmaformal.theory.numbers import CodeNumbers, larger_product
from mmaformal.theory.rounded_sums import ExactSum, Span, conclude, prove_finite
from mmaformal.theory.rounding import RoundingGrid


class Pair(NamedTuple):
    """The interfaces of the sum of a step's pair of products, before c is added."""

    special: Special
    rounded: Rounded
    result: z3.BitVecRef


def operands_of(step: rnd2.Rnd2Step) -> list[Operand]:
    return [x for pair in step.factors for x in pair]


def pair_terms(proving: Composing, spec: DotAdd, step: rnd2.Rnd2Step) -> Sticky:
    """Both products, and what is known of them."""
    p, formats = spec.parameters, (spec.a_format, spec.b_format)
    assert isinstance(p, Rnd2)
    ex, bits = product_range(*formats), sum(fmt.fraction_bits for fmt in formats)
    finite = z3.Not(z3.Or([flag for x in operands_of(step) for flag in (x.infinite, x.nan)]))
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
        assert isinstance(self.model.parameters, Rnd2)
        return self.model.parameters

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
        spec, phi = self.model, self.phi
        exponents = product_range(spec.a_format, spec.b_format)
        span = span_of(exponents, self.parameters.frame(spec), self.whole(self.inputs).sum.total, phi)
        fmt = phi.format
        return span._replace(
            low=min(span.low, fmt.min_exponent - fmt.fraction_bits),
            high=max(span.high, fmt.max_exponent + 1),
        )

    def prove(self, grid: RoundingGrid) -> ExactSum:
        """Raises NotProvedError."""
        w, theory, step = grid.numbers, grid.numbers.theory, self.whole(self.inputs)
        codes, terms = CodeNumbers(w, self.spec), pair_terms(theory, one_step(self.model), step)
        prove_sticky(theory, terms)
        finite = prove_finite(theory, self.step, operands_of(step))
        sums = TwoTerms(w, terms, dict(theory.named))
        shown = sums.prove()
        products = [
            codes.prove_product(
                k, step.products[k], size, step.factors[k], finite.arg(0), terms.invariants[k]
            )
            for k, size in enumerate((sums.first, sums.addend))
        ]
        nothing = theory.claim("no c", "−0 adds nothing", codes.integers[-1] == 0)
        none = z3.Not(z3.Or(*step.special))
        same, text = z3.Implies(none, sums.exact == codes.total), "the sum is that of the codes' products"
        same = theory.claim("sum of codes", text, same, [*products, nothing, finite])
        return conclude(grid, shown, self.step, self.zero, same, codes.total)


# ---- d grows with a product ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Grows:
    """Theorems of one step: that the pair grows with its products, and d with the pair and with c."""

    pair: PairSum
    with_product: Sequence[z3.BoolRef]
    with_pair: tuple[MonotoneLastAddition, z3.BoolRef]
    with_c: tuple[MonotoneLastAddition, z3.BoolRef] | None  #: where a step is followed by others


def prove_in_products(theory: Theory, spec: DotAdd) -> None:
    """`larger_product(spec, k).statement` of each k, of a model that adds its pairs.  Raises NotProvedError."""
    p, fmt, pair = spec.parameters, spec.d_format, PairSum(spec)
    assert isinstance(p, Rnd2)
    rho = p.rho

    def to_pair(pair: z3.BitVecRef, c: z3.BitVecRef) -> AdditionOfC:
        return added(ieee.add(c, pair, rho, quiet_nan(fmt)))

    def to_c(c: z3.BitVecRef, pair: z3.BitVecRef) -> AdditionOfC:
        return to_pair(pair, c)

    sums = OrderedSums.of(theory, pair)
    products = [sums.prove_in_product(j) for j in range(p.step_products)]
    ways = [
        (last, last.prove(theory))
        for last in (MonotoneLastAddition(fmt, to_pair), MonotoneLastAddition(fmt, to_c))[: spec.k // 2]
    ]
    grows = _Grows(pair, products, ways[0], ways[1] if len(ways) > 1 else None)
    for k in range(spec.k):
        _prove_in_product(theory, spec, k, grows)


def _prove_in_product(theory: Theory, spec: DotAdd, k: int, grows: _Grows) -> None:
    L, fmt = spec.parameters.step_products, spec.d_format
    i, j = divmod(k, L)
    runs, alone = larger_product(spec, k), larger_product(grows.pair.spec, j)
    first, second = (_steps(trace) for trace in runs.traces)
    c = first[i - 1].result if i else runs.x.c
    at = slice(i * L, (i + 1) * L)
    own = [*alone.x.a, *alone.x.b, alone.y.a[j], alone.y.b[j]]
    mine = [*runs.x.a[at], *runs.x.b[at], runs.y.a[k], runs.y.b[k]]
    moved = [(u, v) for u, v in zip(own, mine, strict=True) if not u.eq(v)]
    if moved:
        instance(theory, grows.with_product[j], moved)
    own_pairs = [z3.substitute(grows.pair.run(x).result, *moved) for x in (alone.x, alone.y)]
    pairs = first[i].pair.result, second[i].pair.result
    text = "a pair is a pair of its own"
    same_results(theory, f"pair {k}", text, pairs, (own_pairs[0], own_pairs[1]), fmt)
    last, theorem = grows.with_pair
    results = first[i].result, second[i].result
    prove_chain(theory, last.step, theorem, pairs, [([(last.other, c)], results)])
    if grows.with_c is not None:
        last, theorem = grows.with_c
        rest = zip(first[i + 1 :], second[i + 1 :], strict=True)
        links: list[Link] = [([(last.other, x.summand)], (x.result, y.result)) for x, y in rest]
        prove_chain(theory, last.step, theorem, results, links)
    ends = tuple(trace.result for trace in runs.traces)
    text = "the result is the last step's"
    same_results(theory, f"result, {k}", text, (ends[0], ends[1]), (first[-1].result, second[-1].result), fmt)
    theory.theorem(f"d is not smaller if product {k} is not", runs.statement)


def _steps(trace: Trace[AnyStep]) -> list[rnd2.Rnd2Step]:
    steps = [each for each in trace.steps if isinstance(each, rnd2.Rnd2Step)]
    demand(len(steps) == len(trace.steps), "steps of rnd2")
    return steps


__all__ = ["PairSum", "pair_terms", "prove_in_products"]
