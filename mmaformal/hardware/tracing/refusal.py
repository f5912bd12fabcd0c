"""Refusals of what a program does, with the file and line where it does it."""

from __future__ import annotations

import sys
from pathlib import Path

from mmaformal.hardware.module import HardwareError

_OURS = str(Path(__file__).resolve().parents[2])
#: Folders whose frames are no program's: libraries that call us back.
_LIBRARIES = ("/numpy/", "/torch/", "<frozen", "<__array_function__", "/z3/", "/contextlib.py")


class ProgramError(HardwareError):
    """A program that cannot be followed; one line with its file and line."""


#: Refusals since the last reading began: a program may catch them.
REFUSED: list[ProgramError] = []


def _place() -> str:
    """`file.py:12: ` of the line of the program that runs, empty if there is none."""
    frame = sys._getframe(1)
    while frame is not None:
        name = frame.f_code.co_filename
        if not name.startswith(_OURS) and not any(each in name for each in _LIBRARIES):
            return f"{Path(name).name}:{frame.f_lineno}: "
        frame = frame.f_back  # type: ignore[assignment]
    return ""


def refused(what: str) -> ProgramError:
    """Return the refusal of what the program does on the line where it is."""
    error = ProgramError(_place() + what)
    REFUSED.append(error)
    return error
