"""The experiments of narrow-range error analysis: resumed, compared, drawn; published curves made up here."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from mmaformal.cli import main
from mmaformal.studies.narrow_range import Model1
from mmaformal.studies.narrow_range.bounds import relative_error
from mmaformal.studies.narrow_range.experiments import (
    FIGURES,
    LENGTHS,
    Combination,
    CombinationErrors,
    combinations,
    growth,
    matrices,
    measure,
)
from mmaformal.studies.narrow_range.published import (
    Curve,
    CurveComparison,
    compare_curves,
    curve,
    published_table,
)
from mmaformal.studies.rows import read_rows


def published(folder: Path, each: Combination, factor: float) -> None:
    names = {"fp16": "binary16", "fp32": "binary32", "e4m3": "fp8-e4m3", "e5m2": "fp8-e5m2"}
    lines = ["n error bound error-nrl bound-nrl "]
    lines += [f"{n} {factor * 0.01 * n**-0.5:e} 1.0 {0.01 * n**-0.5:e} 1.0 " for n in LENGTHS]
    file = f"matmul_test_{names[each.input]}_{names[each.accumulation]}"
    file += f"_subnormals{each.subnormals:d}_words_{each.words}.dat"
    (folder / file).write_text("\n".join(lines) + "\n")


def made(each: Combination, n: int, error: float, nearest: float = 0.5) -> CombinationErrors:
    return CombinationErrors(
        *(each.input, each.accumulation, each.subnormals, each.words, n, 1),
        error=error,
        bound=1.0,
        error_unbounded=error / 2,
        bound_unbounded=1.0,
        nearest=nearest,
    )


def test_lengths_and_combinations_are_the_papers() -> None:
    assert len(LENGTHS) == 40
    assert (LENGTHS[:4], LENGTHS[-2:]) == ((10, 13, 18, 24), (744380, 1000000))
    assert [len(combinations([figure])) for figure in FIGURES] == [12, 18]


def test_matrices_are_as_the_paper_says() -> None:
    A, B = matrices(1000, seed=3)
    assert (A.shape, B.shape) == ((10, 1000), (1000, 10))
    for x in (A, B):
        assert (np.abs(np.log10(np.abs(x))) <= 10).all()
        assert abs(np.log10(np.abs(x)).mean()) < 0.3
        assert 0.45 < (x > 0).mean() < 0.55
    assert (matrices(1000, seed=3)[0] == A).all()
    assert (matrices(1000, seed=4)[0] != A).any()


def test_what_was_measured_is_not_measured_again(tmp_path: Path) -> None:
    file, wanted = tmp_path / "rows.jsonl", combinations(["5.1"])[:2]
    run = measure(wanted, file, (10, 13))
    first = [next(run) for _ in range(3)]
    run.close()
    assert [row.n for row in first] == [10, 10, 13]
    with file.open("a") as out:
        out.write('{"input": "e5')  # a line that was cut off
    again = list(measure(wanted, file, (10, 13)))
    assert [repr(row) for row in again[:3]] == [repr(row) for row in first]
    assert again == read_rows(file, CombinationErrors)
    assert len(again) == 4
    other = list(measure(wanted, file, (10,), seed=2))
    assert other[0].error != again[0].error
    assert len(read_rows(file, CombinationErrors)) == 6
    file.write_text("something else\n")
    with pytest.raises(ValueError, match="something else"):
        read_rows(file, CombinationErrors)


def test_a_violation_is_seen() -> None:
    each = combinations(["5.1"])[0]
    assert not made(each, 10, 0.5).violated
    for bad in (made(each, 10, 1.5), made(each, 10, 0.5, nearest=1.1)):
        assert bad.violated
    lost = made(each, 10, float("nan"))
    assert lost.overflowed
    assert lost.to_json()["error"] is None


def test_errors_of_one_sign_grow_as_the_root_and_then_faster() -> None:
    """Until what is added is less than half the distance between sums."""
    model = Model1.of("e4m3", "fp16")
    U, found = float(model.accumulation.u), [growth(model, n, one_sign=True) for n in (10, 100, 1000, 20_000)]
    assert found[0] < found[1] < found[2] < found[3] < 1
    for n, each in zip((10, 100, 1000), found, strict=False):
        assert 0.3 * n**0.5 * U < each < n**0.5 * U
    assert found[3] > 3 * 20_000**0.5 * U
    for n in (10, 1000, 20_000):
        assert growth(model, n, one_sign=False) < 3 * U


def test_curves_are_compared(tmp_path: Path) -> None:
    each = combinations(["5.1"])[0]
    published(tmp_path, each, 2.0)
    theirs = curve(tmp_path, each)
    assert theirs.slope == pytest.approx(-0.5, abs=1e-6)
    assert theirs.divergence(65504) == pytest.approx(2.0, rel=1e-5)
    ours = [made(each, n, 0.04 * n**-0.5) for n in LENGTHS]
    (found,) = compare_curves(ours, tmp_path)
    assert found.offset == pytest.approx(np.log10(2), abs=1e-5)
    assert found.scatter < 1e-5
    assert found.uncertainty < found.scatter + 1e-12
    text = published_table(ours, {each: found})
    assert "+0.30 ± 0.00" in text
    assert "× 2.00 | × 2.00" in text
    with pytest.raises(ValueError, match="in common"):
        CurveComparison.of(each, Curve.of(ours[:1]), theirs)
    (tmp_path / next(tmp_path.iterdir()).name).write_text("a b\n1 2\n")
    with pytest.raises(ValueError, match="not a published curve"):
        curve(tmp_path, each)


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given = tmp_path / "published"
    given.mkdir()
    for each in combinations(["5.1"]):
        published(given, each, 1.0)
    line = [
        "narrow-range",
        "5.1",
        "--out",
        str(tmp_path / "out"),
        "--published",
        str(given),
        "--largest",
        "13",
    ]
    assert main([*line, "--no-plot"]) == 0
    said = capsys.readouterr().out
    assert "24 errors; 0 exceed their bounds" in said
    assert said.count("| e5m2 | fp16 |") == 6
    assert main([*line, "--no-plot", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (len(told["rows"]), told["violated"]) == (24, 0)
    assert main([*line[:-1], "10", "--no-plot"]) == 2
    next(given.iterdir()).unlink()
    assert main([*line, "--no-plot"]) == 2
    assert "No such file" in capsys.readouterr().err
    assert {path.name for path in (tmp_path / "out").iterdir()} == {"figure-5.1.jsonl", "figure-5.1.md"}


@pytest.mark.parametrize("name", ["e2m1", "fp6-E3M2", "e4m3fnuz", "e5m2", "fp16", "bfloat16", "tf32"])
def test_any_format_is_measured(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    line = ["narrow-range", "--input", name, "--out", str(tmp_path), "--largest", "13", "--no-plot"]
    assert main(line) == 0
    said = capsys.readouterr().out
    assert "12 errors; 0 exceed their bounds" in said
    assert said.count(f"| {name} | fp32 |") == 6
    assert "nan" not in said
    assert main([*line, "--csv"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 1 + 12


def test_what_overflows_is_said_and_is_no_nan(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The second word of e2m3 without subnormals (`scaling.safe_theta`)."""
    line = ["narrow-range", "--input", "e2m3", "--sums", "fp16", "--out", str(tmp_path), "--largest", "10"]
    assert main([*line, "--no-plot"]) == 0
    said = capsys.readouterr().out
    assert "6 errors; 0 exceed their bounds; 2 overflow" in said
    assert said.count("overflows (n = 10)") == 2
    assert "nan" not in said
    assert main([*line, "--no-plot", "--json"]) == 0
    told = json.loads(capsys.readouterr().out, parse_constant=lambda name: pytest.fail(name))
    assert [row["error"] is None for row in told["rows"]].count(True) == told["overflowed"] == 2


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "a figure (5.1, 5.2), a theorem (3.1, 4.1), or --input FORMAT"),
        (["5.1", "--input", "e2m1"], "a figure"),
        (["5.1", "--sums", "fp16"], "--sums goes with --input"),
        (["--input", "fp17"], "no format 'fp17'"),
        (["--input", "fp32", "--sums", "fp16"], "accumulates no products of fp32"),
        (["--input", "fp16", "--sums", "fp64"], "no sums in fp64"),
        (["--input", "bf16", "--published", "."], "no curve of bf16 is published"),
    ],
)
def test_wrong_use_is_told(arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["narrow-range", *arguments, "--no-plot"]) == 2
    assert said in capsys.readouterr().err


def test_limits_of_narrower_formats_cost_more() -> None:
    """The conclusion of §6 is of fp8 and wider ones: fp4 and fp6 lose 1.2 to 4 times as much to their limits."""

    def cost(name: str, subnormals: bool) -> float:
        model = Model1.of(name, "fp32", subnormals=subnormals)
        A, B = matrices(1000, seed=1)
        found = [relative_error(x.C, A @ B, A, B) for x in (model.matmul(A, B), model.unbounded.matmul(A, B))]
        return found[0] / found[1]

    for name in ("e4m3", "e5m2"):
        assert cost(name, subnormals=False) < 1.01
    assert cost("e2m1", subnormals=False) > 1.4
    assert cost("e2m3", subnormals=False) > 4
    assert cost("e2m3", subnormals=True) > 1.5


@pytest.mark.slow
def test_the_figure_is_drawn(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    assert main(["narrow-range", "5.1", "--out", str(tmp_path), "--largest", "18"]) == 0
    assert (tmp_path / "figure-5.1.png").stat().st_size > 10_000
