"""Writing recordings: whole or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from mmaformal.recordings.layouts import layout_of, saver
from mmaformal.recordings.read import Recording


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A new file beside `path` that takes its place in the end; if anything fails, Ctrl-C too, nothing is left."""
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=path.suffix, dir=path.parent)
    os.close(handle)
    new = Path(name)
    try:
        yield new
        new.chmod(0o666 & ~_umask())
        os.replace(new, path)
    finally:
        new.unlink(missing_ok=True)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def write(recording: Recording, path: str | Path) -> Recording:
    """The recording in another file, by its suffix `.npz`, `.parquet` or `.csv`; as the recording of that file.

    Memory is bounded by one block of rows.  The file is there once it is whole, in place of one that was there before.

    Raises ValueError for another suffix, RecordingError for a file that has changed since it was read, OSError where
    nothing can be written, ImportError for Parquet without pyarrow.
    """
    path = Path(path)
    save = saver(path)
    meta = {name: value for name, value in recording.meta.items() if name != "rows"}
    with replacing(path) as new:
        save(new, recording.wanted, meta, recording.arrays)
    return replace(recording, path=path, layout=layout_of(path), meta=meta)
