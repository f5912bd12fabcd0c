"""The table of operators: how each is replayed.

An operator moves numbers, computes each number by itself, or reduces them to what no order changes: these are called
from torch, and counted.  One that adds is a sum, which has a rule here.  What stands in no table is not replayed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import torch

from mmaformal.torch.replayed import library
from mmaformal.torch.replayed.attention import Functions, attend
from mmaformal.torch.replayed.lanes import F32, WIDTHS
from mmaformal.torch.replayed.products import NoRuleError, Products
from mmaformal.torch.replayed.reductions import layer_norm, row_sums, softmax
from mmaformal.torch.tensors import Call, Tensor

#: Operators that are called from torch, by what they do: views, copies, constants and numbers chosen by their places;
#: each number from those in its place; one of the numbers, or a truth, which no order changes.
CALLED = {
    does: frozenset(names.split())
    for does, names in {
        "moved": "_local_scalar_dense _unsafe_view alias arange as_strided cat clone constant_pad_nd copy detach "
        "diagonal embedding empty empty_like empty_strided expand fill flip full full_like gather index index_put "
        "index_select lift_fresh lift_fresh_copy masked_fill masked_select new_empty new_empty_strided new_full "
        "new_ones new_zeros ones ones_like permute repeat roll scalar_tensor select select_scatter slice slice_scatter "
        "split split_with_sizes squeeze stack t transpose tril tril_indices triu unbind unfold unsqueeze view where "
        "zero zeros zeros_like",
        "elementwise": "_to_copy abs add addcmul bitwise_and bitwise_not bitwise_or bitwise_xor ceil clamp clamp_max "
        "clamp_min cos div elu eq erf exp expm1 floor floor_divide fmod ge gelu gt hardtanh isinf isnan le leaky_relu "
        "lerp log log1p log2 logical_and logical_not logical_or logical_xor lt maximum minimum mul ne neg pow "
        "reciprocal relu remainder round rsqrt rsub sigmoid sign silu sin softplus sqrt sub tan tanh trunc",
        "chosen": "all amax amin any argmax argmin max min sort topk",
    }.items()
}
#: Sums, which no order changes where they are of integers.
_ADDS = frozenset({"cumsum", "prod", "sum"})

FLOATS = (torch.float32, torch.bfloat16)


@dataclass
class ReplayState:
    """The structures that one replay has learnt, and what it has taken from libraries so far."""

    products: Products
    taken: Counter[str] = field(default_factory=Counter)  #: elementwise functions of libraries, by name

    def of_library(self, name: str, function: Callable[[F32], F32]) -> Callable[[F32], F32]:
        """Returns a function that is counted when it is called."""

        def counted(x: F32) -> F32:
            self.taken[name] += 1
            return function(x)

        return counted


def kind(name: str, tensors: list[Tensor]) -> str:
    """Returns what an operator does: `moved`, `elementwise`, `chosen`, `sum`; "" of one that is in no table."""
    if name in SUMS and any(x.is_floating_point() or x.is_complex() for x in tensors):
        return "sum"
    plain = name.removesuffix("_")
    if plain in _ADDS and not any(x.is_floating_point() or x.is_complex() for x in tensors):
        return "chosen"
    return next((does for does, names in CALLED.items() if plain in names), "")


# ---- sums ------------------------------------------------------------------------------------------------------------


def _width() -> int:
    """Returns how many numbers of fp32 a register has; raises NoRuleError where torch's kernels are not known."""
    if (found := torch.backends.cpu.get_cpu_capability()) not in WIDTHS:
        raise NoRuleError(f"kernels for {found}; those for {' and '.join(WIDTHS)} are known")
    return WIDTHS[found]


def _rows(x: Tensor, dims: int = 1) -> F32:
    """Returns the last axes as rows of fp32.

    Raises NoRuleError for other types, for rows that do not lie one after the other, and on other processors.
    """
    _width()
    if x.dtype not in FLOATS:
        raise NoRuleError(f"a sum of {x.dtype}")
    if not x.is_contiguous() or not x.numel():
        raise NoRuleError("a sum of numbers that do not lie one after the other")
    shape = x.shape[: x.dim() - dims]
    return np.asarray(x.float().reshape(shape.numel() if shape else 1, -1).numpy(), np.float32)


def _tensor(x: F32, shape: tuple[int, ...], dtype: Tensor) -> Tensor:
    return torch.from_numpy(np.ascontiguousarray(x)).reshape(shape).to(dtype)


def _last_axis(x: Tensor, dims: list[int] | None) -> None:
    if dims is None or [each % x.dim() for each in dims] != [x.dim() - 1]:
        raise NoRuleError("a sum over other axes than the last one")
    if x.shape[:-1].numel() == 1 and x.numel() >= _SPLIT and torch.get_num_threads() > 1:
        raise NoRuleError("one sum that threads share")


#: Numbers from which on threads share a sum.
_SPLIT = 1 << 15


def _totals(x: Tensor, dims: list[int] | None, keepdim: bool, dtype: Tensor) -> tuple[F32, tuple[int, ...]]:
    """Returns sums over the last axis, in fp32, and the shape of what is made of them."""
    _last_axis(x, dims)
    if dtype not in (None, x.dtype):
        raise NoRuleError(f"a sum of {x.dtype} in {dtype}")
    shape = (*x.shape[:-1], 1) if keepdim else tuple(x.shape[:-1])
    return row_sums(_rows(x), x.dtype == torch.bfloat16), shape


def _sum(
    state: ReplayState, x: Tensor, dims: list[int] | None, keepdim: bool = False, *, dtype: Tensor = None
) -> Tensor:
    """`sum` over the last axis."""
    return _tensor(*_totals(x, dims, keepdim, dtype), x.dtype)


def _mean(
    state: ReplayState, x: Tensor, dims: list[int] | None, keepdim: bool = False, *, dtype: Tensor = None
) -> Tensor:
    """`mean` over the last axis: the sum in fp32, divided by the number of terms."""
    totals, shape = _totals(x, dims, keepdim, dtype)
    return _tensor(totals / np.float32(x.shape[-1]), shape, x.dtype)


def _softmax(state: ReplayState, x: Tensor, dim: int, half_to_float: bool) -> Tensor:
    """`_softmax` over the last axis."""
    if dim % x.dim() != x.dim() - 1 or half_to_float:
        raise NoRuleError("softmax over another axis than the last one")
    exp, one = state.of_library("exp", library.exp), state.of_library("expf", library.exp_of_one)
    return _tensor(softmax(_rows(x), x.dtype == torch.bfloat16, exp, one, _width()), tuple(x.shape), x.dtype)


def _layer_norm(
    state: ReplayState,
    x: Tensor,
    shape: list[int],
    weight: Tensor | None,
    bias: Tensor | None,
    epsilon: float,
) -> tuple[Tensor, Tensor, Tensor]:
    """`native_layer_norm`."""
    if any(each is not None and each.dtype != x.dtype for each in (weight, bias)):
        raise NoRuleError("a layer norm of two types")
    factor, shift = (None if each is None else each.float().numpy().ravel() for each in (weight, bias))
    found = layer_norm(_rows(x, len(shape)), factor, shift, epsilon, x.dtype == torch.bfloat16)
    outer = (*x.shape[: x.dim() - len(shape)], *[1] * len(shape))
    return (
        _tensor(found.rows, tuple(x.shape), x.dtype),
        _tensor(found.mean, outer, x.dtype),
        _tensor(found.scale, outer, x.dtype),
    )


def _product(state: ReplayState, a: Tensor, b: Tensor) -> Tensor:
    """`mm` and `bmm`."""
    function = torch.ops.aten.mm.default if a.dim() == 2 else torch.ops.aten.bmm.default
    return state.products.run(function, a, b)


def _added_product(
    state: ReplayState, c: Tensor, a: Tensor, b: Tensor, *, beta: float = 1, alpha: float = 1
) -> Tensor:
    """`addmm`."""
    if (beta, alpha) != (1, 1):
        raise NoRuleError(f"addmm with beta {beta} and alpha {alpha}")
    return state.products.run(torch.ops.aten.addmm.default, a, b, c)


def _attention(
    state: ReplayState,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    dropout: float = 0.0,
    causal: bool = False,
    *,
    attn_mask: Tensor | None = None,
    scale: float | None = None,
) -> tuple[Tensor, Tensor]:
    """`_scaled_dot_product_flash_attention_for_cpu`, head by head."""
    width = _width()
    if q.dtype not in FLOATS or dropout:
        raise NoRuleError(f"attention of {q.dtype}, dropout {dropout}")
    narrow = q.dtype == torch.bfloat16
    if attn_mask is not None and attn_mask.dtype == torch.bool:
        raise NoRuleError("attention with a mask of truths")

    def multiply(a: F32, b: F32, c: F32 | None, *, turned: bool) -> F32:
        return state.products.in_fp32(a, b, c, turned=turned)

    by = Functions(
        multiply,
        state.of_library("expf", library.exp_of_one),
        state.of_library("exp of fp64", library.wide_exp_of_one),
        state.of_library("logf", library.log_of_one),
        width,
        _to_bf16 if narrow else None,
    )
    factor = scale if scale is not None else q.shape[-1] ** -0.5
    mask = None if attn_mask is None else attn_mask.expand(*q.shape[:3], k.shape[2]).float().numpy()
    rows, logs = torch.empty(q.shape), torch.empty(q.shape[:3])
    group = q.shape[1] // k.shape[1]
    for batch, head in np.ndindex(*q.shape[:2]):
        one = [
            x[batch, each].float().numpy() for x, each in ((q, head), (k, head // group), (v, head // group))
        ]
        part = None if mask is None else mask[batch, head]
        found = attend(one[0], one[1], one[2], part, causal=causal, scale=factor, by=by)
        rows[batch, head], logs[batch, head] = torch.from_numpy(found.rows), torch.from_numpy(found.logs)
    return rows.to(q.dtype), logs


def _to_bf16(x: F32) -> F32:
    return np.asarray(torch.from_numpy(x).bfloat16().float().numpy(), np.float32)


#: The rule of each operator that adds floats.
SUMS: dict[str, Callable[..., Call]] = {
    "_scaled_dot_product_flash_attention_for_cpu": _attention,
    "_softmax": _softmax,
    "addmm": _added_product,
    "bmm": _product,
    "mean": _mean,
    "mm": _product,
    "native_layer_norm": _layer_norm,
    "sum": _sum,
}
