"""sfma, sequential fused multiply-add, as bit-vector terms.  Specification: semantics §3; MMA-Sim §IV-A.

One fma in a format of p significand bits, rounded once.  Product and c are aligned to the larger of their exponents,
and `frame_bits(p)` = 2p + 1 fractional bits are kept, the last one sticky: 49 for fp32, 107 for fp64; product and c
themselves have 2p - 2 and p - 1.  Let e be the larger exponent.

- *c loses bits.*  Then e is the product's, and the distance is more than p + 2.  The product is not zero (it would
  have the least exponent), and one of its factors is normal (or e would be 2·e_min, below c's), so it is at least
  2^(e-p+1), and |c| < 2^(e-p-1) is less than half of that.  The sum is above 2^(e-p), and ρ distinguishes what lies
  between multiples of 2^(e-2p), the place above the sticky one.
- *The product loses bits.*  Then e is c's and the distance is at least 4; c is normal, or has the least exponent, below
  which ρ keeps no more places; the product is less than 2^(e-2), and ρ looks no further down than 2^(e-p-1).
- What does not lose bits is a multiple of the place above the sticky one, so the sum is odd, and on the right side,
  where something was lost.

One place less does not suffice: for the least sum above, half a last place would be the sticky place itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import z3

from mmaformal.encodings.sfma import Sfma
from mmaformal.encodings.smt.blocks import (
    BitVec,
    ExponentRange,
    Operand,
    Rounded,
    Special,
    StickySum,
    Term,
    encode,
    exponent_range,
    multiply,
    normalise_and_round,
    product_range,
    quiet_nan,
    select_special,
    sign_of_zero,
)
from mmaformal.encodings.smt.chain import looped
from mmaformal.encodings.smt.stages import Code, Stages
from mmaformal.formats import Format
from mmaformal.rounding import Conversion, NanRule


class SfmaStep(NamedTuple):
    """The interfaces between the stages of one fma, in order."""

    codes: tuple[BitVec, BitVec, BitVec]  #: of a, b and c
    a: Operand  #: decode
    b: Operand
    c: Operand
    special: Special  #: classify
    product: Term  #: multiply; a zero has the least exponent of c
    addend: Term
    sum: StickySum  #: align, accumulate
    rounded: Rounded  #: normalise & round
    number: BitVec  #: encode; the code where no operand is special
    result: BitVec


def frame_bits(precision: int) -> int:
    """Fractional bits kept at the alignment, of a format of `precision` significand bits."""
    return 2 * precision + 1


def exponents_of(fmt: Format) -> ExponentRange:
    """From the least exponent of a product to the greatest; c's are among them."""
    c = exponent_range(fmt)
    return product_range(fmt, fmt).union(c.low, c.high)


def nan_of(rule: NanRule, fmt: Format, nans: Sequence[tuple[BitVec, Operand]]) -> BitVec:
    """The NaN that an fma of these operands gives, where it gives one: in the order of the rule."""
    default = quiet_nan(fmt) | (fmt.sign_mask if rule.default_is_negative else 0)
    nan = z3.BitVecVal(default, fmt.storage_bits)
    for code, x in reversed(nans):
        nan = z3.If(x.nan, code | (1 << (fmt.fraction_bits - 1)), nan)
    return nan


def step(
    rho: Conversion,
    a: BitVec,
    b: BitVec,
    c: BitVec,
    nan: NanRule = NanRule.ANY,
    stages: Stages | None = None,
) -> SfmaStep:
    """`fma(a, b, c)` of three codes of ρ's format, an IEEE one; rounded with ρ, subnormals kept.

    An exact zero is +0 unless the product and c are both −0.
    """
    fmt = rho.format
    M, frame = fmt.fraction_bits, frame_bits(fmt.fraction_bits + 1)
    stages = Stages() if stages is None else stages
    x, y, z = (stages.decode(code, fmt) for code in (a, b, c))
    special = stages.classify([(x, y)], [z])

    exponents, lowest = exponents_of(fmt), fmt.min_exponent
    exact = multiply(x, y, 2 * fmt.bias, exponents, e_zero=lowest)
    product = stages.made("multiply", [x, y], exact, low=exponents.low)
    c_term = stages.addend(z, fmt.bias, exponents)

    sum_ = stages.sticky_sum(product, 2 * M, c_term, M, frame, exponents)
    rounded = normalise_and_round(sum_.total, sum_.e_max, exponents, frame, rho, lowest)
    zero = sign_of_zero([product.sign, c_term.sign], rho)
    sign = z3.If(sum_.total == 0, zero, rounded.sign)
    rounded = rounded._replace(sign=sign)
    number = encode(rounded, rho)
    nans = [{"a": (a, x), "b": (b, y), "c": (c, z)}[name] for name in nan.order]
    result = select_special(special, number, fmt, nan_of(nan, fmt, nans))
    made = Code(sum_.total, rounded, number if nans else result)
    stages.round_sum(sum_, (product, c_term), None if nans else special, made, rho)
    if nans:
        stages.code("select", [number, special, *(part for pair in nans for part in pair)], result, fmt)
    return SfmaStep(
        (a, b, c),
        x,
        y,
        c=z,
        special=special,
        product=product,
        addend=c_term,
        sum=sum_,
        rounded=rounded,
        number=number,
        result=result,
    )


dot_add = looped(Sfma, lambda spec, p, a, b, c, stages: step(p.rho, a[0], b[0], c, p.nan, stages))
