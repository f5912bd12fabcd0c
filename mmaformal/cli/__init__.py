"""The `mmaformal` command: `diff`, `prove`, `list`, `show`, `run`, `probe`, `check`, `mismatches`, `diagnose`,
`diagnose-gemm`, `verify`, `amx`, `e9s12`, `completion`; a file for each.

Nothing here imports a solver or numba before a command needs it, so that help and completion are quick.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import NoReturn

from mmaformal import _interrupts
from mmaformal.cli.app import app
from mmaformal.cli.running import run_command


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit status (`mmaformal.cli.running` has what each means)."""
    return run_command(app, sys.argv[1:] if argv is None else argv)


def script() -> NoReturn:
    """Run one command and end the process, without waiting for a kernel whose time was up while it was compiled."""
    _interrupts.as_usual()
    status = main()
    background = sys.modules.get("mmaformal.kernels.background")
    if background is not None and background.compiling():
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)
    sys.exit(status)


__all__ = ["app", "main", "script"]
