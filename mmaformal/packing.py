"""Codes of 4 and 6 bits in memory: between one code per element, as mmaformal takes them, and bytes.

There are two layouts.  *Containers* hold one code per byte: the operands of the K = 32 instructions
(kind::f8f6f4 and kind::mxf8f6f4), a 6-bit code in bits 5:0, a 4-bit code in bits 5:2.  *Nibbles* hold two 4-bit
codes per byte: the operands of the K = 64 instructions (kind::mxf4, kind::mxf4nvf4).  Which of the two comes
first differs: "low-first" has element 0 in bits 3:0, as the registers of PTX's mma.m16n8k64 and CUDA's
__nv_fp4x2_e2m1 do, "high-first" has it in bits 7:4, as the reference simulator mmasim does.  There is no default,
so that code names what it means.

Sources: docs/semantics.md §8; PTX ISA, "Matrix Fragments for mma.m16n8k64" (elements low to high).
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mmaformal.formats import Format
from mmaformal.instruction import as_codes

NibbleOrder = Literal["low-first", "high-first"]

#: bits of a container below a code of 4 or 6 bits
_CONTAINER_SHIFT: dict[int, np.uint8] = {4: np.uint8(2), 6: np.uint8(0)}


def pack_nibbles(codes: ArrayLike, fmt: Format, order: NibbleOrder) -> NDArray[np.uint8]:
    """Two 4-bit codes per byte: (…, K) codes → (…, K/2) bytes.

    Raises ValueError for a format that has not 4 bits, an odd K, codes that do not exist, or an unknown order.
    """
    shift_even, shift_odd = _shifts(fmt, order)
    array = as_codes(codes, fmt, "codes")
    if array.ndim == 0 or array.shape[-1] % 2:
        raise ValueError(
            f"two codes per byte need an even number of codes in the last dimension, not {array.shape}"
        )
    return np.asarray((array[..., 0::2] << shift_even) | (array[..., 1::2] << shift_odd), np.uint8)


def unpack_nibbles(packed: ArrayLike, fmt: Format, order: NibbleOrder) -> NDArray[np.uint8]:
    """The codes of bytes with two 4-bit codes each: (…, K/2) bytes → (…, K) codes.  Raises as `pack_nibbles`."""
    shift_even, shift_odd = _shifts(fmt, order)
    array = _bytes(packed)
    if array.ndim == 0:
        raise ValueError("a single byte has no dimension to unpack along: give an array of shape (…, K/2)")
    pairs = np.stack([(array >> shift_even) & 0xF, (array >> shift_odd) & 0xF], axis=-1)
    return pairs.reshape(*array.shape[:-1], 2 * array.shape[-1])


def to_containers(codes: ArrayLike, fmt: Format) -> NDArray[np.uint8]:
    """One 4- or 6-bit code per byte as the K = 32 instructions hold it, unused bits 0; the shape stays.

    Raises ValueError for a format of another width and for codes that do not exist.
    """
    shift = _container_shift(fmt)
    return np.asarray(as_codes(codes, fmt, "codes") << shift, np.uint8)


def from_containers(containers: ArrayLike, fmt: Format) -> NDArray[np.uint8]:
    """The codes of such bytes; the bits around a code are ignored.  Raises ValueError for another width."""
    shift = _container_shift(fmt)
    return np.asarray((_bytes(containers) >> shift) & np.uint8(fmt.codes - 1), np.uint8)


def _shifts(fmt: Format, order: str) -> tuple[np.uint8, np.uint8]:
    """Where the codes of even and of odd index stand in their byte."""
    if fmt.storage_bits != 4:
        raise ValueError(f"{fmt} has {fmt.storage_bits} bits: only 4-bit codes are packed two per byte")
    if order not in ("low-first", "high-first"):
        raise ValueError(f'the nibble order is "low-first" or "high-first", not {order!r}')
    low, high = np.uint8(0), np.uint8(4)
    return (low, high) if order == "low-first" else (high, low)


def _container_shift(fmt: Format) -> np.uint8:
    if fmt.storage_bits not in _CONTAINER_SHIFT:
        raise ValueError(f"{fmt} has {fmt.storage_bits} bits: a container holds a code of 4 or 6")
    return _CONTAINER_SHIFT[fmt.storage_bits]


def _bytes(x: ArrayLike) -> NDArray[np.uint8]:
    array = np.asarray(x)
    if array.dtype != np.uint8:
        raise TypeError(f"packed codes are bytes, uint8, not {array.dtype}")
    return array
