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
from mmaformal.encodings.smt.ieee import Addition
from mmaformal.formats import Format
from mmaformal.proof.encoding_links import summands
from mmaformal.proof.kernel import demand
from mmaformal.proof.lemmas import ArgumentError, Link, at_most
from mmaformal.proof.related_runs import Pairing, magnitude_and_sign, operand_codes, same
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


# ---- maxima, sums, codes ---------------------------------------------------------------------------------------------


def both_summands(
    x: z3.BitVecRef, y: z3.BitVecRef, n: int
) -> tuple[Sequence[z3.BitVecRef], Sequence[z3.BitVecRef]]:
    """The n terms of a sum, in both runs.  Raises ArgumentError if there are not so many."""
    xs, ys = summands(x, n), summands(y, n)
    if len(xs) != n or len(ys) != n:
        raise ArgumentError("the sum is not made of its terms")
    return xs, ys


def largest(
    derive: Derive, left: z3.BitVecRef, right: z3.BitVecRef, zero: z3.BitVecRef, leaves: dict[int, Link]
) -> Link:
    """Node by node: a maximum goes up by one, or is e_zero in both runs."""

    def link(x: z3.BitVecRef, y: z3.BitVecRef) -> Link:
        up = z3.And(y == x + 1, z3.ULT(x, y))
        return Link(z3.Or(up, z3.And(x == zero, y == zero)), (x, y))

    done: dict[int, Link] = {}

    def climb(x: z3.BitVecRef, y: z3.BitVecRef) -> Link:
        if x.get_id() not in done:
            node = link(x, y)
            if x.get_id() in leaves:
                derive("align", "an exponent goes up by one, or is e_zero", node, [leaves[x.get_id()]])
            elif x.num_args() == 3 and y.num_args() == 3:
                parts = [climb(x.arg(i), y.arg(i)) for i in (1, 2)]
                derive("align", "the larger of two goes up by one, or is e_zero", node, parts)
            else:
                raise ArgumentError("the largest exponent is no maximum of the terms'")
            done[x.get_id()] = node
        return done[x.get_id()]

    return climb(left, right)


def jammed_half(x: z3.BitVecRef) -> z3.BitVecRef:
    """x / 2 of an unsigned x, with a sticky last place."""
    return z3.LShR(x, 1) | (x & 1)


def halved(left: z3.BitVecRef, right: z3.BitVecRef) -> tuple[list[z3.BoolRef], Link]:
    """That two sums have one sign, and the magnitude of the first is half that of the second, with a sticky place."""
    (m, s), (n, t) = magnitude_and_sign(left, True), magnitude_and_sign(right, True)
    half = jammed_half(n)
    zero = n == 0
    facts = [z3.ULT(n, 1 << (n.size() - 1)), m == half, s == t, (left == 0) == zero, (right == 0) == zero]
    return facts, Link(z3.And(facts), (n, t), ((m, half), (s, t), (left == 0, zero), (right == 0, zero)))


def addition(
    derive: Derive,
    fmt: Format,
    x: Addition,
    y: Addition,
    given: Sequence[Link],
    known: Sequence[Link],
) -> Link:
    """That the sum of two codes doubles, from those of the codes, and what is known of the sums' ranges."""
    kept, changed, claims = [], [], []
    for name in ("big", "small"):
        u, v = getattr(x, name), getattr(y, name)
        kept += [u.sign, u.field, u.significand, v.field]
        changed += [(v.sign, u.sign), (v.significand, u.significand)]
        claims.append(z3.Or(one_up(u.field, v.field), u.significand == 0))
    claims += [v == u for v, u in changed]
    for each in (x, y):
        claims.append(z3.ULE(each.small.field, each.big.field))
    claims.append(z3.Implies(x.big.significand == 0, x.small.significand == 0))
    operands = Link(z3.And(claims), tuple(kept), tuple(changed))
    text = "sorted by magnitude, exponents go up by one, unless they are of zeros"
    derive("decode", text, operands, given)
    flags = [*x.special, *y.special]
    none = Link(z3.Not(any_of(flags)), tuple(flags))
    derive("classify", "the sum of finite numbers is of no special value", none, given)
    zero = z3.Implies(x.big.significand == 0, x.total == 0)
    total = Link(z3.And(y.total == x.total, zero), (x.total, x.big.significand), ((y.total, x.total),))
    derive("accumulate", "aligned terms are the same, and so are their sums", total, [operands])
    sign = same(x.zero_sign, y.zero_sign)
    derive("accumulate", "the sign of a sum that is zero is the same", sign, [operands])
    field = Link(
        z3.Or(one_up(x.big.field, y.big.field), x.big.significand == 0),
        (x.big.sign, x.big.field, x.big.significand, y.big.field),
        ((y.big.sign, x.big.sign),),
    )
    field = Link(z3.And(field.claim, y.big.sign == x.big.sign), field.free, field.defined)
    derive("decode", "the larger exponent goes up by one, unless all is zero", field, [operands])
    result = same_double(x.result, y.result, fmt)
    text = "the same sum at twice the unit is twice the number"
    return derive("round", text, result, [total, field, none, sign, *known])


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


def rounded_up(two: DoubledRuns[AnyStep], total: Link, up: Link, given: Sequence[Link]) -> None:
    """The results where the exponent goes up and the sum is the same."""
    text = "the same sum at twice the unit is twice the number"
    two.derive("round", text, two.result, [total, up, *given])


def within(x: z3.BitVecRef, bound: int) -> Link:
    """That x is not beyond ±bound, in two's complement.  Raises ArgumentError if it has no bits for more."""
    demand(bound < 1 << (x.size() - 1), f"{x.size()} bits do not hold ±{bound}")
    return Link(z3.And(x <= bound, x >= -bound), (x,))
