"""Derivatives of both modes, under the transforms of `torch.func`, and of what a checkpoint computes again."""

from __future__ import annotations

from contextlib import nullcontext

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is an extra: pip install 'mmaformal[torch]'")

from torch.autograd import forward_ad
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

from mmaformal import hopper, matmul, rtx_blackwell
from mmaformal.torch import arithmetic

H = hopper["HMMA.16816.F32"]
DOUBLE = hopper["DMMA.16x8x16"]
FP8 = hopper["QGMMA.64x8x32.F32.E4M3.E4M3"]
# torch's own warnings, which differ from version to version
pytestmark = pytest.mark.filterwarnings("default")

NV = rtx_blackwell["OMMA.SF.16864.F32.E2M1.E2M1.UE4M3.4X"]


def normal(*shape: int, seed: int = 0, dtype=torch.float32):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=dtype)


def rounded(x, w):
    return matmul(x.half(), w.half(), instruction=H)


# ---- forward mode ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("backward", ["full", "through"])
def test_tangents_in_forward_mode(backward: str) -> None:
    x, w, dx, dw = normal(5, 40), normal(40, 7, seed=1), normal(5, 40, seed=2), normal(40, 7, seed=3)
    times = rounded if backward == "through" else torch.matmul
    for tangents, wanted in (((dx, None), times(dx, w)), ((dx, dw), times(dx, w) + times(x, dw))):
        with forward_ad.dual_level(), arithmetic(H, backward=backward):
            a, b = (
                p if t is None else forward_ad.make_dual(p, t) for p, t in zip((x, w), tangents, strict=True)
            )
            primal, tangent = forward_ad.unpack_dual(a @ b)
        assert torch.equal(primal, rounded(x, w))
        assert torch.allclose(tangent, wanted, rtol=1e-6, atol=1e-6)
        assert backward == "full" or torch.equal(tangent, wanted)


@pytest.mark.parametrize("backward", ["full", "through"])
def test_the_transforms_of_torch_func(backward: str) -> None:
    """Every derivative is nearly torch's own on hopper's fp64, whose products are nearly torch's."""
    x, w = normal(4, 6, dtype=torch.float64), normal(6, 3, seed=1, dtype=torch.float64)
    func = torch.func

    def f(x, w):
        return functional.softmax(functional.linear(x, w.T), -1) @ w.T

    asked = {
        "jvp": lambda: func.jvp(f, (x, w), (x + 1, w - 1))[1],
        "jacfwd": lambda: func.jacfwd(f)(x, w),
        "jacrev": lambda: func.jacrev(f)(x, w),
        "grad": lambda: func.grad(lambda x: f(x, w).square().sum())(x),
        "hessian": lambda: func.hessian(lambda x: f(x, w).square().sum())(x[:1]),
        "vmap": lambda: func.vmap(f, (0, None))(x, w),
        "vmap of grad": lambda: func.vmap(func.grad(lambda r: f(r, w).square().sum()))(x),
        "linearize": lambda: func.linearize(lambda x: f(x, w), x)[1](x),
    }
    for name, call in asked.items():
        own = call()
        with arithmetic(DOUBLE, backward=backward) as ran:
            found = call()
        assert torch.allclose(found, own, rtol=1e-11, atol=1e-12), name
        assert ran.rows, name
        assert not ran.left, name


@pytest.mark.parametrize("i", [H, FP8, NV], ids=lambda i: i.label)
def test_vmap_is_a_loop(i) -> None:
    """Where a scale is of a whole tensor, it is of one example's."""
    x, w = normal(3, 4, 48) * torch.tensor([1.0, 10.0, 100.0])[:, None, None], normal(48, 6, seed=1)
    with arithmetic(i):
        together = torch.func.vmap(torch.matmul, (0, None))(x, w)
        assert torch.equal(together, torch.stack([each @ w for each in x]))
        assert torch.func.vmap(torch.matmul, (0, None))(x[:, :0], w).shape == (3, 0, 6)


def test_forward_mode_of_what_torch_calls_itself_is_refused() -> None:
    x = normal(4, 6)
    with arithmetic(H), pytest.raises(NotImplementedError, match="no forward-mode derivative") as caught:
        torch.func.jvp(torch.cov, (x,), (x,))
    assert "\n" not in str(caught.value)


def test_tangents_of_compiled_functions() -> None:
    """They run uncompiled where that is allowed, and are refused where not; never zero."""
    x, w = normal(4, 6), normal(6, 3, seed=1)

    def tangent(called):
        with forward_ad.dual_level(), arithmetic(H):
            return forward_ad.unpack_dual(called(forward_ad.make_dual(x, x))).tangent

    torch._dynamo.reset()
    compiled = torch.compile(lambda x: x @ w, backend="aot_eager")
    with arithmetic(H):
        assert torch.equal(compiled(x), rounded(x, w))
    assert torch.allclose(tangent(compiled), x @ w, rtol=1e-6)
    torch._dynamo.reset()
    # of ours; torch 2.15 refuses it itself
    with pytest.raises(RuntimeError, match=r"no forward-mode derivative|forward-mode AD tangent"):
        tangent(torch.compile(lambda x: x @ w, backend="aot_eager", fullgraph=True))


# ---- checkpoints -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("backward", ["full", "through"])
@pytest.mark.parametrize("reentrant", [True, False])
@pytest.mark.parametrize("where", ["within", "in torch's own", "outside"])
def test_a_checkpoint_computes_again_in_the_same_arithmetic(
    reentrant: bool, backward: str, where: str
) -> None:
    first, second = normal(40, 40), normal(40, 7, seed=1)

    def model(x):
        return torch.sigmoid(x @ first) @ second

    found = []
    for again in (False, True):
        x = normal(5, 40, seed=2).requires_grad_()
        with arithmetic(FP8, backward=backward):
            y = checkpoint(model, x, use_reentrant=reentrant) if again else model(x)
            if where == "within":
                y.square().sum().backward()
        with arithmetic(None) if where == "in torch's own" else nullcontext():
            if where != "within":
                y.square().sum().backward()
        found.append((y.detach(), x.grad))
    assert torch.equal(found[0][0], found[1][0])
    assert torch.equal(found[0][1], found[1][1])
    x = normal(5, 40, seed=2).requires_grad_()
    model(x).square().sum().backward()
    assert not torch.equal(x.grad, found[0][1])


@pytest.mark.parametrize("reentrant", [True, False])
def test_a_checkpoint_outside_of_contexts_is_torch_s(reentrant: bool) -> None:
    first, second = normal(40, 40), normal(40, 7, seed=1)
    x, z = (normal(5, 40, seed=2).requires_grad_() for _ in range(2))

    def model(x):
        return torch.sigmoid(x @ first) @ second

    y = checkpoint(model, x, use_reentrant=reentrant)
    with arithmetic(FP8):  # not the context of its forward pass
        y.square().sum().backward()
    model(z).square().sum().backward()
    assert torch.equal(x.grad, z.grad)
