"""The operator on CUDA tensors: operands quantised where they are, products by Triton's kernels.

`quantised` is `mmaformal.quantise` in torch's operations, which are IEEE 754's one by one: the codes, scales and
factors are the same, bit for bit (tests/pytorch/test_triton.py).
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import torch

from mmaformal.encodings.executable.blocks import canonical_nan, quiet_nan
from mmaformal.formats import Format, fp64
from mmaformal.instruction import Instruction
from mmaformal.kernels.conversion import _Target, has_nan
from mmaformal.lanes import LaneError
from mmaformal.quantise import Scaling, largest_number, numbers_of_codes, scaling_of
from mmaformal.torch.arithmetic import Arithmetic
from mmaformal.torch.tensors import Tensor
from mmaformal.torch.triton_kernel import run_kernel, signed_type
from mmaformal.torch.triton_source import NoSourceError

_FLOATS = {
    "fp16": torch.float16,
    "bf16": torch.bfloat16,
    "fp32": torch.float32,
    "fp64": torch.float64,
}


class QuantisedTensor(NamedTuple):
    """One operand, K last."""

    codes: Tensor  #: (batch, rows, K)
    scales: Tensor | None  #: (batch, rows, ⌈K/S⌉), where the instruction takes any
    factor: Tensor | None  #: (batch, rows, 1) or (1, 1, 1), to be multiplied by; None for 1


# ---- numbers to codes --------------------------------------------------------------------------------------


def _power_of_two(exponent: Tensor) -> Tensor:
    """2^exponent as float64, within its normal range."""
    return ((exponent + 1023).clamp(1, 2046) << 52).view(torch.float64)


def _codes_of(x: Tensor, fmt: Format, saturate: bool, scale: Tensor | None = None) -> Tensor:
    """Codes of x / scale, to nearest even: `kernels.conversion.round_to`, in torch's operations."""
    own = _FLOATS.get(fmt.name)
    if scale is None and x.dtype == own and own in (torch.float32, torch.float64):
        return x.contiguous().view(signed_type(fmt))
    exact = x.double() if scale is None else x.double() / scale
    if fmt == fp64:
        return exact.view(torch.int64)
    target = _Target.of(fmt, saturate)
    magnitude = exact.abs()
    e = ((magnitude.view(torch.int64) >> 52) - 1023).clamp(min=target.min_exponent)
    r = torch.round(magnitude * _power_of_two(target.fraction_bits - e))
    finite = magnitude < torch.inf
    code = ((e - target.min_exponent) << target.fraction_bits) + torch.where(finite, r, 0.0).long()
    code = torch.where(code <= target.largest, code, target.beyond)
    special = torch.where(magnitude == torch.inf, target.infinity, target.nan)
    code = torch.where(finite, code, special)
    negative = torch.signbit(exact) & ~magnitude.isnan()
    sign = torch.where(negative, torch.where(code != 0, target.sign, target.minus_zero), 0)
    return ((code | sign) << target.low_bits).to(signed_type(fmt))


def quantised(
    x: Tensor, instruction: Instruction, side: Literal["a", "b"], scaling: Scaling | None = None
) -> QuantisedTensor:
    """Numbers (batch, rows, K) as an operand of `instruction`, as `mmaformal.quantise.quantise` makes them."""
    fmt, how = instruction.format_of(side), scaling_of(instruction, scaling)
    x = x if x.dtype in (torch.float32, torch.float64) else x.float()
    if how == "block":
        scale_format = instruction.spec.scale_format
        assert scale_format is not None
        return _in_blocks(x, fmt, scale_format, instruction.spec.scale_block)
    if how == "none":
        codes = _codes_of(x, fmt, saturate=fmt.storage_bits <= 8)
        return QuantisedTensor(codes, None, _poisoned(x, fmt, None))
    largest = _largest(x, None if how == "tensor" else 2)
    factor = (largest / largest_number(fmt)).float().double()
    factor = torch.where(factor == 0, 1.0, factor)
    return QuantisedTensor(_codes_of(x, fmt, saturate=True, scale=factor), None, _poisoned(x, fmt, factor))


def _largest(x: Tensor, axis: int | None) -> Tensor:
    """The largest finite magnitudes as float64: of all, (1, 1, 1), or along an axis that is kept; 0 of nothing."""
    magnitude = torch.where(x.isfinite(), x.abs(), 0.0)
    if axis is None:
        return (
            magnitude.double().reshape(1, 1, -1).amax(2, keepdim=True)
            if x.numel()
            else x.new_zeros(1, 1, 1).double()
        )
    return (
        magnitude.double().amax(axis, keepdim=True)
        if x.shape[axis]
        else x.new_zeros(*x.shape[:axis], 1).double()
    )


def _poisoned(x: Tensor, fmt: Format, factor: Tensor | None) -> Tensor | None:
    """The factor, NaN for rows that hold what a format without NaN cannot."""
    if has_nan(fmt):
        return factor
    bad = ~x.isfinite().all(dim=2, keepdim=True)
    one = torch.ones((1, 1, 1), dtype=torch.float64, device=x.device) if factor is None else factor
    return torch.where(bad, torch.nan, one)


def _in_blocks(x: Tensor, fmt: Format, scale_format: Format, block: int) -> QuantisedTensor:
    batch, rows, k = x.shape
    blocks = -(-k // block)
    padded = torch.nn.functional.pad(x, (0, blocks * block - k))
    parts = padded.reshape(batch, rows, blocks, block)
    largest = _largest(parts, 3)[..., 0]
    factor: Tensor | None = None
    if scale_format.has_zero:
        top = largest.amax() if largest.numel() else largest.new_zeros(())
        factor = (top / largest_number(fmt) / largest_number(scale_format)).float().double().reshape(1, 1, 1)
        factor = torch.where(factor == 0, 1.0, factor)
        scales = _codes_of(largest / largest_number(fmt) / factor, scale_format, saturate=True)
        numbers = torch.from_numpy(numbers_of_codes(scale_format)).to(x.device)
        values = numbers[scales.long() & (scale_format.codes - 1)] * factor
    else:
        top_exponent = int(torch.frexp(torch.tensor(largest_number(fmt), dtype=torch.float64)).exponent) - 1
        exponent = torch.where(largest == 0, 0, torch.frexp(largest).exponent.long() - 1 - top_exponent)
        exponent = exponent.clamp(-scale_format.bias, scale_format.max_exponent)
        scales = (exponent + scale_format.bias).to(signed_type(scale_format))
        values = _power_of_two(exponent)
    divisor = torch.where(values == 0, 1.0, values).repeat_interleave(block, 2)[..., :k]
    codes = _codes_of(x, fmt, saturate=True, scale=divisor)
    if not has_nan(fmt):
        nan = torch.tensor(scale_format.code("nan"), device=x.device).to(scales.dtype)
        scales = torch.where(parts.isfinite().all(dim=3), scales, nan)
    return QuantisedTensor(codes, scales, factor)


# ---- the product -------------------------------------------------------------------------------------------


def product_on_device(a: Tensor, b: Tensor, arithmetic: Arithmetic) -> Tensor:
    """(batch, M, K) times (batch, K, N), as the operator on the processor gives it.

    Raises NotImplementedError for what no kernel is made of, ImportError without Triton.
    """
    i = arithmetic.instruction
    _check(arithmetic)
    left = quantised(a.detach().resolve_neg(), i, "a", arithmetic.scaling)
    right = quantised(b.detach().resolve_neg().mT, i, "b", arithmetic.scaling)
    try:
        d = _divided(left, right, arithmetic)
    except (LaneError, NoSourceError) as error:
        raise NotImplementedError(f"{i.label} has no kernel for a GPU: use .cpu() ({error})") from None
    for factor in (left.factor, None if right.factor is None else right.factor.mT):
        if factor is not None:
            d = torch.where(d.isnan(), d, d * factor.to(d.dtype))
    return d


def _check(arithmetic: Arithmetic) -> None:
    """Raises NotImplementedError for an instruction or a division of K that is computed on the processor alone."""
    i = arithmetic.instruction
    if i.d_format.name not in _FLOATS:
        raise NotImplementedError(f"{i.label} gives {i.d_format}, which torch has not on a GPU: use .cpu()")
    told = dict(arithmetic.division)
    if told.get("accumulation", "natural") != "natural":
        raise NotImplementedError(f"accumulation={told['accumulation']!r} is not for a GPU: use .cpu()")
    for name in ("split_k", "stream_k"):
        if told.get(name) not in (None, 1):
            raise NotImplementedError(f"{name} is not for a GPU: use .cpu()")


def _divided(left: QuantisedTensor, right: QuantisedTensor, arithmetic: Arithmetic) -> Tensor:
    """The product of codes as numbers, promoted to a total every so many instructions."""
    i, promote = arithmetic.instruction, arithmetic.division.get("promote_every")
    wide = torch.float64 if arithmetic.wide else torch.float32
    if promote is None:
        return _part(left, right, i, slice(None), wide)
    k, each = left.codes.shape[2], promote * i.k
    total = torch.zeros(
        (len(left.codes), left.codes.shape[1], right.codes.shape[1]), dtype=wide, device=left.codes.device
    )
    for first in range(0, max(k, 1), each):
        total = total + _part(left, right, i, slice(first, first + each), wide)
    own = _FLOATS[i.d_format.name]
    nan = canonical_nan(i.d_format) if i.spec.nan_is_canonical else quiet_nan(i.d_format)
    code = torch.tensor(nan, device=total.device).to(signed_type(i.d_format)).view(own)
    return _widened(torch.where(total.isnan(), code, total.to(own)), wide)


def _part(
    left: QuantisedTensor, right: QuantisedTensor, i: Instruction, some: slice, wide: torch.dtype
) -> Tensor:
    """The product of a range of K."""
    a, b = left.codes[..., some], right.codes[..., some]
    scales: list[Tensor | None] = [None, None]
    if left.scales is not None and right.scales is not None:
        block = i.spec.scale_block
        blocks = slice(None) if some.start is None else slice(some.start // block, some.stop // block)
        scales = [left.scales[..., blocks], right.scales[..., blocks].mT]
    d = run_kernel(i.spec, a, b.mT, None, *scales)
    return _widened(d.view(_FLOATS[i.d_format.name]), wide)


def _widened(x: Tensor, wide: torch.dtype) -> Tensor:
    """Floats in a wider type; a NaN keeps its payload, which conversions on a GPU do not."""
    if x.dtype in (wide, torch.float32):
        return x.to(wide)
    shift = 13 if x.dtype == torch.float16 else 16
    code = x.view(torch.int16).int()
    fraction = (code & ((1 << 23 - shift) - 1)) << shift
    nan = (code & -0x8000) << 16 | 0x7F800000 | fraction
    return torch.where(x.isnan(), nan.view(torch.float32), x.float()).to(wide)
