"""Which instructions of the registry a model is."""

from __future__ import annotations

from functools import lru_cache

from mmaformal.architectures import ARCHITECTURES, ON_PAPER
from mmaformal.rounding import NanRule
from mmaformal.spec import DotAdd


@lru_cache(maxsize=1)
def _registry() -> dict[DotAdd, tuple[str, ...]]:
    """The labels of all instructions, by what they compute at any K."""
    found: dict[DotAdd, tuple[str, ...]] = {}
    for each in (i for arch in ARCHITECTURES.values() for i in arch):
        key = _period(each.spec)
        found[key] = (*found.get(key, ()), each.label)
    return found


def _period(spec: DotAdd) -> DotAdd:
    """Return the model at the least K that it can have."""
    return spec.replace(k=spec.period)


def known_as(spec: DotAdd) -> tuple[str, ...]:
    """The instructions that are this model, chained or cut to its K."""
    return _registry().get(_period(spec), ())


@lru_cache(maxsize=1)
def algorithms_on_paper() -> frozenset[str]:
    """The algorithms that designs on paper alone have."""
    built, on_paper = (
        {
            i.parameters.algorithm
            for name, arch in ARCHITECTURES.items()
            if (name in ON_PAPER) is paper
            for i in arch
        }
        for paper in (False, True)
    )
    return frozenset(on_paper - built)


def rarity(spec: DotAdd) -> int:
    """0 for instructions of the registry, 2 for designs on paper, 1 for others: in this order models are named."""
    return 0 if known_as(spec) else 2 if spec.parameters.algorithm in algorithms_on_paper() else 1


@lru_cache(maxsize=1)
def _registry_without_nan_rules() -> dict[DotAdd, tuple[str, ...]]:
    """The labels of all instructions, by what they compute at any K, whichever NaNs they give."""
    found: dict[DotAdd, tuple[str, ...]] = {}
    for key, labels in _registry().items():
        found[without_nan_rule(key)] = (*found.get(without_nan_rule(key), ()), *labels)
    return found


def without_nan_rule(spec: DotAdd) -> DotAdd:
    """Return the model without a rule of which NaNs it gives; a model whose NaNs are no parameter as it is."""
    return spec.replace(nan=NanRule.ANY) if "nan" in spec.parameters.keys() else spec  # noqa: SIM118


def known_but_for_nans(spec: DotAdd) -> tuple[str, ...]:
    """The instructions that are this model, chained or cut to its K, but for which NaNs they give."""
    return _registry_without_nan_rules().get(without_nan_rule(_period(spec)), ())
