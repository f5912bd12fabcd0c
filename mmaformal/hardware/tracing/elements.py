"""Operations on single values of a program: claims, integers (`Integer`) and numbers (`Floating`), by their kinds."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import TypeAlias

import z3

from mmaformal.formats import Specials
from mmaformal.hardware.read_btor2 import sliced
from mmaformal.hardware.tracing.choosing import chosen, factor_of, plus, rounded_power, settled, trimmed
from mmaformal.hardware.tracing.context import (
    FALSE,
    TRUE,
    Meaning,
    all_hold,
    any_hold,
    denied,
    known,
    means,
    state,
)
from mmaformal.hardware.tracing.floating import (
    Floating,
    chosen_whole,
    difference_sign,
    fraction_and_exponent,
    product,
    toward,
    unrounded_sum,
)
from mmaformal.hardware.tracing.kinds import KINDS, DType, Library
from mmaformal.hardware.tracing.refusal import refused
from mmaformal.hardware.tracing.whole import Integer, larger_whole, smaller_whole
from mmaformal.rounding import Rounding

Element: TypeAlias = "z3.BoolRef | Integer | Floating"

#: Bits that an integer of Python's may grow to.
_GROWN = 4096
#: Bits of the types whose signs torch changes in a wider one.
_HALF = 16


def constant(value: bool | int | float) -> Element:
    """A value that is known."""
    if isinstance(value, bool):
        return TRUE if value else FALSE
    return Integer.of(value) if isinstance(value, int) else Floating.of(value)


# ---- conversions ----


def cast(x: Element, source: DType, target: DType, library: Library) -> Element:
    """A value as one of another kind."""
    if source == target:
        return x
    if isinstance(x, z3.BoolRef):
        if target.letter == "b":
            return x
        return cast(of_claim(x), KINDS["uint8"], target, library)
    if target.letter == "b":
        return denied(equal_zero(x))
    if isinstance(x, Integer):
        if not target.is_float:
            return wrapped(x, target)
        assert target.fmt is not None
        return (
            replace(made, whole=x)
            if (made := Floating.integer(x)).fits(target.fmt)
            else made.rounded_to(target.fmt)
        )
    if not target.is_float:
        return _as_integer(x, target)
    assert target.fmt is not None
    if library.name == "torch" and source.bits == 64 and (target.bits or 0) < 32 and not x.fits(target.fmt):
        x = x.rounded_to(_fmt(KINDS["float32"]))  # torch converts by way of float32
    return x.rounded_to(target.fmt)


def _fmt(kind: DType):  # type: ignore[no-untyped-def]
    assert kind.fmt is not None
    return kind.fmt


def of_claim(x: z3.BoolRef) -> Integer:
    """1 where a claim holds, else 0."""
    if (value := known(x)) is not None:
        return Integer.of(int(value))
    return Integer.atom(z3.If(x, z3.BitVecVal(1, 1), z3.BitVecVal(0, 1)), False)


def wrapped(x: Integer, kind: DType) -> Integer:
    """An integer modulo what a kind holds."""
    if kind.range is None or (kind.range[0] <= x.low and x.high <= kind.range[1]):
        if x.bits > _GROWN:
            raise refused(f"an integer of {x.bits} bits")
        return x
    assert kind.bits is not None
    return Integer.atom(x.term(kind.bits), kind.letter == "i")


def _as_integer(x: Floating, kind: DType) -> Integer:
    """A number cut to an integer; what it is of an infinity, a NaN, and what is out of range, is not defined."""
    cut = toward(x, Rounding.RZ)
    low, high = kind.range or (-(1 << _GROWN), 1 << _GROWN)
    if cut.high > _GROWN:
        raise refused("a number of any size is made an integer: clamp it first")
    bits = max(cut.high, 1) + 1
    value = Integer.atom(cut.fixed(0, bits), True, -(1 << cut.high), 1 << cut.high)
    if value.low < low or value.high > high or known(x.special) is not False:
        wrong = any_hold(x.special, is_less(value, Integer.of(low)), is_less(Integer.of(high), value))
        if known(wrong) is not False:
            width = kind.bits or bits
            value = chosen_whole(
                wrong, Integer.atom(state().unknown("an integer of no number", width), True), value
            )
            return wrapped(value, kind)
    return value


def equal_zero(x: Element) -> z3.BoolRef:
    """Return the claim that a value is 0, or false."""
    if isinstance(x, z3.BoolRef):
        return denied(x)
    return x.zero if isinstance(x, Floating) else is_equal(x, Integer.of(0))


def element_code(x: Element, kind: DType) -> z3.BitVecRef:
    """The bits of a value."""
    if isinstance(x, Floating):
        return x.to_code(_fmt(kind))
    if isinstance(x, z3.BoolRef):
        x = of_claim(x)
    if kind.bits is None:
        raise refused("an integer of Python's has no bits of a type: give it one")
    return x.term(kind.bits)


def of_code(code: z3.BitVecRef, kind: DType) -> Element:
    """The value that some bits are."""
    return Floating.from_code(code, _fmt(kind)) if kind.is_float else Integer.atom(code, kind.letter == "i")


# ---- order ----


def is_less(x: Element, y: Element) -> z3.BoolRef:
    """Return the claim that x < y."""
    if isinstance(x, Floating) and isinstance(y, Floating):
        return _less_numbers(x, y)
    assert isinstance(x, Integer)
    assert isinstance(y, Integer)
    apart = x - y
    if apart.high < 0:
        return TRUE
    if apart.low >= 0:
        return FALSE
    if x.low >= 0 and y.low >= 0:
        bits = max(x.most.bit_length(), y.most.bit_length())
        claim = z3.ULT(x.term(bits), y.term(bits))
    else:
        bits = max(x.bits, y.bits)
        claim = x.term(bits) < y.term(bits)
    bound = -apart.constant
    reverse = (apart * -1).key
    means(
        claim,
        Meaning(
            {apart.key: (None, bound - 1), reverse: (1 - bound, None)},
            {apart.key: (bound, None), reverse: (None, -bound)},
        ),
    )
    return claim


def is_equal(x: Element, y: Element) -> z3.BoolRef:
    """Return the claim that x = y."""
    if isinstance(x, Floating) and isinstance(y, Floating):
        for zero, other in ((x, y), (y, x)):
            if zero.is_constant_zero:
                return other.zero
        codes = _codes(x, y)
        if codes is not None:
            alike = codes[0] == codes[1]
            return all_hold(any_hold(alike, all_hold(x.zero, y.zero)), denied(x.nan), denied(y.nan))
        return all_hold(difference_sign(x, y)[1], denied(x.nan), denied(y.nan))
    if isinstance(x, z3.BoolRef) and isinstance(y, z3.BoolRef):
        if known(y) is not None:
            return x if known(y) else denied(x)
        return y if known(x) else denied(y) if known(x) is False else x == y
    assert isinstance(x, Integer)
    assert isinstance(y, Integer)
    apart = x - y
    if apart.low > 0 or apart.high < 0:
        return FALSE
    if apart.low == apart.high:
        return TRUE
    unsigned = x.low >= 0 and y.low >= 0
    bits = max(x.most.bit_length(), y.most.bit_length(), 1) if unsigned else max(x.bits, y.bits)
    claim = x.term(bits) == y.term(bits)
    bound = -apart.constant
    means(claim, Meaning({apart.key: (bound, bound), (apart * -1).key: (-bound, -bound)}, {}))
    return claim


def _codes(x: Floating, y: Floating) -> tuple[z3.BitVecRef, z3.BitVecRef] | None:
    """The codes of two numbers in one format, where they are at hand."""
    fmt = x.code[0] if x.code is not None else y.code[0] if y.code is not None else None
    if fmt is None or fmt.specials != Specials.IEEE or not fmt.is_whole or not fmt.signed:
        return None
    found = []
    for each in (x, y):
        if each.code is not None and each.code[0] == fmt:
            found.append(each.code[1])
        elif z3.is_bv_value(each.significand) and each.exponent.value is not None and each.fits(fmt):
            found.append(z3.simplify(each.to_code(fmt)))
        else:
            return None
    return found[0], found[1]


def _less_numbers(x: Floating, y: Floating) -> z3.BoolRef:
    numbers = all_hold(denied(x.nan), denied(y.nan))
    codes = _codes(x, y)
    if codes is None:
        return all_hold(difference_sign(x, y)[0], numbers)
    bits = codes[0].size()
    keys = []
    for code in codes:
        magnitude = z3.ZeroExt(1, sliced(code, bits - 2, 0))
        keys.append(z3.simplify(_keyed(code, magnitude)) if z3.is_bv_value(code) else _keyed(code, magnitude))
    return all_hold(keys[0] < keys[1], numbers)


def _keyed(code: z3.BitVecRef, magnitude: z3.BitVecRef) -> z3.BitVecRef:
    return z3.If(sliced(code, code.size() - 1, code.size() - 1) == 1, -magnitude, magnitude)


def chosen_element(claim: z3.BoolRef, x: Element, y: Element) -> Element:
    """`If` of two values of one kind."""
    if isinstance(x, Floating) and isinstance(y, Floating):
        return chosen(claim, x, y)
    if isinstance(x, Integer) and isinstance(y, Integer):
        return chosen_whole(claim, x, y)
    assert isinstance(x, z3.BoolRef)
    assert isinstance(y, z3.BoolRef)
    if known(x) is not None:
        return any_hold(claim, y) if known(x) else all_hold(denied(claim), y)
    if known(y) is not None:
        return any_hold(denied(claim), x) if known(y) else all_hold(claim, x)
    return any_hold(all_hold(claim, x), all_hold(denied(claim), y))


def _of_zeros(x: Floating, y: Floating, found: Floating) -> Floating:
    """The larger or the smaller of two, of which zeros of two signs is left open (IEEE 754-2019 §9.6)."""
    zeros = all_hold(x.zero, y.zero)
    if known(zeros) is False or x.sign.eq(y.sign):
        return found
    sign = z3.If(x.sign == y.sign, x.sign, state().unknown("sign of the larger or smaller of two zeros", 1))
    return chosen(zeros, replace(Floating.of(0.0), sign=sign), found)


def larger(x: Element, y: Element) -> Element:
    """The larger of two; a NaN, if one is."""
    if isinstance(x, Integer) and isinstance(y, Integer):
        return larger_whole(x, y)
    if isinstance(x, z3.BoolRef) and isinstance(y, z3.BoolRef):
        return any_hold(x, y)
    return _first_if(is_less(y, x), x, y)


def smaller(x: Element, y: Element) -> Element:
    """The smaller of two; a NaN, if one is."""
    if isinstance(x, Integer) and isinstance(y, Integer):
        return smaller_whole(x, y)
    if isinstance(x, z3.BoolRef) and isinstance(y, z3.BoolRef):
        return all_hold(x, y)
    return _first_if(is_less(x, y), x, y)


def _first_if(claim: z3.BoolRef, x: Element, y: Element) -> Floating:
    """The first of two numbers if the claim holds, else the second; a NaN, if one is."""
    assert isinstance(x, Floating)
    assert isinstance(y, Floating)
    found = _of_zeros(x, y, chosen(any_hold(x.nan, all_hold(denied(y.nan), claim)), x, y))
    return replace(found, open=True)  # a NaN is made quiet, or a new one


# ---- arithmetic ----


def add(x: Element, y: Element, kind: DType) -> Element:
    """x + y of one kind."""
    if isinstance(x, Floating) and isinstance(y, Floating):
        return plus(x, y, _fmt(kind))
    assert isinstance(x, Integer)
    assert isinstance(y, Integer)
    return wrapped(x + y, kind)


def subtract(x: Element, y: Element, kind: DType) -> Element:
    """x − y of one kind."""
    if isinstance(x, Floating) and isinstance(y, Floating):
        return plus(x, y.negative(), _fmt(kind))
    assert isinstance(x, Integer)
    assert isinstance(y, Integer)
    return wrapped(x - y, kind)


def multiply(x: Element, y: Element, kind: DType) -> Element:
    """x · y of one kind."""
    if isinstance(x, Floating) and isinstance(y, Floating):
        x, y = factor_of(y, x, _fmt(kind)), factor_of(x, y, _fmt(kind))
        exact = product(x, y)
        if x.power or y.power:
            exact = trimmed(settled(exact), _fmt(kind))
        return exact.rounded_to(_fmt(kind))
    if isinstance(x, z3.BoolRef) and isinstance(y, z3.BoolRef):
        return all_hold(x, y)
    assert isinstance(x, Integer)
    assert isinstance(y, Integer)
    return wrapped(x.times(y), kind)


def divide(x: Element, y: Element, kind: DType) -> Element:
    """x / y, where y is known to be a power of two."""
    if not (isinstance(x, Floating) and isinstance(y, Floating) and y.power and y.exponent.value is not None):
        raise refused("a division by what is no power of two")
    inverse = replace(Floating.of(Fraction(2) ** -y.exponent.value), sign=y.sign)
    return product(x, inverse).rounded_to(_fmt(kind))


def floor_divide(x: Element, y: Element, kind: DType) -> Element:
    """⌊x / y⌋ of integers, where y is known to be a power of two."""
    return shift_right(x, Integer.of(_log2(x, y)), kind, "python")


def remainder(x: Element, y: Element, kind: DType) -> Element:
    """The remainder of integers, not negative, where y is known to be a power of two."""
    places = _log2(x, y)
    return bitwise("and", x, Integer.of((1 << places) - 1), kind)


def _log2(x: Element, y: Element) -> int:
    value = y.value if isinstance(y, Integer) else None
    if not isinstance(x, Integer) or value is None or value <= 0 or value & value - 1:
        raise refused("a division by what is no power of two")
    return value.bit_length() - 1


def negative(x: Element, kind: DType) -> Element:
    """−x."""
    return _signed(x, x.negative(), kind) if isinstance(x, Floating) else wrapped(-_whole(x), kind)


def absolute(x: Element, kind: DType) -> Element:
    """|x|."""
    if isinstance(x, Floating):
        return _signed(x, x.absolute(), kind)
    value = _whole(x)
    return wrapped(chosen_whole(is_less(value, Integer.of(0)), -value, value), kind)


def _signed(x: Floating, made: Floating, kind: DType) -> Floating:
    """A number with another sign, with its code; of 16 bits a NaN is open, as torch makes a quiet one of each."""
    if x.code is None or x.code[0].specials != Specials.IEEE or not x.code[0].is_whole:
        return made
    fmt, code = x.code
    bits = fmt.storage_bits
    changed = z3.simplify(z3.Concat(made.sign, sliced(code, bits - 2, 0)))
    return replace(made, code=(fmt, changed), open=x.open or kind.bits == _HALF)


def _whole(x: Element) -> Integer:
    if isinstance(x, z3.BoolRef):
        return of_claim(x)
    if not isinstance(x, Integer):
        raise refused("an operation of integers on floating-point numbers: take their bits with .view(…)")
    return x


# ---- bits ----


def bitwise(name: str, x: Element, y: Element, kind: DType) -> Element:
    """`and`, `or`, `xor` of integers, or of claims."""
    if isinstance(x, z3.BoolRef) and isinstance(y, z3.BoolRef):
        return {"and": all_hold, "or": any_hold, "xor": lambda u, v: denied(is_equal(u, v))}[name](x, y)
    u, v = _whole(x), _whole(y)
    if u.value is not None and v.value is not None:
        return Integer.of(
            {"and": operator.and_, "or": operator.or_, "xor": operator.xor}[name](u.value, v.value)
        )
    for mask, other in ((u, v), (v, u)):
        value = mask.value
        if value is not None and name == "and" and value >= 0:
            return _masked(other, value)
        if value == 0 and name != "and":
            return other
    unsigned = u.low >= 0 and v.low >= 0
    bits = max(u.most.bit_length(), v.most.bit_length(), 1) if unsigned else max(u.bits, v.bits)
    term = {"and": operator.and_, "or": operator.or_, "xor": operator.xor}[name](u.term(bits), v.term(bits))
    return wrapped(Integer.atom(term, not unsigned), kind)


def _masked(x: Integer, mask: int) -> Integer:
    """The bits of an integer that a mask has."""
    low = (mask & -mask).bit_length() - 1 if mask else 0
    high = mask.bit_length() - 1
    if mask == 0:
        return Integer.of(0)
    bits = x.most.bit_length() if x.low >= 0 else max(x.bits, high + 1)
    if x.low >= 0 and high >= bits:
        high = bits - 1
        if high < low:
            return Integer.of(0)
    word = sliced(x.term(max(bits, 1)), high, low)
    kept = mask >> low & (1 << (high - low + 1)) - 1
    if kept != (1 << (high - low + 1)) - 1:
        word = word & kept
    return Integer.atom(word, False) * (1 << low)


def shift_left(x: Element, by: Element, kind: DType, library: str) -> Element:
    """x · 2^by."""
    value, places = _whole(x), _shift(_whole(by), kind, library)
    if places.value is not None:
        return wrapped(value * (1 << places.value), kind)
    high = min(places.high, kind.bits - 1 if kind.bits is not None else places.high)
    bits = (
        max((value.high << high).bit_length(), (~(value.low << high)).bit_length() if value.low < 0 else 0)
        + 1
    )
    if bits > _GROWN:
        raise refused(f"a shift to an integer of {bits} bits")
    width = max(bits, places.bits)
    term = value.term(width) << places.term(width)
    low = min(value.low << high, 0) if value.low < 0 else 0
    found = wrapped(Integer.atom(term, True, low, max(value.high << high, 0)), kind)
    return _far(places, kind, library, found, Integer.of(0))


def shift_right(x: Element, by: Element, kind: DType, library: str) -> Element:
    """⌊x / 2^by⌋."""
    value, places = _whole(x), _shift(_whole(by), kind, library)
    if value.value is not None and places.value is not None:
        return Integer.of(value.value >> places.value)
    if places.value is not None:
        return _shifted_by(value, places.value)
    width = max(value.bits, places.bits)
    negative_too = value.low < 0
    term = (
        value.term(width) >> places.term(width)
        if negative_too
        else z3.LShR(value.term(width), places.term(width))
    )
    high = max(value.high >> max(places.low, 0), value.high >> places.high, 0)
    low = min(value.low >> max(places.low, 0), 0)
    bits = (max(high, ~low)).bit_length() + 1
    found = Integer.atom(z3.Extract(bits - 1, 0, term) if bits < width else term, True, low, high)
    minus = chosen_whole(is_less(value, Integer.of(0)), Integer.of(-1), Integer.of(0))
    return _far(places, kind, library, found, minus)


def _shifted_by(value: Integer, places: int) -> Integer:
    if places == 0:
        return value
    if value.low >= 0:
        bits = max(value.most.bit_length(), 1)
        if places >= bits:
            return Integer.of(0)
        return Integer.atom(
            sliced(value.term(bits), bits - 1, places), False, value.low >> places, value.high >> places
        )
    bits = value.bits
    places = min(places, bits - 1)
    return Integer.atom(
        sliced(value.own(), bits - 1, places), True, value.low >> places, value.high >> places
    )


def _shift(by: Integer, kind: DType, library: str) -> Integer:
    """Return the distance of a shift.  Raises ProgramError where it may be negative."""
    if by.low < 0:
        raise refused("a shift by what may be negative: take its maximum with 0 first")
    if by.value is not None and kind.bits is not None and by.value >= kind.bits and library == "torch":
        raise refused(f"a shift of {kind.name} by {by.value}, which is not defined")
    return by


def _far(by: Integer, kind: DType, library: str, found: Integer, beyond: Integer) -> Integer:
    """A shift by the width or more: of NumPy all bits are gone, of torch it is not defined."""
    if kind.bits is None or by.high < kind.bits or library == "python":
        return found
    far = denied(is_less(by, Integer.of(kind.bits)))
    if library == "torch":
        beyond = Integer.atom(state().unknown("shifted by too much", kind.bits), kind.letter == "i")
    return chosen_whole(far, beyond, found)


def bit_length(x: Element) -> Integer:
    """The place of the leading one of |x|, from 1; 0 of 0."""
    value = _whole(absolute(x, DType("int", "i")))
    number = Floating.integer(value)
    return fraction_and_exponent(number)[1] if value.atoms else Integer.of(abs(value.constant).bit_length())


# ---- numbers ----


def exp2(x: Element, kind: DType) -> Floating:
    """2^x of an integer, or a number that is one, in a format."""
    value = x if isinstance(x, Integer) else x.whole if isinstance(x, Floating) else of_claim(x)
    if value is None and isinstance(x, Floating) and x.exponent.value is not None and x.low >= 0:
        bits = x.high + 1
        value = Integer.atom(x.fixed(0, max(bits, 1)), True)
    if value is None:
        raise refused("2 to the power of what is no integer")
    if not value.atoms:
        return Floating.of(Fraction(2) ** value.constant).rounded_to(_fmt(kind))
    sign, one = z3.BitVecVal(0, 1), z3.BitVecVal(1, 1)
    return rounded_power(Floating(sign, one, value, value.low, value.high + 1, 1, FALSE), _fmt(kind))


def integral(x: Element, rounding: Rounding) -> Element:
    """The value rounded to an integer."""
    return toward(x, rounding) if isinstance(x, Floating) else x


def frexp(x: Element) -> tuple[Floating, Integer]:
    """frexp."""
    if not isinstance(x, Floating):
        raise refused("frexp of what is no floating-point number")
    if z3.is_bv_value(x.significand) and x.exponent.value is not None and x.significand.as_long():
        bits = x.significand.as_long().bit_length()
        return replace(x, exponent=Integer.of(-bits), low=-bits, high=0, code=None), x.exponent + bits
    return fraction_and_exponent(x)


def added_up(every: Sequence[Element], kind: DType, library: str) -> Element:
    """The sum of several values of one kind."""
    if kind.is_float:
        minus = z3.BitVecVal(0, 1) if library == "torch" else state().unknown("sign of a sum of -0", 1)
        found = unrounded_sum([x for x in every if isinstance(x, Floating)], minus)
        if found is None or not found.fits(_fmt(kind)):
            if len(every) == 2:
                return add(every[0], every[1], kind)
            raise refused(
                f"a sum of {len(every)} numbers that {kind.name} rounds, in an order that is the library's own"
            )
        return found
    total = Integer.of(0)
    for x in every:
        total = wrapped(total + _whole(x), kind)
    return total


Binary: TypeAlias = "Callable[[Element, Element, DType], Element]"
