"""Layouts of block scales: each place is where cuBLAS says, and back again; a product through them is the same."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mmaformal import blackwell, matmul
from mmaformal.scale_layouts import from_pairs, from_tiles, to_pairs, to_tiles, unpadded
from mmaformal.testing import assert_matches


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 300), st.integers(1, 11), st.data())
def test_a_scale_lies_where_cublas_says(rows: int, blocks: int, data: st.DataObject) -> None:
    scales = np.arange(1, rows * blocks + 1, dtype=np.uint32).reshape(rows, blocks)
    tiles = to_tiles(scales)
    row, block = data.draw(st.integers(0, rows - 1)), data.draw(st.integers(0, blocks - 1))
    tile = (row // 128) * ((blocks + 3) // 4) + block // 4
    r, c = row % 128, block % 4
    assert tiles[512 * tile + (r % 32) * 16 + (r // 32) * 4 + c] == scales[row, block]
    assert np.count_nonzero(tiles) == scales.size
    assert len(tiles) == 512 * ((rows + 127) // 128) * ((blocks + 3) // 4)
    assert (from_tiles(tiles, rows, blocks) == scales).all()
    assert (from_tiles(tiles.reshape(-1, 32, 16), rows, blocks) == scales).all()


def test_scales_that_were_padded() -> None:
    scales = np.arange(20, dtype=np.uint8).reshape(4, 5)
    padded = np.pad(scales, ((0, 124), (0, 3)))
    assert (unpadded(padded, 4, 5) == scales).all()
    assert (unpadded(scales, 4, 5) == scales).all()
    with pytest.raises(ValueError, match="4 rows of 5 are needed"):
        unpadded(padded[:127], 4, 5)
    with pytest.raises(ValueError, match="512 scales in tiles; 4 rows of 5 have 1024"):
        from_tiles(to_tiles(scales[:, :4]), 4, 5)


def test_the_first_number_of_a_pair_is_in_the_low_half() -> None:
    codes = np.arange(16, dtype=np.uint8).reshape(2, 8)
    assert to_pairs(codes)[0].tolist() == [0x10, 0x32, 0x54, 0x76]
    assert (from_pairs(to_pairs(codes)) == codes).all()
    assert (from_pairs(to_pairs(codes).view(np.int8)) == codes).all()
    for wrong in (codes[:, :7], codes + 1, codes.astype(float)):
        with pytest.raises(ValueError, match="codes of fp4 are whole numbers"):
            to_pairs(wrong)
    with pytest.raises(ValueError, match="are bytes"):
        from_pairs(codes.astype(np.uint16))


def test_a_product_of_a_librarys_layout_is_the_units() -> None:
    unit = blackwell["UTCOMMA.F32.E2M1.E2M1.UE4M3.4X"]
    rng = np.random.default_rng(0)
    M, K, N, blocks = 40, 256, 24, 256 // unit.spec.scale_block
    a, b = (rng.integers(0, 16, shape, np.uint8) for shape in ((M, K), (N, K)))
    s, t = (rng.integers(40, 80, (rows, blocks), np.uint8) for rows in (M, N))
    out = matmul(a, np.ascontiguousarray(b.T), instruction=unit, scale_a=s, scale_b=np.ascontiguousarray(t.T))
    laid = {"A": to_pairs(a), "B": to_pairs(b), "sa": to_tiles(s), "sb": to_tiles(t)}
    operands = from_pairs(laid["A"]), np.ascontiguousarray(from_pairs(laid["B"]).T)
    scales = {
        "scale_a": from_tiles(laid["sa"], M, blocks),
        "scale_b": np.ascontiguousarray(from_tiles(laid["sb"], N, blocks).T),
    }
    assert_matches(np.asarray(out).view(np.float32), *operands, instruction=unit, **scales)
    scales["scale_a"] = laid["sa"][: M * blocks].reshape(M, blocks)  # tiles taken for plain rows
    with pytest.raises(AssertionError):
        assert_matches(np.asarray(out).view(np.float32), *operands, instruction=unit, explain=0, **scales)
