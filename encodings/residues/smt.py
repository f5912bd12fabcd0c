"""residues, integers multiplied by their remainders, as bit-vector terms.  Specification: semantics §3.

A remainder of many bits is made of divisions of 16 bits, each of what was left before, with the next byte below it.
Remainders become digits in mixed radix, and these a number of as many bits as P has.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import z3

from mmaformal.encodings import smt
from mmaformal.encodings.residues import PRODUCT_BITS, SUM_BITS, Residues
from mmaformal.encodings.sfma import smt as sfma
from mmaformal.encodings.smt.blocks import (
    BitVec,
    Operand,
    Rounded,
    Special,
    Trace,
    classify,
    decode,
    encode,
    maximum,
    normalise_and_round,
    product_range,
    quiet_nan,
    resize,
    select_special,
    shift_right,
    sum_of,
)
from mmaformal.encodings.smt.chain import looped
from mmaformal.formats import Format
from mmaformal.spec import DotAdd

#: Bits of a remainder, of a modulus, and of a sum of products of remainders.
BYTE, MODULUS, WIDE = 8, 9, SUM_BITS + 1


class FactorWord(NamedTuple):
    """A factor cut to an integer, and its remainders, in 8 bits of two's complement."""

    magnitude: BitVec
    bytes: tuple[BitVec, ...]  #: the lowest first
    left: tuple[tuple[BitVec, ...], ...]  #: of each modulus, of the magnitude, from the top
    remainders: tuple[BitVec, ...]


class SumOfRemainders(NamedTuple):
    """A sum of products of remainders of one modulus, and what it leaves of it with ⌊P/2⌋."""

    total: BitVec  #: 32 bits of two's complement
    bytes: tuple[BitVec, ...]
    left: tuple[BitVec, ...]


class Digit(NamedTuple):
    """A digit in mixed radix: for each modulus before, a difference and what that leaves times the inverse."""

    steps: tuple[tuple[BitVec, BitVec], ...]
    digit: BitVec


class ResiduesStep(NamedTuple):
    """The interfaces of one step, in order."""

    operands: tuple[tuple[Operand, Operand], ...]
    special: Special
    tops: tuple[BitVec, BitVec]  #: the largest exponent fields
    a: tuple[FactorWord, ...]
    b: tuple[FactorWord, ...]
    sums: tuple[SumOfRemainders, ...]
    digits: tuple[Digit, ...]
    wholes: tuple[BitVec, ...]  #: the number of the digits, from the last one on
    total: BitVec  #: less ⌊P/2⌋, in two's complement
    exponent: BitVec
    rounded: Rounded
    dot: BitVec  #: the code of the sum
    one: BitVec
    addition: Trace[sfma.SfmaStep]
    result: BitVec


def left_of(x: BitVec, modulus: int) -> BitVec:
    """x mod a modulus of at most 256, in 8 bits."""
    return resize(z3.URem(x, z3.BitVecVal(modulus, x.size())), BYTE)


def bytes_of(x: BitVec) -> tuple[BitVec, ...]:
    """The bytes of a number, the lowest first."""
    whole = resize(x, -(-x.size() // BYTE) * BYTE)
    return tuple(z3.Extract(low + BYTE - 1, low, whole) for low in range(0, whole.size(), BYTE))


def _divide(parts: Sequence[BitVec], modulus: int) -> tuple[BitVec, ...]:
    """The remainders of the number of these bytes, byte by byte from the top."""
    found: list[BitVec] = []
    for each in reversed(parts):
        above = found[-1] if found else z3.BitVecVal(0, BYTE)
        found.append(left_of(z3.Concat(above, each), modulus))
    return tuple(found)


def next_to_zero(sign: BitVec, left: BitVec, modulus: int) -> BitVec:
    """The remainder of ±x that is next to zero, −128 and not 128; x leaves `left`."""
    wide = resize(left, MODULUS + 1)
    twice = 2 * wide
    plus = z3.If(z3.UGE(twice, modulus), wide - modulus, wide)
    minus = z3.If(z3.UGT(twice, modulus), modulus - wide, -wide)
    return resize(z3.If(sign == 1, minus, plus), BYTE)


def word(x: Operand, largest: BitVec, fmt: Format, p: Residues) -> FactorWord:
    shifted = shift_right(x.significand, largest - x.field)
    magnitude = z3.Extract(fmt.fraction_bits, fmt.fraction_bits + 1 - p.bits, shifted)
    parts = bytes_of(magnitude)
    left = tuple(_divide(parts, each) for each in p.moduli)
    signed = (next_to_zero(x.sign, r[-1], each) for r, each in zip(left, p.moduli, strict=True))
    return FactorWord(magnitude, parts, left, tuple(signed))


def positive(total: BitVec, t: int, p: Residues) -> BitVec:
    """A sum, ⌊P/2⌋ mod p_t, and K · 2^14 rounded up to a multiple of p_t: not negative."""
    bound, modulus = p.products << PRODUCT_BITS, p.moduli[t]
    more = -(-bound // modulus) * modulus + p.offset % modulus
    return resize(z3.SignExt(2, total) + more, (bound + more).bit_length())


def sum_of_remainders(
    a: Sequence[FactorWord], b: Sequence[FactorWord], t: int, p: Residues
) -> SumOfRemainders:
    extend = WIDE - BYTE
    total = sum_of(
        [
            z3.SignExt(extend, u.remainders[t]) * z3.SignExt(extend, v.remainders[t])
            for u, v in zip(a, b, strict=True)
        ]
    )
    parts = bytes_of(positive(total, t, p))
    return SumOfRemainders(total, parts, _divide(parts, p.moduli[t]))


def less(x: BitVec, digit: BitVec, modulus: int) -> BitVec:
    """x − digit, and a multiple of the modulus."""
    return resize(x, 2 * BYTE) - resize(digit, 2 * BYTE) + (256 // modulus + 1) * modulus


def times(x: BitVec, inverse: BitVec | int) -> BitVec:
    """A remainder times an inverse."""
    return resize(x, 2 * BYTE) * inverse


def digits(left: Sequence[BitVec], p: Residues) -> tuple[Digit, ...]:
    """The digits, in mixed radix, of the number below P that leaves these remainders (Garner)."""
    found: list[Digit] = []
    for t, modulus in enumerate(p.moduli):
        steps: list[tuple[BitVec, BitVec]] = []
        for s in range(t):
            x, inverse = steps[-1][1] if steps else left[t], pow(p.moduli[s], -1, modulus)
            difference = left_of(less(x, found[s].digit, modulus), modulus)
            steps.append((difference, left_of(times(difference, inverse), modulus)))
        found.append(Digit(tuple(steps), steps[-1][1] if steps else left[t]))
    return tuple(found)


def with_digit(whole: BitVec, digit: BitVec, modulus: int) -> BitVec:
    """The number whose digits are those of `whole`, times the modulus, and one below."""
    return whole * modulus + resize(digit, whole.size())


def put_together(found: Sequence[BitVec], p: Residues) -> tuple[BitVec, ...]:
    """The number of the last digit, of the last two, …, of all."""
    wholes = [resize(found[-1], max(p.whole.bit_length(), BYTE))]
    for modulus, digit in zip(reversed(p.moduli[:-1]), reversed(found[:-1]), strict=True):
        wholes.append(with_digit(wholes[-1], digit, modulus))
    return tuple(wholes)


def less_half(whole: BitVec, p: Residues) -> BitVec:
    """A number below P less ⌊P/2⌋, in two's complement."""
    return resize(whole, whole.size() + 1) - p.offset


def step(spec: DotAdd, p: Residues, a: Sequence[BitVec], b: Sequence[BitVec], c: BitVec) -> ResiduesStep:
    """One step over `p.products` products."""
    rho, fmt = p.rho, p.rho.format
    x, y = [decode(code, spec.a_format) for code in a], [decode(code, spec.b_format) for code in b]
    pairs = tuple(zip(x, y, strict=True))
    special = classify(pairs, [])
    tops = maximum([each.field for each in x]), maximum([each.field for each in y])
    of_a = tuple(word(each, tops[0], spec.a_format, p) for each in x)
    of_b = tuple(word(each, tops[1], spec.b_format, p) for each in y)
    sums = tuple(sum_of_remainders(of_a, of_b, t, p) for t in range(len(p.moduli)))
    found = digits([each.left[-1] for each in sums], p)
    wholes = put_together([each.digit for each in found], p)
    total, exponents = less_half(wholes[-1], p), product_range(spec.a_format, spec.b_format)
    exponent = exponents.from_field(
        resize(tops[0], exponents.bits) + resize(tops[1], exponents.bits),
        spec.a_format.bias + spec.b_format.bias,
    )
    rounded = normalise_and_round(total, exponent, exponents, 2 * p.bits - 2, rho, exponents.low)
    rounded = rounded._replace(sign=z3.If(total == 0, z3.BitVecVal(0, 1), rounded.sign))
    dot = select_special(special, encode(rounded, rho), fmt, quiet_nan(fmt))
    one = z3.BitVecVal(fmt.bias << fmt.fraction_bits, fmt.storage_bits)
    addition = smt.dot_add(p.addition, [one], [dot], c)
    return ResiduesStep(
        pairs,
        special,
        tops,
        of_a,
        of_b,
        sums,
        found,
        wholes,
        total,
        exponent,
        rounded,
        dot,
        one,
        addition,
        addition.result,
    )


dot_add = looped(Residues, lambda spec, p, a, b, c, stages: step(spec, p, a, b, c))
