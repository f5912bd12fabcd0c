"""Docstrings begin with a verb, a subject or the name of a thing; a name stands for one (tools/house.py)."""

from __future__ import annotations

import ast
from pathlib import Path

import house
import pytest

PROGRAMS = "mmaformal/hardware/programs"
BEGINNINGS = ("That x holds.", "Of each x, y.", "The same of x.", "What x gives.", "As the base class.")


@pytest.mark.parametrize("text", BEGINNINGS)
@pytest.mark.parametrize(
    ("source", "line"),
    [
        ('"""{}"""', 1),
        ('def f():\n    """{}"""', 2),
        ('async def f():\n    """\n    {}\n    """', 2),
        ('class A:\n    def f(self):\n        r"""{}\n\n        More."""', 3),
        ('class A:\n    x: int\n    """{}"""', 3),
        ("def f():\n    '{}'", 2),
    ],
)
def test_a_docstring_that_begins_with_no_verb_or_noun_is_found(text: str, source: str, line: int) -> None:
    assert house.fragments(source.format(text)) == [line]


@pytest.mark.parametrize(
    "source",
    [
        '"""Return what x gives."""',
        '"""Prove that x holds."""',
        '"""The sameness of x."""',
        '"""Offer x."""',
        '"""Whatever."""',
        'x = """What x gives."""',
        'print("That x holds.")',
        'def f():\n    """Return x.\n\n    What y is."""\n    return "Of z"',
    ],
)
def test_no_other_text_is(source: str) -> None:
    assert house.fragments(source) == []


def test_the_house_has_none() -> None:
    assert house.fragments_of_all() == []


@pytest.mark.parametrize(
    ("one", "other", "name"),
    [
        ("encodings/fda/smt.py", "encodings/gdfs/executable.py", "step"),
        ("encodings/smt/__init__.py", "encodings/fda/smt.py", "dot_add"),
        ("encodings/fda/space.py", "mmaformal/spaces/__init__.py", "choices"),
        ("encodings/fda/space.py", "mmaformal/spaces/sticky.py", "choices"),
        ("mmaformal/recordings/layouts/csv.py", "mmaformal/recordings/layouts/npz.py", "describe"),
        (f"{PROGRAMS}/llvm_design.py", f"{PROGRAMS}/python_design.py", "read_program"),
        ("mmaformal/cli/verify.py", "queries/verify.py", "verify"),
        ("mmaformal/cli/check.py", "mmaformal/recordings/report.py", "check"),
    ],
)
def test_files_that_are_for_one_thing(one: str, other: str, name: str) -> None:
    assert house.role(house.ROOT / one, name) == house.role(house.ROOT / other, name)


@pytest.mark.parametrize(
    ("one", "other", "name"),
    [
        ("mmaformal/cli/run.py", "mmaformal/cases/run.py", "run"),  # no command's function
        ("mmaformal/cli/verify.py", "queries/verify.py", "prove"),  # not what the files are named for
        ("encodings/fda/smt.py", "mmaformal/kernels/chain.py", "step"),
        ("encodings/fda/space.py", "mmaformal/spaces/common.py", "orders"),
        (f"{PROGRAMS}/llvm_design.py", f"{PROGRAMS}/llvm_run.py", "read_program"),
        ("encodings/fda/proofs/exactness.py", "mmaformal/facts/exactness.py", "conclude"),
    ],
)
def test_files_that_are_not(one: str, other: str, name: str) -> None:
    assert house.role(house.ROOT / one, name) != house.role(house.ROOT / other, name)


def test_aliases_are_names_too(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    texts = {
        "mmaformal/one.py": "Codes = NDArray[Any]\nStepT = TypeVar('StepT')\nclass Place: ...\n",
        "mmaformal/two.py": "Codes: TypeAlias = int\nStepT = TypeVar('StepT', bound=int)\nPlace = int\n_Codes = str\n",
        "encodings/a/smt.py": "class Sum: ...\nFma = Callable[[int], int]\n",
        "encodings/a/executable.py": "class Sum: ...\nFma = Callable[[str], str]\n",
        "encodings/b/smt.py": "class Product: ...\n",
        "encodings/c/smt.py": "class Product: ...\n",
    }
    for name, text in texts.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.setattr(house, "ROOT", tmp_path)
    assert [each.partition(":")[0] for each in house.classes_named_twice()] == ["Codes", "Place", "Product"]


@pytest.mark.parametrize(
    ("line", "asked", "looked_up"),
    [
        ('i.algorithm == "fda"', 1, 0),
        ('p.algorithm not in ("fma", "other")', 1, 0),
        ("spec.parameters.algorithm == Rvbna.algorithm", 1, 0),
        ("p.algorithm in TABLE", 1, 0),
        ("TABLE[p.algorithm], TABLE.get(p.algorithm)", 0, 2),
        ("x.algorithm == y.algorithm, x.algorithm in given", 0, 0),
        ('path.stem == "fda"', 0, 0),
    ],
)
def test_questions_by_name(line: str, asked: int, looked_up: int) -> None:
    by_name = house._ByName(ast.parse(f'TABLE = {{"fda": 1}}\n{line}\n'))
    assert (len(list(by_name.questions())), len(list(by_name.looked_up()))) == (asked, looked_up)


def test_no_name_stands_for_two_things() -> None:
    assert house.classes_named_twice() == []


def test_few_names_of_functions_do() -> None:
    assert len(house.named_twice()) <= house.BARS["function names that stand for several things"]


def test_functions_of_one_name_in_two_modules(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "mmaformal").mkdir()
    for name in ("one", "two"):
        text = f"def main(): ...\ndef both(): ...\ndef _private(): ...\ndef {name}(): ...\n"
        (tmp_path / "mmaformal" / f"{name}.py").write_text(text)
    monkeypatch.setattr(house, "ROOT", tmp_path)
    monkeypatch.setattr(house, "commands", dict)
    assert house.named_twice() == ["both: mmaformal/one.py, mmaformal/two.py"]
