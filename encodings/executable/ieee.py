"""IEEE 754 addition and conversion of codes, on integer lanes."""

from __future__ import annotations

from typing import NamedTuple

from mmaformal.encodings.executable.blocks import (
    Lane,
    Operand,
    Rounded,
    Special,
    Sum,
    add,
    classify_addend,
    decode,
    encode,
    merge_special,
    quiet_nan,
    resolve_special,
    round_sum,
    select_special,
    signed,
    sum_sign,
    term,
)
from mmaformal.formats import Format
from mmaformal.rounding import IEEE_FP16, IEEE_FP32, IEEE_FP64, Conversion

IEEE = {rho.format.name: rho for rho in (IEEE_FP16, IEEE_FP32, IEEE_FP64)}


class Addition(NamedTuple):
    """The interfaces of one IEEE addition of two codes."""

    x: Operand  #: decode
    y: Operand
    special: Special  #: classify
    total: Sum  #: align, accumulate
    rounded: Rounded  #: normalise & round
    result: Lane  #: encode


def ieee_add(x_code: Lane, y_code: Lane, rho: Conversion, nan: int) -> Addition:
    """The IEEE 754 sum of two codes of ρ's format (16 or 32 bits), rounded with ρ."""
    target = rho.format
    x, y = decode(x_code, target.layout), decode(y_code, target.layout)
    special = resolve_special(merge_special(classify_addend(x), classify_addend(y)))
    bits = target.fraction_bits
    # z = 0: a subnormal term, or zero, has the least exponent there is.
    total = add(term(x), bits, term(y), bits, bits + 3)
    rounded = round_sum(total, sum_sign(rho, x.sign, y.sign), rho)
    return Addition(x, y, special, total, rounded, select_special(special, encode(rounded, rho), rho, nan))


def convert(code: Lane, source: Format, rho: Conversion, shift: Lane = 0) -> Lane:
    """The code of 2^shift times the number that a code of `source` is, rounded with ρ; a NaN is `quiet_nan`.

    |significand| < 2^(M+1) of `source`; exponents may be any, since `normalise_and_round` brings its shifts in range.
    """
    x = decode(code, source.layout)
    total = Sum(signed(x.sign, x.significand), x.exponent - source.fraction_bits + shift)
    number = encode(round_sum(total, x.sign, rho), rho)
    special = resolve_special(classify_addend(x))
    return select_special(special, number, rho, quiet_nan(rho.format))


def convert_exactly(code: Lane, source: Format, target: Format) -> Lane:
    """The code in `target` (fp16, fp32 or fp64, or `source`) of a code in `source`, all of whose values it holds."""
    return code if source == target else convert(code, source, IEEE[target.name])
