"""What doubling does to the sum of two codes: gps and lowered instructions."""

from __future__ import annotations

import z3

from mmaformal.cases.codes import magnitude
from mmaformal.cases.interfaces import AnyStep
from mmaformal.formats import fp32
from mmaformal.proof.lemmas import Link
from mmaformal.proof.scaling import DoubledRuns, well_inside


def assumed_results(two: DoubledRuns[AnyStep]) -> list[Link]:
    what = "every step's result is zero or above the least normal number"
    fmt = two.spec.d_format
    return [two.pairing.assume(what, Link(well_inside(s.result, fmt), ())) for s in (two.left, two.right)]


def normal_or_special(code: z3.BitVecRef) -> z3.BoolRef:
    """Whether a code is zero, or no subnormal."""
    size = magnitude(code, fp32)
    return z3.Or(size == 0, z3.UGE(size, 1 << fp32.fraction_bits))
