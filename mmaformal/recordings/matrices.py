"""Matrices of numbers in files as people have them, as NumPy arrays of their types or of bit patterns.

- `.npy`, or a folder of them with `A.npy`, `B.npy`, `D.npy` (NumPy);
- `.npz`, of one array or of several;
- `.safetensors` (`pip install 'mmaformal[matrices]'`);
- `.pt` or `.pth`, a tensor, or a dict or list of tensors, saved by `torch.save` (read with `weights_only=True`);
- `.parquet`, a table of numbers, a row of it a row of the matrix, or one column of lists.

Nothing is ever unpickled.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypedDict

import numpy as np
from numpy.typing import NDArray

from mmaformal.display import short_repr
from mmaformal.formats import Format, format_called, format_of_dtype
from mmaformal.recordings.archive import RecordingError, array_of, meta_of, open_archive, refuse_objects, take

NAMES = ("A", "B", "D")
SCALES = ("scale_a", "scale_b")
Tensors = dict[str, NDArray[Any]]

#: Tensors of a file that are named, where one of them is to be said.
_LISTED = 8


class FormatMatrix(NamedTuple):
    """Bit patterns, and their format."""

    codes: NDArray[Any]
    fmt: Format

    def __repr__(self) -> str:
        return short_repr(self)


def read_matrices(path: Path) -> dict[str, FormatMatrix]:
    """A, B and D of a file or folder of the module's docstring.

    Raises RecordingError for what is missing, is no matrix of a format, or cannot be read.
    """
    found = read_tensors(path)
    matrices = {name: _of_floats(found[name], name, path) for name in NAMES if name in found}
    if missing := [name for name in NAMES if name not in found]:
        raise RecordingError(
            path, f"no matrix {', '.join(missing)}: A (M, K), B (K, N) and D (M, N) are needed"
        )
    return matrices


def _of_floats(array: NDArray[Any], name: str, path: Path) -> FormatMatrix:
    if (fmt := format_of_dtype(array.dtype)) is None:
        raise RecordingError(
            path / f"{name}.npy" if path.is_dir() else path,
            f"{name} holds {array.dtype}, which is no floating-point format: save floats, or an .npz with meta",
        )
    return FormatMatrix(np.ascontiguousarray(array).view(fmt.word), fmt)


def is_of_matrices(path: Path) -> bool:
    """Whether a path is one that `read_matrices` reads, by its suffix, or a folder with `A.npy`."""
    return path.suffix.lower() != ".npz" and _reader(path) is not None


def read_files(
    files: Sequence[Path],
    formats: dict[str, str | None],
    c: Path | None = None,
    scales: tuple[Path | None, Path | None] = (None, None),
) -> dict[str, NDArray[Any]]:
    """D, A, B and, if there are any, C, scale_a and scale_b: of three files and theirs, or of one that has them all.

    `FILE::NAME` is the tensor of that name.  `formats`, by D, A, B, C: those that are None are filled in where an .npz
    has `meta` with `a_format` and so on.

    Raises RecordingError for a file that cannot be read, ValueError for another number of files.
    """
    if len(files) not in (1, 3):
        raise ValueError("give the files of D, A and B, or one that has them all")
    if len(files) == 1:
        tensors = read_tensors(files[0], formats)
        names = [*"DABC", *SCALES]
        found = {name: tensors[key] for name in names for key in (name.lower(), name) if key in tensors}
        if missing := [name for name in "DAB" if name not in found]:
            there = ", ".join(list(tensors)[:_LISTED]) or "nothing else"
            raise RecordingError(
                files[0], f"no {', '.join(missing)} in it, but {there}: give three files, D A B"
            )
    else:
        found = {name: _one(path, name) for name, path in zip("DAB", files, strict=True)}
    others = zip(("C", *SCALES), (c, *scales), strict=True)
    return found | {name: _one(path, name) for name, path in others if path is not None}


def _one(path: Path, role: str) -> NDArray[Any]:
    """The matrix of a file: the only one, the one that is named, or that of its role."""
    text, _, wanted = str(path).partition("::")
    tensors = read_tensors(Path(text))
    named = [name for name in ([wanted] if wanted else [role, role.lower()]) if name in tensors]
    if named or (len(tensors) == 1 and not wanted):
        return tensors[named[0]] if named else next(iter(tensors.values()))
    there = ", ".join(list(tensors)[:_LISTED]) + (", …" if len(tensors) > _LISTED else "")
    what = f"no tensor {wanted!r} in it" if wanted else f"which of its {len(tensors)} tensors is {role}?"
    raise RecordingError(Path(text), f"{what}  {text}::NAME names one: {there}")


def read_tensors(path: Path, formats: dict[str, str | None] | None = None) -> Tensors:
    """The tensors of a file or folder by their names; of a file of one, by no name.

    `formats` gets what the meta of an .npz says, where it says nothing yet.

    Raises RecordingError for what cannot be read, and holds no tensors.
    """
    reader = _reader(path)
    if not path.exists():
        raise RecordingError(path, "there is no such file")
    if reader is None:
        suffixes = ".npy, .npz, .safetensors, .pt or .parquet"
        raise RecordingError(path, f"matrices are read from {suffixes}, or a folder of .npy files")
    try:
        found = reader(path)
        if formats is not None and path.suffix.lower() == ".npz":
            _said_by_meta(path, formats)
    except RecordingError:
        raise
    except Exception as error:
        raise RecordingError(path, f"cannot be read: {' '.join(str(error).split())[:200]}") from None
    return found


def _said_by_meta(path: Path, formats: dict[str, str | None]) -> None:
    with open_archive(path) as archive:
        meta = meta_of(archive, path) or {}
    for name, said in formats.items():
        of_meta = meta.get(f"{name.lower()}_format")
        if said is None and isinstance(of_meta, str):
            formats[name] = of_meta


def _reader(path: Path) -> Callable[[Path], Tensors] | None:
    if path.is_dir():
        return _of_folder
    readers = {
        ".npy": _of_npy,
        ".npz": _of_npz,
        ".safetensors": _of_safetensors,
        ".pt": _of_torch,
        ".pth": _of_torch,
        ".parquet": _of_parquet,
        ".pq": _of_parquet,
    }
    return readers.get(path.suffix.lower())


def _of_folder(path: Path) -> Tensors:
    return {file.stem: _of_npy(file)[""] for file in sorted(path.glob("*.npy"))}


def _of_npy(path: Path) -> Tensors:
    return {"": np.load(path, allow_pickle=False)}


def _of_npz(path: Path) -> Tensors:
    found = {}
    with open_archive(path) as archive:
        for name in (each.removesuffix(".npy") for each in archive.namelist()):
            if name == "meta":
                continue
            with array_of(archive, name, path) as (stream, header):
                refuse_objects(header, name, path)
                data = take(stream, header.bytes, name, path)
                flat = np.frombuffer(data, header.dtype)
                turned = (
                    flat.reshape(header.shape[::-1]).T if header.by_columns else flat.reshape(header.shape)
                )
                found[name] = turned
    return found


class _Tensor(TypedDict):
    """A tensor, as safetensors has it."""

    dtype: str
    shape: list[int]
    data: bytes


def _of_safetensors(path: Path) -> Tensors:
    try:
        import safetensors
    except ImportError:
        raise RecordingError(
            path, ".safetensors needs its library: pip install 'mmaformal[matrices]'"
        ) from None
    found = {}
    deserialize: Callable[[bytes], list[tuple[str, _Tensor]]] = safetensors.deserialize
    for name, tensor in deserialize(path.read_bytes()):
        dtype = _dtype(tensor["dtype"], f"tensor {name}", path)
        found[name] = np.frombuffer(tensor["data"], dtype).reshape(tensor["shape"])
    return found


def _dtype(name: str, what: str, path: Path) -> np.dtype[Any]:
    """NumPy's type of one of safetensors or torch; raises RecordingError for a type that NumPy does not have."""
    fmt = format_called(name)
    if fmt is not None and fmt.dtype is not None and fmt.storage_bits >= 8:
        return fmt.dtype
    plain = name.lower().removeprefix("torch.")
    words = {"u": "uint", "i": "int"}
    if plain == "float4_e2m1fn_x2":  # pairs, which NumPy has no type of
        return np.dtype(np.uint8)
    if plain[:1] in words and plain[1:].isdigit():
        plain = words[plain[0]] + plain[1:]
    try:
        return np.dtype(plain)
    except TypeError:
        raise RecordingError(path, f"{what} is {name}, which is no format of a unit") from None


def _of_torch(path: Path) -> Tensors:
    try:
        import torch
    except ImportError:
        raise RecordingError(path, ".pt needs PyTorch: pip install 'mmaformal[torch]'") from None
    try:
        saved = torch.load(path, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError:
        raise RecordingError(
            path, "it holds more than tensors, and nothing else is unpickled: torch.save(tensor, path)"
        ) from None
    if isinstance(saved, torch.Tensor):
        named: Mapping[object, object] = {"": saved}
    elif isinstance(saved, Mapping):
        named = saved
    elif isinstance(saved, (list, tuple)):
        named = dict(enumerate(saved))
    else:
        raise RecordingError(path, f"it holds a {type(saved).__name__}, no tensor: torch.save(tensor, path)")
    words = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
    found = {}
    for name, tensor in named.items():
        if isinstance(tensor, torch.Tensor) and not tensor.is_complex() and not tensor.is_sparse:
            dtype = _dtype(str(tensor.dtype), f"tensor {name}" if name != "" else "it", path)
            bits = tensor.detach().resolve_neg().contiguous().view(words[tensor.element_size()])
            found[str(name)] = bits.numpy().view(dtype)
    if not found:
        raise RecordingError(
            path, 'it holds no tensors: torch.save(tensor, path), or of {"A": …, "B": …, "D": …}'
        )
    return found


def _of_parquet(path: Path) -> Tensors:
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        raise RecordingError(path, "Parquet needs pyarrow: pip install 'mmaformal[parquet]'") from None
    table = pq.read_table(path)
    columns = [table.column(name).combine_chunks() for name in table.column_names]
    if len(columns) == 1 and hasattr(columns[0].type, "value_type"):
        rows = columns[0].to_pylist()
        if len({None if row is None else len(row) for row in rows}) != 1 or rows[0] is None:
            raise RecordingError(path, "its lists differ in length: a matrix has rows of one length")
        values = columns[0].flatten()
        return {"": values.to_numpy(zero_copy_only=False).reshape(len(rows), -1)}
    if not columns or not all(pa.types.is_integer(x.type) or pa.types.is_floating(x.type) for x in columns):
        raise RecordingError(path, "a matrix is columns of numbers, or one column of lists of numbers")
    return {"": np.stack([x.to_numpy(zero_copy_only=False) for x in columns], axis=1)}
