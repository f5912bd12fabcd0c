"""Compiled rows are the executable, bit for bit, whatever the parameters, which compile nothing anew."""

from __future__ import annotations

import ctypes
import platform
import random
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.kernel_runs import near_one, random_codes
from support.recorded import padded, real_files
from test_kernels import HYPOTHETICAL, MORE, SEEDS, WAYS, any_unit, label

from mmaformal import (
    Instruction,
    cdna3,
    datapath,
    hopper,
    power10,
    recordings,
    rtx_blackwell,
    sapphire_rapids,
)
from mmaformal.architectures import ARCHITECTURES
from mmaformal.architectures.meant import instruction_meant
from mmaformal.encodings import executable, folders, part
from mmaformal.encodings.executable.blocks import decode
from mmaformal.encodings.fda.kernel import run_fda_rows
from mmaformal.encodings.muladd import Muladd
from mmaformal.encodings.muladd.kernel import MuladdKernel
from mmaformal.formats import FORMATS, Format, Specials, bf16, fp32
from mmaformal.kernels import choose, kernel_for, rows
from mmaformal.kernels import given as given_numbers
from mmaformal.kernels.given import GivenFormat
from mmaformal.rounding import DETERMINISTIC, IEEE_FP32, Rounding
from mmaformal.spec import DotAdd

#: block scales
SCALED = rtx_blackwell["QMMA.SF.16832.F32.E5M2.E3M2.E8"]


def inputs(rng: np.random.Generator, i: Instruction, n: int, make: Any) -> dict[str, Any]:
    spec = i.spec
    found = {
        "a": make(rng, i.a_format, (n, i.k)),
        "b": make(rng, i.b_format, (n, i.k)),
        "c": make(rng, i.c_format, (n,)),
    }
    if spec.scale_format is not None:
        found |= {side: make(rng, spec.scale_format, (n, spec.scales)) for side in ("scale_a", "scale_b")}
    return found


def by_executable(i: Instruction, given: dict[str, Any]) -> Any:
    """NumPy's lanes."""
    lanes = {name: [x.astype(np.int64) for x in codes.T] for name, codes in given.items() if name != "c"}
    result = executable.dot_add(i.spec, c=given["c"].astype(np.int64), **lanes).result
    return np.asarray(result).astype(i.d_format.word)


def assert_same(i: Instruction, given: dict[str, Any]) -> Any:
    mine, theirs = rows.dot_add(i.spec, **given), by_executable(i, given)
    for found in (mine, rows.dot_add(i.spec, **given, by_stages=True)):
        wrong = np.flatnonzero(found != theirs)
        assert not len(wrong), f"{i}: {len(wrong)} of {len(mine)} rows; the first is {wrong[0]}"
    return mine


@pytest.mark.parametrize("i", [*WAYS, *HYPOTHETICAL, *MORE], ids=label)
def test_rows_are_the_executable(i: Instruction) -> None:
    rng = np.random.default_rng(list(i.label.encode()))
    assert_same(i, inputs(rng, i, 700, random_codes))
    found = assert_same(i, inputs(rng, i, 700, near_one))
    if i.algorithm != "efda":
        assert len(np.unique(found)) > 100  # the inputs do reach the arithmetic


@pytest.mark.parametrize("i", [*WAYS, *HYPOTHETICAL, *MORE], ids=label)
def test_rows_are_the_executable_on_zeros(i: Instruction) -> None:
    """All products zero, of either sign, or all but one or two; c of any exponent, subnormal, or ±0."""
    rng = np.random.default_rng(list(i.label.encode()))
    given = inputs(rng, i, 600, near_one)
    zero = np.where(
        rng.random(given["a"].shape) < 1.5 / i.k, random_codes(rng, i.a_format, given["a"].shape), 0
    )
    zero[:200] = 0
    signs = 0 if i.a_format.specials is Specials.FNUZ else i.a_format.sign_mask
    given["a"] = np.where(zero == 0, np.where(rng.random(zero.shape) < 0.5, signs, 0), zero).astype(
        i.a_format.word
    )
    c = random_codes(rng, i.c_format, (600,))
    c[::5] = np.where(rng.random(120) < 0.5, i.c_format.sign_mask, 0)
    small = (1 << (i.c_format.fraction_bits + 1)) - 1  # subnormals, and the least normal numbers
    c[1::5] &= np.array(i.c_format.sign_mask | small, c.dtype)
    assert_same(i, given | {"c": c})


#: units on the processor's floats, and rows that only the right operations get right: the factors of products, and c
ROUNDED_ONCE = [
    # What a sum of fp64 loses, the first term or the second, breaks a tie of 2^30 and c.
    ("cdna1 v_mfma_f32_4x4x4f16", [(2.0**-24, 2.0**-24), (2.0**15, 2.0**15)], 2.0**6),
    ("cdna1 v_mfma_f32_4x4x4f16", [(2.0**15, 2.0**15), (2.0**-24, 2.0**-24)], 2.0**6),
    ("cdna1 v_mfma_f32_4x4x4f16", [(2.0**15, 2.0**15), (np.inf, 0.0)], 1.0),
    ("cdna1 v_mfma_f32_4x4x4f16", [(2.0**15, 2.0**15)], np.inf),
    # A product, a sum of products and c that are subnormal are zero.
    ("cdna2 v_mfma_f32_4x4x2bf16", [(1.5 * 2.0**-64, 2.0**-62), (-(2.0**-64), 2.0**-62)], 2.0**-126),
    ("cdna2 v_mfma_f32_4x4x2bf16", [(2.0**-64, 2.0**-63), (2.0**-64, 2.0**-62)], 0.0),
    ("cdna2 v_mfma_f32_4x4x2bf16", [(2.0**-64, 2.0**-62)], 2.0**-127),
    # A product is rounded, or it is not.
    ("datapath mul_add(k=4,a=fp32)", [(1 + 2.0**-23, 1 + 2.0**-23)], -1 - 2.0**-22),
    ("cdna2 v_mfma_f32_4x4x1f32", [(1 + 2.0**-23, 1 + 2.0**-23)], -1 - 2.0**-22),
    ("cdna2 v_mfma_f64_4x4x4f64", [(1 + 2.0**-52, 1 + 2.0**-52)], -1 - 2.0**-51),
]


@pytest.mark.parametrize(("unit", "products", "c"), ROUNDED_ONCE, ids=str)
def test_rows_in_floats_round_where_the_unit_does(
    unit: str, products: list[tuple[float, float]], c: float
) -> None:
    i = instruction_meant(unit)
    i = i.chained(4 * i.k)
    a, b = np.zeros((2, 1, i.k))
    a[0, : len(products)], b[0, : len(products)] = np.array(products).T
    sides = {"a": (a, i.a_format), "b": (b, i.b_format), "c": (np.array([c]), i.c_format)}
    given = {
        name: np.vectorize(lambda x, fmt=fmt: fmt.code(float(x).hex()))(x) for name, (x, fmt) in sides.items()
    }
    assert_same(i, given)


@pytest.mark.parametrize(
    ("a_format", "a", "b"),
    [
        (Format("far", 16, 8, 7, 123, Specials.IEEE), "0x1p130", "0x1p-10"),
        (Format("long", 32, 6, 25, 31, Specials.IEEE), "0x1.0000018p0", "0x1.8p0"),
        (Format("near", 16, 8, 7, 150, Specials.IEEE), "0x1p-156", "0x1p10"),
    ],
    ids=["too large", "too long", "too small"],
)
def test_factors_that_no_fp32_holds_are_not_converted_to_it(a_format: Format, a: str, b: str) -> None:
    spec = DotAdd(1, a_format, FORMATS["e5m2"], fp32, fp32, Muladd(IEEE_FP32, IEEE_FP32))
    i = Instruction("own", "test", 1, 1, spec)
    codes = [[spec.a_format.code(a)]], [[spec.b_format.code(b)]], [0]
    given = dict(zip("abc", (np.array(each, np.uint32) for each in codes), strict=True))
    assert_same(i, given)
    assert not isinstance(kernel_for(spec), MuladdKernel)


@pytest.mark.skipif(
    sys.platform != "linux" or platform.machine() != "x86_64", reason="the mode's number is that of x86-64"
)
@pytest.mark.parametrize(
    "unit",
    [
        "cdna1 v_mfma_f32_4x4x4f16",
        "cdna2 v_mfma_f32_4x4x2bf16",
        "cdna2 v_mfma_f32_4x4x1f32",
        "sme FMOPS.F32",
        "apple_amx fma16.F32",
        "datapath mul_add(k=4,a=fp32)",
    ],
)
def test_another_rounding_mode_of_the_processor_changes_nothing(unit: str) -> None:
    i = instruction_meant(unit)
    i = i.chained(8) if i.spec.passes_on else i
    given = inputs(np.random.default_rng(1), i, 300, near_one)
    expected = by_executable(i, given)
    modes = ctypes.CDLL(None)
    assert not modes.fesetround(0xC00)  # toward zero
    try:
        found = rows.dot_add(i.spec, **given)
        for threads in (1, 2):
            assert (rows.dot_add(i.spec, **given, threads=threads) == found).all()
    finally:
        modes.fesetround(0)
    assert (found == expected).all()


def test_what_a_kernel_does_not_know_is_run_on_lanes() -> None:
    """efda's kernel knows sums of zeros that are +0; those of Arm's units may be −0."""
    i = ARCHITECTURES["armv9_fp8"]["FDOT.F32.E4M3.E4M3"]
    given = inputs(np.random.default_rng(0), i, 4, random_codes)
    given["a"][:], given["c"][:] = 0, 0x80000000
    given["b"][:] = 0x81  # the products are −0
    assert (assert_same(i, given) == 0x80000000).all()


def test_a_sum_that_no_efda_is_compiled_for_is_run_on_lanes() -> None:
    i = ARCHITECTURES["diamond_rapids"]["TDPBF8PS"].replace(a_format="fp32", b_format="e4m3")
    given = inputs(np.random.default_rng(0), i, 60, near_one)
    assert len(np.unique(assert_same(i, given))) > 50


@pytest.mark.parametrize(
    "i",
    [
        datapath["fda(k=4,frac_bits=24,a=e4m3,c=binary8p4se,rho=RNE-BINARY8P4SE)"],
        ARCHITECTURES["cdna1"]["v_mfma_f32_4x4x2bf16"].replace(rho="RNE-FP32-SatPropagate"),
    ],
    ids=label,
)
def test_results_that_saturate_are_run_on_lanes(i: Instruction) -> None:
    given = inputs(np.random.default_rng(1), i, 400, random_codes)
    given["a"][:200], given["b"][:200] = i.a_format.largest, i.b_format.largest
    given["c"][:200] = i.c_format.largest
    assert (assert_same(i, given)[:200] == i.d_format.largest + (i.d_format is not fp32)).all()


@pytest.mark.parametrize("b", ["binary6p3uf", "binary8p4se"])
@pytest.mark.parametrize(
    "unit", ["hopper HMMA.16816.F32", "cdna2 v_mfma_f32_4x4x4f16", "armv9_fp8 FDOT.F32.E4M3.E4M3"]
)
def test_rows_of_unsigned_factors_are_the_executable(unit: str, b: str) -> None:
    architecture, name = unit.split()
    i = ARCHITECTURES[architecture][name].replace(a_format="binary8p4ue", b_format=b)
    given = inputs(np.random.default_rng(2), i, 700, random_codes)
    found = assert_same(i, given)
    assert len(np.unique(found)) > 20
    np.testing.assert_array_equal(i.dot_add(**given), found)


@settings(max_examples=40)
@given(st.sampled_from([*SEEDS]), st.integers(0, 10**9))
def test_rows_of_any_parameters_are_the_executable(algorithm: str, seed: int) -> None:
    i = any_unit(random.Random(f"{algorithm} {seed}"), algorithm)
    rng = np.random.default_rng(seed)
    for make in (random_codes, near_one):
        assert_same(i, inputs(rng, i, 60, make))


@pytest.mark.parametrize(
    ("name", "compiled"),
    [
        ("fma(k=1,a=fp16,rho=IEEE-BF16,nan=DEFAULT)", True),
        ("fma(k=1,a=fp16,rho=IEEE-FP16,tiny=AFTER)", False),
        ("fma(k=1,a=fp16,rho=IEEE-FP16,nan=FIRST)", False),
        ("fma(k=1,a=fp64,rho=IEEE-FP64,nan=DEFAULT)", False),
        ("fma(k=1,a=e4m3,rho=IEEE-E4M3)", False),
        ("tree(k=4,a=fp16,order=(c+(0+2))+(3+1),sums=IEEE-RZ-FP32.IEEE-FP32)", True),
        ("tree(k=4,a=fp16,product=IEEE-FP16,sums=IEEE-FP32)", False),
        ("tree(k=2,a=fp16,sums=IEEE-E8M13,rho=IEEE-FP32)", False),
    ],
)
def test_rows_of_designs_models_are_the_executable(name: str, compiled: bool) -> None:
    i = datapath[name]
    module = part(i.spec.parameters.algorithm, "kernel")
    assert module is not None
    assert module.KERNEL.compiles_rows(i.spec) == compiled
    rng = np.random.default_rng(4)
    for make in (random_codes, near_one):
        assert_same(i, inputs(rng, i, 300, make))


@real_files
def test_rows_of_recordings(path: Path) -> None:
    recording = recordings.read(path)
    if recording.instruction is None:
        pytest.skip("not modelled yet")
    block, i = recording.load(), recording.instruction
    d = rows.dot_add(i.spec, padded(block.a, i.k), padded(block.b, i.k), block.c)
    if i.spec.nan_is_canonical:
        assert (d == block.d).all()
    else:
        nan = np.array([i.d_format.is_nan(int(code)) for code in block.d])
        assert (d[~nan] == block.d[~nan]).all()


#: An algorithm that no unit of the tables is made by, but a text; its rows run on the executable's lanes.
NOT_COMPILED = {"rvbna", "fma_flags", "integer_dot", "sorted_fda"}


def test_every_algorithm_has_compiled_rows() -> None:
    modules = {name: part(name, "executable") for name in folders()}
    units = [name for name in modules if hasattr(modules[name], "dot_add")]
    assert rows.compiled_algorithms() == [name for name in units if name not in NOT_COMPILED]


@pytest.mark.parametrize(
    "fmt", [x for x in FORMATS.values() if x.layout.signed and x.layout.has_zero], ids=str
)
def test_special_codes_are_those_that_decode_to_special_values(fmt: Format) -> None:
    """Compares all codes, or, of wide formats, those at the ends of every exponent."""
    sign, least = 1 << (fmt.storage_bits - 1), fmt.ignored_low_bits + fmt.fraction_bits
    if fmt.codes <= 1 << 16:
        codes = np.arange(fmt.codes)
    else:
        ends = np.arange(1 << fmt.exponent_bits)[:, None] << least
        near = (
            ends
            + np.array([0, 1, (1 << fmt.ignored_low_bits) - 1, 1 << fmt.ignored_low_bits, (1 << least) - 1])
        ).ravel()
        codes = np.concatenate([near, near | (sign if sign < 1 << 63 else -(1 << 63))])
    x = decode(codes, fmt.layout)
    given_format = GivenFormat(fmt.layout, 0, 0, 0, 0, 0, *given_numbers._specials(fmt))
    with np.errstate(over="ignore"):
        found = given_numbers.is_special_code.py_func(codes, given_format)
    assert (found == (x.nan | x.infinite)).all()


def test_no_parameters_are_compiled_anew() -> None:
    """One function for all formats of up to 32 bits."""
    units = [hopper["HMMA.16816.F32"], hopper["QGMMA.64x8x32.F32.E4M3.E5M2"], SCALED]
    units += [any_unit(random.Random(f"fda {seed}"), "fda") for seed in range(20)]
    assert_same(units[0], inputs(np.random.default_rng(1), units[0], 5, near_one))
    compiled = len(run_fda_rows.signatures)
    for i in units:
        assert_same(i, inputs(np.random.default_rng(1), i, 5, near_one))
    assert len(run_fda_rows.signatures) == compiled


def test_products_in_an_order() -> None:
    i = hopper["HMMA.16816.F32"].replace(L=4)
    spec = i.spec.replace(product_order=tuple(int(k) for k in np.random.default_rng(0).permutation(16)))
    given = inputs(np.random.default_rng(1), i, 500, near_one)
    lanes = {name: [x.astype(np.int64) for x in given[name].T] for name in "ab"}
    expected = executable.dot_add(spec, c=given["c"].astype(np.int64), **lanes).result
    found = rows.dot_add(spec, **given)
    assert (found == expected.astype(np.uint32)).all()
    assert (found != rows.dot_add(i.spec, **given)).any()


def test_an_algorithm_without_a_file_is_run_on_lanes(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(5)
    cases = [(i, inputs(rng, i, 50, near_one)) for i in (SCALED, hopper["mma.m16n8k32.f32.e4m3.e4m3.f32"])]
    expected = [rows.dot_add(i.spec, **given) for i, given in cases]
    monkeypatch.setattr(choose, "part", lambda algorithm, name: None)
    monkeypatch.setattr(rows, "_runner", rows._runner.__wrapped__)  # those of before are kept
    found = [rows.dot_add(i.spec, **given) for i, given in cases]
    assert all((x == y).all() for x, y in zip(expected, found, strict=True))


def test_threads_and_words_make_no_difference() -> None:
    i = hopper["HMMA.16816.F32"]
    given = inputs(np.random.default_rng(1), i, 40000, near_one)
    found = rows.dot_add(i.spec, **given)
    assert (found == rows.dot_add(i.spec, **given, threads=3)).all()
    wide = {name: np.asfortranarray(codes.astype(np.uint64)) for name, codes in given.items()}
    assert (found == rows.dot_add(i.spec, **wide)).all()


@pytest.mark.parametrize("i", [hopper["HMMA.16816.F32"], SCALED, sapphire_rapids["TDPBF16PS"]], ids=label)
def test_one_who_calls_again_and_again_is_given_the_compiled_function(
    i: Instruction, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn = inputs(np.random.default_rng(1), i, i.k * 8, near_one)
    expected = by_executable(i, drawn)
    monkeypatch.setattr(rows, "_taken", {})
    monkeypatch.setattr(rows, "PATIENCE", 1e-9)
    ran: list[int] = []
    original = rows.dot_add
    monkeypatch.setattr(rows, "dot_add", lambda *given, **more: ran.append(0) or original(*given, **more))
    for calls in (0, 1, 2):
        assert (i.dot_add(**drawn) == expected).all()
        assert len(ran) == calls


SIGNED = power10["XVF16GER2NP"]


@pytest.mark.parametrize("i", [hopper["HMMA.16816.F32"], SCALED, SIGNED], ids=label)
def test_searches_are_given_the_compiled_function_once_it_pays(
    i: Instruction, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    taken: dict[str, float] = {}
    monkeypatch.setattr(rows, "_taken", taken)
    loaded: set[str] = set()
    monkeypatch.setattr(rows, "_loaded", loaded)
    ran: list[int] = []
    original = rows.dot_add
    monkeypatch.setattr(rows, "dot_add", lambda *given, **more: ran.append(0) or original(*given, **more))
    given = inputs(np.random.default_rng(1), i, 300, random_codes)
    expected = by_executable(i, given)

    def calls() -> int:
        assert (rows.quick_dot_add(i.spec, **given) == expected).all()
        found = len(ran)
        ran.clear()
        return found

    assert calls() == 0
    assert 0 < taken[i.algorithm] < rows.READING
    taken[i.algorithm] = rows.COMPILING - 0.01
    assert calls() == 0
    taken[i.algorithm] = rows.COMPILING
    assert calls() == 1
    taken[i.algorithm] = 0.0
    assert calls() == 1  # it is there now
    loaded.clear()
    assert calls() == 0
    taken[i.algorithm] = rows.READING  # it is on disk
    assert calls() == 1
    loaded.clear()
    taken[i.algorithm] = 0.0
    monkeypatch.setattr(rows, "MANY", 300 * i.k)
    assert calls() == 1


def test_no_rows() -> None:
    i = hopper["HMMA.16816.F32"]
    assert rows.dot_add(i.spec, **inputs(np.random.default_rng(1), i, 0, near_one)).shape == (0,)


def test_another_rounding_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tests above would notice if a number were another's."""
    i = hopper["HMMA.16816.F16"]
    given = inputs(np.random.default_rng(1), i, 2000, near_one)
    right = rows.dot_add(i.spec, **given)
    down = DETERMINISTIC.index(Rounding.RD)
    monkeypatch.setattr(given_numbers, "_of_conversion", lambda rho: (rho.fraction_bits, down, 0, 0))
    given_numbers.numbers.cache_clear()
    try:
        assert (right != rows.dot_add(i.spec, **given)).sum() > 300
    finally:
        given_numbers.numbers.cache_clear()


def test_converted_operands_are_those_of_the_executable() -> None:
    """lowered and wfma convert by tables; tf32 has more codes than a table takes."""
    i = hopper["mma.m16n8k32.f32.e4m3.e4m3.f32"].replace(a_format="tf32", operands="fp32", F=24)
    assert_same(i, inputs(np.random.default_rng(2), i, 300, near_one))
    assert_same(i, inputs(np.random.default_rng(3), i, 300, random_codes))


def test_instructions_take_them_for_many_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    i = sapphire_rapids["TDPBF16PS"]
    given = inputs(np.random.default_rng(4), i, 300, near_one)
    expected = i.dot_add(**given)
    calls: list[int] = []
    whole = rows.dot_add

    def counted(spec: DotAdd, a: Any, b: Any, c: Any, *scales: Any, **named: Any) -> Any:
        calls.append(len(c))
        return whole(spec, a, b, c, *scales, **named)

    monkeypatch.setattr(rows, "MANY", 1000)
    monkeypatch.setattr(rows, "dot_add", counted)
    assert (i.dot_add(**given) == expected).all()
    broadcast = i.dot_add(given["a"][:10, None], given["b"][:10], np.uint32(0))
    assert calls == [300, 100]
    assert (broadcast[3] == i.dot_add(given["a"][3], given["b"][:10], np.uint32(0))).all()


def test_a_product_that_is_too_large_only_by_its_significand() -> None:
    """1.5 · 2^63 times 1.5 · 2^64 is above 2^128, of exponent 127."""
    i = cdna3["f32_16x16x16_bf16"]
    a, b = np.zeros((2, i.k), np.uint16), np.zeros((2, i.k), np.uint16)
    a[:, 3], b[:, 3] = bf16.code("0x1.8p63"), (bf16.code("0x1.8p64"), bf16.code("0x1p64"))
    given = {"a": a, "b": b, "c": np.full(2, fp32.code("-0x1p127"), np.uint32)}
    assert assert_same(i, given).tolist() == [fp32.infinity, fp32.code("0x1p126")]
