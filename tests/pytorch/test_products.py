"""Single products: bit for bit `matmul`'s, and torch's own where the arithmetic is as wide as torch's."""

from __future__ import annotations

import threading
from collections.abc import Callable

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is an extra: pip install 'mmaformal[torch]'")

from torch import nn
from torch.nn import functional

from mmaformal import cdna2, hopper, matmul, rtx_blackwell, sapphire_rapids, volta
from mmaformal import torch as models
from mmaformal.formats import fp32
from mmaformal.gemm import values
from mmaformal.quantise import Quantised, quantise
from mmaformal.torch import Arithmetic, arithmetic
from mmaformal.torch.product import multiply, product

H = hopper["HMMA.16816.F32"]
DOUBLE = hopper["DMMA.16x8x16"]
FP8 = hopper["QGMMA.64x8x32.F32.E4M3.E4M3"]
MX = rtx_blackwell["QMMA.SF.16832.F32.E4M3.E4M3.E8"]
NV = rtx_blackwell["OMMA.SF.16864.F32.E2M1.E2M1.UE4M3.4X"]
INTEL = sapphire_rapids["TDPBF16PS"]

TWO_NANS = [sapphire_rapids[name] for name in ("VDPBF16PS", "VFMADD231PH")]


def normal(*shape: int, seed: int = 0, dtype=torch.float32):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=dtype)


def test_every_spelling_of_a_product_is_matmul_s() -> None:
    x, w = normal(33, 40), normal(24, 40, seed=1)
    wanted = matmul(x.half(), w.T.half(), instruction=H)
    assert torch.equal(models.linear(x, w, instruction=H), wanted)
    assert torch.equal(models.matmul(x, w.T, instruction=H), wanted)
    with arithmetic(H):
        found = [
            x @ w.T,
            torch.matmul(x, w.T),
            x.mm(w.T),
            functional.linear(x, w),
            torch.einsum("ij,kj->ik", x, w),
            torch.addmm(torch.zeros(24), x, w.T),
            torch.bmm(x[None], w.T[None])[0],
            torch.tensordot(x, w, ([1], [1])),
            torch.inner(x, w),
            torch.stack([row @ w.T for row in x]),
            torch.stack([torch.mv(x, row) for row in w], 1),
            functional.conv2d(x[:, :, None, None], w[:, :, None, None])[:, :, 0, 0],
        ]
    for each in found:
        assert torch.equal(each, wanted)
    assert not torch.equal(x @ w.T, wanted)


@pytest.mark.parametrize("i", [H, INTEL, FP8, MX, NV], ids=lambda i: i.label)
def test_a_batch_is_its_products_one_by_one(i) -> None:
    """They run many at a time, most of whose outputs are not used; without scales of the whole they are the same."""
    scaling = {"scaling": "row"} if i is FP8 else {}
    a, b = normal(37, 5, 24), normal(37, 24, 7, seed=1)
    together = models.matmul(a, b, instruction=i, **scaling)
    if i is NV:  # its factor is the largest magnitude of all
        left, right = (quantise(x.reshape(-1, 24).numpy(), i, s) for x, s in ((a, "a"), (b.mT, "b")))
        assert left.scales is not None
        assert right.scales is not None
        factor = np.float32(left.factor) * np.float32(right.factor)
        one = matmul(
            left.codes[:5],
            right.codes[:7].T,
            instruction=i,
            scale_a=left.scales[:5],
            scale_b=right.scales[:7].T,
        )
        assert np.allclose(one.view(np.float32) * factor, together[0].numpy(), rtol=1e-6)
        return
    for each in range(37):
        assert torch.equal(together[each], models.matmul(a[each], b[each], instruction=i, **scaling))


def test_factors_that_change_places_change_nothing() -> None:
    x, w = normal(50, 40), normal(3, 40, seed=1)
    x[2, 3], w[1, 5] = torch.inf, torch.nan
    wanted = matmul(x.half(), w.T.half(), instruction=H)
    assert np.array_equal(models.matmul(x, w.T, instruction=H).numpy(), wanted.numpy(), equal_nan=True)


@pytest.mark.parametrize("i", TWO_NANS, ids=lambda i: i.label)
def test_of_two_nans_the_result_is_matmul_s(i) -> None:
    """The NaN of one of the operands: of a product made as its transpose it would be that of the other."""
    one, inf = i.a_format.code("1"), i.a_format.code("inf")
    a, b = (np.full((rows, 4), one, i.a_format.word) for rows in (150, 140))
    a[:, 0], b[:, 0] = inf + 1, inf + 2
    found = multiply(Quantised(a, None, None), Quantised(b, None, None), (1, 150, 140, 4), Arithmetic.of(i))
    wanted = values(matmul(a, b.T, instruction=i), i.d_format, fp32)
    assert np.array_equal(found[0].view(np.uint32), wanted.view(np.uint32))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64], ids=str)
def test_results_have_the_type_of_operands(dtype) -> None:
    x, w, bias = (t.to(dtype) for t in (normal(4, 20), normal(3, 20, seed=1), normal(3, seed=2)))
    d = models.linear(x, w, bias, instruction=H)
    exact = matmul(x.half(), w.T.half(), instruction=H) + bias
    assert d.dtype == dtype
    assert torch.equal(d, exact.to(dtype))


def test_a_narrow_accumulator_and_how_k_is_divided() -> None:
    x, w = normal(4, 64), normal(3, 64, seed=1)
    half = hopper["HMMA.16816.F16"]
    assert torch.equal(
        models.matmul(x, w.T, instruction=half), matmul(x.half(), w.T.half(), instruction=half).float()
    )
    wanted = matmul(x.half(), w.T.half(), instruction=H, split_k=2)
    assert torch.equal(models.matmul(x, w.T, instruction=H, split_k=2), wanted)


MASK = torch.rand(5, 7, generator=torch.Generator().manual_seed(3)) > 0.5
MASK[2] = False

CALLS: dict[str, Callable[[], object]] = {
    "linear": lambda: nn.Linear(9, 4)(torch.randn(2, 3, 9)),
    "bilinear": lambda: nn.Bilinear(5, 4, 3)(torch.randn(7, 5), torch.randn(7, 4)),
    "addmm": lambda: torch.addmm(torch.randn(4), torch.randn(3, 5), torch.randn(5, 4), beta=0.5, alpha=2),
    "addmm_": lambda: torch.randn(3, 4).addmm_(torch.randn(3, 5), torch.randn(5, 4)),
    "addmv": lambda: torch.addmv(torch.randn(3), torch.randn(3, 5), torch.randn(5)),
    "addbmm": lambda: torch.addbmm(torch.randn(3, 4), torch.randn(6, 3, 5), torch.randn(6, 5, 4)),
    "baddbmm": lambda: torch.baddbmm(torch.randn(6, 3, 4), torch.randn(6, 3, 5), torch.randn(6, 5, 4)),
    "matrix and vector": lambda: torch.randn(60, 3) @ torch.randn(3),
    "vector and matrices": lambda: torch.randn(3) @ torch.randn(2, 3, 4),
    "batches": lambda: torch.randn(2, 1, 3, 5) @ torch.randn(4, 5, 2),
    "reflected": lambda: torch.randn(3, 5).__rmatmul__(torch.randn(2, 3)),
    "dot": lambda: torch.dot(torch.randn(30), torch.randn(30)),
    "inner": lambda: torch.inner(torch.randn(3, 4, 5), torch.randn(2, 5)),
    "vecdot": lambda: torch.linalg.vecdot(torch.randn(3, 4), torch.randn(4)),
    "tensordot": lambda: torch.tensordot(torch.randn(3, 4, 5), torch.randn(5, 4, 2), dims=([1, 2], [1, 0])),
    "multi_dot": lambda: torch.linalg.multi_dot([torch.randn(3, 4), torch.randn(4, 5), torch.randn(5, 2)]),
    "conv1d": lambda: nn.Conv1d(4, 6, 5, padding=2, dilation=2)(torch.randn(3, 4, 19)),
    "conv2d": lambda: nn.Conv2d(4, 6, 3, stride=2, padding=1, groups=2)(torch.randn(3, 4, 9, 11)),
    "conv2d, same": lambda: nn.Conv2d(4, 6, (3, 4), padding="same", dilation=(1, 2))(
        torch.randn(3, 4, 9, 11)
    ),
    "conv2d, circular": lambda: nn.Conv2d(4, 6, 3, padding=1, padding_mode="circular")(torch.randn(4, 9, 11)),
    "conv3d": lambda: nn.Conv3d(2, 3, (2, 3, 1), stride=(1, 2, 1))(torch.randn(2, 2, 5, 6, 7)),
    "conv_transpose1d": lambda: nn.ConvTranspose1d(4, 6, 4, stride=3, padding=2, dilation=2)(
        torch.randn(3, 4, 5)
    ),
    "conv_transpose2d": lambda: nn.ConvTranspose2d(4, 6, 3, stride=2, padding=1, output_padding=1, groups=2)(
        torch.randn(3, 4, 5, 6)
    ),
    "conv_transpose3d": lambda: nn.ConvTranspose3d(4, 2, 2, stride=2)(torch.randn(4, 3, 4, 5)),
    "attention": lambda: functional.scaled_dot_product_attention(
        torch.randn(2, 4, 5, 8), torch.randn(2, 2, 7, 8), torch.randn(2, 2, 7, 6), enable_gqa=True
    ),
    "attention, causal": lambda: functional.scaled_dot_product_attention(
        torch.randn(2, 5, 8), torch.randn(2, 7, 8), torch.randn(2, 7, 6), is_causal=True
    ),
    "attention, masked": lambda: functional.scaled_dot_product_attention(
        torch.randn(2, 5, 8), torch.randn(2, 7, 8), torch.randn(2, 7, 6), attn_mask=MASK, scale=0.3
    ),
    "many heads": lambda: nn.MultiheadAttention(8, 2, kdim=5, vdim=6)(
        torch.randn(5, 3, 8), torch.randn(4, 3, 5), torch.randn(4, 3, 6)
    )[0],
    "encoder": lambda: nn.TransformerEncoderLayer(8, 2, 16, batch_first=True).eval()(torch.randn(3, 5, 8)),
    "transformer": lambda: nn.Transformer(8, 2, 1, 1, 16, dropout=0.0, batch_first=True)(
        torch.randn(3, 5, 8), torch.randn(3, 4, 8)
    ),
}


@pytest.fixture
def doubles():
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


def check(call: Callable[[], object]) -> None:
    """torch's result, nearly, on hopper's fp64; bit for bit without the context, after it too."""
    torch.manual_seed(1)
    own = call()
    torch.manual_seed(1)
    with arithmetic(DOUBLE):
        found = call()
    torch.manual_seed(1)
    again = call()
    assert found.shape == own.shape
    assert found.dtype == own.dtype
    assert torch.allclose(found, own, rtol=1e-12, atol=1e-13)
    assert torch.equal(own, again)
    # An arithmetic that is not torch's gives another result: what ran was the arithmetic.
    torch.manual_seed(1)
    with arithmetic(H):
        assert not torch.allclose(call(), own, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("name", CALLS)
def test_every_function_is_torch_s(name: str, doubles: None) -> None:
    check(CALLS[name])


EQUATIONS = {
    "bij,bjk->bik": ((2, 3, 4), (2, 4, 5)),
    "ij,jk,kl->il": ((2, 3), (3, 4), (4, 5)),
    "iij,jk->ki": ((3, 3, 4), (4, 5)),
    "b...i,...ij->b...j": ((2, 6, 3), (6, 3, 4)),
    "i,j->ij": ((3,), (4,)),
    "bhqd,bhkd->bhqk": ((2, 3, 4, 5), (2, 3, 6, 5)),
    "ij,ij->": ((3, 4), (3, 4)),
    "ij,kj->": ((3, 4), (2, 4)),
    "abc,cd": ((2, 3, 4), (4, 5)),
    "bi,bj->bij": ((2, 3), (1, 2)),
}


@pytest.mark.parametrize("equation", EQUATIONS)
def test_einsum(equation: str, doubles: None) -> None:
    check(lambda: torch.einsum(equation, *(torch.randn(shape) for shape in EQUATIONS[equation])))


def test_einsum_of_lists_and_of_one_tensor(doubles: None) -> None:
    check(lambda: torch.einsum(torch.randn(3, 4), [0, 1], torch.randn(4, 5), [1, 2], [0, 2]))
    check(lambda: torch.einsum("ij,jk", [torch.randn(3, 4), torch.randn(4, 5)]))
    x = torch.randn(3, 3)
    with arithmetic(H):
        assert torch.equal(torch.einsum("ii->i", x), x.diagonal())


# ---- contexts ----------------------------------------------------------------------------------------------------


def test_contexts_in_contexts_and_errors_that_leave_them() -> None:
    x, w = normal(5, 48), normal(48, 6, seed=1)
    own, half, eight = x @ w, models.matmul(x, w, instruction=H), models.matmul(x, w, instruction=FP8)
    with arithmetic(H):
        assert torch.equal(x @ w, half)
        with arithmetic(FP8):
            assert torch.equal(x @ w, eight)
            with arithmetic(None):
                assert torch.equal(x @ w, own)
            assert torch.equal(x @ w, eight)
        with pytest.raises(RuntimeError, match="do not fit"), arithmetic(FP8):
            x @ w.T[:3]
        assert torch.equal(x @ w, half)
    assert torch.equal(x @ w, own)
    with pytest.raises(ZeroDivisionError), arithmetic(H):
        raise ZeroDivisionError
    assert torch.equal(x @ w, own)
    again = arithmetic(H)
    for _ in range(2):
        with again:
            assert torch.equal(x @ w, half)
    with again, pytest.raises(RuntimeError, match="entered already"):
        again.__enter__()
    assert torch.equal(x @ w, own)


def test_each_thread_has_its_own() -> None:
    x, w = normal(5, 48), normal(48, 6, seed=1)
    own, half = x @ w, models.matmul(x, w, instruction=H)
    found: dict[str, object] = {}

    def run(name: str, *options: object) -> None:
        if options:
            with arithmetic(*options):
                found[name] = x @ w
        else:
            found[name] = x @ w

    with arithmetic(FP8):
        threads = [threading.Thread(target=run, args=each) for each in (("torch",), ("half", H))]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
    assert torch.equal(found["torch"], own)
    assert torch.equal(found["half"], half)


def test_integers_are_torch_s() -> None:
    x = torch.arange(12).reshape(3, 4)
    with arithmetic(FP8):
        assert torch.equal(x @ x.T, torch.tensor([[14, 38, 62], [38, 126, 214], [62, 214, 366]]))


def test_autocast() -> None:
    x, w = normal(5, 48), normal(6, 48, seed=1)
    with torch.autocast("cpu", torch.bfloat16), arithmetic(INTEL):
        d = functional.linear(x, w)
    assert d.dtype == torch.bfloat16
    wanted = matmul(x.bfloat16(), w.T.bfloat16(), instruction=INTEL)
    assert torch.equal(d, wanted.bfloat16())


def message(error: type[Exception], call: Callable[[], object]) -> str:
    with pytest.raises(error) as caught:
        call()
    text = str(caught.value)
    assert "\n" not in text
    return text


def test_errors_are_a_line() -> None:
    x = normal(4, 4)
    with arithmetic(H):
        assert "complex64" in message(RuntimeError, lambda: x.to(torch.complex64) @ x.to(torch.complex64))
        assert "one type is needed" in message(RuntimeError, lambda: x @ x.double())
        assert "dense" in message(RuntimeError, lambda: x.to_sparse() @ x)
        assert "out=" in message(TypeError, lambda: torch.mm(x, x, out=torch.empty(4, 4)))
        assert "lstm" in message(NotImplementedError, lambda: nn.LSTM(4, 4)(x))
        assert (x.to("meta") @ x.to("meta")).shape == (4, 4)
    assert "names no instruction" in message(LookupError, lambda: arithmetic("hopper"))
    assert "block scales" in message(ValueError, lambda: arithmetic(MX, scaling="row"))
    assert "no block scales" in message(ValueError, lambda: arithmetic(H, scaling="block"))
    assert "backward" in message(ValueError, lambda: arithmetic(H, backward="half"))
    assert "no splitk" in message(TypeError, lambda: arithmetic(H, splitk=2))
    assert "counts from 1" in message(ValueError, lambda: arithmetic(H, jobs=0))
    assert "promote_every=1" in message(ValueError, lambda: arithmetic(volta["HMMA.884.F32.F16"]))
    assert "its own" in message(TypeError, lambda: arithmetic(Arithmetic.of(H), scaling="row"))
    assert "no such arithmetic" in message(LookupError, lambda: product(x[None], x[None], "none such"))


def test_empty_products() -> None:
    with arithmetic(H):
        assert torch.equal(torch.ones(2, 0) @ torch.ones(0, 3), torch.zeros(2, 3))
        assert (torch.ones(0, 4) @ torch.ones(4, 3)).shape == (0, 3)
        assert torch.bmm(torch.ones(0, 2, 4), torch.ones(0, 4, 3)).shape == (0, 2, 3)
        assert torch.equal(torch.bmm(torch.ones(5, 2, 0), torch.ones(5, 0, 3)), torch.zeros(5, 2, 3))


# ---- gradients ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("backward", ["full", "through"])
def test_gradients(backward: str) -> None:
    key = Arithmetic.of(DOUBLE, backward=backward).key
    a, b = normal(2, 3, 5, dtype=torch.float64), normal(2, 5, 4, seed=1, dtype=torch.float64)
    a.requires_grad_()
    b.requires_grad_()
    assert torch.autograd.gradcheck(lambda a, b: product(a, b, key), (a, b))
    assert torch.autograd.gradgradcheck(lambda a, b: product(a, b, key), (a, b))

    def model(x, w, v):
        with arithmetic(DOUBLE, backward=backward):
            y = functional.conv2d(x, w, padding=1)
            y = functional.scaled_dot_product_attention(y, y, y)
            return functional.linear(y.flatten(1), v)

    shapes = (2, 2, 4, 4), (3, 2, 3, 3), (2, 48)
    given = [normal(*shape, seed=s, dtype=torch.float64).requires_grad_() for s, shape in enumerate(shapes)]
    assert torch.autograd.gradcheck(model, given)


def test_gradients_in_full_are_torch_s_and_those_through_are_the_instruction_s() -> None:
    x, w, g = normal(7, 40), normal(5, 40, seed=1), normal(7, 5, seed=2)
    for backward in ("full", "through"):
        a, b = x.clone().requires_grad_(), w.clone().requires_grad_()
        with arithmetic(H, backward=backward):
            y = functional.linear(a, b)
        y.backward(g)
        assert torch.equal(y.detach(), matmul(x.half(), w.T.half(), instruction=H))
        if backward == "full":
            assert torch.allclose(a.grad, g @ w, rtol=1e-6)
            assert torch.allclose(b.grad, g.T @ x, rtol=1e-5)
        else:
            assert torch.equal(a.grad, matmul(g.half(), w.half(), instruction=H))
            assert torch.equal(b.grad, matmul(g.T.half(), x.half(), instruction=H))


def test_the_backward_pass_within_a_context_is_not_seen() -> None:
    x, w = normal(7, 40).requires_grad_(), normal(5, 40, seed=1)
    with arithmetic(FP8):
        functional.linear(x, w).sum().backward()
    assert torch.equal(x.grad, torch.ones(7, 5) @ w)


def test_the_lost_arithmetic_of_cdna2_flushes() -> None:
    """A model's subnormals: an arithmetic that flushes its inputs gives 0 where another does not."""
    x = torch.full((1, 4), 2.0**-15)
    w = torch.full((4, 1), 1.0)
    assert models.matmul(x, w, instruction=H).item() == 2.0**-13
    assert models.matmul(x, w, instruction=cdna2["f32_16x16x16f16"]).item() == 0.0
