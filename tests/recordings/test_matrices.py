"""Matrices as libraries save them: the same product, whatever the file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from mmaformal.formats import bf16, fp16, fp32
from mmaformal.recordings.archive import RecordingError
from mmaformal.recordings.products import read_product

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
