"""`--csv` and `--latex`: what commands print as a table is CSV or LaTeX, with a line for each row."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest
from test_cli import run

from mmaformal import PROPERTIES, probe, volta
from mmaformal.architectures.products import PRODUCTS
from mmaformal.cli import prove as prove_command
from mmaformal.cli.app import app
from mmaformal.display import latex_text
from mmaformal.hardware import sizes
from mmaformal.queries.properties import OF_A_STANDARD
from mmaformal.solver.answers import Unknown
from mmaformal.studies.amx.prover import STATEMENTS

#: Commands that print a table, always or with an option.
WITH_TABLES = (
    *("list", "check", "prove", "verify", "e9s12", "amx", "roundoff", "sizes", "unit-study"),
    *("narrow-range", "less-accurate", "fingerprint", "probe", "training"),
)
POINT = "fda(k=2,frac_bits={},a=e4m3)"


def table(capsys: pytest.CaptureFixture[str], *argv: str) -> list[dict[str, str]]:
    """The rows of the CSV; the LaTeX has as many, in ASCII."""
    status, text, _ = run(capsys, *argv, "--csv")
    rows = list(csv.DictReader(io.StringIO(text)))
    again, latex, _ = run(capsys, *argv, "--latex")
    lines = latex.splitlines()
    assert status == again
    assert lines[0].startswith(r"\begin{tabular}")
    assert len(lines) == len(rows) + 6
    assert latex.isascii()
    return rows


def test_every_command_that_prints_a_table_has_both_options() -> None:
    found = {
        name
        for name, command in app.commands.items()
        if {"--csv", "--latex"} <= {opt for p in command.params for opt in p.opts}
    }
    assert found == set(WITH_TABLES)


def test_lists(capsys: pytest.CaptureFixture[str]) -> None:
    told = table(capsys, "prove", "--list")
    assert {row["property"]: row["statement"] for row in told} == {
        each.name: each.statement for each in (*PROPERTIES.values(), *OF_A_STANDARD.values())
    }
    assert {row["claim"]: row["statement"] for row in table(capsys, "amx", "--list")} == dict(STATEMENTS)
    assert "rounded" in [row["claim"] for row in table(capsys, "e9s12", "--list")]
    assert [row["architecture"] for row in table(capsys, "list", "--devices")] == [
        each.architecture for each in PRODUCTS
    ]


def test_prove_all(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def asked(name: str, *_: object) -> Unknown:
        return Unknown(name, f"{name} & more", (), 0.0)

    monkeypatch.setattr(prove_command, "_asked", asked)
    words = ["volta", "HMMA.884.F16.F16", "--no-cache"]
    wanted = [
        {"property": name, "answer": "unknown", "found": f"{name} & more"}
        for name in prove_command.PROPERTY_NAMES
    ]
    assert table(capsys, "prove", "--all", *words) == wanted
    assert table(capsys, "prove", wanted[3]["property"], *words) == [wanted[3]]


def test_claims(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    from mmaformal.studies.e9s12.prover import E9s12Prover

    monkeypatch.setattr(E9s12Prover, "prove", lambda _, claim, name, __: Unknown(claim, name, (), 1.25))
    told = table(capsys, "e9s12", "fma", "--instruction", "DP4A.BF16", "--no-cache")
    assert told == [
        *(
            {
                "instruction": "DP4A.BF16",
                "claim": "fma",
                "answer": "unknown",
                "found": "DP4A.BF16",
                "seconds": "1.2",
            },
        )
    ]


def test_roundoff(capsys: pytest.CaptureFixture[str]) -> None:
    (row,) = table(capsys, "roundoff", "e2m1", "--no-cache")
    assert (row["format"], row["answer"]) == ("e2m1", "holds")
    assert "u = " in row["found"]


def test_sizes(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def fake(instructions: list[Any], *_: object) -> object:
        yield from (
            sizes.DatapathSize(each.name, "fda", each.k, 8, "e4m3", 1000, 10) for each in instructions
        )

    monkeypatch.setattr(sizes, "measure_all", fake)
    (row,) = table(capsys, "sizes", POINT.format(8), "--jobs", "1")
    assert (row["datapath"], row["cells"], row["per_product"]) == (POINT.format(8), "1000", "500.0")


def test_what_has_no_table_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    for words in (["narrow-range", "3.1"], ["less-accurate", "ootomo(hopper HMMA.16816.F32)", "--never"]):
        status, out, err = run(capsys, *words, "--csv")
        assert (status, out, err.count("\n")) == (2, "", 1)
        assert "--csv and --latex" in err


def test_what_was_probed_is_a_table(tmp_path: Path) -> None:
    found = probe(volta["HMMA.884.F32.F32"], check=0)
    rows = list(csv.DictReader(io.StringIO(found.to_csv(tmp_path / "probed.csv"))))
    assert rows == found.rows()
    told = {row["about"]: row["found"] for row in rows}
    assert told["accumulator"] in found.summary
    assert told["a subnormal c"] == "kept"
    assert all(row["found"] in str(found) for row in rows if "; " not in row["found"])
    assert (tmp_path / "probed.csv").read_text() == found.to_csv()
    assert found.to_latex().isascii()


def test_latex_escapes_what_it_would_read_as_commands() -> None:
    text = latex_text(
        [{"_": "a_b & 5 % # {x} $y$ ~ ^ \\", "ρ": "Σ a·b ≤ 2² × −1"}, {"_": "[1]", "ρ": "two\nlines"}]
    )
    head, first, second = (text.splitlines()[i] for i in (2, 4, 5))
    assert head == r"\_ & $\rho$ \\"
    assert first.startswith(
        r"a\_b \& 5 \% \# \{x\} \$y\$ \textasciitilde{} \textasciicircum{} \textbackslash{} & "
    )
    assert first.endswith(r"$\Sigma$ a$\cdot$b $\leq$ 2$^2$ $\times$ $-$1 \\")
    assert second == r"{}[1] & two lines \\"  # [ would be an argument of the line before


# ---- what a product of matrices sees


def test_diff_gemm_is_about_c_zero(capsys: pytest.CaptureFixture[str]) -> None:
    """One of two products is 1; without --gemm the smallest input has a c for the other one."""
    names = [f"fda(k=2,frac_bits={bits},a=e2m1)" for bits in (1, 2)]
    ones = [word for side in "ab" for word in ("--where", f"{side}1=0x2")]
    status, out, _ = run(
        capsys, "diff", "datapath", "datapath", *names, *ones, "--gemm", "--json", "--no-cache"
    )
    told = json.loads(out)
    assert (status, told["answer"]) == (0, "different")
    assert int(told["witness"]["c"], 16) == 0
    assert int(told["witness"]["a"][0], 16) != 0
