"""Findings of `explain`: the structure of a product, what of it is wrong, and how much was tried."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mmaformal.architectures.known import known_but_for_nans
from mmaformal.display import ShortRepr, counted
from mmaformal.given_matrices import GivenMatrices
from mmaformal.instruction import Instruction
from mmaformal.operands import Matrix
from mmaformal.queries.regions import Regions
from mmaformal.queries.structure_search import SPACE
from mmaformal.result import Result
from mmaformal.shown_stages import code_text, ulps_apart
from mmaformal.structure_words import order_words
from mmaformal.structures import CodeArray, Structure, plain_name, replay
from mmaformal.where_wrong import where_wrong

#: Structures, units and lines that are told, at most.
_LISTED, _UNITS = 3, 6


@dataclass(frozen=True, repr=False)
class WrongPart(ShortRepr):
    """SampledElements that another structure explains, all of them."""

    where: NDArray[np.bool_]  #: (M, N)
    structure: Structure


@dataclass(frozen=True, repr=False)
class Explanation(Result):
    """Which structure made a product, which elements it did not, and what was tried."""

    given: GivenMatrices
    structures: tuple[Structure, ...]  #: the plainest first; all give the same D, of these operands
    made: CodeArray | None  #: (M, N): what they give, of the rows compared
    wrong: NDArray[np.bool_]  #: (M, N): what they do not give
    rows_compared: int  #: of D; all but where the time was up
    accepted: bool  #: whether they are D's structure, all but what is wrong
    parts: tuple[WrongPart, ...]  #: of the wrong elements
    told: tuple[str, ...]  #: what the wrong elements are instead, or why D is no product at all
    nearest: tuple[tuple[int, Structure], ...]  #: how many elements others leave wrong, of those compared
    tried: int  #: structures
    usual: bool  #: whether the usual ones alone were
    complete: bool  #: whether the time was enough for all that was to be tried
    instructions: tuple[Instruction, ...]  #: one for each function
    seconds: float
    regions: Regions | None = None  #: where several structures made D, each element's

    def __bool__(self) -> bool:
        return self.verdict == "explained"

    @property
    def unexplained(self) -> NDArray[np.bool_]:
        """SampledElements (M, N) that nothing explains."""
        left = self.wrong.copy()
        for part in self.parts:
            left &= ~part.where
        return left

    @property
    def verdict(self) -> str:
        """`explained`: every element is; `wrong`: some are not; `none`: nothing tried explains it; `unknown`."""
        if not self.accepted:
            return "none" if self.complete else "unknown"
        if self.unexplained.any():
            return "wrong"
        return "explained" if self.rows_compared == len(self.wrong) else "unknown"

    @property
    def structure(self) -> Structure | None:
        """The plainest structure that explains D, all but what is wrong; None if nothing does."""
        return self.structures[0] if self.accepted else None

    def remade(self, A: Matrix, B: Matrix, C: Matrix | None = None) -> CodeArray:
        """Bit patterns of the product of other factors of the M and N of D, or of one call, by D's regions' structures.

        A, B and C as `replay` takes them; raises ValueError where nothing explains D, and as `replay`.
        """
        if self.structure is None:
            raise ValueError("nothing explains D: there is nothing to make another product by")
        structures, which = self.by_regions
        if len(structures) == 1:
            return replay(A, B, self.structure, C, progress=False)
        made = [replay(A, B, x, C, progress=False) for x in structures]
        if made[0].shape != which.shape:
            raise ValueError(f"the regions are of a D of {which.shape}, not of {made[0].shape}")
        return np.asarray(np.choose(which, made))

    @property
    def by_regions(self) -> tuple[tuple[Structure, ...], NDArray[np.intp]]:
        """The structures of D's regions, and which of them each element is of, of one call; one if D has no regions."""
        whole = np.zeros(self.wrong.shape, np.intp)
        structures = (*self.structures[:1], *(part.structure for part in self.parts))
        if self.regions is not None:
            whole, structures = self.regions.which, self.regions.structures
        else:
            for number, part in enumerate(self.parts, 1):
                whole[part.where] = number
        rows, columns = self.wrong.shape if self.given.call is None else self.given.call
        return structures, whole[:rows, :columns]

    @property
    def first(self) -> tuple[int, int] | None:
        """Row and column of the first element that nothing explains."""
        places = np.argwhere(self.unexplained)
        return (int(places[0][0]), int(places[0][1])) if self.accepted and len(places) else None

    @property
    def summary(self) -> str:
        """One line."""
        of = f"{self.wrong.size:,} elements"
        if self.structure is None:
            if self._no_product:
                return self.told[0]
            if not self.complete:
                return (
                    "the time was up before all was tried: give more of it (--timeout), or name the --device"
                )
            return "nothing tried explains D"
        what = f"{in_kernels_words(self.structure, self.given.shape[1])} of {plain_name(self.structure.instruction)}"
        left = self.unexplained
        if left.any():
            return f"{what}, as modelled; {int(left.sum()):,} of {of} wrong: {where_wrong(left)}"
        rows = (
            "" if self.rows_compared == len(left) else f" of the first {counted(self.rows_compared, 'row')}"
        )
        return f"{what}, as modelled; every element{rows} is so, of {of}" + self._in_parts

    @property
    def _in_parts(self) -> str:
        return f", but for {counted(len(self.parts), 'part')} of it" if self.parts else ""

    @property
    def _no_product(self) -> bool:
        return not self.tried and bool(self.told)

    def __str__(self) -> str:
        lines = [self.summary, *self.given.notes]
        if self.structure is not None:
            lines += [f"  {self.structure}", *self._alike(), *self._units(self.structure.instruction)]
            for part in self.parts:
                lines += [f"{where_wrong(part.where)}: {part.structure}"]
            lines += self._first_lines()
            operands = ", ".join(self.given.written)
            lines += [
                "as a test:",
                f"  made = {self.structure.python}",
                *self._assertion(operands),
            ]
        elif self._no_product:
            lines += self.told[1:]
        else:
            of = "it is none of: " if self.complete else "to be tried: "
            lines += [of + ", ".join(plain_name(i) for i in self.instructions[:_UNITS]) + self._more]
            lines += [f"  {counted(count, 'element')} wrong: {x}" for count, x in self.nearest]
            lines += self.told
        return "\n".join([*lines, self._tried()])

    def _assertion(self, operands: str) -> list[str]:
        """The call of a test, on two lines where there are scales."""
        scales = self.given.written_scales
        call = f"  assert_matches({operands}, structure=made"
        return [f"{call},", f"                 {scales})"] if scales else [f"{call})"]

    @property
    def _more(self) -> str:
        more = len(self.instructions) - _UNITS
        return f" and {more} more, as modelled" if more > 0 else ", as modelled"

    def _alike(self) -> list[str]:
        """Structures that these elements do not tell from the first."""
        first, others = self.structures[0], self.structures[1:]
        if not others:
            return []
        orders = [
            x
            for x in others
            if (x.instruction, x.block, x.lanes) == (first.instruction, first.block, first.lanes)
        ]
        told = [f"added {order_words(x.order, x.lanes)}" for x in orders if x.order != first.order]
        rest = [
            f"{in_kernels_words(x, self.given.shape[1])} of {plain_name(x.instruction)}"
            for x in others
            if x not in orders
        ]
        words = list(dict.fromkeys([*told, *rest]))
        more = f"; and {len(words) - _LISTED} more" if len(words) > _LISTED else ""
        return [f"  these elements do not tell it from: {'; '.join(words[:_LISTED])}{more}"] if words else []

    def _units(self, instruction: Instruction) -> list[str]:
        """Others that have the same unit, but for their NaNs."""
        others = dict.fromkeys(x.split()[0] for x in known_but_for_nans(instruction.spec))
        others.pop(instruction.architecture, None)
        return (
            [
                f"  {', '.join(others)}: has the same unit, but for NaNs"
                if len(others) == 1
                else f"  {', '.join(others)} have the same unit, but for NaNs"
            ]
            if others
            else []
        )

    def _first_lines(self) -> list[str]:
        if self.first is None or self.made is None:
            return []
        row, column = self.first
        fmt = self.given.d_format
        mine, theirs = int(self.given.d[self.first]), int(self.made[self.first])
        part = self.given.part(np.array([row]), np.array([column]))
        apart = ulps_apart(mine, theirs, fmt)
        return [
            f"the first wrong one, D[{row}, {column}]:",
            f"  D         {code_text(mine, fmt)}",
            f"  the unit  {code_text(theirs, fmt)}" + (f"  {apart:,} ulp apart" if apart else ""),
            f"  in fp64   {float(part.sums()[1][0, 0]):.9g}",
            *(f"  {line}" for line in self.told),
        ]

    def _tried(self) -> str:
        m, k, n = self.given.shape
        kind = "usual structure" if self.usual else "structure"
        tried = f"{counted(self.tried, kind)} of {counted(len(self.instructions), 'instruction')}"
        early = "" if self.complete else ", not all, for the time was up"
        space = (
            "; --every-block tries all"
            if self.usual and self.accepted and self.complete
            else f" ({SPACE})"
            if not self.usual
            else ""
        )
        return f"{m}×{k} by {k}×{n}; tried: {tried}{early}{space}; {self.seconds:.1f} s"

    def rows(self) -> list[dict[str, object]]:
        """Returns a dict for each structure that explains D, all but what is wrong."""
        return [each.to_json() for each in self.structures] if self.accepted else []

    def to_json(self) -> dict[str, object]:
        """Plain values."""
        left, first = self.unexplained, self.first
        wrong: dict[str, object] = {"count": int(left.sum()) if self.accepted else None}
        if first is not None and self.made is not None:
            wrong |= {
                "where": where_wrong(left),
                "rows": np.flatnonzero(left.any(axis=1)).tolist(),
                "columns": np.flatnonzero(left.any(axis=0)).tolist(),
                "first": list(first),
                "recorded": f"{int(self.given.d[first]):#x}",
                "gives": f"{int(self.made[first]):#x}",
            }
        return {
            "verdict": self.verdict,
            "summary": self.summary,
            "structures": [each.to_json() for each in self.structures] if self.accepted else [],
            "python": self.structure.python if self.structure is not None else None,
            "wrong": wrong,
            "parts": [
                {"where": where_wrong(x.where), "structure": x.structure.to_json()} for x in self.parts
            ],
            "told": list(self.told),
            "notes": list(self.given.notes),
            "nearest": [{"wrong": count, "structure": x.to_json()} for count, x in self.nearest],
            "rows_compared": self.rows_compared,
            "tried": self.tried,
            "complete": self.complete,
            "instructions": [each.label for each in self.instructions],
            "shape": list(self.given.shape),
            "seconds": round(self.seconds, 2),
        }


def in_kernels_words(structure: Structure, K: int) -> str:
    """Returns what those who write kernels call a structure: `two-level accumulation every 128`."""
    parts = len(structure.chains(K))
    order = order_words(structure.order, structure.lanes)
    if structure.whole or parts == 1:
        words = "one chain over K"
    elif structure.block is None:
        words = f"{structure.lanes} chains by turns, added {order}"
    elif structure.order == "sequential":
        words = f"two-level accumulation every {structure.block:,}"
        words += f" (or split-K by {parts})" if structure.halved is None else ", the last two parts even"
    else:
        words = f"split-K by {parts} (parts of {structure.block:,}), added {order}"
    enters = {"start": "from C", "first": "C first", "last": "C last", "after": "C after the rounding"}
    return words + (f", {enters[structure.c_enters]}" if structure.c_enters is not None else "")
