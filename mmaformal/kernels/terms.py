"""Loops over products: what the kernels of fda, fdrda and their like have in common.

They run over the outputs of a panel and hold no branch, so the compiler makes vectors of them.
"""

from __future__ import annotations

import numpy as np

from mmaformal.encodings.executable.blocks import (
    Flag,
    Lane,
    Operand,
    Special,
    classify_addend,
    classify_product,
    decode,
    merge_special,
    resolve_special,
    where,
)
from mmaformal.formats import Format
from mmaformal.kernels.compiled import at, inlined, part, typed, vectorised
from mmaformal.kernels.kernel import Plane
from mmaformal.kernels.planes import INFINITE, NAN, ZERO
from mmaformal.kernels.words import word32

FLAG_NAN, FLAG_POSITIVE, FLAG_NEGATIVE = 1, 2, 4  #: bits of an output's special values
FAR = -(1 << 20)  #: an exponent below all


@inlined
def _larger(x: Lane, y: Lane) -> Lane:
    return x if x > y else y


@inlined
def largest_of_four(ea: Plane, eb: Plane, k: Lane, j: Lane, like: Lane) -> Lane:
    e0, e1 = typed(at(ea, k, j) + eb[k, j], like), typed(at(ea, k + 1, j) + eb[k + 1, j], like)
    e2, e3 = typed(at(ea, k + 2, j) + eb[k + 2, j], like), typed(at(ea, k + 3, j) + eb[k + 3, j], like)
    return _larger(_larger(e0, e1), _larger(e2, e3))


@part
def largest_exponent(ea: Plane, eb: Plane, start: int, stop: int, out: Plane) -> None:
    """out[j] = the largest of ea[k] + eb[k, j]."""
    vectorised()
    n = out.size
    like = out[0]
    k = start
    while k + 16 <= stop:
        for j in range(n):
            e = _larger(largest_of_four(ea, eb, k, j, like), largest_of_four(ea, eb, k + 4, j, like))
            f = _larger(largest_of_four(ea, eb, k + 8, j, like), largest_of_four(ea, eb, k + 12, j, like))
            e = _larger(e, f)
            out[j] = e if k == start else _larger(out[j], e)
        k += 16
    while k + 4 <= stop:
        for j in range(n):
            e = largest_of_four(ea, eb, k, j, like)
            out[j] = e if k == start else _larger(out[j], e)
        k += 4
    while k < stop:
        for j in range(n):
            e = typed(at(ea, k, j) + eb[k, j], like)
            out[j] = e if k == start else _larger(out[j], e)
        k += 1


@part
def smallest_exponent(ea: Plane, eb: Plane, start: int, stop: int, out: Plane) -> None:
    """out[j] = the smallest of ea[k] + eb[k, j]."""
    vectorised()
    n = out.size
    like = out[0]
    for j in range(n):
        out[j] = at(ea, start, j) + eb[start, j]
    for k in range(start + 1, stop):
        for j in range(n):
            e = typed(at(ea, k, j) + eb[k, j], like)
            out[j] = out[j] if out[j] < e else e


@inlined
def _aligned(va: Plane, vb: Plane, k: Lane, j: Lane, scale: Lane, like: Lane) -> Lane:
    """A product times `scale`, cut toward zero."""
    return typed(at(va, k, j) * vb[k, j] * scale, like)


@inlined
def aligned_four(va: Plane, vb: Plane, k: Lane, j: Lane, scale: Lane, like: Lane) -> Lane:
    t0, t1 = _aligned(va, vb, k, j, scale, like), _aligned(va, vb, k + 1, j, scale, like)
    return (t0 + t1) + (_aligned(va, vb, k + 2, j, scale, like) + _aligned(va, vb, k + 3, j, scale, like))


@inlined
def aligned_sixteen(va: Plane, vb: Plane, k: Lane, j: Lane, scale: Lane, like: Lane) -> Lane:
    t = aligned_four(va, vb, k, j, scale, like) + aligned_four(va, vb, k + 4, j, scale, like)
    return t + (aligned_four(va, vb, k + 8, j, scale, like) + aligned_four(va, vb, k + 12, j, scale, like))


@part
def sum_of_chunk(va: Plane, vb: Plane, start: int, stop: int, scale: Plane, some: Plane) -> None:
    """some[j] = Σ of va[k]·vb[k, j]·scale[j], each cut toward zero."""
    vectorised()
    n = some.size
    like = some[0]
    k = start
    if k + 16 <= stop:
        for j in range(n):
            some[j] = aligned_sixteen(va, vb, k, j, scale[j], like)
        k += 16
    elif k + 4 <= stop:
        for j in range(n):
            some[j] = aligned_four(va, vb, k, j, scale[j], like)
        k += 4
    else:
        for j in range(n):
            some[j] = _aligned(va, vb, k, j, scale[j], like)
        k += 1
    while k + 16 <= stop:
        for j in range(n):
            some[j] += aligned_sixteen(va, vb, k, j, scale[j], like)
        k += 16
    while k + 4 <= stop:
        for j in range(n):
            some[j] += aligned_four(va, vb, k, j, scale[j], like)
        k += 4
    while k < stop:
        for j in range(n):
            some[j] += _aligned(va, vb, k, j, scale[j], like)
        k += 1


@part
def aligned_sum(
    va: Plane, vb: Plane, start: int, stop: int, chunk: int, scale: Plane, some: Plane, total: Plane
) -> None:
    """total[j] = Σ of va[k]·vb[k, j]·scale[j], each cut toward zero; `some` is room for sums of `chunk` terms."""
    vectorised()
    for begin in range(start, stop, chunk):
        sum_of_chunk(va, vb, begin, min(begin + chunk, stop), scale, some)
        if begin == start:
            for j in range(total.size):
                total[j] = some[j]
        else:
            for j in range(total.size):
                total[j] += some[j]


@part
def sticky_sum(va: Plane, vb: Plane, start: int, stop: int, scale: Plane, total: Plane) -> None:
    """total[j] = Σ of va[k]·vb[k, j]·scale[j], each cut to odd."""
    vectorised()
    for j in range(total.size):
        total[j] = 0
    for k in range(start, stop):
        for j in range(total.size):
            p = at(va, k, j) * vb[k, j] * scale[j]
            kept = np.int64(p)
            lost = np.float64(kept) != np.float64(p)
            last = np.int64(1) - (kept & 1)
            total[j] += kept + where(lost, where(p < 0, -last, last), np.int64(0))


@inlined
def _operand(kind: Lane) -> Operand:
    """The operand of a kind, as far as classifying a product looks at it."""
    kind = np.int64(kind)
    return Operand((kind >> 3) & 1, 0, where(kind & ZERO != 0, 0, 1), kind & INFINITE != 0, kind & NAN != 0)


@part
def special_values(
    ka: Plane, kb: Plane, va: Plane, vb: Plane, start: int, stop: int, overflow: float, flags: Plane
) -> None:
    """Merge into `flags` the special values that products are, those of magnitude ≥ `overflow` as infinities."""
    vectorised()
    for k in range(start, stop):
        for j in range(flags.size):
            special = classify_product(_operand(at(ka, k, j)), _operand(kb[k, j]))
            p = np.float64(at(va, k, j)) * np.float64(vb[k, j])
            flags[j] |= (
                where(special.nan, FLAG_NAN, 0)
                | where(special.positive_infinity | (p >= overflow), FLAG_POSITIVE, 0)
                | where(special.negative_infinity | (p <= -overflow), FLAG_NEGATIVE, 0)
            )


@inlined
def special_of(flags: Lane, c: Operand) -> Special:
    found = Special(flags & FLAG_NAN != 0, flags & FLAG_POSITIVE != 0, flags & FLAG_NEGATIVE != 0)
    return resolve_special(merge_special(found, classify_addend(c)))


@part
def any_special(c_format: Format, d: Plane) -> Flag:
    """Whether some code, of up to 32 bits, is a special value."""
    vectorised()
    special = False
    for j in range(d.size):
        x = decode(word32(d[j]), c_format.layout)
        special |= x.nan | x.infinite
    return special
