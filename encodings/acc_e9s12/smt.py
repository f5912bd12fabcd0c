"""acc_e9s12, dpa_e9s12 with a looped accumulator, as bit-vector terms.  Specification: semantics §3.

The accumulator has L = 3 + F bits and those that the carries of all products, and c's two, need; its exponent is that
of E9S12 products, 10 bits, and 0 where it is zero.  Each pass takes it as one more term, of L bits, shifted
right as a signed number.  What is there after the last pass is rounded with ρ.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import NamedTuple

import z3

from mmaformal.encodings.acc_e9s12 import AccE9s12
from mmaformal.encodings.dpa_e9s12.smt import (
    BIAS,
    E9S12,
    EXPONENT_BITS,
    PLACES,
    SIGNIFICAND_BITS,
    multiply,
    place,
    unpack,
)
from mmaformal.encodings.smt.blocks import (
    BitVec,
    ExponentRange,
    Operand,
    Rounded,
    Special,
    Term,
    classify,
    decode,
    encode,
    maximum,
    normalise_and_round,
    quiet_nan,
    resize,
    select_special,
)
from mmaformal.encodings.smt.chain import looped
from mmaformal.spec import DotAdd


class Pass(NamedTuple):
    """The interfaces of one pass."""

    products: tuple[Term, ...]  #: multiply
    e_max: BitVec  #: align
    before: BitVec  #: what was accumulated, shifted
    placed: tuple[BitVec, ...]  #: two's complement, L bits
    partials: tuple[BitVec, ...]  #: accumulate: from what was
    exponent: BitVec


@dataclass(frozen=True)
class AccE9s12Step:
    """The interfaces of all passes, in order."""

    a: tuple[Operand, ...]  #: decode
    b: tuple[Operand, ...]
    c: Operand
    special: Special  #: classify
    passes: tuple[Pass, ...]
    e_max: BitVec  #: of the accumulator; not below ρ's least exponent where it is zero
    rounded: Rounded  #: normalise & round
    result: BitVec  #: encode


def kept(spec: DotAdd, parameters: AccE9s12) -> int:
    """F: fractional bits of the accumulator."""
    products = parameters.D * (4 if spec.a_format.fraction_bits >= SIGNIFICAND_BITS else 1)
    return parameters.accumulator_bits - 3 - (products + 1).bit_length()


def run_pass(terms: Sequence[Term], before: BitVec, exponent: BitVec, F: int, places: int = PLACES) -> Pass:
    """One pass over products, or other terms with so many fractional bits, onto what was accumulated."""
    width = before.size()
    e_max = maximum([exponent, *(p.exponent for p in terms)])
    shifted = before >> resize(e_max - exponent, width)
    placed = tuple(place(p, e_max, F, width, places) for p in terms)
    partials = tuple(accumulate(placed, lambda x, y: x + y, initial=shifted))
    total = partials[-1]
    after = z3.If(total == 0, z3.BitVecVal(0, e_max.size()), e_max)
    return Pass(tuple(terms), e_max, shifted, placed, partials, after)


def step(
    spec: DotAdd, parameters: AccE9s12, a: Sequence[BitVec], b: Sequence[BitVec], c: BitVec
) -> AccE9s12Step:
    rho, fmt, width = parameters.rho, spec.a_format, parameters.accumulator_bits
    a_operands, b_operands = (tuple(decode(each, fmt) for each in codes) for codes in (a, b))
    c_operand = decode(c, spec.c_format)
    factors = list(zip(a_operands, b_operands, strict=True))
    special = classify(factors, [c_operand])

    one = E9S12(
        z3.BitVecVal(0, 1),
        z3.BitVecVal(BIAS, EXPONENT_BITS),
        z3.BitVecVal(1 << (SIGNIFICAND_BITS - 1), SIGNIFICAND_BITS),
        z3.BoolVal(False),
    )
    terms = [multiply(u, one, detects_zeros=True) for u in unpack(c_operand, spec.c_format)]
    total, exponent = z3.BitVecVal(0, width), z3.BitVecVal(0, EXPONENT_BITS + 1)
    passes, F = [], kept(spec, parameters)
    for start in range(0, len(factors), parameters.N):
        for x, y in factors[start : start + parameters.N]:
            terms += [multiply(u, v, detects_zeros=True) for u in unpack(x, fmt) for v in unpack(y, fmt)]
        passes.append(run_pass(terms, total, exponent, F))
        total, exponent, terms = passes[-1].partials[-1], passes[-1].exponent, []

    last, low = passes[-1].e_max, -2 * BIAS
    exponents = ExponentRange(low, low + (1 << EXPONENT_BITS + 1) - 1)
    rounded = normalise_and_round(total, last, exponents, F, rho, low)
    rounded = rounded._replace(sign=z3.If(total == 0, z3.BitVecVal(0, 1), rounded.sign))
    result = select_special(special, encode(rounded, rho), rho.format, quiet_nan(rho.format))
    return AccE9s12Step(
        a_operands,
        b_operands,
        c=c_operand,
        special=special,
        passes=tuple(passes),
        e_max=last,
        rounded=rounded,
        result=result,
    )


dot_add = looped(AccE9s12, lambda spec, p, a, b, c, stages: step(spec, p, a, b, c))
