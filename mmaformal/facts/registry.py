"""Finds the facts of an algorithm: the folder of `mmaformal/facts/` that has its name."""

from __future__ import annotations

import pkgutil
from functools import lru_cache
from importlib import import_module

from mmaformal.cases.interfaces import AnyStep
from mmaformal.facts.protocol import Facts
from mmaformal.spec import DotAdd


@lru_cache(maxsize=1)
def found() -> dict[str, Facts[AnyStep]]:
    """The facts of every algorithm that has some, by name: each folder here has them as `FACTS`."""
    package = import_module("mmaformal.facts")
    folders = [each.name for each in pkgutil.iter_modules(package.__path__) if each.ispkg]
    return {name: import_module(f"{package.__name__}.{name}").FACTS for name in folders}


def facts_of(spec: DotAdd) -> Facts[AnyStep]:
    """Those of the algorithm of a `DotAdd`; with no method, if there is no folder for it."""
    name = spec.parameters.algorithm
    return found().get(name) or Facts(name)
