"""`mmaformal list --sources` and `--source`: papers and manuals, and the parameters that each gives."""

from __future__ import annotations

import json

import pytest

from mmaformal import ARCHITECTURES
from mmaformal.architectures.papers import PAPERS, UnknownSourceError, resting_on, source_named
from mmaformal.cli import main


def test_every_source_is_listed_with_what_rests_on_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list", "--sources", "--json"]) == 0
    rows = {each["source"]: each for each in json.loads(capsys.readouterr().out)}
    assert list(rows) == list(PAPERS)
    power = [i for i in ARCHITECTURES["power10"] if any("Power ISA" in text for text in i.sources.values())]
    assert power
    assert rows["Power ISA"]["instructions"] == len(power)
    assert rows["Power ISA"]["architectures"] == ["power10"]
    assert rows["ISE"]["architectures"] == ["diamond_rapids"]  # specified, never run


def test_a_source_has_each_parameter_that_it_gives(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list", "--source", "corsix", "--json"]) == 0
    told = {(x["architecture"], x["instruction"]): x for x in json.loads(capsys.readouterr().out)}
    for i in ARCHITECTURES["apple_amx"]:
        given = {p: text for p, text in i.sources.items() if "corsix/amx" in text}
        if given:
            assert told.pop(("apple_amx", i.name))["where"] == given
    assert {architecture for architecture, _ in told} <= {"apple_amx"}


def test_it_is_told_by_parameter_and_place(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list", "--source", "mma-sim"]) == 0
    text = capsys.readouterr().out
    assert "F\n  MMA-Sim §IV-C step 3, Table III\n    23: 3 instructions of volta\n" in text
    assert max(map(len, text.splitlines())) <= 80


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("spik", "Spike"),
        ("emulator", "several sources have 'emulator': ISE, QEMU 7.2"),
        ("moon", "no source is called"),
    ],
)
def test_names_are_found_or_said_to_be_none(name: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    if said in PAPERS:
        assert source_named(name) == said
        return
    with pytest.raises(UnknownSourceError, match=said):
        source_named(name)
    assert main(["list", "--source", name]) == 2
    assert "`mmaformal list --sources` has all" in capsys.readouterr().err


def test_a_source_rests_on_nothing_of_others() -> None:
    assert resting_on("Spike", ARCHITECTURES["hopper"]) == []
