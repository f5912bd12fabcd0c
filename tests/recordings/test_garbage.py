"""Files that nobody should hand in: one line and status 2, or a true report; no traceback, no wrong match."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.recorded import meta, padded, save
from support.slow import slow

from mmaformal import cli, hopper, volta
from mmaformal.queries.diagnose import diagnose
from mmaformal.recordings import CheckReport, check_file, read, write

VOLTA, HOPPER = volta["HMMA.884.F32.F32"], hopper["HMMA.16816.F32"]
HALF = (np.arange(300) % 2 * 0x7E00).astype(np.uint16)[:, None]


@pytest.fixture(scope="module")
def rows() -> dict[str, Any]:
    """Outputs of volta on ordinary numbers."""
    rng = np.random.default_rng(1)
    a, b = (rng.normal(size=(300, 4)).astype(np.float16).view(np.uint16) for _ in "ab")
    c = rng.normal(size=300).astype(np.float32).view(np.uint32)
    return {"a": a, "b": b, "c": c, "d": VOLTA.dot_add(a, b, c), "meta": meta(VOLTA, 4)}


def by_hopper(rows: dict[str, Any]) -> Any:
    return HOPPER.dot_add(padded(rows["a"], 16), padded(rows["b"], 16), rows["c"])


def mixed(rows: dict[str, Any]) -> dict[str, Any]:
    """Rows of two units, in turn."""
    return {"d": np.where(np.arange(300) % 2, rows["d"], by_hopper(rows))}


TELLING: dict[str, tuple[Callable[[dict[str, Any]], dict[str, Any]], bool]] = {
    "as they are": (lambda x: {}, True),
    "a and b swapped": (lambda x: {"a": x["b"], "b": x["a"]}, True),  # a product is the same, and so is the sum
    "c and d swapped": (lambda x: {"c": x["d"], "d": x["c"]}, False),
    "of two units": (mixed, False),
    "of another unit": (lambda x: {"d": by_hopper(x)}, False),
    "one bit of one row": (lambda x: {"d": x["d"] ^ (np.arange(300) == 37).astype(np.uint32)}, False),
    "d of the row before": (lambda x: {"d": np.roll(x["d"], 1)}, False),
    "d is all NaN": (lambda x: {"d": np.full_like(x["d"], 0x7FFFFFFF)}, False),
    "NaNs in half the rows": (lambda x: {"a": x["a"] | HALF}, False),
}  # fmt: skip


@pytest.mark.parametrize("name", TELLING)
def test_a_report_is_true(rows: dict[str, Any], tmp_path: Path, name: str) -> None:
    change, matches = TELLING[name]
    arrays = rows | change(rows)
    path = save(tmp_path / "x.npz", arrays)
    report = check_file(path)
    assert isinstance(report, CheckReport)
    modelled = VOLTA.dot_add(arrays["a"], arrays["b"], arrays["c"])
    assert report.mismatches == (modelled != arrays["d"]).sum()
    assert (report.mismatches == 0) == matches


@pytest.mark.parametrize("name", slow(["as they are", "of two units", "one bit of one row"], ["as they are"]))
def test_a_diagnosis_is_true(rows: dict[str, Any], tmp_path: Path, name: str) -> None:
    change, matches = TELLING[name]
    path = save(tmp_path / "x.npz", rows | change(rows))
    found = diagnose(path, only=["fda"], timeout=120, jobs=1)
    assert bool(found) == matches


NOTHING: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    "one row": lambda x: {n: x[n][:1] for n in "abcd"},
    "zeros": lambda x: {n: x[n] * 0 for n in "abcd"},
    "NaNs": lambda x: {"a": x["a"] | 0x7E00, "d": np.full_like(x["d"], 0x7FFFFFFF)},
}


@pytest.mark.parametrize("name", slow(NOTHING, list(NOTHING)))
def test_rows_that_tell_nothing_are_explained_by_much(
    rows: dict[str, Any], tmp_path: Path, name: str
) -> None:
    few = {n: rows[n][:20] for n in "abcd"}
    path = save(tmp_path / "x.npz", rows | few | NOTHING[name](few))
    assert check_file(path).exit_code == 0
    found = diagnose(path, only=["gps", "fdrda"], timeout=120, jobs=1)
    assert found.explained_by > 100
    assert len(found.families) > 10


def test_what_is_no_recording_is_one_line(
    rows: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = save(tmp_path / "x.npz", rows)
    write(read(whole), tmp_path / "x.csv")
    for path in (whole, tmp_path / "x.csv"):
        content = path.read_bytes()
        for damaged in (b"", content[:-40], content[: len(content) // 2], content[::-1], b"\0" * 100):
            path.write_bytes(damaged)
            for command in ("check", "diagnose"):
                assert cli.main([command, str(path)]) == 2
                told = capsys.readouterr()
                assert len((told.out + told.err).splitlines()) == 1
                assert "Traceback" not in told.err
