"""Rows of a study in a file, a line of JSON each: a run that was interrupted goes on where it was; and as a table."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TypeVar

RowT = TypeVar("RowT")


def markdown(head: Sequence[object], rows: Iterable[Sequence[object]]) -> str:
    """Return a table in Markdown."""
    lines = [f"| {' | '.join(map(str, each))} |" for each in (head, *rows)]
    return "\n".join([lines[0], "|---" * len(head) + "|", *lines[1:]])


def read_rows(file: Path, kind: type[RowT]) -> list[RowT]:
    """The rows of a file; none if there is no file.  A last line that was not written to its end is taken away.

    Raises ValueError for a file that holds something else, OSError if it cannot be read.
    """
    if not file.exists():
        return []
    data = file.read_bytes()
    whole = data[: data.rfind(b"\n") + 1]
    try:
        rows = [kind(**json.loads(line)) for line in whole.decode().splitlines()]
    except (TypeError, ValueError):
        raise ValueError(f"{file} holds something else than rows of this study") from None
    if whole != data:
        file.write_bytes(whole)
    return rows
