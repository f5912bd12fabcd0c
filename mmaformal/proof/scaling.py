"""What doubling A and C does to the stages of each algorithm: what their lemmas have in common.

Two runs, the second on the doubled a and c.  Terms keep their significands, and their exponents go up by one, zeros
aside; so does the largest exponent.  Then shifts, aligned terms and sums are the same, and the same sum at twice the
unit is rounded to twice the number, unless it is subnormal.  Or the largest exponent is one that zeros have, in both
runs: then the sum is zero, or so small that it is cut at the least exponent, at one place more in the first run.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

import z3

from mmaformal.cases.codes import Code, Fact, both, either, is_finite, magnitude, select
from mmaformal.cases.interfaces import AddsC, AnyStep, Decodes, Multiplies, OneProduct, Rounds
from mmaformal.encodings.smt.blocks import Operand, Term, any_of
from mmaformal.formats import Format
from mmaformal.proof.lemmas import Link, at_most
from mmaformal.proof.related_runs import Pairing, operand_codes
from mmaformal.spec import DotAdd


def _at_least(x: Code, bound: int) -> Fact:
    return z3.UGE(x, bound) if isinstance(x, z3.BitVecRef) else x >= bound


def _one(fmt: Format) -> int:
    """The exponent field's last place."""
    return 1 << (fmt.fraction_bits + fmt.ignored_low_bits)


def doubled(code: Code, fmt: Format) -> Code:
    """The code of 2x, for a normal x whose double is a number too; zero stays zero."""
    return select(magnitude(code, fmt) == 0, code, code + _one(fmt))


def doubles(code: Code, fmt: Format) -> Fact:
    """Whether x is zero, or normal and 2x finite."""
    low = magnitude(code, fmt)
    highest = ((1 << fmt.exponent_bits) - 1) << (fmt.fraction_bits + fmt.ignored_low_bits)
    room = _below(low, highest)  # the exponent field is not all ones, so that adding one stays in it
    return either(
        low == 0,
        both(_at_least(low, _one(fmt)), room, is_finite(code, fmt), is_finite(code + _one(fmt), fmt)),
    )


def _below(x: Code, bound: int) -> Fact:
    return z3.ULT(x, bound) if isinstance(x, z3.BitVecRef) else x < bound


def normal_or_zero(code: Code, fmt: Format) -> Fact:
    low = magnitude(code, fmt)
    return either(low == 0, both(_at_least(low, _one(fmt)), is_finite(code, fmt)))


def well_inside(code: Code, fmt: Format) -> Fact:
    """Whether a result is zero, or finite and above the least normal number."""
    low = magnitude(code, fmt)
    return either(low == 0, both(_at_least(low, _one(fmt) + 1), is_finite(code, fmt)))


def same_double(left: z3.BitVecRef, right: z3.BitVecRef, fmt: Format) -> Link:
    """That the second code is the double of the first, and both are zero or normal."""
    claim = z3.And(right == doubled(left, fmt), normal_or_zero(left, fmt), normal_or_zero(right, fmt))
    return Link(claim, (left,), ((right, doubled(left, fmt)),))


def moved(left: Term, right: Term, zero: z3.BitVecRef) -> Link:
    """That a term's exponent goes up by one, or the term is zero, with the exponent e_zero."""
    up = z3.And(right.exponent == left.exponent + 1, z3.ULT(left.exponent, right.exponent))
    still = z3.And(right.exponent == zero, left.exponent == zero)
    claim = z3.And(
        right.significand == left.significand,
        right.sign == left.sign,
        z3.If(left.significand == 0, still, up),
    )
    return Link(
        claim,
        (left.sign, left.exponent, left.significand, right.exponent),
        ((right.significand, left.significand), (right.sign, left.sign)),
    )


class Derive(Protocol):
    """`Two.derive`."""

    def __call__(
        self, stage: str, text: str, link: Link, given: Sequence[Link] = (), inputs: Sequence[z3.ExprRef] = ()
    ) -> Link: ...


def factor_links(
    derive: Derive,
    a: Operand,
    other: Operand,
    b: Operand,
    given: Sequence[Link],
    codes: Sequence[z3.ExprRef],
) -> tuple[Link, Link]:
    """The link of a doubled factor, and that of the other one."""
    factor = Link(
        z3.And(
            other.significand == a.significand,
            other.sign == a.sign,
            z3.Or(a.significand == 0, other.field == a.field + 1),
            z3.ULT(a.field, -1),
            z3.UGE(a.field, 1),
        ),
        (a.sign, a.field, a.significand, other.field),
        ((other.significand, a.significand), (other.sign, a.sign)),
    )
    derive("decode", "a doubled factor's exponent goes up by one, unless it is zero", factor, given, codes)
    field = Link(z3.UGE(b.field, 1), (b.field,))
    derive("decode", "exponent fields are at least 1", field, [], operand_codes(b))
    return factor, field


# ---- one step of both runs ------------------------------------------------------------------------------------------


StepT = TypeVar("StepT", bound=AnyStep, covariant=True)


@dataclass
class DoubledRuns(Generic[StepT]):
    """One step of both runs."""

    pairing: Pairing
    spec: DotAdd
    left: StepT
    right: StepT
    c: Link  #: of the codes
    assumed: dict[int, Link]  #: what is known of the codes of a, b and scales, by their ids

    def derive(
        self, stage: str, text: str, link: Link, given: Sequence[Link] = (), inputs: Sequence[z3.ExprRef] = ()
    ) -> Link:
        return self.pairing.derive(stage, text, [link], given, inputs)[0]

    def factors(self: DoubledRuns[Decodes], k: int) -> tuple[Link, Link]:
        """Of product k: the link of a's operands, and that of b's."""
        return self._factors(self.left.a[k], self.right.a[k], self.left.b[k])

    def only_factors(self: DoubledRuns[OneProduct]) -> tuple[Link, Link]:
        """The same of the only product."""
        return self._factors(self.left.a, self.right.a, self.left.b)

    def _factors(self, a: Operand, other: Operand, b: Operand) -> tuple[Link, Link]:
        codes = operand_codes(a, other, b)
        given = [self.assumed[code.get_id()] for code in codes]
        return factor_links(self.derive, a, other, b, given, codes)

    def product(
        self: DoubledRuns[Multiplies], k: int, zero: z3.BitVecRef | None, factor: Link, field: Link
    ) -> Link:
        """That product k is doubled by its exponent, or zero (with the exponent `zero` in both, if there is one)."""
        terms = self.left.products[k], self.right.products[k]
        return self._product(*terms, self.left.b[k], zero, factor, field)

    def only_product(self: DoubledRuns[OneProduct], zero: z3.BitVecRef, factor: Link, field: Link) -> Link:
        """The same of the only product."""
        return self._product(self.left.product, self.right.product, self.left.b, zero, factor, field)

    def _product(
        self, x: Term, y: Term, b: Operand, zero: z3.BitVecRef | None, factor: Link, field: Link
    ) -> Link:
        text = "a product's exponent goes up by one, unless it is zero"
        return self.derive("multiply", text, moves(x, y, zero), [factor, field], [b.sign, b.significand])

    def addend(self: DoubledRuns[AddsC], least: z3.BitVecRef) -> tuple[Link, Link]:
        """That c is doubled by its exponent, or zero with the least one; and that no exponent of c is below that."""
        left, right = self.left.addend, self.right.addend
        text = "c's exponent goes up by one, unless it is zero"
        addend = self.derive("multiply", text, moved(left, right, least), [self.c])
        low = Link(z3.UGE(left.exponent, least), (left.exponent,))
        self.derive("multiply", "c's exponent is at least its format's least", low, [self.c])
        return addend, low

    def ordered(
        self, exponents: Callable[[StepT], tuple[z3.BitVecRef, z3.BitVecRef, z3.BitVecRef]]
    ) -> list[Link]:
        """That neither of two exponents of a step is above the larger, which is given first, in both runs."""
        links = []
        for step in (self.left, self.right):
            top, *parts = exponents(step)
            for x in parts:
                text = "neither of two exponents is above the larger"
                links.append(self.derive("align", text, at_most(x, top), [], parts))
        return links

    def in_range(self: DoubledRuns[Rounds]) -> list[Link]:
        """What is assumed of the results, and that they are of no special values."""
        links = []
        for step in (self.left, self.right):
            what = "every step's result is zero or above the least normal number"
            link = self.pairing.assume(what, Link(well_inside(step.result, self.spec.d_format), ()))
            none = Link(z3.Not(any_of(list(step.special))), tuple(step.special))
            text = "a finite result comes of no special value"
            links += [link, self.derive("classify", text, none, [link], [*step.special, *step.rounded])]
        return links

    @property
    def result(self) -> Link:
        return same_double(self.left.result, self.right.result, self.spec.d_format)


def one_up(x: z3.BitVecRef, y: z3.BitVecRef) -> z3.BoolRef:
    """That y is x + 1, which does not wrap."""
    return z3.And(y == x + 1, z3.ULT(x, y))


def is_up(x: z3.BitVecRef, y: z3.BitVecRef) -> Link:
    """The same, where it is known to be so."""
    return Link(one_up(x, y), (x,), ((y, x + 1),))


def moves(left: Term, right: Term, zero: z3.BitVecRef | None = None) -> Link:
    """That a term's exponent goes up by one, or the term is zero (and its exponent is `zero` in both runs)."""
    still = left.significand == 0
    if zero is not None:
        still = z3.And(still, left.exponent == zero, right.exponent == zero)
    return Link(
        z3.Or(one_up(left.exponent, right.exponent), still),
        (left.sign, left.exponent, left.significand, right.exponent),
        ((right.significand, left.significand), (right.sign, left.sign)),
    )


def up_or(x: z3.BitVecRef, y: z3.BitVecRef, other: z3.BoolRef, *terms: z3.ExprRef) -> Link:
    """That an exponent goes up by one, or something else is so."""
    return Link(z3.Or(one_up(x, y), other), (x, y, *terms))


def rounded_up(two: DoubledRuns[AnyStep], total: Link, up: Link, given: Sequence[Link]) -> None:
    """The results where the exponent goes up and the sum is the same."""
    text = "the same sum at twice the unit is twice the number"
    two.derive("round", text, two.result, [total, up, *given])
