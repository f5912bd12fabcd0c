"""Matrices as libraries save them: the same product, whatever the file."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from mmaformal import cli
from mmaformal.formats import bf16, e4m3, format_called, fp16, fp32
from mmaformal.given_matrices import given_codes
from mmaformal.recordings.archive import RecordingError
from mmaformal.recordings.matrices import read_files, read_tensors
from mmaformal.recordings.products import read_product
from mmaformal.testing import inputs

A = np.array([[1.0, 2.0, -0.5], [0.25, 3.0, 4.0]], np.float16)
B = np.array([[1.0, 0.5], [2.0, -1.0], [8.0, 1.0]], np.float16)
D = (A.astype(np.float32) @ B.astype(np.float32)).astype(np.float32)


def as_folder(path: Path) -> Path:
    path.mkdir()
    for name, x in {"A": A, "B": np.asfortranarray(B), "D": D}.items():
        np.save(path / f"{name}.npy", x)
    return path


def as_npz(path: Path) -> Path:
    file = path.with_suffix(".npz")
    np.savez(file, A=A, B=B, D=D)
    return file


def as_safetensors(path: Path) -> Path:
    numpy = pytest.importorskip("safetensors.numpy")
    file = path.with_suffix(".safetensors")
    numpy.save_file({"A": A, "B": B, "D": D}, str(file))
    return file


def as_torch(path: Path) -> Path:
    torch = pytest.importorskip("torch")
    file = path.with_suffix(".pt")
    torch.save({name: torch.from_numpy(x) for name, x in {"A": A, "B": B, "D": D}.items()}, file)
    return file


@pytest.mark.parametrize("write", [as_folder, as_npz, as_safetensors, as_torch])
def test_a_product_is_the_same_in_every_file(write: Any, tmp_path: Path) -> None:
    product = read_product(write(tmp_path / "product"))
    assert (product.a_format, product.b_format, product.d_format) == (fp16, fp16, fp32)
    for codes, numbers in ((product.A, A), (product.B, B), (product.D, D)):
        assert codes.dtype.kind == "u"
        np.testing.assert_array_equal(codes, numbers.view(codes.dtype))


def test_safetensors_of_bf16(tmp_path: Path) -> None:
    pytest.importorskip("safetensors")
    tensors = {name: x.astype(ml_dtypes.bfloat16) for name, x in {"A": A, "B": B, "D": D}.items()}
    header, data = {}, b""
    for name, x in tensors.items():
        offsets = [len(data), len(data) + x.nbytes]
        header[name] = {"dtype": "BF16", "shape": list(x.shape), "data_offsets": offsets}
        data += x.tobytes()
    text = json.dumps(header).encode()
    file = tmp_path / "x.safetensors"
    file.write_bytes(len(text).to_bytes(8, "little") + text + data)
    product = read_product(file)
    assert product.a_format == bf16
    np.testing.assert_array_equal(product.A, tensors["A"].view(np.uint16))


def test_what_is_no_product_is_refused_with_what_to_do(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    with pytest.raises(RecordingError, match="no matrix A, B, D"):
        read_product(folder)
    np.save(folder / "A.npy", A.astype(np.int8))
    with pytest.raises(RecordingError, match="int8, which is no floating-point format"):
        read_product(folder)
    file = tmp_path / "x.safetensors"
    file.write_bytes(b"no tensors")
    with pytest.raises(RecordingError, match=r"cannot be read|needs its library"):
        read_product(file)
    np.savez(tmp_path / "ints.npz", A=A.view(np.int16), B=B, D=D)
    with pytest.raises(RecordingError, match="add meta, or save arrays of floats"):
        read_product(tmp_path / "ints.npz")


def test_a_file_of_objects_is_not_unpickled(tmp_path: Path) -> None:
    folder = as_folder(tmp_path / "folder")
    np.save(folder / "A.npy", np.array([{"x": 1}], object), allow_pickle=True)
    with pytest.raises(RecordingError, match="cannot be read"):
        read_product(folder)


# ---- files of one matrix, and of several


def as_parquet(path: Path, x: np.ndarray[Any, Any], lists: bool = False) -> Path:
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    file = path.with_suffix(".parquet")
    columns = {"row": x.tolist()} if lists else {f"c{n}": x[:, n] for n in range(x.shape[1])}
    pq.write_table(pa.table(columns), file)
    return file


def test_three_files_of_any_kind(tmp_path: Path) -> None:
    numpy = pytest.importorskip("safetensors.numpy")
    np.save(tmp_path / "A.npy", A)
    numpy.save_file({"weight": B, "bias": D[0]}, str(tmp_path / "B.safetensors"))
    np.savez(tmp_path / "D.npz", out=np.asfortranarray(D))
    files = [tmp_path / "D.npz", tmp_path / "A.npy", Path(f"{tmp_path / 'B.safetensors'}::weight")]
    found = read_files(files, {}, Path(f"{tmp_path / 'B.safetensors'}::bias"))
    for name, x in {"D": D, "A": A, "B": B, "C": D[0]}.items():
        np.testing.assert_array_equal(found[name], x, strict=True)
    for lists in (False, True):
        file = as_parquet(tmp_path / "P", D, lists)
        np.testing.assert_array_equal(read_files([file, *files[1:]], {})["D"], D)


def test_one_file_has_them_all_and_says_what_its_bits_are(tmp_path: Path) -> None:
    meta = json.dumps({"a_format": "fp16", "b_format": "fp16"})
    np.savez(tmp_path / "x.npz", A=A.view(np.uint16), b=B.view(np.uint16), D=D, meta=np.array(meta))
    formats: dict[str, str | None] = {"A": None, "B": "bf16", "C": None, "D": None}
    found = read_files([tmp_path / "x.npz"], formats)
    assert formats == {"A": "fp16", "B": "bf16", "C": None, "D": None}
    np.testing.assert_array_equal(found["B"], B.view(np.uint16))


def test_types_as_libraries_spell_them() -> None:
    for name, fmt in (
        ("torch.bfloat16", bf16),
        ("BF16", bf16),
        ("bfloat16", bf16),
        ("half", fp16),
        ("F32", fp32),
    ):
        assert format_called(name) == fmt
    assert {format_called(x) for x in ("float8_e4m3fn", "F8_E4M3", "torch.float8_e4m3fn", "e4m3")} == {e4m3}
    assert format_called("float7") is None


def test_arrays_without_a_type_are_bits_of_the_format_named(tmp_path: Path) -> None:
    x = A.astype(ml_dtypes.bfloat16)
    np.save(tmp_path / "x.npy", x)  # NumPy writes |V2 for it
    (read,) = read_tensors(tmp_path / "x.npy").values()
    for each in (read, x.view(np.uint16), x.view(np.int16), x.astype(np.float32), x.astype(np.float64)):
        np.testing.assert_array_equal(given_codes(each, bf16, "A"), x.view(np.uint16))
    with pytest.raises(ValueError, match="A is int8"):
        given_codes(np.zeros((2, 2), np.uint8).view(np.int8), bf16, "A")


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (lambda p: p / "none.npy", "there is no such file"),
        (lambda p: ((p / "x.bin").write_bytes(b"") and None) or p / "x.bin", "matrices are read from .npy"),
        (lambda p: (p / "x.npy").write_bytes(b"x") and p / "x.npy", "cannot be read"),
        (lambda p: np.savez(p / "x.npz", p=A, q=B) or p / "x.npz", "which of its 2 tensors is D?"),
        (lambda p: np.savez(p / "x.npz", p=A) or Path(f"{p / 'x.npz'}::q"), "no tensor 'q' in it"),
        (lambda p: as_parquet(p / "x", np.array([["a"]])), "a matrix is columns of numbers"),
    ],
)
def test_a_file_that_is_no_matrix_is_one_line(made: Any, said: str, tmp_path: Path) -> None:
    with pytest.raises(RecordingError, match=re.escape(said)) as caught:
        read_files([made(tmp_path), tmp_path / "a.npy", tmp_path / "b.npy"], {})
    assert "\n" not in str(caught.value)


def test_torch_files(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    x = torch.from_numpy(A).to(torch.float8_e4m3fn)
    torch.save(x, tmp_path / "x.pt")
    torch.save([x, x.T], tmp_path / "list.pt")
    torch.save({"step": 3}, tmp_path / "none.pt")
    torch.save(torch.nn.Linear(2, 2), tmp_path / "module.pt")
    wanted = A.astype(ml_dtypes.float8_e4m3fn)
    np.testing.assert_array_equal(read_tensors(tmp_path / "x.pt")[""].view(np.uint8), wanted.view(np.uint8))
    np.testing.assert_array_equal(
        read_tensors(tmp_path / "list.pt")["1"].view(np.uint8), wanted.T.view(np.uint8)
    )
    for name, said in (
        ("none.pt", "it holds no tensors"),
        ("module.pt", "it holds more than tensors, and nothing else is unpickled"),
    ):
        with pytest.raises(RecordingError, match=said):
            read_tensors(tmp_path / name)


@pytest.mark.parametrize(
    ("module", "suffix", "extra"),
    [("safetensors", "safetensors", "matrices"), ("torch", "pt", "torch"), ("pyarrow", "parquet", "parquet")],
)
def test_what_is_not_installed_is_said(
    module: str, suffix: str, extra: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    file = tmp_path / f"x.{suffix}"
    file.write_bytes(b"x")
    with pytest.raises(RecordingError, match=re.escape(f"pip install 'mmaformal[{extra}]'")):
        read_tensors(file)


# ---- rows


def test_rows_in_tensors_are_a_recording(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    numpy = pytest.importorskip("safetensors.numpy")
    file, unit = tmp_path / "rows.safetensors", ["--arch", "h100", "--instruction", "HMMA.16816.F32"]
    inputs("h100 HMMA.16816.F32", n=20).save(file)
    assert cli.main(["check", str(file)]) == 0
    rows = {name: x.copy() for name, x in numpy.load_file(str(file)).items()}
    rows["d"].view(np.uint32)[7] ^= 1
    numpy.save_file(rows, str(file))
    capsys.readouterr()
    assert cli.main(["check", str(file), *unit]) == 1
    assert "1 mismatch" in capsys.readouterr().out
    wide = rows | {"d": rows["d"].astype(np.float64)}
    numpy.save_file(wide, str(file))
    assert cli.main(["check", str(file), *unit]) == 2
    assert "d is float64; fp32 or its bit patterns are needed" in capsys.readouterr().out
    numpy.save_file({name: wide[name] for name in "abd"}, str(file))
    assert cli.main(["check", str(file), *unit]) == 2
    assert "no tensor c: a recording has a, b, c and d" in capsys.readouterr().out
