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
from mmaformal.encodings.smt.blocks import ExponentRange, product_range
from mmaformal.encodings.smt.stages import Stages
from mmaformal.facts.exact_steps import prove_sticky
from mmaformal.facts.exact_terms import prove_decoded, prove_product
from mmaformal.facts.exactness import Exact, claims_of, prove_number
from mmaformal.proof.composition import Composing
from mmaformal.proof.definitions import fit, last_index
from mmaformal.proof.sticky_sums import (
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
        return self.spec.parameters_as(Rnd2)

    @property
    def phi(self) -> Conversion:
        return self.parameters.pair

    @property
    def exponents(self) -> ExponentRange:
        return product_range(self.spec.a_format, self.spec.b_format)

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
    x, p = symbolic_inputs(one), one.parameters_as(Rnd2)
    each = _OneStep(one, x, rnd2.step(one, p, x.a, x.b, x.c, Stages()))
    condition, pair = claims_of(proving, lambda: _prove_pair(proving, each))
    a, z = each.addition, z3.BitVec("z", one.d_format.storage_bits)
    proving.claim("c", "c is a number", z3.Implies(is_finite(x.c, one.c_format), finite(x.c, one.c_format)))
    a.prove(proving)
    number = a.prove_number(proving, z)
    last = z3.And(a.rounded, a.is_kept, z3.Implies(a.is_sum(z), number.arg(1)))
    sum_ = "c − r" if p.negate_pair else "c + r"
    text = (
        f"in each step r = {p.pair}(a_0·b_0 + a_1·b_1), where both products are aligned exactly; where that sum is one "
        f"of its numbers, r is it, d = {p.rho}({sum_}), and if that is a number of {p.rho}'s format, d is it"
    )
    conclusion = z3.And(pair, z3.Implies(condition, last))
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


def _prove_pair(proving: Composing, each: _OneStep) -> z3.BoolRef:
    """Prove that the pair is φ of the exact sum, and that sum if it is one of φ's numbers; returns that both products
    are aligned exactly, and that it is one."""
    _prove_terms(proving, each)
    terms, phi = pair_terms(proving, each.spec, each.step), each.phi
    prove_sticky(proving, terms)
    none, right = proving.named[f"rounded by {phi}"].children()
    own, code = z3.Implies(none, right.arg(0)), terms.result
    proving.claim(f"pair rounded by {phi}", "so it is the sum rounded", own, [z3.Implies(none, right)])
    both = prove_number(proving, code, total=terms.sum.total, t=each.unit, rho=phi, rounded=own, none=none)
    is_it, same = both.arg(1).children()
    below = z3.ULT(same.arg(1), last_index(phi))
    text = "a code that is a number's is no infinity and no NaN"
    proving.claim("number", text, z3.Implies(z3.And(same, below), finite(code, phi.format)))
    _prove_summand(proving, each)
    return z3.And(*(x.sharp for x in terms.aligned(each.unit)), is_it)


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
    x, p = symbolic_inputs(one), one.parameters_as(Rnd2)
    each = _OneStep(one, x, rnd2.step(one, p, x.a, x.b, x.c, Stages()))
    _prove_terms(proving, each)
    prove_sticky(proving, pair_terms(proving, one, each.step))
    _prove_summand(proving, each)
    each.addition.prove(proving)
    return each.ordinary


def prove_pair_alone(proving: Composing, spec: DotAdd) -> None:
    """Prove that where c is −0, d is the pair: the exact sum of the products, rounded once.  Raises NotProvedError."""
    fmt, p = spec.c_format, spec.parameters_as(Rnd2)
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
