"""Attention as two products in the arithmetic, with torch's mask and softmax between them."""

from __future__ import annotations

import importlib
import math
import types
from collections.abc import Callable

import torch
from torch.nn import functional

from mmaformal.torch.arithmetic import Arithmetic
from mmaformal.torch.calls import autocast_device, operands, result_like, wide_matmul
from mmaformal.torch.tensors import Call, Tensor


def _flexible_module() -> Call:
    """torch's module of `flex_attention`, which has the name of a function in it; None in a torch without it."""
    try:
        return importlib.import_module("torch._higher_order_ops.flex_attention")
    except ImportError:
        return None


flex = _flexible_module()


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
    return result_like(wide_matmul(arithmetic, weights, v), q)


def _body_of(function: Call) -> Callable[..., Tensor]:
    """A function of torch's in Python that asks first whether a mode is there, without that question."""
    seen = dict(function.__globals__) | {"has_torch_function": lambda _: False}
    body = types.FunctionType(function.__code__, seen, function.__name__, function.__defaults__)
    body.__kwdefaults__ = function.__kwdefaults__
    return body


def _python_bodies() -> dict[Call, Callable[..., Tensor]]:
    """torch's functions that are written in Python as products and other calls, and their bodies."""
    forward = functional.multi_head_attention_forward
    found = {forward: _body_of(forward)}
    if hasattr(flex, "_math_attention_inner"):
        found[flex.flex_attention] = _flexible
    return found


def _flexible(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    score_mod: Call,
    block_mask: Call,
    scale: float,
    kernel_options: Call,
    *buffers: Call,
) -> tuple[Tensor, Tensor, Tensor]:
    """`flex_attention` with all scores at once: output, and logarithms to base 2 of their sums and largest ones."""
    q, k, v = operands("flex_attention", query, key, value)
    with torch.autocast(autocast_device(query), enabled=False):
        group = q.shape[1] // k.shape[1]
        k, v = (x.repeat_interleave(group, dim=1).expand(q.shape[0], *(-1,) * 3) for x in (k, v))
        scores = flex._math_attention_inner(q, k, v, score_mod, block_mask, scale, kernel_options, *buffers)[
            1
        ]
        unseen = (scores == -math.inf).all(-1, keepdim=True)
        weights = torch.softmax(scores.masked_fill(unseen, 0.0), -1).masked_fill(unseen, 0.0)
        d = weights.to(q.dtype) @ v
        return d, scores.logsumexp(-1) / math.log(2), scores.amax(-1) / math.log(2)


#: Functions whose bodies run with the mode on, which sees the products in them.
BODIES = _python_bodies()
