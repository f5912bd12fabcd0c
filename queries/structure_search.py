"""Structures of an instruction, run on a part of a product, each compared with what is there.

`StructureSearch.run` goes over the space that `SPACE` names; a subclass says what it makes of each (`seen`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from mmaformal.architectures import ARCHITECTURES, ON_PAPER, datapaths
from mmaformal.architectures.known import without_nan_rule
from mmaformal.cases.codes import is_nan
from mmaformal.formats import Format, fp32, fp64
from mmaformal.gemm import holds
from mmaformal.given_scales import GivenScales
from mmaformal.instruction import Instruction
from mmaformal.kernels import kernel_for
from mmaformal.kernels.kernel import Planes
from mmaformal.queries.lane_search import LARGE, LaneOrders, SampledElements, is_vector, ways_to_deal
from mmaformal.queries.structure_classes import ORDERS
from mmaformal.solver.deadline import check_time
from mmaformal.spec import DotAdd
from mmaformal.structure_plans import Chain, products_of, scales_of
from mmaformal.structures import CodeArray, CPlace, Structure, exactly, made_product

#: Stages of the search: the usual structures, those of few vector lanes, of many, and all others.
SearchStage = Literal["usual", "lanes", "wide", "others"]
STAGES: tuple[SearchStage, ...] = get_args(SearchStage)
#: How many chains may take the instructions of K in turn, their results added by a word for an order.
LANES = (2, 4, 8, 16, 32)
#: Numbers of instructions of which the first half of what is left is a multiple.
HALVED = (1, 2, 4, 8, 16)
#: Blocks that K is cut into as split-K does.
_FEW = 16
#: Results of chains that are kept, at most.
_REMEMBERED = 1 << 25
#: The space, in words.
SPACE = (
    f"blocks of every size, the last two even or not, {', '.join(map(str, LANES))} lanes; "
    + ", ".join(ORDERS)
    + "; of vector arithmetic every order of the lanes, and each place of what they leave"
)


def chained_ones(
    instructions: Iterable[Instruction], a: Format, b: Format, d: Format, scales: GivenScales | None = None
) -> list[list[Instruction]]:
    """Those that take the types, and such block scales, and can be chained; of each function that of the fewest
    products.

    Functions that differ only in which NaNs they give stand together, that of the fewest products first.
    """
    found: dict[DotAdd, dict[DotAdd, Instruction]] = {}
    for i in instructions:
        scaled = (i.spec.scale_format, i.spec.scale_block) == (
            (None, 0) if scales is None else (scales.fmt, scales.block)
        )
        takes = (i.a_format, i.b_format) == (a, b) and scaled and not i.spec.is_signed
        if not takes or i.c_format != i.d_format or not holds(i.d_format, d) or not holds(fp64, i.d_format):
            continue
        # A longer K is a chain of steps, as a chain of instructions is.
        step = i.spec.replace(k=i.spec.period)
        of_step = found.setdefault(without_nan_rule(step), {})
        if step not in of_step or i.k < of_step[step].k:
            of_step[step] = i
    return [sorted(each.values(), key=lambda i: i.k) for each in found.values()]


def built() -> list[Instruction]:
    """The instructions of all architectures that are built, and the arithmetic of processors' vectors."""
    units = [i for name, arch in ARCHITECTURES.items() if name not in ON_PAPER for i in arch]
    return [*units, *vector_arithmetic()]


def vector_arithmetic() -> list[Instruction]:
    """IEEE 754's operations on numbers that a processor widens as it loads them, and without a fused one."""
    return [
        datapaths.fma(a="bf16"),
        datapaths.fma(a="fp16"),
        datapaths.mul_add(a="fp32"),
    ]


class StructureSearch:
    """Structures run on some rows and columns of a product."""

    def __init__(
        self,
        a: CodeArray,
        b: CodeArray,
        d: CodeArray,
        d_format: Format,
        c: tuple[CodeArray, Format] | None = None,
        scales: GivenScales | None = None,
    ) -> None:
        """a (m, K), b (K, n), d (m, n) as codes, and c (m, n) with its format, and block scales, if there are any."""
        self.a, self.b, self.d, self.d_format, self.c, self.scales = a, b, d, d_format, c, scales
        self.tried = 0
        self.wanted: NDArray[np.bool_] | None = None  #: the elements of d that are to be explained; None: all
        self._chains: dict[Instruction, ChainsOfRows] = {}

    def seen(self, structure: Structure, wrong: NDArray[np.bool_]) -> None:
        """Take note of a structure, and of the elements that are not as it gives them."""
        raise NotImplementedError

    def run(self, instruction: Instruction, stage: SearchStage | None = None) -> None:
        """Run all structures of one instruction, or those of one stage of a search; each is `seen`."""
        if instruction not in self._chains:
            self._chains[instruction] = ChainsOfRows(instruction, self.a, self.b, self.scales)
        chains, K = self._chains[instruction], self.a.shape[1]
        for structure in self._all(instruction) if stage in (None, "usual", "others") else ():
            check_time()
            if stage is not None and (stage == "usual") != is_usual(structure, K):
                continue
            self.tried += 1
            c = None if self.c is None else exactly(*self.c, structure.c_format)
            self.seen(structure, codes_differ(chains.made(structure, c), self.d, self.d_format))
        if stage in (None, "lanes", "wide"):
            self._run_lanes(chains, self._one(instruction), [stage == "wide"] if stage else [False, True])

    def _run_lanes(self, chains: ChainsOfRows, one: Structure, wide: Sequence[bool]) -> None:
        """Run structures of vector lanes, if the instruction is arithmetic of these; the likeliest are `seen`."""
        if not is_vector(one):
            return
        wanted = np.ones(self.d.shape, bool) if self.wanted is None else self.wanted
        orders = LaneOrders(SampledElements.of(self.a, self.b, self.d, self.c, wanted), self.d_format)

        with np.errstate(all="ignore"):
            for dealing in (x for each in wide for x in ways_to_deal(one, self.a.shape[1], each)):
                for structure in self._with_c(dealing):
                    orders.run(structure)
                if orders.found:
                    break
        for structure in orders.best():
            c = None if self.c is None else exactly(*self.c, structure.c_format)
            self.seen(structure, codes_differ(chains.made(structure, c), self.d, self.d_format))
        self.tried += orders.tried

    def _one(self, i: Instruction) -> Structure:
        """One chain of an instruction, of the types of this product."""
        total = fp32 if holds(fp32, i.d_format) else fp64
        end = None if i.d_format == self.d_format and self.c is None else self.d_format
        return Structure(i, total=total, d_format=end)

    def _all(self, i: Instruction) -> Iterator[Structure]:
        """All structures of the space, those of the same chains one after the other."""
        K = self.a.shape[1]
        steps = -(-K // i.k)
        one = self._one(i)
        yield from self._with_c(one)
        for block, lanes in [(each * i.k, 1) for each in range(1, steps)] + [
            (None, n) for n in LANES if n < steps
        ]:
            two = (lanes if block is None else -(-K // block)) == 2
            for halved in (None, *(i.k * n for n in HALVED)) if block is not None and K % block else (None,):
                for order in ORDERS[:1] if two else ORDERS:
                    cut = Structure(
                        i,
                        block,
                        halved=halved,
                        lanes=lanes,
                        order=order,
                        total=one.total,
                        d_format=self.d_format,
                    )
                    yield from self._with_c(cut)

    def _with_c(self, structure: Structure) -> Iterator[Structure]:
        """The structure; where there is C, with C in each place that it may enter."""
        if self.c is None:
            yield structure
            return
        for place in get_args(CPlace):
            with suppress(ValueError):  # not in this order
                placed = replace(structure, c_enters=place)
                one_less = (place == "first" and structure.whole) or (
                    place == "after" and not _narrows(placed)
                )
                if holds(placed.c_format, self.c[1]) and not one_less:
                    yield placed


def is_usual(structure: Structure, K: int) -> bool:
    """Whether kernels are mostly so: one chain, lanes, blocks of a power of two or for a cache, a few even parts."""
    block, k = structure.block, structure.instruction.k
    if structure.halved is not None:
        return block in LARGE and structure.order == "sequential"
    if block is None or not block & (block - 1):
        return True
    if block in LARGE and structure.order == "sequential":
        return True
    steps = -(-K // k)
    return block in {-(-steps // parts) * k for parts in range(2, _FEW + 1)}


def _narrows(structure: Structure) -> bool:
    """Whether D is of a narrower type than the sums: else rounding it twice is what it is once."""
    return structure.result != structure.total


class ChainsOfRows:
    """Chains of one instruction over any part of K, of a few rows; operands are decoded once, each chain run once."""

    def __init__(
        self, instruction: Instruction, a: CodeArray, b: CodeArray, scales: GivenScales | None = None
    ) -> None:
        k = instruction.k
        self.K = a.shape[1]
        self.steps = -(-self.K // k)
        missing = self.steps * k - a.shape[1]
        self._scales = None if scales is None else _padded(scales, self.steps * instruction.spec.scales)
        self.k, self.kernel = k, kernel_for(instruction.spec)
        self._codes = np.pad(a, ((0, 0), (0, missing))), np.pad(b, ((0, missing), (0, 0)))
        self.a, self.b = self._planes(*self._codes, self._scales)
        self.shape, self.word = (len(a), b.shape[1]), instruction.d_format.word
        self._known: dict[Chain, CodeArray] = {}

    def _planes(
        self, a: CodeArray, b: CodeArray, scales: tuple[CodeArray, CodeArray] | None
    ) -> tuple[Planes, Planes]:
        of_a, of_b = (None, None) if scales is None else scales
        return self.kernel.rows(a, of_a), self.kernel.columns(b, of_b)

    def made(self, structure: Structure, c: CodeArray | None = None) -> CodeArray:
        """The codes of D that a structure of the instruction gives."""
        return made_product(structure, self.K, self.run, c)

    def run(self, chain: Chain, begin: CodeArray | None = None) -> CodeArray:
        """The codes of one chain's results, from +0 or from codes."""
        if begin is None and chain in self._known:
            return self._known[chain]
        d = np.zeros(self.shape, self.word) if begin is None else begin.astype(self.word)
        for part in chain:
            if part.step == 1:
                self.kernel.run(self.a, self.b, d, part.start, part.stop)
                continue
            taken = products_of((part,), self.k, self.steps * self.k)
            left, right = (np.ascontiguousarray(x) for x in (self._codes[0][:, taken], self._codes[1][taken]))
            block, K = self.kernel.spec.scale_block, self.steps * self.k
            scales = None if self._scales is None else scales_of(*self._scales, block, taken, K)
            self.kernel.run(*self._planes(left, right, scales), d, 0, len(part))
        if begin is None:
            if len(self._known) * self.shape[0] * self.shape[1] > _REMEMBERED:
                self._known.clear()
            self._known[chain] = d
        return d


def _padded(scales: GivenScales, blocks: int) -> tuple[CodeArray, CodeArray]:
    """Scales of so many blocks: those that there are not are as the last."""
    more = blocks - scales.a.shape[1]
    return np.pad(scales.a, ((0, 0), (0, more)), "edge"), np.pad(scales.b, ((0, more), (0, 0)), "edge")


def codes_differ(x: CodeArray, y: CodeArray, fmt: Format) -> NDArray[np.bool_]:
    """Where codes differ; NaNs are one."""
    return np.asarray((x != y) & ~(_nan(x, fmt) & _nan(y, fmt)))


def _nan(x: CodeArray, fmt: Format) -> NDArray[np.bool_]:
    return np.asarray(is_nan(x.astype(np.int64), fmt))
