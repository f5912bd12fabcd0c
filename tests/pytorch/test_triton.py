"""Triton's kernels, in its interpreter: bit for bit the processor's, and compiled for a GPU that is not there."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is an extra: pip install 'mmaformal[torch]'")
triton = pytest.importorskip("triton", reason="Triton is an extra: pip install 'mmaformal[triton]'")

from numpy.typing import NDArray

from mmaformal import Instruction, cdna3, hopper, matmul, rtx_blackwell, sapphire_rapids, volta
from mmaformal.cases.encodings import sample
from mmaformal.encodings.executable import stages
from mmaformal.formats import Format
from mmaformal.torch import Arithmetic, arithmetic
from mmaformal.torch import matmul as torch_matmul
from mmaformal.torch.device import product_on_device, quantised
from mmaformal.torch.product import product
from mmaformal.torch.triton_kernel import kernel_of, run, word
from mmaformal.torch.triton_source import NoSourceError, source
from mmaformal.quantise import quantise

H = hopper["HMMA.16816.F32"]
FP8 = hopper["QGMMA.64x8x32.F32.E4M3.E4M3"]
MX = rtx_blackwell["QMMA.SF.16832.F32.E4M3.E4M3.E8"]
NV = rtx_blackwell["OMMA.SF.16864.F32.E2M1.E2M1.UE4M3.4X"]


def any_codes(fmt: Format, shape: tuple[int, ...], rng: np.random.Generator) -> NDArray[np.unsignedinteger]:
    """All codes alike: subnormals, infinities and NaNs in their shares."""
    return rng.integers(0, fmt.codes, shape, dtype=np.uint64).astype(fmt.word)


def near_codes(fmt: Format, shape: tuple[int, ...], rng: np.random.Generator) -> NDArray[np.unsignedinteger]:
    """Exponents near each other, most fractions of ones or zeros, and many zeros: sums that cancel."""
    some = sample(fmt, rng)
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
    theirs = run(i.spec, tensor(a), tensor(b), tensor(c), *map(tensor, scales))
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
