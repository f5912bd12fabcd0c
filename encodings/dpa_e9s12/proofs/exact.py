"""Claims of the SMT encoding prove what a step of dpa_e9s12 adds up, and that its one rounding is of that.

1. *operands*: each operand is the number of its code (`exact_terms`), and the sum of its E9S12 numbers;
2. *products*: an E9S12 product is exact; the four of two fp32 factors are their product, an identity of polynomials;
3. *placed*:   a product none of whose bits lies below 2^(E − F) is placed exactly; no partial sum wraps;
4. *rounding*: d is ρ(S + c): c and S are two terms with a sticky last place (`exact_steps.prove_sticky`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import z3

from mmaformal.cases.inputs import Inputs, symbolic_inputs
from mmaformal.cases.one_step import one_step
from mmaformal.encodings.dpa_e9s12 import DpaE9s12
from mmaformal.encodings.dpa_e9s12 import smt as smt_dpa
from mmaformal.encodings.smt.blocks import ExponentRange, Operand, Term, negate_if
from mmaformal.facts.exact_steps import Sticky, prove_sticky
from mmaformal.facts.exact_terms import prove_addend, prove_operands, prove_specials, prove_sum
from mmaformal.facts.protocol import UnsupportedError
from mmaformal.formats import Format, fp16
from mmaformal.proof.composition import FIXED_POINT, Composing
from mmaformal.proof.definitions import fit
from mmaformal.proof.fused import prove_largest
from mmaformal.proof.sticky_sums import is_sharp, magnitude_of
from mmaformal.spec import DotAdd

#: Bits of exponents of E9S12 products.
BITS = smt_dpa.EXPONENT_BITS + 1


def is_sum_of(x: Operand, halves: Sequence[smt_dpa.E9S12], fmt: Format) -> z3.BoolRef:
    """Whether an operand is the sum of its E9S12 numbers, each of the operand's sign; in units of 2^−160 − M.

    And whether those that are zero are told to be.
    """
    bits = 12 + (1 << smt_dpa.EXPONENT_BITS)
    M = fmt.fraction_bits
    field = fit(x.field, bits) + (smt_dpa.BIAS - fmt.bias + 12)  # as an E9S12 exponent, 12 higher
    whole = fit(x.significand, bits) << field
    lift = 12 + M - (smt_dpa.SIGNIFICAND_BITS - 1)
    parts = [fit(u.significand, bits) << (fit(u.exponent, bits) + lift) for u in halves]
    total = parts[0] if len(parts) == 1 else parts[0] + parts[1]
    told = [z3.And(u.sign == x.sign, u.zero == (u.significand == 0)) for u in halves]
    return z3.And(whole == total, *told)


def prove_leading(proving: Composing, x: Operand, fmt: Format) -> z3.BoolRef:
    text = "an operand has its leading bit, or the exponent field 1"
    normal = z3.Or(z3.UGE(x.significand, 1 << fmt.fraction_bits), x.field == 1)
    return proving.claim("leading bit", text, z3.And(z3.UGE(x.field, 1), normal))


def prove_halves(proving: Composing, x: Operand, halves: Sequence[smt_dpa.E9S12], fmt: Format) -> z3.BoolRef:
    """That an operand is the sum of its E9S12 numbers."""
    text = "an operand is the sum of its E9S12 numbers, whose zeros are told"
    normal = prove_leading(proving, x, fmt)
    return proving.claim("halves", text, is_sum_of(x, halves, fmt), [normal])


@dataclass(frozen=True)
class Summation:
    """A step, and claims about it.  Each method raises NotProvedError."""

    proving: Composing
    spec: DotAdd
    inputs: Inputs
    step: smt_dpa.DpaE9s12Step

    @classmethod
    def of(cls, proving: Composing, spec: DotAdd) -> Summation:
        p, inputs = spec.parameters, symbolic_inputs(one_step(spec))
        assert isinstance(p, DpaE9s12)
        return cls(proving, spec, inputs, smt_dpa.step(spec, p, inputs.a, inputs.b, inputs.c))

    @property
    def parameters(self) -> DpaE9s12:
        p = self.spec.parameters
        assert isinstance(p, DpaE9s12)
        return p

    @property
    def F(self) -> int:
        return smt_dpa.kept(self.parameters.L, len(self.step.products))

    @property
    def S(self) -> z3.BitVecRef:
        return self.step.partials[-1]

    @cached_property
    def numbers(self) -> z3.BoolRef:
        """That every input is a number."""
        operands = (*self.step.a, *self.step.b, self.step.c)
        return z3.And([z3.Not(flag) for x in operands for flag in (x.infinite, x.nan)])

    # ---- operands and products

    def prove_operands(self) -> None:
        prove_operands(self.proving, self.spec, self.inputs, (self.step.a, self.step.b), self.step.c)
        for operands, unpacked in ((self.step.a, self.step.x), (self.step.b, self.step.y)):
            for operand, halves in zip(operands, unpacked, strict=True):
                self.prove_halves(operand, halves)

    def prove_halves(self, x: Operand, halves: Sequence[smt_dpa.E9S12]) -> z3.BoolRef:
        return prove_halves(self.proving, x, halves, self.spec.a_format)

    def prove_products(self) -> None:
        each = len(self.step.products) // len(self.step.a)
        for k, (x, y) in enumerate(zip(self.step.x, self.step.y, strict=True)):
            pairs = [(u, v) for u in x for v in y]
            for (u, v), product in zip(pairs, self.step.products[k * each : (k + 1) * each], strict=True):
                self._prove_product(u, v, product)

    def _prove_product(self, u: smt_dpa.E9S12, v: smt_dpa.E9S12, product: Term) -> None:
        exact = fit(u.significand, smt_dpa.PRODUCT_BITS) * fit(v.significand, smt_dpa.PRODUCT_BITS)
        exponent = product.exponent == fit(u.exponent, BITS) + fit(v.exponent, BITS)
        zero = z3.And(z3.BoolVal(self.parameters.detects_zeros), z3.Or(u.zero, v.zero))
        claim = z3.And(
            product.sign == u.sign ^ v.sign,
            product.significand == exact,
            z3.If(zero, product.exponent == 0, exponent),
        )
        text = "an E9S12 product is that of its factors; one found zero has the exponent 0"
        self.proving.claim("E9S12 product", text, claim)

    # ---- the sum of products

    def prove_largest(self) -> list[z3.BoolRef]:
        """That each product's exponent is at most the largest; returns those claims."""
        exponents = [product.exponent for product in self.step.products]
        return prove_largest(self.proving, "exponents", self.step.e_max, exponents)[0]

    def prove_sum(self) -> z3.BoolRef:
        """That S is the sum of the placed products: nothing wraps.  Returns that S is far from the least number."""
        step, L = self.step, self.parameters.L
        wide, most = L + 6, 1 << (self.F + 2)

        def signed(x: z3.BitVecRef) -> z3.BitVecRef:
            return z3.SignExt(wide - L, x)

        def within(x: z3.BitVecRef, bound: int) -> z3.BoolRef:
            return z3.And(signed(x) < bound, signed(x) > -bound)

        small = []
        for placed in step.placed:
            text = "a placed product is less than four of the largest exponent"
            small.append(self.proving.claim("size", text, within(placed, most)))
        inside = small[0]
        for k, (before, after) in enumerate(zip(step.partials[:-1], step.partials[1:], strict=True), start=1):
            whole = signed(after) == signed(before) + signed(step.placed[k])
            claim = z3.And(whole, within(after, most * (k + 1)))
            text, given = "no partial sum wraps", [inside, small[k]]
            self.proving.claim(f"partial sum {k}", text, claim, given)
            inside = claim.arg(1)
        return inside

    def prove_placed(self, k: int, known: Sequence[z3.BoolRef]) -> z3.BoolRef:
        """That the k-th product is placed exactly, since none of its bits lies below the last place, as is `known` of
        its exponent, its significand and the largest exponent."""
        product, placed, e_max = self.step.products[k], self.step.placed[k], self.step.e_max
        claim = is_placed(product, placed, e_max, self.F)
        return self.proving.claim("placed", "a product is placed without a loss", claim, known)

    # ---- the sum with c, rounded

    def prove_rounded(self, inside: z3.BoolRef) -> Sticky:
        """That d is the sum of products and c, rounded once; `inside` says that S is not the least number."""
        step, p = self.step, self.parameters
        c, exponents = self.spec.c_format, smt_dpa.exponents_of(self.spec, p.L, len(step.products))
        least, M = exponents.constant(c.min_exponent), c.fraction_bits
        x, y, S = step.term, step.addend, self.S
        text = "the term is the sum of products, and has the least exponent of c where it is zero"
        at = z3.If(
            S == 0, x.exponent == least, fit(x.exponent, 16) == fit(step.e_max, 16) + self._above(exponents)
        )
        claim = z3.And(
            negate_if(x.sign, fit(x.significand, p.L)) == S,
            at,
            z3.Or(x.significand != 0, x.exponent == least),
            z3.ULE(x.exponent, exponents.constant(exponents.high)),
        )
        term = self.proving.claim("term", text, claim, [inside])
        finite = z3.Not(z3.Or(step.c.infinite, step.c.nan))
        bounds = z3.And(
            z3.UGE(y.exponent, least),
            z3.ULE(y.exponent, exponents.constant(c.max_exponent)),
            z3.Or(z3.UGE(y.significand, 1 << M), y.exponent == least),
        )
        text = "c's exponent is in its range, and c has its leading bit or the least exponent"
        self.proving.claim("c's exponent", text, z3.Implies(finite, bounds))
        prove_addend(self.proving, y, step.c, c.bias, exponents)
        prove_sum(self.proving, "sum", step.sum, (x.sign, y.sign))
        sticky = Sticky(
            x,
            p.L - 1,
            y,
            M,
            step.sum,
            p.L - 1 + smt_dpa.GUARD,
            exponents,
            p.rho,
            step.special,
            step.result,
            (z3.And(term.arg(2), term.arg(3)), bounds),
        )
        prove_sticky(self.proving, sticky)
        return sticky

    def _above(self, exponents: ExponentRange) -> int:
        """What the exponent of the place above S is more than the largest exponent, as these are held."""
        return self.parameters.L - 1 - self.F - 2 * smt_dpa.BIAS - exponents.low


def is_placed(
    product: Term, placed: z3.BitVecRef, e_max: z3.BitVecRef, F: int, places: int = smt_dpa.PLACES
) -> z3.BoolRef:
    """Whether a product in its place is the product; or another term, of so many fractional bits."""
    bits = BITS + F.bit_length() + 3
    unit, last = fit(e_max, bits) - F, fit(product.exponent, bits) - places
    negative, m = magnitude_of(placed)
    return z3.And(
        is_sharp(m, unit, product.significand, last), z3.Or(m == 0, negative == (product.sign == 1))
    )


# ---- fp16: no product loses a bit -----------------------------------------------------------------------------------


def prove_exact(proving: Composing, spec: DotAdd) -> z3.BoolRef:
    """Prove that a step of fp16 products is the exact sum, rounded once; returns that every input is a number.

    Raises NotProvedError; UnsupportedError for other formats.
    """
    if spec.a_format != fp16:
        raise UnsupportedError(spec.parameters.algorithm, "when no product loses a bit")
    x = Summation.of(proving, spec)
    prove_specials(proving, spec, x.inputs, x.step)
    x.prove_operands()
    x.prove_products()
    at_most = x.prove_largest()
    ranges = [_prove_range(x, k) for k in range(len(x.step.products))]
    fmt = spec.a_format
    high = 2 * (fmt.max_exponent + smt_dpa.BIAS)
    some = z3.Or([x.step.e_max == product.exponent for product in x.step.products])
    numbers = [z3.Not(_special(x, k)) for k in range(len(ranges))]
    top = z3.ULE(x.step.e_max, high)
    some = z3.Or([product.exponent == x.step.e_max for product in x.step.products])
    proving.claim(
        "largest exponent",
        "no exponent is above that of the largest product",
        top,
        [some, *ranges, *numbers],
    )
    for k, (known, below) in enumerate(zip(ranges, at_most, strict=True)):
        x.prove_placed(k, [known.arg(1), below, top])
    x.prove_rounded(x.prove_sum())
    proving.rests_on(FIXED_POINT)
    return x.numbers


def _special(x: Summation, k: int) -> z3.BoolRef:
    """Whether a factor of the k-th product is no number."""
    return z3.Or([flag for side in (x.step.a, x.step.b) for flag in (side[k].infinite, side[k].nan)])


def _prove_range(x: Summation, k: int) -> z3.BoolRef:
    """What is known of the k-th product of fp16 factors."""
    fmt, product = x.spec.a_format, x.step.products[k]
    low, high = (2 * (e + smt_dpa.BIAS) for e in (fmt.min_exponent, fmt.max_exponent))
    known = z3.And(
        z3.ULE(product.exponent, high),
        z3.Or(product.significand == 0, z3.UGE(product.exponent, low)),
        z3.Extract(1, 0, product.significand) == 0,
    )
    text = "a product of numbers is no larger than the largest, and a multiple of the least"
    return x.proving.claim("range", text, z3.Or(_special(x, k), known))
