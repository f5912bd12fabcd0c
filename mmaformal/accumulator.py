"""What an instruction keeps of its terms while it sums them, in numbers and in words.

The widths are arithmetic on the types; that they hold for all inputs, and that no fewer bits do, is what the property
`accumulator-width` proves (tests/test_listing.py compares the two).
"""

from __future__ import annotations

from dataclasses import dataclass

from mmaformal.algorithms import DotAdd, Efda, Fda, Fdrda, Gdfs, Gps, Lowered, Sfma
from mmaformal.display import ShortRepr, counted
from mmaformal.formats import Format


@dataclass(frozen=True, repr=False)
class SumWidth(ShortRepr):
    """Bits of the magnitudes of one step's fixed-point sum."""

    term: int  #: of the largest aligned term
    total: int  #: of the largest sum

    @property
    def carry(self) -> int:
        """Bits of the sum above the largest term."""
        return self.total - self.term


def sum_width(spec: DotAdd) -> SumWidth | None:
    """The widths of the first fixed-point sum of a step; None for gps, sfma and efda, which have no such sum."""
    p = spec.parameters
    product = _widest(spec.a_format) * _widest(spec.b_format)
    places = spec.a_format.fraction_bits + spec.b_format.fraction_bits
    if isinstance(p, Fdrda):
        groups = 2 if p.algorithm == "gfdrda" else 1
        return _width([_aligned(product, places, p.F)] * -(-p.L // groups))
    if not isinstance(p, (Fda, Gdfs, Lowered)):
        return None
    terms = p.L
    if isinstance(p, Gdfs):
        assert spec.scale_format is not None
        # A group is summed at one exponent: what counts are the largest numbers, not the largest significands.
        product <<= spec.a_format.max_exponent + spec.b_format.max_exponent
        product *= p.G * _widest(spec.scale_format) ** 2
        places += 2 * spec.scale_format.fraction_bits
        terms = p.L // p.G
    c = spec.d_format if isinstance(p, Lowered) else spec.c_format
    return _width([_aligned(product, places, p.F)] * terms + [_aligned(_widest(c), c.fraction_bits, p.F)])


def _widest(fmt: Format) -> int:
    """The largest significand, as an integer."""
    return (2 << fmt.fraction_bits) - 1


def _aligned(significand: int, places: int, F: int) -> int:
    return significand << F - places if places <= F else significand >> places - F


def _width(bounds: list[int]) -> SumWidth:
    return SumWidth(max(bounds).bit_length(), sum(bounds).bit_length())


def in_words(spec: DotAdd) -> list[str]:
    """What the accumulator keeps: a sentence or two, for a person who has not read the papers."""
    p, d = spec.parameters, spec.d_format
    own = f"{d} itself has {d.fraction_bits}"
    if isinstance(p, Sfma):
        return [f"rounds after every product: each fma is exact until it is rounded to {_significant(d)}"]
    if isinstance(p, Gps):
        return [f"has no wide accumulator: every product and every sum is rounded to {_significant(d)}"]
    if isinstance(p, Efda):
        return [
            f"keeps every bit: the sum of {counted(p.L, 'product')} and c is exact until it is rounded, once, "
            f"to {_significant(d)}"
        ]
    if isinstance(p, Fdrda):
        largest = "largest product of its group" if p.algorithm == "gfdrda" else "largest product"
        lines = [
            f"keeps {p.F} fractional bits of each product below the {largest}, cut toward zero; then, to add c, "
            f"{p.dot_bits} of their sum and {p.F} of c below the larger of the two, cut {p.cut.value} ({own})"
        ]
    elif isinstance(p, Gdfs):
        lines = [
            f"keeps {p.F} fractional bits below the largest term; a term is the exact sum of {p.G} scaled products, "
            f"or c; lower bits are cut off, toward zero ({own})"
        ]
    elif isinstance(p, Lowered):
        lines = [
            f"keeps {p.F} fractional bits below the largest term of a step, toward zero ({own}); "
            f"c is added in the end, by an ordinary {d} addition"
        ]
    elif isinstance(p, Fda):
        lines = [
            f"keeps {p.F} fractional bits below the largest term of a step, toward zero: of all {p.L} products and c, "
            f"what is under 2^(e − {p.F}) is cut off, e being the largest exponent ({own})"
        ]
    else:
        return []
    width = sum_width(spec)
    if width is not None:
        what = "the exact sum of the products" if isinstance(p, Fdrda) else "the exact sum of what is kept"
        lines.append(
            f"{what} takes {counted(width.total, 'bit')} and a sign: "
            f"{width.term} of one term, {width.carry} for carries"
        )
    return lines


def _significant(fmt: Format) -> str:
    return f"{fmt} ({fmt.fraction_bits + 1} significant bits)"
