"""Old names that are taken for one version more, each with a DeprecationWarning that says the new one."""

from __future__ import annotations

import inspect
import sys
import warnings
from collections.abc import Callable, Mapping
from functools import wraps
from importlib import import_module
from types import ModuleType
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


def keywords(**renamed: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Returns a decorator by which a function takes old keywords, as `old="new"` says.

    The function raises TypeError where the old keyword and the new one are both given.
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        name = function.__name__

        @wraps(function)
        def called(*args: P.args, **kwargs: P.kwargs) -> R:
            for old in renamed.keys() & kwargs.keys():
                new = renamed[old]
                if new in kwargs:
                    raise TypeError(f"{name}: {old} is {new} now: give {new} alone")
                warn(f"{name}({old}=…) is {name}({new}=…) now")
                kwargs[new] = kwargs.pop(old)
            return function(*args, **kwargs)

        return called

    return decorate


def names(module: str, **renamed: str) -> Callable[[str], object]:
    """Returns the `__getattr__` of a module some of whose names were others, as `old="new"` says."""

    def look_up(name: str) -> object:
        if name not in renamed:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        warn(f"{module}.{name} is {module}.{renamed[name]} now")
        return getattr(sys.modules[module], renamed[name])

    return look_up


def elsewhere(module: str, place: str, **renamed: str) -> Callable[[str], object]:
    """Returns the `__getattr__` of a module that is `place` now, where some names are others, as `old="new"` says."""

    def look_up(name: str) -> object:
        if name.startswith("__"):
            raise AttributeError(name)
        found = getattr(import_module(place), renamed.get(name, name))
        warn(f"{module}.{name} is {place}.{renamed.get(name, name)} now")
        return found

    return look_up


def modules(package: str, **renamed: str) -> None:
    """Makes modules of a package importable by their old names, as `old="new"` says."""
    for old, new in renamed.items():
        sys.modules[f"{package}.{old}"] = _Moved(f"{package}.{old}", f"{package}.{new}")


def lines(progress: Callable[..., object] | None, told: str) -> Callable[..., object] | None:
    """Returns a progress that takes a line of text; one that takes several values is told those, for one version more.

    `told` names the values.  Call it with `relay(text, *values)`: what comes back passes on what the function takes.
    """
    if progress is None or not callable(progress):
        return progress
    try:
        signature = inspect.signature(progress)
        signature.bind("")
    except TypeError:
        warn(f"progress is called with a line of text now, not with ({told})")
        return lambda _, *values: progress(*values)
    except ValueError:  # no signature, as some functions of C have none
        pass
    return lambda text, *_: progress(text)


class _Moved(ModuleType):
    """A module under its old name: what is taken from it is that of the new one."""

    def __init__(self, old: str, new: str) -> None:
        super().__init__(old, f"Is `{new}` now.")
        self._new = new

    def __getattr__(self, name: str) -> object:
        if name.startswith("__"):
            raise AttributeError(name)
        warn(f"{self.__name__} is {self._new} now")
        return getattr(import_module(self._new), name)


def new_names(values: Mapping[str, R], renamed: Mapping[str, str], owner: str) -> dict[str, R]:
    """Returns values by the names that an owner's parameters have now, which may be by old ones, `{old: new}`.

    Warns of those, as of the line that called what calls this.  Raises TypeError where both names are given.
    """
    found = {}
    for name, value in values.items():
        if name in renamed:
            if renamed[name] in values:
                raise TypeError(f"{owner} is given {renamed[name]}, and {name}, its old name")
            warn(f"{name} of {owner} is {renamed[name]} now", above=3)
        found[renamed.get(name, name)] = value
    return found


def warn(message: str, above: int = 2) -> None:
    """Warns of an old name, as of the line so many calls `above` the one that sees it."""
    warnings.warn(
        f"{message}; the old name goes with the next version", DeprecationWarning, stacklevel=above + 1
    )
