"""The loop over the steps of a chain."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

from mmaformal.encodings.executable.blocks import Lane, Trace
from mmaformal.encodings.executable.stages import Stages
from mmaformal.spec import DotAdd
from mmaformal.stages import Stage


class HasResult(Protocol):
    """A step, whose result is a code."""

    @property
    def result(self) -> Lane: ...


StepT = TypeVar("StepT", bound=HasResult)


def chain(
    spec: DotAdd, step: Callable[[slice, Lane], StepT], c: Lane, stages: Sequence[Stage] = ()
) -> Trace[StepT]:
    """Return the trace of all steps: each takes the products of a slice, and the result before as its c."""
    size, steps = spec.parameters.step_products, list[StepT]()
    for start in range(0, spec.k, size):
        steps.append(step(slice(start, start + size), c))
        c = steps[-1].result
    return Trace(tuple(steps), c, stages)


def looped(
    step: Callable[[DotAdd, Sequence[Lane], Sequence[Lane], Lane, Stages], StepT],
) -> Callable[..., Trace[StepT]]:
    """Return the `dot_add` of an algorithm without scales, whose steps are alike and take the codes of their products.

    It gives the trace of `c + Σ a_k·b_k`, of K codes a, K codes b and one c.
    """

    def dot_add(
        spec: DotAdd, a: Sequence[Lane], b: Sequence[Lane], c: Lane, *no_scales: Sequence[Lane]
    ) -> Trace[StepT]:
        stages = Stages()
        return chain(spec, lambda k, c: step(spec, a[k], b[k], c, stages), c, stages)

    dot_add.__module__ = step.__module__
    return dot_add
