"""A step of wfma is an fma of sfma, of the converted factors; and those are the numbers that the factors are.

So what is known of sfma, of any three codes of ρ's format, is known of wfma; and d = ρ(c + a·b) is a theorem about the
factors' own codes (`sfma.exact_sums`).  A converted factor has zeros below its significand.  A subnormal number may be
a normal one of ρ's format: then its significand is shifted to its leading place, and its exponent is as much smaller.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import z3

from mmaformal.cases.inputs import Inputs, symbolic_inputs
from mmaformal.cases.one_step import one_step
from mmaformal.encodings import smt
from mmaformal.encodings.sfma import Sfma
from mmaformal.encodings.sfma import smt as sfma
from mmaformal.encodings.sfma.proofs import FmaSum
from mmaformal.encodings.smt import ieee
from mmaformal.encodings.smt.blocks import Operand
from mmaformal.encodings.smt.stages import Stages
from mmaformal.encodings.wfma import Wfma
from mmaformal.encodings.wfma import smt as wfma
from mmaformal.facts import exact_steps
from mmaformal.facts.exact_steps import TwoTerms
from mmaformal.facts.exact_terms import prove_conversion
from mmaformal.formats import Format
from mmaformal.proof.composition import Composing
from mmaformal.proof.definitions import fit
from mmaformal.proof.fixed_sums import wide
from mmaformal.proof.rules import Theory, instance
from mmaformal.rounding import Conversion, NanRule
from mmaformal.spec import DotAdd
from mmaformal.theory.numbers import CodedNumber, CodeNumbers, coded_number


def _widened(spec: DotAdd) -> DotAdd:
    """Return the fma of sfma, with factors of ρ's format."""
    rho = spec.parameters_as(Wfma).rho
    return spec.replace(
        a_format=rho.format, b_format=rho.format, parameters=Sfma(rho=rho, nan=NanRule.DEFAULT)
    )


def _converted(spec: DotAdd, x: Inputs) -> Inputs:
    """The inputs of the widened model."""
    a, b = (
        tuple(ieee.convert(code, fmt, spec.c_format) for code in side)
        for side, fmt in ((x.a, spec.a_format), (x.b, spec.b_format))
    )
    return replace(x, a=a, b=b)


def prove_claims(proving: Composing, spec: DotAdd) -> z3.BoolRef:
    """Prove that a step is correctly rounded; returns that every converted input is a number.

    Raises NotProvedError.
    """
    one = one_step(spec)
    x, inner = symbolic_inputs(one), _widened(one)
    wide = _converted(one, x)
    own, alone = smt.dot_add(one, x.a, x.b, x.c).result, smt.dot_add(inner, wide.a, wide.b, wide.c).result
    proving.claim("fma", "a step is an fma of the converted factors", own == alone)
    for codes, fmt in ((x.a, spec.a_format), (x.b, spec.b_format)):
        prove_conversion(proving, codes[0], fmt, inner.a_format)
    return exact_steps.prove_claims(proving, inner, wide)


_BITS = 8  #: of how far a significand is shifted


@dataclass(frozen=True)
class Factor:
    """A converted factor, and the number of its code."""

    operand: Operand
    number: CodedNumber
    fmt: Format  #: of the code
    rho: Format

    @property
    def zeros(self) -> int:
        return self.rho.fraction_bits - self.fmt.fraction_bits

    @property
    def up(self) -> z3.BitVecRef:
        """How far the significand is shifted, above its place with zeros below."""
        width = self.number.significand.size()
        shift = z3.BitVecVal(0, _BITS)
        if self.rho.min_exponent == self.fmt.min_exponent:
            return shift
        for i in range(1, width):
            shift = z3.If(z3.ULT(self.number.significand, 1 << (width - i)), z3.BitVecVal(i, _BITS), shift)
        return shift

    @property
    def is_moved(self) -> z3.BoolRef:
        """Whether the operand is the number, its significand shifted; the exponent of a zero is any."""
        x, n, bits = self.operand, self.number, self.operand.significand.size()
        significand = fit(n.significand, bits) << (fit(self.up, bits) + self.zeros)
        t = fit(x.field, _EXPONENT) - (self.rho.bias + self.rho.fraction_bits)
        exponent = t == wide(n.exponent, _EXPONENT) - fit(self.up, _EXPONENT) - self.zeros
        return z3.And(x.sign == n.sign, x.significand == significand, z3.Or(n.significand == 0, exponent))

    def prove_room(self, theory: Theory) -> z3.BoolRef:
        text = "no significand is shifted above its highest place"
        return theory.claim("room of a significand", text, self.has_room)

    @property
    def has_room(self) -> z3.BoolRef:
        """Whether no bit is shifted above the highest place."""
        n, width = self.number.significand, self.number.significand.size()
        return z3.And(
            z3.ULT(self.up, width), z3.ULT(fit(n, 2 * width) << fit(self.up, 2 * width), 1 << width)
        )


_EXPONENT = 12  #: bits of exponents


@dataclass(frozen=True)
class WideFmaSum(FmaSum):
    """One step of a model of wfma."""

    @property
    def rho(self) -> Conversion:
        p = self.spec.parameters_as(Wfma)
        return p.rho

    @property
    def step(self) -> sfma.SfmaStep:
        x = self.inputs
        return wfma.step(self.spec, x.a[0], x.b[0], x.c, Stages()).fma

    def _prove_product(self, codes: CodeNumbers, sums: TwoTerms, finite: z3.BoolRef) -> z3.BoolRef:
        """Prove that the product of the converted factors, of numbers, is that of the codes."""
        spec, step, x, size, n = self.spec, self.step, self.step.product, sums.first, codes.numbers[0]
        w, theory = codes.w, codes.w.theory
        sides = (step.a, codes.inputs.a[0], spec.a_format), (step.b, codes.inputs.b[0], spec.b_format)
        u, v = (
            Factor(operand, coded_number(code, fmt), fmt, self.rho.format) for operand, code, fmt in sides
        )
        text = "a converted factor is the number of its code, its significand shifted"
        moved = [theory.claim("factor", text, z3.Implies(finite, f.is_moved)) for f in (u, v)]
        up = fit(u.up, _EXPONENT) + fit(v.up, _EXPONENT) + (u.zeros + v.zeros)
        product = _prove_shifted(theory, u, v, x.significand, n.significand, up)
        text = "a product that is not zero has the exponent of its factors"
        zeros = z3.Or(u.number.significand == 0, v.number.significand == 0)
        lower = n.exponent - fit(up, n.exponent.size())
        place = theory.claim(
            "exponent of a product's number", text, z3.Implies(finite, z3.Or(zeros, size.t == lower))
        )
        text = "a product with a factor that is zero is zero"
        nothing = theory.claim("nothing", text, z3.Implies(zeros, n.significand == 0))
        is_moved = z3.And(u.is_moved, v.is_moved)
        signs = z3.And(x.sign == n.sign, product.arg(1))
        text = "the product has the sign of the numbers"
        sign = theory.claim("sign of a product", text, z3.Implies(is_moved, x.sign == n.sign))
        text = "the product is that of the numbers, with its sign"
        both = z3.Implies(finite, signs)
        both = w.follows("product of numbers", text, both, [*moved, product, sign], is_moved.arg(0).arg(1))
        short = theory.claim(
            "shift of a product", "no shift is above the highest place", z3.ULE(up, x.significand.size() - 2)
        )
        text = "the exponent of a product of codes is far from the ends"
        reach = 1 << (n.exponent.size() - 2)
        far = theory.claim("range of an exponent", text, z3.And(n.exponent < reach, n.exponent >= -reach))
        text = "the product is that of the codes"
        claim = z3.Implies(finite, codes.is_term(0, x.sign, size))
        known = theory.claim("term", text, claim, [both, place, nothing, short, far])
        (of_product, _) = sums.terms.invariants
        in_range = w.in_range(size.t, [of_product])
        return codes.prove_number(0, x.sign, size, known, in_range)


def _prove_shifted(
    theory: Theory, u: Factor, v: Factor, whole: z3.BitVecRef, short: z3.BitVecRef, up: z3.BitVecRef
) -> z3.BoolRef:
    """Prove that the product of two shifted significands is theirs, shifted by `up`, as far as both: a shift is a
    product with a power of two."""
    whole, bits = fit(whole, 2 * whole.size()), 2 * whole.size()
    one, significands = z3.BitVecVal(1, bits), [fit(f.number.significand, bits) for f in (u, v)]
    shifts = [fit(f.up, bits) + f.zeros for f in (u, v)]
    powers = [one << shift for shift in shifts]
    wides = [fit(f.operand.significand, bits) for f in (u, v)]
    number, amount = z3.BitVecs("shifted places", bits)
    text = "a shift is a product with a power of two"
    shift = theory.holds("shift", text, number * (one << amount) == number << amount)
    factors = []
    for f, wide_, n, s, power in zip((u, v), wides, significands, shifts, powers, strict=True):
        inside = f.prove_room(theory)
        claim = z3.Implies(f.is_moved.arg(1), wide_ == n << s)
        text = "no bit is shifted above the highest place"
        moved = theory.claim("shifted factor", text, claim, [inside])
        said = instance(theory, shift, [(number, n), (amount, s)])
        text = "a shifted significand is a product with a power of two"
        claim = z3.Implies(f.is_moved.arg(1), wide_ == n * power)
        factors.append(theory.claim("factor times a power", text, claim, [moved, said]))
    (x, y), (n, m), (p, q) = wides, significands, powers
    text = "a product of products is the product of both, and of the powers"
    claim = z3.Implies(z3.And(x == n * p, y == m * q), x * y == (n * m) * (p * q))
    product = theory.claim("products", text, claim)
    total = fit(up, bits)
    claim, text = p * q == one << total, "a product of powers is that of the sum"
    power = theory.claim("powers", text, claim, [u.has_room, v.has_room])
    text = "and the product of the numbers is as wide as both"
    own = theory.claim("width", text, fit(short, bits) == n * m)
    inside = [u.operand.significand, v.operand.significand]
    same = theory.claim("wide product", text, whole == x * y)
    said = instance(theory, shift, [(number, n * m), (amount, total)])
    goal = z3.Implies(z3.And(u.is_moved.arg(1), v.is_moved.arg(1)), whole == fit(short, bits) << total)
    text = "the product is that of the numbers, shifted"
    return theory.claim("product of shifted numbers", text, goal, [*factors, product, power, own, same, said])
