"""Rows of 64 bytes as instructions of Apple AMX read them: from any byte on, indexed, shuffled, some lanes enabled.

Source: corsix/amx, RegisterFile.md, and the tables of enable modes.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

Bytes = NDArray[np.uint8]
Int64Codes = NDArray[np.int64]
Flags = NDArray[np.bool_]

ROW: Final = 64  #: bytes
_KINDS = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.int64}


def codes_in(data: Bytes, size: int) -> Int64Codes:
    """The codes of so many bytes each, the first one the lowest; those of 8 bytes signed, as lanes have them."""
    return data.view(_KINDS[size]).astype(np.int64)


def to_bytes(values: Int64Codes, size: int) -> Bytes:
    """The bytes of codes."""
    return values.astype(_KINDS[size]).view(np.uint8)


def row_at(pool: Bytes, offset: int) -> Bytes:
    """The 64 bytes from an offset on, of a circular buffer."""
    return pool[(offset + np.arange(ROW)) % len(pool)]


def indexed(row: Bytes, table: Bytes, index_bits: int, size: int) -> Bytes:
    """The lanes of a table that numbers of so many bits, packed at the start of a row, choose."""
    lanes = ROW // size
    bits = np.unpackbits(row, bitorder="little")[: lanes * index_bits].reshape(lanes, index_bits)
    chosen = (bits @ (1 << np.arange(index_bits))) % lanes
    found: Bytes = table.reshape(lanes, size)[chosen].reshape(ROW)
    return found


def packed(numbers: NDArray[np.int64], index_bits: int) -> Bytes:
    """Numbers of so many bits each, packed, and zeros."""
    bits = (numbers[:, None] >> np.arange(index_bits)) & 1
    found = np.packbits(bits.astype(np.uint8).reshape(-1), bitorder="little")
    return np.concatenate([found, np.zeros(ROW - len(found), np.uint8)])


def shuffled(row: Bytes, mode: int, size: int) -> Bytes:
    """The lanes of 2^mode parts in turn: the first of each, the second of each, …"""
    parts = row.reshape(1 << mode, -1, size)
    return np.ascontiguousarray(parts.transpose(1, 0, 2)).reshape(ROW)


def used(mode: int, value: int, size: int, several_zeros: bool = True) -> Flags:
    """Which lanes of so many bytes take part, a flag for each byte; values count lanes modulo their number.

    `several_zeros`: the modes of three bits, in which 3, 4 and 5 of mode 0 have all lanes, too, and what there is
    more of them is said elsewhere.
    """
    lanes, count = np.arange(ROW) // size, ROW // size
    number = value % count
    found: Flags = np.full(ROW, False)
    if mode == 0:
        every = value == 0 or (several_zeros and value in (3, 4, 5))
        found = np.full(ROW, True) if every else (lanes % 2 == value % 2) & (value in (1, 2))
    elif mode == 1:
        found = lanes == number
    elif mode in (2, 4):
        found = np.full(ROW, mode == 2) if number == 0 else lanes < number
    elif mode in (3, 5):
        found = np.full(ROW, mode == 3) if number == 0 else lanes >= count - number
    return found
