"""torch's functions of products, made of `product`: what they compute beside products is torch's own.

Products are accumulated from +0, and their results are float32 (float64 where that does not hold them).  Bias,
`beta·input` and the scale of attention are applied to these, as kernels do before they write a result, which then has
the type of the operands.  A convolution is the product of its kernels with patches: channels first in K, then places.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TypeAlias

import torch

from mmaformal.instruction import Instruction
from mmaformal.torch.arithmetic import Arithmetic
from mmaformal.torch.product import product
from mmaformal.torch.tensors import Call, Tensor

Scalar: TypeAlias = float
Sizes: TypeAlias = int | Sequence[int]

#: types of operands: a float64 is quantised from all of its digits
FLOATS = (torch.float16, torch.bfloat16, torch.float32, torch.float64)


def operands(name: str, *tensors: Tensor) -> tuple[Tensor, ...]:
    """The operands of a product, in the type that autocast wants.

    Raises RuntimeError, as torch does; what `@` makes of a TypeError says nothing.
    """
    for x in tensors:
        if x.device.type not in ("cpu", "meta"):
            raise RuntimeError(
                f"{name}: a tensor is on {x.device}; the arithmetic runs on the processor (.cpu())"
            )
        if x.layout is not torch.strided:
            raise RuntimeError(
                f"{name}: a tensor is {x.layout}; the arithmetic takes dense ones (.to_dense())"
            )
        if x.dtype not in FLOATS:
            raise RuntimeError(
                f"{name}: a tensor is {x.dtype}; the arithmetic takes {', '.join(map(str, FLOATS))}"
            )
    if torch.is_autocast_enabled("cpu"):
        wanted = torch.get_autocast_dtype("cpu")
        tensors = tuple(x if x.dtype == torch.float64 else x.to(wanted) for x in tensors)
    kinds = {x.dtype for x in tensors}
    if len(kinds) > 1:
        raise RuntimeError(
            f"{name}: the tensors are {' and '.join(sorted(map(str, kinds)))}; one type is needed"
        )
    return tensors


def _narrow(x: Tensor) -> Tensor:
    """A tensor as `product` takes it: NumPy has no bfloat16, and fp32 holds all that fp16 and bf16 do."""
    return x if x.dtype in (torch.float32, torch.float64) else x.float()


def _product(arithmetic: Arithmetic, a: Tensor, b: Tensor) -> Tensor:
    return product(_narrow(a), _narrow(b), arithmetic.key)


def _finish(wide: Tensor, like: Tensor, bias: Tensor | None = None) -> Tensor:
    """A result in the type of `like`, after a bias was added to it."""
    if bias is not None:
        wide = wide + bias
    return wide.to(like.dtype)


# ---- products ----------------------------------------------------------------------------------------------------


def wide_matmul(arithmetic: Arithmetic, a: Tensor, b: Tensor) -> Tensor:
    """As `torch.matmul`, of vectors, matrices and batches of them; before it is rounded to the type of operands."""
    if a.dim() == 0 or b.dim() == 0:
        raise RuntimeError("matmul: both tensors need at least one dimension")
    left = a.unsqueeze(0) if a.dim() == 1 else a
    right = b.unsqueeze(1) if b.dim() == 1 else b
    if left.shape[-1] != right.shape[-2]:
        raise RuntimeError(f"matmul: shapes {tuple(a.shape)} and {tuple(b.shape)} do not fit")
    m, k, n = left.shape[-2], left.shape[-1], right.shape[-1]
    if right.dim() == 2:  # one matrix for all of the batch: more rows
        rows = left.reshape(1, math.prod(left.shape[:-1]), k)
        d = _product(arithmetic, rows, right.unsqueeze(0)).reshape(*left.shape[:-1], n)
    else:
        batch = torch.broadcast_shapes(left.shape[:-2], right.shape[:-2])
        count = math.prod(batch)
        flat = left.expand(*batch, m, k).reshape(count, m, k), right.expand(*batch, k, n).reshape(count, k, n)
        d = _product(arithmetic, *flat).reshape(*batch, m, n)
    if a.dim() == 1:
        d = d.squeeze(-2)
    return d.squeeze(-1) if b.dim() == 1 else d


def matmul_of(arithmetic: Arithmetic, input: Tensor, other: Tensor) -> Tensor:
    a, b = operands("matmul", input, other)
    return _finish(wide_matmul(arithmetic, a, b), a)


def linear_of(arithmetic: Arithmetic, input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    x, w, *added = operands("linear", input, weight, *(() if bias is None else (bias,)))
    return _finish(wide_matmul(arithmetic, x, w.mT if w.dim() == 2 else w), x, *added)


def bilinear(
    arithmetic: Arithmetic, input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None = None
) -> Tensor:
    """Σ_i Σ_j x_i·W_oij·y_j: first W·y, then x times that."""
    x, y, w, *added = operands("bilinear", input1, input2, weight, *(() if bias is None else (bias,)))
    inner = wide_matmul(arithmetic, y.unsqueeze(-2).unsqueeze(-3), w.mT).squeeze(-2).to(x.dtype)
    return _finish(wide_matmul(arithmetic, inner, x.unsqueeze(-1)).squeeze(-1), x, *added)


def addition(name: str, product: Callable[[Arithmetic, Tensor, Tensor], Tensor]) -> Callable[..., Tensor]:
    """`addmm` and its like: beta · input + alpha · product."""

    def call(
        arithmetic: Arithmetic, input: Tensor, a: Tensor, b: Tensor, *, beta: Scalar = 1, alpha: Scalar = 1
    ) -> Tensor:
        c, x, y = operands(name, input, a, b)
        wide = product(arithmetic, x, y)
        wide = wide if alpha == 1 else wide * alpha
        return _finish(wide, x, None if beta == 0 else c if beta == 1 else c * beta)

    return call


def summed_bmm(arithmetic: Arithmetic, a: Tensor, b: Tensor) -> Tensor:
    """The sum over a batch of products, which is one product of a longer K."""
    return wide_matmul(arithmetic, a.movedim(0, 1).flatten(1), b.flatten(0, 1))


def chain(arithmetic: Arithmetic, tensors: Sequence[Tensor]) -> Tensor:
    """One product after the other, from the left."""
    found = tensors[0]
    for each in tensors[1:]:
        found = matmul_of(arithmetic, found, each)
    return found


def tensordot(arithmetic: Arithmetic, a: Tensor, b: Tensor, dims: Call = 2) -> Tensor:
    x, y = operands("tensordot", a, b)
    if isinstance(dims, (int, torch.SymInt)):
        of_a, of_b = list(range(x.dim() - dims, x.dim())), list(range(dims))
    else:
        of_a, of_b = ([each % t.dim() for each in side] for side, t in zip(dims, (x, y), strict=True))
    free_a, free_b = ([d for d in range(t.dim()) if d not in used] for t, used in ((x, of_a), (y, of_b)))
    k = math.prod(x.shape[d] for d in of_a)
    left, right = x.permute(*free_a, *of_a).reshape(-1, k), y.permute(*of_b, *free_b).reshape(k, -1)
    shape = [x.shape[d] for d in free_a] + [y.shape[d] for d in free_b]
    return _finish(wide_matmul(arithmetic, left, right).reshape(shape), x)


# ---- attention ---------------------------------------------------------------------------------------------------


def attention(
    arithmetic: Arithmetic,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    """`scaled_dot_product_attention`: both products, and between them torch's softmax of the scaled first one."""
    q, k, v = operands("scaled_dot_product_attention", query, key, value)
    if enable_gqa:
        k, v = (x.repeat_interleave(q.shape[-3] // x.shape[-3], dim=-3) for x in (k, v))
    scores = wide_matmul(arithmetic, q, k.mT) * (1 / math.sqrt(q.shape[-1]) if scale is None else scale)
    if is_causal:
        if attn_mask is not None:
            raise RuntimeError("scaled_dot_product_attention: is_causal takes no attn_mask")
        attn_mask = torch.ones(scores.shape[-2:], dtype=torch.bool, device=q.device).tril()
    if attn_mask is not None and attn_mask.dtype == torch.bool:
        scores = scores.masked_fill(attn_mask.logical_not(), -math.inf)
    elif attn_mask is not None:
        scores = scores + attn_mask
    weights = torch.softmax(scores, -1)
    if attn_mask is not None and attn_mask.dtype == torch.bool:  # a query that sees no key: torch's gives 0
        weights = weights.masked_fill(attn_mask.any(-1, keepdim=True).logical_not(), 0.0)
    weights = torch.dropout(weights, dropout_p, dropout_p > 0).to(q.dtype)
    return _finish(wide_matmul(arithmetic, weights, v), q)


# ---- convolutions ------------------------------------------------------------------------------------------------


def convolution(dims: int) -> Callable[..., Tensor]:
    """`conv1d`, `conv2d` or `conv3d`."""

    def call(
        arithmetic: Arithmetic,
        input: Tensor,
        weight: Tensor,
        bias: Tensor | None = None,
        stride: Sizes = 1,
        padding: Sizes | str = 0,
        dilation: Sizes = 1,
        groups: int = 1,
    ) -> Tensor:
        x, w, *added = operands(f"conv{dims}d", input, weight, *(() if bias is None else (bias,)))
        single = x.dim() == dims + 1
        x = x.unsqueeze(0) if single else x
        steps, spread = _sizes(stride, dims), _sizes(dilation, dims)
        d = _convolved(arithmetic, _padded(x, w, padding, spread), w, steps, spread, groups)
        d = _finish(d, x, *(each.reshape(-1, *[1] * dims) for each in added))
        return d.squeeze(0) if single else d

    return call


def transposed_convolution(dims: int) -> Callable[..., Tensor]:
    """`conv_transpose1d`, …: the convolution of the input, zeros in between, with kernels turned round."""

    def call(
        arithmetic: Arithmetic,
        input: Tensor,
        weight: Tensor,
        bias: Tensor | None = None,
        stride: Sizes = 1,
        padding: Sizes = 0,
        output_padding: Sizes = 0,
        groups: int = 1,
        dilation: Sizes = 1,
    ) -> Tensor:
        name = f"conv_transpose{dims}d"
        x, w, *added = operands(name, input, weight, *(() if bias is None else (bias,)))
        single = x.dim() == dims + 1
        x = x.unsqueeze(0) if single else x
        steps, spread = _sizes(stride, dims), _sizes(dilation, dims)
        less, more = _sizes(padding, dims), _sizes(output_padding, dims)
        for d in range(dims):
            x = _with_zeros_between(x, d + 2, steps[d])
        ends = [(spread[d] * (w.shape[d + 2] - 1) - less[d], more[d]) for d in range(dims)]
        x = torch.nn.functional.pad(x, [side for e, o in reversed(ends) for side in (e, e + o)])
        turned = (
            w.flip(list(range(2, dims + 2))).reshape(groups, -1, *w.shape[1:]).transpose(1, 2).flatten(0, 1)
        )
        d = _convolved(arithmetic, x, turned, [1] * dims, spread, groups)
        d = _finish(d, x, *(each.reshape(-1, *[1] * dims) for each in added))
        return d.squeeze(0) if single else d

    return call


def _sizes(given: Sizes, dims: int) -> list[int]:
    found = [given] if isinstance(given, (int, torch.SymInt)) else list(given)
    return found * dims if len(found) == 1 else found


def _padded(x: Tensor, w: Tensor, padding: Sizes | str, spread: Sequence[int]) -> Tensor:
    """x with zeros around it."""
    dims = len(spread)
    if padding == "valid":
        return x
    if padding == "same":
        whole = [spread[d] * (w.shape[d + 2] - 1) for d in range(dims)]
        ends = [(each // 2, each - each // 2) for each in whole]
    else:
        assert not isinstance(padding, str)
        ends = [(each, each) for each in _sizes(padding, dims)]
    if not any(side for pair in ends for side in pair):
        return x
    return torch.nn.functional.pad(x, [side for pair in reversed(ends) for side in pair])


def _with_zeros_between(x: Tensor, dim: int, step: int) -> Tensor:
    if step == 1:
        return x
    apart = x.unsqueeze(dim + 1)
    zeros = torch.nn.functional.pad(apart, [0, 0] * (apart.dim() - dim - 2) + [0, step - 1])
    return zeros.flatten(dim, dim + 1).narrow(dim, 0, (x.shape[dim] - 1) * step + 1)


def _convolved(
    arithmetic: Arithmetic, x: Tensor, w: Tensor, steps: Sequence[int], spread: Sequence[int], groups: int
) -> Tensor:
    """x (N, C, …), padded, with w (O, C/groups, …); wide."""
    dims = len(steps)
    if x.shape[1] != w.shape[1] * groups or w.shape[0] % groups:
        raise RuntimeError(f"convolution: shapes {tuple(x.shape)} and {tuple(w.shape)} do not fit")
    patches = x
    for d in range(dims):  # (N, C, …): each dimension becomes places, and offsets at the end
        length = spread[d] * (w.shape[d + 2] - 1) + 1
        patches = patches.unfold(d + 2, length, steps[d])[..., :: spread[d]]
    n, places = x.shape[0], patches.shape[2 : 2 + dims]
    k = math.prod(w.shape[1:])
    patches = patches.reshape(n, groups, -1, *places, *w.shape[2:]).movedim(
        1, 0
    )  # (groups, N, C/groups, places…, offsets…)
    patches = patches.movedim(2, 2 + dims).reshape(groups, -1, k)
    kernels = w.reshape(groups, -1, k)
    d = _product(arithmetic, kernels, patches.mT)  # (groups, O/groups, N·places)
    return d.reshape(w.shape[0], n, *places).transpose(0, 1)


# ---- for a user --------------------------------------------------------------------------------------------------


def matmul(a: Tensor, b: Tensor, *, instruction: Instruction | Arithmetic | str, **options: Call) -> Tensor:
    """`torch.matmul` through an instruction; options as `arithmetic`'s."""
    return matmul_of(Arithmetic.of(instruction, **options), a, b)


def linear(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    *,
    instruction: Instruction | Arithmetic | str,
    **options: Call,
) -> Tensor:
    """`torch.nn.functional.linear` through an instruction; options as `arithmetic`'s."""
    return linear_of(Arithmetic.of(instruction, **options), x, weight, bias)
