"""Limits of the encodings: bounds of sums in 64-bit lanes, and checks and words that algorithms share."""

from __future__ import annotations

from mmaformal.formats import Format
from mmaformal.rounding import Rounding
from mmaformal.spec import DotAdd, Parameters

#: what a sum in a lane stays below
LANE = 1 << 61


def most_places(products: int) -> int:
    """The most fractional bits F with which a sum of so many aligned products and c stays within a lane.

    A product is below 4 and c below 2, so that the sum is at most products · (2^(F+2) − 1) + 2^(F+1) ≤ 2^61.
    """
    return ((LANE + products) // (4 * products + 2)).bit_length() - 1


def check_exponent(parameters: Parameters, e_zero: int | None) -> None:
    parameters.needs(e_zero is None or abs(e_zero) <= 4096, f"−4096 ≤ e_zero ≤ 4096, not {e_zero}")


def check_products(parameters: Parameters, spec: DotAdd) -> None:
    product_bits = spec.a_format.fraction_bits + spec.b_format.fraction_bits + 2
    parameters.needs(product_bits <= 48, f"products of at most 48 bits, not {product_bits}")


def widest(fmt: Format) -> int:
    """The largest significand of a format, as an integer."""
    return (2 << fmt.fraction_bits) - 1


def aligned(significand: int, places: int, F: int, cut: Rounding = Rounding.RZ) -> int:
    """A significand with so many fractional places, with F, cut toward zero or to odd."""
    kept = significand << F - places if places <= F else significand >> places - F
    lost = significand << F != kept << places
    return kept | 1 if lost and cut is Rounding.RO else kept


def product_bound(spec: DotAdd, F: int, cut: Rounding = Rounding.RZ) -> int:
    """The largest aligned product of a fused step."""
    places = spec.a_format.fraction_bits + spec.b_format.fraction_bits
    return aligned(widest(spec.a_format) * widest(spec.b_format), places, F, cut)


def check_cut(parameters: Parameters, cut: Rounding) -> None:
    parameters.needs(cut in (Rounding.RZ, Rounding.RO), f"cut RZ or RO, not {cut.name}")


def cut_text(cut: Rounding) -> str:
    return "toward zero" if cut is Rounding.RZ else "to odd"


def holds_narrower(wide: Format, x: Format) -> bool:
    """Whether every number of x is one of `wide`, which has no narrower significand and no later last place."""
    last_places = (wide.min_exponent - wide.fraction_bits, x.min_exponent - x.fraction_bits)
    narrow = x.fraction_bits <= wide.fraction_bits and last_places[0] <= last_places[1]
    return narrow and x.max_exponent <= wide.max_exponent


def significant(fmt: Format) -> str:
    return f"{fmt} ({fmt.fraction_bits + 1} significant bits)"


def own_bits(d: Format) -> str:
    return f"{d} itself has {d.fraction_bits}"


def factors(spec: DotAdd) -> dict[str, object]:
    """Return the formats of a and b, as arguments of a datapath."""
    return {"a": spec.a_format, "b": spec.b_format}


def zero(e_zero: int | None) -> dict[str, object]:
    """Return the exponent of zero terms, as an argument of a datapath."""
    return {"e_zero": "fields" if e_zero is None else e_zero}


def scale_arguments(spec: DotAdd) -> dict[str, object]:
    """Return the scales, as arguments of a datapath."""
    return {"scale": spec.scale_format, "block": spec.scale_block} if spec.scale_format else {}
