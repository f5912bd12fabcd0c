"""Explanations of a D that is not A·B + C: a bias that was not given, a part of K left out, rounded factors.

Each is told by what D lacks of the exact product, in float64, of some rows and columns.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from mmaformal.encodings.executable.blocks import quiet_nan
from mmaformal.formats import Format, bf16, e4m3, e5m2, fp16, fp64, tf32
from mmaformal.gemm import rounded_codes, values
from mmaformal.given_matrices import Floats, GivenMatrices, is_near, looked_at

#: The share of D that is left without what explains it, at most, of what was left before.
_EXPLAINED = 0.05
#: The least that D lacks, in units of a rounding of its elements: less is another order of sums.
_ROUNDINGS = 64
#: Rows or columns of which a bias is told; and the least part of K that is taken for a tile.
_LINES, _TILE = 8, 8
#: The share of what D lacks that is left, at most, where factors were rounded beforehand.
_NEARER = 0.25


def other_products(given: GivenMatrices) -> list[str]:
    """Returns what D is instead, a line each; empty where it is not seen."""
    some = looked_at(given)
    d, total = some.sums()
    with np.errstate(all="ignore"):
        excess = d - total
    finite = np.isfinite(excess)
    if not finite.all():
        return []
    size = float(np.median(np.abs(total)))
    if float(np.median(np.abs(excess))) < _ROUNDINGS * 2.0**-given.d_format.fraction_bits * size:
        return []
    return [*_bias(some, excess), *_without_a_tile(some, excess), *_rounded_before(some, d, excess)][:1]


def _bias(given: GivenMatrices, excess: Floats) -> list[str]:
    """One number for each column, or row, that D has more than A·B."""
    what = "A·B" if given.c is None else "A·B + C"
    for name, axis, shape in (("column", 0, "(N,)"), ("row", 1, "(M, 1)")):
        line = np.median(excess, axis=axis, keepdims=True)
        if excess.shape[axis] >= _LINES and _small(excess - line, excess):
            give = f": a bias of shape {shape}? Give it as C" if given.c is None else ""
            return [f"D is {what} and one number for each {name}{give}"]
    return []


def _without_a_tile(given: GivenMatrices, excess: Floats) -> list[str]:
    """A part of K without which A·B is D."""
    a, b = values(given.a, given.a_format, fp64), values(given.b, given.b_format, fp64)
    for first, stop in _tiles(a.shape[1]):
        if _small(excess + a[:, first:stop] @ b[first:stop], excess):
            return [f"D is near A·B without products {first} to {stop - 1}: a part of K that was not added"]
    return []


def _tiles(K: int) -> Iterator[tuple[int, int]]:
    size = 1 << (K - 1).bit_length() - 1 if K > 1 else 0
    while size >= _TILE:
        yield from ((first, min(first + size, K)) for first in range(0, K, size))
        size //= 2


def _rounded_before(given: GivenMatrices, d: Floats, excess: Floats) -> list[str]:
    """A narrower format of A and B, whose product D is nearer to."""
    for fmt in (tf32, bf16, fp16, e4m3, e5m2):
        if not all(fmt.fraction_bits < x.fraction_bits for x in (given.a_format, given.b_format)):
            continue
        a, b = _in(fmt, given.a, given.a_format), _in(fmt, given.b, given.b_format)
        left = (
            d
            - a @ b
            - (0 if given.c is None or given.c_format is None else values(given.c, given.c_format, fp64))
        )
        if _small(left, excess, _NEARER):
            named = f'a_format="{fmt}", b_format="{fmt}"'
            return [f"D is nearer to the product of A and B rounded to {fmt} first: give these, with {named}"]
    return []


def _in(fmt: Format, codes: NDArray[np.unsignedinteger], given: Format) -> Floats:
    wide = values(codes, given, fp64)
    if fmt == tf32:  # which no unit gives, so that no rounding is named so
        significand, exponent = np.frexp(wide)
        places = fmt.fraction_bits + 1
        return np.asarray(np.ldexp(np.rint(np.ldexp(significand, places)), exponent - places))
    found: Floats = values(rounded_codes(wide, fp64, fmt, quiet_nan(fmt)), fmt, fp64)
    return found


def _small(left: Floats, before: Floats, part: float = _EXPLAINED) -> bool:
    return bool(np.median(np.abs(left)) < part * np.median(np.abs(before)))


def exchanged(given: GivenMatrices) -> list[str]:
    """Returns a line where one of the factors is the product of the other two matrices given."""
    d, a, b = given.d, given.a, given.b
    formats = given.d_format, given.a_format, given.b_format
    for of, first, second, words in ((1, 0, 2, "A, D, B"), (2, 1, 0, "B, A, D"), (2, 0, 1, "A, B, D")):
        f, g, h = (formats[n] for n in (of, first, second))
        for turns in range(4):  # a factor may have been turned to fit
            x, y, z = ((d, a, b)[n] for n in (of, first, second))
            y, z = y.T if turns & 1 else y, z.T if turns & 2 else z
            for whole in (x, x.T):
                if y.shape[1] != z.shape[0] or whole.shape != (y.shape[0], z.shape[1]):
                    continue
                if is_near(*looked_at(GivenMatrices(whole, y, z, None, f, g, h, None)).sums()):
                    name = "DAB"[of]
                    return [
                        f"what was given as {name} is the product of the others: these are {words}, not D, A, B"
                    ]
    return []
