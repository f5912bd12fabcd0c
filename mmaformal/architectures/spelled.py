"""An architecture of all that can be spelled out: datapaths, emulations."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from mmaformal.architectures.base import Architecture
from mmaformal.display import first_paragraph
from mmaformal.instruction import Instruction

UnitMaker = Callable[..., Instruction]


class SpelledSpace(Architecture):
    """Instructions found where they are spelled out, by `named`, which raises for what is none; a few are listed."""

    def __init__(
        self,
        name: str,
        title: str,
        listed: Iterable[Instruction],
        kinds: Mapping[str, UnitMaker],
        spelling: Callable[[UnitMaker], str],
        named: Callable[[str], Instruction],
    ) -> None:
        super().__init__(name, title, listed)
        self.kinds, self._spelling, self._named = kinds, spelling, named

    @property
    def spellings(self) -> tuple[str, ...]:
        """How each is spelled, with its arguments, and what it is."""
        return tuple(f"{self._spelling(each)}: {first_paragraph(each)}" for each in self.kinds.values())

    def _find(self, name: str) -> Instruction | None:
        found = super()._find(name) or self._spelled(name)
        return found if isinstance(found, Instruction) else None

    def _not_found(self, name: str) -> str:
        why = self._spelled(name)
        return why if isinstance(why, str) else super()._not_found(name)

    def _spelled(self, name: str) -> Instruction | str:
        """Return what is spelled out, or why it is none."""
        try:
            return self._named(name)
        except (TypeError, ValueError, KeyError) as error:
            return str(error)
