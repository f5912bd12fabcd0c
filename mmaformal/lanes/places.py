"""Places in the executable encoding: which of its calls are running as it is traced."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from types import FrameType

_TRACED = "executable"  # the folder, and the file of each algorithm, whose functions are traced

#: Functions that stand for one operation: what holds of a lane is to be told in terms of their caller.
_HELPERS = ("where", "maximum", "minimum", "clamp", "invert")


def running_frames() -> tuple[FrameType, ...]:
    """The calls of the executable encoding that are running, the innermost first, without helpers."""
    frames = []
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        code = frame.f_code
        if code.co_name not in _HELPERS and _is_traced(code.co_filename):
            frames.append(frame)
        frame = frame.f_back
    return tuple(frames)


_traced: dict[str, bool] = {}


def _is_traced(filename: str) -> bool:
    if filename not in _traced:
        path = Path(filename)
        _traced[filename] = _TRACED in (path.parent.name, path.stem)
    return _traced[filename]


def place_of(frames: Sequence[FrameType]) -> str:
    if not frames:
        return "outside the executable encoding"
    frame = frames[0]
    return f"{Path(frame.f_code.co_filename).name}:{frame.f_lineno} in {frame.f_code.co_name}"
