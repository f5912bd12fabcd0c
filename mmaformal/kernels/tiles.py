"""The kernel of fda where sums are words of 32 bits (`narrow`): tiles of some rows and the columns of a panel.

A tile has at most as many outputs as a panel is wide, so that what they need stays in the first-level cache: one row
of a whole panel, more rows of a narrow one.  What is done once per output is done for a whole tile at a time.
"""

from __future__ import annotations

import numpy as np

from mmaformal.encodings.executable.blocks import (
    Flag,
    Lane,
    Operand,
    classify_product,
    decode,
    select_special,
    where,
)
from mmaformal.formats import Format
from mmaformal.kernels.compiled import driver, inlined, part, prefetch, stack, vectorised
from mmaformal.kernels.kernel import WIDTH, Plane, Planes
from mmaformal.kernels.narrow import addend_exponent, addend_of, encoded, larger_word, plus_addend
from mmaformal.kernels.planes import FILL, INFINITE, NAN, ZERO
from mmaformal.kernels.terms import (
    FAR,
    FLAG_NAN,
    FLAG_NEGATIVE,
    FLAG_POSITIVE,
    largest_exponent,
    smallest_exponent,
    special_of,
    sum_of_chunk,
)
from mmaformal.kernels.words import CompiledWord, two_to, word32
from mmaformal.rounding import Conversion

#: Columns of a tile are filled up to vectors of words.
LANES = 16


@part
def begin(
    c_format: Format,
    F: int,
    e_zero: int,
    least: int,
    floor: int,
    blocks: Plane,
    d: Plane,
    largest: Plane,
    e_max: Plane,
    scale: Plane,
) -> Flag:
    """e_max of the products and c, and 2^(F - e_max) for products without their block scales, 2^`blocks`.

    Returns whether some c is a special value.
    """
    vectorised()
    special = False
    for j in range(d.size):
        c = addend_of(word32(d[j]), c_format)
        special |= c.special
        e, s = word32(largest[j]), word32(blocks[j])
        e = larger_word(where(e < least, word32(FAR), e + s), addend_exponent(c, e_zero))
        e_max[j] = e.number
        scale[j] = two_to(larger_word(F - e + s, word32(floor)), scale[j])
    return special


@part
def _count_zeros(
    F: int, e_zero: int, least: int, floor: int, blocks: Plane, smallest: Plane, e_max: Plane, scale: Plane
) -> None:
    """Raise e_max to e_zero where a product is zero, which has the smallest exponent, and the scale with it."""
    vectorised()
    for j in range(e_max.size):
        e = larger_word(word32(e_max[j]), where(word32(smallest[j]) < least, word32(e_zero), word32(FAR)))
        e_max[j] = e.number
        scale[j] = two_to(larger_word(F - e + word32(blocks[j]), word32(floor)), scale[j])


@part
def sum_rows(va: Plane, vb: Plane, start: int, stop: int, scale: Plane, total: Plane) -> None:
    """`sum_of_chunk` of some rows, whose outputs lie one row after the other."""
    w = total.size // va.shape[0]
    for r in range(va.shape[0]):
        mine = slice(r * w, (r + 1) * w)
        sum_of_chunk(va[r], vb, start, stop, scale[mine], total[mine])


@part
def finish(rho: Conversion, c_format: Format, F: int, e_max: Plane, total: Plane, d: Plane) -> None:
    """The stages of fda after the products', where there is no special value."""
    vectorised()
    for j in range(d.size):
        e, c = word32(e_max[j]), addend_of(word32(d[j]), c_format)
        found = plus_addend(word32(total[j]), c, e, c_format.fraction_bits, F)
        d[j] = encoded(found, e - F, rho).number


@part
def copy(source: Plane, target: Plane) -> None:
    vectorised()
    for j in range(target.size):
        target[j] = source[j]


@inlined
def _operand(kind: CompiledWord) -> Operand:
    """The operand of a kind, as far as classifying a product looks at it."""
    significand = where(kind & ZERO != 0, word32(0), word32(1))
    return Operand((kind >> 3) & 1, word32(0), significand, kind & INFINITE != 0, kind & NAN != 0)


@part
def specials(ka: Plane, kb: Plane, start: int, stop: int, some: Flag, flags: Plane) -> None:
    """The special values that products of these kinds make, if there are `some`."""
    vectorised()
    for j in range(flags.size):
        flags[j] = 0
    if not some:
        return
    for k in range(start, stop):
        x = _operand(word32(ka[k]))
        for j in range(flags.size):
            special = classify_product(x, _operand(word32(kb[k, j])))
            found = where(special.nan, word32(FLAG_NAN), word32(0))
            found = found | where(special.positive_infinity, word32(FLAG_POSITIVE), word32(0))
            found = found | where(special.negative_infinity, word32(FLAG_NEGATIVE), word32(0))
            flags[j] = (word32(flags[j]) | found).number


@inlined
def _add_scales(one: Lane, others: Plane, out: Plane) -> None:
    """The exponents of block scales of a row and of columns."""
    for j in range(out.size):
        out[j] = np.int32(one) + np.int32(others[j])


@inlined
def nan_scales(one: Flag, others: Plane, flags: Plane) -> None:
    """NaNs of block scales make NaNs."""
    for j in range(others.size):
        flags[j] |= where(one | others[j], FLAG_NAN, 0)


@part
def put_specials(rho: Conversion, c_format: Format, nan: int, flags: Plane, c: Plane, d: Plane) -> None:
    """Put the special values that products and c make in the place of numbers."""
    vectorised()
    for j in range(d.size):
        special = special_of(flags[j], decode(np.int64(c[j]), c_format.layout))
        d[j] = select_special(special, np.int64(d[j]), rho, nan)


@driver
def run_tiles(
    rho: Conversion,
    c_format: Format,
    F: int,
    e_zero: int,
    zeros_count: bool,
    nan: int,
    L: int,
    least: int,
    floor: int,
    a: Planes,
    b: Planes,
    d: Plane,
    start: int,
    stop: int,
) -> None:
    """Steps `start` … `stop - 1` of fda on the rows of d, in place."""
    vectorised()
    ea, va, ka, special_a, scale_a, nan_a = a
    eb, vb, kb, special_b, scale_b, nan_b = b
    (m, n), width, scaled = d.shape, eb.shape[2], scale_a.shape[1] > 0
    largest, scale = stack(ea.dtype, WIDTH + FILL), stack(va.dtype, WIDTH)
    e_max, total, codes = stack(np.int32, WIDTH), stack(np.int32, WIDTH), stack(np.int32, WIDTH)
    blocks, flags_ = stack(np.int32, WIDTH), stack(np.int32, WIDTH)
    for p in range((n + width - 1) // width):
        left, real = p * width, min(width, n - p * width)
        w, filled = (real + LANES - 1) // LANES * LANES, (real + FILL - 1) // FILL * FILL
        flags, most = flags_[:w], max(min(WIDTH // w, m), 1)
        codes[:], blocks[:] = 0, 0
        for s in range(start, stop):
            k0, k1 = s * L, (s + 1) * L
            for first in range(0, m, most):
                rows = min(most, m - first)
                prefetch(d[first + most : first + 2 * most, left : left + real], s == start)
                size, special = rows * w, special_b[p, s]
                for r in range(rows):
                    i, at = first + r, r * w
                    copy(d[i, left : left + real], codes[at : at + real])
                    # Beyond this row's, the next one's are written over.
                    largest_exponent(ea[i], eb[p], k0, k1, largest[at : at + filled])
                    special |= special_a[i, s]
                    if scaled:
                        _add_scales(scale_a[i, s], scale_b[p, s, :real], blocks[at : at + real])
                tile = codes[:size], largest[:size], e_max[:size], scale[:size]
                special |= begin(c_format, F, e_zero, least, floor, blocks[:size], *tile)
                if zeros_count:
                    for r in range(rows):
                        smallest_exponent(ea[first + r], eb[p], k0, k1, largest[r * w : (r + 1) * w])
                    _count_zeros(F, e_zero, least, floor, blocks[:size], largest[:size], *tile[2:])
                sum_rows(va[first : first + rows], vb[p], k0, k1, scale[:size], total[:size])
                finish(rho, c_format, F, e_max[:size], total[:size], codes[:size])
                for r in range(rows):
                    i, mine = first + r, slice(r * w, r * w + real)
                    if special:
                        specials(ka[i], kb[p], k0, k1, special_a[i, s] | special_b[p, s], flags)
                        if scaled:
                            nan_scales(nan_a[i, s], nan_b[p, s, :real], flags)
                        put_specials(rho, c_format, nan, flags, d[i, left : left + real], codes[mine])
                    copy(codes[mine], d[i, left : left + real])
