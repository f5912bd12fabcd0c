"""Inputs for which one part of a kernel alone makes a difference, found by changing it (tables/mutants.md)."""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from support.kernel_runs import executable, near_one, random_codes, run

from mmaformal import Instruction, cdna1, cdna2, cdna3, hopper, rtx_blackwell
from mmaformal.architectures.emulations import bf16x3, bf16x9, tf32x3
from mmaformal.encodings.fda.kernel import FdaKernel
from mmaformal.formats import Format, fp32
from mmaformal.kernels import kernel_for
from mmaformal.kernels.fused import FusedPlanes, _Side
from mmaformal.kernels.planes import decode_rows


def codes_of_exponents(rng: np.random.Generator, fmt: Format, exponents: NDArray[np.int64]) -> NDArray[Any]:
    """Numbers with these exponents; one row in five has zeros among them."""
    fractions = rng.integers(0, 1 << fmt.fraction_bits, exponents.shape)
    signs = rng.integers(0, 2, exponents.shape) << fmt.exponent_bits + fmt.fraction_bits
    codes = (signs | (exponents + fmt.bias) << fmt.fraction_bits | fractions) << fmt.ignored_low_bits
    codes[::5] *= rng.integers(0, 2, codes[::5].shape)
    return codes.astype(fmt.word)


@pytest.mark.parametrize(
    "i",
    [
        hopper["HMMA.16816.F32.BF16"],
        hopper["HMMA.1688.F32.TF32"],
        cdna3["f32_16x16x16_bf16"],
        cdna3["f32_16x16x8_xf32"],
    ],
    ids=attrgetter("label"),
)
def test_planes_are_narrow_where_float32_serves(i: Instruction) -> None:
    """A is narrow with exponents up to both ends, and wide with one beyond, when B, which is narrow, is widened.  After
    a wide A the next is made wide at once, and the one after it narrow again."""
    kernel, rng = kernel_for(i.spec), np.random.default_rng(5)
    assert isinstance(kernel, FusedPlanes)
    near = kernel.near
    assert near is not None
    ends = [near.low, near.low + 1, -1, 0, 1, near.high - 1, near.high]
    b = codes_of_exponents(rng, i.b_format, rng.choice(ends, (i.k, 40)))
    c = codes_of_exponents(rng, fp32, rng.integers(2 * near.low, 2 * near.high, (24, 40)))
    kernel.rows(b.T), kernel.columns(b)  # whatever was made before, planes may be narrow
    for below, above, narrow in ((0, 0, True), (1, 0, False), (0, 1, False), (0, 0, False), (0, 0, True)):
        exponents = rng.choice(ends, (24, i.k))
        exponents[3, 1], exponents[7, 2] = near.low - below, near.high + above
        a = codes_of_exponents(rng, i.a_format, exponents)
        planes = kernel.rows(a), kernel.columns(b)
        assert [x[1].narrow for x in planes] == [narrow, True]
        d = c.copy()
        kernel.run(*planes, d, 0, 1)
        assert (d == executable(i, a, b, c)).all()


class _AlwaysNarrow(_Side):
    """A side of which another thread says, at any time, that its planes could be narrow."""

    narrow = property(lambda self: True, lambda self, narrow: None)  # type: ignore[assignment]


def test_what_another_thread_says_of_its_planes_is_not_asked_of_these() -> None:
    i = hopper["HMMA.16816.F32.BF16"]
    kernel = FdaKernel.of(i.spec)
    assert kernel is not None
    kernel._of_rows = _AlwaysNarrow(decode_rows)
    codes = np.full((2, i.k), i.a_format.code("0x1p100"), np.uint16)
    values: Any = kernel.rows(codes)[1]
    assert not values.narrow


@pytest.mark.parametrize("scheme", [bf16x3, bf16x9, tf32x3], ids=attrgetter("__name__"))
@pytest.mark.parametrize("scales", [(0, 0), (100, 0), (0, 100), (-60, -60)])
def test_words_of_an_emulation_are_narrow_and_wide(
    scheme: Callable[[Instruction], Instruction], scales: tuple[int, int]
) -> None:
    unit = "HMMA.1688.F32.TF32" if scheme is tf32x3 else "HMMA.16816.F32.BF16"
    i, rng = scheme(hopper[unit]), np.random.default_rng(6)
    a, b = (
        np.ldexp(rng.standard_normal(shape), by).astype(np.float32).view(np.uint32)
        for shape, by in zip(((20, i.k), (i.k, 30)), scales, strict=True)
    )
    c = np.zeros((20, 30), np.uint32)
    assert (run(i, a, b, c) == executable(i, a, b, c)).all()


def test_a_zero_among_other_products_has_the_exponent_of_zero() -> None:
    i = hopper["HMMA.16816.F16"].replace(e_zero=30)
    rng = np.random.default_rng(1)
    a, b = near_one(rng, i.a_format, (5, i.k)), near_one(rng, i.b_format, (i.k, 40))
    a[0] |= 1  # no zeros in this row
    c = random_codes(rng, i.c_format, (5, 40))
    mine = run(i, a, b, c)
    assert (mine == executable(i, a, b, c)).all()
    without = run(hopper["HMMA.16816.F16"], a, b, c)
    assert (mine != without).sum() > 100


def test_a_coarse_rounding_of_c_and_the_least_products_there_are() -> None:
    """c cancels products of subnormals, so that its last bits are all that is left, and ρ keeps fewer bits than it."""
    i = cdna1["f32_16x16x16f16"].replace(k=2, L=2, rho="RZ-E8M13")
    rng = np.random.default_rng(2)
    a, b = (rng.integers(1, 16, shape).astype(np.uint16) for shape in ((20, 2), (2, 40)))
    product = i.dot_add(a[:, None], b.T[None], np.uint32(0))
    c = (product ^ np.uint32(1 << 31)) + rng.integers(0, 2000, (20, 40)).astype(np.uint32)
    assert (run(i, a, b, c) == executable(i, a, b, c)).all()


def test_a_subnormal_c_beside_products_almost_as_small() -> None:
    """gps takes such a c for +0: its bits would be seen in the sum, and its sign where the sum is zero."""
    i = cdna2["f32_16x16x8bf16"]
    rng = np.random.default_rng(3)
    fields = (rng.integers(127 - 57, 127 - 53, shape) for shape in ((20, i.k), (i.k, 40)))
    a, b = (((field << 7) | rng.integers(0, 128, field.shape)).astype(np.uint16) for field in fields)
    a[::4] = 0
    c = rng.integers(0, 1 << 23, (20, 40)).astype(np.uint32) | np.uint32(1 << 31)
    assert (run(i, a, b, c) == executable(i, a, b, c)).all()


def test_a_minus_zero_of_gps_beside_an_accumulator_that_was_flushed() -> None:
    """A flushed number keeps its sign; a zero added to it takes that away, if it is +0."""
    i = cdna2["f32_16x16x8bf16"]
    tiny, minus = i.a_format.code("0x1p-63"), i.a_format.sign_mask
    a = np.array([[tiny, 0] + [zero] * (i.k - 2) for zero in (0, minus)], i.a_format.word)
    b = np.array([[tiny]] + [[i.b_format.code("1")]] * (i.k - 1), i.b_format.word)
    c = np.full((2, 1), fp32.code("-0x1.8p-126"), np.uint32)
    assert run(i, a, b, c).tolist() == executable(i, a, b, c).tolist() == [[0], [0]]


def test_a_scale_that_is_nan_in_each_group() -> None:
    i = rtx_blackwell["OMMA.SF.16864.F32.E2M1.E2M1.UE4M3.4X"]
    rng, fmt, groups = np.random.default_rng(4), i.spec.scale_format, i.spec.scales
    assert fmt is not None
    a, b = near_one(rng, i.a_format, (groups, i.k)), near_one(rng, i.b_format, (i.k, groups))
    s = np.full((groups, groups), fmt.code("1"), fmt.word)
    nan = np.where(np.eye(groups, dtype=bool), s.dtype.type(0x7F), s)
    assert fmt.is_nan(0x7F)
    c = near_one(rng, fp32, (groups, groups))
    for scales in ((nan, s), (s, nan)):
        found = run(i, a, b, c, *scales)
        assert (found == executable(i, a, b, c, *scales)).all()
        assert len(np.unique(found)) == 1
