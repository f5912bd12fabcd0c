"""The `mmaformal` command: `diff`, `prove`, `list`, `show`, `run`, `probe`, `check`, `mismatches`, `diagnose`,
`diagnose-gemm`, `verify`, `amx`, `e9s12`, `completion`; a file for each.

Nothing here imports a solver or numba before a command needs it, so that help and completion are quick.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from mmaformal.cli.app import app
from mmaformal.cli.running import execute


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit status (`mmaformal.cli.running` has what each means)."""
    return execute(app, sys.argv[1:] if argv is None else argv)


__all__ = ["app", "main"]
