"""Numbers of a program chosen by a condition, with what is then proved of them; and sums that are rounded."""

from __future__ import annotations

from dataclasses import replace

import z3

from mmaformal.encodings.smt import ieee
from mmaformal.encodings.smt.blocks import pad, quiet_nan, resize
from mmaformal.formats import Format, Specials
from mmaformal.hardware.rebuild import is_value
from mmaformal.hardware.tracing.context import all_hold, any_hold, denied, known, state
from mmaformal.hardware.tracing.floating import Floating, chosen_term, chosen_whole, unrounded_sum
from mmaformal.hardware.tracing.whole import Integer
from mmaformal.rounding import Conversion, Rounding


def chosen(claim: z3.BoolRef, x: Floating, y: Floating) -> Floating:
    """`If` of two numbers."""
    if (value := known(claim)) is not None:
        return x if value else y
    if x is y:
        return x
    x, y = _as_one(claim, x, y)
    code, is_open = _chosen_code(claim, x, y)
    made = _chosen_number(claim, x, y)
    return replace(made, code=code, open=is_open, plus_zero=_is_plus(x) and _is_plus(y))


def _is_plus(x: Floating) -> bool:
    """Whether a number is known not to be −0."""
    return x.plus_zero or (x.is_constant_zero and z3.is_bv_value(x.sign) and not x.sign.as_long())


def _as_one(claim: z3.BoolRef, x: Floating, y: Floating) -> tuple[Floating, Floating]:
    """Two sums, the second one in the place of the first if it is proved to be it wherever the claim holds.

    What two ways through a program compute alike is then one term, however narrow a way has made its own.
    """
    if x.total is None or y.total is None or x.total.eq(y.total) or x.total.size() != y.total.size():
        return x, y
    if x.exponent.value is None or x.exponent.value != y.exponent.value:
        return x, y
    for holds, one, other in ((claim, x, y), (denied(claim), y, x)):
        alike = z3.Or(one.nan, x.sign == y.sign), z3.Or(one.special, x.total == y.total)
        same = z3.And(x.zero == y.zero, *alike)
        if state().proved("two ways through the program give the same sum", [holds], same):
            parts = {name: getattr(other, name) for name in ("sign", "significand", "total", "zero")}
            found = replace(one, **parts)
            return (found, other) if one is x else (other, found)
    return x, y


def _chosen_number(claim: z3.BoolRef, x: Floating, y: Floating) -> Floating:
    """One of two numbers, by what each is made of."""
    nan, infinite, zero = (
        _if(claim, *pair) for pair in ((x.nan, y.nan), (x.infinite, y.infinite), (x.zero, y.zero))
    )
    sign = chosen_term(claim, x.sign, y.sign)
    low, high, digits = min(x.low, y.low), max(x.high, y.high), max(x.digits, y.digits)
    for blank, full in ((x, y), (y, x)):
        if not blank.digits:  # 0, an infinity or a NaN: its significand is nobody's
            zeroed = known(blank.zero) is not False
            significand, exponent, total = full.significand, full.exponent, full.total
            if zeroed:
                significand = _or_nothing(claim, significand, blank is x)
                total = None if total is None else _or_nothing(claim, total, blank is x)
            made = Floating(
                sign,
                significand,
                exponent,
                full.low,
                full.high,
                full.digits,
                zero,
                infinite,
                nan,
                total=total,
            )
            return made if zeroed else replace(made, normal=full.normal)
    if x.significand.eq(y.significand):
        exponent = chosen_whole(claim, x.exponent, y.exponent)
        made = Floating(sign, x.significand, exponent, low, high, digits, zero, infinite, nan)
        both_totals = x.total is not None and y.total is not None and x.total.eq(y.total)
        return settled(replace(made, total=x.total) if both_totals else made)
    bits = max(x.significand.size(), y.significand.size())
    ends = (x.exponent.value, y.exponent.value)
    if ends[0] is not None and ends[1] is not None and ends[0] != ends[1]:
        place = min(ends[0], ends[1])
        bits = max(z.significand.size() + end - place for z, end in ((x, ends[0]), (y, ends[1])))
        if bits <= max(2 * digits, 64):
            terms = [resize(pad(z.significand, end - place), bits) for z, end in ((x, ends[0]), (y, ends[1]))]
            significand = z3.If(claim, *terms)
            return Floating(sign, significand, Integer.of(place), low, high, digits, zero, infinite, nan)
    significand = z3.If(claim, resize(x.significand, bits), resize(y.significand, bits))
    exponent = chosen_whole(claim, x.exponent, y.exponent)
    return settled(Floating(sign, significand, exponent, low, high, digits, zero, infinite, nan))


def _or_nothing(claim: z3.BoolRef, word: z3.BitVecRef, first: bool) -> z3.BitVecRef:
    """A word, or 0 where a claim holds; with `first` false where it does not."""
    nothing = z3.BitVecVal(0, word.size())
    return chosen_term(claim, *((nothing, word) if first else (word, nothing)))


def _chosen_code(
    claim: z3.BoolRef, x: Floating, y: Floating
) -> tuple[tuple[Format, z3.BitVecRef] | None, bool]:
    """The code of one of two numbers, and whether it is open, where one has a code and the other has, or is 0."""
    fmt = x.code[0] if x.code is not None else y.code[0] if y.code is not None else None
    if fmt is None or not all(_has_code(z, fmt) for z in (x, y)):
        return None, False
    left_open = [_is_open(z) for z in (x, y)]
    codes = [z.word(fmt) if all(left_open) else z.to_code(fmt) for z in (x, y)]
    return (fmt, chosen_term(claim, *codes)), all(left_open)


def _has_code(x: Floating, fmt: Format) -> bool:
    if x.code is not None:
        return x.code[0] == fmt
    return not x.digits and fmt.specials == Specials.IEEE and fmt.signed and fmt.is_whole


def _is_open(x: Floating) -> bool:
    """Whether nothing is said of the bits of a NaN: it has none, or they may be any."""
    return known(x.nan) is False or x.open or x.code is None


def _if(claim: z3.BoolRef, x: z3.BoolRef, y: z3.BoolRef) -> z3.BoolRef:
    if x.eq(y):
        return x
    if known(x) is not None and known(y) is not None:
        return claim if known(x) else denied(claim)
    if known(x) is not None:
        return any_hold(claim, y) if known(x) else all_hold(denied(claim), y)
    if known(y) is not None:
        return any_hold(denied(claim), x) if known(y) else all_hold(claim, x)
    return z3.If(claim, x, y)


def settled(x: Floating) -> Floating:
    """A number whose exponent is proved to be constant wherever it counts, with that exponent."""
    if x.exponent.value is not None or len(x.exponent.atoms) > 2:
        return x
    care = z3.And(x.significand != 0, denied(x.special))
    bits = x.exponent.bits
    found = state().constant_where(x.exponent.own(), care)
    if found is None:
        return x
    value = found - (found >> (bits - 1) << bits)
    width = x.significand.size()
    return replace(
        x, exponent=Integer.of(value), low=max(x.low, value), high=min(x.high, value + width), normal=None
    )


def rounded_power(exact: Floating, fmt: Format) -> Floating:
    """A power of two in a format; what it was is remembered, for a product with it may be one of the exact number."""
    made = exact.rounded_to(fmt)
    return made if made is exact or made.code is None else replace(made, before=(made.code[1], exact))


def factor_of(x: Floating, power: Floating, fmt: Format) -> Floating:
    """A factor of x in a format: a power of two as it was before it was rounded to that, where it is proved to be the
    same, no smaller than the format's least number unless x is 0."""
    if power.before is None or power.code is None or power.code[0] != fmt:
        return power
    code, exact = power.before
    if not code.eq(power.code[1]) or exact.high > fmt.max_exponent + 1:
        return power
    care = any_hold(x.infinite, all_hold(x.significand != 0, denied(x.special)))
    least = fmt.min_exponent - fmt.fraction_bits
    said = f"a power of two that is a factor of what is not 0 is none that {fmt.name} rounds"
    return exact if state().proved(said, [care], exact.exponent.own() >= least) else power


def trimmed(x: Floating, fmt: Format) -> Floating:
    """A number that is proved to have no bit below the last place of a format, where that alone is not known of it."""
    least = fmt.min_exponent - fmt.fraction_bits
    if x.low >= least or not replace(x, low=least).fits(fmt):
        return x
    care = z3.And(x.significand != 0, denied(x.special))
    inside = x.exponent.own() >= least
    said = f"a number that is not 0 has no bit below the last place of {fmt.name}"
    return replace(x, low=least) if state().proved(said, [care], inside) else x


def plus(x: Floating, y: Floating, fmt: Format) -> Floating:
    """The sum of two numbers of a format, rounded to nearest even."""
    for zero, other in ((x, y), (y, x)):
        if zero.is_constant_zero and other.code is not None:
            return _with_zero(other, zero)
    exact = unrounded_sum([x, y])
    if exact is not None and exact.fits(fmt):
        return exact
    if exact is not None and exact.high - exact.low <= 2 * (fmt.fraction_bits + 4):
        return exact.rounded_to(fmt)
    rho = Conversion(f"IEEE-{fmt.name.upper()}", fmt, fmt.fraction_bits, Rounding.RNE, signed_zero=True)
    found = ieee.add(x.word(fmt), y.word(fmt), rho, quiet_nan(fmt)).result
    return Floating.from_code(found, fmt, any_nan=True)


def _with_zero(x: Floating, zero: Floating) -> Floating:
    """x + 0: x but for −0, and a NaN that is made quiet, as processors do it (IEEE 754-2019 §6.2.3).

    What follows is made of the sum's code alone: in a chain of steps a model has that code.
    """
    assert x.code is not None
    fmt, code = x.code
    bits = fmt.storage_bits
    if fmt.specials != Specials.IEEE:
        return replace(x, code=None)
    quiet = code | z3.BitVecVal(1 << (fmt.fraction_bits - 1), bits)
    x_nan = state().cuts.get(str(x.nan), x.nan) if z3.is_const(x.nan) else x.nan
    made = chosen_term(x_nan, quiet, code)
    if not z3.is_true(zero.negated):
        made = z3.If(code == z3.BitVecVal(1 << (bits - 1), bits), z3.BitVecVal(0, bits), made)
    made = made if is_value(made) else state().fresh("code", made)
    return Floating.from_code(made, fmt, any_nan=x.open)
