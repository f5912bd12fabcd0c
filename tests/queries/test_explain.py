"""Products made by a known structure, with a known bug, are explained as that; others by nothing."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray
from support.commands import run

from mmaformal import Structure, explain, hopper, matmul, replay
from mmaformal.formats import fp16, fp32
from mmaformal.testing import assert_matches

HMMA = hopper["HMMA.16816.F32"]
BLOCKS = Structure(HMMA, 128, d_format=fp16)


def operands(M: int = 48, K: int = 512, N: int = 64, seed: int = 0) -> tuple[NDArray[Any], NDArray[Any]]:
    rng = np.random.default_rng(seed)
    return rng.standard_normal((M, K)).astype(np.float16), rng.standard_normal((K, N)).astype(np.float16)


def product(structure: Structure, *more: Any) -> NDArray[Any]:
    dtype = structure.result.dtype
    assert dtype is not None
    return replay(*operands(), structure, *more).view(dtype).copy()


def test_a_bug_in_one_row_is_told_and_does_not_hide_the_structure() -> None:
    D = product(BLOCKS)
    D[17] = 0
    found = explain(D, *operands(), device="h100")
    assert found.verdict == "wrong"
    assert found.structure == BLOCKS
    assert found.first == (17, 0)
    assert (found.unexplained == (np.arange(48) == 17)[:, None]).all()
    assert str(found).startswith(
        "two-level accumulation every 128 (or split-K by 4) of hopper HMMA.16816.F32, as modelled; 64 of 3,072 "
        "elements wrong: all of row 17"
    )
    assert "each of them is 0x0000  0x0p+0" in str(found)
    assert len(str(found).splitlines()) < 24
    assert eval(found.to_json()["python"]) == BLOCKS  # type: ignore[arg-type]
    assert json.loads(found.json())["wrong"]["rows"] == [17]


@pytest.mark.parametrize(
    "structure",
    [
        Structure(HMMA),
        Structure(HMMA, 64, d_format=fp32),
        Structure(HMMA, 256, d_format=fp16),
        Structure(HMMA, 32, order="pairwise", d_format=fp32),
        Structure(HMMA, lanes=4, order="halves", d_format=fp32),
        Structure(hopper["HMMA.16816.F16"], 128, d_format=fp16),
    ],
    ids=str,
)
def test_what_made_it_is_found(structure: Structure) -> None:
    D = product(structure)
    found = explain(D, *operands(), device="hopper")
    assert found.verdict == "explained"
    assert structure in found.structures
    assert (replay(*operands(), found.structures[0]).view(D.dtype) == D).all()


def test_an_unusual_block_is_found_where_no_usual_one_explains_it() -> None:
    structure = Structure(HMMA, 144, d_format=fp32)
    found = explain(product(structure), *operands(), against=HMMA)
    assert (found.verdict, found.structure, found.usual) == ("explained", structure, False)


@pytest.mark.parametrize("place", ["start", "first", "last", "after"])
def test_c_is_found_where_it_enters(place: Any) -> None:
    C = np.random.default_rng(1).standard_normal(64).astype(np.float16) * 8
    structure = Structure(
        HMMA, None if place == "start" else 128, d_format=fp16 if place == "after" else fp32, c_enters=place
    )
    found = explain(product(structure, C), *operands(), C, against=HMMA)
    assert found.verdict == "explained"
    assert structure in found.structures
    assert len({each.c_enters for each in found.structures}) == 1


def test_the_unit_of_another_device_is_not_taken_for_a_bug() -> None:
    """Results in fp16 differ in a few elements, by one place, as no bug does."""
    A, B = operands(96)
    D = replay(A, B, BLOCKS).view(np.float16).copy()
    D[17] = 0
    found = explain(D, A, B, against="a100 HMMA.16816.F32")
    assert found.verdict == "none"
    assert found.structure is None
    assert "leave against out to try the units of all devices" in str(found)
    assert str(found).startswith(
        "nothing tried explains D\nit is none of: ampere HMMA.16816.F32, as modelled\n"
    )


# ---- wrong elements


def test_a_tile_column_and_row_of_wrong_elements() -> None:
    D = product(BLOCKS)
    D[16:32, 8:16] += 1
    D[:, 40] = np.nan
    found = explain(D, *operands(), against=HMMA)
    assert found.structure == BLOCKS
    wanted = np.zeros(D.shape, bool)
    wanted[16:32, 8:16] = wanted[:, 40] = True
    assert (found.unexplained == wanted).all()


def test_a_row_that_stands_in_another_is_told() -> None:
    D = product(BLOCKS)
    D[30] = D[31]
    found = explain(D, *operands(), against=HMMA)
    assert "row 30 of D is what row 31 should be" in found.told


@pytest.mark.parametrize(
    ("start", "stop", "said"),
    [
        (128, 256, "products 128 to 255"),
        (384, 512, "products 384 to 511"),
        (448, 512, "the last 64 products"),
    ],
)
def test_a_part_of_K_that_was_left_out_is_told(start: int, stop: int, said: str) -> None:
    A, B = operands()
    D, short = product(BLOCKS), A.copy()
    short[:, start:stop] = 0
    D[5:9] = replay(short, B, BLOCKS).view(np.float16)[5:9]
    assert explain(D, A, B, against=HMMA).told == (f"as if {said} were left out",)


def test_c_that_was_left_out_is_told() -> None:
    A, B = operands()
    C = np.random.default_rng(1).standard_normal((48, 64)).astype(np.float32) * 8
    structure = Structure(HMMA, 128, c_enters="last")
    D, bare = product(structure, C), product(Structure(HMMA, 128))
    D[:, 3] = bare[:, 3]
    assert explain(D, A, B, C, against=HMMA).told == ("as if C was left out",)


def test_columns_of_another_structure_are_a_part_of_their_own() -> None:
    D = product(Structure(HMMA))
    D[:, 48:] = product(other := Structure(HMMA, 256, d_format=fp32))[:, 48:]
    found = explain(D, *operands(), against=HMMA)
    assert found.verdict == "explained"
    (part,) = found.parts
    assert part.structure == other
    assert (part.where == (np.arange(64) >= 48)).all()
    assert (found.remade(*operands()) == D.view(np.uint32)).all()
    with pytest.raises(ValueError, match="the regions are of a D of"):
        found.remade(operands()[0][:5], operands()[1])
    assert "columns 48 to 63" in str(found)


def test_elements_of_another_order_of_sums_are_not_called_wrong_data() -> None:
    A, B = operands()
    D, order = product(Structure(HMMA)), np.random.default_rng(2).permutation(len(B))
    D[::3, 40:56] = replay(A[:, order], B[order], Structure(HMMA)).view(D.dtype)[::3, 40:56]
    found = explain(D, A, B, against=HMMA)
    assert (found.verdict, found.structure) == ("wrong", Structure(HMMA))
    assert found.told == (
        "they are roundings off, as of another order of the sums, and not as of wrong data",
    )


# ---- what is no product


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda D: D * np.float16(0.5), "it is near 0.5 · (A·B)"),
        (lambda D: D * 0, "it is zero throughout"),
        (lambda D: D[::-1], "D is no A·B, whatever the order of its sums"),
    ],
)
def test_what_is_no_product_at_all(change: Any, said: str) -> None:
    found = explain(change(product(BLOCKS)), *operands(), against=HMMA)
    assert found.verdict == "none"
    assert said in str(found)
    assert found.tried == 0


def test_a_reference_is_told_as_one() -> None:
    A, B = operands()
    D = A.astype(np.float64) @ B.astype(np.float64)
    found = explain(D.astype(np.float32), A, B, against=HMMA)
    assert found.verdict == "none"
    assert "is what float64 gives, rounded once" in str(found)


def test_a_factor_that_fits_as_its_transpose_is_taken_so() -> None:
    A, B = operands()
    D = product(BLOCKS)
    found = explain(D, A, np.ascontiguousarray(B.T), against=HMMA)
    assert found.verdict == "explained"
    assert "B is taken as its transpose" in str(found)
    assert "  assert_matches(D, A, B.T, structure=made)" in str(found).splitlines()
    A, B = operands(64, 64, 64)
    found = explain(replay(A, B, Structure(HMMA)).view(np.float32), A, B.T, against=HMMA)
    assert found.given.notes == ("B is taken as its transpose: D is no A·B of them as they were given",)
    assert found.verdict == "explained"


# ---- use


def test_wide_floats_are_numbers_of_the_format_named() -> None:
    A, B = (x.astype(ml_dtypes.bfloat16).astype(np.float32) for x in operands())
    D = replay(
        A.astype(ml_dtypes.bfloat16), B.astype(ml_dtypes.bfloat16), Structure(hopper["HMMA.16816.F32.BF16"])
    )
    found = explain(D.view(np.float32), A, B, device="h100", a_format="bfloat16", b_format="bf16")
    assert found.verdict == "explained"
    with pytest.raises(ValueError, match='all of A and B are bf16 numbers: a_format="bf16", b_format="bf16"'):
        explain(D.view(np.float32), A, B, device="h100")
    A[3, 4] = 1.001
    with pytest.raises(ValueError, match=r"A is fp32, and A\[3, 4\] = 1.00.* is no bf16 number"):
        explain(D.view(np.float32), A, B, device="h100", a_format="bf16", b_format="bf16")


def test_wrong_use() -> None:
    A, B = operands()
    D = product(BLOCKS)
    with pytest.raises(ValueError, match=r"M×K, K×N and M×N are needed"):
        explain(D[:5], A, B)
    with pytest.raises(ValueError, match="int32"):
        explain(D, A.astype(np.int32), B, a_format="fp16")
    with pytest.raises(ValueError, match="not both"):
        explain(D, A, B, device="h100", against=HMMA)
    with pytest.raises(ValueError, match="no instruction of volta chains fp16 × fp16 to what rounds to fp64"):
        explain(D.astype(np.float64), A, B, device="v100")
    with pytest.raises(ValueError, match="one product at a time"):
        explain(D[None], A[None], B[None])
    with pytest.raises(KeyError, match="did you mean hopper"):
        explain(D, A, B, device="hoper")


def test_the_time_is_kept() -> None:
    A, B = operands(64, 4096, 64)
    D = (A.astype(np.float64) @ B.astype(np.float64)).astype(np.float32)
    explain(D[:4], A[:4], B, against=HMMA, timeout=5)  # its kernels are compiled to their end
    start = time.monotonic()
    found = explain(D, A, B, against=HMMA, timeout=0.5, every_block=True)
    assert time.monotonic() - start < 15  # of minutes that the search would take
    assert found.verdict == "unknown"
    assert "the time was up before all was tried" in found.summary
    assert "it is none of" not in str(found)


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    A, B = operands()
    D = product(BLOCKS)
    files = [str(tmp_path / f"{name}.npy") for name in "DAB"]
    for file, x in zip(files, (D, A, B), strict=True):
        np.save(file, x)
    status, out, _ = run(capsys, "explain", *files, "--against", "h100", "HMMA.16816.F32")
    assert status == 0
    assert f"  made = {BLOCKS.python}\n" in out  # Python as it is, and no options of a command
    D[17] = 0
    np.save(files[0], D)
    status, out, _ = run(capsys, "explain", str(tmp_path), "--against", "h100", "HMMA.16816.F32", "--json")
    assert status == 1
    told = json.loads(out)
    assert (told["verdict"], told["wrong"]["first"]) == ("wrong", [17, 0])
    for argv, said in (
        ([*files, "--device", "h101"], "no architecture 'h101'; did you mean H100?"),
        ([*files, "--call", "7", "64"], "is not of calls of 7×64 each"),
        (files[:2], "give the files of D, A and B"),
        ([files[0], files[1], "x.npy"], "x.npy: there is no such file"),
        ([*files, "--device", "h100", "--against", "h100", "HMMA.16816.F32"], "exclude each other"),
    ):
        status, _, err = run(capsys, "explain", *argv)
        assert status == 2
        assert said in err
        assert len(err.splitlines()) == 1


# ---- what a D is instead


def kinds_of_other_products() -> list[tuple[str, Any, str]]:
    A, B = (x.astype(np.float32) for x in operands(48, 512, 64))
    rng = np.random.default_rng(3)
    A, B = (x + rng.standard_normal(x.shape).astype(np.float32) * np.float32(2**-14) for x in (A, B))
    half, cut = (x.astype(ml_dtypes.bfloat16).astype(np.float32) for x in (A, B)), A.copy()
    cut[:, 128:192] = 0
    first, second = half
    of_tf32 = [((x.view(np.uint32) + 0x1000) & 0xFFFFE000).view(np.float32) for x in (A, B)]
    bias = 30 * rng.standard_normal(64).astype(np.float32)
    return [
        (
            "bias of columns",
            (A @ B + bias, A, B),
            "D is A·B and one number for each column: a bias of shape (N,)?",
        ),
        ("bias of rows", (A @ B + bias[:48, None], A, B), "one number for each row"),
        ("a small bias", (A @ B + bias / 1000, A, B), "D is A·B and one number for each column"),
        ("a tile of K", (cut @ B, A, B), "D is near A·B without products 128 to 191"),
        ("rounded before", (first @ second, A, B), 'rounded to bf16 first: give these, with a_format="bf16"'),
        (
            "of tf32",
            (of_tf32[0] @ of_tf32[1], A, B),
            'rounded to tf32 first: give these, with a_format="tf32"',
        ),
        ("exchanged", (A, A @ B, B), "these are A, D, B, not D, A, B"),
    ]


@pytest.mark.parametrize(
    ("_", "matrices", "said"), kinds_of_other_products(), ids=lambda x: x if isinstance(x, str) else ""
)
def test_what_a_D_is_instead_is_told(_: str, matrices: Any, said: str) -> None:
    found = explain(*matrices, against=Structure.named("cdna1 v_mfma_f32_32x32x1f32"), timeout=20)
    assert found.verdict == "none"
    assert said in str(found)


def test_fp16_factors_that_were_rounded_to_bf16_are_told() -> None:
    A, B = (np.random.default_rng(n).standard_normal((64, 64)).astype(np.float16) for n in (1, 2))
    of_bf16 = (x.astype(ml_dtypes.bfloat16).astype(np.float16) for x in (A, B))
    D = matmul(*of_bf16, instruction=HMMA)
    found = explain(D, A, B, device="h100", timeout=20)
    assert 'rounded to bf16 first: give these, with a_format="bf16", b_format="bf16"' in str(found)
    with pytest.raises(AssertionError, match="rounded to bf16 first") as failed:
        assert_matches(D, A, B, instruction=HMMA)
    assert "leave against" not in str(failed.value)


def test_matrices_in_another_order_are_told_by_their_shapes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    A, B = operands()
    with pytest.raises(ValueError, match="they fit in the order A, B, D, and D is to be the first"):
        explain(A, B, product(BLOCKS), against=HMMA)
    files = [str(tmp_path / f"{name}.npy") for name in "DAB"]
    for file, x in zip(files, (product(BLOCKS), A, B), strict=True):
        np.save(file, x.astype(np.float32))
    status, _, err = run(capsys, "explain", *files, "--device", "h100")
    assert status == 2
    assert "all of A and B are fp16 numbers: --a-format fp16 --b-format fp16?" in err


def test_a_structure_may_be_given_as_text() -> None:
    A, B = operands()
    D = product(BLOCKS)
    assert explain(D, A, B, against=BLOCKS.python).structure == BLOCKS
    with pytest.raises(ValueError, match="is no structure: write"):
        explain(D, A, B, against="Structure(hopper)")
    with pytest.raises(ValueError, match="unexpected keyword argument 'blocks'"):
        explain(D, A, B, against='Structure.named("hopper HMMA.16816.F32", blocks=128)')


def test_a_product_whose_terms_cancel_is_one() -> None:
    A, B = operands(48, 256)
    A, B = np.hstack([A, -A[:, ::-1]]), np.vstack([B, B[::-1]])
    D = replay(A, B, Structure(HMMA, 64)).view(np.float32)
    found = explain(D, A, B, against=HMMA)
    assert (found.verdict, found.structure) == ("explained", Structure(HMMA, 64, d_format=fp32))
