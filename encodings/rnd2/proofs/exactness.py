"""Exactness of a step of rnd2: where the pair's exact sum is one of φ's numbers, d is the exact sum, rounded once.

The pair is the sticky sum of two products (`facts/exact_steps`): each is aligned exactly, or to an odd integer less
than one unit from it, and the larger one exactly.  Unlike c, a product of one subnormal factor may have zeros at the
top, and no exponent is too small: the frame has places for both (`Rnd2.frame`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import z3

from mmaformal.cases.codes import is_finite, is_nan
from mmaformal.cases.inputs import Inputs, symbolic_inputs
from mmaformal.cases.one_step import one_step
from mmaformal.encodings.rnd2 import Rnd2
from mmaformal.encodings.rnd2 import smt as rnd2
from mmaformal.encodings.rnd2.proofs.pairs import pair_terms
from mmaformal.encodings.smt.blocks import ExponentRange, Term, product_range
from mmaformal.encodings.smt.stages import Stages
from mmaformal.facts.exact_steps import prove_sticky
from mmaformal.facts.exact_terms import prove_decoded, prove_product
from mmaformal.facts.exactness import Exact, claims_of, prove_number
from mmaformal.proof.composition import Composing
from mmaformal.proof.definitions import fit, is_rounded, last_index
from mmaformal.proof.sticky_sums import (
    is_around,
    is_larger,
    is_odd,
    is_sharp,
    magnitude_of,
    prove_parity,
    wide_enough,
)
from mmaformal.rounding import Conversion
from mmaformal.spec import DotAdd
from mmaformal.theory.additions import AdditionFacts, finite


@dataclass(frozen=True)
class _OneStep:
    """One step on symbolic inputs."""

    spec: DotAdd
    x: Inputs
    step: rnd2.Rnd2Step

    @property
    def parameters(self) -> Rnd2:
        assert isinstance(self.spec.parameters, Rnd2)
        return self.spec.parameters

    @property
    def phi(self) -> Conversion:
        return self.parameters.pair

    @property
    def exponents(self) -> ExponentRange:
        return product_range(self.spec.a_format, self.spec.b_format)

    @property
    def bits(self) -> int:
        """Fraction bits of a product."""
        return self.spec.a_format.fraction_bits + self.spec.b_format.fraction_bits

    @property
    def unit(self) -> z3.BitVecRef:
        """The exponent of the sum's last place."""
        frame, e_max = self.parameters.frame(self.spec), self.step.sum.e_max
        return fit(e_max, wide_enough(self.exponents, frame, self.phi)) + (self.exponents.low - frame)

    @property
    def addition(self) -> AdditionFacts:
        step = self.step
        return AdditionFacts(self.x.c, step.summand, step.addition.result, self.parameters.rho)

    @property
    def ordinary(self) -> z3.BoolRef:
        sides = ((self.x.a, self.spec.a_format), (self.x.b, self.spec.b_format))
        factors = [is_finite(code, fmt) for codes, fmt in sides for code in codes]
        return z3.And(*factors, is_finite(self.x.c, self.spec.c_format))


def prove_step(proving: Composing, spec: DotAdd) -> Exact:
    """Raises NotProvedError."""
    one = one_step(spec)
    x, p = symbolic_inputs(one), one.parameters
    assert isinstance(p, Rnd2)
    each = _OneStep(one, x, rnd2.step(one, p, x.a, x.b, x.c, Stages()))
    _, terms = claims_of(proving, lambda: _prove_terms(proving, each))
    sharp, sums = claims_of(proving, lambda: _prove_sum(proving, each))
    rounded, is_number = _prove_pair(proving, each)
    a, z = each.addition, z3.BitVec("z", one.d_format.storage_bits)
    proving.claim("c", "c is a number", z3.Implies(is_finite(x.c, one.c_format), finite(x.c, one.c_format)))
    a.prove(proving)
    number = a.prove_number(proving, z)
    last = z3.And(a.rounded, a.is_kept, z3.Implies(a.is_sum(z), number.arg(1)))
    condition = z3.And(sharp, is_number)
    sum_ = "c − r" if p.negate_pair else "c + r"
    text = (
        f"in each step r = {p.pair}(a_0·b_0 + a_1·b_1), where both products are aligned exactly; where that sum is one "
        f"of its numbers, r is it, d = {p.rho}({sum_}), and if that is a number of {p.rho}'s format, d is it"
    )
    conclusion = z3.And(terms, sums, rounded, z3.Implies(condition, last))
    return Exact(each.ordinary, condition, conclusion, (), text)


def _prove_terms(proving: Composing, each: _OneStep) -> z3.BoolRef:
    """Prove that each product is that of the numbers that its factors are; and nothing is special where these are
    numbers."""
    spec, step = each.spec, each.step
    bias = spec.a_format.bias + spec.b_format.bias
    for k, (pair, term) in enumerate(zip(step.factors, step.products, strict=True)):
        prove_decoded(proving, each.x.a[k], pair[0], spec.a_format)
        prove_decoded(proving, each.x.b[k], pair[1], spec.b_format)
        prove_product(proving, term, pair, (), bias, each.exponents)
    none = z3.Not(z3.Or(*step.special))
    text = "where every input is a number, nothing is special"
    return proving.claim("not special", text, z3.Implies(each.ordinary, none))


def _prove_sum(proving: Composing, each: _OneStep) -> z3.BoolRef:
    """Prove that an aligned product is exact, or odd and less than one unit off, and the larger one exact; returns
    that both are exact."""
    step, ex, unit = each.step, each.exponents, each.unit
    sum_, (x, y) = step.sum, step.products
    proving.claim("larger exponent", "e_max is the larger exponent", is_larger(sum_, x, y))
    exact = []
    for name, term, A in (("first product", x, sum_.x), ("second product", y, sum_.y)):
        e = _place(each, term, ex)
        sharp = is_sharp(A, unit, term.significand, e)
        around = z3.And(is_odd(A), is_around(A, unit, term.significand, e))
        under = z3.ULE(term.exponent, sum_.e_max)
        text = "an aligned product is exact, or odd and less than one unit off"
        proving.claim(f"{name} sticky", text, z3.Or(sharp, around), [under])
        at_top = z3.Implies(term.exponent == sum_.e_max, sharp)
        proving.claim(f"{name} at the top", "the product of the larger exponent is exact", at_top)
        exact.append(sharp)
    prove_parity(proving, sum_)
    return z3.And(exact)


def _place(each: _OneStep, term: Term, ex: ExponentRange) -> z3.BitVecRef:
    """The exponent of a product's last place."""
    return fit(term.exponent, each.unit.size()) + (ex.low - each.bits)


def _prove_pair(proving: Composing, each: _OneStep) -> tuple[z3.BoolRef, z3.BoolRef]:
    """(that where nothing is special the pair is φ of the sum, and that number if it is one of φ's; that it is one)."""
    step, phi, unit = each.step, each.phi, each.unit
    total, e_max, code = step.sum.total, step.sum.e_max, step.pair.result
    negative, m = magnitude_of(total)
    none = z3.Not(z3.Or(*step.special))
    sign = z3.Extract(code.size() - 1, code.size() - 1, code) == 1
    zero = z3.Extract(code.size() - 2, 0, code) == 0
    high = z3.ULE(e_max, each.exponents.constant(each.exponents.high))
    proving.claim("exponent in range", "no exponent is above its range", z3.Implies(none, high))
    reach = 2 * ((1 << (total.size() - 2)) - 1)
    small = z3.And(total <= reach, total >= -reach)
    right = z3.And(is_rounded(m, unit, code, phi, negative), z3.Or(zero, m == 0, sign == negative))
    text = f"the pair is {phi} of the sum: by definition, no other number of the format is the right one"
    claim = z3.Implies(none, right)
    premises = [z3.Implies(none, high), small]
    rounded = proving.claim(f"rounded by {phi}", text, claim, premises, [total, e_max, *step.special])
    own = z3.Implies(none, is_rounded(m, unit, code, phi, negative))
    proving.claim(f"pair rounded by {phi}", "so it is the sum rounded", own, [rounded])
    both = prove_number(proving, code, total=total, t=unit, rho=phi, rounded=own, none=none)
    is_it, same = both.arg(1).arg(0), both.arg(1).arg(1)
    below = z3.ULT(same.arg(1), last_index(phi))
    text = "a code that is a number's is no infinity and no NaN"
    proving.claim("number", text, z3.Implies(z3.And(same, below), finite(code, phi.format)))
    return z3.And(both, _prove_summand(proving, each)), is_it


def _prove_summand(proving: Composing, each: _OneStep) -> z3.BoolRef:
    """Prove that what is added is the pair, or has the other sign, if that is a number."""
    code, summand, fmt = each.step.pair.result, each.step.summand, each.phi.format
    top = code.size() - 1
    moved = z3.Extract(top - 1, 0, summand) == z3.Extract(top - 1, 0, code)
    turned = (z3.Extract(top, top, summand) != z3.Extract(top, top, code)) == each.parameters.negate_pair
    text = "what is added is the pair, or has the other sign"
    change = z3.Implies(finite(code, fmt), z3.And(moved, turned, finite(summand, fmt)))
    return proving.claim("summand", text, change)


# ---- what sums are off -----------------------------------------------------------------------------------------------


def prove_claims(proving: Composing, spec: DotAdd) -> z3.BoolRef:
    """Prove that the pair of a step is the exact sum of its products, rounded once, and d that of c and the pair, or of
    c and the negated pair; returns that every input is a number.  Raises NotProvedError."""
    one = one_step(spec)
    x, p = symbolic_inputs(one), one.parameters
    assert isinstance(p, Rnd2)
    each = _OneStep(one, x, rnd2.step(one, p, x.a, x.b, x.c, Stages()))
    _prove_terms(proving, each)
    prove_sticky(proving, pair_terms(proving, one, each.step))
    _prove_summand(proving, each)
    each.addition.prove(proving)
    return each.ordinary


def prove_pair_alone(proving: Composing, spec: DotAdd) -> None:
    """Prove that where c is −0, d is the pair: the exact sum of the products, rounded once.  Raises NotProvedError."""
    fmt, p = spec.c_format, spec.parameters
    assert isinstance(p, Rnd2)
    x = symbolic_inputs(spec)
    x = replace(x, c=z3.BitVecVal(fmt.sign_mask, x.c.size()))
    each = _OneStep(spec, x, rnd2.step(spec, p, x.a, x.b, x.c, Stages()))
    _prove_terms(proving, each)
    prove_sticky(proving, pair_terms(proving, spec, each.step))
    code, result = each.step.pair.result, each.step.result
    text = "a number with −0 added is that number"
    same = z3.Or(is_nan(code, fmt), result == code)
    proving.claim("−0", text, same, (), [code])
    none = z3.Not(z3.Or(*each.step.special))
    text = "where nothing is special, the pair is a number or infinite"
    proving.claim("no NaN", text, z3.Implies(none, z3.Not(is_nan(code, fmt))))
    proving.conclude_all(each.ordinary)
