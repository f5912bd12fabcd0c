"""efda, exact fused dot-add, executable.  Specification: semantics §3 (CDNA1).

One step is `d = ρ(c + Σ_L a_k·b_k)`, the exact sum rounded once; special values as IEEE 754, subnormals kept, a sum
of exactly zero is +0, or, with `minus_zero`, −0 if all its terms are.  K > L is a chain: one step's result is the next
one's c.

The exact sum may span hundreds of bits (bf16: products from 2^-266 to 2^256), but ρ looks at p + 1 of them, p = 23,
and at whether anything is left below.  c has as many where ρ keeps fewer: p is the larger of both.  How the sum is
held depends on how far apart the products can be.

**Products within few binades (fp16)** are summed in fixed point, exactly.  Their last places are 2^low or above,
low = -48, and the sum of L = 4 stays below 2^top, top = 34: 82 bits.  c is added to that sum, as a term of exponent
`top`, in a frame of top - low + p + 3 = 108 fractional bits (`limbs.add_term`); two limbs hold the 110 bits.
- If c has the larger exponent, it is normal and the sum of products has `frame - p - 3` fractional bits: more room
  than the rule of `blocks.add` asks for.
- Otherwise the frame's last place is 2^(low - 26), and c loses bits only if its own last place is below that, so
  that |c| < 2^(low - 2).  The sum of products, if not zero (then the result is c), is at least 2^low; with c it is
  above 2^(low - 1), and ρ looks no further down than the half ulp there, 2^(low - 25): above the sticky bit.
One bit fewer would not do: for 2^low less a c just below 2^(low - 2), the half ulp would itself be the sticky bit.

**Two products anywhere (bf16)** and c are three terms t1, t2, t3, normalised to p + 1 bits and sorted by exponent,
e1 ≥ e2 ≥ e3.  Two additions of at most p + 6 = 29 bits give a sum that ρ rounds as the exact one.
- If e1 - e2 ≤ 2, s = t1 + t2 is exact in a frame of p + 2 fractional bits, and has at most p + 4 bits.  It is
  normalised (p + 3 fractional bits) and added to t3 in a frame of p + 4, by the rule of `blocks.add`, z = 0, if s has
  the larger exponent; if t3 has, s loses nothing, being a multiple of 2^(e2 - p) ≥ 2^(e3 - p).
- If e1 - e2 ≥ 3, s = t2 + t3 in the frame of p + 2, then t1 + s in that of p + 4.  Since |s| < 2^(e2 + 2) ≤
  2^(e1 - 1), the whole sum exceeds 2^(e1 - 1), and ρ looks no further down than 2^(e1 - p - 2).  The sticky bits are
  below that: that of s at 2^(e2 - p - 2) ≤ 2^(e1 - p - 5), that of the sum at 2^(e1 - p - 4).  Neither is lost,
  since what it is added to, a multiple of 2^(e2 - p) or 2^(e1 - p), is a multiple of its double.
**More products anywhere, or long ones (fp32)**, and c are summed in a row of limbs of 48 bits, exactly, the last limb's
last place being the least that any has.  The highest limb that is not zero and the one below it hold 49 bits or more
from the leading one, and the last of these is sticky: ρ looks at p + 2 ≤ 48 of them.
tests/encodings/test_executable.py tries all significands and exponents of this at small p.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial, reduce
from itertools import accumulate
from typing import NamedTuple

from mmaformal.encodings.efda import LIMB, Efda
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
    quiet_nan,
    round_sum,
    select_special,
    sum_sign,
    where,
)
from mmaformal.encodings.executable.chain import looped
from mmaformal.encodings.executable.stages import Code, Stages
from mmaformal.rounding import Conversion
from mmaformal.spec import DotAdd

NEAR = 2  #: two terms are added first if their exponents differ by no more


class FixedSum(NamedTuple):
    """The interfaces of a sum in fixed point."""

    placed: tuple[limbs.Wide, ...]  #: align: the products; signed
    partials: tuple[limbs.Wide, ...]  #: accumulate: the sums of the first, of the first two, …
    dot: limbs.Wide  #: of all
    term: limbs.WideTerm  #: the same as a term
    wide: limbs.WideSum  #: with c


class SortedSum(NamedTuple):
    """The interfaces of a sum of three sorted terms."""

    terms: tuple[Term, Term, Term]  #: align: normalised
    sorted: tuple[Term, Term, Term]
    partial: Sum  #: accumulate: of the first two or the last two
    normal: Term  #: the same, normalised
    total: Sum  #: of all


class LongSum(NamedTuple):
    """The interfaces of a sum in a row of limbs, the lowest first; of a signed number the highest has the sign."""

    placed: tuple[tuple[Lane, ...], ...]  #: align: the magnitudes of products and c
    partial: tuple[tuple[Lane, ...], ...]  #: accumulate: the first, the first two, …; signed
    sign: Lane
    magnitude: tuple[Lane, ...]
    leading: limbs.Wide  #: two limbs from the leading one, and the exponent of the last bit
    unit: Lane
    narrowed: Sum  #: the leading bits of these


@dataclass(frozen=True)
class EfdaStep:
    """The interfaces between the stages of one step, in order."""

    a: tuple[Operand, ...]  #: decode
    b: tuple[Operand, ...]
    c: Operand
    special: Special  #: classify
    products: tuple[Term, ...]  #: multiply
    addend: Term
    sum: FixedSum | SortedSum | LongSum  #: align, accumulate
    total: Sum
    rounded: Rounded  #: normalise & round
    result: Lane  #: encode


def bits_of_fixed_point(spec: DotAdd, L: int) -> tuple[int, int]:
    """(low, top): L products are multiples of 2^low and their sum is below 2^top."""
    a, b = spec.a_format, spec.b_format
    low = a.min_exponent - a.fraction_bits + b.min_exponent - b.fraction_bits
    return low, a.max_exponent + b.max_exponent + 2 + (L - 1).bit_length()


def fixed_point_sum(
    products: Sequence[Term],
    fraction_bits: int,
    top: int,
    addend: Term,
    addend_bits: int,
    frame: int,
    least: int,
) -> FixedSum:
    """The exact sum of the products as one term of exponent `top`, with `frame` fractional bits, or `least` if it is
    zero; and then with the addend."""
    placed = tuple(
        limbs.signed(p.sign, limbs.shift_left(p.significand, p.exponent - fraction_bits - (top - frame)))
        for p in products
    )
    partials = tuple(accumulate(placed, limbs.add))
    dot = partials[-1]
    sign, magnitude = limbs.magnitude(dot)
    term = limbs.WideTerm(sign, where(limbs.is_zero(dot), least, top), magnitude)
    return FixedSum(placed, partials, dot, term, limbs.add_term(term, addend, addend_bits, frame))


def normalise(x: Term, x_bits: int, bits: int, lowest: int) -> Term:
    """Return the term with a significand of 2^bits or more, `bits` fractional bits; a zero has the exponent `lowest`.

    The significand is given below 2^(bits + 1), bits < 61.
    """
    significand, exponent = x.significand, x.exponent + (bits - x_bits)
    for step in (step for step in (32, 16, 8, 4, 2, 1) if step <= bits):
        small = significand < 1 << (bits + 1 - step)
        low = significand if bits + step < 61 else significand & ((1 << (bits + 1 - step)) - 1)
        significand = where(small, low << step, significand)
        exponent = where(small, exponent - step, exponent)
    return Term(x.sign, where(significand == 0, lowest, exponent), significand)


def normalise_sum(x: Sum, bits: int, lowest: int) -> Term:
    negative = x.total < 0
    return normalise(Term(where(negative, 1, 0), x.unit, where(negative, -x.total, x.total)), 0, bits, lowest)


def select(flag: Lane, x: Term, y: Term) -> Term:
    return Term(*(where(flag, u, v) for u, v in zip(x, y, strict=True)))


def sorted_pair(x: Term, y: Term) -> tuple[Term, Term]:
    """The two, the larger exponent first."""
    swap = x.exponent < y.exponent
    return select(swap, y, x), select(swap, x, y)


def in_order(x: Term, y: Term, z: Term) -> tuple[Term, Term, Term]:
    """The three, by exponent, the largest first."""
    x, y = sorted_pair(x, y)
    y, z = sorted_pair(y, z)
    return (*sorted_pair(x, y), z)


def sorted_sum(x: Term, y: Term, z: Term, p: int, lowest: int) -> SortedSum:
    """The sum of two and of all three normalised terms of p fractional bits, for a ρ of as many.

    A zero has the exponent `lowest`, which no other term is below.
    """
    terms = x, y, z
    x, y, z = in_order(x, y, z)
    near = x.exponent - y.exponent <= NEAR
    partial = add(select(near, x, z), p, y, p, p + NEAR)
    normal = normalise_sum(partial, p + 3, lowest)
    total = add(normal, p + 3, select(near, z, x), p, p + 4)
    return SortedSum(terms, (x, y, z), partial, normal, total)


def sorted_terms(
    products: Sequence[Term], addend: Term, fraction_bits: tuple[int, int], p: int, lowest: int
) -> SortedSum:
    """The sum of one or two products and c, normalised; `fraction_bits` are theirs and c's."""
    return sorted_sum(*normal_terms(products, addend, fraction_bits, p, lowest), p, lowest)


def normal_terms(
    products: Sequence[Term], addend: Term, fraction_bits: tuple[int, int], p: int, lowest: int
) -> tuple[Term, Term, Term]:
    """One or two products and c, normalised; a second product that is not there is zero."""
    bits, c_bits = fraction_bits
    nothing = Term(addend.sign, addend.exponent, addend.sign * 0)
    first, second = (normalise(each, bits, p, lowest) for each in (*products, nothing)[:2])
    return first, second, normalise(addend, c_bits, p, lowest)


_LIMB_MASK = (1 << LIMB) - 1
_PART = 16  #: bits by which a significand is shifted within a limb: 48 + 15 fit a lane


def in_limbs(x: Term, place: int, count: int) -> tuple[Lane, ...]:
    """The significand times 2^(exponent + place), place of its last bit counted from the lowest limb's, in limbs."""
    offset = x.exponent + place
    shifted, part = x.significand << (offset & _PART - 1), offset >> 4
    parts = LIMB // _PART
    moved = {r: (shifted >> _PART * r) & _LIMB_MASK for r in range(parts + 1)}
    moved.update({-r: (shifted & (_LIMB_MASK >> _PART * r)) << _PART * r for r in range(1, parts)})
    found = []
    for limb in range(count):
        value = shifted * 0
        for r, lane in moved.items():
            value = where(part == parts * limb - r, lane, value)
        found.append(value)
    return tuple(found)


def _carried(row: Sequence[Lane]) -> tuple[Lane, ...]:
    """Returns the number with every limb but the highest in 0 … 2^48 - 1."""
    done: list[Lane] = []
    carry: Lane = 0
    for lane in row[:-1]:
        total = lane + carry
        done.append(total & _LIMB_MASK)
        carry = total >> LIMB
    return (*done, row[-1] + carry)


def leading_limbs(row: Sequence[Lane], low: int) -> tuple[limbs.Wide, Lane]:
    """The highest limb that is not zero, and that below it, whose last bit is sticky; the exponent of that bit."""
    high, below, unit = row[1], row[0], row[0] * 0 + low
    lost = row[0] < 0  # of a magnitude: no
    for i in range(2, len(row)):
        lost = lost | (row[i - 2] != 0)
        some = row[i] != 0
        high = where(some, row[i], high)
        below = where(some, where(lost, row[i - 1] | 1, row[i - 1]), below)
        unit = where(some, low + LIMB * (i - 1), unit)
    spare = limbs.BITS - LIMB
    return limbs.Wide(high >> spare, ((high & (1 << spare) - 1) << LIMB) + below), unit


def long_sum(terms: Sequence[tuple[Term, int]], low: int, count: int) -> tuple[LongSum, Sum]:
    """The exact sum of terms with their fractional bits, and its leading bits, the last one sticky."""
    placed = tuple(in_limbs(x, -bits - low, count) for x, bits in terms)
    partial: list[tuple[Lane, ...]] = []
    for (x, _), row in zip(terms, placed, strict=True):
        signed = [where(x.sign == 1, -lane, lane) for lane in row]
        if partial:
            signed = [u + v for u, v in zip(partial[-1], signed, strict=True)]
        partial.append(_carried(signed))
    negative = partial[-1][-1] < 0
    negated = _carried([-lane for lane in partial[-1]])
    magnitude = tuple(where(negative, u, v) for u, v in zip(negated, partial[-1], strict=True))
    sign = where(negative, 1, 0)
    leading, unit = leading_limbs(magnitude, low)
    bits = limbs.narrow(leading, unit)
    total = Sum(where(sign == 1, -bits.total, bits.total), bits.unit)
    return LongSum(placed, tuple(partial), sign, magnitude, leading, unit, bits), total


def zero_sign(terms: Sequence[Term], plus: Lane, rho: Conversion) -> Lane:
    """The sign of a sum of exactly zero: minus if all terms are negative, hence zeros, with IEEE's RD
    if one is; plus without any."""
    return reduce(partial(sum_sign, rho), (x.sign for x in terms)) if terms else plus


def _sum_of(
    spec: DotAdd, parameters: Efda, products: Sequence[Term], addend: Term, stages: Stages
) -> tuple[FixedSum | SortedSum | LongSum, Sum]:
    """The sum of products and c, in the way that their formats ask for: its interfaces, and what is rounded."""
    rho = parameters.rho
    bits, c_bits = spec.a_format.fraction_bits + spec.b_format.fraction_bits, spec.c_format.fraction_bits

    low, top = bits_of_fixed_point(spec, parameters.L)
    p = max(rho.fraction_bits, c_bits)
    frame = top - low + p + 3
    sum_: FixedSum | SortedSum | LongSum
    if parameters.is_long(spec):
        terms = [*((x, bits) for x in products), (addend, c_bits)]
        sum_, total = long_sum(terms, parameters.last_place(spec), parameters.limbs(spec))
        stages.made("long_sum", [*products, addend], total, sum=sum_)
    elif frame + 2 <= 2 * limbs.BITS:
        sum_ = fixed_point_sum(
            products,
            bits,
            top=top,
            addend=addend,
            addend_bits=c_bits,
            frame=frame,
            least=spec.c_format.min_exponent,
        )
        total = sum_.wide.narrowed
        stages.made("fixed_sum", products, sum_)
        stages.made("sticky_sum", [sum_.term, addend], total, wide=sum_.wide)
    else:
        sum_ = sorted_terms(
            products, addend, (bits, c_bits), max(p, bits + 1), min(low, spec.c_format.min_exponent - c_bits)
        )
        total = sum_.total
        stages.made("sorted_sum", [*products, addend], total, sum=sum_)
    return sum_, total


def step(
    spec: DotAdd, parameters: Efda, a: Sequence[Lane], b: Sequence[Lane], c: Lane, stages: Stages
) -> EfdaStep:
    rho = parameters.rho
    a_operands = tuple(stages.decode(x, spec.a_format, parameters.flush_inputs) for x in a)
    b_operands = tuple(stages.decode(x, spec.b_format, parameters.flush_inputs) for x in b)
    c_operand = stages.decode(c, spec.c_format, parameters.flush_inputs)
    factors = list(zip(a_operands, b_operands, strict=True))
    special = stages.classify(factors, [c_operand])

    products = tuple(stages.multiply(x, y) for x, y in factors)
    addend = stages.addend(c_operand)
    sum_, total = _sum_of(spec, parameters, products, addend, stages)
    signs = (*products, addend) if parameters.minus_zero else ()
    rounded = round_sum(total, zero_sign(signs, total.total * 0, rho), rho)
    result = select_special(special, encode(rounded, rho), rho, quiet_nan(rho.format))
    stages.made("round_sum", [total, *signs, special], Code(total.total, rounded, result), rho=rho)
    return EfdaStep(
        a_operands,
        b_operands,
        c=c_operand,
        special=special,
        products=products,
        addend=addend,
        sum=sum_,
        total=total,
        rounded=rounded,
        result=result,
    )


dot_add = looped(lambda spec, a, b, c, stages: step(spec, spec.parameters_as(Efda), a, b, c, stages))
