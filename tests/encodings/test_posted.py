"""Rows of hardware that were posted in public issues."""

from __future__ import annotations

import numpy as np
import pytest

from mmaformal import hopper

#: github.com/north-numerical-computing/MATLAB-tensor-core, issue 7, example 1: H100, bf16 in the upper halves, c = 0
A = "9b94 19f3 9a2e 1a67 9a25 9b4e 9b29 9a33 99e0 1a14 9914 99d1 9ae9 1b1a 9a9c 1b3a"
B = "9aaf 99f3 9acc 1b7c 19ed 1b25 9a1b 9a20 9af7 9a48 1ae1 1b32 1b12 1b0e 9a68 1735"
D = 0xB  # "1.54142831e-44 (0x1.6p-146) [b]"


def codes(text: str) -> np.ndarray:
    return np.array([int(word, 16) for word in text.split()], np.uint16)


@pytest.mark.parametrize("name", ["HMMA.16816.F32.BF16", "HGMMA.64x8x16.F32.BF16"])
def test_an_h100_on_subnormal_products(name: str) -> None:
    assert int(hopper[name].dot_add(codes(A), codes(B), np.uint32(0))) == D
