"""The exact sum of a step as an integer, by its codes alone, and that the terms of a step are its summands."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import z3

from mmaformal.cases.inputs import Inputs, symbolic_inputs
from mmaformal.encodings.smt.blocks import Operand, Term
from mmaformal.proof.composition import wide
from mmaformal.proof.larger_products import Number, number, product
from mmaformal.proof.sticky_sums import is_sharp
from mmaformal.proof.wide_numbers import Scaled, WideNumbers
from mmaformal.spec import DotAdd


def numbers_of(spec: DotAdd, x: Inputs) -> list[Number]:
    """The products of a step, and c, with the signs that they have in its exact sum."""
    pairs = zip(x.a, x.b, strict=True)
    products = [product(number(a, spec.a_format), number(b, spec.b_format)) for a, b in pairs]
    if spec.product_sign < 0:
        products = [replace(n, sign=~n.sign) for n in products]
    c = number(x.c if spec.reads_c else z3.BitVecVal(spec.c_format.sign_mask, x.c.size()), spec.c_format)
    return [*products, replace(c, sign=~c.sign) if spec.c_sign < 0 else c]


def widened(n: Number, bits: int) -> Number:
    """The same number, its exponent of so many bits."""
    return replace(n, exponent=wide(n.exponent, bits))


def integer_of(w: WideNumbers, n: Number) -> z3.BitVecRef:
    """A finite number as an integer."""
    return w.number(n.sign, Scaled(n.significand, n.exponent))


def total_of(integers: Sequence[z3.BitVecRef]) -> z3.BitVecRef:
    total = integers[0]
    for x in integers[1:]:
        total = total + x
    return total


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
    def numbers(self) -> list[Number]:
        return [widened(n, self.w.exponent_bits) for n in numbers_of(self.spec, self.inputs)]

    @property
    def integers(self) -> list[z3.BitVecRef]:
        return [integer_of(self.w, n) for n in self.numbers]

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
        """That a term of the model, its last place at 2^place, is the k-th number, if it is finite.

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
        goal = w.number(term.sign, Scaled(term.significand, place)) == integer_of(w, n)
        text = "a term is the number of its codes"
        given = [exponent, finite, whole, integers, alike]
        return w.theory.claim("number of codes", text, goal, given)

    def size(self, k: int) -> Scaled:
        """The k-th number's magnitude."""
        return Scaled(self.numbers[k].significand, self.numbers[k].exponent)

    def is_term(self, k: int, sign: z3.BitVecRef, size: Scaled) -> z3.BoolRef:
        """Whether a magnitude with a sign is the k-th number, in comparisons; zeros have any sign."""
        return z3.And(is_sharp(*size, *self.size(k)), z3.Or(size.m == 0, sign == self.numbers[k].sign))

    def prove_number(
        self, k: int, sign: z3.BitVecRef, size: Scaled, known: z3.BoolRef, in_range: z3.BoolRef
    ) -> z3.BoolRef:
        """The same as integers: where `known` says `is_term`, under its condition.

        `in_range` says that the magnitude's exponent is in its range.
        """
        w, n, other = self.w, self.numbers[k], self.size(k)
        given = known.arg(0)
        in_other = w.in_range(other.t, [])
        equal, zero = w.equal(size, other, [in_range, in_other]), w.roomy(size, in_range)
        mine, same = w.number(sign, size), integer_of(w, n)
        text = "a term is the number of its codes"
        term = self.is_term(k, sign, size)
        claim = z3.Implies(term, mine == same)
        number = w.theory.claim("number of a term", text, claim, [equal, zero])
        return w.follows("number where it is", text, z3.Implies(given, mine == same), [known, number], term)

    def prove_parts(self, k: int, term: Term, operands: Sequence[Operand]) -> z3.BoolRef:
        """That a term has the sign and the significand of the number."""
        n, theory, inputs = self.numbers[k], self.w.theory, self.inputs
        goal = z3.And(term.significand == n.significand, term.sign == n.sign)
        if len(operands) == 1:
            return theory.claim("significand of c", "c is its number", goal)
        codes = (inputs.a[k], self.spec.a_format), (inputs.b[k], self.spec.b_format)
        factors = [number(code, fmt) for code, fmt in codes]
        text = "a factor is the number of its code"
        same = [
            theory.claim("factor", text, z3.And(x.sign == y.sign, x.significand == y.significand))
            for x, y in zip(operands, factors, strict=True)
        ]
        text = "the product is that of the numbers"
        return theory.claim("product of numbers", text, goal, same)
