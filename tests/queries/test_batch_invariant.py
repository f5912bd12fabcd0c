"""Products of one call: of one structure, of two, with a row that has two results."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from mmaformal import Structure, batch_invariant, cli, hopper, replay
from mmaformal.formats import fp16, fp32

HMMA = hopper["HMMA.16816.F32"]
ONE, BLOCKS = Structure(HMMA), Structure(HMMA, 128, d_format=fp32)
RNG = np.random.default_rng(0)
A = RNG.standard_normal((48, 512)).astype(np.float16)
B = RNG.standard_normal((512, 32)).astype(np.float16)


def made(rows: slice, structure: Structure) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    dtype = structure.result.dtype
    assert dtype is not None
    return replay(A[rows], B, structure).view(dtype).copy(), A[rows], B


def test_one_structure_in_every_batch_holds() -> None:
    products = [made(slice(0, 4), ONE), made(slice(4, 48), ONE)]
    answer = batch_invariant(products, against=HMMA)
    assert (answer.verdict, answer.structure, answer.common) == ("holds", ONE, 0)
    assert str(answer).startswith(
        "Holds: the same additions for every row of 2 products: one chain over K of hopper"
    )


def test_a_row_with_two_results_is_found_without_a_search() -> None:
    answer = batch_invariant([made(slice(0, 1), ONE), made(slice(0, 32), BLOCKS)], device="h100")
    assert (answer.verdict, answer.explained) == ("fails", ())
    assert answer.differs is not None
    assert (answer.differs.row, answer.differs.other_row, answer.differs.other_product) == (0, 0, 0)
    assert "another result than row 0 of product 1 gives it" in str(answer)


def test_two_structures_without_a_common_row_fail_with_a_row_and_two_results() -> None:
    second = made(slice(16, 32), BLOCKS)
    answer = batch_invariant([made(slice(0, 16), ONE), second], against=HMMA)
    assert answer.verdict == "fails"
    x = answer.differs
    assert x is not None
    assert (x.product, x.other_product, x.other_row) == (1, 0, None)
    assert x.result == int(second[0].view(np.uint32)[x.row, x.column])
    assert x.other == int(replay(second[1], B, ONE)[x.row, x.column]) != x.result


def test_what_the_elements_do_not_tell_apart_is_not_said_to_hold() -> None:
    blocks = Structure(HMMA, 128, d_format=fp16)
    answer = batch_invariant([made(slice(0, 16), blocks), made(slice(16, 32), blocks)], against=HMMA)
    assert answer.verdict == "unknown"
    assert answer.structure == blocks
    assert answer.others
    assert "not excluded" in str(answer)


def test_a_product_that_nothing_explains_leaves_it_open() -> None:
    D, a, b = made(slice(0, 16), ONE)
    D[3, 5] += 1
    answer = batch_invariant([(D, a, b), made(slice(16, 32), ONE)], against=HMMA)
    assert answer.verdict == "unknown"
    assert "explains product 1" in str(answer)
    assert "1 of 512 elements wrong" in str(answer)


def test_wrong_use() -> None:
    first = made(slice(0, 16), ONE)
    with pytest.raises(ValueError, match="two products of one call"):
        batch_invariant([first])
    with pytest.raises(ValueError, match="not 2 matrices"):
        batch_invariant([first[:2], first])
    short = replay(A[:4, :256], B[:256], ONE).view(np.float32), A[:4, :256], B[:256]
    with pytest.raises(ValueError, match="one K"):
        batch_invariant([first, short])


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = []
    for name, (D, a, b) in {"x": made(slice(0, 8), ONE), "y": made(slice(8, 24), ONE)}.items():
        np.savez(tmp_path / f"{name}.npz", D=D, A=a, B=b)
        files.append(str(tmp_path / f"{name}.npz"))
    argv = ["batch-invariant", *files, "--against", "h100", "HMMA.16816.F32"]
    assert cli.main(argv) == 0
    assert capsys.readouterr().out.startswith("Holds")
    for name, x in zip("DAB", made(slice(0, 8), BLOCKS), strict=True):
        np.save(tmp_path / f"{name}.npy", x)
    separate = ["--product", *(str(tmp_path / f"{name}.npy") for name in "DAB")]
    assert cli.main(["batch-invariant", files[0], *separate, *argv[3:], "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["differs"]["row"] == 0


def test_a_product_that_is_given_twice_says_nothing() -> None:
    A, B = (np.ones(shape, np.float16) for shape in ((4, 32), (32, 4)))
    D = np.full((4, 4), 32, np.float32)
    with pytest.raises(ValueError, match="products 1 and 2 are the same matrices: give products of other M"):
        batch_invariant([(D, A, B), (D, A, B)])
