"""A person at a terminal: completion, widths, colour, a status line, and signs that an encoding lacks."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import click
import pytest
from click.shell_completion import ShellComplete

import mmaformal.encodings.executable
import mmaformal.queries
from mmaformal import ARCHITECTURES, ampere, hopper
from mmaformal.cli import app, main, running, terminal
from mmaformal.cli.app import GROUPS
from mmaformal.cli.prove import PROPERTY_NAMES
from mmaformal.display import LastingLine, columns, fitting, folded
from mmaformal.listing import architecture_table, instruction_tables
from mmaformal.queries.properties import PROPERTIES
from mmaformal.shown_stages import explain_difference

ENDS = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


def completed(*words: str) -> list[str]:
    """Return what the last word may become."""
    completion = ShellComplete(app, {}, "mmaformal", "_MMAFORMAL_COMPLETE")
    return [each.value for each in completion.get_completions([*words[:-1]], words[-1])]


def test_everything_completes() -> None:
    assert completed("") == [name for commands in GROUPS.values() for name in commands]
    assert completed("d") == ["diff", "diagnose", "diagnose-gemm"]
    assert completed("show", "mi3") == ["MI300", "MI300A", "MI300X", "MI308X", "MI325X"]
    assert completed("show", "hop") == ["hopper"]
    assert completed("show", "hopper@") == [f"hopper@{name}" for name in hopper.revisions]
    assert completed("show", "hopper", "hmma.168") == [
        i.name for i in hopper if i.name.startswith("HMMA.168")
    ]
    assert completed("diff", "ampere", "hopper", "DMMA") == [i.name for i in ampere if "DMMA" in i.name]
    assert completed("prove", "order") == ["order-independence", "order-independence-across-blocks"]
    assert completed("prove", "commutativity", "cdna1", "v_mfma_f32_4x4x1") == ["v_mfma_f32_4x4x1f32"]
    assert completed("diff", "--sol") == ["--solver"]
    assert "z3" in completed("diff", "--solver", "")
    assert completed("completion", "") == ["bash", "zsh", "fish"]


def test_the_names_that_complete_are_the_properties() -> None:
    assert set(PROPERTY_NAMES) == set(PROPERTIES)


def test_every_option_says_what_it_is() -> None:
    for command in app.commands.values():
        assert command.help
        for parameter in command.params:
            if (
                isinstance(parameter, click.Option)
                and not parameter.hidden
                and parameter.opts[0] not in "--a--b"
            ):
                assert parameter.help, (command.name, parameter.opts)


@pytest.mark.parametrize("width", [60, 80, 100])
def test_tables_fit(width: int) -> None:
    one, rest = 0x3C00, [0] * 15
    case = ([one, *rest], [one, *rest], 0xCC000000)
    with fitting(width):
        texts = [instruction_tables(), *map(architecture_table, ARCHITECTURES.values())]
        texts.append(explain_difference(ampere["HMMA.16816.F32"], hopper["HMMA.16816.F32"], *case))
    lines = [line for text in texts for line in text.splitlines()]
    assert max(map(len, lines)) <= max(width, 80)
    for architecture in ARCHITECTURES.values():
        for i in architecture:
            assert any(line.startswith(f"{i.name} ") for line in lines), "a name was broken"


def test_what_is_folded_is_all_there() -> None:
    rows = [("name", "words"), ("a", "one two three four five six"), ("b", "")]
    whole = columns(rows)
    assert whole == ["name  words", "a     one two three four five six", "b"]
    with fitting(18):
        folded = columns(rows, ruled=True)
    assert folded[1] == "----  ------------"
    assert max(map(len, folded)) <= 18
    assert " ".join(line[6:].strip() for line in folded[2:]).split() == rows[1][1].split()


def test_a_line_that_is_too_wide_is_broken_between_words() -> None:
    text = "  one two-three  four\nin\n  five 0123456789ABCDEF"
    assert folded(text) == text
    assert folded(text, 13) == "  one\n    two-three\n    four\nin\n  five\n    0123456789ABCDEF"
    with fitting(60):
        assert folded(text) == text


@pytest.mark.skipif(sys.platform == "win32", reason="has no such terminals")
@pytest.mark.parametrize("columns", [80, 120])
@pytest.mark.parametrize(
    "words",
    [
        "prove every-number volta HMMA.884.F32.F16",
        "prove hopper HMMA.16816.F32",
        "run ampere HMMA.1688.F32 --a 0.1 --b 1 --pad --bits",
        "show hopper HMMA.1688.F32",
    ],
)
def test_what_is_printed_fits_the_terminal(words: str, columns: int, tmp_path: Path) -> None:
    pexpect = pytest.importorskip("pexpect")
    environment = {
        "PATH": "/usr/bin:/bin",
        "TERM": "dumb",
        "PYTHONUTF8": "1",
        "XDG_CACHE_HOME": str(tmp_path),
    }
    child = pexpect.spawn(
        sys.executable,
        ["-m", "mmaformal", *words.split()],
        dimensions=(24, columns),
        env=environment,
        encoding="utf-8",
        timeout=300,
    )
    lines = ENDS.sub("", child.read()).splitlines()
    child.close()
    assert len(lines) > 1
    assert max(map(len, lines)) <= columns


@pytest.mark.parametrize("columns", [60, 80, 120])
@pytest.mark.parametrize(
    "words",
    [
        "list MI350X",
        "list hopper fp8",
        "list --devices",
        "prove --list",
        "show datapath",
        "show b200 mma.m16n8k32.f32.e4m3.e4m3.f32",
        "check examples/bfdot_qemu.npz",
        "run v100 fp16",
        "diff v100 V100 fp16",
        "roundoff e2m1",
    ],
)
def test_answers_and_errors_fit_the_screen(
    words: str, columns: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (running, terminal):
        monkeypatch.setattr(module, "width", lambda stream=None: columns)
    monkeypatch.chdir(Path(__file__).parents[2])
    main(words.split())
    out, err = capsys.readouterr()
    assert out + err
    assert not [line for line in (out + err).splitlines() if len(line) > columns and " " in line.strip()]


def test_what_a_program_reads_is_not_folded(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    told = []
    for given in (None, 40):
        monkeypatch.setattr(running, "width", lambda stream=None, given=given: given)
        for words in (
            "list hopper --csv",
            "list hopper --latex",
            "run h100 DMMA.884 --a 1 --b 1 --pad --json",
        ):
            assert main(words.split()) == 0
        assert main(["verilog", "volta", "HMMA.884.F16.F16"]) == 0
        told.append(capsys.readouterr().out)
    assert told[0] == told[1]


def test_every_sign_that_is_written_has_one_that_a_terminal_has() -> None:
    roots = [Path(mmaformal.__file__), Path(mmaformal.queries.__file__)]
    for root in roots:
        for path in root.parent.rglob("*.py"):
            for sign in set(path.read_text(encoding="utf-8")):
                if ord(sign) > 127:
                    assert sign.encode("ascii", "mmaformal") != b"?", f"{sign!r} of {path.name}"


def test_a_line_that_lasts_stays(capsys: pytest.CaptureFixture[str]) -> None:
    with terminal.Status() as status:
        status.show("the design is read")
        status.show(LastingLine("ports: a = a"))
    assert capsys.readouterr().err == "ports: a = a\n"


def test_progress_off_a_terminal_is_single_lines(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    now = 100.0
    monkeypatch.setattr(terminal, "EVERY", 10.0)
    monkeypatch.setattr(terminal.time, "monotonic", lambda: now)
    with terminal.Status() as status:
        for seconds in range(35):
            now = 100.0 + seconds
            status.show(f"question {seconds}")
        status.found(SimpleNamespace(witness=SimpleNamespace(summary="an input")))  # type: ignore[arg-type]
    assert capsys.readouterr().err.splitlines() == [
        f"mmaformal: {seconds} s: question {seconds}" for seconds in (10, 20, 30)
    ]


@pytest.mark.skipif(sys.platform == "win32", reason="has no such terminals")
def test_a_terminal_has_colour_and_width_and_no_color_is_kept(tmp_path: Path) -> None:
    pexpect = pytest.importorskip("pexpect")

    def told(no_color: str) -> str:
        environment = {
            "PATH": "/usr/bin:/bin",
            "TERM": "xterm-256color",
            "NO_COLOR": no_color,
            "PYTHONUTF8": "1",
            "XDG_CACHE_HOME": str(tmp_path),
        }
        words = ["-m", "mmaformal", "prove", "every-number", "volta", "HMMA.884.F32.F16"]
        child = pexpect.spawn(
            sys.executable, words, dimensions=(24, 80), env=environment, encoding="utf-8", timeout=120
        )
        out: str = child.read()
        child.close()
        assert child.exitstatus == 1
        return out

    out = told("")
    assert "\x1b[1;31mFails:" in out
    assert out.count("\x1b[?25l") == out.count("\x1b[?25h") == 1  # the status line came and went
    plain = told("1")
    assert "\x1b[1;31m" not in plain
    assert ENDS.sub("", plain).splitlines()[-1] == ENDS.sub("", out).splitlines()[-1]


@pytest.mark.skipif(sys.platform == "win32", reason="has no such terminals")
def test_a_terminal_shows_the_first_witness_before_the_answer(tmp_path: Path) -> None:
    pexpect = pytest.importorskip("pexpect")
    environment = {
        "PATH": "/usr/bin:/bin",
        "TERM": "xterm-256color",
        "NO_COLOR": "1",
        "PYTHONUTF8": "1",
        "XDG_CACHE_HOME": str(tmp_path),
    }
    fixed = [f"{side}{k}=0x0" for side in "ab" for k in range(1, 8)] + ["a0=0x1000", "c=0x3f800000"]
    words = ["-m", "mmaformal", "diff", "ampere", "hopper", "HMMA.1688.F32"]
    words += [word for each in fixed for word in ("--where", each)]
    child = pexpect.spawn(
        sys.executable, words, dimensions=(24, 80), env=environment, encoding="utf-8", timeout=120
    )
    out = ENDS.sub("", child.read())
    child.close()
    assert child.exitstatus == 0
    first = out.index("found: 0x1p-11·")
    assert first < out.index("Different: ampere HMMA.1688.F32 ≠ hopper HMMA.1688.F32")
    assert "; a smaller one is looked for" in " ".join(out[first:].split())


def test_a_kernel_that_is_compiled_is_told_on_a_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from numba.core import event

    from mmaformal.kernels import choose  # installs it

    def compiling(function: Any) -> None:
        told = {"dispatcher": SimpleNamespace(py_func=function)}
        with event.trigger_event("numba:compile", told), event.trigger_event("numba:compile", told):
            pass

    compiling(choose.choose_kernel)
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    compiling(choose.choose_kernel)
    assert capsys.readouterr().err.count("compiling kernels, once: choose_kernel") == 1
    compiling(test_everything_completes)  # not ours
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: False)
    monkeypatch.setitem(sys.modules, "ipykernel", sys)
    compiling(choose.choose_kernel)
    compiling(choose.choose_kernel)
    assert capsys.readouterr().err.count("compiling kernels, once") == 1
