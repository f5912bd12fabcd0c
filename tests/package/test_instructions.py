"""Names, look-up, shapes, dtypes, variants and revisions: all of an instruction but its arithmetic."""

from __future__ import annotations

import dataclasses
import pickle
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import z3

import mmaformal
from mmaformal import (
    ARCHITECTURES,
    UnknownInstructionError,
    ada,
    ampere,
    blackwell,
    cdna1,
    cdna2,
    cdna3,
    hopper,
    matmul,
    rtx_blackwell,
    turing,
    volta,
)
from mmaformal.architectures import UnknownRevisionError
from mmaformal.encodings import smt
from mmaformal.encodings.efda import Efda
from mmaformal.encodings.fda import Fda
from mmaformal.encodings.fdrda import Fdrda
from mmaformal.encodings.gdfs import Gdfs
from mmaformal.encodings.gfdrda import Gfdrda
from mmaformal.encodings.gps import Gps
from mmaformal.encodings.lowered import Lowered
from mmaformal.encodings.sfma import Sfma
from mmaformal.formats import FORMATS, Format, Specials, bf16, e2m1, e4m3, fp16, fp32, fp64, ue4m3, ue8m0
from mmaformal.instruction import Instruction
from mmaformal.listing import instruction_in_words
from mmaformal.rounding import IEEE_FP32, RNE_FP16, RNE_FP32, RZ_E8M13, RZ_FP32, Conversion, Rounding
from mmaformal.spec import DotAdd

F16 = ampere["HMMA.16816.F32"]
SF = rtx_blackwell["QMMA.SF.16832.F32.E4M3.E2M3.E8"]
FP8 = rtx_blackwell["QMMA.16832.F32.E4M3.E4M3"]
FP6 = rtx_blackwell["QMMA.16832.F32.E3M2.E2M3"]


# ---- the tables --------------------------------------------------------------------------------------------


def test_how_many_instructions_each_architecture_has() -> None:
    """MMA-Sim Tables III and IV, docs/semantics.md §6; types multiplied out, other m and n not counted."""
    assert {name: len(architecture.instructions) for name, architecture in ARCHITECTURES.items()} == {
        "volta": 3,
        "turing": 3 + 2,
        "ampere": 2 + 6 + 1,
        "ada": 2 + 6 + 1 + 2 * 2 * 4,
        "hopper": 2 + 6 + 1 + 3 + 4 + 2 * 4 + 8,
        "blackwell": 2 + 6 + 1 + 4 + 2 * 25 + 25 + 3 + 8,
        "rtx_blackwell": 2 + 6 + 1 + 2 * 25 + 2 * 4 + 25 + 3,
        "cdna1": 15,
        "cdna2": 15 + 2 + 5,
        "cdna3": 2 + 5 + 2 + 5 + 5 + 8,
        "sapphire_rapids": 3,
        "armv8_6": 2,
        "riscv": 6 + 4 * 6 + 6,
        "sme": 8,
        "power10": 20,
        "apple_amx": 4,
        "e9s12": 9,
    }
    for name in ARCHITECTURES:
        assert getattr(mmaformal, name) is ARCHITECTURES[name]


@pytest.mark.parametrize(
    ("instruction", "parameters"),
    [
        (volta["HMMA.884.F32.F16"], Fda(23, 4, RZ_FP32, -131)),
        (volta["HMMA.884.F16.F16"], Fda(23, 4, RNE_FP16, -19)),
        (turing["HMMA.884.F32.F32"], Fda(23, 4, RZ_FP32, -131)),
        (turing["HMMA.1688.F16"], Fda(24, 8, RNE_FP16, -20)),
        (ampere["HMMA.16816.F32"], Fda(24, 8, RZ_FP32, -132)),
        (ampere["HMMA.1688.F32.TF32"], Fda(24, 4, RZ_FP32, -132)),
        (ampere["HMMA.1684.F32.TF32"], Fda(24, 4, RZ_FP32, -132)),
        (ada["QMMA.16832.F32.E4M3.E5M2"], Fda(13, 16, RZ_E8M13, -132)),
        (ada["QMMA.16816.F16.E4M3.E5M2"], Fda(13, 16, RNE_FP16, -20)),
        (hopper["HMMA.16816.F16"], Fda(25, 16, RNE_FP16, -21)),
        (hopper["HGMMA.64x8x8.F32.TF32"], Fda(25, 8, RZ_FP32, -133)),
        (hopper["QGMMA.64x8x32.F32.E4M3.E4M3"], Fda(13, 32, RZ_E8M13, -133)),
        (blackwell["UTCQMMA.F32.E4M3.E2M1"], Fda(25, 32, RZ_FP32, -133)),
        (rtx_blackwell["QMMA.16816.F32.E4M3.E4M3"], Fda(25, 16, RZ_FP32, -133)),
        (rtx_blackwell["QMMA.SF.16832.F32.E5M2.E3M2.E8"], Fda(25, 32, RZ_FP32, -133)),
        (blackwell["UTCOMMA.F32.E2M1.E2M1.UE4M3.4X"], Gdfs(35, 16, 64, RZ_FP32, -139)),
        (cdna1["f32_4x4x4f16"], Efda(4, IEEE_FP32)),
        (cdna1["f32_16x16x8bf16"], Efda(2, IEEE_FP32)),
        (cdna2["f32_16x16x16f16"], Gps(4)),
        (cdna2["f32_16x16x8bf16"], Gps(2)),
        (cdna2["f32_16x16x16bf16_1k"], Gps(4)),
        (cdna3["f32_16x16x8_xf32"], Fdrda(24, 4, IEEE_FP32)),
        (cdna3["f32_16x16x16_bf16"], Fdrda(24, 8, IEEE_FP32)),
        (cdna3["f32_4x4x4_16b_f16"], Fdrda(24, 4, IEEE_FP32)),
        (cdna3["f32_16x16x32_bf8_bf8"], Gfdrda(24, 16, IEEE_FP32)),
        (cdna3["f32_32x32x2_f32"], Sfma(IEEE_FP32)),
    ],
    ids=str,
)
def test_parameters(instruction: Instruction, parameters: object) -> None:
    """docs/semantics.md §5."""
    assert instruction.parameters == parameters


def test_every_parameter_has_a_source() -> None:
    for architecture in ARCHITECTURES.values():
        for instruction in architecture:
            own = {
                *instruction.parameters.keys(),
                *(["product_order"] if instruction.spec.product_order else []),
                *(["negated"] if instruction.spec.negated else []),
                *([] if instruction.spec.reads_c else ["reads_c"]),
            }
            assert set(instruction.sources) == own, instruction.label


def test_names_and_shapes_agree() -> None:
    for architecture in ARCHITECTURES.values():
        for i in architecture:
            digits = i.name.lower().replace("v_mfma_", "")
            shapes = {f"m{i.m}n{i.n}k{i.k}", f"{i.m}x{i.n}x{i.k}", f".{i.m}{i.n}{i.k}."}
            assert any(shape in f"{digits}." for shape in shapes) or digits.startswith(
                ("utc", "dmma.884", "tdp", "vdp", "vfmadd", "bf", "fm", "fdot", "xv", "vf", "dp", "tmm")
            ), i
            for alias in i.aliases:
                assert architecture[alias] is i


def test_which_nan_is_known_of_tensor_cores_and_of_processors() -> None:
    for architecture in ARCHITECTURES.values():
        for instruction in architecture:
            known = instruction.algorithm in ("fda", "gdfs") or architecture.name in (
                "sapphire_rapids",
                "armv8_6",
                "riscv",
                "sme",
                "power10",
                "apple_amx",
            )
            assert instruction.spec.nan_is_canonical == known


# ---- names -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("architecture", "spelling", "name"),
    [
        (ampere, "mma.m16n8k16.f32.f16.f16.f32", "HMMA.16816.F32"),
        (ampere, "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", "HMMA.16816.F32"),
        (ampere, "hmma.16816.f32", "HMMA.16816.F32"),
        (hopper, "DMMA.8x8x4", "DMMA.884"),
        (hopper, "mma.m16n8k8.f64.f64.f64.f64", "DMMA.16x8x8"),
        (hopper, "wgmma.m64n8k16.f32.f16.f16", "HGMMA.64x8x16.F32"),
        (hopper, "wgmma.m64n256k16.f32.f16.f16", "HGMMA.64x256x16.F32"),
        (hopper, "wgmma.mma_async.sync.aligned.m64n48k32.f16.e4m3.e5m2", "QGMMA.64x48x32.F16.E4M3.E5M2"),
        (hopper, "HGMMA.64x128x8.F32.TF32", "HGMMA.64x128x8.F32.TF32"),
        (hopper, "mma.m16n8k32.f32.e4m3.e4m3.f32", "mma.m16n8k32.f32.e4m3.e4m3.f32"),
        (blackwell, "tcgen05.mma.m64n8k32.kind::f8f6f4.f32.e4m3.e4m3", "UTCQMMA.F32.E4M3.E4M3"),
        (blackwell, "tcgen05.mma.m128n200k16.kind::f16.f32.bf16.bf16", "UTCHMMA.F32.BF16"),
        (
            blackwell,
            "tcgen05.mma.m128n8k64.kind::mxf4nvf4.block16.f32.e2m1.e2m1.ue4m3",
            "UTCOMMA.F32.E2M1.E2M1.UE4M3.4X",
        ),
        (
            rtx_blackwell,
            "mma.m16n8k32.kind::mxf8f6f4.block32.f32.e5m2.e3m2.f32.ue8m0",
            "QMMA.SF.16832.F32.E5M2.E3M2.E8",
        ),
        (rtx_blackwell, "mma.m16n8k32.kind::f8f6f4.f32.e4m3.e2m1.f32", "QMMA.16832.F32.E4M3.E2M1"),
        (rtx_blackwell, "mma.m16n8k32.kind::f8f6f4.f32.e4m3.e5m2.f32", "QMMA.16832.F32.E4M3.E5M2"),
        (rtx_blackwell, "mma.m16n8k32.f32.e4m3.e5m2.f32", "QMMA.16832.F32.E4M3.E5M2"),
        (
            rtx_blackwell,
            "mma.m16n8k64.kind::mxf4nvf4.block16.f32.e2m1.e2m1.f32.ue4m3",
            "OMMA.SF.16864.F32.E2M1.E2M1.UE4M3.4X",
        ),
        (
            rtx_blackwell,
            "mma.sync.aligned.m16n8k64.row.col.kind::mxf4nvf4.block_scale.scale_vec::4X.f32.e2m1.e2m1.f32.ue4m3",
            "OMMA.SF.16864.F32.E2M1.E2M1.UE4M3.4X",
        ),
        (
            rtx_blackwell,
            "mma.m16n8k64.kind::mxf4.block_scale.scale_vec::2X.f32.e2m1.e2m1.f32.ue8m0",
            "OMMA.SF.16864.F32.E2M1.E2M1.E8",
        ),
        (cdna1, "f32_32x32x8f16", "v_mfma_f32_32x32x8f16"),
        (cdna1, "v_mfma_f32_32x32x8_f16", "v_mfma_f32_32x32x8f16"),
        (cdna2, "f32_32x32x4_2b_bf16", "v_mfma_f32_32x32x4bf16_1k"),
        (cdna2, "f32_32x32x4bf16", "v_mfma_f32_32x32x4bf16"),
        (cdna3, "f32_32x32x4bf16_1k", "v_mfma_f32_32x32x4_2b_bf16"),
        (cdna3, "F32_16x16x4_F32", "v_mfma_f32_16x16x4_f32"),
        (cdna3, "f64_4x4x4f64", "v_mfma_f64_4x4x4_4b_f64"),
    ],
)
def test_spellings(architecture: mmaformal.Architecture, spelling: str, name: str) -> None:
    assert architecture[spelling].name == name
    assert spelling in architecture


def test_other_sizes_have_the_same_arithmetic() -> None:
    small, large = hopper["HGMMA.64x8x16.F32"], hopper["HGMMA.64x256x16.F32"]
    assert small.spec is large.spec
    assert (large.m, large.n, large.aliases) == (64, 256, ("wgmma.m64n256k16.f32.f16.f16",))
    assert blackwell["tcgen05.mma.m128n16k32.kind::f8f6f4.f32.e4m3.e4m3"].m == 128
    A, B, C = np.zeros((64, 16), np.uint16), np.zeros((16, 256), np.uint16), np.zeros((64, 256), np.uint32)
    assert large.run(A, B, C).shape == (64, 256)
    with pytest.raises(ValueError, match="does not come with m = 64, n = 12"):
        small.sized(64, 12)


@pytest.mark.parametrize("name", ["HGMMA.64x12x16.F32", "HGMMA.128x8x16.F32", "wgmma.m64n264k16.f32.f16.f16"])
def test_sizes_that_do_not_exist(name: str) -> None:
    assert name not in hopper
    with pytest.raises(UnknownInstructionError, match=r"HGMMA\.64x8x16\.F32"):
        hopper[name]


def test_a_wrong_name_gets_the_nearest_and_who_has_it() -> None:
    with pytest.raises(UnknownInstructionError) as raised:
        ampere["HMMA.884.F32.F32"]
    assert str(raised.value).startswith(
        "ampere has no instruction 'HMMA.884.F32.F32'. Nearest on ampere: HMMA.16"
    )
    assert str(raised.value).endswith(". HMMA.884.F32.F32 is on: volta, turing.")
    with pytest.raises(UnknownInstructionError, match=r"is on: ada, rtx_blackwell\.$"):
        hopper["QMMA.16816.F32.E4M3.E4M3"]
    with pytest.raises(UnknownInstructionError, match="`mmaformal list volta` shows what it has"):
        volta["xyzzy"]
    assert isinstance(raised.value, KeyError)
    assert 3 not in ampere


def test_an_unknown_architecture() -> None:
    with pytest.raises(KeyError, match=r"no architecture 'pascal'; there are volta, turing, ampere"):
        ARCHITECTURES["pascal"]


# ---- operands ----------------------------------------------------------------------------------------------


def ones(instruction: Instruction, *shape: int) -> np.ndarray:
    return np.full((*shape, instruction.k), 1.0).astype(instruction.a_format.dtype)


def test_leading_dimensions_broadcast() -> None:
    a, c = ones(F16, 3, 1), np.arange(4, dtype=np.float32)
    d = F16.dot_add(a, ones(F16), c)
    assert d.shape == (3, 4)
    assert d.dtype == np.float32
    assert (d == 16 + c).all()
    assert F16.dot_add(ones(F16), ones(F16), np.float32(1)) == 17
    assert F16.dot_add(ones(F16, 0), ones(F16), np.float32(1)).shape == (0,)


def test_many_rows_are_the_same_as_few() -> None:
    rng = np.random.default_rng(1)
    a, b = rng.integers(0, 2**16, (2, 20_000, 16), dtype=np.uint16)
    c = rng.integers(0, 2**32, 20_000, dtype=np.uint32)
    d = F16.dot_add(a, b, c)
    for part in (slice(8_000, 8_400), slice(19_990, 20_000)):
        assert np.array_equal(d[part], F16.dot_add(a[part], b[part], c[part]))


def test_bits_and_floats_of_the_right_type_are_the_same() -> None:
    for instruction in (F16, ampere["HMMA.16816.F32.BF16"], ampere["DMMA.884"], SF.replace(k=32), FP6):
        x, y = (
            np.ones(instruction.k).astype(fmt.dtype) for fmt in (instruction.a_format, instruction.b_format)
        )
        c = np.ones((), instruction.c_format.dtype)
        scale = [np.array([127], np.uint8)] * 2 if instruction.spec.scale_format else []
        from_floats = instruction.dot_add(x, y, c, *scale)
        assert from_floats.dtype == instruction.d_format.dtype
        numbers = [v.astype(np.float64).tolist() for v in (x, y, c)]
        assert instruction.dot_add(*numbers, *scale) == from_floats
        from_floats = from_floats.view(instruction.d_format.word)
        bits = [v.view(f.word) for v, f in ((x, instruction.a_format), (y, instruction.b_format))]
        assert from_floats == instruction.dot_add(*bits, c.view(instruction.c_format.word), *scale)
        wider = [v.astype(np.uint64) for v in bits]
        assert from_floats == instruction.dot_add(*wider, int(c.view(instruction.c_format.word)), *scale)
        lists = [v.tolist() for v in bits]
        assert from_floats == instruction.dot_add(*lists, int(c.view(instruction.c_format.word)), *scale)


def test_fp64_codes_in_lists_stay_codes() -> None:
    """NumPy makes floats of a list that holds numbers on both sides of 2^63."""
    d = cdna3["f64_16x16x4_f64"].dot_add([0xBFF0000000000000, 0, 0, 0], [0x3FF0000000000000, 0, 0, 0], 0)
    assert d == 0xBFF0000000000000
    assert d.dtype == np.uint64


@pytest.mark.parametrize(
    ("a", "message"),
    [
        (
            np.zeros(16, np.float32),
            "a is float32; fp16 needs unsigned integer bit patterns .uint16. or float16",
        ),
        (np.zeros(16, np.int16), "a is int16; fp16 needs"),
        (np.zeros(16, ml_dtypes.bfloat16), "a is bfloat16"),
        (np.zeros(16, bool), "a is bool"),
        ([np.float64(1.5)] * 16, "a is float64"),
        ([1.5] * 15 + [True], "a is float64"),
        (["x"] * 16, "a is <U1"),
    ],
)
def test_other_dtypes_are_refused(a: object, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        F16.dot_add(a, ones(F16), np.float32(0))  # type: ignore[arg-type]


def test_codes_that_do_not_exist_are_refused() -> None:
    zeros = np.zeros(32, np.uint8)
    with pytest.raises(ValueError, match=r"a holds 0x40, which is no e3m2 code: codes are 0 to 0x3f"):
        FP6.dot_add(zeros + 64, zeros, np.float32(0))
    with pytest.raises(ValueError, match="b holds 0xff, which is no e2m3 code"):
        FP6.dot_add(zeros, zeros | 0xFF, np.float32(0))
    with pytest.raises(ValueError, match="a holds 0x10, which is no e2m1 code"):
        rtx_blackwell["QMMA.16832.F32.E2M1.E2M1"].dot_add([16] * 32, zeros, np.float32(0))
    with pytest.raises(ValueError, match="a holds 0x10000, which is no fp16 code"):
        F16.dot_add([65536] * 16, ones(F16), np.float32(0))
    with pytest.raises(ValueError, match="a has a negative number; fp16 bit patterns are 0 to 0xffff"):
        F16.dot_add([-1] * 16, ones(F16), np.float32(0))


@pytest.mark.parametrize("shape", [(15,), (17,), (), (16, 1)])
def test_wrong_shapes_are_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match=r"needs a of shape \(…, 16\), not .*pad the missing positions"):
        F16.dot_add(np.zeros(shape, np.float16), ones(F16), np.float32(0))


def test_leading_dimensions_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ValueError, match=r"leading dimensions do not fit: a \(3, 16\), b \(2, 16\)"):
        F16.dot_add(ones(F16, 3), ones(F16, 2), np.float32(0))


NUMBERS = np.ones(16, np.float16)
BITS = NUMBERS.view(np.uint16)


@pytest.mark.parametrize(
    ("operands", "told"),
    [
        (
            (NUMBERS, NUMBERS, 1),
            "a is a number and c a bit pattern, as every integer is: give c as a Python float",
        ),
        ((NUMBERS, NUMBERS, np.uint32(1)), "a is a number and c a bit pattern"),
        ((NUMBERS, BITS, np.float32(1)), "a is a number and b a bit pattern"),
        ((BITS, BITS, np.float32(1)), "c is a number and a a bit pattern"),
        ((BITS, BITS, 1.0), "c is a number and a a bit pattern"),
        (([1.0] * 16, [1] * 16, 1.0), "a is a number and b a bit pattern"),
    ],
)
def test_numbers_beside_bit_patterns_are_refused(operands: tuple[Any, ...], told: str) -> None:
    """1 was taken for 2^-149."""
    with pytest.raises(TypeError, match=told):
        F16.dot_add(*operands)


def test_numbers_beside_bit_patterns_are_refused_by_run_and_matmul_too() -> None:
    A, B, C = np.ones((16, 16), np.float16), np.ones((16, 8), np.float16), np.ones((16, 8), np.uint32)
    for call in (F16.run, lambda *x: matmul(*x, instruction=F16)):
        with pytest.raises(TypeError, match="A is a number and C a bit pattern"):
            call(A, B, C)
        with pytest.raises(TypeError, match="A is a number and C a bit pattern"):
            call(A, B, [[1] * 8] * 16)
        with pytest.raises(TypeError, match="C is a number and A a bit pattern"):
            call(A.view(np.uint16), B.view(np.uint16), C.view(np.float32))


def test_python_floats_are_numbers_where_they_are_exact() -> None:
    d = F16.dot_add([1.0] * 8 + [0, -0.5] * 4, NUMBERS, -0.0)
    assert (d, d.dtype) == (6, np.float32)
    assert np.isnan(F16.dot_add(NUMBERS, NUMBERS, float("nan")))
    assert F16.dot_add(NUMBERS, NUMBERS, float("-inf")) == -np.inf
    with pytest.raises(ValueError, match=r"c: 0\.1 is no value of fp32"):
        F16.dot_add(NUMBERS, NUMBERS, 0.1)
    with pytest.raises(ValueError, match="a: e4m3 has no infinity"):
        FP8.dot_add([float("inf")] * 32, [1.0] * 32, 0.0)


def test_bit_patterns_come_back_where_numpy_has_no_floats() -> None:
    mine = Format("mine", 16, 6, 9, 31, Specials.IEEE, None)
    i = F16.replace(c_format=mine, d_format=mine, rho=Conversion("RZ-mine", mine, 9, Rounding.RZ))
    d = i.dot_add(NUMBERS, NUMBERS, 1.0)
    assert (mine.text(int(d)), d.dtype) == ("0x1.1p+4", np.uint16)
    assert i.dot_add(NUMBERS, NUMBERS, np.uint16(mine.code("1"))) == d


def test_run_and_dot_add_and_matmul_return_alike() -> None:
    A, B, C = np.ones((16, 16), np.float16), np.ones((16, 8), np.float16), np.ones((16, 8), np.float32)
    for operands, kind in (((A, B, C), np.float32), ((A.view("u2"), B.view("u2"), C.view("u4")), np.uint32)):
        a, b, c = operands
        results = F16.run(a, b, c), F16.dot_add(a[:, None], b.T, c), matmul(a, b, c, instruction=F16)
        for d in results:
            assert d.dtype == kind
            assert (d.view(np.float32) == 17).all()


def test_run_is_the_whole_matrix() -> None:
    rng = np.random.default_rng(7)
    A, B = rng.standard_normal((16, 16)).astype(np.float16), rng.standard_normal((16, 8)).astype(np.float16)
    C = rng.standard_normal((16, 8)).astype(np.float32)
    D = F16.run(A, B, C)
    for i, j in ((0, 0), (3, 7), (15, 2)):
        assert D[i, j] == F16.dot_add(A[i], B[:, j], C[i, j])
    with pytest.raises(ValueError, match=r"needs B of shape \(16, 8\), not \(8, 16\)"):
        F16.run(A, B.T, C)


# ---- block scales ------------------------------------------------------------------------------------------


def test_scales_multiply_their_blocks() -> None:
    instruction = SF.chained(64)
    a = np.ones(64).astype(ml_dtypes.float8_e4m3fn)
    b = np.ones(64).astype(ml_dtypes.float6_e2m3fn)
    d = instruction.dot_add(a, b, np.float32(0), [1.0, 8.0], [1.0, 0.5])
    assert d == 32 + 32 * 8 / 2
    scales = np.array([[127, 127], [255, 127]], np.uint8), np.array([127, 127], np.uint8)
    assert instruction.dot_add(a, b, 0.0, *scales).view(np.uint32).tolist() == [
        np.float32(64).view(np.uint32),
        0x7FFFFFFF,
    ]
    with pytest.raises(TypeError, match="a is a number and scale_a a bit pattern"):
        instruction.dot_add(a, b, np.float32(0), [127, 130], [127, 126])


def test_scales_of_whole_matrices() -> None:
    instruction = rtx_blackwell["OMMA.SF.16864.F32.E2M1.E2M1.UE4M3.4X"]
    rng = np.random.default_rng(3)
    A, B = rng.integers(0, 16, (16, 64), dtype=np.uint8), rng.integers(0, 16, (64, 8), dtype=np.uint8)
    scale_a, scale_b = rng.integers(0, 0x7F, (16, 4), np.uint8), rng.integers(0, 0x7F, (4, 8), np.uint8)
    C = np.zeros((16, 8), np.uint32)
    D = instruction.run(A, B, C, scale_a, scale_b)
    for i, j in ((0, 0), (5, 1), (15, 7)):
        assert D[i, j] == instruction.dot_add(A[i], B[:, j], C[i, j], scale_a[i], scale_b[:, j])
    with pytest.raises(ValueError, match=r"needs scale_b of shape \(4, 8\), not \(8, 4\)"):
        instruction.run(A, B, C, scale_a, scale_b.T)
    with pytest.raises(TypeError, match="needs scale_b"):
        instruction.run(A, B, C, scale_a)


def test_missing_and_superfluous_scales() -> None:
    zeros = np.zeros(32, np.uint8)
    with pytest.raises(TypeError, match=r"HMMA\.16816\.F32 takes no block scales"):
        F16.dot_add(ones(F16), ones(F16), np.float32(0), [127])
    with pytest.raises(
        TypeError, match=r"needs scale_a and scale_b: 1 ue8m0 per row .* for each 32 products"
    ):
        SF.dot_add(zeros, zeros, 0)
    with pytest.raises(TypeError, match="needs scale_b"):
        SF.dot_add(zeros, zeros, 0, [127])
    with pytest.raises(
        ValueError, match=r"needs scale_a of shape \(…, 1\), not \(2,\): one ue8m0 for each 32 prod"
    ):
        SF.dot_add(zeros, zeros, 0, [127, 127], [127])
    with pytest.raises(TypeError, match="scale_a is int64; ue8m0 needs unsigned integer"):
        SF.dot_add(zeros, zeros, 0, np.array([127]), [127])
    scale = np.array([1.0]).astype(ml_dtypes.float8_e8m0fnu)
    assert SF.dot_add(zeros, zeros, 3, scale, scale) == 3


# ---- variants ----------------------------------------------------------------------------------------------


def test_replace_makes_a_hypothetical_instruction() -> None:
    hypothetical = hopper["HMMA.16816.F32"].replace(F=30, rho=RNE_FP32)
    assert hypothetical.parameters == Fda(30, 16, RNE_FP32, -133)
    assert hypothetical.name == "HMMA.16816.F32[F=30][rho=RNE-FP32]"
    assert hypothetical.sources["F"] == "hypothetical"
    assert hypothetical.aliases == ()
    assert hopper["HMMA.16816.F32"].replace(L=4, name="narrow").label == "hopper narrow"
    assert cdna3["f32_32x32x8_f16"].replace(cut=Rounding.RZ).name == "v_mfma_f32_32x32x8_f16[cut=RZ]"
    assert ampere["HMMA.16816.F32"].replace(e_zero=None).parameters.describe().endswith("e_zero=fields")


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"G": 3}, TypeError, "fda has no parameter 'G': it has F, L, rho, e_zero"),
        ({"L": 5}, ValueError, "K = 16 is not a multiple of the 5 products"),
        ({"L": 0}, ValueError, "L ≥ 1"),
        ({"F": 60}, ValueError, "1 ≤ F ≤ 55"),
        ({"rho": RNE_FP16}, ValueError, "ρ = RNE-FP16 gives fp16, but d is fp32"),
        ({"c_format": fp16}, ValueError, "a chain needs c and d of one type"),
        ({"a_format": fp64, "b_format": fp64}, ValueError, "products of at most 48 bits"),
        ({"scale_block": 16}, ValueError, "without a scale format"),
        ({"scale_format": ue4m3, "scale_block": 16}, ValueError, "powers of two"),
        ({"scale_format": ue8m0, "scale_block": 5}, ValueError, "multiple of the scale block"),
        (
            {"scale_format": ue8m0, "scale_block": 24, "k": 48, "L": 16},
            ValueError,
            "of 24 straddle the steps of 16",
        ),
        (
            {"scale_format": ue8m0, "scale_block": 4, "L": 6, "k": 12},
            ValueError,
            "of 4 straddle the steps of 6",
        ),
    ],
)
def test_variants_that_make_no_sense(
    changes: dict[str, object], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        F16.replace(**changes)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: DotAdd(4, fp32, fp32, fp32, fp64, Sfma(IEEE_FP32)), "chain needs c and d of one type"),
        (lambda: DotAdd(4, fp16, fp16, fp32, fp32, Sfma(IEEE_FP32)), "one type throughout"),
        (lambda: DotAdd(4, fp32, fp32, fp32, fp32, Gps(4)), "a, b that fp32 holds"),
        (lambda: Gps(3), "G of 2, 4 or 8, not 3"),
        (lambda: Gdfs(35, 16, 40, RZ_FP32, -139), "multiple of G"),
        (lambda: DotAdd(64, e4m3, e2m1, fp32, fp32, Gdfs(35, 16, 64, RZ_FP32, 0), ue8m0, 32), "e2m1 × e2m1"),
        (lambda: DotAdd(64, e2m1, e2m1, fp32, fp32, Gdfs(35, 16, 64, RZ_FP32, -139)), "block scales"),
        (lambda: Fdrda(24, 8, IEEE_FP32, cut=Rounding.RNE), "cut RD or RZ, not RNE"),
        (lambda: Fdrda(24, 8, IEEE_FP32, dot_bits=20), "dot_bits = 20"),
        (lambda: DotAdd(8, fp16, fp16, fp32, fp32, Fdrda(24, 8, IEEE_FP32), ue8m0, 8), "no block scales"),
        (lambda: DotAdd(65, bf16, bf16, fp32, fp32, Efda(65, IEEE_FP32)), "at most 64 products"),
        (lambda: Lowered(25, 1, RZ_FP32, -133, fp16, (0, 0), IEEE_FP32), "permutation"),
    ],
)
def test_data_that_makes_no_sense(make: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()  # type: ignore[operator]


def test_chained_is_one_instruction_after_another() -> None:
    rng = np.random.default_rng(11)
    for instruction in (F16, cdna3["f32_32x32x8_f16"], hopper["mma.m16n8k32.f32.e4m3.e5m2.f32"]):
        k, chained = instruction.k, instruction.chained(3 * instruction.k)
        a, b = (
            rng.integers(0, fmt.codes, (50, 3 * k), fmt.word)
            for fmt in (instruction.a_format, instruction.b_format)
        )
        c = rng.integers(0, 2**32, 50, np.uint32)
        d = c
        for start in range(0, 3 * k, k):
            d = instruction.dot_add(a[:, start : start + k], b[:, start : start + k], d)
        assert np.array_equal(chained.dot_add(a, b, c), d)
        assert (chained.k, chained.issues) == (3 * k, 3)
        assert chained.name == f"{instruction.name}[K={3 * k}]"
    assert F16.chained(16) is F16
    with pytest.raises(ValueError, match="has K = 16; 24 is not a multiple of it"):
        F16.chained(24)
    with pytest.raises(ValueError, match="a chain needs c and d of one type"):
        volta["HMMA.884.F32.F16"].chained(8)


def test_parameters_read_like_a_mapping() -> None:
    parameters = F16.parameters
    assert dict(**parameters) == dataclasses.asdict(parameters) | {"rho": RZ_FP32}
    assert list(parameters) == ["F", "L", "rho", "e_zero", "cut"]
    assert (parameters["F"], len(parameters)) == (24, 5)
    with pytest.raises(KeyError, match="fda has no parameter 'G'"):
        parameters["G"]
    assert parameters.describe() == "F=24 L=8 ρ=RZ-FP32 e_zero=-132"
    assert cdna3["f32_16x16x16_f16"].parameters.describe() == "F=24 L=8 ρ=IEEE-FP32"
    assert str(F16) == (
        "ampere HMMA.16816.F32: fp16 × fp16 + fp32 → fp32, K=16, fda F=24 L=8 ρ=RZ-FP32 e_zero=-132"
    )
    assert SF.spec.types == "e4m3 × e2m3 + fp32 → fp32 (scales ue8m0, one per 32)"


def test_what_travels_to_another_process_is_the_same_and_can_still_be_changed() -> None:
    for instruction in (F16, SF, cdna2["f32_32x32x8f16"], hopper["mma.m16n8k32.f16.e4m3.e4m3.f16"]):
        spec = pickle.loads(pickle.dumps(instruction.spec))
        assert spec == instruction.spec
        assert spec.replace(k=2 * spec.k).k == 2 * spec.k


# ---- revisions ---------------------------------------------------------------------------------------------


def test_the_papers_reading() -> None:
    """docs/semantics.md §9."""
    paper = hopper.revision("paper-v1")
    assert paper["HMMA.16816.F16"].parameters == Fda(25, 16, RNE_FP16.with_signed_zero(), None)
    assert paper["HMMA.16816.F16"].label == "hopper@paper-v1 HMMA.16816.F16"
    assert paper["HMMA.16816.F16"].sources["e_zero"].startswith("MMA-Sim")
    assert paper["wgmma.m64n64k16.f32.f16.f16"].parameters["e_zero"] is None
    assert "mma.m16n8k32.f32.e4m3.e4m3.f32" not in paper
    assert turing.revision("paper-v1")["HMMA.884.F32.F32"].parameters["F"] == 24
    assert turing.revision("paper-v1")["HMMA.884.F32.F32"].parameters["L"] == 4
    assert volta.revision("paper-v1")["HMMA.884.F32.F32"].parameters["F"] == 23
    assert rtx_blackwell.revision("paper-v1")["OMMA.SF.16864.F32.E2M1.E2M1.E8"].parameters["e_zero"] is None
    for name in ("f32_32x32x8_f16", "f32_16x16x32_fp8_fp8"):
        parameters = cdna3.revision("paper-v1")[name].parameters
        names = ("dot_bits", "sum_bits", "skip_zero_products", "inputs_first")
        assert [parameters[x] for x in names] == [31, None, False, True]
        assert "sum_bits=uncut" in parameters.describe()
        assert "sum_bits = not cut:" in instruction_in_words(cdna3.revision("paper-v1")[name])


def test_a_revision_changes_something() -> None:
    for architecture in ARCHITECTURES.values():
        for name in architecture.revisions:
            revised = {each.name: each.spec for each in architecture.revision(name)}
            same = {each.name: each.spec for each in architecture if each.name in revised}
            assert revised != same, f"{architecture.name}@{name}"


def test_infinite_inputs_and_products_that_overflow_in_the_paper() -> None:
    """MMA-Sim §IV-F: step 1 returns the infinity of the inputs and c before step 2 lets products overflow."""
    inf, big, one, minus = 0x7F80, 0x7F00, 0x3F80, 0x8000
    cases = [  # a, b, c → paper, default
        ((inf, big, 0, 0), (one, big | minus, 0, 0), 0, 0x7F800000, 0x7FC00000),
        ((big, 0, 0, 0), (big | minus, 0, 0, 0), 0x7F800000, 0x7F800000, 0x7FC00000),
        ((inf | minus, big, 0, 0), (one, big, 0, 0), 0, 0xFF800000, 0x7FC00000),
        ((big, big, 0, 0), (big | minus, big, 0, 0), 0, 0x7FC00000, 0x7FC00000),
        ((big, inf, 0, 0), (big, 0, 0, 0), 0, 0x7FC00000, 0x7FC00000),
        ((big, 0, 0, 0), (big | minus, 0, 0, 0), 0, 0xFF800000, 0xFF800000),
    ]
    default = cdna3["f32_4x4x4_16b_bf16"]
    paper = cdna3.revision("paper-v1")["f32_4x4x4_16b_bf16"]
    for a, b, c, of_paper, of_default in cases:
        for instruction, wanted in ((paper, of_paper), (default, of_default)):
            assert instruction.dot_add(a, b, c) == wanted
            codes = [z3.BitVecVal(x, 16) for x in (*a, *b)]
            trace = smt.dot_add(instruction.spec, codes[:4], codes[4:], z3.BitVecVal(c, 32))
            of_terms = z3.simplify(trace.result).as_long()
            assert of_terms == wanted or (default.d_format.text(of_terms) == "nan" and wanted == 0x7FC00000)
            A, B = np.array([a], np.uint16), np.array(b, np.uint16)[:, None]
            D = matmul(A, B, np.array([[c]], np.uint32), instruction=instruction)
            assert D.view(np.uint32)[0, 0] == wanted


def test_the_earlier_measurements() -> None:
    wanted = {
        volta: ("HMMA.884.F16.F16", -20),
        ampere: ("HMMA.16816.F16", -21),
        hopper: ("HMMA.16816.F16", -22),
    }
    for architecture, (name, e_zero) in wanted.items():
        assert architecture.revision("earlier-e-zero")[name].parameters["e_zero"] == e_zero
    assert ampere.revision("earlier-e-zero")["HMMA.16816.F32"].parameters["e_zero"] == -132


def test_revisions_are_found_but_not_listed() -> None:
    assert hopper.revision("default") is hopper
    assert ARCHITECTURES["hopper@paper-v1"]["HMMA.16816.F16"] == hopper.revision("paper-v1")["HMMA.16816.F16"]
    assert ARCHITECTURES["hopper@paper-v1"] is ARCHITECTURES["hopper@paper-v1"]
    assert not any("@" in name for name in ARCHITECTURES)
    with pytest.raises(UnknownRevisionError, match="cdna1 has no revision 'paper-v1': it has default"):
        cdna1.revision("paper-v1")
    with pytest.raises(
        KeyError, match="hopper has no revision 'v7': it has default, paper-v1, earlier-e-zero"
    ):
        ARCHITECTURES["hopper@v7"]


def test_all_formats_are_used_by_name() -> None:
    assert FORMATS[F16.a_format.name] is fp16
    assert FORMATS[F16.c_format.name] is fp32
