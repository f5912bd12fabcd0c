"""matmul: what it computes is said by dot products and NumPy's IEEE additions; operands, threads, interrupts."""

from __future__ import annotations

import threading
from itertools import pairwise
from operator import attrgetter
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from mmaformal import (
    Instruction,
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
from mmaformal.formats import Format, Specials
from mmaformal.rounding import Conversion, Rounding
from mmaformal.workers import ProgressReport, Workers

H = hopper["HMMA.16816.F32"]
HALF = hopper["HMMA.16816.F16"]
Q = hopper["QGMMA.64x8x32.F32.E4M3.E4M3"]
MINE = Format("mine", 16, 6, 9, 31, Specials.IEEE, None)
label = attrgetter("label")
SCALED = rtx_blackwell["QMMA.SF.16832.F32.E4M3.E4M3.E8"]


def chain(i: Instruction, A: Any, B: Any, C: Any, start: int = 0, stop: int | None = None) -> Any:
    """Instructions start … stop - 1, one after the other, by `Instruction.dot_add` on operands padded here."""
    missing = -A.shape[1] % i.k
    A, B = np.pad(A, ((0, 0), (0, missing))), np.pad(B, ((0, missing), (0, 0)))
    d = C
    for step in range(start, A.shape[1] // i.k if stop is None else stop):
        part = slice(step * i.k, (step + 1) * i.k)
        d = i.dot_add(A[:, None, part], B[part].T[None], d)
    return d


def floats(i: Instruction, codes: Any) -> Any:
    return codes.view(i.d_format.dtype).astype(np.float32)


def problem(i: Instruction, m: int, n: int, k: int, seed: int = 0) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(seed)
    A = (4 * rng.normal(size=(m, k))).astype(i.a_format.dtype)
    B = (4 * rng.normal(size=(k, n))).astype(i.b_format.dtype)
    C = (4 * rng.normal(size=(m, n))).astype(i.c_format.dtype)
    return A.view(i.a_format.word), B.view(i.b_format.word), C.view(i.c_format.word)


@pytest.mark.parametrize("i", [H, HALF, Q, cdna2["f32_16x16x4f32"], cdna3["f32_16x16x32_fp8_fp8"]], ids=str)
@pytest.mark.parametrize("shape", [(1, 1, 1), (3, 5, 16), (17, 300, 130)])
def test_any_shape_is_a_chain_of_instructions(i: Instruction, shape: tuple[int, int, int]) -> None:
    A, B, C = problem(i, *shape)
    assert (matmul(A, B, C, instruction=i) == chain(i, A, B, C)).all()
    zero = np.zeros_like(C)
    assert (matmul(A, B, instruction=i) == chain(i, A, B, zero)).all()


def test_nothing_to_sum_gives_c() -> None:
    A, B, C = problem(H, 2, 3, 0)
    assert (matmul(A, B, C, instruction=H) == C).all()
    assert matmul(A[:0], B, instruction=H).shape == (0, 3)


def test_k_longer_than_what_is_decoded_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mmaformal.gemm._PLANES_K", 48)
    monkeypatch.setattr("mmaformal.gemm._PLANES_BYTES", 1)
    A, B, C = problem(H, 9, 520, 200)
    assert (matmul(A, B, C, instruction=H) == chain(H, A, B, C)).all()
    monkeypatch.undo()
    promoted = matmul(A, B, C, instruction=H, promote_every=5)
    monkeypatch.setattr("mmaformal.gemm._PLANES_K", 48)
    assert (matmul(A, B, C, instruction=H, promote_every=5) == promoted).all()


# ---- dividing K --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("i", [H, HALF, Q], ids=str)
def test_promotion(i: Instruction) -> None:
    A, B, C = problem(i, 4, 7, 11 * i.k + 3)
    total = floats(i, C)
    zero = np.zeros_like(C)
    for step in range(0, 12, 4):
        total = total + floats(i, chain(i, A, B, zero, step, step + 4))
    expected = total.astype(i.d_format.dtype).view(i.d_format.word)
    assert (matmul(A, B, C, instruction=i, promote_every=4) == expected).all()
    assert (expected != chain(i, A, B, C)).any()  # or nothing was tested


@pytest.mark.parametrize("order", ["sequential", "pairwise"])
@pytest.mark.parametrize("with_c", [True, False])
def test_split_k(order: Any, with_c: bool) -> None:
    A, B, C = problem(H, 40, 70, 16 * 16)
    zero = np.zeros_like(C)
    ranges = ((0, 4), (4, 8), (8, 12), (12, 16))  # ⌈16 / 5⌉ = 4 instructions each: the fifth range is empty
    p = [floats(H, chain(H, A, B, zero, *each)) for each in ranges]
    c = floats(H, C)
    if order == "sequential":
        expected = (((c + p[0]) if with_c else p[0]) + p[1] + p[2]) + p[3]
    else:
        expected = (p[0] + p[1]) + (p[2] + p[3])
        expected = expected + c if with_c else expected
    got = matmul(A, B, C if with_c else None, instruction=H, split_k=5, order=order)
    assert (got == expected.view(np.uint32)).all()
    other = matmul(A, B, C if with_c else None, instruction=H, split_k=3, order=order)
    assert (got != other).any()


def test_pairwise_with_an_odd_one_out() -> None:
    A, B, C = problem(H, 6, 7, 16 * 5)
    p = [floats(H, chain(H, A, B, np.zeros_like(C), i, i + 1)) for i in range(5)]
    expected = ((p[0] + p[1]) + (p[2] + p[3])) + p[4]
    assert (matmul(A, B, instruction=H, split_k=5, order="pairwise") == expected.view(np.uint32)).all()


def test_stream_k() -> None:
    """Four tiles of six instructions among five workers of ⌈24/5⌉ = 5: tile t is cut at the multiples of five."""
    A, B, C = problem(H, 20, 13, 16 * 6)
    got = matmul(A, B, C, instruction=H, stream_k=5, tile=(12, 8))
    cuts = {0: [5], 1: [4], 2: [3], 3: [2]}
    corners = [(0, 0), (0, 8), (12, 0), (12, 8)]
    for tile, (row, column) in enumerate(corners):
        rows, columns = slice(row, min(row + 12, 20)), slice(column, min(column + 8, 13))
        a, b, c = A[rows], B[:, columns], C[rows, columns]
        total = floats(H, np.ascontiguousarray(c))
        edges = [0, *cuts[tile], 6]
        for start, stop in pairwise(edges):
            total = total + floats(H, chain(H, a, b, np.zeros_like(c), start, stop))
        assert (got[rows, columns] == total.view(np.uint32)).all()
    one = matmul(A, B, C, instruction=H, stream_k=1, tile=(12, 8))
    assert (one == chain(H, A, B, C)).all()


def test_a_merged_nan_is_the_model_s() -> None:
    A, B, C = problem(H, 2, 2, 64)
    A[0, 0] = 0x7C01
    got = matmul(A, B, C, instruction=H, split_k=2)
    assert (got[0] == 0x7FFFFFFF).all()
    assert np.isfinite(got[1].view(np.float32)).all()


# ---- operands ----------------------------------------------------------------------------------------------


def test_floats_give_floats() -> None:
    A, B, C = problem(Q, 5, 6, 64)
    D = matmul(A, B, C, instruction=Q)
    typed = A.view(ml_dtypes.float8_e4m3fn), B.view(ml_dtypes.float8_e4m3fn), C.view(np.float32)
    got = matmul(*typed, instruction=Q)
    assert got.dtype == np.float32
    assert (got.view(np.uint32) == D).all()
    assert (
        matmul(*(x.view(np.float16) for x in problem(HALF, 2, 2, 16)), instruction=HALF).dtype == np.float16
    )


class Exported:
    """An array that offers nothing but DLPack."""

    def __init__(self, array: Any) -> None:
        self.array = array

    def __dlpack__(self, **options: Any) -> Any:
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self) -> Any:
        return self.array.__dlpack_device__()


def test_dlpack_and_strides() -> None:
    A, B, C = problem(H, 5, 6, 32)
    D = matmul(A, B, C, instruction=H)
    through = [Exported(x.view(t)) for x, t in ((A, np.float16), (B, np.float16), (C, np.float32))]
    assert (matmul(*through, instruction=H).view(np.uint32) == D).all()
    assert (matmul(np.asfortranarray(A), B[:, ::-1][:, ::-1], C.T.copy().T, instruction=H) == D).all()


def test_block_scales_at_the_end_of_k() -> None:
    """K = 72 with a scale for each 32: the third block has 8 products and padding."""
    rng = np.random.default_rng(3)
    A, B, C = problem(SCALED, 4, 5, 72)
    sa = rng.integers(120, 134, (4, 3)).astype(np.uint8)
    sb = rng.integers(120, 134, (3, 5)).astype(np.uint8)
    pad_a, pad_b = np.pad(A, ((0, 0), (0, 24))), np.pad(B, ((0, 24), (0, 0)))
    d = C
    for step in range(3):
        part = slice(32 * step, 32 * step + 32)
        one = slice(step, step + 1)
        d = SCALED.dot_add(pad_a[:, None, part], pad_b[part].T[None], d, sa[:, None, one], sb[one].T[None])
    assert (matmul(A, B, C, instruction=SCALED, scale_a=sa, scale_b=sb) == d).all()


# ---- no products, no outputs, types of c ---------------------------------------------------------------------------

#: c narrower than d, wider than d, and of another kind; c of tf32, whose low bits are not read
WIDER = H.replace(rho="RNE-FP16", d_format="fp16", name="c wider")
OTHERS = [
    volta["HMMA.884.F32.F16"],
    WIDER,
    *(
        pytest.param(i, marks=pytest.mark.slow)  # each has a kernel of its own to compile
        for i in (
            turing["HMMA.884.F32.F16"],
            H.replace(c_format="tf32", name="c tf32"),
            H.replace(c_format="e4m3", name="c e4m3"),
            H.replace(c_format="fp64", d_format="bf16", rho="RNE-BF16", name="fp64 to bf16"),
            H.replace(
                rho=Conversion("RZ", MINE, 9, Rounding.RZ), d_format=MINE, name="to no type of NumPy's"
            ),
        )
    ),
]
EVERY_WAY: list[dict[str, Any]] = [
    {},
    {"promote_every": 1},
    {"split_k": 3},
    {"split_k": 3, "order": "pairwise"},
    {"stream_k": 2},
]


@pytest.mark.parametrize(
    "i", [H, HALF, Q, cdna2["f32_16x16x4f32"], cdna2["f32_16x16x16f16"], *OTHERS], ids=label
)
def test_no_product_is_an_instruction_of_zero_products(i: Instruction) -> None:
    """With K = 0, c was returned as it was: fp16 codes as fp32, 1.0 as 2.15e-41."""
    rng = np.random.default_rng(1)
    C = rng.integers(0, i.c_format.codes, (3, 70), dtype=np.uint64).astype(i.c_format.word)
    none = np.zeros((3, 0), i.a_format.word), np.zeros((0, 70), i.b_format.word)
    zeros = np.zeros(i.k, i.a_format.word), np.zeros(i.k, i.b_format.word)
    d = matmul(*none, C, instruction=i)
    assert d.dtype == i.d_format.word
    assert (d == i.dot_add(*zeros, C)).all()
    assert (matmul(*none, instruction=i) == 0).all()


@pytest.mark.parametrize("how", EVERY_WAY, ids=str)
@pytest.mark.parametrize("i", [H, WIDER, volta["HMMA.884.F32.F16"]], ids=label)
def test_no_product_in_every_way_of_dividing_k(i: Instruction, how: dict[str, Any]) -> None:
    A, B, C = np.ones((2, 0), np.float16), np.ones((0, 3), np.float16), np.full((2, 3), 1.5, i.c_format.dtype)
    d = matmul(A, B, C, instruction=i, **how)
    assert (d == 1.5).all()
    assert d.dtype == i.d_format.dtype


@pytest.mark.parametrize("how", EVERY_WAY, ids=str)
@pytest.mark.parametrize("i", OTHERS, ids=label)
def test_c_of_another_type_than_d(i: Instruction, how: dict[str, Any]) -> None:
    """Codes of a c wider than d were cut: 1.5 gave 0."""
    A, B, C = np.ones((2, i.k), i.a_format.dtype), np.ones((i.k, 3), i.b_format.dtype), np.full((2, 3), 1.5)
    d = matmul(A, B, C.astype(i.c_format.dtype), instruction=i, **how)
    codes = d.view(i.d_format.word)
    assert (codes == i.d_format.code(str(i.k + 1.5))).all()


@pytest.mark.parametrize("how", EVERY_WAY, ids=str)
@pytest.mark.parametrize("shape", [(2, 16, 0), (0, 16, 2), (0, 0, 0), (2, 0, 0), (0, 0, 3)], ids=str)
def test_no_outputs(shape: tuple[int, int, int], how: dict[str, Any]) -> None:
    m, k, n = shape
    for i in (H, SCALED):
        A, B, C = problem(i, m, n, k)
        blocks = -(-k // 32)
        ones = np.ones((m, blocks), np.uint8), np.ones((blocks, n), np.uint8)
        scales = {} if i is H else {"scale_a": ones[0], "scale_b": ones[1]}
        d = matmul(A, B, C, instruction=i, progress=True, **scales, **how)
        assert (d.shape, d.dtype) == ((m, n), np.uint32)


@pytest.mark.slow
def test_totals_are_rounded_once_to_any_type() -> None:
    """1 + 2^-8 + 2^-30: a tie in bf16 but for what fp32 would lose."""
    i = H.replace(c_format="fp64", d_format="bf16", rho="RNE-BF16")
    A, B = np.array([[2.0**-8]], np.float16), np.array([[1.0]], np.float16)
    for low, wanted in ((2.0**-30, 1 + 2.0**-7), (0.0, 1.0), (-(2.0**-30), 1.0)):
        d = matmul(A, B, np.array([[1 + low]]), instruction=i, promote_every=1)
        assert d.astype(float) == wanted
    for special in (np.inf, -np.inf, np.nan, 1e300):
        d = matmul(A, B, np.array([[special]]), instruction=i, promote_every=1).astype(float)
        assert np.array_equal(d, [[special if special != 1e300 else np.inf]], equal_nan=True)


@pytest.mark.parametrize(
    "wrong",
    [{"split_k": 2.0}, {"split_k": True}, {"promote_every": "4"}, {"jobs": 1.5}, {"tile": (128, 64.0)}],
    ids=str,
)
def test_what_is_no_integer_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(TypeError, match="is an integer, not"):
        matmul(*problem(H, 3, 4, 16), instruction=H, **wrong)


def test_no_threads_are_refused() -> None:
    with pytest.raises(ValueError, match="jobs is 0"):
        matmul(*problem(H, 3, 4, 16), instruction=H, jobs=0)


def test_errors() -> None:
    A, B, C = problem(H, 3, 4, 16)
    with pytest.raises(ValueError, match="M×K and K×N"):
        matmul(A, B[:-1], instruction=H)
    with pytest.raises(ValueError, match="C has shape"):
        matmul(A, B, C[:-1], instruction=H)
    with pytest.raises(TypeError, match="needs unsigned integer bit patterns"):
        matmul(A.astype(np.float64), B, instruction=H)
    with pytest.raises(TypeError, match="needs scale_a and scale_b"):
        matmul(*problem(SCALED, 3, 4, 32), instruction=SCALED)
    ones = np.full((3, 1), 127, np.uint8)
    with pytest.raises(ValueError, match="scale_b has shape"):
        matmul(*problem(SCALED, 3, 4, 32), instruction=SCALED, scale_a=ones, scale_b=ones)
    with pytest.raises(ValueError, match="counts from 1"):
        matmul(A, B, instruction=H, split_k=0)
    with pytest.raises(ValueError, match="not by both"):
        matmul(A, B, instruction=H, split_k=2, stream_k=2)
    with pytest.raises(ValueError, match="order"):
        matmul(A, B, instruction=H, order="random")  # type: ignore[arg-type]


def test_a_c_of_another_type_takes_no_second_instruction() -> None:
    i = volta["HMMA.884.F32.F16"]
    A, B, C = problem(i, 3, 4, 8)
    with pytest.raises(ValueError, match="promote_every=1"):
        matmul(A, B, C, instruction=i)
    assert (matmul(A[:, :4], B[:4], C, instruction=i) == chain(i, A[:, :4], B[:4], C)).all()
    total = C.view(np.float16).astype(np.float32)
    for step in range(2):
        total = total + chain(i, A, B, np.zeros_like(C), step, step + 1).view(np.float32)
    assert (matmul(A, B, C, instruction=i, promote_every=1) == total.view(np.uint32)).all()


@pytest.mark.parametrize(
    ("i", "nan"), [(H, 0x7FFFFFFF), (cdna1["v_mfma_f32_16x16x16f16"], 0x7FC00000)], ids=str
)
def test_the_nan_of_a_promoted_sum_is_the_units(i: Instruction, nan: int) -> None:
    A, B, C = problem(i, 3, 4, 2 * i.k)
    C[0, 0] = 0x7F800001
    assert int(matmul(A, B, C, instruction=i, promote_every=1)[0, 0]) == nan


# ---- running -----------------------------------------------------------------------------------------------


def test_threads_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    i = blackwell["UTCHMMA.F32"]
    A, B, C = problem(i, 65, 130, 96)
    A[3, 5], B[40, 7] = 0x7E00, 0x7C00
    monkeypatch.setattr("mmaformal.kernels.kernel.Kernel.task", 1 << 14)
    results = [matmul(A, B, C, instruction=i, jobs=threads) for threads in (1, 2, 5)]
    assert all((each == results[0]).all() for each in results)


def test_progress_counts_products(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mmaformal.kernels.kernel.Kernel.task", 1 << 14)
    A, B, C = problem(H, 65, 130, 96)
    told: list[str] = []
    matmul(A, B, C, instruction=H, progress=told.append)
    assert len(told) > 3
    done = [int(line.split()[0].replace(",", "")) for line in told]
    assert done == sorted(done)
    assert told[-1] == f"{65 * 130 * 96:,} of {65 * 130 * 96:,} products"


def test_an_interrupt_leaves_no_thread_and_no_harm(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mmaformal.kernels.kernel.Kernel.task", 1 << 14)
    A, B, C = problem(H, 65, 130, 96)
    before = threading.active_count()

    def interrupt(line: str) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        matmul(A, B, C, instruction=H, jobs=3, progress=interrupt)
    assert threading.active_count() == before
    assert (matmul(A, B, C, instruction=H, jobs=3) == chain(H, A, B, C)).all()


def test_an_interrupt_while_threads_are_started_leaves_no_part_for_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    started, go, done = threading.Event(), threading.Event(), []

    def part(which: slice) -> int:
        started.set()
        go.wait(5)
        done.append(which)
        return 1

    with Workers(3, ProgressReport(False, 100)) as workers:
        assert workers.pool is not None
        submit = workers.pool.submit

        def interrupted(*given: Any) -> Any:
            submit(*given)
            assert started.wait(5)
            threading.Timer(0.1, go.set).start()
            raise KeyboardInterrupt

        monkeypatch.setattr(workers.pool, "submit", interrupted)
        with pytest.raises(KeyboardInterrupt):
            workers.run(part, [slice(i, i + 1) for i in range(100)])
    assert len(done) == 1
