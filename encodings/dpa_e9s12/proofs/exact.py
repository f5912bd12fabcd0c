"""Claims of the SMT encoding prove what a step of dpa_e9s12 adds up, and that its one rounding is of that.

1. *operands*: each operand is the number of its code (`exact_terms`), and the sum of its E9S12 numbers;
2. *products*: an E9S12 product is exact; the four of two fp32 factors are their product, an identity of polynomials;
3. *placed*:   a product none of whose bits lies below 2^(E − F) is placed exactly; no partial sum wraps;
4. *rounding*: d is ρ(S + c): c and S are two terms with a sticky last place (`exact_steps.prove_sticky`).

Where all products but one are zero, a step on fp32 factors is U·V + c, rounded once.  With u, v the significands of U
and V, and A the exponent of the product of both upper halves,

1. *idle*:    the halves of a product that is zero are, so they have the exponent 0, and are placed as zeros;
2. *largest*: the largest exponent E is A, A − 12 or A − 24: that of a product of U's and V's halves, or all are zero;
3. *whole*:   u·v is the sum of the four products in their places, an identity of polynomials in the halves; so where
              E = A − o, S is u·v · 2^(F − 46 + o): none of the four loses a bit;
4. *place*:   that is the number U·V; and d is S + c, rounded once;
5. *zero*:    a sum of exactly zero is −0 where c and all products are.

That is fusedMultiplyAdd of IEEE 754, but for the sign of a zero where one of the other products is +0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, reduce

import z3

from mmaformal.cases.inputs import Inputs, symbolic_inputs
from mmaformal.cases.one_step import one_step
from mmaformal.encodings.dpa_e9s12 import DpaE9s12
from mmaformal.encodings.dpa_e9s12 import smt as smt_dpa
from mmaformal.encodings.smt.blocks import ExponentRange, Operand, Term, negate_if
from mmaformal.facts.exact_steps import Sticky, prove_sticky
from mmaformal.facts.exact_terms import prove_addend, prove_operands, prove_specials, prove_sum_of_both
from mmaformal.formats import Format, fp32
from mmaformal.proof.composition import Composing
from mmaformal.proof.definitions import fit
from mmaformal.proof.fixed_sums import FIXED_POINT, Accumulated, accumulate_signed, limited
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
    """Prove that an operand is the sum of its E9S12 numbers."""
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
        p, inputs = spec.parameters_as(DpaE9s12), symbolic_inputs(one_step(spec))
        return cls(proving, spec, inputs, smt_dpa.step(spec, p, inputs.a, inputs.b, inputs.c))

    @property
    def parameters(self) -> DpaE9s12:
        return self.spec.parameters_as(DpaE9s12)

    @property
    def F(self) -> int:
        return smt_dpa.kept(self.parameters.accumulator_bits, len(self.step.products))

    @property
    def S(self) -> z3.BitVecRef:
        return self.step.partials[-1]

    @cached_property
    def numbers(self) -> z3.BoolRef:
        """Return the claim that every input is a number."""
        operands = (*self.step.a, *self.step.b, self.step.c)
        return z3.And([z3.Not(flag) for x in operands for flag in (x.infinite, x.nan)])

    @property
    def some(self) -> z3.BoolRef:
        """Return the claim that the largest exponent is a product's."""
        return z3.Or([product.exponent == self.step.e_max for product in self.step.products])

    # ---- operands and products

    def prove_terms(self) -> None:
        """Special values, operands and products: those of the codes."""
        prove_specials(self.proving, self.spec, self.inputs, self.step)
        self.prove_operands()
        self.prove_products()

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
        """Prove that each product's exponent is at most the largest; returns those claims."""
        exponents = [product.exponent for product in self.step.products]
        return prove_largest(self.proving, "exponents", self.step.e_max, exponents)[0]

    def prove_sum(self) -> Accumulated:
        """Prove that S is the sum of the placed products: nothing wraps."""
        step, most = self.step, (1 << (self.F + 2)) - 1
        text = "a placed product is less than four of the largest exponent"
        small = [self.proving.claim("size", text, limited(placed, most)) for placed in step.placed]
        return accumulate_signed(self.proving, self.S, step.placed, [most] * len(small), small)

    def prove_placed(self, k: int, known: Sequence[z3.BoolRef]) -> z3.BoolRef:
        """Prove that the k-th product is placed exactly, since none of its bits lies below the last place, as is
        `known` of its exponent, its significand and the largest exponent."""
        product, placed, e_max = self.step.products[k], self.step.placed[k], self.step.e_max
        claim = is_placed(product, placed, e_max, self.F)
        return self.proving.claim("placed", "a product is placed without a loss", claim, known)

    # ---- the sum with c, rounded

    def prove_rounded(self) -> Sticky:
        """Prove that d is the sum of products and c, rounded once."""
        step, p = self.step, self.parameters
        c, exponents = (
            self.spec.c_format,
            smt_dpa.exponents_of(self.spec, p.accumulator_bits, len(step.products)),
        )
        least, M = exponents.constant(c.min_exponent), c.fraction_bits
        x, y, S, inside = step.term, step.addend, self.S, self.prove_sum().prove_range(self.proving)
        text = "the term is the sum of products, and has the least exponent of c where it is zero"
        at = z3.If(
            S == 0, x.exponent == least, fit(x.exponent, 16) == fit(step.e_max, 16) + self._above(exponents)
        )
        claim = z3.And(
            negate_if(x.sign, fit(x.significand, p.accumulator_bits)) == S,
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
        prove_sum_of_both(self.proving, "sum", step.sum, (x.sign, y.sign))
        sticky = Sticky(
            x,
            p.accumulator_bits - 1,
            y,
            M,
            step.sum,
            p.accumulator_bits - 1 + smt_dpa.GUARD,
            exponents,
            p.rho,
            step.special,
            step.result,
            (z3.And(term.arg(2), term.arg(3)), bounds),
        )
        prove_sticky(self.proving, sticky)
        return sticky

    def _above(self, exponents: ExponentRange) -> int:
        """Return how much the exponent of the place above S is above the largest exponent, as these are held."""
        return self.parameters.accumulator_bits - 1 - self.F - 2 * smt_dpa.BIAS - exponents.low


def are_near(operands: Sequence[Operand], most: int) -> list[z3.BoolRef]:
    """Claim of all pairs that their exponents differ by no more, or that one is zero."""
    return [
        z3.Or(u.significand == 0, v.significand == 0, z3.ULE(fit(u.field, 12), fit(v.field, 12) + most))
        for u in operands
        for v in operands
        if u is not v
    ]


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


# ---- one fp32 product ---------------------------------------------------------------------------------------------

HALF = smt_dpa.SIGNIFICAND_BITS
LARGEST = ((1 << HALF) - 1) ** 2  #: product of two halves
HIGHEST = 2 * (254 + HALF)  #: A of numbers
#: By how much less each product of halves has its exponent than that of both upper ones.
OFFSETS = (0, HALF, HALF, 2 * HALF)
SHIFTS = (0, HALF, 2 * HALF)  #: by how much A may be above the largest exponent


@dataclass(frozen=True)
class OneProduct:
    """A step whose products are all zero but the `active` one.  Each method raises NotProvedError."""

    x: Summation
    active: int

    @property
    def proving(self) -> Composing:
        return self.x.proving

    @property
    def factors(self) -> tuple[Operand, Operand]:
        return self.x.step.a[self.active], self.x.step.b[self.active]

    def products(self, k: int) -> tuple[Term, ...]:
        """Return the products of the E9S12 numbers of the k-th product's factors: four of fp32, else one."""
        each = len(self.x.step.products) // len(self.x.step.a)
        return self.x.step.products[each * k : each * (k + 1)]

    @property
    def others(self) -> list[int]:
        return [k for k in range(len(self.x.step.a)) if k != self.active]

    def idle(self, k: int) -> z3.BoolRef:
        """Whether the k-th product is zero, of numbers."""
        return z3.Or(self.x.step.a[k].significand == 0, self.x.step.b[k].significand == 0)

    @property
    def sign(self) -> z3.BitVecRef:
        u, v = self.factors
        return u.sign ^ v.sign

    @property
    def top(self) -> z3.BitVecRef:
        """A, of more bits than it needs."""
        u, v = self.factors
        return fit(u.field, BITS) + fit(v.field, BITS) + 2 * HALF

    @property
    def product(self) -> z3.BitVecRef:
        """u · v."""
        u, v = self.factors
        return fit(u.significand, 4 * HALF) * fit(v.significand, 4 * HALF)

    # ---- the products that are zero

    def prove_idle(self, k: int) -> list[z3.BoolRef]:
        """Prove that the E9S12 products of the k-th one are zero, and have the exponent 0, where it is."""
        step, claims, zeros = self.x.step, [], []
        for operand, halves in ((step.a[k], step.x[k]), (step.b[k], step.y[k])):
            told = [z3.And(u.zero, u.significand == 0) for u in halves]
            claim = z3.Implies(operand.significand == 0, z3.And(told))
            text = "the halves of zero are zero"
            zeros.append(self.proving.claim("halves of zero", text, claim))
        pairs = [(u, v) for u in step.x[k] for v in step.y[k]]
        for (u, v), product in zip(pairs, self.products(k), strict=True):
            nothing = z3.And(product.exponent == 0, product.significand == 0)
            zero = z3.Or([z3.And(half.zero, half.significand == 0) for half in (u, v)])
            text = "a product that is found zero is zero, and has the exponent 0"
            known = self.proving.claim("zero product", text, z3.Implies(zero, nothing))
            claim, given = z3.Implies(self.idle(k), nothing), [known, *zeros]
            claims.append(self.proving.claim("idle", text, claim, given))
        return claims

    # ---- the one that need not be

    def prove_active(self) -> list[z3.BoolRef]:
        """Prove of each product of halves that its exponent is A less its offset, or it is zero with the exponent 0."""
        u, v = self.factors
        fields = [
            self.proving.claim(
                "field in range",
                "an exponent field is 1 or more, and of a number at most 254",
                z3.And(z3.UGE(x.field, 1), z3.Or(z3.Or(x.infinite, x.nan), z3.ULE(x.field, 254))),
            )
            for x in (u, v)
        ]
        normal = [prove_leading(self.proving, x, fp32) for x in (u, v)]
        claims = []
        for product, offset in zip(self.products(self.active), OFFSETS, strict=True):
            own = z3.And(product.exponent == self.top - offset, product.significand != 0)
            zero = z3.And(product.exponent == 0, product.significand == 0)
            text = "a product of halves has the exponents of both, or is zero with the exponent 0"
            claims.append(self.proving.claim("product of halves", text, z3.Or(own, zero), normal))
        text = "the exponent of the product of both upper halves is 26 or more"
        known = z3.And(z3.UGE(self.top, 2 * HALF + 2), z3.ULE(self.top, HIGHEST))
        flags = [z3.Or(x.infinite, x.nan) for x in (u, v)]
        claim = z3.Or(*flags, known)
        self.proving.claim("A", text, claim, fields)
        return claims

    def prove_largest(self, active: Sequence[z3.BoolRef], idle: Sequence[z3.BoolRef]) -> z3.BoolRef:
        """Prove that where all others are zero, the largest exponent is A, A − 12 or A − 24, of a product that is not
        zero; or all are zero."""
        e_max, products = self.x.step.e_max, self.x.step.products
        self.x.prove_largest()
        at_most = [z3.ULE(product.exponent, e_max) for product in products]
        zero = [p.significand == 0 for p in self.products(self.active)]
        places = [
            z3.And(e_max == self.top - o, *(z for z, own in zip(zero, OFFSETS, strict=True) if own < o))
            for o in SHIFTS
        ]
        none = z3.And(e_max == 0, *zero)
        flags = [self.idle(k) for k in self.others]
        low, high = z3.UGE(self.top, 2 * HALF + 2), z3.ULE(self.top, HIGHEST)
        text = "the largest exponent is that of a product of the one product's halves"
        claim = z3.Implies(z3.And(*flags), z3.Or(*places, none))
        using = [self.x.some, *at_most, *active, *idle, low, high]
        return self.proving.claim("which is largest", text, claim, using)

    # ---- the sum

    def prove_whole(self) -> z3.BoolRef:
        """Prove that u·v is the sum of the products of halves, in their places; an identity of polynomials."""
        bits, base = 4 * HALF, z3.BitVecVal(1 << HALF, 4 * HALF)
        u, v = (fit(x.significand, bits) for x in self.factors)
        step, k = self.x.step, self.active
        halves = [tuple(fit(half.significand, bits) for half in side[k]) for side in (step.x, step.y)]
        parts = []
        for whole, (high, low) in zip((u, v), halves, strict=True):
            text = "a significand is its halves, the upper one in its place"
            parts.append(self.proving.claim("cut in halves", text, whole == high * base + low))
        (a, b), (c, d) = halves
        expanded = a * c * (base * base) + (a * d + b * c) * base + b * d
        text = "the product of two sums is the sum of the products"
        identity = (a * base + b) * (c * base + d) == expanded
        known = self.proving.claim("polynomials", text, identity)
        whole = u * v == expanded
        text = "so the product of two significands is that of their halves"
        joined = self.proving.claim("whole product", text, whole, [*parts, known])
        return self._prove_parts(joined, [a * c, a * d, b * c, b * d])

    def _prove_parts(self, joined: z3.BoolRef, exact: Sequence[z3.BitVecRef]) -> z3.BoolRef:
        """Prove that the significands of the products of halves, in their places, add up to that of the product."""
        bits, base, same = 4 * HALF, z3.BitVecVal(1 << HALF, 4 * HALF), []
        k = self.active
        for product, value in zip(self.products(k), exact, strict=True):
            text = "a product of halves has the bits that it needs"
            claim = fit(product.significand, bits) == value
            same.append(self.proving.claim("halves' product", text, claim))
        p = [fit(product.significand, bits) for product in self.products(k)]
        total = p[0] * (base * base) + (p[1] + p[2]) * base + p[3]
        text = "so it is the sum of the products of halves, in their places"
        claim = self.product == total
        return self.proving.claim("sum of parts", text, claim, [joined, *same])

    def prove_sums(
        self, active: Sequence[z3.BoolRef], idle: Sequence[z3.BoolRef], parts: z3.BoolRef
    ) -> list[z3.BoolRef]:
        """Prove that where E = A − o and the others are zero, S is u·v · 2^(F − 46 + o); and where all are zero,
        zero."""
        x, step, mine = self.x, self.x.step, self.products(self.active)
        nothing = [self._prove_nothing(k, known) for k, known in zip(self._idle_places, idle, strict=True)]
        small = []
        for product, placed in zip(mine, self._placed, strict=True):
            text = "a product of halves is at most the largest, and as zero placed as zero"
            claim = z3.ULE(product.significand, LARGEST)
            small.append(self.proving.claim("largest half", text, claim))
            claim = z3.Implies(product.significand == 0, placed == 0)
            nothing.append(self.proving.claim("nothing", text, claim))
        zero = [p.significand == 0 for p in mine]
        flags = [self.idle(k) for k in self.others]
        cut = [*step.placed, *(p.significand for p in mine), self.product, self.sign, *flags]
        found = []
        for o in SHIFTS:
            at = step.e_max == self.top - o
            places = [self._prove_at(i, o, at, known) for i, known in enumerate(active)]
            shifted = fit(self.product, x.parameters.accumulator_bits) << (x.F - 2 * smt_dpa.PLACES - 2 + o)
            limit = z3.ULT(fit(self.product, 50), 1 << (48, 38, 24)[SHIFTS.index(o)])
            given = z3.And(*flags, at, *(z for z, own in zip(zero, OFFSETS, strict=True) if own < o))
            claim = z3.Implies(given, z3.And(negate_if(self.sign, shifted) == x.S, limit))
            text = "the sum is the product, in its place"
            using = [*places, *nothing, *small, parts]
            found.append(self.proving.claim(f"sum {o}", text, claim, using, cut))
        claim = z3.Implies(z3.And(*flags, *zero), z3.And(x.S == 0, self.product == 0))
        found.append(
            self.proving.claim("no sum", "or it is zero, as the product is", claim, [*nothing, parts])
        )
        return found

    @property
    def _placed(self) -> tuple[z3.BitVecRef, ...]:
        return self.x.step.placed[4 * self.active : 4 * self.active + 4]

    @property
    def _idle_places(self) -> list[int]:
        """The places of the others' E9S12 products."""
        return [4 * k + i for k in self.others for i in range(4)]

    def _prove_nothing(self, place: int, known: z3.BoolRef) -> z3.BoolRef:
        """Prove that an idle product is placed as zero."""
        product, placed = self.x.step.products[place], self.x.step.placed[place]
        text = "a product of zero is placed as zero"
        claim = z3.Implies(product.significand == 0, placed == 0)
        zero = self.proving.claim("placed zero", text, claim)
        claim = z3.Implies(known.arg(0), placed == 0)
        return self.proving.claim("idle place", text, claim, [zero, known])

    def _prove_at(self, i: int, o: int, at: z3.BoolRef, known: z3.BoolRef) -> z3.BoolRef:
        """Where the i-th product of halves is placed if E = A − o, and it is not above."""
        product, placed, F = self.products(self.active)[i], self._placed[i], self.x.F
        if OFFSETS[i] < o:
            return known
        exact = negate_if(product.sign, fit(product.significand, placed.size()))
        claim = z3.Implies(at, placed == exact << (F - smt_dpa.PLACES - OFFSETS[i] + o))
        text = "a product of halves is placed without a loss"
        return self.proving.claim("placed half", text, claim, [known])

    def prove_sum(self) -> tuple[list[z3.BoolRef], list[z3.BoolRef]]:
        """(where the others are zero, S is u·v in its place, whichever exponent is the largest, or zero, and that the
        largest is one of these; so it is the number U·V)."""
        idle = [claim for k in self.others for claim in self.prove_idle(k)]
        halves = self.prove_active()
        largest = self.prove_largest(halves, idle)
        sums = self.prove_sums(halves, idle, self.prove_whole())
        return [largest, *sums], prove_place(self, sums)

    # ---- the rounding

    @cached_property
    def given(self) -> z3.BoolRef:
        """Return the claim that every input is a number, and the other products are zero."""
        return z3.And(self.x.numbers, *(self.idle(k) for k in self.others))


def prove_place(one: OneProduct, sums: Sequence[z3.BoolRef]) -> list[z3.BoolRef]:
    """Prove that S is the exact product U·V as a number, whichever exponent is the largest; or zero, as that is."""
    x, S, e_max = one.x, one.x.S, one.x.step.e_max
    negative, m = magnitude_of(S)
    bits = BITS + x.F.bit_length() + 3
    unit, last = fit(e_max, bits) - x.F, fit(one.top, bits) - (4 * HALF - 2)
    exact = z3.And(is_sharp(m, unit, one.product, last), z3.Or(m == 0, negative == (one.sign == 1)))
    high, claims = z3.ULE(one.top, HIGHEST), []
    for o, known in zip(SHIFTS, sums, strict=False):
        at = e_max == one.top - o
        claim = z3.Implies(z3.And(at, known.arg(1)), exact)
        text = "the sum of products is U·V"
        low = z3.UGE(one.top, 2 * HALF + 2)
        claims.append(one.proving.claim(f"place {o}", text, claim, [low, high]))
    return claims


def prove_zero(one: OneProduct) -> None:
    """Prove that the sign of an exact zero is that of all products and c."""
    step = one.x.step
    text = "an exact zero is −0 where c and all products are"
    every = [x.sign ^ y.sign for x, y in zip(step.a, step.b, strict=True)]
    claim = step.zero_sign == reduce(lambda x, y: x & y, every, step.c.sign)
    one.proving.claim("signs", text, claim)
    zero = z3.And(z3.Not(z3.Or(*step.special)), step.sum.total == 0)
    bits = fp32.storage_bits - 1
    claim = z3.Implies(zero, step.result == z3.Concat(step.zero_sign, z3.BitVecVal(0, bits)))
    text = "a sum of exactly zero has that sign"
    one.proving.claim("exact zero", text, claim)


def prove_fma(proving: Composing, spec: DotAdd, active: int) -> z3.BoolRef:
    """Prove that a step on fp32 factors whose products are zero, but the `active` one, is the exact U·V + c rounded
    once; returns that they are, and every input is a number.  Raises NotProvedError."""
    x = Summation.of(proving, spec)
    one = OneProduct(x, active)
    prove_specials(proving, spec, x.inputs, x.step)
    x.prove_operands()
    one.prove_sum()
    prove_zero(one)
    x.prove_rounded()
    proving.rests_on(FIXED_POINT)
    return one.given
