"""Exactness of a step of muladd: where the product is one of φ's numbers, d is the exact sum, rounded once.

That the product is a number is said with the index of one, any one: if its number is the exact product, the rounded
product has its code.  d is ρ of that plus c; and if a code `z` stands for the sum, d is that.
"""

from __future__ import annotations

from dataclasses import dataclass

import z3

from mmaformal.cases.codes import is_finite
from mmaformal.cases.inputs import Codes, Inputs, symbolic_inputs
from mmaformal.cases.one_step import one_step
from mmaformal.encodings.muladd import Muladd
from mmaformal.encodings.muladd import smt as muladd
from mmaformal.encodings.smt.blocks import product_range
from mmaformal.facts.exact_terms import prove_decoded, prove_product
from mmaformal.facts.exactness import Exact, claims_of, prove_number
from mmaformal.facts.exactness_codes import Rounding, Roundings, products
from mmaformal.facts.fused_steps import prove_rounded, unit_exponent
from mmaformal.proof.composition import Composing
from mmaformal.proof.definitions import fit, last_index
from mmaformal.rounding import Conversion
from mmaformal.spec import DotAdd
from mmaformal.theory.additions import Addition, finite


@dataclass(frozen=True)
class _OneStep:
    """One step on symbolic inputs."""

    spec: DotAdd
    x: Inputs
    step: muladd.MuladdStep

    @property
    def parameters(self) -> Muladd:
        assert isinstance(self.spec.parameters, Muladd)
        return self.spec.parameters

    @property
    def phi(self) -> Conversion:
        return self.parameters.product

    @property
    def addition(self) -> Addition:
        return Addition(self.x.c, self.step.product.result, self.step.addition.result, self.parameters.rho)

    @property
    def ordinary(self) -> z3.BoolRef:
        a, b, c = self.spec.a_format, self.spec.b_format, self.spec.c_format
        return z3.And(is_finite(self.x.a[0], a), is_finite(self.x.b[0], b), is_finite(self.x.c, c))


def prove_step(proving: Composing, spec: DotAdd) -> Exact:
    """Raises NotProvedError."""
    one = one_step(spec)
    x, p = symbolic_inputs(one), one.parameters
    assert isinstance(p, Muladd)
    each = _OneStep(one, x, muladd.step(one, p, x.a[0], x.b[0], x.c))
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
    """That the product is that of the numbers that a and b are; and nothing is special where these are numbers."""
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
    rounded = prove_rounded(
        proving,
        u.result,
        total=u.total,
        t=t,
        rho=phi,
        special=u.special,
        premises=[high],
        reach=reach,
    )
    both = prove_number(proving, u.result, total=u.total, t=t, rho=phi, rounded=rounded, none=none)
    is_it = both.arg(1).arg(0)
    same, index = both.arg(1).arg(1), both.arg(1).arg(1).arg(1)
    below = z3.ULT(index, last_index(phi))
    number = z3.Implies(z3.And(same, below), finite(u.result, phi.format))
    text = "a code that is a number's is no infinity and no NaN"
    proving.claim("number", text, number, (), [u.result])
    return both, is_it


# ---- on codes --------------------------------------------------------------------------------------------------------


def on_codes(spec: DotAdd, codes: Codes) -> Roundings:
    p = spec.parameters
    assert isinstance(p, Muladd)
    c = spec.c_format.value(codes.c)
    for product, _ in products(spec, codes):
        yield Rounding(True, product, p.product)
        c += product
        yield Rounding(True, c, p.rho)
