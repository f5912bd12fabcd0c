"""sfma, sequential fused multiply-add, as bit-vector terms.  Specification: semantics §3; seed 000 §IV-A.

One fma in a format of p significand bits, rounded once: the exact product, 2p bits, is the wide number of
`wide.add_to_wide`.  Nonzero, it has at least p bits when c leaves the window below: c's last place, at least
2^(e_min - (p-1)), then is below the product's, 2^(e_a + e_b - 2(p-1)), which both factors being subnormal would put
at 2^(2·e_min - 2(p-1)); so one of them is normal, and its significand alone is at least 2^(p-1).  Hence 3 places
below are enough, and 3p + 5 in all: 77 for fp32, 164 for fp64, of which only c is shifted; a carry and a sign more.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import z3

from mmaformal.algorithms import Conversion, DotAdd, Sfma
from mmaformal.encodings.smt.blocks import (
    BitVec,
    ExponentRange,
    Operand,
    Rounded,
    Special,
    Term,
    Trace,
    addend,
    classify,
    decode,
    encode,
    exponent_range,
    multiply,
    normalise_and_round,
    product_range,
    quiet_nan,
    select_special,
)
from mmaformal.encodings.smt.wide import add_to_wide, places_above, places_below


@dataclass(frozen=True)
class Step:
    """The interfaces between the stages of one fma, in order."""

    a: Operand  #: decode
    b: Operand
    c: Operand
    special: Special  #: classify
    product: Term  #: multiply; its exponent is that of the window's highest place
    addend: Term
    e_top: BitVec  #: align
    total: BitVec  #: accumulate: two's complement, relative to the product's sign
    rounded: Rounded  #: normalise & round
    result: BitVec  #: encode


def step(rho: Conversion, a: BitVec, b: BitVec, c: BitVec) -> Step:
    """`fma(a, b, c)` of three codes of ρ's format, an IEEE one; rounded with ρ, subnormals kept.

    An exact zero is +0 unless the product and c are both −0.
    """
    fmt = rho.format
    precision = fmt.fraction_bits + 1
    above, below = places_above(precision), places_below(precision, precision)
    x, y, z = (decode(code, fmt) for code in (a, b, c))
    special = classify([(x, y)], [z])

    # The product's highest place is 2^(e+1); `above` places over it is the window's.
    products, singles = product_range(fmt, fmt), exponent_range(fmt)
    window = ExponentRange(products.low + 1 + above, products.high + 1 + above)
    exponents = window.union(singles.low, singles.high)
    product = multiply(x, y, 2 * fmt.bias - 1 - above, exponents, e_zero=exponents.low)
    c_term = addend(z, fmt.bias, exponents, e_zero=None)

    relative = c_term._replace(sign=product.sign ^ c_term.sign)
    total, e_top, F = add_to_wide(
        z3.ZeroExt(1, product.significand), product.exponent, relative, above, below
    )
    rounded = normalise_and_round(total, e_top, exponents, F, rho, singles.low, sign=product.sign)
    code = encode(rounded, rho)
    zero_sign = product.sign & c_term.sign
    zero = z3.Concat(zero_sign, z3.BitVecVal(0, fmt.storage_bits - 1))
    result = select_special(special, z3.If(total == 0, zero, code), fmt, quiet_nan(fmt))
    return Step(x, y, z, special, product, c_term, e_top, total, rounded, result)


def dot_add(spec: DotAdd, a: Sequence[BitVec], b: Sequence[BitVec], c: BitVec) -> Trace[Step]:
    """The trace of `c + Σ a_k·b_k`: `a` and `b` are K codes each, c one."""
    parameters = spec.parameters
    assert isinstance(parameters, Sfma)
    steps = []
    for x, y in zip(a, b, strict=True):
        steps.append(step(parameters.rho, x, y, c))
        c = steps[-1].result
    return Trace(tuple(steps), c)


__all__ = ["Step", "Trace", "dot_add", "step"]
