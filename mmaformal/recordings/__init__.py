"""Recorded hardware outputs: `read` them, `check` them against the models, `check_files` for many."""

from mmaformal.recordings.archive import RecordingError
from mmaformal.recordings.check import (
    CheckReport,
    FileFailure,
    FileOutcome,
    Mismatch,
    NotModelled,
    NotModelledError,
    check,
    check_file,
    check_files,
    exit_code,
    row_sizes,
)
from mmaformal.recordings.read import Recording, RowBlock, read
from mmaformal.recordings.write import write
from mmaformal.renamed import names as renamed_names

__all__ = [
    "CheckReport",
    "FileFailure",
    "FileOutcome",
    "Mismatch",
    "NotModelled",
    "NotModelledError",
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

__getattr__ = renamed_names("mmaformal.recordings", Outcome="FileOutcome")
