"""`mmaformal errors`: the figures of `mmaformal.errors`, and what is refused."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from support.commands import run

from mmaformal import errors, hopper
from mmaformal.cli.running import INTERRUPTED, SETTLED, WRONG_USE

FP8 = "QGMMA.64x8x32.F32.E4M3.E4M3"


def test_the_figures_are_those_of_the_function(capsys: pytest.CaptureFixture[str]) -> None:
    how = ["--outputs", "3e5", "--k", "64", "--seed", "4", "--promote-every", "1"]
    status, text, _ = run(capsys, "errors", "h100", FP8, *how, "--json")
    told, found = json.loads(text), errors(hopper[FP8], 300_000, k=64, seed=4, promote_every=1)
    assert status == SETTLED
    assert {name: told[name] for name in vars(found)} == vars(found)
    assert (told["instruction"], told["k"], told["seed"]) == (f"hopper {FP8}", 64, 4)
    assert found.count == 1 << 19  # whole blocks

    again, text, _ = run(capsys, "errors", "h100", FP8, *how, "--jobs", "2")
    assert again == SETTLED
    assert text.splitlines()[1:] == str(found).splitlines()
    assert text.startswith(f"hopper {FP8}, K = 64, seed 4\n")


def test_a_hypothetical_unit_has_other_errors(capsys: pytest.CaptureFixture[str]) -> None:
    how = ["errors", "hopper", "HMMA.16816.F32", "--outputs", "1", "--json"]
    told = [json.loads(run(capsys, *how, *more)[1]) for more in ([], ["--replace", "F=13"])]
    assert told[0]["relative"] < told[1]["relative"]


@pytest.mark.parametrize(
    ("option", "what"),
    [
        (["--outputs", "0"], "--outputs is a number of results of 1 or more, not '0'"),
        (["--outputs", "1.5"], "--outputs is a number of results of 1 or more, not '1.5'"),
        (["--outputs", "many"], "--outputs is a number of results of 1 or more, not 'many'"),
        (["--k", "0"], "--k is a number of products of 1 or more"),
        (["--seed", "-1"], "--seed"),
    ],
)
def test_numbers_that_make_no_sense(capsys: pytest.CaptureFixture[str], option: list[str], what: str) -> None:
    status, out, err = run(capsys, "errors", "hopper", "HMMA.16816.F32", *option)
    assert (status, out) == (WRONG_USE, "")
    assert what in err
    assert err.count("\n") == 1


def test_what_cannot_be_chained_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    status, _, err = run(capsys, "errors", "volta", "HMMA.884.F32.F16", "--k", "8", "--outputs", "1")
    assert status == WRONG_USE
    assert err.count("\n") == 1


@pytest.mark.skipif(os.name == "nt", reason="a signal is sent")
@pytest.mark.parametrize("workers", [[], ["--jobs", "2"]])
def test_ctrl_c(workers: list[str], tmp_path: Path) -> None:
    program = subprocess.Popen(
        [sys.executable, "-c", ENDLESS, *workers], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        start_new_session=True, cwd=tmp_path,
    )  # fmt: skip
    assert program.stderr is not None
    assert "parts" in program.stderr.readline()
    os.killpg(program.pid, signal.SIGINT)
    out, err = program.communicate(timeout=60)
    assert program.returncode == INTERRUPTED
    assert out == ""
    assert err.endswith("interrupted\n")


ENDLESS = """
import sys
from mmaformal.cli import main, terminal

if __name__ == "__main__":
    terminal.EVERY = 0.0
    sys.exit(main(["errors", "hopper", "HMMA.16816.F32", "--outputs", "1e13", *sys.argv[1:]]))
"""
