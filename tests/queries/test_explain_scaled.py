"""Products with block scales: explained however scales lie; wrong where scales are; a test that passes as printed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray

from mmaformal import blackwell, explain, matmul
from mmaformal.cli import main
from mmaformal.formats import bf16, e2m1, e4m3, ue4m3, ue8m0
from mmaformal.given_scales import ways
from mmaformal.instruction import Instruction
from mmaformal.scale_layouts import from_pairs, from_tiles, to_pairs, to_tiles, unpadded
from mmaformal.structures import Structure, replay
from mmaformal.testing import assert_matches

Array = NDArray[Any]
MX = blackwell["UTCQMMA.SF.F32.E4M3.E4M3.E8"]
NV = blackwell["UTCOMMA.F32.E2M1.E2M1.UE4M3.4X"]
M, K, N = 96, 512, 48


class Scaled:
    """Codes of A, of the transpose of B, and scales of a row of each; and their product, K in blocks of 128."""

    def __init__(self, unit: Instruction, k: int = K, seed: int = 0) -> None:
        rng = np.random.default_rng(seed)
        self.unit = unit
        fp4 = unit.a_format == e2m1
        self.a, self.b = (
            rng.integers(0, 16, (rows, k), np.uint8)
            if fp4
            else rng.standard_normal((rows, k)).astype(ml_dtypes.float8_e4m3fn).view(np.uint8)
            for rows in (M, N)
        )
        blocks = -(-k // unit.spec.scale_block)
        low, high = (40, 80) if fp4 else (120, 135)
        self.s, self.t = (rng.integers(low, high, (rows, blocks), np.uint8) for rows in (M, N))
        self.structure = Structure(unit, block=128, d_format=None if fp4 else bf16)
        self.d = self.made(self.s)

    def made(self, s: Array) -> Array:
        scales = {"scale_a": s, "scale_b": np.ascontiguousarray(self.t.T)}
        codes = replay(self.a, np.ascontiguousarray(self.b.T), self.structure, **scales)
        return codes.view(ml_dtypes.bfloat16 if codes.itemsize == 2 else np.float32)


def padded(scales: Array) -> Array:
    rows, blocks = scales.shape
    return np.pad(scales, ((0, -rows % 128), (0, -blocks % 4)))


@pytest.mark.parametrize("unit", [MX, NV], ids=["MX", "NVFP4"])
@pytest.mark.parametrize("layout", ["plain", "turned", "padded", "tiles", "scales with their type"])
def test_a_product_is_explained_however_scales_lie(unit: Instruction, layout: str) -> None:
    x = Scaled(unit)
    x.d[17] = 0
    typed = ml_dtypes.float8_e8m0fnu if unit is MX else ml_dtypes.float8_e4m3fn
    s, t = {
        "plain": (x.s, x.t.T),
        "turned": (x.s, x.t),
        "padded": (padded(x.s), padded(x.t)),
        "tiles": (to_tiles(x.s), to_tiles(x.t)),
        "scales with their type": (x.s.view(typed), x.t.view(typed)),
    }[layout]
    a, b = (to_pairs(x.a), to_pairs(x.b)) if unit is NV else (x.a, x.b)
    name = unit.a_format.name
    found = explain(x.d, a, b, device="b200", a_format=name, b_format=name, scale_a=s, scale_b=t)
    assert found.verdict == "wrong"
    assert np.argwhere(found.unexplained.any(axis=1)).ravel().tolist() == [17]
    assert x.structure.python in [each.python for each in found.structures]
    (line,) = (n for n, text in enumerate(str(found).splitlines()) if "assert_matches" in text)
    call = " ".join(str(found).splitlines()[line : line + 2]).strip()
    names = {"made": found.structure, "assert_matches": assert_matches, "unpadded": unpadded}
    names |= {"np": np, "from_pairs": from_pairs, "from_tiles": from_tiles, "D": x.made(x.s), "A": a, "B": b}
    exec(call, names | {"scale_a": s, "scale_b": t})
    names["D"] = x.d
    with pytest.raises(AssertionError, match="all of row 17"):
        exec(call, names | {"scale_a": s, "scale_b": t})


def test_scales_of_another_row_are_seen() -> None:
    x = Scaled(MX)
    wrong = x.s.copy()
    wrong[5] = x.s[6]
    x.d[5] = x.made(wrong)[5]
    found = explain(x.d, x.a, x.b, device="b200", a_format="e4m3", b_format="e4m3", scale_a=x.s, scale_b=x.t)
    assert np.argwhere(found.unexplained.any(axis=1)).ravel().tolist() == [5]


def test_tiles_of_whole_rows_are_told_from_plain_ones_by_the_product() -> None:
    """128 rows of 4 blocks have one shape either way."""
    rng = np.random.default_rng(1)
    a, b = (rng.standard_normal((128, 128)).astype(ml_dtypes.float8_e4m3fn) for _ in "ab")
    s, t = (rng.integers(115, 140, (128, 4), np.uint8) for _ in "st")
    d = matmul(a.view(np.uint8), b.view(np.uint8).T.copy(), instruction=MX, scale_a=s, scale_b=t.T.copy())
    for lay, words in ((np.asarray, "plain"), (lambda x: to_tiles(x).reshape(128, 4), "tiles")):
        given = {"scale_a": lay(s), "scale_b": lay(t)}
        found = explain(d.view(np.float32), a, b.T, device="b200", **given)
        assert found.given.scales is not None
        assert found.given.scales.words == words
        assert found.verdict == "explained"
    found = explain(d.view(np.float32), a, b.T, device="b200", scale_layout="tiles", scale_a=s, scale_b=t)
    assert found.verdict == "none"


def test_k_that_is_no_multiple_of_a_block() -> None:
    x = Scaled(MX, 80)
    given = {"a_format": "e4m3", "b_format": "e4m3", "scale_a": x.s, "scale_b": x.t}
    assert explain(x.d, x.a, x.b, device="b200", **given).verdict == "explained"


def test_what_scales_may_be() -> None:
    s, t = np.zeros((96, 16), np.uint8), np.zeros((48, 16), np.uint8)
    (only,) = ways(s, t, (M, K, N), (e4m3, e4m3))
    assert (only.fmt, only.block, only.a.shape, only.b.shape, only.turned) == (
        ue8m0,
        32,
        (96, 16),
        (16, 48),
        True,
    )
    s, t = np.zeros((96, 32), np.uint8), np.zeros((32, 48), np.uint8)
    assert [(x.fmt, x.block) for x in ways(s, t, (M, K, N), (e2m1, e2m1))] == [(ue8m0, 16), (ue4m3, 16)]
    assert [(x.fmt, x.block) for x in ways(s, t, (M, K, N), (e2m1, e2m1), named="float8_e4m3fn")] == [
        (ue4m3, 16)
    ]


def test_what_is_refused() -> None:
    x = Scaled(MX)
    given: dict[str, Any] = {"a_format": "e4m3", "b_format": "e4m3", "device": "b200"}
    for more, said in (
        ({"scale_a": x.s}, "of both A and B"),
        ({"scale_a": x.s, "scale_b": x.t[:, :3]}, r"96×16 and 16×48 of ue8m0 are needed"),
        ({"scale_a": np.ones((M, 1), np.float32), "scale_b": x.t}, "divide D by them"),
        ({"scale_a": x.s, "scale_b": x.t, "scale_format": "bf16"}, "are of ue8m0, ue4m3, not bf16"),
        ({"scale_a": x.s, "scale_b": x.t, "scale_layout": "rows"}, "plain, padded, tiles"),
        ({"scale_a": x.s, "scale_b": x.t, "device": "h100"}, "with scales of ue8m0 for 32 products"),
    ):
        with pytest.raises(ValueError, match=said):
            explain(x.d, x.a, x.b, **given | more)


def test_files_of_torch(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    torch = pytest.importorskip("torch")
    if not hasattr(torch, "float4_e2m1fn_x2"):
        pytest.skip("torch has no fp4")
    x = Scaled(NV)
    of = torch.from_numpy
    files = {
        "out": of(x.d),
        "x": of(to_pairs(x.a)).view(torch.float4_e2m1fn_x2),
        "w": of(to_pairs(x.b)).view(torch.float4_e2m1fn_x2),
        "sx": of(to_tiles(x.s)).view(torch.float8_e4m3fn),
        "sw": of(to_tiles(x.t)).view(torch.float8_e4m3fn),
    }
    for name, tensor in files.items():
        torch.save(tensor, tmp_path / f"{name}.pt")
    of_fp4 = "--a-format", "e2m1", "--b-format", "e2m1", "--device", "b200"
    scales = "--scale-a", str(tmp_path / "sx.pt"), "--scale-b", str(tmp_path / "sw.pt")
    files_of = [str(tmp_path / f"{name}.pt") for name in ("out", "x", "w")]
    assert main(["explain", *files_of, *scales, *of_fp4]) == 0
    told = capsys.readouterr().out
    assert "scales of ue4m3 are taken as tiles" in told
    assert "every element is so" in told


def test_one_file_may_have_scales(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    x = Scaled(MX)
    np.savez(tmp_path / "x.npz", D=x.d.view(np.uint16), A=x.a, B=x.b.T, scale_a=x.s, scale_b=x.t.T)
    formats = "--a-format", "e4m3", "--b-format", "e4m3", "--d-format", "bf16", "--device", "b200"
    assert main(["explain", str(tmp_path / "x.npz"), *formats]) == 0
    assert main(["batch-invariant", *[str(tmp_path / "x.npz")] * 2, *formats]) == 2
    assert "takes no block scales" in capsys.readouterr().err
