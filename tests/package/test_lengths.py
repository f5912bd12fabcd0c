"""No function of the package is above 80 lines, and no class above 250: what is longer is told in parts."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FILES = sorted(
    path for room in ("mmaformal", "queries", "encodings", "tools") for path in (ROOT / room).rglob("*.py")
)
MOST = {ast.FunctionDef: 80, ast.ClassDef: 250}


@cache
def nodes(path: Path) -> list[ast.AST]:
    return [*ast.walk(ast.parse(path.read_text(encoding="utf-8")))]


@pytest.mark.parametrize("kind", MOST, ids=lambda kind: kind.__name__)
def test_none_is_longer(kind: type[ast.FunctionDef] | type[ast.ClassDef]) -> None:
    assert len(FILES) > 200
    found = [
        f"{path.relative_to(ROOT)}: {node.name}, {node.end_lineno - node.lineno + 1} lines"
        for path in FILES
        for node in nodes(path)
        if isinstance(node, kind) and node.end_lineno and node.end_lineno - node.lineno >= MOST[kind]
    ]
    assert not found
