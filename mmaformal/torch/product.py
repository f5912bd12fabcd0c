"""The operator `mmaformal::product`: a batch of products of matrices, under autograd and `torch.compile`.

It is opaque to torch: a kernel for the processor, shapes and types for tracing, and a backward formula.  Operators take
text but no objects, so the arithmetic is told by its key.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray

from mmaformal.formats import fp32, fp64
from mmaformal.gemm import Division, values
from mmaformal.gemm import matmul as gemm
from mmaformal.quantise import Quantised, quantise
from mmaformal.torch.arithmetic import Arithmetic, registered
from mmaformal.torch.tensors import Tensor

#: Fewer products than these run in one thread: to start another takes longer.
_ALONE = 1 << 20

#: The most columns of a run of several small products, and the most products of it.
_COLUMNS, _PRODUCTS = 256, 1 << 20


@torch.library.custom_op("mmaformal::product", mutates_args=(), device_types="cpu")
def product(a: torch.Tensor, b: torch.Tensor, key: str) -> torch.Tensor:
    """(batch, M, K) times (batch, K, N), in float32, or float64 if that does not hold results."""
    arithmetic = registered(key)
    left, right = (np.ascontiguousarray(x.detach().numpy()) for x in (a, b.mT))
    return torch.from_numpy(multiply(left, right, arithmetic))


@product.register_fake
def _(a: torch.Tensor, b: torch.Tensor, key: str) -> torch.Tensor:
    dtype = torch.float64 if registered(key).wide else torch.float32
    return a.new_empty((a.shape[0], a.shape[1], b.shape[2]), dtype=dtype)


def _keep(ctx: Tensor, inputs: tuple[Tensor, ...], output: Tensor) -> None:
    a, b, ctx.key = inputs
    ctx.save_for_backward(a, b)


def _backward(ctx: Tensor, grad: Tensor) -> tuple[Tensor | None, Tensor | None, None]:
    """grad · bᵀ and aᵀ · grad: by torch, in the type of the operands; or through the same arithmetic."""
    a, b = ctx.saved_tensors
    through = registered(ctx.key).backward == "through"

    def times(x: Tensor, y: Tensor) -> Tensor:
        if through:
            return product(x, y, ctx.key).to(a.dtype)
        return torch.ops.aten.bmm.default(x.to(a.dtype), y.to(a.dtype))

    grad = grad.to(a.dtype)
    for_a = times(grad, b.mT) if ctx.needs_input_grad[0] else None
    for_b = times(a.mT, grad) if ctx.needs_input_grad[1] else None
    return for_a, for_b, None


product.register_autograd(_backward, setup_context=_keep)


# ---- the kernel --------------------------------------------------------------------------------------------------


def multiply(
    a: NDArray[np.floating], b: NDArray[np.floating], arithmetic: Arithmetic
) -> NDArray[np.floating]:
    """(batch, M, K) and (batch, N, K), of float32 or float64, to (batch, M, N)."""
    batch, m, k = a.shape
    n, i = b.shape[1], arithmetic.instruction
    left = quantise(a.reshape(batch * m, k), i, "a", arithmetic.scaling)
    right = quantise(b.reshape(batch * n, k), i, "b", arithmetic.scaling)
    if batch == 1:
        codes = np.ascontiguousarray(_gemm(left, right, arithmetic))[None]
    else:
        codes = _batched(left, right, (batch, m, n, k), arithmetic)
    d = values(codes, i.d_format, fp64 if arithmetic.wide else fp32)
    for x, shape in ((left, (batch, m, 1)), (right, (batch, 1, n))):
        if x.factor is not None:
            factor = x.factor if x.factor.size == 1 else x.factor.reshape(shape)
            d = d * factor.astype(d.dtype)
    return d


def _batched(
    left: Quantised, right: Quantised, shape: tuple[int, int, int, int], arithmetic: Arithmetic
) -> NDArray[np.unsignedinteger]:
    """Codes of many products.

    Several are one product of all their rows and columns, most of which is not used: a run of the kernel costs some
    500,000 products, and columns are cheap by the 256.  Where the work is divided among tiles, each is one of its own.
    """
    batch, m, n, k = shape
    codes = np.empty((batch, m, n), arithmetic.instruction.d_format.word)
    together = batch if codes.size * k == 0 else max(_COLUMNS // n, 1)
    while together > 1 and together * together * m * n * k > _PRODUCTS:
        together //= 2
    if arithmetic.division.get("stream_k"):
        together = 1
    elif arithmetic.division.get("accumulation") in (
        "grouped",
        "anti-kahan",
    ):  # what is not used costs as much
        together = min(together, 2)
    for first in range(0, batch, max(together, 1)):
        count = min(together, batch - first)
        rows, columns = (slice(first * size, (first + count) * size) for size in (m, n))
        found = _gemm(_part(left, rows), _part(right, columns), arithmetic)
        each = np.arange(count)
        codes[first : first + count] = found.reshape(count, m, count, n)[each, :, each]
    return codes


def _part(x: Quantised, rows: slice) -> Quantised:
    return Quantised(x.codes[rows], None if x.scales is None else x.scales[rows], None)


def _gemm(a: Quantised, b: Quantised, arithmetic: Arithmetic) -> NDArray[np.unsignedinteger]:
    """Codes of a · bᵀ.

    The kernels are made for many columns and few rows, so that factors change places where that changes no result:
    where both have one format, and every NaN is the same (the property `commutativity`).
    """
    i, (m, k), n = arithmetic.instruction, a.codes.shape, len(b.codes)
    alike = i.a_format == i.b_format and i.spec.nan_is_canonical
    swapped = alike and m > n and not arithmetic.division.get("stream_k")
    if swapped:
        a, b = b, a
    threads = 1 if m * n * k < _ALONE else arithmetic.threads
    own = Division(**arithmetic.division, threads=threads, progress=False)
    scale_b = None if b.scales is None else np.ascontiguousarray(b.scales.T)
    d: NDArray[np.unsignedinteger] = gemm(
        a.codes, b.codes.T, instruction=i, scale_a=a.scales, scale_b=scale_b, **own
    )
    return d.T if swapped else d
