"""Ctrl-C while the command's modules are imported ends the process at once, with nothing said: nothing was begun.

Imported first by the package.  Whoever imports the package from a program of their own is left alone.
"""

from __future__ import annotations

import signal
import sys
from pathlib import Path

#: Whether it is the command that is started: its script, or `python -m`, whose module is not found yet.
_COMMAND = bool(sys.argv) and (sys.argv[0] == "-m" or Path(sys.argv[0]).stem == "mmaformal")


def _from(old: object, new: signal.Handlers | object) -> None:
    """Replace one handler of Ctrl-C by another, where it is that one: who starts a command may have it ignored."""
    if signal.getsignal(signal.SIGINT) is old:
        signal.signal(signal.SIGINT, new)  # type: ignore[arg-type]


def as_usual() -> None:
    """Ctrl-C raises KeyboardInterrupt from now on, as it does in Python."""
    _from(signal.SIG_DFL, signal.default_int_handler)


if _COMMAND:
    _from(signal.default_int_handler, signal.SIG_DFL)
