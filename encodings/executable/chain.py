"""The loop over the steps of a chain."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

from mmaformal.encodings.executable.blocks import Lane, Trace
from mmaformal.spec import DotAdd
from mmaformal.stages import Stage


class HasResult(Protocol):
    """A step, whose result is a code."""

    @property
    def result(self) -> Lane: ...


Step = TypeVar("Step", bound=HasResult)


def chain(
    spec: DotAdd, step: Callable[[slice, Lane], Step], c: Lane, stages: Sequence[Stage] = ()
) -> Trace[Step]:
    """Return the trace of all steps: each takes the products of a slice, and the result before as its c."""
    size, steps = spec.parameters.step_products, list[Step]()
    for start in range(0, spec.k, size):
        steps.append(step(slice(start, start + size), c))
        c = steps[-1].result
    return Trace(tuple(steps), c, stages)
