"""An IEEE addition, as integers of one fixed point: d is ρ of the sum of the numbers that the operands are.

The fixed point has three places below the format's least number, the places that an addition keeps: the exact sum is
the number that is rounded, or strictly between it and the next.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import z3

from mmaformal.algorithms import Conversion
from mmaformal.encodings.smt import ieee
from mmaformal.encodings.smt.blocks import Operand, decode, quiet_nan
from mmaformal.formats import Format
from mmaformal.proof.composition import Composing
from mmaformal.proof.definitions import at_least, fit, is_rounded, last_index, read, rounds_between
from mmaformal.proof.sticky_sums import is_sharp

_BELOW = 3  #: places below the larger operand's last one that an addition keeps


def finite(code: z3.BitVecRef, fmt: Format) -> z3.BoolRef:
    x = decode(code, fmt)
    return z3.Not(z3.Or(x.infinite, x.nan))


@dataclass(frozen=True)
class Addition:
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
        fmt = self.fmt
        bits = (1 << fmt.exponent_bits) + fmt.fraction_bits + _BELOW + 3
        high, low = (fit(v.significand, bits) << _BELOW for v in (large, small))
        high = high << fit(self.distance, bits)
        return z3.If(large.sign == small.sign, high + low, high - low)

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
    def rounded(self) -> z3.BoolRef:
        """That `code` is ρ of what is kept, or of all that is strictly between that and the next."""
        (m, lost), (large, _), fmt = self.kept, self.operands, self.fmt
        t = fit(large.field, fmt.exponent_bits + 4) - (fmt.bias + fmt.fraction_bits + _BELOW)
        top, negative = fmt.storage_bits - 1, large.sign == 1
        zero = z3.Extract(top - 1, 0, self.code) == 0
        one = is_rounded(m, t, self.code, self.rho, negative)
        all_between = rounds_between(m, t, self.code, self.rho, negative)
        sign = z3.Or(zero, z3.Extract(top, top, self.code) == large.sign)
        return z3.And(z3.Implies(lost, all_between), z3.Implies(z3.Not(lost), one), sign)

    @property
    def is_kept(self) -> z3.BoolRef:
        """That the exact sum is what is kept, and more only if that is said: then it is between that and the next."""
        (m, lost), exact = self.kept, self.exact
        distance = fit(self.distance, exact.size())
        rest = exact & ~(z3.BitVecVal(-1, exact.size()) << distance)
        return z3.And(z3.LShR(exact, distance) == fit(m, exact.size()), lost == (rest != 0))

    def is_sum(self, z: z3.BitVecRef) -> z3.BoolRef:
        """Whether the exact sum has the magnitude of z, a number of the format."""
        index, t = z3.Extract(self.fmt.storage_bits - 2, 0, z), self._place
        number = is_sharp(*read(index, t.size(), self.rho), self.exact, t)
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
        """That where both are numbers, `code` is ρ of what is kept of their sum, or of all that is just above it."""
        text = f"an addition in {self.fmt} is the exact sum of two finite numbers, rounded once"
        claim = z3.Implies(self.finite, self.rounded)
        return proving.claim(f"addition in {self.fmt}", text, claim, (), [self.x, self.y])

    def prove(self, proving: Composing) -> z3.BoolRef:
        """That where both are numbers, `code` is ρ of their exact sum."""
        kept = z3.Implies(self.finite, self.is_kept)
        text = "what is kept of a sum is all of it but for its last places, and whether those are 0"
        proving.claim(f"sum in {self.fmt}", text, kept, (), [self.x, self.y])
        return z3.And(self.prove_rounded(proving), kept)

    def prove_number(self, proving: Composing, z: z3.BitVecRef) -> z3.BoolRef:
        """That where z is a number of the format, and the exact sum, the result is z."""
        fmt, top = self.fmt, self.fmt.storage_bits - 2
        is_it = z3.And(self.finite, self.is_sum(z))
        claim = z3.Implies(is_it, z3.Extract(top, 0, self.code) == z3.Extract(top, 0, z))
        text = f"if the sum is a number of {fmt}, the result is that number"
        return proving.claim(f"number of {fmt}", text, claim, (), [self.x, self.y])


def prove_addition(proving: Composing, rho: Conversion) -> None:
    """That `ieee.add` of any two finite codes is their exact sum, rounded once."""
    x, y = z3.BitVecs("x y", rho.format.storage_bits)
    Addition(x, y, ieee.add(x, y, rho, quiet_nan(rho.format)).result, rho).prove_rounded(proving)
