"""Operands as planes: the exponent, the value and the kind of every code, and where special values are."""

from __future__ import annotations

import numpy as np
from numpy.lib.stride_tricks import as_strided

from mmaformal.encodings.executable.blocks import Flag, decode, where
from mmaformal.formats import Format
from mmaformal.kernels.compiled import driver, part, stack, typed, vectorised
from mmaformal.kernels.kernel import WIDTH, CodeArray, Plane
from mmaformal.kernels.words import two_to, word32

NAN, INFINITE, ZERO, NEGATIVE = 1, 2, 4, 8  #: bits of an operand's kind
#: Columns that a panel is filled up to: as many exponents fit a vector.
FILL = 64
#: Codes of a column that are taken at a time where columns are what lies together.
DEPTH = 32


@part
def decode_some(
    fmt: Format, codes: Plane, zero_exponent: int, exponents: Plane, values: Plane, kinds: Plane
) -> Flag:
    """Exponent, value and kind of every code; a special value has the exponent and value of a zero.

    Returns whether there is one.  Words hold codes of up to 32 bits.
    """
    vectorised()
    layout = fmt.layout
    seen = word32(0)
    for i in range(codes.size):
        x = decode(word32(codes[i]), layout)
        special = x.nan | x.infinite
        zero = special | (x.significand == 0)
        exponents[i] = where(zero, word32(zero_exponent), x.exponent).number
        significand = where(zero, word32(0), x.significand)
        scale = two_to(x.exponent - fmt.fraction_bits, values[i])
        values[i] = typed(where(x.sign == 1, -significand, significand).number, scale) * scale
        kind = (
            where(x.nan, word32(NAN), word32(0))
            | where(x.infinite, word32(INFINITE), word32(0))
            | where(zero & (special ^ True), word32(ZERO), word32(0))
            | (x.sign << 3)
        )
        kinds[i] = kind.number
        seen = seen | kind
    return seen & (NAN | INFINITE) != 0


@driver
def decode_plane(
    fmt: Format, codes: Plane, zero_exponent: int, exponents: Plane, values: Plane, kinds: Plane
) -> None:
    """`decode_some` of all codes."""
    decode_some(fmt, codes, zero_exponent, exponents, values, kinds)


@driver
def decode_rows(
    fmt: Format,
    codes: Plane,
    L: int,
    zero_exponent: int,
    exponents: Plane,
    values: Plane,
    kinds: Plane,
    special: Plane,
) -> None:
    """The planes of A, (m, K), and where rows have special values, by steps of L products."""
    for i in range(codes.shape[0]):
        special[i, :] = False
        if decode_some(fmt, codes[i], zero_exponent, exponents[i], values[i], kinds[i]):
            for k in range(codes.shape[1]):
                special[i, k // L] |= kinds[i, k] & (NAN | INFINITE) != 0


@driver
def are_within(exponents: Plane, kinds: Plane, low: int, high: int) -> Flag:
    """Whether the exponents of all numbers but zeros, of planes in one line, are between two."""
    vectorised()
    outside = word32(0)
    for i in range(exponents.size):
        e, number = word32(exponents[i]), word32(kinds[i]) & (NAN | INFINITE | ZERO) == 0
        outside = outside | where(number & ((e < low) | (e > high)), word32(1), word32(0))
    return outside == 0


@part
def take_across(codes: Plane, start: int, down: int, across: int, out: Plane) -> None:
    """Copy a block of codes, (K, n) as `out` is, that begins at `start` and whose columns lie in memory one by one."""
    for j in range(out.shape[1]):
        for k in range(out.shape[0]):
            out[k, j] = codes[start + k * down + j * across]


@driver
def decode_panels(
    fmt: Format,
    codes: Plane,
    down: int,
    across: int,
    n: int,
    L: int,
    zero_exponent: int,
    exponents: Plane,
    values: Plane,
    kinds: Plane,
    special: Plane,
) -> None:
    """The planes of B, (panels, K, columns), of codes (K, n), which lie `down` and `across` apart in memory, one of
    them 1.

    What is beyond n is zero.
    """
    panels, K, width = exponents.shape
    block = stack(codes.dtype, DEPTH * width).reshape((DEPTH, width))
    for p in range(panels):
        left = p * width
        w = min(width, n - left)
        special[p, :] = False
        for k in range(K):
            some = codes[k * down + left : k * down + left + w]
            if across != 1:
                if k % DEPTH == 0:
                    deep = min(DEPTH, K - k)
                    take_across(codes, k * down + left * across, down, across, block[:deep, :w])
                some = block[k % DEPTH, :w]
            e, v, kind = exponents[p, k], values[p, k], kinds[p, k]
            special[p, k // L] |= decode_some(fmt, some, zero_exponent, e[:w], v[:w], kind[:w])
            e[w:], v[w:], kind[w:] = zero_exponent, 0, ZERO


def in_line(codes: CodeArray) -> tuple[CodeArray, int, int]:
    """Codes (K, n) as one line of memory, and how far apart rows and columns are there; copied if need be."""
    size = codes.itemsize
    down, across = codes.strides
    k, n = codes.shape
    in_place = min(down, across) == size and down % size == across % size == 0 and codes.flags.aligned
    if codes.flags.c_contiguous or not (in_place and codes.size):
        return np.ascontiguousarray(codes).reshape(-1), n, 1
    length = (k - 1) * (down // size) + (n - 1) * (across // size) + 1
    return as_strided(codes, (length,), (size,), writeable=False), down // size, across // size


def panel_width(n: int) -> int:
    """How wide panels of n columns are."""
    return min(WIDTH, max(-(-n // FILL), 1) * FILL)


def panel_shape(codes: CodeArray) -> tuple[int, int, int]:
    """The shape of the planes of B."""
    k, n = codes.shape
    width = panel_width(n)
    return -(-n // width), k, width
