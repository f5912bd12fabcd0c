"""Rounding by definition: in rationals, and as a claim about bit-vector terms.

Neither is how an encoding rounds.  A number x is rounded correctly to a code if no other code of the kind is nearer
(RNE, RNA; at equal distance the even one, the larger one), or nearer but not above |x| (RZ), or not below it (away from
zero), or is x or the odd one of its neighbours (RO): a statement about the code, its two neighbours, and x.  A
stochastic rounding of given random bits goes away from zero from one place between two neighbours on.  RD is away
from zero for a negative x, else RZ; RU the other way about.  Overflow is part of it: infinity is the code after the
largest, and stands for 2^(e_max + 1); with IEEE 754's directed roundings (`Conversion.ieee`) a finite number that is
rounded toward zero never is infinity.
"""

from __future__ import annotations

from fractions import Fraction
from math import floor

import z3

from mmaformal.formats import Format, Specials
from mmaformal.proof.kernel import NotProvedError, demand
from mmaformal.rounding import Conversion, Rounding, Saturation

# ---- in rationals ------------------------------------------------------------------------------------------------


def grid_value(index: int, rho: Conversion) -> Fraction:
    """The magnitude of the index-th number that ρ can give, counted from 0; infinity counts as 2^(e_max + 1)."""
    field, fraction = divmod(index, 1 << rho.fraction_bits)
    significand = fraction + ((1 << rho.fraction_bits) if field else 0)
    return Fraction(significand) * Fraction(2) ** (max(field, 1) - rho.format.bias - rho.fraction_bits)


def last_index(rho: Conversion) -> int:
    """The index of infinity.

    Raises NotProvedError for e4m3, and for a result of P3109 that overflows otherwise than to the infinity that follows
    the largest number: as saturation says, or with a rounding that is directed or to odd.
    """
    fmt = rho.format
    if rho.saturation is not None and fmt.specials is not Specials.IEEE:
        outward = rho.rounding in (Rounding.RNE, Rounding.RNA) or rho.rounding.is_stochastic
        outward = outward and rho.saturation is Saturation.NONE
        follows = fmt.signed and fmt.infinity is not None and fmt.fraction_bits > 0
        if not (outward and follows):
            raise NotProvedError("rounding", "unknown", f"there is no definition of rounding with {rho}")
        return fmt.largest + 1
    return ((1 << rho.format.exponent_bits) - 1) << rho.fraction_bits


def index_below(x: Fraction, rho: Conversion) -> int:
    """The index of the largest number of ρ's that is not above |x|."""
    low, high = 0, last_index(rho)
    while low < high:
        middle = (low + high + 1) // 2
        if grid_value(middle, rho) <= abs(x):
            low = middle
        else:
            high = middle - 1
    return low


def index_of(code: int, rho: Conversion) -> int | None:
    """The index of a code's magnitude; None for a NaN, and for a code that ρ cannot give."""
    drop = rho.format.fraction_bits - rho.fraction_bits
    magnitude = code & (rho.format.sign_mask - 1)
    index = magnitude >> drop
    return index if magnitude == index << drop and index <= last_index(rho) else None


def rounded_index(x: Fraction, rho: Conversion) -> int:
    """The index of ρ(x)."""
    below, last = index_below(x, rho), last_index(rho)
    inward = {Rounding.RZ: True, Rounding.RD: x > 0, Rounding.RU: x < 0}.get(rho.rounding, True)
    if rho.stays and inward and below >= last - 1:
        return last - 1
    if below == last:
        return below
    inexact = abs(x) != grid_value(below, rho)
    if rho.rounding.is_stochastic:
        gap = grid_value(below + 1, rho) - grid_value(below, rho)
        return below + _carries((abs(x) - grid_value(below, rho)) / gap, rho)
    twice = 2 * abs(x) - grid_value(below, rho) - grid_value(below + 1, rho)
    up = {
        Rounding.RZ: False,
        Rounding.RNE: twice > 0 or (twice == 0 and below % 2 == 1),
        Rounding.RNA: twice >= 0,
        Rounding.RD: inexact and x < 0,
        Rounding.RU: inexact and x > 0,
        Rounding.RO: inexact and below % 2 == 0,
    }
    return below + up[rho.rounding]


def _carries(lost: Fraction, rho: Conversion) -> bool:
    """Whether a stochastic rounding goes away from zero where `lost`, of a unit in the last place, would be cut off."""
    places, number = rho.random_bits, rho.random
    if rho.rounding is Rounding.SB:
        return floor(lost * (2 << places)) + 2 * number + 1 >= 2 << places
    scaled = lost * (1 << places)
    return (round(scaled) if rho.rounding is Rounding.SC else floor(scaled)) + number >= 1 << places


def _is_negative(code: int, fmt: Format) -> bool:
    return bool(code & fmt.sign_mask)


def is_correct(code: int, x: Fraction, rho: Conversion) -> bool:
    """Whether a code is ρ(x); zeros of either sign are zero."""
    index = rounded_index(x, rho)
    return index_of(code, rho) == index and (index == 0 or _is_negative(code, rho.format) == (x < 0))


def is_faithful(code: int, x: Fraction, rho: Conversion) -> bool:
    """Whether a code is one of the two neighbours of x among ρ's numbers, or x itself where that is one of them."""
    below = index_below(x, rho)
    index = index_of(code, rho)
    beyond = below == last_index(rho)
    exact = not beyond and grid_value(below, rho) == abs(x)
    allowed = (
        (below,)
        if exact or (beyond and not rho.stays)
        else (below - 1, below)
        if beyond
        else (below, below + 1)
    )
    return index in allowed and (index == 0 or _is_negative(code, rho.format) == (x < 0))


# ---- as a claim about terms --------------------------------------------------------------------------------------


def fit(x: z3.BitVecRef, bits: int) -> z3.BitVecRef:
    """x zero-extended to `bits`, no fewer than its own."""
    demand(bits >= x.size(), "a term does not fit fewer bits than it has")
    return z3.ZeroExt(bits - x.size(), x) if bits > x.size() else x


def at_least(m: z3.BitVecRef, t: z3.BitVecRef, n: z3.BitVecRef, q: z3.BitVecRef) -> z3.BoolRef:
    """Whether `m · 2^t ≥ n · 2^q`, exactly.  m, n unsigned; t, q two's complement of one width, which holds q - t.

    Where the exponents are further apart than the other number is long, no shift is needed to tell.
    """
    bits, shift = m.size() + n.size() + 1, q - t
    wide = max(bits, shift.size())
    long, short = fit(m, wide), fit(n, wide)

    def by(x: z3.BitVecRef, amount: z3.BitVecRef) -> z3.BitVecRef:
        return x << fit(amount, wide)

    n_up = z3.If(shift > m.size(), n == 0, z3.UGE(long, by(short, shift)))
    m_up = z3.If(-shift > n.size(), z3.Or(m != 0, n == 0), z3.UGE(by(long, -shift), short))
    return z3.If(shift >= 0, n_up, m_up)


def is_rounded(
    m: z3.BitVecRef, t: z3.BitVecRef, code: z3.BitVecRef, rho: Conversion, negative: z3.BoolRef
) -> z3.BoolRef:
    """Whether the magnitude of `code` is that of ρ(±m · 2^t), by the definition above; −m where it is `negative`.

    t is in two's complement, and wide enough for any difference of it and an exponent of ρ's format, plus 2.
    """
    return _rounds(m, t, m, code, rho, negative)


def rounds_between(
    m: z3.BitVecRef, t: z3.BitVecRef, code: z3.BitVecRef, rho: Conversion, negative: z3.BoolRef
) -> z3.BoolRef:
    """Whether the magnitude of `code` is that of ρ(±x) for every x strictly between m · 2^t and (m + 1) · 2^t."""
    return _rounds(m, t, fit(m, m.size() + 1) + 1, code, rho, negative)


def rounds_around(
    m: z3.BitVecRef, t: z3.BitVecRef, code: z3.BitVecRef, rho: Conversion, negative: z3.BoolRef
) -> z3.BoolRef:
    """Whether the magnitude of `code` is that of ρ(±x) for every x strictly between (m ± 1) · 2^t; m is not 0."""
    return _rounds(m - 1, t, fit(m, m.size() + 1) + 1, code, rho, negative)


def _rounds(
    m: z3.BitVecRef,
    t: z3.BitVecRef,
    top: z3.BitVecRef,
    code: z3.BitVecRef,
    rho: Conversion,
    negative: z3.BoolRef,
) -> z3.BoolRef:
    """Claim that `code` is what m · 2^t rounds to, if `top` is m; else so of all strictly between it and top · 2^t."""
    if rho.rounding in (Rounding.RD, Rounding.RU):
        away, toward = (_rounds_alike(m, t, top, code, rho, alike) for alike in (None, Rounding.RZ))
        return z3.If(negative if rho.rounding is Rounding.RD else z3.Not(negative), away, toward)
    return _rounds_alike(m, t, top, code, rho, rho.rounding)


def _rounds_alike(
    m: z3.BitVecRef,
    t: z3.BitVecRef,
    top: z3.BitVecRef,
    code: z3.BitVecRef,
    rho: Conversion,
    rounding: Rounding | None,
) -> z3.BoolRef:
    """`_rounds` with a rounding that is the same for both signs, or away from zero: None."""
    fmt, keep, one_number = rho.format, rho.fraction_bits, top.eq(m)
    demand(not fmt.ignored_low_bits, "a format whose low bits are ignored")
    drop = fmt.fraction_bits - keep
    index = z3.Extract(fmt.storage_bits - 2, drop, code)
    infinity = z3.BitVecVal(last_index(rho), index.size())
    possible = [z3.ULE(index, infinity)]
    if drop:
        possible.append(z3.Extract(drop - 1, 0, code) == 0)

    significand, q = code_parts(index, t.size(), rho)
    if rho.stays and rounding is not None:
        infinity = infinity - 1  # the largest number, of all that is larger
        possible.append(z3.ULE(index, infinity))
    if rounding is Rounding.RZ:
        next_up = significand + 1
        no_higher = z3.Not(at_least(m, t, next_up, q)) if one_number else at_least(next_up, q, top, t)
        return z3.And(*possible, at_least(m, t, significand, q), z3.Or(index == infinity, no_higher))

    field, fraction = z3.Extract(index.size() - 1, keep, index), z3.Extract(keep - 1, 0, index)
    even = z3.Extract(0, 0, index) == 0
    if rounding is Rounding.RO:
        between = (
            z3.Not(z3.Or(at_least(significand - 1, q, m, t), at_least(m, t, significand + 1, q)))
            if one_number
            else z3.And(at_least(m, t, significand - 1, q), at_least(significand + 1, q, top, t))
        )
        exact = z3.And(at_least(significand, q, m, t), one_number)
        even_one = z3.And(at_least(m, t, significand, q), z3.Or(index == infinity, exact))
        return z3.And(*possible, z3.If(even, even_one, between))
    if rounding is None:
        half, power = q - 1, z3.And(z3.UGT(field, 1), fraction == 0)
        last = 2 * significand - z3.If(power, z3.BitVecVal(1, keep + 5), 2)
        above_last = z3.Not(at_least(last, half, m, t)) if one_number else at_least(m, t, last, half)
        not_above = at_least(significand, q, top, t)
        return z3.And(*possible, z3.Or(index == infinity, not_above), z3.Or(index == 0, above_last))
    if rounding.is_stochastic:
        return z3.And(*possible, *_rounds_randomly(m, t, top, index, rho))
    demand(rounding in (Rounding.RNE, Rounding.RNA), f"no definition of {rounding.name} in definitions.py")
    lower, upper, quarter = midpoints(index, t.size(), rho)
    no_higher, no_lower = at_least(upper, quarter, top, t), at_least(m, t, lower, quarter)
    if one_number:
        below_upper = z3.Not(at_least(m, t, upper, quarter))
        if rounding is Rounding.RNA:
            no_higher = below_upper
        else:
            no_higher = z3.And(no_higher, z3.Or(even, below_upper))
            no_lower = z3.And(no_lower, z3.Or(even, z3.Not(at_least(lower, quarter, m, t))))
    return z3.And(*possible, z3.Or(index == infinity, no_higher), z3.Or(index == 0, no_lower))


def _rounds_randomly(
    m: z3.BitVecRef, t: z3.BitVecRef, top: z3.BitVecRef, index: z3.BitVecRef, rho: Conversion
) -> tuple[z3.BoolRef, z3.BoolRef]:
    """Whether the next number is not rounded to, and the index-th is: infinity and 0 always may be."""
    one_number, (lower, upper, q) = top.eq(m), _thresholds(index, t.size(), rho)
    low, high = (z3.Concat(x, z3.BitVecVal(0, rho.random_bits + 2)) for x in (m, top))
    below = z3.Not(_is_reached(upper, q, high, t, rho)) if one_number else at_least(upper, q, high, t)
    reached = _is_reached(lower, q, low, t, rho) if one_number else at_least(low, t, lower, q)
    return z3.Or(index == last_index(rho), below), z3.Or(index == 0, reached)


def _thresholds(
    index: z3.BitVecRef, bits: int, rho: Conversion
) -> tuple[z3.BitVecRef, z3.BitVecRef, z3.BitVecRef]:
    """(lower, upper, q): where a stochastic rounding begins to go to the index-th number, and to the next, in units of
    2^(q - N - 2) (`_is_reached`)."""
    keep, places = rho.fraction_bits, rho.random_bits
    significand, q = code_parts(index, bits, rho)
    own = z3.Concat(significand, z3.BitVecVal(0, places + 2))
    # From which part of the way to the next number on it is reached, in units of 2^-(N + 1).
    up = 2 * ((1 << places) - rho.random) - (rho.rounding is not Rounding.SA)
    field, fraction = z3.Extract(index.size() - 1, keep, index), z3.Extract(keep - 1, 0, index)
    # Below a power of two the spacing is half that above it.
    down = z3.If(z3.And(z3.UGT(field, 1), fraction == 0), z3.BitVecVal(1, own.size()), 2)
    return own - down * ((1 << (places + 1)) - up), own + 2 * up, q


def _is_reached(
    threshold: z3.BitVecRef, q: z3.BitVecRef, m: z3.BitVecRef, t: z3.BitVecRef, rho: Conversion
) -> z3.BoolRef:
    """Whether `m · 2^t` is at a threshold or above; above, where variant C has a tie that goes to an even number."""
    if rho.rounding is Rounding.SC and rho.random % 2:
        return z3.Not(at_least(threshold, q, m, t))
    return at_least(m, t, threshold, q)


def midpoints(
    index: z3.BitVecRef, bits: int, rho: Conversion
) -> tuple[z3.BitVecRef, z3.BitVecRef, z3.BitVecRef]:
    """(lower, upper, q): `lower · 2^q` and `upper · 2^q` lie halfway between the index-th number and its neighbours."""
    keep = rho.fraction_bits
    significand, q = code_parts(index, bits, rho)
    field, fraction = z3.Extract(index.size() - 1, keep, index), z3.Extract(keep - 1, 0, index)
    # Below a power of two the spacing is half that above it.
    down = z3.If(z3.And(z3.UGT(field, 1), fraction == 0), z3.BitVecVal(1, keep + 5), 2)
    return 4 * significand - down, 4 * significand + 2, q - 2


def code_parts(index: z3.BitVecRef, bits: int, rho: Conversion) -> tuple[z3.BitVecRef, z3.BitVecRef]:
    """The index-th number of ρ's as (significand, q), `significand · 2^q`; q of `bits` bits, two's complement."""
    keep = rho.fraction_bits
    field, fraction = z3.Extract(index.size() - 1, keep, index), z3.Extract(keep - 1, 0, index)
    normal = field != 0
    leading = z3.If(normal, z3.BitVecVal(1, 1), z3.BitVecVal(0, 1))
    q = fit(z3.If(normal, field, z3.BitVecVal(1, field.size())), bits) - (rho.format.bias + keep)
    return fit(z3.Concat(leading, fraction), keep + 5), q
