"""Structures of vector arithmetic, run on a part of a product: lanes, accumulators, what is left over, every order.

A processor's kernel keeps sums in vector registers: lane l of accumulator a takes the products l + w·a + n·j.  In the
end the registers are added, by whole registers, halves, pairs or in order.  Each way is a sequence of levels: of
numbers of lanes in binary, some neighbouring digits at a time are summed over.  All sequences are run, those with a
common beginning once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial
from typing import get_args

import numpy as np
from numpy.typing import NDArray

from mmaformal.cases.codes import is_nan
from mmaformal.display import ShortRepr
from mmaformal.encodings.executable.blocks import quiet_nan
from mmaformal.formats import Format, fp64
from mmaformal.gemm import rounded_codes, values
from mmaformal.kernels import rows
from mmaformal.solver.deadline import check_time
from mmaformal.spec import DotAdd
from mmaformal.structure_plans import (
    Chain,
    FusedPlan,
    Level,
    Merging,
    RestPlan,
    Segment,
    Short,
    level_words,
    levels_of,
    merged_lanes,
    products_of,
)
from mmaformal.structures import CodeArray, RealArray, Structure, exactly

#: Lanes of all accumulators together.
LANES = (2, 4, 8, 16, 32, 64)
#: Products of which lanes take a multiple: so many quarters of the lanes.
UNITS = (4, 2, 1, 8, 16)
#: Blocks that kernels make of a few columns of a matrix at once; and those that K is cut into for a cache.
SMALL, LARGE = (2, 4, 8, 16, 32), (128, 192, 240, 256, 300, 320, 336, 352, 384, 448, 512, 640, 768, 1024)
#: The most lanes that are not called wide.
_NARROW = 16
#: Numbers of which halves of less than two such blocks are multiples.
_HALVED = (8, 4, 1, 16)
#: The most lanes that start where an address is aligned, and products before that.
_PEELED = 8
#: The most lanes with which K is also cut into blocks.
_IN_BLOCKS = 8

#: Elements that every order is run on, at most; and the part of them that it has to explain to be looked at further.
_MOST, _ENOUGH = 256, 0.5
#: Elements of which one that explains all is taken, and no other is looked for.
_TELLING = 64
#: Structures that are looked at further.
_KEPT = 32

#: Ways with products that fill no block.
_RESTS: tuple[tuple[RestPlan | None, FusedPlan], ...] = (
    (None, "yes"),
    ("onto", "yes"),
    ("apart", "yes"),
    ("onto", "no"),
    ("apart", "no"),
)
WantedMask = NDArray[np.bool_]


def is_vector(structure: Structure) -> bool:
    """Whether its instruction is arithmetic of vector lanes: one product at a time, by IEEE 754, in sums' type."""
    i = structure.instruction
    return i.k == 1 and bool(i.parameters.ieee_name(i.spec)) and structure.total == i.d_format


def ways_to_deal(one: Structure, K: int, wide: bool) -> Iterator[Structure]:
    """Ways to cut K and to deal it to lanes, of the types of one chain; the order of the lanes is left open.

    wide: those of more lanes than one accumulator's or two, and in blocks for a cache; else the others.  No two make
    the same chains of this K.
    """
    known = set[tuple[object, ...]]()
    for structure in _wide(one, K) if wide else _narrow(one, K):
        ways = [structure]
        # no instruction multiplies and adds apart in fp64; and none is fused in the rest alone
        if one.total == fp64 or (structure.rest in ("onto", "apart") and structure.fused != "no"):
            ways.append(replace(structure, chained="no"))
        for way in ways:
            key = (way.lanes, *((x.chains, x.onto, x.apart, x.further) for x in way.segments(K)))
            if key not in known:
                known.add(key)
                yield way


def _narrow(one: Structure, K: int) -> Iterator[Structure]:
    yield replace(one, chained="second first")
    for lanes in (x for x in LANES if x <= _NARROW):
        yield from _turns(one, K, lanes)
    yield from _of_lanes(one, K, [lanes for lanes in LANES if lanes <= _NARROW])
    for block in SMALL:
        if block < K:
            yield from _small_blocks(replace(one, block=block), K)
    yield from _peeled(one, K)


def _of_lanes(one: Structure, K: int, of: Sequence[int]) -> Iterator[Structure]:
    for lanes in of:
        if lanes > _NARROW:
            yield from _turns(one, K, lanes)
        if lanes <= K:
            units = [lanes * part // 4 for part in UNITS if lanes * part // 4 > 1]
            yield from _with_rest(replace(one, lanes=lanes, order="pairwise"), K, units)


def _peeled(one: Structure, K: int) -> Iterator[Structure]:
    """Lanes that start where an address is aligned."""
    if K > _NARROW:
        cut = replace(one, lanes=_NARROW, order="pairwise", peeled=1)
        yield replace(cut, unit=_NARROW, rest="turn")
    for lanes in (x for x in LANES if x <= _PEELED):
        for peeled in range(1, min(_PEELED, K - lanes) + 1):
            cut = replace(one, lanes=lanes, order="pairwise", peeled=peeled)
            yield cut
            if (K - peeled) % lanes:
                yield from (
                    replace(cut, unit=lanes, rest=rest, fused=fused)
                    for rest, fused in _RESTS
                    if rest is not None
                )


def _wide(one: Structure, K: int) -> Iterator[Structure]:
    yield from _of_lanes(one, K, [lanes for lanes in LANES if lanes > _NARROW])
    for block in LARGE:
        for lanes in LANES:
            if block < K and lanes <= _IN_BLOCKS:
                for halved in (None, *(_HALVED if K % block else ())):
                    cut = replace(one, block=block, lanes=lanes, order="pairwise", halved=halved)
                    yield from _with_rest(cut, K, (lanes, 8))


def _with_rest(structure: Structure, K: int, units: Sequence[int]) -> Iterator[Structure]:
    """The structure; and where lanes take whole units alone, with what is left in each place."""
    shorts = get_args(Short) if structure.block is None else ("last",)
    for unit in (None, *units):
        for short in shorts:
            if unit is None:
                yield replace(structure, short=short)
            elif unit <= K:
                yield from (
                    replace(structure, unit=unit, rest=rest, fused=fused, short=short)
                    for rest in get_args(RestPlan)
                    if rest not in ("turn", "level", "eighth")
                    for fused in (get_args(FusedPlan) if rest in ("onto", "apart") else ("yes",))
                )


def _turns(one: Structure, K: int, lanes: int) -> Iterator[Structure]:
    """Lanes in whole turns; what these leave as a turn anew, and onto the lanes of one register of two or four."""
    if lanes > K or K % lanes == 0:
        return
    structure = replace(one, lanes=lanes, order="pairwise")
    yield replace(structure, unit=lanes, rest="turn")
    if lanes > _NARROW:
        yield replace(structure, unit=lanes, rest="eighth", order="halves")
    for registers in (2, 4):
        if (n := lanes // registers) > 1:
            order = level_words([(n, registers), (1, n)])
            yield replace(structure, unit=lanes, rest="level", order=order)


def _small_blocks(structure: Structure, K: int) -> Iterator[Structure]:
    """Blocks of that size, what is left in blocks of half the size and so on, or one product after the other."""
    block = structure.block or 1
    if block > 2:
        half = replace(structure, onto=block // 2)
        yield half
        if K % block:
            yield from (replace(half, rest="onto", fused=fused) for fused in ("yes", "no"))
    falling = tuple(block >> n for n in range(1, block.bit_length()))
    for count in range(len(falling) + 1):
        smaller = falling[:count]
        for rest, fused in _RESTS if K % (block, *smaller)[-1] else _RESTS[:1]:
            for lanes in (1, *(x for x in LANES if x <= min(block, _IN_BLOCKS))):
                if lanes > 1 or smaller or rest:
                    order = "pairwise" if lanes > 1 else "sequential"
                    found = replace(
                        structure, smaller=smaller, rest=rest, fused=fused, lanes=lanes, order=order
                    )
                    yield found
                    if lanes == 1:
                        yield replace(found, chained="second first")
                    elif smaller and 1 < smaller[-1] < 2 * lanes:
                        yield replace(found, dealt_from=2 * lanes)


@dataclass(frozen=True, repr=False)
class SampledElements(ShortRepr):
    """Some elements of a product, each with its products and, if there is one, its C."""

    a: CodeArray  #: (elements, K)
    b: CodeArray  #: (elements, K)
    d: CodeArray  #: (elements,)
    c: tuple[CodeArray, Format] | None

    @classmethod
    def of(
        cls, a: CodeArray, b: CodeArray, d: CodeArray, c: tuple[CodeArray, Format] | None, wanted: WantedMask
    ) -> SampledElements:
        """Elements of a (m, K), b (K, n), d (m, n) and c (m, n): those wanted, spread, `_MOST` of them at most."""
        places = np.argwhere(wanted)
        some = places[np.unique(np.linspace(0, len(places) - 1, _MOST).astype(np.intp))]
        rows, columns = some[:, 0], some[:, 1]
        given = None if c is None else (c[0][rows, columns], c[1])
        return cls(a[rows], np.ascontiguousarray(b.T)[columns], d[rows, columns], given)


class LaneOrders:
    """Ways to deal K to lanes, each run in every order of the lanes, on some elements."""

    def __init__(self, of: SampledElements, d_format: Format) -> None:
        self.of, self.d_format, self.K, self.tried = of, d_format, of.a.shape[1], 0
        self._nan = is_nan(of.d.astype(np.int64), d_format)
        self._known = dict[tuple[DotAdd, Chain, bool], RealArray]()  #: whether each product is a chain, too
        self._best, self._least = list[tuple[int, int, Structure, tuple[Level, ...]]](), 1

    def run(self, structure: Structure) -> None:
        """Run one way to deal K in all orders of the lanes; `best` has what explains the most."""
        x = _Dealt(structure, self._c(structure), structure.segments(self.K))
        lanes = list[RealArray]()
        for number, segment in enumerate(x.segments):
            begin = x.c if structure.c_enters == "start" and number == 0 else None
            if segment.onto and len(segment.chains) > 1:
                x.turns[number] = [
                    None if chain is None else self._value(x, segment, chain, None)
                    for chain in segment.chains[1:]
                ]
            elif len(segment.chains) > 1 and structure.rest == "eighth":  # in one order
                x.own[number] = merged_lanes(list(self._lanes(x, segment, begin)), structure.order, np.add)
            elif len(segment.chains) > 1:
                lanes.append(self._lanes(x, segment, begin))
                x.further = segment if segment.further else None
            elif not segment.onto or number == 0:
                x.own[number] = self._value(x, segment, segment.present[0], begin)
        if not lanes:
            self._leaf(x, (), None)
            return
        n = structure.lanes.bit_length() - 1
        sums = np.stack(lanes).reshape((len(lanes), *(2,) * n, -1))
        self._descend(x, sums, tuple(range(n - 1, -1, -1)), ())

    def _c(self, structure: Structure) -> RealArray | None:
        if self.of.c is None:
            return None
        return values(exactly(*self.of.c, structure.c_format), structure.c_format, structure.total)

    def _value(self, x: _Dealt, segment: Segment, chain: Chain, begin: RealArray | None) -> RealArray:
        """Return what a chain of a segment gives."""
        run = partial(self._chain, x.structure)
        if not segment.apart or begin is not None:
            return segment.value(chain, begin, run, np.add)
        key = (x.structure.instruction.spec, chain, True)
        if key not in self._known:
            self._known[key] = segment.value(chain, None, run, np.add)
        return self._known[key]

    def _chain(self, structure: Structure, chain: Chain, begin: RealArray | None) -> RealArray:
        """Return what a chain gives from +0, or from floats."""
        i, wide = structure.instruction, structure.total
        if begin is None and (i.spec, chain, False) in self._known:
            return self._known[i.spec, chain, False]
        taken = products_of(chain, i.k, self.K)
        a, b = self.of.a[:, taken], self.of.b[:, taken]
        c = np.zeros(len(a), wide.word) if begin is None else begin.view(wide.word)
        if wide != i.c_format:
            c = rounded_codes(values(c, wide, wide), wide, i.c_format, quiet_nan(i.c_format))
        found = values(rows.dot_add(_of_length(i.spec, a.shape[1]), a, b, c), i.d_format, wide)
        if begin is None:
            self._known[i.spec, chain, False] = found
        return found

    def _lanes(self, x: _Dealt, segment: Segment, begin: RealArray | None) -> RealArray:
        """(lanes, elements); a lane without a product is −0, which changes no sum."""
        none = np.full(len(self.of.d), -0.0, x.structure.total.dtype)
        return np.stack(
            [
                none if chain is None else self._value(x, segment, chain, None if lane else begin)
                for lane, chain in enumerate(segment.chains)
            ]
        )

    def _descend(self, x: _Dealt, sums: RealArray, bits: tuple[int, ...], levels: tuple[Level, ...]) -> None:
        """Sum over the digits that are left, highest first on the axes after the first, in every order."""
        if not bits:
            self._leaf(x, levels, sums)
            return
        for first in range(len(bits)):
            for end in range(first + 1, len(bits) + 1):
                run = bits[first:end]
                ends = (
                    run[0] == x.structure.lanes.bit_length() - 2 or run[-1] == 0 or end - first == len(bits)
                )
                if run[0] - run[-1] != len(run) - 1 or not (len(run) == 1 or ends):
                    break  # more than two in order: the registers, the lanes of one, or all that is left
                axes = tuple(range(1 + first, 1 + end))
                apart = np.moveaxis(sums, axes, tuple(range(len(axes))))
                apart = apart.reshape((-1, *apart.shape[len(axes) :]))
                total = apart[0]
                for each in apart[1:]:
                    total = total + each
                below = (*levels, (1 << run[-1], len(apart)))
                if x.further is not None and not levels:
                    if below != (levels_of(x.structure.order, x.structure.lanes) or ())[:1]:
                        continue
                    total = self._gone_on(x, x.further, total)
                self._descend(x, total, bits[:first] + bits[end:], below)

    def _gone_on(self, x: _Dealt, segment: Segment, sums: RealArray) -> RealArray:
        """The lanes that a first level leaves, after what they go on with."""
        lanes = np.array(sums).reshape((-1, len(self.of.d)))
        for lane, chain in enumerate(segment.further):
            lanes[lane] = self._value(x, segment, chain, lanes[lane])
        return lanes.reshape(sums.shape)

    def _leaf(self, x: _Dealt, levels: tuple[Level, ...], sums: RealArray | None) -> None:
        check_time()
        self.tried += 1
        d = self._finished(x, levels, sums)
        alike = d == self.of.d
        if self._nan.any():
            alike |= self._nan & is_nan(d.astype(np.int64), self.d_format)
        count = int(np.count_nonzero(alike))
        if count >= self._least:
            self._best.append((count, -self.tried, x.structure, levels))
            if len(self._best) > 2 * _KEPT:
                self._best = self._best_of()
                self._least = self._best[-1][0]

    def _best_of(self) -> list[tuple[int, int, Structure, tuple[Level, ...]]]:
        return sorted(self._best, key=lambda x: x[:2], reverse=True)[:_KEPT]

    @property
    def found(self) -> bool:
        """Whether one explains all elements, of as many as tell."""
        return len(self.of.d) >= _TELLING and any(count == len(self.of.d) for count, *_ in self._best)

    def best(self) -> Iterator[Structure]:
        """Those that explain the most elements, the first that were run first."""
        for count, _, structure, levels in self._best_of():
            if count >= _ENOUGH * len(self.of.d):
                yield replace(structure, order=order_called(levels)) if levels else structure

    def _finished(self, x: _Dealt, levels: tuple[Level, ...], sums: RealArray | None) -> CodeArray:
        """The codes of D, from the sums of the lanes of each segment."""
        wide, result = x.structure.total, x.structure.result
        of_lanes, total = iter(() if sums is None else sums), x.c if x.structure.c_enters == "first" else None
        for number, segment in enumerate(x.segments):
            if segment.onto and total is not None:
                total = self._value(x, segment, segment.present[0], total)
                if number in x.turns:
                    total = merged_lanes([total, *x.turns[number]], level_words(levels), np.add)
                continue
            own = x.own[number] if number in x.own else next(of_lanes)
            total = own if total is None else total + own
        if total is None:
            raise ValueError("a plan of no segment")
        if x.structure.c_enters == "last" and x.c is not None:
            total = total + x.c
        if result == wide:
            return np.ascontiguousarray(total).view(wide.word)
        d = rounded_codes(total, wide, result, quiet_nan(result))
        if x.structure.c_enters == "after" and x.c is not None:
            d = rounded_codes(values(d, result, wide) + x.c, wide, result, quiet_nan(result))
        return d


@dataclass(repr=False)
class _Dealt(ShortRepr):
    """A way to deal K, and what segments of one chain give that begin at +0."""

    structure: Structure
    c: RealArray | None
    segments: list[Segment]
    own: dict[int, RealArray] = field(default_factory=dict)
    turns: dict[int, list[RealArray | None]] = field(
        default_factory=dict
    )  #: of a turn anew, but for the first lane
    further: Segment | None = None  #: whose lanes go on after the first level


@cache
def _of_length(spec: DotAdd, k: int) -> DotAdd:
    return spec.replace(k=k)


@cache
def order_called(levels: tuple[Level, ...]) -> str:
    """Levels as a structure has them: the word for them, if there is one."""
    lanes = 1
    for _, count in levels:
        lanes *= count
    if lanes > 1:
        for word in get_args(Merging):
            if levels_of(word, lanes) == levels:
                return str(word)
    return level_words(levels) if levels else "sequential"
