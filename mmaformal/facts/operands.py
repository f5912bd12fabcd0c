"""The operands of a step, in both wings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mmaformal.algorithms import DotAdd
from mmaformal.proof.encoding_links import (
    OperandLinks,
    decode,
)
from mmaformal.proof.lemmas import Argument, Link


def step_operands(
    argument: Argument,
    spec: DotAdd,
    codes: tuple[Sequence[Link], Sequence[Link], Link],
    products: Sequence[int],
    mine: Any,
    other: Any,
) -> tuple[list[OperandLinks], list[OperandLinks], OperandLinks]:
    """The operands of one step: each product's a and b, and c."""
    a, b, c = codes
    x = [
        decode(argument, a[k], u, v, spec.a_format) for k, u, v in zip(products, mine.a, other.a, strict=True)
    ]
    y = [
        decode(argument, b[k], u, v, spec.b_format) for k, u, v in zip(products, mine.b, other.b, strict=True)
    ]
    return x, y, decode(argument, c, mine.c, other.c, spec.c_format)
