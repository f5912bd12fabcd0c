"""Parquet, by pyarrow (`pip install 'mmaformal[parquet]'`), read in pieces.

A row is a row of the table.  `a` and `b` are columns of lists of integers, or columns `a0`, `a1`, …, one for each
product; `c` and `d` integers; `scale_a` and `scale_b` as `a`.  Any integer type will do.  What was recorded is a JSON
object in the metadata of the schema, under `mmaformal`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mmaformal.recordings.archive import RecordingError, meta_from
from mmaformal.recordings.layouts import ARRAYS, SCALES, Arrays, Description, Wanted, require_range

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

META = "metadata 'mmaformal' of the schema"
_KEY = b"mmaformal"


@contextmanager
def _opened(path: Path) -> Iterator[pq.ParquetFile]:
    """The file, with every way in which reading it can fail turned into a RecordingError."""
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        raise RecordingError(path, "Parquet needs pyarrow: pip install 'mmaformal[parquet]'") from None
    try:
        with pq.ParquetFile(path) as file:
            yield file
    except RecordingError:
        raise
    except OSError as error:
        if error.strerror and error.filename is not None:
            raise RecordingError(path, f"cannot be read: {error.strerror}") from None
        raise RecordingError(path, f"damaged ({error}): copy or save it again") from None
    except (pa.ArrowException, ValueError) as error:
        raise RecordingError(path, f"no complete Parquet file ({error}): copy or save it again") from None


def describe(path: Path) -> Description:
    with _opened(path) as file:
        schema, rows = file.schema_arrow, file.metadata.num_rows
        stored = (schema.metadata or {}).get(_KEY)
        meta = None if stored is None else meta_from(stored, path)
        shapes: dict[str, tuple[int, ...]] = {}
        for name in (*ARRAYS, *SCALES):
            columns = _columns(schema.names, name)
            if name in schema.names and name in ("c", "d"):
                shapes[name] = (rows,)
            elif name in schema.names:
                shapes[name] = (rows, _length(file, name, path))
            elif columns and name not in ("c", "d"):
                shapes[name] = (rows, len(columns))
            elif name in ARRAYS:
                more = "" if name in ("c", "d") else f", nor columns {name}0, {name}1, …"
                raise RecordingError(path, f"no column {name!r}{more}: a recording has a, b, c and d")
        return Description(meta, shapes)


def _columns(names: list[str], name: str) -> list[str]:
    """Those that an array is stored in, one for each element, in order."""
    found = [each for each in names if re.fullmatch(rf"{name}(0|[1-9]\d{{0,3}})", each)]
    return sorted(found, key=lambda each: int(each[len(name) :]))


def _length(file: pq.ParquetFile, name: str, path: Path) -> int:
    """How many elements the lists of a column have: by its type, or those of row 0."""
    kind = file.schema_arrow.field(name).type
    if hasattr(kind, "list_size"):
        return int(kind.list_size)
    if not hasattr(kind, "value_type"):
        raise RecordingError(path, f"column {name!r} is {kind}: lists of integers are needed")
    for batch in file.iter_batches(batch_size=1, columns=[name]):
        first = batch.column(0)[0].as_py()
        return 0 if first is None else len(first)
    return 0


def pieces(path: Path, wanted: Mapping[str, Wanted], rows: int) -> Iterator[Arrays]:
    with _opened(path) as file:
        names = file.schema_arrow.names
        stored = {name: [name] if name in names else _columns(names, name) for name in wanted}
        if file.metadata.num_rows != wanted["d"].shape[0]:
            raise RecordingError(path, "it has changed while it was read: read it again")
        start = 0
        for batch in file.iter_batches(
            batch_size=rows, columns=[x for each in stored.values() for x in each]
        ):
            arrays = {}
            for name, (shape, fmt) in wanted.items():
                codes = _codes(batch, stored[name], shape[1:], name, start, path)
                arrays[name] = require_range(codes, name, fmt, start, path)
            yield arrays
            start += batch.num_rows


def _codes(
    batch: pa.RecordBatch, columns: list[str], each: tuple[int, ...], name: str, start: int, path: Path
) -> NDArray[Any]:
    """The integers of some rows."""
    if not each:
        return _integers(batch.column(columns[0]), name, start, path)
    if columns != [name]:
        return np.stack([_integers(batch.column(x), x, start, path) for x in columns], axis=1)
    lists = batch.column(name)
    lengths = (
        lists.value_lengths().to_pylist()
        if lists.null_count == 0
        else [x and len(x) for x in lists.to_pylist()]
    )
    for row, length in enumerate(lengths):
        if length != each[0]:
            what = "nothing" if length is None else f"{length} values"
            raise RecordingError(path, f"{name} has {what} in row {start + row}, and {each[0]} in row 0")
    values = lists.flatten()
    return _integers(values, name, start, path, each[0]).reshape(-1, each[0])


def _integers(values: pa.Array, name: str, start: int, path: Path, each: int = 1) -> NDArray[Any]:
    if values.null_count:
        row = start + values.is_null().to_pylist().index(True) // each
        raise RecordingError(path, f"{name} has no value in row {row}")
    codes: NDArray[Any] = values.to_numpy(zero_copy_only=False)
    if codes.dtype.kind not in "iu":
        raise RecordingError(path, f"{name} is {values.type}: save bit patterns, as integers")
    return codes


# ---- writing -------------------------------------------------------------------------------------------------------


def save(
    path: Path,
    wanted: Mapping[str, Wanted],
    meta: Mapping[str, object],
    blocks: Callable[[], Iterator[Arrays]],
) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    fields = []
    for name, (shape, fmt) in wanted.items():
        word = pa.from_numpy_dtype(fmt.word)
        fields.append(pa.field(name, pa.list_(word, shape[1]) if len(shape) > 1 else word))
    schema = pa.schema(fields, {_KEY: json.dumps(dict(meta))})
    with pq.ParquetWriter(path, schema) as writer:
        for block in blocks():
            columns = [
                pa.array(x) if x.ndim == 1 else pa.FixedSizeListArray.from_arrays(x.reshape(-1), x.shape[1])
                for x in (block[name] for name in wanted)
            ]
            writer.write_batch(pa.record_batch(columns, schema=schema))
