"""Operands of several kinds for a product on a unit: those with which it loses much, and any codes."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mmaformal.analysis.units import Unit
from mmaformal.formats import Format
from mmaformal.instruction import Instruction

OperandArrays = tuple[NDArray[np.unsignedinteger], NDArray[np.unsignedinteger], NDArray[np.unsignedinteger]]

#: Rows and columns of the products of matrices that are made.
SIDE = 256

#: Spreads of exponents, whether all signs are one, and how far all products but one are below that one; and any codes.
KINDS: dict[str, tuple[int, bool, bool] | None] = {
    "any": None,
    "equal exponents": (1, False, False),
    "few exponents": (4, False, False),
    "one sign": (2, True, False),
    "one product far above": (3, False, True),
    "one product far above, one sign": (3, True, True),
}


def operands_of(
    unit: Unit, kind: str, rng: np.random.Generator, products: int | None = None
) -> OperandArrays:
    """A, B and C of a kind, of so many products: those of one instruction, or of four in a chain."""
    i = unit.instruction
    chained = i.c_format == i.d_format and kind == "one sign"
    k = products or i.k * (4 if chained else 1)
    shapes = (SIDE, k), (k, SIDE), (SIDE, SIDE)
    how = KINDS[kind]
    if how is None:
        any_: list[NDArray[np.unsignedinteger]] = [
            rng.integers(0, f.codes, shape, np.uint64).astype(f.word)
            for f, shape in zip((i.a_format, i.b_format, i.c_format), shapes, strict=True)
        ]
        return any_[0], any_[1], any_[2]
    spread, one_sign, above = how
    far = unit.stages[0].F if above else 0
    A = _codes(i.a_format, shapes[0], rng, spread, one_sign=one_sign, below=far // 2)
    B = _codes(i.b_format, shapes[1], rng, spread, one_sign=one_sign, below=far - far // 2)
    C = _codes(i.c_format, shapes[2], rng, spread, one_sign=one_sign, below=far)
    if above:
        A[:, :1] = _codes(i.a_format, (SIDE, 1), rng, 1, one_sign=one_sign, below=0)
        B[:1, :] = _codes(i.b_format, (1, SIDE), rng, 1, one_sign=one_sign, below=0)
    return A, B, C


def _codes(
    fmt: Format, shape: tuple[int, int], rng: np.random.Generator, spread: int, *, one_sign: bool, below: int
) -> NDArray[np.unsignedinteger]:
    """Numbers of exponents from -`below` on, or the least that the format has."""
    least = max(fmt.bias - below, 0)
    field = np.minimum(rng.integers(least, least + spread, shape), fmt.bias + fmt.max_exponent)
    fraction = rng.integers(0, 1 << fmt.fraction_bits, shape)
    sign = np.zeros(shape, np.int64) if one_sign else rng.integers(0, 2, shape)
    code = ((sign << fmt.exponent_bits | field) << fmt.fraction_bits | fraction) << fmt.ignored_low_bits
    found: NDArray[np.unsignedinteger] = code.astype(np.uint64).astype(fmt.word)
    return found


def draw_scales(i: Instruction, k: int, rng: np.random.Generator) -> dict[str, NDArray[np.unsignedinteger]]:
    """Codes near 1 for the block scales of a product of k; none where the instruction takes none."""
    fmt = i.spec.scale_format
    if fmt is None:
        return {}
    blocks = -(-k // i.spec.scale_block)
    near = fmt.bias << fmt.fraction_bits
    shapes = {"scale_a": (SIDE, blocks), "scale_b": (blocks, SIDE)}
    return {name: rng.integers(near - 4, near + 5, shape).astype(fmt.word) for name, shape in shapes.items()}
