"""Chains: a step over and over, each of the products that are next."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

from mmaformal.encodings.smt.blocks import BitVec, Trace
from mmaformal.encodings.smt.stages import Stages
from mmaformal.spec import DotAdd, OfAlgorithm
from mmaformal.stages import Stage


class Gives(Protocol):
    """A step, whose result is a code."""

    @property
    def result(self) -> BitVec: ...


MadeT = TypeVar("MadeT", bound=Gives)


def chained(
    spec: DotAdd, made: Callable[[slice, BitVec], MadeT], c: BitVec, stages: Sequence[Stage] = ()
) -> Trace[MadeT]:
    """Return the trace of `spec.k` products; `made` gives a step of some of them from the code of its c."""
    done: list[MadeT] = []
    stop = 0
    while stop < spec.k:
        first, stop = stop, stop + spec.parameters.step_products
        before = done[-1].result if done else c
        done.append(made(slice(first, stop), before))
    return Trace(tuple(done), done[-1].result, stages)


def looped(
    kind: type[OfAlgorithm],
    made: Callable[[DotAdd, OfAlgorithm, Sequence[BitVec], Sequence[BitVec], BitVec, Stages], MadeT],
) -> Callable[..., Trace[MadeT]]:
    """Return what makes the trace of `c + Σ a_k·b_k`, of K terms a, K terms b and one c, by `made`, which gives a step.

    The step is given the terms of its own products, its c, and the stages to note what it does in.
    """

    def dot_add(spec: DotAdd, a: Sequence[BitVec], b: Sequence[BitVec], c: BitVec) -> Trace[MadeT]:
        p, stages = spec.parameters_as(kind), Stages()
        return chained(spec, lambda own, before: made(spec, p, a[own], b[own], before, stages), c, stages)

    dot_add.__module__ = made.__module__
    return dot_add
