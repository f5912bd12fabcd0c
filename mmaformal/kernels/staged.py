"""The kernel of sfma in fp16, and of one in fp32 whose NaNs are its operands': the executable's stages, compiled."""

from __future__ import annotations

import numpy as np

from mmaformal.encodings.executable.blocks import (
    Lane,
    add,
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
    sign_word,
    term,
    where,
    with_zero_exponent,
)
from mmaformal.encodings.sfma import Sfma
from mmaformal.kernels.compiled import driver, inlined
from mmaformal.kernels.kernel import Codes, Kernel, Plane, Planes, in_panels
from mmaformal.rounding import Conversion, NanRule
from mmaformal.spec import DotAdd


@inlined
def fused(rho: Conversion, first: bool, a: Lane, b: Lane, c: Lane) -> Lane:
    """`fma(a, b, c)` of three codes; if `first`, a NaN is the first one of them, made quiet."""
    fmt = rho.format
    layout, bits, least = fmt.layout, fmt.fraction_bits, fmt.min_exponent
    x, y, z = decode(a, layout), decode(b, layout), decode(c, layout)
    special = resolve_special(merge_special(classify_product(x, y), classify_addend(z)))
    product = with_zero_exponent(multiply(x, y), least)
    total = add(product, 2 * bits, term(z), bits, 2 * bits + 3)
    number = encode(round_sum(total, product.sign & z.sign, rho), rho)
    quiet = np.int64(1) << (bits - 1)
    invalid = np.int64(quiet_nan(fmt)) + where(first, np.int64(sign_word(fmt)), np.int64(0))
    nan = where(x.nan, a | quiet, where(y.nan, b | quiet, where(z.nan, c | quiet, invalid)))
    nan = where(first | ((x.nan | y.nan | z.nan) ^ True), nan, np.int64(quiet_nan(fmt)))
    return select_special(special, number, rho, nan)


@driver
def run_fused(rho: Conversion, first: bool, a: Plane, b: Plane, d: Plane, start: int, stop: int) -> None:
    """d = fma(a_k, b_k, d) for k = start … stop - 1, on codes."""
    m, n = d.shape
    width = b.shape[2]
    for i in range(m):
        for j in range(n):
            code = np.int64(d[i, j])
            for k in range(start, stop):
                code = fused(rho, first, np.int64(a[i, k]), np.int64(b[j // width, k, j % width]), code)
            d[i, j] = code


class StagedKernel(Kernel):
    """sfma, in fp16 or fp32, by its stages."""

    bytes_per_element = 4
    description = "sfma: the stages of the executable encoding, compiled"

    def rows(self, codes: Codes, scales: Codes | None = None) -> Planes:
        return (np.ascontiguousarray(codes),)

    def columns(self, codes: Codes, scales: Codes | None = None) -> Planes:
        return (in_panels(codes),)

    def run(self, a: Planes, b: Planes, d: Codes, start: int, stop: int) -> None:
        p, k = self.spec.parameters, self.spec.k
        assert isinstance(p, Sfma)
        run_fused(p.rho, p.nan is NanRule.FIRST, a[0], b[0], d, start * k, stop * k)


def staged_kernel(spec: DotAdd) -> StagedKernel | None:
    """None where the sum of an fma does not fit in a lane."""
    return StagedKernel(spec) if spec.d_format.storage_bits <= 32 else None
