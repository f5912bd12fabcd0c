"""Finds the facts of an algorithm: `proofs` in its folder."""

from __future__ import annotations

from functools import lru_cache

from mmaformal.cases.interfaces import AnyStep
from mmaformal.encodings import part, with_part
from mmaformal.facts.protocol import Facts
from mmaformal.spec import DotAdd


@lru_cache(maxsize=1)
def all_facts() -> dict[str, Facts[AnyStep]]:
    """The facts of every algorithm that has some, by name: each has them as `FACTS`."""
    proofs = {name: part(name, "proofs") for name in with_part("proofs")}
    return {name: module.FACTS for name, module in proofs.items() if module is not None}


def facts_of(spec: DotAdd) -> Facts[AnyStep]:
    """Those of the algorithm of a `DotAdd`; with no method, if there is no folder for it."""
    name = spec.parameters.algorithm
    facts = all_facts().get(name) or Facts(name)
    return _signed(facts) if spec.is_signed else facts


@lru_cache(maxsize=64)
def _signed(facts: Facts[AnyStep]) -> Facts[AnyStep]:
    """Those of the same unit with changes of signs around it."""
    from mmaformal.facts.signed import SignedFacts

    return SignedFacts(facts)
