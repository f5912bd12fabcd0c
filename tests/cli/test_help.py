"""Help that fits a terminal, one name for one thing, and commands that say what is missing."""

from __future__ import annotations

import json
from pathlib import Path

import click
import pytest
from support.commands import run

from mmaformal import __version__
from mmaformal.architectures import datapaths, emulations
from mmaformal.cli import app
from mmaformal.cli.app import GROUPS
from mmaformal.cli.options import ArchitectureName, Renamed
from mmaformal.cli.prove import PROPERTY_NAMES
from mmaformal.cli.sizes import KIND_NAMES
from mmaformal.hardware import sizes

# ---- help


@pytest.mark.parametrize("name", ["", *app.commands])
def test_help_fits_80_columns(
    name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    status, out, err = run(capsys, *([name] if name else []), "--help")
    assert (status, err) == (0, "")
    assert max(map(len, out.splitlines())) <= 80
    same = run(capsys, "help", *([name] if name else []))[1]
    assert same.strip() == out.strip()


def test_help_lists_every_command_in_a_group_and_cuts_no_line(capsys: pytest.CaptureFixture[str]) -> None:
    out = run(capsys, "--help")[1]
    lines = [line.strip() for line in out.splitlines()]
    for group, commands in GROUPS.items():
        assert f"{group}:" in lines
        for name, short in commands.items():
            assert any(line.split(maxsplit=1) == [name, short] for line in lines)
    assert {name: command.name for name, command in app.commands.items()} == {x: x for x in app.commands}
    shown = {name: short for commands in GROUPS.values() for name, short in commands.items()}
    assert {name: command.get_short_help_str(80) for name, command in app.commands.items()} == shown


def test_help_and_version_have_the_names_that_people_try(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, "-V") == (0, f"mmaformal {__version__}\n", "")
    status, out, err = run(capsys, "help", "dif")
    assert (status, out) == (2, "")
    assert "no command 'dif'" in err


# ---- one name for one thing


def test_every_command_that_takes_an_architecture_takes_a_model() -> None:
    for command in app.commands.values():
        takes = any(isinstance(p.type, ArchitectureName) for p in command.params)
        if takes or command.name in ("signoff", "sizes", "less-accurate"):
            assert any("--model" in p.opts for p in command.params), command.name


def test_k_and_timeout_are_called_so_everywhere() -> None:
    for command in app.commands.values():
        shown = {
            opt for p in command.params if isinstance(p, click.Option) and not p.hidden for opt in p.opts
        }
        assert not shown & {"--chain", "--seconds", "--orders", "--confirm-timeout"}, command.name


def test_old_names_of_options_are_taken(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["show", "ampere", "HMMA.1688.F32", "--json"]
    status, out, err = run(capsys, *words, "--chain", "16")
    assert (status, out, "") == run(capsys, *words, "--k", "16")
    assert err == "mmaformal: --chain is --k now; the old name goes with the next version\n"
    status, _, err = run(capsys, *words, "--k", "16", "--chain", "32")
    assert (status, err.splitlines()[-1]) == (
        2,
        "mmaformal: --k, and --chain, its old name: give one of them",
    )
    assert "--chain" not in run(capsys, "show", "--help")[1]
    (k,) = [p for p in app.commands["show"].params if isinstance(p, Renamed)]
    assert (k.opts, k.old) == (["--k"], ["--chain"])


def test_a_model_of_a_file_is_taken_where_it_was_refused(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    file = tmp_path / "own.py"
    file.write_text("from mmaformal import hopper\nacme = hopper['HMMA.1688.F32'].replace(F=20)\n")
    model, own = ["--model", f"{file}:acme"], "HMMA.1688.F32[F=20]"
    status, out, _ = run(capsys, "verilog", "acme", own, *model)
    assert status == 0
    assert "module acme_hmma_1688_f32_f_20_" in out
    words = ["max-difference", "acme", "hopper", own, "HMMA.1688.F32", "--timeout", "300"]
    status, out, _ = run(capsys, *words, *model)
    assert status == 0
    assert out.startswith(f"acme {own} and hopper HMMA.1688.F32: ")
    design = tmp_path / "no.sv"
    status, _, err = run(capsys, "signoff", str(design), "--against", "acme", own, *model)
    assert status == 2
    assert "acme" not in err  # the model is known; the design is what is missing


# ---- what is missing


def test_prove_without_a_property_says_which_there_are(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, err = run(capsys, "prove", "h100", "HMMA.16816.F32")
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert "which property of h100? `mmaformal prove PROPERTY h100 HMMA.16816.F32`, or --all" in err
    assert all(name in err for name in PROPERTY_NAMES)
    for words in (["prove"], ["prove", "exactness"], ["prove", "exactness", "hopper"], ["prove", "--all"]):
        status, out, err = run(capsys, *words)
        assert (status, out, err.count("\n")) == (2, "", 1)
    assert "no property 'exactnes'" in run(capsys, "prove", "exactnes", "hopper", "HMMA.16816.F32")[2]


def test_prove_all_is_a_table_of_every_property(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ["prove", "--all", "apple_amx", "fma16", "--timeout", "0.01", "--no-cache"]
    status, out, err = run(capsys, *words)
    assert (status, err) == (3, "")
    head, _, *rows = out.splitlines()
    assert head == "apple_amx fma16, every property for all inputs:"
    assert [row.split()[0] for row in rows] == list(PROPERTY_NAMES)
    assert all(row.split()[1] in ("Holds", "Fails", "Unknown") for row in rows)
    assert max(map(len, rows)) <= 120
    told = json.loads(run(capsys, *words, "--json")[1])
    assert list(told) == list(PROPERTY_NAMES)


def test_what_can_be_spelled_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    for name, kinds in (("datapath", datapaths.KINDS), ("emulation", emulations.SCHEMES)):
        status, out, _ = run(capsys, "show", name)
        assert status == 0
        for kind in kinds:
            assert f"  {kind}(" in out
    assert "frac_bits, [a], [b]" in " ".join(run(capsys, "show", "datapath")[1].split())


# ---- statuses, sizes


def test_diff_exit_code_is_that_of_git(capsys: pytest.CaptureFixture[str]) -> None:
    fixed = [f"{side}{k}=0x0" for side in "ab" for k in range(1, 8)] + ["a0=0x1000", "c=0x3f800000"]
    where = [word for each in fixed for word in ("--where", each)]
    assert run(capsys, "diff", "ampere", "hopper", "HMMA.1688.F32", *where)[0] == 0
    assert run(capsys, "diff", "ampere", "hopper", "HMMA.1688.F32", *where, "--exit-code")[0] == 1
    assert run(capsys, "diff", "hopper", "blackwell", "HMMA.1688.F32", "--exit-code")[0] == 0


def test_sizes_takes_kinds_and_instructions(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert KIND_NAMES == sizes.KINDS
    asked: list[str] = []

    def fake(instructions: list, *_: object) -> object:  # type: ignore[type-arg]
        for each in reversed(instructions):
            name = sizes.name_of(each)
            asked.append(name)
            yield sizes.DatapathSize(name, name.partition("(")[0], each.k, 24, "fp16", 1000, 10)

    monkeypatch.setattr(sizes, "measure_all", fake)
    status, out, err = run(capsys, "sizes", "h100 HMMA.16816.F32", "fda(k=4,frac_bits=24)", "--jobs", "1")
    assert status == 0
    assert asked == ["fda(k=4,frac_bits=24)", "hopper HMMA.16816.F32"]
    assert err.splitlines() == [f"{name}: 1,000 gates, 10 deep" for name in asked]  # as they come
    assert "| hopper HMMA.16816.F32 | 16 | 1,000 |" in out
    asked.clear()
    assert run(capsys, "sizes", "fma", "fda", "--k", "4", "--frac-bits", "8", "--jobs", "1")[0] == 0
    assert {name.partition("(")[0] for name in asked} == {"fma", "fda"}
    status, out, err = run(capsys, "sizes", "fdda")
    assert (status, out, err.count("\n")) == (2, "", 1)
