"""The kernel of fdrda, and of gfdrda, whose even and odd products are summed apart."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple, cast

import numpy as np
from numba.extending import overload

from mmaformal.encodings.executable.blocks import (
    Flag,
    Lane,
    Operand,
    Special,
    classify_addend,
    classify_product,
    decode,
    encode,
    maximum,
    merge_special,
    multiply,
    normalise_and_round,
    quiet_nan,
    resolve_special,
    select_special,
    shift_right,
    where,
)
from mmaformal.encodings.fdrda import Fdrda
from mmaformal.encodings.fdrda.executable import add_c, number, overflow, round_total
from mmaformal.formats import Format
from mmaformal.kernels.batch import Batch
from mmaformal.kernels.chain import Algorithm, RowStep, Scales, chain, step_of
from mmaformal.kernels.compiled import (
    ROUNDINGS,
    ConstantType,
    Ends,
    Numba,
    driver,
    inlined,
    part,
    power_of_two,
    stack,
    vectorised,
)
from mmaformal.kernels.fused import FusedPlanes
from mmaformal.kernels.kernel import WIDTH, CodeArray, Plane, Planes
from mmaformal.kernels.products import aligned_sum as sum_of_terms
from mmaformal.kernels.products import largest, multiply_all, settle_zeros
from mmaformal.kernels.terms import (
    FAR,
    aligned_sum,
    any_special,
    largest_exponent,
    special_of,
    special_values,
)
from mmaformal.kernels.widths import Widths, widths
from mmaformal.rounding import Conversion, Rounding
from mmaformal.spec import DotAdd

_UNCUT, _FAR = 1 << 20, 1 << 40  #: more fractional bits than any sum has; farther than any two exponents


class DotProductSums(NamedTuple):
    """A dot product without c, as fdrda's stages read it."""

    e_max: Lane
    total: Lane


class Cuts(NamedTuple):
    """The parameters of `Fdrda` that stages read, as numbers."""

    F: int
    dot_bits: int
    sum_bits: int
    cut: Rounding  #: its place in `ROUNDINGS`
    rho: Conversion
    L: int  #: groups
    c_reach: int


# ---- the stages after the products'


def rounded_total(parameters: Fdrda, total: Lane, e_max: Lane) -> Lane:
    """The second result of the stage `round_total`."""
    raise NotImplementedError("compiled code only")


@overload(rounded_total, strict=False)
def _rounded_total(parameters: Numba, total: Numba, e_max: Numba) -> Numba:
    known: Numba = getattr(parameters, "value", None)
    if known is not None and known.sum_bits is None:  # the stage's other branch has no type
        return lambda parameters, total, e_max: normalise_and_round(
            total, e_max - parameters.dot_bits, parameters.rho
        )
    return lambda parameters, total, e_max: round_total(parameters, total, e_max)[1]


def reach_of(parameters: Fdrda) -> int | None:
    """How far below e_max a c is dropped."""
    raise NotImplementedError("compiled code only")


@overload(reach_of, strict=False)
def _reach_of(parameters: Numba) -> Numba:
    if isinstance(parameters, ConstantType) and cast(Fdrda, parameters.value).groups == 1:
        return lambda parameters: None
    return lambda parameters: parameters.c_reach


@inlined
def both_dots(parameters: Fdrda, e_even: Lane, even: Lane, e_odd: Lane, odd: Lane) -> DotProductSums:
    """`gfdrda.add_dots`; of one group, that."""
    if parameters.L == 1:  # groups
        return DotProductSums(e_even, even)
    e, cut = maximum(e_even, e_odd), parameters.cut
    return DotProductSums(e, shift_right(even, e - e_even, cut) + shift_right(odd, e - e_odd, cut))


@inlined
def rounded_code(spec: Ends, parameters: Fdrda, dot: DotProductSums, c: Operand) -> Lane:
    """The code of the sum of the dot product and c."""
    e_max, _, _, with_c = add_c(spec, parameters, dot, c, reach_of(parameters))
    return encode(rounded_total(parameters, with_c, e_max), parameters.rho)


# ---- rows


@part
def special_products(
    a_format: Format, b_format: Format, inputs_first: bool, limit: int, a: Plane, b: Plane, given: Special
) -> Special:
    """Return what factors and the sizes of products decide, with `given`, c's (`fdrda.products_and_specials`)."""
    positive, negative = False, False
    for k in range(a.size):
        x, y = decode(np.int64(a[k]), a_format.layout), decode(np.int64(b[k]), b_format.layout)
        special = classify_product(x, y)
        large = overflow(multiply(x, y), a_format.fraction_bits + b_format.fraction_bits, limit)
        positive |= large.positive_infinity & number(special)
        negative |= large.negative_infinity & number(special)
        given = merge_special(given, special)
    sizes = Special(False, positive, negative)
    if not inputs_first:
        return resolve_special(merge_special(given, sizes))
    first, then = resolve_special(given), resolve_special(sizes)
    return then if number(first) else first


@step_of("fdrda")
def step(algorithm: Algorithm, on: RowStep, scales: Scales, a: Plane, b: Plane, code: Lane) -> Lane:
    of, rho, own, room = on.of, on.rho, on.own, on.room
    F, groups, inputs_first, limit, nan = own[0], own[4], own[6] != 0, own[7], own[8]
    cuts: Any = Cuts(F, own[1], own[2], own[3], rho, groups, own[5])
    ends: Any = of
    value, exponent = room[0, : a.size], room[1, : a.size]
    special = multiply_all(of.a_format, of.b_format, a, b, value, exponent)
    special |= largest(exponent) + 1 >= limit
    if own[9] != 0:
        settle_zeros(value, exponent, own[10])
    bits = of.a_format.fraction_bits + of.b_format.fraction_bits
    even = (a.size + groups - 1) // groups  # products of even index come first, if they are a group
    e_even = largest(exponent[:even])
    e_odd, odd, total = (
        e_even,
        np.int64(0),
        sum_of_terms(value[:even], exponent[:even], e_even, bits, F, False),
    )
    if groups == 2:
        e_odd = largest(exponent[even:])
        odd = sum_of_terms(value[even:], exponent[even:], e_odd, bits, F, False)
    c = decode(code, of.c_format.layout)
    result = rounded_code(ends, cuts, both_dots(cuts, e_even, total, e_odd, odd), c)
    if special | c.infinite | c.nan:
        found = special_products(of.a_format, of.b_format, inputs_first, limit, a, b, classify_addend(c))
        return select_special(found, result, rho, nan)
    return result


# ---- blocks


@part
def begin_dot(
    F: int, least: int, floor: int, skipped: int, largest: Plane, e_dot: Plane, scale: Plane
) -> Lane:
    """The dot product's exponent, `skipped` if all its products are zero, and the scale; returns the largest."""
    vectorised()
    top = np.int64(FAR)
    for j in range(largest.size):
        e = np.int64(largest[j])
        e = where(e < least, skipped, e)
        e_dot[j] = e
        scale[j] = power_of_two(maximum(F - e, floor), scale[j])
        top = maximum(top, e)
    return top


@part
def finish_dots(
    spec: Ends,
    parameters: Fdrda,
    nan: int,
    e_even: Plane,
    even: Plane,
    e_odd: Plane,
    odd: Plane,
    special: Flag,
    flags: Plane,
    d: Plane,
) -> None:
    """The stages after the dot products: that of even and odd products, or of all and none."""
    vectorised()
    if not special:
        for j in range(d.size):
            c = decode(np.int64(d[j]), spec.c_format.layout)
            dot = both_dots(parameters, np.int64(e_even[j]), even[j], np.int64(e_odd[j]), odd[j])
            d[j] = rounded_code(spec, parameters, dot, c)
        return
    for j in range(d.size):
        c = decode(np.int64(d[j]), spec.c_format.layout)
        dot = both_dots(parameters, np.int64(e_even[j]), even[j], np.int64(e_odd[j]), odd[j])
        code = rounded_code(spec, parameters, dot, c)
        d[j] = select_special(special_of(flags[j], c), code, parameters.rho, nan)


@driver
def run_fdrda(
    spec: Ends,
    parameters: Fdrda,
    F: int,
    skipped: int,
    nan: int,
    L: int,
    groups: int,
    chunk: int,
    least: int,
    floor: int,
    top_exponent: int,
    overflow: float,
    a: Planes,
    b: Planes,
    some: Plane,
    d: Plane,
    start: int,
    stop: int,
) -> None:
    """Steps `start` … `stop - 1` of fdrda, or of gfdrda with even and odd products apart, on the rows of d."""
    vectorised()
    ea, va, ka, special_a = a
    eb, vb, kb, special_b = b
    (m, n), width, size = d.shape, eb.shape[2], L // groups
    largest_, scale_ = stack(ea.dtype, width), stack(va.dtype, width)
    total = stack(np.int64, 2 * width).reshape((2, width))
    e_dot = stack(np.int32, 2 * width).reshape((2, width))
    flags_ = stack(np.uint8, width)
    flags_[:] = 0
    for p in range((n + width - 1) // width):
        w = min(width, n - p * width)
        largest, scale = largest_[:w], scale_[:w]
        flags, sums = flags_[:w], some[:w]
        for s in range(start, stop):
            for i in range(m):
                row = d[i, p * width : p * width + w]
                top = np.int64(FAR)
                for g in range(groups):
                    k0 = s * L + g * size
                    largest_exponent(ea[i], eb[p], k0, k0 + size, largest)
                    top = maximum(top, begin_dot(F, least, floor, skipped, largest, e_dot[g, :w], scale))
                    aligned_sum(va[i], vb[p], k0, k0 + size, chunk, scale, sums, total[g, :w])
                special = special_a[i, s] | special_b[p, s] | (top >= top_exponent)
                if special:
                    special_values(ka[i], kb[p], va[i], vb[p], s * L, (s + 1) * L, overflow, flags)
                finish_dots(
                    spec,
                    parameters,
                    nan,
                    e_dot[0, :w],
                    total[0, :w],
                    e_dot[groups - 1, :w],
                    total[groups - 1, :w],
                    special | any_special(spec.c_format, row),
                    flags,
                    row,
                )
                if special:
                    flags[:] = 0


def even_and_odd(L: int) -> list[int]:
    """The products of even index, then the others."""
    return [*range(0, L, 2), *range(1, L, 2)]


class FdrdaKernel(FusedPlanes):
    """fdrda and gfdrda."""

    def __init__(self, spec: DotAdd, wide: Widths) -> None:
        parameters = spec.parameters_as(Fdrda)
        super().__init__(
            spec, wide, parameters.F, parameters.L, wide.zero if parameters.skip_zero_products else None
        )
        self.groups = parameters.groups
        if self.groups == 2:
            self._order = np.array(even_and_odd(self.L))
        # The stages compiled here do not look at L: instructions that differ in it alone share the code.
        self.parameters = replace(parameters, L=self.groups)
        self.overflow = spec.d_format.max_exponent
        self.skipped = min(wide.least, spec.c_format.min_exponent)

    @classmethod
    def of(cls, spec: DotAdd) -> FdrdaKernel | None:
        parameters = spec.parameters_as(Fdrda)
        if parameters.L % parameters.groups:
            return None
        largest = spec.a_format.max_exponent + spec.b_format.max_exponent + 1
        if parameters.inputs_first and largest > spec.d_format.max_exponent:
            return None  # `special_values` judges overflows together with the inputs
        wide = widths(spec, parameters.F, parameters.L)
        return None if wide is None else cls(spec, wide)

    def rows(self, codes: CodeArray, scales: CodeArray | None = None) -> Planes:
        return self._rows(codes)

    def columns(self, codes: CodeArray, scales: CodeArray | None = None) -> Planes:
        return self._columns(codes)

    def run(self, a: Planes, b: Planes, d: CodeArray, start: int, stop: int) -> None:
        spec, p, wide = self.spec, self.parameters, self.widths
        floor, a, b = self._alike(a, b)
        run_fdrda(
            Ends(spec.c_format),
            p,
            p.F,
            self.skipped,
            quiet_nan(p.rho.format),
            self.L,
            self.groups,
            wide.chunk,
            wide.least,
            floor,
            # A product of exponent e and significand s counts as infinite if e ≥ 128, or s ≥ 2 and e ≥ 127: if its
            # magnitude is at least 2^128, for s < 4, and no product of exponent 128 has s < 1.
            self.overflow,
            2.0 ** (self.overflow + 1),
            a,
            b,
            np.empty(WIDTH, wide.term),
            d,
            start * self.steps,
            stop * self.steps,
        )

    @staticmethod
    def run_rows(spec: DotAdd, rows: Batch) -> None:
        p = spec.parameters_as(Fdrda)
        groups, reach = p.groups, _FAR if p.reach is None else p.reach
        # Below every exponent of a product that is not zero, and not above c's, as in the executable.
        least = min(spec.a_format.min_exponent + spec.b_format.min_exponent, spec.c_format.min_exponent)
        sum_bits, cut = _UNCUT if p.sum_bits is None else p.sum_bits, ROUNDINGS.index(p.cut)
        cuts = p.F, p.dot_bits, sum_bits, cut, groups, reach
        limit, nan = spec.d_format.max_exponent + 1, quiet_nan(p.rho.format)
        if groups == 2:
            place = [start + k for start in range(0, spec.k, p.L) for k in even_and_odd(p.L)]
            rows = rows._replace(a=rows.a.take(place, 1), b=rows.b.take(place, 1))
        own = *cuts, p.inputs_first, limit, nan, p.skip_zero_products, least
        chain("fdrda", spec, rows, p.rho, p.L, *own)


KERNEL = FdrdaKernel
