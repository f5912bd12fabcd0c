"""Kernels compute what the plain executable does, bit for bit; the golden vectors, and inputs that aim at kernels."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.golden_vectors import FILES, instruction_of, kept_rows, load, scales
from support.kernel_runs import executable, near_one, random_codes, run
from support.slow import slow

from mmaformal import (
    ARCHITECTURES,
    Instruction,
    ampere,
    armv8_6,
    cdna1,
    cdna2,
    cdna3,
    datapath,
    hopper,
    rtx_blackwell,
    sapphire_rapids,
    volta,
)
from mmaformal.encodings.fda.kernel import FdaKernel
from mmaformal.encodings.sfma.kernel import SfmaKernel
from mmaformal.formats import Format, Specials, bf16, fp32, fp64
from mmaformal.kernels import kernel_for
from mmaformal.kernels.again import AgainKernel
from mmaformal.kernels.plain import PlainKernel, RowsKernel
from mmaformal.kernels.processor import has_fma
from mmaformal.kernels.widths import widths
from mmaformal.limits import most_places
from mmaformal.rounding import DETERMINISTIC, Conversion, Rounding
from mmaformal.witness import results_differ

#: one instruction for each way a kernel goes: algorithm, types of the planes, output
WAYS = [
    volta["HMMA.884.F32.F16"],
    hopper["HMMA.16816.F32"],
    hopper["HMMA.16816.F16"],
    hopper["HMMA.16816.F32.BF16"],
    hopper["HMMA.1688.F32.TF32"],
    hopper["QGMMA.64x8x32.F32.E4M3.E5M2"],
    rtx_blackwell["QMMA.16832.F32.E5M2.E4M3"],
    rtx_blackwell["QMMA.SF.16832.F32.E5M2.E3M2.E8"],
    rtx_blackwell["OMMA.SF.16864.F32.E2M1.E2M1.UE4M3.4X"],
    hopper["mma.m16n8k32.f32.e4m3.e4m3.f32"],
    hopper["mma.m16n8k32.f16.e4m3.e4m3.f16"],
    cdna1["f32_16x16x16f16"],
    cdna1["f32_16x16x8bf16"],
    cdna2["f32_16x16x16f16"],
    cdna2["f32_16x16x8bf16"],
    cdna2["f32_16x16x4f32"],
    cdna2["f64_16x16x4f64"],
    cdna3["f32_16x16x16_f16"],
    cdna3["f32_16x16x16_bf16"],
    cdna3["f32_16x16x8_xf32"],
    cdna3["f32_16x16x32_fp8_bf8"],
    sapphire_rapids["TDPBF16PS"],
    sapphire_rapids["VDPBF16PS"],
    sapphire_rapids["VFMADD231PH"],
    armv8_6["BFMMLA"],
]

#: parameters no hardware has
HYPOTHETICAL = [
    hopper["HMMA.16816.F32"].replace(F=54, e_zero=-20),
    hopper["HMMA.16816.F32"].replace(e_zero=None),
    hopper["HMMA.16816.F32"].replace(e_zero=-20),
    rtx_blackwell["OMMA.SF.16864.F32.E2M1.E2M1.E8"].replace(e_zero=None, L=32),
    cdna2["f32_16x16x16f16"].replace(G=8),
    cdna3["f32_16x16x16_f16"].replace(cut=Rounding.RZ),
    cdna3["f32_16x16x16_bf16"].replace(skip_zero_products=False, sum_bits=None),
    cdna3["f32_16x16x32_fp8_bf8"].replace(dot_bits=24, c_reach=3),
    cdna2["f32_16x16x4f32"].replace(nan="FIRST"),
    sapphire_rapids["VFMADD231PH"].replace(nan="DEFAULT", rho="RU-FP16±0"),
    datapath["mul_add(k=3)"],
    datapath["mul_add(k=4,a=fp32)"],
    cdna1["v_mfma_f32_4x4x2bf16"].replace(c_format="fp16", d_format="fp16", rho="RNE-FP16"),
    datapath["mul_add(k=2,a=bf16,product=RNE-E8M7,rho=RD-FP32)"],
    datapath["fma(k=3,a=e4m3,b=e5m2)"],
    datapath["fda(k=8,frac_bits=12,cut=RO)"],
]

#: more of fda; each takes seconds to compile
MORE = [
    hopper["HMMA.16816.F32"].replace(F=30),
    hopper["HMMA.16816.F16"].replace(e_zero=-3),
    hopper["HMMA.1688.F32"].replace(F=8, L=2),
    hopper["QGMMA.64x8x32.F32.E4M3.E5M2"].replace(L=1),
    rtx_blackwell["QMMA.SF.16832.F32.E5M2.E3M2.E8"].replace(L=8),
    datapath["fda(k=4,frac_bits=30,a=fp32,cut=RO)"],
    datapath["fda(k=32,frac_bits=11,a=e4m3,b=e5m2,cut=RO,scale=ue8m0,block=32)"],
    datapath["sda(k=8,frac_bits=12,a=e4m3,b=e5m2,cut=RO)"],
    datapath["sda(k=8,frac_bits=20,a=bf16)"],
    datapath["gfda(k=8,group=4,frac_bits=20,a=fp16,cut=RO)"],
    datapath["fma(k=3,a=fp16,rho=IEEE-BF16,flush_inputs=1)"],
    datapath["joined(k=4,frac_bits=8,a=fp16,rho=IEEE-RU-FP32)"],
    datapath["joined(k=2,frac_bits=8,a=bf16,rho=IEEE-FP32,e_zero=fields)"],
    datapath["tree(k=4,a=fp16)"],
]
#: of those, what takes seconds to compile and has another of its algorithm beside it
COMPILED_LONG = [HYPOTHETICAL[1], *HYPOTHETICAL[6:8], HYPOTHETICAL[13]]
EACH = slow([*WAYS, *HYPOTHETICAL, *MORE], [*COMPILED_LONG, *MORE])
SPECS = {i.spec for i in WAYS}


def label(i: Instruction) -> str:
    return i.label


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
@pytest.mark.parametrize("every", slow([False, True], [True]))
def test_golden_vectors(path: Path, every: bool) -> None:
    """Each block of 34 cases as a matrix product, of which the diagonal is known; of `WAYS`, or of all instructions."""
    arrays, meta = load(path)
    size = 34
    for output in meta["outputs"]:
        i = instruction_of(output["instructions"][0])
        if not every and i.spec not in SPECS:
            continue
        assert not isinstance(kernel_for(i.spec), PlainKernel)
        kept, expected = kept_rows(meta, output), arrays[output["key"]]
        for start in range(0, len(expected), size):
            block = slice(start, start + size)
            a, b = arrays["a"][block], np.ascontiguousarray(arrays["b"][block].T)
            c = np.repeat(arrays["c"][block][:, None], size, axis=1)
            s = [x[block] for x in scales(arrays)]
            d = np.diagonal(run(i, a, b, c, *([s[0], np.ascontiguousarray(s[1].T)] if s else [])))
            wrong = [
                start + row
                for row in np.flatnonzero((d != expected[block]) & kept[block])
                if results_differ(i.spec, i.spec, int(d[row]), int(expected[block][row]))
            ]
            assert not wrong, f"{i.label}: rows {wrong[:5]}"


@pytest.mark.parametrize("make", [random_codes, near_one])
@pytest.mark.parametrize("i", EACH, ids=label)
def test_kernel_is_the_executable(i: Instruction, make: Any) -> None:
    """A chain of two instructions where there can be one; a width that leaves a part of a panel."""
    rng = np.random.default_rng(list(i.label.encode()))
    m, n, steps = 5, 261, 2 if i.c_format == i.d_format else 1
    spec = i.spec
    a, b = make(rng, i.a_format, (m, steps * i.k)), make(rng, i.b_format, (steps * i.k, n))
    c = make(rng, i.c_format, (m, n))
    scaled = []
    if spec.scale_format is not None:
        scaled = [
            make(rng, spec.scale_format, (m, steps * spec.scales)),
            make(rng, spec.scale_format, (steps * spec.scales, n)),
        ]
    mine, theirs = run(i, a, b, c, *scaled, steps=steps), executable(i, a, b, c, *scaled, steps=steps)
    wrong = np.argwhere(mine != theirs)
    assert not len(wrong), f"{len(wrong)} of {mine.size}; the first at {wrong[0]}"
    if make is near_one and i.algorithm != "efda":
        assert len(np.unique(mine)) > 100  # the inputs do reach the arithmetic


@pytest.mark.parametrize("i", [*EACH, cdna1["f32_16x16x8bf16"].replace(L=1, k=2)], ids=label)
def test_kernel_is_the_executable_on_zeros(i: Instruction) -> None:
    """Steps whose products are zeros of either sign, all or all but one or two; c of any exponent, or ±0."""
    rng = np.random.default_rng(list(i.label.encode()))
    m, n, spec = 12, 40, i.spec
    a = np.where(rng.random((m, i.k)) < 1.5 / i.k, random_codes(rng, i.a_format, (m, i.k)), 0)
    a[: m // 3] = 0
    signs = 0 if i.a_format.specials is Specials.FNUZ else i.a_format.sign_mask
    a = np.where(a == 0, np.where(rng.random(a.shape) < 0.5, signs, 0), a).astype(i.a_format.word)
    b = near_one(rng, i.b_format, (i.k, n))
    c = random_codes(rng, i.c_format, (m, n))
    c[:, ::5] = np.where(rng.random(c[:, ::5].shape) < 0.5, i.c_format.sign_mask, 0)
    small = (1 << (i.c_format.fraction_bits + 1)) - 1  # subnormals, and the least normal numbers
    c[:, 1::5] &= np.array(i.c_format.sign_mask | small, c.dtype)
    scaled = []
    if spec.scale_format is not None:
        scaled = [near_one(rng, spec.scale_format, s) for s in ((m, spec.scales), (spec.scales, n))]
    assert (run(i, a, b, c, *scaled) == executable(i, a, b, c, *scaled)).all()


def test_zeros_of_gps_have_no_sign() -> None:
    """−0 · 1 would be −0; −0 · ∞ is a NaN of either sign."""
    for i in (cdna2["f32_16x16x16f16"], cdna2["f32_16x16x8bf16"]):
        minus = i.a_format.sign_mask
        a = np.array([[minus, 0] * (i.k // 2), [minus] * i.k], i.a_format.word)
        b = np.full((i.k, 2), i.b_format.infinity, i.b_format.word)
        b[:, 0] = i.b_format.code("1")
        c = np.full((2, 2), 0x80000000, np.uint32)
        assert (run(i, a, b, c) == executable(i, a, b, c)).all()


def test_kernels_of_a_coarse_rounding_hold_c() -> None:
    """c has more bits than ρ keeps: what is below them decides what ρ rounds to."""
    rng = np.random.default_rng(11)
    for name in ("f32_16x16x8bf16", "f32_16x16x16f16"):
        i = cdna1[name].replace(k=2, L=2, rho="RZ-E8M13")
        a, b, c = (
            near_one(rng, i.a_format, (20, 2)),
            near_one(rng, i.b_format, (2, 40)),
            near_one(rng, fp32, (20, 40)),
        )
        product = i.dot_add(a[:, None], b.T[None], np.uint32(0))
        c[::2] = (product ^ np.uint32(1 << 31))[::2] + rng.integers(0, 2000, (10, 40)).astype(np.uint32)
        assert (run(i, a, b, c) == executable(i, a, b, c)).all()


def test_products_are_exact_in_the_float_they_are_held_in() -> None:
    """Significands of 12 and 13 bits make products of 25, which float32 does not hold."""
    twelve, thirteen = (Format(f"m{m}", 16, 15 - m, m, 3, Specials.IEEE, None) for m in (11, 12))
    i = hopper["HMMA.16816.F32"].replace(k=1, L=1, F=40, a_format=twelve, b_format=thirteen)
    rng = np.random.default_rng(4)
    a, b = random_codes(rng, twelve, (20, 1)), random_codes(rng, thirteen, (1, 40))
    c = np.zeros((20, 40), np.uint32)
    assert (run(i, a, b, c) == executable(i, a, b, c)).all()
    assert widths(i.spec, 40, 1).value is np.float64  # type: ignore[union-attr]


# ---- any parameters ------------------------------------------------------------------------------------------------

SEEDS = {
    "sfma": [cdna2["f32_16x16x4f32"], cdna2["f64_16x16x4f64"]],
    "gps": [cdna2["f32_16x16x16f16"], cdna2["f32_16x16x8bf16"]],
    "fda": [
        hopper["HMMA.16816.F32"],
        hopper["HMMA.1688.F32.TF32"],
        rtx_blackwell["QMMA.SF.16832.F32.E5M2.E3M2.E8"],
    ],
    "gdfs": [
        rtx_blackwell["OMMA.SF.16864.F32.E2M1.E2M1.UE4M3.4X"],
        rtx_blackwell["OMMA.SF.16864.F32.E2M1.E2M1.E8"],
    ],
    "fdrda": [cdna3["f32_16x16x16_f16"], cdna3.revision("paper-v1")["f32_16x16x16_bf16"]],
    "gfdrda": [cdna3["f32_16x16x32_fp8_bf8"]],
    "efda": [cdna1["f32_16x16x16f16"], cdna1["f32_16x16x8bf16"]],
    "lowered": [hopper["mma.m16n8k32.f32.e4m3.e4m3.f32"], hopper["mma.m16n8k32.f16.e4m3.e4m3.f16"]],
    "joined_fda": [datapath["joined(k=4,frac_bits=24)"]],
    "fma": [datapath["fma(k=1,a=bf16,rho=IEEE-BF16)"]],
    "adder_tree": [datapath["tree(k=4,a=fp16)"]],
}

#: formats that nothing has: few bits, another bias, no infinity, nine bits
OPERANDS = [
    "fp16", "bf16", "tf32", "e5m2", "e4m3", "e5m2fnuz", "e4m3fnuz", "e3m2", "e2m3", "e2m1",
    Format("tiny", 7, 4, 2, 5, Specials.IEEE, None),
    Format("least", 3, 1, 1, 0, Specials.FN, None),
    Format("nine", 9, 5, 3, 15, Specials.FN, None),
    Format("wide", 16, 9, 6, 255, Specials.IEEE, None),
]  # fmt: skip
RESULTS = ["fp32", "fp32", "fp16", "bf16", "e5m2"]


def any_rho(rng: random.Random, fmt: Format) -> Conversion:
    bits = rng.choice((fmt.fraction_bits, fmt.fraction_bits, rng.randint(1, fmt.fraction_bits)))
    rounding, signed_zero = rng.choice(DETERMINISTIC), rng.random() < 0.5
    return Conversion(f"{rounding.name}-{fmt}-{bits}", fmt, bits, rounding, signed_zero)


def any_changes(rng: random.Random, algorithm: str) -> dict[str, Any]:
    """Values for some of the parameters of an algorithm, not all of which make sense together."""
    of_d = Format.named(rng.choice(RESULTS))
    k = rng.choice((1, 2, 4, 6, 8, 16))
    L = rng.choice([n for n in (1, 2, 3, 4, 8, 16) if k % n == 0])
    a, b = rng.choice(OPERANDS), rng.choice(OPERANDS)
    fused = {
        "a_format": a,
        "b_format": b,
        "k": k,
        "L": L,
        "e_zero": rng.choice((None, -400, -133, -20, -3, 0, 2, 90)),
    }
    ends = {"c_format": of_d, "d_format": of_d, "rho": any_rho(rng, of_d)}
    if rng.random() < 0.2 and k == L:
        ends["c_format"] = rng.choice(("fp16", "fp32", "tf32", "e4m3", "fp64"))
    single = {"rho": any_rho(rng, fp32), "k": k, "L": L, "a_format": a, "b_format": b}
    scaled: dict[str, Any] = {}
    if rng.random() < 0.6:
        scaled = {"scale_format": rng.choice((None, "ue8m0")), "scale_block": rng.choice((1, L, k))}
        scaled["scale_block"] *= scaled["scale_format"] is not None
    F = rng.randint(1, most_places(L))
    groups = rng.choice((1, 2, 4))
    down = {
        "F": rng.randint(23, 40), "dot_bits": rng.randint(30, 40), "sum_bits": rng.choice((None, 24, 31, 40)),
        "skip_zero_products": rng.random() < 0.5, "cut": rng.choice(("RD", "RZ")), "inputs_first": rng.random() < 0.5,
    }  # fmt: skip
    order = tuple(rng.sample(range(k), k))
    sums = [any_rho(rng, fp32) for _ in range(2)]
    changes: dict[str, dict[str, Any]] = {
        "sfma": {"rho": any_rho(rng, rng.choice((fp32, fp64))), "k": k},
        "gps": {"G": rng.choice((2, 4, 8)), "k": 16, "a_format": a, "b_format": b},
        "fda": {**fused, **ends, **scaled, "F": F},
        "gdfs": {
            **ends, "F": rng.randint(8, 40), "G": L, "L": L * groups, "k": 2 * L * groups, "scale_block": L,
            "scale_format": rng.choice(("ue4m3", "ue8m0")), "e_zero": fused["e_zero"],
        },
        "fdrda": {**single, **down},
        "gfdrda": {**single, **down, "c_reach": rng.randint(-2, 60)},
        "efda": single,
        "joined_fda": {**fused, **ends, "F": F},
        "fma": {
            **ends, "k": k, "a_format": a, "b_format": b, "flush_inputs": rng.random() < 0.3,
            "nan": rng.choice(("ANY", "DEFAULT")),
        },
        "adder_tree": {
            "a_format": a, "b_format": b, "product": any_rho(rng, fp32), "sums": tuple(sums), "rho": sums[-1],
            "order": rng.choice(("((0+1)+(2+3))+c", "c+(0+(2+(1+3)))", "((c+0)+1)+(2+3)")),
        },
        "lowered": {
            **fused, **ends, "F": F, "order": order, "operands": rng.choice(("fp16", "fp32")),
            "c_format": of_d, "addition": any_rho(rng, of_d),
        },
    }  # fmt: skip
    chosen = changes[algorithm]
    if algorithm in ("fda", "fdrda", "gfdrda", "efda") and rng.random() < 0.3:  # its own formats
        chosen = {name: value for name, value in chosen.items() if name not in ("a_format", "b_format")}
    return chosen


def any_unit(rng: random.Random, algorithm: str) -> Instruction:
    while True:
        try:
            return rng.choice(SEEDS[algorithm]).replace(
                **any_changes(rng, algorithm), name=f"any {algorithm}"
            )
        except ValueError:
            continue


def assert_kernel_is_executable(i: Instruction, seed: int) -> None:
    rng, spec, steps = np.random.default_rng(seed), i.spec, 2 if i.c_format == i.d_format else 1
    for make in (random_codes, near_one):
        m, n = 4, 37
        a, b = make(rng, i.a_format, (m, steps * i.k)), make(rng, i.b_format, (steps * i.k, n))
        c, scaled = make(rng, i.c_format, (m, n)), []
        if spec.scale_format is not None:
            shapes = (m, steps * spec.scales), (steps * spec.scales, n)
            scaled = [make(rng, spec.scale_format, shape) for shape in shapes]
        mine, theirs = run(i, a, b, c, *scaled, steps=steps), executable(i, a, b, c, *scaled, steps=steps)
        wrong = np.argwhere(mine != theirs)
        assert not len(wrong), f"{i}: {len(wrong)} of {mine.size} differ"


ANY = [
    pytest.param(algorithm, seed, marks=pytest.mark.slow if seed or algorithm not in ("sfma", "gps") else ())
    for algorithm in SEEDS  # most have to be compiled
    for seed in range(12)
]


@pytest.mark.parametrize(("algorithm", "seed"), ANY)
def test_kernels_of_any_parameters_are_the_executable(algorithm: str, seed: int) -> None:
    """A kernel is chosen for what it computes only: sfma's ignored ρ."""
    assert_kernel_is_executable(any_unit(random.Random(f"{algorithm} {seed}"), algorithm), seed)


def test_a_kernel_of_the_processors_arithmetic_is_for_its_rounding_only() -> None:
    i = cdna2["f32_16x16x4f32"]
    assert isinstance(kernel_for(i.spec), SfmaKernel) == has_fma()
    for rho in (
        "RZ-E8M13",
        "RZ-FP32",
        "RNE-FP32",
        "RNA-FP32±0",
        Conversion("x", fp32, 22, Rounding.RNE, True),
    ):
        assert isinstance(kernel_for(i.replace(rho=rho).spec), RowsKernel)
    assert isinstance(kernel_for(ampere["DMMA.884"].replace(nan="FIRST").spec), RowsKernel)
    one = i.replace(k=1, rho="RZ-E8M13")
    codes = [np.array([[x]], np.uint32) for x in (0x3F000000, 0xBF000000, 0xCB800001)]
    assert run(one, *codes) == one.dot_add(*(x[0] for x in codes)) == 0xCB800000


def test_kernels_are_compiled_for_a_format_and_not_for_its_name() -> None:
    rng = np.random.default_rng(3)
    for bias in (5, 7):
        fmt = Format("same", 7, 4, 2, bias, Specials.IEEE, None)
        i = hopper["HMMA.16816.F32"].replace(k=4, L=4, a_format=fmt, b_format=fmt, name=f"same {bias}")
        a, b = random_codes(rng, fmt, (3, 4)), random_codes(rng, fmt, (4, 5))
        c = near_one(rng, fp32, (3, 5))
        assert (run(i, a, b, c) == executable(i, a, b, c)).all()


@pytest.mark.parametrize(
    "i", [hopper["HMMA.16816.F32"], hopper["HMMA.16816.F16"], cdna3["f32_16x16x16_f16"]], ids=label
)
def test_parts_of_steps_are_what_the_whole_is(i: Instruction) -> None:
    rng = np.random.default_rng(5)
    a, b = near_one(rng, i.a_format, (3, 5 * i.k)), near_one(rng, i.b_format, (5 * i.k, 9))
    c = near_one(rng, i.c_format, (3, 9))
    kernel = kernel_for(i.spec)
    planes = kernel.rows(a), kernel.columns(b)
    d = c.astype(i.d_format.word)
    for start, stop in ((0, 2), (2, 2), (2, 5)):
        kernel.run(*planes, d, start, stop)
    assert (d == run(i, a, b, c, steps=5)).all()


def test_every_instruction_has_a_compiled_kernel() -> None:
    for architecture in ARCHITECTURES.values():
        for i in architecture:
            assert not isinstance(kernel_for(i.spec), PlainKernel), i.label


TILE, PAIR = sapphire_rapids["TDPBF16PS"], sapphire_rapids["VDPBF16PS"]


@pytest.mark.parametrize("i", [*map(TILE.configured, (2, 8, 10, 32)), PAIR, PAIR.replace(k=8)], ids=label)
def test_flushed_results_are_tiny_where_the_executable_s_are(i: Instruction) -> None:
    """Products and sums about 2^-126, of which some are that only once they are rounded; and NaNs with payloads."""
    L = i.k
    rng = np.random.default_rng(L)
    m, n, steps = 40, 260, 2

    def codes(shape: tuple[int, int]) -> Any:
        fields = (
            rng.integers(62, 66, shape) << 7 | rng.integers(0, 128, shape) | rng.integers(0, 2, shape) << 15
        )
        rare = rng.random(shape) < 0.003
        return np.where(rare, rng.integers(0, 1 << 16, shape), fields).astype(np.uint16)

    a, b = codes((m, steps * L)), codes((steps * L, n))
    c = rng.integers(0, 4 << 23, (m, n), np.uint32)
    mine, theirs = run(i, a, b, c, steps=steps), executable(i, a, b, c, steps=steps)
    assert (mine == theirs).all()
    assert (mine & 0x7F800000 == 0).any()


def test_doubtful_results_are_computed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """2^-126 − ¾·2^-150: the processor rounds that to 2^-126; to 24 bits with any exponent, it is less, so zero."""
    tile, pair = TILE.configured(4), PAIR
    small, smallest, large = bf16.code("0x1p-63"), bf16.code("0x1p-76"), bf16.code("-0x1.8p-75")
    a, b = np.array([[small, 0, large, 0]], np.uint16), np.array([[small], [0], [smallest], [0]], np.uint16)
    c = np.zeros((1, 1), np.uint32)
    assert run(tile, a, b, c) == executable(tile, a, b, c) == 0
    a, b = np.array([[large, small]], np.uint16), np.array([[smallest], [small]], np.uint16)
    assert run(pair, a, b, c) == executable(pair, a, b, c) == 0
    more = bf16.code("0x1.8p-63")  # so that the second result of four is told by none of those after it
    four = (
        np.array([[large, small, 0, more]], np.uint16),
        np.array([[smallest], [small], [0], [small]], np.uint16),
    )
    assert (
        run(pair.replace(k=4), *four, c) == executable(pair.replace(k=4), *four, c) == fp32.code("0x1.8p-126")
    )
    monkeypatch.setattr(AgainKernel, "_again", lambda *_: None)
    assert run(pair, a, b, c) == 0x00800000


def test_which_nan_is_the_first_one() -> None:
    i = sapphire_rapids["VFMADD231PH"]
    nans = [0x3C00, 0x7C01, 0xFE02, 0x7C00, 0x0000]
    a, b = np.array([[x] for x in nans], np.uint16), np.array([nans], np.uint16)
    for code in (*nans, 0xFC03):
        c = np.full((5, 5), code, np.uint16)
        assert (run(i, a, b, c) == executable(i, a, b, c)).all()


def test_a_sum_rounded_to_odd_does_not_overflow_where_one_rounded_to_nearest_does(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    i = armv8_6["BFDOT"]
    a, b = np.array([[0x7F00, 0]], np.uint16), np.array([[0x3F80], [0]], np.uint16)
    c = np.array([[0x7EFFFFFF, 0x7F000000]], np.uint32)
    b = b.repeat(2, axis=1)
    assert run(i, a, b, c).tolist() == executable(i, a, b, c).tolist() == [[0x7F7FFFFF, 0x7F800000]]
    monkeypatch.setattr(AgainKernel, "_again", lambda *_: None)
    assert run(i, a, b, c).tolist() != [[0x7F7FFFFF, 0x7F800000]]


def test_rows_stand_in_where_a_kernel_cannot_hold_the_numbers() -> None:
    i = rtx_blackwell["QMMA.SF.16832.F32.E5M2.E3M2.E8"]
    wide = i.replace(L=32, k=32, scale_block=16)  # two scales within a step
    assert type(kernel_for(wide.spec)) is RowsKernel
    rng = np.random.default_rng(2)
    a, b = near_one(rng, i.a_format, (4, 64)), near_one(rng, i.b_format, (64, 7))
    s, t = near_one(rng, i.spec.scale_format, (4, 4)), near_one(rng, i.spec.scale_format, (4, 7))
    c = near_one(rng, fp32, (4, 7))
    expected = executable(wide, a, b, c, s, t, steps=2)
    assert (run(wide, a, b, c, s, t, steps=2) == expected).all()
    plain = PlainKernel(wide.spec)
    plain.run(plain.rows(a, s), plain.columns(b, t), c, 0, 2)
    assert (c == expected).all()


# ---- widths ------------------------------------------------------------------------------------------------


def test_widths_grow_with_what_they_must_hold() -> None:
    h = ampere["HMMA.16816.F32"].replace(k=16)
    assert str(widths(h.spec, 24, 8)) == "exponents int8, products float32, terms int32 in sums of 8"
    # 16 · (2^11 - 1)^2 · 2^5 = 2^31 - 2^21 + 2^9, below 2^31; one bit more is not
    assert widths(h.spec, 25, 16).chunk == 16  # type: ignore[union-attr]
    assert widths(h.spec, 26, 16).chunk == 8  # type: ignore[union-attr]
    assert widths(h.spec, 30, 16).term is np.int64  # type: ignore[union-attr]
    assert widths(h.replace(a_format=fp32, b_format=fp32).spec, 25, 8).value is np.float64  # type: ignore[union-attr]


def test_the_largest_terms_do_not_overflow() -> None:
    """All significands all ones and all exponents alike: every sum is as large as it gets."""
    for i in (
        hopper["HMMA.16816.F32"],
        rtx_blackwell["QMMA.16832.F32.E4M3.E4M3"],
        cdna3["f32_16x16x32_fp8_fp8"],
    ):
        for F in (i.parameters["F"], i.parameters["F"] + 3):
            j = i.replace(F=F)
            ones = (1 << i.a_format.fraction_bits) - 1
            code = i.a_format.bias << i.a_format.fraction_bits | ones
            for sign in (0, i.a_format.sign_mask):
                a = np.full((1, i.k), code | sign, i.a_format.word)
                b = np.full((i.k, 3), code, i.b_format.word)
                c = np.full((1, 3), 0x407FFFFF | (1 << 31 if sign else 0), np.uint32)
                assert (run(j, a, b, c) == executable(j, a, b, c)).all()


@pytest.mark.parametrize("F", [13, 24, 25, 29])
def test_a_scaled_product_cut_to_an_integer_is_the_stage_align(F: int) -> None:
    """Every fp16 exponent pair, at every distance from e_max: what `widths` argues, tried."""
    i = hopper["HMMA.1688.F32"].replace(k=2, L=2, F=F)
    kernel = kernel_for(i.spec)
    assert isinstance(kernel, FdaKernel)
    assert kernel.widths.value is np.float32
    fields = np.arange(31, dtype=np.uint16)
    numbers = (fields << 10 | np.uint16(0x2A5)).reshape(-1, 1)
    lead = ((np.arange(1, 31, 3, dtype=np.uint16)) << 10).reshape(-1)
    for first in lead:
        a = np.concatenate([numbers, np.full_like(numbers, first)], axis=1)
        b = np.stack([numbers.reshape(-1), np.full(31, 0x3C00, np.uint16)])
        c = np.zeros((31, 31), np.uint32)
        assert (run(i, a, b, c) == executable(i, a, b, c)).all()


# ---- importing ---------------------------------------------------------------------------------------------


def test_importing_compiles_nothing() -> None:
    code = "import sys, mmaformal; from mmaformal import matmul; print('numba' in sys.modules, 'z3' in sys.modules)"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.split() == ["False", "False"]
