"""ma_e9s12, multi-addition of E9S12 halves, as bit-vector terms.  Specification: semantics §3; Desrentes et al. §III-D.

Terms have 12 bits, 13 in two's complement, one of them above the point, and exponents of 9 bits.  n of them, kept to F
places below the largest exponent, are added in L = 2 + F + ⌈log2 n⌉ bits: a summand is above −2^(F+1).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import z3

from mmaformal.encodings.acc_e9s12.smt import Pass, run_pass
from mmaformal.encodings.dpa_e9s12.smt import BIAS, E9S12, EXPONENT_BITS, FRACTION, unpack
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
    normalise_and_round,
    quiet_nan,
    select_special,
)
from mmaformal.formats import Format
from mmaformal.rounding import Conversion

#: Exponents of E9S12 numbers.
EXPONENTS = ExponentRange(-BIAS, (1 << EXPONENT_BITS) - 1 - BIAS)


@dataclass(frozen=True)
class MultiAdd:
    """The interfaces of all passes, in order."""

    x: tuple[Operand, ...]  #: decode
    special: Special  #: classify
    halves: tuple[tuple[E9S12, ...], ...]  #: unpack
    passes: tuple[Pass, ...]
    rounded: Rounded  #: normalise & round
    result: BitVec  #: encode


def term_of(x: E9S12) -> Term:
    return Term(x.sign, z3.If(x.zero, z3.BitVecVal(0, EXPONENT_BITS), x.exponent), x.significand)


def _kept(width: int, terms: int) -> int:
    """F: fractional bits of the accumulator, of so many E9S12 terms."""
    return width - 2 - (terms - 1).bit_length()


def multi_add(fmt: Format, N: int, width: int, rho: Conversion, codes: Sequence[BitVec]) -> MultiAdd:
    """The trace of `Σ codes`, of at least two of `fmt`, a multiple of N."""
    x = tuple(decode(code, fmt) for code in codes)
    special = classify([], x)
    halves = tuple(unpack(each, fmt) for each in x)
    terms = [[term_of(half) for half in each] for each in halves]
    F = _kept(width, len(terms) * len(terms[0]))
    total, exponent, passes = z3.BitVecVal(0, width), z3.BitVecVal(0, EXPONENT_BITS), []
    for start in range(0, len(terms), N):
        own = [term for each in terms[start : start + N] for term in each]
        passes.append(run_pass(own, total, exponent, F, FRACTION))
        total, exponent = passes[-1].partials[-1], passes[-1].exponent
    rounded = normalise_and_round(total, passes[-1].e_max, EXPONENTS, F, rho, EXPONENTS.low)
    rounded = rounded._replace(sign=z3.If(total == 0, z3.BitVecVal(0, 1), rounded.sign))
    result = select_special(special, encode(rounded, rho), rho.format, quiet_nan(rho.format))
    return MultiAdd(x, special, halves, tuple(passes), rounded, result)
