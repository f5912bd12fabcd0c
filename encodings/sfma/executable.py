"""sfma, sequential fused multiply-add, executable.  Specification: semantics §3; MMA-Sim §IV-A (SFMA).

`d = c`, then `d = fma(a_k, b_k, d)` for k = 0 … K-1, each the exact `a_k·b_k + d` rounded once with ρ; special
values and the sign of zero as IEEE 754: an exact zero is +0 unless product and addend are both -0.  A NaN is as the
`NanRule` says.

The exact product of two significands of M fractional bits has 2M.  It and the addend are added in a frame of
2M + 3 fractional bits under the larger exponent (`blocks.add`, with z = M: of a product of exponent e that is the
top term, at most one factor is subnormal, so it is at least 2^(e-M); if both are, it is so small that the addend is
the top term).  A zero product, like a zero addend, has the least exponent of ρ.  For fp32 the frame has 49 bits and
a lane does; for fp64, 107 bits, it takes two limbs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mmaformal.encodings.executable import limbs
from mmaformal.encodings.executable.blocks import (
    Lane,
    Operand,
    Rounded,
    Special,
    Sum,
    Term,
    add,
    encode,
    is_zero,
    multiply,
    quiet_nan,
    round_sum,
    select_special,
    sign_word,
    sum_sign,
    where,
    with_zero_exponent,
)
from mmaformal.encodings.executable.chain import looped
from mmaformal.encodings.executable.stages import Code, Stages
from mmaformal.encodings.sfma import Sfma
from mmaformal.formats import Format
from mmaformal.rounding import Conversion, NanRule


@dataclass(frozen=True)
class SfmaStep:
    """The interfaces between the stages of one fma, in order."""

    a: Operand  #: decode
    b: Operand
    c: Operand
    special: Special  #: classify
    product: Term | limbs.WideTerm  #: multiply
    addend: Term
    total: Sum  #: align, accumulate
    long: limbs.LongProduct | None  #: how product and total came about, where a lane is too short
    wide: limbs.WideSum | None
    rounded: Rounded  #: normalise & round
    result: Lane  #: encode


def step(
    rho: Conversion,
    a: Lane,
    b: Lane,
    c: Lane,
    rule: NanRule = NanRule.ANY,
    stages: Stages | None = None,
) -> SfmaStep:
    """`fma(a, b, c)` of three codes of ρ's format, an IEEE one; rounded with ρ, subnormals kept."""
    bits = rho.format.fraction_bits
    stages = Stages() if stages is None else stages
    x, y, z = (stages.decode(code, rho.format) for code in (a, b, c))
    special = stages.classify([(x, y)], [z])

    frame, least = 2 * bits + 3, rho.format.min_exponent
    product: Term | limbs.WideTerm
    long: limbs.LongProduct | None = None
    wide: limbs.WideSum | None = None
    if frame + 3 <= 61:  # two terms below 2^(frame + 2) add up to a `Sum`
        product = with_zero_exponent(multiply(x, y), least)
    else:
        long = limbs.multiply(x.significand, y.significand, frame - 2 * bits)
        exponent = where(is_zero(x) | is_zero(y), least, x.exponent + y.exponent)
        product = limbs.WideTerm(x.sign ^ y.sign, exponent, long.product)

    stages.made("multiply", [x, y], product, long=long, shift=frame - 2 * bits)
    addend = stages.addend(z)
    if isinstance(product, Term):
        total = add(product, 2 * bits, addend, bits, frame)
    else:
        wide = limbs.add_term(product, addend, bits, frame)
        total = wide.narrowed
    stages.made("sticky_sum", [product, addend], total, wide=wide)

    rounded = round_sum(total, sum_sign(rho, product.sign, addend.sign), rho)
    number, signs = encode(rounded, rho), [product, addend]
    nans = [{"a": (a, x), "b": (b, y), "c": (c, z)}[name] for name in rule.order]
    result = select_special(special, number, rho, _nan_of(rule, rho.format, nans))
    if rule.order:
        stages.made("round_sum", [total, *signs], Code(total.total, rounded, number), rho=rho)
        stages.code(
            "select", [number, special, *(part for pair in nans for part in pair)], result, rho.format
        )
    else:
        stages.made("round_sum", [total, *signs, special], Code(total.total, rounded, result), rho=rho)
    return SfmaStep(
        x,
        y,
        c=z,
        special=special,
        product=product,
        addend=addend,
        total=total,
        long=long,
        wide=wide,
        rounded=rounded,
        result=result,
    )


def _nan_of(rule: NanRule, fmt: Format, nans: Sequence[tuple[Lane, Operand]]) -> Lane:
    """The NaN that an fma of these operands gives, where it gives one: in the order of the rule."""
    nan: Lane = quiet_nan(fmt) + (sign_word(fmt) if rule.default_is_negative else 0)
    for code, x in reversed(nans):
        nan = where(x.nan, code | 1 << (fmt.fraction_bits - 1), nan)
    return nan


dot_add = looped(
    lambda spec, a, b, c, stages: step(
        spec.parameters_as(Sfma).rho, a[0], b[0], c, spec.parameters_as(Sfma).nan, stages
    )
)
