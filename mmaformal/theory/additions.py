"""An IEEE addition, as integers of one fixed point: d is ρ of the sum of the numbers that the operands are.

The fixed point has three places below the format's least number, the places that an addition keeps: the exact sum is
the number that is rounded, or strictly between it and the next.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import z3

from mmaformal.encodings.smt.blocks import Operand, decode
from mmaformal.formats import Format
from mmaformal.proof.composition import Composing
from mmaformal.proof.definitions import at_least, code_parts, fit, is_rounded, last_index, rounds_between
from mmaformal.proof.sticky_sums import is_sharp
from mmaformal.rounding import Conversion

_BELOW = 3  #: places below the larger operand's last one that an addition keeps


def finite(code: z3.BitVecRef, fmt: Format) -> z3.BoolRef:
    x = decode(code, fmt)
    return z3.Not(z3.Or(x.infinite, x.nan))


@dataclass(frozen=True)
class AdditionFacts:
    """`code` is x + y, codes of ρ's format."""

    x: z3.BitVecRef
    y: z3.BitVecRef
    code: z3.BitVecRef
    rho: Conversion

    @property
    def fmt(self) -> Format:
        return self.rho.format

    @cached_property
    def operands(self) -> tuple[Operand, Operand]:
        """The larger one, and the smaller."""
        top = self.fmt.storage_bits - 2
        swap = z3.ULT(z3.Extract(top, 0, self.x), z3.Extract(top, 0, self.y))
        return decode(z3.If(swap, self.y, self.x), self.fmt), decode(z3.If(swap, self.x, self.y), self.fmt)

    @property
    def finite(self) -> z3.BoolRef:
        return z3.And(finite(self.x, self.fmt), finite(self.y, self.fmt))

    @property
    def distance(self) -> z3.BitVecRef:
        large, small = self.operands
        return large.field - small.field

    @property
    def exact(self) -> z3.BitVecRef:
        """The sum of both numbers, with the larger one's sign, in units three places below the smaller one's last."""
        large, small = self.operands
        high, low = self._wide
        high = high * self._unit
        return z3.If(large.sign == small.sign, high + low, high - low)

    @property
    def _wide(self) -> tuple[z3.BitVecRef, z3.BitVecRef]:
        """Both significands, each in units three places below its own last one."""
        bits = (1 << self.fmt.exponent_bits) + self.fmt.fraction_bits + _BELOW + 3
        large, small = self.operands
        return fit(large.significand, bits) << _BELOW, fit(small.significand, bits) << _BELOW

    @property
    def _unit(self) -> z3.BitVecRef:
        """The larger one's unit in the smaller one's."""
        bits = self._wide[0].size()
        return z3.BitVecVal(1, bits) << fit(self.distance, bits)

    @cached_property
    def kept(self) -> tuple[z3.BitVecRef, z3.BoolRef]:
        """(the magnitude of the sum, in the larger one's last place and three more; whether more lies below)."""
        large, small = self.operands
        bits = self.fmt.fraction_bits + 2 + _BELOW
        distance = fit(large.field - small.field, bits)
        high, low = (fit(v.significand, bits) << _BELOW for v in (large, small))
        floor = z3.LShR(low, distance)
        lost = floor << distance != low
        borrow = z3.If(lost, z3.BitVecVal(1, bits), z3.BitVecVal(0, bits))
        return z3.If(large.sign == small.sign, high + floor, high - floor - borrow), lost

    @property
    def kept_place(self) -> z3.BitVecRef:
        """The exponent of what is kept's last place."""
        fmt, (large, _) = self.fmt, self.operands
        return fit(large.field, fmt.exponent_bits + 4) - (fmt.bias + fmt.fraction_bits + _BELOW)

    @property
    def rounded(self) -> z3.BoolRef:
        """Return the claim that `code` is ρ of what is kept, or of all that is strictly between that and the next."""
        (m, lost), (large, _), t = self.kept, self.operands, self.kept_place
        top, negative = self.fmt.storage_bits - 1, large.sign == 1
        zero = z3.Extract(top - 1, 0, self.code) == 0
        one = is_rounded(m, t, self.code, self.rho, negative)
        all_between = rounds_between(m, t, self.code, self.rho, negative)
        sign = z3.Or(zero, z3.Extract(top, top, self.code) == large.sign)
        return z3.And(z3.Implies(lost, all_between), z3.Implies(z3.Not(lost), one), sign)

    @property
    def is_kept(self) -> z3.BoolRef:
        """Return the claim that the exact sum is what is kept, and more only if that is said: then it is between that
        and the next."""
        (m, lost), exact = self.kept, self.exact
        rest = exact - fit(m, exact.size()) * self._unit
        return z3.And(z3.ULT(rest, self._unit), lost == (rest != 0))

    def is_sum(self, z: z3.BitVecRef) -> z3.BoolRef:
        """Whether the magnitude of z, a number of the format, is what is kept; or, where more lies below that, is
        between it and the next, where the exact sum is (`is_kept`).  So it is wherever z is the exact sum."""
        (m, lost), t, index = self.kept, self.kept_place, z3.Extract(self.fmt.storage_bits - 2, 0, z)
        significand, q = code_parts(index, t.size(), self.rho)
        above, next_up = z3.Not(at_least(m, t, significand, q)), fit(m, m.size() + 1) + 1
        between = z3.And(above, z3.Not(at_least(significand, q, next_up, t)))
        number = z3.And(z3.Implies(lost, between), z3.Implies(z3.Not(lost), is_sharp(significand, q, m, t)))
        return z3.And(z3.ULT(index, last_index(self.rho)), number)

    def at_least(self, exponent: int) -> z3.BoolRef:
        """Whether the magnitude of the exact sum is at least 2^exponent."""
        t = self._place
        return at_least(self.exact, t, z3.BitVecVal(1, 1), z3.BitVecVal(exponent, t.size()))

    @property
    def _place(self) -> z3.BitVecRef:
        """The exponent of the exact sum's last place."""
        fmt, (_, small) = self.fmt, self.operands
        return fit(small.field, fmt.exponent_bits + 4) - (fmt.bias + fmt.fraction_bits + _BELOW)

    def prove_rounded(self, proving: Composing) -> z3.BoolRef:
        """Prove that where both are numbers, `code` is ρ of what is kept of their sum, or of all that is just above
        it."""
        text = f"an addition in {self.fmt} is the exact sum of two finite numbers, rounded once"
        claim = z3.Implies(self.finite, self.rounded)
        return proving.claim(f"addition in {self.fmt}", text, claim, (), [self.x, self.y])

    def prove(self, proving: Composing) -> z3.BoolRef:
        """Prove that where both are numbers, `code` is ρ of their exact sum."""
        return z3.And(self.prove_rounded(proving), self._prove_kept(proving))

    def _prove_kept(self, proving: Composing) -> z3.BoolRef:
        (large, small), (m, lost), unit, (high, low) = self.operands, self.kept, self._unit, self._wide
        parts = [part for v in (large, small) for part in (v.field, v.significand, v.sign)]
        leading = z3.UGE(large.significand, 1 << self.fmt.fraction_bits)
        ordered = z3.And(
            z3.UGE(large.field, small.field),
            z3.If(large.field == small.field, z3.UGE(large.significand, small.significand), leading),
        )
        text = "the larger operand has the larger exponent, and its leading bit, or the larger significand"
        larger = z3.Implies(self.finite, ordered)
        proving.claim("operands", text, larger, (), [self.x, self.y])
        bits, whole = high.size(), fit(m, high.size())
        floor = fit(z3.LShR(fit(small.significand, m.size()) << _BELOW, fit(self.distance, m.size())), bits)
        below = low & ~(z3.BitVecVal(-1, bits) << fit(self.distance, bits))
        split = z3.And(low == floor * unit + below, z3.ULT(below, unit), lost == (below != 0))
        text = "the smaller one is what is left of it, and what is lost, less than a unit"
        proving.claim("smaller operand", text, split, (), parts)
        same = large.sign == small.sign
        one = z3.If(lost, z3.BitVecVal(1, bits), z3.BitVecVal(0, bits))
        ways = [  # what is kept; where; the exact sum, and how much more that is
            (whole == high + floor, same, high * unit + low, below),
            (whole == high - floor - one, z3.Not(same), high * unit - low, one * unit - below),
        ]
        text = "what is kept is the sum or the difference, one less where something is lost"
        sums = z3.Implies(ordered, z3.And([z3.Implies(where, made) for made, where, _, _ in ways]))
        proving.claim("sum of what is kept", text, sums, (), parts)
        borrow = one * unit == z3.If(lost, unit, z3.BitVecVal(0, bits))
        proving.claim("borrow", "that one is a unit", borrow, (), [lost, unit])
        given = [larger, split, sums, borrow]
        text = "so what the exact sum is more is what is lost, or a unit less that"
        for made, _, exact, rest in ways:
            claim = z3.Implies(z3.And(made, split.arg(0)), exact - whole * unit == rest)
            cut = [whole, high, low, floor, unit, below, one]
            given.append(proving.claim("rest of a sum", text, claim, (), cut))
        text = "what is kept of a sum is all of it but for its last places, and whether those are 0"
        sides, scaled = [exact for _, _, exact, _ in ways], whole * unit
        more = [self.exact - scaled, *(exact - scaled for exact in sides)]
        cut = [*more, scaled, one * unit, unit, below, lost, same, ordered, self.finite]
        cut += [split.arg(0), *(made for made, *_ in ways)]
        cases = []
        for (_, where, *_), rest in zip(ways, more[1:], strict=True):
            this = z3.Implies(where, more[0] == rest)
            proving.claim(
                "sign of a sum", "the exact sum is the one or the other", this, (), [*sides, scaled, same]
            )
            claim = z3.Implies(z3.And(where, self.finite), self.is_kept)
            cases.append(proving.claim(f"case of a sum in {self.fmt}", text, claim, [*given, this], cut))
        kept = z3.Implies(self.finite, self.is_kept)
        return proving.claim(
            f"sum in {self.fmt}", text, kept, cases, [same, self.finite, *self.is_kept.children()]
        )

    def prove_number(self, proving: Composing, z: z3.BitVecRef) -> z3.BoolRef:
        """Prove that where z is a number of the format, and the exact sum, the result is z."""
        fmt, top = self.fmt, self.fmt.storage_bits - 2
        rounded, (m, lost), (large, _) = self.prove_rounded(proving), self.kept, self.operands
        is_it = z3.And(self.finite, self.is_sum(z))
        claim = z3.Implies(is_it, z3.Extract(top, 0, self.code) == z3.Extract(top, 0, z))
        text = f"if the sum is a number of {fmt}, the result is that number"
        cut = [self.code, m, lost, large.field, large.sign, self.finite]
        return proving.claim(f"number of {fmt}", text, claim, [rounded], cut)
