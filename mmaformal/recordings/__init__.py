"""Recorded hardware outputs: `read` them, `check` them against the models, `check_files` for many."""

from mmaformal.recordings.archive import RecordingError
from mmaformal.recordings.check import (
    CheckReport,
    FileFailure,
    Mismatch,
    NotModelled,
    NotModelledError,
    Outcome,
    check,
    check_file,
    check_files,
    exit_code,
    row_sizes,
)
from mmaformal.recordings.read import Recording, RowBlock, read
from mmaformal.recordings.write import write

__all__ = [
    "CheckReport",
    "FileFailure",
    "Mismatch",
    "NotModelled",
    "NotModelledError",
    "Outcome",
    "Recording",
    "RecordingError",
    "RowBlock",
    "check",
    "check_file",
    "check_files",
    "exit_code",
    "read",
    "row_sizes",
    "write",
]
