"""Tensors and their files are explained as arrays are."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from mmaformal import Structure, cli, explain, hopper, replay
from mmaformal.formats import bf16

torch = pytest.importorskip("torch")

UNIT = hopper["QGMMA.64x8x32.F32.E4M3.E4M3"]


def test_tensors_and_their_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    torch.manual_seed(0)
    A, W = (torch.randn(shape).to(torch.float8_e4m3fn) for shape in ((64, 256), (64, 256)))
    codes = replay(
        A.view(torch.uint8).numpy(), W.view(torch.uint8).numpy().T, Structure(UNIT, 128, d_format=bf16)
    )
    D = torch.from_numpy(codes.view(np.int16)).view(torch.bfloat16)
    found = explain(D, A, W.T, against=UNIT)
    assert found.verdict == "explained"
    assert found.structure == Structure(UNIT, 128, d_format=bf16)
    raw = explain(
        D.view(torch.int16), A.view(torch.int8), W.view(torch.uint8).T,
        against=UNIT, a_format="float8_e4m3fn", b_format="e4m3", d_format="bf16",
    )  # fmt: skip
    assert raw.structures == found.structures
    D[17] = 0
    for name, x in {"D": D, "A": A, "W": W}.items():
        torch.save(x, tmp_path / f"{name}.pt")
    files = [str(tmp_path / f"{name}.pt") for name in "DAW"]
    assert cli.main(["explain", *files, "--against", "h100", UNIT.name]) == 1
    assert "wrong: all of row 17" in capsys.readouterr().out
