"""A program's modules, loaded a second time with hooks in them, beside those that run as they are."""

from __future__ import annotations

import ast
import contextlib
import importlib.util
import sys
from collections.abc import Iterator, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

from mmaformal.hardware.module import HardwareError
from mmaformal.hardware.tracing.hooks import Hooks
from mmaformal.hardware.tracing.rewriting import HOOKS, rewritten

#: Libraries whose modules are run as they are.
_LIBRARIES = {
    "numpy",
    "torch",
    "triton",
    "ml_dtypes",
    "numba",
    "scipy",
    "z3",
    "mmaformal",
    *sys.stdlib_module_names,
}


def plain_module(path: Path) -> ModuleType:
    """A program's file as it is.  Raises HardwareError for one that is not there, or fails."""
    if not path.is_file():
        raise HardwareError(f"{path}: no such file")
    return _run(path, SourceFileLoader(_name(path), str(path)))


@contextlib.contextmanager
def followed(path: Path) -> Iterator[tuple[ModuleType, set[str]]]:
    """A program's file with hooks, and so the modules that it imports; with it the names of all these.

    While this is open they stand for the modules that run as they are.
    """
    finder = _Finder()
    before = dict(sys.modules)
    sys.meta_path.insert(0, finder)
    try:
        yield _run(path, _Loader(_name(path), str(path), finder)), finder.names
    finally:
        sys.meta_path.remove(finder)
        for name in [name for name in sys.modules if name.partition(".")[0] in finder.roots]:
            del sys.modules[name]
        sys.modules.update({name: x for name, x in before.items() if name.partition(".")[0] in finder.roots})


def _name(path: Path) -> str:
    return f"program_{path.stem}"


def _run(path: Path, loader: SourceFileLoader) -> ModuleType:
    found = importlib.util.spec_from_file_location(_name(path), path, loader=loader)
    assert found is not None
    module = importlib.util.module_from_spec(found)
    sys.path.insert(0, str(path.parent))
    try:
        loader.exec_module(module)
    except SyntaxError as error:
        raise HardwareError(f"{path.name}:{error.lineno}: {error.msg}") from None
    except (Exception, SystemExit) as error:
        raise HardwareError(f"{path.name}: {type(error).__name__}: {error}") from None
    finally:
        sys.path.remove(str(path.parent))
    return module


class _Finder(MetaPathFinder):
    """Finds the modules of packages that a program imports, libraries aside."""

    def __init__(self) -> None:
        self.roots: set[str] = set()
        self.names: set[str] = set()

    def find_spec(self, name: str, path: Sequence[str] | None, target: object = None) -> ModuleSpec | None:
        if name.partition(".")[0] not in self.roots:
            return None
        found = PathFinder.find_spec(name, path)
        if found is not None and isinstance(found.loader, SourceFileLoader):
            found.loader = _Loader(name, found.loader.path, self)
        return found

    def imported(self, tree: ast.Module) -> None:
        """Modules that a program imports are followed too."""
        for node in ast.walk(tree):
            names = [x.name for x in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and not node.level and node.module:
                names = [node.module]
            for root in {name.partition(".")[0] for name in names} - _LIBRARIES - self.roots:
                self.roots.add(root)
                for name in [name for name in sys.modules if name.partition(".")[0] == root]:
                    del sys.modules[name]


class _Loader(SourceFileLoader):
    def __init__(self, name: str, path: str, finder: _Finder) -> None:
        super().__init__(name, path)
        self._finder = finder

    def get_code(self, fullname: str) -> CodeType:
        path = self.get_filename(fullname)
        source = self.get_data(path)
        self._finder.imported(ast.parse(source, path))
        self._finder.names.add(fullname)
        made: Any = compile(rewritten(source, path), path, "exec", dont_inherit=True)
        assert isinstance(made, CodeType)
        return made

    def exec_module(self, module: ModuleType) -> None:
        setattr(module, HOOKS, Hooks)
        super().exec_module(module)
