"""Structures of vector lanes: what `replay` gives is a plain loop's, and `explain` finds it, and nothing else."""

from __future__ import annotations

from fractions import Fraction
from typing import Any, TypeVar

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from mmaformal import Structure, explain, replay
from mmaformal.architectures import datapaths
from mmaformal.formats import fp16, fp64
from mmaformal.queries.lane_search import LANES, order_called
from mmaformal.queries.regions import placed
from mmaformal.recorder.library import LibraryCall, draw_factors
from mmaformal.structure_plans import levels_of

T = TypeVar("T")
MUL_ADD = datapaths.mul_add(a="fp32")
FMA64 = datapaths.fma(a="fp64", rho="IEEE-FP64")
Array = NDArray[np.float32]


def operands(M: int, K: int, N: int, seed: int = 0) -> tuple[Array, Array]:
    rng = np.random.default_rng(seed)
    return rng.standard_normal((M, K)).astype(np.float32), rng.standard_normal((K, N)).astype(np.float32)


def loop(A: Array, B: Array, x: Structure) -> Array:
    """D by loops over single products, each rounded, and over lanes: no code of a plan."""
    K, zero = A.shape[1], np.zeros((len(A), B.shape[1]), np.float32)
    p = [A[:, k : k + 1] * B[k] for k in range(K)]

    def chain(ks: list[int], begin: Array | None = None) -> Array:
        total = zero if begin is None else begin
        for k in ks:
            total = total + p[k]
        return total

    sizes, cuts, at = [x.block or max(K, 1), *x.smaller], list[list[int]](), 0
    for size in sizes:
        while K - at >= size:
            cuts.append(list(range(at, at + size)))
            at += size
    left = list(range(at, K))
    if left and (x.unit is not None or x.rest is None):
        cuts.append(left)
        left = []
    total: Array | None = None
    for ks in cuts:
        if x.onto and len(ks) == x.block:
            total, ks = chain(turned(ks[: x.onto], x.chained), total), ks[x.onto :]
        taken, size = ks, len(ks)
        peel, ks = ks[: x.peeled], ks[x.peeled :]
        tail = len(ks) % x.unit if x.unit else 0
        if x.rest == "head" and x.unit and not tail:
            tail = min(x.unit, len(ks))
        head, ks, rest = (
            (ks[:tail], ks[tail:], [])
            if x.rest in ("first", "head")
            else ([], ks[: len(ks) - tail], ks[len(ks) - tail :])
        )
        over = len(ks) % x.lanes
        turns = [ks[:over], ks[over:]] if x.short == "first" else [ks]
        mine = [[k for turn in turns for k in turn[lane :: x.lanes]] for lane in range(x.lanes)]
        mine[0] = peel + head + mine[0] + (rest if x.rest == "lane" else [])
        if size < x.dealt_from:
            mine, rest = [taken], []
        sums = {lane: chain(turned(each, x.chained)) for lane, each in enumerate(mine) if each}
        value = merged(sums, x, chain, rest if x.rest == "level" else [])
        if value is not None:
            total = value if total is None else total + value
        if rest and x.rest == "turn":
            sums = {lane: chain(rest[lane :: x.lanes], None if lane else total) for lane in range(len(rest))}
            total = merged({lane: each for lane, each in sums.items() if lane < x.lanes}, x, chain, [])
        if rest and x.rest == "eighth":
            few = x.lanes // 8
            whole = len(rest) // (2 * few) * 2 * few
            if whole:
                sums = {lane: chain(rest[lane:whole:few]) for lane in range(few)}
                value = merged(sums, Structure(MUL_ADD, lanes=few, order=x.order), chain, [])
                total = value if total is None else total + value
            total = chain(rest[whole:], total)
        if rest and x.rest in ("onto", "apart"):
            total = after(chain, rest, x, total)
    if left:
        total = after(chain, left, x, total)
    assert total is not None
    return total


def merged(sums: dict[int, Array], x: Structure, chain: Any, rest: list[int]) -> Array | None:
    """The sum of the lanes, level by level; `rest` goes to those that the first level leaves."""
    for number, (stride, count) in enumerate(levels_of(x.order, x.lanes) or ()):
        for lane in range(x.lanes):
            if (lane // stride) % count == 0:
                for other in range(lane + stride, lane + stride * count, stride):
                    if other in sums:
                        sums[lane] = sums[lane] + sums.pop(other) if lane in sums else sums.pop(other)
        if number == 0 and rest:
            sums.update({lane: chain(rest[lane::stride], sums.get(lane)) for lane in range(stride)})
    return sums.get(0)


def turned(ks: list[T], how: str) -> list[T]:
    return [*ks[1:2], *ks[:1], *ks[2:]] if how == "second first" else ks


def after(chain: Any, rest: list[int], x: Structure, total: Array | None) -> Array:
    rest = turned(rest, x.fused)
    if x.rest == "onto" and total is not None:
        found: Array = chain(rest, total)
        return found
    alone: Array = chain(rest)
    return alone if total is None else total + alone


@st.composite
def structures(draw: st.DrawFn) -> Structure:
    lanes = draw(st.sampled_from((1, *LANES)))
    bits = draw(st.permutations(range(lanes.bit_length() - 1)))
    order = order_called(tuple((1 << bit, 2) for bit in bits)) if lanes > 1 else "sequential"
    block = draw(st.sampled_from((None, 4, 8, 32)))
    short = draw(st.sampled_from(("last", "first"))) if lanes > 1 else "last"
    smaller: tuple[int, ...] = ()
    unit, rest, fused = None, None, "yes"
    if lanes > 1 and draw(st.booleans()):
        unit, rest = (
            draw(st.sampled_from((2, 4, 8, 16))),
            draw(st.sampled_from(("first", "head", "lane", "onto", "apart", "turn", "level", "eighth"))),
        )
        unit = lanes if rest in ("turn", "level", "eighth") else unit
        order = "halves" if rest in ("level", "eighth") else order
        rest = "lane" if (rest == "level" and lanes == 2) or (rest == "eighth" and lanes < 16) else rest
    elif block is not None and draw(st.booleans()):
        smaller = draw(st.sampled_from(((), (block // 2,), (block // 2, 1))))
        rest = draw(st.sampled_from((None, "onto", "apart")))
    if rest in ("onto", "apart"):
        fused = draw(st.sampled_from(("yes", "second first", "no")))
    chained = draw(st.sampled_from(("yes", "second first", "no")))
    dealt_from = draw(st.sampled_from((1, 4, 16))) if block and lanes > 1 else 1
    peels = lanes > 1 and block is None and rest not in ("first", "head")
    peeled = draw(st.sampled_from((0, 1, 2, 5))) if peels else 0
    onto = draw(st.sampled_from((0, 1, 3))) if block and lanes == 1 and chained != "second first" else 0
    return Structure(  # type: ignore[arg-type]
        MUL_ADD,
        block,
        lanes,
        order,
        smaller=smaller,
        unit=unit,
        rest=rest,
        fused=fused,
        short=short,
        chained=chained,
        dealt_from=dealt_from,
        peeled=peeled,
        onto=onto,
    )


@settings(max_examples=80, deadline=None)
@given(structures(), st.integers(1, 90))
def test_replay_is_a_plain_loop(structure: Structure, K: int) -> None:
    A, B = operands(2, K, 3, K)
    assert (replay(A, B, structure).view(np.float32) == loop(A, B, structure)).all(), str(structure)
    again: Structure = eval(structure.python)
    assert again == structure


def fma(x: float, y: float, z: float) -> float:
    return float(Fraction(x) * Fraction(y) + Fraction(z))


def in_blocks(products: list[tuple[float, float]]) -> float:
    """Blocks of 4, each a chain of fma whose second product comes first, added in order."""
    total = 0.0
    for first in range(0, len(products), 4):
        block = 0.0
        for x, y in turned(products[first : first + 4], "second first"):
            block = fma(x, y, block)
        total = total + block
    return total


def in_lanes(products: list[tuple[float, float]]) -> float:
    """Two lanes of products that are rounded before they are added; what 4 leave by fma, the second first."""
    main = len(products) - len(products) % 4
    lanes = [0.0, 0.0]
    for k, (x, y) in enumerate(products[:main]):
        lanes[k % 2] = lanes[k % 2] + x * y
    rest = 0.0
    for x, y in turned(products[main:], "second first"):
        rest = fma(x, y, rest)
    return lanes[0] + lanes[1] + rest


@pytest.mark.parametrize("K", [1, 2, 7, 8])
def test_chains_of_fp64_are_fused_turned_or_rounded_apart(K: int) -> None:
    rng = np.random.default_rng(K)
    A, B = rng.standard_normal((1, K)), rng.standard_normal((K, 16))
    columns = [list(zip(A[0].tolist(), b.tolist(), strict=True)) for b in B.T]
    blocks = Structure(FMA64, 4, total=fp64, chained="second first")
    lanes = Structure(FMA64, lanes=2, total=fp64, unit=4, rest="apart", fused="second first", chained="no")
    for structure, by_hand in ((blocks, in_blocks), (lanes, in_lanes)):
        made = replay(A, B, structure).view(np.float64)[0]
        assert made.tolist() == [by_hand(each) for each in columns], structure.python
        assert eval(structure.python) == structure


@pytest.mark.parametrize(
    "structure",
    [
        Structure(FMA64, 4, total=fp64, smaller=(2,), rest="onto", fused="no", chained="second first"),
        Structure(FMA64, 8, 2, "sequential", fp64, smaller=(4, 2), rest="apart", dealt_from=4),
        Structure(
            FMA64,
            lanes=4,
            order="halves",
            total=fp64,
            unit=4,
            rest="apart",
            fused="second first",
            chained="no",
        ),
        Structure(FMA64, lanes=4, order="halves", total=fp64, unit=4, rest="apart", fused="second first"),
        Structure(FMA64, lanes=8, order="2 4 1", total=fp64, unit=8, rest="onto", peeled=2, chained="no"),
        Structure(FMA64, 8, total=fp64, rest="onto", fused="no", chained="no", onto=4),
        Structure(FMA64, lanes=16, order="8 2 1 4", total=fp64, unit=16, rest="level"),
        Structure(FMA64, lanes=16, order="4x4 1 2", total=fp64, unit=16, rest="level"),
        Structure(FMA64, lanes=16, order="halves", total=fp64, unit=16, rest="turn", peeled=1),
        Structure(FMA64, lanes=8, order="1 4 2", total=fp64, unit=8, rest="turn"),
    ],
    ids=lambda x: x.python,
)
def test_chains_of_fp64_are_found(structure: Structure) -> None:
    rng = np.random.default_rng(3)
    A, B = rng.standard_normal((12, 31)), rng.standard_normal((31, 20))
    found = explain(replay(A, B, structure).view(np.float64), A, B, against=FMA64)
    assert found.verdict == "explained"
    A, B = rng.standard_normal((9, 31)), rng.standard_normal((31, 9))
    assert any((replay(A, B, x) == replay(A, B, structure)).all() for x in found.structures)


def test_an_eighth_of_the_lanes_takes_what_is_left() -> None:
    """PyTorch's dot products of fp16: 64 lanes, then 8 of them, then one product after the other."""
    unit = datapaths.fma(a="fp16")
    structure = Structure(unit, lanes=64, order="halves", d_format=fp16, unit=64, rest="eighth")
    A, B = (
        x.view(np.float16) for x in draw_factors(LibraryCall(fp16, (24, 90, 20)), np.random.default_rng(1))
    )
    found = explain(replay(A, B, structure).view(np.float16), A, B, against=unit)
    assert found.structures == (structure,)
    with pytest.raises(ValueError, match="an eighth of 16 lanes"):
        Structure(unit, lanes=8, order="halves", unit=8, rest="eighth")


@pytest.mark.parametrize(
    "structure",
    [
        Structure(MUL_ADD, lanes=8, order="4 1 2", unit=8, rest="apart"),
        Structure(MUL_ADD, lanes=16, order="4x4 2 1", unit=8, rest="lane"),
        Structure(MUL_ADD, lanes=4, order="halves", unit=4, rest="first"),
        Structure(MUL_ADD, 8, 2, "sequential", smaller=(4,), rest="onto"),
    ],
    ids=lambda x: x.python,
)
def test_lanes_are_found_and_a_mutation_of_them_is_not(structure: Structure) -> None:
    A, B = operands(12, 29, 20)
    D = replay(A, B, structure).view(np.float32).copy()
    found = explain(D, A, B, against=MUL_ADD)
    assert found.verdict == "explained"
    assert any(
        (replay(*operands(9, 29, 9, 1), x) == replay(*operands(9, 29, 9, 1), structure)).all()
        for x in found.structures
    )
    D[3, 4] += 1
    assert explain(D, A, B, against=MUL_ADD).verdict == "wrong"
    order = np.random.default_rng(1).permutation(29)
    other = replay(A[:, order].copy(), B[order].copy(), structure).view(np.float32)
    assert explain(other, A, B, against=MUL_ADD, timeout=300).verdict == "none"


def test_regions_of_two_structures_are_found_and_one_wrong_element_is_told() -> None:
    A, B = operands(24, 29, 20)
    chain, lanes = Structure(MUL_ADD), Structure(MUL_ADD, lanes=2, unit=8, rest="lane")
    D, other = (replay(A, B, x).view(np.float32).copy() for x in (chain, lanes))
    for row in range(24):
        columns = slice(0, 8) if row % 12 < 6 else slice(12, 16)
        D[row, columns] = other[row, columns]
    found = explain(D, A, B, against=MUL_ADD)
    assert found.verdict == "explained"
    assert (found.remade(A, B) == D.view(np.uint32)).all()
    fresh = operands(24, 29, 20, 7)
    parts = [replay(*fresh, x) for x in (chain, lanes)]
    wanted = parts[0].copy()
    for row in range(24):
        columns = slice(0, 8) if row % 12 < 6 else slice(12, 16)
        wanted[row, columns] = parts[1][row, columns]
    assert (found.remade(*fresh) == wanted).all()
    D[20, 19] += np.float32(1)
    found = explain(D, A, B, against=MUL_ADD)
    assert found.verdict == "wrong"
    assert found.first == (20, 19)


def test_what_one_structure_explains_by_chance_makes_no_region() -> None:
    right = np.zeros((2, 20, 30), bool)
    right[0] = True
    right[0, 7, 9], right[1, 7, 9] = False, True
    assert not placed(right).any()
    right[0, 5:9, 20:], right[1, 5:9, 20:] = False, True
    which = placed(right)
    assert which[5:9, 20:].all()
    assert which.sum() == 40


def test_edges_of_one_row_are_where_the_fewest_runs_are_and_the_place_is_roundest() -> None:
    right = np.zeros((2, 1, 100), bool)
    right[1, 0, :8], right[0, 0, 8:] = True, True
    for by_chance in ([0], [7], [0, 7, 8, 9], [3, 8, 50]):
        seen = right.copy()
        seen[:, 0, by_chance] = True
        assert placed(seen).tolist() == [[1] * 8 + [0] * 92]


def test_a_column_of_its_own_is_found_in_several_calls_and_not_in_one() -> None:
    M, K, N, calls = 1, 29, 21, 12
    chain, lanes = Structure(MUL_ADD), Structure(MUL_ADD, lanes=2, unit=8, rest="lane")

    def call(A: Array, B: Array) -> Array:
        D = replay(A, B, chain).view(np.float32).copy()
        D[:, -1] = replay(A, B[:, -1:].copy(), lanes).view(np.float32)[:, 0]
        return D

    A = operands(M, K, N)[0]
    each = [operands(M, K, N, seed)[1] for seed in range(calls)]
    B, D = np.hstack(each), np.hstack([call(A, b) for b in each])
    assert explain(D[:, :N], A, each[0], against=MUL_ADD).verdict == "wrong"
    found = explain(D, A, B, against=MUL_ADD, call=(M, N))
    assert found.verdict == "explained"
    for seed in range(50, 60):
        fresh = operands(M, K, N, seed)
        assert (found.remade(*fresh) == call(*fresh).view(np.uint32)).all()
    with pytest.raises(ValueError, match="is not of calls of 5×4 each"):
        explain(D, A, B, against=MUL_ADD, call=(5, 4))


def test_a_structure_of_which_no_element_is_in_the_end_is_not_told() -> None:
    """16 lanes, which the search meets first, explain half of what 32 lanes make, and then no region."""
    instruction = datapaths.fma(a="fp16")
    made = Structure(instruction, lanes=32, order="halves", unit=32, rest="onto", d_format=fp16)

    def operands16(seed: int) -> tuple[NDArray[np.uint16], NDArray[np.uint16]]:
        return draw_factors(LibraryCall(fp16, (37, 78, 41)), np.random.default_rng(seed))

    A, B = operands16(1)
    D = replay(A, B, made)
    found = explain(
        D.view(np.float16), A.view(np.float16), B.view(np.float16), against=instruction, timeout=300
    )
    assert found.verdict == "explained"
    fresh = operands16(2)
    assert found.structure is not None
    assert (replay(*fresh, found.structure) == replay(*fresh, made)).all(), found.structure.python
