"""Products bit for bit: what passes, what does not, and what the message of a failure says."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray

from mmaformal import Structure, hopper, matmul, replay
from mmaformal.testing import assert_matches
from mmaformal.where_wrong import where_wrong

UNIT = "h100 HMMA.16816.F32"


def operands(m: int = 24, k: int = 256, n: int = 20, seed: int = 0) -> tuple[NDArray[np.float16], ...]:
    rng = np.random.default_rng(seed)
    return rng.standard_normal((m, k)).astype(np.float16), rng.standard_normal((k, n)).astype(np.float16)


def failure(*args: object, **how: object) -> str:
    with pytest.raises(AssertionError) as caught:
        assert_matches(*args, **how)  # type: ignore[arg-type]
    return str(caught.value)


def test_what_the_unit_gives_passes() -> None:
    A, B = operands()
    C = np.random.default_rng(1).standard_normal((24, 20)).astype(np.float32)
    assert_matches(matmul(A, B, C, instruction=UNIT), A, B, C, instruction=UNIT)
    assert_matches(matmul(A, B, instruction=UNIT, promote_every=2), A, B, instruction=UNIT, promote_every=2)
    batch = np.stack([A, 2 * A])
    assert_matches(matmul(batch, B, instruction=UNIT), batch, B, instruction=UNIT)
    codes = matmul(A, B, instruction=UNIT).view(np.uint32)
    assert_matches(codes, A, B, instruction=hopper["HMMA.16816.F32"])


def test_a_result_that_is_rounded_once_more() -> None:
    A, B = operands()
    wide = matmul(A, B, instruction=UNIT)
    for dtype in (np.float16, ml_dtypes.bfloat16):
        assert_matches(wide.astype(dtype), A, B, instruction=UNIT)
        toward_zero = (wide.view(np.uint32) & 0xFFFF0000).view(np.float32).astype(dtype)
        assert "elements of 480 not as hopper" in failure(toward_zero, A, B, instruction=UNIT, explain=0)


def test_blocks_with_scales() -> None:
    unit, rng = "b200 UTCQMMA.SF.F32.E4M3.E4M3.E8", np.random.default_rng(0)
    A, B = (rng.integers(0x30, 0x40, shape).astype(np.uint8) for shape in ((4, 64), (64, 4)))
    scale_a, scale_b = np.full((4, 2), 128, np.uint8), np.full((2, 4), 126, np.uint8)
    D = matmul(A, B, instruction=unit, scale_a=scale_a, scale_b=scale_b)
    assert_matches(D, A, B, instruction=unit, scale_a=scale_a, scale_b=scale_b)
    D[1, 2] ^= 1
    told = failure(D, A, B, instruction=unit, scale_a=scale_a, scale_b=scale_b)
    assert "1 element of 16" in told
    assert "1 ulp apart" in told
    assert "accumulate" in told


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ((17, slice(None)), "all of row 17"),
        ((slice(None), 3), "all of column 3"),
        ((2, 5), "all of row 2, column 5"),
    ],
)
def test_where_it_is_wrong(change: tuple[object, object], told: str) -> None:
    A, B = operands()
    D = matmul(A, B, instruction=UNIT)
    D[change] += 1
    assert told in failure(D, A, B, instruction=UNIT, explain=0).splitlines()[0]


def test_the_first_wrong_element_is_told_stage_by_stage() -> None:
    A, B = operands(k=16)
    D = matmul(A, B, instruction=UNIT)
    D[3, 7] = 0
    told = failure(D, A, B, instruction=UNIT, explain=0)
    assert "the first, out[3, 7]:" in told
    assert "align       a[15]·b[15]" in told
    assert "accumulate  sum" in told
    right = matmul(A, B, instruction=UNIT)[3, 7].view(np.uint32)
    assert f"encode      d                 {right:#010x}" in told


def test_another_structure_that_explains_all_is_named() -> None:
    A, B = operands(k=512)
    blocks = Structure.named(UNIT, block=128)
    D = replay(A, B, blocks)
    told = failure(D, A, B, instruction=UNIT)
    assert "one structure explains of hopper HMMA.16816.F32 every element" in told
    assert f"structure={blocks.python}" in told
    assert_matches(D, A, B, structure=blocks)
    D[0, 0] ^= 1 << 20
    told = failure(D, A, B, structure=blocks, explain=1)
    assert "nothing else explains every element" in told or "all but 1 element" in told
    assert "4 chains, whose results are added in fp32" in told


@pytest.mark.slow
def test_another_unit_that_explains_all_is_named() -> None:
    A, B = operands(m=40, k=64)
    told = failure(matmul(A, B, instruction="a100 HMMA.16816.F32"), A, B, instruction=UNIT)
    assert "a chain of ampere HMMA.1688.F32" in told or "a chain of turing HMMA.1688.F32" in told


def test_wrong_use() -> None:
    A, B = operands()
    D = matmul(A, B, instruction=UNIT)
    blocks = Structure.named(UNIT, block=128)
    with pytest.raises(ValueError, match="which unit"):
        assert_matches(D, A, B)
    with pytest.raises(ValueError, match=r"out has shape \(20, 24\); of these A and B it is \(24, 20\)"):
        assert_matches(D.T, A, B, instruction=UNIT)
    with pytest.raises(TypeError, match="results of fp32 are not rounded to that"):
        assert_matches(D.astype(np.float64), A, B, instruction=UNIT)
    with pytest.raises(ValueError, match="leave promote_every out"):
        assert_matches(D, A, B, structure=blocks, promote_every=2)
    with pytest.raises(ValueError, match="takes C where `c_enters` says so"):
        assert_matches(D, A, B, D, structure=blocks)
    with pytest.raises(ValueError, match="leave instruction out"):
        assert_matches(D, A, B, structure=blocks, instruction="a100 HMMA.16816.F32")
    with pytest.raises(TypeError, match="A is float32"):
        assert_matches(D, A.astype(np.float32), B, instruction=UNIT)


def test_a_structure_of_names_is_what_its_text_makes() -> None:
    made = Structure.named("a100 HMMA.16816.F32.BF16", lanes=4, order="pairwise", d_format="bf16")
    assert eval(made.python, {"Structure": Structure}) == made
    with pytest.raises(ValueError, match="no format 'fp17'"):
        Structure.named(UNIT, d_format="fp17")


def test_places_in_words() -> None:
    wrong = np.zeros((8, 8), bool)
    for rows, columns, told in (
        ([1], [2, 4], "all of row 1, columns 2 and 4"),
        (range(8), range(8), "every element"),
        ([0, 2, 4, 6], range(8), "all of rows 0 to 6 in steps of 2"),
        (range(4), [7], "all of column 7, rows 0 to 3"),
        ([0, 1, 3, 4, 7], range(8), "all of 5 rows from 0 to 7"),
    ):
        each = wrong.copy()
        each[np.ix_(list(rows), list(columns))] = True
        assert where_wrong(each) == told
    assert where_wrong(np.eye(8, dtype=bool)) == "in every row and column"
    batch = np.stack([np.eye(8, dtype=bool), wrong])
    assert where_wrong(batch) == "in every row and column, of 1 product of the batch"


def test_a_structure_may_be_given_as_text() -> None:
    A, B = operands()
    structure = Structure(hopper["HMMA.16816.F32"], 128)
    assert_matches(replay(A, B, structure).view(np.float32), A, B, structure=structure.python)
    with pytest.raises(ValueError, match="is no structure: write"):
        assert_matches(A @ B, A, B, structure="two-level accumulation")
