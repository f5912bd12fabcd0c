"""An architecture: a named table of instructions, with look-up that helps when a name is wrong."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from mmaformal.instruction import SHAPE, Instruction, respell


class UnknownInstructionError(KeyError):
    """An architecture has no instruction of that name; the message lists the nearest ones and who has it."""

    def __str__(self) -> str:
        return str(self.args[0])


class UnknownRevisionError(KeyError):
    """An architecture has no revision of that name; the message lists those it has."""

    def __str__(self) -> str:
        return str(self.args[0])


def canonical_name(name: str) -> str:
    """Names compare without case, MFMA without the prefix, PTX without the qualifiers that do not touch the
    arithmetic; a scale vector size stands for the block it means (PTX ISA, "Block Scaling for mma.sync")."""
    name = name.strip().lower().removeprefix("v_mfma_")
    if re.match(r"w?mma|wgmma|tcgen05", name):
        name = re.sub(r"\.(sync|aligned|row|col|mma_async|block_scale)\b", "", name)
        name = re.sub(r"\.scale_vec::[12]x\b", ".block32", name).replace(".scale_vec::4x", ".block16")
    return name


@dataclass(frozen=True)
class Revision:
    """Another reading of an architecture, where sources differ (docs/semantics.md §9)."""

    name: str
    summary: str
    #: the instruction as this source has it; None if the source does not have it
    revise: Callable[[Instruction], Instruction | None]


class Architecture:
    """A GPU architecture, read-only: `ampere["HMMA.16816.F32"]`, `ampere.instructions`."""

    def __init__(
        self, name: str, gpus: str, instructions: Iterable[Instruction], revisions: Iterable[Revision] = ()
    ) -> None:
        self.name = name
        self.gpus = gpus
        self.instructions = tuple(instructions)
        self.revisions = {revision.name: revision for revision in revisions}
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
        return isinstance(name, str) and self._find(name) is not None

    def __getitem__(self, name: str) -> Instruction:
        instruction = self._find(name)
        if instruction is None:
            raise UnknownInstructionError(self._not_found(name))
        return instruction

    def revision(self, name: str) -> Architecture:
        """The architecture as an earlier source has it: `hopper.revision("paper-v1")`; "default" is this one.

        The result is called `hopper@paper-v1`, which `ARCHITECTURES` finds too.  Raises UnknownRevisionError.
        """
        if name == "default":
            return self
        if name not in self.revisions:
            has = ", ".join(["default", *self.revisions])
            raise UnknownRevisionError(f"{self.name} has no revision {name!r}: it has {has}")
        full_name = f"{self.name}@{name}"
        revised = (self.revisions[name].revise(instruction) for instruction in self.instructions)
        return Architecture(
            full_name,
            self.gpus,
            (replace(each, architecture=full_name) for each in revised if each is not None),
        )

    def _find(self, name: str) -> Instruction | None:
        key = canonical_name(name)
        found = self._by_name.get(key)
        return found if found is not None else self._find_sized(key)

    def _find_sized(self, key: str) -> Instruction | None:
        """An instruction that comes in many sizes is in the table in one of them."""
        shape = SHAPE.search(key)
        if shape is None:
            return None
        m, n = int(shape["m"] or shape["M"]), int(shape["n"] or shape["N"])
        for base_m, base_n in {(each.m, each.n) for each in self.instructions if each.sizes is not None}:
            base = self._by_name.get(key.replace(shape[0], respell(shape, base_m, base_n)))
            if base is not None and base.sizes is not None and (m, n) in base.sizes:
                return base.sized(m, n)
        return None

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
    """Architectures by name, in order of age; each is built when first asked for.

    `hopper@paper-v1` is the revision "paper-v1" of hopper; revisions are found, but not listed.
    """

    def __init__(self, builders: Mapping[str, Callable[[], Architecture]]) -> None:
        self._builders = dict(builders)
        self._built: dict[str, Architecture] = {}

    def __getitem__(self, name: str) -> Architecture:
        if name not in self._built:
            base, _, revision = name.partition("@")
            if base not in self._builders:
                raise KeyError(f"no architecture {base!r}; there are {', '.join(self._builders)}")
            self._built[name] = self[base].revision(revision) if revision else self._builders[base]()
        return self._built[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._builders)

    def __len__(self) -> int:
        return len(self._builders)
