"""Numbers of the site come from data: none is typed into a page, and an edit of a page or of a table is seen."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from mmaformal.cli import main
from mmaformal.site import records
from mmaformal.site.build import build_site, check_site
from mmaformal.site.records import PropertyTable, shipped

TABLE = shipped("properties.md").read_text(encoding="utf-8")

#: Names, units and examples with digits in them, and what is code: none is a number that could be wrong.
NAMES = (
    *("z3", "SMT-LIB 2", "2^-24", "2^(e_max", "(1 + U)^m − 1", "h100 fp8", "acc_e9s12"),
    *("HMMA.16816.F32", "QGMMA.64x8x32.F32.E4M3.E4M3", "a100", "h100", "fp16", "fp8", "BTOR2"),
    *("op_a_i[15:0]", "rnd_i=0", "-G K=16"),
    *("0x1.8p-3", "0x3c00", "0b11", "0x0", "utf-8", "[^a-z0-9]+", r"a(\d+)·b\1"),
)


def typed_numbers(source: str) -> list[str]:
    """Return the texts with digits in a module's strings, without tags, docstrings, format specifications and names."""
    tree = ast.parse(source)
    skipped: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.FormattedValue) and node.format_spec is not None:
            skipped |= {id(x) for x in ast.walk(node.format_spec)}
        elif isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)) and ast.get_docstring(node):
            skipped.add(id(node.body[0].value))  # type: ignore[attr-defined]
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in skipped:
            text = re.sub(r"<[^>]*(>|$)|^[^<>]*\"[^<>]*>|&#?\w+;", "", node.value)
            for name in NAMES:
                text = text.replace(name, "")
            if re.search(r"\d", text) and text != "0":
                found.append(text)
    return found


@pytest.mark.parametrize(
    "module",
    [*sorted(Path(records.__file__).parent.glob("*page*.py")), Path(records.__file__)],
    ids=lambda x: x.stem,
)
def test_no_number_is_typed_into_a_page(module: Path) -> None:
    assert typed_numbers(module.read_text(encoding="utf-8")) == []


def test_a_typed_number_would_be_found() -> None:
    source = 'def page(n: int) -> str:\n    """Has 3 words."""\n    return f"<h2>{n:.3f}</h2><p>350 units, of z3</p>"\n'
    assert typed_numbers(source) == ["350 units, of "]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (r"(does not matter \|) \d+ \|", r"\1 1 |"),
        (r"(\| power10 XVF32GERPP \|) ✓ \|", r"\1 ✗ |"),
        (r"(\| power10 XVF32GERPP \|) ✓ \|", r"\1 |"),
    ],
)
def test_a_table_that_is_edited_is_refused(old: str, new: str) -> None:
    page = re.sub(old, new, TABLE, count=1)
    assert page != TABLE
    with pytest.raises(ValueError, match="was it edited"):
        PropertyTable.read(page)


def test_a_page_that_is_edited_is_seen(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each kind of page with one digit more, a file that is not there; and the site as it was built."""
    site = tmp_path / "site"
    build_site(site)
    assert check_site(site).verdict == "as built"
    kinds = ["index.html", "pairs.html", "generations.html", "architecture/hopper.html", "data/pairs.csv"]
    kinds += [
        str(next((site / kind).rglob("*.html")).relative_to(site))
        for kind in ("pair", "instruction", "property")
    ]
    for name in kinds:
        path = site / name
        text = path.read_text(encoding="utf-8")
        digit = re.search(r"\d", text)
        assert digit is not None, name
        path.write_text(f"{text[: digit.end()]}9{text[digit.end() :]}", encoding="utf-8")
    (site / "sources.html").unlink()
    assert main(["atlas", "check", str(site)]) == 1
    said = capsys.readouterr().out
    assert f"{len(kinds) + 1} other than the data give" in said
    assert all(f"{name}: not what the data give" in said for name in kinds)
    assert "sources.html: missing" in said


def test_a_folder_that_is_none_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["atlas", "check", str(tmp_path / "none")]) == 2
    assert "none" in capsys.readouterr().err
