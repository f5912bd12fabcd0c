"""From three matrices to a verdict: which unit, in which structure, made D of A and B, and what of D is wrong.

    found = explain(D, A, B, device="h100")
    print(found)        # two-level accumulation every 128 of hopper HMMA.16816.F32, …; 64 elements wrong: all of row 17

Structures are compared with a few rows and columns of each quarter of D, so that a bug in one part does not hide the
structure; those that leave the fewest elements wrong, with all of D.  One is taken for D's where what it leaves
wrong lies in a part of the rows or columns; elements that are wrong all over D are another structure's, or unit's.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from mmaformal.architectures import Architecture
from mmaformal.architectures.meant import architecture_meant, instruction_meant
from mmaformal.checked import Progress, caller
from mmaformal.formats import Format, bf16, e4m3, fp16, fp32, fp64
from mmaformal.given_matrices import GivenMatrices, given_scales, is_of
from mmaformal.given_scales import ScaleLayout
from mmaformal.instruction import Instruction
from mmaformal.operands import Matrix
from mmaformal.queries.explained import Explanation, WrongPart
from mmaformal.queries.likely_structures import Compared, Likely, Tournament
from mmaformal.queries.other_products import other_products
from mmaformal.queries.regions import Regions, in_regions
from mmaformal.queries.structure_search import STAGES, built, chained_ones
from mmaformal.queries.wrong_elements import gross_faults, is_reference, roundings_off, what_they_are
from mmaformal.renamed import lines
from mmaformal.shown_stages import ulps_apart
from mmaformal.solver.deadline import Deadline, checked_timeout
from mmaformal.structures import CodeArray, Structure, structure_or_name

#: Structures that are told where none is D's.
_TOLD = 3
#: The part of the time that the search may take, and of what is left, the comparison with all of D.
_SEARCHING, _COMPARING = 0.6, 0.7
#: Elements that a part of D has at least, for which a structure of its own is looked for; or that is a bug's if it is
#: wrong nearly throughout.
_OWN, _LINE, _FULL = 16, 8, 0.5
#: The most that another rounding moves a result, in ulp; the wrong elements that are looked at for it; and how many of
#: a bug's may be so near by chance.
_ROUNDING, _LOOKED_AT, _BY_CHANCE = 2, 256, 0.1


def explain(
    D: Matrix,
    A: Matrix,
    B: Matrix,
    C: Matrix | None = None,
    *,
    device: Architecture | str | None = None,
    against: Instruction | Structure | str | None = None,
    every_block: bool = False,
    call: tuple[int, int] | None = None,
    a_format: str | Format | None = None,
    b_format: str | Format | None = None,
    c_format: str | Format | None = None,
    d_format: str | Format | None = None,
    scale_a: Matrix | None = None,
    scale_b: Matrix | None = None,
    scale_layout: ScaleLayout = "auto",
    scale_format: str | Format | None = None,
    timeout: float = 60.0,
    progress: Progress | None = None,
) -> Explanation:
    """Find which unit, in which structure, made D (M×N) of A (M×K), B (K×N) and C (M×N, or broadcast to it), and which
    elements it did not make.

    Arrays, tensors, or anything with `__dlpack__`: bit patterns of the formats named, or floats, of these types or of
    wider ones whose elements are numbers of the format named (`a_format="bf16"` of float32).

    `device` is where it ran, an architecture or a name of `mmaformal list --devices`; `against` the one instruction, or
    structure, that is to have made it; without either all that are built are tried.  Tried are the usual structures,
    and where none is D's, or with `every_block=True`, the whole space of `diagnose_gemm`; C enters where the chain
    starts, before or after the chains' results, or after D is rounded.

    `scale_a` and `scale_b`: block scales, of the blocks of K of each row of A and column of B: plain, M×⌈K/S⌉ and
    ⌈K/S⌉×N or its transpose, padded to 128 rows and 4 blocks, or in cuBLAS's tiles of these, as `scale_layout` says, or
    their shape; of `scale_format`, where their type does not say it.  Of fp4, bytes above 15 are pairs of numbers.

    `call=(M, N)`: D is of several calls of the library, each of so many rows and columns, side by side and below one
    another; regions are those of a call, and each of their elements is seen in all calls.

    `timeout`: seconds for everything.  Returns an `Explanation`; its verdict is `explained`, `wrong` (elements), `none`
    or `unknown`.

    Raises ValueError for shapes that do not fit or are empty, formats that there are not, and where no instruction
    takes the types; TypeError for arrays of other types.
    """
    caller(progress)
    say = lines(progress, "done") or (lambda _: None)
    checked_timeout(timeout)

    against = structure_or_name(against)
    scales = given_scales(scale_a, scale_b, scale_layout, scale_format)
    given = GivenMatrices.of(D, A, B, C, (a_format, b_format, c_format, d_format), call, scales)
    found = explain_given(given, device, against, every_block=every_block, timeout=timeout, say=say)
    if found.accepted or not found.tried:
        return found
    return replace(found, told=(*found.told, *_elsewhere(device, against)))


def explain_given(
    given: GivenMatrices,
    device: Architecture | str | None,
    against: Instruction | Structure | str | None,
    *,
    every_block: bool = False,
    timeout: float,
    say: Callable[[str], object],
) -> Explanation:
    """Explain matrices that were read, as `explain` does."""
    start = time.monotonic()

    def left() -> float:
        return max(start + timeout - time.monotonic(), 0.05)

    instructions = _instructions(given, device, against)
    work, searching = _Work(given, say), Deadline(_SEARCHING * timeout)
    if not (told := gross_faults(given)):
        with searching:
            work.search(instructions, every_block, against if isinstance(against, Structure) else None)
        with Deadline(left() * _COMPARING):
            work.compare()
        work.choose()
        with Deadline(left()):
            work.look_closer(instructions)
        told = work.told if work.accepted else is_reference(given) or other_products(given)
    return work.found(instructions, told, complete=not searching.expired, seconds=time.monotonic() - start)


def _instructions(
    given: GivenMatrices, device: Architecture | str | None, against: Instruction | Structure | str | None
) -> list[Instruction]:
    """The instructions to try, one for each function; raises ValueError if there are none."""
    if device is not None and against is not None:
        raise ValueError("give device, or against, not both")
    formats = given.a_format, given.b_format, given.d_format
    one = against.instruction if isinstance(against, Structure) else against
    if one is not None:
        among, of = [instruction_meant(one)], f"{instruction_meant(one).label} does not chain"
    elif device is not None:
        arch = architecture_meant(device)
        among, of = list(arch), f"no instruction of {arch.name} chains"
    else:
        among, of = built(), "no instruction chains"
    found = [first for first, *_ in chained_ones(among, *formats, given.scales)]
    if not found:
        scales = given.scales
        with_ = "" if scales is None else f", with scales of {scales.fmt} for {scales.block} products,"
        raise ValueError(
            f"{of} {formats[0]} × {formats[1]}{with_} to what rounds to {formats[2]}{_instead(given)}"
        )
    return found


def _elsewhere(device: object, against: object) -> list[str]:
    """Say what else to try where nothing tried is D's."""
    given = "against" if against is not None else "device" if device is not None else None
    return [] if given is None else [f"leave {given} out to try the units of all devices"]


def _instead(given: GivenMatrices) -> str:
    """Returns a hint where wide floats are all numbers of a narrower format, which may be meant."""
    for fmt in (e4m3, bf16, fp16):
        if (
            given.a_format in (fp32, fp64)
            and is_of(given.a, given.a_format, fmt)
            and is_of(given.b, given.b_format, fmt)
        ):
            return f'; all of A and B are {fmt} numbers: a_format="{fmt}", b_format="{fmt}"?'
    return ""


class _Work:
    """The findings so far; whole at any time, since time may be up at any."""

    def __init__(self, given: GivenMatrices, say: Callable[[str], object]) -> None:
        self.given, self._say = given, say
        self.alike: list[Structure] = []
        self.made: CodeArray | None = None
        self.wrong = np.ones(given.d.shape, bool)
        self.rows_compared = 0
        self.accepted = False
        self.parts: list[WrongPart] = []
        self.regions: Regions | None = None
        self.told: list[str] = []
        self.nearest: list[tuple[int, Structure]] = []
        self.usual = True
        self._search, self._tournament = Likely(given), Tournament(given, say)
        self._only: Structure | None = None

    @property
    def tried(self) -> int:
        return self._search.tried

    def search(self, instructions: Sequence[Instruction], every_block: bool, only: Structure | None) -> None:
        """Run structures on a part of D: the usual ones, and the others where none of these is D's."""
        self._only = only
        if only is not None:
            self._search.tried = 1
            return
        vectors = [i for i in instructions if i.k == 1]
        for stage in STAGES:
            self.usual = stage == "usual"
            for number, each in enumerate(instructions, 1):
                self._say(
                    f"{number} of {len(instructions)} instructions, {self.tried:,} structures: {each.label}"
                )
                self._search.run(each, stage)
            if not every_block:
                self.compare()
                if vectors and stage in ("lanes", "wide") and self.wrong.any():
                    self.in_regions(vectors)
                early = stage == "usual" or (stage == "lanes" and self.regions is None)
                if self.accepted and not (vectors and early and self.wrong.any()):
                    return

    def compare(self) -> None:
        """Compare the likeliest structures with all of D, and take the one that leaves the fewest elements wrong."""
        if self.regions is not None:
            return
        self._tournament.run(self._search.best() if self._only is None else [self._only])
        self.choose()

    def in_regions(self, instructions: Sequence[Instruction]) -> None:
        """Look for structures of the regions of D, and take them if they explain it, all but a bug's part."""
        compared = [x for x in self._tournament.compared.values() if x.rows == len(self.wrong)]
        if not compared:
            return
        first = min(compared, key=lambda x: int(x.wrong.sum()))
        found = in_regions(self.given, first, instructions, self._say, self._count)
        if found is None or not self._is_in_part(
            Compared(first.structure, found.made, found.wrong, first.rows)
        ):
            return
        self.accepted, self.alike, self.nearest = True, [found.structures[0]], []
        self.made, self.rows_compared, self.regions = found.made, first.rows, found
        self.wrong = (found.which != 0) | found.wrong
        self.parts = [
            WrongPart((found.which == number) & ~found.wrong, structure)
            for number, structure in enumerate(found.structures)
            if number and (found.which == number).any()
        ]

    def _count(self, tried: int) -> None:
        self._search.tried += tried

    def choose(self) -> None:
        """Take the structure that leaves the fewest elements wrong, of what was compared, and those that are alike."""
        if self.regions is not None:
            return
        found = sorted(
            self._tournament.compared.values(), key=lambda x: (not self._is_in_part(x), int(x.wrong.sum()))
        )
        if not found:
            return
        best = found[0]
        self.rows_compared, self.made, self.wrong = best.rows, best.made, best.wrong
        self.accepted = self._is_in_part(best) or (self._only is not None and not best.wrong.all())
        self.alike = [x.structure for x in found if (x.wrong == best.wrong).all()] if self.accepted else []
        self.nearest = [] if self.accepted else [(int(x.wrong.sum()), x.structure) for x in found[:_TOLD]]

    def _is_in_part(self, x: Compared) -> bool:
        """Whether what is wrong is a part of D, as of a bug, not elements here and there, as of another rounding."""
        wrong, given = x.wrong, self.given
        if min(float(wrong[: x.rows].any(axis=axis).mean()) for axis in (0, 1)) > _FULL:
            return False
        rows, columns = (wrong.mean(axis=axis) > _FULL for axis in (1, 0))
        rest = wrong & ~rows[:, None] & ~columns
        box = rest[np.ix_(rest.any(axis=1), rest.any(axis=0))]
        if box.size >= _LINE and box.mean() > _FULL:
            return True
        places = [(int(row), int(column)) for row, column in np.argwhere(rest)[:_LOOKED_AT]]
        apart = [ulps_apart(int(given.d[at]), int(x.made[at]), given.d_format) for at in places]
        near = sum(each is not None and each <= _ROUNDING for each in apart)
        return near <= _BY_CHANCE * len(apart)

    def found(
        self, instructions: Sequence[Instruction], told: Sequence[str], *, complete: bool, seconds: float
    ) -> Explanation:
        """Return what is found so far, with what is told of wrong elements or of the whole D."""
        return Explanation(
            given=self.given,
            structures=tuple(self.alike),
            made=self.made,
            wrong=self.wrong,
            rows_compared=self.rows_compared,
            accepted=self.accepted,
            parts=tuple(self.parts),
            told=tuple(told),
            nearest=tuple(self.nearest),
            tried=self.tried,
            usual=self.usual,
            complete=complete,
            instructions=tuple(instructions),
            seconds=seconds,
            regions=self.regions,
        )

    def look_closer(self, instructions: Sequence[Instruction]) -> None:
        """Say what the wrong elements are: of another structure, or what they are instead."""
        if not self.accepted or self.made is None or not self.wrong.any():
            return
        if self.regions is not None:
            if self.regions.wrong.any():
                self.told = what_they_are(self.given, self.alike[0], self.regions.wrong, self.made)
            return
        self.told = what_they_are(self.given, self.alike[0], self.wrong, self.made)
        rows, columns = np.flatnonzero(self.wrong.any(axis=1)), np.flatnonzero(self.wrong.any(axis=0))
        whole = bool(self.wrong[np.ix_(rows, columns)].mean() > _FULL) and len(rows) * len(columns) >= _OWN
        if not self.told and whole and self._only is None:
            part = _Work(self.given.part(rows, columns), self._say)
            part.search(instructions, False, None)
            if part.accepted and not part.wrong.any() and part.rows_compared == len(rows):
                where = np.zeros_like(self.wrong)
                where[np.ix_(rows, columns)] = True
                self.parts = [WrongPart(where, part.alike[0])]
        if not self.told and not self.parts:
            self.told = roundings_off(self.given, self.wrong, self.made)
