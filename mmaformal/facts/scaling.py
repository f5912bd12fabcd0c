"""What doubling a and c does to each step of a chain (`proof/scaling`)."""

from __future__ import annotations

from collections.abc import Sequence

from mmaformal.cases.interfaces import AnyStep
from mmaformal.encodings.smt.blocks import Trace
from mmaformal.facts.registry import facts_of
from mmaformal.proof.lemmas import Link
from mmaformal.proof.related_runs import Pairing
from mmaformal.proof.scaling import DoubledRuns, same_double
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


def runs(
    pairing: Pairing,
    spec: DotAdd,
    traces: tuple[Trace[AnyStep], Trace[AnyStep]],
    c: Link,
    assumed: dict[int, Link],
) -> None:
    """The same of two runs, with the changes of signs around them."""
    first, second = traces
    if first.inner is None or second.inner is None:
        chain(pairing, spec, (first.steps, second.steps), c, assumed)
        return
    x, y = first.inner, second.inner
    start = same_double(x.c, y.c, spec.c_format)
    text = "a double with its sign changed is the double of what has its sign changed"
    pairing.derive("signs", text, [start], [c] if spec.reads_c else [])
    chain(pairing, spec.plain, (first.steps, second.steps), start, assumed)
    if "d" in spec.negated:
        given = same_double(x.result, y.result, spec.d_format)
        pairing.derive("signs", text, [same_double(first.result, second.result, spec.d_format)], [given])
