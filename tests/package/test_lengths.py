"""No function of the package is above 80 lines, and no class above 250: what is longer is told in parts."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FILES = sorted(
    path for room in ("mmaformal", "queries", "encodings", "tools") for path in (ROOT / room).rglob("*.py")
)
MOST = {ast.FunctionDef: 80, ast.ClassDef: 250}


Definition = ast.FunctionDef | ast.ClassDef


def definitions(node: ast.AST) -> Iterator[Definition]:
    """Those in a module or a statement, at any depth."""
    for inner in ast.iter_child_nodes(node):
        if isinstance(inner, Definition):
            yield inner
        if not isinstance(inner, ast.expr):  # there are none in expressions
            yield from definitions(inner)


@cache
def defined() -> list[tuple[Path, Definition]]:
    return [
        (path, each) for path in FILES for each in definitions(ast.parse(path.read_text(encoding="utf-8")))
    ]


@pytest.mark.parametrize("kind", MOST, ids=lambda kind: kind.__name__)
def test_none_is_longer(kind: type[Definition]) -> None:
    assert len(FILES) > 200
    found = [
        f"{path.relative_to(ROOT)}: {node.name}, {node.end_lineno - node.lineno + 1} lines"
        for path, node in defined()
        if isinstance(node, kind) and node.end_lineno and node.end_lineno - node.lineno >= MOST[kind]
    ]
    assert not found
