"""Floating-point numbers of a program: sign, significand and exponent, and in which places they may have bits.

A number is ±significand · 2^exponent, unless it is an infinity or a NaN.  It is known to be a multiple of 2^low, to be
below 2^high in magnitude, and to have at most so many significant bits.  An operation whose exact result fits into the
format, by that, is exact and nothing is rounded; any other one is rounded to nearest even, by the SMT encoding's own
blocks.  What is known comes from the operations (`frexp` gives less than one), from a format, or is proved.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import z3

from mmaformal.encodings.smt.blocks import (
    Rounded,
    decode,
    encode,
    negate_if,
    normalise,
    pad,
    quiet_nan,
    resize,
    round_code,
    round_magnitude,
    sticky_shift_right,
)
from mmaformal.formats import Format, Specials
from mmaformal.hardware.rebuild import Rebuilt, constants_in
from mmaformal.hardware.tracing.context import FALSE, TRUE, all_hold, any_hold, denied, known, state
from mmaformal.hardware.tracing.refusal import refused
from mmaformal.hardware.tracing.whole import Integer, larger_whole
from mmaformal.rounding import Conversion, Rounding

#: Bits that a sum, or a comparison, of numbers may need as integers.
_WIDEST = 700
#: Zeros above a significand beyond which it is shifted to the least exponent instead.
_ABOVE = 96


@dataclass(frozen=True)
class Floating:
    """A number of a program."""

    sign: z3.BitVecRef  #: one bit; of zeros, infinities and NaNs too
    significand: z3.BitVecRef
    exponent: Integer
    low: int
    high: int
    digits: int
    zero: z3.BoolRef  #: that it is 0, of finite numbers alone
    infinite: z3.BoolRef = FALSE
    nan: z3.BoolRef = FALSE  #: goes before `infinite`
    normal: tuple[z3.BitVecRef, int] | None = (
        None  #: the significand shifted to its leading one, and its exponent then
    )
    total: z3.BitVecRef | None = None  #: ±significand in two's complement, where that is at hand
    code: tuple[Format, z3.BitVecRef] | None = None  #: of which it was decoded
    whole: Integer | None = None  #: where it was an integer of the program's
    open: bool = False  #: whether the code of a NaN is one that stands for any
    plus_zero: bool = False  #: whether it is known never to be −0
    #: Of a power of two that a format rounded: the code that this gave, and the exact number.
    before: tuple[z3.BitVecRef, Floating] | None = None

    @property
    def special(self) -> z3.BoolRef:
        return any_hold(self.nan, self.infinite)

    @property
    def is_constant_zero(self) -> bool:
        return bool(z3.is_true(self.zero))

    @property
    def power(self) -> bool:
        """Whether it is ±2^exponent."""
        one = z3.is_bv_value(self.significand) and self.significand.as_long() == 1
        return bool(one and z3.is_bv_value(self.sign) and known(self.special) is False)

    # ---- from values and codes ----

    @staticmethod
    def of(value: float | Fraction) -> Floating:
        """A number that is known."""
        sign = z3.BitVecVal(int(_negative(value)), 1)
        if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
            flags = (FALSE, TRUE) if value != value else (TRUE, FALSE)
            return Floating(sign, z3.BitVecVal(0, 1), Integer.of(0), 0, 0, 0, FALSE, *flags)
        exact = abs(Fraction(value))
        if not exact:
            return Floating(sign, z3.BitVecVal(0, 1), Integer.of(0), 0, 0, 0, TRUE)
        low = -(exact.denominator.bit_length() - 1)
        size = exact.numerator
        strip = (size & -size).bit_length() - 1
        size, low = size >> strip, low + strip
        bits = size.bit_length()
        term = z3.BitVecVal(size, bits)
        return Floating(sign, term, Integer.of(low), low, low + bits, bits, FALSE)

    @staticmethod
    def from_code(code: z3.BitVecRef, fmt: Format, *, any_nan: bool = False) -> Floating:
        """The number that a code is; with `any_nan` the code of a NaN stands for that of any."""
        code = state().cut(code)
        x = decode(code, fmt)
        fraction_bits = fmt.fraction_bits if fmt.has_zero else 0
        significand, strip = _stripped(x.significand)
        nan, infinite = (
            state().flag(name, z3.simplify(each)) for name, each in (("nan", x.nan), ("inf", x.infinite))
        )
        exponent = Integer.atom(x.field, False) + (strip - fmt.bias - fraction_bits)
        least = (fmt.min_exponent if fmt.has_zero else -fmt.bias) - fraction_bits + strip
        zero = significand == 0 if fmt.has_zero else FALSE
        most = (1 << fmt.exponent_bits) - 1 - fmt.bias + 1
        top_is_special = fmt.specials == Specials.IEEE or not fmt.has_zero
        high = most - 1 if top_is_special else most
        digits = significand.size()
        if z3.is_bv_value(code):
            found = _constant(x.sign, z3.simplify(significand), exponent, nan, infinite, (fmt, code))
            return replace(found, open=any_nan)
        number = Floating(x.sign, significand, exponent, least, high, digits, zero, infinite, nan)
        return replace(number, code=(fmt, code), open=any_nan)

    @staticmethod
    def integer(value: Integer) -> Floating:
        """An integer as a number."""
        if not value.atoms:
            return replace(Floating.of(Fraction(value.constant)), whole=value)
        bits = value.bits
        if value.low >= 0:
            term, sign = value.unsigned(), z3.BitVecVal(0, 1)
        else:
            total = value.own()
            sign = z3.Extract(bits - 1, bits - 1, total)
            term = negate_if(sign, total)
        high = max(abs(value.low), abs(value.high)).bit_length()
        return Floating(sign, term, Integer.of(0), 0, high, high, term == 0, whole=value)

    # ---- to codes ----

    def to_code(self, fmt: Format) -> z3.BitVecRef:
        """The bits of the number in a format, rounded to nearest even where it does not fit; a NaN's may be any."""
        if self.code is not None and self.code[0] == fmt:
            code = self.code[1]
            return chosen_term(decode(code, fmt).nan, self.nan_code(fmt), code) if self.open else code
        return self._coded(fmt, self.nan_code)

    def result(self, fmt: Format) -> z3.BitVecRef:
        """The bits as a function returns them: those that arithmetic takes, but where that is a NaN that may be any."""
        if self.code is not None and self.code[0] == fmt:
            return self.to_code(fmt)
        return replace(self, code=(fmt, self.word(fmt)), open=known(self.nan) is not False).to_code(fmt)

    def word(self, fmt: Format) -> z3.BitVecRef:
        """The code in a format as arithmetic takes it, in which one NaN may stand for any."""
        if self.code is not None and self.code[0] == fmt:
            return self.code[1]
        return self._coded(fmt, lambda fmt: z3.BitVecVal(quiet_nan(fmt), fmt.storage_bits))

    def _coded(self, fmt: Format, nan: Callable[[Format], z3.BitVecRef]) -> z3.BitVecRef:
        """The code of a number, and the one that is given of a NaN."""
        if fmt.specials != Specials.IEEE or not fmt.signed or not fmt.is_whole:
            return self._small_code(fmt)
        assert fmt.infinity is not None
        number = self._number(fmt)
        infinity = z3.Concat(self.sign, z3.BitVecVal(fmt.infinity, fmt.storage_bits - 1))
        number = without_specials(self.special, number)
        return chosen_term(self.nan, nan(fmt), chosen_term(self.infinite, infinity, number))

    def _number(self, fmt: Format) -> z3.BitVecRef:
        """The code of a finite number."""
        if not self.digits:
            return z3.Concat(self.sign, z3.BitVecVal(0, fmt.storage_bits - 1))
        exact = self.digits <= fmt.fraction_bits + 1 and self.low >= fmt.min_exponent - fmt.fraction_bits
        rounding = Rounding.RZ if exact else Rounding.RNE
        rho = Conversion(f"to {fmt.name}", fmt, fmt.fraction_bits, rounding, signed_zero=True)
        return encode(self._rounded(rho), rho)

    def _small_code(self, fmt: Format) -> z3.BitVecRef:
        raise refused(
            f"a result is rounded to {fmt.name}, which is not modelled: give it in fp16, bf16, fp32 or fp64"
        )

    def nan_code(self, fmt: Format) -> z3.BitVecRef:
        """Some NaN: which one is not defined."""
        if known(self.nan) is False:
            return z3.BitVecVal(0, fmt.storage_bits)
        bits = fmt.fraction_bits
        sign, payload = state().unknown("sign of a NaN", 1), state().unknown("payload of a NaN", bits - 1)
        return z3.Concat(sign, z3.BitVecVal(-1, fmt.exponent_bits + 1), payload)

    def _rounded(self, rho: Conversion) -> Rounded:
        """The fields of the number, rounded."""
        least, significand, exponent = rho.format.min_exponent, self.significand, self.exponent
        if significand.size() == 1:  # what rounds takes two bits or more
            significand, exponent = pad(significand, 1), exponent - 1
        width = significand.size()
        above = max(0, least - (exponent.low + width - 1))
        if above > _ABOVE:
            significand, exponent = _jammed(significand, exponent, rho.format)
            width = significand.size()
            above = max(0, least - (exponent.low + width - 1))
        significand, width = resize(significand, width + above), width + above
        top = (exponent + (width - 1 - least)).within(0, None).unsigned()
        rounded = round_magnitude(self.sign, significand, top, rho)
        return Rounded(self.sign, rounded.code)

    def rounded_to(self, fmt: Format) -> Floating:
        """The number in a format: itself where it fits, else rounded to nearest even."""
        if self.fits(fmt):
            return self if self.code is None or self.code[0] == fmt else replace(self, code=None)
        return Floating.from_code(self.word(fmt), fmt, any_nan=True)

    def fits(self, fmt: Format) -> bool:
        """Whether every value that it may have is known to be one of a format's."""
        if not fmt.has_zero:
            return False
        top = fmt.max_exponent + 1
        if fmt.specials == Specials.IEEE or self.high <= fmt.max_exponent:
            exact = self.digits <= fmt.fraction_bits + 1
            return exact and self.low >= fmt.min_exponent - fmt.fraction_bits and self.high <= top
        return False

    # ---- forms ----

    def fixed(self, place: int, bits: int) -> z3.BitVecRef:
        """The number in units of 2^place, which it is a multiple of, in two's complement of so many bits."""
        if self.total is not None and self.exponent.value is not None and self.exponent.value >= place:
            term, more = self.total, self.exponent.value - place
            term = (
                z3.SignExt(bits - term.size(), term) if bits > term.size() else z3.Extract(bits - 1, 0, term)
            )
            return term << more if more else term
        return negate_if(self.sign, self.magnitude_at(place, bits))

    def magnitude_at(self, place: int, bits: int) -> z3.BitVecRef:
        """The magnitude in units of 2^place, which it is a multiple of, in so many bits, which hold it."""
        significand, exponent = self.significand, self.exponent
        if exponent.value is None and self.normal is not None:
            significand, exponent = self.normal[0], Integer.of(self.normal[1])
        more = exponent - place
        if more.value is not None:
            if more.value < 0:  # bits that are known to be 0
                kept = min(-more.value, significand.size() - 1)
                return resize(z3.Extract(significand.size() - 1, kept, significand), bits)
            return resize(pad(significand, more.value), bits)
        return shifted(significand, more, bits)

    def negative(self) -> Floating:
        return replace(self, sign=flipped(self.sign), total=None, code=None, whole=None, plus_zero=False)

    def absolute(self) -> Floating:
        return replace(self, sign=z3.BitVecVal(0, 1), total=None, code=None, whole=None)

    @property
    def shown_sign(self) -> z3.BitVecRef:
        """The sign as a program sees it: that of a NaN that was computed may be any."""
        if known(self.nan) is False or (self.code is not None and not self.open):
            return self.sign
        return chosen_term(self.nan, state().unknown("sign of a NaN", 1), self.sign)

    @property
    def negated(self) -> z3.BoolRef:
        """Return the claim that its sign is set."""
        return _is_set(self.sign)

    @property
    def is_minus(self) -> z3.BoolRef:
        """Return the claim that a program sees its sign set."""
        return _is_set(self.shown_sign)


def flipped(sign: z3.BitVecRef) -> z3.BitVecRef:
    """The other sign."""
    if z3.is_bv_value(sign):
        return z3.BitVecVal(1 - sign.as_long(), 1)
    return sign.arg(0) if z3.is_app_of(sign, z3.Z3_OP_BNOT) else ~sign


def _sign_of_product(x: z3.BitVecRef, y: z3.BitVecRef) -> z3.BitVecRef:
    """The sign of a product, of terms as they are: z3's simplifier would write sums in a sign anew."""
    for known_sign, other in ((x, y), (y, x)):
        if z3.is_bv_value(known_sign):
            return flipped(other) if known_sign.as_long() else other
    return x ^ y


def _both_set(x: z3.BitVecRef, y: z3.BitVecRef) -> z3.BitVecRef:
    for known_sign, other in ((x, y), (y, x)):
        if z3.is_bv_value(known_sign):
            return other if known_sign.as_long() else known_sign
    return x & y


def _is_set(sign: z3.BitVecRef) -> z3.BoolRef:
    if z3.is_bv_value(sign):
        return TRUE if sign.as_long() else FALSE
    return sign == 1


def _negative(value: float | Fraction) -> bool:
    return str(value).startswith("-")


def _constant(
    sign: z3.BitVecRef,
    significand: z3.BitVecRef,
    exponent: Integer,
    nan: z3.BoolRef,
    infinite: z3.BoolRef,
    code: tuple[Format, z3.BitVecRef],
) -> Floating:
    """The number of a code that is known."""
    sign, exponent = z3.simplify(sign), Integer.of(z3.simplify(exponent.own()).as_signed_long())
    assert isinstance(significand, z3.BitVecNumRef)
    value = Fraction(significand.as_long()) * Fraction(2) ** exponent.constant
    return replace(Floating.of(value), sign=sign, nan=nan, infinite=infinite, code=code)


def _stripped(significand: z3.BitVecRef) -> tuple[z3.BitVecRef, int]:
    """A significand without the bits at its end that are seen to be 0, and how many they were."""
    plain = z3.simplify(significand)
    if z3.is_app_of(plain, z3.Z3_OP_CONCAT) and z3.is_bv_value(plain.arg(plain.num_args() - 1)):
        end = plain.arg(plain.num_args() - 1)
        if end.as_long() == 0:
            kept = z3.Extract(significand.size() - 1, end.size(), significand)
            return z3.simplify(kept), end.size()
    return significand, 0


def chosen_term(claim: z3.BoolRef, x: z3.BitVecRef, y: z3.BitVecRef) -> z3.BitVecRef:
    """`If` of two terms."""
    value = known(claim)
    if value is not None:
        return x if value else y
    return x if x.eq(y) else z3.If(claim, x, y)


def without_specials(special: z3.BoolRef, number: z3.BitVecRef) -> z3.BitVecRef:
    """A term that counts only where a result is no infinity or NaN, with what is then proved of operands put in it.

    Of an operand that is no infinity or NaN wherever the result is none, the flags that say so are false in it.
    """
    if known(special) is not None:
        return number
    now = state()
    used = [name for name in constants_in([number]) if name in now.flags]
    if not used:
        return number
    flags = {name: z3.Bool(name) for name in used}
    given = [denied(special), *(x == now.flags[name] for name, x in flags.items())]
    claim = z3.And([z3.Not(x) for x in flags.values()])
    if now.proved("no operand of a number is an infinity or a NaN", given, claim):
        return Rebuilt(dict.fromkeys(used, FALSE))(number)
    return number


def _jammed(significand: z3.BitVecRef, exponent: Integer, fmt: Format) -> tuple[z3.BitVecRef, Integer]:
    """Returns the number with its leading bit not below a format's least normal number; what is lost is in the last
    place, which is two below that of the format."""
    more = max(2, fmt.fraction_bits + 3 - significand.size())
    wide = pad(significand, more)
    exponent = exponent - more
    floor = Integer.of(fmt.min_exponent - (wide.size() - 1))
    there = larger_whole(floor, exponent)
    return sticky_shift_right(wide, (there - exponent).within(0, None).unsigned()), there


def shifted(significand: z3.BitVecRef, by: Integer, bits: int, sticky: int = 0) -> z3.BitVecRef:
    """⌊significand · 2^by⌋ in so many bits, which hold it; with `sticky` places more below, the last one sticky."""
    bits, by = bits + sticky, by + sticky
    if by.value is not None:
        if by.value >= 0:
            return resize(pad(significand, by.value), bits)
        return _right(significand, Integer.of(-by.value), bits, bool(sticky))
    up = max(by.high, 0)
    return _right(pad(significand, up), (by * -1 + up).within(0, None), bits, bool(sticky))


def _right(word: z3.BitVecRef, by: Integer, bits: int, sticky: bool) -> z3.BitVecRef:
    if by.value is not None and not sticky:
        if by.value >= word.size():
            return z3.BitVecVal(0, bits)
        return resize(z3.Extract(word.size() - 1, by.value, word) if by.value else word, bits)
    amount = by.unsigned()
    width = max(word.size(), amount.size())
    word = resize(word, width)
    found = sticky_shift_right(word, amount) if sticky else z3.LShR(word, resize(amount, width))
    return resize(found, bits)


# ---- operations ----


def product(x: Floating, y: Floating) -> Floating:
    """The exact product."""
    if x.power and not y.power:
        x, y = y, x
    sign = _sign_of_product(x.sign, y.sign)
    nan = any_hold(x.nan, y.nan, all_hold(x.infinite, y.zero), all_hold(x.zero, y.infinite))
    infinite = any_hold(x.infinite, y.infinite)
    zero = all_hold(any_hold(x.zero, y.zero), denied(x.special), denied(y.special))
    if x.is_constant_zero or y.is_constant_zero:
        return Floating(sign, z3.BitVecVal(0, 1), Integer.of(0), 0, 0, 0, zero, infinite, nan)
    low, high = x.low + y.low, x.high + y.high
    exponent = x.exponent + y.exponent
    if y.power:
        normal = None
        if x.normal is not None and y.exponent.value is not None:
            normal = (x.normal[0], x.normal[1] + y.exponent.value)
        high -= 1
        plus = z3.is_bv_value(y.sign) and not y.sign.as_long()
        total = x.total if plus else None
        made = Floating(
            sign, x.significand, exponent, low, high, x.digits, zero, infinite, nan, normal, total
        )
        return replace(made, plus_zero=plus and x.plus_zero)
    if known(y.infinite) or known(x.infinite):
        return Floating(sign, z3.BitVecVal(0, 1), Integer.of(0), 0, 0, 0, FALSE, infinite, nan)
    bits = x.significand.size() + y.significand.size()
    significand = resize(x.significand, bits) * resize(y.significand, bits)
    digits = min(x.digits + y.digits, max(high - low, 1))
    return Floating(sign, significand, exponent, low, high, digits, zero, infinite, nan)


def unrounded_sum(every: Sequence[Floating], zero_sign: z3.BitVecRef | None = None) -> Floating | None:
    """The exact sum; None where it may have more bits than are worth it.

    A sum that is 0 is +0 unless all are −0; then its sign is −, or `zero_sign`.
    """
    some = [x for x in every if not x.is_constant_zero] or list(every[:1])
    low = min(x.low for x in some)
    high = (sum(1 << (x.high - low) for x in some) - 1).bit_length() + low if some else 0
    if high - low > _WIDEST:
        return None
    bits = high - low + 1
    if all(x.exponent.value is not None for x in some):
        place = min(x.exponent.value for x in some if x.exponent.value is not None)
        if place < low:
            place = low
    else:
        place = low
    bits = high - place + 1
    terms = [x.fixed(place, bits) for x in some]
    total = terms[0]
    for term in terms[1:]:
        total = total + term
    top = z3.Extract(bits - 1, bits - 1, total)
    minus = z3.BitVecVal(1, 1) if zero_sign is None else zero_sign
    for x in every:  # what is 0 and the sum of numbers with a minus is one of −0 alone
        minus = z3.BitVecVal(0, 1) if x.plus_zero else _both_set(minus, x.sign)
    is_zero, plus_zero = total == 0, z3.is_bv_value(minus) and not minus.as_long()
    sign = top if plus_zero else z3.If(is_zero, minus, top)
    plus = any_hold(*(all_hold(x.infinite, denied(x.negated)) for x in every))
    below = any_hold(*(all_hold(x.infinite, x.negated) for x in every))
    nan, infinite = any_hold(*(x.nan for x in every), all_hold(plus, below)), any_hold(plus, below)
    sign = chosen_term(plus, z3.BitVecVal(0, 1), chosen_term(below, z3.BitVecVal(1, 1), sign))
    zero = all_hold(is_zero, denied(any_hold(nan, infinite)))
    magnitude = negate_if(top, total)
    made = Floating(
        sign, magnitude, Integer.of(place), low, high, high - low, zero, infinite, nan, total=total
    )
    return replace(made, plus_zero=plus_zero)


def difference_sign(x: Floating, y: Floating) -> tuple[z3.BoolRef, z3.BoolRef]:
    """Returns the claims x < y and x = y, of numbers that are no NaNs."""
    finite = unrounded_sum(
        [replace(x, nan=FALSE, infinite=FALSE), replace(y, nan=FALSE, infinite=FALSE).negative()]
    )
    if finite is None or finite.total is None:
        raise refused("two numbers of very different sizes are compared: compare their codes")
    less, same = finite.total < 0, finite.total == 0
    for flag, other in ((x, y), (y, x)):
        if known(flag.infinite) is not False:
            mine = flag.negated if flag is x else denied(flag.negated)
            equal = all_hold(other.infinite, z3.simplify(flag.sign == other.sign))
            less = z3.If(flag.infinite, all_hold(mine, denied(equal)), less)
            same = z3.If(flag.infinite, equal, same)
    return less, same


def toward(x: Floating, rounding: Rounding) -> Floating:
    """The number rounded to an integer: toward zero (RZ), down (RD), up (RU), to nearest even (RNE)."""
    if x.low >= 0:
        return x
    if rounding is Rounding.RU:
        return toward(x.negative(), Rounding.RD).negative()
    high = max(x.high, 0)
    significand, exponent = x.significand, x.exponent
    if x.normal is not None:
        significand, exponent = x.normal[0], Integer.of(x.normal[1])
    if rounding is Rounding.RD:
        return _floor(x, significand, exponent, high)
    if rounding is Rounding.RNE:
        code = shifted(significand, exponent, high + 1, sticky=2)
        found = round_code(code, 2, x.sign, Rounding.RNE)
        high += 1
    else:
        found = shifted(significand, exponent, max(high, 1))
    return _integer(x, found, high)


def _integer(x: Floating, magnitude: z3.BitVecRef, high: int, total: z3.BitVecRef | None = None) -> Floating:
    """A number rounded to an integer: one of p significant bits that is none is below 2^(p - 1), and goes to 2^(p - 1)
    at most, so that there are no more significant bits than before."""
    zero = all_hold(magnitude == 0, denied(x.special))
    digits = min(high, max(x.digits, 1))
    return Floating(x.sign, magnitude, Integer.of(0), 0, high, digits, zero, x.infinite, x.nan, total=total)


def _floor(x: Floating, significand: z3.BitVecRef, exponent: Integer, high: int) -> Floating:
    up = max(exponent.high, 0)
    if x.total is not None and significand is x.significand:
        word = x.total
    else:
        word = negate_if(x.sign, resize(significand, significand.size() + 1))
    word, by = pad(word, up), (exponent * -1 + up).within(0, None)
    amount = by.unsigned()
    if amount.size() > word.size():
        word = z3.SignExt(amount.size() - word.size(), word)
    found = word if by.value == 0 else word >> resize(amount, word.size())
    bits = high + 2
    found = z3.Extract(bits - 1, 0, found) if found.size() > bits else found
    top = z3.Extract(found.size() - 1, found.size() - 1, found)
    return replace(_integer(x, negate_if(top, found), high + 1, found), plus_zero=x.plus_zero)


def fraction_and_exponent(x: Floating) -> tuple[Floating, Integer]:
    """frexp: a number of 1/2 ≤ |s| < 1, and e, of s · 2^e; of 0, infinities and NaNs themselves, and 0.

    C leaves e of infinities and NaNs open; NumPy's and torch's is 0 with glibc.
    """
    width = x.significand.size()
    if width == 1:
        shifted_up, place = x.significand, Integer.of(0)
    else:
        bits = (width - 1).bit_length()
        shifted_up, left = normalise(x.significand, z3.BitVecVal(width - 1, bits))
        place = Integer.atom(left, False, 0, width - 1)
    plain = x.exponent + place + 1
    special = any_hold(x.special, x.zero)
    exponent = chosen_whole(special, Integer.of(0), plain)
    low = -min(x.digits, width) if x.digits else 0
    fraction = replace(
        x,
        exponent=place * -1 - 1,
        low=low,
        high=0,
        normal=(shifted_up, -width),
        code=None,
        whole=None,
    )
    return fraction, exponent


def chosen_whole(claim: z3.BoolRef, x: Integer, y: Integer) -> Integer:
    """`If` of two integers, each known to be as the claim, or its opposite, says."""
    if (value := known(claim)) is not None:
        return x if value else y
    x, y = implied(claim, x, True), implied(claim, y, False)
    low, high = min(x.low, y.low), max(x.high, y.high)
    if x.key == y.key and x.constant == y.constant:
        return Integer(x.atoms, x.constant, low, high)  # in the range of either side
    bits = _width(low, high)
    return Integer.atom(z3.If(claim, x.term(bits), y.term(bits)), True, low, high)


def _width(low: int, high: int) -> int:
    return max((x if x >= 0 else ~x).bit_length() for x in (low, high)) + 1


def implied(claim: z3.BoolRef, x: Integer, holds: bool) -> Integer:
    """An integer, known to be in the range that a claim, or its opposite, says."""
    meaning = state().meanings.get(claim.get_id())
    if meaning is None:
        return x
    low, high = (meaning[1].true if holds else meaning[1].false).get(x.key, (None, None))
    return x.within(None if low is None else low + x.constant, None if high is None else high + x.constant)
