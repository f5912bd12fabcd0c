"""Settling a property by its own argument alone, without the equality of the encodings, which has tests of its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mmaformal.instruction import Instruction
from mmaformal.queries.property import Property
from mmaformal.solver.asking import Asker
from mmaformal.solver.portfolio import LazyPortfolio


def settled(each: Property, instruction: Instruction, timeout: float = 120.0) -> Any:
    """Return what `Property.prove` goes on from: an answer about the terms of the SMT encoding."""
    with LazyPortfolio() as portfolio:
        return each.settle(instruction, Asker(portfolio, timeout))


def one_bit_less(align: Callable[..., Any]) -> Callable[..., Any]:
    """Return an alignment that loses the last place."""
    return lambda *given: align(*given) & ~1
