"""Numbers that codes stand for, their products and the exact sum of a step, also as integers of a fixed point.

A product of codes is a number, an infinity, or a NaN (one of a NaN, or of zero and an infinity), which is neither above
nor below anything.  That d grows with a product, a·b ≤ a'·b' ⇒ d ≤ d', is stated here (`LargerProduct`), and that the
terms of a step are its numbers is proved (`CodeNumbers`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import z3

from mmaformal.cases.codes import exponent_field, fraction_field, is_infinite, is_nan, sign_bit
from mmaformal.cases.inputs import Inputs, symbolic_inputs
from mmaformal.cases.interfaces import AnyStep
from mmaformal.cases.out_of_order import not_below
from mmaformal.encodings import smt
from mmaformal.encodings.smt.blocks import Operand, Term, Trace
from mmaformal.formats import Format
from mmaformal.proof.definitions import at_least, fit
from mmaformal.proof.fixed_sums import total_of, wide
from mmaformal.proof.sticky_sums import is_sharp
from mmaformal.spec import DotAdd
from mmaformal.theory.fixed_point import Shifted, WideNumbers


@dataclass(frozen=True)
class CodedNumber:
    """The number that a code stands for: (−1)^sign · significand · 2^exponent, unless it is special."""

    nan: z3.BoolRef
    infinite: z3.BoolRef
    sign: z3.BitVecRef
    significand: z3.BitVecRef
    exponent: z3.BitVecRef  #: two's complement


def coded_number(code: z3.BitVecRef, fmt: Format) -> CodedNumber:
    field: z3.BitVecRef = exponent_field(code, fmt)
    fraction = fraction_field(code, fmt)
    M, normal = fmt.fraction_bits, field != 0
    bits = max(fmt.exponent_bits, (fmt.bias + M).bit_length()) + 2
    one = z3.BitVecVal(1, field.size())
    leading = z3.If(normal, z3.BitVecVal(1, 1), z3.BitVecVal(0, 1))
    exponent = fit(z3.If(normal, field, one), bits) - (fmt.bias + M)
    return CodedNumber(
        is_nan(code, fmt),
        is_infinite(code, fmt),
        sign_bit(code, fmt),
        z3.Concat(leading, z3.Extract(M - 1, 0, fraction)) if M else leading,
        exponent,
    )


def _product(x: CodedNumber, y: CodedNumber) -> CodedNumber:
    bits = x.significand.size() + y.significand.size()
    wide = max(x.exponent.size(), y.exponent.size()) + 2
    exponents = [z3.SignExt(wide - v.exponent.size(), v.exponent) for v in (x, y)]
    zero_times_infinity = z3.Or(
        z3.And(x.infinite, y.significand == 0), z3.And(x.significand == 0, y.infinite)
    )
    return CodedNumber(
        z3.Or(x.nan, y.nan, zero_times_infinity),
        z3.Or(x.infinite, y.infinite),
        x.sign ^ y.sign,
        fit(x.significand, bits) * fit(y.significand, bits),
        exponents[0] + exponents[1],
    )


def is_at_most(x: CodedNumber, y: CodedNumber) -> z3.BoolRef:
    """Whether x ≤ y; of NaNs it is not."""

    def below(u: CodedNumber, v: CodedNumber) -> z3.BoolRef:
        """|u| ≤ |v|."""
        return z3.Or(
            v.infinite,
            z3.And(z3.Not(u.infinite), at_least(v.significand, v.exponent, u.significand, u.exponent)),
        )

    def is_zero(u: CodedNumber) -> z3.BoolRef:
        return z3.And(z3.Not(u.infinite), u.significand == 0)

    both_zero = z3.And(is_zero(x), is_zero(y))
    ordered = z3.If(
        x.sign == 1, z3.Or(y.sign == 0, below(y, x)), z3.And(z3.Or(y.sign == 0, both_zero), below(x, y))
    )
    return z3.And(z3.Not(x.nan), z3.Not(y.nan), ordered)


@dataclass(frozen=True)
class LargerProduct:
    """Two runs of a model in the SMT encoding, the second with other factors in one place, or in some."""

    spec: DotAdd
    x: Inputs
    y: Inputs
    places: tuple[int, ...]

    @cached_property
    def traces(self) -> tuple[Trace[AnyStep], Trace[AnyStep]]:
        x, y = (
            smt.dot_add(self.spec, side.a, side.b, side.c, side.scale_a, side.scale_b)
            for side in (self.x, self.y)
        )
        return x, y

    def is_larger(self, k: int) -> z3.BoolRef:
        """a·b ≤ a'·b' in the k-th place."""
        formats = self.spec.a_format, self.spec.b_format
        first, second = (
            _product(
                *(coded_number(code, fmt) for code, fmt in zip((side.a[k], side.b[k]), formats, strict=True))
            )
            for side in (self.x, self.y)
        )
        return is_at_most(first, second)

    @property
    def premises(self) -> list[z3.BoolRef]:
        return [self.is_larger(k) for k in self.places]

    @property
    def in_order(self) -> z3.BoolRef:
        x, y = self.traces
        return not_below((x.result, y.result), self.spec.d_format)

    @property
    def statement(self) -> z3.BoolRef:
        return z3.Implies(z3.And(self.premises), self.in_order)


def larger_product(spec: DotAdd, *places: int) -> LargerProduct:
    """The second run has a0', b0', …, in these places."""
    x = symbolic_inputs(spec)

    def renamed(side: tuple[z3.BitVecRef, ...]) -> tuple[z3.BitVecRef, ...]:
        return tuple(z3.BitVec(f"{u}'", u.size()) if k in places else u for k, u in enumerate(side))

    return LargerProduct(spec, x, replace(x, a=renamed(x.a), b=renamed(x.b)), places)


def coded_numbers(spec: DotAdd, x: Inputs) -> list[CodedNumber]:
    """The products of a step, and c, with the signs that they have in its exact sum."""
    pairs = zip(x.a, x.b, strict=True)
    products = [_product(coded_number(a, spec.a_format), coded_number(b, spec.b_format)) for a, b in pairs]
    if spec.product_sign < 0:
        products = [replace(n, sign=~n.sign) for n in products]
    c = coded_number(
        x.c if spec.reads_c else z3.BitVecVal(spec.c_format.sign_mask, x.c.size()), spec.c_format
    )
    return [*products, replace(c, sign=~c.sign) if spec.c_sign < 0 else c]


def widened(n: CodedNumber, bits: int) -> CodedNumber:
    """Return the number with an exponent of so many bits."""
    return replace(n, exponent=wide(n.exponent, bits))


def integer_of_code(w: WideNumbers, n: CodedNumber) -> z3.BitVecRef:
    """A finite number as an integer."""
    return w.number(n.sign, Shifted(n.significand, n.exponent))


@dataclass(frozen=True)
class CodeNumbers:
    """The numbers of the codes of one step: its products, then c.

    Of other codes than the usual ones, if some are given.
    """

    w: WideNumbers
    spec: DotAdd
    own: Inputs | None = None

    @property
    def inputs(self) -> Inputs:
        return self.own or symbolic_inputs(self.spec)

    @property
    def numbers(self) -> list[CodedNumber]:
        return [widened(n, self.w.exponent_bits) for n in coded_numbers(self.spec, self.inputs)]

    @property
    def integers(self) -> list[z3.BitVecRef]:
        return [integer_of_code(self.w, n) for n in self.numbers]

    @property
    def total(self) -> z3.BitVecRef:
        """c + Σ a·b."""
        return total_of(self.integers)

    def prove_term(
        self,
        k: int,
        term: Term,
        place: z3.BitVecRef,
        operands: Sequence[Operand],
        finite: z3.BoolRef,
    ) -> z3.BoolRef:
        """Prove that a term of the model, its last place at 2^place, is the k-th number, if it is finite.

        `operands` are the factors of a product, or c; `finite` says that the term's exponent is in its range.
        """
        w, point, n = self.w, self.w.point, self.numbers[k]
        mine, other = point.shift(place), point.shift(n.exponent)
        text = "the exponent is that of the number"
        exponent = w.theory.claim("exponent of a number", text, z3.Implies(finite, mine == other))
        whole = self.prove_parts(k, term, operands)
        m, o = point.integer(term.significand), point.integer(n.significand)
        claim = z3.Implies(term.significand == n.significand, m == o)
        integers = w.theory.claim("integer of a number", "the integers are the same", claim)
        here, there = point.shifted(m, mine), point.shifted(o, other)
        claim = z3.Implies(z3.And(m == o, mine == other), here == there)
        alike = w.theory.claim("same number", "so is the number", claim)
        goal = w.number(term.sign, Shifted(term.significand, place)) == integer_of_code(w, n)
        text = "a term is the number of its codes"
        given = [exponent, finite, whole, integers, alike]
        return w.theory.claim("number of codes", text, goal, given)

    def size(self, k: int) -> Shifted:
        """The k-th number's magnitude."""
        return Shifted(self.numbers[k].significand, self.numbers[k].exponent)

    def is_term(self, k: int, sign: z3.BitVecRef, size: Shifted) -> z3.BoolRef:
        """Whether a magnitude with a sign is the k-th number, in comparisons; zeros have any sign."""
        return z3.And(is_sharp(*size, *self.size(k)), z3.Or(size.m == 0, sign == self.numbers[k].sign))

    def prove_product(
        self,
        k: int,
        term: Term,
        size: Shifted,
        operands: Sequence[Operand],
        finite: z3.BoolRef,
        known: z3.BoolRef,
    ) -> z3.BoolRef:
        """Prove that a product is that of the codes, if these are finite; one of zero may have any exponent.

        `size` is its magnitude; `known` says that its exponent is in its range.
        """
        theory, n = self.w.theory, self.numbers[k]
        parts = self.prove_parts(k, term, operands)
        text = "a product that is not zero has the exponent of its factors"
        zeros = z3.Or([x.significand == 0 for x in operands])
        claim = z3.Implies(finite, z3.Or(zeros, size.t == n.exponent))
        place = theory.claim("exponent of a product's number", text, claim)
        text = "a product with a factor that is zero is zero"
        nothing = theory.claim("nothing", text, z3.Implies(zeros, term.significand == 0))
        claim = z3.Implies(finite, self.is_term(k, term.sign, size))
        text = "the product is that of the codes"
        of_codes = theory.claim("term", text, claim, [parts, place, nothing])
        return self.prove_number(k, term.sign, size, of_codes, self.w.in_range(size.t, [known]))

    def prove_number(
        self, k: int, sign: z3.BitVecRef, size: Shifted, known: z3.BoolRef, in_range: z3.BoolRef
    ) -> z3.BoolRef:
        """Prove `is_term` as integers: where `known` says it, under its condition.

        `in_range` says that the magnitude's exponent is in its range.
        """
        w, n, other = self.w, self.numbers[k], self.size(k)
        given = known.arg(0)
        in_other = w.in_range(other.t, [])
        equal, zero = w.equal(size, other, [in_range, in_other]), w.roomy(size, in_range)
        mine, same = w.number(sign, size), integer_of_code(w, n)
        text = "a term is the number of its codes"
        term = self.is_term(k, sign, size)
        claim = z3.Implies(term, mine == same)
        number = w.theory.claim("number of a term", text, claim, [equal, zero])
        return w.follows("number where it is", text, z3.Implies(given, mine == same), [known, number], term)

    def prove_parts(self, k: int, term: Term, operands: Sequence[Operand]) -> z3.BoolRef:
        """Prove that a term has the sign and the significand of the number; if it is longer, with zeros below."""
        n, theory, inputs = self.numbers[k], self.w.theory, self.inputs
        below = term.significand.size() - n.significand.size()
        significand = z3.Concat(n.significand, z3.BitVecVal(0, below)) if below else n.significand
        goal = z3.And(term.significand == significand, term.sign == n.sign)
        if len(operands) == 1:
            return theory.claim("significand of c", "c is its number", goal)
        codes = (inputs.a[k], self.spec.a_format), (inputs.b[k], self.spec.b_format)
        factors = [coded_number(code, fmt) for code, fmt in codes]
        text = "a factor is the number of its code"
        same = [
            theory.claim("factor", text, z3.And(x.sign == y.sign, x.significand == y.significand))
            for x, y in zip(operands, factors, strict=True)
        ]
        text = "the product is that of the numbers"
        return theory.claim("product of numbers", text, goal, same)
