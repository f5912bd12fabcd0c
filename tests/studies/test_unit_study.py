"""The unit-level study: its statistics are those of exact arithmetic, runs go on, and widths rest on proofs."""

from __future__ import annotations

import csv
import io
import json
import statistics
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from mmaformal import cli
from mmaformal.architectures import datapaths
from mmaformal.formats import FORMATS, fp16, fp32
from mmaformal.studies.rows import read_rows
from mmaformal.studies.unit_study import enough_width
from mmaformal.studies.unit_study import errors as study
from mmaformal.studies.unit_study import tables as unit_tables
from mmaformal.studies.unit_study.enough_width import enough, is_enough


@pytest.mark.parametrize("kind", study.KINDS)
@pytest.mark.parametrize("a", ["fp16", "bf16", "e4m3"])
def test_statistics_are_those_of_exact_arithmetic(kind: str, a: str) -> None:
    design, count = study.Design(kind, a, "RNE-FP32", "RZ", 4, 10), 60
    row, s, fmt, i = (
        study.measured_unit(design, count, 3),
        study.samples(FORMATS[a], 4, count, 3),
        FORMATS[a],
        design.instruction,
    )
    squares, d, x = [], [], []
    for n in range(count):
        exact = fp32.value(int(s.c[n]))
        exact += sum(fmt.value(int(p)) * fmt.value(int(q)) for p, q in zip(s.a[n], s.b[n], strict=True))
        result = fp32.value(int(i.dot_add(s.a[n], s.b[n], s.c[n])))
        squares.append((result - exact) ** 2)
        d.append(result)
        x.append(exact)
    assert row.mse == pytest.approx(float(statistics.mean(squares)), rel=1e-12)
    assert row.variance_of_squared_error == pytest.approx(float(statistics.pvariance(squares)), rel=1e-9)
    ratio = statistics.pvariance(d) / statistics.pvariance(x)
    assert row.variance_retention_ratio == pytest.approx(float(ratio), rel=1e-12)


def test_exact_results_are_exact() -> None:
    s = study.samples(fp16, 8, 40, 1)
    for n in range(40):
        exact = fp32.value(int(s.c[n])) + sum(
            fp16.value(int(p)) * fp16.value(int(q)) for p, q in zip(s.a[n], s.b[n], strict=True)
        )
        assert abs(Fraction(s.high[n]) + Fraction(s.low[n]) - exact) <= abs(exact) * Fraction(1, 2**100)


def test_a_run_goes_on(tmp_path: Path) -> None:
    file, wanted = tmp_path / "rows.jsonl", study.designs(kinds=["fda"], groups=[2], frac_bits=range(8, 12))
    first = list(study.measure_errors(wanted[:2], file, 50))
    with file.open("a") as out:
        out.write('{"kind": "fda", "a"')  # killed while it wrote
    whole = list(study.measure_errors(wanted, file, 50, jobs=2))
    assert whole[:2] == first
    assert [row.design for row in whole] == wanted
    assert len(file.read_text().splitlines()) == 4
    assert list(study.measure_errors(wanted, file, 50)) == whole
    file.write_text("something else\n")
    with pytest.raises(ValueError, match="something else"):
        read_rows(file, study.DatapathErrors)


def rows(values: list[float], metric: str = "mse") -> list[study.DatapathErrors]:
    given = dict.fromkeys(study.METRICS, 1.0)
    return [
        study.DatapathErrors("fda", "fp16", "RNE-FP32", "RZ", 4, 8 + n, 10, 1, **(given | {metric: value}))
        for n, value in enumerate(values)
    ]


def test_from_where_a_curve_stays() -> None:
    curve = rows([8.0, 1.0, 4.0, 1.02, 0.98, 1.0])
    assert study.settled_from(curve, "mse") == 11
    assert study.below_from(curve, "mse", 2.0) == 11
    assert study.below_from(curve, "mse", 0.5) is None
    assert study.within_from(rows([1.1, 0.9999, 1.2, 1.00001], "variance_retention_ratio"), 1e-3) == 11


# ---- the width that is enough ----------------------------------------------------------------------------------------


def test_the_width_that_is_enough_is_proved_and_least() -> None:
    def design(F: int) -> Any:
        return datapaths.fda(k=2, frac_bits=F, a="e2m1", rho="RNE-E8M5")

    found = enough(design, timeout=40)
    assert found is not None
    assert found.proved
    assert found.obligations > 50
    assert found.n < 2 ** (found.F - 6)
    assert found.before >= 2 ** (found.F - 7)
    assert not is_enough(design(found.F - 1), found.F - 1)
    assert is_enough(design(found.F + 1), found.F + 1, cancelled=1)


def test_a_bound_that_is_not_the_proved_one_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    real = enough_width.n_and_p
    monkeypatch.setattr(enough_width, "n_and_p", lambda i: (real(i)[0] / 4, real(i)[1]))
    found = enough(lambda F: datapaths.fda(k=2, frac_bits=F, a="e2m1", rho="RNE-E8M5"), timeout=40)
    assert found is not None
    assert not found.proved


def test_a_sum_of_many_binades_needs_as_many_bits_more() -> None:
    def least(cancelled: int) -> int:
        return next(F for F in range(2, 49) if is_enough(datapaths.sda(k=16, frac_bits=F), F, cancelled))

    assert [least(g) - least(0) for g in (1, 5)] == [1, 5]


# ---- the command -----------------------------------------------------------------------------------------------------


def test_the_command_writes_rows_and_a_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    argv = ["unit-study", "--out", str(tmp_path), "--samples", "20", "--no-proof", "--no-plot"]
    assert cli.main(argv) == 0
    printed = capsys.readouterr().out
    assert "| fda | 16 |" in printed
    assert (tmp_path / "unit-study-fp16-RNE-FP32-RZ.md").read_text() == printed
    assert cli.main([*argv, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert len(told["rows"]) == len(study.designs())
    assert told["widths"] == []
    found = [study.DatapathErrors(**row) for row in told["rows"]]
    assert unit_tables.unit_table(found, {}) + "\n" == printed
    assert cli.main([*argv, "--csv"]) == 0
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    cells = [[cell.strip() for cell in line.split("|")[1:-1]] for line in printed.splitlines()]
    assert [*rows[0]] == cells[0]
    assert [[value or "–" for value in row.values()] for row in rows[1:]] == cells[3:]


def test_wrong_use_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    argv = ["unit-study", "--out", str(tmp_path), "--no-plot", "--no-proof"]
    assert cli.main([*argv, "--rho", "RNE-FP17"]) == 2
    assert "no ρ named 'RNE-FP17'" in capsys.readouterr().err


def test_the_figure_is_drawn(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    found = list(
        study.measure_errors(study.designs(groups=[2, 4], frac_bits=(8, 12)), tmp_path / "rows.jsonl", 20)
    )
    unit_tables.draw_unit_study(found, {("fda", 2): 12}, tmp_path / "figure.png", title="a test")
    assert (tmp_path / "figure.png").stat().st_size > 10_000
