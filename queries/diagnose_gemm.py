"""Which instruction, in which structure, makes a whole product of matrices as a library did?

    found = diagnose_gemm(A, B, D)     # floats; of bit patterns a_format="bf16" and so on say what they are
    print(found)                       # found.structures: those that explain every element of D
    replay(A2, B2, found.structures[0])

Every instruction of the registry that takes the types, in every structure of a finite space, is run on a few rows;
those that reproduce them, on all.  Structures that explain every element are one answer where they are one function
(`mmaformal.queries.structure_classes`).
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mmaformal.architectures.known import known_but_for_nans
from mmaformal.checked import Progress, caller
from mmaformal.display import ShortRepr, counted
from mmaformal.formats import Format
from mmaformal.given_matrices import format_named
from mmaformal.instruction import Instruction
from mmaformal.operands import as_operand
from mmaformal.queries.structure_classes import MOST, SameAs, StructureClasses
from mmaformal.queries.structure_search import SPACE, StructureSearch, built, chained_ones, codes_differ
from mmaformal.renamed import lines
from mmaformal.result import Result, how_many
from mmaformal.solver.asking import Asker
from mmaformal.solver.deadline import Deadline, checked_timeout
from mmaformal.solver.portfolio import DEFAULT_MEMORY
from mmaformal.solver.session import Cache, Solver, session
from mmaformal.structures import CodeArray, Structure, plain_name, replay

#: Rows that a structure has to reproduce before it is run on all.
_FIRST_ROWS = 2
#: How many of those that explain not all are told; and of those that do, for a person.
_NEAREST, _LISTED = 3, 8
#: The part of the time that the search may take; what is left is for comparing what was found.
_SEARCHING = 0.75


#: of A, B and D
_Formats: TypeAlias = tuple[Format, Format, Format]


@dataclass(frozen=True, repr=False)
class Miss(ShortRepr):
    """A structure that does not explain every element."""

    structure: Structure
    wrong: int  #: elements of D that it gets wrong
    row: int  #: of the first of them
    column: int
    gives: int  #: code
    recorded: int  #: code


@dataclass(frozen=True, repr=False)
class GemmDiagnosis(Result):
    """The structures that explain a product, and what was tried."""

    structures: tuple[Structure, ...]  #: each explains every element; no two are known to be one function
    not_compared: int  #: more structures that explain every element
    same: tuple[SameAs, ...]
    nearest: tuple[Miss, ...]  #: told where nothing explains it
    tried: int  #: structures
    complete: bool  #: whether all were tried; if not, the time was up
    instructions: tuple[Instruction, ...]  #: one for each function
    shape: tuple[int, int, int]  #: M, K, N
    seconds: float
    space: str  #: what was tried, in words

    def __bool__(self) -> bool:
        return bool(self.structures)

    @property
    def verdict(self) -> str:
        """`one` structure explains every element; `several` do; `none` of those tried; `unknown`."""
        return how_many(len(self.structures) + self.not_compared, self.complete)

    @property
    def elements(self) -> int:
        return self.shape[0] * self.shape[2]

    @property
    def summary(self) -> str:
        """One line."""
        if not self.structures:
            early = "" if self.complete else "the time was up early: "
            return f"{early}nothing tried explains all {counted(self.elements, 'element')}"
        first, n = f"{self.structures[0]}", len(self.structures) + self.not_compared
        return first if n == 1 else f"{n:,} structures explain it: {first}; …"

    def __str__(self) -> str:
        m, k, n = self.shape
        several = len(self.structures) + self.not_compared > 1
        lines = ["not distinguished by these elements:"] if several else [self.summary]
        if several:
            lines += [f"  {each}" for each in self.structures[:_LISTED]]
            if (more := len(self.structures) + self.not_compared - _LISTED) > 0:
                lines.append(
                    f"  and {more:,} more: a product tells more if it is larger, and if its terms cancel"
                )
        listed = self.structures[:_LISTED]
        lines += dict.fromkeys(line for kept in listed for line in _who(kept.instruction))
        lines += [line for kept in listed for line in self._reasons(kept)]
        if not self.structures:
            for miss in self.nearest:
                lines.append(f"  {counted(miss.wrong, 'element')} wrong: {miss.structure}")
                at = f"D[{miss.row}, {miss.column}]"
                lines.append(f"    {at} is {miss.recorded:#x}, and {miss.gives:#x} by this")
        tried = f"{counted(self.tried, 'structure')} of {counted(len(self.instructions), 'instruction')}"
        if not self.complete:
            tried += ", not all, for the time was up"
        lines.append(
            f"{m}×{k} by {k}×{n}, {counted(self.elements, 'element')}; tried: {tried} ({self.space})"
        )
        return "\n".join(lines)

    def _reasons(self, kept: Structure) -> list[str]:
        """The structures that are the same as one, by the reason."""
        lines = []
        for why in dict.fromkeys(each.why for each in self.same if each.other == kept):
            alike = [each for each in self.same if (each.other, each.why) == (kept, why)]
            more = f", and {len(alike) - 1} more" if alike[1:] else ""
            lines.append(f"  the same: {alike[0].structure}{more}\n    ({why})")
        return lines

    def rows(self) -> list[dict[str, object]]:
        """Returns a dict for each structure that explains every element."""
        return [each.to_json() for each in self.structures]

    def to_json(self) -> dict[str, object]:
        """Plain values."""
        return {
            "explained": bool(self.structures),
            "complete": self.complete,
            "structures": [
                each.to_json() | {"known_as": list(known_but_for_nans(each.instruction.spec))}
                for each in self.structures
            ],
            "not_compared": self.not_compared,
            "same": [
                {"structure": x.structure.to_json(), "as": x.other.to_json(), "why": x.why} for x in self.same
            ],
            "nearest": [
                {
                    "structure": miss.structure.to_json(),
                    "wrong": miss.wrong,
                    "row": miss.row,
                    "column": miss.column,
                    "gives": f"{miss.gives:#x}",
                    "recorded": f"{miss.recorded:#x}",
                }
                for miss in self.nearest
            ],
            "tried": self.tried,
            "space": self.space,
            "instructions": [each.label for each in self.instructions],
            "shape": list(self.shape),
            "seconds": round(self.seconds, 2),
        }


def diagnose_gemm(
    A: ArrayLike,
    B: ArrayLike,
    D: ArrayLike,
    *,
    a_format: str | Format | None = None,
    b_format: str | Format | None = None,
    d_format: str | Format | None = None,
    instructions: Iterable[Instruction] | None = None,
    timeout: float = 300.0,
    memory: int = DEFAULT_MEMORY,
    solver: Solver = None,
    progress: Progress | None = None,
    cache: Cache = False,
) -> GemmDiagnosis:
    """Find the structures that reproduce every element of D (M×N) from A (M×K) and B (K×N); C was absent.

    Bit patterns of the formats named, or floats of exactly these types; of an array of floats the format may be left
    out (of float32 it is fp32).  A NaN is reproduced by any NaN.  Tried: every chain of one of
    `instructions` (default: all of units that are built, that take these types and can be chained) over K; K cut into
    blocks of any number of instructions (less than two that are left halved, or not), or dealt in turn to 2, 4, 8, 16
    or 32 chains; their results added in order, in pairs or in halves, in fp32 (fp64 for results of fp64); then rounded
    to D's type, to nearest even.  Instructions that differ only in which NaNs they give are tried once.

    `timeout`: seconds for everything; where they are up before all was tried, the answer says so.  `progress` is called
    with a line of text as instructions are done.  `memory`, `solver`, `cache`: as `find_difference` has them.

    Raises ValueError for shapes that do not fit or are empty, for formats that there are not, and where no instruction
    takes the types; TypeError for arrays of other types.
    """
    caller(progress)
    say = lines(progress, "done, all, instruction") or (lambda *_: None)
    start = time.monotonic()
    checked_timeout(timeout)
    given = format_named(a_format, A, "A"), format_named(b_format, B, "B"), format_named(d_format, D, "D")
    a, b, d = _checked((A, B, D), given)
    twins = {first: rest for first, *rest in _tried(instructions, given)}
    chosen, search = list(twins), _Exact(a, b, d, given[2])
    with session(solver, memory, cache) as portfolio:
        with Deadline(_SEARCHING * timeout) as deadline:
            for done, each in enumerate(chosen, 1):
                search.run(each)
                say(f"{done} of {len(chosen)} instructions, {each.label} the last", done, len(chosen), each)
        left, nearest = max(start + timeout - time.monotonic(), 0.0), list[Miss]()
        classes = StructureClasses(search.exact, a.shape[1], Asker(portfolio, left), twins.__getitem__)
        with Deadline(left):
            classes.find()
            nearest += search.nearest() if not search.exact else ()
    return GemmDiagnosis(
        tuple(classes.kept),
        max(len(search.exact) - MOST, 0),
        tuple(classes.same),
        nearest=tuple(nearest),
        tried=search.tried,
        complete=not deadline.expired,
        instructions=tuple(chosen),
        shape=(len(a), a.shape[1], b.shape[1]),
        seconds=time.monotonic() - start,
        space=SPACE,
    )


def _checked(
    arrays: Sequence[ArrayLike], formats: Sequence[Format]
) -> tuple[CodeArray, CodeArray, CodeArray]:
    """A, B and D as codes.  Raises ValueError for shapes that do not fit or are empty, TypeError for other types."""
    a, b, d = (as_operand(x, fmt, name).codes for x, fmt, name in zip(arrays, formats, "ABD", strict=True))
    if not (a.ndim == b.ndim == d.ndim == 2 and a.shape[1] == b.shape[0] and d.shape == (len(a), b.shape[1])):
        raise ValueError(f"A {a.shape}, B {b.shape}, D {d.shape}: M×K, K×N and M×N are needed")
    if not (a.size and b.size):
        raise ValueError("a product without elements, or of no products, tells nothing")
    return a, b, d


def _who(instruction: Instruction) -> list[str]:
    """Who has what is called by its plain name."""
    name, labels = plain_name(instruction), known_but_for_nans(instruction.spec)
    if name == instruction.label or not labels:
        return []
    architectures = list(dict.fromkeys(label.split()[0] for label in labels))
    return [
        f"  {name}: as {labels[0]} has it; units of {', '.join(architectures)}, which may differ in their NaNs"
    ]


def _tried(instructions: Iterable[Instruction] | None, given: _Formats) -> list[list[Instruction]]:
    """Return the `chained_ones` of the formats; raise ValueError if there are none."""
    found = chained_ones(built() if instructions is None else instructions, *given)
    if not found:
        raise ValueError(f"no instruction chains {given[0]} × {given[1]} to what rounds to {given[2]}")
    return found


# ---- searching ---------------------------------------------------------------------------------------------------


class _Exact(StructureSearch):
    """Structures that explain a few rows, run on the whole product."""

    def __init__(self, a: CodeArray, b: CodeArray, d: CodeArray, d_format: Format) -> None:
        rows = np.unique(np.linspace(0, len(a) - 1, _FIRST_ROWS).astype(np.intp))
        super().__init__(a[rows], b, d[rows], d_format)
        self.whole = a, b, d
        self.exact: list[Structure] = []
        self._missed: list[tuple[int, Structure]] = []  #: wrong ones of the first rows

    def seen(self, structure: Structure, wrong: NDArray[np.bool_]) -> None:
        count = int(wrong.sum())
        if count or self._miss(structure):
            self._missed = sorted([*self._missed, (count, structure)], key=lambda x: x[0])[: _NEAREST + 1]
        else:
            self.exact.append(structure)

    def _miss(self, structure: Structure) -> Miss | None:
        """Return what a structure gets wrong of the whole product; None if nothing."""
        a, b, wanted = self.whole
        d = replay(a, b, structure)
        wrong = codes_differ(d, wanted, self.d_format)
        if not wrong.any():
            return None
        row, column = (int(x[0]) for x in np.nonzero(wrong))
        gives, recorded = int(d[row, column]), int(wanted[row, column])
        return Miss(structure, int(wrong.sum()), row, column=column, gives=gives, recorded=recorded)

    def nearest(self) -> list[Miss]:
        """Those that get the fewest elements wrong, of the ones nearest on the first rows."""
        misses = [
            miss for _, structure in self._missed[:_NEAREST] if (miss := self._miss(structure)) is not None
        ]
        return sorted(misses, key=lambda miss: miss.wrong)
