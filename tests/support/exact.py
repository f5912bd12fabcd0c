"""Every algorithm again, in exact rational arithmetic, written from docs/semantics.md §1 to §6 alone.

Slow, branching, and with numbers instead of bit patterns: to test the encodings against.  It shares with them only
the table of formats (`Format.fields`, `value`, …, tested against ml_dtypes) and the parameters.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, floor

from mmaformal.cases.inputs import Codes
from mmaformal.encodings.efda import Efda
from mmaformal.encodings.emulated import Emulated
from mmaformal.encodings.fda import Fda
from mmaformal.encodings.fdrda import Fdrda
from mmaformal.encodings.gdfs import Gdfs
from mmaformal.encodings.gfda import Gfda
from mmaformal.encodings.gfdrda import Gfdrda
from mmaformal.encodings.gps import Gps
from mmaformal.encodings.lowered import Lowered
from mmaformal.encodings.muladd import Muladd
from mmaformal.encodings.sfma import Sfma
from mmaformal.formats import Format, fp32
from mmaformal.rounding import IEEE_FP32, Conversion, Rounding
from mmaformal.spec import DotAdd

NAN, PLUS, MINUS = "nan", "+inf", "-inf"
Special = str | None
NO_EXPONENT = -2000  #: of a zero that does not take part in choosing the largest exponent


@dataclass(frozen=True)
class Number:
    """A code read off its fields: `significand · 2^exponent`, not normalised (semantics §1)."""

    negative: bool
    significand: Fraction  #: signed
    exponent: int
    special: Special

    @property
    def value(self) -> Fraction:
        return self.significand * Fraction(2) ** self.exponent


def read(code: int, fmt: Format) -> Number:
    negative, field, _ = fmt.fields(code)
    if fmt.is_nan(code):
        return Number(bool(negative), Fraction(0), 0, NAN)
    if fmt.is_infinite(code):
        return Number(bool(negative), Fraction(0), 0, MINUS if negative else PLUS)
    exponent = max(field, 1) - fmt.bias if fmt.has_zero else field - fmt.bias
    return Number(bool(negative), fmt.value(code) / Fraction(2) ** exponent, exponent, None)


def exponent_of(value: Fraction) -> int:
    """e with 2^e ≤ |value| < 2^(e+1)."""
    e = abs(value.numerator).bit_length() - value.denominator.bit_length()
    return e if abs(value) >= Fraction(2) ** e else e - 1


def cut(x: Fraction, bits: int, rounding: Rounding, random: tuple[int, int] = (0, 0)) -> Fraction:
    """x rounded to `bits` fractional bits; stochastically by R of N bits."""
    scaled = x * 2**bits
    sign, below = (1 if x >= 0 else -1), floor(abs(scaled))
    kept = {
        Rounding.RZ: sign * below,
        Rounding.RNE: round(scaled),
        Rounding.RNA: sign * floor(abs(scaled) + Fraction(1, 2)),
        Rounding.RD: floor(scaled),
        Rounding.RU: ceil(scaled),
        Rounding.RO: sign * (below if below == abs(scaled) else below | 1),
        Rounding.SA: sign * floor(abs(scaled) + Fraction(random[1], 2 ** random[0])),
        Rounding.SB: sign * floor(abs(scaled) + Fraction(2 * random[1] + 1, 2 ** (random[0] + 1))),
        Rounding.SC: sign * ((round(abs(scaled) * 2 ** random[0]) + random[1]) // 2 ** random[0]),
    }
    return Fraction(kept[rounding], 2**bits)


def encode(special: Special, negative: bool, fmt: Format) -> int | None:
    """The code of an infinity; None for NaN, whose code depends on the unit."""
    if special == NAN:
        return None
    top = ((1 << fmt.exponent_bits) - 1) << fmt.fraction_bits
    return top + (fmt.sign_mask if negative else 0)


def convert(value: Fraction, rho: Conversion, zero_negative: bool = False) -> int:
    """ρ (semantics §4); `zero_negative`: the sign of an exact zero."""
    fmt = rho.format
    least, bits = 1 - fmt.bias, fmt.fraction_bits
    if value == 0:
        return fmt.sign_mask if zero_negative and rho.signed_zero else 0
    exponent = max(exponent_of(value), least)
    scaled, random = value / Fraction(2) ** exponent, (rho.random_bits, rho.random)
    rounded = cut(scaled, rho.fraction_bits, rho.rounding, random) * Fraction(2) ** exponent
    sign = fmt.sign_mask if value < 0 else 0
    if rounded == 0:
        return sign if rho.signed_zero else 0
    magnitude, exponent = abs(rounded), max(exponent_of(rounded), least)
    if exponent > fmt.bias:
        return sign + (((1 << fmt.exponent_bits) - 1) << bits)
    integer = magnitude / Fraction(2) ** (exponent - bits)
    assert integer.denominator == 1
    field = 0 if integer < 2**bits else exponent + fmt.bias
    return sign + (field << bits) + int(integer) % 2**bits


def product_special(a: Number, b: Number) -> Special:
    if NAN in (a.special, b.special):
        return NAN
    if a.special or b.special:
        if (a.special is None and a.significand == 0) or (b.special is None and b.significand == 0):
            return NAN
        return MINUS if a.negative != b.negative else PLUS
    return None


def combined(specials: Sequence[Special]) -> Special:
    if NAN in specials or (PLUS in specials and MINUS in specials):
        return NAN
    return PLUS if PLUS in specials else MINUS if MINUS in specials else None


def special_code(special: Special, fmt: Format, nan: int) -> int:
    code = encode(special, special == MINUS, fmt)
    return nan if code is None else code


def canonical(fmt: Format) -> int:
    """All ones but the sign."""
    return fmt.codes // 2 - 1


def quiet(fmt: Format) -> int:
    return (((1 << (fmt.exponent_bits + 1)) - 1) << fmt.fraction_bits) >> 1


def fused_sum(
    terms: Sequence[tuple[Fraction, int]], F: int, rounding: Rounding = Rounding.RZ
) -> tuple[Fraction, int]:
    """Align to F and sum (semantics §1); of no terms, 0 without an exponent."""
    e_max = max((e for _, e in terms), default=NO_EXPONENT)
    return sum((cut(s / Fraction(2) ** (e_max - e), F, rounding) for s, e in terms), Fraction(0)), e_max


# ---- one step of each algorithm ----------------------------------------------------------------------------


def fda(spec, p: Fda, a, b, c, scale_a, scale_b) -> int:
    A, B, C = [read(x, spec.a_format) for x in a], [read(x, spec.b_format) for x in b], read(c, spec.c_format)
    nan = canonical(spec.d_format)
    scales = [read(x, spec.scale_format) for x in (*scale_a, *scale_b)] if spec.scale_format else []
    special = combined([product_special(x, y) for x, y in zip(A, B, strict=True)] + [C.special])
    if any(s.special for s in scales):
        special = NAN
    if special:
        return special_code(special, spec.d_format, nan)
    terms = []
    for k, (x, y) in enumerate(zip(A, B, strict=True)):
        exponent = x.exponent + y.exponent
        if scales:
            exponent += scales[k].exponent + scales[len(A) + k].exponent
        terms.append((x.significand * y.significand, exponent))
    terms.append((C.significand, C.exponent))
    if p.e_zero is not None:
        terms = [(s, e if s else p.e_zero) for s, e in terms]
    total, e_max = fused_sum(terms, p.F, p.cut)
    return convert(total * Fraction(2) ** e_max, p.rho)


def gfda(spec, p: Gfda, a, b, c, scale_a, scale_b) -> int:
    A, B, C = [read(x, spec.a_format) for x in a], [read(x, spec.b_format) for x in b], read(c, spec.c_format)
    special = combined([product_special(x, y) for x, y in zip(A, B, strict=True)] + [C.special])
    if special:
        return special_code(special, spec.d_format, canonical(spec.d_format))

    def placed(significand: Fraction, exponent: int) -> tuple[Fraction, int]:
        return significand, exponent if significand or p.e_zero is None else p.e_zero

    products = [
        placed(x.significand * y.significand, x.exponent + y.exponent) for x, y in zip(A, B, strict=True)
    ]
    terms = [fused_sum(products[g : g + p.G], p.W, p.cut) for g in range(0, len(A), p.G)]
    total, e_max = fused_sum([*terms, placed(C.significand, C.exponent)], p.F, p.cut)
    return convert(total * Fraction(2) ** e_max, p.rho)


def gdfs(spec, p: Gdfs, a, b, c, scale_a, scale_b) -> int:
    """`scale_a`, `scale_b`: one per product."""
    A, B, C = [read(x, spec.a_format) for x in a], [read(x, spec.b_format) for x in b], read(c, spec.c_format)
    alpha, beta = ([read(x, spec.scale_format) for x in s] for s in (scale_a, scale_b))
    if C.special == NAN or any(s.special for s in alpha + beta):
        return canonical(spec.d_format)
    if C.special:
        return special_code(C.special, spec.d_format, 0)
    terms = []
    for g in range(0, len(A), p.G):
        products = [x.value * y.value for x, y in zip(A[g : g + p.G], B[g : g + p.G], strict=True)]
        exponent = alpha[g].exponent + beta[g].exponent
        if p.e_zero is not None and (
            all(product == 0 for product in products) or 0 in (alpha[g].value, beta[g].value)
        ):
            exponent = p.e_zero
        terms.append((sum(products) * alpha[g].significand * beta[g].significand, exponent))
    terms.append((C.significand, p.e_zero if p.e_zero is not None and not C.significand else C.exponent))
    total, e_max = fused_sum(terms, p.F)
    return convert(total * Fraction(2) ** e_max, p.rho)


def fdrda(spec, p: Fdrda, a, b, c, scale_a, scale_b) -> int:
    A, B, C = [read(x, spec.a_format) for x in a], [read(x, spec.b_format) for x in b], read(c, spec.c_format)
    specials, overflows, terms = [C.special], [], []
    for x, y in zip(A, B, strict=True):
        s, e = x.significand * y.significand, x.exponent + y.exponent
        specials.append(product_special(x, y))
        if specials[-1] is None and s and e + (abs(s) >= 2) >= 128:
            overflows.append(PLUS if s > 0 else MINUS)
        terms.append((s, e if s or not p.skip_zero_products else NO_EXPONENT))
    special = combined([*specials, *overflows])
    if p.inputs_first and combined(specials):
        special = combined(specials)
    if special:
        return special_code(special, fp32, quiet(fp32))
    if isinstance(p, Gfdrda):
        (even, e_even), (odd, e_odd) = fused_sum(terms[0::2], p.F), fused_sum(terms[1::2], p.F)
        e_dot = max(e_even, e_odd)
        dot = cut_at(even, e_even, e_dot, p.F, p.cut) + cut_at(odd, e_odd, e_dot, p.F, p.cut)
    else:
        dot, e_dot = fused_sum(terms, p.F)
    e_max = max(e_dot, C.exponent)
    total = cut_at(dot, e_dot, e_max, p.dot_bits, p.cut)
    if not (isinstance(p, Gfdrda) and C.exponent < e_max - p.c_reach):
        total += cut_at(C.significand, C.exponent, e_max, p.F, p.cut)
    value = total * Fraction(2) ** e_max
    if value and p.sum_bits is not None:
        unit = Fraction(2) ** max(exponent_of(value), -126)
        value = cut(value / unit, p.sum_bits, p.cut) * unit
    return convert(value, p.rho)


def cut_at(s: Fraction, e: int, e_max: int, bits: int, rounding: Rounding) -> Fraction:
    return cut(s / Fraction(2) ** (e_max - e), bits, rounding) if s else Fraction(0)


def efda(spec, p: Efda, a, b, c, scale_a, scale_b) -> int:
    A, B, C = [read(x, spec.a_format) for x in a], [read(x, spec.b_format) for x in b], read(c, spec.c_format)
    special = combined([product_special(x, y) for x, y in zip(A, B, strict=True)] + [C.special])
    if special:
        return special_code(special, fp32, quiet(fp32))
    return convert(sum((x.value * y.value for x, y in zip(A, B, strict=True)), C.value), p.rho)


def fma(a: Number, b: Number, c: Number, rho: Conversion) -> int:
    special = combined([product_special(a, b), c.special])
    if special:
        return special_code(special, rho.format, quiet(rho.format))
    both_negative = a.negative != b.negative and c.negative
    return convert(a.value * b.value + c.value, rho, both_negative)


def sfma(spec, p: Sfma, a, b, c, scale_a, scale_b) -> int:
    return fma(read(a[0], spec.a_format), read(b[0], spec.b_format), read(c, spec.c_format), p.rho)


def muladd(spec, p: Muladd, a, b, c, scale_a, scale_b) -> int:
    x, y, z = read(a[0], spec.a_format), read(b[0], spec.b_format), read(c, spec.c_format)
    fmt, special = spec.d_format, product_special(x, y)
    code = (
        special_code(special, fmt, quiet(fmt))
        if special
        else convert(x.value * y.value, p.product, x.negative != y.negative)
    )
    product = read(code, fmt)
    if special := combined([product.special, z.special]):
        return special_code(special, fmt, quiet(fmt))
    return convert(product.value + z.value, p.rho, product.negative and z.negative)


def flushed(code: int) -> int:
    return code & 0x80000000 if code & 0x7F800000 == 0 else code


def flushed_number(code: int, fmt: Format) -> Number:
    x = read(code, fmt)
    if x.special is None and abs(x.value) < Fraction(2) ** (1 - fmt.bias):
        return Number(False, Fraction(0), 1 - fmt.bias, None)
    return x


def gps(spec, p: Gps, a, b, c, scale_a, scale_b) -> int:
    """c is that of the step; only the first one's can be subnormal."""

    def multiply(x: Number, y: Number) -> int:
        special = product_special(x, y)
        if special:
            return special_code(special, fp32, quiet(fp32))
        return flushed(convert(x.value * y.value, IEEE_FP32, x.negative != y.negative))

    def add(x: int, y: int) -> int:
        one = Number(False, Fraction(1), 0, None)
        return flushed(fma(read(x, fp32), one, read(y, fp32), IEEE_FP32))

    def pairwise(values: list[int]) -> int:
        if len(values) == 1:
            return values[0]
        half = len(values) // 2
        return add(pairwise(values[:half]), pairwise(values[half:]))

    products = [
        multiply(flushed_number(x, spec.a_format), flushed_number(y, spec.b_format))
        for x, y in zip(a, b, strict=True)
    ]
    return add(c, pairwise(products))


def lowered(spec, p: Lowered, a, b, c, scale_a, scale_b) -> int:
    def converted(code: int, fmt: Format) -> int:
        x, to = read(code, fmt), p.taken_as(fmt)
        if to == fmt:
            return code
        if x.special:
            return special_code(x.special, to, quiet(to))
        exact = Conversion("exact", to, to.fraction_bits, Rounding.RNE, signed_zero=True)
        assert x.value == 0 or read(convert(x.value, exact), to).value == x.value
        return convert(x.value, exact, x.negative)

    inner = p.inner_dot_add(spec)
    fused = dot_add(
        inner,
        [converted(a[k], spec.a_format) for k in p.order],
        [converted(b[k], spec.b_format) for k in p.order],
        0,
    )
    x, y = read(fused, spec.d_format), read(c, spec.d_format)
    special = combined([x.special, y.special])
    if special:
        return special_code(special, spec.d_format, canonical(spec.d_format))
    return convert(x.value + y.value, p.addition, x.negative and y.negative)


def emulated(spec, p: Emulated, a, b, c, scale_a, scale_b) -> int:
    def rounded(code: int, fmt: Format, rho: Conversion, shift: int = 0) -> int:
        x = read(code, fmt)
        if x.special:
            return special_code(x.special, rho.format, quiet(rho.format))
        return convert(x.value * Fraction(2) ** shift, rho, x.negative)

    def plus(x: int, y: int) -> int:
        u, v = read(x, fp32), read(y, fp32)
        special = combined([u.special, v.special])
        if special:
            return special_code(special, fp32, canonical(fp32))
        return convert(u.value + v.value, IEEE_FP32, u.negative and v.negative)

    def whole(code: int) -> int:
        x = read(code, fp32)
        return code if x.special else convert(Fraction(round(x.value)), IEEE_FP32, False)

    def places(codes: Sequence[int]) -> int:
        """By how many places factors are moved: the largest is below 2^common then."""
        return p.common + 126 - max(code >> 23 & 255 for code in codes) if p.common else 0

    def words(code: int, fmt: Format, moved: int) -> list[int]:
        if p.rounding is None:
            return [code]
        found, left = [], rounded(code, fp32, IEEE_FP32, moved)
        for _ in range(p.words):
            found.append(rounded(whole(left) if p.common else left, fp32, p.rounding))
            left = plus(left, rounded(found[-1], fmt, IEEE_FP32) ^ fp32.sign_mask)
            left = rounded(left, fp32, IEEE_FP32, p.shift)
        return found

    u, v = (
        [words(x, p.unit.a_format, places(a)) for x in a],
        [words(y, p.unit.b_format, places(b)) for y in b],
    )
    back = -places(a) - places(b)
    total, k = c, p.unit.k
    for part in p.parts:
        sum_ = 0 if part.every else total
        for block in range(p.blocks):
            some = slice(block * k, (block + 1) * k)
            for i, j in part.products:
                sum_ = dot_add(p.unit, [x[i] for x in u[some]], [y[j] for y in v[some]], sum_)
            if part.every and ((block + 1) % part.every == 0 or block + 1 == p.blocks):
                total, sum_ = plus(total, rounded(sum_, fp32, IEEE_FP32, back - part.shift)), 0
        total = total if part.every else sum_
    return total


STEPS = {
    "emulated": (emulated, lambda p: p.step_products),
    "sfma": (sfma, lambda p: 1),
    "wfma": (sfma, lambda p: 1),
    "gps": (gps, lambda p: p.G),
    "fda": (fda, lambda p: p.L),
    "gdfs": (gdfs, lambda p: p.L),
    "fdrda": (fdrda, lambda p: p.L),
    "gfdrda": (fdrda, lambda p: p.L),
    "efda": (efda, lambda p: p.L),
    "lowered": (lowered, lambda p: len(p.order)),
    "muladd": (muladd, lambda p: 1),
    "gfda": (gfda, lambda p: p.L),
}


def dot_add(
    spec: DotAdd,
    a: Sequence[int],
    b: Sequence[int],
    c: int,
    scale_a: Sequence[int] = (),
    scale_b: Sequence[int] = (),
) -> int:
    """The code of `c + Σ a_k·b_k`; where the NaN payload is unspecified, the quiet NaN without payload."""
    if spec.product_order:
        n, order = len(spec.product_order), spec.product_order
        a, b = ([side[k - k % n + order[k % n]] for k in range(spec.k)] for side in (a, b))
    step, length = STEPS[spec.parameters.algorithm]
    L = length(spec.parameters)
    if spec.scale_format:
        scale_a = [scale_a[k // spec.scale_block] for k in range(spec.k)]
        scale_b = [scale_b[k // spec.scale_block] for k in range(spec.k)]
    if isinstance(spec.parameters, Gps) and read(c, fp32).special is None:
        c = 0 if c & 0x7F800000 == 0 else c
    for start in range(0, spec.k, L):
        part = slice(start, start + L)
        c = step(spec, spec.parameters, a[part], b[part], c, scale_a[part], scale_b[part])
    return c


def exact_sum(spec: DotAdd, x: Codes) -> Fraction | None:
    """The exact c + Σ a·b; None where an input is no number."""
    named = [(y, spec.a_format) for y in x.a] + [(y, spec.b_format) for y in x.b] + [(x.c, spec.c_format)]
    if spec.scale_format is not None:
        named += [(y, spec.scale_format) for y in (*x.scale_a, *x.scale_b)]
    if not all(f.is_finite(y) for y, f in named):
        return None
    value = spec.c_format.value(x.c)
    for k, (u, v) in enumerate(zip(x.a, x.b, strict=True)):
        product = spec.a_format.value(u) * spec.b_format.value(v)
        if spec.scale_format is not None:
            i = k // spec.scale_block
            product *= spec.scale_format.value(x.scale_a[i]) * spec.scale_format.value(x.scale_b[i])
        value += product
    return value
