"""A folder for each algorithm: its parameters, `smt` (as bit-vectors), `executable` (as integer Python), and so on.

What the algorithms share within one encoding is in `smt` and in `executable`; the two share no code.  The folders are
links to those of the top-level `encodings/` (docs/design.md, "Layers").
"""

from __future__ import annotations

import pkgutil
from functools import cache, lru_cache
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType


@lru_cache(maxsize=1)
def folders() -> tuple[str, ...]:
    """Return the names of all folders of algorithms."""
    found = (each.name for each in pkgutil.iter_modules(__path__) if each.ispkg)
    return tuple(sorted(name for name in found if name not in ("executable", "smt")))


@cache
def part(algorithm: str, name: str) -> ModuleType | None:
    """Return a file, or a folder, of an algorithm's folder as a module; None where it has none of that name."""
    if algorithm not in folders() or find_spec(f"{__name__}.{algorithm}.{name}") is None:
        return None
    return import_module(f"{__name__}.{algorithm}.{name}")


def with_part(name: str) -> list[str]:
    """Return the algorithms whose folders have a file, or a folder, of a name."""
    return [each for each in folders() if find_spec(f"{__name__}.{each}.{name}") is not None]
