"""Adding c, wherever it lies, to a wide exact number, so that one rounding of the sum is right.

The wide number (n bits) stays where it is and c (w bits, one integer bit) is shifted, in a window of

    `above` places  |  the wide number, n places  |  `below` places, the last one sticky

    c shifted by 0:  c's leading bit is the highest place
    c further up:    the window moves up with c, and the wide number with it, to a higher value than its own
    c further down:  what leaves the window is jammed into the last place

Let q ≥ w and let *boundaries* be the numbers at which rounding to q or fewer bits changes its result: multiples
of 2^(j-q) from 2^j to 2^(j+1), and, where subnormals begin, a subset of those.  Replacing the exact sum by
another number is harmless if both are at, or both strictly between, the same boundaries.

*Above.*  If c is further up, it is a normal number with its leading bit at 2^e, or it is subnormal and a multiple
of the last place there is; so c is itself a boundary, and no other is nearer than 2^(e-1-q) (below c = 2^e).  The
wide number, at its own place or at the higher one, is nonzero or not in both, of the same sign, and less than
2^(e-above+1).  So `above = q + 2` suffices; one place fewer does not, for c = 2^e and a wide number near its bound.

*Below.*  Let the wide number have the last place 1 and be at least 2^(m-1) in magnitude whenever c leaves the
window.  If |c| is at least half of the wide number, c's last place is at least 2^(m-2-(w-1)), and kept exactly if
that is not below the place above the sticky one, 2^(1-below).  If |c| is less, the sum is at least 2^(m-2), so
boundaries near it are multiples of 2^(m-2-q): also kept exactly by the places above the sticky one if
2^(1-below) is no more.  So `below = q + 3 - m`, and one place fewer does not suffice: the sticky place would
take a number strictly between boundaries to one of them.

A wide number that is zero must not move c out of the window: its exponent is to be the least there is.
"""

from __future__ import annotations

import z3

from mmaformal.encodings.smt.blocks import BitVec, Term, maximum, negate_if, pad, resize, sticky_shift_right


def places_above(precision: int) -> int:
    """`above`, for a c and a rounding of at most `precision` significand bits."""
    return precision + 2


def places_below(precision: int, least_bits: int) -> int:
    """`below`, where the wide number has at least `least_bits` significant bits whenever c leaves the window."""
    return precision + 3 - least_bits


def add_to_wide(
    wide: BitVec, window_exponent: BitVec, c: Term, above: int, below: int
) -> tuple[BitVec, BitVec, int]:
    """(total, e_top, F): the sum is `total · 2^(e_top - F)` for the purpose of rounding it.

    wide: two's complement of n + 1 bits.  window_exponent: the exponent of the window's highest place, `above`
    places over the wide number's highest; the range's least for zero.  c's exponents are of the same range.
    """
    places = above + wide.size() - 1 + below
    e_top = maximum([window_exponent, c.exponent])
    shifted = sticky_shift_right(pad(c.significand, places - c.significand.size()), e_top - c.exponent)
    bits = places + 2  # the sum of two numbers of `places` bits, and the sign
    in_place = pad(wide, below)
    total = z3.SignExt(bits - in_place.size(), in_place) + negate_if(c.sign, resize(shifted, bits))
    return total, e_top, places - 1
