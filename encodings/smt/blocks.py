"""The stages that the SMT algorithms are built from, as quantifier-free bit-vector terms (z3).

Every width is explicit and the narrowest that loses nothing; each function says which bound makes it so.  No
floating-point theory is used: the terms are what the hardware's integer data path would be.

Exponents are unsigned and offset: an exponent `e` in a known range `low … high` is held as `e - low`, in just the
bits that `high - low` needs (`ExponentRange`), so that comparing is unsigned and the difference of two exponents
of one range never overflows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import z3

from mmaformal.algorithms import Conversion, Rounding
from mmaformal.formats import Format, Specials

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
    """What the special values among the inputs decide; at most one is true once resolved."""

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
        assert self.low <= e <= self.high, f"{e} is outside {self}"
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
    """`shift_right` whose lowest bit is also set if any bit that was shifted out was (for later rounding)."""
    shifted = shift_right(x, amount)
    width = max(x.size(), amount.size())
    back = resize(shifted, width) << resize(amount, width)
    lost = z3.Or(
        z3.And(z3.UGE(resize(amount, width + 1), z3.BitVecVal(x.size(), width + 1)), x != 0),
        z3.And(
            z3.ULT(resize(amount, width + 1), z3.BitVecVal(x.size(), width + 1)), back != resize(x, width)
        ),
    )
    return shifted | z3.If(lost, z3.BitVecVal(1, x.size()), z3.BitVecVal(0, x.size()))


def negate_if(sign: BitVec, x: BitVec) -> BitVec:
    return z3.If(sign == 1, -x, x)


# ---- decode -----------------------------------------------------------------------------------------------------


def decode(code: BitVec, fmt: Format) -> Operand:
    """Decode one code, `storage_bits` wide (IEEE 754-2019 §3.4; OCP and FNUZ for the 8-bit formats)."""
    assert code.size() == fmt.storage_bits, f"{fmt} codes have {fmt.storage_bits} bits, not {code.size()}"
    M, low = fmt.fraction_bits, fmt.ignored_low_bits
    top = low + M + fmt.exponent_bits
    field = z3.Extract(top - 1, low + M, code)
    sign = z3.Extract(top, top, code) if fmt.signed else z3.BitVecVal(0, 1)
    all_ones = field == z3.BitVecVal(-1, fmt.exponent_bits)
    no = z3.BoolVal(False)
    if not fmt.has_zero:
        return Operand(sign, field, z3.BitVecVal(1, 1), no, all_ones)

    fraction = z3.Extract(low + M - 1, low, code)
    infinite, nan = no, no
    if fmt.specials == Specials.IEEE:
        infinite, nan = z3.And(all_ones, fraction == 0), z3.And(all_ones, fraction != 0)
    elif fmt.specials == Specials.FN:
        nan = z3.And(all_ones, fraction == z3.BitVecVal(-1, M))
    elif fmt.specials == Specials.FNUZ:
        nan = code == z3.BitVecVal(fmt.sign_mask, fmt.storage_bits)

    normal = field != 0
    one = z3.BitVecVal(1, fmt.exponent_bits)
    significand = z3.Concat(z3.If(normal, z3.BitVecVal(1, 1), z3.BitVecVal(0, 1)), fraction)
    return Operand(sign, z3.If(normal, field, one), significand, infinite, nan)


def exponent_range(fmt: Format) -> ExponentRange:
    """The exponents that `field - bias` takes over all codes, those of infinities and NaNs included."""
    return ExponentRange(fmt.min_exponent, (1 << fmt.exponent_bits) - 1 - fmt.bias)


# ---- classify ---------------------------------------------------------------------------------------------------


def is_zero(x: Operand) -> Bool:
    """Whether a finite operand is ±0 (an infinity's significand is never 0: its exponent field is not)."""
    return x.significand == 0


def classify(products: Sequence[tuple[Operand, Operand]], addends: Sequence[Operand]) -> Special:
    """The special value that `Σ products + Σ addends` is, by IEEE 754's rules over the exact values.

    NaN if any input is NaN, for 0·∞, or if infinities of both signs meet; else the infinity, if there is one.
    """
    nan, positive, negative = [], [], []
    for a, b in products:
        infinite = z3.Or(a.infinite, b.infinite)
        nan += [a.nan, b.nan, z3.And(a.infinite, is_zero(b)), z3.And(is_zero(a), b.infinite)]
        positive.append(z3.And(infinite, a.sign == b.sign))
        negative.append(z3.And(infinite, a.sign != b.sign))
    for c in addends:
        nan.append(c.nan)
        positive.append(z3.And(c.infinite, c.sign == 0))
        negative.append(z3.And(c.infinite, c.sign == 1))
    some_positive, some_negative = z3.Or(positive), z3.Or(negative)
    is_nan = z3.Or(*nan, z3.And(some_positive, some_negative))
    return Special(is_nan, z3.And(z3.Not(is_nan), some_positive), z3.And(z3.Not(is_nan), some_negative))


# ---- multiply, align --------------------------------------------------------------------------------------------


def product_range(a: Format, b: Format) -> ExponentRange:
    x, y = exponent_range(a), exponent_range(b)
    return ExponentRange(x.low + y.low, x.high + y.high)


def multiply(a: Operand, b: Operand, bias: int, exponents: ExponentRange, e_zero: int | None) -> Term:
    """The exact product, not renormalised: fractional bits M_a + M_b, two integer bits.

    `bias` is the sum of both biases.  An exact zero takes the exponent e_zero, or its fields' if that is None.
    """
    field_bits = max(a.field.size(), b.field.size()) + 1
    exponent = exponents.from_field(resize(a.field, field_bits) + resize(b.field, field_bits), bias)
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


def signed_sum(terms: Sequence[tuple[BitVec, BitVec]], bits: int) -> BitVec:
    """Σ (-1)^sign · magnitude in two's complement of `bits` bits, which must hold every partial sum."""
    total = z3.BitVecVal(0, bits)
    for sign, magnitude in terms:
        total = total + negate_if(sign, resize(magnitude, bits))
    return total


# ---- normalise & round, encode ----------------------------------------------------------------------------------


class Rounded(NamedTuple):
    """A number before overflow is decided.

    code: the fields (exponent, trailing significand), one exponent bit wider than the format so that overflow
    shows; ρ's fraction bits wide.
    """

    sign: BitVec
    code: BitVec


def normalise(magnitude: BitVec) -> tuple[BitVec, BitVec]:
    """(shifted, leading zeros): the leading one brought to the top bit, if there is one."""
    width = magnitude.size()
    count_bits = width.bit_length()
    zeros = z3.BitVecVal(0, count_bits)
    step = 1 << ((width - 1).bit_length() - 1) if width > 1 else 0
    while step:
        clear = z3.Extract(width - 1, width - step, magnitude) == 0
        magnitude = z3.If(clear, magnitude << step, magnitude)
        zeros = z3.If(clear, zeros + step, zeros)
        step //= 2
    return magnitude, zeros


def normalise_and_round(
    total: BitVec, e_max: BitVec, exponents: ExponentRange, F: int, rho: Conversion
) -> Rounded:
    """Round the two's complement `total · 2^(e_max - F)` with ρ; |total| < 2^(width - 1)."""
    keep, target = rho.fraction_bits, rho.format
    width = total.size() - 1
    sign = z3.Extract(width, width, total)
    magnitude = resize(negate_if(sign, total), width)
    if width < keep + 3:  # room for the guard and sticky bits
        magnitude = z3.Concat(magnitude, z3.BitVecVal(0, keep + 3 - width))
        F, width = F + keep + 3 - width, keep + 3
    normal, zeros = normalise(magnitude)

    # The leading bit's exponent, as a signed distance from the least normal exponent.
    highest = exponents.high - F + width - 1 - target.min_exponent
    lowest = exponents.low - F - target.min_exponent
    bits = max(highest.bit_length(), (-lowest).bit_length(), target.exponent_bits) + 2
    distance = (
        resize(e_max, bits)
        + z3.BitVecVal(exponents.low - F + width - 1 - target.min_exponent, bits)
        - resize(zeros, bits)
    )
    subnormal = distance < 0
    deficit = z3.If(subnormal, -distance, z3.BitVecVal(0, bits))
    placed = (
        shift_right(normal, deficit) if rho.rounding is Rounding.RZ else sticky_shift_right(normal, deficit)
    )

    # 1 leading bit, `keep` fraction bits, then what is rounded away.
    significand = z3.Extract(width - 1, width - 1 - keep, placed)
    leading = z3.Extract(keep, keep, significand)
    field = z3.If(leading == 1, distance + 1, z3.BitVecVal(0, bits))
    too_large = field > (1 << target.exponent_bits) - 1
    narrow = z3.If(
        too_large,
        z3.BitVecVal((1 << target.exponent_bits) - 1, target.exponent_bits + 1),
        resize(field, target.exponent_bits + 1),
    )
    code = z3.Concat(narrow, z3.Extract(keep - 1, 0, significand))
    if rho.rounding is Rounding.RNE:
        guard_at = width - 2 - keep
        guard = z3.Extract(guard_at, guard_at, placed)
        sticky = z3.Extract(guard_at - 1, 0, placed) != 0
        odd = z3.Extract(0, 0, significand) == 1
        up = z3.And(guard == 1, z3.Or(sticky, odd))
        code = code + z3.If(up, z3.BitVecVal(1, code.size()), z3.BitVecVal(0, code.size()))
    return Rounded(sign, code)


def encode(x: Rounded, rho: Conversion) -> BitVec:
    """The code; overflow is infinity, zero is +0."""
    target, keep = rho.format, rho.fraction_bits
    infinity = z3.BitVecVal(((1 << target.exponent_bits) - 1) << keep, x.code.size())
    capped = z3.If(z3.UGE(x.code, infinity), infinity, x.code)
    sign = z3.If(x.code == 0, z3.BitVecVal(0, 1), x.sign)
    fields = z3.Extract(target.exponent_bits + keep - 1, 0, capped)
    if keep < target.fraction_bits:
        fields = z3.Concat(fields, z3.BitVecVal(0, target.fraction_bits - keep))
    return z3.Concat(sign, fields)


def select_special(special: Special, code: BitVec, fmt: Format, canonical_nan: int) -> BitVec:
    """The result: the special value where there is one, else the code of the sum."""
    assert fmt.infinity is not None
    bits = fmt.storage_bits
    return z3.If(
        special.nan,
        z3.BitVecVal(canonical_nan, bits),
        z3.If(
            special.positive_infinity,
            z3.BitVecVal(fmt.infinity, bits),
            z3.If(special.negative_infinity, z3.BitVecVal(fmt.infinity | fmt.sign_mask, bits), code),
        ),
    )
