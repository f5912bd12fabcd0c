"""Records for the pages, taken from the registry, from `backing.json` and from the table of properties."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from mmaformal.accumulator import accumulator_in_words
from mmaformal.architectures import ARCHITECTURES
from mmaformal.display import ShortRepr
from mmaformal.instruction import Instruction
from mmaformal.recordings.backing import backing
from mmaformal.site.known_pairs import KnownPairs
from mmaformal.site.proofs import SiteProof
from mmaformal.spec import DotAdd

#: Meanings of the signs of the table of properties.
VERDICTS = {"✓": "holds", "✗": "fails", "?": "open", "": "not run"}

#: Products of the chains whose bounds are told.
CHAIN = 1024


@dataclass(frozen=True, repr=False)
class PropertyTable(ShortRepr):
    """tables/properties.md as data: statements, verdicts and witnesses."""

    statements: dict[str, str]  #: by the names of properties, in their order
    signs: dict[str, dict[str, str]]  #: by the label of an instruction, then by property
    witnesses: dict[tuple[str, str], str]  #: by property and label

    @classmethod
    def read(cls, page: str) -> PropertyTable:
        """Return the table that a page holds.  Raises ValueError where its rows do not fit its head, or its counts."""
        statements: dict[str, str] = {}
        counts: dict[str, list[str]] = {}
        signs: dict[str, dict[str, str]] = {}
        witnesses: dict[tuple[str, str], str] = {}
        section = ""
        for line in page.splitlines():
            cells = [cell.strip().replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
            if line.startswith("### "):
                section = line[4:]
            elif cells and cells[0].isdigit():
                statements[cells[1]], counts[cells[1]] = cells[2], cells[3:6]
            elif cells and " " in cells[0]:
                label = re.sub(r" \(\+\d+\)$", "", cells[0])
                signs[label] = dict(zip(statements, cells[1:-1], strict=True))
            elif section in statements and (witness := re.match(r"- \w+, (\S+ [^:]+): (.+)", line)):
                witnesses[section, witness[1]] = witness[2]
        for name, said in counts.items():
            column = [row[name] for row in signs.values()]
            found = [str(column.count(sign)) for sign in "✓✗?"]
            if said != found:
                raise ValueError(
                    f"{name}: the table's head counts {' '.join(said)}, its rows {' '.join(found)} (✓ ✗ ?): "
                    "was it edited? `python tools/docs/property_table.py` writes it"
                )
        return cls(statements, signs, witnesses)


@dataclass(frozen=True, repr=False)
class UnitBound(ShortRepr):
    """A row of tables/unit-bounds.md: what one step's sum is off at most, and how near errors came."""

    step: int  #: products of a step
    n: str
    F: str
    rho: str
    U: str  #: in units of 2^-24
    results: str
    nearest: str

    def of(self, products: int) -> float:
        """The bound of a chain of so many products, in units of 2^-24 of w(c) + Σ w(a)·w(b)."""
        steps = -(-products // self.step)
        return ((1 + float(self.U) * 2.0**-24) ** steps - 1) * 2.0**24

    @property
    def in_words(self) -> dict[str, str]:
        """The numbers in words, by what they are called."""
        one = f"|S − exact| ≤ {self.n} · 2^(e_max − {self.F})" if self.F else "no bit of it is lost"
        return {
            "sum of a step": one,
            "rounded with": self.rho,
            "U": f"{self.U} · 2^-24: m steps are off (1 + U)^m − 1 of w(c) + Σ w(a)·w(b) at most",
            f"{CHAIN:,} products": f"{self.of(CHAIN):.4g} · 2^-24 at most",
            "nearest": f"{self.nearest} of the bound, among {self.results} finite results",
        }


def unit_bounds(page: str) -> dict[str, UnitBound]:
    """The bounds of tables/unit-bounds.md by labels; ValueError where its rows do not fit."""
    found = {}
    for line in page.splitlines():
        cells = [cell.strip() for cell in line.split("|")[1:-1]]
        if len(cells) == 10 and " " in cells[0] and cells[2].isdigit():
            label, _, step, n, F, rho, U, results, nearest, _ = cells
            found[label] = UnitBound(int(step), n, F, rho, U, results, nearest)
    return found


#: The table where there is no page to read.
NO_PROPERTIES = PropertyTable({}, {}, {})


def shipped(name: str) -> Path:
    """A table of the checkout that this package is in, which an installed package has none of."""
    return Path(__file__).resolve().parents[2] / "tables" / name


class Atlas:
    """All instructions of the tables, with what is known of each."""

    def __init__(
        self,
        properties: PropertyTable = NO_PROPERTIES,
        bounds: Mapping[str, UnitBound] | None = None,
        pairs: Path | None = None,
        proofs: Mapping[tuple[str, str], SiteProof] | None = None,
    ) -> None:
        """Raises PairStoreError and OSError for a store of pairs that cannot be read."""
        self.properties, self.proofs = properties, proofs or {}
        self._bounds = bounds or {}
        self.instructions = [i for architecture in ARCHITECTURES.values() for i in architecture]
        self.pairs = KnownPairs(self.instructions, pairs)

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
        """A printed witness against a property: of the instruction, or of one with its `DotAdd`."""
        for each in self._alike[i.spec]:
            if (text := self.properties.witnesses.get((name, each.label))) is not None:
                return each, text
        return None

    def bound(self, i: Instruction) -> UnitBound | None:
        """The bound of an instruction, or of one with its `DotAdd`."""
        return next(filter(None, (self._bounds.get(each.label) for each in self._alike[i.spec])), None)

    def proof(self, i: Instruction, name: str) -> SiteProof | None:
        """The proof of a property that comes with the site, of an instruction or of one with its `DotAdd`."""
        found = (self.proofs.get((each.label, name)) for each in self._alike[i.spec])
        return next(filter(None, found), None)

    def row(self, i: Instruction) -> dict[str, object]:
        """An instruction as plain values, with what is behind it and its verdicts."""
        backed = backing(i)
        return {**i.row(), "behind it": backed.kind if backed else "", **self.verdicts(i)}

    def rows(self) -> list[dict[str, object]]:
        """All instructions as plain values."""
        return [self.row(i) for i in self.instructions]

    def catalogue(self) -> list[dict[str, object]]:
        """The instructions with what the playground needs to know: K, the types that must be alike, and whose it is."""
        return [
            {
                "label": i.label,
                "k": i.k,
                "types": i.spec.types,
                "takes": _takes(i),
                "own": i.architecture in ARCHITECTURES.added,
            }
            for i in self.instructions
        ]


def _takes(i: Instruction) -> str:
    spec = i.spec
    return f"{spec.a_format} {spec.b_format} {spec.c_format} {spec.scale_format} {spec.scale_block}"


def bits_kept(i: Instruction) -> str:
    """Bits that the accumulator keeps, in a few words: `13 bits`; by its first words where it has no such width."""
    first = accumulator_in_words(i.spec)[0]
    if (found := re.match(r"keeps (\d+) fractional bits", first)) is not None:
        return f"{found[1]} bits{', converted first' if i.parameters.made_of(i.spec) else ''}"
    if (found := re.match(r"has (\d+) bits", first)) is not None:
        return f"{found[1]} bits in all"
    return "all" if first.startswith("keeps every bit") else "rounds each"


def counts(verdicts: Iterable[str]) -> dict[str, int]:
    """How often there is each verdict."""
    found = list(verdicts)
    return {verdict: found.count(verdict) for verdict in VERDICTS.values()}
