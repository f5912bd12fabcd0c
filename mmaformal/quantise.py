"""Matrices of numbers as operands of an instruction: codes, block scales, and factors of what comes out.

    a = quantise(A, hopper["QGMMA.64x8x32.F32.E4M3.E4M3"], "a")
    a.codes, a.scales, a.factor

Numbers are rounded to nearest even, once, after they were divided by their scale.  Which scales there are:

- `"none"`: the numbers themselves.  What is too large becomes infinity in formats of more than 8 bits, as IEEE 754 has
  it, and the largest number in those of up to 8 bits, whose conversions saturate (PTX ISA, `cvt.rn.satfinite`).
- `"tensor"`: one for all, `"row"`: one for each row of A and each column of B, in fp32: the largest magnitude is made
  the largest number of the format.  The result is multiplied by them.
- `"block"`: those that the instruction takes, one for each S products.  In ue8m0 (MX) it is 2^floor(log2 m) of the
  largest magnitude m, over that of the format's largest number (OCP Microscaling Formats v1.0, §6.3).  In ue4m3
  (NVFP4), whose range is small, it is m over the format's largest number, over a factor of the whole tensor in fp32
  that makes the largest such scale the largest number of ue4m3.

What is not finite stays so: infinity where the format has it, else NaN; where it has none of them, the scale of the
block is NaN, or the factor, if there are no blocks.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Literal, NamedTuple, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from mmaformal.display import short_repr
from mmaformal.formats import Format
from mmaformal.instruction import Instruction
from mmaformal.kernels.conversion import has_nan, largest_code, round_to
from mmaformal.kernels.kernel import CodeArray

Scaling = Literal["none", "tensor", "row", "block"]
Floats: TypeAlias = NDArray[np.float64]


class Quantised(NamedTuple):
    """One operand, K last: rows of A, or columns of B."""

    codes: CodeArray  #: (rows, K)
    scales: CodeArray | None  #: (rows, ⌈K/S⌉), where the instruction takes any
    factor: Floats | None  #: (rows or 1,), to be multiplied by; None for 1

    def __repr__(self) -> str:
        return short_repr(self)


def scaling_of(instruction: Instruction, wanted: str | None = None) -> Scaling:
    """The scaling that is wanted, if the instruction can have it; else by its formats.

    `"block"` for an instruction with block scales, and no other; `"none"` where both formats have more than 8 bits,
    `"tensor"` otherwise.  Raises ValueError.
    """
    blocks = instruction.spec.scale_format is not None
    if wanted is not None and wanted not in get_args(Scaling):
        raise ValueError(f"scaling is one of {', '.join(get_args(Scaling))}, not {wanted!r}")
    if wanted is not None and blocks != (wanted == "block"):
        has = "block scales, and needs them" if blocks else "no block scales"
        raise ValueError(f"scaling {wanted!r}: {instruction.label} takes {has}")
    if blocks:
        return "block"
    narrow = min(instruction.a_format.storage_bits, instruction.b_format.storage_bits) <= 8
    found: Scaling = "tensor" if narrow else "none"
    return found if wanted is None else _named(wanted)


def _named(wanted: str) -> Scaling:
    return next(each for each in get_args(Scaling) if each == wanted)


def quantise(
    x: NDArray[np.floating], instruction: Instruction, side: Literal["a", "b"], scaling: str | None = None
) -> Quantised:
    """Numbers (rows × K; K last for B too) as an operand of `instruction`.

    Raises ValueError for a scaling that the instruction cannot have, TypeError for what is no array of fp32 or fp64.
    """
    if x.dtype not in (np.float32, np.float64) or x.ndim != 2:
        raise TypeError(f"a matrix of float32 or float64 is quantised, not {x.dtype} of shape {x.shape}")
    fmt, how = instruction.format_of(side), scaling_of(instruction, scaling)
    if how == "block":
        scale_format = instruction.spec.scale_format
        assert scale_format is not None
        return _in_blocks(x, fmt, scale_format, instruction.spec.scale_block)
    if how == "none":
        codes = round_to(x, fmt, saturate=fmt.storage_bits <= 8)
        return Quantised(codes, None, _poison(x, fmt, None))
    largest = _largest_magnitude(x, None if how == "tensor" else 1)
    factor = (largest / largest_number(fmt)).astype(np.float32).astype(np.float64)
    factor[factor == 0] = 1.0
    codes = round_to(x, fmt, saturate=True, scale=factor[:, None])
    return Quantised(codes, None, _poison(x, fmt, factor))


@lru_cache
def largest_number(fmt: Format) -> float:
    return float(fmt.value(largest_code(fmt) << fmt.ignored_low_bits))


def _largest_magnitude(x: NDArray[np.floating], axis: int | None) -> Floats:
    """Return the largest finite magnitude of each row (axis 1) or of all; 0 of nothing."""
    magnitude = np.abs(x)
    found = np.max(magnitude, axis=axis, initial=0.0)
    if not np.isfinite(found).all():
        magnitude[~np.isfinite(magnitude)] = 0.0
        found = np.max(magnitude, axis=axis, initial=0.0)
    return np.atleast_1d(found).astype(np.float64)


def _poison(x: NDArray[np.floating], fmt: Format, factor: Floats | None) -> Floats | None:
    """The factor, NaN for rows that hold what a format without NaN cannot."""
    if has_nan(fmt):
        return factor
    bad = ~np.isfinite(x).all(axis=1)
    if not bad.any():
        return factor
    return np.where(bad, np.nan, 1.0 if factor is None else factor)


def _in_blocks(x: NDArray[np.floating], fmt: Format, scale_format: Format, block: int) -> Quantised:
    rows, k = x.shape
    blocks = -(-k // block)
    padded = np.zeros((rows, blocks * block), x.dtype)
    padded[:, :k] = x
    parts = padded.reshape(rows * blocks, block)
    largest = _largest_magnitude(parts, 1).reshape(rows, blocks)
    factor: Floats | None = None
    if scale_format.has_zero:
        top = largest.max(initial=0.0) / largest_number(fmt) / largest_number(scale_format)
        factor = np.array([np.float32(top)], np.float64)
        factor[factor == 0] = 1.0
        exact = largest / largest_number(fmt) / factor
        scales = round_to(exact, scale_format, saturate=True)
        values = numbers_of_codes(scale_format)[scales] * factor
    else:
        top_exponent = int(np.frexp(largest_number(fmt))[1]) - 1
        exponent = np.where(largest == 0, 0, np.frexp(largest)[1] - 1 - top_exponent)
        exponent = np.clip(exponent, -scale_format.bias, scale_format.max_exponent)
        scales = (exponent + scale_format.bias).astype(scale_format.word)
        values = np.ldexp(1.0, exponent)
    codes = round_to(x, fmt, saturate=True, scale=np.where(values == 0, 1.0, values), block=block)
    if not has_nan(fmt):
        bad = ~np.isfinite(parts).all(axis=1).reshape(rows, blocks)
        scales[bad] = scale_format.code("nan")
    return Quantised(codes, scales, factor)


@lru_cache
def numbers_of_codes(fmt: Format) -> Floats:
    """The numbers of all codes of a narrow format."""
    return np.array([np.nan if fmt.is_nan(code) else float(fmt.value(code)) for code in range(fmt.codes)])
