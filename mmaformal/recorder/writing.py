"""Writing a recording: the columns of a program's rows, whole or not at all."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from mmaformal.recorder.rows import Outputs
from mmaformal.recordings.archive import RecordingError
from mmaformal.recordings.layouts import Arrays, Wanted, saver
from mmaformal.recordings.read import Recording, read
from mmaformal.recordings.write import replacing


def write_outputs(outputs: Outputs, path: Path, meta: Mapping[str, object]) -> Recording:
    """The recording of a program's outputs, by the path's suffix, read again before it takes its place.

    Raises OSError where nothing can be written, ValueError for another suffix than `.npz`, `.parquet` and `.csv`,
    RecordingError for rows that are none of the instruction's.
    """
    instruction = outputs.layout.instruction
    wanted = {each.name: Wanted((outputs.rows, *each.shape), each.fmt) for each in outputs.layout.fields}

    def blocks() -> Iterator[Arrays]:
        return ({name: block[name] for name in wanted} for block in outputs.blocks())

    save = saver(path)
    with replacing(path) as new:
        save(new, wanted, meta, blocks)
        try:
            found = read(new, architecture=instruction.architecture, instruction=instruction.name)
        except RecordingError as error:
            raise RecordingError(outputs.path, error.reason) from None
    return replace(found, path=path)
