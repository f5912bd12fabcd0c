"""The kinds of codes, said once for terms and for arrays of codes alike; and how large a case of terms is.

A relation between codes, or a class of them, is asked of solvers and looked for among many cases: both read the same
definition.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
import z3
from numpy.typing import NDArray

from mmaformal.encodings.executable.blocks import quiet_nan
from mmaformal.formats import Format, Specials

#: A code, or a fact about one: a term, or an array; what is made of a term is one.
CodeOrFact: TypeAlias = z3.BitVecRef | NDArray[np.uint64]
Fact: TypeAlias = z3.BoolRef | NDArray[np.bool_]


# ---- facts -------------------------------------------------------------------------------------------------------


def select(fact: Fact, x: CodeOrFact, y: CodeOrFact) -> CodeOrFact:
    """x where the fact is true, else y."""
    if isinstance(fact, z3.BoolRef):
        return z3.If(fact, x, y)
    return np.where(fact, x, y)


def both(*facts: Fact) -> Fact:
    return z3.And(facts) if any(isinstance(x, z3.BoolRef) for x in facts) else np.logical_and.reduce(facts)


def either(*facts: Fact) -> Fact:
    return z3.Or(facts) if any(isinstance(x, z3.BoolRef) for x in facts) else np.logical_or.reduce(facts)


def negation(fact: Fact) -> Fact:
    return z3.Not(fact) if isinstance(fact, z3.BoolRef) else np.logical_not(fact)


def _never(code: CodeOrFact) -> Fact:
    return z3.BoolVal(False) if isinstance(code, z3.BitVecRef) else np.zeros(np.shape(code), np.bool_)


# ---- fields ------------------------------------------------------------------------------------------------------


def _field(code: CodeOrFact, low: int, bits: int) -> CodeOrFact:
    if isinstance(code, z3.BitVecRef):
        return z3.Extract(low + bits - 1, low, code)
    return code >> low & (1 << bits) - 1


def exponent_field(code: CodeOrFact, fmt: Format) -> CodeOrFact:
    return _field(code, fmt.ignored_low_bits + fmt.fraction_bits, fmt.exponent_bits)


def fraction_field(code: CodeOrFact, fmt: Format) -> CodeOrFact:
    """The trailing significand; a format without one (ue8m0) has a zero bit instead."""
    if not fmt.fraction_bits and isinstance(code, z3.BitVecRef):
        return z3.BitVecVal(0, 1)
    return _field(code, fmt.ignored_low_bits, fmt.fraction_bits)


def magnitude_field(code: CodeOrFact, fmt: Format) -> CodeOrFact:
    """Exponent and trailing significand as one unsigned number, which orders finite magnitudes."""
    return _field(code, fmt.ignored_low_bits, fmt.fraction_bits + fmt.exponent_bits)


def magnitude(code: CodeOrFact, fmt: Format) -> CodeOrFact:
    """The code without its sign and without the storage bits that the unit ignores."""
    ones = (1 << (fmt.exponent_bits + fmt.fraction_bits)) - 1
    return code & (ones << fmt.ignored_low_bits)


def exponent(codes: NDArray[np.uint64], fmt: Format) -> NDArray[np.int64]:
    """Return the exponent that the fields of codes, in any words, say; a subnormal's is the least normal one's."""
    field = np.asarray(exponent_field(codes.astype(np.int64), fmt))
    return np.asarray(np.maximum(field, 1) - fmt.bias, np.int64)


# ---- what a code is ----------------------------------------------------------------------------------------------


def opposite_code(code: int, fmt: Format) -> int:
    """The code of the opposite number; 0 where a format has no −0, and a number that has no opposite stays."""
    if fmt.is_integer:
        return -code % fmt.codes
    return code if code == 0 and not fmt.has_minus_zero else code ^ fmt.sign_mask


def some_nan(fmt: Format) -> int:
    """The code that stands for every NaN of a format of results: its only one, or `quiet_nan`."""
    return quiet_nan(fmt) if fmt.one_nan is None else fmt.one_nan


def is_zero(code: CodeOrFact, fmt: Format) -> Fact:
    if not fmt.has_zero:
        return _never(code)
    if fmt.is_integer:
        return code == 0
    zero = magnitude_field(code, fmt) == 0
    if fmt.signed and not fmt.has_minus_zero:
        return both(zero, negation(is_nan(code, fmt)))
    return zero


def is_nan(code: CodeOrFact, fmt: Format) -> Fact:
    """Whether a code is a NaN."""
    top = exponent_field(code, fmt) == (1 << fmt.exponent_bits) - 1
    fraction = fraction_field(code, fmt)
    if not fmt.has_zero:
        return top
    if fmt.specials == Specials.IEEE:
        return both(top, fraction != 0)
    if fmt.specials == Specials.FN:
        return both(top, fraction == (1 << fmt.fraction_bits) - 1)
    if fmt.specials in (Specials.FNUZ, Specials.NUZ, Specials.TOP):
        return code == (fmt.sign_mask or fmt.codes - 1)
    return _never(code)


def is_infinite(code: CodeOrFact, fmt: Format) -> Fact:
    if fmt.infinity is None:
        return _never(code)
    if fmt.specials != Specials.IEEE:
        return magnitude_field(code, fmt) == fmt.infinity
    top = exponent_field(code, fmt) == (1 << fmt.exponent_bits) - 1
    return both(top, fraction_field(code, fmt) == 0)


def is_finite(code: CodeOrFact, fmt: Format) -> Fact:
    return negation(either(is_nan(code, fmt), is_infinite(code, fmt)))


def same_code(x: CodeOrFact, y: CodeOrFact, fmt: Format) -> Fact:
    """Say that x and y are one code, a NaN's payload aside."""
    return either(x == y, both(is_nan(x, fmt), is_nan(y, fmt)))


def same_number(x: CodeOrFact, y: CodeOrFact, fmt: Format) -> Fact:
    """Say that x and y are one code, a NaN's payload and the sign of a zero aside."""
    zeros = both(magnitude(x, fmt) == 0, magnitude(y, fmt) == 0)
    return either(x == y, both(is_nan(x, fmt), is_nan(y, fmt)), zeros)


# ---- how large a case of terms is, for minimal witnesses ---------------------------------------------------------


def sum_at_most(terms: Sequence[z3.BitVecRef], bound: int) -> list[z3.BoolRef]:
    """The sum of unsigned terms is at most `bound`.  A bound of 0 is said term by term, which simplifies further."""
    if bound == 0:
        return [term == 0 for term in terms]
    # Wide enough that neither the sum of the terms nor the bound wraps.
    bits = max([bound.bit_length(), *(len(terms).bit_length() + term.size() for term in terms)])
    total = z3.BitVecVal(0, bits)
    for term in terms:
        total = total + z3.ZeroExt(bits - term.size(), term)
    return [z3.ULE(total, z3.BitVecVal(bound, bits))]


def significand_bits(code: z3.BitVecRef, fmt: Format) -> list[z3.BitVecRef]:
    """The bits of the trailing significand, or of an integer but its sign, to be counted."""
    fraction: z3.BitVecRef = (magnitude_field if fmt.is_integer else fraction_field)(code, fmt)
    return [z3.Extract(i, i, fraction) for i in range(fraction.size())]


def sign_bit(code: z3.BitVecRef, fmt: Format) -> z3.BitVecRef:
    """1 for a minus sign; 0 for formats that have none."""
    top = fmt.storage_bits - 1
    return z3.Extract(top, top, code) if fmt.signed else z3.BitVecVal(0, 1)


def exponent_distance(code: z3.BitVecRef, fmt: Format) -> z3.BitVecRef:
    """|exponent| as read off the fields, 0 for zero and for integers."""
    bits = fmt.exponent_bits + 1
    if fmt.is_integer:
        return z3.BitVecVal(0, bits)
    field = z3.ZeroExt(1, exponent_field(code, fmt))
    if fmt.has_zero:
        field = z3.If(field == 0, z3.BitVecVal(1, bits), field)
    bias = z3.BitVecVal(fmt.bias, bits)
    distance = z3.If(z3.UGE(field, bias), field - bias, bias - field)
    return z3.If(is_zero(code, fmt), z3.BitVecVal(0, bits), distance)


def one_nan(d: NDArray[np.uint64], fmt: Format) -> NDArray[np.uint64]:
    """Codes, all NaNs the same one."""
    return np.where(np.asarray(is_nan(d.astype(np.int64), fmt)), np.uint64(some_nan(fmt)), d)
