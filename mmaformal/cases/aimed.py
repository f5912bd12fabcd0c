"""Rows aimed at the corners of a model, computed from the exact sum of their terms.

A boundary is where the rounding of d turns: halfway between two neighbours, a number of d, the sum from which on d
overflows, the least normal number, half the least number.  Some terms are drawn; the others are solved for, so that the
exact sum is a boundary: each takes the leading places of what is missing.  A term that is left moves the sum a little
to either side, by the next place or by one far below.  Nothing of this depends on how a model adds; special values and
the ends of the formats are put into each place besides.
"""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from math import floor

from mmaformal.cases.codes import opposite_code
from mmaformal.cases.generate import DISTRIBUTIONS, Distribution, generate
from mmaformal.cases.inputs import Codes, Rows, one, zeros
from mmaformal.formats import Format, exponent_of
from mmaformal.spec import DotAdd

#: All distributions that rows are drawn from.
_DRAWN: tuple[Distribution, ...] = (*DISTRIBUTIONS, "edge", "tiny", "subnormal", "cancel")
#: Tries for a row whose exact sum is where it was to be.
_TRIES = 4


Pins = Mapping[str, int]  #: inputs of a given code: a0, b1, c
_NONE: Pins = {}


def rows_drawn(spec: DotAdd, count: int, seed: int, pins: Pins = _NONE) -> Rows:
    """Return rows of all distributions."""
    return generate(spec, count, seed, _DRAWN)


def at_ties(spec: DotAdd, count: int, seed: int, pins: Pins = _NONE) -> Rows:
    """Return rows whose exact sum is halfway between neighbours of d, or a number of d, or next to that."""
    draw = _Aiming(spec, seed, pins)
    return Rows.of([draw.row(draw.tie) for _ in range(count)])


def at_limits(spec: DotAdd, count: int, seed: int, pins: Pins = _NONE) -> Rows:
    """Return rows whose exact sum is where d overflows, or where its least numbers are, or next to that."""
    draw = _Aiming(spec, seed, pins)
    return Rows.of([draw.row(draw.limit) for _ in range(count)])


def special_in_each_place(spec: DotAdd, count: int, seed: int, pins: Pins = _NONE) -> Rows:
    """Return rows with a special value in one place, or in two; other places are 0, or 1, or of any distribution."""
    rng = random.Random(seed)
    others = [*(zeros(spec), _of_ones(spec)), *generate(spec, 16, seed).cases()]
    places = [(side, k) for side in "ab" for k in range(spec.k)] + [("c", 0)]
    places += [(side, k) for side in ("scale_a", "scale_b") for k in range(spec.scales)]
    every = [
        (which, place, code)
        for place in places
        for code in _specials(_format_of(spec, place[0]))
        for which in range(3)
    ]
    rng.shuffle(every)
    found = []
    for number in range(count):
        which, place, code = every[number % len(every)]
        row = _with(others[min(which, 1) if which < 2 else rng.randrange(2, len(others))], place, code)
        if number >= len(every) or rng.random() < 0.2:
            other = rng.choice(places)
            row = _with(row, other, rng.choice(_specials(_format_of(spec, other[0]))))
        found.append(row)
    return Rows.of(found)


def at_ends_of_formats(spec: DotAdd, count: int, seed: int, pins: Pins = _NONE) -> Rows:
    """Return rows of one to three products and c, each operand at an end of its format, or next to it."""
    rng, a, b = random.Random(seed), _ends(spec.a_format), _ends(spec.b_format)
    c, found = _ends(spec.c_format), []
    for _ in range(count):
        row = zeros(spec)
        for k in rng.sample(range(spec.k), min(spec.k, rng.choice((1, 1, 2, 3)))):
            row = _with(_with(row, ("a", k), rng.choice(a)), ("b", k), rng.choice(b))
        found.append(_with(row, ("c", 0), rng.choice(c)))
    return Rows.of(found)


#: Kinds of rows, by what is said of them.
KINDS_OF_ROWS: dict[str, Callable[[DotAdd, int, int, Pins], Rows]] = {
    "drawn at random": rows_drawn,
    "at ties and next to them": at_ties,
    "at overflow, at the least numbers and next to them": at_limits,
    "with special values in each place": special_in_each_place,
    "at the ends of the formats": at_ends_of_formats,
}


# ---- codes ----------------------------------------------------------------------------------------------------------


def toward_zero(fmt: Format, value: Fraction) -> int:
    """The code of the number nearest to a value whose magnitude is not larger; the largest one's beyond that."""
    if fmt.is_integer:
        whole = floor(value) if value >= 0 else -floor(-value)
        return max(-fmt.sign_mask, min(fmt.largest, whole)) % fmt.codes
    size = abs(value)
    if not size or (value < 0 and not fmt.sign_mask):
        return 0
    sign = fmt.sign_mask if value < 0 else 0
    if size >= fmt.value(fmt.largest):
        return fmt.largest | sign
    exponent = max(exponent_of(size), fmt.min_exponent)
    significand = floor(size / _power(exponent - fmt.fraction_bits))
    field = exponent + fmt.bias if significand >> fmt.fraction_bits else 0
    fraction = significand & ((1 << fmt.fraction_bits) - 1)
    code = ((field << fmt.fraction_bits) + fraction) << fmt.ignored_low_bits
    return code | sign if code else 0


def _power(exponent: int) -> Fraction:
    return Fraction(1 << exponent) if exponent >= 0 else Fraction(1, 1 << -exponent)


def _format_of(spec: DotAdd, side: str) -> Format:
    scale = spec.scale_format
    found = {"a": spec.a_format, "b": spec.b_format, "c": spec.c_format}.get(side, scale)
    assert found is not None
    return found


def _with(codes: Codes, place: tuple[str, int], code: int) -> Codes:
    """The codes with another one in a place."""
    side, k = place
    sides = {name: getattr(codes, name) for name in ("a", "b", "c", "scale_a", "scale_b")}
    sides[side] = code if side == "c" else (*sides[side][:k], code, *sides[side][k + 1 :])
    return Codes(**sides)


def _of_ones(spec: DotAdd) -> Codes:
    row = zeros(spec)
    ones = (one(spec.a_format),) * spec.k, (one(spec.b_format),) * spec.k
    return Codes(*ones, one(spec.c_format), row.scale_a, row.scale_b)


def _specials(fmt: Format) -> list[int]:
    """Zeros, infinities, NaNs of several payloads, and the largest and least numbers, of both signs."""
    found = [0, 1, fmt.largest, fmt.codes - 1, one(fmt)]
    if fmt.infinity is not None:
        found += [fmt.infinity, fmt.infinity + 1]
    with contextlib.suppress(ValueError):  # some have no NaN
        found.append(fmt.code("nan"))
    return _both_signs(fmt, found)


def _ends(fmt: Format) -> list[int]:
    """Codes at the ends of a format: the least and largest subnormal and normal numbers, 1, and what is beside them."""
    step, normal = 1 << fmt.ignored_low_bits, 1 << (fmt.fraction_bits + fmt.ignored_low_bits)
    found = [0, step, 2 * step, normal - step, normal, normal + step, one(fmt), one(fmt) + step]
    found += [fmt.largest - step, fmt.largest, *([] if fmt.infinity is None else [fmt.infinity])]
    return _both_signs(fmt, found)


def _both_signs(fmt: Format, codes: Sequence[int]) -> list[int]:
    there = [code for code in codes if 0 <= code < fmt.codes]
    return list(dict.fromkeys(x for code in there for x in (code, (code ^ fmt.sign_mask) % fmt.codes)))


# ---- aiming ---------------------------------------------------------------------------------------------------------


class _Aiming:
    """Draws rows whose exact sum is where it is to be."""

    def __init__(self, spec: DotAdd, seed: int, pins: Pins = _NONE) -> None:
        self.spec, self.rng, self.pins = spec, random.Random(seed), pins
        self.c = spec.k  #: the place of c

    # -- where to --

    def tie(self) -> Fraction:
        """Halfway between neighbours of d, or a number of d."""
        d, rng = self.spec.d_format, self.rng
        if d.is_integer:
            return Fraction(rng.randint(-d.sign_mask, d.largest))
        exponent = rng.randint(d.min_exponent, d.max_exponent)
        if rng.random() < 0.7:  # where products are
            a, b = self.spec.a_format, self.spec.b_format
            exponent = rng.randint(a.min_exponent, a.max_exponent) + rng.randint(
                b.min_exponent, b.max_exponent
            )
            exponent = min(max(exponent + rng.randint(-2, 2), d.min_exponent), d.max_exponent)
        ones = (1 << d.fraction_bits) - 1
        fraction = rng.choice((0, 0, 1, ones, ones, rng.randint(0, ones), rng.randint(0, ones)))
        implicit = 0 if exponent == d.min_exponent and rng.random() < 0.3 else ones + 1
        half = Fraction(rng.choice((1, 1, 1, 0)), 2)
        return self._signed((implicit + fraction + half) * _power(exponent - d.fraction_bits))

    def limit(self) -> Fraction:
        """A sum where d overflows, or where its least numbers are."""
        d, rng = self.spec.d_format, self.rng
        if d.is_integer:
            return Fraction(rng.choice((d.largest, d.largest + 1, -d.sign_mask, -d.sign_mask - 1, 0)))
        last, least = (_power(e - d.fraction_bits) for e in (d.max_exponent, d.min_exponent))
        largest, normal = d.value(d.largest), _power(d.min_exponent)
        above = [largest - last / 2, largest, largest + last / 2, largest + last]
        below = [
            least / 2,
            least,
            3 * least / 2,
            normal - least,
            normal - least / 2,
            normal - least / 4,
            normal,
        ]
        return self._signed(rng.choice(above if rng.random() < 0.5 else below))

    def _signed(self, value: Fraction) -> Fraction:
        return -value if self.spec.d_format.signed and self.rng.random() < 0.5 else value

    # -- how to get there --

    def row(self, target: Callable[[], Fraction]) -> Codes:
        """A row whose exact sum is a target, or next to it; where no try succeeds, the last one."""
        for _ in range(_TRIES):
            place = target()
            codes, missing = self._aimed(place)
            if abs(missing) * 4 <= self._unit(place):
                break
        return codes

    def _unit(self, place: Fraction) -> Fraction:
        """A unit in the last place of d."""
        d = self.spec.d_format
        if d.is_integer:
            return Fraction(4)
        exponent = min(max(exponent_of(place), d.min_exponent), d.max_exponent) if place else d.min_exponent
        return _power(exponent - d.fraction_bits)

    def _aimed(self, place: Fraction) -> tuple[Codes, Fraction]:
        """A row for a target, and what is missing there but for what moves the sum on purpose."""
        spec, rng = self.spec, self.rng
        self.values, self.scales = dict[int, Fraction](), self._drawn_scales()
        self.codes = dict[int, tuple[int, int]]()
        self._set_pinned()
        free = [k for k in self._places() if k not in self.codes]
        aside = free.pop() if len(free) > 1 and rng.random() < 0.7 else None
        self._others(free, place)
        if rng.random() < 0.1 and free:
            self._product_alone(next((k for k in free if k != self.c), None), place)
        for k in free:
            missing = place - sum(self.values.values())
            if missing and k not in self.values:
                self._put(k, missing)
        missing = place - sum(self.values.values())
        if aside is not None:
            self._put(aside, self._little(place))
        a, b = ([self.codes.get(k, (0, 0))[i] for k in range(spec.k)] for i in (0, 1))
        return Codes(tuple(a), tuple(b), self.codes.get(self.c, (0, 0))[0], *self.scales), missing

    def _set_pinned(self) -> None:
        """Set c, and products of which both factors are given, where they are numbers."""
        spec, pins = self.spec, self.pins
        if "c" in pins and spec.c_format.is_finite(pins["c"]):
            self._set(self.c, pins["c"], 0)
        for k in range(spec.k):
            x, y = pins.get(f"a{k}"), pins.get(f"b{k}")
            if x is not None and y is not None and spec.a_format.is_finite(x) and spec.b_format.is_finite(y):
                self._set(k, x, y)

    def _places(self) -> list[int]:
        """Free places in the order in which they are filled, one for what is added last at its end."""
        spec, rng = self.spec, self.rng
        step, start = spec.parameters.step_products, 0
        products = list(range(spec.k))
        if step < spec.k and rng.random() < 0.7:  # one step of a chain
            start = step * rng.randrange(spec.k // step)
            products = products[start : start + step]
        rng.shuffle(products)
        products = products[: rng.choice((1, 2, 3, len(products)))]
        if not spec.reads_c or rng.random() < 0.1:
            return products
        return [self.c, *products] if rng.random() < 0.6 else self._shuffled([self.c, *products])

    def _shuffled(self, places: list[int]) -> list[int]:
        self.rng.shuffle(places)
        return places

    def _others(self, free: list[int], place: Fraction) -> None:
        """Fill some places with terms that cancel, or with one near the target."""
        rng, products = self.rng, [k for k in free if k != self.c]
        size = abs(place) or Fraction(1)
        if len(products) > 2 and not self.pins and rng.random() < 0.4:
            large = self._signed(size * _power(rng.randint(-4, 2 * self.spec.d_format.fraction_bits)))
            self._put(products[-1], large)
            x, y = self.codes[products[-1]]
            minus = opposite_code(x, self.spec.a_format) if x else 0
            self._set(products[-2], minus, y)
        elif len(free) > 1 and rng.random() < 0.3:
            near = size * _power(rng.randint(-self.spec.d_format.fraction_bits, 2)) * rng.randint(3, 9) / 5
            self._put(free[-1], self._signed(near))

    def _product_alone(self, k: int | None, place: Fraction) -> None:
        """Make a product of odd factors that is itself halfway between two neighbours of d, if there is one."""
        a, b, d, rng = self.spec.a_format, self.spec.b_format, self.spec.d_format, self.rng
        bits, place = d.fraction_bits + 2, place or Fraction(1)
        widths = range(max(2, bits - b.fraction_bits - 1), min(a.fraction_bits + 1, bits - 2) + 1)
        if k is None or not widths or f"a{k}" in self.pins or f"b{k}" in self.pins:
            return
        width = rng.choice(widths)
        x, y = (rng.getrandbits(n) | 1 | 1 << (n - 1) for n in (width, bits - width))
        low = max(a.min_exponent, exponent_of(place) - b.max_exponent)
        high = min(a.max_exponent, exponent_of(place) - b.min_exponent)
        if low <= high:
            e = rng.randint(low, high)
            f = exponent_of(place) - e
            values = x * _power(e - width + 1), y * _power(f - (bits - width) + 1)
            self._set(k, *(toward_zero(fmt, value) for fmt, value in zip((a, b), values, strict=True)))

    def _little(self, place: Fraction) -> Fraction:
        """A number that moves a sum: by a place after the last, or by one anywhere below."""
        d, rng = self.spec.d_format, self.rng
        if d.is_integer:
            return self._signed(Fraction(rng.randint(1, 4)))
        top = exponent_of(self._unit(place))
        a, b = self.spec.a_format, self.spec.b_format
        least = a.min_exponent + b.min_exponent - a.fraction_bits
        below = rng.choice((0, 1, 2, 3, d.fraction_bits, 30, None, None, None))
        exponent = rng.randint(min(least, top - 1), top - 1) if below is None else top - 1 - below
        return self._signed(_power(exponent))

    # -- terms --

    def _put(self, k: int, value: Fraction) -> None:
        """Put the leading places of a value into a place."""
        spec = self.spec
        if k == self.c:
            self._set(k, toward_zero(spec.c_format, value * spec.c_sign), 0)
            return
        value = value * spec.product_sign / self._scale(k)
        if not value:
            return
        given = self.pins.get(f"a{k}")
        if given is not None and spec.a_format.is_finite(given):
            of_a = spec.a_format.value(given)
            self._set(k, given, toward_zero(spec.b_format, value / of_a) if of_a else 0)
            return
        y = self.pins.get(f"b{k}", -1)
        y = y if y >= 0 and spec.b_format.is_finite(y) else self._factor(exponent_of(value))
        of_b = spec.b_format.value(y)
        self._set(k, toward_zero(spec.a_format, value / of_b) if of_b else 0, y)

    def _factor(self, exponent: int) -> int:
        """A code of b such that a can have what is left of a product of this exponent: a power of two, or any."""
        a, b, rng = self.spec.a_format, self.spec.b_format, self.rng
        if b.is_integer:
            return rng.randint(1, max(1, min(b.largest, 4)))
        low, high = (
            max(b.min_exponent, exponent - a.max_exponent),
            min(b.max_exponent, exponent - a.min_exponent),
        )
        chosen = (
            rng.randint(low, high) if low <= high else (b.max_exponent if exponent > 0 else b.min_exponent)
        )
        ones = (1 << b.fraction_bits) - 1
        fraction = rng.choice((0, 0, rng.randint(0, ones)))
        code = ((chosen + b.bias << b.fraction_bits) + fraction) << b.ignored_low_bits
        return min(code, b.largest)

    def _set(self, k: int, x: int, y: int) -> None:
        spec = self.spec
        self.codes[k] = x, y
        if k == self.c:
            self.values[k] = spec.c_sign * spec.c_format.value(x)
        else:
            product = spec.a_format.value(x) * spec.b_format.value(y)
            self.values[k] = spec.product_sign * self._scale(k) * product

    # -- scales --

    def _drawn_scales(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Scales of 1, or some near it."""
        fmt, rng = self.spec.scale_format, self.rng
        if fmt is None:
            return (), ()
        step = 1 << (fmt.fraction_bits + fmt.ignored_low_bits)
        spread = 4 if rng.random() < 0.4 else 0

        def drawn() -> int:
            code = one(fmt) + step * rng.randint(-spread, spread)
            return code if 0 < code < fmt.codes and fmt.is_finite(code) else one(fmt)

        first, second = (tuple(drawn() for _ in range(self.spec.scales)) for _ in "ab")
        return first, second

    def _scale(self, k: int) -> Fraction:
        fmt = self.spec.scale_format
        if fmt is None:
            return Fraction(1)
        block = k // self.spec.scale_block
        return fmt.value(self.scales[0][block]) * fmt.value(self.scales[1][block])
