"""Measure the house: lines by room, questions of kind, hints, what is too long, docstrings, names that stand twice.

python tools/house.py
python tools/house.py --list        # with what each number counts
python tools/house.py --check       # exit status 1 if a bar is not held
"""

from __future__ import annotations

import argparse
import ast
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache, lru_cache
from pathlib import Path

import hints

ROOT = Path(__file__).resolve().parents[1]
TOPS = ("mmaformal", "encodings", "queries", "tools", "benchmarks", "examples", "tests")

WORDS = "words of prose in docs"

#: Bars that are held, and stay so.
BARS = {
    "isinstance on algorithms that is no assertion": 10,
    "hints": 60,
    "functions over 60 lines": 0,
    "files over 600 lines": 0,
    "docstrings that begin with no verb or noun": 0,
    WORDS: 25_000,
    "questions of kind, by isinstance or by name": 10,
    "names of classes and aliases that stand for several things": 0,
    "function names that stand for several things": 55,
}

#: Beginnings of a docstring after which comes neither a sentence nor the name of a thing, so that one has to guess.
FRAGMENT = re.compile(r"(That|Of|The same|What|As)\b")


def sources(*tops: str) -> Iterator[Path]:
    """Yield the Python files of the top-level folders; links are not followed."""
    for top in tops or TOPS:
        for path in sorted((ROOT / top).rglob("*.py")):
            if not any(part.is_symlink() for part in path.relative_to(ROOT).parents if part.name):
                yield path


def house() -> Iterator[Path]:
    """Yield what is neither a test nor a tool."""
    return sources("mmaformal", "encodings", "queries")


@cache
def tree_of(path: Path) -> ast.Module:
    """Return a file's syntax tree."""
    return ast.parse(path.read_text(encoding="utf-8"))


def length(path: Path) -> int:
    """Return how many lines a file has."""
    return len(path.read_text(encoding="utf-8").splitlines())


def place(path: Path) -> str:
    """Return a file's path below the repository."""
    return path.relative_to(ROOT).as_posix()


def room(path: Path) -> str:
    """Return the room that a file stands in: a folder, or of an algorithm's folder the kind of the file."""
    parts = path.relative_to(ROOT).parts
    if parts[0] == "encodings" and parts[1] not in ("smt", "executable"):
        return f"encodings/*/{'kernel.py' if parts[2] == 'kernel' else parts[2]}"
    if parts[0] in ("mmaformal", "encodings") and len(parts) > 2:
        return "/".join(parts[:2])
    return parts[0]


def rooms() -> dict[str, tuple[int, int]]:
    """Return each room's lines and files, the largest first."""
    lines: Counter[str] = Counter()
    files: Counter[str] = Counter()
    for path in sources():
        lines[room(path)] += length(path)
        files[room(path)] += 1
    return {name: (count, files[name]) for name, count in lines.most_common()}


@lru_cache(maxsize=1)
def algorithms() -> frozenset[str]:
    """Return the names of the classes of parameters."""
    found = {"Parameters"}
    trees = [tree_of(path) for path in (ROOT / "encodings").glob("*/__init__.py")]
    classes = [each for tree in trees for each in tree.body if isinstance(each, ast.ClassDef)]
    for _ in range(3):
        found |= {
            each.name
            for each in classes
            if any(isinstance(base, ast.Name) and base.id in found for base in each.bases)
        }
    return frozenset(found - {"Parameters"})


def kinds_asked() -> list[str]:
    """Return where the code, but for assertions, asks of which algorithm parameters are."""
    return [
        f"{place(path)}:{line}"
        for path in sources("mmaformal", "encodings", "queries", "tools", "benchmarks", "examples")
        for line in _asked(tree_of(path))
    ]


def _asked(node: ast.AST) -> Iterator[int]:
    if isinstance(node, ast.Assert):
        return
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "isinstance":
        named = {each.id for each in ast.walk(node.args[1]) if isinstance(each, ast.Name)}
        if named & algorithms():
            yield node.lineno
    if isinstance(node, ast.MatchClass) and isinstance(node.cls, ast.Name) and node.cls.id in algorithms():
        yield node.lineno
    for child in ast.iter_child_nodes(node):
        yield from _asked(child)


@lru_cache(maxsize=1)
def algorithm_names() -> frozenset[str]:
    """Return the names of the algorithms, as parameters have them."""
    return frozenset(path.parent.name for path in (ROOT / "encodings").glob("*/__init__.py")) - {
        "smt",
        "executable",
    }


class _ByName:
    """Where a file looks at the name of an algorithm; names that stand in a table of the file count as well."""

    def __init__(self, tree: ast.Module) -> None:
        self.tables: set[str] = set()
        for each in tree.body:
            if (
                isinstance(each, (ast.Assign, ast.AnnAssign))
                and each.value is not None
                and self.names(each.value)
            ):
                targets = each.targets if isinstance(each, ast.Assign) else [each.target]
                self.tables |= {target.id for target in targets if isinstance(target, ast.Name)}
        self.tree = tree

    def names(self, node: ast.AST) -> bool:
        """Whether an expression is the name of an algorithm, or has some."""
        match node:
            case ast.Constant(value=str(text)):
                return text in algorithm_names()
            case ast.Attribute(value=ast.Name(id=owner), attr="algorithm"):
                return owner in algorithms()
            case ast.Tuple(elts=parts) | ast.List(elts=parts) | ast.Set(elts=parts):
                return any(map(self.names, parts))
            case ast.Dict(keys=keys):
                return any(each is not None and self.names(each) for each in keys)
            case ast.Name(id=name):
                return name in self.tables
        return False

    def questions(self) -> Iterator[int]:
        """Yield the lines that compare the name of some algorithm with names that are written there."""
        for each in ast.walk(self.tree):
            if isinstance(each, ast.Compare):
                sides = [each.left, *each.comparators]
                if any(map(_is_of_algorithm, sides)) and any(map(self.names, sides)):
                    yield each.lineno
            elif isinstance(each, ast.Match) and _is_of_algorithm(each.subject):
                yield each.lineno

    def looked_up(self) -> Iterator[int]:
        """Yield the lines that look an algorithm's name up in a table that is written in the file."""
        for each in ast.walk(self.tree):
            match each:
                case (
                    ast.Subscript(value=table, slice=key)
                    | ast.Call(func=ast.Attribute(value=table, attr="get"), args=[key, *_])
                ):
                    if _is_of_algorithm(key) and self.names(table):
                        yield each.lineno


def _is_of_algorithm(node: ast.AST) -> bool:
    return (isinstance(node, ast.Attribute) and node.attr == "algorithm") or (
        isinstance(node, ast.Name) and node.id == "algorithm"
    )


def asked_by_name(look: Callable[[_ByName], Iterator[int]] = _ByName.questions) -> list[str]:
    """Return where the code outside encodings asks which algorithm it is by its name, or takes it from a table."""
    return [
        f"{place(path)}:{line}"
        for path in sources("mmaformal", "queries", "tools", "benchmarks", "examples")
        for line in look(_ByName(tree_of(path)))
    ]


def long_functions() -> list[str]:
    """Return the functions of more than 60 lines."""
    return [
        f"{place(path)}:{each.lineno} {each.name} {each.end_lineno - each.lineno + 1}"
        for path in house()
        for each in ast.walk(tree_of(path))
        if isinstance(each, (ast.FunctionDef, ast.AsyncFunctionDef))
        if each.end_lineno is not None and each.end_lineno - each.lineno >= 60
    ]


def long_files() -> list[str]:
    """Return the files of more than 600 lines, the tools' too."""
    return [f"{place(path)} {length(path)}" for path in (*house(), *sources("tools")) if length(path) > 600]


def fragments(text: str) -> list[int]:
    """Return the lines of a source at which a docstring, also one of an attribute, begins like a `FRAGMENT`."""
    if not re.search(rf"[\"']\s*{FRAGMENT.pattern}", text):  # most files: to parse them all takes seconds
        return []
    stated = (each.value for each in ast.walk(ast.parse(text)) if isinstance(each, ast.Expr))
    docstrings = (each for each in stated if isinstance(each, ast.Constant))
    return sorted(each.lineno for each in docstrings if FRAGMENT.match(str(each.value).strip()))


def fragments_of_all() -> list[str]:
    """Return where a docstring begins like a `FRAGMENT`, in tests and tools too."""
    return [
        f"{place(path)}:{line}" for path in sources() for line in fragments(path.read_text(encoding="utf-8"))
    ]


@lru_cache(maxsize=1)
def commands() -> dict[str, Path]:
    """Return the commands that the package has as functions of the same names, each with the file that one is in."""
    own = {path.stem for path in (ROOT / "mmaformal" / "cli").glob("*.py")}
    found: dict[str, Path] = {}
    for each in ast.walk(tree_of(ROOT / "mmaformal" / "__init__.py")):
        if isinstance(each, ast.Dict) and all(
            isinstance(x, ast.Constant) for x in (*each.keys, *each.values)
        ):
            for module, names in ast.literal_eval(each).items():
                folder = ROOT if module.startswith("queries.") else ROOT / "mmaformal"
                path = folder.joinpath(*module.split(".")).with_suffix(".py")
                found |= {name: path for name in names.split() if name in own}
    return found


#: What asks for the space of an algorithm, and the space of a design that has no folder.
_SPACES = ("mmaformal/spaces/__init__.py", "mmaformal/spaces/sticky.py")


def role(path: Path, name: str = "") -> str:
    """Return what the thing of this name in a file is for, so that one thing in several files counts once.

    One thing are: the two encodings of an algorithm, the file of a kind in each algorithm's folder, and what calls the
    one that is asked for; the layouts of recordings and the readers of programs, which are found by their names; and a
    command and its function, which have the name of their files.
    """
    shown = place(path)
    if name in commands() and (path.stem == name or commands()[name] == path):
        return f"the command {name}"
    if shown.startswith("mmaformal/recordings/layouts/"):
        return "mmaformal/recordings/layouts/*"
    if re.fullmatch(r"mmaformal/hardware/programs/[a-z]+_design\.py", shown):
        return "mmaformal/hardware/programs/*_design.py"
    if shown in (*_SPACES, "mmaformal/renderers/stages.py"):
        return f"encodings/*/{'space' if 'spaces' in shown else 'renderer'}.py"
    shown = re.sub(r"^encodings/(smt|executable)/__init__\.py$", r"encodings/*/\1.py", shown)
    shown = re.sub(r"^encodings/(?!smt/|executable/)[a-z0-9_]+/", "encodings/*/", shown)
    return re.sub(r"/(smt|executable)(?=/|\.py)", "/encoding", shown)


#: Exported, and what it is named after: a second name of a class is no second thing.
_SECOND_NAMES = {("mmaformal/apple/__init__.py", "Operand")}


def classes_of(path: Path) -> dict[str, str]:
    """Return a file's public classes and aliases of types, each with what it stands for.

    A class stands for itself, in both encodings, and so do aliases there; else an alias stands for its type, wherever
    it is written, and a variable of types for whatever it is bound to.
    """
    shown = place(path)
    own = re.sub(r"/(smt|executable)(?=/|\.py)", "/encoding", shown)
    found: dict[str, str] = {}
    for each in _at_top(tree_of(path).body):
        if isinstance(each, ast.ClassDef):
            found.setdefault(each.name, own)
        elif isinstance(each, (ast.Assign, ast.AnnAssign)) and each.value is not None:
            target = each.targets[0] if isinstance(each, ast.Assign) else each.target
            if isinstance(target, ast.Name) and target.id[0].isupper() and not target.id.isupper():
                made = ast.unparse(each.value)
                variable = made.partition("(")[0] in ("TypeVar", "ParamSpec")
                made = "a variable of types" if variable else own if own != shown else made
                found.setdefault(target.id, made)
    return {name: it for name, it in found.items() if (shown, name) not in _SECOND_NAMES}


def _at_top(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield the statements of a module, those under a condition too."""
    for each in body:
        yield each
        if isinstance(each, (ast.If, ast.Try)):
            yield from _at_top([*each.body, *each.orelse])


def classes_named_twice() -> list[str]:
    """Return the public names of classes and aliases that stand for several things, the most frequent first."""
    found: defaultdict[str, set[str]] = defaultdict(set)
    for path in house():
        for name, thing in classes_of(path).items():
            if not name.startswith("_"):
                found[name].add(thing)
    return _several(found)


def named_twice() -> list[str]:
    """Return the public functions whose name stands for several things, the most frequent first."""
    found: defaultdict[str, set[str]] = defaultdict(set)
    for path in house():
        for each in tree_of(path).body:
            if isinstance(each, ast.FunctionDef) and not each.name.startswith("_") and each.name != "main":
                found[each.name].add(role(path, each.name))
    return _several(found)


def _several(found: Mapping[str, set[str]]) -> list[str]:
    twice = sorted(found.items(), key=lambda item: (-len(item[1]), item[0]))
    return [f"{name}: {', '.join(sorted(roles))}" for name, roles in twice if len(roles) > 1]


def measures() -> dict[str, list[str]]:
    """Return what each measure counts."""
    return {
        "isinstance on algorithms that is no assertion": kinds_asked(),
        "hints": [f"{path}:{line}" for path, line in hints.hints(ROOT)],
        "functions over 60 lines": long_functions(),
        "files over 600 lines": long_files(),
        "docstrings that begin with no verb or noun": fragments_of_all(),
        WORDS: [word for path in sorted((ROOT / "docs").rglob("*.md")) for word in prose(path)],
        "names of classes and aliases that stand for several things": classes_named_twice(),
        "function names that stand for several things": named_twice(),
        "questions of an algorithm by its name": asked_by_name(),
        "questions of kind, by isinstance or by name": [*kinds_asked(), *asked_by_name()],
        "tables by an algorithm's name": asked_by_name(_ByName.looked_up),
    }


def prose(page: Path) -> list[str]:
    """Return the words of a page outside tables, blocks of code, comments and addresses of links."""
    text = re.sub(
        r"<!--.*?-->|^```.*?^```$|\]\([^)]*\)", " ", page.read_text(encoding="utf-8"), flags=re.S | re.M
    )
    lines = [line for line in text.splitlines() if not line.startswith(("|", "    "))]
    return re.findall(r"[^\W\d_][\w'’-]*", "\n".join(lines))


def main() -> int:
    """Print the measures; return 1 if a bar is to be held and is not."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--list", action="store_true", help="say what each number counts")
    parser.add_argument("--check", action="store_true", help="exit with 1 if a bar is not held")
    asked = parser.parse_args()
    for name, (lines, files) in rooms().items():
        print(f"{lines:7} lines {files:4} files  {name}")
    whole = sum(length(path) for path in house())
    print(f"{whole:7} lines in mmaformal, encodings and queries")
    broken = False
    for name, found in measures().items():
        bar = BARS.get(name)
        over = bar is not None and len(found) > bar
        broken |= over
        print(
            f"{len(found):7} {name}"
            + (f" (at most {bar}{', NOT HELD' if over else ''})" if bar is not None else "")
        )
        if (asked.list or (asked.check and over)) and name != WORDS:
            print("".join(f"          {each}\n" for each in found), end="")
    return int(asked.check and broken)


if __name__ == "__main__":
    sys.exit(main())
