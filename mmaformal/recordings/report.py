"""`mmaformal.check`: many recordings against the models, and what was found of each."""

from __future__ import annotations

import glob
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from pathlib import Path
from typing import overload

from mmaformal.checked import Progress, caller
from mmaformal.display import counted, html_folded, html_table, html_text, html_title
from mmaformal.executors import workers_given
from mmaformal.recordings.check import (
    CheckReport,
    FileFailure,
    FileOutcome,
    NotModelled,
    check_files,
    exit_code,
)
from mmaformal.recordings.states import StatesReport
from mmaformal.result import Result

#: Suffixes of files that hold a recording each.
_SUFFIXES = (".npz", ".parquet", ".pq", ".csv")

#: Outcomes that say how many rows are not the model's.
_CHECKED = (CheckReport, StatesReport)


class Checks(Sequence[FileOutcome], Result):
    """The reports of checking some recordings, in the order of the files."""

    def __init__(self, outcomes: Iterable[FileOutcome]) -> None:
        self.outcomes = tuple(outcomes)

    @property
    def matches(self) -> bool:
        """Whether every file could be checked, has a model, and has no row that differs from it."""
        return all(isinstance(each, _CHECKED) and not each.mismatches for each in self.outcomes)

    @property
    def verdict(self) -> str:
        """`match`: every file that has a model matches it; `mismatch`; `unknown`: a file could not be checked."""
        return ("match", "mismatch", "unknown")[self.exit_code]

    @property
    def exit_code(self) -> int:
        """0: every file that has a model matches it; 1: some rows do not; 2: some files could not be checked."""
        return exit_code(self.outcomes)

    @property
    def summary(self) -> str:
        """`26 files: 25 match, 1 not modelled yet`."""
        checked = [each for each in self.outcomes if isinstance(each, _CHECKED)]
        differ = sum(each.mismatches > 0 for each in checked)
        counts = {
            "match" if len(checked) - differ != 1 else "matches": len(checked) - differ,
            "do not match" if differ != 1 else "does not match": differ,
            "not modelled yet": sum(isinstance(each, NotModelled) for each in self.outcomes),
            "could not be checked": sum(isinstance(each, FileFailure) for each in self.outcomes),
        }
        told = ", ".join(f"{count:,} {what}" for what, count in counts.items() if count)
        return f"{counted(len(self.outcomes), 'file')}: {told}" if told else "no files"

    def rows(self) -> list[dict[str, object]]:
        """A dict of plain values for each file."""
        keys = "file", "status", "gpu", "architecture", "instruction", "rows", "terms", "mismatches", "reason"
        return [{key: told.get(key) for key in keys} for told in (each.to_json() for each in self.outcomes)]

    def to_json(self) -> list[dict[str, object]]:
        return [each.to_json() for each in self.outcomes]

    @overload
    def __getitem__(self, index: int) -> FileOutcome: ...
    @overload
    def __getitem__(self, index: slice) -> Checks: ...
    def __getitem__(self, index: int | slice) -> FileOutcome | Checks:
        return Checks(self.outcomes[index]) if isinstance(index, slice) else self.outcomes[index]

    def __len__(self) -> int:
        return len(self.outcomes)

    def __iter__(self) -> Iterator[FileOutcome]:
        return iter(self.outcomes)

    def __str__(self) -> str:
        return "\n".join([*map(str, self.outcomes), self.summary])

    def _repr_html_(self) -> str:
        cells = [(each.path.name, *each.columns()) for each in self.outcomes]
        rows = [(*row, *[""] * (4 - len(row))) for row in cells]
        table = html_table(("file", "instruction", "rows", "found"), rows)
        wrong = [each for each in self.outcomes if isinstance(each, CheckReport) and each.mismatches]
        told = "".join(html_folded(each.path.name, html_text(str(each))) for each in wrong)
        return html_title("Checks", self.summary) + table + told


def check(
    paths: str | Path | Iterable[str | Path],
    *,
    architecture: str | None = None,
    instruction: str | None = None,
    replace: Mapping[str, object] | None = None,
    timeout: float | None = None,
    jobs: int | None = None,
    executor: Executor | None = None,
    progress: Progress | None = None,
) -> Checks:
    """Check recorded hardware outputs against the models: `check("recordings/*.npz")`.

    `paths`: a file, a folder (its recordings), a pattern as a shell has them, or several of these.  `architecture`,
    `instruction` and `replace` are those of `mmaformal.recordings.check_file`: names in place of the recorded ones, and
    parameters to change.  What is wrong with a file is its outcome, not an exception; so is that the `timeout`, seconds
    for everything (default: no limit), was up before it was checked.  `jobs` processes check blocks of rows (default:
    this one, in a thread for each core), or the workers of an `executor`.  `progress`: called with a line of text.

    Raises FileNotFoundError for a pattern or a folder that has no files, LostWorkerError.
    """
    caller(progress)
    given = [paths] if isinstance(paths, (str, Path)) else list(paths)
    files = [file for each in given for file in recordings_in(each)]
    with workers_given(executor, jobs) as workers:
        return Checks(
            check_files(
                files,
                architecture=architecture,
                instruction=instruction,
                replace=replace,
                timeout=timeout,
                executor=workers,
                progress=progress,
            )
        )


def recordings_in(path: str | Path) -> list[Path]:
    """Return the files that a path means: itself, a folder's recordings, or what matches a pattern.

    Raises FileNotFoundError for a pattern or a folder that has no files.
    """
    if Path(path).is_dir():
        found = sorted(each for each in Path(path).iterdir() if each.suffix in _SUFFIXES)
        if not found and any(Path(path).glob("d_*.txt")):
            return [Path(path)]
        if not found:
            raise FileNotFoundError(f"the folder {path} has no recordings ({', '.join(_SUFFIXES)})")
        return found
    if Path(path).exists() or not glob.has_magic(str(path)):
        return [Path(path)]
    found = sorted(map(Path, glob.glob(str(path), recursive=True)))
    if not found:
        raise FileNotFoundError(f"no file matches {path}")
    return found
