"""The largest terms that a step adds up."""

from __future__ import annotations

import z3

from mmaformal.proof.lemmas import ArgumentError, Link


def within(x: z3.BitVecRef, bound: int) -> Link:
    """−bound ≤ x ≤ bound; all that x can be if it has no bits for more."""
    if bound >= 1 << (x.size() - 1):
        raise ArgumentError(f"{x.size()} bits do not hold ±{bound}")
    return Link(z3.And(x <= bound, x >= -bound), (x,))
