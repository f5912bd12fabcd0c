"""The SMT encoding against references that share nothing with it.

1. Exact rational arithmetic, written here from docs/semantics.md (§1, §3, §4, §6) and from nothing else: every
   algorithm, the revisions of §9, and hypothetical parameters, on cases of Hypothesis and on tables of specials.
2. z3's own theory of floating-point numbers, for fma, addition and products: on constants in fp32 and fp64, and as
   proofs for all inputs where the format is small enough.
3. Proofs that the widths of the wide sums are enough, and, by counterexamples, that they are the least.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import pytest
import z3
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mmaformal import ampere, blackwell, cdna1, cdna2, cdna3, hopper, rtx_blackwell, turing, volta
from mmaformal.cases.inputs import symbolic_inputs
from mmaformal.encodings import smt
from mmaformal.encodings.efda import Efda
from mmaformal.encodings.efda import smt as efda
from mmaformal.encodings.fda import Fda
from mmaformal.encodings.fdrda import Fdrda
from mmaformal.encodings.gdfs import Gdfs
from mmaformal.encodings.gfdrda import Gfdrda
from mmaformal.encodings.gps import Gps
from mmaformal.encodings.gps import smt as gps
from mmaformal.encodings.lowered import Lowered
from mmaformal.encodings.sfma import Sfma
from mmaformal.encodings.sfma import smt as sfma
from mmaformal.encodings.smt import blocks, ieee, stages
from mmaformal.formats import Format, Specials, bf16, e2m1, e4m3, e5m2, e5m2fnuz, fp16, fp32, fp64
from mmaformal.rounding import (
    IEEE_FP16,
    IEEE_FP32,
    IEEE_FP64,
    RNE_FP16,
    RNE_FP32,
    RZ_E8M13,
    RZ_FP32,
    Conversion,
    Rounding,
)
from mmaformal.solver.asking import smtlib
from mmaformal.solver.portfolio import Portfolio
from mmaformal.spec import DotAdd

# ---- the specification in exact rational arithmetic --------------------------------------------------------

NAN = "NaN"
INFINITY = float("inf")
Extended = Any  #: NAN, ±INFINITY, or a Fraction

CANONICAL_NAN = {"fp16": 0x7FFF, "fp32": 0x7FFFFFFF}
QUIET_NAN = {"fp16": 0x7E00, "fp32": 0x7FC00000, "fp64": 0x7FF8000000000000}


@dataclass(frozen=True)
class Case:
    """Codes of one dot product-add."""

    a: tuple[int, ...]
    b: tuple[int, ...]
    c: int
    scale_a: tuple[int, ...] = ()
    scale_b: tuple[int, ...] = ()


def two_to(e: int) -> Fraction:
    return Fraction(2) ** e


def floor_log2(x: Fraction) -> int:
    """e with 2^e ≤ |x| < 2^(e+1)."""
    x = abs(x)
    e = x.numerator.bit_length() - x.denominator.bit_length()
    return e if two_to(e) <= x else e - 1


def toward_zero(x: Fraction, bits: int) -> Fraction:
    unit = two_to(-bits)
    return (abs(x) // unit) * unit * (-1 if x < 0 else 1)


def down(x: Fraction, bits: int) -> Fraction:
    return (x // two_to(-bits)) * two_to(-bits)


def cut(x: Fraction, bits: int, rounding: Rounding) -> Fraction:
    """x to `bits` fractional bits."""
    unit = two_to(-bits)
    half, odd = unit / 2, abs(toward_zero(x, bits)) / unit % 2
    sign = -1 if x < 0 else 1
    return {
        Rounding.RNE: round(x / unit) * unit,  # Python rounds halves to even
        Rounding.RNA: toward_zero(x + sign * half, bits),
        Rounding.RZ: toward_zero(x, bits),
        Rounding.RD: down(x, bits),
        Rounding.RU: -down(-x, bits),
        Rounding.RO: toward_zero(x, bits) + (sign * unit if x % unit and not odd else 0),
    }[rounding]


def normalised(x: Fraction, fmt: Format) -> tuple[Fraction, int]:
    """(s, e) with 1 ≤ |s| < 2, or e the least normal exponent."""
    e = max(floor_log2(x), fmt.min_exponent) if x else fmt.min_exponent
    return x / two_to(e), e


def signed_code(fmt: Format, negative: bool, magnitude: int) -> int:
    return magnitude | (fmt.sign_mask if negative else 0)


def convert(x: Fraction, rho: Conversion) -> int:
    """§4: the code of x, rounded once."""
    fmt, keep = rho.format, rho.fraction_bits
    assert fmt.infinity is not None
    s, e = normalised(x, fmt)
    kept = cut(s, keep, rho.rounding)
    value = abs(kept) * two_to(e)
    if value == 0:
        return signed_code(fmt, x < 0 and rho.signed_zero, 0)
    if value >= two_to(fmt.max_exponent + 1):
        return signed_code(fmt, x < 0, fmt.infinity)
    s, e = normalised(value, fmt)
    field = e + fmt.bias if s >= 1 else 0
    fraction = (s - (1 if s >= 1 else 0)) * two_to(fmt.fraction_bits)
    assert fraction.denominator == 1
    return signed_code(fmt, x < 0, field << fmt.fraction_bits | int(fraction))


def extended(fmt: Format, code: int) -> Extended:
    if fmt.is_nan(code):
        return NAN
    if fmt.is_infinite(code):
        return -INFINITY if fmt.fields(code)[0] else INFINITY
    return fmt.value(code)


def negative(fmt: Format, code: int) -> bool:
    return bool(fmt.fields(code)[0])


def times(x: Extended, y: Extended) -> Extended:
    if NAN in (x, y):
        return NAN
    if INFINITY in (x, y) or -INFINITY in (x, y):
        return NAN if 0 in (x, y) else INFINITY if (x > 0) == (y > 0) else -INFINITY
    return x * y


def special_sum(terms: Iterable[Extended]) -> Extended | None:
    """NaN or an infinity if the terms give one, else None."""
    terms = list(terms)
    if NAN in terms or (INFINITY in terms and -INFINITY in terms):
        return NAN
    return next((t for t in terms if t in (INFINITY, -INFINITY)), None)


def special_code(x: Extended, fmt: Format, nan: int) -> int:
    assert fmt.infinity is not None
    return nan if x == NAN else signed_code(fmt, x < 0, fmt.infinity)


def read(fmt: Format, code: int) -> tuple[Fraction, int]:
    """§1: (s, e) off the fields of a finite code."""
    sign, field, fraction = fmt.fields(code)
    if not fmt.has_zero:
        return Fraction(1), field - fmt.bias
    s = Fraction(fraction, 1 << fmt.fraction_bits) + (1 if field else 0)
    return (-s if sign else s), max(field, 1) - fmt.bias


Product = tuple[Fraction, int]


def product(spec: DotAdd, x: int, y: int) -> Product:
    (s_a, e_a), (s_b, e_b) = read(spec.a_format, x), read(spec.b_format, y)
    return s_a * s_b, e_a + e_b


def aligned_sum(terms: Sequence[Product], e_max: int, F: int) -> Fraction:
    return sum((toward_zero(s * two_to(e - e_max), F) for s, e in terms), Fraction(0))


def fda_step(spec: DotAdd, p: Fda, a: Sequence[int], b: Sequence[int], c: int, scales: Sequence[Any]) -> int:
    fmt = p.rho.format
    exact = [times(extended(spec.a_format, x), extended(spec.b_format, y)) for x, y in zip(a, b, strict=True)]
    nan_scales = [NAN for pair in scales for s in pair if spec.scale_format and spec.scale_format.is_nan(s)]
    special = special_sum([*exact, extended(spec.c_format, c), *nan_scales])
    if special is not None:
        return special_code(special, fmt, CANONICAL_NAN[fmt.name])
    terms = []
    for k, (x, y) in enumerate(zip(a, b, strict=True)):
        s, e = product(spec, x, y)
        if spec.scale_format is not None:
            e += sum(read(spec.scale_format, scale)[1] for scale in scales[k])
        terms.append((s, e))
    terms.append(read(spec.c_format, c))
    if p.e_zero is not None:
        terms = [(s, e if s else p.e_zero) for s, e in terms]
    e_max = max(e for _, e in terms)
    return convert(aligned_sum(terms, e_max, p.F) * two_to(e_max), p.rho)


def fda_reference(spec: DotAdd, p: Fda, case: Case) -> int:
    c, block = case.c, spec.scale_block
    for start in range(0, spec.k, p.L):
        k = range(start, start + p.L)
        scales = [(case.scale_a[i // block], case.scale_b[i // block]) for i in k] if block else []
        c = fda_step(spec, p, [case.a[i] for i in k], [case.b[i] for i in k], c, scales)
    return c


def ieee_add(x: int, y: int, rho: Conversion, nans: dict[str, int] = QUIET_NAN) -> int:
    fmt = rho.format
    special = special_sum([extended(fmt, x), extended(fmt, y)])
    if special is not None:
        return special_code(special, fmt, nans[fmt.name])
    total = fmt.value(x) + fmt.value(y)
    if total == 0:
        return signed_code(fmt, negative(fmt, x) and negative(fmt, y), 0)
    return convert(total, rho)


@functools.cache
def code_of(value: Fraction, fmt: Format) -> int:
    """The code of a nonnegative value that the format has: codes of one sign are in order."""
    low, high = 0, fmt.codes // 2
    while high - low > 1:
        middle = (low + high) // 2
        if fmt.is_finite(middle) and fmt.value(middle) <= value:
            low = middle
        else:
            high = middle
    assert fmt.value(low) == value
    return low


def converted(code: int, source: Format, target: Format) -> int:
    x = extended(source, code)
    if x in (NAN, INFINITY, -INFINITY):
        return special_code(x, target, QUIET_NAN.get(target.name, 0))
    return signed_code(target, negative(source, code), code_of(abs(x), target))


def lowered_reference(spec: DotAdd, p: Lowered, case: Case) -> int:
    c = case.c
    for start in range(0, spec.k, len(p.order)):
        a = tuple(converted(case.a[start + k], spec.a_format, p.operands) for k in p.order)
        b = tuple(converted(case.b[start + k], spec.b_format, p.operands) for k in p.order)
        dot = fda_reference(p.inner_dot_add(spec), p.inner, Case(a, b, 0))
        c = ieee_add(dot, c, p.addition, CANONICAL_NAN)
    return c


def gdfs_reference(spec: DotAdd, p: Gdfs, case: Case) -> int:
    scale, fmt, c = spec.scale_format, p.rho.format, case.c
    assert scale is not None
    for start in range(0, spec.k, p.L):
        blocks_used = range(start // spec.scale_block, (start + p.L) // spec.scale_block)
        scales = [(case.scale_a[i], case.scale_b[i]) for i in blocks_used]
        special = special_sum([extended(fmt, c), *(extended(scale, x) for pair in scales for x in pair)])
        if special is not None:
            c = special_code(special, fmt, CANONICAL_NAN[fmt.name])
            continue
        terms = []
        for first in range(start, start + p.L, p.G):
            k = range(first, first + p.G)
            products = [spec.a_format.value(case.a[i]) * spec.b_format.value(case.b[i]) for i in k]
            x, y = scales[(first - start) // spec.scale_block]
            (s_x, e_x), (s_y, e_y) = read(scale, x), read(scale, y)
            e = e_x + e_y
            if p.e_zero is not None and (not any(products) or s_x * s_y == 0):
                e = p.e_zero
            terms.append((sum(products) * s_x * s_y, e))
        s, e = read(fmt, c)
        terms.append((s, p.e_zero if s == 0 and p.e_zero is not None else e))
        e_max = max(e for _, e in terms)
        c = convert(aligned_sum(terms, e_max, p.F) * two_to(e_max), p.rho)
    return c


def overflowed(s: Fraction, e: int) -> bool:
    return e + (1 if abs(s) >= 2 else 0) >= 128


def fdrda_step(spec: DotAdd, p: Fdrda, a: Sequence[int], b: Sequence[int], c: int) -> int:
    fmt = p.rho.format
    exact: list[Extended] = []
    for x, y in zip(a, b, strict=True):
        value = times(extended(spec.a_format, x), extended(spec.b_format, y))
        if isinstance(value, Fraction) and overflowed(*product(spec, x, y)):
            value = INFINITY if value > 0 else -INFINITY
        exact.append(value)
    special = special_sum([*exact, extended(fmt, c)])
    if special is not None:
        return special_code(special, fmt, QUIET_NAN[fmt.name])
    products = [product(spec, x, y) for x, y in zip(a, b, strict=True)]

    def sum_of(group: Sequence[Product]) -> tuple[Fraction, int | None]:
        taking_part = [e for s, e in group if s or not p.skip_zero_products]
        if not taking_part:
            return Fraction(0), None
        return aligned_sum(group, max(taking_part), p.F), max(taking_part)

    if isinstance(p, Gfdrda):
        groups = [(s, e) for s, e in (sum_of(products[0::2]), sum_of(products[1::2])) if e is not None]
        e_dot = max((e for _, e in groups), default=None)
        s_dot = Fraction(0)
        for s, e in groups:
            assert e_dot is not None
            s_dot += cut(s * two_to(e - e_dot), p.F, p.cut)
    else:
        s_dot, e_dot = sum_of(products)
    s_c, e_c = read(fmt, c)
    e_max = e_c if e_dot is None else max(e_dot, e_c)
    if e_dot is not None:
        s_dot = cut(s_dot * two_to(e_dot - e_max), p.dot_bits, p.cut)
    if isinstance(p, Gfdrda) and e_c < e_max - p.c_reach:
        s_c = Fraction(0)
    s_c = cut(s_c * two_to(e_c - e_max), p.F, p.cut)
    s, e = normalised((s_dot + s_c) * two_to(e_max), fmt)
    if p.sum_bits is not None:
        s = cut(s, p.sum_bits, p.cut)
    return convert(s * two_to(e), p.rho)


def fdrda_reference(spec: DotAdd, p: Fdrda, case: Case) -> int:
    c = case.c
    for k in range(0, spec.k, p.L):
        c = fdrda_step(spec, p, case.a[k : k + p.L], case.b[k : k + p.L], c)
    return c


def efda_reference(spec: DotAdd, p: Efda, case: Case) -> int:
    c, fmt = case.c, p.rho.format
    for start in range(0, spec.k, p.L):
        k = range(start, start + p.L)
        terms = [times(extended(spec.a_format, case.a[i]), extended(spec.b_format, case.b[i])) for i in k]
        terms.append(extended(fmt, c))
        special = special_sum(terms)
        c = (
            special_code(special, fmt, QUIET_NAN[fmt.name])
            if special is not None
            else convert(sum(terms), p.rho)
        )
    return c


def fma_reference(rho: Conversion, x: int, y: int, z: int) -> int:
    fmt = rho.format
    terms = [times(extended(fmt, x), extended(fmt, y)), extended(fmt, z)]
    special = special_sum(terms)
    if special is not None:
        return special_code(special, fmt, QUIET_NAN[fmt.name])
    if sum(terms) == 0:
        minus = negative(fmt, x) != negative(fmt, y)
        return signed_code(fmt, minus and negative(fmt, z), 0)
    return convert(sum(terms, Fraction(0)), rho)


def sfma_reference(spec: DotAdd, p: Sfma, case: Case) -> int:
    d = case.c
    for x, y in zip(case.a, case.b, strict=True):
        d = fma_reference(p.rho, x, y, d)
    return d


def flushed(code: int, fmt: Format = fp32, *, keep_sign: bool = True) -> int:
    if fmt.is_nan(code) or fmt.is_infinite(code) or abs(fmt.value(code)) >= two_to(fmt.min_exponent):
        return code
    return signed_code(fmt, keep_sign and negative(fmt, code), 0)


def flushed_product(x: int, y: int, a_format: Format, b_format: Format) -> int:
    """fp32(x)·fp32(y) rounded to fp32, subnormal operands taken as +0, a subnormal result as ±0."""
    x, y = flushed(x, a_format, keep_sign=False), flushed(y, b_format, keep_sign=False)
    value = times(extended(a_format, x), extended(b_format, y))
    if value in (NAN, INFINITY, -INFINITY):
        return special_code(value, fp32, QUIET_NAN["fp32"])
    if value == 0:
        return signed_code(fp32, negative(a_format, x) != negative(b_format, y), 0)
    return flushed(convert(value, IEEE_FP32))


def gps_reference(spec: DotAdd, p: Gps, case: Case) -> int:
    products = [
        flushed_product(x, y, spec.a_format, spec.b_format) for x, y in zip(case.a, case.b, strict=True)
    ]

    def pairwise(xs: Sequence[int]) -> int:
        if len(xs) == 1:
            return xs[0]
        half = len(xs) // 2
        return flushed(ieee_add(pairwise(xs[:half]), pairwise(xs[half:]), IEEE_FP32))

    d = flushed(case.c, keep_sign=False)
    for k in range(0, spec.k, p.G):
        d = flushed(ieee_add(d, pairwise(products[k : k + p.G]), IEEE_FP32))
    return d


REFERENCES: dict[str, Callable[[DotAdd, Any, Case], int]] = {
    "fda": fda_reference,
    "lowered": lowered_reference,
    "gdfs": gdfs_reference,
    "fdrda": fdrda_reference,
    "gfdrda": fdrda_reference,
    "efda": efda_reference,
    "sfma": sfma_reference,
    "gps": gps_reference,
}


def reference(spec: DotAdd, case: Case) -> int:
    return REFERENCES[spec.parameters.algorithm](spec, spec.parameters, case)


# ---- the terms, on constants -------------------------------------------------------------------------------


@functools.cache
def terms(spec: DotAdd) -> tuple[list[z3.BitVecRef], z3.BitVecRef]:
    """(inputs, result)."""
    x = symbolic_inputs(spec)
    scales = (x.scale_a, x.scale_b) if spec.scale_format is not None else ()
    return [*x.a, *x.b, x.c, *x.scale_a, *x.scale_b], smt.dot_add(spec, x.a, x.b, x.c, *scales).result


def on_constants(inputs: Sequence[z3.BitVecRef], term: z3.BitVecRef, values: Sequence[int]) -> int:
    constants = [(x, z3.BitVecVal(v, x.size())) for x, v in zip(inputs, values, strict=True)]
    value = z3.simplify(z3.substitute(term, *constants))
    assert z3.is_bv_value(value)
    return int(value.as_long())


def evaluate(spec: DotAdd, case: Case) -> int:
    inputs, result = terms(spec)
    return on_constants(inputs, result, [*case.a, *case.b, case.c, *case.scale_a, *case.scale_b])


def check(spec: DotAdd, case: Case) -> None:
    got, wanted = evaluate(spec, case), reference(spec, case)
    assert got == wanted, f"terms give {got:#x}, the specification {wanted:#x}, for {case}"


# ---- cases -------------------------------------------------------------------------------------------------


@functools.cache
def landmarks(fmt: Format) -> tuple[int, ...]:
    """±0, the ends of the subnormal and normal numbers, 1 and its neighbours, infinities, NaNs, ignored bits."""
    M, low = fmt.fraction_bits, fmt.ignored_low_bits
    words = {0, 1, (1 << M) - 1, 1 << M, fmt.bias << M, (fmt.bias << M) + 1, ((fmt.bias + 1) << M) - 1}
    top = (1 << fmt.exponent_bits + M) - 1
    words |= {top, top - 1, ((1 << fmt.exponent_bits) - 1) << M, (((1 << fmt.exponent_bits) - 1) << M) - 1}
    codes = {w << low for w in words if 0 <= w <= top} | {1} | {(top << low) | ((1 << low) - 1)}
    if fmt.signed:
        codes |= {code | fmt.sign_mask for code in codes}
    return tuple(sorted(code for code in codes if code < fmt.codes))


def finite(fmt: Format, code: int) -> int:
    """A finite code that is the given one where that is finite."""
    if fmt.is_finite(code):
        return code
    return 0 if fmt.specials == Specials.FNUZ else code ^ (1 << (fmt.fraction_bits + fmt.ignored_low_bits))


def with_exponent(fmt: Format, exponent: int, raw: int) -> int:
    """A finite code of about the exponent; from `raw` its sign and fraction, a random one, 0, all ones or one bit."""
    if not fmt.has_zero:
        return min(max(exponent + fmt.bias, 0), fmt.codes - 2)
    field, ones = min(max(exponent + fmt.bias, 0), (1 << fmt.exponent_bits) - 1), (1 << fmt.fraction_bits) - 1
    fraction = (raw & ones, 0, ones, 1 << (raw % fmt.fraction_bits))[raw >> 61 & 3]
    code = (field << fmt.fraction_bits | fraction) << fmt.ignored_low_bits
    return finite(fmt, code | (fmt.sign_mask if raw >> 60 & 1 else 0))


raw_bits = st.integers(0, (1 << 64) - 1)


@st.composite
def cases(draw: st.DrawFn, spec: DotAdd) -> Case:
    """Any codes; or few products, exponents close together or least or largest, pairs that cancel, c near or far;
    and now and then a landmark."""
    K, fmts = spec.k, (spec.a_format, spec.b_format)
    raws = [draw(st.lists(raw_bits, min_size=K, max_size=K)) for _ in fmts]
    raw_c = draw(raw_bits)
    if draw(st.integers(0, 3)) == 0:
        a, b = ([finite(f, r % f.codes) for r in raw] for f, raw in zip(fmts, raws, strict=True))
        c = finite(spec.c_format, raw_c % spec.c_format.codes)
    else:
        spread = draw(st.sampled_from((1, 2, 4, 12)))
        middle = [draw(st.integers(f.min_exponent - 1, f.max_exponent)) for f in fmts]
        a, b = (
            [with_exponent(f, e + (r >> 40) % spread, r) for r in raw]
            for f, e, raw in zip(fmts, middle, raws, strict=True)
        )
        distance = draw(st.one_of(st.integers(-4, 4), st.integers(-40, 40)))
        c = with_exponent(spec.c_format, sum(middle) + distance, raw_c)
        for k in draw(st.lists(st.integers(0, K - 1), max_size=K)):
            a[k - 1], b[k - 1] = finite(fmts[0], a[k] ^ fmts[0].sign_mask), b[k]
        if draw(st.integers(0, 3)) == 0:
            exact = fmts[0].value(a[0]) * fmts[1].value(b[0])
            c = finite(spec.c_format, convert(-exact, rounding_to(spec.c_format)))
    if draw(st.booleans()):
        active = draw(st.sets(st.integers(0, K - 1), max_size=3))
        a = [code if k in active else 0 for k, code in enumerate(a)]
    if draw(st.integers(0, 3)) == 0:
        for side, f in ((a, fmts[0]), (b, fmts[1])):
            side[draw(st.integers(0, K - 1))] = draw(st.sampled_from(landmarks(f)))
        c = draw(st.sampled_from(landmarks(spec.c_format)))
    if spec.scale_format is None:
        return Case(tuple(a), tuple(b), c)
    scale, near = spec.scale_format, st.integers(-20, 20)
    any_scale = st.one_of(
        st.builds(with_exponent, st.just(scale), near, raw_bits),
        st.builds(lambda r: finite(scale, r % scale.codes), raw_bits),
        st.sampled_from([code for code in landmarks(scale) if scale.is_finite(code)]),
    )
    scales = st.lists(any_scale, min_size=spec.scales, max_size=spec.scales).map(tuple)
    return Case(tuple(a), tuple(b), c, draw(scales), draw(scales))


def rounding_to(fmt: Format) -> Any:
    """A stand-in for a `Conversion`, which takes no format that is in no table; these are small for proofs."""
    return SimpleNamespace(
        name=f"IEEE-{fmt}",
        format=fmt,
        fraction_bits=fmt.fraction_bits,
        rounding=Rounding.RNE,
        signed_zero=True,
        ieee=False,
        saturation=None,
        stays=False,
        random_bits=0,
        random=0,
    )


def table_of_specials(spec: DotAdd) -> Iterable[Case]:
    """Landmarks of a and of b in one product, of c, and an infinity or a large number in another product; the
    largest sums, with a c of the products' exponent; NaN scales."""
    a_marks, b_marks, c_marks = landmarks(spec.a_format), landmarks(spec.b_format), landmarks(spec.c_format)
    one = spec.b_format.bias << (spec.b_format.fraction_bits + spec.b_format.ignored_low_bits)
    neutral = Case((0,) * spec.k, (0,) * spec.k, 0)
    if spec.scale_format is not None:
        scales = (with_exponent(spec.scale_format, 0, 0),) * spec.scales
        neutral = replace(neutral, scale_a=scales, scale_b=scales)
    nan_scale = next(
        (code for code in range(256) if spec.scale_format and spec.scale_format.is_nan(code)), None
    )
    if nan_scale is not None:
        yield replace(neutral, scale_a=(nan_scale, *neutral.scale_a[1:]))
        yield replace(neutral, scale_b=(*neutral.scale_b[:-1], nan_scale), c=fp32.infinity or 0)
    for sign in (0, 1):
        raw = (2 << 61) | (sign << 60)  # all ones
        a_largest = with_exponent(spec.a_format, spec.a_format.max_exponent, raw)
        b_largest = with_exponent(spec.b_format, spec.b_format.max_exponent, 2 << 61)
        c = with_exponent(spec.c_format, spec.a_format.max_exponent + spec.b_format.max_exponent, raw)
        yield replace(neutral, a=(a_largest,) * spec.k, b=(b_largest,) * spec.k, c=c)
    stride = 5 if spec.k > 4 else 3  # along diagonals every landmark is met, in several pairs
    pairs = [(x, y) for i, x in enumerate(a_marks) for j, y in enumerate(b_marks) if (i + j) % stride == 0]
    for number, (x, y) in enumerate(pairs):
        c = c_marks[(5 * number) % len(c_marks)]
        a, b = list(neutral.a), list(neutral.b)
        a[number % spec.k], b[number % spec.k] = x, y
        if number % 4 == 0 and spec.k > 1:
            other = (number + 1) % spec.k
            a[other], b[other] = a_marks[(7 * number) % len(a_marks)], one
        yield replace(neutral, a=tuple(a), b=tuple(b), c=c)


# ---- against the specification -----------------------------------------------------------------------------

PAPER = "paper-v1"


def of(architecture: Any, name: str, **changes: Any) -> DotAdd:
    spec: DotAdd = architecture[name].spec
    return spec.replace(**changes) if changes else spec


#: one of each algorithm, type and revision; hypothetical ones that move every parameter
SPECS: dict[str, DotAdd] = {
    "fda volta fp16→fp32, fp16 c": of(volta, "HMMA.884.F32.F16"),
    "fda turing": of(turing, "HMMA.1688.F32"),
    "fda ampere, chain": of(ampere, "HMMA.16816.F32", k=8, L=4),
    "fda ampere fp16 out": of(ampere, "HMMA.16816.F16", k=8),
    "fda ampere bf16": of(ampere, "HMMA.1688.F32.BF16"),
    "fda ampere tf32": of(ampere, "HMMA.1684.F32.TF32"),
    "fda hopper fp8, E8M13": of(hopper, "QGMMA.64x8x32.F32.E4M3.E5M2", k=8, L=8),
    "fda e3m2·e2m1 fp16 out": of(rtx_blackwell, "QMMA.16832.F16.E3M2.E2M1", k=4, L=4),
    "fda paper-v1": of(hopper.revision(PAPER), "HMMA.16816.F32", k=4, L=4),
    "fda paper-v1 fp16 out": of(ampere.revision(PAPER), "HMMA.1688.F16", k=4, L=4),
    "fda mx": of(rtx_blackwell, "QMMA.SF.16832.F32.E5M2.E2M3.E8"),
    "fda mx, chain, paper-v1": of(
        rtx_blackwell.revision(PAPER), "QMMA.SF.16832.F32.E4M3.E4M3.E8", k=8, L=4, scale_block=2
    ),
    "fda hypothetical": of(ampere, "HMMA.16816.F32", k=3, L=3, F=7, e_zero=-40, rho=RZ_E8M13),
    "lowered": of(hopper, "mma.m16n8k32.f32.e4m3.e5m2.f32"),
    "lowered fp16": of(blackwell, "mma.m16n8k32.f16.e5m2.e4m3.f16", k=8, L=4, order=(0, 2, 1, 3)),
    "gdfs ue4m3": of(blackwell, "UTCOMMA.F32.E2M1.E2M1.UE4M3.4X"),
    "gdfs ue8m0": of(blackwell, "UTCOMMA.F32.E2M1.E2M1.E8"),
    "gdfs paper-v1": of(rtx_blackwell.revision(PAPER), "OMMA.SF.16864.F32.E2M1.E2M1.UE4M3.4X"),
    "gdfs hypothetical": of(
        blackwell, "UTCOMMA.F32.E2M1.E2M1.UE4M3.4X", k=8, L=4, G=2, F=9, scale_block=2, e_zero=-3
    ),
    "fdrda fp16": of(cdna3, "v_mfma_f32_16x16x16_f16"),
    "fdrda bf16": of(cdna3, "v_mfma_f32_32x32x4_2b_bf16"),
    "fdrda xf32": of(cdna3, "v_mfma_f32_16x16x8_xf32"),
    "fdrda paper-v1": of(cdna3.revision(PAPER), "v_mfma_f32_32x32x8_f16", k=4, L=4),
    "fdrda hypothetical": of(
        cdna3, "v_mfma_f32_32x32x8_f16", k=4, L=2, F=23, dot_bits=23, sum_bits=24, cut=Rounding.RZ
    ),
    "gfdrda": of(cdna3, "v_mfma_f32_16x16x32_bf8_fp8"),
    "gfdrda paper-v1": of(cdna3.revision(PAPER), "v_mfma_f32_32x32x16_bf8_bf8", k=4, L=4),
    "gfdrda hypothetical": of(cdna3, "v_mfma_f32_32x32x16_bf8_bf8", k=3, L=3, cut=Rounding.RZ, c_reach=3),
    "gfdrda of two products": of(cdna3, "v_mfma_f32_32x32x16_fp8_fp8", k=4, L=2),
    "efda fp16": of(cdna1, "v_mfma_f32_32x32x8f16"),
    "efda bf16": of(cdna1, "v_mfma_f32_32x32x4bf16"),
    "efda bf16, toward zero": of(cdna1, "v_mfma_f32_32x32x2bf16", rho=RZ_FP32),
    "efda fp16, toward zero, coarse": of(cdna1, "v_mfma_f32_32x32x4f16", k=2, L=2, rho=RZ_E8M13),
    "efda bf16 of one product": of(cdna1, "v_mfma_f32_32x32x2bf16", k=1, L=1),
    "sfma fp32": of(cdna3, "v_mfma_f32_16x16x4_f32"),
    "sfma fp64": of(ampere, "DMMA.884"),
    "gps fp16": of(cdna2, "v_mfma_f32_32x32x8f16"),
    "gps bf16": of(cdna2, "v_mfma_f32_32x32x4bf16"),
    "gps bf16_1k": of(cdna2, "v_mfma_f32_32x32x4bf16_1k"),
    "gps e5m2fnuz": DotAdd(8, e5m2fnuz, e5m2fnuz, fp32, fp32, Gps(G=8)),
}


@pytest.mark.parametrize("name", SPECS)
@pytest.mark.parametrize("examples", [15, pytest.param(80, marks=pytest.mark.slow)])
def test_terms_are_the_specification(name: str, examples: int) -> None:
    spec = SPECS[name]

    @settings(
        max_examples=examples,
        deadline=None,
        database=None,
        derandomize=True,
        suppress_health_check=list(HealthCheck),
    )
    @given(cases(spec))
    def on_any_case(case: Case) -> None:
        check(spec, case)

    on_any_case()


@pytest.mark.parametrize("name", SPECS)
def test_special_values(name: str) -> None:
    for case in table_of_specials(SPECS[name]):
        check(SPECS[name], case)


# ---- every parameter, one place up and down ----------------------------------------------------------------

#: An instruction, and inputs on which one changed parameter shows.  Bitwuzla found them, as inputs that make the terms
#: of both differ; random inputs rarely reach the last place of a cut or a zero's exponent.
DUELS: dict[str, tuple[DotAdd, list[tuple[dict[str, Any], Case]]]] = {
    "fda bf16": (
        of(ampere, "HMMA.1688.F32.BF16", k=2, L=2),
        [
            ({"F": 25}, Case((0x3742, 0x43A8), (0x8061, 0x8040), 0x83200082)),
            ({"F": 23}, Case((0xA060, 0xE040), (0x80DC, 0xC1FE), 0xDA00DF81)),
            ({"L": 1}, Case((0x4001, 0xFF80), (0xFF01, 0xFF80), 0x7C808000)),
            ({"e_zero": -131}, Case((0x80F8, 0x38D6), (0x34F8, 0x0078), 0x00000000)),
            ({"e_zero": -133}, Case((0x03CC, 0x8080), (0x32F1, 0x3C38), 0x00000000)),
            ({"e_zero": None}, Case((0x70C1, 0x19A5), (0x0000, 0x2781), 0x20120624)),
            ({"rho": RZ_FP32.with_signed_zero()}, Case((0xBF78, 0x005D), (0x8100, 0xBAFF), 0x80F7D1AF)),
        ],
    ),
    "fda bf16 paper": (
        of(ampere.revision(PAPER), "HMMA.1688.F32.BF16", k=2, L=2),
        [
            ({"F": 25}, Case((0x8EAC, 0xB3F0), (0x167B, 0xB120), 0x989FF878)),
            ({"F": 23}, Case((0x79FE, 0x5CA6), (0xB97E, 0xDB1F), 0xFF09FCF8)),
            ({"L": 1}, Case((0x7F00, 0xFF80), (0x7880, 0x419C), 0xFC038000)),
            ({"e_zero": -100}, Case((0x8000, 0x0067), (0xF680, 0x8038), 0x98FF5EA0)),
            ({"rho": RZ_FP32}, Case((0x39B6, 0x3D20), (0x005A, 0x8034), 0x00020000)),
        ],
    ),
    "fda fp16 out": (
        of(ampere, "HMMA.1688.F16", k=2, L=2),
        [
            ({"F": 25}, Case((0xCB40, 0x8001), (0x4400, 0x4C01), 0x4976)),
            ({"F": 23}, Case((0xCD14, 0xFBF8), (0xCA1A, 0xBBFF), 0xF7FF)),
            ({"L": 1}, Case((0x87F2, 0xB9EC), (0x8382, 0x07B1), 0x8000)),
            ({"e_zero": -19}, Case((0x0749, 0x009D), (0x08AB, 0x161D), 0x0000)),
            ({"e_zero": -21}, Case((0x06E8, 0x8027), (0x1310, 0x1117), 0x0000)),
            ({"e_zero": None}, Case((0x0000, 0x19F4), (0xF5FE, 0x12A7), 0x8000)),
            ({"rho": IEEE_FP16}, Case((0x0410, 0x840F), (0x8509, 0x8110), 0x8000)),
            (
                {"rho": replace(RNE_FP16, rounding=Rounding.RZ)},
                Case((0x0465, 0x2CF1), (0x8B6F, 0x8565), 0x8000),
            ),
            (
                {"rho": replace(RNE_FP16, rounding=Rounding.RD)},
                Case((0xC153, 0x6D57), (0xD2F3, 0xA5BD), 0x5054),
            ),
        ],
    ),
    "fda E8M13": (
        of(hopper, "QGMMA.64x8x32.F32.E5M2.E5M2", k=2, L=2),
        [
            ({"F": 14}, Case((0x74, 0xEB), (0xF0, 0xEE), 0x4D48FE00)),
            ({"F": 12}, Case((0x13, 0x82), (0x92, 0x94), 0x370047FF)),
            ({"L": 1}, Case((0x6B, 0xB9), (0x83, 0x02), 0xBE300400)),
            ({"e_zero": None}, Case((0xF6, 0x80), (0x00, 0x6C), 0xB6EF42F6)),
            ({"rho": RZ_FP32}, Case((0x81, 0x00), (0x81, 0xA5), 0x337FFC00)),
        ],
    ),
    "fda mx": (
        of(rtx_blackwell, "QMMA.SF.16832.F32.E5M2.E2M3.E8", k=2, L=2, scale_block=2),
        [
            ({"F": 26}, Case((0xF8, 0xF8), (0x19, 0x38), 0xBA3F417F, (0x3E,), (0xBE,))),
            ({"F": 24}, Case((0x83, 0x50), (0x21, 0x30), 0x137FFFF8, (0x24,), (0x7F,))),
            ({"L": 1}, Case((0x02, 0xFC), (0x32, 0x3F), 0xFF7CFFFC, (0xFE,), (0xFE,))),
            ({"e_zero": -132}, Case((0x1F, 0xBC), (0x0E, 0x18), 0x80000000, (0x67,), (0x00,))),
            ({"e_zero": -134}, Case((0x85, 0x58), (0x05, 0x08), 0x00000000, (0x6E,), (0x00,))),
            ({"e_zero": None}, Case((0x79, 0x3F), (0x00, 0x1A), 0xF9240040, (0x9F,), (0xCD,))),
            (
                {"rho": RZ_FP32.with_signed_zero()},
                Case((0x86, 0x13), (0x31, 0x23), 0x80000000, (0x01,), (0x71,)),
            ),
        ],
    ),
    "lowered": (
        of(hopper, "mma.m16n8k32.f32.e5m2.e4m3.f32", k=2, L=1, order=(1, 0)),
        [
            ({"F": 26}, Case((0x64, 0x01), (0x60, 0xF2), 0x2C815FC0)),
            ({"F": 24}, Case((0x41, 0x5C), (0x07, 0xF8), 0x474A8000)),
            ({"order": (0, 1)}, Case((0x04, 0x65), (0x87, 0x0D), 0xB7000000)),
            ({"e_zero": None}, Case((0x7A, 0x05), (0x80, 0x01), 0x32881FFF)),
        ],
    ),
    "gdfs ue8m0": (
        of(blackwell, "UTCOMMA.F32.E2M1.E2M1.E8.4X", k=4, L=4, G=2, scale_block=2),
        [
            (
                {"F": 36},
                Case((0xD, 0x3, 0x2, 0x0), (0x7, 0x3, 0x9, 0xF), 0x08100FE0, (0x00, 0x30), (0x7F, 0x3C)),
            ),
            (
                {"F": 34},
                Case((0x7, 0x7, 0x7, 0x7), (0x7, 0x7, 0x7, 0x7), 0xBA000010, (0x83, 0x83), (0x80, 0x80)),
            ),
            (
                {"L": 2},
                Case((0xD, 0xF, 0x6, 0x3), (0x9, 0xF, 0xE, 0xD), 0x1F903FF0, (0xC0, 0xC1), (0xFE, 0xFE)),
            ),
            (
                {"G": 1},
                Case((0x7, 0x7, 0x9, 0x1), (0x0, 0x4, 0x1, 0x9), 0x000033C2, (0x18, 0x41), (0x58, 0x1D)),
            ),
            (
                {"e_zero": -138},
                Case((0xC, 0x6, 0xB, 0xE), (0x6, 0x6, 0x7, 0x7), 0x00000000, (0x73, 0x4B), (0x00, 0x00)),
            ),
            (
                {"e_zero": -140},
                Case((0x7, 0x9, 0xA, 0xE), (0x7, 0x6, 0x6, 0x5), 0x80000000, (0x49, 0x70), (0x01, 0x00)),
            ),
            (
                {"e_zero": None},
                Case((0xC, 0x7, 0x1, 0x9), (0x7, 0x9, 0x8, 0x8), 0xC0800000, (0xAA, 0xDF), (0x03, 0xDF)),
            ),
            (
                {"rho": RZ_FP32.with_signed_zero()},
                Case((0x3, 0xB, 0x7, 0x1), (0xB, 0xB, 0xF, 0x9), 0x80000000, (0x18, 0x34), (0x5F, 0x2F)),
            ),
        ],
    ),
    "gdfs ue4m3": (
        of(blackwell, "UTCOMMA.F32.E2M1.E2M1.UE4M3.4X", k=4, L=4, G=2, scale_block=2),
        [
            (
                {"F": 36},
                Case((0x7, 0x7, 0x7, 0x1), (0x7, 0x7, 0x7, 0x1), 0x407F90FE, (0x7A, 0x07), (0x79, 0x07)),
            ),
            (
                {"F": 34},
                Case((0x7, 0x7, 0x6, 0xE), (0x0, 0x0, 0x6, 0x6), 0x32E50FFD, (0x08, 0x09), (0x00, 0x09)),
            ),
            (
                {"L": 2},
                Case((0x7, 0x1, 0xA, 0x5), (0x7, 0x1, 0x1, 0x5), 0xC2800000, (0x13, 0x0A), (0x0D, 0x7C)),
            ),
            (
                {"G": 1},
                Case((0x6, 0xF, 0xD, 0xF), (0x4, 0x7, 0x5, 0x7), 0x5AFFFFFF, (0x71, 0x0F), (0x6F, 0x09)),
            ),
            (
                {"e_zero": None},
                Case((0x7, 0x1, 0x7, 0xE), (0x0, 0x8, 0x7, 0xC), 0xC106DFFF, (0x7B, 0x3E), (0x79, 0x1E)),
            ),
        ],
    ),
    "fdrda fp16": (
        of(cdna3, "v_mfma_f32_16x16x16_f16", k=2, L=2),
        [
            ({"F": 25}, Case((0xAA11, 0x000B), (0x9787, 0x7863), 0x10000000)),
            ({"F": 23}, Case((0x8000, 0x8004), (0x800C, 0x8E08), 0x82FE0200)),
            ({"L": 1}, Case((0x5DDA, 0x6000), (0x8263, 0x1C00), 0x2D6F1E00)),
            ({"dot_bits": 31}, Case((0x06A3, 0x0308), (0x3B9A, 0x3B22), 0xC4000001)),
            ({"sum_bits": 32}, Case((0x76FE, 0xFBE0), (0xFBF9, 0xF882), 0xD760001E)),
            ({"sum_bits": 30}, Case((0xAF23, 0xC7F9), (0xFB5C, 0xCDF6), 0x4E7FFFD1)),
            ({"sum_bits": None}, Case((0x57FE, 0xF800), (0xDBFB, 0xF800), 0xD37FFFFD)),
            ({"skip_zero_products": False}, Case((0x0000, 0x8000), (0xA000, 0x4800), 0xB9111FFF)),
            ({"cut": Rounding.RZ}, Case((0x0080, 0x0080), (0xD800, 0x5800), 0x9C000000)),
        ],
    ),
    "fdrda bf16": (
        of(cdna3, "v_mfma_f32_16x16x16_bf16", k=2, L=2),
        [
            ({"F": 25}, Case((0x64C1, 0x5B7F), (0x8003, 0x8471), 0x00CA0500)),
            ({"F": 23}, Case((0x0053, 0x4088), (0xBBE9, 0x80F1), 0x01A91C00)),
            ({"L": 1}, Case((0x3F6C, 0xEF80), (0xFF40, 0xCF80), 0xFEE00000)),
            ({"dot_bits": 31}, Case((0xD419, 0xD04D), (0x65AE, 0x61EF), 0x7E800000)),
            ({"sum_bits": 32}, Case((0xFF60, 0xFF78), (0x84FF, 0xB55F), 0xFF7FFFFF)),
            ({"sum_bits": 30}, Case((0xFF60, 0xB5C8), (0x8000, 0x80A9), 0x80C00010)),
            ({"sum_bits": None}, Case((0xD7A4, 0x204C), (0x805D, 0xC11E), 0x2800082D)),
            ({"skip_zero_products": False}, Case((0x8000, 0x8C00), (0x7E81, 0x0700), 0x9BFFE000)),
            ({"cut": Rounding.RZ}, Case((0xFF60, 0xFF78), (0x84FF, 0xB304), 0xFF7FFFFF)),
            ({"rho": RNE_FP32}, Case((0x8001, 0x05EF), (0xB150, 0xA861), 0x80000000)),
        ],
    ),
    "fdrda paper": (
        of(cdna3.revision(PAPER), "v_mfma_f32_16x16x16_f16", k=2, L=2),
        [
            ({"F": 25}, Case((0x1064, 0x89BD), (0xB854, 0x949F), 0xB89FF00E)),
            ({"F": 23}, Case((0x8BFF, 0xF7FF), (0xF3F8, 0x86ED), 0xB5208000)),
            ({"L": 1}, Case((0x8996, 0x0108), (0x85CF, 0xF803), 0x3B5FFFFF)),
            ({"dot_bits": 32}, Case((0x17D5, 0x8310), (0x8E9C, 0x4530), 0xC17FFF40)),
            ({"dot_bits": 30}, Case((0x77FF, 0x0C00), (0x87FC, 0x2E04), 0x4303FD7E)),
            ({"skip_zero_products": True}, Case((0xDC00, 0x800B), (0x8000, 0x9DD4), 0xB0000000)),
            ({"cut": Rounding.RZ}, Case((0x2C00, 0x1B80), (0x9400, 0x1B80), 0x87A00800)),
        ],
    ),
    "gfdrda": (
        of(cdna3, "v_mfma_f32_16x16x32_bf8_bf8", k=4, L=4),
        [
            ({"F": 25}, Case((0xFD, 0xCA, 0xBF, 0x79), (0x50, 0xD2, 0x53, 0xCB), 0xBF535FF6)),
            ({"F": 23}, Case((0x76, 0x86, 0x70, 0x4D), (0x7E, 0x0E, 0xF5, 0x85), 0xCD9C0000)),
            ({"L": 2}, Case((0xE3, 0x83, 0x6B, 0x81), (0x42, 0x86, 0x63, 0x01), 0xCE000000)),
            ({"dot_bits": 31}, Case((0x2B, 0x02, 0x0F, 0x4F), (0x02, 0x44, 0x7F, 0x3F), 0xC4830000)),
            ({"sum_bits": 32}, Case((0x97, 0x9B, 0x86, 0xE3), (0xFF, 0xFB, 0xFF, 0xB0), 0xCF7A0000)),
            ({"sum_bits": 30}, Case((0x40, 0xFD, 0xFA, 0xF3), (0xB3, 0xC9, 0x9A, 0x83), 0xCC83FDE4)),
            ({"sum_bits": None}, Case((0x23, 0x99, 0x81, 0x81), (0x1F, 0xE9, 0x46, 0x5B), 0xC57FFF00)),
            (
                {"skip_zero_products": False},
                Case((0x01, 0x10, 0x00, 0x7E), (0x38, 0x90, 0xBD, 0x00), 0x33900000),
            ),
            ({"cut": Rounding.RZ}, Case((0x06, 0x07, 0xE5, 0x97), (0x87, 0x97, 0x02, 0x07), 0xBADFFFFB)),
            ({"c_reach": 26}, Case((0x21, 0x7B, 0xF8, 0xFC), (0xFC, 0x7F, 0x7C, 0x7C), 0xC1800000)),
            ({"c_reach": 24}, Case((0x40, 0xC8, 0x89, 0xA4), (0x16, 0x1B, 0x05, 0x04), 0xAF2027E0)),
        ],
    ),
    "efda bf16": (
        of(cdna1, "v_mfma_f32_32x32x4bf16", k=2),
        [
            ({"L": 1}, Case((0xFF00, 0xFF80), (0xFD80, 0x7F80), 0xFA000000)),
            ({"rho": RNE_FP32}, Case((0x1B47, 0x8002), (0xA077, 0xC980), 0x877FFFFD)),
            (
                {"rho": replace(IEEE_FP32, rounding=Rounding.RZ)},
                Case((0xC140, 0xC480), (0xC5B0, 0x0001), 0x80000104),
            ),
            (
                {"rho": replace(IEEE_FP32, rounding=Rounding.RD)},
                Case((0xFB7F, 0xFA58), (0x8378, 0x8478), 0x801FFFFF),
            ),
        ],
    ),
    "sfma fp32": (
        of(cdna1, "v_mfma_f32_32x32x2f32", k=1),
        [
            ({"rho": RNE_FP32}, Case((0xA0000001,), (0x1F000034,), 0x0020000D)),
            (
                {"rho": replace(IEEE_FP32, rounding=Rounding.RZ)},
                Case((0xB4000003,), (0x9B7F8003,), 0x80200000),
            ),
            (
                {"rho": replace(IEEE_FP32, rounding=Rounding.RD)},
                Case((0xE3800000,), (0x000009D0,), 0xC17E01FF),
            ),
        ],
    ),
}


@pytest.mark.parametrize("name", DUELS)
def test_every_parameter_counts(name: str) -> None:
    spec, duels = DUELS[name]
    for changes, case in duels:
        other = spec.replace(**changes)
        assert reference(spec, case) != reference(other, case), changes
        check(spec, case)
        check(other, case)


# ---- against z3's theory of floating-point numbers ---------------------------------------------------------


def sort_of(fmt: Format) -> z3.FPSortRef:
    return z3.FPSort(fmt.exponent_bits, fmt.fraction_bits + 1)


def as_float(code: z3.BitVecRef, fmt: Format) -> z3.FPRef:
    return z3.fpBVToFP(code, sort_of(fmt))


def same(code: z3.BitVecRef, number: z3.FPRef, fmt: Format) -> z3.BoolRef:
    """The code is that of the number, with the sign of a zero; the quiet NaN for a NaN."""
    equal = z3.And(
        z3.fpEQ(as_float(code, fmt), number),
        (z3.Extract(fmt.storage_bits - 1, fmt.storage_bits - 1, code) == 1) == z3.fpIsNegative(number),
    )
    return z3.If(z3.fpIsNaN(number), code == QUIET_NAN.get(fmt.name, blocks.quiet_nan(fmt)), equal)


def constants(*names: str, fmt: Format) -> list[z3.BitVecRef]:
    return [z3.BitVec(name, fmt.storage_bits) for name in names]


def fma_claim(rho: Conversion) -> tuple[list[z3.BitVecRef], z3.BoolRef]:
    fmt = rho.format
    x, y, z = codes = constants("x", "y", "z", fmt=fmt)
    exact = z3.fpFMA(z3.RNE(), *(as_float(code, fmt) for code in codes))
    return codes, same(sfma.step(rho, x, y, z).result, exact, fmt)


def add_claim(rho: Conversion) -> tuple[list[z3.BitVecRef], z3.BoolRef]:
    fmt = rho.format
    x, y = codes = constants("x", "y", fmt=fmt)
    exact = z3.fpAdd(z3.RNE(), *(as_float(code, fmt) for code in codes))
    return codes, same(ieee.add(x, y, rho, blocks.quiet_nan(fmt)).result, exact, fmt)


def flushed_float(x: z3.FPRef, *, keep_sign: bool) -> z3.FPRef:
    plus, minus = z3.fpPlusZero(x.sort()), z3.fpMinusZero(x.sort())
    zero = z3.If(z3.fpIsNegative(x), minus, plus) if keep_sign else plus
    return z3.If(z3.Or(z3.fpIsSubnormal(x), z3.fpIsZero(x)), zero, x)


def flushed_product_claim(fmt: Format) -> tuple[list[z3.BitVecRef], z3.BoolRef]:
    """fp32(x)·fp32(y), flushed before and after; the subnormals flushed before are those of the operands' format."""
    codes = constants("x", "y", fmt=fmt)

    def operand(code: z3.BitVecRef) -> z3.FPRef:
        if fmt == bf16:  # whose codes are the upper halves of fp32's, subnormals included
            return flushed_float(as_float(z3.Concat(code, z3.BitVecVal(0, 16)), fp32), keep_sign=False)
        return z3.fpFPToFP(z3.RNE(), flushed_float(as_float(code, fmt), keep_sign=False), sort_of(fp32))

    exact = flushed_float(z3.fpMul(z3.RNE(), *map(operand, codes)), keep_sign=True)
    x, y = (gps.decode_flushed(code, fmt) for code in codes)
    return codes, same(gps.multiply(x, y, fmt, fmt), exact, fp32)


CLAIMS: dict[str, Callable[[], tuple[list[z3.BitVecRef], z3.BoolRef]]] = {
    "fma fp32": lambda: fma_claim(IEEE_FP32),
    "fma fp64": lambda: fma_claim(IEEE_FP64),
    "add fp16": lambda: add_claim(IEEE_FP16),
    "add fp32": lambda: add_claim(IEEE_FP32),
    "product fp16": lambda: flushed_product_claim(fp16),
    "product bf16": lambda: flushed_product_claim(bf16),
}


@pytest.mark.parametrize("name", CLAIMS)
def test_against_the_theory_of_floating_point_numbers(name: str) -> None:
    inputs, claim = CLAIMS[name]()
    fmt = {"fp16": fp16, "bf16": bf16, "fp32": fp32, "fp64": fp64}[name.split()[1]]
    code = st.one_of(
        st.sampled_from(landmarks(fmt)),
        st.integers(0, fmt.codes - 1),
        st.builds(with_exponent, st.just(fmt), st.integers(-3, 3), raw_bits),
        st.builds(with_exponent, st.just(fmt), st.integers(-60, 60), raw_bits),
        st.builds(
            with_exponent, st.just(fmt), st.sampled_from((fmt.min_exponent, fmt.max_exponent)), raw_bits
        ),
    )

    @settings(max_examples=100, database=None, derandomize=True)
    @given(st.tuples(*(code for _ in inputs)))
    def on_any_codes(values: tuple[int, ...]) -> None:
        known = [(x, z3.BitVecVal(v, x.size())) for x, v in zip(inputs, values, strict=True)]
        assert z3.is_true(z3.simplify(z3.substitute(claim, *known))), [hex(v) for v in values]

    on_any_codes()


def small_format(exponent_bits: int, fraction_bits: int) -> Format:
    """An IEEE format small enough to prove something about all of its numbers."""
    bias = (1 << (exponent_bits - 1)) - 1
    name = f"small{exponent_bits}{fraction_bits}"
    return Format(
        name, 1 + exponent_bits + fraction_bits, exponent_bits, fraction_bits, bias, Specials.IEEE, None
    )


def counterexample(claim: z3.BoolRef) -> bool:
    """Whether there is one; a proof that there is none otherwise."""
    solver = z3.Solver()
    solver.set("timeout", 300_000)
    solver.add(z3.Not(claim))
    verdict = solver.check()
    assert verdict != z3.unknown, solver.reason_unknown()
    return bool(verdict == z3.sat)


@pytest.mark.parametrize(
    "claim",
    [
        pytest.param(lambda: fma_claim(rounding_to(small_format(3, 2))), id="fma of 6 bits"),
        pytest.param(lambda: add_claim(rounding_to(small_format(4, 4))), id="add of 9 bits"),
        pytest.param(lambda: add_claim(IEEE_FP16), id="add fp16", marks=pytest.mark.slow),
        pytest.param(lambda: flushed_product_claim(bf16), id="product bf16", marks=pytest.mark.slow),
    ],
)
def test_proof_for_all_inputs(claim: Callable[[], tuple[list[z3.BitVecRef], z3.BoolRef]]) -> None:
    assert not counterexample(claim()[1])


# ---- widths ------------------------------------------------------------------------------------------------


def test_one_place_less_than_the_fma_has_is_too_few(monkeypatch: pytest.MonkeyPatch) -> None:
    enough = sfma.frame_bits
    monkeypatch.setattr(sfma, "frame_bits", lambda precision: enough(precision) - 1)
    assert counterexample(fma_claim(rounding_to(small_format(4, 2)))[1])


@pytest.mark.slow
def test_fixed_point_and_sorted_terms_give_one_efda() -> None:
    """Two encodings that have only their rounding in common, proved equal for all inputs of formats in which far
    terms, cancelling terms and subnormals all occur (products up to 2^6, subnormals below 2^-6)."""
    ab, fmt = small_format(3, 1), small_format(4, 1)
    a, b = ([z3.BitVec(f"{side}{k}", ab.storage_bits) for k in range(2)] for side in "ab")
    operands = [tuple(blocks.decode(code, ab) for code in side) for side in (a, b)]
    c = blocks.decode(z3.BitVec("c", fmt.storage_bits), fmt)
    special = blocks.classify(list(zip(*operands, strict=True)), [c])
    inputs = efda.EfdaInputs(operands[0], operands[1], c, special, stages.Stages())
    # The formats are none of the tables', so stand-ins take the place of a DotAdd and its checks.
    spec: Any = SimpleNamespace(a_format=ab, b_format=ab, c_format=fmt)
    parameters: Any = SimpleNamespace(L=2, rho=rounding_to(fmt), minus_zero=True)
    fixed = efda.fixed_step(spec, parameters, inputs).result
    by_terms = efda.sorted_step(spec, parameters, inputs).result
    with Portfolio() as portfolio:
        outcome = portfolio.ask(smtlib([z3.simplify(fixed != by_terms)]), {}, timeout=300)
    assert outcome.verdict == "unsat", outcome


#: what is one too many, inputs that show it, and of what
TOO_FEW = {
    # 1 - 255·255·2^-17 - (1 + 3·2^-23)·2^-4, three terms that halve the largest
    "NEAR": (
        SPECS["efda bf16 of one product"].replace(k=2, L=2),
        Case((0x3F80, 0xBFFF), (0x3F80, 0x3E7F), 0xBD800003),
    ),
    # 2^-48 - 1.5·2^-73
    "places_below": (
        SPECS["efda fp16"].replace(k=4),
        Case((0x0001, 0, 0, 0), (0x0001, 0, 0, 0), 0x9B400000),
    ),
}


@pytest.mark.parametrize("width", TOO_FEW)
def test_one_place_less_than_efda_has_is_too_few(width: str, monkeypatch: pytest.MonkeyPatch) -> None:
    spec, case = TOO_FEW[width]

    def evaluated_afresh() -> int:
        a, b = ([z3.BitVecVal(x, 16) for x in side] for side in (case.a, case.b))
        return int(z3.simplify(smt.dot_add(spec, a, b, z3.BitVecVal(case.c, 32)).result).as_long())

    assert evaluated_afresh() == reference(spec, case)
    enough = getattr(efda, width)
    fewer = enough - 1 if isinstance(enough, int) else lambda *bits: enough(*bits) - 1
    monkeypatch.setattr(efda, width, fewer)
    assert evaluated_afresh() != reference(spec, case)


# ---- small parts -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("source", "target"),
    [(e4m3, fp16), (e5m2, fp16), (e5m2fnuz, fp16), (e4m3, bf16), (e5m2, e5m2), (e2m1, e5m2)],
)
def test_conversion_is_exact(source: Format, target: Format) -> None:
    code = z3.BitVec("x", source.storage_bits)
    term = ieee.convert(code, source, target)
    for value in range(source.codes):
        got = on_constants([code], term, [value])
        if source.is_nan(value):
            assert target.is_nan(got)
        else:
            assert got == converted(value, source, target)


@pytest.mark.parametrize("target", [e5m2, fp32], ids=str)
@pytest.mark.parametrize("source", [Format("e2m1i", 4, 2, 1, 1, Specials.IEEE, None), e5m2], ids=str)
def test_a_quiet_nan_keeps_sign_and_payload(source: Format, target: Format) -> None:
    """A fraction of one bit is the bit of a quiet NaN, and no payload."""
    code = z3.BitVec("x", source.storage_bits)
    term = stages.quiet(code, source, target)
    nans = [value for value in range(source.codes) if source.is_nan(value)]
    assert nans
    for value in nans:
        sign, fraction = value >> (source.storage_bits - 1), value & ((1 << source.fraction_bits) - 1)
        quiet_bit = 1 << (source.fraction_bits - 1)
        payload = (fraction | quiet_bit) << (target.fraction_bits - source.fraction_bits)
        exponent = ((1 << target.exponent_bits) - 1) << target.fraction_bits
        wanted = sign << (target.storage_bits - 1) | exponent | payload
        assert on_constants([code], term, [value]) == wanted


def test_a_wrong_number_of_codes_is_told() -> None:
    spec = SPECS["fda mx"]
    x = symbolic_inputs(spec)
    with pytest.raises(ValueError, match="needs 32 codes a, not 31"):
        smt.dot_add(spec, x.a[1:], x.b, x.c, x.scale_a, x.scale_b)
    with pytest.raises(ValueError, match="needs 1 codes scale_b, not 0"):
        smt.dot_add(spec, x.a, x.b, x.c, x.scale_a)
    unscaled = SPECS["fda turing"]
    with pytest.raises(ValueError, match="needs 0 codes scale_a, not 1"):
        smt.dot_add(unscaled, x.a[:8], x.b[:8], x.c, x.scale_a)
