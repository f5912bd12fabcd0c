"""Exact sums of products, in limbs of 32 bits that do not carry until the end: what rounding errors are told against.

Every number is an integer times a power of two; its integer is cut into parts of 24 bits, so that a product of two
parts has 48 bits, and half of one shifted by up to 31 places fits a lane.  A limb takes 2^31 additions of numbers
below 2^32.
"""

from __future__ import annotations

import math

import numpy as np

from mmaformal.encodings.executable.blocks import Lane
from mmaformal.formats import Format
from mmaformal.kernels.compiled import driver, part, stack
from mmaformal.kernels.kernel import Plane

PART = 24  #: bits of a part
LIMB = 32
_PART_MASK, _LIMB_MASK = (1 << PART) - 1, (1 << LIMB) - 1


@part
def add_at(limbs: Plane, x: Lane, place: Lane) -> None:
    """Add x · 2^place, |x| < 2^48."""
    sign, magnitude = (-1, -x) if x < 0 else (1, x)
    low = (magnitude & _PART_MASK) << (place & 31)
    limbs[place >> 5] += sign * (low & _LIMB_MASK)
    limbs[(place >> 5) + 1] += sign * (low >> LIMB)
    place += PART
    high = (magnitude >> PART) << (place & 31)
    limbs[place >> 5] += sign * (high & _LIMB_MASK)
    limbs[(place >> 5) + 1] += sign * (high >> LIMB)


@part
def nearest(limbs: Plane, room: Plane, low: int) -> float:
    """The sum, times 2^low, as the nearest float64; `room` is for a copy."""
    n = limbs.size
    carry = 0
    for q in range(n):
        x = limbs[q] + carry
        carry = x >> LIMB
        room[q] = x & _LIMB_MASK
    negative = carry < 0
    if negative:
        carry = 1
        for q in range(n):
            x = (room[q] ^ _LIMB_MASK) + carry
            carry = x >> LIMB
            room[q] = x & _LIMB_MASK
    top = n - 1
    while top >= 0 and room[top] == 0:
        top -= 1
    if top < 0:
        return 0.0
    # The leading 61 bits, and whether anything is left below.
    length = 0
    while room[top] >> length != 0:
        length += 1
    leading, place, missing = room[top], LIMB * top, 61 - length
    sticky = False
    for q in range(top - 1, -1, -1):
        if missing >= LIMB:
            leading = (leading << LIMB) | room[q]
            missing -= LIMB
            place -= LIMB
        elif missing > 0:
            leading = (leading << missing) | (room[q] >> (LIMB - missing))
            sticky |= room[q] & ((1 << (LIMB - missing)) - 1) != 0
            place -= missing
            missing = 0
        else:
            sticky |= room[q] != 0
    # Rounded here, to 53 bits or to multiples of 2^-1074: converted to 53 bits, a subnormal would be rounded twice.
    bits = 0
    while leading >> bits != 0:
        bits += 1
    drop = min(max(bits - 53, -1074 - (place + low), 0), 62)
    kept = leading >> drop
    lost = leading - (kept << drop)
    half = (1 << drop) >> 1
    if lost > half or (lost == half and drop > 0 and (sticky or kept & 1 == 1)):
        kept += 1
    value = math.ldexp(np.float64(kept), place + low + drop)
    return -value if negative else value


@driver
def put_errors(
    fmt: Format,
    a: Plane,
    a_place: Plane,
    b: Plane,
    b_place: Plane,
    c: Plane,
    c_place: Plane,
    d: Plane,
    d_place: Plane,
    low: int,
    count: int,
    lane: Lane | None,
    exact: Plane,
    error: Plane,
) -> None:
    """exact = c + Σ a_k·b_k and error = d - exact, both computed exactly and rounded to float64 at the end.

    a: parts (m, K, parts) and places (m, K) of their last bits; b: (n, K, parts), (n, K); c, d: (m, n, parts),
    (m, n).  `low` is the place of the last bit of all sums, `count` the number of limbs.  If the products of one part
    and their sums fit 62 bits, `lane` is the place of the last bit of any, else None.
    """
    limbs, room = stack(np.int64, count), stack(np.int64, count)
    for i in range(exact.shape[0]):
        for j in range(exact.shape[1]):
            limbs[:] = 0
            if lane is not None:
                total = np.int64(0)
                for k in range(a.shape[1]):
                    p = np.int64(a[i, k, 0]) * np.int64(b[j, k, 0])
                    # A zero's place may be any: its shift is brought into the lane.
                    total += p << min(max(np.int64(a_place[i, k]) + np.int64(b_place[j, k]) - lane, 0), 63)
                add_at(limbs, total & _LIMB_MASK, lane - low)
                add_at(limbs, total >> LIMB, lane - low + LIMB)
            for k in range(a.shape[1] if lane is None else 0):
                place = np.int64(a_place[i, k]) + np.int64(b_place[j, k]) - low
                for x in range(a.shape[2]):
                    for y in range(b.shape[2]):
                        p = np.int64(a[i, k, x]) * np.int64(b[j, k, y])
                        if p != 0:
                            add_at(limbs, p, place + PART * (x + y))
            for x in range(c.shape[2]):
                if c[i, j, x] != 0:
                    add_at(limbs, np.int64(c[i, j, x]), np.int64(c_place[i, j]) - low + PART * x)
            exact[i, j] = nearest(limbs, room, low)
            for q in range(count):
                limbs[q] = -limbs[q]
            for x in range(d.shape[2]):
                if d[i, j, x] != 0:
                    add_at(limbs, np.int64(d[i, j, x]), np.int64(d_place[i, j]) - low + PART * x)
            error[i, j] = nearest(limbs, room, low)
