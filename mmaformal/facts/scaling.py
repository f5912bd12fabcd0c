"""What doubling a and c does to each step of a chain (`proof/scaling`)."""

from __future__ import annotations

from collections.abc import Sequence

from mmaformal.cases.interfaces import AnyStep
from mmaformal.facts.registry import facts_of
from mmaformal.proof.lemmas import Link
from mmaformal.proof.related_runs import Pairing
from mmaformal.proof.scaling import DoubledRuns
from mmaformal.spec import DotAdd


def chain(
    pairing: Pairing,
    spec: DotAdd,
    steps: tuple[Sequence[AnyStep], Sequence[AnyStep]],
    c: Link,
    assumed: dict[int, Link],
) -> Link:
    """From the link of c, step by step, to that of d; `assumed`: what is known of a, b and scales, by their codes."""
    facts = facts_of(spec)
    for left, right in zip(*steps, strict=True):
        c = facts.scaled(DoubledRuns(pairing, spec, left, right, c, assumed))
    return c
