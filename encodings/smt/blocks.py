"""The stages that the SMT algorithms are built from, as quantifier-free bit-vector terms (z3).

Every width is explicit and the narrowest that loses nothing; each function says which bound makes it so.  No
floating-point theory is used: the terms are what the hardware's integer data path would be.

Exponents are unsigned and offset: an exponent `e` in a known range `low … high` is held as `e - low`, in just the
bits that `high - low` needs (`ExponentRange`), so that comparing is unsigned and the difference of two exponents
of one range never overflows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Generic, NamedTuple, TypeAlias, TypeVar

import z3

from mmaformal.formats import Format, Specials
from mmaformal.rounding import Conversion, Rounding
from mmaformal.stages import Stage

BitVec: TypeAlias = z3.BitVecRef
Bool: TypeAlias = z3.BoolRef


class Operand(NamedTuple):
    """A decoded input.

    sign: 1 bit.  field: the effective exponent field, 1 for subnormals (the value's exponent is `field - bias`).
    significand: M + 1 bits, the leading one included where there is one.  infinite, nan: exclusive.
    """

    sign: BitVec
    field: BitVec
    significand: BitVec
    infinite: Bool
    nan: Bool


class Special(NamedTuple):
    """Flags of what the special values among the inputs decide; at most one is true once resolved."""

    nan: Bool
    positive_infinity: Bool
    negative_infinity: Bool


@dataclass(frozen=True)
class ExponentRange:
    """Exponents `low … high`, held as the unsigned `e - low` in `bits` bits."""

    low: int
    high: int

    @property
    def bits(self) -> int:
        return max(1, (self.high - self.low).bit_length())

    def constant(self, e: int) -> BitVec:
        if not self.low <= e <= self.high:
            raise ValueError(f"{e} is outside {self}")
        return z3.BitVecVal(e - self.low, self.bits)

    def from_field(self, field: BitVec, bias: int) -> BitVec:
        """The exponent `field - bias`, known to lie in the range, as `field - bias - low` modulo 2^bits."""
        return resize(field, self.bits) - z3.BitVecVal((bias + self.low) % (1 << self.bits), self.bits)

    def union(self, *exponents: int) -> ExponentRange:
        return ExponentRange(min(self.low, *exponents), max(self.high, *exponents))


class Term(NamedTuple):
    """A summand: `(-1)^sign · significand · 2^(e - f)`; e as an offset exponent, f a constant of its place."""

    sign: BitVec
    exponent: BitVec
    significand: BitVec


StepT = TypeVar("StepT")


class Inner(NamedTuple):
    """The codes of the dot product-add within one that changes signs (`signs`)."""

    a: tuple[BitVec, ...]
    c: BitVec
    result: BitVec
    before: Sequence[Stage]  #: what was done to a and c
    after: Sequence[Stage]  #: and to the result


@dataclass(frozen=True)
class Trace(Generic[StepT]):
    """The trace that an encoding returns: the interfaces of each step of the chain, in order, and the code of d."""

    steps: tuple[StepT, ...]
    result: BitVec
    stages: Sequence[Stage] = field(default=(), repr=False, compare=False)  #: what was done, in order
    inner: Inner | None = field(default=None, repr=False, compare=False)  #: where signs are changed


# ---- widths and small functions ---------------------------------------------------------------------------------


def resize(x: BitVec, bits: int) -> BitVec:
    """Zero-extended or truncated to `bits`; truncation is the caller's promise that nothing is lost."""
    if bits > x.size():
        return z3.ZeroExt(bits - x.size(), x)
    return z3.Extract(bits - 1, 0, x) if bits < x.size() else x


def maximum(xs: Sequence[BitVec]) -> BitVec:
    """The largest of unsigned terms of one width, as a balanced tree."""
    if len(xs) == 1:
        return xs[0]
    half = len(xs) // 2
    left, right = maximum(xs[:half]), maximum(xs[half:])
    return z3.If(z3.UGT(left, right), left, right)


def shift_right(x: BitVec, amount: BitVec) -> BitVec:
    """Logical shift by an unsigned amount of any width; everything is gone from x's own width on."""
    if amount.size() <= x.size():
        return z3.LShR(x, resize(amount, x.size()))
    gone = z3.UGE(amount, z3.BitVecVal(x.size(), amount.size()))
    return z3.If(gone, z3.BitVecVal(0, x.size()), z3.LShR(x, resize(amount, x.size())))


def sticky_shift_right(x: BitVec, amount: BitVec) -> BitVec:
    """`shift_right` whose lowest bit is also set if a bit that was shifted out was ("jamming", round to odd)."""
    width = x.size()
    if amount.size() > width:
        gone = z3.UGE(amount, z3.BitVecVal(width, amount.size()))
        near = sticky_shift_right(x, resize(amount, width))
        return z3.If(gone, resize(bit(x != 0), width), near)
    by = resize(amount, width)
    shifted = z3.LShR(x, by)
    lost = x & ~(z3.BitVecVal(-1, width) << by)
    sticky = bit(z3.Or(z3.Extract(0, 0, shifted) == 1, lost != 0))
    return z3.Concat(z3.Extract(width - 1, 1, shifted), sticky)


def shift_right_signed(x: BitVec, amount: BitVec, rounding: Rounding) -> BitVec:
    """Two's complement x / 2^amount, rounded to an integer down (RD) or toward zero (RZ)."""
    if rounding is Rounding.RD:
        if amount.size() <= x.size():
            return x >> resize(amount, x.size())
        beyond = z3.UGE(amount, z3.BitVecVal(x.size(), amount.size()))
        return z3.If(beyond, x >> (x.size() - 1), x >> resize(amount, x.size()))
    if rounding is not Rounding.RZ:
        raise ValueError(f"a signed shift is rounded down or toward zero, not {rounding.name}")
    sign = z3.Extract(x.size() - 1, x.size() - 1, x)
    return negate_if(sign, shift_right(negate_if(sign, x), amount))


def negate_if(sign: BitVec, x: BitVec) -> BitVec:
    return z3.If(sign == 1, -x, x)


def sum_of(xs: Sequence[BitVec]) -> BitVec:
    """Σ xs, modulo 2 to their common width."""
    total = xs[0]
    for x in xs[1:]:
        total = total + x
    return total


def bit(condition: Bool) -> BitVec:
    return z3.If(condition, z3.BitVecVal(1, 1), z3.BitVecVal(0, 1))


def any_of(conditions: Sequence[Bool]) -> Bool:
    """Their disjunction; SMT-LIB has none of fewer than two."""
    if len(conditions) < 2:
        return conditions[0] if conditions else z3.BoolVal(False)
    return z3.Or(conditions)


def all_of(conditions: Sequence[Bool]) -> Bool:
    """Their conjunction; SMT-LIB has none of fewer than two."""
    if len(conditions) < 2:
        return conditions[0] if conditions else z3.BoolVal(True)
    return z3.And(conditions)


def pad(x: BitVec, bits: int) -> BitVec:
    """x with `bits` zeros below it."""
    return z3.Concat(x, z3.BitVecVal(0, bits)) if bits > 0 else x


# ---- decode -----------------------------------------------------------------------------------------------------


def decode(code: BitVec, fmt: Format) -> Operand:
    """Decode one code, `storage_bits` wide (IEEE 754-2019 §3.4; OCP and FNUZ for the 8-bit formats; P3109 §4.7.2)."""
    if code.size() != fmt.storage_bits:
        raise ValueError(f"{fmt} codes have {fmt.storage_bits} bits, not {code.size()}")
    M, low = fmt.fraction_bits, fmt.ignored_low_bits
    top = low + M + fmt.exponent_bits
    field = z3.Extract(top - 1, low + M, code)
    sign = z3.Extract(top, top, code) if fmt.signed else z3.BitVecVal(0, 1)
    all_ones = field == z3.BitVecVal(-1, fmt.exponent_bits)
    no = z3.BoolVal(False)
    if not fmt.has_zero:
        return Operand(sign, field, z3.BitVecVal(1, 1), no, all_ones)

    normal = field != 0
    one = z3.BitVecVal(1, fmt.exponent_bits)
    leading = z3.If(normal, z3.BitVecVal(1, 1), z3.BitVecVal(0, 1))
    infinite, nan = no, no
    if fmt.specials == Specials.NUZ:
        nan = code == z3.BitVecVal(fmt.sign_mask, fmt.storage_bits)
        infinite = z3.Extract(top - 1, 0, code) == z3.BitVecVal(-1, top)
    elif fmt.specials == Specials.TOP:
        nan = code == z3.BitVecVal(-1, fmt.storage_bits)
        infinite = code == z3.BitVecVal(-2, fmt.storage_bits)
    elif fmt.specials == Specials.FNUZ:
        nan = code == z3.BitVecVal(fmt.sign_mask, fmt.storage_bits)
    if M == 0:
        if fmt.specials == Specials.FN:
            nan = all_ones
        return Operand(sign, z3.If(normal, field, one), leading, infinite, nan)

    fraction = z3.Extract(low + M - 1, low, code)
    if fmt.specials == Specials.IEEE:
        infinite, nan = z3.And(all_ones, fraction == 0), z3.And(all_ones, fraction != 0)
    elif fmt.specials == Specials.FN:
        nan = z3.And(all_ones, fraction == z3.BitVecVal(-1, M))
    return Operand(sign, z3.If(normal, field, one), z3.Concat(leading, fraction), infinite, nan)


def exponent_range(fmt: Format) -> ExponentRange:
    """The exponents that `field - bias` takes over all codes, those of infinities and NaNs included."""
    return ExponentRange(fmt.min_exponent, (1 << fmt.exponent_bits) - 1 - fmt.bias)


# ---- classify ---------------------------------------------------------------------------------------------------


def is_zero(x: Operand) -> Bool:
    """Whether a finite operand is ±0 (an infinity's significand is never 0: its exponent field is not)."""
    return x.significand == 0


def classify(
    products: Sequence[tuple[Operand, Operand]],
    addends: Sequence[Operand],
    scales: Sequence[Operand] = (),
    overflows: Sequence[Bool] = (),
) -> Special:
    """The special value that `Σ products + Σ addends` is, by IEEE 754's rules over the exact values.

    NaN if any input or scale is NaN, for 0·∞, or if infinities of both signs meet; else the infinity, if there is
    one.  `overflows`, one for each product, says which finite products count as infinities too.
    """
    nan, positive, negative = [s.nan for s in scales], [], []
    for k, (a, b) in enumerate(products):
        infinite = any_of([a.infinite, b.infinite, *overflows[k : k + 1]])
        nan += [a.nan, b.nan, z3.And(a.infinite, is_zero(b)), z3.And(is_zero(a), b.infinite)]
        positive.append(z3.And(infinite, a.sign == b.sign))
        negative.append(z3.And(infinite, a.sign != b.sign))
    for c in addends:
        nan.append(c.nan)
        positive.append(z3.And(c.infinite, c.sign == 0))
        negative.append(z3.And(c.infinite, c.sign == 1))
    some_positive, some_negative = any_of(positive), any_of(negative)
    is_nan = any_of([*nan, z3.And(some_positive, some_negative)])
    return Special(is_nan, z3.And(z3.Not(is_nan), some_positive), z3.And(z3.Not(is_nan), some_negative))


# ---- multiply, align --------------------------------------------------------------------------------------------


def product_range(a: Format, b: Format) -> ExponentRange:
    x, y = exponent_range(a), exponent_range(b)
    return ExponentRange(x.low + y.low, x.high + y.high)


def multiply(
    a: Operand,
    b: Operand,
    bias: int,
    exponents: ExponentRange,
    e_zero: int | None,
    scales: Sequence[Operand] = (),
) -> Term:
    """The exact product, not renormalised: fractional bits M_a + M_b, two integer bits.

    `bias` is the sum of all biases.  The exponents of `scales` (powers of two) are added to the product's.  An
    exact zero takes the exponent e_zero, or its fields' (and the scales') if that is None.
    """
    field = resize(a.field, exponents.bits) + resize(b.field, exponents.bits)
    if scales:
        field = field + sum_of([resize(s.field, exponents.bits) for s in scales])
    exponent = exponents.from_field(field, bias)
    bits = a.significand.size() + b.significand.size()
    significand = resize(a.significand, bits) * resize(b.significand, bits)
    if e_zero is not None:
        exponent = z3.If(z3.Or(is_zero(a), is_zero(b)), exponents.constant(e_zero), exponent)
    return Term(a.sign ^ b.sign, exponent, significand)


def addend(c: Operand, bias: int, exponents: ExponentRange, e_zero: int | None) -> Term:
    """c as a term: fractional bits M_c, one integer bit."""
    exponent = exponents.from_field(c.field, bias)
    if e_zero is not None:
        exponent = z3.If(is_zero(c), exponents.constant(e_zero), exponent)
    return Term(c.sign, exponent, c.significand)


def align(x: Term, e_max: BitVec, fraction_bits: int, F: int) -> BitVec:
    """The magnitude of a term in units of 2^(e_max - F), cut toward zero.

    As wide as the term's integer bits plus F: no bit above is possible since e ≤ e_max.
    """
    significand = x.significand
    if fraction_bits < F:
        significand = z3.Concat(significand, z3.BitVecVal(0, F - fraction_bits))
    shifted = shift_right(significand, e_max - x.exponent)
    return z3.Extract(shifted.size() - 1, max(fraction_bits - F, 0), shifted)


def align_sticky(x: Term, e_max: BitVec, fraction_bits: int, F: int) -> BitVec:
    """Align a term as `align` does, the lowest bit also set if anything else was cut off ("jamming", round to odd).

    No wider: the sticky bit goes no further up than the lowest bit.
    """
    shifted = sticky_shift_right(pad(x.significand, F - fraction_bits), e_max - x.exponent)
    excess = max(fraction_bits - F, 0)
    if not excess:
        return shifted
    lost = z3.Extract(excess - 1, 0, shifted) != 0
    sticky = bit(z3.Or(z3.Extract(excess, excess, shifted) == 1, lost))
    return z3.Concat(z3.Extract(shifted.size() - 1, excess + 1, shifted), sticky)


def signed_sum(terms: Sequence[tuple[BitVec, BitVec]], bits: int) -> BitVec:
    """Σ (-1)^sign · magnitude in two's complement of `bits` bits, which must hold every partial sum."""
    return sum_of([negate_if(sign, resize(magnitude, bits)) for sign, magnitude in terms])


class StickySum(NamedTuple):
    """Two terms at the larger of their exponents, and their sum, with a sticky last place."""

    e_max: BitVec
    x: BitVec  #: a magnitude; the sign is the term's
    y: BitVec
    total: BitVec  #: two's complement


def sticky_sum(x: Term, x_bits: int, y: Term, y_bits: int, frame: int) -> StickySum:
    """x + y, terms of `x_bits` and `y_bits` fractional bits, in units of 2^(e_max - frame).

    Each magnitude is as wide as its term's integer bits and `frame`; the sum has one more for a carry, one for the
    sign.  Whether the frame is wide enough for the last place to tell what was lost is the caller's to show.
    """
    e_max = maximum([x.exponent, y.exponent])
    x_aligned, y_aligned = (
        sticky_shift_right(pad(term.significand, frame - bits), e_max - term.exponent)
        for term, bits in ((x, x_bits), (y, y_bits))
    )
    bits = max(x_aligned.size(), y_aligned.size()) + 2
    return StickySum(
        e_max, x_aligned, y_aligned, signed_sum([(x.sign, x_aligned), (y.sign, y_aligned)], bits)
    )


# ---- normalise & round, encode ----------------------------------------------------------------------------------


class Rounded(NamedTuple):
    """A number before overflow is decided.

    code: the fields (exponent, trailing significand), ρ's fraction bits wide; the exponent has as many bits as it
    needs for overflow to show.
    """

    sign: BitVec
    code: BitVec


def normalise(magnitude: BitVec, top: BitVec) -> tuple[BitVec, BitVec]:
    """Shift left until the leading one is the top bit, but by no more than `top`: (shifted, what is left of top).

    `top` is how far the exponent of the top bit lies above the least normal one, so the shift also stops where
    subnormals begin.  The largest shift that both allow is found greedily, bit by bit from the highest: whether a
    shift is allowed is monotone in it.
    """
    width = magnitude.size()
    for i in reversed(range((width - 1).bit_length())):
        step = 1 << i
        if i >= top.size():
            continue
        upper = z3.Extract(top.size() - 1, i, top)
        allowed = z3.And(upper != 0, z3.Extract(width - 1, width - step, magnitude) == 0)
        # A shift by 0 or `step`, written as one: simplifiers take a multiplexer of shifted wires to pieces.
        magnitude = magnitude << resize(pad(bit(allowed), i), width)
        upper = z3.If(allowed, upper - 1, upper)
        top = z3.Concat(upper, z3.Extract(i - 1, 0, top)) if i else upper
    return magnitude, top


def round_code(
    code: BitVec, drop: int, sign: BitVec, rounding: Rounding, random: tuple[int, int] = (0, 0)
) -> BitVec:
    """The code of a magnitude without its lowest `drop` ≥ 1 bits, rounded; of the same width less `drop`.

    Fields of one sign order like their values, so a carry out of the trailing significand gives the right exponent.
    The caller leaves room above for it.  `random` are N and R of a stochastic rounding.
    """
    kept = z3.Extract(code.size() - 1, drop, code)
    lost = z3.Extract(drop - 1, 0, code)
    if rounding is Rounding.RZ:
        return kept
    if rounding.is_stochastic:
        return kept + resize(_is_carried(lost, rounding, *random), kept.size())
    half = z3.Extract(drop - 1, drop - 1, code) == 1
    odd = z3.Extract(0, 0, kept) == 1
    match rounding:
        case Rounding.RO:
            return z3.Concat(z3.Extract(kept.size() - 1, 1, kept), bit(z3.Or(odd, lost != 0)))
        case Rounding.RD | Rounding.RU:
            up = z3.And(sign == (1 if rounding is Rounding.RD else 0), lost != 0)
        case Rounding.RNA:
            up = half
        case Rounding.RNE:
            more = z3.Extract(drop - 2, 0, code) != 0 if drop > 1 else z3.BoolVal(False)
            up = z3.And(half, z3.Or(more, odd))
        case _:
            raise ValueError(f"a rounding that is not modelled: {rounding.name}")
    return kept + resize(bit(up), kept.size())


def _is_carried(lost: BitVec, rounding: Rounding, bits: int, random: int) -> BitVec:
    """The carry out of `bits` random bits and the first bits that are lost (P3109's interim report §4.7.4)."""
    if rounding is Rounding.SB:
        bits, random = bits + 1, 2 * random + 1
    lost = pad(lost, bits - lost.size())
    more = lost.size() - bits
    if rounding is Rounding.SC and more > 0:
        first = round_code(resize(lost, lost.size() + 1), more, z3.BitVecVal(0, 1), Rounding.RNE)
    else:
        first = resize(z3.Extract(lost.size() - 1, more, lost), bits + 1)
    return z3.Extract(bits, bits, first + z3.BitVecVal(random, bits + 1))


def round_magnitude(
    sign: BitVec,
    magnitude: BitVec,
    top: BitVec,
    rho: Conversion,
    cuts: Sequence[tuple[int, Rounding]] = (),
) -> Rounded:
    """Round `±magnitude`, whose top bit has the exponent `least normal exponent of ρ's format + top`, with ρ.

    `cuts` are (fractional bits, rounding) that the normalised significand goes through before.
    """
    keep, target = rho.fraction_bits, rho.format
    normal, left = normalise(magnitude, top)
    fraction_bits = magnitude.size() - 1
    leading = z3.Extract(fraction_bits, fraction_bits, normal) == 1
    field_bits = max(left.size() + 1, target.exponent_bits + 1)
    # Where there is no leading one the number is subnormal (then `left` is 0) or zero.
    field = z3.If(leading, resize(left, field_bits) + 1, z3.BitVecVal(0, field_bits))
    code = pad(z3.Concat(field, z3.Extract(fraction_bits - 1, 0, normal)), keep - fraction_bits)
    fraction_bits = max(fraction_bits, keep)
    for bits, rounding in (*cuts, (keep, rho.rounding)):
        if fraction_bits > bits:
            random = rho.random_bits, rho.random
            code = round_code(code, fraction_bits - bits, sign, rounding, random)
            fraction_bits = bits
    return Rounded(sign, code)


def normalise_and_round(
    total: BitVec,
    e_max: BitVec,
    exponents: ExponentRange,
    F: int,
    rho: Conversion,
    lowest: int,
    cuts: Sequence[tuple[int, Rounding]] = (),
) -> Rounded:
    """Round `total · 2^(e_max - F)` with ρ, total in two's complement; |total| < 2^(width - 1).

    `lowest` is a lower bound of e_max, usually nearer than the range's: as many zeros are put above the magnitude
    as keep the exponent of its top bit from falling below ρ's least normal one, so that normalising only ever
    shifts left.  For `cuts` see `round_magnitude`.
    """
    width = total.size() - 1
    negative = z3.Extract(width, width, total)
    magnitude = resize(negate_if(negative, total), width)
    least = rho.format.min_exponent
    above = max(0, least - (lowest - F + width - 1))
    magnitude, width = resize(magnitude, width + above), width + above
    bits = max(1, (exponents.high - F + width - 1 - least).bit_length())
    offset = exponents.low - F + width - 1 - least
    top = resize(e_max, bits) + z3.BitVecVal(offset % (1 << bits), bits)
    return round_magnitude(negative, magnitude, top, rho, cuts)


def encode(x: Rounded, rho: Conversion) -> BitVec:
    """The code: overflow is infinity, or what IEEE 754's directed roundings make of it; zero is +0, or keeps its sign
    if ρ has signed zeros."""
    target, keep = rho.format, rho.fraction_bits
    infinity = z3.BitVecVal(((1 << target.exponent_bits) - 1) << keep, x.code.size())
    capped = z3.If(z3.UGE(x.code, infinity), _overflowed(x.sign, infinity, rho), x.code)
    sign = x.sign if rho.signed_zero else z3.If(x.code == 0, z3.BitVecVal(0, 1), x.sign)
    fields = z3.Extract(target.exponent_bits + keep - 1, 0, capped)
    return z3.Concat(sign, pad(fields, target.fraction_bits - keep))


def _overflowed(sign: BitVec, infinity: BitVec, rho: Conversion) -> BitVec:
    """The fields of what overflows: the largest number, next to infinity, where ρ does not go there."""
    if not rho.stays:
        return infinity
    match rho.rounding:
        case Rounding.RD:
            return infinity - z3.If(sign == 0, z3.BitVecVal(1, infinity.size()), 0)
        case Rounding.RU:
            return infinity - z3.If(sign == 1, z3.BitVecVal(1, infinity.size()), 0)
        case _:
            return z3.simplify(infinity - 1)


def sign_of_zero(signs: Sequence[BitVec], rho: Conversion) -> BitVec:
    """The sign of an exact zero of terms with these signs: theirs if they agree, else that of IEEE 754's rounding."""
    negative = signs[0]
    for sign in signs[1:]:
        negative = negative | sign if rho.ieee and rho.rounding is Rounding.RD else negative & sign
    return negative


def canonical_nan(fmt: Format) -> int:
    """The NaN of NVIDIA's fused units, all ones but for the sign (MMA-Sim §IV-C step 1)."""
    return fmt.codes // 2 - 1


def quiet_nan(fmt: Format) -> int:
    """The NaN that stands for all where the hardware's payload is unspecified: quiet, positive, payload 0."""
    assert fmt.infinity is not None
    return fmt.infinity | 1 << (fmt.ignored_low_bits + fmt.fraction_bits - 1)


def select_special(special: Special, code: BitVec, fmt: Format, nan: int | BitVec) -> BitVec:
    """The result: the special value where there is one, else the code of the sum."""
    assert fmt.infinity is not None
    bits = fmt.storage_bits
    return z3.If(
        special.nan,
        z3.BitVecVal(nan, bits) if isinstance(nan, int) else nan,
        z3.If(
            special.positive_infinity,
            z3.BitVecVal(fmt.infinity, bits),
            z3.If(special.negative_infinity, z3.BitVecVal(fmt.infinity | fmt.sign_mask, bits), code),
        ),
    )
