"""Structures of whole products: what `replay` computes, from instructions and additions alone."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from mmaformal import Structure, cdna1, hopper, matmul, power10, replay, sapphire_rapids, volta
from mmaformal.analysis.structure_bounds import StructureBound
from mmaformal.formats import bf16, fp16, fp32, fp64
from mmaformal.structure_plans import instructions_of

AMX = sapphire_rapids["TDPBF16PS"]
HMMA = hopper["HMMA.16816.F32"]
FMA = power10["XVF32GERPP"]


def operands(K: int, seed: int = 1) -> tuple[NDArray[Any], NDArray[Any]]:
    """bf16 codes of normal numbers of either sign, so that sums cancel."""
    random = np.random.default_rng(seed)
    wide = (random.integers(0, 2, (2, 5, K)) << 15) | random.integers(0x3C00, 0x4100, (2, 5, K))
    return wide[0].astype(np.uint16), wide[1].T.astype(np.uint16)


def chain(a: NDArray[Any], b: NDArray[Any], first: int, last: int) -> NDArray[np.float32]:
    return matmul(a[:, first:last], b[first:last].copy(), instruction=AMX).view(np.float32)


def test_one_chain_is_matmul() -> None:
    a, b = operands(100)
    assert (replay(a, b, Structure(AMX)) == matmul(a, b, instruction=AMX)).all()


def test_blocks_are_added_in_order() -> None:
    a, b = operands(224)
    parts = [chain(a, b, first, min(first + 64, 224)) for first in (0, 64, 128, 192)]
    wanted = ((parts[0] + parts[1]) + parts[2]) + parts[3]
    assert (replay(a, b, Structure(AMX, 64)).view(np.float32) == wanted).all()


@pytest.mark.parametrize(("order", "pairs"), [("pairwise", ((0, 1), (2, 3))), ("halves", ((0, 2), (1, 3)))])
def test_orders_of_four_sums(order: Any, pairs: tuple[tuple[int, int], ...]) -> None:
    a, b = operands(224)
    parts = [chain(a, b, first, min(first + 64, 224)) for first in (0, 64, 128, 192)]
    (i, j), (k, m) = pairs
    wanted = (parts[i] + parts[j]) + (parts[k] + parts[m])
    assert (replay(a, b, Structure(AMX, 64, order=order)).view(np.float32) == wanted).all()


def test_an_odd_sum_waits() -> None:
    a, b = operands(96)
    parts = [chain(a, b, first, first + 32) for first in (0, 32, 64)]
    for order in ("pairwise", "halves"):
        got = replay(a, b, Structure(AMX, 32, order=order)).view(np.float32)  # type: ignore[arg-type]
        assert (got == (parts[0] + parts[1]) + parts[2]).all()


def test_lanes_take_instructions_in_turn() -> None:
    a, b = operands(150)  # four whole instructions and a part of one
    k = np.arange(150) // 32
    even, odd = (matmul(a[:, k % 2 == r], b[k % 2 == r], instruction=AMX).view(np.float32) for r in (0, 1))
    assert (replay(a, b, Structure(AMX, lanes=2)).view(np.float32) == even + odd).all()


def test_the_sum_is_rounded_to_nearest_even_in_the_end() -> None:
    a, b = operands(64)
    wide = replay(a, b, Structure(AMX))
    half = ((wide.astype(np.uint64) + 0x7FFF + ((wide >> 16) & 1)) >> 16).astype(np.uint16)
    assert (replay(a, b, Structure(AMX, d_format=bf16)) == half).all()


def test_blocks_that_hold_all_of_k_are_one_chain() -> None:
    a, b = operands(100)
    assert (replay(a, b, Structure(AMX, 128)) == replay(a, b, Structure(AMX))).all()


def test_what_is_left_is_halved() -> None:
    """384 and 1024: as Goto's GEMM and OpenBLAS cut K; half of an odd number is rounded down first."""
    fma = cdna1["v_mfma_f32_32x32x1f32"]

    def lengths(K: int, halved: int | None) -> list[int]:
        return [len(instructions_of(chain)) for chain in Structure(fma, 384, halved=halved).chains(K)]

    assert lengths(1024, None) == [384, 384, 256]
    assert lengths(1024, 1) == lengths(1024, 16) == [384, 320, 320]
    assert lengths(1000, 1) == [384, 308, 308]
    assert lengths(1000, 16) == [384, 320, 296]
    assert lengths(768, 16) == [384, 384]
    assert lengths(384, 16) == [384]
    assert lengths(769, 16) == [384, 192, 193]
    assert lengths(771, 16) == [384, 208, 179]
    assert lengths(769, 1) == [384, 192, 193]
    assert lengths(767, 384) == [384, 383]
    assert lengths(100, 16) == [100]


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"block": 48}, "blocks of 48 products; sapphire_rapids TDPBF16PS takes 32 at a time"),
        ({"lanes": 0}, "0 lanes; they count from 1"),
        ({"block": 32, "rest": "lane"}, "say of which unit"),
        ({"lanes": 2, "unit": 64}, "rest says where the other products go"),
        ({"lanes": 4, "order": "1 4"}, "does not add each of 4 lanes once"),
        ({"lanes": 4, "order": "2x4 1"}, "is of 8 lanes, not of 4"),
        ({"block": 64, "smaller": (128,)}, "smaller blocks fall from 64"),
        ({"block": 64, "stored": fp64}, "holds no more than the sum's"),
        ({"halved": 32}, "there are none"),
        ({"lanes": 4, "peeled": 2}, "peeled of 2 products; sapphire_rapids TDPBF16PS takes 32 at a time"),
        ({"peeled": 32}, "peeled is of lanes without blocks"),
        ({"onto": 32}, "onto is a part of blocks"),
        ({"block": 64, "halved": 16}, "halves of a multiple of 16; sapphire_rapids TDPBF16PS takes 32"),
        (
            {"order": "random"},
            "order is one of sequential, pairwise, halves, or levels such as '4x4 2 1', not 'random'",
        ),
        ({"total": fp16}, "added in fp32 or fp64"),
    ],
)
def test_what_makes_no_sense_is_said(wrong: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        Structure(AMX, **wrong)


def test_an_instruction_that_cannot_be_chained() -> None:
    with pytest.raises(ValueError, match="cannot be chained"):
        Structure(volta["HMMA.884.F32.F16"])


def test_shapes_are_checked() -> None:
    with pytest.raises(ValueError, match="M×K and K×N are needed"):
        replay(np.zeros((2, 32), np.uint16), np.zeros((31, 2), np.uint16), Structure(AMX))


def test_a_structure_is_told_in_words_and_as_json() -> None:
    structure = Structure(AMX, 1024, order="pairwise", d_format=bf16)
    assert str(structure) == (
        "K in blocks of 1024, each a chain of sapphire_rapids TDPBF16PS, 32 at a time, from +0; added in pairs in "
        "fp32; rounded to bf16 (RNE)"
    )
    told = structure.to_json()
    assert (told["block"], told["order"], told["d_format"]) == (1024, "pairwise", "bf16")
    assert Structure(AMX).result == fp32


# ---- C


@pytest.mark.parametrize(
    ("how", "divided"),
    [
        ({"c_enters": "start"}, {}),
        ({"block": 32, "c_enters": "first"}, {"promote_every": 2}),
        ({"block": 64, "c_enters": "first"}, {"split_k": 2}),
        ({"block": 64, "c_enters": "last", "order": "pairwise"}, {"split_k": 2, "order": "pairwise"}),
    ],
    ids=str,
)
def test_c_enters_where_matmul_adds_it(how: dict[str, Any], divided: dict[str, Any]) -> None:
    random = np.random.default_rng(0)
    A, B = (
        random.standard_normal((8, 128)).astype(np.float16),
        random.standard_normal((128, 8)).astype(np.float16),
    )
    C = random.standard_normal((8, 8)).astype(np.float32)
    wanted = matmul(A, B, C, instruction=HMMA, **divided).view(np.uint32)
    structure = Structure.named(HMMA.label, **how)
    assert (replay(A, B, structure, C) == wanted).all()
    assert eval(structure.python) == structure
    others = [replace(structure, c_enters=x) for x in ("start", "last") if x != how["c_enters"]]
    assert all((replay(A, B, other, C) != wanted).any() for other in others)


def test_c_after_the_rounding_is_rounded_twice() -> None:
    A, B = np.ones((1, 16), np.float16), np.full((16, 1), 2048 / 16, np.float16)
    A[0, 0], B[0, 0] = 1, 2048 / 16 + 1  # 2049, a tie of fp16
    C = np.ones((1,), np.float16)
    once, twice = (Structure(HMMA, d_format=fp16, c_enters=x) for x in ("last", "after"))
    assert replay(A, B, once, C).view(np.float16)[0, 0] == 2050
    assert replay(A, B, twice, C).view(np.float16)[0, 0] == 2048  # 2049 → 2048, 2049 → 2048


def test_c_is_where_the_structure_says_so() -> None:
    A, B, C = np.ones((2, 16), np.float16), np.ones((16, 2), np.float16), np.ones(2, np.float64)
    with pytest.raises(ValueError, match="C is given where the structure has `c_enters`"):
        replay(A, B, Structure(HMMA), C)
    with pytest.raises(ValueError, match="C is fp64, of which fp32 does not hold all"):
        replay(A, B, Structure(HMMA, c_enters="last"), C)
    with pytest.raises(ValueError, match="C has shape"):
        replay(A, B, Structure(HMMA, c_enters="last"), np.ones(3, np.float32))
    with pytest.raises(ValueError, match="in order"):
        Structure(HMMA, 32, order="pairwise", c_enters="first")


def test_chains_that_are_not_fused_are_of_single_products_and_have_no_bound() -> None:
    with pytest.raises(ValueError, match="takes 16 at a time"):
        Structure(HMMA, chained="no")
    with pytest.raises(ValueError, match="chained is yes, second first, no, not 'half'"):
        Structure.named("power10 XVF32GERPP", chained="half")  # type: ignore[arg-type]
    apart = Structure.named("power10 XVF32GERPP", block=4, chained="no")
    with pytest.raises(ValueError, match="there is no bound"):
        StructureBound.of(apart, 64)
    assert apart.text.endswith("each product rounded and then added; added in order in fp32")


def test_the_bound_counts_every_addition_after_a_chain() -> None:
    """7 products, each rounded and added to the sum of 8 lanes, are 7 additions after 3; one is for a C."""
    u = Fraction(1, 1 << 24)
    onto = Structure(FMA, lanes=8, order="pairwise", unit=8, rest="onto", fused="no")
    for structure, K, chain, additions in (
        (onto, 15, 1, 3 + 7),
        (Structure(FMA, 8, rest="onto"), 23, 8 + 7, 1),
    ):
        one = 1 + StructureBound.of(FMA, chain).f
        f = StructureBound.of(structure, K).f + 1
        assert one * (1 + u) ** (additions + 1) <= f < one * (1 + u) ** (additions + 2)
