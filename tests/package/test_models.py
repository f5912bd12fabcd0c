"""Units that users define in files of their own: the example, and what goes wrong."""

from __future__ import annotations

import json
import runpy
from pathlib import Path

import pytest

from mmaformal import ARCHITECTURES, cli, hopper
from mmaformal.architectures.models import ModelError, known_models, load

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "own_unit.py"
ACME = f"{EXAMPLE}:acme"


def told(capsys: pytest.CaptureFixture[str], *argv: str) -> tuple[int, str, str]:
    status = cli.main(list(argv))
    return (status, *capsys.readouterr())


def test_a_model_is_an_architecture_as_the_others_while_the_command_runs(
    capsys: pytest.CaptureFixture[str],
) -> None:
    status, out, _ = told(capsys, "list", "--model", ACME, "acme", "--json")
    assert (status, [each["name"] for each in json.loads(out)]) == (0, ["DOT.32.E3M4", "DOT.16.F16"])
    assert "acme" not in ARCHITECTURES
    assert told(capsys, "list", "acme")[0] == 2
    status, out, _ = told(capsys, "show", "acme", "dot.32.e3m4", "--model", ACME)
    assert (status, "keeps 20 fractional bits" in out) == (0, True)
    # 1.0625 is 0x31 in e3m4: 1 sign, 3 exponent and 4 fraction bits, bias 3
    status, out, _ = told(
        capsys, *("run", "--model", ACME, "acme", "DOT.32.E3M4"), *("--a", "1.0625", "--b", "0x31", "--pad")
    )
    assert status == 0
    assert "0x1.21p+0" in out


@pytest.mark.slow
def test_a_model_is_compared(capsys: pytest.CaptureFixture[str]) -> None:
    words = ("diff", "--model", ACME, "hopper", "acme", "HMMA.16816.F32", "DOT.16.F16", "--json")
    status, out, _ = told(capsys, *words)
    answer = json.loads(out)
    assert (status, answer["answer"]) == (0, "different")


def test_a_model_is_verified(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, err = told(capsys, "verify", "--model", ACME, "acme", "DOT.32.E3M4")
    assert (status, "1 proved" in out) == (0, True), err


def test_the_example_has_what_it_says() -> None:
    acme = runpy.run_path(str(EXAMPLE))["acme"]
    half = acme["DOT.16.F16"]
    one, tiny = (
        0x3C00,
        0x0001,
    )  # 1 and 2^-24: what is below 2^(0 - 20) is cut off, in this unit and not in hopper's
    a, b = [one, *[tiny] * 15], [one, *[one] * 15]
    assert int(half.dot_add(a, b, 0)) == 0x3F800000
    assert int(hopper["HMMA.16816.F32"].dot_add(a, b, 0)) > 0x3F800000
    a = [one, *[tiny] * 3, *[0x0010] * 12]  # 2^-20 is kept
    assert int(half.dot_add(a, b, 0)) == 0x3F800000 + 12 * 2**3
    a = [tiny] * 4 + [one] + [tiny] * 11  # the block before the large one loses nothing, until it is its c
    assert int(half.dot_add(a, b, 0)) == 0x3F800000


FILES = {
    "broken": (
        "from mmaformal.formats import Format, Specials\n\nFormat('x', 8, 0, 3, 3, Specials.IEEE)\n",
        3,
    ),
    "syntax": ("1 +\n", 1),
    "leaves": ("import sys\nsys.exit('no')\n", 2),
}


@pytest.mark.parametrize("name", FILES)
def test_a_file_that_cannot_be_run_is_told_with_its_line(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text, line = FILES[name]
    path = tmp_path / "unit.py"
    path.write_text(text)
    status, out, err = told(capsys, "list", "--model", f"{path}:unit")
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert err.startswith(f"mmaformal: --model: {path}, line {line}: ")


@pytest.mark.parametrize(
    ("model", "words"),
    [
        ("nothing", "a model is FILE.py:NAME, not 'nothing'"),
        ("{folder}/none.py:x", "none.py: No such file or directory"),
        ("{folder}/unit.txt:x", "a model is in a file of Python"),
        ("{folder}/unit.py:missing", "unit.py has no missing: it has mine, other"),
        ("{folder}/unit.py:number", "number of {folder}/unit.py is no Architecture or Instruction, but 7"),
        ("{folder}/unit.py:taken", "there is a Hopper already; call the model by another name"),
        (
            "{folder}/unit.py:revision",
            "'a@b' is no name for an architecture: @ parts a name from a revision's",
        ),
    ],
)
def test_what_is_no_model_is_told(
    model: str, words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "unit.txt").touch()
    (tmp_path / "unit.py").write_text(
        "from mmaformal import Architecture, ampere\n"
        "mine = ampere['HMMA.1688.F32'].replace(F=3)\nother, number = mine, 7\n"
        "def __getattr__(name):\n"
        "    names = {'taken': 'Hopper', 'revision': 'a@b'}\n"
        "    if name in names: return Architecture(names[name], '', [mine])\n"
        "    raise AttributeError(name)\n"
    )
    status, out, err = told(capsys, "list", "--model", model.format(folder=tmp_path))
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert words.format(folder=tmp_path) in err


def test_an_instruction_is_an_architecture_of_its_name(tmp_path: Path) -> None:
    path = tmp_path / "unit.py"
    path.write_text(
        "from mmaformal import hopper\nmine = hopper['HMMA.1688.F32'].replace(F=3, name='HMMA')\n"
    )
    model = load(f"{path}:mine")
    assert [each.label for each in model] == ["mine HMMA"]
    with known_models(model):
        assert ARCHITECTURES["mine"]["HMMA"].parameters["F"] == 3
        with pytest.raises(ModelError), known_models(model):
            raise AssertionError
    assert "mine" not in ARCHITECTURES
