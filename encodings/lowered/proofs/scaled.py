"""What doubling a and c does to a lowered instruction."""

from __future__ import annotations

import z3

from mmaformal.encodings.lowered import smt as lowered
from mmaformal.facts.scaling import chain
from mmaformal.facts.scaling_codes import addition, assumed_results
from mmaformal.proof.lemmas import Link
from mmaformal.proof.scaling import DoubledRuns, same_double


def derive(two: DoubledRuns[lowered.LoweredStep]) -> Link:
    left, right, spec = two.left, two.right, two.spec
    inner = spec.parameters.inner_dot_add(spec)  # type: ignore[attr-defined]
    zero = z3.BitVecVal(0, spec.d_format.storage_bits)
    start = two.derive("inputs", "the inner steps start from +0", same_double(zero, zero, spec.d_format))
    dot = chain(two.pairing, inner, (left.inner, right.inner), start, two.assumed)
    return addition(two, left.addition, right.addition, [dot, two.c], assumed_results(two))
