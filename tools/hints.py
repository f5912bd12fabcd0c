"""Count the hints: claims of the proofs whose cut is written by hand (`claim(…, hint=…)`), by file.

python tools/hints.py
python tools/hints.py --list        # each with its line
python tools/hints.py --most 60     # exit status 1 if there are more

A hint is one wherever it is written.  `claim` may have another name (`derive = theory.claim`).  A function that only
passes a parameter on as the hint has as many hints as calls that give it one.
"""

from __future__ import annotations

import argparse
import ast
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NamedTuple, TypeAlias

ROOT = Path(__file__).parents[1]

#: Where proofs are written.
ROOMS = (
    "encodings",
    "mmaformal/facts",
    "mmaformal/proof",
    "mmaformal/theory",
    "mmaformal/studies",
    "queries",
)

#: What computes a hint by a rule.
_COMPUTED = {"propositions", "sum_parts", "compared"}

Function: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef


class Parameter(NamedTuple):
    """A parameter that is a hint: its place among the arguments of a call, and its name."""

    place: int
    name: str


#: The methods of `Composing` that take a hint.
CLAIMS = {"claim": Parameter(4, "hint"), "claim_each": Parameter(5, "cut")}


@dataclass(frozen=True)
class Call:
    """A call with the function that it stands in, if any, and what it calls there by its own name."""

    node: ast.Call
    inside: Function | None
    name: str
    of_object: bool  #: whether it is called as a method

    def hint(self, parameter: Parameter) -> ast.expr | None:
        """Return what is given for a parameter; None if nothing is, or an empty list."""
        named = [each.value for each in self.node.keywords if each.arg == parameter.name]
        given = [*named, *self.node.args[parameter.place : parameter.place + 1]]
        empty = isinstance(given[0], ast.Tuple | ast.List) and not given[0].elts if given else True
        return None if empty else given[0]


class Source:
    """A file with its functions and calls."""

    def __init__(self, path: str, text: str) -> None:
        self.path, self.tree = path, ast.parse(text)
        self.functions: defaultdict[str, list[tuple[Function, bool]]] = defaultdict(list)
        self.calls: list[Call] = []
        self._walk(self.tree, None, {}, False)

    @cached_property
    def imported(self) -> Mapping[str, tuple[str, str]]:
        """The names that it imports, each with the file's path but for its suffix, and the name there."""
        return {
            each.asname or each.name: (node.module.removeprefix("mmaformal.").replace(".", "/"), each.name)
            for node in ast.walk(self.tree)
            if isinstance(node, ast.ImportFrom) and node.module
            for each in node.names
        }

    def _walk(self, node: ast.AST, inside: Function | None, names: Mapping[str, str], in_class: bool) -> None:
        """Note functions, whether they are methods, and calls; `names` are other names of methods here."""
        if isinstance(node, Function):
            static = any(isinstance(x, ast.Name) and x.id == "staticmethod" for x in node.decorator_list)
            self.functions[node.name].append((node, in_class and not static))
            inside, names = node, {**names, **dict(_aliases(node))}
        if isinstance(node, ast.Call):
            if isinstance(node.func, ast.Attribute):
                self.calls.append(Call(node, inside, node.func.attr, True))
            elif isinstance(node.func, ast.Name):
                name = names.get(node.func.id, node.func.id)
                self.calls.append(Call(node, inside, name, node.func.id in names))
        for child in ast.iter_child_nodes(node):
            self._walk(child, inside, names, isinstance(node, ast.ClassDef))


def _aliases(function: Function) -> Iterator[tuple[str, str]]:
    """Yield the names that a function gives to methods (`claim = theory.claim`, also several at once)."""
    for node in ast.walk(function):
        if isinstance(node, ast.Assign):
            for target in node.targets:
                yield from _alias(target, node.value)


def _alias(target: ast.expr, value: ast.expr) -> Iterator[tuple[str, str]]:
    if isinstance(target, ast.Name) and isinstance(value, ast.Attribute):
        yield target.id, value.attr
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
        for one, its in zip(target.elts, value.elts, strict=False):
            yield from _alias(one, its)


def _passed(hint: ast.expr) -> set[str]:
    """Return the names whose elements are elements of a hint: `x`, `[*x, y]`, `[e for e in x if …]`."""
    match hint:
        case ast.Name(id=name):
            return {name}
        case ast.List(elts=parts) | ast.Tuple(elts=parts):
            return {name for part in parts if isinstance(part, ast.Starred) for name in _passed(part.value)}
        case ast.ListComp(generators=[ast.comprehension(iter=inner)]):
            return _passed(inner)
        case ast.Call(func=ast.Name(id="list" | "tuple"), args=[inner]):
            return _passed(inner)
        case _:
            return set()


def _parameters(function: Function, method: bool) -> dict[str, Parameter]:
    own = function.args
    placed = [*own.posonlyargs, *own.args][int(method) :]
    return {
        **{each.arg: Parameter(place, each.arg) for place, each in enumerate(placed)},
        **{each.arg: Parameter(sys.maxsize, each.arg) for each in own.kwonlyargs},
    }


class Hints:
    """The hints of some files: those of calls of `claim`, and of functions that only pass one on to it."""

    def __init__(self, sources: Mapping[str, str]) -> None:
        self.files = [Source(path, text) for path, text in sources.items()]
        #: by file and name, the parameters of functions that are passed on; and the hints by which they are
        self.passing: dict[tuple[str, str], Parameter] = {}
        self._on: set[int] = set()
        while self._pass_on():
            pass

    def all(self) -> Iterator[tuple[str, int]]:
        """Yield the file and the line of each."""
        for file in self.files:
            for call in file.calls:
                hint = self._hint(file, call)
                if hint is not None and id(hint) not in self._on and not _is_computed(hint):
                    yield file.path, call.node.lineno

    def _hint(self, file: Source, call: Call) -> ast.expr | None:
        """Return the hint that a call gives, if it does."""
        parameter = self._parameter(file, call)
        return None if parameter is None else call.hint(parameter)

    def _parameter(self, file: Source, call: Call) -> Parameter | None:
        """Return the parameter of what is called that is a hint: of a function here, one imported, or the only one."""
        if call.of_object and call.name in CLAIMS:
            return CLAIMS[call.name]
        if call.name in file.functions:
            return self.passing.get((file.path, call.name))
        if not call.of_object:
            there = file.imported.get(call.name)
            return next(
                (given for known, given in self.passing.items() if _as_imported(*known) == there), None
            )
        defined = [each.path for each in self.files if call.name in each.functions]
        found = [self.passing.get((path, call.name)) for path in defined]
        return found[0] if found and None not in found else None

    def _pass_on(self) -> bool:
        """Find functions that only pass a parameter on as a hint; return whether there was one more."""
        before = len(self._on)
        for file in self.files:
            for call in file.calls:
                hint = self._hint(file, call)
                if hint is None or call.inside is None or id(hint) in self._on:
                    continue
                method = next(m for f, m in file.functions[call.inside.name] if f is call.inside)
                for name, parameter in _parameters(call.inside, method).items():
                    if name in _passed(hint) and self._only_passes(file, call.inside, name):
                        self.passing[file.path, call.inside.name] = parameter
                        self._on.add(id(hint))
        return len(self._on) > before

    def _only_passes(self, file: Source, function: Function, name: str) -> bool:
        """Whether a function uses a parameter for nothing but hints."""
        hints = [self._hint(file, call) for call in file.calls if call.inside is function]
        inner = {id(node) for hint in hints if hint is not None for node in ast.walk(hint)}
        uses = [each for each in ast.walk(function) if isinstance(each, ast.Name) and each.id == name]
        return all(id(each) in inner for each in uses)


def _as_imported(path: str, name: str) -> tuple[str, str]:
    """Return a function of a file as an import of it says: the module, and the name."""
    return path.removeprefix("mmaformal/").removesuffix(".py").removesuffix("/__init__"), name


def _is_computed(hint: ast.expr) -> bool:
    return isinstance(hint, ast.Call) and isinstance(hint.func, ast.Name) and hint.func.id in _COMPUTED


def hints(root: Path = ROOT) -> list[tuple[str, int]]:
    """Return the file and the line of each hint."""
    paths = [path for room in ROOMS for path in sorted((root / room).rglob("*.py"))]
    sources = {path.relative_to(root).as_posix(): path.read_text(encoding="utf-8") for path in paths}
    return sorted(Hints(sources).all())


def main() -> int:
    """Print them; return 1 if there are more than may be."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--list", action="store_true", help="say on which line each is")
    parser.add_argument("--most", type=int, metavar="N", help="exit with 1 if there are more than N")
    asked = parser.parse_args()
    found = hints()
    for path, count in Counter(path for path, _ in found).most_common():
        lines = ", ".join(str(line) for file, line in found if file == path) if asked.list else ""
        print(f"{count:4}  {path}  {lines}".rstrip())
    print(f"{len(found):4}  in all")
    return int(asked.most is not None and len(found) > asked.most)


if __name__ == "__main__":
    sys.exit(main())
