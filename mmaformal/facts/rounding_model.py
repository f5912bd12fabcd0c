"""fl(x) = x(1 + δ) + η, |δ| ≤ u, |η| ≤ g_min, δη = 0: the model of rounding that error analysis is made of.

(J. Demmel, 1984; T. Mary and M. Mikaitis, 2024, equation (2.3).)  It is proved of the codes of a format.  Let v be the
number of a code that is not negative, w that of the next one, and q = w − v.  A real number x of v ≤ x < w is

    x = v + (g + h) · q/4,     g one of 0, 1, 2, 3,  0 ≤ h < 1,

and all that is asked of h is whether it is 0.  So this is about every real number up to the largest one of the format;
of negative ones since a code and that of the other sign have the same magnitude.

1. *neighbours*: w = v + q, q being v's last place: 2^(e − M) for a v of exponent e, M fraction bits;
2. *significand*: v is at least 2^M last places, or its last place is that of the least normal number f_min;
3. *error*: where x is at least f_min it is off by at most u·x = 2^-(M+1)·x, which is δ, and η = 0; else by at most
   g_min = q/2, which is η, and δ = 0.  If x is cut toward zero, or to odd, it is 2u and 2·g_min.

Without subnormals f_min and 0 are the neighbours of what is between them, q is f_min there, and g_min = f_min/2.
"""

from __future__ import annotations

from typing import NamedTuple

import z3

from mmaformal.encodings.smt.blocks import Operand, decode
from mmaformal.formats import Format
from mmaformal.proof.definitions import fit
from mmaformal.proof.kernel import Link, Theorem


class Real(NamedTuple):
    """Where a real number lies between two numbers, and which of them it is rounded to."""

    quarters: z3.BitVecRef  #: g
    more: z3.BoolRef  #: whether h is not 0
    up: z3.BoolRef  #: whether it is rounded to the one above

    @classmethod
    def any(cls) -> Real:
        return cls(z3.BitVec("quarters", 2), z3.Bool("more"), z3.Bool("up"))

    def nearest(self, odd: z3.BoolRef) -> z3.BoolRef:
        """Return the claim that it is rounded to the nearer one; of two as near, to the even one.  `odd`: whether
        that below is odd."""
        tie = z3.And(self.quarters == 2, z3.Not(self.more))
        return self.up == z3.If(tie, odd, z3.UGE(self.quarters, 2))

    def to_odd(self, odd: z3.BoolRef) -> z3.BoolRef:
        """Return the claim that it is that below, or else the odd one of both.  `odd`: whether that below is odd."""
        return self.up == z3.And(z3.Or(self.quarters != 0, self.more), z3.Not(odd))

    def off(self, bits: int) -> z3.BitVecRef:
        """In quarters, what rounding is off: for h in its range no more than that."""
        g, one = fit(self.quarters, bits), z3.BitVecVal(1, bits)
        return z3.If(self.up, 4 - g, z3.If(self.more, g + one, g))


def argue_rounding(
    fmt: Format, *, subnormals: bool = True, nearest: bool = True, to_odd: bool = False
) -> Theorem:
    """The theorem of a format with signs and zero; `nearest`, or toward zero, or `to_odd`."""
    M, bits = fmt.fraction_bits, fmt.storage_bits
    code = z3.BitVec("code", bits)
    low = z3.BitVecVal(1 << fmt.ignored_low_bits, bits)
    v, w = decode(code, fmt), decode(code + low, fmt)
    negative = decode(code | fmt.sign_mask, fmt)
    x, theorem = Real.any(), Theorem()

    numbers = z3.And(v.sign == 0, w.sign == 0, _is_number(v), _is_number(w))
    ends = theorem.assume("x lies between the numbers of neighbouring codes", Link(numbers))
    neighbours, same = Link(_neighbours(v, w, M)), Link(_same_magnitude(v, negative))
    text = "the next number is one last place above"
    theorem.derive("neighbours", text, [neighbours], [ends], [code])
    text = "the code of the other sign has the same magnitude, unless that is 0"
    theorem.derive("neighbours", text, [same], [ends], [code])
    normal = Link(_significand(v, M), free=(v.significand, v.field))
    theorem.derive(
        "significand", "a number has its leading bit or the least exponent", [normal], [ends], [code]
    )

    wide = 2 * M + 6
    s = fit(v.significand, wide)
    of_normal = z3.UGE(v.significand, 1 << M)
    if not subnormals:  # below f_min, what is next below is 0, and f_min is the last place
        s = z3.If(of_normal, s, z3.BitVecVal(0, wide))
    odd = z3.Extract(0, 0, s) == 1
    rounded = x.to_odd(odd) if to_odd else x.nearest(odd) if nearest else z3.Not(x.up)
    how = "to the nearer one, or of two as near to the even one" if nearest else "toward zero"
    how = "to the odd one, unless it is that below" if to_odd else how
    nearest &= not to_odd
    rounding = theorem.assume(f"x is rounded {how}", Link(rounded, free=(v.significand,)))
    inputs = [x.quarters, x.more, x.up]
    error = Link(_error(x, s=s, M=M, of_normal=of_normal, nearest=nearest))
    u, g = ("u", "g_min") if nearest else ("2u", "2·g_min")
    text = f"x of f_min and more is off by at most {u}·|x|, and less by at most {g}"
    theorem.derive("error", text, [error], [normal, rounding], inputs)
    whole = Link(z3.And(neighbours.said, same.said, normal.said, error.said))
    parts = [neighbours, same, normal, error]
    theorem.derive("together", "all of this holds", [whole], parts, [code, *inputs])
    theorem.conclude(f"fl(x) = x(1 + δ) + η, |δ| ≤ {u}, |η| ≤ {g}, δη = 0, for numbers of {fmt}", whole)
    return theorem


def _is_number(x: Operand) -> z3.BoolRef:
    return z3.Not(z3.Or(x.infinite, x.nan))


def _neighbours(v: Operand, w: Operand, M: int) -> z3.BoolRef:
    """w = v + 1 last place of v: with the same exponent, or as the first number of the next one."""
    s, t = fit(v.significand, M + 2), fit(w.significand, M + 2)
    field, after = fit(v.field, v.field.size() + 1), fit(w.field, w.field.size() + 1)
    within = z3.And(after == field, t == s + 1)
    return z3.Or(within, z3.And(after == field + 1, t << 1 == s + 1))


def _same_magnitude(v: Operand, negative: Operand) -> z3.BoolRef:
    """Zero has no such code where that code is a NaN."""
    same = z3.And(negative.significand == v.significand, negative.field == v.field)
    signed = z3.And(negative.sign == 1, _is_number(negative), same)
    return z3.Or(v.significand == 0, signed)


def _significand(v: Operand, M: int) -> z3.BoolRef:
    return z3.And(z3.Or(z3.UGE(v.significand, 1 << M), v.field == 1), v.field != 0)


def _error(x: Real, s: z3.BitVecRef, M: int, of_normal: z3.BoolRef, nearest: bool) -> z3.BoolRef:
    """In quarters of the last place, of which v has 4s: what is off, times 1/u, is at most x; or, of an x below f_min,
    it is at most two quarters.  Toward zero, twice as much."""
    off = x.off(s.size())
    least = (s << 2) + fit(x.quarters, s.size())  # x is that or more
    places, most = (M + 1, 2) if nearest else (M, 4)
    return z3.If(of_normal, z3.ULE(off << places, least), z3.ULE(off, most))
