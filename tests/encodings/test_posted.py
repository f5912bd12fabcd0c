"""Rows of hardware that were posted in public issues, as recordings."""

from __future__ import annotations

from pathlib import Path

import pytest

from mmaformal import hopper
from mmaformal.recordings import check, read

POSTED = Path(__file__).parents[2] / "examples" / "posted_h100.csv"


@pytest.mark.parametrize("name", ["HMMA.16816.F32.BF16", "HGMMA.64x8x16.F32.BF16"])
def test_an_h100_on_subnormal_products(name: str) -> None:
    report = check(read(POSTED), hopper[name])
    assert (report.rows, report.mismatches) == (1, 0)


def test_a_unit_with_two_places_less_gives_another_result() -> None:
    """The model gave this by its authors' reading: two extra bits of alignment were missing."""
    assert check(read(POSTED), hopper["HMMA.16816.F32.BF16"].replace(F=23)).mismatches == 1
