"""Every property there is, by name."""

from __future__ import annotations

from mmaformal.queries import (
    accumulator_width,
    commutativity,
    error_bound,
    exactness,
    lossless_width,
    monotonicity,
    order_independence,
    output_range,
    power_of_two_scaling,
    rounding,
    sign_symmetry,
    zero_padding,
)
from mmaformal.queries.property import Property

_ALL: tuple[Property, ...] = (
    order_independence.PROPERTY,
    order_independence.ACROSS,
    commutativity.PROPERTY,
    sign_symmetry.PROPERTY,
    zero_padding.PROPERTY,
    power_of_two_scaling.PROPERTY,
    output_range.NO_NAN,
    output_range.NEVER_MINUS_ZERO,
    output_range.EVERY_NUMBER,
    accumulator_width.PROPERTY,
    monotonicity.ADDEND,
    monotonicity.PRODUCT,
    exactness.PROPERTY,
    error_bound.PROPERTY,
    lossless_width.PROPERTY,
    rounding.CORRECT,
    rounding.FAITHFUL,
    rounding.STEP,
)
PROPERTIES: dict[str, Property] = {each.name: each for each in _ALL}
