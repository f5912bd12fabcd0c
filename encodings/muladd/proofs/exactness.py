"""Exactness of a step of muladd: where the product is one of φ's numbers, d is the exact sum, rounded once.

That the product is a number is said with the index of one, any one: if its number is the exact product, the rounded
product has its code.  d is ρ of that plus c; and if a code `z` stands for the sum, d is that.

Where φ holds every product, d = ρ(c + a·b) is a theorem about codes (`sfma.exact_sums`):

1. *fma*:     an addition of c and any code p is an fma of p and 1, so the fixed point of an fma is that of the step;
2. *product*: the rounded product is the number a·b, where φ holds all products of two numbers (`holds_products`).
"""

from __future__ import annotations

from dataclasses import dataclass

import z3

from mmaformal.cases.codes import is_finite
from mmaformal.cases.inputs import Inputs, symbolic_inputs
from mmaformal.cases.one_step import one_step
from mmaformal.encodings.muladd import Muladd
from mmaformal.encodings.muladd import smt as muladd
from mmaformal.encodings.sfma import smt as sfma
from mmaformal.encodings.sfma.proofs import FmaSum
from mmaformal.encodings.smt import ieee
from mmaformal.encodings.smt.blocks import encode, product_range, quiet_nan
from mmaformal.encodings.smt.stages import Stages
from mmaformal.facts.exact_steps import TwoTerms
from mmaformal.facts.exact_terms import prove_decoded, prove_product
from mmaformal.facts.exactness import Exact, claims_of, prove_number
from mmaformal.facts.fused_steps import prove_fused_rounded, unit_exponent
from mmaformal.proof.composition import Composing
from mmaformal.proof.definitions import fit, last_index
from mmaformal.proof.rules import Theory, instance
from mmaformal.proof.sticky_sums import is_sharp, magnitude_of, prove_parity
from mmaformal.rounding import Conversion, NanRule
from mmaformal.spec import DotAdd
from mmaformal.theory.additions import AdditionFacts, finite
from mmaformal.theory.numbers import CodeNumbers
from mmaformal.theory.rounded_sums import SumTheorem
from mmaformal.theory.rounding import RoundingGrid


@dataclass(frozen=True)
class _OneStep:
    """One step on symbolic inputs."""

    spec: DotAdd
    x: Inputs
    step: muladd.MuladdStep

    @property
    def parameters(self) -> Muladd:
        return self.spec.parameters_as(Muladd)

    @property
    def phi(self) -> Conversion:
        return self.parameters.product

    @property
    def addition(self) -> AdditionFacts:
        return AdditionFacts(
            self.x.c, self.step.product.result, self.step.addition.result, self.parameters.rho
        )

    @property
    def ordinary(self) -> z3.BoolRef:
        a, b, c = self.spec.a_format, self.spec.b_format, self.spec.c_format
        return z3.And(is_finite(self.x.a[0], a), is_finite(self.x.b[0], b), is_finite(self.x.c, c))


def prove_step(proving: Composing, spec: DotAdd) -> Exact:
    """Raises NotProvedError."""
    one = one_step(spec)
    x, p = symbolic_inputs(one), one.parameters_as(Muladd)
    each = _OneStep(one, x, muladd.step(one, p, x.a[0], x.b[0], x.c, Stages()))
    _, terms = claims_of(proving, lambda: _prove_terms(proving, each))
    rounded, is_number = _prove_product(proving, each)
    a, z = each.addition, z3.BitVec("z", one.d_format.storage_bits)
    proving.claim("c", "c is a number", z3.Implies(is_finite(x.c, one.c_format), finite(x.c, one.c_format)))
    a.prove(proving)
    number = a.prove_number(proving, z)
    last = z3.And(a.rounded, a.is_kept, z3.Implies(a.is_sum(z), number.arg(1)))
    text = (
        f"in each step the product is {p.product}(a·b); where that is one of its numbers, d = {p.rho}(c + a·b), and if"
        f" that is a number of {p.rho}'s format, d is it"
    )
    conclusion = z3.And(terms, rounded, z3.Implies(is_number, last))
    return Exact(each.ordinary, is_number, conclusion, (), text)


def _prove_terms(proving: Composing, each: _OneStep) -> z3.BoolRef:
    """Prove that the product is that of the numbers that a and b are; and nothing is special where these are
    numbers."""
    spec, u = each.spec, each.step.product
    x, y = each.step.a[0], each.step.b[0]
    prove_decoded(proving, each.x.a[0], x, spec.a_format)
    prove_decoded(proving, each.x.b[0], y, spec.b_format)
    ex = product_range(spec.a_format, spec.b_format)
    prove_product(proving, u.exact, (x, y), (), spec.a_format.bias + spec.b_format.bias, ex)
    wide = fit(u.exact.significand, u.total.size())
    signed = u.total == z3.If(u.exact.sign == 1, -wide, wide)
    text = "what is rounded is the product, with its sign"
    proving.claim("signed product", text, signed, (), [u.exact.sign, u.exact.significand])
    none = z3.Not(z3.Or(*u.special))
    text = "where every input is a number, nothing is special"
    return proving.claim("not special", text, z3.Implies(each.ordinary, none))


def _prove_product(proving: Composing, each: _OneStep) -> tuple[z3.BoolRef, z3.BoolRef]:
    """(that where nothing is special the rounded product is φ of the exact one, and that number if that is a number of
    φ's; that it is one)."""
    spec, u, phi = each.spec, each.step.product, each.phi
    ex = product_range(spec.a_format, spec.b_format)
    reach = (1 << u.exact.significand.size()) - 1
    parts = [u.exact.sign, u.exact.significand]
    small = [u.total <= reach, u.total >= -reach]
    for bound in small:
        proving.claim("size", "a product is at most what its bits hold", bound, (), parts)
    high = z3.ULE(u.exact.exponent, ex.constant(ex.high))
    proving.claim("exponent in range", "no exponent is above its range", high)
    t = unit_exponent(u.exact.exponent, ex, spec.a_format.fraction_bits + spec.b_format.fraction_bits)
    none = z3.Not(z3.Or(*u.special))
    rounded = prove_fused_rounded(
        proving, u.result, total=u.total, t=t, rho=phi, special=u.special, premises=[high], reach=reach
    )
    both = prove_number(proving, u.result, total=u.total, t=t, rho=phi, rounded=rounded, none=none)
    is_it = both.arg(1).arg(0)
    same, index = both.arg(1).arg(1), both.arg(1).arg(1).arg(1)
    below = z3.ULT(index, last_index(phi))
    number = z3.Implies(z3.And(same, below), finite(u.result, phi.format))
    text = "a code that is a number's is no infinity and no NaN"
    proving.claim("number", text, number, (), [u.result])
    return both, is_it


def prove_claims(proving: Composing, spec: DotAdd) -> z3.BoolRef:
    """Prove that the product of a step is the exact one, rounded once, and d the sum of that and c; returns that every
    input is a number.  Raises NotProvedError."""
    one = one_step(spec)
    x, p = symbolic_inputs(one), one.parameters_as(Muladd)
    each = _OneStep(one, x, muladd.step(one, p, x.a[0], x.b[0], x.c, Stages()))
    _prove_terms(proving, each)
    _prove_product(proving, each)
    proving.claim("c", "c is a number", z3.Implies(is_finite(x.c, one.c_format), finite(x.c, one.c_format)))
    each.addition.prove(proving)
    return each.ordinary


def holds_products(spec: DotAdd) -> bool:
    """Whether the format of a product holds every product of two finite numbers, and is that of the sum."""
    p, a, b = spec.parameters_as(Muladd), spec.a_format, spec.b_format
    fmt = p.product.format
    return (
        fmt == p.rho.format
        and p.product.fraction_bits >= a.fraction_bits + b.fraction_bits + 1
        and fmt.max_exponent > a.max_exponent + b.max_exponent
        and fmt.min_exponent <= a.min_exponent + b.min_exponent - a.fraction_bits - b.fraction_bits
    )


def prove_is_fma(theory: Theory, rho: Conversion) -> z3.BoolRef:
    """Prove that a sum of two codes is an fma of one of them and 1: a theorem about c and p.  Raises NotProvedError.

    The fma keeps more places: those that the addition keeps, and whether any below is set, are the addition's sum.
    """
    fmt = rho.format
    c, p = z3.BitVecs("c p", fmt.storage_bits)
    x, y = ieee.add(c, p, rho, quiet_nan(fmt)), sfma.step(rho, p, _one(rho), c, NanRule.DEFAULT)
    same, known = _prove_sum(theory, rho, x, y)
    finite, number = known.arg(0), encode(x.rounded, rho)
    text = "the same is special of both, and nothing where both are finite"
    flags = [a == b for a, b in zip(x.special, y.special, strict=True)]
    special = theory.claim("special", text, z3.And(*flags, z3.Or(finite, *y.special)))
    top = y.sum.total.size() - 1
    own = z3.If(y.sum.total == 0, x.zero_sign, z3.Extract(top, top, y.sum.total))
    sign = theory.claim("sign of a sum", "a sum has the sign of its larger summand", y.rounded.sign == own)
    claim, text = z3.UGE(x.big.field, 1), "an exponent field is not 0: that of a subnormal number is 1"
    field = theory.claim("field", text, claim)
    given, text = [sign, field, prove_parity(theory, y.sum)], "equal sums are rounded alike"
    rounded = theory.claim("rounded alike", text, z3.Implies(same, number == y.number), given)
    text = f"in {fmt} an addition is an fma of a summand and 1"
    claim = x.result == y.result
    theory.claim("addition", text, claim, [known, special, rounded])
    return theory.theorem(text, claim)


def _prove_sum(
    theory: Theory, rho: Conversion, x: ieee.Addition, y: sfma.SfmaStep
) -> tuple[z3.BoolRef, z3.BoolRef]:
    """(that the sum of an addition is what is kept of an fma's; the claim that it is where both are finite)."""
    fmt, (negative, m) = rho.format, magnitude_of(y.sum.total)
    bits, frame = m.size(), sfma.frame_bits(fmt.fraction_bits + 1)
    drop = frame - fmt.fraction_bits - 3
    lost = z3.Extract(drop - 1, 0, m) != 0
    kept = z3.LShR(m, drop) | z3.If(lost, z3.BitVecVal(1, bits), z3.BitVecVal(0, bits))
    low = sfma.exponents_of(fmt).low
    same = z3.And(
        kept == fit(x.total, bits),
        y.sum.e_max == fit(x.big.field, y.sum.e_max.size()) - (fmt.bias + low),
        z3.Or(m == 0, negative == (x.big.sign == 1)),
        z3.Implies(lost, z3.UGE(m, 1 << (frame - 1))),
    )
    finite = z3.Not(z3.Or(y.a.infinite, y.a.nan, y.c.infinite, y.c.nan))
    text = "what an addition keeps is what an fma keeps, of which the last places are one sticky place"
    return same, theory.claim("sums", text, z3.Implies(finite, same))


def _one(rho: Conversion) -> z3.BitVecRef:
    fmt = rho.format
    return z3.BitVecVal(fmt.bias << fmt.fraction_bits, fmt.storage_bits)


@dataclass(frozen=True)
class ProductSum(FmaSum):
    """One step of a model of muladd whose products lose nothing."""

    @property
    def parameters(self) -> Muladd:
        return self.spec.parameters_as(Muladd)

    @property
    def rho(self) -> Conversion:
        return self.parameters.rho

    @property
    def own_step(self) -> muladd.MuladdStep:
        x = self.inputs
        return muladd.step(self.spec, self.parameters, x.a[0], x.b[0], x.c, Stages())

    @property
    def step(self) -> sfma.SfmaStep:
        """The fma of the rounded product and 1."""
        return sfma.step(
            self.rho, self.own_step.product.result, _one(self.rho), self.inputs.c, NanRule.DEFAULT
        )

    def prove(self, grid: RoundingGrid) -> SumTheorem:
        """Raises NotProvedError."""
        theory, x = grid.numbers.theory, self.own_step
        c, p = z3.BitVecs("c p", self.rho.format.storage_bits)
        said = instance(theory, prove_is_fma(theory, self.rho), [(c, self.inputs.c), (p, x.product.result)])
        text = "a step is the fma of its product and 1"
        theory.theorem(text, theory.claim("fma", text, x.result == self.step.result, [said]))
        return super().prove(grid)

    def _prove_product(self, codes: CodeNumbers, sums: TwoTerms, finite: z3.BoolRef) -> z3.BoolRef:
        """Prove that the product of the fma is that of the codes."""
        w, x, u, spec = codes.w, self.step.product, self.own_step.product, self.spec
        theory, size, n = w.theory, sums.first, codes.numbers[0]
        parts = codes.prove_parts(0, u.exact, [*self.own_step.a, *self.own_step.b])
        exponents, places = product_range(spec.a_format, spec.b_format), spec.a_format.fraction_bits
        places += spec.b_format.fraction_bits
        place = fit(u.exact.exponent, w.exponent_bits) + (exponents.low - places)
        text = "the exponent is that of the factors"
        t = theory.claim("exponent of a product's number", text, z3.Implies(finite, place == n.exponent))
        exact = z3.And(is_sharp(*size, u.exact.significand, place), x.sign == u.exact.sign)
        top = exponents.constant(spec.a_format.max_exponent + spec.b_format.max_exponent)
        claim, text = z3.ULE(u.exact.exponent, top), "the exponent of finite factors is in its range"
        high = theory.claim("highest exponent", text, z3.Implies(finite, claim))
        claim, text = z3.Not(z3.Or(*u.special)), "no product of finite factors is special"
        none = theory.claim("no special product", text, z3.Implies(finite, claim))
        text = "the rounded product is the product"
        rounded = theory.claim("rounded product", text, z3.Implies(finite, exact), [high, none])
        text = "the product is that of the codes"
        claim = z3.Implies(finite, codes.is_term(0, x.sign, size))
        known = theory.claim("term", text, claim, [parts, t, rounded])
        (of_product, _) = sums.terms.invariants
        in_range = w.in_range(size.t, [of_product])
        return codes.prove_number(0, x.sign, size, known, in_range)
