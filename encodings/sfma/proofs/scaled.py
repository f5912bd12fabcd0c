"""What doubling a and c does to a step of sfma: a sum with a sticky last place (`proof/scaling`)."""

from __future__ import annotations

from mmaformal.encodings.sfma import smt as sfma
from mmaformal.facts.scaling_parts import sticky_sum_doubled
from mmaformal.proof.lemmas import Link
from mmaformal.proof.scaling import DoubledRuns


def doubled(two: DoubledRuns[sfma.SfmaStep]) -> Link:
    fmt = two.spec.d_format
    least = sfma.exponents_of(fmt).constant(fmt.min_exponent)
    term = two.only_product(least, *two.only_factors())
    return sticky_sum_doubled(two, lambda step: step.product, term, least)
