"""Proof that a step of sfma, or of efda in fixed point, is its exact sum rounded once.

Both add two terms x and y, a product (or the exact sum of the products) and c, at the larger of their exponents, and
keep a number of places, the last one sticky (`blocks.sticky_sum`).  That the terms are those of the codes, with their
signs, is in `exact_terms`.  With u the last place,

1. *sticky*:    an aligned magnitude A is |x| / u, or it is odd and (A − 1)·u < |x| < (A + 1)·u;
2. *one*:       the term that has the larger exponent is exact, and even;
3. *room*:      where the other one is not, the sum S is so large, or u so small, that ρ's boundaries are even
                multiples of u;
4. *rounding*:  d is ρ(S·u) by definition; and where S is odd and has that room, ρ of all that is strictly between
                (S − 1)·u and (S + 1)·u, the exact sum among it.

`TwoTerms` says the same of integers of one fixed point, for theorems about codes (`theory/rounded_exactly`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias, TypeVar

import z3

from mmaformal.cases.inputs import Inputs, symbolic_inputs
from mmaformal.cases.interfaces import AnyStep, Rounds
from mmaformal.cases.one_step import one_step
from mmaformal.encodings import smt
from mmaformal.encodings.efda import Efda
from mmaformal.encodings.efda import smt as efda
from mmaformal.encodings.sfma import Sfma
from mmaformal.encodings.sfma import smt as sfma
from mmaformal.encodings.smt.blocks import (
    ExponentRange,
    Special,
    StickySum,
    Term,
    exponent_range,
    product_range,
)
from mmaformal.facts.exact_terms import prove_links, prove_specials, prove_terms, smt_step, step_top
from mmaformal.facts.exactness import (
    Exact,
    claims_of,
    prove_own_numbers,
    settle_bound,
)
from mmaformal.facts.protocol import Facts
from mmaformal.facts.sorted_steps import prove_sorted
from mmaformal.instruction import Instruction
from mmaformal.limits import widest
from mmaformal.proof.composition import Composing
from mmaformal.proof.definitions import fit
from mmaformal.proof.fixed_sums import FIXED_POINT, accumulate
from mmaformal.proof.sticky_sums import (
    AlignedMagnitude,
    e_max_in_range,
    has_room,
    is_larger,
    prove_parity,
    prove_rounded,
    wide_enough,
)
from mmaformal.rounding import Conversion
from mmaformal.solver.answers import Answer, Number
from mmaformal.spec import DotAdd
from mmaformal.theory.fixed_point import Shifted, WideNumbers
from mmaformal.theory.rounded_sums import KeptIntegers, KeptTerm, NearSum, Shown, Span

StepT = TypeVar("StepT", bound=AnyStep)


@dataclass(frozen=True)
class Sticky:
    """A step that rounds the sticky sum of two terms."""

    x: Term
    x_bits: int
    y: Term
    y_bits: int
    sum: StickySum
    frame: int
    exponents: ExponentRange
    rho: Conversion
    special: Special
    result: z3.BitVecRef
    invariants: tuple[z3.BoolRef, ...]  #: of the terms, proved before
    names: tuple[str, str] = ("product", "c")  #: of the terms, in claims
    least: int | None = None  #: the least exponent of a sum; None: that of ρ's format

    def aligned(self, unit: z3.BitVecRef) -> list[AlignedMagnitude]:
        """Return both terms as they are aligned; `unit` is the exponent of the sum's last place."""
        each = zip(
            self.names, (self.x, self.y), (self.x_bits, self.y_bits), (self.sum.x, self.sum.y), strict=True
        )
        return [AlignedMagnitude(*one, self.sum.e_max, unit, self.exponents, self.frame) for one in each]


def prove_claims(proving: Composing, spec: DotAdd, given: Inputs | None = None) -> z3.BoolRef:
    """Prove that a step of a model of sfma or efda, on these inputs or any, is correctly rounded; returns that every
    input is a number.  Raises NotProvedError."""
    p, inputs = spec.parameters, given or symbolic_inputs(one_step(spec))
    assert isinstance(p, (Sfma, Efda))
    step = smt_step(spec, inputs)
    prove_specials(proving, spec, inputs, step)
    prove_terms(proving, spec, inputs, step)
    if isinstance(step, sfma.SfmaStep):
        prove_sticky(proving, sfma_terms(proving, step, p.rho))
    elif isinstance(step, efda.SortedStep):
        prove_sorted(proving, spec, step)
    else:
        assert isinstance(p, Efda)
        prove_sticky(proving, fixed_terms(proving, spec, p, step))
    operands = (step.a, step.b, step.c) if isinstance(step, sfma.SfmaStep) else (*step.a, *step.b, step.c)
    return z3.And([z3.Not(flag) for x in operands for flag in (x.infinite, x.nan)])


#: Proves that one step is correctly rounded, as `prove_claims` does.
Claims: TypeAlias = Callable[[Composing, DotAdd], z3.BoolRef]


def prove_each_step_rounds(proving: Composing, spec: DotAdd, prove: Claims = prove_claims) -> None:
    """Prove of each step of a chain what `prove` proves of one, and conclude it.  Raises NotProvedError."""
    numbers = prove(proving, spec)
    prove_links(proving, spec)
    proving.rests_on(FIXED_POINT)
    proving.conclude_all(numbers)


def rounded_once(proving: Composing, spec: DotAdd, prove: Claims = prove_claims) -> Exact:
    """Prove that each step always rounds its exact sum, if `prove` proves it of one.  Raises NotProvedError."""
    numbers, claims = claims_of(proving, lambda: prove(proving, spec))
    off = prove_off(proving, 4 << spec.d_format.exponent_bits)
    rho = spec.parameters.last_rounding
    own = prove_own_numbers(proving, rho)
    text = (
        f"in each step d = {rho}(c + Σ a·b): every term is aligned exactly, or to an odd integer less than one unit"
        f" from it, and then d is {rho} of all that is less than one unit from the sum of those;"
        f" {rho} of a number of {rho}'s is that number"
    )
    return Exact(numbers, z3.BoolVal(True), z3.And(claims, off, own), (), text)


def error_bound(instruction: Instruction, proving: Composing, prove: Claims = prove_claims) -> Answer:
    """n = 0: each rounding is of an exact sum."""
    n = Number("n", 0, "what a sum is off before it is rounded")
    question = f"{instruction.label}: {n.text}, each rounding is of an exact sum"
    return settle_bound(
        question, proving, (n,), lambda: prove_each_step_rounds(proving, instruction.spec, prove), ()
    )


def prove_off(proving: Composing, bits: int) -> z3.BoolRef:
    """Prove that a sum of two is off by as much as both together: where one is exact, by what the other is."""
    proving.rests_on(FIXED_POINT)
    (x, y), (x_kept, y_kept) = z3.BitVecs("x y", bits), z3.BitVecs("x_kept y_kept", bits)
    text = "the sum of two terms is off by the sum of what they are off"
    return proving.claim("off", text, x + y - (x_kept + y_kept) == (x - x_kept) + (y - y_kept))


class RoundsExactSums(Facts[StepT]):
    """Facts of an algorithm each of whose steps rounds its exact sum, whatever that is."""

    def rounding(self, spec: DotAdd) -> Claims:
        """Return what proves that of one step.  Raises UnsupportedError for models of which it is not known."""
        return prove_claims

    def exactness(self, proving: Composing, spec: DotAdd) -> Exact:
        return rounded_once(proving, spec, self.rounding(spec))

    def error_bound(self, instruction: Instruction, proving: Composing) -> Answer:
        return error_bound(instruction, proving, self.rounding(instruction.spec))

    def rounds_exact_sum(self, proving: Composing, spec: DotAdd) -> None:
        prove_each_step_rounds(proving, spec, self.rounding(spec))


def fixed_terms(proving: Composing, spec: DotAdd, p: Efda, step: efda.FixedStep) -> Sticky:
    """The exact sum of the products as one term, and c."""
    a, b, c = spec.a_format, spec.b_format, exponent_range(spec.c_format)
    largest, M = widest(a) * widest(b), spec.c_format.fraction_bits
    highest = a.max_exponent + b.max_exponent - product_range(a, b).low
    signed = [(product.sign, placed) for product, placed in zip(step.products, step.placed, strict=True)]
    small = _placed(proving, step, largest, highest)
    dot = accumulate(proving, step.dot, signed, [largest << highest] * p.L, small).prove_range(proving)
    reach, x, y = p.L * (largest << highest), step.term, step.addend
    top = step_top(spec)
    exponents = c.union(top)
    least = exponents.constant(c.low)
    place = z3.If(x.significand == 0, x.exponent == least, x.exponent == exponents.constant(top))
    text = "the sum of the products is below its exponent's place, or zero with c's least exponent"
    claim = z3.And(z3.ULE(x.significand, reach), place)
    term = proving.claim("sum of products", text, claim, [dot])
    number = z3.Not(z3.Or(step.c.infinite, step.c.nan))
    normal = z3.Or(z3.UGE(y.significand, 1 << M), y.exponent == least)
    bounds = z3.And(z3.UGE(y.exponent, least), z3.ULE(y.exponent, exponents.constant(c.high)), normal)
    text = "c's exponent is in its range, and c has its leading bit or the least exponent"
    proving.claim("c", text, z3.Implies(number, bounds))
    bits = reach.bit_length()
    frame, known = bits + efda.places_below(efda.precision(spec, p)), (term, bounds)
    return Sticky(x, bits, y, M, step.sum, frame, exponents, p.rho, step.special, step.result, known)


def _placed(proving: Composing, step: efda.FixedStep, largest: int, highest: int) -> list[z3.BoolRef]:
    """Prove that no finite product is placed above the largest."""
    small = []
    for x, y, product, placed in zip(step.a, step.b, step.products, step.placed, strict=True):
        special = z3.Or(x.infinite, x.nan, y.infinite, y.nan)
        text, claim = (
            "a product's significand is at most that of the largest factors",
            z3.ULE(product.significand, largest),
        )
        significand = proving.claim("product's significand", text, claim)
        text, claim = (
            "a finite product's exponent is at most that of the largest",
            z3.ULE(product.exponent, highest),
        )
        exponent = proving.claim("product's exponent", text, z3.Or(special, claim))
        text, claim = "a finite product is at most the largest", z3.ULE(placed, largest << highest)
        given = [significand, exponent, z3.Not(special)]
        small.append(proving.claim("placed product", text, claim, given))
    return small


def sfma_terms(proving: Composing, step: sfma.SfmaStep, rho: Conversion) -> Sticky:
    """A product and c, and what is known of them."""
    fmt, operands = rho.format, (step.a, step.b, step.c)
    M, ex, c, x, y = fmt.fraction_bits, sfma.exponents_of(fmt), exponent_range(fmt), step.product, step.addend
    finite = z3.Not(z3.Or([flag for each in operands for flag in (each.infinite, each.nan)]))
    text = "an operand has its leading bit, or the least exponent"
    claim = z3.And([z3.Or(z3.UGE(each.significand, 1 << M), each.field == 1) for each in operands])
    normal = proving.claim("operands", text, claim)
    parts = [step.a.significand, step.b.significand]
    zeros = [part == 0 for part in parts]
    large = prove_not_below_factors(proving, x, parts)
    nothing = z3.And(x.significand == 0, x.exponent == ex.constant(fmt.min_exponent))
    text = "a product with a zero factor is zero, and has the least exponent of c"
    zero = proving.claim("product of zero", text, z3.Implies(z3.Or(zeros), nothing))
    text = "a product that is not zero has the leading bit of one factor, or the least exponent of products"
    claim = z3.Or(nothing, z3.UGE(x.significand, 1 << M), x.exponent == ex.constant(ex.low))
    of_product = proving.claim("exponent of a product", text, claim, [normal, *large, zero])
    bounds = z3.And(
        z3.ULE(x.exponent, ex.constant(ex.high)),
        z3.UGE(y.exponent, ex.constant(c.low)),
        z3.ULE(y.exponent, ex.constant(ex.high)),
        z3.Or(z3.UGE(y.significand, 1 << M), y.exponent == ex.constant(c.low)),
    )
    proving.claim("exponents in range", "exponents are in their range", z3.Implies(finite, bounds))
    text = "where nothing is special, the operands are finite"
    proving.claim("finite", text, z3.Or(finite, *step.special))
    frame, known = sfma.frame_bits(M + 1), (of_product, bounds)
    return Sticky(x, 2 * M, y, M, step.sum, frame, ex, rho, step.special, step.result, known)


def prove_not_below_factors(
    proving: Composing, product: Term, parts: Sequence[z3.BitVecRef]
) -> list[z3.BoolRef]:
    """Prove that a product of nonzero significands is not below either of them."""
    bits, text = product.significand.size(), "a product of nonzero significands is not below either of them"
    some = z3.And([part != 0 for part in parts])
    return [
        proving.claim(f"product of {n}", text, z3.Implies(some, z3.UGE(product.significand, fit(part, bits))))
        for n, part in enumerate(parts)
    ]


def prove_sticky(proving: Composing, s: Sticky) -> None:
    """Prove that d is the exact sum of two terms, rounded once.  Raises NotProvedError."""
    sum_ = s.sum.total, s.sum.e_max, s.frame
    prove_rounded(proving, sum_, s.exponents, s.rho, (s.special, s.result), prove_kept_sum(proving, s))


def prove_kept_sum(proving: Composing, s: Sticky) -> list[z3.BoolRef]:
    """Prove that the sum of two terms is the exact one, or odd with room, and less than one unit off; returns its range
    and that of its exponent.  Raises NotProvedError."""
    x, y, e_max, total = s.x, s.y, s.sum.e_max, s.sum.total
    wide = wide_enough(s.exponents, s.frame, s.rho)
    unit = fit(e_max, wide) + (s.exponents.low - s.frame)
    cut = [x.exponent, y.exponent, e_max, x.significand, y.significand]
    text, claim = "e_max is the larger exponent", is_larger(s.sum, x, y)
    largest = proving.claim("larger exponent", text, claim)
    kept = [each.prove(proving) for each in s.aligned(unit)]
    text = "where a term loses bits, ρ's boundaries are even multiples of the last place"
    claim = z3.Or(z3.And(kept), has_room(total, e_max, s.exponents, s.frame, s.rho))
    proving.claim("room", text, claim, [largest, *s.invariants], [*cut, x.sign, y.sign])
    small, claim = prove_parity(proving, s.sum), e_max_in_range(e_max, s.exponents, s.rho, s.least)
    text = "e_max is in its range, from the least exponent that a sum has"
    in_range = proving.claim("least e_max", text, claim, [largest, *s.invariants])
    return [in_range, small]


@dataclass(frozen=True)
class TwoTerms:
    """The sum of two terms is the exact one, or odd with room and less than one unit off: as integers."""

    w: WideNumbers
    terms: Sticky
    said: Mapping[str, z3.BoolRef]  #: the claims of `prove_sticky`, by their names

    def size(self, x: Term, bits: int) -> Shifted:
        """The magnitude of one of the two terms, of so many fraction bits."""
        low = self.terms.exponents.low
        return Shifted(x.significand, fit(x.exponent, self.w.exponent_bits) + (low - bits))

    @property
    def first(self) -> Shifted:
        return self.size(self.terms.x, self.terms.x_bits)

    @property
    def addend(self) -> Shifted:
        return self.size(self.terms.y, self.terms.y_bits)

    @property
    def exact(self) -> z3.BitVecRef:
        x, y = self.terms.x, self.terms.y
        return self.w.number(x.sign, self.first) + self.w.number(y.sign, self.addend)

    def prove(self) -> Shown:
        """Raises NotProvedError."""
        w, s, kept, total = self.w, self.terms, KeptIntegers(self.w), self.terms.sum.total
        u = fit(s.sum.e_max, w.exponent_bits) + (s.exponents.low - s.frame)
        in_u = w.in_range(u, [self.said["least e_max"]])
        sizes, ranges = (self.first, self.addend), []
        for size, known in zip(sizes, s.invariants, strict=True):
            ranges.append(w.in_range(size.t, [known]))
        x = KeptTerm(s.x.sign, Shifted(s.sum.x, u), self.first)
        y = KeptTerm(s.y.sign, Shifted(s.sum.y, u), self.addend)
        given = [kept.prove(part, [in_u, each]) for part, each in zip((x, y), ranges, strict=True)]
        given += kept.sum_of_two(total, x, y)
        values = [(kept.kept(part), kept.number(part)) for part in (x, y)]
        given += kept.off_by_one(w.point.signed(total, u), w.point.unit(u), (values[0], values[1]))
        given += [self.said["room"], self.said["larger exponent"]]
        given += [self.said[f"{name} {what}"] for name in s.names for what in ("sticky", "at the top")]
        sum_ = NearSum(total, u, has_room(total, s.sum.e_max, s.exponents, s.frame, s.rho))
        text = "the sum is the exact one, or odd with room, and less than one unit off"
        claim = w.follows("sum of two terms", text, sum_.claim(w, self.exact), given)
        rooms = [w.roomy(size, each).arg(0) for size, each in zip(sizes, ranges, strict=True)]
        text = "the sum is far from the ends"
        far = w.of_sums("range of the sum of both", text, w.point.is_near(self.exact, 5), rooms)
        return Shown(sum_, self.exact, claim, in_u, far)


@dataclass(frozen=True)
class OneStepModel:
    """The common part of models whose steps round their exact sums once (`theory/rounded_exactly.RoundsExactly`)."""

    model: DotAdd

    @property
    def spec(self) -> DotAdd:
        return one_step(self.model)

    @property
    def inputs(self) -> Inputs:
        return symbolic_inputs(self.spec)

    @property
    def given(self) -> z3.BoolRef:
        return z3.BoolVal(True)

    def run(self, x: Inputs) -> Rounds:
        """The step on other codes."""
        spec = self.spec
        step: Rounds = smt.dot_add(spec, x.a, x.b, x.c).steps[0]
        return step


def span_of(exponents: ExponentRange, frame: int, total: z3.BitVecRef, rho: Conversion) -> Span:
    """Return the span of a sum with so many places below its largest exponent."""
    bits = wide_enough(exponents, frame, rho)
    return Span(exponents.low - frame, exponents.high, total.size(), bits)
