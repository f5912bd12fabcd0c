"""The largest terms that a step adds up."""

from __future__ import annotations

from typing import NamedTuple

import z3

from mmaformal.limits import aligned, widest
from mmaformal.proof.lemmas import ArgumentError, Link
from mmaformal.spec import DotAdd


def within(x: z3.BitVecRef, bound: int) -> Link:
    """−bound ≤ x ≤ bound; all that x can be if it has no bits for more."""
    if bound >= 1 << (x.size() - 1):
        raise ArgumentError(f"{x.size()} bits do not hold ±{bound}")
    return Link(z3.And(x <= bound, x >= -bound), (x,))


class Bound(NamedTuple):
    significand: int  #: the largest of a product
    aligned: int  #: the same in F fractional bits


def bound_of_sum(spec: DotAdd) -> Bound:
    """The bounds of a product of fda."""
    fraction = spec.a_format.fraction_bits + spec.b_format.fraction_bits
    product = widest(spec.a_format) * widest(spec.b_format)
    return Bound(product, aligned(product, fraction, spec.parameters.F))  # type: ignore[attr-defined]
