"""The kernel of fda; what those of other aligned sums share with it is in `fused` and `terms`.

For every step, row and panel: the largest exponent of the products, their sum aligned to it (`widths` says how and
why exactly), and then the executable's own stages for what is left, once per output: c aligned and added, normalise &
round, encode, special values.  Special values among the operands are looked for only in the steps of a row and of a
panel that have any.

Where sums fit words of 32 bits, `tiles` runs the steps instead.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from mmaformal.encodings.executable.blocks import (
    Flag,
    Lane,
    Special,
    canonical_nan,
    decode,
    maximum,
    select_special,
    term,
    where,
    with_zero_exponent,
)
from mmaformal.encodings.fda import Fda
from mmaformal.formats import Format
from mmaformal.kernels.batch import Batch
from mmaformal.kernels.chain import Scales
from mmaformal.kernels.compiled import (
    SOURCES,
    Direct,
    KernelSources,
    driver,
    part,
    power_of_two,
    stack,
    vectorised,
)
from mmaformal.kernels.fused import FusedPlanes, fda_numbers, zero_exponent
from mmaformal.kernels.given import (
    CONVERSION,
    OWN,
    conversion,
    formats,
    numbers,
    scale_block,
    scale_format,
)
from mmaformal.kernels.kernel import WIDTH, CodeArray, Plane, Planes, in_panels
from mmaformal.kernels.narrow import fits
from mmaformal.kernels.products import (
    add_scales,
    largest,
    multiply_flat,
    or_special,
    rounded_code,
    settle_zeros,
)
from mmaformal.kernels.products import aligned_sum as sum_aligned
from mmaformal.kernels.terms import (
    FAR,
    FLAG_NAN,
    aligned_sum,
    largest_exponent,
    smallest_exponent,
    special_of,
    special_values,
    sticky_sum,
)
from mmaformal.kernels.tiles import run_tiles
from mmaformal.kernels.widths import Widths, widths
from mmaformal.rounding import Conversion, Rounding
from mmaformal.spec import DotAdd

#: Rows whose products are made at a time.
ROWS = 64

# ---- fda ---------------------------------------------------------------------------------------------------


@part
def begin_fda(
    c_format: Format,
    F: int,
    e_zero: int,
    least: int,
    floor: int,
    sa: Lane,
    sb: Plane,
    d: Plane,
    largest: Plane,
    e_max: Plane,
    scale: Plane,
) -> Flag:
    """e_max of the products and c, and 2^(F - e_max) for products without their block scales.

    Returns whether some c is a special value.
    """
    vectorised()
    special = False
    for j in range(d.size):
        x = decode(np.int64(d[j]), c_format.layout)
        special |= x.nan | x.infinite
        c = with_zero_exponent(term(x), e_zero)
        blocks = sa + sb[j]
        e = np.int64(largest[j])
        e = maximum(where(e < least, FAR, e + blocks), c.exponent)
        e_max[j] = e
        scale[j] = power_of_two(maximum(F - (e - blocks), floor), scale[j])
    return special


@part
def count_zeros(
    F: int,
    e_zero: int,
    least: int,
    floor: int,
    sa: Lane,
    sb: Plane,
    smallest: Plane,
    e_max: Plane,
    scale: Plane,
) -> None:
    """Raise e_max to e_zero where a product is zero, which has the smallest exponent, and the scale with it."""
    vectorised()
    for j in range(e_max.size):
        e = maximum(np.int64(e_max[j]), where(smallest[j] < least, e_zero, FAR))
        e_max[j] = e
        scale[j] = power_of_two(maximum(F - (e - sa - sb[j]), floor), scale[j])


@part
def finish_fda(
    rho: Conversion,
    c_format: Format,
    F: int,
    e_zero: int,
    nan: int,
    odd: bool,
    e_max: Plane,
    total: Plane,
    special: Flag,
    flags: Plane,
    d: Plane,
) -> None:
    """The stages of fda after the products'; without `special`, no product and no c is a special value."""
    vectorised()
    for j in range(d.size):
        x = decode(np.int64(d[j]), c_format.layout)
        number = rounded_code(rho, c_format, F, e_zero, odd, np.int64(e_max[j]), total[j], x)
        if special:
            number = select_special(special_of(flags[j], x), number, rho, nan)
        d[j] = number


@driver
def run_fda(
    rho: Conversion,
    c_format: Format,
    F: int,
    e_zero: int,
    zeros_count: bool,
    nan: int,
    odd: bool,
    L: int,
    chunk: int,
    least: int,
    floor: int,
    a: Planes,
    b: Planes,
    some: Plane,
    d: Plane,
    start: int,
    stop: int,
) -> None:
    """Steps `start` … `stop - 1` of fda on the rows of d, in place."""
    vectorised()
    ea, va, ka, special_a, scale_a, nan_a = a
    eb, vb, kb, special_b, scale_b, nan_b = b
    m, n = d.shape
    width = eb.shape[2]
    scaled = scale_a.shape[1] > 0
    largest_, smallest_, scale_ = stack(ea.dtype, width), stack(ea.dtype, width), stack(va.dtype, width)
    total_, e_max_ = stack(np.int64, width), stack(np.int32, width)
    no_scale, flags_ = stack(np.int16, width), stack(np.uint8, width)
    no_scale[:], flags_[:] = 0, 0
    for p in range((n + width - 1) // width):
        w = min(width, n - p * width)
        largest, smallest, scale, total = largest_[:w], smallest_[:w], scale_[:w], total_[:w]
        e_max, flags, sums = e_max_[:w], flags_[:w], some[:w]
        for s in range(start, stop):
            k0, k1 = s * L, (s + 1) * L
            for i in range(m):
                row = d[i, p * width : p * width + w]
                sa, sb = np.int64(0), no_scale[:w]
                if scaled:
                    sa, sb = np.int64(scale_a[i, s]), scale_b[p, s, :w]
                largest_exponent(ea[i], eb[p], k0, k1, largest)
                some_c = begin_fda(c_format, F, e_zero, least, floor, sa, sb, row, largest, e_max, scale)
                if zeros_count:
                    smallest_exponent(ea[i], eb[p], k0, k1, smallest)
                    count_zeros(F, e_zero, least, floor, sa, sb, smallest, e_max, scale)
                if odd:
                    sticky_sum(va[i], vb[p], k0, k1, scale, total)
                else:
                    aligned_sum(va[i], vb[p], k0, k1, chunk, scale, sums, total)
                special = special_a[i, s] | special_b[p, s]
                if special:
                    special_values(ka[i], kb[p], va[i], vb[p], k0, k1, np.inf, flags)
                    if scaled:
                        for j in range(w):
                            flags[j] |= where(nan_a[i, s] | nan_b[p, s, j], FLAG_NAN, 0)
                finish_fda(rho, c_format, F, e_zero, nan, odd, e_max, total, special | some_c, flags, row)
                if special:
                    flags[:] = 0


@part
def exponents_of_c(c_format: Format, e_zero: int, code: Plane, e_max: Plane) -> None:
    vectorised()
    for j in range(code.size):
        e_max[j] = with_zero_exponent(term(decode(code[j], c_format.layout)), e_zero).exponent


@part
def sums_of_rows(
    bits: int,
    F: int,
    e_zero: int,
    by_fields: bool,
    odd: bool,
    start: int,
    stop: int,
    value: Plane,
    exponent: Plane,
    special: Plane,
    e_max: Plane,
    total: Plane,
    some: Plane,
) -> None:
    """Raise e_max, c's exponents, to those of each row's products `start` … `stop - 1`, and add these, aligned; `some`:
    whether there are special values."""
    vectorised()
    for j in range(e_max.size):
        values, exponents = value[j, start:stop], exponent[j, start:stop]
        if not by_fields:
            settle_zeros(values, exponents, e_zero)
        e_max[j] = maximum(largest(exponents), e_max[j])
        total[j] = sum_aligned(values, exponents, e_max[j], bits, F, odd)
        some[j] = 0
        for k in range(start, stop):
            some[j] |= special[j, k]


@part
def finish_rows(
    of: DotAdd,
    rho: Conversion,
    F: int,
    e_zero: int,
    odd: bool,
    e_max: Plane,
    total: Plane,
    code: Plane,
    number: Plane,
) -> None:
    """The stages after the products' of rows without special values."""
    vectorised()
    for j in range(code.size):
        c = decode(code[j], of.c_format.layout)
        number[j] = rounded_code(rho, of.c_format, F, e_zero, odd, e_max[j], total[j], c)


@driver
def run_fda_rows(
    sources: KernelSources,
    given: Plane,
    room: Plane,
    factors: Plane,
    a: Plane,
    b: Plane,
    c: Plane,
    scale_a: Plane,
    scale_b: Plane,
    d: Plane,
) -> None:
    """Rows of fda, some at a time, each stage of all of them before the next.

    `room` is for the products of `ROWS` rows, (2, …), `factors` for whether theirs are special values.
    """
    vectorised()
    of, fmt, block = formats(given), scale_format(given), scale_block(given)
    rho, at_ = conversion(given, OWN, of.d_format), OWN + CONVERSION
    L, F, e_zero, by_fields = given[at_], given[at_ + 1], given[at_ + 2], given[at_ + 3] != 0
    nan, odd, bits = (
        given[at_ + 4],
        given[at_ + 5] != 0,
        of.a_format.fraction_bits + of.b_format.fraction_bits,
    )
    e_max_, total_, number_ = stack(np.int64, ROWS), stack(np.int64, ROWS), stack(np.int64, ROWS)
    some_, K = stack(np.uint8, ROWS), a.shape[1]
    for row in range(0, d.size, ROWS):
        m = min(ROWS, d.size - row)
        x, y, code = a[row : row + m], b[row : row + m], d[row : row + m]
        value, exponent = room[0, : m * K].reshape((m, K)), room[1, : m * K].reshape((m, K))
        special = factors[: m * K].reshape((m, K))
        multiply_flat(
            *(of.a_format, of.b_format, x.reshape(-1), y.reshape(-1)),
            *(value.reshape(-1), exponent.reshape(-1), special.reshape(-1)),
        )
        for j in range(m):
            code[j] = c[row + j]
        for k in range(0, K, L):
            if block > 0:
                for j in range(m):
                    scales = Scales(fmt, block, k, row + j)
                    special[j, k] |= add_scales(scales, scale_a, scale_b, exponent[j, k : k + L]).nan
            e_max, total, number, some = e_max_[:m], total_[:m], number_[:m], some_[:m]
            exponents_of_c(of.c_format, e_zero, code, e_max)
            sums_of_rows(
                bits, F, e_zero, by_fields, odd, k, k + L, value, exponent, special, e_max, total, some
            )
            finish_rows(of, rho, F, e_zero, odd, e_max, total, code, number)
            for j in range(m):
                found, of_c = Special(False, False, False), decode(code[j], of.c_format.layout)
                if some[j] != 0 and block > 0:
                    found = add_scales(
                        Scales(fmt, block, k, row + j), scale_a, scale_b, exponent[j, k : k + L]
                    )
                step = x[j, k : k + L], y[j, k : k + L]
                code[j] = or_special(of, rho, nan, some[j] != 0, found, *step, of_c, number[j])


# ---- kernels -----------------------------------------------------------------------------------------------


class FdaKernel(FusedPlanes):
    """fda, with or without block scales."""

    def __init__(self, spec: DotAdd, wide: Widths) -> None:
        parameters = spec.parameters_as(Fda)
        super().__init__(
            spec, wide, parameters.F, parameters.L, None if parameters.e_zero is None else wide.zero
        )
        self.parameters = parameters
        # A zero product's e_zero is never above c's exponent, which is e_zero too if c is zero, unless:
        self.zeros_count = parameters.e_zero is not None and parameters.e_zero > spec.c_format.min_exponent
        self._runs: dict[tuple[int, int, bool, bool], Direct] = {}
        p = parameters
        self.on_words = fits(p.rho, spec.c_format, p.F, p.cut, p.L, wide)  #: or on lanes of 64 bits

    @classmethod
    def of(cls, spec: DotAdd) -> FdaKernel | None:
        parameters = spec.parameters_as(Fda)
        if spec.scale_format is not None and spec.scale_block % parameters.L:
            return None  # the products of one step would have different scales
        wide = widths(spec, parameters.F, parameters.L)
        return None if wide is None else cls(spec, wide)

    def _scales(self, scales: CodeArray | None, steps: int) -> Planes:
        """Exponents and NaNs of the scales, one for each step: (…, steps) from (…, K/S)."""
        if scales is None or self.spec.scale_format is None:
            return np.zeros((0,), np.int16), np.zeros((0,), np.bool_)
        x = decode(scales.astype(np.int64), self.spec.scale_format.layout)
        each = self.spec.scale_block // self.L
        return x.exponent.repeat(each, axis=-1).astype(np.int16), x.nan.repeat(each, axis=-1)

    def rows(self, codes: CodeArray, scales: CodeArray | None = None) -> Planes:
        *planes, special = self._rows(codes)
        exponents, nans = self._scales(scales, special.shape[1])
        if scales is None:
            return *planes, special, np.zeros((len(codes), 0), np.int16), np.zeros((len(codes), 0), np.bool_)
        return *planes, np.asarray(special | nans), exponents, nans

    def columns(self, codes: CodeArray, scales: CodeArray | None = None) -> Planes:
        *planes, special = self._columns(codes)
        panels = len(special)
        if scales is None:
            none = np.zeros((panels, 0, planes[0].shape[2]), np.int16)
            return *planes, special, none, none.astype(np.bool_)
        exponents, nans = (np.ascontiguousarray(x.T) for x in self._scales(scales.T, special.shape[1]))
        width = planes[0].shape[2]
        nans = in_panels(nans, width)
        return *planes, np.asarray(special | nans.any(axis=2)), in_panels(exponents, width), nans

    def run(self, a: Planes, b: Planes, d: CodeArray, start: int, stop: int) -> None:
        spec, p, wide = self.spec, self.parameters, self.widths
        floor, a, b = self._alike(a, b)
        if self.on_words:
            self._run_tiles(a[1], d)(
                p.rho,
                spec.c_format,
                p.F,
                zero_exponent(p.e_zero, spec.c_format),
                self.zeros_count,
                canonical_nan(p.rho.format),
                p.L,
                wide.least,
                floor,
                a,
                b,
                d,
                start * self.steps,
                stop * self.steps,
            )
            return
        run_fda(
            p.rho,
            spec.c_format,
            p.F,
            zero_exponent(p.e_zero, spec.c_format),
            self.zeros_count,
            canonical_nan(p.rho.format),
            p.cut is Rounding.RO,
            p.L,
            wide.chunk,
            wide.least,
            floor,
            a,
            b,
            np.empty(WIDTH, wide.term),
            d,
            start * self.steps,
            stop * self.steps,
        )

    def _run_tiles(self, values: Plane, d: CodeArray) -> Callable[..., None]:
        """`run_tiles` for the types that numba gives the values of planes and `d`."""
        key = values.dtype.num, d.dtype.num, d.flags.c_contiguous, d.flags.aligned
        return self._runs.setdefault(key, Direct(run_tiles))

    @staticmethod
    def run_rows(spec: DotAdd, rows: Batch) -> None:
        p = spec.parameters_as(Fda)
        given = numbers(spec, p.rho, p.L, *fda_numbers(spec, p))
        products = min(ROWS, len(rows.d)) * rows.a.shape[1]
        room, factors = np.empty((2, products), np.int64), np.empty(products, np.uint8)
        run_fda_rows(SOURCES, given, room, factors, *rows)


KERNEL = FdaKernel
