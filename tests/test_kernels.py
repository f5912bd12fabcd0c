"""Kernels compute what the plain executable does, bit for bit; the golden vectors, and inputs that aim at kernels."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_golden import FILES, instruction_of, kept_rows, load, scales

from mmaformal import ARCHITECTURES, Instruction, ampere, cdna1, cdna2, cdna3, hopper, rtx_blackwell, volta
from mmaformal.algorithms import Rounding
from mmaformal.formats import Format, Specials, fp32
from mmaformal.kernels import kernel_for
from mmaformal.kernels.fused import FdaKernel
from mmaformal.kernels.plain import PlainKernel
from mmaformal.kernels.widths import widths
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
]

#: parameters no hardware has
HYPOTHETICAL = [
    hopper["HMMA.16816.F32"].replace(F=30),
    hopper["HMMA.16816.F32"].replace(F=48),
    hopper["HMMA.16816.F32"].replace(e_zero=None),
    hopper["HMMA.16816.F32"].replace(e_zero=-20),
    hopper["HMMA.16816.F16"].replace(e_zero=-3),
    hopper["HMMA.1688.F32"].replace(F=8, L=2),
    hopper["QGMMA.64x8x32.F32.E4M3.E5M2"].replace(L=1),
    rtx_blackwell["QMMA.SF.16832.F32.E5M2.E3M2.E8"].replace(L=8),
    rtx_blackwell["OMMA.SF.16864.F32.E2M1.E2M1.E8"].replace(e_zero=None, L=32),
    cdna2["f32_16x16x16f16"].replace(G=8),
    cdna3["f32_16x16x16_f16"].replace(cut=Rounding.RZ),
    cdna3["f32_16x16x16_bf16"].replace(skip_zero_products=False, sum_bits=None),
    cdna3["f32_16x16x32_fp8_bf8"].replace(dot_bits=24, c_reach=3),
]


def label(i: Instruction) -> str:
    return i.label


def random_codes(rng: np.random.Generator, fmt: Format, shape: tuple[int, ...]) -> Any:
    return rng.integers(0, fmt.codes - 1, shape, np.uint64, endpoint=True).astype(fmt.word)


def near_one(rng: np.random.Generator, fmt: Format, shape: tuple[int, ...]) -> Any:
    """Numbers of a few binades around 1, some zeros, few others: sums that cancel and round."""
    sign = rng.integers(0, 2, shape).astype(np.uint64) << np.uint64(fmt.storage_bits - 1 if fmt.signed else 0)
    spread = min(6, fmt.max_exponent)
    field = np.clip(fmt.bias + rng.integers(-spread, spread, shape, endpoint=True), 0, None).astype(np.uint64)
    fraction = rng.integers(0, 1 << fmt.fraction_bits, shape).astype(np.uint64)
    word = (field << np.uint64(fmt.fraction_bits) | fraction) << np.uint64(fmt.ignored_low_bits)
    word = np.where(rng.random(shape) < 0.1, np.uint64(0), word)
    if fmt.signed:
        word |= np.where((word == 0) & (fmt.specials == Specials.FNUZ), np.uint64(0), sign)  # −0 would be NaN
    word = np.where(rng.random(shape) < 0.002, random_codes(rng, fmt, shape).astype(np.uint64), word)
    return (word & np.uint64(fmt.codes - 1)).astype(fmt.word)


def run(
    i: Instruction, a: Any, b: Any, c: Any, scale_a: Any = None, scale_b: Any = None, steps: int = 1
) -> Any:
    """A (m×K) · B (K×n) + C by the kernel."""
    kernel = kernel_for(i.spec)
    d = c.astype(i.d_format.word)
    kernel.run(kernel.rows(a, scale_a), kernel.columns(b, scale_b), d, 0, steps)
    return d


def executable(
    i: Instruction, a: Any, b: Any, c: Any, scale_a: Any = None, scale_b: Any = None, steps: int = 1
) -> Any:
    """The same by the plain executable, one instruction after the other."""
    for step in range(steps):
        part = slice(step * i.k, (step + 1) * i.k)
        blocks = slice(step * i.spec.scales, (step + 1) * i.spec.scales)
        scaled = () if scale_a is None else (scale_a[:, None, blocks], scale_b[blocks].T[None])
        c = i.dot_add(a[:, None, part], b[part].T[None], c, *scaled)
    return c


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_golden_vectors(path: Path) -> None:
    """Each block of 34 cases as a matrix product, of which the diagonal is known."""
    arrays, meta = load(path)
    size = 34
    for output in meta["outputs"]:
        i = instruction_of(output["instructions"][0])
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
@pytest.mark.parametrize("i", WAYS + HYPOTHETICAL, ids=label)
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


def test_the_plain_executable_stands_in_where_a_kernel_cannot_hold_the_numbers() -> None:
    i = rtx_blackwell["QMMA.SF.16832.F32.E5M2.E3M2.E8"]
    wide = i.replace(L=32, k=32, scale_block=16)  # two scales within a step
    assert isinstance(kernel_for(wide.spec), PlainKernel)
    rng = np.random.default_rng(2)
    a, b = near_one(rng, i.a_format, (4, 64)), near_one(rng, i.b_format, (64, 7))
    s, t = near_one(rng, i.spec.scale_format, (4, 4)), near_one(rng, i.spec.scale_format, (4, 7))
    c = near_one(rng, fp32, (4, 7))
    assert (run(wide, a, b, c, s, t, steps=2) == executable(wide, a, b, c, s, t, steps=2)).all()


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
