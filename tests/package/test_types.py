"""`Any` stands only where a library has no types, and where the reason is given here."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FILES = [
    ROOT / "setup.py",
    *(
        path
        for room in ("mmaformal", "queries", "encodings", "tools")
        for path in (ROOT / room).rglob("*.py")
    ),
]

#: Definitions of modules in which `Any` stands, and why.
ALLOWED = {
    (
        "encodings/executable/blocks.py",
        "Lane",
    ): "int, array, symbolic lane or numba's: no type has their arithmetic",
    ("encodings/executable/blocks.py", "Flag"): "the same of what comparing them gives",
    (
        "encodings/smt/__init__.py",
        "_ByName",
    ): "modules found by name: what their steps are is seen where they run",
    ("encodings/smt/__init__.py", "dot_add"): "the same",
    ("encodings/smt/signs.py", "dot_add"): "the same",
    (
        "mmaformal/operands.py",
        "Matrix",
    ): "a tensor of torch, which is not needed and so not there to be typed",
    ("mmaformal/kernels/compiled.py", "Numba"): "numba has no types",
    (
        "mmaformal/stages.py",
        "Value",
    ): "either encoding's codes, operands, terms and sums: a stage's name says which",
    ("mmaformal/solver/terms.py", "_function"): "functions of z3's library, by ctypes, which has no types",
    ("mmaformal/kernels/words.py", "CompiledWord"): "a word of compiled code, or a symbolic one",
    (
        "mmaformal/torch/triton_kernel.py",
        "kernel_of",
    ): "Triton, which is not needed and so not there to be typed",
    ("mmaformal/kernels/chain.py", "F"): "a step that numba compiles",
    ("mmaformal/kernels/chain.py", "_STEPS"): "the same",
    ("mmaformal/kernels/chain.py", "_step"): "the same",
    ("encodings/fdrda/kernel.py", "step"): "planes or lanes of numba's",
    (
        "mmaformal/renderers/__init__.py",
        "Renderer",
    ): "steps of any algorithm, whose renderer is found by its name",
    ("mmaformal/renderers/__init__.py", "_by_stages"): "the same",
    ("mmaformal/renderers/stages.py", "steps"): "the same",
    ("mmaformal/renderers/rows.py", "step_rows"): "the same",
    ("mmaformal/hardware/multipliers.py", "DesignProver"): "a trace of any algorithm's steps",
    ("mmaformal/hardware/registers.py", "Json"): "JSON of yosys, whose schema is its own",
    ("mmaformal/hardware/yosys.py", "_top"): "JSON of yosys",
    ("mmaformal/hardware/blackbox.py", "DesignUnit"): "keywords of queries, of several types",
    ("mmaformal/shown_stages.py", "numbered_steps"): "a trace of any algorithm's steps",
    ("tools/theorems.py", "_questions"): "claims of several kinds of subjects, in one list",
    ("mmaformal/torch/tensors.py", "Tensor"): "PyTorch is an extra, and so not there to be typed",
    ("mmaformal/torch/tensors.py", "Call"): "the same of its functions and what they take",
}

#: A folder of functions that are called in place of a program's own, with whatever values it has.
UNTYPED = "mmaformal/hardware/tracing/"

#: Arrays of any dtype, which NumPy's own types write so.
GENERIC = {"NDArray", "dtype", "ndarray"}


def uses(tree: ast.AST) -> Iterator[int]:
    """The lines on which `Any` stands, but as the dtype of an array; in quotes too."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            continue  # a docstring
        if (
            isinstance(node, ast.Subscript)
            and name_of(node.value) in GENERIC
            and name_of(node.slice) == "Any"
        ):
            continue
        if isinstance(node, (ast.Name, ast.Attribute)) and name_of(node) == "Any":
            yield node.lineno
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and "Any" in node.value:
            try:
                quoted = ast.parse(node.value.strip(), mode="eval")
            except SyntaxError:  # prose
                continue
            yield from (node.lineno for _ in uses(quoted))
        else:
            yield from uses(node)


def name_of(node: ast.AST) -> str:
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""


def definition(node: ast.stmt) -> str:
    """Return the name that a statement of a module defines."""
    if isinstance(node, (ast.FunctionDef, ast.ClassDef, ast.AsyncFunctionDef)):
        return node.name
    targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", node)]
    return name_of(targets[0])


def found(source: str) -> dict[str, list[int]]:
    """The lines on which `Any` stands, by the definition of the module that they are in."""
    out: dict[str, list[int]] = {}
    for node in ast.parse(source).body:
        if lines := list(uses(node)):
            out.setdefault(definition(node), []).extend(lines)
    return out


def test_any_stands_only_where_a_library_has_no_types() -> None:
    places = {}
    for path in FILES:
        file, source = path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8")
        for name, lines in found(source).items() if "Any" in source else ():
            places[file, name] = lines
    places = {place: lines for place, lines in places.items() if not place[0].startswith(UNTYPED)}
    assert {place: lines for place, lines in places.items() if place not in ALLOWED} == {}
    assert [place for place in ALLOWED if place not in places] == [], "no longer needed"


@pytest.mark.parametrize(
    ("source", "lines"),
    [
        ("from typing import Any", {}),
        ("def f(x: Any) -> int: ...", {"f": [1]}),
        ("def f(x: dict[str, Any]) -> int: ...", {"f": [1]}),
        ("class C:\n    def f(self) -> typing.Any: ...", {"C": [2]}),
        ("T: TypeAlias = 'list[Any]'", {"T": [1]}),
        ("Code = Any", {"Code": [1]}),
        ("x: Any = 1", {"x": [1]}),
        ("def f(x: NDArray[Any], y: np.dtype[Any]) -> None:\n    '''Any.  Any'''", {}),
        ("T: TypeAlias = 'NDArray[Any]'", {}),
        ("if x:\n    y: Any = 1", {"": [2]}),
    ],
)
def test_any_is_found(source: str, lines: dict[str, list[int]]) -> None:
    assert found(source) == lines
