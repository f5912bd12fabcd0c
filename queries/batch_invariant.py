"""Whether a kernel gives a row the same result whatever batch it is in.

    answer = batch_invariant([(D1, A1, B), (D64, A64, B)], device="h100")
    print(answer)          # Holds: the same additions for every row: …; or a row and the two results

Products of one call with other M.  Rows that two of them have in common are compared first: one that differs settles
it.  Then each product is explained (`mmaformal.explain`): a structure cuts K by K alone, so that where one structure
made all of them, a row of D is one function of its row of A, of B, and of its row of C, in each.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from mmaformal.architectures import Architecture
from mmaformal.checked import Progress, caller
from mmaformal.display import ShortRepr, counted
from mmaformal.formats import Format
from mmaformal.given_matrices import GivenMatrices
from mmaformal.instruction import Instruction
from mmaformal.operands import Matrix
from mmaformal.queries.explain import explain_given
from mmaformal.queries.explained import Explanation, in_kernels_words
from mmaformal.queries.likely_structures import made_by_structure
from mmaformal.queries.structure_classes import StructureClasses
from mmaformal.queries.structure_search import codes_differ
from mmaformal.renamed import lines
from mmaformal.result import Result
from mmaformal.shown_stages import code_text, ulps_apart
from mmaformal.solver.asking import Asker
from mmaformal.solver.deadline import Deadline, checked_timeout
from mmaformal.solver.portfolio import DEFAULT_MEMORY, Portfolio
from mmaformal.solver.session import Cache, Solver, session
from mmaformal.structures import Structure, plain_name, structure_or_name

#: The part of the time that structures may take; what is left is for proving some of them the same.
_EXPLAINING = 0.9


@dataclass(frozen=True, repr=False)
class TwoResults(ShortRepr):
    """One row with two results."""

    row: int  #: of D of the product
    column: int
    product: int  #: which has the row, from 0
    result: int  #: code, in that product
    other: int  #: code, in the other product or as the other product's structure makes it
    other_product: int
    other_row: int | None  #: the same row there; None: it is not there, and the structure was run


@dataclass(frozen=True, repr=False)
class BatchInvariance(Result):
    """Whether products of one call make every row by the same additions."""

    shapes: tuple[tuple[int, int, int], ...]  #: M, K, N of each product
    d_format: Format
    explained: tuple[Explanation, ...]  #: of each product; empty where a common row settled it
    structure: Structure | None  #: that explains all of them
    others: tuple[Structure, ...]  #: more that explain all, or some, and are not known to be the same
    why_same: tuple[str, ...]  #: why structures count as one
    differs: TwoResults | None
    common: int  #: rows that two products, or two places of one, have in common
    seconds: float

    def __bool__(self) -> bool:
        return self.verdict == "holds"

    @property
    def verdict(self) -> str:
        """`holds`: one structure made all products; `fails`: a row has two results; `unknown`."""
        if self.differs is not None:
            return "fails"
        return "holds" if self.structure is not None and not self.others else "unknown"

    @property
    def summary(self) -> str:
        """One line."""
        count = counted(len(self.shapes), "product")
        if self.differs is not None:
            x = self.differs
            there = (
                f"of product {x.other_product + 1}" if x.other_product != x.product else "of the same product"
            )
            where = f"row {x.other_row} {there}" if x.other_row is not None else f"the structure {there}"
            return f"Fails: row {x.row} of product {x.product + 1} has another result than {where} gives it"
        if self.structure is None:
            return f"Unknown: no structure that was tried explains {self._without}"
        words = f"{in_kernels_words(self.structure, self.shapes[0][1])} of {plain_name(self.structure.instruction)}"
        if not self.others:
            return f"Holds: the same additions for every row of {count}: {words}"
        return f"Unknown: one structure explains all of {count}, {words}, and others are not excluded"

    @property
    def _without(self) -> str:
        if parts := [f"product {n + 1}" for n, each in enumerate(self.explained) if each.parts]:
            return f"{', '.join(parts)} alone, which has parts of other structures"
        missed = [f"product {n + 1}" for n, each in enumerate(self.explained) if each.verdict != "explained"]
        return ", ".join(missed) or "all of them"

    def __str__(self) -> str:
        out = [self.summary]
        if (x := self.differs) is not None:
            fmt, apart = self.d_format, ulps_apart(x.result, x.other, self.d_format)
            out += [
                f"column {x.column}:",
                f"  product {x.product + 1}  {code_text(x.result, fmt)}",
                f"  product {x.other_product + 1}  {code_text(x.other, fmt)}"
                + (f"  {apart:,} ulp apart" if apart else ""),
            ]
        elif self.structure is not None:
            out += [
                f"  {self.structure}",
                "  so D[i, :] is one function of A[i, :], B and C[i, :], for every M of this K",
            ]
            out += [f"  not excluded: {x}" for x in self.others[:3]]
            if self.others:
                out.append("  more elements, of wider types, or whose terms cancel, tell them apart")
            out += [f"  {each}" for each in dict.fromkeys(self.why_same)]
        for number, ((m, k, n), each) in enumerate(zip(self.shapes, self.explained, strict=False), 1):
            out.append(f"product {number}, {m}×{k} by {k}×{n}: {each.summary}")
        return "\n".join([*out, f"{counted(self.common, 'row')} in common; {self.seconds:.1f} s"])

    def to_json(self) -> dict[str, object]:
        """Plain values."""
        x = self.differs
        return {
            "verdict": self.verdict,
            "summary": self.summary,
            "structure": None if self.structure is None else self.structure.to_json(),
            "not_excluded": [each.to_json() for each in self.others],
            "why_same": list(self.why_same),
            "differs": None
            if x is None
            else {**x.__dict__, "result": f"{x.result:#x}", "other": f"{x.other:#x}"},
            "common_rows": self.common,
            "products": [each.to_json() for each in self.explained],
            "shapes": [list(each) for each in self.shapes],
            "seconds": round(self.seconds, 2),
        }


def batch_invariant(
    products: Sequence[Sequence[Matrix | None]],
    *,
    device: Architecture | str | None = None,
    against: Instruction | Structure | str | None = None,
    a_format: str | Format | None = None,
    b_format: str | Format | None = None,
    c_format: str | Format | None = None,
    d_format: str | Format | None = None,
    timeout: float = 120.0,
    memory: int = DEFAULT_MEMORY,
    solver: Solver = None,
    progress: Progress | None = None,
    cache: Cache = False,
) -> BatchInvariance:
    """Find whether products of one call, of other M, make every row by the same additions.

    Each product is (D, A, B) or (D, A, B, C), as `explain` takes them, and so are the keywords; all of one K and of the
    same types.  The verdict is `holds` where one structure explains every element of all, and no other that was tried
    explains any of them; `fails` with a row that has two results: recorded, where a row with the same C meets the
    same B twice, or else recorded and as the structure of another product makes it; `unknown` otherwise.

    `timeout`: seconds for everything.  `memory`, `solver`, `cache`: as `find_difference` has them.

    Raises ValueError for fewer than two products, another K or other types, and as `explain`.
    """
    caller(progress)
    say = lines(progress, "done") or (lambda _: None)
    against = structure_or_name(against)
    start = time.monotonic()
    checked_timeout(timeout)
    formats = a_format, b_format, c_format, d_format
    given = [_read(each, formats) for each in products]
    _check(given)
    _check_different(given)
    shapes, d = tuple(each.shape for each in given), given[0].d_format
    differs, common = _common_rows(given)
    if differs is not None:
        return BatchInvariance(shapes, d, (), None, (), (), differs, common, time.monotonic() - start)
    each = _EXPLAINING * timeout / len(given)
    with session(solver, memory, cache) as portfolio:
        found = tuple(
            explain_given(x, device, against, timeout=each, say=partial(_of_product, say, number))
            for number, x in enumerate(given, 1)
        )
        with Deadline(max(start + timeout - time.monotonic(), 0.05)) as deadline:
            decided = _Decided(given, found, portfolio)
            decided.compare(max(start + timeout - time.monotonic(), 0.05))
    sure = not deadline.expired
    return BatchInvariance(
        shapes,
        d,
        found,
        structure=decided.structure,
        others=tuple(decided.others) if sure else tuple(x for x in decided.all if x != decided.structure),
        why_same=tuple(decided.why_same),
        differs=decided.differs,
        common=common,
        seconds=time.monotonic() - start,
    )


def _read(product: Sequence[Matrix | None], formats: tuple[str | Format | None, ...]) -> GivenMatrices:
    if len(product) not in (3, 4):
        raise ValueError(f"a product is (D, A, B) or (D, A, B, C), not {len(product)} matrices")
    D, A, B, C = (*product, None)[:4]
    return GivenMatrices.of(D, A, B, C, formats)


def _of_product(say: Callable[[str], object], number: int, line: str) -> None:
    say(f"product {number}: {line}")


def _check(given: Sequence[GivenMatrices]) -> None:
    if len(given) < 2:
        raise ValueError("give two products of one call at least, of other M")
    kinds = {(x.a_format, x.b_format, x.c_format, x.d_format) for x in given}
    if len({x.shape[1] for x in given}) > 1 or len(kinds) > 1:
        said = "; ".join(f"{x.shape[1]} of {x.a_format} × {x.b_format} → {x.d_format}" for x in given)
        raise ValueError(f"products of one call have one K, the same types, and all C or none: {said}")


def _check_different(given: Sequence[GivenMatrices]) -> None:
    """Raises ValueError for a product that is given twice, which says nothing."""
    first: dict[tuple[object, ...], int] = {}
    for number, x in enumerate(given, 1):
        key = (x.shape, *(m.tobytes() for m in (x.d, x.a, x.b)), b"" if x.c is None else x.c.tobytes())
        if (other := first.setdefault(key, number)) != number:
            raise ValueError(f"products {other} and {number} are the same matrices: give products of other M")


def _common_rows(given: Sequence[GivenMatrices]) -> tuple[TwoResults | None, int]:
    """The first row with two results among those with the same A and C that meet the same B, and how many there are."""
    first: dict[tuple[bytes, bytes, bytes], tuple[int, int]] = {}
    common = 0
    for number, x in enumerate(given):
        of_b = x.b.tobytes() + bytes(str(x.b.shape), "ascii")
        for row in range(len(x.a)):
            key = of_b, x.a[row].tobytes(), b"" if x.c is None else x.c[row].tobytes()
            other, other_row = first.setdefault(key, (number, row))
            if (other, other_row) == (number, row):
                continue
            common += 1
            d, there = x.d[row], given[other].d[other_row]
            if len(wrong := np.flatnonzero(codes_differ(d, there, x.d_format))):
                at = int(wrong[0])
                return TwoResults(row, at, number, int(d[at]), int(there[at]), other, other_row), common
    return None, common


class _Decided:
    """Which structures explain all products, and which only some."""

    def __init__(
        self, given: Sequence[GivenMatrices], found: Sequence[Explanation], portfolio: Portfolio
    ) -> None:
        self.given, self.found, self.portfolio = given, found, portfolio
        self.structure: Structure | None = None
        self.others: list[Structure] = []
        self.why_same: list[str] = []
        self.differs: TwoResults | None = None
        self.all = list(
            dict.fromkeys(x for each in found for x in each.structures if each.verdict == "explained")
        )

    def compare(self, seconds: float) -> None:
        """Run each structure that explains one product on the others, and see which are one function."""
        if any(each.verdict != "explained" or each.parts for each in self.found):
            return
        wrong = {x: [self._wrong(x, n) for n in range(len(self.given))] for x in self.all}
        whole = [x for x in self.all if not any(each.any() for each in wrong[x])]
        if not whole:
            self._two_results(wrong)
            return
        self.structure, self.others = whole[0], [x for x in self.all if x != whole[0]]
        classes = StructureClasses(self.all, self.given[0].shape[1], Asker(self.portfolio, seconds))
        classes.find()
        kept = next((x for x in classes.same if x.structure == self.structure), None)
        self.structure = kept.other if kept is not None else self.structure
        self.others = [x for x in classes.kept if x != self.structure]
        self.why_same = [x.why for x in classes.same if x.other == self.structure]

    def _wrong(self, structure: Structure, number: int) -> NDArray[np.bool_]:
        x = self.given[number]
        return codes_differ(made_by_structure(x, structure), x.d, x.d_format)

    def _two_results(self, wrong: dict[Structure, list[NDArray[np.bool_]]]) -> None:
        """A row of one product, as recorded and as the structure of another makes it."""
        mine = self.found[0].structures[0]
        number = next(n for n, each in enumerate(wrong[mine]) if each.any())
        row, column = (int(x) for x in np.argwhere(wrong[mine][number])[0])
        made = made_by_structure(
            self.given[number].part(np.array([row]), np.arange(self.given[number].shape[2])), mine
        )
        recorded = int(self.given[number].d[row, column])
        self.differs = TwoResults(row, column, number, recorded, int(made[0, column]), 0, None)
