"""Products recorded from a library: with cancellation, in the layout that `diagnose_gemm` reads."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from mmaformal.cli.record import record as command
from mmaformal.cli.running import UsageError
from mmaformal.formats import FORMATS
from mmaformal.recorder import RecorderError, record_product
from mmaformal.recorder.library import LibraryCall, draw_factors
from mmaformal.recordings.products import read_product


@pytest.mark.parametrize("name", ["bf16", "fp16", "fp32", "fp64"])
def test_products_cancel(name: str) -> None:
    fmt = FORMATS[name]
    A, B = draw_factors(LibraryCall(fmt, (3, 64, 2)), np.random.default_rng(0))
    values = [np.vectorize(lambda code: float(fmt.value(int(code))))(x) for x in (A, B)]
    products = sorted((values[0][0] * values[1][:, 0]).tolist())
    assert products == [-x for x in reversed(products)]
    assert len(set(products)) > 60


@pytest.mark.parametrize("name", ["bf16", "fp16", "fp32", "fp64"])
def test_of_an_odd_k_the_last_product_does_not_hide_what_additions_lose(name: str) -> None:
    fmt = FORMATS[name]
    A, B = draw_factors(LibraryCall(fmt, (30, 35, 20)), np.random.default_rng(0))
    last = [np.vectorize(lambda code: abs(float(fmt.value(int(code)))))(x) for x in (A[:, -1], B[-1])]
    product = np.outer(*last)
    assert product.min() > 0
    assert product.max() < 2.0 ** (-7 if name == "fp16" else -12)


@pytest.mark.parametrize(
    ("kind", "columns"), [("fp32", {}), ("fp64", {"a_layout": "column-major", "b_layout": "column-major"})]
)
def test_a_product_by_numpy(kind: str, columns: dict[str, str], tmp_path: Path) -> None:
    product = record_product("numpy", tmp_path / "x.npz", type=kind, shape=(40, 101, 7), seed=5, **columns)
    assert (product.A.shape, product.B.shape, product.D.shape) == ((24, 101), (101, 7), (24, 7))
    assert product.meta["shape"] == [40, 101, 7]
    assert "NumPy" in product.origin
    dtype = FORMATS[kind].dtype
    exact = product.A.view(dtype) @ product.B.view(dtype)
    assert np.allclose(product.D.view(exact.dtype), exact, atol=1e-3)
    again = record_product("numpy", tmp_path / "y.npz", type=kind, shape=(40, 101, 7), seed=5, **columns)
    assert (again.A == product.A).all()
    assert sorted(each.name for each in tmp_path.iterdir()) == ["x.npz", "y.npz"]


def test_a_product_by_numpy_needs_no_type(tmp_path: Path) -> None:
    words = ["--library", "numpy", "--shape", "9x32x9", "--out", str(tmp_path / "x.npz")]
    assert command.main(words, standalone_mode=False) == 0
    assert read_product(tmp_path / "x.npz").meta["a_format"] == "fp32"


class _Torch:
    """A stand-in for as much of torch as is called, by NumPy, in fp64."""

    __version__ = "0"
    float64 = np.dtype("f8")
    int64 = np.dtype("i8")
    __config__ = SimpleNamespace(show=lambda: "Intel(R) MKL-DNN v9.8.7 (Git Hash x)")

    class Tensor:
        def __init__(self, x: np.ndarray[Any, Any]) -> None:
            self.x = x

        def view(self, dtype: np.dtype[Any]) -> _Torch.Tensor:
            return _Torch.Tensor(self.x.view(dtype))

        def to(self, device: str) -> _Torch.Tensor:
            if device != "cpu":
                raise AssertionError("Torch not compiled with\nCUDA enabled")
            return self

        cpu = contiguous = lambda self: self

        def t(self) -> _Torch.Tensor:
            return _Torch.Tensor(self.x.T)

        def numpy(self) -> np.ndarray[Any, Any]:
            return self.x

    def __init__(self) -> None:
        self.threads = [7]

    def from_numpy(self, x: np.ndarray[Any, Any]) -> _Torch.Tensor:
        return self.Tensor(x)

    def matmul(self, a: _Torch.Tensor, b: _Torch.Tensor) -> _Torch.Tensor:
        return self.Tensor(np.ascontiguousarray(a.x @ b.x))

    def get_num_threads(self) -> int:
        return self.threads[-1]

    def set_num_threads(self, n: int) -> None:
        self.threads.append(n)


def test_a_product_by_torch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A torch that is none shows what is asked of it, and what is told."""
    torch = _Torch()
    monkeypatch.setattr(importlib, "import_module", {"torch": torch}.__getitem__)
    how = {"type": "fp64", "shape": (30, 65, 7), "b_layout": "column-major"}
    product = record_product("torch", tmp_path / "x.npz", jobs=3, **how)
    assert torch.threads == [7, 3, 7]
    assert product.meta["library"] == "PyTorch 0 (oneDNN 9.8.7), torch.matmul"
    assert (product.meta["threads"], product.meta["b_layout"]) == (3, "column-major")
    left = np.outer(
        product.A[:, -1].view("f8"), product.B[-1].view("f8")
    )  # of an odd K one product has no opposite
    assert np.allclose(product.D.view("f8"), left, rtol=0, atol=1e-9)
    with pytest.raises(RecorderError, match=r"^torch: Torch not compiled with CUDA enabled$"):
        record_product("torch", tmp_path / "x.npz", type="fp64", device="cuda")


@pytest.mark.parametrize("kind", ["bf16", "fp16", "fp32", "fp64"])
def test_a_product_by_the_torch_that_is_here(kind: str, tmp_path: Path) -> None:
    if importlib.util.find_spec("torch") is None:
        pytest.skip("torch is not installed")
    product = record_product("torch", tmp_path / "x.npz", type=kind, jobs=1, a_layout="column-major")
    assert product.meta["threads"] == 1


@pytest.mark.parametrize(
    ("library", "how", "why"),
    [
        ("cupy", {}, "of torch and numpy, not of 'cupy'"),
        ("numpy", {"type": "e4m3"}, "bf16, fp16, fp32, fp64, not of 'e4m3'"),
        ("numpy", {"type": "bf16"}, "numpy multiplies fp32 and fp64"),
        ("numpy", {"type": "fp32", "jobs": 2}, "takes its threads from OMP_NUM_THREADS"),
        ("numpy", {"type": "fp32", "shape": (0, 4, 4)}, "shape is M, K, N"),
        ("numpy", {"type": "fp32", "shape": (4, 1, 4)}, "K at least 2"),
        ("numpy", {"type": "fp32", "a_layout": "diagonal"}, "a_layout is row-major or column-major"),
        ("numpy", {"type": "fp32", "seed": -1}, "seed is -1"),
        ("torch", {"jobs": 0}, "threads is 0"),
    ],
)
def test_what_makes_no_sense_is_refused(library: str, how: dict[str, Any], why: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=why):
        record_product(library, tmp_path / "x.npz", **how)
    assert not list(tmp_path.iterdir())


def test_no_torch_is_said_in_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(RecorderError, match=r"^no torch here \([^\n]*\): pip install torch$"):
        record_product("torch", tmp_path / "x.npz")


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = str(tmp_path / "x.npz")
    words = ["--library", "numpy", "--type", "fp32", "--shape", "9x32x9", "--by-columns", "ab", "--out", out]
    assert command.main(words, standalone_mode=False) == 0
    assert f"{out}: 9×32 by 32×9, fp32 × fp32 → fp32, by NumPy" in capsys.readouterr().out
    assert read_product(out).meta["a_layout"] == "column-major"
    assert command.main([*words, "--json"], standalone_mode=False) == 0
    assert json.loads(capsys.readouterr().out)["shape"] == [9, 32, 9]
    for wrong, why in (
        (["--shape", "9"], "--shape is M,K,N"),
        (["BFDOT"], "INSTRUCTION and --library: one of them"),
        (["--source", str(tmp_path)], "needs an INSTRUCTION"),
    ):
        with pytest.raises(UsageError, match=why):
            command.main([*words, *wrong], standalone_mode=False)
