"""A claim about something, and how it is settled."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from mmaformal.display import ShortRepr
from mmaformal.solver.answers import Answer
from mmaformal.solver.asking import Asker

Subject = TypeVar("Subject")


@dataclass(frozen=True, repr=False)
class Claim(ShortRepr, Generic[Subject]):
    """What is said of some subjects, by their names."""

    name: str
    statement: str
    of: tuple[str, ...]
    settle: Callable[[Subject, Asker], Answer]
