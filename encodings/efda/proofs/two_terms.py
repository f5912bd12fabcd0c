"""The sum of two terms with a sticky last place is the exact one, or odd with room for rounding and less than one unit
off: what is kept of both terms, compared by `at_least` in `exact_steps`, is so as integers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import z3

from mmaformal.encodings.smt.blocks import Term
from mmaformal.facts.exact_steps import Sticky
from mmaformal.proof.definitions import fit
from mmaformal.proof.sticky_sums import has_room
from mmaformal.theory.fixed_point import Scaled, WideNumbers
from mmaformal.theory.rounded_sums import Kept, NearSum, Part, Shown


@dataclass(frozen=True)
class TwoTerms:
    """Claims about the sum of a step; those of `exact_steps` by their names."""

    w: WideNumbers
    terms: Sticky
    said: Mapping[str, z3.BoolRef]

    def size(self, x: Term, bits: int) -> Scaled:
        """The magnitude of one of the two terms, of so many fraction bits."""
        low = self.terms.exponents.low
        return Scaled(x.significand, fit(x.exponent, self.w.exponent_bits) + (low - bits))

    @property
    def first(self) -> Scaled:
        return self.size(self.terms.x, self.terms.x_bits)

    @property
    def addend(self) -> Scaled:
        return self.size(self.terms.y, self.terms.y_bits)

    @property
    def exact(self) -> z3.BitVecRef:
        x, y = self.terms.x, self.terms.y
        return self.w.number(x.sign, self.first) + self.w.number(y.sign, self.addend)

    def prove(self) -> Shown:
        """Raises NotProvedError."""
        w, s, kept, total = self.w, self.terms, Kept(self.w), self.terms.sum.total
        u = fit(s.sum.e_max, w.exponent_bits) + (s.exponents.low - s.frame)
        in_u = w.in_range(u, [self.said["least e_max"]])
        sizes, ranges = (self.first, self.addend), []
        for size, known in zip(sizes, s.invariants, strict=True):
            ranges.append(w.in_range(size.t, [known]))
        x = Part(s.x.sign, Scaled(s.sum.x, u), self.first)
        y = Part(s.y.sign, Scaled(s.sum.y, u), self.addend)
        given = [kept.prove(part, [in_u, each]) for part, each in zip((x, y), ranges, strict=True)]
        given += kept.sum_of_two(total, x, y)
        values = [(kept.kept(part), kept.number(part)) for part in (x, y)]
        given += kept.off_by_one(w.point.signed(total, u), w.point.unit(u), (values[0], values[1]))
        given += [self.said["room"], self.said["larger exponent"]]
        given += [
            self.said[f"{name} {what}"] for name in ("product", "c") for what in ("sticky", "at the top")
        ]
        sum_ = NearSum(total, u, has_room(total, s.sum.e_max, s.exponents, s.frame, s.rho))
        text = "the sum is the exact one, or odd with room, and less than one unit off"
        claim = w.follows("sum of two terms", text, sum_.claim(w, self.exact), given)
        rooms = [w.roomy(size, each).arg(0) for size, each in zip(sizes, ranges, strict=True)]
        text = "the sum is far from the ends"
        far = w.of_sums("range of the sum of both", text, w.point.is_near(self.exact, 5), rooms)
        return Shown(sum_, self.exact, claim, in_u, far)
