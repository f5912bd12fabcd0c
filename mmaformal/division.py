"""Checks of how a product of matrices is asked to divide K."""

from __future__ import annotations

from typing import Literal

from mmaformal.accumulation import ACCUMULATIONS, AccumulationOrder
from mmaformal.checked import integer
from mmaformal.instruction import Instruction

DivisionOrder = Literal["sequential", "pairwise"]


def counted_seed(seed: int) -> int:
    """Return a seed.  Raises TypeError, ValueError for what is none."""
    if integer(seed, "seed") < 0:
        raise ValueError(f"seed is {seed}; it counts from 0")
    return int(seed)


def check_chain(instruction: Instruction, longest: int) -> None:
    """Raise ValueError where one result cannot be the next one's c, and K takes several."""
    if longest > 1 and instruction.c_format != instruction.d_format:
        raise ValueError(
            f"{instruction.label} takes c as {instruction.c_format} and gives d as {instruction.d_format}: one result "
            f"cannot be the next one's c.  K ≤ {instruction.k}, or promote_every=1, is possible."
        )


def check_counts(**counts: int | None) -> None:
    """Raise TypeError, ValueError for what is no count, and for K that is divided in two ways."""
    for name, value in counts.items():
        if value is None and name != "split_k":
            continue
        if integer(value, name) < 1:
            raise ValueError(f"{name} is {value}; it counts from 1")
    if counts["stream_k"] is not None and counts["split_k"] != 1:
        raise ValueError("K is divided by split_k or by stream_k, not by both")


def check_orders(
    instruction: Instruction,
    accumulation: AccumulationOrder,
    order: DivisionOrder,
    tile: tuple[int, int],
    divided: bool,
) -> None:
    """Raise TypeError, ValueError for an order, accumulation or tile that is none, and where one excludes another."""
    if not isinstance(order, str) or order not in ("sequential", "pairwise"):
        raise ValueError(f'order is "sequential" or "pairwise", not {order!r}')
    if not isinstance(accumulation, str) or accumulation not in ACCUMULATIONS:
        raise ValueError(f"accumulation is {', '.join(ACCUMULATIONS)}, not {accumulation!r}")
    if accumulation not in ("natural", "kahan") and instruction.spec.scale_format is not None:
        raise ValueError(
            f"products with block scales cannot be taken in another order, as {accumulation!r} would"
        )
    if accumulation not in ("natural", "random") and divided:
        raise ValueError(f"K is divided, or its accumulation is {accumulation!r}, not both")
    if not isinstance(tile, (tuple, list)) or len(tile) != 2:
        raise TypeError(f"tile is two sizes, such as (128, 128), not {tile!r}")
    if min(integer(size, "the size of a tile") for size in tile) < 1:
        raise ValueError(f"a tile of {tile}; two sizes, from 1 on")
