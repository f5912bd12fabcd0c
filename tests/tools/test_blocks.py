"""Code blocks of the documents do what their pages show (tools/docs/blocks.py has the rules)."""

from __future__ import annotations

import contextlib
import importlib.util
import io
import os
import shlex
import shutil
from pathlib import Path

import click
import pytest
from _pytest.mark import ParameterSet
from blocks import ROOT, Block, blocks, commands, fits, pages, sessions

from mmaformal import cli
from mmaformal.cli import app, recall

try:
    import platformdirs
except ImportError:  # it comes with the extra rtl
    pass
else:  # slang is compiled once for a machine
    os.environ.setdefault("YOWASP_CACHE_DIR", platformdirs.user_cache_dir("YoWASP", appauthor=False))

PAGES = {page.relative_to(ROOT).as_posix(): blocks(page) for page in pages()}
ALL = [block for found in PAGES.values() for block in found]

#: A page with a test of its own (tests/tools/test_questions.py).
ELSEWHERE = {"docs/questions.md"}

#: Pages that take half a minute or more.
SLOW = {
    f"docs/{name}.md"
    for name in ("commands", "guide", "hardware", "promotion", "tutorials/designer", "tutorials/five-tasks")
}

#: What pages take as given, in Python.
GIVEN = {
    "README.md": "import numpy as np; A = B = np.ones((32, 32), np.float16); C = A.astype(np.float32)",
    "docs/commands.md": """
import numpy as np
from mmaformal import find_difference, matmul, prove
A = B = np.zeros((32, 32), np.uint8)
""",
    "docs/guide.md": """
from pathlib import Path
import numpy as np
A, B, C = np.ones((16, 16), np.float16), np.ones((16, 8), np.float16), np.zeros((16, 8), np.float32)
A8 = B8 = np.ones((256, 256), np.uint8)
a = b = np.ones(16, np.float16)
c = np.float32(0)
""",
    "docs/hardware.md": """
import json
import ml_dtypes
import numpy as np
from mmaformal import hopper
unit = dot_add = hopper["HMMA.16816.F32"].dot_add
A = B = A2 = B2 = np.random.default_rng(0).standard_normal((32, 32)).astype(ml_dtypes.bfloat16)
D = (A.astype(float) @ B.astype(float)).astype(ml_dtypes.bfloat16)
a, b, d = (x.view(np.uint16) for x in (A, B, D))
""",
    "docs/promotion.md": "import numpy as np; Q = K = V = np.ones((256, 64), np.uint8)",
    "docs/recordings.md": """
import numpy as np
a = b = np.zeros((8, 16), np.uint16)
c = d = np.zeros(8, np.uint32)
""",
    "docs/replay-model.md": "import torch; model, tokens = torch.nn.Linear(64, 64).eval(), torch.ones(8, 64)",
    "docs/testing.md": """
import torch
from hypothesis import given
from mmaformal import hopper, matmul
A, B = torch.ones(32, 32, dtype=torch.float16), torch.ones(32, 32, dtype=torch.float16)
def my_gemm(A, B): return matmul(A, B, instruction=hopper["HMMA.16816.F32"])
""",
    "docs/torch.md": """
import torch
model, criterion = torch.nn.Linear(64, 64).half(), torch.nn.functional.mse_loss
x = y = torch.ones(8, 64, dtype=torch.float16)
""",
}


def test_every_block_says_what_it_is() -> None:
    known = {"console", "sh", "python", "text", "smt2", "toml", "json"}
    assert [x.name for x in ALL if x.language not in known] == []


def test_output_that_is_only_shown_has_a_reason() -> None:
    """A text follows the Python that prints it, or a mark says why nothing runs."""
    loose = []
    for found in PAGES.values():
        for before, block in zip([None, *found], found, strict=False):
            printed = before is not None and before.language == "python" and before.mark != "not run"
            if block.language == "text" and not printed and block.mark != "not run":
                loose.append(block.name)
    assert loose == []
    assert [x.name for x in ALL if x.mark == "not run" and not x.why] == []


@pytest.mark.parametrize("block", [x for x in ALL if x.language in ("console", "sh")], ids=lambda x: x.name)
def test_commands_parse(block: Block, monkeypatch: pytest.MonkeyPatch) -> None:
    """All options are there, and take such values; files need not be there."""
    monkeypatch.setattr(click.Path, "convert", lambda self, value, *_: Path(value))
    for line in commands(block.text):
        words = [word for word in shlex.split(line)[1:] if word != "…"]
        app.commands[words[0]].make_context(words[0], words[1:], parent=click.Context(app))


def _runs() -> list[ParameterSet]:
    found = [page for page in PAGES if page not in ELSEWHERE and any(block.runs for block in PAGES[page])]
    return [pytest.param(page, marks=[pytest.mark.slow] if page in SLOW else []) for page in found]


@pytest.mark.parametrize("page", _runs())
def test_blocks_do_what_is_shown(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The blocks of a page, in order, in one folder."""
    if "import torch" in GIVEN.get(page, ""):
        pytest.importorskip("torch")
    monkeypatch.setattr(recall, "enabled", True)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / ".cache"))
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.chdir(tmp_path)
    for name in ("examples", "tests"):
        (tmp_path / name).symlink_to(ROOT / name)
    module: dict[str, object] = {"__name__": "page"}
    exec(GIVEN.get(page, ""), module)
    for block, after in zip(PAGES[page], [*PAGES[page][1:], None], strict=True):
        if not block.runs or not _is_there(block):
            continue
        if block.language == "console":
            for command, lines in sessions(block.text):
                if command.startswith("cd "):
                    monkeypatch.chdir(command[3:])
                    continue
                assert fits(lines, printed := _command(command)), f"{block.name}\n" + "\n".join(printed)
            continue
        printed = _python(block, module)
        if after is not None and after.language == "text" and not after.mark:
            assert fits(after.text.splitlines(), printed), f"{block.name}\n" + "\n".join(printed)


def _is_there(block: Block) -> bool:
    needed = block.why.split(", ") if block.mark == "needs" else []
    return all(importlib.util.find_spec(name) or shutil.which(name) for name in needed)


def _command(line: str) -> list[str]:
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = cli.main(shlex.split(line)[1:])
    return (out if status < 2 or status == 3 else err).getvalue().splitlines()


def _python(block: Block, module: dict[str, object]) -> list[str]:
    out = io.StringIO()
    code = compile("\n" * block.line + block.text, str(block.page), "exec")
    with contextlib.redirect_stdout(out):
        exec(code, module)
    return out.getvalue().splitlines()


def test_a_line_of_dots_stands_for_any_lines_and_times_are_not_compared() -> None:
    assert fits(["a (3.0 s)", "…", "z"], ["a (10.5 s)", "b", "c", "z"])
    assert fits(["…"], [])
    assert not fits(["a"], ["a", "b"])
    assert not fits(["a", "…", "z"], ["a", "b"])
    assert not fits(["3 rows"], ["4 rows"])
