"""ma_e9s12, multi-addition of E9S12 halves, executable.  Specification: semantics §3; Desrentes et al. §III-D, §IV-D b.

`ρ(φ(Σ x_i))`, a sum of codes without products: fp16 and bf16 terms are one E9S12 number each, fp32 terms two.  They
are aligned and accumulated as acc_e9s12's products are, in passes of N terms; a term's significand, with zeros below,
stands in a product's place.  L = 2 + F + the bits that carries need: a term has one bit above the point, not two.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

from mmaformal.encodings.acc_e9s12.executable import Pass, run_pass
from mmaformal.encodings.dpa_e9s12.executable import BELOW, BIAS, E9S12, FRACTION, carries, unpack
from mmaformal.encodings.executable import limbs
from mmaformal.encodings.executable.blocks import (
    Lane,
    Operand,
    Rounded,
    Special,
    Sum,
    Term,
    classify_addend,
    decode,
    encode,
    merge_special,
    quiet_nan,
    resolve_special,
    round_sum,
    select_special,
    where,
)
from mmaformal.formats import Format
from mmaformal.rounding import Conversion


@dataclass(frozen=True)
class MultiAdd:
    """The interfaces of all passes, in order."""

    x: tuple[Operand, ...]  #: decode
    special: Special  #: classify
    halves: tuple[tuple[E9S12, ...], ...]  #: unpack
    passes: tuple[Pass, ...]
    total: Sum
    rounded: Rounded  #: normalise & round
    result: Lane  #: encode


def term_of(x: E9S12) -> Term:
    """The number as a term with 2 · 11 fractional bits; of one that is zero, the exponent is 0."""
    return Term(x.sign, where(x.zero, 0, x.exponent), x.significand << FRACTION)


def multi_add(fmt: Format, N: int, width: int, rho: Conversion, codes: Sequence[Lane]) -> MultiAdd:
    """The trace of `Σ codes`, of at least two of `fmt`, a multiple of N."""
    x = tuple(decode(code, fmt.layout) for code in codes)
    special = resolve_special(reduce(merge_special, map(classify_addend, x)))
    halves = tuple(unpack(each, fmt) for each in x)
    F = width - 2 - carries(len(halves) * len(halves[0]))
    zero = x[0].sign * 0
    total, exponent, passes = limbs.Wide(zero, zero), zero, []
    for start in range(0, len(x), N):
        terms = [term_of(half) for each in halves[start : start + N] for half in each]
        passes.append(run_pass(terms, total, exponent, F))
        total, exponent = passes[-1].partials[-1], passes[-1].exponent
    narrowed = limbs.narrow(total, passes[-1].e_max - BIAS - F - BELOW)
    rounded = round_sum(narrowed, zero, rho)
    result = select_special(special, encode(rounded, rho), rho, quiet_nan(rho.format))
    return MultiAdd(x, special, halves, tuple(passes), narrowed, rounded, result)
