"""Tensors `a`, `b`, `c`, `d`, as `.safetensors` and `.pt` hold them: of the formats' own types, or bit patterns.

Shapes are those of `.npz`.  What was recorded is in the metadata of a `.safetensors` file, if it is there at all; of a
`.pt` the command says it (`--arch`, `--instruction`).  A file is read whole.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mmaformal.formats import Format, format_of_dtype
from mmaformal.recordings.archive import RecordingError
from mmaformal.recordings.layouts import ARRAYS, SCALES, Arrays, Description, Wanted, require_range
from mmaformal.recordings.matrices import read_tensors

META = "metadata of the file"
#: Bytes of a header of safetensors, at most.
_HEADER = 1 << 20


def describe(path: Path) -> Description:
    tensors = read_tensors(path)
    if missing := [name for name in ARRAYS if name not in tensors]:
        raise RecordingError(path, f"no tensor {', '.join(missing)}: a recording has a, b, c and d")
    shapes = {name: tensors[name].shape for name in (*ARRAYS, *SCALES) if name in tensors}
    return Description(_meta(path) if path.suffix.lower() == ".safetensors" else None, shapes)


def _meta(path: Path) -> dict[str, object] | None:
    """The metadata of a file that was read; numbers in it are written as text."""
    with path.open("rb") as stream:
        header = json.loads(stream.read(min(int.from_bytes(stream.read(8), "little"), _HEADER)))
    said = header.get("__metadata__")
    return said and {name: int(x) if x.isdecimal() else x for name, x in said.items()}


def pieces(path: Path, wanted: Mapping[str, Wanted], rows: int) -> Iterator[Arrays]:
    tensors = read_tensors(path)
    codes = {name: _codes(tensors[name], name, each.fmt, path) for name, each in wanted.items()}
    for start in range(0, wanted["d"].shape[0], rows):
        yield {
            name: require_range(x[start : start + rows], name, wanted[name].fmt, start, path)
            for name, x in codes.items()
        }


def _codes(x: NDArray[Any], name: str, fmt: Format, path: Path) -> NDArray[Any]:
    """Bit patterns of a tensor of the format's own type, or of integers."""
    if x.dtype == fmt.dtype:
        return np.ascontiguousarray(x).view(fmt.word)
    if format_of_dtype(x.dtype) is not None or x.dtype.kind not in "iu":
        raise RecordingError(path, f"{name} is {x.dtype}; {fmt} or its bit patterns are needed")
    return x
