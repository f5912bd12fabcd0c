"""Which instruction, in which structure, makes a whole product of matrices as a library did?

    found = diagnose_gemm(A, B, D, a_format="bf16", b_format="bf16", d_format="bf16")
    print(found)                       # found.structures: those that explain every element of D
    replay(A2, B2, found.structures[0])

Every instruction of the registry that takes the types, in every structure of a finite space, is run on a few rows;
those that reproduce them, on all.  Structures that explain every element are one answer where they are the same
additions of the same instruction, of instructions proved equal, or are proved to be the same function but for results
below the least normal number.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mmaformal.architectures import ARCHITECTURES, ON_PAPER
from mmaformal.cases.codes import is_nan
from mmaformal.display import ShortRepr, counted
from mmaformal.facts.registry import facts_of
from mmaformal.formats import FORMATS, Format, fp32, fp64
from mmaformal.gemm import holds
from mmaformal.instruction import Instruction, as_codes
from mmaformal.kernels import Kernel, kernel_for
from mmaformal.proof.lemmas import Relay
from mmaformal.queries.classes import as_instruction
from mmaformal.queries.find_difference import find_difference
from mmaformal.solver.answers import Equal, Proof
from mmaformal.solver.asking import Asker
from mmaformal.structures import Codes, Merging, Structure, finished, merged, products, replay

#: How many chains may take the instructions of K in turn.
LANES = (2, 4, 8, 16, 32)
#: Of how many instructions the first half of what is left is a multiple.
HALVED = (1, 2, 4, 8, 16)
ORDERS: tuple[Merging, ...] = ("sequential", "pairwise", "halves")
#: Rows that a structure has to reproduce before it is run on all.
_FIRST_ROWS = 2
#: How many of those that explain not all are told.
_NEAREST = 3


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
class SameAs(ShortRepr):
    """A structure that explains every element, as another one does, and why they are one answer."""

    structure: Structure
    other: Structure
    why: str
    proof: Proof | None = None


@dataclass(frozen=True, repr=False)
class GemmDiagnosis(ShortRepr):
    """What explains a product, and what was tried."""

    structures: tuple[Structure, ...]  #: each explains every element; no two are known to be one function
    same: tuple[SameAs, ...]
    nearest: tuple[Miss, ...]  #: told where nothing explains it
    tried: int  #: structures
    instructions: tuple[Instruction, ...]  #: one for each function
    shape: tuple[int, int, int]  #: M, K, N
    seconds: float
    space: str  #: what was tried, in words

    def __bool__(self) -> bool:
        return bool(self.structures)

    @property
    def elements(self) -> int:
        return self.shape[0] * self.shape[2]

    @property
    def summary(self) -> str:
        """One line."""
        if not self.structures:
            return f"nothing tried explains all {counted(self.elements, 'element')}"
        first = f"{self.structures[0]}"
        return (
            first
            if len(self.structures) == 1
            else f"{len(self.structures)} structures explain it: {first}; …"
        )

    def __str__(self) -> str:
        m, k, n = self.shape
        lines = [self.summary] if len(self.structures) < 2 else ["not told apart by these elements:"]
        if len(self.structures) > 1:
            lines += [f"  {each}" for each in self.structures]
        for kept in self.structures:
            reasons = dict.fromkeys(each.why for each in self.same if each.other == kept)
            for why in reasons:
                alike = [each for each in self.same if (each.other, each.why) == (kept, why)]
                more = f", and {len(alike) - 1} more" if alike[1:] else ""
                lines.append(f"  the same: {alike[0].structure}{more}\n    ({why})")
        if not self.structures:
            for miss in self.nearest:
                lines.append(f"  {counted(miss.wrong, 'element')} wrong: {miss.structure}")
                at = f"D[{miss.row}, {miss.column}]"
                lines.append(f"    {at} is {miss.recorded:#x}, and {miss.gives:#x} by this")
        tried = f"{counted(self.tried, 'structure')} of {counted(len(self.instructions), 'instruction')}"
        lines.append(
            f"{m}×{k} by {k}×{n}, {counted(self.elements, 'element')}; tried: {tried} ({self.space})"
        )
        return "\n".join(lines)

    def to_json(self) -> dict[str, object]:
        """Plain values."""
        return {
            "explained": bool(self.structures),
            "structures": [each.to_json() for each in self.structures],
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


Progress = Callable[[int, int, Instruction], None]


def diagnose_gemm(
    A: ArrayLike,
    B: ArrayLike,
    D: ArrayLike,
    *,
    a_format: str | Format,
    b_format: str | Format,
    d_format: str | Format,
    instructions: Iterable[Instruction] | None = None,
    timeout: float = 60.0,
    progress: Progress | None = None,
) -> GemmDiagnosis:
    """The structures that reproduce every element of D (M×N) from A (M×K) and B (K×N); C was absent.

    Bit patterns, or floats of exactly the types named.  A NaN is reproduced by any NaN.  Tried: every chain of one of
    `instructions` (default: all of units that are built, that take these types and can be chained) over K; K cut into
    blocks of any number of instructions (less than two that are left halved, or not), or dealt in turn to 2, 4, 8, 16
    or 32 chains; their results added in order, in pairs or in halves, in fp32 (fp64 for results of fp64); then rounded
    to D's type, to nearest even.  `timeout`, in seconds, is for proving that structures which explain it are the same.
    `progress(done, all, instruction)` is called as they are done.

    Raises ValueError for shapes that do not fit or are empty, for formats that there are not, and where no instruction
    takes the types; TypeError for arrays of other types.
    """
    start = time.monotonic()
    given = tuple(_format(each) for each in (a_format, b_format, d_format))
    a, b, d = (as_codes(x, fmt, name) for x, fmt, name in zip((A, B, D), given, "ABD", strict=True))
    if not (a.ndim == b.ndim == d.ndim == 2 and a.shape[1] == b.shape[0] and d.shape == (len(a), b.shape[1])):
        raise ValueError(f"A {a.shape}, B {b.shape}, D {d.shape}: M×K, K×N and M×N are needed")
    if not (a.size and b.size):
        raise ValueError("a product without elements, or of no products, tells nothing")
    there_are = (i for name, arch in ARCHITECTURES.items() if name not in ON_PAPER for i in arch)
    every = there_are if instructions is None else instructions
    chosen = chained_ones(every, *given)
    if not chosen:
        raise ValueError(f"no instruction chains {given[0]} × {given[1]} to what rounds to {given[2]}")
    search = _Search(a, b, d, given[2])
    for done, instruction in enumerate(chosen, 1):
        search.run(instruction)
        if progress is not None:
            progress(done, len(chosen), instruction)
    kept, same = _classes(search.exact, a.shape[1], timeout)
    return GemmDiagnosis(
        tuple(kept),
        tuple(same),
        nearest=() if kept else tuple(search.nearest()),
        tried=search.tried,
        instructions=tuple(chosen),
        shape=(len(a), a.shape[1], b.shape[1]),
        seconds=time.monotonic() - start,
        space=f"blocks of every size, the last two even or not, {', '.join(map(str, LANES))} lanes; "
        + ", ".join(ORDERS),
    )


def _format(x: str | Format) -> Format:
    if isinstance(x, Format):
        return x
    if x not in FORMATS:
        raise ValueError(f"no format {x!r}; there are {', '.join(FORMATS)}")
    return FORMATS[x]


def chained_ones(instructions: Iterable[Instruction], a: Format, b: Format, d: Format) -> list[Instruction]:
    """Of those whose chains compute the same function one each, that of the fewest products."""
    found: dict[object, Instruction] = {}
    for i in instructions:
        takes = (i.a_format, i.b_format) == (a, b) and i.spec.scale_format is None
        if not takes or i.c_format != i.d_format or not holds(i.d_format, d) or not holds(fp64, i.d_format):
            continue
        # A longer K is a chain of steps, as a chain of instructions is.
        step = i.spec if i.spec.product_order else i.spec.replace(k=i.parameters.step_products)
        if step not in found or i.k < found[step].k:
            found[step] = i
    return list(found.values())


# ---- searching ---------------------------------------------------------------------------------------------------


class _Search:
    """Structures run on a product."""

    def __init__(self, a: Codes, b: Codes, d: Codes, d_format: Format) -> None:
        self.a, self.b, self.d, self.d_format = a, b, d, d_format
        self.rows = np.unique(np.linspace(0, len(a) - 1, _FIRST_ROWS).astype(np.intp))
        self.exact: list[Structure] = []
        self.tried = 0
        self._missed: list[tuple[int, Structure]] = []  #: wrong ones of the first rows

    def run(self, instruction: Instruction) -> None:
        """All structures of one instruction."""
        chains = _Chains(instruction, self.a[self.rows], self.b)
        wanted = self.d[self.rows]
        for structures in self._alike(instruction):
            parts = structures[0].parts(self.a.shape[1])
            sums = [chains.run(part) for part in parts]
            for structure in structures:
                self.tried += 1
                wrong = int(differ(finished(sums, structure), wanted, self.d_format).sum())
                if wrong or self._miss(structure):
                    self._missed.append((wrong, structure))
                else:
                    self.exact.append(structure)
        self._missed = sorted(self._missed, key=lambda x: x[0])[:_NEAREST]

    def _alike(self, i: Instruction) -> Iterator[list[Structure]]:
        """All structures, those of the same chains together."""
        K = self.a.shape[1]
        steps = -(-K // i.k)
        end = None if i.d_format == self.d_format else self.d_format
        total = fp32 if holds(fp32, i.d_format) else fp64
        yield [Structure(i, total=total, d_format=end)]
        for block, lanes in [(each * i.k, 1) for each in range(1, steps)] + [
            (None, n) for n in LANES if n < steps
        ]:
            two = (lanes if block is None else -(-K // block)) == 2
            of_parts: dict[tuple[range, ...], list[Structure]] = {}
            for halved in (None, *(i.k * n for n in HALVED)) if block is not None and K % block else (None,):
                for order in ORDERS[:1] if two else ORDERS:
                    cut = Structure(
                        i, block, halved=halved, lanes=lanes, order=order, total=total, d_format=self.d_format
                    )
                    of_parts.setdefault(tuple(cut.parts(K)), []).append(cut)
            yield from of_parts.values()

    def _miss(self, structure: Structure) -> Miss | None:
        """What it gets wrong of the whole product; None if nothing."""
        d = replay(self.a, self.b, structure)
        wrong = differ(d, self.d, self.d_format)
        if not wrong.any():
            return None
        row, column = (int(x[0]) for x in np.nonzero(wrong))
        gives, recorded = int(d[row, column]), int(self.d[row, column])
        return Miss(structure, int(wrong.sum()), row, column=column, gives=gives, recorded=recorded)

    def nearest(self) -> list[Miss]:
        """Those that get the fewest elements wrong, of the ones nearest on the first rows."""
        misses = [miss for _, structure in self._missed if (miss := self._miss(structure)) is not None]
        return sorted(misses, key=lambda miss: miss.wrong)


class _Chains:
    """Chains of one instruction over any part of K, of a few rows; operands are decoded once."""

    def __init__(self, instruction: Instruction, a: Codes, b: Codes) -> None:
        k = instruction.k
        self.steps = -(-a.shape[1] // k)
        missing = self.steps * k - a.shape[1]
        self.kernel: Kernel = kernel_for(instruction.spec)
        self.a = self.kernel.rows(np.pad(a, ((0, 0), (0, missing))))
        self.b = self.kernel.columns(np.pad(b, ((0, missing), (0, 0))))
        self.shape, self.word = (len(a), b.shape[1]), instruction.d_format.word

    def run(self, part: range) -> Codes:
        """The codes of one chain's results, from +0."""
        d = np.zeros(self.shape, self.word)
        if part.step == 1:
            self.kernel.run(self.a, self.b, d, part.start, part.stop)
        else:
            for step in part:
                self.kernel.run(self.a, self.b, d, step, step + 1)
        return d


def differ(x: Codes, y: Codes, fmt: Format) -> NDArray[np.bool_]:
    """Where codes differ; NaNs are one."""
    return np.asarray((x != y) & ~(_nan(x, fmt) & _nan(y, fmt)))


def _nan(x: Codes, fmt: Format) -> NDArray[np.bool_]:
    return np.asarray(is_nan(x.astype(np.int64), fmt))


# ---- structures that are one function ------------------------------------------------------------------------------


def _classes(exact: Sequence[Structure], K: int, timeout: float) -> tuple[list[Structure], list[SameAs]]:
    """One of each function, the simplest, and why others are the same."""
    kept: list[Structure] = []
    same: list[SameAs] = []
    with Relay() as portfolio:
        asker = Asker(portfolio, timeout)
        for structure in sorted(exact, key=lambda x: (not x.whole, len(x.parts(K)), ORDERS.index(x.order))):
            for other in kept:
                if (found := _why_same(structure, other, K, asker)) is not None:
                    same.append(SameAs(structure, other, *found))
                    break
            else:
                kept.append(structure)
    return kept, same


def _why_same(x: Structure, y: Structure, K: int, asker: Asker) -> tuple[str, Proof | None] | None:
    """Why both give the same D for all A and B; None where that is not known."""
    if x.result != y.result or x.total != y.total:
        return None
    if _chains(x, K) == _chains(y, K) and _tree(x, K) == _tree(y, K):
        if x.instruction.spec == y.instruction.spec:
            return f"the same additions for K = {K}; another K may tell them apart", None
        # The last instruction may take zeros for products that are not there, and not as many in both.
        alike = x.instruction.k == y.instruction.k or K % x.instruction.k == K % y.instruction.k == 0
        proof = _equal(x.instruction, y.instruction, asker.timeout) if alike else None
        return ("the same additions, of steps proved equal", proof) if proof is not None else None
    if x.instruction.spec != y.instruction.spec or x.total != fp32:
        return None
    numbers: dict[tuple[int, int], int] = {}
    if additions(x, K, numbers) != additions(y, K, numbers):
        return None
    spec = x.instruction.spec.in_order
    spec = spec.replace(k=x.instruction.parameters.step_products)
    found = facts_of(spec).adds_c_last(asker, spec) if spec.k == x.instruction.k else None
    if found is None:
        return None
    return f"{found.text}; both add what the instructions give alone in the same order", found.proof


@cache
def _equal(x: Instruction, y: Instruction, timeout: float) -> Proof | None:
    """Proof that steps of two instructions are one function, all NaNs being one; None where none is found in time."""
    first, second = (i.spec.replace(k=i.parameters.step_products) for i in (x, y))
    if x.spec.product_order or y.spec.product_order or first.k != second.k or x.d_format != y.d_format:
        return None
    answer = find_difference(as_instruction(first), as_instruction(second), timeout=timeout)
    return answer.proof if isinstance(answer, Equal) else None


def _chains(x: Structure, K: int) -> list[list[int]]:
    """The products that each chain takes."""
    return [np.arange(K)[products(part, x.instruction.k, K)].tolist() for part in x.parts(K)]


def _tree(structure: Structure, K: int) -> object:
    """In which order the results of the chains are added, two of one addition in either order."""
    chains: list[object] = list(range(len(structure.parts(K))))
    return merged(chains, structure.order, lambda x, y: frozenset((x, y)))


def additions(structure: Structure, K: int, numbers: dict[tuple[int, int], int]) -> int:
    """The tree of additions that a structure is, if an instruction adds what its products are to c.

    Its leaves are the instructions; `numbers` knows trees by the two that are added, in either order.
    """
    parts = structure.parts(K)
    leaves = sum(map(len, parts))

    def add(x: int, y: int) -> int:
        return numbers.setdefault((min(x, y), max(x, y)), leaves + len(numbers))

    return merged([merged(part, "sequential", add) for part in parts], structure.order, add)


if __name__ == "__main__":
    from mmaformal.cli import main as command

    sys.exit(command(["diagnose-gemm", *sys.argv[1:]]))
