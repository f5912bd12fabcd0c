"""The kernel of efda: the executable's stages, the loop over products outside and that over outputs inside."""

from __future__ import annotations

import numpy as np

from mmaformal.encodings.efda import Efda
from mmaformal.encodings.efda.executable import bits_of_fixed_point, normalise, sorted_sum
from mmaformal.encodings.executable import limbs
from mmaformal.encodings.executable.blocks import (
    Flag,
    Lane,
    Operand,
    Sum,
    Term,
    classify_addend,
    classify_product,
    decode,
    encode,
    merge_special,
    multiply,
    quiet_nan,
    resolve_special,
    round_sum,
    select_special,
    term,
    where,
)
from mmaformal.formats import Format, fp16, fp32, fp64
from mmaformal.kernels.batch import Batch, converted, on_lanes
from mmaformal.kernels.chain import Algorithm, RowStep, Scales, chain, step_of
from mmaformal.kernels.compiled import Ends, driver, inlined, part, stack, vectorised
from mmaformal.kernels.float_rows import floats_of
from mmaformal.kernels.floats import double_bits, double_of, single_bits, single_of
from mmaformal.kernels.kernel import WIDTH, CodeArray, Kernel, Plane, Planes, in_panels
from mmaformal.kernels.planes import INFINITE, NAN, decode_plane
from mmaformal.kernels.processor import check_processor
from mmaformal.kernels.terms import any_special, special_of, special_values
from mmaformal.rounding import IEEE_FP32, Conversion
from mmaformal.spec import DotAdd


@driver
def significands(fmt: Format, codes: Plane, out: Plane) -> None:
    """The signed significand of every code; 0 for special values."""
    vectorised()
    layout = fmt.layout
    for i in range(codes.size):
        x = decode(np.int64(codes[i]), layout)
        significand = where(x.nan | x.infinite, 0, x.significand)
        out[i] = where(x.sign == 1, -significand, significand)


@inlined
def product(xe: Lane, xs: Lane, ye: Lane, ys: Lane) -> Term:
    """The product of two operands, given as exponents and signed significands."""
    xs, ys = np.int64(xs), np.int64(ys)
    x = Operand(where(xs < 0, 1, 0), np.int64(xe), where(xs < 0, -xs, xs), False, False)
    y = Operand(where(ys < 0, 1, 0), np.int64(ye), where(ys < 0, -ys, ys), False, False)
    return multiply(x, y)


@inlined
def with_product(total: limbs.Wide, x: Term, lift: int) -> limbs.Wide:
    """The sum in fixed point, and one more product."""
    return limbs.add(total, limbs.signed(x.sign, limbs.shift_left(x.significand, x.exponent + lift)))


@inlined
def fixed_sum(rho: Conversion, c_format: Format, top: int, frame: int, total: limbs.Wide, c: Operand) -> Sum:
    """`efda.fixed_point_sum` of the products, whose sum is `total`, and c."""
    sign, magnitude = limbs.magnitude(total)
    dot = limbs.WideTerm(sign, where(limbs.is_zero(total), rho.format.min_exponent, top), magnitude)
    return limbs.add_term(dot, term(c), c_format.fraction_bits, frame).narrowed


@inlined
def sum_of_three(
    rho: Conversion, c_format: Format, bits: int, lowest: int, x: Term, y: Term, two: Flag, c: Operand
) -> Sum:
    """`efda.sorted_sum` of one or two products and c."""
    p = max(rho.fraction_bits, c_format.fraction_bits, bits + 1)
    y = Term(y.sign, y.exponent, where(two, y.significand, 0))
    return sorted_sum(
        normalise(x, bits, p, lowest),
        normalise(y, bits, p, lowest),
        normalise(term(c), c_format.fraction_bits, p, lowest),
        p,
        lowest,
    ).total


@part
def add_products(
    ea: Plane, sa: Plane, eb: Plane, sb: Plane, start: int, stop: int, lift: int, high: Plane, low: Plane
) -> None:
    """The exact sum of the products in fixed point, `efda.fixed_point_sum`, in two limbs."""
    vectorised()
    for j in range(high.size):
        high[j] = 0
        low[j] = 0
    for k in range(start, stop):
        for j in range(high.size):
            p = product(ea[k], sa[k], eb[k, j], sb[k, j])
            total = with_product(limbs.Wide(high[j], low[j]), p, lift)
            high[j] = total.high
            low[j] = total.low


@part
def finish_fixed(
    spec: Ends,
    rho: Conversion,
    nan: int,
    top: int,
    frame: int,
    high: Plane,
    low: Plane,
    flags: Plane,
    d: Plane,
) -> None:
    """The stages of efda after the sum in fixed point."""
    vectorised()
    for j in range(d.size):
        c = decode(np.int64(d[j]), spec.c_format.layout)
        special = special_of(flags[j], c)
        x = fixed_sum(rho, spec.c_format, top, frame, limbs.Wide(high[j], low[j]), c)
        d[j] = select_special(special, encode(round_sum(x, 0, rho), rho), rho, nan)


@part
def finish_sorted(
    spec: Ends,
    rho: Conversion,
    nan: int,
    bits: int,
    lowest: int,
    ea: Plane,
    sa: Plane,
    eb: Plane,
    sb: Plane,
    k: int,
    two: bool,
    flags: Plane,
    d: Plane,
) -> None:
    """The stages of efda for one or two products anywhere."""
    vectorised()
    other = k + 1 if two else k
    for j in range(d.size):
        c = decode(np.int64(d[j]), spec.c_format.layout)
        special = special_of(flags[j], c)
        first = product(ea[k], sa[k], eb[k, j], sb[k, j])
        second = product(ea[other], sa[other], eb[other, j], sb[other, j])
        total = sum_of_three(rho, spec.c_format, bits, lowest, first, second, two, c)
        d[j] = select_special(special, encode(round_sum(total, 0, rho), rho), rho, nan)


@part
def first_product(va: Plane, vb: Plane, k: int, sums: Plane) -> None:
    vectorised()
    for j in range(sums.size):
        sums[j] = va[k] * vb[k, j]


@part
def next_product(va: Plane, vb: Plane, k: int, sums: Plane) -> Flag:
    """Add a product to sums; returns whether some sum is not exact.

    If s - x is y and s - y is x, then s is x + y: the difference from the larger of both is exact (Dekker 1971).
    """
    vectorised()
    lost = False
    for j in range(sums.size):
        x, y = sums[j], va[k] * vb[k, j]
        s = x + y
        lost |= (s - x != y) | (s - y != x)
        sums[j] = s
    return lost


@part
def finish_floats(sums: Plane, d: Plane) -> None:
    """Each exact sum and c, rounded to odd in fp64 and then to fp32: once, as far as fp32 can see; zero is +0."""
    vectorised()
    for j in range(d.size):
        x, c = sums[j], np.float64(single_of(np.int32(d[j])))
        s = x + c
        z = s - x
        lost = (x - (s - z)) + (c - z)
        bits = double_bits(s)
        outward = np.int64(1) if (lost > 0) == (s > 0) else np.int64(-1)
        bits += outward if (lost != 0) & (bits & 1 == 0) else np.int64(0)
        code = single_bits(np.float32(double_of(bits)))
        d[j] = np.int32(0) if s == 0 else code


@driver
def run_efda(
    spec: Ends,
    rho: Conversion,
    nan: int,
    L: int,
    bits: int,
    fixed: bool,
    top: int,
    frame: int,
    lowest: int,
    floats: bool,
    a: Planes,
    b: Planes,
    d: Plane,
    start: int,
    stop: int,
) -> None:
    """Steps `start` … `stop - 1` of efda on the rows of d, in place."""
    vectorised()
    ea, va, ka, sa, special_a = a
    eb, vb, kb, sb, special_b = b
    m, n = d.shape
    width = eb.shape[2]
    sums_, high_, low_ = stack(np.float64, width), stack(np.int64, width), stack(np.int64, width)
    flags_ = stack(np.uint8, width)
    flags_[:] = 0
    for p in range((n + width - 1) // width):
        w = min(width, n - p * width)
        high, low, flags = high_[:w], low_[:w], flags_[:w]
        for s in range(start, stop):
            k0, k1 = s * L, (s + 1) * L
            for i in range(m):
                row = d[i, p * width : p * width + w]
                special = special_a[i, s] | special_b[p, s]
                if floats and not (special | any_special(spec.c_format, row)):
                    first_product(va[i], vb[p], k0, sums_[:w])
                    lost = False
                    for k in range(k0 + 1, k1):
                        lost |= next_product(va[i], vb[p], k, sums_[:w])
                    if not lost:
                        finish_floats(sums_[:w], row)
                        continue
                if special:
                    special_values(ka[i], kb[p], va[i], vb[p], k0, k1, np.inf, flags)
                if fixed:
                    add_products(ea[i], sa[i], eb[p], sb[p], k0, k1, frame - top - bits, high, low)
                    finish_fixed(spec, rho, nan, top, frame, high, low, flags, row)
                else:
                    args = (ea[i], sa[i], eb[p], sb[p], k0)
                    finish_sorted(spec, rho, nan, bits, lowest, *args, L == 2, flags, row)
                if special:
                    flags[:] = 0


@driver
def run_efda_rows(L: int, a: Plane, b: Plane, d: Plane, doubtful: Plane) -> None:
    """d of numbers (K, rows) in fp64; doubtful where a sum of products is not exact, or something is special."""
    vectorised()
    sums_ = stack(np.float64, WIDTH)
    for start in range(0, d.size, WIDTH):
        row, open_ = d[start : start + WIDTH], doubtful[start : start + WIDTH]
        w = row.size
        sums = sums_[:w]
        for first in range(0, a.shape[0], L):
            x, y = a[first, start : start + w], b[first, start : start + w]
            for j in range(w):
                sums[j] = x[j] * y[j]
            for k in range(first + 1, first + L):
                x, y = a[k, start : start + w], b[k, start : start + w]
                for j in range(w):
                    s, p = sums[j], x[j] * y[j]
                    t = s + p
                    open_[j] |= np.uint8((t - s != p) | (t - p != s))
                    sums[j] = t
            for j in range(w):
                t = sums[j] + np.float64(single_of(np.int32(row[j])))
                open_[j] |= np.uint8(not abs(t) < np.inf)
            finish_floats(sums, row)


@inlined
def exact_product(of: DotAdd, a: Plane, b: Plane, k: Lane) -> Term:
    """The product of two codes."""
    return multiply(decode(np.int64(a[k]), of.a_format.layout), decode(np.int64(b[k]), of.b_format.layout))


@inlined
def exact_step(of: DotAdd, rho: Conversion, own: Plane, a: Plane, b: Plane, code: Lane) -> Lane:
    """The code of c + Σ a_k·b_k, rounded once; `own` begins with the NaN and `frame_of`."""
    nan, fixed, top, frame, lowest = own[0], own[1] != 0, own[2], own[3], own[4]
    c = decode(code, of.c_format.layout)
    special = classify_addend(c)
    for k in range(a.size):
        x, y = decode(np.int64(a[k]), of.a_format.layout), decode(np.int64(b[k]), of.b_format.layout)
        special = merge_special(special, classify_product(x, y))
    bits = of.a_format.fraction_bits + of.b_format.fraction_bits
    if fixed:
        wide = limbs.Wide(np.int64(0), np.int64(0))
        for k in range(a.size):
            wide = with_product(wide, exact_product(of, a, b, k), frame - top - bits)
        total = fixed_sum(rho, of.c_format, top, frame, wide, c)
    else:
        last = a.size - 1
        p, q = exact_product(of, a, b, 0), exact_product(of, a, b, last)
        total = sum_of_three(rho, of.c_format, bits, lowest, p, q, last > 0, c)
    number = encode(round_sum(total, np.int64(0), rho), rho)
    return select_special(resolve_special(special), number, rho, nan)


@step_of("efda")
def step(algorithm: Algorithm, on: RowStep, scales: Scales, a: Plane, b: Plane, code: Lane) -> Lane:
    of, rho, own = on.of, on.rho, on.own
    return exact_step(of, rho, own, a, b, code)


def frame_of(spec: DotAdd, p: Efda) -> tuple[bool, int, int, int]:
    """Whether sums are in fixed point, their top place and how many there are; the lowest place of any term."""
    low, top = bits_of_fixed_point(spec, p.L)
    lowest = min(low, spec.c_format.min_exponent - spec.c_format.fraction_bits)
    frame = top - low + max(p.rho.fraction_bits, spec.c_format.fraction_bits) + 3
    return frame + 2 <= 2 * limbs.BITS, top, frame, lowest


class EfdaKernel(Kernel):
    """efda."""

    bytes_per_element = 13
    description = "efda: the executable's stages on 64-bit lanes"

    def __init__(self, spec: DotAdd) -> None:
        super().__init__(spec)
        parameters = spec.parameters_as(Efda)
        self.parameters = parameters
        self.steps = spec.k // parameters.L
        self.fixed, self.top, self.frame, self.lowest = frame_of(spec, parameters)
        self.bits = spec.a_format.fraction_bits + spec.b_format.fraction_bits

    @classmethod
    def of(cls, spec: DotAdd) -> EfdaKernel | None:
        """None where significands need more than 16 bits, or zeros have signs, which the planes do not keep; and where
        numbers or products leave the range of float64, in which they are exact and special values are looked for."""
        short = max(spec.a_format.fraction_bits, spec.b_format.fraction_bits) <= 14
        return cls(spec) if short and cls.is_held(spec) and cls.compiles_rows(spec) else None

    @staticmethod
    def is_held(spec: DotAdd) -> bool:
        """Return whether the exponents of all numbers and products, of at most 48 bits (`Efda`), are those of fp64."""
        a, b = spec.a_format, spec.b_format
        places = a.min_exponent - a.fraction_bits, b.min_exponent - b.fraction_bits
        held = min(places) >= -1022 and sum(places) >= -1074
        return held and a.max_exponent + b.max_exponent + 2 <= 1023

    @classmethod
    def compiles_rows(cls, spec: DotAdd) -> bool:
        """Return whether the kernel, which knows no −0, no flushing, no c of another format and no long sums, computes
        it."""
        p = spec.parameters_as(Efda)
        plain = not (p.minus_zero or p.flush_inputs)
        return (
            plain and not p.is_long(spec) and spec.c_format == spec.d_format and spec.d_format in (fp16, fp32)
        )

    def _planes(self, fmt: Format, codes: CodeArray) -> Planes:
        flat = np.ascontiguousarray(codes).reshape(-1)
        exponents, values = np.empty(flat.size, np.int16), np.empty(flat.size, np.float64)
        kinds, signed = np.empty(flat.size, np.uint8), np.empty(flat.size, np.int16)
        decode_plane(fmt, flat, fmt.min_exponent, exponents, values, kinds)
        significands(fmt, flat, signed)
        return tuple(plane.reshape(codes.shape) for plane in (exponents, values, kinds, signed))

    def rows(self, codes: CodeArray, scales: CodeArray | None = None) -> Planes:
        planes = self._planes(self.spec.a_format, codes)
        special = (planes[2] & (NAN | INFINITE)).reshape(len(codes), -1, self.parameters.L).any(axis=2)
        return (*planes, np.asarray(special))

    def columns(self, codes: CodeArray, scales: CodeArray | None = None) -> Planes:
        planes = self._planes(self.spec.b_format, in_panels(codes))
        panels = len(planes[0])
        special = (planes[2] & (NAN | INFINITE)).reshape(panels, -1, self.parameters.L * WIDTH).any(axis=2)
        return (*planes, np.asarray(special))

    def run(self, a: Planes, b: Planes, d: CodeArray, start: int, stop: int) -> None:
        rho, L = self.parameters.rho, self.parameters.L
        ends = Ends(self.spec.c_format)
        where_ = (start * self.steps, stop * self.steps)
        numbers = (L, self.bits, self.fixed, self.top, self.frame, self.lowest, rho == IEEE_FP32)
        check_processor()
        run_efda(ends, rho, quiet_nan(rho.format), *numbers, a, b, d, *where_)

    @staticmethod
    def run_rows(spec: DotAdd, rows: Batch) -> None:
        p = spec.parameters_as(Efda)
        if p.rho != IEEE_FP32 or not EfdaKernel.is_held(spec) or not EfdaKernel.compiles_rows(spec):
            EfdaKernel.stage_rows(spec, rows)
            return
        check_processor()
        a, b = (floats_of(codes, np.float64) for codes in converted(rows, spec, fp64, fp64)[:2])
        d, doubtful = rows.c.astype(np.uint32), np.zeros(len(rows.c), np.uint8)
        run_efda_rows(p.L, a, b, d, doubtful)
        rows.d[:] = d
        if (again := np.flatnonzero(doubtful)).size:
            some = rows.at(again)
            EfdaKernel.stage_rows(spec, some)
            rows.d[again] = some.d

    @staticmethod
    def stage_rows(spec: DotAdd, rows: Batch) -> None:
        p = spec.parameters_as(Efda)
        if EfdaKernel.compiles_rows(spec):
            chain("efda", spec, rows, p.rho, p.L, quiet_nan(spec.d_format), *frame_of(spec, p))
        else:
            on_lanes(spec, rows)


KERNEL = EfdaKernel
