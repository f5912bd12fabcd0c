"""d has the sign of the exact sum, if that is not zero; and is a zero of a known sign if it is.

Of a sum T · 2^u that is the exact one, or odd and less than one unit off (`NearSum`), with the magnitude M · 2^u: M is
zero where the exact sum is, and else both have one sign.  So what d is by the sum's sign, it is by the exact one's.
"""

from __future__ import annotations

from dataclasses import dataclass

import z3

from mmaformal.proof.sticky_sums import is_odd
from mmaformal.proof.wide_numbers import Scaled, WideNumbers, near
from mmaformal.theory.rounded_sums import RoundedOnce


@dataclass(frozen=True)
class SignOfSum:
    """A step's last sum and d; `zero` is the sign of an exact zero."""

    once: RoundedOnce
    zero: z3.BitVecRef

    @property
    def w(self) -> WideNumbers:
        return self.once.w

    def signed(self, zero: z3.BoolRef, negative: z3.BoolRef) -> z3.BoolRef:
        """Whether d is the zero of its sign where the sum is, and else has the sum's sign."""
        code = self.once.code
        own = z3.Concat(self.zero, z3.BitVecVal(0, code.size() - 1))
        return z3.And(
            z3.Implies(zero, code == own), z3.Implies(z3.Not(zero), self.once.grid.sign(code) == negative)
        )

    @property
    def statement(self) -> z3.BoolRef:
        exact = self.once.exact
        return z3.Implies(self.once.nothing_special, self.signed(exact == 0, exact < 0))

    def prove(self, known: z3.BoolRef, in_u: z3.BoolRef, far: z3.BoolRef) -> z3.BoolRef:
        """`statement`; what is known is as for `RoundedOnce.prove`.  Raises NotProvedError."""
        once, w, total = self.once, self.w, self.once.sum.total
        own = self.signed(total == 0, once.sum.negative)
        text = "d has the sign of the sum, and of a sum of zero the sign that zeros have"
        said = w.theory.claim("sign of d", text, z3.Implies(once.nothing_special, own))
        exact, negative, m = once.exact, once.sum.negative, once.sum.magnitude.m
        same = self._prove_same(known, in_u, far)
        none = z3.And((total == 0) == (exact == 0), z3.Or(exact == 0, negative == (exact < 0)))
        least = once.sum.prove_least(w)
        claim = z3.And((total == 0) == (m == 0), z3.Implies(m == 0, z3.Not(is_odd(total))))
        text = "a sum is zero as its magnitude is"
        zero = w.theory.claim("zero sum", text, claim, [least])
        text = "the sum is zero where the exact one is, and has its sign"
        signs = w.follows("signs of both", text, none, [same, zero])
        goal, text = self.statement, "d has the sign of the exact sum"
        return w.follows("sign of the exact sum", text, goal, [said, signs])

    def _prove_same(self, known: z3.BoolRef, in_u: z3.BoolRef, far: z3.BoolRef) -> z3.BoolRef:
        """That the exact sum is zero where the magnitude is, and else has its sign."""
        once, w, u = self.once, self.w, self.once.sum.u
        x, size, p, m, exact = once.x, once.size, once.unit, once.sum.magnitude, once.exact
        below = Scaled(m.m - 1, u)
        distance = once.prove_distance(once.sum.prove_sign(w))
        rooms = [w.roomy(each, in_u) for each in (m, below)]
        next_ = w.one_more(m.m, below, m)
        text = "with its sign, too"
        small = w.theory.claim("range with a sign", text, w.point.is_near(x, 4), [far])
        off, some = z3.Or(size == x, near(size, x, p)), z3.Not(m.m == 0)
        under, value = w.value(below) - x < 0, w.value(below)
        claim = z3.Implies(size == value + p, (size - x - p < 0) == under)
        text = "one unit less is the number below"
        moved = w.theory.claim("number below", text, claim)
        text = "what is above a number that is not negative is positive"
        above = z3.Implies(under, x > 0)
        above = w.theory.claim("above", text, above, [rooms[1].arg(0), small])
        itself = z3.Implies(z3.And(some, size == x), x > 0)
        itself = w.theory.claim("positive", "so is a magnitude", itself, [rooms[0]])
        text = "what is less than one unit from a number of units that is not zero is on its side of zero"
        given = [next_, moved, above, itself]
        side = w.follows("side of zero", text, z3.Implies(z3.And(some, off), x > 0), given)
        text = "and zero is zero"
        nothing = z3.Implies(z3.And(z3.Not(some), size == x), x == 0)
        nothing = w.theory.claim("no sum, no number", text, nothing, [rooms[0]])
        claim = z3.And(
            z3.Implies(x > 0, z3.And(z3.Not(exact == 0), once.sum.negative == (exact < 0))),
            z3.Implies(x == 0, exact == 0),
        )
        signs = w.theory.claim("sign", "with the sign of the sum", claim, [far])
        total = once.sum.total
        odd = w.theory.claim("odd magnitude", "an odd sum is not zero", z3.Implies(is_odd(total), some))
        goal = z3.And(
            z3.Implies(some, z3.And(z3.Not(exact == 0), once.sum.negative == (exact < 0))),
            z3.Implies(z3.Not(some), exact == 0),
        )
        text = "the exact sum has the sign of the sum, and is zero where that is"
        return w.follows("same side", text, goal, [known, distance, side, nothing, signs, odd])
