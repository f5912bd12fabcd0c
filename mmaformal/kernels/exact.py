"""The kernel of efda: the executable's stages, the loop over products outside and that over outputs inside."""

from __future__ import annotations

import numpy as np

from mmaformal.encodings.efda import Efda
from mmaformal.encodings.efda.executable import bits_of_fixed_point, normalise, sorted_sum
from mmaformal.encodings.executable import limbs
from mmaformal.encodings.executable.blocks import (
    Lane,
    Operand,
    Term,
    decode,
    encode,
    multiply,
    quiet_nan,
    round_sum,
    select_special,
    term,
    where,
)
from mmaformal.formats import Format
from mmaformal.kernels.compiled import Ends, driver, inlined, part, vectorised
from mmaformal.kernels.fused import INFINITE, NAN, decode_plane, special_of, special_values
from mmaformal.kernels.kernel import WIDTH, Codes, Kernel, Plane, Planes, in_panels
from mmaformal.rounding import Conversion
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
            placed = limbs.signed(p.sign, limbs.shift_left(p.significand, p.exponent + lift))
            total = limbs.add(limbs.Wide(high[j], low[j]), placed)
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
    least = rho.format.min_exponent
    for j in range(d.size):
        c = decode(np.int64(d[j]), spec.c_format.layout)
        special = special_of(flags[j], c)
        total = limbs.Wide(high[j], low[j])
        sign = where(total.high < 0, 1, 0)
        dot = limbs.WideTerm(sign, where(limbs.is_zero(total), least, top), limbs.signed(sign, total))
        x = limbs.add_term(dot, term(c), spec.c_format.fraction_bits, frame).narrowed
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
    p = max(rho.fraction_bits, spec.c_format.fraction_bits)
    other = k + 1 if two else k
    for j in range(d.size):
        c = decode(np.int64(d[j]), spec.c_format.layout)
        special = special_of(flags[j], c)
        first = product(ea[k], sa[k], eb[k, j], sb[k, j])
        second = product(ea[other], sa[other], eb[other, j], sb[other, j])
        second = Term(second.sign, second.exponent, where(two, second.significand, 0))
        total = sorted_sum(
            normalise(first, bits, p, lowest),
            normalise(second, bits, p, lowest),
            normalise(term(c), spec.c_format.fraction_bits, p, lowest),
            p,
            lowest,
        ).total
        d[j] = select_special(special, encode(round_sum(total, 0, rho), rho), rho, nan)


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
    high_, low_, flags_ = np.empty(width, np.int64), np.empty(width, np.int64), np.zeros(width, np.uint8)
    for p in range((n + width - 1) // width):
        w = min(width, n - p * width)
        high, low, flags = high_[:w], low_[:w], flags_[:w]
        for s in range(start, stop):
            k0, k1 = s * L, (s + 1) * L
            for i in range(m):
                row = d[i, p * width : p * width + w]
                special = special_a[i, s] | special_b[p, s]
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


class EfdaKernel(Kernel):
    """efda."""

    algorithms = ("efda",)
    bytes_per_element = 13
    description = "efda: the executable's stages on 64-bit lanes"

    def __init__(self, spec: DotAdd) -> None:
        super().__init__(spec)
        parameters = spec.parameters
        assert isinstance(parameters, Efda)
        self.parameters = parameters
        self.steps = spec.k // parameters.L
        low, self.top = bits_of_fixed_point(spec, parameters.L)
        self.lowest = min(low, spec.c_format.min_exponent - spec.c_format.fraction_bits)
        self.frame = self.top - low + max(parameters.rho.fraction_bits, spec.c_format.fraction_bits) + 3
        self.fixed = self.frame + 2 <= 2 * limbs.BITS
        self.bits = spec.a_format.fraction_bits + spec.b_format.fraction_bits

    @classmethod
    def of(cls, spec: DotAdd) -> EfdaKernel | None:
        """None where significands need more than 16 bits, or products leave the range of float64, in which special
        values are looked for."""
        a, b = spec.a_format, spec.b_format
        least = min(a.min_exponent - a.fraction_bits, b.min_exponent - b.fraction_bits)
        finite = a.max_exponent + b.max_exponent + 2 <= 1023 and least >= -1022
        short = max(a.fraction_bits, b.fraction_bits) <= 14
        return cls(spec) if finite and short else None

    def _planes(self, fmt: Format, codes: Codes) -> Planes:
        flat = np.ascontiguousarray(codes).reshape(-1)
        exponents, values = np.empty(flat.size, np.int16), np.empty(flat.size, np.float64)
        kinds, signed = np.empty(flat.size, np.uint8), np.empty(flat.size, np.int16)
        decode_plane(fmt, flat, fmt.min_exponent, exponents, values, kinds)
        significands(fmt, flat, signed)
        return tuple(plane.reshape(codes.shape) for plane in (exponents, values, kinds, signed))

    def rows(self, codes: Codes, scales: Codes | None = None) -> Planes:
        planes = self._planes(self.spec.a_format, codes)
        special = (planes[2] & (NAN | INFINITE)).reshape(len(codes), -1, self.parameters.L).any(axis=2)
        return (*planes, np.asarray(special))

    def columns(self, codes: Codes, scales: Codes | None = None) -> Planes:
        planes = self._planes(self.spec.b_format, in_panels(codes))
        panels = len(planes[0])
        special = (planes[2] & (NAN | INFINITE)).reshape(panels, -1, self.parameters.L * WIDTH).any(axis=2)
        return (*planes, np.asarray(special))

    def run(self, a: Planes, b: Planes, d: Codes, start: int, stop: int) -> None:
        rho, L = self.parameters.rho, self.parameters.L
        ends = Ends(self.spec.c_format)
        where_ = (start * self.steps, stop * self.steps)
        numbers = (L, self.bits, self.fixed, self.top, self.frame, self.lowest)
        run_efda(ends, rho, quiet_nan(rho.format), *numbers, a, b, d, *where_)
