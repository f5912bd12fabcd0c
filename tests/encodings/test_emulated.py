"""Emulations: words and products against exact arithmetic and NumPy's casts; both encodings, kernels and rows alike."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import z3
from numpy.typing import NDArray
from support import exact
from support.random_cases import cases

from mmaformal import ARCHITECTURES, cdna2, emulation, find_difference, hopper, matmul, prove
from mmaformal.architectures import UnknownInstructionError, emulations
from mmaformal.cases.inputs import Rows
from mmaformal.cases.run import SmtEncoding, run
from mmaformal.encodings.emulated import Emulated, Part
from mmaformal.encodings.emulated import kernel as kernels
from mmaformal.encodings.emulated import smt as smt_emulated
from mmaformal.encodings.emulated.proofs import portable
from mmaformal.encodings.smt import ieee, stages
from mmaformal.formats import fp16, fp32
from mmaformal.kernels import kernel_for, rows
from mmaformal.kernels.plain import PlainKernel
from mmaformal.proof.composition import Composing
from mmaformal.proof.kernel import NotProvedError
from mmaformal.queries.verify import verify
from mmaformal.solver.answers import Equal, Fails, Holds, Unknown
from mmaformal.solver.asking import Asker
from mmaformal.solver.portfolio import Portfolio

#: a program of each scheme, over units of several algorithms
PROGRAMS = [
    "markidis(volta HMMA.884.F32.F32)",
    "ootomo(volta HMMA.884.F32.F32)",
    "ootomo(volta HMMA.884.F32.F32, k=12)",
    "fp16x2(volta HMMA.884.F32.F32, k=8)",
    "ootomo(ampere HMMA.1684.F32.TF32)",
    "tf32x3(ampere HMMA.1684.F32.TF32, k=8)",
    "bf16x3(ampere HMMA.1688.F32.BF16)",
    "bf16x6(ampere HMMA.1688.F32.BF16)",
    "bf16x9(ampere HMMA.1688.F32.BF16)",
    "markidis(cdna1 f32_4x4x4f16)",
    "ootomo(cdna2 f32_4x4x4f16)",
    "ootomo(cdna3 f32_4x4x4_16b_f16)",
    "markidis(datapath fda(k=2,frac_bits=24))",
    "ozaki(volta HMMA.884.F32.F32, k=8)",
    "ozaki(ampere HMMA.1684.F32.TF32, words=2)",
    "ozaki(ampere HMMA.1688.F32.BF16, words=2)",
    "ozaki(cdna2 f32_4x4x4f16, words=1)",
    "ozaki(volta HMMA.884.F32.F32, words=1)",
    "promoted(hopper QGMMA.64x8x32.F32.E4M3.E4M3, k=96, every=2)",
    "promoted(volta HMMA.884.F32.F32, k=12, every=2)",
]


def near_one(rng: np.random.Generator, shape: tuple[int, ...]) -> NDArray[np.float32]:
    numbers = np.ldexp(rng.standard_normal(shape), rng.integers(-9, 10, shape))
    return numbers.astype(np.float32)


@pytest.mark.parametrize("name", PROGRAMS)
def test_both_encodings_are_exact_arithmetic(name: str) -> None:
    i = emulation[name]
    some = cases(i.spec, random.Random(name), 12)
    expected = [exact.dot_add(i.spec, x.a, x.b, x.c) for x in some]
    assert run(i, some) == expected
    assert SmtEncoding(i.spec).results(Rows.of(some[:2])) == expected[:2]


@pytest.mark.parametrize("name", [name for name in PROGRAMS if "cdna" not in name])
def test_kernel_and_rows_are_the_executable(name: str) -> None:
    one, rng = emulation[name], np.random.default_rng(1)
    i, fmt = one.chained(2 * one.k), one.a_format
    a, b = (
        near_one(rng, (40, i.k)).view(np.uint32)
        if fmt == fp32
        else rng.choice([x for x in range(fmt.codes) if fmt.is_finite(x)], (40, i.k)).astype(fmt.word)
        for _ in range(2)
    )
    a[:4, :2] = rng.integers(0, fmt.codes, (4, 2))  # special values and subnormals, too
    c = near_one(rng, (40,)).view(np.uint32)
    assert (rows.dot_add(i.spec, a, b, c) == i.dot_add(a, b, c)).all()
    d, plain = np.repeat(c[:7, None], 5, 1), PlainKernel(one.spec)
    expected = d.copy()
    plain.run(plain.rows(a[:7]), plain.columns(b[:5].T), expected, 0, 2)
    assert kernel_for(one.spec).description.startswith("emulated: ")
    assert (matmul(a[:7], b[:5].T, d, instruction=one) == expected).all()
    assert np.isfinite(expected[4:].view(np.float32)).all()  # where no special value was put in


def split(x: NDArray[np.float32], scale: float) -> tuple[NDArray[np.float16], NDArray[np.float16]]:
    high = x.astype(np.float16)
    return high, ((x - high.astype(np.float32)) * np.float32(scale)).astype(np.float16)


def test_the_two_papers_schemes_in_numpy() -> None:
    """Their loops again, by NumPy's casts and fp32 additions, on the unit's own `dot_add`."""
    unit, rng = hopper["HMMA.16816.F32"], np.random.default_rng(2)
    a, b = near_one(rng, (200, 48)), near_one(rng, (200, 48))
    zero = np.zeros(200, np.float32)
    (ah, al), (bh, bl) = split(a, 1.0), split(b, 1.0)
    d: Any = zero
    for k in range(0, 48, 16):
        s = slice(k, k + 16)
        for x, y in ((al, bl), (al, bh), (ah, bl), (ah, bh)):
            d = unit.dot_add(x[:, s], y[:, s], d)
    assert (emulation["markidis(hopper HMMA.16816.F32, k=48)"].dot_add(a, b, zero) == d).all()
    assert (emulation["markidis(hopper HMMA.16816.F32)"].chained(48).dot_add(a, b, zero) == d).all()
    (ah, al), (bh, bl) = split(a, 2048.0), split(b, 2048.0)
    main, corrections = zero, zero
    for k in range(0, 48, 16):
        s = slice(k, k + 16)
        main = main + unit.dot_add(ah[:, s], bh[:, s], zero)
        corrections = unit.dot_add(al[:, s], bh[:, s], corrections)
        corrections = unit.dot_add(ah[:, s], bl[:, s], corrections)
    expected = main + corrections / np.float32(2048)
    assert (emulation["ootomo(hopper HMMA.16816.F32, k=48)"].dot_add(a, b, zero) == expected).all()


def test_promoted_is_matmul_s_promotion() -> None:
    name, rng = "QGMMA.64x8x32.F32.E4M3.E4M3", np.random.default_rng(3)
    A, B = (rng.integers(0, 0x7F, (9, 256)).astype(np.uint8) for _ in range(2))
    expected = matmul(A, B.T, instruction=hopper[name], promote_every=4)
    for i in (
        emulation[f"promoted(hopper {name}, k=128, every=4)"],
        emulation[f"promoted(hopper {name}, k=256, every=4)"],
    ):
        assert (matmul(A, B.T, instruction=i) == expected).all()


def test_corrections_help() -> None:
    """Products of three words are as good as fp32's, of one much worse."""
    rng = np.random.default_rng(4)
    A, B = rng.standard_normal((20, 64)).astype(np.float32), rng.standard_normal((64, 20)).astype(np.float32)
    sums = A.astype(np.float64) @ B

    def error(name: str) -> float:
        return float(abs(matmul(A, B, instruction=emulation[name]) - sums).max())

    single = float(abs((A.astype(np.float16) @ B.astype(np.float16)) - sums).max())
    three, nine = error("bf16x3(ampere HMMA.16816.F32.BF16)"), error("bf16x9(ampere HMMA.16816.F32.BF16)")
    assert error("ootomo(ampere HMMA.16816.F32)") < nine * 2 < three < single


@pytest.mark.parametrize("unit", ["volta HMMA.884.F32.F32", "cdna3 f32_4x4x4_16b_f16", "cdna1 f32_4x4x4f16"])
def test_ozaki_s_sums_of_words_are_exact(unit: str) -> None:
    """Each sum of the unit is that of integers, of the largest words, and of any; so d is the same on all units."""
    rng, i = np.random.default_rng(5), emulation[f"ozaki({unit}, k=64)"]
    a, b = near_one(rng, (30, 64)), near_one(rng, (30, 64))
    a[:3], b[:3] = 1.0 - 2.0**-24, 1.0 - 2.0**-24  # words of 2^9
    p = i.spec.parameters_as(Emulated)
    x, y = (
        np.array(
            [[[float(fp16.value(int(code))) for code in word] for word in each.T] for each in _words(side, p)]
        )
        for side in (a, b)
    )
    assert (x % 1 == 0).all()
    assert (abs(x) <= 512).all()
    d = np.zeros(30, np.float32)
    tops = [np.frexp(abs(side).max(1))[1] - p.common for side in (a, b)]
    for part in p.parts:
        ((n, m),) = part.products
        sums = (x[:, :, n] * y[:, :, m]).sum(1)
        d = d + np.ldexp(sums, (tops[0] + tops[1] - part.shift).astype(np.int32)).astype(np.float32)
    assert (i.dot_add(a, b, np.zeros(30, np.float32)) == d).all()


def _words(side: NDArray[np.float32], p: Emulated) -> list[NDArray[Any]]:
    codes = side.view(np.uint32)
    top = kernels.largest_fields(codes, p)
    return list(np.moveaxis(np.array(kernels.words(codes, p, fp16, top)), 1, 0))


def test_ozaki_s_product_is_nearly_rounded_once() -> None:
    rng = np.random.default_rng(6)
    A, B = (rng.standard_normal(shape).astype(np.float32) for shape in ((20, 256), (256, 20)))
    sums = A.astype(np.float64) @ B
    d = matmul(A, B, instruction=emulation["ozaki(hopper HMMA.16816.F32, k=256)"])
    assert abs(d - sums).max() <= np.spacing(np.float32(abs(sums).max()))
    assert abs(d - sums).max() * 2 < abs(A @ B - sums).max()


# ---- names and what is refused ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_name_leads_back(name: str) -> None:
    i = emulations.named(name)
    assert emulations.named(i.name) == i
    assert emulation[f" {name} "] == i
    assert i.k == i.spec.parameters.step_products


def test_the_space_is_found_and_not_listed() -> None:
    assert "emulation" in ARCHITECTURES
    assert "emulation" not in list(ARCHITECTURES)
    assert {each.name.partition("(")[0] for each in emulation} == set(emulations.SCHEMES)
    assert all(emulation[each.name] == each for each in emulation)


@pytest.mark.parametrize(
    ("name", "told"),
    [
        (
            "ozimmu(hopper HMMA.16816.F32)",
            "no emulation 'ozimmu(hopper HMMA.16816.F32)': it is one of markidis(",
        ),
        ("ootomo(hopper HMMA.16816.F32, k=20)", "20 is not a multiple of it"),
        ("ootomo(hopper HMMA.16816.F32, unit=2)", "'unit=2' is no argument of ootomo("),
        ("ootomo(hopper HMMA.16816.F16)", "c and d of fp32"),
        ("ootomo(hopper QGMMA.64x8x32.F32.E4M3.E4M3)", "takes a unit of fp16, bf16, tf32"),
        ("bf16x3(hopper HMMA.16816.F32)", "takes a unit of bf16"),
        ("ootomo(hopper HMMA.32)", "hopper has no instruction 'HMMA.32'"),
        ("ozaki(volta HMMA.884.F32.F32, k=8388608)", "8388608 products of words are not exact"),
        ("ozaki(hopper HMMA.16816.F32, words=0)", "words ≥ 1, not 0"),
        ("ozaki(hopper HMMA.16816.F32, words=400)", "at most 6 words of 10 bits, not 400"),
        ("promoted(hopper HMMA.16816.F32, every=2)", "a sum of 1 blocks, not every 2"),
    ],
)
def test_what_is_no_emulation_is_told(name: str, told: str) -> None:
    with pytest.raises(UnknownInstructionError) as caught:
        emulation[name]
    assert told in str(caught.value)
    assert name not in emulation


def test_what_is_no_program_is_refused() -> None:
    i = emulation["ootomo(volta HMMA.884.F32.F32)"]
    for change, told in (
        ({"rounding": None}, "more than one word"),
        ({"rounding": "RNE-BF16±0"}, "a φ that gives fp16"),
        ({"rounding": "RNE-FP16"}, "keeps the sign of zero"),
        ({"words": 1}, "words up to 1, of which there are 1"),
        ({"unit": i.spec}, "a unit that is none itself"),
        ({"parts": ()}, "a part at least"),
    ):
        with pytest.raises(ValueError, match=told):
            i.replace(**change)
    ozaki = emulation["ozaki(volta HMMA.884.F32.F32)"]
    for change, told in (
        ({"common": 12, "shift": 13}, "words of 1 to 11 bits, not 12"),
        ({"shift": 11}, "a word 12 places below"),
        ({"parts": (Part(((0, 0),)),)}, "sums of their own"),
    ):
        with pytest.raises(ValueError, match=told):
            ozaki.replace(**change)
    with pytest.raises(TypeError):
        i.replace(parts=(((0, 0),),))
    with pytest.raises(ValueError, match="products of two words"):
        Part(((0, 0, 0),))
    with pytest.raises(ValueError, match="not scaled"):
        Part(((0, 0),), 0, 11)


# ---- both encodings are equal ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("promoted(datapath fda(k=2,frac_bits=9), k=4)", marks=pytest.mark.slow),
        pytest.param("ootomo(datapath fda(k=2,frac_bits=9))", marks=pytest.mark.slow),
        pytest.param("markidis(hopper HMMA.16816.F32)", marks=pytest.mark.slow),
        pytest.param("ootomo(hopper HMMA.16816.F32, k=64)", marks=pytest.mark.slow),
        pytest.param("ootomo(ampere HMMA.1688.F32.TF32)", marks=pytest.mark.slow),
        pytest.param("fp16x2(hopper HMMA.16816.F32)", marks=pytest.mark.slow),
        pytest.param("bf16x3(ampere HMMA.16816.F32.BF16)", marks=pytest.mark.slow),
        pytest.param("bf16x9(ampere HMMA.16816.F32.BF16)", marks=pytest.mark.slow),
        pytest.param("ozaki(volta HMMA.884.F32.F32)", marks=pytest.mark.slow),
        pytest.param("ozaki(hopper HMMA.16816.F32, k=64)", marks=pytest.mark.slow),
        pytest.param("promoted(hopper QGMMA.64x8x32.F32.E4M3.E4M3, k=128, every=4)", marks=pytest.mark.slow),
    ],
)
def test_both_encodings_are_proved_equal(name: str) -> None:
    assert isinstance(verify(emulation[name], timeout=120), Holds)


def test_a_total_that_is_forgotten_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stages, "add", lambda x, y, rho, nan: ieee.add(y, y, rho, nan))
    assert isinstance(verify(emulation["promoted(datapath fda(k=2,frac_bits=9), k=4)"], timeout=60), Fails)


@pytest.mark.slow
def test_a_broken_program_is_not_proved(monkeypatch: pytest.MonkeyPatch) -> None:
    """The last conversion forgets its scale: an input is shown."""
    whole = ieee.rescale
    monkeypatch.setattr(
        smt_emulated, "rescale", lambda code, fmt, rho, shift=0: whole(code, fmt, rho, max(shift, 0))
    )
    assert isinstance(verify(emulation["ootomo(datapath fda(k=2,frac_bits=9))"], timeout=60), Fails)


@pytest.mark.slow
def test_a_broken_rounding_is_not_proved(monkeypatch: pytest.MonkeyPatch) -> None:
    """Words below the least normal number are cut: nothing sticky is left."""
    shifted = ieee.sticky_shift_right

    def cut(x: z3.BitVecRef, n: z3.BitVecRef) -> z3.BitVecRef:
        return z3.LShR(x, ieee.resize(n, x.size())) if n.size() < 10 and x.size() == 26 else shifted(x, n)

    monkeypatch.setattr(ieee, "sticky_shift_right", cut)
    answer = verify(emulation["ootomo(datapath fda(k=2,frac_bits=9))"], timeout=60)
    assert isinstance(answer, (Fails, Unknown))  # a solver has to find the input: the time may not suffice
    assert "words of equal codes are equal does not hold" in answer.why


def test_parameters_are_plain_data() -> None:
    p = emulation["ootomo(hopper HMMA.16816.F32, k=64)"].spec.parameters_as(Emulated)
    assert p.describe().endswith(
        "parts=(0·0) every 1,(1·0+0·1)/2^11 every 4 blocks=4 rounding=IEEE-FP16 words=2 shift=11"
    )


# ---- Ozaki's sums are exact ------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_ozaki_s_sums_are_proved_exact() -> None:
    answer = prove("exactness", emulation["ozaki(datapath fda(k=2,frac_bits=23))"], timeout=120)
    assert isinstance(answer, Holds)
    assert "integers with |w|, |v| ≤ 2^11, and at most 2^24" in str(answer)


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        "ozaki(volta HMMA.884.F32.F32, k=64)",
        "ozaki(hopper HMMA.16816.F32, k=64)",
        "ozaki(ampere HMMA.16816.F32.BF16, k=256)",
        "ozaki(ampere HMMA.1688.F32.TF32, k=64)",
    ],
)
def test_ozaki_s_sums_are_proved_exact_on_units(name: str) -> None:
    assert isinstance(prove("exactness", emulation[name], timeout=300), Holds)


def _unsettled(name: str, **changes: object) -> str:
    answer = prove("exactness", emulation[name].replace(**changes), timeout=120)
    assert isinstance(answer, Unknown)
    return answer.why


def test_sums_that_are_not_exact_are_not_proved_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """Words of a bit too many, with two sums of 2^24 each; a unit that keeps a place too few; 2^23 for 1.5 · 2^23."""
    two, small = "ozaki(datapath fda(k=2,frac_bits=23), k=4)", "ozaki(datapath fda(k=2,frac_bits=23), k=8)"
    p = emulation[two].spec.parameters_as(Emulated)
    assert p.common == 11
    wide = {
        "common": p.common,
        "shift": p.shift,
        "words": p.words,
        "parts": tuple(Part(x.products, 4, x.shift) for x in p.parts),
    }
    assert "after n steps a sum is at most" in _unsettled(small, **wide)
    assert "why sums of integers are exact" in _unsettled("ozaki(datapath fda(k=2,frac_bits=22))")
    monkeypatch.setattr(smt_emulated, "_INTEGERS", 0x4B000000)
    assert "makes an integer" in _unsettled("ozaki(datapath fda(k=2,frac_bits=23))")


def _first_largest(factors: Sequence[z3.BitVecRef]) -> smt_emulated.Common:
    return smt_emulated.Common(tuple(z3.Extract(30, 23, x) for x in factors), z3.Extract(30, 23, factors[0]))


def _scaled_by_a(
    sum_: z3.BitVecRef, part: Part, p: Emulated, commons: Sequence[smt_emulated.Common]
) -> z3.BitVecRef:
    return _DESCALED(sum_, part, p, [commons[0], commons[0]])


_DESCALED = smt_emulated.descaled


@pytest.mark.parametrize(
    ("name", "broken", "told"),
    [
        ("common_exponent", _first_largest, "fields: the largest"),
        pytest.param(
            "descaled",
            _scaled_by_a,
            "the total is the one before and the sum, scaled back",
            marks=pytest.mark.slow,
        ),
        ("add", lambda x, y, rho, nan: ieee.add(x, x, rho, nan), "scaled back, added in fp32"),
    ],
)
def test_what_is_no_sum_of_words_of_the_factors_is_not_proved(
    monkeypatch: pytest.MonkeyPatch, name: str, broken: object, told: str
) -> None:
    monkeypatch.setattr(stages if name == "add" else smt_emulated, name, broken)
    assert told in _unsettled("ozaki(datapath fda(k=2,frac_bits=23))")


def test_sums_of_several_products_of_words_have_no_argument() -> None:
    parts = Part(((0, 1), (1, 0)), 1, 12), Part(((0, 0),), 1)
    assert "several products of words" in _unsettled("ozaki(datapath fda(k=2,frac_bits=23))", parts=parts)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("x", "y"),
    [
        ("ozaki(datapath fda(k=2,frac_bits=23))", "ozaki(datapath fda(k=1,frac_bits=30), k=2)"),
        ("ozaki(volta HMMA.884.F32.F32, k=16)", "ozaki(turing HMMA.1688.F32, k=16)"),
    ],
)
def test_ozaki_s_product_is_the_same_on_two_units(x: str, y: str) -> None:
    assert isinstance(find_difference(emulation[x], emulation[y], timeout=300), Equal)


def test_programs_that_differ_by_more_than_their_units() -> None:
    x, *others = (
        emulation[name].spec
        for name in (
            "ozaki(datapath fda(k=2,frac_bits=23), k=4)",
            "ozaki(datapath fda(k=2,frac_bits=23), k=8)",
            "ozaki(datapath fda(k=2,frac_bits=23), k=4, words=2)",
            "ozaki(datapath fda(k=2,a=bf16,b=bf16,frac_bits=23), k=4)",
            "ootomo(datapath fda(k=2,frac_bits=23), k=4)",
        )
    )
    assert portable.applies(x, emulation["ozaki(datapath fda(k=4,frac_bits=30))"].spec)
    assert not any(portable.applies(x, y) or portable.applies(y, x) for y in others)
    one = emulation["ozaki(datapath fda(k=2,frac_bits=23), words=1)"].spec
    assert not portable.applies(one, one)  # an infinity may stay one
    parts = Part(((0, 0),), 2), Part(((1, 0),), 2, 12)
    first = emulation["ozaki(datapath fda(k=2,frac_bits=23), k=4)"].replace(parts=parts).spec
    assert not portable.applies(first, first)  # word 1 of b is not used


def test_a_unit_that_forgets_nans_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    x = emulation["ozaki(datapath fda(k=2,frac_bits=23))"].spec
    assert isinstance(x.parameters, Emulated)
    with Portfolio() as portfolio:
        monkeypatch.setattr(stages, "select_special", lambda special, code, fmt, nan: code)
        with pytest.raises(NotProvedError, match="a step with a NaN gives a NaN"):
            portable._nan_is_kept(Composing(Asker(portfolio, 60)), x.parameters.unit)


# ---- two runs --------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("name", ["markidis(volta HMMA.884.F32.F32)", "ootomo(volta HMMA.884.F32.F32, k=8)"])
def test_products_of_a_block_may_change_places(name: str) -> None:
    assert isinstance(prove("order-independence", emulation[name], timeout=200), Holds)


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["promoted(volta HMMA.884.F32.F32, k=8)", "markidis(volta HMMA.884.F32.F32)"]
)
def test_signs_of_all_products_and_c_change_that_of_d(name: str) -> None:
    assert isinstance(prove("sign-symmetry", emulation[name], timeout=200), Holds)


def test_a_zero_product_may_be_a_nan() -> None:
    """2^16 is infinite in fp16: its product with 0 is none of a number."""
    i = emulation["ootomo(volta HMMA.884.F32.F32)"]
    d = i.dot_add([65536.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0], 0.0)
    assert np.isnan(d)


def test_small_numbers_are_kept_by_the_scaled_words() -> None:
    """2^-25 is zero in fp16, and so is what it leaves, unless it is scaled: the smallest difference of the two."""
    a, b = [2.0**-25, 0.0, 0.0, 0.0], [1.0, 0.0, 0.0, 0.0]
    markidis, ootomo = (
        float(emulation[f"{scheme}(volta HMMA.884.F32.F32)"].dot_add(a, b, 0.0))
        for scheme in ("markidis", "ootomo")
    )
    assert (markidis, ootomo) == (0.0, 2.0**-25)


def test_the_alternate_products_of_fp16_keep_subnormals_and_cut_what_bf16_has_not() -> None:
    """On MI200's unit of fp16 subnormal factors are zero; on that of bf16, cut to it, they are not."""
    alt = emulation["fp16_alt(cdna2 v_mfma_f32_32x32x8bf16_1k)"]
    own = cdna2["v_mfma_f32_32x32x8f16"]
    one, zero = [1.0] + [0.0] * 7, np.float32(0)
    for x, of_alt, of_own in (
        (2.0**-24, 2.0**-24, 0.0),
        (1 + 2.0**-7 + 2.0**-8 + 2.0**-10, 1 + 2.0**-7, 1 + 2.0**-7 + 2.0**-8 + 2.0**-10),
        (-65504.0, -65280.0, -65504.0),
    ):
        factors = [x] + [0.0] * 7
        assert float(alt.dot_add(np.float32(factors), np.float32(one), zero)) == of_alt
        assert float(own.dot_add(np.float16(factors), np.float16(one), zero)) == of_own
    with pytest.raises(ValueError, match="takes a unit of bf16"):
        emulations.named("fp16_alt(hopper HMMA.16816.F32)")


@pytest.mark.parametrize(
    ("theirs", "ours"),
    {
        "ALG_DOT_BF16_BF16_F32_X3": "bf16x3",
        "BF16_BF16_F32_X6": "bf16x6",
        "alg_dot_bf16_bf16_f32_x9": "bf16x9",
        "BF16x9": "bf16x9",
        "CUBLAS_COMPUTE_32F_EMULATED_16BFX9": "bf16x9",
        "TF32_TF32_F32_X3": "tf32x3",
        "rocblas_gemm_flags_fp16_alt_impl": "fp16_alt",
        "fp16_alt_impl": "fp16_alt",
    }.items(),
)
def test_names_that_others_have(theirs: str, ours: str) -> None:
    unit = "ampere HMMA.1688.F32.TF32" if ours == "tf32x3" else "ampere HMMA.16816.F32.BF16"
    assert emulations.named(f"{theirs}({unit})") == emulations.named(f"{ours}({unit})")
