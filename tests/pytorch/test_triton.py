"""Triton's kernels, in its interpreter: bit for bit the processor's, and compiled for a GPU that is not there."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is an extra: pip install 'mmaformal[torch]'")
triton = pytest.importorskip("triton", reason="Triton is an extra: pip install 'mmaformal[triton]'")

from numpy.typing import NDArray

from mmaformal import Instruction, cdna3, hopper, matmul, rtx_blackwell, sapphire_rapids, volta
from mmaformal.cases.encodings import sample_codes
from mmaformal.encodings.executable import stages
from mmaformal.formats import Format
from mmaformal.quantise import quantise
from mmaformal.torch import Arithmetic, arithmetic, triton_kernel
from mmaformal.torch import matmul as torch_matmul
from mmaformal.torch.device import product_on_device, quantised
from mmaformal.torch.product import product
from mmaformal.torch.triton_kernel import OPTIONS, kernel_of, run_kernel
from mmaformal.torch.triton_source import NoSourceError, source

H = hopper["HMMA.16816.F32"]
FP8 = hopper["QGMMA.64x8x32.F32.E4M3.E4M3"]
MX = rtx_blackwell["QMMA.SF.16832.F32.E4M3.E4M3.E8"]
NV = rtx_blackwell["OMMA.SF.16864.F32.E2M1.E2M1.UE4M3.4X"]


def any_codes(fmt: Format, shape: tuple[int, ...], rng: np.random.Generator) -> NDArray[np.unsignedinteger]:
    """All codes alike: subnormals, infinities and NaNs in their shares."""
    return rng.integers(0, fmt.codes, shape, dtype=np.uint64).astype(fmt.word)


def near_codes(fmt: Format, shape: tuple[int, ...], rng: np.random.Generator) -> NDArray[np.unsignedinteger]:
    """Exponents near each other, most fractions of ones or zeros, and many zeros: sums that cancel."""
    some = sample_codes(fmt, rng)
    return some[rng.integers(len(some) // 3, len(some), shape)].astype(np.uint64).astype(fmt.word)


def special_codes(
    fmt: Format, shape: tuple[int, ...], rng: np.random.Generator
) -> NDArray[np.unsignedinteger]:
    """The least and the largest numbers, zeros, infinities and NaNs of both signs."""
    edges = [0, 1, fmt.largest, fmt.largest + 1, (1 << fmt.fraction_bits) - 1, 1 << fmt.fraction_bits]
    edges = [x << fmt.ignored_low_bits if x != fmt.largest else x for x in edges if 0 <= x < fmt.codes]
    edges += [x | fmt.sign_mask for x in edges] if fmt.signed else []
    return np.array([x % fmt.codes for x in edges], np.uint64)[rng.integers(0, len(edges), shape)].astype(
        fmt.word
    )


FAMILIES = (any_codes, near_codes, special_codes)


def tensor(codes: NDArray[np.unsignedinteger] | None):
    if codes is None:
        return None
    return torch.from_numpy(np.ascontiguousarray(codes).view(f"i{codes.itemsize}"))[None]


def both(i: Instruction, family, m: int, n: int, k: int, with_c: bool = True):
    """D by the processor's kernels and by Triton's, as codes."""
    rng = np.random.default_rng(0)
    a, b = family(i.a_format, (m, k), rng), family(i.b_format, (k, n), rng)
    c = family(i.c_format, (m, n), rng) if with_c else None
    scales: list[NDArray[np.unsignedinteger] | None] = [None, None]
    if (fmt := i.spec.scale_format) is not None:
        blocks = -(-k // i.spec.scale_block)
        scales = [family(fmt, (m, blocks), rng), family(fmt, (blocks, n), rng)]
    mine = matmul(a, b, c, instruction=i, scale_a=scales[0], scale_b=scales[1])
    theirs = run_kernel(i.spec, tensor(a), tensor(b), tensor(c), *map(tensor, scales))
    return mine, theirs[0].numpy().view(i.d_format.word)


UNITS = [
    H,
    hopper["HMMA.16816.F16"],
    hopper["HMMA.16816.F32.BF16"],
    hopper["HMMA.1688.F32.TF32"],
    FP8,
    hopper["QGMMA.64x8x32.F16.E5M2.E4M3"],
    MX,
    NV,
    cdna3["f32_16x16x16_f16"],
    sapphire_rapids["TDPBF16PS"],
    hopper["DMMA.16x8x16"],
]


@pytest.mark.parametrize("i", UNITS, ids=lambda i: i.label)
@pytest.mark.parametrize("family", FAMILIES)
def test_every_bit_is_the_processor_s(i: Instruction, family) -> None:
    mine, theirs = both(i, family, 19, 23, 2 * i.k + i.k // 2)
    assert np.array_equal(mine, theirs)


@pytest.mark.parametrize(("m", "n", "k"), [(1, 1, 1), (64, 64, 16), (65, 3, 17), (3, 130, 0), (0, 5, 16)])
def test_edges_are_masked_and_k_is_padded(m: int, n: int, k: int) -> None:
    mine, theirs = both(H, near_codes, m, n, k, with_c=k != 17)
    assert np.array_equal(mine, theirs)


def test_batches_and_transposed_operands() -> None:
    rng = np.random.default_rng(1)
    a, b = near_codes(H.a_format, (3, 21, 40), rng), near_codes(H.b_format, (3, 18, 40), rng)
    x, y = tensor(a)[0], tensor(b)[0]
    theirs = run_kernel(H.spec, x, y.mT).numpy().view(np.uint32)
    assert np.array_equal(theirs, matmul(a, b.swapaxes(1, 2), instruction=H))


def test_many_products(monkeypatch: pytest.MonkeyPatch) -> None:
    """More than a grid takes."""
    monkeypatch.setattr(triton_kernel, "_MOST", 2)
    rng = np.random.default_rng(1)
    a, b, c = (near_codes(f, (5, 9, 9), rng) for f in (H.a_format, H.b_format, H.c_format))
    theirs = run_kernel(H.spec, *(tensor(x)[0] for x in (a, b, c))).numpy().view(np.uint32)
    assert np.array_equal(theirs, [matmul(*x, instruction=H) for x in zip(a, b, c, strict=True)])


def test_results_wider_than_c() -> None:
    mine, theirs = both(volta["HMMA.884.F32.F16"], any_codes, 9, 9, 4)
    assert np.array_equal(mine, theirs)


def test_a_broken_stage_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernels are made of the stage functions: a change of one changes their results."""
    right = stages.align

    def wrong(x, e_max, fraction_bits: int, F: int):
        return right(x, e_max, fraction_bits, F - 1) * 2

    mine, _ = both(H, near_codes, 16, 16, 16)
    monkeypatch.setattr(stages, "align", wrong)
    kernel_of.cache_clear()
    rng = np.random.default_rng(0)
    a, b, c = (near_codes(f, (16, 16), rng) for f in (H.a_format, H.b_format, H.c_format))
    theirs = run_kernel(H.spec, *map(tensor, (a, b, c)))[0].numpy().view(np.uint32)
    kernel_of.cache_clear()
    assert (mine != theirs).any()


def test_numbers_alone_have_a_kernel_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is enough for numbers, whose results may be infinite; what is no number is computed by the other one."""
    took, made = [], triton_kernel.kernel_of
    monkeypatch.setattr(
        triton_kernel,
        "kernel_of",
        lambda spec, interpreted, finite: took.append(finite) or made(spec, True, finite),
    )
    rng = np.random.default_rng(0)
    a, b = near_codes(H.a_format, (30, 16), rng), near_codes(H.b_format, (16, 30), rng)
    a, b = (np.where(x & 0x7C00 == 0x7C00, x & 0x83FF, x) for x in (a, b))
    c = np.where(rng.random((30, 30)) < 0.5, np.float32(3.4e38), np.float32(-3.4e38)).view(np.uint32)
    c[0, 0] = 0x7F7FFFFF
    big = np.full_like(a[:1], 0x7BFF)
    for x, special in ((np.concatenate([a, big]), False), (np.concatenate([a, big | 0x7FFF]), True)):
        took.clear()
        rows = np.concatenate([c, c[:1]])
        theirs = run_kernel(H.spec, tensor(x), tensor(b), tensor(rows))[0].numpy().view(np.uint32)
        assert np.array_equal(theirs, matmul(x, b, rows, instruction=H))
        assert took == ([True, False] if special else [True])
    assert made(FP8.spec, True, True) is None  # one NaN is soon looked for


# ---- operands ------------------------------------------------------------------------------------------------


def numbers(*shape: int, seed: int = 0):
    x = torch.randn(*shape, generator=torch.Generator().manual_seed(seed)) * 3
    x = x * torch.exp2(torch.randint(-40, 18, shape, generator=torch.Generator().manual_seed(seed + 1)))
    flat = x.view(-1)
    special = torch.tensor(
        [0.0, -0.0, torch.inf, -torch.inf, torch.nan, 65519.0, 65520.0, 2.0**-25, 464.0, 480.0]
    )
    flat[: len(special)] = special[: len(flat)]
    return x


FORMATS = [
    (H, None),
    (hopper["HMMA.16816.F32.BF16"], None),
    (hopper["HMMA.1688.F32.TF32"], None),
    (hopper["DMMA.16x8x16"], None),
    (FP8, "tensor"),
    (FP8, "row"),
    (FP8, "none"),
    (hopper["QGMMA.64x8x32.F32.E5M2.E5M2"], "none"),
    (cdna3["f32_16x16x32_fp8_fp8"], None),
    (rtx_blackwell["QMMA.16832.F32.E2M3.E3M2"], None),
    (MX, None),
    (NV, None),
]


@pytest.mark.parametrize(("i", "scaling"), FORMATS, ids=lambda x: getattr(x, "label", str(x)))
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16])
@pytest.mark.parametrize("finite", [True, False])
def test_operands_are_quantised_alike(i: Instruction, scaling: str | None, dtype, finite: bool) -> None:
    x = numbers(2, 9, 70).to(dtype)
    if finite:
        x = torch.nan_to_num(x, 1.0, 2.0, -3.0)
    for side in ("a", "b"):
        mine = quantise(
            (x if dtype == torch.float64 else x.float()).reshape(18, 70).numpy(), i, side, scaling
        )
        theirs = quantised(x, i, side, scaling)
        assert np.array_equal(theirs.codes.reshape(18, 70).numpy().view(mine.codes.dtype), mine.codes)
        assert (mine.scales is None) == (theirs.scales is None)
        if mine.scales is not None and theirs.scales is not None:
            assert np.array_equal(theirs.scales.reshape(18, -1).numpy().view(mine.scales.dtype), mine.scales)
        assert (mine.factor is None) == (theirs.factor is None)
        if mine.factor is not None and theirs.factor is not None:
            of_rows = np.broadcast_arrays(theirs.factor.reshape(-1).numpy(), mine.factor.reshape(-1))
            assert np.array_equal(*of_rows, equal_nan=True)


# ---- the operator --------------------------------------------------------------------------------------------


def bits(x):
    return x.view(torch.int64 if x.dtype == torch.float64 else torch.int32)


@pytest.mark.parametrize(
    ("i", "how"),
    [
        (H, {}),
        (hopper["HMMA.16816.F16"], {}),
        (hopper["DMMA.16x8x16"], {}),
        (FP8, {"promote_every": 1}),
        (FP8, {"scaling": "row"}),
        (hopper["QGMMA.64x8x32.F16.E4M3.E4M3"], {"promote_every": 2}),
        (MX, {"promote_every": 1}),
        (NV, {}),
    ],
    ids=lambda x: getattr(x, "label", str(x)),
)
@pytest.mark.parametrize("finite", [True, False])
def test_the_operator_gives_every_bit(i: Instruction, how: dict[str, object], finite: bool) -> None:
    own = Arithmetic.of(i, **how)
    a, b = numbers(2, 7, 80), numbers(2, 80, 9, seed=7)
    if finite:
        a, b = (torch.nan_to_num(x, 1.0, 2.0, -3.0) for x in (a, b))
    mine, theirs = product(a, b, own.key), product_on_device(a, b, own)
    assert mine.dtype == theirs.dtype
    assert torch.equal(bits(mine), bits(theirs))


def test_it_is_what_cuda_tensors_run() -> None:
    assert torch._C._dispatch_has_kernel_for_dispatch_key("mmaformal::product", "CUDA")


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU is here")
def test_on_a_gpu() -> None:
    x, w = numbers(33, 70), numbers(70, 20, seed=3)
    for i in UNITS:
        with arithmetic(i):
            mine, theirs = x @ w, (x.cuda() @ w.cuda()).cpu()
        assert torch.equal(bits(mine), bits(theirs)), i.label
    assert torch.equal(
        torch_matmul(x, w, instruction=H), torch_matmul(x.cuda(), w.cuda(), instruction=H).cpu()
    )


def test_what_a_gpu_does_not_do_is_said_in_a_line() -> None:
    a, b = numbers(1, 4, 32), numbers(1, 32, 4)
    for how in ({"split_k": 2}, {"stream_k": 2}, {"accumulation": "kahan"}):
        with pytest.raises(NotImplementedError, match=r"is not for a GPU: use \.cpu\(\)$"):
            product_on_device(a, b, Arithmetic.of(H, **how))


def test_a_program_too_long_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mmaformal.torch.triton_source.MOST", 100)
    kernel_of.cache_clear()
    with pytest.raises(NoSourceError, match="operations for an output"):
        source(H.spec)
    with pytest.raises(NotImplementedError, match=r"has no kernel for a GPU: use \.cpu\(\)"):
        product_on_device(numbers(1, 4, 32), numbers(1, 32, 4), Arithmetic.of(H))


@pytest.mark.parametrize(
    ("i", "finite"), [(H, False), (H, True), (FP8, False), (hopper["DMMA.884"], False)], ids=str
)
@pytest.mark.parametrize("capability", [80, 90])
def test_kernels_compile_for_a_gpu(i: Instruction, finite: bool, capability: int) -> None:
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    kernel = kernel_of(i.spec, interpreted=False, finite=finite)
    assert kernel is not None
    formats = {
        "a": i.a_format,
        "b": i.b_format,
        "sa": i.a_format,
        "sb": i.b_format,
        "c": i.c_format,
        "d": i.d_format,
    }
    types = {name: f"*i{fmt.word_bits}" for name, fmt in formats.items()} | {"seen": "*i8"}
    constants = {"HAS_C": True, "ROWS": 8, "COLUMNS": 16}
    signature = {
        name: types.get(name, "constexpr" if name in constants else "i32") for name in kernel.arg_names
    }
    made = triton.compile(
        ASTSource(kernel, signature, constants), target=GPUTarget("cuda", capability, 32), options=OPTIONS
    )
    assert ".entry kernel" in made.asm["ptx"]
    assert made.asm["cubin"]
