"""Tolerances in `torch.testing.assert_close`: they hold in fp64 and in the type of the result, and are not vacuous."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from mmaformal import matmul
from mmaformal.testing import assert_matches, assert_within, inputs, tolerance

UNIT = "h100 HMMA.16816.F32.BF16"


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_assert_close(dtype: object) -> None:
    generator = torch.Generator().manual_seed(0)
    A, B = (torch.randn(shape, generator=generator).bfloat16() for shape in ((32, 512), (512, 24)))
    out = matmul(A, B, instruction=UNIT).to(dtype)
    assert_matches(out, A, B, instruction=UNIT)
    assert assert_within(out, A, B, instruction=UNIT).used > 0
    d_format = {torch.float32: "fp32", torch.bfloat16: "bf16"}[dtype]
    reference = A.double() @ B.double()
    told = tolerance(UNIT, A=A, B=B, d_format=d_format)
    torch.testing.assert_close(out.double(), reference, **told)
    rounded = tolerance(UNIT, A=A, B=B, d_format=d_format, expected="rounded")
    torch.testing.assert_close(out, reference.to(dtype), **rounded)
    with pytest.raises(AssertionError):
        torch.testing.assert_close(out.double() + 3 * told.atol, reference, **told)


def test_inputs_as_tensors() -> None:
    x = inputs(UNIT, n=20).torch()
    assert x["a"].dtype == torch.bfloat16
    assert x["d"].dtype == torch.float32
    fp8 = inputs("h100 QGMMA.64x8x32.F32.E4M3.E4M3", n=20)
    tensors = fp8.torch()
    assert tensors["a"].dtype == torch.float8_e4m3fn
    assert (tensors["a"].view(torch.uint8).numpy() == fp8.codes()["a"]).all()
