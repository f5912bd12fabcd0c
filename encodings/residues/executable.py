"""residues, integers multiplied by their remainders, executable.  Specification: semantics §3.

1. With e the largest exponent of all a of the step, a word is |a| / 2^(e + 1 − bits), cut to an integer; so of b.
2. Remainders of a word are taken byte by byte from the top, r ← (256·r + byte) mod p.  That of at most 16 bits is made
   by a multiplication (`remainder`).  That of a negative word is p less, and those above (p − 1)/2 are −p more:
   from −128 to 127.
3. Of each modulus, the products of remainders are added: |sum| ≤ K · 2^14 < 2^31.  What it leaves of ⌊P/2⌋ + sum is
   taken byte by byte again, of the sum and a multiple of p that makes it positive.
4. These remainders are put together in mixed radix (Garner): digit t is ((u_t − digit_0)/p_0 − digit_1)/p_1 …, each
   division by the inverse modulo p_t; Σ digit_t · p_0 … p_(t−1), less ⌊P/2⌋, is the sum.  It has parts of 40 bits.
5. It is rounded with ρ, and c is added as by an fma of it and 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import NamedTuple

from mmaformal.encodings import executable
from mmaformal.encodings.executable import limbs
from mmaformal.encodings.executable.blocks import (
    AnyExecutableStep,
    Lane,
    Operand,
    Rounded,
    Special,
    Sum,
    Trace,
    clamp,
    classify_product,
    decode,
    encode,
    maximum,
    merge_special,
    quiet_nan,
    resolve_special,
    round_sum,
    select_special,
    where,
)
from mmaformal.encodings.executable.chain import looped
from mmaformal.encodings.residues import PRODUCT_BITS, Residues
from mmaformal.formats import Format
from mmaformal.spec import DotAdd

#: Bits of a part of a sum that is put together, and the scale of the reciprocals that make remainders.
PART, SCALE = 40, 24
_MASK = (1 << PART) - 1


class ByteRemainders(NamedTuple):
    """The remainders of a number, byte by byte from the top."""

    parts: tuple[Lane, ...]  #: r ← (256·r + byte) mod p

    @property
    def left(self) -> Lane:
        return self.parts[-1]


class FactorWord(NamedTuple):
    """A factor cut to an integer, and its remainders, as int8 holds them."""

    magnitude: Lane
    bytes: tuple[Lane, ...]  #: the lowest first
    left: tuple[ByteRemainders, ...]  #: of each modulus
    remainders: tuple[Lane, ...]


class SumOfRemainders(NamedTuple):
    """A sum of products of remainders of one modulus, and what it leaves of it with ⌊P/2⌋."""

    products: tuple[Lane, ...]
    total: Lane  #: as int32 holds it
    bytes: tuple[Lane, ...]
    division: ByteRemainders


class Digit(NamedTuple):
    """A digit in mixed radix: for each modulus before, a difference and what that leaves times the inverse."""

    steps: tuple[tuple[Lane, Lane], ...]
    digit: Lane


class Put(NamedTuple):
    """A number that is put together: three parts, the lowest first."""

    low: Lane
    middle: Lane
    high: Lane


class Recombined(NamedTuple):
    """The number of the digits, from the last one on; and less ⌊P/2⌋."""

    steps: tuple[Put, ...]
    total: limbs.Wide
    unit: Lane  #: the exponent of its last place
    narrowed: Sum


class ResiduesStep(NamedTuple):
    """The interfaces of one step, in order."""

    operands: tuple[tuple[Operand, Operand], ...]
    special: Special
    tops: tuple[Lane, Lane]  #: the largest exponents
    a: tuple[FactorWord, ...]
    b: tuple[FactorWord, ...]
    sums: tuple[SumOfRemainders, ...]
    digits: tuple[Digit, ...]
    whole: Recombined
    rounded: Rounded
    dot: Lane  #: the code of the sum
    one: Lane
    addition: Trace[AnyExecutableStep]
    result: Lane


def remainder(x: Lane, p: int) -> Lane:
    """x mod p for 0 ≤ x < 2^16.

    The reciprocal is at most (p − 1)/p · 2^-24 too large, so x times it is less than 1/p too large: no quotient is.
    """
    quotient = (x * -(-(1 << SCALE) // p)) >> SCALE
    return (x - quotient * p) & 0xFF


def bytes_of(x: Lane, count: int) -> tuple[Lane, ...]:
    return tuple((x >> (8 * place)) & 0xFF for place in range(count))


def _divide(parts: Sequence[Lane], p: int) -> ByteRemainders:
    """The remainder of a number of these bytes."""
    left, found = parts[0] * 0, []
    for each in reversed(parts):
        left = remainder((left << 8) + each, p)
        found.append(left)
    return ByteRemainders(tuple(found))


def next_to_zero(sign: Lane, left: Lane, p: int) -> Lane:
    """The remainder from −⌊p/2⌋ on of a number with the sign given, whose magnitude leaves `left`."""
    left = where((sign == 1) & (left != 0), p - left, left)
    return where(left > (p - 1) // 2, left - p, left)


def word(x: Operand, largest: Lane, fmt: Format, p: Residues) -> FactorWord:
    """A factor's word and its remainders."""
    magnitude = x.significand >> clamp(largest - x.exponent + (fmt.fraction_bits + 1 - p.bits), 0, 63)
    parts = bytes_of(magnitude, -(-p.bits // 8))
    left = tuple(_divide(parts, each) for each in p.moduli)
    signed = (next_to_zero(x.sign, r.left, each) for r, each in zip(left, p.moduli, strict=True))
    return FactorWord(magnitude, parts, left, tuple(signed))


def left_of_sum(total: Lane, t: int, p: Residues) -> tuple[tuple[Lane, ...], ByteRemainders]:
    """The bytes of ⌊P/2⌋ + a sum, and a multiple of p_t that makes it positive; and what they leave."""
    modulus, bound = p.moduli[t], p.products << PRODUCT_BITS
    more = -(-bound // modulus) * modulus + p.offset % modulus
    parts = bytes_of(total + more, -(-(bound + more).bit_length() // 8))
    return parts, _divide(parts, modulus)


def sum_of_remainders(
    a: Sequence[FactorWord], b: Sequence[FactorWord], t: int, p: Residues
) -> SumOfRemainders:
    """The sum of products of the t-th remainders, and what it and ⌊P/2⌋ leave."""
    products = tuple(u.remainders[t] * v.remainders[t] for u, v in zip(a, b, strict=True))
    total = sum(products[1:], products[0])
    return SumOfRemainders(products, total, *left_of_sum(total, t, p))


def digits(left: Sequence[Lane], p: Residues) -> tuple[Digit, ...]:
    """The digits of the number below P that leaves these remainders, in mixed radix."""
    found: list[Digit] = []
    for modulus, own in zip(p.moduli, left, strict=True):
        x, steps = own, []
        for before, digit in zip(p.moduli, found, strict=False):
            difference = remainder(x + (-(-256 // modulus) * modulus - digit.digit), modulus)
            x = remainder(difference * pow(before, -1, modulus), modulus)
            steps.append((difference, x))
        found.append(Digit(tuple(steps), x))
    return tuple(found)


def put_together(found: Sequence[Lane], p: Residues, unit: Lane) -> Recombined:
    """The number of these digits, less ⌊P/2⌋, times 2^unit."""
    zero = found[-1] * 0
    steps = [Put(found[-1], zero, zero)]
    for modulus, digit in zip(reversed(p.moduli[:-1]), reversed(found[:-1]), strict=True):
        low = steps[-1].low * modulus + digit
        middle = steps[-1].middle * modulus + (low >> PART)
        high = steps[-1].high * modulus + (middle >> PART)
        steps.append(Put(low & _MASK, middle & _MASK, high & _MASK))
    bits, last = limbs.BITS - PART, steps[-1]
    top = (last.high << (PART - bits)) + (last.middle >> bits) - (p.offset >> limbs.BITS)
    rest = last.low + ((last.middle & ((1 << bits) - 1)) << PART) - (p.offset & ((1 << limbs.BITS) - 1))
    total = limbs.carry(top, rest)
    return Recombined(tuple(steps), total, unit, limbs.narrow(total, unit))


def step(spec: DotAdd, p: Residues, a: Sequence[Lane], b: Sequence[Lane], c: Lane) -> ResiduesStep:
    """One step over `p.products` products."""
    rho, fmt = p.rho, p.rho.format
    x, y = (tuple(decode(code, f.layout) for code in side) for side, f in sides(spec, a, b))
    pairs = tuple(zip(x, y, strict=True))
    special = resolve_special(reduce(merge_special, (classify_product(*each) for each in pairs)))
    tops = tuple(reduce(maximum, (each.exponent for each in side)) for side in (x, y))
    of_a = tuple(word(each, tops[0], spec.a_format, p) for each in x)
    of_b = tuple(word(each, tops[1], spec.b_format, p) for each in y)
    sums = tuple(sum_of_remainders(of_a, of_b, t, p) for t in range(len(p.moduli)))
    found = digits([each.division.left for each in sums], p)
    whole = put_together([each.digit for each in found], p, tops[0] + tops[1] + 2 - 2 * p.bits)
    rounded = round_sum(whole.narrowed, whole.narrowed.total * 0, rho)
    dot = select_special(special, encode(rounded, rho), rho, quiet_nan(fmt))
    one = dot * 0 + (fmt.bias << fmt.fraction_bits)
    addition = executable.dot_add(p.addition, [one], [dot], c)
    return ResiduesStep(
        pairs,
        special,
        (tops[0], tops[1]),
        of_a,
        of_b,
        sums,
        found,
        whole,
        rounded,
        dot,
        one,
        addition,
        addition.result,
    )


def sides(
    spec: DotAdd, a: Sequence[Lane], b: Sequence[Lane]
) -> tuple[tuple[Sequence[Lane], Format], tuple[Sequence[Lane], Format]]:
    """Codes and formats of both factors."""
    return (a, spec.a_format), (b, spec.b_format)


dot_add = looped(lambda spec, a, b, c, stages: step(spec, spec.parameters_as(Residues), a, b, c))
