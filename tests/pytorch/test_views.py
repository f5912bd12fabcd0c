"""Tensors that `matmul` takes: views that say that their numbers are to be negated or conjugated."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is an extra: pip install 'mmaformal[torch]'")

from mmaformal import cdna2, matmul

F = cdna2["f32_16x16x4f32"]


def test_a_tensor_with_the_negative_bit_has_its_sign() -> None:
    z = torch.complex(torch.ones(3, 4), torch.full((3, 4), 2.0))
    negated = z.conj().imag
    assert negated.is_neg()
    found = matmul(negated, torch.ones(4, 2), instruction=F)
    assert torch.equal(found, torch.full((3, 2), -8.0))
    assert torch.equal(matmul(torch.ones(2, 3), negated, instruction=F), torch.full((2, 4), -6.0))
    assert torch.equal(
        matmul(torch.ones(3, 4), torch.zeros(4, 4), negated, instruction=F), negated.resolve_neg()
    )
    assert torch.equal(matmul(z.conj().real, torch.ones(4, 2), instruction=F), torch.full((3, 2), 4.0))


def test_batches_and_vectors_are_torch_s() -> None:
    a, b = torch.randn(2, 3, 5, 8), torch.randn(3, 8, 4)
    assert matmul(a, b, instruction=F).shape == torch.matmul(a, b).shape
    assert matmul(a[0, 0, 0], b[0, :, 0], instruction=F).shape == ()
    assert np.allclose(matmul(a, b, instruction=F), torch.matmul(a, b), atol=1e-4)
