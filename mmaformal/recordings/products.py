"""Reading a recorded product of matrices, as a library made it.

A product is an `.npz` of

- `A` (M, K), `B` (K, N), `D` (M, N): bit patterns, as unsigned words; C was absent;
- `meta`: a JSON object with `a_format`, `b_format`, `d_format`; `library`, `shape`, `threads` and anything
  else are optional.  Without meta, A, B and D are arrays of floats, whose dtypes are their formats.

Matrices as libraries save them are read too: `.safetensors`, `.pt`, a folder of `.npy` (`matrices`).

It may be some rows and columns of a larger product.
"""

from __future__ import annotations

import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mmaformal.display import short_text
from mmaformal.formats import FORMATS, Format, format_of_dtype
from mmaformal.recordings.archive import (
    RecordingError,
    array_of,
    column,
    meta_of,
    open_archive,
    require_codes,
    short,
)
from mmaformal.recordings.matrices import NAMES, FormatMatrix, is_of_matrices, read_matrices

_FIELDS = ("a_format", "b_format", "d_format")


@dataclass(frozen=True, repr=False)
class RecordedProduct:
    """A, B and D as bit patterns, and what is known of where they come from."""

    path: Path
    A: NDArray[Any]
    B: NDArray[Any]
    D: NDArray[Any]
    a_format: Format
    b_format: Format
    d_format: Format
    meta: Mapping[str, object] = field(repr=False)

    @property
    def origin(self) -> str:
        """Who made it, as the file says; empty if it does not."""
        return ", ".join(str(self.meta[name]) for name in ("library", "cpu", "gpu") if self.meta.get(name))

    def __repr__(self) -> str:
        (m, k), n = self.A.shape, self.B.shape[1]
        return short_text(
            self, str(self.path), f"{m}×{k} by {k}×{n}, {self.a_format} × {self.b_format} → {self.d_format}"
        )


def read_product(path: str | Path) -> RecordedProduct:
    """Read a product; see the module's docstring for the layout.

    Raises RecordingError for everything that keeps it from being read.
    """
    path = Path(path)
    meta: Mapping[str, object] = {}
    if path.suffix.lower() == ".npy":
        raise RecordingError(path, "one matrix: a folder with A.npy, B.npy and D.npy is read")
    if is_of_matrices(path):
        matrices = read_matrices(path)
    else:
        with open_archive(path) as archive:
            meta = meta_of(archive, path) or {}
            matrices = {name: _matrix(archive, name, meta, path) for name in NAMES}
    for name, each in matrices.items():
        if each.codes.ndim != 2 or not each.codes.size:
            raise RecordingError(
                path, f"{name} has shape {each.codes.shape}; a matrix with elements is needed"
            )
    a, b, d = (matrices[name].codes for name in NAMES)
    if a.shape[1] != b.shape[0] or d.shape != (len(a), b.shape[1]):
        shapes = f"A {a.shape}, B {b.shape}, D {d.shape}"
        raise RecordingError(path, f"{shapes}: M×K, K×N and M×N are needed")
    formats = {field: matrices[name].fmt for field, name in zip(_FIELDS, NAMES, strict=True)}
    return RecordedProduct(path, A=a, B=b, D=d, meta=meta, **formats)


def _matrix(archive: zipfile.ZipFile, name: str, meta: Mapping[str, object], path: Path) -> FormatMatrix:
    """A matrix of an .npz: bit patterns of the format that meta names; without meta floats, of their own format."""
    with array_of(archive, name, path) as (stream, header):
        if not 0 < len(header.shape) < 3 or 0 in header.shape:
            raise RecordingError(path, f"{name} has shape {header.shape}; a matrix with elements is needed")
        fmt = None if meta else format_of_dtype(header.dtype)
        if fmt is not None:
            header = header._replace(dtype=fmt.word)
        elif not meta:
            raise RecordingError(
                path,
                f"no array 'meta', the JSON that has {', '.join(_FIELDS)}, and {name} is {header.dtype}, which is no "
                "floating-point format: add meta, or save arrays of floats",
            )
        else:
            fmt = _format(meta, f"{name.lower()}_format", path)
            require_codes(header, name, fmt, path)
        return FormatMatrix(np.concatenate([*column(stream, header, name, fmt, header.shape[0], path)]), fmt)


def _format(meta: Mapping[str, object], name: str, path: Path) -> Format:
    if name not in meta:
        raise RecordingError(path, f"meta lacks {name!r}: add it to the JSON")
    named = meta[name]
    if not isinstance(named, str) or named not in FORMATS:
        raise RecordingError(path, f"meta has {name!r}: {short(named)}; formats are {', '.join(FORMATS)}")
    return FORMATS[named]
