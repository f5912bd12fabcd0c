"""Drawings: the accumulator to scale, terms aligned in a terminal, a bound against K; in notebooks as SVG."""

from __future__ import annotations

import re
from itertools import pairwise
from xml.etree import ElementTree

import pytest

from mmaformal import ARCHITECTURES, ampere, hopper, probe
from mmaformal.accumulator import sum_width
from mmaformal.bits import draw_witness
from mmaformal.cli import diff, main, run, show
from mmaformal.corridor import bands, corridor_text
from mmaformal.site.curves import curve_points, error_svg
from mmaformal.site.records import UnitBound
from mmaformal.witness import Witness

EVERY = [i for architecture in ARCHITECTURES.values() for i in architecture]


def test_every_place_of_a_sum_is_one_character() -> None:
    for i in EVERY:
        drawn = corridor_text(i.spec, 200)
        width = sum_width(i.spec)
        if not drawn:
            assert not bands(i.spec)
            continue
        assert width is not None
        arrow, first = drawn.splitlines()[1:3]
        inside = first[len("sum of a step") :].lstrip()
        assert len(re.split("┄", inside, maxsplit=1)[0]) == width.total, i.label
        places = first.index(inside) + width.total  # the last place that is kept is left of it
        assert places - arrow.index("↓") - 1 == i.parameters.kept_places(i.spec), i.label


def test_what_does_not_fit_is_not_drawn() -> None:
    spec = hopper["HMMA.16816.F32"].spec
    drawn = corridor_text(spec, 80)
    widest = max(map(len, drawn.splitlines()))
    assert widest <= 80
    assert corridor_text(spec, 40) == ""


@pytest.mark.parametrize("columns", [None, 100, 30])
def test_a_wide_terminal_shows_them(
    columns: int | None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for command in (show, diff, run):
        monkeypatch.setattr(command, "width", lambda: columns)
    wanted = columns == 100
    assert main(["show", "hopper", "HMMA.16816.F32"]) == 0
    assert ("drawn to scale:" in capsys.readouterr().out) == wanted
    assert main(["run", "hopper", "HMMA.16816.F32", "--a", "1,2^-20", "--b", "1", "--c", "1", "--pad"]) == 2
    capsys.readouterr()
    assert main(["run", "hopper", "HMMA.16816.F32", "--a", "1", "--b", "1", "--c", "0x1p-30", "--pad"]) == 0
    assert ("what is right of it is cut off" in capsys.readouterr().out) == wanted
    assert main(["diff", "ampere", "hopper", "HMMA.16816.F32"]) == 0
    out = capsys.readouterr().out
    assert ("terms of ampere HMMA.16816.F32" in out) == wanted
    assert ("terms of hopper HMMA.16816.F32" in out) == wanted


def test_json_has_no_drawing(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    for command in (show, diff, run):
        monkeypatch.setattr(command, "width", lambda: 200)
    assert main(["show", "hopper", "HMMA.16816.F32", "--json"]) == 0
    assert main(["diff", "ampere", "hopper", "HMMA.16816.F32", "--json", "--timeout", "60"]) == 0
    assert "terms of" not in capsys.readouterr().out


def test_terms_of_a_witness_are_those_of_both_models() -> None:
    one, zeros = 0x3C00, [0] * 15
    witness = Witness.of(
        ampere["HMMA.16816.F32"], hopper["HMMA.16816.F32"], [one, *zeros], [one, *zeros], 0xB3000000
    )
    drawn = draw_witness((witness.x, witness.y), witness.ints, 100)
    assert "-.........................|1" in drawn  # Ampere cuts off what Hopper keeps
    assert "-.........................1|" in drawn
    assert draw_witness((witness.x, witness.y), witness.ints, 20) == ""


def test_notebooks_have_them_as_svg() -> None:
    unit = hopper["HMMA.16816.F32"]
    html = unit._repr_html_()
    ElementTree.fromstring(html[html.index("<svg") : html.index("</svg>") + 6])
    small = unit.replace(k=4, L=4)
    html = probe(small)._repr_html_()
    assert html.count("<svg") == 1
    ElementTree.fromstring(html[html.index("<svg") : html.index("</svg>") + 6])


def test_a_bound_is_drawn_against_the_number_of_products() -> None:
    bound = UnitBound(16, "15.5", "25", "RZ-FP32", "10", "1,000", "0.5")
    ks, offs = zip(*curve_points(bound), strict=True)
    assert ks[:3] == (16, 32, 64)
    assert all(x < y for x, y in pairwise(offs))
    root = ElementTree.fromstring(error_svg(bound))
    line = next(x for x in root.iter() if x.tag.endswith("polyline")).attrib["points"].split()
    heights = [float(each.split(",")[1]) for each in line]
    assert len(line) == len(ks)
    assert heights == sorted(heights, reverse=True)
    assert error_svg(UnitBound(16, "0", "", "RZ-FP32", "0", "1,000", "")) == ""
