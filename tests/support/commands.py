"""Commands run in this process."""

from __future__ import annotations

import pytest

from mmaformal import cli


def run(capsys: pytest.CaptureFixture[str], *argv: str) -> tuple[int, str, str]:
    """Return (status, stdout, stderr) of a command."""
    status = cli.main(argv)
    out, err = capsys.readouterr()
    return status, out, err
