"""How a structure makes one sum of K: chains of instructions, the order in which lanes are added, what is left over.

A plan is a list of segments.  Each is some chains, from +0, whose results are added in an order; or one chain that goes
on from the sum so far.  `evaluated` goes through a plan with any `run` and `add`: floats, numbers of terms, trees.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from typing import Any, Literal, TypeVar, get_args

import numpy as np
from numpy.typing import NDArray

from mmaformal.display import ShortRepr

T = TypeVar("T")
Merging = Literal["sequential", "pairwise", "halves"]
#: Where products go that do not fill a turn of the lanes, or a block: onto the first lane before its own or after them,
#: onto the sum, or as a chain of their own that is added to the sum.  `head`: as `first`, a whole unit where none is
#: left.  `turn`: to the lanes anew, the first of which goes on from the sum.  `level`: to the lanes that are left after
#: the first level of the order, each going on from its sum.  `eighth`: to an eighth of the lanes, two turns at a time,
#: whose sums are added to the sum; the last ones onto that.
RestPlan = Literal["first", "head", "lane", "onto", "apart", "turn", "level", "eighth"]
Short = Literal["last", "first"]
#: How chains are made: of instructions, one after the other; with the second product before the first, as compilers
#: contract a·b + c·d to fma(a, b, c·d); or not, each product being rounded and then added.
FusedPlan = Literal["yes", "second first", "no"]
#: The instructions that a chain takes, run after run.
Chain = tuple[range, ...]
#: Lanes that are added: so many, each so far from the next one, in order.
Level = tuple[int, int]
_LEVEL = re.compile(r"(\d+)(?:x(\d+))?")


@dataclass(frozen=True, repr=False)
class Segment(ShortRepr):
    """Chains whose results are added to each other and to the sum so far, or the first of which goes on from that."""

    chains: tuple[Chain | None, ...]  #: None: a lane without an instruction
    onto: bool = False
    apart: bool = False  #: whether each instruction of a chain begins at +0, and these are added in order
    further: tuple[
        Chain, ...
    ] = ()  #: of the lanes that the first level leaves: what the first of them go on with

    @property
    def present(self) -> list[Chain]:
        """The chains that there are."""
        return [x for x in (*self.chains, *self.further) if x is not None]

    def value(
        self, chain: Chain, begin: T | None, run: Callable[[Chain, T | None], T], add: Callable[[T, T], T]
    ) -> T:
        """Return what one of its chains gives, by `run` and `add`."""
        if not self.apart:
            return run(chain, begin)
        each = [run((range(step, step + 1),), None) for step in instructions_of(chain)]
        return reduce(add, each if begin is None else [begin, *each])


def instructions_of(chain: Chain) -> list[int]:
    """The numbers of the instructions of a chain, in order."""
    return [step for run in chain for step in run]


def products_of(chain: Chain, k: int, K: int) -> slice | NDArray[np.intp]:
    """The products of K that instructions of k take, in order."""
    if len(chain) == 1 and chain[0].step == 1:
        return slice(chain[0].start * k, min(chain[0].stop * k, K))
    taken = (np.array(instructions_of(chain), np.intp)[:, None] * k + np.arange(k)).ravel()
    return taken[taken < K]


def scales_of(
    a: NDArray[Any], b: NDArray[Any], block: int, taken: slice | NDArray[np.intp], K: int
) -> tuple[NDArray[Any], NDArray[Any]]:
    """The block scales, (M, blocks) and (blocks, N), of some products of K: of whole blocks, but for the last."""
    blocks = np.arange(K)[taken][::block] // block
    return np.ascontiguousarray(a[:, blocks]), np.ascontiguousarray(b[blocks])


# ---- orders --------------------------------------------------------------------------------------------------


def levels_of(order: str, lanes: int) -> tuple[Level, ...] | None:
    """The levels of an order of so many lanes; None of a word for a number of lanes that is no power of two.

    `4x4 2 1` of 16 lanes: those 4 apart, four of them in order; then those 2 apart, and neighbours.
    Raises ValueError for levels that are not of so many lanes.
    """
    if order in get_args(Merging):
        if order == "sequential":
            return ((1, lanes),)
        if lanes & (lanes - 1):
            return None
        strides = [1 << bit for bit in range(lanes.bit_length() - 1)]
        return tuple((stride, 2) for stride in (strides if order == "pairwise" else strides[::-1]))
    read = [_LEVEL.fullmatch(word) for word in order.split()]
    if not read or not all(read):
        raise ValueError(
            f"order is one of {', '.join(get_args(Merging))}, or levels such as '4x4 2 1', not {order!r}"
        )
    levels = tuple((int(x[1]), int(x[2] or 2)) for x in read if x is not None)
    reached = 1
    for stride, count in sorted(levels):
        if stride != reached or count < 2:
            raise ValueError(f"order {order!r} does not add each of {lanes} lanes once")
        reached = stride * count
    if reached != lanes:
        raise ValueError(f"order {order!r} is of {reached} lanes, not of {lanes}")
    return levels


def level_words(levels: Sequence[Level]) -> str:
    """Levels as `levels_of` reads them."""
    return " ".join(f"{stride}x{count}" if count != 2 else f"{stride}" for stride, count in levels)


def _merged(sums: Sequence[T], order: Merging, add: Callable[[T, T], T]) -> T:
    """One of all, by `add` of two at a time."""
    if order == "sequential":
        return reduce(add, sums)
    level = list(sums)
    while len(level) > 1:
        half = len(level) // 2
        first, second = (level[0::2], level[1::2]) if order == "pairwise" else (level[:half], level[half:])
        level = [add(x, y) for x, y in zip(first, second, strict=False)] + level[2 * half :]
    return level[0]


def merged_level(lanes: list[T | None], level: Level, add: Callable[[T, T], T]) -> list[T | None]:
    """Lanes after one level of an order: the sums at the first lane of each group, and None at the others.

    A lane without a sum adds nothing.
    """
    stride, count = level
    left: list[T | None] = [None] * len(lanes)
    for first in range(len(lanes)):
        if (first // stride) % count:
            continue
        group = [x for x in lanes[first : first + stride * count : stride] if x is not None]
        left[first] = reduce(add, group) if group else None
    return left


def merged_lanes(
    lanes: Sequence[T | None],
    order: str,
    add: Callable[[T, T], T],
    on: Callable[[list[T | None]], list[T | None]] | None = None,
) -> T:
    """One sum of all lanes; one of them at least is there.

    on: what becomes of the lanes that the first level leaves.
    """
    levels = levels_of(order, len(lanes))
    if levels is None:
        return _merged([x for x in lanes if x is not None], _word(order), add)
    left = list(lanes)
    for number, level in enumerate(levels):
        left = merged_level(left, level, add)
        if number == 0 and on is not None:
            left = on(left)
    (found,) = (x for x in left if x is not None)
    return found


def lanes_left(order: str, lanes: int) -> int:
    """The lanes that the first level of an order leaves, where it adds whole registers; else 0."""
    levels = levels_of(order, lanes) or ()
    return levels[0][0] if len(levels) > 1 and levels[0][0] * levels[0][1] == lanes else 0


def _word(order: str) -> Merging:
    return next(x for x in get_args(Merging) if x == order)


# ---- plans ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, repr=False)
class Dealing(ShortRepr):
    """How instructions are dealt to lanes."""

    lanes: int
    unit: int | None  #: instructions: lanes take a multiple of it; None: all
    rest: RestPlan | None  #: where the others go
    short: Short  #: which turn is one of fewer lanes, where one is
    fused: FusedPlan  #: how the rest is a chain
    chained: FusedPlan = "yes"  #: how the others are
    left: int = 0  #: lanes that the first level of the order leaves

    def segments(self, taken: range, peeled: int = 0) -> list[Segment]:
        """The chains of some instructions, and what goes on from their sum.

        peeled: so many of them go to the first lane before the others are dealt.
        """
        peel, taken = taken[:peeled], taken[peeled:]
        n = len(taken)
        left = n % self.unit if self.unit else 0
        if self.rest == "head" and self.unit and not left:
            left = min(self.unit, n)
        lead = left if self.rest in ("first", "head") else 0
        head, main = taken[:lead], taken[lead : lead + n - left]
        tail = taken[lead + n - left :]
        chains: list[Chain | None] = [self._lane(main, lane) for lane in range(self.lanes)]
        for more, where in ((head, 0), (peel, 0), (tail if self.rest == "lane" else range(0), 1)):
            if more:
                own = chains[0] or ()
                chains[0] = (*own, more) if where else (more, *own)
        if self.chained == "second first":
            chains = [None if x is None else second_first(x) for x in chains]
        there, apart = any(x is not None for x in chains), self.chained == "no"
        further = self._turns(tail, self.left) if self.rest == "level" else ()
        if further and not there:  # no whole unit: what is left begins these lanes
            chains, further, there = [*further, *(None,) * (self.lanes - len(further))], (), True
        found = [Segment(tuple(chains), False, apart, further)] if there else []
        if tail and self.rest == "turn":
            turns = self._turns(tail, self.lanes)
            none = (None,) * (self.lanes - len(turns))
            found.append(Segment((*turns, *none), onto=True, apart=apart))
        if tail and self.rest == "eighth":
            few = self.lanes // 8
            whole = len(tail) // (2 * few) * 2 * few
            if whole:
                found.append(Segment(self._turns(tail[:whole], few), apart=apart))
            if tail[whole:]:
                found.append(rest_of(tail[whole:], onto=True, fused=self.fused))
        if tail and self.rest in ("onto", "apart"):
            found.append(rest_of(tail, onto=self.rest == "onto", fused=self.fused))
        return found

    def _turns(self, tail: range, lanes: int) -> tuple[Chain, ...]:
        """The chains of what is left, by turns: of as many lanes as get any."""
        return tuple((tail[lane::lanes],) for lane in range(min(lanes, len(tail))))

    def _lane(self, main: range, lane: int) -> Chain | None:
        """The instructions of one lane: those of its number in each turn."""
        over = len(main) % self.lanes
        if self.short == "last" or not over:
            mine = main[lane :: self.lanes]
            return (mine,) if mine else None
        full = main[over + lane :: self.lanes]
        return tuple(x for x in ((main[lane : lane + 1] if lane < over else range(0)), full) if x) or None


def second_first(chain: Chain) -> Chain:
    """The chain, its second instruction before its first."""
    steps = instructions_of(chain)
    if len(steps) < 2:
        return chain
    if len(chain) == 1:
        return tuple(x for x in (chain[0][1:2], chain[0][:1], chain[0][2:]) if x)
    return tuple(range(step, step + 1) for step in (steps[1], steps[0], *steps[2:]))


def rest_of(left: range, *, onto: bool, fused: FusedPlan) -> Segment:
    """Return what is left, onto the sum or apart: a chain, or each from +0 and then added."""
    chain = second_first((left,)) if fused == "second first" else (left,)
    return Segment((chain,), onto, apart=fused == "no")


def blocks_of(steps: int, block: int, smaller: Sequence[int], keep_rest: bool) -> tuple[list[range], range]:
    """Instructions as blocks of so many, then of the smaller sizes, and what is left where that is to be kept apart."""
    found, first = list[range](), 0
    for size in (block, *smaller):
        while steps - first >= size:
            found.append(range(first, first + size))
            first += size
    left = range(first, steps)
    if left and not keep_rest:
        found.append(left)
        left = range(0)
    return found, left


def halved_last(blocks: list[range], unit: int) -> list[range]:
    """Blocks whose last two are cut in two anew, the first of a multiple of `unit`, where the last is shorter."""
    if len(blocks) < 2:
        return blocks
    start, stop = blocks[-2].start, blocks[-1].stop
    half = (stop - start) // 2  # before it is made a multiple, as in OpenBLAS's driver/level3/level3.c
    middle = start + min(-(-half // unit) * unit, len(blocks[0]))
    return [*blocks[:-2], range(start, middle), range(middle, stop)]


def _gone_on(
    segment: Segment, run: Callable[[Chain, T | None], T], add: Callable[[T, T], T], lanes: list[T | None]
) -> list[T | None]:
    """The lanes after what the first of them go on with."""
    more = [segment.value(chain, lane, run, add) for chain, lane in zip(segment.further, lanes, strict=False)]
    return [*more, *lanes[len(more) :]]


def evaluated(
    segments: Sequence[Segment],
    order: str,
    run: Callable[[Chain, T | None], T],
    add: Callable[[T, T], T],
    *,
    begin: T | None = None,
    first: T | None = None,
    stored: Callable[[T], T] | None = None,
) -> T:
    """The sum that a plan makes: `run` of each chain, from `begin` where it is the first, and `add` of two.

    first: what the sum starts as.  stored: what becomes of the sum after each segment.
    """
    total = first
    for number, segment in enumerate(segments):
        onto = segment.onto and total is not None
        start = total if onto else begin if number == 0 else None
        lanes = [
            None if chain is None else segment.value(chain, start if lane == 0 else None, run, add)
            for lane, chain in enumerate(segment.chains)
        ]
        if len(lanes) > 1:
            value = merged_lanes(lanes, order, add, partial(_gone_on, segment, run, add))
        else:
            value = next(x for x in lanes if x is not None)
        total = value if total is None or onto else add(total, value)
        if stored is not None:
            total = stored(total)
    if total is None:
        raise ValueError("a plan of no segment makes no sum")
    return total
