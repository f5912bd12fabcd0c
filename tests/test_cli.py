"""The command line: what it prints, and its exit status."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from conftest import wait_until

from mmaformal import ARCHITECTURES, hopper
from mmaformal.cli import main


def test_list_shows_every_instruction_in_two_tables(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list"]) == 0
    text = capsys.readouterr().out
    assert [line.split()[0] for line in text.splitlines() if line.startswith("instruction")] == [
        "instruction"
    ] * 2
    for name in ("HMMA.16816.F32", "QGMMA.64x8x32.F32.f8type.f8type", "v_mfma_f32_32x32x8_f16", "DMMA.884"):
        assert name in text
    assert "fda F=13 L=32" in text


def test_list_json_is_the_registry(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert len(listed) == sum(len(a.instructions) for a in ARCHITECTURES.values())
    for entry in listed:
        i = ARCHITECTURES[entry["architecture"]][entry["name"]]
        assert (entry["k"], entry["algorithm"]) == (i.k, i.algorithm)


@pytest.mark.parametrize("architecture", list(ARCHITECTURES))
def test_list_of_one(architecture: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list", architecture]) == 0
    text = capsys.readouterr().out
    assert all(i.name in text for i in ARCHITECTURES[architecture])


def test_show_names_a_source_for_every_parameter(capsys: pytest.CaptureFixture[str]) -> None:
    for architecture in ARCHITECTURES.values():
        for i in architecture:
            assert main(["show", architecture.name, i.name]) == 0
            text = capsys.readouterr().out
            assert "no source recorded" not in text
            assert all(f"  {name} = " in text for name in i.parameters)


def test_run_takes_codes_and_numbers(capsys: pytest.CaptureFixture[str]) -> None:
    command = ["run", "hopper", "HMMA.16816.F32", "--pad", "--a", "-1,0x3c00", "--b", "0.5,-2", "--c"]
    assert main([*command, "-inf"]) == 0
    assert "-inf" in capsys.readouterr().out
    assert main([*command, "0x40800000", "--json"]) == 0  # 4 − 0.5 − 2
    assert json.loads(capsys.readouterr().out)["d"] == "0x3fc00000"


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (["run", "hopper", "HMMA.16816.F32", "--a", "1", "--b", "1"], "--pad"),
        (["run", "hopper", "HMMA.16816.F32", "--a", "0.1", "--b", "1", "--pad"], "not a value of fp16"),
        (["run", "hopper", "HMMA.16816.F32", "--a", "0x10000", "--b", "1", "--pad"], "no code"),
        (
            ["run", "hopper", "HMMA.16816.F32", "--a", "1", "--b", "1", "--pad", "--scale-a", "1"],
            "no block scales",
        ),
        (["show", "ampere", "HMMA.884.F32.F32"], "is on: volta, turing"),
        (["show", "pascal", "HMMA.884.F32.F32"], "there are volta"),
        (["diff", "volta", "hopper", "HMMA.884.F32.F32", "HMMA.16816.F32"], ".chained(16)"),
        (["diff", "hopper", "hopper", "HMMA.16816.F32", "HMMA.16816.F16"], "not take the same inputs"),
        (["diff", "hopper", "ampere", "HMMA.16816.F32", "--where", "small"], "no constraint"),
    ],
)
def test_wrong_use_is_told_in_one_line(
    command: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(command) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert said in captured.err
    assert captured.err.count("\n") == 1


def test_diff_equal(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["diff", "hopper", "blackwell", "HMMA.16816.F32", "--smtlib", str(tmp_path)]) == 0
    assert capsys.readouterr().out.startswith("Equal: hopper HMMA.16816.F32 = blackwell HMMA.16816.F32")
    (script,) = tmp_path.glob("*.smt2")
    assert script.read_text().rstrip().endswith("(check-sat)")


def test_diff_different_as_json_and_cuda(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    cuda = tmp_path / "case.cu"
    given = ["--where", "c=0xb3000000", "--where", "a0=0x3c00", "--where", "b0=0x3c00"]
    command = ["diff", "turing", "hopper", "HMMA.1688.F32", *given, "--json", "--cuda", str(cuda)]
    assert main(command) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["answer"] == "different"
    results = [model["result"] for model in answer["witness"]["models"]]
    assert results == ["0x3f800000", "0x3f7fffff"]
    assert "m16n8k8" in cuda.read_text()


def test_diff_unknown_has_its_own_status(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["diff", "ampere", "hopper", "HMMA.16816.F32", "--timeout", "0.01"]) == 3
    assert capsys.readouterr().out.startswith("Unknown:")


def test_a_closed_pipe_is_no_error() -> None:
    command = f"{sys.executable} -m mmaformal.cli list | head -1"
    run = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=True)
    assert run.stdout.startswith("instruction")
    assert "Traceback" not in run.stderr


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
def test_ctrl_c_leaves_nothing_behind() -> None:
    command = [sys.executable, "-m", "mmaformal.cli", "diff", "ampere", "hopper", "HMMA.16816.F16"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def workers() -> list[str]:
        found = []
        for entry in Path("/proc").glob("[0-9]*/cmdline"):
            try:
                words = entry.read_bytes().split(b"\0")
            except OSError:
                continue
            if b"mmaformal.solver.worker" in words and str(process.pid).encode() in words:
                found.append(entry.parent.name)
        return found

    deadline = time.monotonic() + 60
    while not workers() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert workers(), "no solver was started"
    os.kill(process.pid, signal.SIGINT)
    _, err = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "interrupted" in err
    assert "Traceback" not in err
    assert wait_until(lambda: not workers(), 5)  # one that was just starting ends as soon as it runs


def test_import_is_light() -> None:
    code = "import sys, mmaformal; assert 'z3' not in sys.modules; mmaformal.find_difference"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_module_runs_as_a_script(capsys: pytest.CaptureFixture[str]) -> None:
    from mmaformal.queries import find_difference

    assert find_difference.main(["hopper", "rtx_blackwell", "HMMA.1688.F32"]) == 0
    assert "Equal" in capsys.readouterr().out
    assert hopper["HMMA.1688.F32"].k == 8
