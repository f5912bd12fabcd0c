"""Block scales and fp4 as libraries lay them out, as the matrices that `matmul` and `mmaformal.testing` take.

    assert_matches(out, A, B, instruction=UNIT, scale_a=from_tiles(sa, M, blocks), scale_b=from_tiles(sb, N, blocks).T)

OCP's specification says which numbers share a scale, and not where it lies.  There are

- *plain* rows, (rows, blocks): what torch's quantisers give before they are laid out, and AMD's kernels take;
- *padded* ones, to multiples of 128 rows and 4 blocks (transformer_engine's `_rowwise_scale_inv` of MXFP8): `unpadded`;
- *tiles* of 128 rows and 4 blocks, which cuBLAS and `torch._scaled_mm` take (cuBLAS, "1D block scaling factors layout";
  torch's `SWIZZLE_32_4_4`): the scale of row r and block c of a tile is its (16·(r mod 32) + 4·⌊r/32⌋ + c)-th number,
  and tiles follow each other row by row: `from_tiles`, `to_tiles`;
- two numbers of fp4 in a byte, the first in its low half (`torch.float4_e2m1fn_x2`): `from_pairs`, `to_pairs`.

Of B, rows are columns: scales lie as those of its transpose.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

ScaleArray = NDArray[Any]
#: Rows and blocks of a tile, and rows that lie one after the other.
_ROWS, _BLOCKS, _APART = 128, 4, 32


def from_tiles(tiles: ArrayLike, rows: int, blocks: int) -> ScaleArray:
    """Scales (rows, blocks) of tiles, whatever their shape.  Raises ValueError for another number of them."""
    given = np.asarray(tiles).ravel()
    down, across = _tiles(rows, blocks)
    if given.size != down * across * _ROWS * _BLOCKS:
        raise ValueError(
            f"{given.size} scales in tiles; {rows} rows of {blocks} have {down * across * _ROWS * _BLOCKS}"
        )
    split = given.reshape(down, across, _APART, _ROWS // _APART, _BLOCKS)
    whole = split.transpose(0, 3, 2, 1, 4).reshape(down * _ROWS, across * _BLOCKS)
    return np.ascontiguousarray(whole[:rows, :blocks])


def to_tiles(scales: ArrayLike) -> ScaleArray:
    """Scales (rows, blocks) as one row of tiles, 0 where there are none."""
    given = np.asarray(scales)
    down, across = _tiles(*given.shape)
    whole = np.zeros((down * _ROWS, across * _BLOCKS), given.dtype)
    whole[: given.shape[0], : given.shape[1]] = given
    split = whole.reshape(down, _ROWS // _APART, _APART, across, _BLOCKS)
    return np.ascontiguousarray(split.transpose(0, 3, 2, 1, 4)).ravel()


def unpadded(scales: ArrayLike, rows: int, blocks: int) -> ScaleArray:
    """Scales (rows, blocks) of what was padded to whole tiles, or not.  Raises ValueError for another shape."""
    given = np.asarray(scales)
    down, across = _tiles(rows, blocks)
    if given.shape not in ((rows, blocks), (down * _ROWS, across * _BLOCKS)):
        raise ValueError(f"scales of shape {given.shape}; {rows} rows of {blocks} are needed, or padded ones")
    return np.ascontiguousarray(given[:rows, :blocks])


def from_pairs(pairs: ArrayLike) -> NDArray[np.uint8]:
    """Codes of fp4, (…, 2·n), of n bytes that have two each.  Raises ValueError for what are no bytes."""
    given = np.asarray(pairs)
    if given.dtype.itemsize != 1:
        raise ValueError(f"pairs of fp4 are bytes, not {given.dtype}")
    given = given.view(np.uint8)
    return np.stack([given & 15, given >> 4], axis=-1).reshape(*given.shape[:-1], -1)


def to_pairs(codes: ArrayLike) -> NDArray[np.uint8]:
    """Codes of fp4, (…, 2·n), as n bytes.  Raises ValueError for an odd number of them, or what are no codes."""
    given = np.asarray(codes)
    if given.shape[-1] % 2 or given.dtype.kind != "u" or (given > 15).any():
        raise ValueError("codes of fp4 are whole numbers from 0 to 15, in pairs")
    found: NDArray[np.uint8] = (given[..., ::2] | given[..., 1::2] << 4).astype(np.uint8)
    return found


def padded_shape(rows: int, blocks: int) -> tuple[int, int]:
    """Rows and blocks of whole tiles."""
    down, across = _tiles(rows, blocks)
    return down * _ROWS, across * _BLOCKS


def _tiles(rows: int, blocks: int) -> tuple[int, int]:
    return -(-rows // _ROWS), -(-blocks // _BLOCKS)


__all__ = ["from_pairs", "from_tiles", "padded_shape", "to_pairs", "to_tiles", "unpadded"]
