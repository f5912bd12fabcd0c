"""`torch.compile` traces a model in a context whole, and runs it on the arithmetic that it is called in."""

from __future__ import annotations

import shutil

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is an extra: pip install 'mmaformal[torch]'")

from torch import nn

from mmaformal import hopper, rtx_blackwell
from mmaformal.torch import Arithmetic, arithmetic
from mmaformal.torch.product import product

H = hopper["HMMA.16816.F32"]
FP8 = hopper["QGMMA.64x8x32.F32.E4M3.E4M3"]
NV = rtx_blackwell["OMMA.SF.16864.F32.E2M1.E2M1.UE4M3.4X"]

COMPILER = pytest.mark.skipif(
    shutil.which("c++") is None and shutil.which("g++") is None, reason="inductor needs a C++ compiler"
)

# torch's own warnings while it compiles, which differ from version to version
pytestmark = pytest.mark.filterwarnings("default")


def network() -> nn.Module:
    torch.manual_seed(0)
    encoder = nn.TransformerEncoderLayer(64, 4, 32, batch_first=True, dropout=0.0)
    first = nn.Sequential(nn.Conv2d(1, 4, 3, padding=1), nn.ReLU(), nn.Flatten(2))
    return nn.Sequential(first, encoder, nn.Flatten(), nn.Linear(256, 10))


def results(model: nn.Module, called: object, i: object, **options: str):
    """Outputs and gradients."""
    x = torch.randn(6, 1, 8, 8, generator=torch.Generator().manual_seed(1))
    model.zero_grad()
    with arithmetic(i, **options):
        y = called(x)
    y.square().sum().backward()
    return y.detach(), [p.grad.clone() for p in model.parameters()]


@pytest.mark.parametrize(
    "backend",
    ["aot_eager", pytest.param("inductor", marks=[COMPILER, pytest.mark.slow])],
)
def test_a_compiled_model_runs_on_the_arithmetic_of_its_context(backend: str) -> None:
    model = network()
    torch._dynamo.reset()
    compiled = torch.compile(model, backend=backend, fullgraph=True)
    seen = []
    for i, options in ((H, {}), (FP8, {}), (None, {}), (H, {"backward": "through"}), (H, {}), (NV, {})):
        y, gradients = results(model, model, i, **options)
        z, compiled_gradients = results(model, compiled, i, **options)
        if backend == "inductor":  # fuses what is not a product
            assert torch.allclose(y, z, rtol=1e-4, atol=1e-5)
            continue
        assert torch.equal(y, z)
        assert all(torch.equal(p, q) for p, q in zip(gradients, compiled_gradients, strict=True))
        seen.append((y, gradients))
    if seen:
        assert torch.equal(seen[0][0], seen[4][0])
        assert not torch.equal(seen[0][0], seen[1][0])
        assert not torch.equal(seen[0][0], seen[2][0])
        assert any(not torch.equal(p, q) for p, q in zip(seen[0][1], seen[3][1], strict=True))


def test_off_is_torch_bit_for_bit() -> None:
    """Before, after, and within `arithmetic(None)`; compiled too."""
    model = network()
    before = results(model, model, None)
    results(model, model, H)
    x = torch.randn(6, 1, 8, 8, generator=torch.Generator().manual_seed(1))
    model.zero_grad()
    y = model(x)
    y.square().sum().backward()
    assert torch.equal(before[0], y)
    assert all(torch.equal(p, q.grad) for p, q in zip(before[1], model.parameters(), strict=True))


@pytest.mark.parametrize("i", [H, hopper["DMMA.16x8x16"], NV], ids=lambda i: i.label)
@pytest.mark.parametrize("backward", ["full", "through"])
def test_the_operator_is_what_torch_wants_of_one(i, backward: str) -> None:
    a, b = torch.randn(2, 3, 5, requires_grad=True), torch.randn(2, 5, 4, requires_grad=True)
    found = torch.library.opcheck(product, (a, b, Arithmetic.of(i, backward=backward).key))
    assert set(found.values()) == {"SUCCESS"}
