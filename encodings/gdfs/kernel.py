"""The kernel of gdfs: e2m1 products are small integers, summed in 16 bits; the scaled groups then as in the executable.

A product of two e2m1 is at most 12·12 in units of its last place at exponent 0, and a group of G of them below
2^15 for G ≤ 227: `encodings.gdfs.Gdfs` allows 64.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mmaformal.encodings.executable.blocks import (
    Flag,
    Lane,
    Special,
    Term,
    align,
    canonical_nan,
    classify_addend,
    classify_scale,
    decode,
    is_zero,
    maximum,
    merge_special,
    multiply,
    resolve_special,
    select_special,
    signed,
    term,
    where,
    with_zero_exponent,
)
from mmaformal.encodings.gdfs import Gdfs
from mmaformal.formats import Format
from mmaformal.kernels.batch import Batch
from mmaformal.kernels.chain import Algorithm, RowStep, Scales, chain, step_of
from mmaformal.kernels.compiled import driver, inlined, part, stack, vectorised
from mmaformal.kernels.fused import zero_exponent
from mmaformal.kernels.kernel import CodeArray, Kernel, Plane, Planes, in_panels
from mmaformal.kernels.products import rounded_code, sum_with_c
from mmaformal.rounding import Conversion
from mmaformal.spec import DotAdd


@driver
def decode_integers(fmt: Format, codes: Plane, out: Plane) -> None:
    """Every code as a signed integer in units of the last place at exponent 0."""
    vectorised()
    layout = fmt.layout
    for i in range(codes.size):
        x = decode(np.int64(codes[i]), layout)
        out[i] = where(x.sign == 1, -(x.significand << x.exponent), x.significand << x.exponent)


@part
def group_sum(a: Plane, b: Plane, start: int, stop: int, out: Plane) -> None:
    """out[j] = Σ a[k]·b[k, j], in 16 bits."""
    vectorised()
    n = out.size
    for j in range(n):
        out[j] = 0
    k = start
    while k + 4 <= stop:
        x0, x1, x2, x3 = a[k], a[k + 1], a[k + 2], a[k + 3]
        for j in range(n):
            y = np.int16(x0 * b[k, j]) + np.int16(x1 * b[k + 1, j])
            z = np.int16(x2 * b[k + 2, j]) + np.int16(x3 * b[k + 3, j])
            out[j] = np.int16(out[j] + np.int16(np.int16(y) + np.int16(z)))
        k += 4
    while k < stop:
        x0 = a[k]
        for j in range(n):
            out[j] = np.int16(out[j] + np.int16(x0 * b[k, j]))
        k += 1


@part
def group_exponents(
    e_zero: int,
    by_fields: bool,
    ma: Lane,
    sa: Lane,
    ea: Lane,
    mb: Plane,
    sb: Plane,
    eb: Plane,
    out: Plane,
    e_max: Plane,
) -> None:
    """The exponent of one group per output (`gdfs.scaled_group`), and the largest so far."""
    vectorised()
    for j in range(out.size):
        empty = ((ma & mb[j]) == 0) | (sa == 0) | (sb[j] == 0)
        e = np.int64(ea) + np.int64(eb[j])
        e = where(empty & (by_fields ^ True), e_zero, e)
        out[j] = e
        e_max[j] = maximum(np.int64(e_max[j]), e)


@part
def add_group(
    bits: int, F: int, sums: Plane, sa: Lane, sb: Plane, exponents: Plane, e_max: Plane, total: Plane
) -> None:
    for j in range(total.size):
        sigma = np.int64(sums[j])
        negative = sigma < 0
        significand = where(negative, -sigma, sigma) * np.int64(sa) * np.int64(sb[j])
        x = Term(where(negative, 1, 0), np.int64(exponents[j]), significand)
        total[j] += align(x, np.int64(e_max[j]), bits, F)


@driver
def run_gdfs(
    rho: Conversion,
    c_format: Format,
    e_zero: int,
    by_fields: bool,
    F: int,
    bits: int,
    nan: int,
    G: int,
    groups: int,
    a: Planes,
    b: Planes,
    d: Plane,
    start: int,
    stop: int,
) -> None:
    """Steps `start` … `stop - 1` of gdfs on the rows of d, in place."""
    vectorised()
    va, ma, sa, ea, na = a
    vb, mb, sb, eb, nb = b
    (m, n), width = d.shape, vb.shape[2]
    sums_ = stack(np.int16, groups * width).reshape((groups, width))
    exponents_ = stack(np.int32, groups * width).reshape((groups, width))
    total_, e_max_ = stack(np.int64, width), stack(np.int32, width)
    for p in range((n + width - 1) // width):
        w = min(width, n - p * width)
        total, e_max = total_[:w], e_max_[:w]
        for s in range(start, stop):
            for i in range(m):
                row = d[i, p * width : p * width + w]
                for j in range(w):
                    c = term(decode(np.int64(row[j]), c_format.layout))
                    e_max[j] = with_zero_exponent(c, e_zero).exponent
                    total[j] = 0
                some_nan = False
                for h in range(groups):
                    g = s * groups + h
                    group_sum(va[i], vb[p], g * G, (g + 1) * G, sums_[h, :w])
                    group_exponents(
                        e_zero,
                        by_fields,
                        ma[i, g],
                        sa[i, g],
                        ea[i, g],
                        mb[p, g, :w],
                        sb[p, g, :w],
                        eb[p, g, :w],
                        exponents_[h, :w],
                        e_max,
                    )
                    some_nan |= na[i, g]
                for h in range(groups):
                    g = s * groups + h
                    add_group(bits, F, sums_[h, :w], sa[i, g], sb[p, g, :w], exponents_[h, :w], e_max, total)
                for j in range(w):
                    x = decode(np.int64(row[j]), c_format.layout)
                    found = Special(some_nan | nb[p, s, j], False, False)
                    special = resolve_special(merge_special(found, classify_addend(x)))
                    number = rounded_code(rho, c_format, F, e_zero, False, np.int64(e_max[j]), total[j], x)
                    row[j] = select_special(special, number, rho, nan)


class GroupSum(NamedTuple):
    """The exact sum of a group's products, and whether all of them are zero."""

    total: Lane
    empty: Flag


@inlined
def sum_group(a_format: Format, b_format: Format, a: Plane, b: Plane) -> GroupSum:
    total, some = np.int64(0), False
    for k in range(a.size):
        x, y = decode(np.int64(a[k]), a_format.layout), decode(np.int64(b[k]), b_format.layout)
        product = multiply(x, y)
        total += signed(product.sign, product.significand << product.exponent)
        some |= product.significand != 0
    return GroupSum(total, some ^ True)


@step_of("gdfs")
def step(algorithm: Algorithm, on: RowStep, scales: Scales, a: Plane, b: Plane, code: Lane) -> Lane:
    of, rho, own, room = on.of, on.rho, on.own, on.room
    F, e_zero, by_fields, nan, G = own[0], own[1], own[2] != 0, own[3], own[4]
    layout, size = scales.format.layout, a.size // G
    value, exponent = room[0, :size], room[1, :size]
    c = decode(code, of.c_format.layout)
    special = classify_addend(c)
    for g in range(size):
        each = (scales.first + g * G) // scales.block
        s, t = (
            decode(np.int64(on.scale_a[scales.row, each]), layout),
            decode(np.int64(on.scale_b[scales.row, each]), layout),
        )
        special = merge_special(special, merge_special(classify_scale(s), classify_scale(t)))
        group = sum_group(of.a_format, of.b_format, a[g * G : (g + 1) * G], b[g * G : (g + 1) * G])
        value[g] = group.total * s.significand * t.significand
        empty = (group.empty | is_zero(s) | is_zero(t)) & (by_fields ^ True)
        exponent[g] = where(empty, e_zero, s.exponent + t.exponent)
    bits = of.a_format.fraction_bits + of.b_format.fraction_bits + 2 * scales.format.fraction_bits
    number = sum_with_c(of, rho, F, e_zero, False, value, exponent, bits, c)
    return select_special(resolve_special(special), number, rho, nan)


class GdfsKernel(Kernel):
    """gdfs."""

    bytes_per_element = 4
    description = "gdfs: products summed in 16 bits, groups aligned in 64"

    def __init__(self, spec: DotAdd) -> None:
        super().__init__(spec)
        parameters = spec.parameters_as(Gdfs)
        self.parameters = parameters
        self.steps = spec.k // parameters.L
        self.groups = parameters.L // parameters.G

    def _groups(self, fmt: Format, codes: CodeArray, scales: CodeArray | None) -> Planes:
        """Planes with the groups last but one: (…, K, n) and (…, K/G, n) from codes (K, n) or (panels, K, n)."""
        G, spec = self.parameters.G, self.spec
        assert scales is not None
        assert spec.scale_format is not None
        values = np.empty(codes.shape, np.int16)
        decode_integers(fmt, np.ascontiguousarray(codes).reshape(-1), values.reshape(-1))
        *lead, k, n = codes.shape
        bits = np.int64(1) << np.arange(G, dtype=np.int64)[:, None]
        masks = np.where(values.reshape(*lead, k // G, G, n) != 0, bits, 0).sum(axis=-2)
        x = decode(scales.astype(np.int64), spec.scale_format.layout)
        each = spec.scale_block // G
        significand = np.where(x.nan, 0, x.significand).astype(np.int32).repeat(each, axis=-2)
        exponent = x.exponent.astype(np.int16).repeat(each, axis=-2)
        return values, masks, significand, exponent, np.asarray(x.nan).repeat(each, axis=-2)

    def rows(self, codes: CodeArray, scales: CodeArray | None = None) -> Planes:
        assert scales is not None
        planes = self._groups(self.spec.a_format, codes.T, scales.T)
        return tuple(np.ascontiguousarray(plane.T) for plane in planes)

    def columns(self, codes: CodeArray, scales: CodeArray | None = None) -> Planes:
        assert scales is not None
        *planes, nans = self._groups(self.spec.b_format, in_panels(codes), in_panels(scales))
        panels, groups, width = nans.shape
        steps = nans.reshape(panels, groups // self.groups, self.groups, width)
        return *planes, np.asarray(steps.any(axis=2))

    def run(self, a: Planes, b: Planes, d: CodeArray, start: int, stop: int) -> None:
        spec, p = self.spec, self.parameters
        assert spec.scale_format is not None
        bits = spec.a_format.fraction_bits + spec.b_format.fraction_bits + 2 * spec.scale_format.fraction_bits
        run_gdfs(
            p.rho,
            spec.c_format,
            zero_exponent(p.e_zero, spec.c_format),
            p.e_zero is None,
            p.F,
            bits,
            canonical_nan(p.rho.format),
            p.G,
            self.groups,
            a,
            b,
            d,
            start * self.steps,
            stop * self.steps,
        )

    @staticmethod
    def run_rows(spec: DotAdd, rows: Batch) -> None:
        p = spec.parameters_as(Gdfs)
        e_zero, nan = zero_exponent(p.e_zero, spec.c_format), canonical_nan(p.rho.format)
        chain("gdfs", spec, rows, p.rho, p.L, p.F, e_zero, p.e_zero is None, nan, p.G)


KERNEL = GdfsKernel
