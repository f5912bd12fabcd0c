"""The playground's answers, without NumPy, against `dot_add`; and the pages against the tables they are made of."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from random import Random

import pytest
from support.site_rows import EXAMPLES, asked, expected

from mmaformal import ARCHITECTURES, hopper
from mmaformal.architectures import SPECIFIED_UNITS
from mmaformal.formats import fp16
from mmaformal.site.bundle import bundled_modules
from mmaformal.site.pages import witness_codes
from mmaformal.site.playground import UnreadableError, answer, typed_code
from mmaformal.site.records import Atlas, PropertyTable, shipped

ATLAS = Atlas(PropertyTable.read(shipped("properties.md").read_text(encoding="utf-8")))


@pytest.mark.parametrize("algorithm", sorted(EXAMPLES))
def test_it_gives_what_dot_add_gives(algorithm: str) -> None:
    i, random = EXAMPLES[algorithm], Random(algorithm)
    for _ in range(40):
        words = asked(i, random)
        (unit,) = json.loads(answer(json.dumps({"units": [i.label], **words})))["units"]
        assert int(unit["code"], 16) == expected(i, words), words


def test_it_runs_without_numpy_and_solvers() -> None:
    """With stand-ins in their place, as in a browser, and equal answers."""
    random = Random(1)
    rows = [(i.label, asked(i, random)) for i in EXAMPLES.values()]
    absent = Path(sys.modules[Atlas.__module__].__file__ or "").parent / "absent.py"
    program = (
        "import json, runpy, sys\n"
        f"runpy.run_path({str(absent)!r})['install']()\n"
        "from mmaformal.site.playground import answer\n"
        f"print(json.dumps([json.loads(answer(json.dumps(dict(words, units=[unit])))) for unit, words in {rows!r}]))\n"
        "assert sys.modules['numpy'].__class__.__name__ == 'AbsentModule'\n"
        "assert not {'z3', 'numba', 'click', 'rich'} & sys.modules.keys()\n"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    assert json.loads(ran.stdout) == [
        json.loads(answer(json.dumps({"units": [unit], **words}))) for unit, words in rows
    ]


def test_the_archive_has_every_algorithm_and_nothing_that_asks_solvers() -> None:
    names = bundled_modules().keys()
    assert {f"mmaformal.encodings.{name}.executable" for name in EXAMPLES} <= names
    assert not [name for name in names if ".smt" in name or ".proofs" in name or ".solver" in name]


def test_numbers_are_read_as_they_are_typed() -> None:
    assert [typed_code(word, fp16).code for word in ("1", "0x1p+0", "0x3c00", "0b11", "-inf", "", "1/2")] == [
        *(0x3C00, 0x3C00, 0x3C00, 3, 0xFC00, 0, 0x3800),
    ]
    assert typed_code("0.1", fp16).note
    for wrong in ("x", "0x10000", "1e9", "0xg"):
        with pytest.raises(UnreadableError):
            typed_code(wrong, fp16)


@pytest.mark.parametrize(
    ("units", "words", "said"),
    [
        (["hopper HMMA.1"], {}, "no instruction"),
        ([], {}, "choose"),
        (["hopper HMMA.16816.F32", "hopper DMMA.884"], {}, "same types"),
        (["hopper HMMA.16816.F32"], {"a": ["1"] * 17}, "16 places"),
        (["hopper HMMA.16816.F32"], {"b": ["0", "y"]}, "b[1]"),
    ],
)
def test_what_makes_no_sense_is_refused(units: list[str], words: dict[str, list[str]], said: str) -> None:
    assert said in json.loads(answer(json.dumps({"units": units, **words})))["error"]


def test_units_part_at_the_first_stage_that_differs() -> None:
    """Chained to one K too."""
    units = ["ampere HMMA.16816.F32", "hopper HMMA.16816.F32", "volta HMMA.884.F32.F32"]
    words = {"a": ["1024", "0.1"], "b": ["1024", "1"], "c": ["0x1p-3"]}
    two = json.loads(answer(json.dumps({"units": units[:2], **words})))
    assert two["parts"] == "align, a[1]·b[1]"
    assert json.loads(answer(json.dumps({"units": [units[1]] * 2, **words})))["parts"] == ""
    three = json.loads(answer(json.dumps({"units": units, **words})))
    assert three["k"] == 16
    assert [unit["code"] for unit in three["units"][:2]] == [unit["code"] for unit in two["units"]]


def test_printed_witnesses_give_what_is_printed() -> None:
    """Each of them that the playground takes is run: the page's link shows what the page says."""
    run = 0
    for (name, label), text in ATLAS.properties.witnesses.items():
        architecture, _, instruction = label.partition(" ")
        i = ARCHITECTURES[architecture][instruction]
        if (codes := witness_codes(i, text)) is None:
            continue
        (unit,) = json.loads(answer(json.dumps({"units": [label], **codes})))["units"]
        given = text.partition(" gives ")[2].split(",")[0].split(";")[0]
        assert unit["text"].split()[0] == given, (name, label)
        run += 1
    assert run > len(ATLAS.properties.witnesses) / 2


def test_every_instruction_has_verdicts_of_its_own_function() -> None:
    i = hopper["HMMA.16816.F32"]
    assert {other.spec for other in ATLAS.same_function(i)} == {i.spec}
    specified = {each.label for name in SPECIFIED_UNITS for each in ARCHITECTURES[name]}
    assert ATLAS.properties.signs.keys() <= {each.label for each in ATLAS.instructions} | specified
    assert set(ATLAS.verdicts(i)) == set(ATLAS.properties.statements)
