"""Records of what an encoding did, stage by stage, in words that both encodings use; no arithmetic."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar, overload

from mmaformal.display import ShortRepr

T = TypeVar("T")
Value: TypeAlias = Any  #: what stages pass on: codes, operands, terms, sums, of either encoding


@dataclass(frozen=True, repr=False)
class Stage(ShortRepr):
    """One stage of a run: what it was given, by stages before it, and what it made."""

    name: str
    inputs: tuple[Value, ...]
    output: Value
    given: Mapping[str, Value]  #: what is no data: formats, widths, roundings


class Recorded(Sequence[Stage]):
    """The stages of a run in their order; an encoding adds a method for each that it knows."""

    def __init__(self) -> None:
        self._made: list[Stage] = []

    def made(self, name: str, inputs: Sequence[Value], output: T, **given: Value) -> T:
        """The output, after the stage is recorded."""
        self._made.append(Stage(name, tuple(inputs), output, given))
        return output

    @overload
    def __getitem__(self, index: int) -> Stage: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Stage]: ...
    def __getitem__(self, index: int | slice) -> Stage | Sequence[Stage]:
        return self._made[index]

    def __len__(self) -> int:
        return len(self._made)

    def __iter__(self) -> Iterator[Stage]:
        return iter(self._made)
