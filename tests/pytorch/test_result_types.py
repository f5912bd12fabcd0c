"""Results have torch's own types: of every function, of operands of every type, under every autocast."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is an extra: pip install 'mmaformal[torch]'")

from torch import nn
from torch.nn import functional

from mmaformal import hopper
from mmaformal.torch import arithmetic

# torch's own warnings, which differ from version to version
pytestmark = pytest.mark.filterwarnings("default")

H = hopper["HMMA.16816.F32"]


def calls(dtype) -> dict[str, object]:
    def r(*shape: int):
        return torch.randn(*shape, dtype=dtype)

    x, w, v = r(4, 6), r(6, 5), r(6)
    image, kernel = r(1, 2, 8), r(3, 2, 3)
    plain = torch.ops.aten
    ends = torch.tensor([4, 8], dtype=torch.int32)
    return {
        "matmul": lambda: torch.matmul(x, w),
        "matmul, vectors": lambda: v @ v,
        "matmul, vector": lambda: x @ v,
        "mm": lambda: torch.mm(x, w),
        "bmm": lambda: torch.bmm(x[None], w[None]),
        "mv": lambda: torch.mv(x, v),
        "dot": lambda: torch.dot(v, v),
        "vdot": lambda: torch.vdot(v, v),
        "addmm": lambda: torch.addmm(r(5), x, w),
        "addmm_": lambda: r(4, 5).addmm_(x, w),
        "addmv": lambda: torch.addmv(r(4), x, v),
        "baddbmm": lambda: torch.baddbmm(r(1, 4, 5), x[None], w[None]),
        "addbmm": lambda: torch.addbmm(r(4, 5), x[None], w[None]),
        "inner": lambda: torch.inner(x, r(3, 6)),
        "inner, vectors": lambda: torch.inner(v, v),
        "vecdot": lambda: torch.linalg.vecdot(x, v),
        "tensordot": lambda: torch.tensordot(x, w, 1),
        "multi_dot": lambda: torch.linalg.multi_dot([x, w, r(5, 2)]),
        "chain_matmul": lambda: torch.chain_matmul(x, w, r(5, 2)),
        "einsum": lambda: torch.einsum("ij,jk->ik", x, w),
        "einsum, three": lambda: torch.einsum("ij,jk,kl->il", x, w, r(5, 2)),
        "einsum, elements": lambda: torch.einsum("ij,ij->ij", x, x),
        "einsum, vectors": lambda: torch.einsum("i,i->", v, v),
        "einsum, outer": lambda: torch.einsum("i,j->ij", v, v),
        "einsum, one": lambda: torch.einsum("ij->i", x),
        "linear": lambda: functional.linear(x, w.T, r(5)),
        "bilinear": lambda: functional.bilinear(x, x, r(3, 6, 6), r(3)),
        "attention": lambda: functional.scaled_dot_product_attention(*(x[None, None],) * 3),
        "heads": lambda: nn.MultiheadAttention(6, 2).to(dtype)(*(x[None],) * 3)[0],
        "conv1d": lambda: functional.conv1d(image, kernel),
        "conv_transpose1d": lambda: functional.conv_transpose1d(image, r(2, 3, 3)),
        "convolution": lambda: torch.convolution(image, kernel, None, (1,), (0,), (1,), False, (0,), 1),
        "conv_tbc": lambda: torch.conv_tbc(r(9, 3, 4), r(3, 4, 2), r(2)),
        "matrix_power": lambda: torch.linalg.matrix_power(x[:, :4], 3),
        "matrix_power, 1": lambda: torch.linalg.matrix_power(x[:, :4], 1),
        "cdist": lambda: torch.cdist(x, x, compute_mode="use_mm_for_euclid_dist"),
        "cdist, few": lambda: torch.cdist(x, x),
        "grouped_mm": lambda: functional.grouped_mm(r(8, 16), r(2, 16, 8), offs=ends),
        "aten.mm": lambda: plain.mm(x, w),
        "aten.dot": lambda: plain.dot.default(v, v),
        "aten.linear": lambda: plain.linear(x, w.T),
        "cov": lambda: torch.cov(x),
    }


KINDS = torch.float32, torch.float64, torch.bfloat16, torch.float16


def type_of(dtype, autocast, name: str, *contexts):
    """The type of a result, or None where torch has none."""
    call = calls(dtype)[name]
    with torch.autocast("cpu", autocast or torch.bfloat16, enabled=autocast is not None):
        if not contexts:
            try:
                return call().dtype
            except RuntimeError:
                return None
        with contexts[0]:
            return call().dtype


@pytest.mark.parametrize("name", calls(torch.float32))
def test_types_are_torch_s(name: str) -> None:
    met = 0
    for dtype in KINDS:
        for autocast in (None, torch.bfloat16, torch.float16):
            own = type_of(dtype, autocast, name)
            if own is not None:
                assert type_of(dtype, autocast, name, arithmetic(H)) == own, (dtype, autocast)
                met += 1
    assert met >= 9
