"""Units that a text defines and nobody has run: each against its text in exact rationals (docs/specified.md)."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence
from fractions import Fraction

import numpy as np
import pytest

from mmaformal import ARCHITECTURES, matmul, prove, verify
from mmaformal.architectures.base import SPECIFIED
from mmaformal.encodings import executable
from mmaformal.formats import Format, fp16, fp32
from mmaformal.instruction import Instruction
from mmaformal.listing import every_instruction, instruction_in_words
from mmaformal.recordings.backing import opened
from mmaformal.solver.answers import Holds

Codes = Sequence[int]


def nearest(x: Fraction, fmt: Format) -> int:
    """Returns the code nearest to x, ties to even, subnormals kept, overflow to infinity; of 0, that of +0."""
    sign, magnitude = (fmt.sign_mask if x < 0 else 0), abs(x)
    if not magnitude:
        return 0
    e = magnitude.numerator.bit_length() - magnitude.denominator.bit_length()
    e = max(e - (Fraction(2) ** e > magnitude), fmt.min_exponent)
    places = round(magnitude / Fraction(2) ** (e - fmt.fraction_bits))  # Python's ties go to even
    code = places + ((e - fmt.min_exponent) << fmt.fraction_bits)
    assert fmt.infinity is not None
    return sign | min(code, fmt.infinity)


def sign_of(fmt: Format, code: int) -> int:
    return fmt.fields(code)[0]


def products(i: Instruction, a: Codes, b: Codes) -> tuple[set[int], list[tuple[int, Fraction]]] | None:
    """Returns the signs of infinite products, and signs and values of the others; None for a NaN or 0·∞."""
    infinite: set[int] = set()
    finite = []
    for x, y in zip(a, b, strict=True):
        f, g = i.a_format, i.b_format
        sign = sign_of(f, x) ^ sign_of(g, y)
        if f.is_nan(x) or g.is_nan(y):
            return None
        if f.is_infinite(x) or g.is_infinite(y):
            if (f.is_finite(x) and not f.value(x)) or (g.is_finite(y) and not g.value(y)):
                return None
            infinite.add(sign)
        else:
            finite.append((sign, f.value(x) * g.value(y)))
    return infinite, finite


def arm_fp8(i: Instruction, a: Codes, b: Codes, c: int, scale: int = 0, saturates: bool = False) -> int:
    """Returns what the Arm ARM's FP8DotAddFP gives, with FPMR.LSCALE and FPMR.OSM."""
    d = i.d_format
    assert d.infinity is not None
    nan = d.infinity | 1 << (d.fraction_bits - 1)
    found = products(i, a, b)
    if found is None or d.is_nan(c):
        return nan
    infinite, finite = found
    signs = infinite | ({sign_of(d, c)} if d.is_infinite(c) else set())
    if signs:
        return nan if len(signs) == 2 else d.infinity | (d.sign_mask if 1 in signs else 0)
    terms = [(sign_of(d, c), d.value(c)), *finite]
    if not any(value for _, value in terms) and len({sign for sign, _ in terms}) == 1:
        return d.sign_mask if terms[0][0] else 0
    scale = scale if d is fp32 else scale & 15
    found_code = nearest(d.value(c) + sum(x for _, x in finite) / 2**scale, d)
    return found_code - (saturates and found_code & ~d.sign_mask == d.infinity)


def amx_fp8(i: Instruction, a: Codes, b: Codes, c: int) -> int:
    """Returns what Intel's TDPBF8PS gives: an exact sum, rounded; c added with DAZ = 0, FTZ = 1; one NaN."""
    nan, found = 0xFFC00000, products(i, a, b)
    if found is None or fp32.is_nan(c) or len(found[0]) == 2:
        return nan
    infinite, finite = found
    if infinite:
        t = 0xFF800000 if 1 in infinite else 0x7F800000
        return nan if fp32.is_infinite(c) and c != t else t
    if fp32.is_infinite(c):
        return c
    t = nearest(sum((x for _, x in finite), Fraction(0)), fp32)
    if not fp32.value(c) and not fp32.value(t):
        return c & t & 0x80000000
    d = nearest(fp32.value(c) + fp32.value(t), fp32)
    return d if d & 0x7F800000 else d & 0x80000000


def flushed_fma(x: int, y: int, t: int) -> int | None:
    """Returns x·y + t of fp16, fp16 and fp32 codes as an fma of fp32 with DAZ = FTZ = 1; None for a NaN."""
    t = t if t & 0x7F800000 else t & 0x80000000
    sign = sign_of(fp16, x) ^ sign_of(fp16, y)
    if fp16.is_nan(x) or fp16.is_nan(y) or fp32.is_nan(t):
        return None
    if fp16.is_infinite(x) or fp16.is_infinite(y):
        if 0 in (x & 0x7FFF, y & 0x7FFF) or (fp32.is_infinite(t) and sign_of(fp32, t) != sign):
            return None
        return 0x7F800000 | sign << 31
    if fp32.is_infinite(t):
        return t
    exact = fp16.value(x) * fp16.value(y) + fp32.value(t)
    if not exact:
        both = sign and sign_of(fp32, t) and 0 in (x & 0x7FFF, y & 0x7FFF)
        return 0x80000000 if both else 0
    d = nearest(exact, fp32)
    return d if d & 0x7F800000 else d & 0x80000000


def amx_fp16(i: Instruction, a: Codes, b: Codes, c: int) -> int:
    """Returns what the SDM's TDPFP16PS gives: two chains of fma from 0, their sum, c with it; for a NaN 0xFFC00000."""
    sums: list[int | None] = [0, 0]
    for k, (x, y) in enumerate(zip(a, b, strict=True)):
        t = sums[k % 2]
        sums[k % 2] = None if t is None else flushed_fma(x, y, t)
    found = 0xFFC00000
    even, odd = sums
    if even is None or odd is None or fp32.is_nan(c):
        return found
    total = added(even, odd)
    d = None if total is None else added(c, total)
    return found if d is None else d


def added(x: int, y: int) -> int | None:
    """Returns x + y of fp32 codes with DAZ = FTZ = 1; None for a NaN."""
    x, y = (code if code & 0x7F800000 else code & 0x80000000 for code in (x, y))
    if fp32.is_nan(x) or fp32.is_nan(y) or (fp32.is_infinite(x) and fp32.is_infinite(y) and x != y):
        return None
    if fp32.is_infinite(x) or fp32.is_infinite(y):
        return x if fp32.is_infinite(x) else y
    if not fp32.value(x) + fp32.value(y):
        return x & y & 0x80000000
    d = nearest(fp32.value(x) + fp32.value(y), fp32)
    return d if d & 0x7F800000 else d & 0x80000000


def vdpphps(i: Instruction, a: Codes, b: Codes, c: int) -> int:
    """Returns what two fma of fp32 give, the odd product first; 0xFFC00000 for a NaN."""
    first = flushed_fma(a[1], b[1], c)
    d = None if first is None else flushed_fma(a[0], b[0], first)
    return 0xFFC00000 if d is None else d


def cases(i: Instruction, rows: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Returns codes of all kinds: zeros of both signs, subnormals, infinities and NaNs of few, numbers of many rows."""
    rng, fmt = np.random.default_rng(i.k), i.d_format
    a, b = (rng.integers(0, 256, (rows, i.k)).astype(np.uint8) for _ in range(2))
    for x in (a, b):
        x[rows // 4 :] &= 0xB7  # no largest exponent
        x[rng.random(x.shape) < 0.2] &= 0x83  # zeros and subnormal numbers
    a[:3], b[:3] = 0x80, 0
    c = rng.integers(0, 1 << fmt.storage_bits, rows).astype(fmt.word)
    c[:6] = [fmt.sign_mask, 0, 1, fmt.sign_mask, 1, fmt.sign_mask | 1]
    c[rows // 2 :] = fmt.code("0x1p-3")
    return a, b, c


def differs(
    i: Instruction, text: Callable[[Instruction, Codes, Codes, int], int], rows: int = 300
) -> list[int]:
    a, b, c = cases(i, rows)
    d = i.dot_add(a, b, c)
    lanes = executable.dot_add(
        i.spec, list(a.T.astype(np.int64)), list(b.T.astype(np.int64)), c.astype(np.int64)
    )
    np.testing.assert_array_equal(d.astype(np.int64), lanes.result)
    said = [text(i, list(map(int, x)), list(map(int, y)), int(z)) for x, y, z in zip(a, b, c, strict=True)]
    return [n for n in range(rows) if int(d[n]) != said[n]]


@pytest.mark.parametrize("setting", ["", "lscale-1", "lscale-15", "osm", "osm-lscale-22", "lscale-127"])
@pytest.mark.parametrize("name", ARCHITECTURES["armv9_fp8"].keys())
def test_arm_fp8_is_the_pseudocode(name: str, setting: str) -> None:
    architecture = ARCHITECTURES[f"armv9_fp8@{setting}" if setting else "armv9_fp8"]
    codes = ARCHITECTURES["armv9_fp8"][name]  # which read them without the scale
    scaled, scale = (
        architecture[name],
        int(setting.rpartition("lscale-")[2] or 0) if "lscale" in setting else 0,
    )

    def text(_: Instruction, a: Codes, b: Codes, c: int) -> int:
        return arm_fp8(codes, a, b, c, scale, "osm" in setting)

    assert not differs(scaled, text)


def test_arm_fp8_known_answers() -> None:
    fdot = ARCHITECTURES["armv9_fp8"]["FDOT.F16.E4M3.E4M3"]
    one, minus_zero = 0x38, 0x80
    assert int(fdot.dot_add([one, one], [one, one], 0x3C00)) == 0x4200  # 1 + 1 + 1
    assert int(fdot.dot_add([minus_zero] * 2, [one] * 2, 0x8000)) == 0x8000
    assert int(fdot.dot_add([minus_zero] * 2, [one] * 2, 0)) == 0
    half = ARCHITECTURES["armv9_fp8@lscale-1"]["FDOT.F16.E4M3.E4M3"]
    assert int(half.dot_add([one, one], [one, one], 0x3C00)) == 0x4000  # 1 + (1 + 1) / 2
    assert (
        half.spec == ARCHITECTURES["armv9_fp8@lscale-17"]["FDOT.F16.E4M3.E4M3"].spec
    )  # of fp16, its low 4 bits
    saturating, most = ARCHITECTURES["armv9_fp8@osm"]["FDOT.F16.E4M3.E4M3"], 0x7E
    for x, c, infinite, finite in (
        (most, 0, 0x7C00, 0x7BFF),  # 2 · 448^2
        (0xFE, 0x8000, 0xFC00, 0xFBFF),
        (most, 0x7C00, 0x7C00, 0x7C00),  # an infinity is no overflow
        (0x7F, 0, 0x7E00, 0x7E00),
    ):
        assert [int(i.dot_add([x, x], [most, most], c)) for i in (fdot, saturating)] == [infinite, finite]
    assert int(saturating.dot_add([0x10, 0], [0x78, 0], 0x7BFF)) == 0x7BFF  # 65504 + 4: no overflow
    assert int(saturating.dot_add([0x38, 0], [0x58, 0], 0x7BFF)) == 0x7BFF  # 65504 + 16, which rounds to 2^16


@pytest.mark.parametrize("k", [4, 32, 64])
@pytest.mark.parametrize("name", [i.name for i in ARCHITECTURES["diamond_rapids"] if i.algorithm == "esda"])
def test_amx_fp8_is_the_text(name: str, k: int) -> None:
    assert not differs(ARCHITECTURES["diamond_rapids"][name].configured(k), amx_fp8)


def test_amx_fp8_keeps_a_subnormal_c_only_as_a_sign() -> None:
    tile = ARCHITECTURES["diamond_rapids"]["TDPHF8PS"].configured(4)
    assert int(tile.dot_add([0] * 4, [0] * 4, 0x80000001)) == 0x80000000  # DAZ = 0, then FTZ = 1
    assert int(tile.dot_add([0x80] * 4, [0x38] * 4, 0x80000000)) == 0  # a sum of zeros is +0


@pytest.mark.parametrize("k", [2, 8, 32])
def test_amx_fp16_is_the_text(k: int) -> None:
    assert not differs(ARCHITECTURES["amx_fp16"]["TDPFP16PS"].configured(k), amx_fp16)


def test_vdpphps_is_two_fma() -> None:
    assert not differs(ARCHITECTURES["diamond_rapids"]["VDPPHPS"], vdpphps)


def test_fp16_units_known_answers() -> None:
    """By hand: subnormal fp16 counts; products are not rounded before they are added; sums are, in their order."""
    tile, pair = (
        ARCHITECTURES["amx_fp16"]["TDPFP16PS"].configured(4),
        ARCHITECTURES["diamond_rapids"]["VDPPHPS"],
    )
    least = np.array([1, 0, 0, 0], np.uint16)
    assert int(tile.dot_add(least, least, 0)) == (127 - 48) << 23  # 2^-24 · 2^-24
    assert int(tile.dot_add([0] * 4, [0] * 4, 0x80000001)) == 0  # DAZ: c is −0, and the sums are +0
    assert int(pair.dot_add([0, 0], [0, 0], 0x80000001)) == 0  # −0 + 0·0, which is +0
    one, big = 0x3C00, 0x4B800000  # 1, and 2^24
    assert int(tile.dot_add([one, one, 0, 0], [one, one, 0, 0], big)) == big + 1  # (1 + 1) + 2^24
    assert int(pair.dot_add([one, one], [one, one], big)) == big  # each 1 is a tie, to even
    assert int(pair.dot_add([0x0400, one], [one, one], big)) == big  # the odd product first, a tie
    assert int(pair.dot_add([0xBC00, one], [one, one], big - 1)) == big - 1  # 2^24 + 0 − 1


@pytest.mark.parametrize(
    "label", ["amx_fp16 TDPFP16PS.K4", "diamond_rapids VDPPHPS", "diamond_rapids TDPHBF8PS.K8"]
)
def test_matrices_rows_and_lanes_agree(label: str) -> None:
    """The compiled rows and the kernel of matrices give what the executable encoding gives on NumPy's lanes."""
    architecture, name = label.split()
    i = ARCHITECTURES[architecture][name]
    a, b, c = cases(i, 64 * 64)
    lanes = [x.astype(np.int64) for x in a.T], [x.astype(np.int64) for x in b.T]
    expected = executable.dot_add(i.spec.in_order, *in_order(i, *lanes), c.astype(np.int64)).result
    np.testing.assert_array_equal(i.dot_add(a, b, c), expected)
    left, right = a[:64], b[:64]
    d = matmul(left, right.T.copy(), c.reshape(64, 64), instruction=i)
    every = i.dot_add(left.repeat(64, 0), np.tile(right, (64, 1)), c)
    np.testing.assert_array_equal(np.asarray(d).view(np.uint32).reshape(-1), every)


def in_order(i: Instruction, *sides: list[np.ndarray]) -> list[list[np.ndarray]]:
    """Returns the products of both sides in the order in which the unit takes them."""
    order = i.spec.product_order or range(i.k)
    return [[side[k] for k in order] for side in sides]


def test_ebf16_rounds_a_pair_once() -> None:
    """c = -1, 1·1 + 2^-8·2^-17: fused, then rounded to fp32; with EBF = 0, each product is rounded to odd first."""
    fused, odd = (ARCHITECTURES[name]["BFDOT"] for name in ("armv9_ebf16", "armv8_6"))
    a, b = [0x3F80, 0x3B80], [0x3F80, 0x3700]  # 1, 2^-8; 1, 2^-17
    assert [int(i.dot_add(a, b, 0xBF800000)) for i in (fused, odd)] == [0, 0x34000000]
    assert int(fused.dot_add([1, 0], [0x3F80, 0], 0)) == 0x00010000  # subnormal numbers are kept
    assert int(odd.dot_add([1, 0], [0x3F80, 0], 0)) == 0
    negated = ARCHITECTURES["armv9_ebf16"]["BFMOPS"]
    assert [int(negated.dot_add(a, b, c)) for c in (0x3F800000, 0x80000000)] == [0, 0xBF800000]
    assert int(negated.dot_add([0, 0], [0x3F80, 0], 0x80000000)) == 0x80000000  # −0 − 0·1 − 0·0


@pytest.mark.parametrize(
    "label",
    [
        "armv9_ebf16 BFDOT",
        "armv9_fp8 FDOT.F16.E4M3.E4M3",
        "amx_fp16 TDPFP16PS.K2",
        pytest.param("diamond_rapids VDPPHPS", marks=pytest.mark.slow),
        pytest.param("diamond_rapids TDPHF8PS.K4", marks=pytest.mark.slow),
        pytest.param("diamond_rapids TDPBF8PS", marks=pytest.mark.slow),
    ],
)
def test_both_encodings_are_equal(label: str) -> None:
    assert isinstance(verify(label, timeout=200), Holds)


@pytest.mark.parametrize("label", ["diamond_rapids VDPPHPS", "amx_fp16 TDPFP16PS.K2"])
def test_no_bound_is_told_where_subnormal_factors_count(label: str) -> None:
    """The unit flushes, but not its fp16 factors: the input that shows a loss elsewhere shows none here."""
    assert "what is lost where factors are converted first" in str(prove("error-bound", label, timeout=20))


def test_what_is_specified_says_so() -> None:
    for name in ("armv9_ebf16", "armv9_fp8", "amx_fp16", "diamond_rapids"):
        assert ARCHITECTURES[name].standing == SPECIFIED
        for instruction in ARCHITECTURES[name]:
            assert set(instruction.sources) == {
                *instruction.parameters.keys(),
                *(["product_order"] if instruction.spec.product_order else []),
                *(["negated"] if instruction.spec.negated else []),
            }, "a source of every parameter"
            said = instruction_in_words(instruction)
            assert "specified, never run" in " ".join(said.split())
            assert ("in part open" in " ".join(said.split())) == bool(opened(instruction))


def test_specifications_go_to_other_processes() -> None:
    """A copy is checked as it is made again, its formats being copies too."""
    for i in every_instruction():
        copy = pickle.loads(pickle.dumps(i.spec))
        assert copy == i.spec
        assert copy.replace(k=copy.k) == copy
