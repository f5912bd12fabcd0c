"""The executable encoding against exact rational arithmetic (`exact.py`), on checked lanes, and on known answers."""

from __future__ import annotations

import random
from collections.abc import Callable
from fractions import Fraction
from itertools import product
from operator import attrgetter
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support import exact

from mmaformal import ARCHITECTURES, ada, ampere, cdna1, cdna2, cdna3, hopper, rtx_blackwell, turing, volta
from mmaformal.encodings import executable
from mmaformal.encodings.efda import Efda
from mmaformal.encodings.efda import executable as efda
from mmaformal.encodings.executable import blocks, ieee, limbs
from mmaformal.encodings.executable.stages import Stages
from mmaformal.encodings.fda import Fda
from mmaformal.encodings.sfma import executable as sfma
from mmaformal.formats import FORMATS, Format, Specials, bf16, e4m3, e5m2, fp16, fp32, fp64
from mmaformal.instruction import Instruction
from mmaformal.rounding import (
    CONVERSIONS,
    DETERMINISTIC,
    IEEE_FP32,
    IEEE_FP64,
    RNE_FP32,
    Conversion,
    Rounding,
)
from mmaformal.spec import DotAdd

#: one instruction of each distinct kind of behaviour
INSTRUCTIONS = [
    *volta,
    turing["HMMA.1688.F16"],
    *(ampere[f"HMMA.16816.{types}"] for types in ("F32", "F16", "F32.BF16")),
    ampere["HMMA.1688.F32.TF32"],
    ampere["DMMA.884"],
    ada["QMMA.16832.F32.E4M3.E5M2"],
    ada["QMMA.16832.F16.E5M2.E4M3"],
    hopper["HGMMA.64x8x16.F16"],
    hopper["QGMMA.64x8x32.F32.E5M2.E5M2"],
    hopper["mma.m16n8k32.f32.e4m3.e5m2.f32"],
    hopper["mma.m16n8k32.f16.e5m2.e4m3.f16"],
    rtx_blackwell["QMMA.16832.F32.E3M2.E2M1"],
    rtx_blackwell["QMMA.16832.F16.E2M3.E4M3"],
    rtx_blackwell["QMMA.SF.16832.F32.E4M3.E2M3.E8"],
    rtx_blackwell["QMMA.SF.16832.F32.E5M2.E5M2.E8"].chained(64),
    rtx_blackwell["OMMA.SF.16864.F32.E2M1.E2M1.E8"],
    rtx_blackwell["OMMA.SF.16864.F32.E2M1.E2M1.E8.4X"],
    rtx_blackwell["OMMA.SF.16864.F32.E2M1.E2M1.UE4M3.4X"],
    cdna1["f32_32x32x2f32"],
    cdna1["f32_32x32x8f16"],
    cdna1["f32_32x32x4bf16"],
    cdna2["f32_32x32x8f16"],
    cdna2["f32_32x32x4bf16"],
    cdna2["f32_32x32x4bf16_1k"],
    cdna3["f32_16x16x8_xf32"],
    cdna3["f32_16x16x16_f16"],
    cdna3["f32_32x32x8_bf16"],
    cdna3["f32_16x16x32_bf8_fp8"],
    cdna3["f32_32x32x16_fp8_fp8"],
    ampere.revision("paper-v1")["HMMA.16816.F16"],
    rtx_blackwell.revision("paper-v1")["OMMA.SF.16864.F32.E2M1.E2M1.UE4M3.4X"],
    cdna3.revision("paper-v1")["f32_32x32x8_bf16"],
    cdna3.revision("paper-v1")["f32_32x32x16_bf8_bf8"],
    cdna3["f32_32x32x8_f16"].replace(cut=Rounding.RZ),
    hopper["HMMA.16816.F32"].replace(F=30, rho=RNE_FP32),
    cdna1["f32_16x16x16f16"].replace(L=16),
]
LABEL = attrgetter("label")


# ---- inputs ------------------------------------------------------------------------------------------------


def near(fmt: Format, exponent: int, rng: random.Random) -> int:
    """A code whose exponent field is close to that of 2^exponent, of either sign."""
    top = (1 << fmt.exponent_bits) - 1
    field = min(max(exponent + fmt.bias + rng.randint(-2, 2), 0), top)
    fraction = rng.choice((0, 1, (1 << fmt.fraction_bits) - 1, rng.getrandbits(fmt.fraction_bits or 1)))
    fraction &= (1 << fmt.fraction_bits) - 1
    code = ((field << fmt.fraction_bits) | fraction) << fmt.ignored_low_bits
    return code | (fmt.sign_mask if rng.random() < 0.5 else 0)


def special_codes(fmt: Format) -> list[int]:
    top = fmt.codes // 2 if fmt.signed else fmt.codes
    leading = 1 << (fmt.fraction_bits + fmt.ignored_low_bits)
    infinity = fmt.infinity or 0
    few = [0, 1, leading - 1, leading, top - 1, infinity, max(infinity - 1, 0), infinity | 1]
    return [code | sign for code in few for sign in (0, fmt.sign_mask)]


def case(spec: DotAdd, rng: random.Random) -> tuple[list[int], list[int], int, list[int], list[int]]:
    """One dot product-add, in one of several distributions: any bits, few binades, cancelling, sparse, special."""
    a_format, b_format, c_format = spec.a_format, spec.b_format, spec.c_format
    distribution = rng.choice(("bits", "near", "near", "cancel", "sparse", "special", "tiny"))
    e_a = rng.randint(a_format.min_exponent, a_format.max_exponent)
    e_b = rng.randint(b_format.min_exponent, b_format.max_exponent)
    if distribution == "tiny":
        e_a, e_b = a_format.min_exponent, rng.choice((b_format.min_exponent, e_b))
    if distribution == "bits":
        a = [rng.randrange(a_format.codes) for _ in range(spec.k)]
        b = [rng.randrange(b_format.codes) for _ in range(spec.k)]
        c = rng.randrange(c_format.codes)
    else:
        a = [near(a_format, e_a, rng) for _ in range(spec.k)]
        b = [near(b_format, e_b, rng) for _ in range(spec.k)]
        c = near(c_format, e_a + e_b + rng.choice((0, 0, 1, 24, -24, -30, rng.randint(-80, 80))), rng)
    if distribution == "cancel" and spec.k > 1:
        pairs = rng.sample(range(spec.k), spec.k)
        for i, j in zip(pairs[0::2], pairs[1::2], strict=False):
            if rng.random() < 0.8:
                a[j], b[j] = a[i] ^ a_format.sign_mask, b[i] ^ (rng.random() < 0.2)
    if distribution == "cancel" and spec.k == 1:
        c = exact.dot_add(spec, [a[0] ^ a_format.sign_mask], b, 0) ^ rng.choice((0, 1, 2))
    if distribution == "sparse":
        for k in range(spec.k):
            if rng.random() < 0.7:
                a[k], b[k] = rng.choice(((0, b[k]), (a[k], 0), (0, 0), (a_format.sign_mask, b[k])))
        c = rng.choice((c, 0, c_format.sign_mask))
    if distribution == "special":
        for _ in range(rng.randint(1, 3)):
            k = rng.randrange(spec.k)
            a[k] = rng.choice(special_codes(a_format))
            b[k] = rng.choice((b[k], rng.choice(special_codes(b_format))))
        c = rng.choice((c, rng.choice(special_codes(c_format))))
    scales: list[list[int]] = [[], []]
    if spec.scale_format is not None:
        middle = rng.choice((0, rng.randint(-60, 60), rng.randint(-127, 127)))
        scales = [
            [
                rng.randrange(256)
                if distribution == "special"
                else near(spec.scale_format, middle * sign, rng)
                for _ in range(spec.scales)
            ]
            for sign in (1, rng.choice((1, -1)))
        ]
    return a, b, c, scales[0], scales[1]


def shown(spec: DotAdd, code: int) -> str:
    """For comparing: any NaN is one where its payload is unspecified."""
    if not spec.nan_is_canonical and spec.d_format.is_nan(code):
        return "nan"
    return f"{code:#x}"


@pytest.mark.parametrize("instruction", INSTRUCTIONS, ids=LABEL)
@pytest.mark.parametrize("products", [1000, pytest.param(5000, marks=pytest.mark.slow)])
def test_agrees_with_exact_arithmetic(instruction: Instruction, products: int) -> None:
    """On as many cases as have so many products, but no fewer than a twentieth as many."""
    spec = instruction.spec
    rng = random.Random(instruction.label)
    cases = [case(spec, rng) for _ in range(max(products // spec.k, products // 20))]
    columns = [np.array(column, np.uint64) for column in zip(*cases, strict=True)]
    a, b, c, *scales = columns
    d = instruction.dot_add(a, b, c, *(scales if spec.scale_format else ()))
    for each, got in zip(cases, d, strict=True):
        wanted = exact.dot_add(spec, *each)
        assert shown(spec, int(got)) == shown(spec, wanted), each


def sparse_codes(fmt: Format) -> st.SearchStrategy[int]:
    return st.one_of(
        st.integers(0, fmt.codes - 1), st.sampled_from(special_codes(fmt)), st.just(0), st.just(fmt.sign_mask)
    )


@pytest.mark.parametrize(
    "instruction",
    [
        ampere["HMMA.16816.F32"].replace(k=2, L=2),
        ampere["HMMA.16816.F16"].replace(k=3, L=1),
        hopper["mma.m16n8k32.f16.e4m3.e4m3.f16"].replace(k=2, L=2, order=(1, 0)),
        ampere["DMMA.884"].replace(k=1),
        cdna1["f32_32x32x1f32"],
        cdna1["f32_4x4x4f16"].replace(k=2, L=2),
        cdna1["f32_4x4x2bf16"],
        cdna2["f32_4x4x2bf16"],
        cdna3["f32_4x4x4_16b_bf16"].replace(k=2, L=2),
        cdna3["f32_16x16x32_fp8_bf8"].replace(k=4, L=4),
    ],
    ids=LABEL,
)
def test_agrees_with_exact_arithmetic_on_inputs_that_hypothesis_finds(instruction: Instruction) -> None:
    spec = instruction.spec

    @settings(max_examples=150, deadline=None)
    @given(
        st.lists(sparse_codes(spec.a_format), min_size=spec.k, max_size=spec.k),
        st.lists(sparse_codes(spec.b_format), min_size=spec.k, max_size=spec.k),
        sparse_codes(spec.c_format),
    )
    def agrees(a: list[int], b: list[int], c: int) -> None:
        got = executable.dot_add(spec, a, b, c).result % spec.d_format.codes
        assert shown(spec, got) == shown(spec, exact.dot_add(spec, a, b, c))

    agrees()


# ---- no operation leaves 64 bits ---------------------------------------------------------------------------


class Checked(int):
    """A lane that refuses to leave the signed 64-bit range, and shift amounts outside 0 … 63."""

    def __new__(cls, value: int) -> Checked:
        if not -(2**63) <= value < 2**63:
            raise OverflowError(f"{value:#x} is no signed 64-bit integer")
        return super().__new__(cls, value)


def _checked(name: str, *, shift: bool = False) -> None:
    plain = getattr(int, name)

    def operation(self: int, *others: int) -> Checked:
        if shift and not 0 <= others[0] <= 63:
            raise OverflowError(f"shift by {others[0]}")
        return Checked(plain(self, *others))

    setattr(Checked, name, operation)


for _name in ("add", "sub", "mul", "and", "or", "xor"):
    _checked(f"__{_name}__")
    _checked(f"__r{_name}__")
_checked("__neg__")
_checked("__lshift__", shift=True)
_checked("__rshift__", shift=True)


def test_checked_lanes_check() -> None:
    with pytest.raises(OverflowError):
        Checked(2**62) + Checked(2**62)
    with pytest.raises(OverflowError):
        Checked(1) << 64
    with pytest.raises(OverflowError):
        Checked(3) >> Checked(-1)
    assert type(1 + Checked(1)) is type(-Checked(1)) is Checked


def lanes(codes: list[int], fmt: Format) -> list[Checked]:
    return [Checked(code - (1 << 64) if code >= 1 << 63 else code) for code in codes]


@pytest.mark.parametrize("instruction", INSTRUCTIONS, ids=LABEL)
@pytest.mark.parametrize("products", [200, pytest.param(1000, marks=pytest.mark.slow)])
def test_no_operation_leaves_the_64_bit_range(instruction: Instruction, products: int) -> None:
    """And Python ints give what NumPy's rows do."""
    spec = instruction.spec
    rng = random.Random(f"{instruction.label} in 64 bits")
    for _ in range(max(products // spec.k, products // 20)):
        a, b, c, scale_a, scale_b = case(spec, rng)
        trace = executable.dot_add(
            spec,
            lanes(a, spec.a_format),
            lanes(b, spec.b_format),
            lanes([c], spec.c_format)[0],
            *(lanes(s, spec.scale_format) if spec.scale_format else [] for s in (scale_a, scale_b)),
        )
        scales = (np.array(scale_a, np.uint8), np.array(scale_b, np.uint8)) if spec.scale_format else ()
        row = instruction.dot_add(np.array(a, np.uint64), np.array(b, np.uint64), c, *scales)
        assert trace.result % spec.d_format.codes == int(row)
        assert trace.result == trace.steps[-1].result


# ---- stages ------------------------------------------------------------------------------------------------


@given(st.integers(0, 2**63 - 1))
def test_bit_length(x: int) -> None:
    assert blocks.bit_length(x) == x.bit_length()


@given(st.integers(0, 2**62 - 1), st.integers(-5, 200))
def test_sticky_shift(x: int, n: int) -> None:
    n_used = min(max(n, 0), 62)
    quotient, remainder = divmod(x, 2**n_used)
    assert blocks.shift_right_sticky(x, n) == quotient | (remainder != 0)


@given(st.integers(-(2**61), 2**61), st.integers(0, 100), st.sampled_from([Rounding.RD, Rounding.RZ]))
def test_shift_rounded_down_or_toward_zero(x: int, n: int, cut: Rounding) -> None:
    assert blocks.shift_right(x, n, cut) == exact.cut(Fraction(x, 2**n), 0, cut)


def value(x: limbs.Wide) -> int:
    assert 0 <= x.low < 2**56
    return (int(x.high) << 56) + int(x.low)


WIDE = st.integers(0, 2**112 - 1)


@given(st.integers(0, 2**53 - 1), st.integers(0, 2**53 - 1), st.integers(2, 5))
def test_wide_product(x: int, y: int, shift: int) -> None:
    assert value(limbs.multiply(Checked(x), Checked(y), shift).product) == x * y << shift


@given(st.integers(0, 2**56 - 1), st.integers(0, 112))
def test_wide_shift_left(x: int, n: int) -> None:
    n = min(n, 112 - x.bit_length())
    assert value(limbs.shift_left(Checked(x), Checked(n))) == x << n


@given(WIDE, st.integers(0, 2000))
def test_wide_sticky_shift(x: int, n: int) -> None:
    wide = limbs.Wide(Checked(x >> 56), Checked(x % 2**56))
    quotient, remainder = divmod(x, 2**n)
    assert value(limbs.shift_right_sticky_wide(wide, Checked(n))) == quotient | (remainder != 0)


@given(WIDE, st.booleans(), WIDE, st.booleans())
def test_wide_signed_sum_and_its_leading_bits(x: int, x_negative: bool, y: int, y_negative: bool) -> None:
    terms = [(x, x_negative), (y, y_negative)]
    signed = [
        limbs.signed(Checked(negative), limbs.Wide(Checked(z >> 56), Checked(z % 2**56)))
        for z, negative in terms
    ]
    total = limbs.add(*signed)
    wanted = sum(-z if negative else z for z, negative in terms)
    assert value(total) == wanted
    narrow = limbs.narrow(total, 0)
    quotient, remainder = divmod(abs(wanted), 2**narrow.unit)
    assert abs(narrow.total) == quotient | (remainder != 0)
    assert (narrow.total < 0) == (wanted < 0)
    assert quotient.bit_length() == 60 or remainder == 0


@pytest.mark.parametrize("rho", [*CONVERSIONS.values(), RNE_FP32.with_signed_zero()], ids=str)
def test_conversion_rounds_exactly_and_keeps_order(rho: Conversion) -> None:
    least = rho.format.min_exponent - rho.format.fraction_bits

    @settings(max_examples=200, deadline=None)
    @given(
        st.integers(-(2**60), 2**60),
        st.integers(-(2**60), 2**60),
        st.one_of(st.integers(least - 64, rho.format.max_exponent + 2), st.integers(least - 4, least + 4)),
    )
    def converts(x: int, y: int, unit: int) -> None:
        low, high = sorted((x, y))
        codes = [
            blocks.encode(blocks.normalise_and_round(Checked(z), Checked(unit), rho), rho)
            for z in (low, high)
        ]
        for z, code in zip((low, high), codes, strict=True):
            assert code % rho.format.codes == exact.convert(Fraction(z) * Fraction(2) ** unit, rho)
        order = [number_order(code % rho.format.codes, rho.format) for code in codes]
        assert order[0] <= order[1]

    converts()


def number_order(code: int, fmt: Format) -> int:
    """The codes of a signed format in the order of their numbers, −0 before +0."""
    magnitude = code & (fmt.sign_mask - 1)
    return -magnitude - 1 if code & fmt.sign_mask else magnitude


@pytest.mark.parametrize("source", [e4m3, e5m2, fp16], ids=str)
def test_exact_conversion_keeps_every_value(source: Format) -> None:
    target = fp16 if source is not fp16 else fp32
    codes = np.arange(source.codes)
    converted = ieee.convert_exactly(codes, source, target).astype(target.word).view(target.dtype)
    wanted = codes.astype(source.word).view(source.dtype).astype(target.dtype)
    np.testing.assert_array_equal(converted, wanted)
    np.testing.assert_array_equal(np.signbit(converted[wanted == 0]), np.signbit(wanted[wanted == 0]))


# ---- sticky sums, all of them, at small precision ----------------------------------------------------------


def rounded(x: np.ndarray, p: int, least: int, rounding: Rounding) -> np.ndarray:
    """fp64 numbers rounded to p fractional bits, exponents not below `least`; exact as long as fp64 is."""
    exponent = np.maximum(np.frexp(x)[1] - 1, least)
    quantum = np.ldexp(1.0, exponent - p)
    return np.copysign(INTEGERS[rounding](x / quantum) * quantum, x)


#: numbers rounded to integers
INTEGERS: dict[Rounding, Callable[[np.ndarray], np.ndarray]] = {
    Rounding.RZ: np.trunc,
    Rounding.RNE: np.rint,
    Rounding.RNA: lambda x: np.trunc(x + np.copysign(0.5, x)),
    Rounding.RD: np.floor,
    Rounding.RU: np.ceil,
    Rounding.RO: lambda x: np.trunc(x) + ((np.trunc(x) != x) & (np.trunc(x) % 2 == 0)) * np.copysign(1, x),
}


@pytest.mark.parametrize(
    ("p", "rounding"), [*product((1, 2), DETERMINISTIC), (3, Rounding.RNE), (3, Rounding.RO)], ids=str
)
def test_efda_sorted_sum_of_all_terms(p: int, rounding: Rounding) -> None:
    """Every significand, sign, order and distance of three terms; distances beyond 2p + 6 behave like it."""
    significands = np.arange(2**p, 2 ** (p + 1))
    gaps = np.arange(2 * p + 7)
    grid = np.meshgrid(significands, significands, significands, [0, 1], [0, 1], gaps, gaps, indexing="ij")
    m1, m2, m3, sign2, sign3, gap12, gap23 = (axis.ravel() for axis in grid)
    e1 = np.full_like(m1, 20)
    x = blocks.Term(0 * m1, e1, m1)
    y = blocks.Term(sign2, e1 - gap12, m2)
    z = blocks.Term(sign3, e1 - gap12 - gap23, m3)
    rho = Conversion("small", fp32, p, rounding, signed_zero=True)
    value = sum(np.ldexp(1.0 - 2 * t.sign, t.exponent - p) * t.significand for t in (x, y, z))
    wanted = rounded(value, p, -126, rounding)
    for order in ((x, y, z), (z, x, y), (y, z, x)):
        total = efda.sorted_sum(*order, p, -1000).total
        code = blocks.encode(blocks.round_sum(total, 0 * m1, rho), rho)
        np.testing.assert_array_equal(code.astype(np.uint32).view(np.float32), wanted)


TINY = Format("tiny", 7, 4, 2, 7, Specials.IEEE, None)
TINIER = Format("tinier", 5, 3, 1, 3, Specials.IEEE, None)


def values(fmt: Format) -> np.ndarray:
    """The number of every code, as fp64."""
    return np.array([float.fromhex(fmt.text(code)) for code in range(fmt.codes)])


def assert_codes_are(codes: np.ndarray, wanted: np.ndarray, fmt: Format) -> None:
    got = values(fmt)[codes]
    np.testing.assert_array_equal(got, wanted)
    np.testing.assert_array_equal(np.signbit(got[wanted == 0]), np.signbit(wanted[wanted == 0]))


def overflowed(x: np.ndarray, fmt: Format) -> np.ndarray:
    return np.where(np.abs(x) >= 2.0 ** (fmt.max_exponent + 1), np.copysign(np.inf, x), x)


@pytest.mark.parametrize("rounding", DETERMINISTIC, ids=lambda r: r.name)
@pytest.mark.parametrize("fmt", [TINY, TINIER], ids=str)
def test_fma_of_all_codes_of_a_tiny_format(fmt: Format, rounding: Rounding) -> None:
    """Every a, b ≥ 0 and c of an IEEE format of 7 or 5 bits, in one lane and in limbs; fp64 is exact for all of it."""
    if fmt is TINY and rounding is not Rounding.RNE:
        pytest.skip("TINIER has them all")
    p = fmt.fraction_bits
    rho = object.__new__(Conversion)  # not checked: no result is of such a format
    for name, value in (("format", fmt), ("fraction_bits", p), ("rounding", rounding), ("signed_zero", True)):
        object.__setattr__(rho, name, value)
    codes = np.arange(fmt.codes)
    a, b, c = (axis.ravel() for axis in np.meshgrid(codes, codes[: fmt.codes // 2], codes, indexing="ij"))
    number = values(fmt)
    with np.errstate(invalid="ignore"):
        wanted = overflowed(rounded(number[a] * number[b] + number[c], p, fmt.min_exponent, rounding), fmt)
    step = sfma.step(rho, a, b, c)
    assert_codes_are(step.result, wanted, fmt)

    significand = limbs.multiply(step.a.significand, step.b.significand, 3).product
    product = limbs.WideTerm(step.product.sign, step.product.exponent, significand)
    total = limbs.add_term(product, step.addend, p, 2 * p + 3)
    in_limbs = blocks.round_sum(total.narrowed, product.sign & step.addend.sign, rho)
    finite = np.isfinite(number[a]) & np.isfinite(number[b]) & np.isfinite(number[c])
    assert_codes_are(blocks.encode(in_limbs, rho)[finite], wanted[finite], fmt)


@pytest.mark.parametrize("L", [1, 2])
def test_efda_in_fixed_point_of_all_codes_of_a_tiny_format(L: int) -> None:
    """Every a, b of 4 bits and c of e5m2; of a second product, every a times 1."""
    fmt = Format("tinier", 4, 2, 1, 1, Specials.IEEE, None)
    rho = Conversion("RNE-e5m2", e5m2, 2, Rounding.RNE, signed_zero=True)
    axes = [np.arange(fmt.codes)] * (1 + L) + [np.arange(e5m2.codes)]
    *factors, c = (axis.ravel() for axis in np.meshgrid(*axes, indexing="ij"))
    one = np.full_like(c, fmt.bias << fmt.fraction_bits)
    a, b = (factors[0], *factors[2:]), (factors[1], *[one] * (L - 1))
    spec = SimpleNamespace(a_format=fmt, b_format=fmt, c_format=e5m2)
    step = efda.step(spec, Efda(L, rho), a, b, c, Stages())  # type: ignore[arg-type]
    number = values(fmt)
    with np.errstate(invalid="ignore"):
        total = sum(number[x] * number[y] for x, y in zip(a, b, strict=True)) + values(e5m2)[c]
        wanted = overflowed(rounded(total + 0.0, 2, e5m2.min_exponent, Rounding.RNE), e5m2)
    wanted[total == 0] = 0.0
    assert_codes_are(step.result, wanted, e5m2)


# ---- fma in fp64, where it is hard -------------------------------------------------------------------------


def fp64_bits(value: Fraction) -> int:
    return exact.convert(value, IEEE_FP64)


def hard_fma_cases(rng: random.Random) -> list[tuple[int, int, int]]:
    """Products near ties, addends that cancel them up to their last places, and both ends of the range."""
    cases = []
    for _ in range(1500):
        e_a, e_b = rng.choice(
            [(rng.randint(-60, 60), rng.randint(-60, 60)), (rng.randint(-1074, -900), rng.randint(-150, 60)),
             (rng.randint(800, 1023), rng.randint(0, 300)), (-1074, rng.randint(-60, 1023))]
        )  # fmt: skip
        a = fp64_bits(Fraction(rng.getrandbits(53) | 1) * Fraction(2) ** (e_a - 52))
        b = fp64_bits(Fraction(rng.getrandbits(rng.choice((3, 27, 53))) | 1) * Fraction(2) ** (e_b - 52))
        if not (fp64.is_finite(a) and fp64.is_finite(b)):
            continue
        product = fp64.value(a) * fp64.value(b)
        ulp = Fraction(2) ** (max(exact.exponent_of(product), -1022) - 52 if product else -1074)
        c = rng.choice(
            [
                -product,
                -product + rng.randint(-3, 3) * ulp,
                product * Fraction(2) ** rng.randint(-110, 110) * rng.choice((1, -1)),
                ulp * Fraction(rng.choice((1, -1, 3)), 2),
                ulp * Fraction(rng.randint(-3, 3)) * Fraction(2) ** rng.randint(-60, 60),
            ]
        )
        cases.append((a, b, fp64_bits(c)))
    return cases


def test_fp64_fma_is_correctly_rounded() -> None:
    instruction = ampere["DMMA.884"].replace(k=1)
    cases = hard_fma_cases(random.Random("fp64 fma"))
    assert len(cases) > 1000
    a, b, c = (np.array(column, np.uint64) for column in zip(*cases, strict=True))
    d = instruction.dot_add(a[:, None], b[:, None], c)
    for x, y, z, got in zip(a, b, c, d, strict=True):
        wanted = exact.dot_add(instruction.spec, [int(x)], [int(y)], int(z))
        assert shown(instruction.spec, int(got)) == shown(instruction.spec, wanted), (hex(x), hex(y), hex(z))


def test_fp32_fma_agrees_with_numpy_in_fp64() -> None:
    """An fp32 product is exact in fp64; where the sum is too, rounding it is the fma."""
    rng = np.random.default_rng(2024)
    a, b = rng.standard_normal((2, 20_000)).astype(np.float32)
    c = (a.astype(np.float64) * b * rng.integers(-3, 4, a.shape)).astype(np.float32)
    total = a.astype(np.float64) * b + c
    got = cdna3["f32_32x32x1_2b_f32"].dot_add(a[:, None], b[:, None], c).view(np.float32)
    difference = np.abs(got - total)
    assert np.all(difference <= np.spacing(np.abs(got)).astype(np.float64) / 2 * (1 + 2**-20))


# ---- known answers -----------------------------------------------------------------------------------------


def fp32_code(x: float) -> int:
    return int(np.float32(x).view(np.uint32))


def test_an_exact_cancellation_is_plus_zero() -> None:
    a = np.array([1, -1, 0, 0], np.float16)
    for name, instruction in (("volta", volta["HMMA.884.F32.F32"]), ("cdna3", cdna3["f32_4x4x4_16b_f16"])):
        assert instruction.dot_add(a, np.ones(4, np.float16), np.float32(0)) == 0, name


@pytest.mark.parametrize(
    ("instruction", "wanted"),
    [
        (cdna3["f32_32x32x8_f16"], -0.25),  # MMA-Sim §VI-C
        (cdna3["f32_32x32x8_f16"].replace(cut=Rounding.RZ), 0.0),
        (ampere["HMMA.1688.F32"], 0.0),
        (hopper["HMMA.1688.F32"], 0.0),
        (cdna2["f32_32x32x8f16"], -1e-6),
        (cdna1["f32_32x32x8f16"], -1e-6),
    ],
    ids=lambda x: x.label if isinstance(x, Instruction) else str(x),
)
def test_rounding_down_on_cdna3(instruction: Instruction, wanted: float) -> None:
    a = np.array([2048, 2048, 0, 0, 0, 0, 0, 0], np.float16)
    b = np.array([2048, -2048, 0, 0, 0, 0, 0, 0], np.float16)
    assert instruction.dot_add(a, b, np.float32(-1e-6)) == np.float32(wanted)


def test_fp8_on_cdna3_drops_a_small_accumulator() -> None:
    """MMA-Sim §VI-C: the patch in fp8."""
    a, b = np.zeros(16, np.uint8), np.zeros(16, np.uint8)
    fp8 = cdna3["f32_32x32x16_fp8_fp8"]
    a[:2] = b[:2] = 0x58  # 8.0
    b[1] |= 0x80
    kept = [fp8.dot_add(a, b, fp32_code(c)) for c in (-1e-6, -(2.0**-19))]
    assert kept == [0, fp32_code(-(2.0**-18))]


def test_tf32_reads_a_nan_as_infinity() -> None:
    a, b = np.zeros((2, 4), np.uint32)
    a[0], b[0] = 0x7F800001, 0x3F800000
    for instruction in (ampere["HMMA.1684.F32.TF32"], cdna3["f32_32x32x4_xf32"]):
        assert instruction.dot_add(a, b, 0) == 0x7F800000


def test_cdna2_flushes_subnormals() -> None:
    a, b = np.zeros((2, 4), np.uint16)
    a[0], b[0] = 0x0001, 0x3C00
    assert cdna2["f32_32x32x4f16"].dot_add(a, b, 0) == 0
    assert cdna3["f32_32x32x4_2b_f16"].dot_add(a, b, 0) == fp32_code(2.0**-24)


def test_products_of_two_to_the_128_overflow_on_cdna3_only() -> None:
    big = int(np.float32(2.0**64).view(np.uint32) >> 16)
    a, b = np.zeros((2, 8), np.uint16)
    a[:2] = b[:2] = big
    b[1] |= 0x8000
    assert ampere["HMMA.1688.F32.BF16"].dot_add(a, b, 0) == 0
    assert fp32.is_nan(int(cdna3["f32_32x32x8_bf16"].dot_add(a, b, 0)))


@pytest.mark.parametrize(
    ("instruction", "bits"),
    [
        (ada["QMMA.16832.F32.E4M3.E4M3"], 13),
        (hopper["QGMMA.64x8x32.F32.E4M3.E4M3"], 13),
        (ARCHITECTURES["blackwell"]["UTCQMMA.F32.E4M3.E4M3"], 25),
        (rtx_blackwell["QMMA.16832.F32.E4M3.E4M3"], 25),
        (cdna3["f32_16x16x32_fp8_fp8"], 24),
        (cdna3["f32_32x32x16_bf8_fp8"], 24),
    ],
    ids=lambda x: x.label if isinstance(x, Instruction) else str(x),
)
def test_fractional_bits_of_fp8(instruction: Instruction, bits: int) -> None:
    """MMA-Sim §VI-A: 1 − 1 + ε survives down to ε = 2^-bits, ε given as c."""
    a, b = np.zeros((2, instruction.k), np.uint8)
    a[:2], b[:2] = instruction.a_format.code("1"), instruction.b_format.code("1")
    b[1] |= 0x80
    kept = [instruction.dot_add(a, b, fp32_code(2.0**-n)) != 0 for n in (bits, bits + 1)]
    assert kept == [True, False]


def test_hopper_lowers_fp8_to_fp16_and_so_keeps_more() -> None:
    a, b = np.zeros((2, 32), np.uint8)
    a[:2] = b[:2] = 0x38
    b[1] |= 0x80
    a[2], b[2] = 0x08, 0x08  # 2^-6 · 2^-6, in the second half
    lowered = hopper["mma.m16n8k32.f32.e4m3.e4m3.f32"]
    assert lowered.dot_add(a, b, fp32_code(2.0**-20)) == fp32_code(2.0**-12 + 2.0**-20)


def test_the_addition_of_c_is_last_when_lowered() -> None:
    """2^-30 beside 1 − 1 is lost in an fda of F = 25, c beside their sum is not."""
    a, b = np.zeros((2, 32), np.uint8)
    a[:2] = b[:2] = 0x38
    b[1] |= 0x80
    c = fp32_code(2.0**-30)
    assert hopper["mma.m16n8k32.f32.e4m3.e4m3.f32"].dot_add(a, b, c) == fp32_code(2.0**-30)
    assert rtx_blackwell["mma.m16n8k32.f32.e4m3.e4m3.f32"].dot_add(a, b, c) == 0


def codes(numbers: list[float], fmt: Format, k: int) -> np.ndarray:
    """The codes of numbers that `fmt` holds exactly, with zeros up to k."""
    assert fmt.dtype is not None
    given = np.array([*numbers, *[0.0] * (k - len(numbers))])
    converted = given.astype(fmt.dtype)
    assert np.array_equal(converted.astype(np.float64), given)
    return converted.view(fmt.word)


def rule(
    name: str, instruction: Instruction, a: list[float], b: list[float], c: float, wanted: float
) -> object:
    """A case that hangs on one rule: operands, and the result by that rule."""
    return pytest.param(instruction, a, b, c, wanted, id=name)


@pytest.mark.parametrize(
    ("instruction", "a", "b", "c", "wanted"),
    [
        rule(
            "a product of significand 2 or more and exponent 127 overflows",
            cdna3["f32_32x32x8_bf16"],
            [1.5 * 2.0**63, -(2.0**63)],
            [1.5 * 2.0**64, 1.5 * 2.0**64],
            0.0,
            np.inf,
        ),
        rule(
            "a product of significand below 2 and exponent 127 does not",
            cdna3["f32_32x32x8_bf16"],
            [1.25 * 2.0**63, -(2.0**63)],
            [1.5 * 2.0**64, 1.5 * 2.0**64],
            0.0,
            0.375 * 2.0**127,
        ),
        rule(
            "the sum is cut to 31 bits before it is rounded: the 32nd does not break a tie",
            cdna3["f32_32x32x8_f16"],
            [2.0**-4, -(2.0**-4), 2.0**-12, 2.0**-16],
            [2.0**-4, 2.0**-4, 2.0**-12, 2.0**-16],
            1.0,
            1.0,
        ),
        rule(
            "without that cut it does",
            cdna3["f32_32x32x8_f16"].replace(sum_bits=None),
            [2.0**-4, -(2.0**-4), 2.0**-12, 2.0**-16],
            [2.0**-4, 2.0**-4, 2.0**-12, 2.0**-16],
            1.0,
            1.0 + 2.0**-23,
        ),
        rule(
            "a zero product takes no part in choosing the exponent",
            cdna3["f32_32x32x8_bf16"],
            [0.0, -(2.0**-40)],
            [2.0**100, 2.0**-40],
            0.0,
            -(2.0**-80),
        ),
        rule(
            "nor do all of them",
            cdna3["f32_32x32x8_f16"],
            [0.0],
            [2.0**15],
            -(2.0**-100),
            -(2.0**-100),
        ),
        rule(
            "gps keeps the sign of what it flushes",
            cdna2["f32_32x32x2bf16"],
            [2.0**-63],
            [2.0**-63],
            -1.5 * 2.0**-126,
            -0.0,
        ),
        rule(
            "but a flushed input is +0",
            cdna2["f32_32x32x4bf16"],
            [2.0**-63, 0.0, -(2.0**-133), -(2.0**-133)],
            [2.0**-63, 0.0, 1.0, 1.0],
            -1.5 * 2.0**-126,
            0.0,
        ),
        rule(
            "fma: a quarter ulp below a product with a subnormal factor (fp32)",
            cdna1["f32_32x32x1f32"],
            [2.0**-149],
            [2.0**60],
            -(2.0**23 + 3) * 2.0**-115,
            (2.0**26 - 2.0**23 - 4) * 2.0**-115,
        ),
        rule(
            "fma: a quarter ulp below a product with a subnormal factor (fp64)",
            ampere["DMMA.884"],
            [2.0**-1074],
            [2.0**60],
            -(2.0**52 + 3) * 2.0**-1069,
            (2.0**55 - 2.0**52 - 4) * 2.0**-1069,
        ),
        rule(
            "efda: a quarter ulp of c below the least sum of products",
            cdna1["f32_32x32x4f16"],
            [2.0**-24],
            [2.0**-24],
            -(2.0**24 - 5) * 2.0**-74,
            (2.0**26 - 2.0**24 + 4) * 2.0**-74,
        ),
        rule(
            "efda: a quarter ulp where three terms halve the largest",
            cdna1["f32_4x4x2bf16"],
            [1.0, -255 / 128],
            [1.0, 255 / 1024],
            -(2.0**23 + 3) * 2.0**-27,
            (2.0**27 - 65025 * 2.0**10 - 2.0**23 - 4) * 2.0**-27,
        ),
        rule(
            "efda: a quarter ulp of c where a product 2^25 as large is halved",
            cdna1["f32_4x4x2bf16"],
            [1.0, -(2.0**-2)],
            [1.0, 1.0 + 2.0**-7],
            -(2.0**23 + 1) * 2.0**-49,
            1.0 - 2.0**-2 - 2.0**-9,
        ),
        rule(
            "efda: the last bit of two terms does not cancel the sticky bit of the third",
            cdna1["f32_4x4x2bf16"],
            [-226 / 128 * 2.0**112, -204 / 128 * 2.0**-38],
            [133 / 128 * 2.0**3, -148 / 128 * 2.0**-70],
            -float(0xE73F45) * 2.0**90,
            -float(0x9251E9) * 2.0**93,
        ),
        rule(
            "efda: what is left when two terms cancel is all of the third",
            cdna1["f32_4x4x2bf16"],
            [2.0**60, -(2.0**60)],
            [2.0**60, 2.0**60],
            3.0 * 2.0**-149,
            3.0 * 2.0**-149,
        ),
    ],
)
def test_rules(instruction: Instruction, a: list[float], b: list[float], c: float, wanted: float) -> None:
    x, y = codes(a, instruction.a_format, instruction.k), codes(b, instruction.b_format, instruction.k)
    z = codes([c], instruction.c_format, 1)[0]
    d = int(instruction.dot_add(x, y, z))
    assert d == int(codes([wanted], instruction.d_format, 1)[0])
    assert d == exact.dot_add(instruction.spec, x.tolist(), y.tolist(), int(z))


def test_gdfs_exponent_of_groups_that_are_zero() -> None:
    """A small c is cut by a group that cancels, but not by one with a zero scale or with only zero products."""
    instruction = rtx_blackwell["OMMA.SF.16864.F32.E2M1.E2M1.UE4M3.4X"]
    one, c = np.full(4, 0x38, np.uint8), fp32_code(2.0**-40)
    a = np.full(64, 2, np.uint8)
    b = np.where(np.arange(64) % 2, 2, 10).astype(np.uint8)  # 1 and -1
    assert instruction.dot_add(a, b, c, one, one) == 0
    assert instruction.dot_add(a * 0, b, c, one, one) == fp32_code(2.0**-40)
    assert instruction.dot_add(a, a, c, one * 0, one * 0 + 0x78) == fp32_code(2.0**-40)  # 0 and 256


def test_efda_sees_what_is_below_a_tie_at_the_least_normal_number() -> None:
    """Just above the tie below 2^-126: rounds to the largest subnormal (where mmasim 2.1.1 gives −2^-126)."""
    instruction = cdna1["f32_4x4x2bf16"]
    d = instruction.dot_add([0x2700, 0x0008], [0x0004, 0x3580], 0x80800000)
    total = Fraction(-1, 2**126) + Fraction(1, 2**150) + Fraction(1, 2**180)
    assert d == exact.convert(total, IEEE_FP32) == 0x807FFFFF


def test_ue4m3_ignores_its_top_bit_and_ue8m0_has_no_zero() -> None:
    a = np.full(64, 2, np.uint8)  # 1.0
    scales = np.full(4, 0x38, np.uint8)
    ue4m3 = rtx_blackwell["OMMA.SF.16864.F32.E2M1.E2M1.UE4M3.4X"]
    assert ue4m3.dot_add(a, a, 0, scales, scales) == fp32_code(64)
    assert ue4m3.dot_add(a, a, 0, scales | 0x80, scales) == fp32_code(64)
    assert ue4m3.dot_add(a, a, 0, scales * 0, scales) == 0
    ue8m0 = rtx_blackwell["OMMA.SF.16864.F32.E2M1.E2M1.E8"]
    assert ue8m0.dot_add(a, a, 0, [0, 0], [254, 254]) == fp32_code(64)
    assert ue8m0.dot_add(a, a, 0, [0, 255], [254, 254]) == 0x7FFFFFFF


def test_negative_zero_is_only_in_the_papers_reading() -> None:
    """−2^-26 as fp16, whose least number is 2^-24."""
    a, b = np.zeros((2, 16), np.float16)
    a[0], b[0] = -(2.0**-13), 2.0**-13
    for architecture, wanted in ((hopper, 0), (hopper.revision("paper-v1"), 0x8000)):
        assert architecture["HMMA.16816.F16"].dot_add(a.view("u2"), b.view("u2"), 0) == wanted


def test_every_instruction_runs_and_forgets_no_format() -> None:
    formats = set()
    for architecture in ARCHITECTURES.values():
        for instruction in architecture:
            spec = instruction.spec
            zeros = [np.zeros((2, spec.k), x.word) for x in (spec.a_format, spec.b_format)]
            scales = [np.full((2, spec.scales), 0x38, np.uint8)] * 2 if spec.scale_format else []
            d = instruction.dot_add(*zeros, np.zeros(2, spec.c_format.word), *scales)
            assert d.dtype == spec.d_format.word
            signs = spec.d_format.sign_mask if spec.negated or "negate_pair" in spec.parameters.keys() else 0  # noqa: SIM118
            assert all(int(x) in (0, signs) for x in d), instruction
            formats |= {spec.a_format, spec.b_format, spec.c_format, spec.d_format, spec.scale_format}
    assert formats == {*FORMATS.values(), None}


def test_efda_refuses_sums_wider_than_it_is() -> None:
    with pytest.raises(ValueError, match="at most 64 products"):
        DotAdd(65, bf16, bf16, fp32, fp32, Efda(65, IEEE_FP32))
    with pytest.raises(ValueError, match="48 bits"):
        DotAdd(1, fp64, fp64, fp32, fp32, Fda(24, 1, RNE_FP32, None))
