"""The quick way for common arguments gives what the general way does, and leaves uncommon ones to it."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from support.kernel_runs import random_codes

from mmaformal import Instruction, cdna2, cdna3, hopper, matmul, rtx_blackwell, volta
from mmaformal.kernels import rows
from mmaformal.quick import MOST, Quick

H = hopper["HMMA.16816.F32"]
UNITS = [
    H,
    volta["HMMA.884.F16.F16"],
    hopper["QGMMA.64x8x32.F32.E4M3.E5M2"],
    hopper["HMMA.1688.F32.TF32"],
    hopper["DMMA.16x8x16"],
    cdna3["f32_16x16x32_fp8_fp8"],
    cdna2["f32_16x16x16f16"],
]
SHAPES = [(16, 8, 1), (1, 1, 2), (3, 70, 1), (70, 3, 1), (8, 16, 3), (33, 17, 2)]


def operands(i: Instruction, m: int, n: int, k: int, seed: int = 0) -> list[Any]:
    rng = np.random.default_rng(seed)
    shapes = ((m, k), i.a_format), ((k, n), i.b_format), ((m, n), i.c_format)
    return [random_codes(rng, fmt, shape).astype(fmt.word) for shape, fmt in shapes]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("i", UNITS, ids=lambda i: i.label)
def test_products_are_the_general_ones(i: Instruction, shape: tuple[int, int, int]) -> None:
    m, n, steps = shape
    a, b, c = operands(i, m, n, steps * i.k)
    for addend in (c, None):
        quick = Quick(i.spec).product(a, b, addend)
        general = matmul(a, b, addend, instruction=i, jobs=1)  # with `jobs` it is no plain call
        assert quick is not None
        assert quick.dtype == general.dtype
        assert quick.flags.c_contiguous
        assert (quick == general).all()


@pytest.mark.parametrize("i", UNITS, ids=lambda i: i.label)
def test_floats_give_floats(i: Instruction) -> None:
    a, b, c = operands(i, i.m, i.n, i.k)
    formats = i.a_format, i.b_format, i.c_format
    if any(fmt.dtype is None for fmt in formats):
        assert Quick(i.spec).product(*(x.view(np.float32) for x in (a, b, c))) is None
        return
    floats = [x.view(fmt.dtype) for x, fmt in zip((a, b, c), formats, strict=True)]
    quick, codes = Quick(i.spec).product(*floats), matmul(a, b, c, instruction=i, jobs=1)
    assert quick is not None
    assert quick.dtype == i.d_format.dtype
    assert (quick.view(i.d_format.word) == codes).all()


@pytest.fixture
def patient() -> Iterator[None]:
    """Compiled rows and kernels are taken at once."""
    before, rows.PATIENCE = rows.PATIENCE, -1.0
    yield
    rows.PATIENCE = before


@pytest.mark.usefixtures("patient")
@pytest.mark.parametrize("i", UNITS, ids=lambda i: i.label)
def test_rows_and_whole_instructions(i: Instruction) -> None:
    i = copy.copy(i)
    a, b, c = operands(i, i.m, i.n, i.k, 1)
    first = i.run(a, b, c)
    assert i.quick.kernel is not None
    again = i.run(a, b, c)
    assert first.dtype == again.dtype
    assert (first == again).all()
    for row, column in ((0, 0), (i.m - 1, i.n - 1)):
        d = i.dot_add(a[row], b[:, column], c[row, column])
        assert type(d) is type(first[0, 0])
        assert d == first[row, column]


def test_what_is_uncommon_is_left() -> None:
    a, b, c = operands(H, 16, 8, 16)
    quick = Quick(H.spec)
    assert quick.product(a.tolist(), b, c) is None
    assert quick.product(np.ma.masked_array(a), b, c) is None
    assert quick.product(a.astype(np.uint32), b, c) is None
    assert quick.product(a.astype(">u2"), b, c) is None
    assert quick.product(a.view(np.float16), b, c) is None
    assert quick.product(a[:, :8], b, c) is None
    assert quick.product(a[:, :8], b[:8], c) is None
    assert quick.product(a, b, c[:1]) is None
    assert quick.product(a[0], b, c) is None
    large = np.zeros((MOST // 16 // 8 + 1, 16), np.uint16)
    assert quick.product(large, b, None) is None
    omma = rtx_blackwell["OMMA.SF.16864.F32.E2M1.E2M1.UE4M3.4X"]
    assert Quick(omma.spec).product(*operands(omma, 16, 8, 64)) is None
    split = volta["HMMA.884.F32.F16"]  # c is fp16, d fp32: no chain
    assert Quick(split.spec).product(*operands(split, 8, 8, 8)) is None


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"split_k": True}, TypeError),
        ({"seed": False}, TypeError),
        ({"seed": 0.0}, TypeError),
        ({"jobs": 0}, ValueError),
        ({"tile": 128}, TypeError),
        ({"order": "natural"}, ValueError),
        ({"scale_a": np.zeros((16, 1), np.uint8)}, TypeError),
        ({"progress": 1}, TypeError),
    ],
)
def test_errors_remain(change: dict[str, Any], error: type[Exception]) -> None:
    a, b, c = operands(H, 16, 8, 16)
    with pytest.raises(error):
        matmul(a, b, c, instruction=H, **change)


def test_an_instruction_that_was_used_is_copied_and_pickled() -> None:
    i = copy.copy(H)
    a, b, c = operands(i, 16, 8, 16)
    d = matmul(a, b, c, instruction=i)
    for other in (copy.deepcopy(i), pickle.loads(pickle.dumps(i))):
        assert other == i
        assert (matmul(a, b, c, instruction=other) == d).all()


def test_seconds_of_rows_are_counted() -> None:
    quick = Quick(H.spec)
    before, rows.PATIENCE = rows.PATIENCE, 0.15
    try:
        quick.spend(0.0)
        assert quick.kernel is None
        quick.spend(0.0)
        assert quick.kernel is not None
    finally:
        rows.PATIENCE = before
