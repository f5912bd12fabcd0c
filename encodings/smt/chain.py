"""Chains: a step over and over, each of the products that are next."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

from mmaformal.encodings.smt.blocks import BitVec, Trace
from mmaformal.spec import DotAdd
from mmaformal.stages import Stage


class Gives(Protocol):
    """A step, whose result is a code."""

    @property
    def result(self) -> BitVec: ...


Made = TypeVar("Made", bound=Gives)


def chained(
    spec: DotAdd, made: Callable[[slice, BitVec], Made], c: BitVec, stages: Sequence[Stage] = ()
) -> Trace[Made]:
    """Return the trace of `spec.k` products; `made` gives a step of some of them from the code of its c."""
    done: list[Made] = []
    stop = 0
    while stop < spec.k:
        first, stop = stop, stop + spec.parameters.step_products
        before = done[-1].result if done else c
        done.append(made(slice(first, stop), before))
    return Trace(tuple(done), done[-1].result, stages)
