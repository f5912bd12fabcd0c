"""No product is left to torch without a word: each runs in the arithmetic, is refused in a line, or is reported."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is an extra: pip install 'mmaformal[torch]'")

from torch import nn
from torch.nn import functional

from mmaformal import hopper, matmul
from mmaformal.torch import LeftToTorch, arithmetic
from mmaformal.torch.dispatch import held
from mmaformal.torch.functions import OPERATORS
from mmaformal.torch.report import Ran, report_lines

H = hopper["HMMA.16816.F32"]
#: The structure of a product of so few that one instruction takes them.
ONE = "one instruction, no scales"
DOUBLE = hopper["DMMA.16x8x16"]

# torch's own warnings, which differ from version to version
pytestmark = [
    pytest.mark.filterwarnings("default"),
    pytest.mark.filterwarnings("error::mmaformal.torch.report.LeftToTorch"),
]


def r(*shape: int, dtype=torch.float64):
    return torch.randn(*shape, dtype=dtype)


def quietly(call: Callable[[], object]) -> object:
    """The result, without what torch says of functions that it will drop."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return call()


def flexible():
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention

    mask = quietly(lambda: create_block_mask(lambda b, h, q, kv: q > kv, None, None, 16, 16, device="cpu"))
    q, k, v = r(2, 4, 16, 16), r(2, 2, 16, 16), r(2, 2, 16, 16)
    changed = {"score_mod": lambda score, b, h, q, kv: score + (q - kv), "block_mask": mask}
    return quietly(lambda: flex_attention(q, k, v, enable_gqa=True, **changed))


_CODE: dict[str, object] = {}


def traced(name: str, function: Callable[[], object], *args):
    """The function, traced at its first call, which is outside of contexts."""
    if name not in _CODE:
        _CODE[name] = quietly(lambda: torch.jit.trace(function(), args, check_trace=False))
    return _CODE[name](*args)


class Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.heads = nn.MultiheadAttention(8, 2, dtype=torch.float64)

    def forward(self, x):
        return self.heads(x, x, x)[0]


def scripted():
    def power(x, w, n: int):
        for _ in range(n):
            x = torch.mm(x, w)
        return x

    return quietly(lambda: torch.jit.script(power))(r(5, 6), r(6, 6), 3)


def in_inference(call: Callable[[], object]):
    with torch.inference_mode():
        return call()


def groups(*ends: int):
    return torch.tensor(ends, dtype=torch.int32)


aten = torch.ops.aten
ENCODER = {"d_model": 8, "nhead": 2, "dim_feedforward": 16, "batch_first": True, "dtype": torch.float64}

DONE: dict[str, Callable[[], object]] = {
    "matrix_power": lambda: torch.linalg.matrix_power(r(3, 5, 5), 6),
    "matrix_power of 3": lambda: r(5, 5).matrix_power(3),
    "cdist": lambda: torch.cdist(r(30, 5), r(4, 5)),
    "cdist, few": lambda: torch.cdist(r(3, 5), r(4, 5), compute_mode="use_mm_for_euclid_dist"),
    "aten.cdist": lambda: aten.cdist(r(30, 5), r(4, 5)),
    "convolution": lambda: torch.convolution(r(2, 4, 9), r(6, 2, 3), r(6), (2,), (1,), (1,), False, (0,), 2),
    "convolution, transposed": lambda: torch.convolution(
        r(2, 4, 5, 5), r(4, 3, 3, 2), None, (2, 1), (1, 0), (1, 1), True, (1, 0), 1
    ),
    "conv_tbc": lambda: torch.conv_tbc(r(9, 3, 4), r(3, 4, 5), r(5), 1),
    "tensordot of a size of 1": lambda: torch.tensordot(r(3, 1), r(4, 2), dims=([1], [0])),
    "aten.mm": lambda: aten.mm(r(3, 4), r(4, 5)),
    "aten.mm.default": lambda: aten.mm.default(r(3, 4), r(4, 5)),
    "aten.addmm": lambda: aten.addmm(r(5), r(3, 4), r(4, 5), beta=2),
    "aten.addmm_": lambda: aten.addmm_(r(3, 5), r(3, 4), r(4, 5)),
    "aten.bmm": lambda: aten.bmm.default(r(2, 3, 4), r(2, 4, 5)),
    "aten.linear": lambda: aten.linear(r(3, 4), r(5, 4), r(5)),
    "aten.convolution": lambda: aten.convolution(r(2, 4, 9), r(6, 4, 3), None, [1], [0], [1], False, [0], 1),
    "aten.einsum": lambda: aten.einsum("ij,jk->ik", [r(3, 4), r(4, 5)]),
    "aten.linalg_multi_dot": lambda: aten.linalg_multi_dot([r(3, 4), r(4, 5), r(5, 2)]),
    "names of parameters": lambda: torch.mm(input=r(3, 4), mat2=r(4, 5)),
    "names of parameters, addmm": lambda: torch.addmm(r(5), mat1=r(3, 4), mat2=r(4, 5)),
    "names of parameters, mv": lambda: torch.mv(r(3, 4), vec=r(4)),
    "cov": lambda: torch.cov(r(4, 9)),
    "corrcoef": lambda: torch.corrcoef(r(4, 9)),
    "cov in inference": lambda: in_inference(lambda: torch.cov(r(4, 9))),
    "traced": lambda: traced("matmul", lambda: torch.matmul, r(3, 4), r(4, 5)),
    "traced convolution": lambda: traced(
        "conv2d", lambda: nn.Conv2d(2, 3, 3, dtype=torch.float64), r(1, 2, 6, 6)
    ),
    "traced in inference": lambda: in_inference(
        lambda: traced("conv1d", lambda: nn.Conv1d(2, 3, 3, dtype=torch.float64), r(1, 2, 6))
    ),
    "scripted": scripted,
    "flex_attention": flexible,
    "grouped_mm": lambda: functional.grouped_mm(
        r(8, 16, dtype=torch.float32), r(3, 16, 8, dtype=torch.float32), offs=groups(3, 3, 8)
    ),
    "grouped_mm, columns": lambda: functional.grouped_mm(
        r(2, 4, 16, dtype=torch.float32), r(16, 12, dtype=torch.float32), offs=groups(4, 12)
    ),
    "grouped_mm, inner": lambda: functional.grouped_mm(
        r(8, 16, dtype=torch.float32), r(16, 8, dtype=torch.float32), offs=groups(4, 16)
    ),
    "grouped_mm, batches": lambda: functional.grouped_mm(
        r(2, 4, 16, dtype=torch.float32), r(2, 16, 8, dtype=torch.float32)
    ),
    "encoder without gradients": lambda: in_inference(
        lambda: nn.TransformerEncoderLayer(**ENCODER).eval()(r(2, 3, 8))
    ),
    "traced attention": lambda: traced("heads", lambda: Attention(), r(2, 3, 8)),
    "vmap": lambda: torch.func.vmap(torch.mv)(r(2, 3, 4), r(2, 4)),
}


def result(call: Callable[[], object], *contexts):
    torch.manual_seed(1)
    for context in contexts:
        with context:
            return call()
    return call()


@pytest.mark.parametrize("name", DONE)
def test_what_runs_in_the_arithmetic(name: str) -> None:
    """Nearly torch's result on hopper's fp64, another one on fp16, and a record of the latter."""
    own = result(DONE[name])
    double, half = arithmetic(DOUBLE, strict=True), arithmetic(H, strict=True)
    found = result(DONE[name], double)
    assert (found.dtype, found.shape) == (own.dtype, own.shape)
    near = {"rtol": 1e-11, "atol": 1e-12} if own.dtype == torch.float64 else {"rtol": 1e-4, "atol": 1e-4}
    assert torch.allclose(found, own, **near)
    assert not torch.allclose(result(DONE[name], half), own, rtol=1e-5, atol=1e-7)
    assert {row.where for row in half.rows} == {H.label}
    assert torch.equal(result(DONE[name]), own)


def test_gradients_of_what_torch_calls_itself_are_torch_s() -> None:
    x, y = r(4, 9).requires_grad_(), r(4, 9)
    y = y.copy_(x.detach()).requires_grad_()
    g = r(4, 4)
    with arithmetic(H, strict=True):  # the backward pass within the context too
        torch.cov(x).backward(g)
    torch.cov(y).backward(g)
    assert torch.equal(x.grad, y.grad)
    with (
        arithmetic(H, backward="through", strict=True),
        pytest.raises(NotImplementedError, match="gradients"),
    ):
        torch.cov(x)


LEFT: dict[str, Callable[[], object]] = {
    "matrix_exp": lambda: torch.linalg.matrix_exp(r(4, 4)),
    "solve": lambda: torch.linalg.solve(r(4, 4), r(4, 2)),
    "inv": lambda: torch.linalg.inv(r(4, 4)),
    "pinv": lambda: torch.linalg.pinv(r(4, 3)),
    "qr": lambda: torch.linalg.qr(r(4, 3))[0],
    "svd": lambda: torch.linalg.svdvals(r(4, 3)),
    "det": lambda: torch.linalg.det(r(4, 4)),
    "cholesky": lambda: torch.linalg.cholesky(torch.eye(3)),
    "householder_product": lambda: torch.linalg.householder_product(r(4, 3), r(3)),
    "trilinear": lambda: aten._trilinear(r(3, 4), r(3, 4), r(3, 4), [], [], [], [1]),
    "embedding_bag": lambda: functional.embedding_bag(
        torch.tensor([[0, 1]]), r(4, 3), per_sample_weights=r(1, 2), mode="sum"
    ),
    "fused attention": lambda: aten._scaled_dot_product_flash_attention_for_cpu(*(r(1, 2, 4, 8),) * 3)[0],
    "gradient of a convolution": lambda: aten.convolution_backward(
        r(1, 3, 4), r(1, 2, 6), r(3, 2, 3), None, [1], [0], [1], False, [0], 1, [True, True, False]
    )[0],
    "mkldnn": lambda: aten.mkldnn_convolution(
        r(1, 2, 6, 6, dtype=torch.float32),
        r(3, 2, 3, 3, dtype=torch.float32),
        None,
        [0, 0],
        [1, 1],
        [1, 1],
        1,
    ),
    "complex": lambda: torch.cov(torch.complex(r(3, 4), r(3, 4))),
    "traced recurrent layer": lambda: traced("lstm", lambda: nn.LSTM(4, 3), r(2, 1, 4, dtype=torch.float32))[
        0
    ],
}


@pytest.mark.parametrize("name", LEFT)
def test_what_is_left_to_torch_is_said(name: str) -> None:
    own = result(LEFT[name])
    ran = arithmetic(H)
    with pytest.warns(LeftToTorch, match="ran in torch's own arithmetic") as said:
        found = result(LEFT[name], ran)
    assert torch.allclose(found, own, rtol=1e-12)
    assert [row.where for row in ran.left] == ["torch"] * len(ran.left) != []
    assert all("\n" not in str(each.message) for each in said)
    assert "torch" in ran.table()
    assert ran.to_csv().splitlines()[0] == "function,shapes,times,where,why,structure"
    assert len(ran.to_csv().splitlines()) == 1 + len(ran.rows)
    assert ran.to_latex().startswith(r"\begin{tabular}{llrlll}")
    with pytest.raises(RuntimeError) as caught:
        result(LEFT[name], arithmetic(H, strict=True))
    if not name.startswith("traced"):  # torch says only where in the traced code
        assert "strict" in str(caught.value)
        assert "\n" not in str(caught.value)


def test_quantised_layers_are_said() -> None:
    model = nn.Sequential(nn.Linear(8, 4))
    try:
        model = quietly(lambda: torch.ao.quantization.quantize_dynamic(model, {nn.Linear}, dtype=torch.qint8))
    except RuntimeError:
        pytest.skip("this torch has no quantised layers on this processor")
    with arithmetic(H, strict=True), pytest.raises(NotImplementedError, match="linear_dynamic"):
        model(torch.randn(2, 8))


x32 = torch.ones(4, 4)
REFUSED: dict[str, Callable[[], object]] = {
    "sparse.mm": lambda: torch.sparse.mm(x32.to_sparse(), x32),
    "sparse @": lambda: x32.to_sparse() @ x32,
    "csr": lambda: torch.mm(x32.to_sparse_csr(), x32),
    "sparse.addmm": lambda: torch.sparse.addmm(x32, x32.to_sparse(), x32),
    "hspmm": lambda: torch.hspmm(x32.to_sparse(), x32),
    "scaled_mm": lambda: torch._scaled_mm(
        x32.to(torch.float8_e4m3fn), x32.to(torch.float8_e4m3fn), torch.tensor(1.0), torch.tensor(1.0)
    ),
    "lstm": lambda: nn.LSTM(4, 3)(x32),
    "gru cell": lambda: nn.GRUCell(4, 3)(x32),
    "nested": lambda: torch.nested.nested_tensor([x32, x32]) @ torch.nested.nested_tensor([x32, x32]),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused(name: str) -> None:
    with arithmetic(H), pytest.raises((NotImplementedError, RuntimeError)) as caught:
        quietly(REFUSED[name])
    assert "\n" not in str(caught.value)
    assert any(word in str(caught.value) for word in ("sparse", "scales", "recurrent", "nested"))


def test_the_report() -> None:
    x, w = r(3, 4), r(4, 5)
    own = torch.cov(x)
    with arithmetic(H) as ran:
        for _ in range(2):
            x @ w
        torch.cov(x)
        with arithmetic(None) as inner:
            x @ w
            assert torch.equal(torch.cov(x), own)
        functional.scaled_dot_product_attention(x[None], x[None], x[None])
    assert [tuple(row) for row in ran.rows] == [
        ("matmul", "3×4 · 4×5", 2, H.label, "", ONE),
        ("aten.mm", "3×4 · 4×3", 1, H.label, "", ONE),
        ("scaled_dot_product_attention", "3×4 · 4×3", 1, H.label, "", ONE),
        ("scaled_dot_product_attention", "3×3 · 3×4", 1, H.label, "", ONE),
    ]
    assert inner.rows == ran.left == []
    lines = ran.table().splitlines()
    assert lines[0] == f"arithmetic: {H.label}"
    assert lines[1] == f"  {ONE}"
    assert lines[2].split() == ["function", "operands", "times", "computed", "in", "because"]
    assert lines[4].split() == ["matmul", *["3×4", "·", "4×5"], "2", "arithmetic"]
    long = report_lines([Ran("f" * 99, "1×2, " * 40, 10**6, "l" * 60, "w" * 60)])
    assert max(map(len, [*lines, *long.splitlines()])) <= 120
    assert arithmetic(H).table() == "no product of matrices"
    assert matmul(x.half(), w.half(), instruction=H).shape == (3, 5)
    assert len(ran.rows) == 4


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ({}, "one chain over K, 16 at a time, no scales"),
        ({"promote_every": 2}, "promoted every 2 instructions (32 products), no scales"),
        ({"split_k": 4, "order": "pairwise"}, "split_k=4, order=pairwise, no scales"),
        ({"scaling": "tensor"}, "one chain over K, 16 at a time, scales by tensor"),
    ],
)
def test_the_report_says_the_structure_of_every_product(how: dict[str, Any], said: str) -> None:
    with arithmetic(H, **how) as ran:
        r(3, 64) @ r(64, 5)
        functional.linear(r(2, 64), r(7, 64))
    assert [row.structure for row in ran.rows] == [said, said]
    assert f"  {said}" in ran.table().splitlines()
    with arithmetic(H) as ran, pytest.warns(LeftToTorch):
        torch.linalg.inv(r(3, 3))
    assert [(row.where, row.structure) for row in ran.left] == [("torch", "")]
    assert all(row.why for row in ran.left)


def test_integers_and_elements_are_not_said() -> None:
    whole = torch.arange(12).reshape(3, 4)
    with arithmetic(H, strict=True) as ran:
        whole @ whole.T
        torch.kron(r(2, 2), r(2, 2)), torch.outer(r(3), r(4)), torch.addr(r(3, 4), r(3), r(4))
        functional.layer_norm(r(3, 4), (4,)), torch.fft.fft(r(8)), (r(3) * r(3)).sum()
    assert ran.rows == []


def test_what_torch_counts_as_products_is_known() -> None:
    """torch's own counter of floating-point operations is another list of operators that hold products."""
    from torch.utils.flop_counter import flop_registry

    names = {str(each).removeprefix("aten.") for each in flop_registry}
    assert len(names) > 15
    assert {name for name in names if name not in OPERATORS and not held(name)} == set()
    assert not any(map(held, ("add", "mul", "softmax", "upsample_linear1d", "lgamma", "_to_copy", "cumsum")))


def test_compiled_code_says_what_it_runs() -> None:
    torch._dynamo.reset()
    a = torch.eye(3) + 1
    model = torch.compile(lambda x: torch.linalg.inv(a) + x @ x, backend="aot_eager", fullgraph=True)
    with pytest.warns(LeftToTorch, match="inv"), arithmetic(H) as ran:
        model(torch.ones(3, 3))
    assert [(row.function, row.where) for row in ran.rows] == [
        ("aten.linalg_inv_ex", "torch"),
        ("compiled code", H.label),
    ]
