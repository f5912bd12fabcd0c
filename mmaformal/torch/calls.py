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
from mmaformal.torch.product import multiplied
from mmaformal.torch.tensors import Call, Tensor

Scalar: TypeAlias = float

#: types of operands: a float64 is quantised from all of its digits
FLOATS = (torch.float16, torch.bfloat16, torch.float32, torch.float64)

#: where the arithmetic runs
DEVICES = ("cpu", "cuda")


def autocast_device(x: Tensor) -> str:
    """The device whose autocast a tensor obeys here."""
    return "cuda" if x.is_cuda else "cpu"


def operands(name: str, *tensors: Tensor, cast: bool = True) -> tuple[Tensor, ...]:
    """The operands of a product, in the type that autocast wants; as they are with cast=False.

    Raises RuntimeError, as torch does; what `@` makes of a TypeError says nothing.
    """
    for x in tensors:
        if x.device.type not in (*DEVICES, "meta"):
            raise RuntimeError(
                f"{name}: a tensor is on {x.device}; the arithmetic runs on the processor (.cpu()) and on CUDA"
            )
        if x.layout is not torch.strided or x.is_nested:
            kind = "nested" if x.is_nested else x.layout
            raise RuntimeError(f"{name}: a tensor is {kind}; the arithmetic takes dense ones (.to_dense())")
        if x.dtype not in FLOATS:
            raise RuntimeError(
                f"{name}: a tensor is {x.dtype}; the arithmetic takes {', '.join(map(str, FLOATS))}"
            )
    device = autocast_device(tensors[0])
    if cast and torch.is_autocast_enabled(device):
        wanted = torch.get_autocast_dtype(device)
        tensors = tuple(x if x.dtype == torch.float64 else x.to(wanted) for x in tensors)
    kinds = {x.dtype for x in tensors}
    if len(kinds) > 1:
        raise RuntimeError(
            f"{name}: the tensors are {' and '.join(sorted(map(str, kinds)))}; one type is needed"
        )
    return tensors


def result_like(wide: Tensor, like: Tensor, bias: Tensor | None = None) -> Tensor:
    """A result in the type of `like`, after a bias was added to it."""
    if bias is not None:
        wide = wide + bias
    return wide.to(like.dtype)


# ---- products ----------------------------------------------------------------------------------------------------


def wide_matmul(arithmetic: Arithmetic, a: Tensor, b: Tensor) -> Tensor:
    """Return `torch.matmul` of vectors, matrices and batches of them; before it is rounded to the type of operands."""
    if a.dim() == 0 or b.dim() == 0:
        raise RuntimeError("matmul: both tensors need at least one dimension")
    left = a.unsqueeze(0) if a.dim() == 1 else a
    right = b.unsqueeze(1) if b.dim() == 1 else b
    if left.shape[-1] != right.shape[-2]:
        raise RuntimeError(f"matmul: shapes {tuple(a.shape)} and {tuple(b.shape)} do not fit")
    m, k, n = left.shape[-2], left.shape[-1], right.shape[-1]
    if right.dim() == 2:  # one matrix for all of the batch: more rows
        rows = left.reshape(1, math.prod(left.shape[:-1]), k)
        d = multiplied(rows, right.unsqueeze(0), arithmetic.key).reshape(*left.shape[:-1], n)
    else:
        batch = torch.broadcast_shapes(left.shape[:-2], right.shape[:-2])
        count = math.prod(batch)
        flat = left.expand(*batch, m, k).reshape(count, m, k), right.expand(*batch, k, n).reshape(count, k, n)
        d = multiplied(*flat, arithmetic.key).reshape(*batch, m, n)
    if a.dim() == 1:
        d = d.squeeze(-2)
    return d.squeeze(-1) if b.dim() == 1 else d


def matmul_of(arithmetic: Arithmetic, input: Tensor, other: Tensor) -> Tensor:
    a, b = operands("matmul", input, other)
    return result_like(wide_matmul(arithmetic, a, b), a)


def vectors(arithmetic: Arithmetic, input: Tensor, other: Tensor) -> Tensor:
    """`dot`, `vdot` and `mv`, whose types autocast leaves alone."""
    a, b = operands("a product of vectors", input, other, cast=False)
    return result_like(wide_matmul(arithmetic, a, b), a)


def linear_of(arithmetic: Arithmetic, input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    x, w, *added = operands("linear", input, weight, *(() if bias is None else (bias,)))
    return result_like(wide_matmul(arithmetic, x, w.mT if w.dim() == 2 else w), x, *added)


def bilinear(
    arithmetic: Arithmetic, input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None = None
) -> Tensor:
    """Σ_i Σ_j x_i·W_oij·y_j: first W·y, then x times that."""
    x, y, w, *added = operands(
        "bilinear", input1, input2, weight, *(() if bias is None else (bias,)), cast=False
    )
    inner = wide_matmul(arithmetic, y.unsqueeze(-2).unsqueeze(-3), w.mT).squeeze(-2).to(x.dtype)
    return result_like(wide_matmul(arithmetic, inner, x.unsqueeze(-1)).squeeze(-1), x, *added)


def addition(
    name: str, product: Callable[[Arithmetic, Tensor, Tensor], Tensor], cast: bool = True
) -> Callable[..., Tensor]:
    """`addmm` and its like: beta · input + alpha · product."""

    def call(
        arithmetic: Arithmetic, input: Tensor, a: Tensor, b: Tensor, *, beta: Scalar = 1, alpha: Scalar = 1
    ) -> Tensor:
        c, x, y = operands(name, input, a, b, cast=cast)
        wide = product(arithmetic, x, y)
        wide = wide if alpha == 1 else wide * alpha
        return result_like(wide, x, None if beta == 0 else c if beta == 1 else c * beta)

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
    for d, e in zip(of_a, of_b, strict=True):  # a size of 1 stands for any other
        if x.shape[d] == 1:
            y = y.sum(e, keepdim=True)
        elif y.shape[e] == 1:
            x = x.sum(d, keepdim=True)
    free_a, free_b = ([d for d in range(t.dim()) if d not in used] for t, used in ((x, of_a), (y, of_b)))
    k = math.prod(x.shape[d] for d in of_a)
    left, right = x.permute(*free_a, *of_a).reshape(-1, k), y.permute(*of_b, *free_b).reshape(k, -1)
    shape = [x.shape[d] for d in free_a] + [y.shape[d] for d in free_b]
    return result_like(wide_matmul(arithmetic, left, right).reshape(shape), x)


def inner(arithmetic: Arithmetic, input: Tensor, other: Tensor) -> Tensor:
    """Sums over the last dimension of both; of two vectors a `dot`."""
    if input.dim() == 1 and other.dim() == 1:
        return vectors(arithmetic, input, other)
    if input.dim() == 0 or other.dim() == 0:
        return input * other
    return tensordot(arithmetic, input, other, ([-1], [-1]))


def vecdot(arithmetic: Arithmetic, x: Tensor, y: Tensor, *, dim: int = -1) -> Tensor:
    a, b = (each.movedim(dim, -1) for each in torch.broadcast_tensors(x, y))
    return matmul_of(arithmetic, a.unsqueeze(-2), b.unsqueeze(-1)).squeeze(-1).squeeze(-1)


def matrix_power(arithmetic: Arithmetic, input: Tensor, n: int) -> Tensor:
    """By repeated squaring, in torch's order; the inverse that a negative power begins with is torch's."""
    if n < 0:
        return matrix_power(arithmetic, torch.linalg.inv(input), -n)
    if n == 0:
        return torch.linalg.matrix_power(input, 0)
    if n == 3:
        return matmul_of(arithmetic, matmul_of(arithmetic, input, input), input)
    if n == 1:
        return input.clone()
    powers = [input]  # of 2⁰, 2¹, … as many as n has bits
    while n >> len(powers):
        powers.append(matmul_of(arithmetic, powers[-1], powers[-1]))
    found, *rest = (power for bit, power in enumerate(powers) if n >> bit & 1)
    for power in rest:
        found = matmul_of(arithmetic, found, power)
    return found


def distances(
    arithmetic: Arithmetic,
    x1: Tensor,
    x2: Tensor,
    p: float = 2.0,
    compute_mode: str | int | None = "use_mm_for_euclid_dist_if_necessary",
) -> Tensor:
    """`cdist`, by a product where torch takes one: (−2·x, |x|², 1) times (y, 1, |y|²)."""
    always = compute_mode in ("use_mm_for_euclid_dist", 1)
    never = compute_mode in ("donot_use_mm_for_euclid_dist", 2)
    if never or p != 2 or not (always or max(x1.shape[-2], x2.shape[-2]) > 25):
        mode = {1: "use_mm_for_euclid_dist", 2: "donot_use_mm_for_euclid_dist"}
        named = mode.get(compute_mode, compute_mode) if isinstance(compute_mode, int) else compute_mode
        return torch.cdist(x1, x2, p, named or "use_mm_for_euclid_dist_if_necessary")
    if torch.is_autocast_enabled(autocast_device(x1)):
        x1, x2 = (x if x.dtype == torch.float64 else x.float() for x in (x1, x2))
    return euclidean(arithmetic, x1, x2)


def euclidean(arithmetic: Arithmetic, x1: Tensor, x2: Tensor) -> Tensor:
    x, y = operands("cdist", x1, x2, cast=False)
    of_x, of_y = (t.square().sum(-1, keepdim=True) for t in (x, y))
    left = torch.cat([x * -2, of_x, torch.ones_like(of_x)], -1)
    right = torch.cat([y, torch.ones_like(of_y), of_y], -1)
    return result_like(wide_matmul(arithmetic, left, right.mT), x).clamp_min(0).sqrt()


def grouped(
    arithmetic: Arithmetic,
    mat_a: Tensor,
    mat_b: Tensor,
    offs: Tensor | None = None,
    bias: Tensor | None = None,
    out_dtype: Call = None,
) -> Tensor:
    """`grouped_mm`: one product for each group, whose rows (or K, or columns) end at `offs`; past the last, 0."""
    a, b = operands("grouped_mm", mat_a, mat_b, cast=False)
    if a.dim() == 3 and b.dim() == 3:
        d = wide_matmul(arithmetic, a, b)
    else:
        if offs is None:
            raise RuntimeError("grouped_mm: matrices of two dimensions need offs")
        ends = [int(end) for end in offs.tolist()]
        parts = list(zip([0, *ends[:-1]], ends, range(len(ends)), strict=True))
        if a.dim() == 2 and b.dim() == 2:
            d = torch.stack([wide_matmul(arithmetic, a[:, i:j], b[i:j]) for i, j, _ in parts])
        elif a.dim() == 2:
            d = torch.cat([wide_matmul(arithmetic, a[i:j], b[g]) for i, j, g in parts])
            d = torch.nn.functional.pad(d, [0, 0, 0, a.shape[0] - d.shape[0]])
        else:
            d = torch.cat([wide_matmul(arithmetic, a[g], b[:, i:j]) for i, j, g in parts], -1)
            d = torch.nn.functional.pad(d, [0, b.shape[1] - d.shape[1]])
    if bias is not None:
        d = d + bias
    return d.to(out_dtype or a.dtype)


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
