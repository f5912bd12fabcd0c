"""Matrices of numbers as libraries save them: formats by their dtypes, elements as bit patterns.

- a folder with `A.npy`, `B.npy`, `D.npy` (NumPy);
- `.safetensors` with tensors A, B, D (`pip install 'mmaformal[matrices]'`);
- `.pt` or `.pth`, a dict of tensors A, B, D saved by `torch.save` (read with `weights_only=True`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple, TypedDict

import numpy as np
from numpy.typing import NDArray

from mmaformal.display import short_repr
from mmaformal.formats import Format, bf16, e4m3, e4m3fnuz, e5m2, e5m2fnuz, format_of_dtype, fp16, fp32, fp64
from mmaformal.recordings.archive import RecordingError

NAMES = ("A", "B", "D")

#: The formats of safetensors, and of torch, by their names there.
_SAFETENSORS = {
    "F64": fp64,
    "F32": fp32,
    "F16": fp16,
    "BF16": bf16,
    "F8_E4M3": e4m3,
    "F8_E5M2": e5m2,
}
_TORCH = {
    "torch.float64": fp64,
    "torch.float32": fp32,
    "torch.float16": fp16,
    "torch.bfloat16": bf16,
    "torch.float8_e4m3fn": e4m3,
    "torch.float8_e5m2": e5m2,
    "torch.float8_e4m3fnuz": e4m3fnuz,
    "torch.float8_e5m2fnuz": e5m2fnuz,
}


class Matrix(NamedTuple):
    """Bit patterns, and their format."""

    codes: NDArray[Any]
    fmt: Format

    def __repr__(self) -> str:
        return short_repr(self)


def read_matrices(path: Path) -> dict[str, Matrix]:
    """A, B and D of a file or folder of the module's docstring.

    Raises RecordingError for what is missing, is no matrix of a format, or cannot be read.
    """
    reader = _reader(path)
    if reader is None:
        raise RecordingError(
            path, "matrices are read from .npz, .safetensors, .pt, or a folder of .npy files"
        )
    try:
        found = reader(path)
    except RecordingError:
        raise
    except Exception as error:
        raise RecordingError(path, f"cannot be read: {' '.join(str(error).split())[:200]}") from None
    missing = [name for name in NAMES if name not in found]
    if missing:
        raise RecordingError(
            path, f"no matrix {', '.join(missing)}: A (M, K), B (K, N) and D (M, N) are needed"
        )
    return {name: found[name] for name in NAMES}


def is_of_matrices(path: Path) -> bool:
    """Whether a path is one that `read_matrices` reads, by its suffix, or a folder with `A.npy`."""
    return _reader(path) is not None


def _reader(path: Path) -> Callable[[Path], dict[str, Matrix]] | None:
    if path.is_dir():
        return _of_folder
    return {".safetensors": _of_safetensors, ".pt": _of_torch, ".pth": _of_torch}.get(path.suffix.lower())


def _of_folder(path: Path) -> dict[str, Matrix]:
    found = {}
    for name in NAMES:
        file = path / f"{name}.npy"
        if not file.exists():
            continue
        array = np.load(file, allow_pickle=False)
        fmt = format_of_dtype(array.dtype)
        if fmt is None:
            raise RecordingError(
                file,
                f"it holds {array.dtype}, which is no floating-point format: save floats, or an .npz with meta",
            )
        found[name] = Matrix(np.ascontiguousarray(array).view(fmt.word), fmt)
    return found


class _Tensor(TypedDict):
    """What safetensors says of a tensor."""

    dtype: str
    shape: list[int]
    data: bytes


def _of_safetensors(path: Path) -> dict[str, Matrix]:
    try:
        import safetensors
    except ImportError:
        raise RecordingError(
            path, ".safetensors needs its library: pip install 'mmaformal[matrices]'"
        ) from None
    found = {}
    deserialize: Callable[[bytes], list[tuple[str, _Tensor]]] = safetensors.deserialize
    for name, tensor in deserialize(path.read_bytes()):
        if name in NAMES:
            fmt = _named(path, name, tensor["dtype"], _SAFETENSORS)
            found[name] = Matrix(np.frombuffer(tensor["data"], fmt.word).reshape(tensor["shape"]), fmt)
    return found


def _of_torch(path: Path) -> dict[str, Matrix]:
    try:
        import torch
    except ImportError:
        raise RecordingError(path, ".pt needs PyTorch: pip install 'mmaformal[torch]'") from None
    saved = torch.load(path, map_location="cpu", weights_only=True)
    if not isinstance(saved, Mapping):
        raise RecordingError(path, 'save a dict: torch.save({"A": a, "B": b, "D": d}, path)')
    words = {8: torch.uint8, 16: torch.int16, 32: torch.int32, 64: torch.int64}
    found = {}
    for name, tensor in saved.items():
        if name in NAMES:
            fmt = _named(path, name, str(tensor.dtype), _TORCH)
            bits = tensor.detach().resolve_neg().contiguous().view(words[fmt.word_bits])
            found[name] = Matrix(bits.numpy().view(fmt.word), fmt)
    return found


def _named(path: Path, name: str, dtype: object, formats: Mapping[str, Format]) -> Format:
    if str(dtype) not in formats:
        raise RecordingError(path, f"{name} is {dtype}; matrices are of {', '.join(formats)}")
    return formats[str(dtype)]
