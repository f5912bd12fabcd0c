"""An architecture: a named table of instructions, with look-up that helps when a name is wrong."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping

from mmaformal.instruction import Instruction


class UnknownInstructionError(KeyError):
    """An architecture has no instruction of that name; the message lists the nearest ones and who has it."""

    def __str__(self) -> str:
        return str(self.args[0])


def canonical_name(name: str) -> str:
    """Names compare without case, and PTX without the qualifiers that do not touch the arithmetic."""
    name = name.strip().lower()
    if re.match(r"w?mma|wgmma|tcgen05", name):
        name = re.sub(r"\.(sync|aligned|row|col)\b", "", name)
    return name


class Architecture:
    """A GPU architecture, read-only: `ampere["HMMA.16816.F32"]`, `ampere.instructions`."""

    def __init__(self, name: str, gpus: str, instructions: Iterable[Instruction]) -> None:
        self.name = name
        self.gpus = gpus
        self.instructions = tuple(instructions)
        self._by_name: dict[str, Instruction] = {}
        for instruction in self.instructions:
            for spelling in (instruction.name, *instruction.aliases):
                key = canonical_name(spelling)
                if key in self._by_name:
                    raise ValueError(f"{name} lists {spelling} twice")
                self._by_name[key] = instruction

    def __repr__(self) -> str:
        return f"<Architecture {self.name}: {len(self.instructions)} instructions>"

    def __str__(self) -> str:
        return self.name

    def __iter__(self) -> Iterator[Instruction]:
        return iter(self.instructions)

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and canonical_name(name) in self._by_name

    def __getitem__(self, name: str) -> Instruction:
        try:
            return self._by_name[canonical_name(name)]
        except KeyError:
            raise UnknownInstructionError(self._not_found(name)) from None

    def _not_found(self, name: str) -> str:
        from mmaformal.architectures import ARCHITECTURES

        lines = [f"{self.name} has no instruction {name!r}."]
        nearest = difflib.get_close_matches(canonical_name(name), self._by_name, n=4, cutoff=0.5)
        if nearest:
            names = dict.fromkeys(self._by_name[key].name for key in nearest)
            lines.append(f"Nearest on {self.name}: {', '.join(names)}.")
        else:
            lines.append(f"`mmaformal list {self.name}` shows what it has.")
        owners = [other.name for other in ARCHITECTURES.values() if name in other]
        if owners:
            lines.append(f"{name} is on: {', '.join(owners)}.")
        return " ".join(lines)


class ArchitectureTable(Mapping[str, Architecture]):
    """Architectures by name, in order of age; each is built when first asked for."""

    def __init__(self, builders: Mapping[str, Callable[[], Architecture]]) -> None:
        self._builders = dict(builders)
        self._built: dict[str, Architecture] = {}

    def __getitem__(self, name: str) -> Architecture:
        if name not in self._built:
            if name not in self._builders:
                raise KeyError(f"no architecture {name!r}; there are {', '.join(self._builders)}")
            self._built[name] = self._builders[name]()
        return self._built[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._builders)

    def __len__(self) -> int:
        return len(self._builders)
