"""Claims of what a sum with a sticky last place is worth: an integer that is exact, or odd and less than one unit off.

Rounding by ρ cannot tell such an integer from the number it stands for, wherever ρ's boundaries, midpoints among them,
are even multiples of the unit (`has_room`): Goldberg's sticky bit, here as lemmas about bit-vectors.
"""

from __future__ import annotations

from dataclasses import dataclass

import z3

from mmaformal.encodings.smt.blocks import ExponentRange, Special, StickySum, Term, resize
from mmaformal.proof.composition import Composing
from mmaformal.proof.definitions import at_least, fit, is_rounded, rounds_around
from mmaformal.proof.fixed_sums import limited
from mmaformal.rounding import Conversion, Rounding


def wide_enough(exponents: ExponentRange, frame: int, rho: Conversion) -> int:
    """Bits of two's complement for any difference of exponents that a step compares."""
    reaches = (exponents.low - frame, exponents.high, 1 << (rho.format.exponent_bits + 1), exponents.bits)
    return max(exponents.bits, *(abs(e).bit_length() for e in reaches)) + 3


def is_larger(sum_: StickySum, x: Term, y: Term) -> z3.BoolRef:
    """Return the claim that e_max is the larger of two exponents."""
    e_max = sum_.e_max
    return z3.And(
        z3.ULE(x.exponent, e_max),
        z3.ULE(y.exponent, e_max),
        z3.Or(x.exponent == e_max, y.exponent == e_max),
    )


def is_odd(x: z3.BitVecRef) -> z3.BoolRef:
    return z3.Extract(0, 0, x) == 1


def is_sharp(A: z3.BitVecRef, unit: z3.BitVecRef, m: z3.BitVecRef, t: z3.BitVecRef) -> z3.BoolRef:
    """Whether A · 2^unit = m · 2^t."""
    return z3.And(at_least(A, unit, m, t), at_least(m, t, A, unit))


def is_around(A: z3.BitVecRef, unit: z3.BitVecRef, m: z3.BitVecRef, t: z3.BitVecRef) -> z3.BoolRef:
    """Whether (A − 1) · 2^unit < m · 2^t < (A + 1) · 2^unit; A is not 0."""
    B = fit(A, A.size() + 1)
    return z3.And(z3.Not(at_least(B - 1, unit, m, t)), z3.Not(at_least(m, t, B + 1, unit)))


@dataclass(frozen=True)
class AlignedMagnitude:
    """A term, and its magnitude A in units of 2^(e_max − frame), as `sticky_sum` aligns it.

    The term has `bits` fractional bits.  Exponents are compared in two's complement of as many bits as `unit` has.
    """

    name: str
    term: Term
    bits: int
    magnitude: z3.BitVecRef
    e_max: z3.BitVecRef
    unit: z3.BitVecRef  #: e_max − frame
    exponents: ExponentRange
    frame: int

    @property
    def place(self) -> z3.BitVecRef:
        """The exponent of the term's last place."""
        return fit(self.term.exponent, self.unit.size()) + (self.exponents.low - self.bits)

    @property
    def sharp(self) -> z3.BoolRef:
        return is_sharp(self.magnitude, self.unit, self.term.significand, self.place)

    def prove(self, proving: Composing) -> z3.BoolRef:
        """Prove that A is exact, or odd and less than one unit off, from that e_max is not below the term's exponent;
        and exact and even where it is that.  Returns that it is exact.  Raises NotProvedError.

        By how far the term is shifted, a lemma for each distance: there every shift is by a constant.
        """
        far, (name, A, unit) = self.e_max - self.term.exponent, (self.name, self.magnitude, self.unit)
        under, up = z3.ULE(self.term.exponent, self.e_max), self.frame - self.bits
        text = "exponents of last places are as far apart as exponents, but for the places of the frame"
        by = fit(far, unit.size())
        apart = z3.And(self.place - unit == up - by, unit - self.place == by - up)
        proving.claim(f"{name} places", text, apart, [under])
        places = _no_further(far, A.size())
        text = "a term is as far from e_max as it is shifted, or is shifted by all its places"
        beyond = (1 << places.size()) - 1
        known = z3.Or(far == resize(places, far.size()), z3.And(places == beyond, z3.UGE(far, beyond)))
        shift = proving.claim(f"{name} shift", text, known)
        around = z3.And(is_odd(A), is_around(A, unit, self.term.significand, self.place))
        text = "an aligned magnitude is exact, or odd and less than one unit off"
        cut = [far, self.place - unit, unit - self.place, self.term.significand]
        proving.claim_each(f"{name} sticky", text, z3.Or(self.sharp, around), places, [apart, shift], cut)
        at_top = z3.Implies(self.term.exponent == self.e_max, z3.And(self.sharp, z3.Not(is_odd(A))))
        proving.claim(f"{name} at the top", "the term of the larger exponent is exact and even", at_top)
        return self.sharp


def _no_further(distance: z3.BitVecRef, places: int) -> z3.BitVecRef:
    """A distance, or the largest number of as many bits as a number of places has, if it is no less than that."""
    bits = places.bit_length()
    if distance.size() <= bits:
        return distance
    most = z3.BitVecVal(-1, bits)
    return z3.If(z3.UGE(distance, (1 << bits) - 1), most, z3.Extract(bits - 1, 0, distance))


def is_small(total: z3.BitVecRef) -> z3.BoolRef:
    """Whether a sum of two is not beyond its width, as `prove_parity` claims."""
    return limited(total, 2 * ((1 << (total.size() - 2)) - 1))


def prove_parity(proving: Composing, sum_: StickySum) -> z3.BoolRef:
    """Prove that a sum does not wrap, and is odd if one of its two terms is; returns that it is not beyond its
    width."""
    small = is_small(sum_.total)
    parities = z3.Extract(0, 0, sum_.x) ^ z3.Extract(0, 0, sum_.y)
    claim = z3.And(small, z3.Extract(0, 0, sum_.total) == parities)
    proving.claim("sum", "the sum does not wrap, and is odd if one of the two is", claim)
    return small


def e_max_in_range(
    e_max: z3.BitVecRef, exponents: ExponentRange, rho: Conversion, least: int | None = None
) -> z3.BoolRef:
    """Return the claim that e_max is in its range, from `least` on, or from the least exponent of ρ's format."""
    return z3.And(
        z3.UGE(e_max, exponents.constant(rho.format.min_exponent if least is None else least)),
        z3.ULE(e_max, exponents.constant(exponents.high)),
    )


def prove_rounded(
    proving: Composing,
    sum_: tuple[z3.BitVecRef, z3.BitVecRef, int],
    exponents: ExponentRange,
    rho: Conversion,
    outcome: tuple[Special, z3.BitVecRef],
    premises: list[z3.BoolRef],
) -> None:
    """Prove that d is ρ of a sum (total, e_max, frame), and of what is around it where it is odd and has room.

    `outcome` is what is special of the step, and the code of d.
    """
    prove_rounded_sum(proving, sum_, exponents, rho, outcome, premises)
    (total, e_max, frame), (special, code) = sum_, outcome
    unit = fit(e_max, wide_enough(exponents, frame, rho)) + (exponents.low - frame)
    room = has_room(total, e_max, exponents, frame, rho)
    negative, m = magnitude_of(total)
    none = z3.Not(z3.Or(*special))
    proving.claim(
        f"rounded by {rho} around",
        "and where the sum is odd and there is room, of all that is less than one unit off",
        z3.Implies(z3.And(none, is_odd(total), room), rounds_around(m, unit, code, rho, negative)),
        premises,
        [total, e_max, *special],
    )


def prove_rounded_sum(
    proving: Composing,
    sum_: tuple[z3.BitVecRef, z3.BitVecRef, int],
    exponents: ExponentRange,
    rho: Conversion,
    outcome: tuple[Special, z3.BitVecRef],
    premises: list[z3.BoolRef],
) -> None:
    """Prove that d is ρ of a sum, as `prove_rounded` has it, and of nothing else."""
    (total, e_max, frame), (special, code) = sum_, outcome
    unit = fit(e_max, wide_enough(exponents, frame, rho)) + (exponents.low - frame)
    negative, m = magnitude_of(total)
    sign = z3.Extract(code.size() - 1, code.size() - 1, code) == 1
    zero = z3.Extract(code.size() - 2, 0, code) == 0
    proving.claim(
        f"rounded by {rho}",
        f"d is {rho} of the sum: by definition, no other number of the format is the right one",
        z3.Implies(
            z3.Not(z3.Or(*special)),
            z3.And(is_rounded(m, unit, code, rho, negative), z3.Or(zero, m == 0, sign == negative)),
        ),
        premises,
        [total, e_max, *special],
    )


def has_room(
    total: z3.BitVecRef, e_max: z3.BitVecRef, exponents: ExponentRange, frame: int, rho: Conversion
) -> z3.BoolRef:
    """Whether a sum has at least two places below the last one that ρ keeps, or u is two below the least of all.

    To odd it may have none: then an odd sum is what all around it is rounded to.
    """
    p, below = rho.fraction_bits, 0 if rho.rounding is Rounding.RO else 2
    _, m = magnitude_of(total)
    least = rho.format.min_exponent - p - below + frame
    large = z3.UGE(m, 1 << (p + below))
    if least < exponents.low:
        return large
    return z3.Or(large, z3.ULE(e_max, exponents.constant(min(least, exponents.high))))


def magnitude_of(total: z3.BitVecRef) -> tuple[z3.BoolRef, z3.BitVecRef]:
    """(whether it is negative, its magnitude) of a two's complement number that is not the least one."""
    top = total.size() - 1
    negative = z3.Extract(top, top, total) == 1
    return negative, z3.Extract(top - 1, 0, z3.If(negative, -total, total))
