"""Stand-ins for packages that a browser has none of: what only names their types can be imported, nothing of them runs.

The executable encoding asks whether a flag is NumPy's, formats name a dtype, and signatures name arrays.  On Python's
integers none of those is ever made, so that a class without instances answers each question as NumPy would.
"""

from __future__ import annotations

import re
import sys
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

#: Packages that are never there.
PACKAGES = ("numpy", "ml_dtypes", "numba", "z3")


class Nothing:
    """A class of which there is no instance."""

    def __class_getitem__(cls, parameters: object) -> type[Nothing]:
        return cls

    def __new__(cls) -> Nothing:
        raise RuntimeError(f"{cls.__name__} is of a package that is not here")


class Dtype:
    """How many bytes a dtype of NumPy's or of ml_dtypes has, by the bits in its name; `u4` has 4."""

    def __init__(self, scalar: type[Nothing] | str) -> None:
        self.name = scalar if isinstance(scalar, str) else scalar.__name__
        found = re.search(r"\d+", self.name)
        size = int(found[0]) if found else 0
        self.itemsize = size if re.fullmatch(r"u\d", self.name) else max(8, size) // 8  # `u4` counts bytes

    def __class_getitem__(cls, parameters: object) -> type[Dtype]:
        return cls

    def __str__(self) -> str:
        return self.name


class AbsentModule(ModuleType):
    """A module every name of which is a class without instances; `dtype` has a size."""

    def __getattr__(self, name: str) -> type:
        if name.startswith("__"):
            raise AttributeError(name)
        made = Dtype if name == "dtype" else type(name, (Nothing,), {})
        setattr(self, name, made)
        return made


class AbsentFinder(MetaPathFinder, Loader):
    """Finds the packages that are not there, and their modules."""

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        return ModuleSpec(name, self, is_package=True) if name.partition(".")[0] in PACKAGES else None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return AbsentModule(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        """Nothing is to be run."""


def install() -> None:
    """Put stand-ins in the place of those packages, for the rest of the process."""
    sys.meta_path.insert(0, AbsentFinder())
