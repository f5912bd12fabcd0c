"""The `mmaformal` command: what it prints, where, and with which status."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.solvers import solver_processes, wait_until

from mmaformal import ARCHITECTURES, Different, __version__, ampere, cli, hopper, rtx_blackwell
from mmaformal.formats import fp16, fp32
from mmaformal.queries import find_difference as find_difference_module
from mmaformal.solver.answers import Unknown
from mmaformal.solver.portfolio import Outcome, Portfolio
from mmaformal.witness import Witness, WitnessError

COMMAND = [sys.executable, "-m", "mmaformal.cli"]
DIFF = ["diff", "ampere", "hopper", "HMMA.1688.F32"]
#: all fixed but one factor of one product: a question of a second
EASY = [f"{side}{k}=0x0" for side in "ab" for k in range(1, 8)] + ["a0=0x1000", "c=0x3f800000"]
EASY_DIFF = [*DIFF, *(word for each in EASY for word in ("--where", each))]


def run(capsys: pytest.CaptureFixture[str], *argv: str) -> tuple[int, str, str]:
    """(status, stdout, stderr) of a command run in this process."""
    try:
        status = cli.main(argv)
    except SystemExit as end:  # argparse
        status = int(end.code or 0)
    out, err = capsys.readouterr()
    return status, out, err


# ---- list, show


def test_list_names_every_instruction(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, err = run(capsys, "list")
    assert (status, err) == (0, "")
    heads = [line for line in out.splitlines() if line.startswith("instruction")]
    assert len(heads) == 2  # NVIDIA, AMD
    for name in ("HMMA.16816.F32", "QGMMA.64x8x32.F32.f8type.f8type", "v_mfma_f32_32x32x8_f16", "DMMA.884"):
        assert name in out
    assert "fda F=13 L=32" in out
    for architecture in ARCHITECTURES.values():
        status, out, _ = run(capsys, "list", architecture.name)
        assert status == 0
        assert all(i.name in out for i in architecture)
        assert architecture.gpus in out


def test_list_as_json_is_the_tables(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, err = run(capsys, "list", "--json")
    told = json.loads(out)
    assert (status, err) == (0, "")
    expected = [(i.architecture, i.name) for a in ARCHITECTURES.values() for i in a]
    assert [(t["architecture"], t["name"]) for t in told] == expected
    for t in told:
        i = ARCHITECTURES[t["architecture"]][t["name"]]
        assert (t["m"], t["n"], t["k"], t["algorithm"]) == (i.m, i.n, i.k, i.algorithm)
        assert set(t["parameters"]) == set(i.parameters)
        assert set(t["sources"]) >= set(t["parameters"]), f"{i.label} does not say where it is from"
    assert len(json.loads(run(capsys, "list", "cdna1", "--json")[1])) == len(
        ARCHITECTURES["cdna1"].instructions
    )


@pytest.mark.parametrize("name", ["HMMA.16816.F32", "hmma.16816.f32", "mma.m16n8k16.f32.f16.f16.f32"])
def test_show_says_each_parameter_with_its_source(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    status, out, err = run(capsys, "show", "ampere", name)
    assert (status, err) == (0, "")
    i = ampere["HMMA.16816.F32"]
    told_once = " ".join(out.split())
    for parameter in i.parameters:
        assert re.search(rf" {parameter} = [^\[]*: [^\[]* \[{re.escape(i.sources[parameter])}\]", told_once)
    assert "over 16 products, 2 steps of 8," in told_once
    assert "accumulator: keeps 24 fractional bits below the largest term of a step" in told_once
    told = json.loads(run(capsys, "show", "ampere", name, "--json")[1])
    assert told["parameters"] == {"F": 24, "L": 8, "rho": "RZ-FP32", "e_zero": -132, "cut": "RZ"}


def test_every_model_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    for architecture in ARCHITECTURES.values():
        for i in architecture:
            status, out, _ = run(capsys, "show", i.architecture, i.name)
            assert status == 0
            assert i.name in out
            assert "no source recorded" not in out


def test_a_revision_is_an_architecture(capsys: pytest.CaptureFixture[str]) -> None:
    assert "that of its fields" in run(capsys, "show", "hopper@paper-v1", "HMMA.16816.F32")[1]
    status, out, err = run(capsys, "show", "hopper@paper-v9", "HMMA.16816.F32")
    assert (status, out) == (2, "")
    assert "paper-v1" in err


# ---- run


def test_run_takes_numbers_and_codes(capsys: pytest.CaptureFixture[str]) -> None:
    numbers = ["--a", "1.5,-0x1p-3, 2", "--b", "-2,8,0x4000", "--c", "-1", "--pad", "--json"]
    status, out, err = run(capsys, "run", "ampere", "HMMA.1688.F32", *numbers)
    assert (status, err) == (0, "")
    a = [fp16.code("1.5"), fp16.code("-0.125"), fp16.code("2"), *[0] * 5]
    b = [fp16.code("-2"), fp16.code("8"), 0x4000, *[0] * 5]
    d = int(ampere["HMMA.1688.F32"].dot_add(a, b, fp32.code("-1")))
    assert fp32.value(d) == -1  # −3 − 1 + 4 − 1
    told = json.loads(out)
    assert (told["architecture"], told["instruction"]) == ("ampere", "HMMA.1688.F32")
    assert int(told["d"], 16) == d


def test_run_shows_the_stages_and_the_exact_value(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = run(capsys, "run", "ampere", "HMMA.1688.F32", "--a=1,0x1p-13", "--b=1,0x1p-13", "--pad")
    assert status == 0
    for words in ("largest exponent", "a[1]·b[1]", "(lost 0x1p-26)", "exact:", "0x3f800000  0x1p+0 = 1"):
        assert words in out


def test_run_with_infinities_and_nans(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = run(
        capsys, "run", "hopper", "HMMA.1688.F32", "--a", "inf", "--b", "-1", "--c", "-inf", "--pad"
    )
    assert status == 0
    assert "0xff800000  -inf" in out
    assert "exact" not in out
    assert "nan" in run(capsys, "run", "hopper", "HMMA.1688.F32", "--a", "nan", "--b", "0", "--pad")[1]


def test_run_with_scales(capsys: pytest.CaptureFixture[str]) -> None:
    i = rtx_blackwell["QMMA.SF.16832.F32.E4M3.E4M3.E8"]
    words = ["run", "rtx_blackwell", i.name, "--a", "1", "--b", "1.5", "--pad", "--json"]
    status, out, _ = run(capsys, *words, "--scale-a", "2", "--scale-b", "0x80")
    assert status == 0
    assert fp32.value(int(json.loads(out)["d"], 16)) == 6
    status, _, err = run(capsys, *words, "--scale-a", "2")
    assert status == 2
    assert "--scale-b" in err
    status, _, err = run(
        capsys, "run", "ampere", "HMMA.1688.F32", "--a=1", "--b=1", "--pad", "--scale-a", "1"
    )
    assert status == 2
    assert "no block scales" in err


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--a", "1,2", "--b", "1"], "--a needs 8 values, not 2; --pad"),
        (["--a", ",".join("1" * 9), "--b", "1", "--pad"], "--a needs 8 values, not 9"),
        (["--a", "0x10000", "--b", "1", "--pad"], "no code 0x10000"),
        (["--a", "one", "--b", "1", "--pad"], "'one' is no number"),
        (["--a", "", "--b", "1", "--pad"], "--a: "),
        (["--a", "1", "--b", "1,,1", "--pad"], "--b: "),
        (["--a", "0x1.8", "--b", "1", "--pad"], "--a: "),
        (["--a", "1", "--b", "1", "--pad", "--c", "1,2"], "--c needs 1 value"),
        (["--a", "1", "--b", "1", "--pad", "--c", "70000000000000000000000000000000000000000"], "--c: "),
    ],
)
def test_inputs_that_are_none_are_told(
    words: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    status, out, err = run(capsys, "run", "ampere", "HMMA.1688.F32", *words)
    assert (status, out) == (2, "")
    assert told in err
    assert err.count("\n") == 1


# ---- diff


def test_diff_prints_the_answer(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    cuda, smtlib = tmp_path / "case.cu", tmp_path / "proofs"
    status, out, err = run(capsys, *EASY_DIFF, "--cuda", str(cuda), "--smtlib", str(smtlib))
    assert (status, err) == (0, "")
    assert out.startswith("Different: ampere HMMA.1688.F32 ≠ hopper HMMA.1688.F32 where ")
    assert "c = 0x3f800000" in out
    assert "mma.sync" in cuda.read_text()
    assert list(smtlib.glob("*.smt2"))


def test_diff_as_json_holds_the_witness(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    answered: set[str] = set()
    ask = Portfolio.ask

    def spy(self: Portfolio, *question: Any) -> Outcome:
        outcome = ask(self, *question)
        answered.add(outcome.solver)
        return outcome

    monkeypatch.setattr(Portfolio, "ask", spy)
    status, out, err = run(capsys, *EASY_DIFF, "--json", "--solver", "z3", "--no-cache")
    assert (status, err) == (0, "")
    told = json.loads(out)
    assert told["answer"] == "different"
    w = told["witness"]
    a, b, c = ([int(x, 16) for x in w["a"]], [int(x, 16) for x in w["b"]], int(w["c"], 16))
    results = [int(m["result"], 16) for m in w["models"]]
    assert results == [int(i["HMMA.1688.F32"].dot_add(a, b, c)) for i in (ampere, hopper)]
    assert results[0] != results[1]
    assert "z3" in answered <= {"z3", ""}  # nobody, where the time was used up


def test_diff_of_equals_and_of_chains(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    status, out, err = run(
        capsys, "diff", "hopper", "blackwell", "HMMA.16816.F32", "--cuda", str(tmp_path / "no.cu")
    )
    assert status == 0
    assert out.startswith("Equal: hopper HMMA.16816.F32 = blackwell HMMA.16816.F32")
    assert "no witness" in err
    assert not (tmp_path / "no.cu").exists()
    names = ["HMMA.1688.F32", "HMMA.16816.F32"]
    status, out, _ = run(capsys, "diff", "hopper", "hopper", *names)
    assert status == 2
    # One K = 8 instruction twice is not one of K = 16 on hopper, but on ampere it is.
    status, out, _ = run(capsys, "diff", "ampere", "ampere", *names, "--k", "16")
    assert (status, out.split(":")[0]) == (0, "Equal")


def test_diff_without_an_answer_is_status_3(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, err = run(capsys, *DIFF, "--timeout", "0.01")
    assert (status, err) == (3, "")
    assert out.startswith("Unknown: ")
    assert run(capsys, *DIFF, "--timeout", "20", "--memory", "8")[0] == 3


@pytest.mark.parametrize(
    ("argv", "told"),
    [
        (["diff", "ampere", "hoper", "HMMA.1688.F32"], "no architecture 'hoper'; did you mean hopper?"),
        (["diff", "ampere", "hopper", "HMMA.1689.F32"], "ampere has no instruction 'HMMA.1689.F32'. Nearest"),
        (["diff", "ampere", "hopper", "HMMA.1688.F32", "HMMA.16816.F32"], "K = 8"),
        (["diff", "hopper", "hopper", "HMMA.16816.F32", "HMMA.16816.F16"], "not take the same inputs"),
        ([*DIFF, "--where", "finit"], "'finit' is no constraint"),
        ([*DIFF, "--where", "c=0x0", "--where", "c=0x1"], "c is fixed to 0x0 and to 0x1"),
        ([*DIFF, "--timeout", "0"], "timeout"),
        ([*DIFF, "--timeout", "nan"], "timeout"),
        ([*DIFF, "--memory", "-5"], "megabytes"),
        ([*DIFF, "--k", "12"], "12 is not a multiple"),
        ([*DIFF, "--solver", "yices"], "'yices' is not one of"),
        (["list", "hoper"], "no architecture 'hoper'"),
        (["show", "ampere", "HGMMA.64x8x16.F32"], "HGMMA.64x8x16.F32 is on: hopper"),
        (["run", "hoper", "HMMA.1688.F32", "--a", "1", "--b", "1"], "no architecture 'hoper'"),
        (["check", "no/such/file.npz"], "file.npz"),
        (["compare"], "no command 'compare'"),
        ([], "COMMAND"),
    ],
)
def test_wrong_use_is_told_on_stderr(argv: list[str], told: str, capsys: pytest.CaptureFixture[str]) -> None:
    status, out, err = run(capsys, *argv)
    assert status == 2
    assert told in out + err
    assert "Traceback" not in err
    assert told in err or argv[0] == "check"


@pytest.mark.parametrize("option", ["--cuda", "--smtlib", "--evidence"])
def test_files_that_cannot_be_written_are_told_before_the_work(
    option: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def never(*_: Any, **__: Any) -> Different:
        raise AssertionError("the work was started")

    monkeypatch.setattr(find_difference_module, "find_difference", never)
    (tmp_path / "file").touch()
    status, out, err = run(capsys, *EASY_DIFF, option, str(tmp_path / "file" / "inside"))
    assert (status, out) == (2, "")
    assert err.startswith(f"mmaformal: {option}: cannot write to ")
    assert err.count("\n") == 1


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="has no full device")
def test_a_file_that_fails_after_all_does_not_lose_the_answer(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    one = [0x3C00, *[0] * 7]
    witness = Witness.of(ampere["HMMA.1688.F32"], hopper["HMMA.1688.F32"], one, one, 0xCC000000)
    answer = Different("q", witness, (), (), 0.0)
    monkeypatch.setattr(find_difference_module, "find_difference", lambda *_, **__: answer)
    status, out, err = run(capsys, *DIFF, "--cuda", "/dev/full")
    assert status == 2
    assert out.startswith("Different: ")
    assert err == "mmaformal: cannot write: No space left on device\n"


def test_cuda_that_cannot_be_is_told_before_the_work(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    status, out, err = run(
        capsys, "diff", "cdna2", "cdna3", "f32_16x16x4f32", "--cuda", str(tmp_path / "no.cu")
    )
    assert (status, out) == (2, "")
    assert "--cuda" in err
    assert err.count("\n") == 1


def test_encodings_that_disagree_are_status_1(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def wrong(*_: Any, **__: Any) -> Different:
        raise WitnessError("the two encodings disagree")

    monkeypatch.setattr(find_difference_module, "find_difference", wrong)
    assert run(capsys, *DIFF)[::2] == (1, "mmaformal: the two encodings disagree\n")


def test_a_defect_is_status_70_and_its_traceback_is_kept(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    def broken(*_: Any, **__: Any) -> Different:
        return {}["sfma"]  # type: ignore[no-any-return]

    monkeypatch.setattr(find_difference_module, "find_difference", broken)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    status, out, err = run(capsys, *DIFF)
    assert (status, out) == (70, "")
    assert re.fullmatch(
        r"mmaformal: a defect of mmaformal, please report it with \S+: KeyError: 'sfma'\n", err
    )
    (kept,) = tmp_path.iterdir()
    assert str(kept) in err
    assert 'return {}["sfma"]' in kept.read_text()
    monkeypatch.setenv("MMAFORMAL_TRACEBACK", "1")
    status, out, err = run(capsys, *DIFF)
    assert (status, out) == (70, "")
    assert err.startswith("Traceback")
    assert len([*tmp_path.iterdir()]) == 1


@pytest.mark.parametrize("broken", [lambda: int("deep inside"), lambda: [].remove("deep inside")])
def test_a_value_error_is_told_as_wrong_use_only_if_a_check_raised_it(
    broken: Callable[[], object],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    monkeypatch.setattr(find_difference_module, "find_difference", lambda *_, **__: broken())
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert run(capsys, *DIFF)[0] == 70


def test_a_cache_that_cannot_be_written_is_no_reason_not_to_answer(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    for name in ("XDG_CACHE_HOME", "LOCALAPPDATA", "HOME"):
        monkeypatch.setenv(name, str(tmp_path / "file"))
    answer = Unknown("q", "not asked", (), 0.0)
    monkeypatch.setattr(find_difference_module, "find_difference", lambda *_, **__: answer)
    status, out, err = run(capsys, *DIFF)
    assert (status, out) == (3, f"{answer}\n")
    assert err.startswith("mmaformal: nothing is remembered: ")
    assert err.count("\n") == 1
    assert run(capsys, *DIFF, "--no-cache") == (3, f"{answer}\n", "")
    status, out, err = run(
        capsys, "verify", "volta", "HMMA.884.F16.F16"
    )  # which is all about what it records
    assert (status, out) == (2, "")
    assert "--evidence FILE" in err
    assert err.count("\n") == 1


# ---- as a process


def test_importing_the_package_does_not_import_z3() -> None:
    code = "import sys, mmaformal, mmaformal.cli; assert 'z3' not in sys.modules; mmaformal.find_difference"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_the_command_is_installed() -> None:
    command = Path(sys.executable).with_name("mmaformal")
    if not command.exists():
        pytest.skip("mmaformal is not installed beside this Python")
    done = subprocess.run([command, "--version"], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (0, f"mmaformal {__version__}\n")


def test_a_reader_that_has_seen_enough_is_no_error() -> None:
    read, write = os.pipe()
    os.close(read)
    with os.fdopen(write, "w") as gone:
        done = subprocess.run(
            [*COMMAND, "list"], stdout=gone, stderr=subprocess.PIPE, timeout=60, check=False
        )
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.skipif(sys.platform != "linux", reason="looks at /proc")
def test_ctrl_c_is_status_130_and_leaves_no_process() -> None:
    hard = ["diff", "ampere", "hopper", "HMMA.16816.F32.BF16", "--timeout", "300", "--where", "nonzero"]
    with subprocess.Popen(
        [*COMMAND, *hard], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        assert wait_until(lambda: len(solver_processes(process.pid)) == 2, 60)
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does
        out, err = process.communicate(timeout=30)
    assert (process.returncode, out, err.splitlines()[-1]) == (130, "", "interrupted")
    assert wait_until(lambda: not solver_processes(process.pid), 5)


@pytest.mark.parametrize(
    ("started", "quiet"), [("/usr/bin/mmaformal", True), ("-m", True), ("/tmp/mine.py", False)]
)
def test_an_interrupt_while_the_command_is_imported_says_nothing(started: str, quiet: bool) -> None:
    program = (
        f"import sys, signal; sys.argv = [{started!r}]; import mmaformal; "
        "print(signal.getsignal(signal.SIGINT) is signal.SIG_DFL); from mmaformal import _interrupts; "
        "_interrupts.as_usual(); print(signal.getsignal(signal.SIGINT) is signal.default_int_handler)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == [str(quiet), "True"]
