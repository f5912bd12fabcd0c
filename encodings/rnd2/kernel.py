"""Rows of rnd2: the sum of a pair, rounded, and its addition, by the executable's stages."""

from __future__ import annotations

import numpy as np

from mmaformal.encodings.executable.blocks import (
    Lane,
    Term,
    add,
    classify_product,
    decode,
    encode,
    merge_special,
    multiply,
    quiet_nan,
    resolve_special,
    round_sum,
    select_special,
    sign_word,
    sum_sign,
    where,
    with_zero_exponent,
)
from mmaformal.encodings.executable.ieee import ieee_add
from mmaformal.encodings.rnd2 import Rnd2
from mmaformal.kernels.batch import Batch, on_lanes
from mmaformal.kernels.chain import Algorithm, RowStep, Scales, chain, step_of
from mmaformal.kernels.given import conversion
from mmaformal.kernels.kernel import OnlyRows, Plane
from mmaformal.spec import DotAdd


@step_of("rnd2")
def step(algorithm: Algorithm, on: RowStep, scales: Scales, a: Plane, b: Plane, code: Lane) -> Lane:
    of, rho, own = on.of, on.rho, on.own
    nan, frame, zero, negate = own[0], own[1], own[2], own[3] != 0
    phi = conversion(own, 4, of.d_format)
    bits = of.a_format.fraction_bits + of.b_format.fraction_bits
    u, v = decode(np.int64(a[0]), of.a_format.layout), decode(np.int64(b[0]), of.b_format.layout)
    x, y = decode(np.int64(a[1]), of.a_format.layout), decode(np.int64(b[1]), of.b_format.layout)
    special = resolve_special(merge_special(classify_product(u, v), classify_product(x, y)))
    first: Term = with_zero_exponent(multiply(u, v), zero)
    second: Term = with_zero_exponent(multiply(x, y), zero)
    total = add(first, bits, second, bits, frame)
    rounded = round_sum(total, sum_sign(phi, first.sign, second.sign), phi)
    pair = select_special(special, encode(rounded, phi), phi, nan)
    changed = negate & (decode(pair, of.d_format.layout).nan ^ True)
    return ieee_add(code, where(changed, pair ^ sign_word(of.d_format), pair), rho, nan).result


class Rnd2Kernel(OnlyRows):
    """The compiled rows of rnd2."""

    @staticmethod
    def run_rows(spec: DotAdd, rows: Batch) -> None:
        p = spec.parameters_as(Rnd2)
        own = (quiet_nan(spec.d_format), p.frame(spec), p.zero_exponent(spec), p.negate_pair, p.pair)
        chain("rnd2", spec, rows, p.rho, 2, *own)
        if not p.nan.order:
            return
        # Which NaN it is, the executable says; no number depends on that.
        if (nans := np.flatnonzero(decode(rows.d, spec.d_format.layout).nan)).size:
            some = rows.at(nans)
            on_lanes(spec, some)
            rows.d[nans] = some.d


KERNEL = Rnd2Kernel
