"""How large datapaths are: what is measured, kept and told."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from mmaformal.hardware import sizes
from mmaformal.hardware.module import HardwareError
from mmaformal.hardware.sizes import DatapathSize, in_markdown, measure_all, points
from mmaformal.spec import DotAdd

yosys = pytest.mark.skipif(not shutil.which("yosys"), reason="there is no yosys (Debian: yosys)")

ROW = DatapathSize("fda(k=2,frac_bits=24,a=bf16)", "fda", 2, 24, "bf16", cells=1000, depth=50)


def test_what_is_measured() -> None:
    names = [each.name for each in points(groups=(4, 16), frac_bits=(8, 24))]
    assert names[:2] == ["mul_add(k=1,a=bf16)", "fma(k=1,a=bf16)"]
    assert len(names) == len(set(names)) == 2 + 2 * 3
    with pytest.raises(ValueError, match="no organisation"):
        points(kinds=["gfda"])


@yosys
def test_more_bits_and_products_are_more_gates(tmp_path: Path) -> None:
    out = tmp_path / "rows.jsonl"
    chosen = points(kinds=["fda"], groups=(2,), frac_bits=(), a="e2m1")
    chosen += points(kinds=["fda"], groups=(4,), frac_bits=(), a="e2m1")
    rows = list(measure_all(chosen, out))
    assert [row.k for row in rows] == [2, 4]
    assert 0 < rows[0].cells < rows[1].cells
    assert 0 < rows[0].depth <= rows[1].depth
    assert list(measure_all(chosen, out)) == rows  # from the file


def test_rows_that_are_there_are_not_measured_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fake(name: str, timeout: float, spec: DotAdd) -> DatapathSize:
        made.append(name)
        assert spec.a_format.name == "bf16"
        return replace(ROW, datapath=name)

    made: list[str] = []
    monkeypatch.setattr(sizes, "measure_one", fake)
    out, chosen = tmp_path / "rows.jsonl", points(kinds=["fda"], groups=(2, 4), frac_bits=())
    list(measure_all(chosen[:1], out))
    list(measure_all(chosen, out))
    assert made == [each.name for each in chosen]


def test_a_file_of_anything_else(tmp_path: Path) -> None:
    out = tmp_path / "rows.jsonl"
    out.write_text("{}\n", encoding="utf-8")
    with pytest.raises(HardwareError, match="no row of sizes"):
        list(measure_all(points(kinds=["fda"]), out))


def test_a_group_of_fmas_is_a_chain() -> None:
    fma = DatapathSize("fma(k=1,a=bf16)", "fma", 1, None, "bf16", cells=300, depth=20)
    assert "| 2 | 300 (40) | 500 (50) |" in in_markdown([fma, ROW])
