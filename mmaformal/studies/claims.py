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
    """A claim about some subjects, by their names, and how it is settled."""

    name: str
    statement: str
    of: tuple[str, ...]
    settle: Callable[[Subject, Asker], Answer]
