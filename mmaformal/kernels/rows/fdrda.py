"""Rows of fdrda, and of gfdrda, whose even and odd products are summed apart."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mmaformal.encodings.executable.blocks import (
    Flag,
    Lane,
    Special,
    classify_addend,
    classify_product,
    decode,
    encode,
    maximum,
    merge_special,
    multiply,
    quiet_nan,
    resolve_special,
    select_special,
    shift_right,
    signed,
)
from mmaformal.encodings.fdrda import Fdrda
from mmaformal.encodings.fdrda.executable import add_c, number, overflow, round_total
from mmaformal.formats import Format
from mmaformal.kernels.compiled import ROUNDINGS, SOURCES, Sources, driver, inlined, part, vectorised
from mmaformal.kernels.kernel import Plane
from mmaformal.kernels.rows.batch import Batch
from mmaformal.kernels.rows.fda import aligned_sum, largest, settle_zeros
from mmaformal.kernels.rows.given import CONVERSION, OWN, conversion, formats, numbers
from mmaformal.rounding import Conversion, Rounding
from mmaformal.spec import DotAdd

_UNCUT, _FAR = 1 << 20, 1 << 40  #: more fractional bits than any sum has; farther than any two exponents


class Sums(NamedTuple):
    """What `add_c` reads of the sum of the products."""

    e_max: Lane
    total: Lane


class Cuts(NamedTuple):
    """What stages read of `Fdrda`."""

    F: int
    dot_bits: int
    sum_bits: int
    cut: Rounding  #: its place in `ROUNDINGS`
    rho: Conversion


@inlined
def cuts_of(given: Plane, at: int, rho: Conversion) -> Fdrda:
    return Cuts(given[at], given[at + 1], given[at + 2], given[at + 3], rho)  # type: ignore[return-value]


@inlined
def multiply_all(
    a_format: Format, b_format: Format, limit: int, a: Plane, b: Plane, value: Plane, exponent: Plane
) -> Flag:
    """Signed significands and exponents of products; whether a factor is a special value or one may be too large."""
    special = False
    for k in range(a.size):
        x, y = decode(np.int64(a[k]), a_format.layout), decode(np.int64(b[k]), b_format.layout)
        product = multiply(x, y)
        special |= x.infinite | x.nan | y.infinite | y.nan | (product.exponent + 1 >= limit)
        value[k] = signed(product.sign, product.significand)
        exponent[k] = product.exponent
    return special


@inlined
def dot_product(value: Plane, exponent: Plane, fraction_bits: int, F: int) -> Sums:
    """`fdrda.dot_product`, without what leads to it."""
    e_max = largest(exponent)
    return Sums(e_max, aligned_sum(value, exponent, e_max, fraction_bits, F, False))


@part
def special_values(
    a_format: Format, b_format: Format, inputs_first: bool, limit: int, a: Plane, b: Plane, given: Special
) -> Special:
    """What factors and the sizes of products decide, with `given`, c's (`fdrda.products_and_specials`)."""
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


@inlined
def step(
    of: DotAdd,
    cuts: Fdrda,
    groups: int,
    c_reach: int,
    inputs_first: bool,
    limit: int,
    nan: int,
    a: Plane,
    b: Plane,
    code: Lane,
    special: Flag,
    value: Plane,
    exponent: Plane,
) -> Lane:
    """One step, after its products."""
    bits = of.a_format.fraction_bits + of.b_format.fraction_bits
    even = (value.size + groups - 1) // groups  # products of even index come first, if they are a group
    dot = dot_product(value[:even], exponent[:even], bits, cuts.F)
    if groups == 2:
        odd = dot_product(value[even:], exponent[even:], bits, cuts.F)
        e = maximum(dot.e_max, odd.e_max)
        total = shift_right(dot.total, e - dot.e_max, cuts.cut)
        dot = Sums(e, total + shift_right(odd.total, e - odd.e_max, cuts.cut))
    c = decode(code, of.c_format.layout)
    e_max, _, _, with_c = add_c(of, cuts, dot, c, c_reach)
    result = encode(round_total(cuts, with_c, e_max)[1], cuts.rho)
    if special | c.infinite | c.nan:
        found = special_values(of.a_format, of.b_format, inputs_first, limit, a, b, classify_addend(c))
        return select_special(found, result, cuts.rho, nan)
    return result


@driver
def run_rows(
    sources: Sources, given: Plane, a: Plane, b: Plane, c: Plane, scale_a: Plane, scale_b: Plane, d: Plane
) -> None:
    vectorised()
    of, at = formats(given), OWN + CONVERSION
    rho = conversion(given, OWN, of.d_format)
    cuts = cuts_of(given, at, rho)
    L, groups, c_reach, inputs_first = given[at + 4], given[at + 5], given[at + 6], given[at + 7] != 0
    limit, nan, skips, least = given[at + 8], given[at + 9], given[at + 10] != 0, given[at + 11]
    value, exponent = np.empty(L, np.int64), np.empty(L, np.int64)
    for i in range(d.size):
        code = c[i]
        for first in range(0, a.shape[1], L):
            x, y = a[i, first : first + L], b[i, first : first + L]
            special = multiply_all(of.a_format, of.b_format, limit, x, y, value, exponent)
            if skips:
                settle_zeros(value, exponent, least)
            code = step(
                of, cuts, groups, c_reach, inputs_first, limit, nan, x, y, code, special, value, exponent
            )
        d[i] = code


def run(spec: DotAdd, rows: Batch) -> None:
    p = spec.parameters
    assert isinstance(p, Fdrda)
    groups, reach = p.groups, _FAR if p.reach is None else p.reach
    # Below every exponent of a product that is not zero, and not above c's, as in the executable.
    least = min(spec.a_format.min_exponent + spec.b_format.min_exponent, spec.c_format.min_exponent)
    given = numbers(
        spec,
        p.rho,
        p.F,
        p.dot_bits,
        _UNCUT if p.sum_bits is None else p.sum_bits,
        ROUNDINGS.index(p.cut),
        p.L,
        groups,
        reach,
        p.inputs_first,
        spec.d_format.max_exponent + 1,
        quiet_nan(p.rho.format),
        p.skip_zero_products,
        least,
    )
    if groups == 2:
        order = *range(0, p.L, 2), *range(1, p.L, 2)
        place = [start + k for start in range(0, spec.k, p.L) for k in order]
        rows = rows._replace(a=rows.a.take(place, 1), b=rows.b.take(place, 1))
    run_rows(SOURCES, given, *rows)
