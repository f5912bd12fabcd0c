"""The operator `mmaformal::product`: a batch of products of matrices, under autograd and `torch.compile`.

It is opaque to torch: a kernel for the processor, shapes and types for tracing, and a backward formula.  Operators take
text but no objects, so the arithmetic is told by its key.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch.autograd import forward_ad

from mmaformal.formats import fp32, fp64
from mmaformal.gemm import Division, values
from mmaformal.gemm import matmul as gemm
from mmaformal.quantise import Quantised, quantise
from mmaformal.torch.arithmetic import Arithmetic, registered
from mmaformal.torch.cache import kept, version_of
from mmaformal.torch.report import here, recorded_as, torchs_own
from mmaformal.torch.tensors import Call, Tensor

#: Fewer products than these run in one thread: to start another takes longer.
_ALONE = 1 << 20

#: The most columns of a run of several small products, and the most products of it.
_COLUMNS, _PRODUCTS = 256, 1 << 20


# ---- the operator ------------------------------------------------------------------------------------------------


@torch.library.custom_op("mmaformal::product", mutates_args=(), device_types="cpu")
def product(a: torch.Tensor, b: torch.Tensor, key: str) -> torch.Tensor:
    """(batch, M, K) times (batch, K, N), in float32, or float64 if that does not hold results."""
    arithmetic = registered(key)
    _report(a, b, arithmetic)
    batch, m, k = a.shape
    n = b.shape[2]
    # a view that is made here has a version counter of its own
    left = _operand(a, version_of(a), "a", arithmetic)
    right = _operand(b.mT, version_of(b), "b", arithmetic, by_columns=m < n)
    if here.report is not None and here.report.watch is not None:
        here.report.watch(left, right, (batch, m, n, k))
    return torch.from_numpy(multiply(left, right, (batch, m, n, k), arithmetic))


@product.register_kernel("cuda")
def _(a: torch.Tensor, b: torch.Tensor, key: str) -> torch.Tensor:
    from mmaformal.torch.device import product_on_device

    _report(a, b, registered(key))
    return product_on_device(a, b, registered(key))


def _report(a: Tensor, b: Tensor, arithmetic: Arithmetic) -> None:
    """Tell the context that counts of a product."""
    if here.report is None:
        return
    batch, m, k = a.shape
    size = f"{m}×{k} · {k}×{b.shape[2]}"
    shapes = size if batch == 1 else f"{batch} × {size}"
    function, structure = here.function or "compiled code", arithmetic.structure_words(k)
    here.report.add(function, shapes, arithmetic.instruction.label, structure=structure)


@product.register_fake
def _(a: torch.Tensor, b: torch.Tensor, key: str) -> torch.Tensor:
    dtype = torch.float64 if registered(key).wide else torch.float32
    return a.new_empty((a.shape[0], a.shape[1], b.shape[2]), dtype=dtype)


def _keep(ctx: Tensor, inputs: tuple[Tensor, ...], output: Tensor) -> None:
    a, b, ctx.key = inputs
    ctx.save_for_backward(a, b)
    ctx.save_for_forward(a, b)


@torch.compiler.disable
def _times(x: Tensor, y: Tensor, key: str) -> Tensor:
    """A product of a derivative: through the same arithmetic, or by torch; in the wider of the operands' types."""
    wide = torch.promote_types(torch.promote_types(x.dtype, y.dtype), torch.float32)
    if registered(key).backward == "through":
        with recorded_as(f"{here.function or 'a product'}, its derivative"):
            return multiplied(x, y, key).to(wide)
    with torchs_own():
        return torch.ops.aten.bmm.default(x.to(wide), y.to(wide))


def _backward(ctx: Tensor, grad: Tensor) -> tuple[Tensor | None, Tensor | None, None]:
    """grad · bᵀ and aᵀ · grad."""
    a, b = ctx.saved_tensors
    grad = grad.to(torch.promote_types(a.dtype, torch.float32))
    for_a = _times(grad, b.mT, ctx.key).to(a.dtype) if ctx.needs_input_grad[0] else None
    for_b = _times(a.mT, grad, ctx.key).to(b.dtype) if ctx.needs_input_grad[1] else None
    return for_a, for_b, None


product.register_autograd(_backward, setup_context=_keep)


class _Product(torch.autograd.Function):
    """The operator under the transforms of `torch.func` and in forward mode, which no operator in Python takes."""

    @staticmethod
    def forward(a: Tensor, b: Tensor, key: str) -> Tensor:
        return product(a, b, key)

    setup_context = staticmethod(_keep)
    backward = staticmethod(_backward)

    @staticmethod
    def jvp(ctx: Tensor, of_a: Tensor, of_b: Tensor, _: None) -> Tensor:
        """da · b + a · db."""
        a, b = ctx.saved_tensors
        parts = [_times(x, y, ctx.key) for x, y in ((of_a, b), (a, of_b)) if x is not None and y is not None]
        return sum(parts[1:], parts[0]).to(_result_type(ctx.key))

    @staticmethod
    def vmap(info: Tensor, in_dims: tuple[Call, ...], a: Tensor, b: Tensor, key: str) -> tuple[Tensor, int]:
        """Each example as it would be alone: a scale of a whole tensor is of one example."""
        size = info.batch_size
        a, b = (
            x.expand(size, *x.shape) if d is None else x.movedim(d, 0)
            for x, d in zip((a, b), in_dims[:2], strict=True)
        )
        if registered(key).joint:
            return torch.stack([multiplied(x, y, key) for x, y in zip(a, b, strict=True)]), 0
        d = multiplied(a.flatten(0, 1), b.flatten(0, 1), key)
        return d.unflatten(0, (size, -1)) if a.shape[1] else d.reshape(size, 0, *d.shape[1:]), 0


def _result_type(key: str) -> Tensor:
    return torch.float64 if registered(key).wide else torch.float32


def multiplied(a: Tensor, b: Tensor, key: str) -> Tensor:
    """The operator, with derivatives of both modes; a compiler takes the operator itself."""
    if torch.compiler.is_compiling():
        if forward_ad._current_level >= 0:  # the operator would have tangents of zero
            raise NotImplementedError("compiled products have no forward-mode derivative in an arithmetic")
        return product(a, b, key)
    return _Product.apply(a, b, key)


# ---- the kernel --------------------------------------------------------------------------------------------------


def _operand(
    x: Tensor, version: int, side: Literal["a", "b"], arithmetic: Arithmetic, by_columns: bool = False
) -> Quantised:
    """(batch, rows, K) as rows of one operand."""
    i = arithmetic.instruction

    def quantised() -> Quantised:
        # NumPy has no bfloat16, and fp32 holds all that fp16 and bf16 do
        wide = x.detach().resolve_neg()
        wide = wide if wide.dtype in (torch.float32, torch.float64) else wide.float()
        rows = np.ascontiguousarray(wide.numpy()).reshape(x.shape[0] * x.shape[1], x.shape[2])
        return quantise(rows, i, side, arithmetic.scaling)

    made_as = i.format_of(side), arithmetic.scaling, i.spec.scale_format, i.spec.scale_block
    return kept.get(x, version, made_as, quantised, by_columns)


def multiply(
    left: Quantised, right: Quantised, shape: tuple[int, int, int, int], arithmetic: Arithmetic
) -> NDArray[np.floating]:
    """Rows of a and columns of b, of `batch` products, to (batch, M, N)."""
    batch, m, n, _ = shape
    i = arithmetic.instruction
    if batch == 1:
        codes = np.ascontiguousarray(_gemm(left, right, arithmetic))[None]
    else:
        codes = _batched(left, right, shape, arithmetic)
    d = values(codes, i.d_format, fp64 if arithmetic.wide else fp32)
    for x, scaled in ((left, (batch, m, 1)), (right, (batch, 1, n))):
        if x.factor is not None:
            factor = x.factor if x.factor.size == 1 else x.factor.reshape(scaled)
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
    """Codes of a · bᵀ."""
    i, (m, k), n = arithmetic.instruction, a.codes.shape, len(b.codes)
    jobs = 1 if m * n * k < _ALONE else arithmetic.jobs
    own = Division(**arithmetic.division, jobs=jobs, progress=False)
    scale_b = None if b.scales is None else np.ascontiguousarray(b.scales.T)
    d: NDArray[np.unsignedinteger] = gemm(
        a.codes, b.codes.T, instruction=i, scale_a=a.scales, scale_b=scale_b, **own
    )
    return d
