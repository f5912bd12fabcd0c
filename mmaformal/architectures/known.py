"""Which instructions of the registry a model is."""

from __future__ import annotations

from functools import lru_cache

from mmaformal.algorithms import DotAdd
from mmaformal.architectures import ARCHITECTURES


@lru_cache(maxsize=1)
def _registry() -> dict[DotAdd, tuple[str, ...]]:
    """The labels of all instructions, by what they compute at any K."""
    found: dict[DotAdd, tuple[str, ...]] = {}
    for each in (i for arch in ARCHITECTURES.values() for i in arch):
        key = _period(each.spec)
        found[key] = (*found.get(key, ()), each.label)
    return found


def _period(spec: DotAdd) -> DotAdd:
    """The same at the least K that it can have."""
    return spec.replace(k=spec.period)


def known_as(spec: DotAdd) -> tuple[str, ...]:
    """The instructions that are this model, chained or cut to its K."""
    return _registry().get(_period(spec), ())
