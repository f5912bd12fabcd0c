"""Convolutions as products of kernels with patches: channels first in K, then rows and columns of the kernel."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TypeAlias

import torch

from mmaformal.torch.arithmetic import Arithmetic
from mmaformal.torch.calls import autocast_device, operands, result_like
from mmaformal.torch.product import multiplied
from mmaformal.torch.tensors import Call, Tensor

ConvolutionSizes: TypeAlias = int | Sequence[int]


def convolution(dims: int) -> Callable[..., Tensor]:
    """`conv1d`, `conv2d` or `conv3d`."""

    def call(
        arithmetic: Arithmetic,
        input: Tensor,
        weight: Tensor,
        bias: Tensor | None = None,
        stride: ConvolutionSizes = 1,
        padding: ConvolutionSizes | str = 0,
        dilation: ConvolutionSizes = 1,
        groups: int = 1,
    ) -> Tensor:
        x, w, *added = operands(f"conv{dims}d", input, weight, *(() if bias is None else (bias,)))
        single = x.dim() == dims + 1
        x = x.unsqueeze(0) if single else x
        steps, spread = _sizes(stride, dims), _sizes(dilation, dims)
        d = _convolved(arithmetic, _padded(x, w, padding, spread), w, steps, spread, groups)
        d = result_like(d, x, *(each.reshape(-1, *[1] * dims) for each in added))
        return d.squeeze(0) if single else d

    return call


def transposed_convolution(dims: int) -> Callable[..., Tensor]:
    """`conv_transpose1d`, …: the convolution of the input, zeros in between, with kernels turned round."""

    def call(
        arithmetic: Arithmetic,
        input: Tensor,
        weight: Tensor,
        bias: Tensor | None = None,
        stride: ConvolutionSizes = 1,
        padding: ConvolutionSizes = 0,
        output_padding: ConvolutionSizes = 0,
        groups: int = 1,
        dilation: ConvolutionSizes = 1,
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
        d = result_like(d, x, *(each.reshape(-1, *[1] * dims) for each in added))
        return d.squeeze(0) if single else d

    return call


def _sizes(given: ConvolutionSizes, dims: int) -> list[int]:
    found = [given] if isinstance(given, (int, torch.SymInt)) else list(given)
    return found * dims if len(found) == 1 else found


def _padded(x: Tensor, w: Tensor, padding: ConvolutionSizes | str, spread: Sequence[int]) -> Tensor:
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
    d = multiplied(kernels, patches.mT, arithmetic.key)  # (groups, O/groups, N·places)
    return d.reshape(w.shape[0], n, *places).transpose(0, 1)


# ---- other spellings ---------------------------------------------------------------------------------------------


def general_convolution(
    arithmetic: Arithmetic,
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: ConvolutionSizes,
    padding: ConvolutionSizes,
    dilation: ConvolutionSizes,
    transposed: bool,
    output_padding: ConvolutionSizes,
    groups: int,
    *_: Call,
) -> Tensor:
    """`torch.convolution`, of any number of dimensions; autocast leaves its types alone."""
    dims = weight.dim() - 2
    with torch.autocast(autocast_device(input), enabled=False):
        if transposed:
            call = transposed_convolution(dims)
            return call(arithmetic, input, weight, bias, stride, padding, output_padding, groups, dilation)
        return convolution(dims)(arithmetic, input, weight, bias, stride, padding, dilation, groups)


def time_batch_channel(
    arithmetic: Arithmetic, input: Tensor, weight: Tensor, bias: Tensor, pad: int = 0
) -> Tensor:
    """`conv_tbc`: input (T, B, C), weight (offsets, C, O)."""
    d = convolution(1)(arithmetic, input.permute(1, 2, 0), weight.permute(2, 1, 0), bias, 1, pad)
    return d.permute(2, 0, 1).contiguous()
