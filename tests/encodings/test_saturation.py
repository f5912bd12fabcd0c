"""Rounding to the formats of P3109, as its interim report (version 4.0) defines it: both encodings against fractions.

All formats of K ≤ 8, all roundings, all saturation modes; numbers that are codes', midpoints, and just beside either.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from itertools import product
from typing import Literal

import numpy as np
import pytest
import z3

from mmaformal import ARCHITECTURES, hopper, prove, verify
from mmaformal.architectures import datapaths
from mmaformal.cases.generate import generate
from mmaformal.cases.run import both_results
from mmaformal.encodings.executable import blocks, saturating
from mmaformal.encodings.executable.stochastic import round_randomly
from mmaformal.encodings.smt import blocks as smt_blocks
from mmaformal.encodings.smt import saturating as smt_saturating
from mmaformal.formats import FORMATS, P3109_FORMATS, Format, e3m2, e4m3fnuz, exponent_of, fp16, fp32
from mmaformal.rounding import DETERMINISTIC, Conversion, Rounding, Saturation
from mmaformal.solver.answers import Holds

Kind = Literal["nan", "inf", "-inf"]


# ---- the report, in fractions --------------------------------------------------------------------------------


@lru_cache(maxsize=1 << 14)
def round_to_precision(x: Fraction, P: int, B: int, rho: Conversion) -> Fraction:
    """ωRoundToPrecision (§4.7.4), of the rounding mode that ρ has."""
    if x == 0:
        return x
    Q = max(exponent_of(x), 1 - B) - P + 1
    S = abs(x) / Fraction(2) ** Q
    floor = S.numerator // S.denominator
    v = S - floor
    code_is_even = floor % 2 == 0 if P > 1 else floor == 0 or (Q + B) % 2 == 0
    N, R = rho.random_bits, rho.random
    away = {
        Rounding.RZ: False,
        Rounding.RU: v > 0 and x > 0,
        Rounding.RD: v > 0 and x < 0,
        Rounding.RNA: v >= Fraction(1, 2),
        Rounding.RNE: v > Fraction(1, 2) or (v == Fraction(1, 2) and not code_is_even),
        Rounding.RO: v > 0 and code_is_even,
        Rounding.SA: v * 2**N // 1 + R >= 2**N,
        Rounding.SB: v * 2 ** (N + 1) // 1 + 2 * R + 1 >= 2 ** (N + 1),
        Rounding.SC: round(v * 2**N) + R >= 2**N,
    }[rho.rounding]
    return (1 if x > 0 else -1) * (floor + away) * Fraction(2) ** Q


def saturate(x: Fraction | Kind, rho: Conversion) -> Fraction | Kind:
    """ωSaturate (§4.7.5), line by line."""
    fmt, sat, mode = rho.format, rho.saturation, rho.rounding
    extended, high = fmt.infinity is not None, largest(fmt)
    low = -high if fmt.signed else Fraction(0)
    if x == "nan" or (isinstance(x, Fraction) and low <= x <= high):
        return x
    up = x == "inf" or (isinstance(x, Fraction) and x > high)
    if sat is Saturation.FINITE:
        return high if up else low
    if sat is Saturation.PROPAGATE:
        if x == "inf" and extended:
            return "inf"
        if x == "-inf" and fmt.signed and extended:
            return "-inf"
        return high if up else low
    if x == "inf":
        return "inf" if extended else high
    if x == "-inf":
        return "nan" if not fmt.signed else "-inf" if extended else low
    if mode is Rounding.RO and not fmt.signed and extended and up:
        return high
    if mode in (Rounding.RZ, Rounding.RD) and up:
        return high
    if mode in (Rounding.RZ, Rounding.RU) and not up:
        return low
    if not up:
        return "nan" if not fmt.signed else "-inf" if extended else low
    return "inf" if extended else high


@lru_cache(maxsize=256)
def largest(fmt: Format) -> Fraction:
    return fmt.value(fmt.largest)


def projected(x: Fraction | Kind, rho: Conversion) -> int:
    """ωProject (§4.7.3): the code."""
    fmt = rho.format
    if isinstance(x, Fraction):
        x = round_to_precision(x, fmt.fraction_bits + 1, fmt.bias, rho)
    return code_of(fmt)[saturate(x, rho)]


@lru_cache(maxsize=4)
def code_of(fmt: Format) -> dict[Fraction | Kind, int]:
    """ωEncode (§4.7.6): a datum has one code (tests/package/test_p3109.py)."""
    return {fmt.value(c) if fmt.is_finite(c) else fmt.text(c): c for c in range(fmt.codes)}  # type: ignore[misc]


# ---- numbers and roundings -----------------------------------------------------------------------------------


def conversions(fmt: Format) -> list[Conversion]:
    return [
        Conversion.named(f"{r.name}-{fmt.name.upper()}-Sat{s.name.capitalize()}")
        for r, s in product(DETERMINISTIC, Saturation)
    ]


def stochastic(fmt: Format, bits: Sequence[int] = (1, 2, 3)) -> list[Conversion]:
    """Return every conversion of so many random bits, by each variant."""
    return [
        Conversion.named(f"S{letter}{N}.{R}-{fmt.name.upper()}{sat}")
        for letter, N in product("ABC", bits)
        for R in range(1 << N)
        for sat in (("", "-SatFinite") if R in (1, (1 << N) - 1) else ("",))
    ]


def numbers(fmt: Format, codes: Sequence[int], eighths: Sequence[float] = (0, 1, 4, 7)) -> list[Fraction]:
    """Numbers of the codes and what follows each, both signs: so many eighths of the way to the next."""
    found = {Fraction(0)}
    step = Fraction(2) ** (fmt.min_exponent - fmt.fraction_bits)
    for code in codes:
        x = fmt.value(code)
        gap = max(Fraction(2) ** (exponent_of(x) - fmt.fraction_bits), step) if x else step
        found |= {x + gap * Fraction(n) / 8 for n in eighths}
    top = fmt.value(fmt.largest)
    found |= {top * 2, top * Fraction(9, 8), top * 1024}
    return sorted(found | {-x for x in found})


def parts(x: Fraction) -> tuple[int, int]:
    """x = total · 2^unit."""
    unit = 1 - x.denominator.bit_length()
    total = x.numerator
    while total and total % 2 == 0:
        total, unit = total // 2, unit + 1
    return total, unit


NONE = blocks.Special(False, False, False)


def executable(xs: Sequence[Fraction], rho: Conversion) -> list[int]:
    total, unit = (np.array(each, np.int64) for each in zip(*map(parts, xs), strict=True))
    never = np.zeros(total.shape, bool)
    rounding = round_randomly if rho.random_bits else blocks.normalise_and_round
    rounded = rounding(total, unit, rho)
    code = saturating.saturated(rounded, blocks.Special(never, never, never), rho)
    return [int(each) for each in code]


def smt(x: Fraction, rho: Conversion) -> int:
    total, unit = parts(x)
    exponents = smt_blocks.ExponentRange(unit, unit)
    term = z3.BitVecVal(total, max(12, total.bit_length() + 2))
    rounded = smt_blocks.normalise_and_round(term, exponents.constant(unit), exponents, 0, rho, unit)
    no = z3.BoolVal(False)
    code = z3.simplify(smt_saturating.project(rounded, smt_blocks.Special(no, no, no), rho))
    assert code.size() == rho.format.storage_bits
    return int(code.as_long())


# ---- tests ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("fmt", P3109_FORMATS, ids=str)
def test_executable_rounds_as_the_report(fmt: Format) -> None:
    every = 1 if fmt.storage_bits <= 5 else (1 << fmt.storage_bits - 3) - 1
    last = range(max(fmt.largest - 2, 0), fmt.largest + 1)
    xs = numbers(
        fmt, sorted({*range(0, fmt.largest + 1, every), 1, 2, 3, *last} & set(range(fmt.largest + 1)))
    )
    for rho in conversions(fmt):
        wanted = [projected(x, rho) for x in xs]
        got = executable(xs, rho)
        assert got == wanted, next(
            (rho, x, hex(u), hex(v)) for x, u, v in zip(xs, got, wanted, strict=True) if u != v
        )


#: by K: SHA-256 (its first half) of the codes that gfloat 0.5.2 (`round_float`, `encode_float`) rounds `numbers` to,
#: one byte each, in the order of the loops below: RNE, RNA, RZ, RD, RU of every format, without saturation (of extended
#: formats, the only ones where it follows the report) and with SatFinite; of unsigned formats numbers from 0
GFLOAT = {
    3: "533549a4b155cc1ebd591bfcd0163e7a",
    4: "b2a9cd0551db47590a53190b65716cfa",
    5: "3748163184c1b537a3ff035d3fd7c97f",
    6: "f3d0c11942b2fc00d8e4f1583e5845aa",
    7: "1dd415392a5b58f31529386edff34c85",
    8: "9129f7edcda669e23284807f3342026d",
}


@pytest.mark.parametrize("K", GFLOAT)
def test_executable_rounds_as_gfloat(K: int) -> None:
    """190,090 roundings in all."""
    digest = hashlib.sha256()
    for fmt in (f for f in P3109_FORMATS if f.storage_bits == K):
        codes = {*range(0, fmt.largest + 1, max(1, fmt.largest // 40)), fmt.largest}
        xs = [x for x in numbers(fmt, sorted(codes)) if fmt.signed or x >= 0]
        for mode, saturation in product(("RNE", "RNA", "RZ", "RD", "RU"), ("", "-SatFinite")):
            if saturation or fmt.infinity is not None:
                rho = Conversion.named(f"{mode}-{fmt.name.upper()}{saturation}")
                digest.update(bytes(executable(xs, rho)))
    assert digest.hexdigest().startswith(GFLOAT[K])


@pytest.mark.parametrize("fmt", [f for f in P3109_FORMATS if f.storage_bits == 3], ids=str)
def test_smt_rounds_as_the_report(fmt: Format) -> None:
    xs = numbers(fmt, range(fmt.largest + 1))
    for place, rho in enumerate(conversions(fmt)):
        for x in {*xs[place % 13 :: 13], xs[0], xs[-1]}:
            assert smt(x, rho) == projected(x, rho), (rho, x)


@pytest.mark.parametrize("name", ["binary8p4se", "binary8p1ue", "binary6p3uf", "binary5p2sf", "binary7p6se"])
def test_smt_rounds_the_last_numbers_as_the_report(name: str) -> None:
    fmt = FORMATS[name]
    xs = numbers(fmt, [1, fmt.largest - 1, fmt.largest])
    for place, rho in enumerate(conversions(fmt)):
        for x in {*xs[place % 17 :: 17], xs[0], xs[-1]}:
            assert smt(x, rho) == projected(x, rho), (rho, x)


#: some of every number of bits
STOCHASTIC = ["binary3p1se", "binary4p2uf", "binary5p3sf", "binary6p1ue", "binary7p6se", "binary8p4se"]


@pytest.mark.parametrize("name", STOCHASTIC)
def test_stochastic_roundings_are_the_report_s(name: str) -> None:
    """Both encodings, of all random numbers of up to three bits, at sixteenths of a unit and beside these."""
    fmt = FORMATS[name]
    codes = sorted({0, 1, 2, 3, fmt.largest // 2, *range(max(fmt.largest - 2, 0), fmt.largest + 1)})
    eighths = [n + more for n in range(8) for more in (0, 0.5, 2**-9, 1 - 2**-9)]
    xs = numbers(fmt, [code for code in codes if code <= fmt.largest], eighths)
    for place, rho in enumerate(stochastic(fmt)):
        wanted = [projected(x, rho) for x in xs]
        assert executable(xs, rho) == wanted, rho
        for x, code in list(zip(xs, wanted, strict=True))[place % 29 :: 29]:
            assert smt(x, rho) == code, (rho, x)


@pytest.mark.parametrize("letter", "ABC")
def test_numbers_far_below_the_least_are_rounded_by_all_random_bits(letter: str) -> None:
    """Only with R = 2^N − 1, or 0 for what is nearly as large, may they become the least number; ν is 2^−n here."""
    fmt = FORMATS["binary4p2se"]
    least = Fraction(2) ** (fmt.min_exponent - fmt.fraction_bits)
    xs = [sign * least / 2**n for n in (1, 2, 29, 30, 31, 32, 61, 62, 63, 90) for sign in (1, -1)]
    for N, R in ((30, (1 << 30) - 1), (30, (1 << 30) - 2), (29, (1 << 29) - 1), (1, 1), (30, 0)):
        rho = Conversion.named(f"S{letter}{N}.{R}-BINARY4P2SE")
        wanted = [projected(x, rho) for x in xs]
        assert executable(xs, rho) == wanted
        assert [smt(x, rho) for x in xs] == wanted


@pytest.mark.parametrize("N", [1, 2, 3])
def test_as_many_random_numbers_go_up_as_the_place_says(N: int) -> None:
    """The share of R that rounds ν up is ν, where N bits hold that, with variants A and C."""
    fmt = FORMATS["binary8p4se"]
    for n in range(1 << N):
        x = 1 + Fraction(n, 8 << N)
        for letter in "AC":
            ups = [
                executable([x], Conversion.named(f"S{letter}{N}.{R}-BINARY8P4SE")) == [fmt.code("1.125")]
                for R in range(1 << N)
            ]
            assert sum(ups) == n


#: by variant: SHA-256 (its first half) of the codes that gfloat 0.5.2 rounds to, as `GFLOAT`; its StochasticFastest is
#: the report's A, StochasticFast B, and Stochastic C
GFLOAT_STOCHASTIC = {
    "A": "2d54521fbd0a4a1fb3084c45c8c0efb2",
    "B": "a2a42ab565f10cbe091a241cec3a268a",
    "C": "c72c04ccd8903895c1cc8bb4b6900fb9",
}


@pytest.mark.parametrize("letter", GFLOAT_STOCHASTIC)
def test_stochastic_roundings_are_gfloat_s(letter: str) -> None:
    digest = hashlib.sha256()
    for fmt in (f for f in P3109_FORMATS if f.infinity is not None and f.storage_bits in (4, 8)):
        codes = {*range(0, fmt.largest + 1, max(1, fmt.largest // 16)), fmt.largest}
        xs = [x for x in numbers(fmt, sorted(codes), range(8)) if fmt.signed or x >= 0]
        for R in range(4):
            digest.update(bytes(executable(xs, Conversion.named(f"S{letter}2.{R}-{fmt.name.upper()}"))))
    assert digest.hexdigest().startswith(GFLOAT_STOCHASTIC[letter])


@pytest.mark.parametrize("fmt", [f for f in P3109_FORMATS if f.storage_bits in (3, 8)], ids=str)
def test_infinities_and_nans_are_projected_as_the_report_says(fmt: Format) -> None:
    zero = blocks.Rounded(0, fmt.min_exponent, 0)
    term = smt_blocks.Rounded(z3.BitVecVal(0, 1), z3.BitVecVal(0, fmt.storage_bits + 2))
    for rho in conversions(fmt):
        for place, kind in enumerate(("nan", "inf", "-inf")):
            flags = [place == n for n in range(3)]
            wanted = projected(kind, rho)
            assert saturating.saturated(zero, blocks.Special(*flags), rho) == wanted
            special = smt_blocks.Special(*map(z3.BoolVal, flags))
            assert z3.simplify(smt_saturating.project(term, special, rho)).as_long() == wanted


@pytest.mark.parametrize("fmt", P3109_FORMATS, ids=str)
def test_every_number_is_rounded_to_itself(fmt: Format) -> None:
    codes = [code for code in range(fmt.codes) if fmt.is_finite(code)]
    xs = [fmt.value(code) for code in codes]
    for rho in [*conversions(fmt), *stochastic(fmt, [2])]:
        assert executable(xs, rho) == codes


def test_names_of_conversions() -> None:
    rho = Conversion.named("RNE-BINARY8P4SE")
    assert rho.saturation is Saturation.NONE
    assert rho == Conversion.named("RNE-BINARY8P4SE-SatNone")
    assert Conversion.named("RZ-BINARY6P3SF-SatFinite").saturation is Saturation.FINITE
    assert Conversion.named("RO-E4M3FNUZ-SatPropagate").format is e4m3fnuz
    assert "3 fractional bits, RO, SatPropagate" in repr(Conversion.named("RO-E4M3FNUZ-SatPropagate"))
    for name in ("RNE-BINARY8P4SE±0", "RNE-BINARY8P8SE", "XX-BINARY8P4SE", "RNE-FP12-SatFinite"):
        with pytest.raises(ValueError, match="no ρ named"):
            Conversion.named(name)
    with pytest.raises(ValueError, match="keeps its infinities"):
        Conversion("x", fp16, 10, Rounding.RNE, saturation=Saturation.FINITE)
    with pytest.raises(ValueError, match="to nearest even"):
        Conversion.named("IEEE-RZ-FP16-SatPropagate")
    assert Conversion.named("IEEE-FP16-SatPropagate").saturates_ieee
    with pytest.raises(ValueError, match="efda has"):
        hopper["HMMA.16816.F32"].replace(rho="IEEE-FP32-SatPropagate")
    with pytest.raises(ValueError, match="all of them kept"):
        Conversion("x", FORMATS["binary8p4se"], 2, Rounding.RNE)
    with pytest.raises(ValueError, match="are not modelled"):
        Conversion("x", e3m2, 2, Rounding.RNE)
    assert Conversion.named("SC4.7-BINARY8P4SE") == Conversion(
        "SC4.7-BINARY8P4SE", FORMATS["binary8p4se"], 3, Rounding.SC, random_bits=4, random=7
    )
    for name, why in (
        ("SA-FP32", "takes 1 to 30 random bits, not 0"),
        ("SA31.0-FP32", "not 31"),
        ("SB2.4-FP32", "2 random bits are no 4"),
        ("RNE2.1-FP32", "takes no random bits"),
        ("SA2.1", "no ρ named"),
    ):
        with pytest.raises(ValueError, match=why):
            Conversion.named(name)
    with pytest.raises(ValueError, match="muladd has no stochastic rounding: fda and gfda have"):
        datapaths.mul_add(k=1, a="fp16", rho="SA2.1-FP32")


# ---- units ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "rho"),
    [
        ("binary3p1se", "RNE-BINARY3P1SE"),
        ("binary4p2sf", "RU-BINARY4P2SF-SatNone"),
        pytest.param("binary5p2se", "RD-BINARY5P2SE-SatPropagate", marks=pytest.mark.slow),
        pytest.param("binary6p3se", "RNA-BINARY6P3SE-SatFinite", marks=pytest.mark.slow),
        pytest.param("binary7p1se", "RO-BINARY7P1SE", marks=pytest.mark.slow),
        pytest.param("binary8p4se", "RNE-BINARY8P4SE-SatFinite", marks=pytest.mark.slow),
        pytest.param("binary8p1sf", "RNE-FP32", marks=pytest.mark.slow),
        ("binary4p2se", "SA2.1-BINARY4P2SE"),
        pytest.param("binary5p3se", "SB4.9-BINARY5P3SE-SatFinite", marks=pytest.mark.slow),
        pytest.param("binary8p4se", "SC8.77-BINARY8P4SE", marks=pytest.mark.slow),
    ],
)
def test_both_encodings_of_a_unit_are_proved_equal(name: str, rho: str) -> None:
    unit = datapaths.fda(k=2, frac_bits=12, a=name, rho=rho)
    assert isinstance(verify(unit, timeout=120), Holds)


def test_a_random_number_that_is_one_off_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    unit, carried = datapaths.fda(k=1, frac_bits=12, a="binary3p1se", rho="SB2.1-BINARY3P1SE"), "_is_carried"
    whole = vars(smt_blocks)[carried]
    assert isinstance(verify(unit, timeout=120), Holds)
    monkeypatch.setattr(smt_blocks, carried, lambda lost, mode, bits, R: whole(lost, mode, bits, R + 1))
    assert not isinstance(verify(unit, timeout=120), Holds)


def test_units_by_name_and_by_replace() -> None:
    unit = datapaths.fda(k=4, frac_bits=40, a="binary5p3se", rho="RNE-BINARY5P3SE-SatPropagate")
    spec, rho = unit.spec, unit.spec.parameters.last_rounding
    rows = generate(spec, 60)
    for each, got in zip(rows.cases(), both_results(spec, rows), strict=True):
        codes = [(spec.a_format, x) for x in (*each.a, *each.b)] + [(spec.c_format, each.c)]
        if all(fmt.is_finite(code) for fmt, code in codes):
            a, b = ([spec.a_format.value(x) for x in side] for side in (each.a, each.b))
            exact = sum((x * y for x, y in zip(a, b, strict=True)), spec.c_format.value(each.c))
            assert set(got) == {projected(exact, rho)}, each
    other = hopper["QGMMA.64x8x32.F32.E4M3.E4M3"].replace(a_format="binary8p4se", b_format="binary8p3sf")
    a, b = (
        np.array([FORMATS[f].code(x)] * other.k, np.uint8)
        for f, x in (("binary8p4se", "2"), ("binary8p3sf", "0.5"))
    )
    assert other.dot_add(a, b, np.uint32(0)) == np.float32(other.k).view(np.uint32)


def test_unsigned_factors() -> None:
    """Exact sums of every product of two small unsigned formats, with c of either sign; what needs a sign says so."""
    unit = datapaths.fda(k=1, frac_bits=40, a="binary4p3ue", b="binary3p2uf", rho="RNE-FP32")
    a_format, b_format = unit.a_format, unit.b_format
    cs = [fp32.code(text) for text in ("0", "1.5", "-1.5", "inf", "-inf")]
    rows = list(product(range(a_format.codes), range(b_format.codes), cs))
    a, b, c = (np.array(each) for each in zip(*rows, strict=True))
    d = unit.dot_add(a.astype(np.uint8)[:, None], b.astype(np.uint8)[:, None], c.astype(np.uint32))
    for x, y, z, got in zip(a, b, c, d, strict=True):
        if all(f.is_finite(int(code)) for f, code in ((a_format, x), (b_format, y), (fp32, z))):
            assert fp32.value(int(got)) == a_format.value(int(x)) * b_format.value(int(y)) + fp32.value(
                int(z)
            )
        else:
            infinite = a_format.is_infinite(int(x)), y == 0, fp32.is_infinite(int(z)) and z >> 31
            nan = a_format.is_nan(int(x)) or b_format.is_nan(int(y)) or (infinite[0] and any(infinite[1:]))
            assert fp32.is_nan(int(got)) == nan
    assert isinstance(verify(unit, timeout=60), Holds)
    assert "binary4p3ue has no −a" in str(prove("sign-symmetry", unit, timeout=60))
    assert isinstance(prove("commutativity", unit, timeout=60), Holds)


#: of every algorithm that takes factors of any format: by these it is found
TAKES = [
    "hopper HMMA.16816.F32",
    "cdna2 v_mfma_f32_4x4x4f16",
    "cdna3 v_mfma_f32_16x16x16_f16",
    "apple_amx fma16.F32",
]
TAKES += [
    "cdna3 v_mfma_f32_16x16x32_fp8_fp8",
    "hopper mma.m16n8k32.f32.e4m3.e4m3.f32",
    "riscv vfqwbdota.vv.E4M3.n4",
]
TAKES += ["armv9_fp8 FDOT.F32.E4M3.E4M3", "diamond_rapids TDPHF8PS.K4"]


@pytest.mark.slow
@pytest.mark.parametrize("factors", [("binary8p4se", "binary8p3se"), ("binary8p4ue", "binary6p3uf")], ids=str)
@pytest.mark.parametrize("unit", TAKES)
def test_units_of_p3109_factors_are_proved_equal(unit: str, factors: tuple[str, str]) -> None:
    architecture, name = unit.split()
    i = ARCHITECTURES[architecture][name].replace(a_format=factors[0], b_format=factors[1])
    assert isinstance(verify(i, timeout=300), Holds)


def test_what_is_not_modelled_is_refused() -> None:
    with pytest.raises(ValueError, match="c cannot be binary8p4ue, a format of scales, without sign"):
        hopper["HMMA.16816.F32"].replace(
            c_format="binary8p4ue", d_format="binary8p4ue", rho="RNE-BINARY8P4UE"
        )
    for fmt in ("binary8p4ue", "binary8p4se"):
        with pytest.raises(ValueError, match="which has no −0, cannot be negated"):
            hopper["HMMA.16816.F32"].replace(a_format=fmt, negated="a")
    with pytest.raises(ValueError, match="muladd gives no binary8p4se"):
        datapaths.mul_add(k=1, a="binary8p4se", rho="RNE-BINARY8P4SE")
    unit = datapaths.fda(k=1, frac_bits=12, a="binary3p2sf", rho="RZ-BINARY3P2SF")
    assert "no definition of rounding with RZ-BINARY3P2SF" in str(prove("error-bound", unit, timeout=60))
