"""Structures of vector lanes: what `replay` gives is a plain loop's, and `explain` finds it, and nothing else."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from mmaformal import Structure, explain, replay
from mmaformal.architectures import datapaths
from mmaformal.queries.lane_search import LANES, order_called
from mmaformal.queries.regions import placed
from mmaformal.structure_plans import levels_of

MUL_ADD = datapaths.mul_add(a="fp32")
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
        mine[0] = head + mine[0] + (rest if x.rest == "lane" else [])
        sums = {lane: chain(each) for lane, each in enumerate(mine) if each}
        if x.lanes == 1:
            value = sums.get(0)
        else:
            for stride, count in levels_of(x.order, x.lanes) or ():
                for lane in range(x.lanes):
                    if (lane // stride) % count == 0:
                        for other in range(lane + stride, lane + stride * count, stride):
                            if other in sums:
                                sums[lane] = sums[lane] + sums.pop(other) if lane in sums else sums.pop(other)
            value = sums.get(0)
        if value is not None:
            total = value if total is None else total + value
        if rest and x.rest in ("onto", "apart"):
            total = after(chain, rest, x, total)
    if left:
        total = after(chain, left, x, total)
    assert total is not None
    return total


def after(chain: Any, rest: list[int], x: Structure, total: Array | None) -> Array:
    if x.fused == "second first":
        rest = [*rest[1:2], rest[0], *rest[2:]]
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
            draw(st.sampled_from(("first", "head", "lane", "onto", "apart"))),
        )
    elif block is not None and draw(st.booleans()):
        smaller = draw(st.sampled_from(((), (block // 2,), (block // 2, 1))))
        rest = draw(st.sampled_from((None, "onto", "apart")))
    if rest in ("onto", "apart"):
        fused = draw(st.sampled_from(("yes", "second first", "no")))
    return Structure(
        MUL_ADD, block, lanes, order, smaller=smaller, unit=unit, rest=rest, fused=fused, short=short
    )  # type: ignore[arg-type]


@settings(max_examples=80, deadline=None)
@given(structures(), st.integers(1, 90))
def test_replay_is_a_plain_loop(structure: Structure, K: int) -> None:
    A, B = operands(2, K, 3, K)
    assert (replay(A, B, structure).view(np.float32) == loop(A, B, structure)).all(), str(structure)
    again: Structure = eval(structure.python)
    assert again == structure


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
    assert explain(other, A, B, against=MUL_ADD).verdict == "none"


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
