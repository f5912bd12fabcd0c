"""Which cases of inputs are alike: what a search for the smallest may take for granted, as proved (`facts/laws`)."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Literal

import z3

from mmaformal.cases.codes import is_finite, is_zero
from mmaformal.formats import Format
from mmaformal.spec import DotAdd

#: How products of zero are represented where nothing else is said of them.
Zeros = Literal["signed", "plus", "any"]


def symmetry_classes(x: DotAdd, y: DotAdd) -> list[Hashable]:
    """For each position its class: where the *order* law holds, two products of one class may change places, in x and
    in y.

    Products are of one class if they share a class of the algorithm and a block scale.
    """

    def classes(spec: DotAdd) -> list[Hashable]:
        scale = spec.scale_block or spec.k
        return [(spec.class_of(k), k // scale) for k in range(spec.k)]

    return list(zip(classes(x), classes(y), strict=True))


def zero_of_sign(sign: z3.BitVecRef, fmt: Format) -> z3.BitVecRef:
    """±0; +0 where there is no −0."""
    if not fmt.has_minus_zero:
        return z3.BitVecVal(0, fmt.storage_bits)
    return z3.simplify(z3.Concat(sign, z3.BitVecVal(0, fmt.storage_bits - 1)))


def is_zero_product(a: z3.BitVecRef, b: z3.BitVecRef, spec: DotAdd) -> z3.BoolRef:
    """Whether one factor is zero and both are finite."""
    x, y = spec.a_format, spec.b_format
    return z3.And(is_finite(a, x), is_finite(b, y), z3.Or(is_zero(a, x), is_zero(b, y)))


@dataclass(frozen=True)
class Symmetries:
    """Which cases stand for others in a search: each licence was proved."""

    classes: Sequence[Hashable]  #: products of one class may change places
    exchange: bool  #: b·a may stand for a·b
    signs: bool  #: (−a)·(−b) may stand for a·b
    zeros: Zeros  #: how products of zero are represented
    given: bool = False  #: whether they are so by the question, which needs no proof
