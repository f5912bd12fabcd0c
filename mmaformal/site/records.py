"""Records for the pages, taken from the registry, from `backing.json` and from the table of properties."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from mmaformal.architectures import ARCHITECTURES
from mmaformal.architectures.products import PRODUCTS
from mmaformal.display import ShortRepr
from mmaformal.instruction import Instruction
from mmaformal.recordings.backing import backing
from mmaformal.spec import DotAdd

#: Meanings of the signs of the table of properties.
VERDICTS = {"✓": "holds", "✗": "fails", "?": "open", "": "not run"}


@dataclass(frozen=True, repr=False)
class PropertyTable(ShortRepr):
    """tables/properties.md as data: statements, verdicts and witnesses."""

    statements: dict[str, str]  #: by the names of properties, in their order
    signs: dict[str, dict[str, str]]  #: by the label of an instruction, then by property
    witnesses: dict[tuple[str, str], str]  #: by property and label

    @classmethod
    def read(cls, page: str) -> PropertyTable:
        """The table that a page holds; ValueError where its rows do not fit its head."""
        statements: dict[str, str] = {}
        signs: dict[str, dict[str, str]] = {}
        witnesses: dict[tuple[str, str], str] = {}
        section = ""
        for line in page.splitlines():
            cells = [cell.strip().replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
            if line.startswith("### "):
                section = line[4:]
            elif cells and cells[0].isdigit():
                statements[cells[1]] = cells[2]
            elif cells and " " in cells[0]:
                label = re.sub(r" \(\+\d+\)$", "", cells[0])
                signs[label] = dict(zip(statements, cells[1:-1], strict=True))
            elif section in statements and (witness := re.match(r"- \w+, (\S+ [^:]+): (.+)", line)):
                witnesses[section, witness[1]] = witness[2]
        return cls(statements, signs, witnesses)


#: The table where there is no page to read.
NO_PROPERTIES = PropertyTable({}, {}, {})


def shipped_page() -> Path:
    """tables/properties.md of the checkout that this package is in, which an installed package has none of."""
    return Path(__file__).resolve().parents[2] / "tables" / "properties.md"


class Atlas:
    """All instructions of the tables, with what is known of each."""

    def __init__(self, properties: PropertyTable = NO_PROPERTIES) -> None:
        self.properties = properties
        self.instructions = [i for architecture in ARCHITECTURES.values() for i in architecture]

    @cached_property
    def _alike(self) -> dict[DotAdd, list[Instruction]]:
        found: dict[DotAdd, list[Instruction]] = {}
        for i in self.instructions:
            found.setdefault(i.spec, []).append(i)
        return found

    def same_function(self, i: Instruction) -> list[Instruction]:
        """The other instructions that compute the same function, having the same `DotAdd`."""
        return [other for other in self._alike[i.spec] if other.label != i.label]

    def verdicts(self, i: Instruction) -> dict[str, str]:
        """The verdict of each property; those of the instruction that is asked in place of all with its `DotAdd`."""
        rows = (self.properties.signs.get(each.label) for each in self._alike[i.spec])
        signs = next(filter(None, rows), {})
        return {name: VERDICTS[signs.get(name, "")] for name in self.properties.statements}

    def witness(self, i: Instruction, name: str) -> tuple[Instruction, str] | None:
        """A printed witness against a property: this instruction's own, or that of the first of its algorithm."""
        own = self._alike[i.spec]
        others = [each for each in self.instructions if each.algorithm == i.algorithm]
        for each in (*own, *others):
            if (text := self.properties.witnesses.get((name, each.label))) is not None:
                return each, text
        return None

    def row(self, i: Instruction) -> dict[str, object]:
        """An instruction as plain values, with what is behind it and its verdicts."""
        backed = backing(i)
        return {**i.row(), "behind it": backed.kind if backed else "", **self.verdicts(i)}

    def rows(self) -> list[dict[str, object]]:
        """All instructions as plain values."""
        return [self.row(i) for i in self.instructions]

    def catalogue(self) -> list[dict[str, object]]:
        """The instructions with what the playground needs to know: K, and the types that must be alike."""
        return [
            {
                "label": i.label,
                "k": i.k,
                "types": i.spec.types,
                "takes": _takes(i),
            }
            for i in self.instructions
        ]


def _takes(i: Instruction) -> str:
    spec = i.spec
    return f"{spec.a_format} {spec.b_format} {spec.c_format} {spec.scale_format} {spec.scale_block}"


def devices(architecture: str) -> list[str]:
    """The names of devices that stand for an architecture."""
    return [name for each in PRODUCTS if each.architecture == architecture for name in each.names]


def counts(verdicts: Iterable[str]) -> dict[str, int]:
    """How often there is each verdict."""
    found = list(verdicts)
    return {verdict: found.count(verdict) for verdict in VERDICTS.values()}
