"""efda, exact fused dot-add, as bit-vector terms.  Specification: semantics §3.

The exact sum is rounded once, yet no accumulator from the least product to the largest c is needed.  Which of two
ways is taken depends on the range of the products.  Let q be the significand bits of ρ, or of c if those are more.

Fixed point (where the sum has up to 112 bits, as with formats of up to 5 exponent bits).  The products are summed in
the fixed point that holds every one of them: for fp16 from 2^-48 up to 2^32, so 82 bits for L = 4 (|Σ| ≤ L times the
largest product), and the sign.  This number and c are aligned to the larger exponent, the number's being that of the
place above its highest, with the number's bits and q + 2 = 26 more, the last one sticky (108 bits for fp16).  The
number loses bits only where c is far above all of it, and normal.  c loses bits only if its last place is below the
second of those 26, |c| is then less than a quarter of the number's last place; the sum is more than half of that
place, so that ρ distinguishes what lies between multiples of 2^-(q+1) of it: the place above the sticky one.  One place
less would be too few.

Three terms (wider sums, L ≤ 2): bf16 products reach from 2^-266 to 2^256.  Every term is normalised to
2^e ≤ |t| < 2^(e+1) with w = 24 significand bits, zero to the least exponent of all, and they are sorted by exponent.
- If the first two are at most 2 binades apart they are added first, exactly: w + 2 bits and a carry.
- If not, the last two are: with 2 places below the last of the larger one, the second sticky.
That sum, normalised to its w + 3 bits, is added to the remaining term with 4 places below its last one, again sticky.
In the first case the exact sum is rounded as any two-term sum.  In the second, the sum of the last two is less than
half of the first term, so ρ looks no further down than two places below the first term's last; what was lost lies
below the place 2^(e1 - 3 - (w-1) - 2), which the last alignment either keeps, or has in a sticky place that is 2 lower
than what ρ looks at.  Sticky twice is sticky once, since what such a number is added to has a zero at the last place.

A row of limbs (more products, or long ones, whose sums are wide): every term is placed in the fixed point that holds
them all, and added.  Of its magnitude the highest limb of 48 bits that is not zero is found, and kept with the one
below it: 49 bits or more from the leading one, the last one sticky.

The sum may lie below the exponents at which ρ still has places; it is shifted once more, sticky, to the least of those.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import z3

from mmaformal.encodings.efda import LIMB, Efda
from mmaformal.encodings.smt.blocks import (
    BitVec,
    Bool,
    ExponentRange,
    Operand,
    Rounded,
    Special,
    StickySum,
    Term,
    encode,
    exponent_range,
    negate_if,
    normalise,
    normalise_and_round,
    pad,
    product_range,
    quiet_nan,
    resize,
    select_special,
    signed_sum,
    sticky_shift_right,
    sticky_sum,
)
from mmaformal.encodings.smt.chain import looped
from mmaformal.encodings.smt.stages import Code, Stages
from mmaformal.rounding import Conversion, Rounding
from mmaformal.spec import DotAdd


class LongSum(NamedTuple):
    """The interfaces of a sum in a row of limbs."""

    placed: tuple[BitVec, ...]  #: align: magnitudes in units of the last place
    partial: tuple[BitVec, ...]  #: accumulate: the first, the first two, …; two's complement
    sign: BitVec
    magnitude: BitVec
    window: BitVec  #: of the magnitude: the highest limb that is not zero and what is below it
    unit: BitVec  #: the exponent of its last place
    bits: BitVec  #: its leading bits, the last one sticky
    e_max: BitVec  #: the exponent of that
    total: BitVec  #: these with the sign, two's complement


@dataclass(frozen=True)
class FixedStep:
    """The interfaces between the stages of one step in fixed point, in order."""

    a: tuple[Operand, ...]  #: decode
    b: tuple[Operand, ...]
    c: Operand
    special: Special  #: classify
    products: tuple[Term, ...]  #: multiply; exponents from the least
    placed: tuple[BitVec, ...]  #: align: magnitudes in units of the least product's last place
    dot: BitVec  #: accumulate: their sum, two's complement
    term: Term  #: the same, in the range of c's exponents
    addend: Term
    sum: StickySum  #: with c
    rounded: Rounded  #: normalise & round
    result: BitVec  #: encode


class StickyTotal(NamedTuple):
    """A sum in units of 2^(e_max - frame)."""

    e_max: BitVec
    total: BitVec  #: two's complement


@dataclass(frozen=True)
class SortedStep:
    """The interfaces between the stages of one step of three sorted terms, in order."""

    a: tuple[Operand, ...]  #: decode
    b: tuple[Operand, ...]
    c: Operand
    special: Special  #: classify
    products: tuple[Term, ...]  #: multiply
    addend: Term
    terms: tuple[Term, Term, Term]  #: align: the products, then c; normalised, w bits
    sorted: tuple[Term, Term, Term]
    partial: StickySum  #: accumulate: the first two or the last two
    normal: Term  #: the same, normalised
    sum: StickySum  #: of all
    sticky: StickyTotal  #: the same, not below ρ's least exponent
    rounded: Rounded  #: normalise & round
    result: BitVec  #: encode


@dataclass(frozen=True)
class LongStep:
    """The interfaces between the stages of one step in a row of limbs, in order."""

    a: tuple[Operand, ...]  #: decode
    b: tuple[Operand, ...]
    c: Operand
    special: Special  #: classify
    products: tuple[Term, ...]  #: multiply
    addend: Term
    sum: LongSum  #: align, accumulate
    rounded: Rounded  #: normalise & round
    result: BitVec  #: encode


EfdaStep: TypeAlias = FixedStep | SortedStep | LongStep

WIDEST = 112  #: bits of a sum in fixed point

NEAR = 2  #: binades within which the first two terms are added first


@dataclass(frozen=True)
class EfdaInputs:
    a: tuple[Operand, ...]
    b: tuple[Operand, ...]
    c: Operand
    special: Special
    stages: Stages


class FixedSum(NamedTuple):
    """The interfaces of a sum in fixed point."""

    placed: tuple[BitVec, ...]
    dot: BitVec
    term: Term


class SortedSum(NamedTuple):
    """The interfaces of a sum of three sorted terms."""

    terms: tuple[Term, Term, Term]
    sorted: tuple[Term, Term, Term]
    partial: StickySum
    normal: Term
    sum: StickySum


def places_below(q: int) -> int:
    """Places below the last one of the sum of products at which c is still distinguished, the last one sticky."""
    return q + 2


def precision(spec: DotAdd, parameters: Efda) -> int:
    """q: the significand bits of c or of the rounding, whichever are more."""
    return max(spec.c_format.fraction_bits, parameters.rho.fraction_bits) + 1


def sum_places(spec: DotAdd, L: int) -> int:
    """Places of the sum of L finite products: from the last one that a product has to the carry out of the largest."""
    a, b = spec.a_format, spec.b_format
    span = a.max_exponent + b.max_exponent - product_range(a, b).low
    return fraction_bits(spec) + span + 2 + (L - 1).bit_length()


def in_fixed_point(spec: DotAdd, parameters: Efda) -> bool:
    """Whether the sum of products, with the places below it, a carry and a sign, has no more than `WIDEST` bits."""
    frame = sum_places(spec, parameters.L) + places_below(precision(spec, parameters))
    return frame + 2 <= WIDEST


def fraction_bits(spec: DotAdd) -> int:
    return spec.a_format.fraction_bits + spec.b_format.fraction_bits


def with_zero_sign(rounded: Rounded, total: BitVec, terms: Sequence[Term], rho: Conversion) -> Rounded:
    """A zero that all terms make is −0 if each of them is, with IEEE 754's RD if one is; without terms, as it is."""
    if not terms:
        return rounded
    minus = [x.sign == 1 for x in terms]
    negative = z3.Or(*minus) if rho.ieee and rho.rounding is Rounding.RD else z3.And(*minus)
    zero = z3.If(negative, z3.BitVecVal(1, 1), z3.BitVecVal(0, 1))
    return rounded._replace(sign=z3.If(total == 0, zero, rounded.sign))


# ---- fixed point ------------------------------------------------------------------------------------------------


def fixed_step(spec: DotAdd, parameters: Efda, x: EfdaInputs) -> FixedStep:
    """One step, the products summed in fixed point."""
    a_format, b_format, rho = spec.a_format, spec.b_format, parameters.rho
    own = product_range(a_format, b_format)
    bias = a_format.bias + b_format.bias
    products = tuple(x.stages.multiply(y, z, bias, own) for y, z in zip(x.a, x.b, strict=True))
    largest = ((2 << a_format.fraction_bits) - 1) * ((2 << b_format.fraction_bits) - 1)
    # Wider than any finite product: for the exponents of infinities, too, the interfaces are numbers.
    product_bits = (largest << (own.high - own.low)).bit_length()
    placed = tuple(resize(p.significand, product_bits) << resize(p.exponent, product_bits) for p in products)
    sum_bits = product_bits + (len(products) - 1).bit_length()
    dot = signed_sum([(p.sign, y) for p, y in zip(products, placed, strict=True)], sum_bits + 1)

    bits, singles = sum_places(spec, parameters.L), exponent_range(spec.c_format)
    top = own.low - fraction_bits(spec) + bits
    exponents = singles.union(top)
    sign = z3.Extract(sum_bits, sum_bits, dot)
    at = z3.If(dot == 0, exponents.constant(singles.low), exponents.constant(top))
    term = Term(sign, at, resize(negate_if(sign, dot), sum_bits))
    c_term = x.stages.addend(x.c, spec.c_format.bias, exponents)
    below = places_below(precision(spec, parameters))
    least = singles.low
    x.stages.made("fixed_sum", products, FixedSum(placed, dot, term), below=below, least=least)
    frame = bits + below
    sum_ = x.stages.sticky_sum(term, bits, c_term, spec.c_format.fraction_bits, frame, exponents)
    signs = (*products, c_term) if parameters.minus_zero else ()
    rounded = normalise_and_round(sum_.total, sum_.e_max, exponents, frame, rho, least)
    rounded = with_zero_sign(rounded, sum_.total, signs, rho)
    result = select_special(x.special, encode(rounded, rho), rho.format, quiet_nan(rho.format))
    x.stages.round_sum(sum_, signs, x.special, Code(sum_.total, rounded, result), rho)
    return FixedStep(
        x.a,
        x.b,
        c=x.c,
        special=x.special,
        products=products,
        placed=placed,
        dot=dot,
        term=term,
        addend=c_term,
        sum=sum_,
        rounded=rounded,
        result=result,
    )


# ---- three terms ------------------------------------------------------------------------------------------------


def lowest(spec: DotAdd) -> int:
    """The exponent of a zero: no number here is below, for all are multiples of this power of two."""
    own, c = product_range(spec.a_format, spec.b_format), exponent_range(spec.c_format)
    return min(own.low - fraction_bits(spec), c.low - spec.c_format.fraction_bits)


def exponents_of(spec: DotAdd) -> ExponentRange:
    """Return the range of all terms' exponents, with room above for carries, and below so that normalising goes on."""
    own, c = product_range(spec.a_format, spec.b_format), exponent_range(spec.c_format)
    return ExponentRange(lowest(spec) - 32, max(own.high, c.high) + 2)


def normalised(
    sign: BitVec, exponent: BitVec, significand: BitVec, w: int, exponents: ExponentRange, zero: int
) -> Term:
    """A number with its leading one on top, in w bits; a zero has the exponent `zero`.

    `exponent` is that of the significand's highest place.
    """
    magnitude, left = normalise(significand, exponent)
    exponent = z3.If(significand == 0, exponents.constant(zero), left)
    return Term(sign, exponent, pad(magnitude, w - magnitude.size()))


def select(condition: Bool, x: Term, y: Term) -> Term:
    return Term(*(z3.If(condition, u, v) for u, v in zip(x, y, strict=True)))


def sorted_terms(x: Term, y: Term, z: Term) -> tuple[Term, Term, Term]:
    """By exponent, the largest first."""

    def ordered(u: Term, v: Term) -> tuple[Term, Term]:
        swap = z3.ULT(u.exponent, v.exponent)
        return select(swap, v, u), select(swap, u, v)

    x, y = ordered(x, y)
    y, z = ordered(y, z)
    return (*ordered(x, y), z)


class Frames(NamedTuple):
    """Fractional bits of the sums of three sorted terms, the last ones sticky."""

    first: int  #: of the sum of two, below the larger exponent
    last: int  #: of that of all


def sum_sorted(
    terms: tuple[Term, Term, Term], bits: int, frames: Frames, exponents: ExponentRange, zero: int
) -> SortedSum:
    """The sum of three normalised terms of so many bits: of the first two, if these are near, or the last two; then of
    all."""
    one, two, three = sorted_terms(*terms)
    near = z3.ULE(one.exponent - two.exponent, z3.BitVecVal(NEAR, exponents.bits))
    partial = sticky_sum(select(near, one, three), bits - 1, two, bits - 1, frames.first)
    normal = normal_sum(partial, exponents, zero)
    total = sticky_sum(normal, normal.significand.size() - 1, select(near, three, one), bits - 1, frames.last)
    return SortedSum(terms, (one, two, three), partial, normal, total)


def normal_sum(x: StickySum, exponents: ExponentRange, zero: int) -> Term:
    """A sum of two terms below 2, normalised: as wide as the sum without its sign; its highest place is that of the
    carry."""
    bits = x.total.size() - 1
    sign = z3.Extract(bits, bits, x.total)
    magnitude = resize(negate_if(sign, x.total), bits)
    return normalised(sign, x.e_max + 1, magnitude, bits, exponents, zero)


def normalised_terms(
    products: Sequence[Term], c: Term, bits: int, exponents: ExponentRange, zero: int
) -> tuple[Term, Term, Term]:
    """One or two products and c, normalised to so many bits; a second product that is not there is zero."""
    # The highest place of a product is 2^(e + 1).
    terms = [normalised(p.sign, p.exponent + 1, p.significand, bits, exponents, zero) for p in products]
    while len(terms) < 2:
        terms.append(Term(z3.BitVecVal(0, 1), exponents.constant(zero), z3.BitVecVal(0, bits)))
    return terms[0], terms[1], normalised(c.sign, c.exponent, c.significand, bits, exponents, zero)


def shift_to_least(sum_: StickySum, exponents: ExponentRange, rho: Conversion) -> StickyTotal:
    """The sum, not below ρ's least exponent, where it has no places below."""
    floor, top = exponents.constant(rho.format.min_exponent), sum_.total.size() - 1
    low = z3.ULT(sum_.e_max, floor)
    deficit = z3.If(low, floor - sum_.e_max, z3.BitVecVal(0, exponents.bits))
    sign = z3.Extract(top, top, sum_.total)
    magnitude = sticky_shift_right(negate_if(sign, sum_.total), deficit)
    return StickyTotal(z3.If(low, floor, sum_.e_max), negate_if(sign, magnitude))


def sorted_step(spec: DotAdd, parameters: Efda, x: EfdaInputs) -> SortedStep:
    """One step of at most three terms."""
    rho, c_format = parameters.rho, spec.c_format
    exponents, zero = exponents_of(spec), lowest(spec)
    w = max(fraction_bits(spec) + 2, c_format.fraction_bits + 1, rho.fraction_bits + 1)
    bias = spec.a_format.bias + spec.b_format.bias
    products = tuple(x.stages.multiply(y, z, bias, exponents) for y, z in zip(x.a, x.b, strict=True))
    c_term = x.stages.addend(x.c, c_format.bias, exponents)
    frames = Frames(w - 1 + NEAR, w + 1 + NEAR)
    made = sum_sorted(normalised_terms(products, c_term, w, exponents, zero), w, frames, exponents, zero)
    sum_ = made.sum
    x.stages.made(
        "sorted_sum", [*products, c_term], sum_, sum=made, exponents=exponents, zero=zero, frames=frames
    )
    sticky = shift_to_least(sum_, exponents, rho)
    signs = (*products, c_term) if parameters.minus_zero else ()
    least = rho.format.min_exponent
    rounded = normalise_and_round(sticky.total, sticky.e_max, exponents, frames.last, rho, least)
    rounded = with_zero_sign(rounded, sticky.total, signs, rho)
    result = select_special(x.special, encode(rounded, rho), rho.format, quiet_nan(rho.format))
    x.stages.round_sum(sum_, signs, x.special, Code(sticky.total, rounded, result), rho)
    return SortedStep(
        x.a,
        x.b,
        c=x.c,
        special=x.special,
        products=products,
        addend=c_term,
        terms=made.terms,
        sorted=made.sorted,
        partial=made.partial,
        normal=made.normal,
        sum=sum_,
        sticky=sticky,
        rounded=rounded,
        result=result,
    )


# ---- a row of limbs ---------------------------------------------------------------------------------------------

LEADING = 60  #: bits of a sum that are rounded
CARRY = 8  #: bits above the highest limb, for a sum of up to 65 terms and its sign


def window_of(magnitude: BitVec, low: int, count: int, exponents: ExponentRange) -> tuple[BitVec, BitVec]:
    """Two limbs and the carry's bits of a magnitude, from the highest limb that is not zero; the exponent of the last
    bit, which is sticky."""
    bits = 2 * LIMB + CARRY
    window, at = z3.Extract(bits - 1, 0, magnitude), exponents.constant(low)
    for i in range(2, count):
        place = LIMB * (i - 1)
        here = z3.Extract(place + bits - 1, place, magnitude)
        lost = z3.Extract(place - 1, 0, magnitude) != 0
        sticky = z3.If(lost, z3.BitVecVal(1, bits), z3.BitVecVal(0, bits))
        some = z3.Extract(magnitude.size() - 1, LIMB * i, magnitude) != 0
        window, at = z3.If(some, here | sticky, window), z3.If(some, exponents.constant(low + place), at)
    return window, at


def leading_bits(window: BitVec) -> tuple[BitVec, BitVec]:
    """The leading `LEADING` bits of a window, the last one sticky, or all that it has; how many are below them."""
    spare = window.size() - LEADING
    shifted, drop = normalise(window, z3.BitVecVal(spare, spare.bit_length()))
    lost = z3.Extract(spare - 1, 0, shifted) != 0
    sticky = z3.If(lost, z3.BitVecVal(1, LEADING), z3.BitVecVal(0, LEADING))
    return z3.Extract(window.size() - 1, spare, shifted) | sticky, drop


def long_step(spec: DotAdd, parameters: Efda, x: EfdaInputs) -> LongStep:
    """One step whose sum is held in a row of limbs."""
    rho, c_format, low, count = (
        parameters.rho,
        spec.c_format,
        parameters.last_place(spec),
        parameters.limbs(spec),
    )
    singles = exponent_range(c_format)
    exponents = product_range(spec.a_format, spec.b_format).union(singles.low, singles.high)
    bias = spec.a_format.bias + spec.b_format.bias
    products = tuple(x.stages.multiply(y, z, bias, exponents) for y, z in zip(x.a, x.b, strict=True))
    c_term = x.stages.addend(x.c, c_format.bias, exponents)
    width = LIMB * count
    placed: list[BitVec] = []
    for term, bits in (*((p, fraction_bits(spec)) for p in products), (c_term, c_format.fraction_bits)):
        wide = max(term.exponent.size(), 12)
        amount = resize(term.exponent, wide) + z3.BitVecVal((exponents.low - bits - low) % (1 << wide), wide)
        placed.append(resize(term.significand, width) << resize(amount, width))
    total, partial = z3.BitVecVal(0, width + CARRY), list[BitVec]()
    for term, magnitude in zip((*products, c_term), placed, strict=True):
        more = resize(magnitude, width + CARRY)
        total = z3.If(term.sign == 1, total - more, total + more) if partial else negate_if(term.sign, more)
        partial.append(total)
    sign = z3.Extract(width + CARRY - 1, width + CARRY - 1, total)
    magnitude = negate_if(sign, total)
    units = ExponentRange(low, low + LIMB * (count - 2) + 2 * LIMB + CARRY - LEADING)
    window, unit = window_of(magnitude, low, count, units)
    bits, drop = leading_bits(window)
    kept, e_max = negate_if(sign, z3.ZeroExt(1, bits)), unit + resize(drop, units.bits)
    sum_ = LongSum(
        tuple(placed),
        tuple(partial),
        sign,
        magnitude,
        window,
        unit=unit,
        bits=bits,
        e_max=e_max,
        total=kept,
    )
    terms = (*products, c_term)
    x.stages.made("long_sum", terms, sum_, low=low)
    signs = terms if parameters.minus_zero else ()
    rounded = normalise_and_round(kept, e_max, units, 0, rho, low)
    rounded = with_zero_sign(rounded, kept, signs, rho)
    result = select_special(x.special, encode(rounded, rho), rho.format, quiet_nan(rho.format))
    made = Code(kept, rounded, result)
    x.stages.made("round_sum", [sum_, *signs, x.special], made, rho=rho)
    return LongStep(x.a, x.b, x.c, x.special, products, c_term, sum_, rounded, result)


# ---- the chain --------------------------------------------------------------------------------------------------


def step(
    spec: DotAdd, parameters: Efda, a: Sequence[BitVec], b: Sequence[BitVec], c: BitVec, stages: Stages
) -> EfdaStep:
    """One step over L products."""
    a_operands = tuple(stages.decode(x, spec.a_format, parameters.flush_inputs) for x in a)
    b_operands = tuple(stages.decode(x, spec.b_format, parameters.flush_inputs) for x in b)
    c_operand = stages.decode(c, spec.c_format, parameters.flush_inputs)
    special = stages.classify(list(zip(a_operands, b_operands, strict=True)), [c_operand])
    inputs = EfdaInputs(a_operands, b_operands, c_operand, special, stages)
    if parameters.is_long(spec):
        return long_step(spec, parameters, inputs)
    fixed = in_fixed_point(spec, parameters)
    return (fixed_step if fixed else sorted_step)(spec, parameters, inputs)


dot_add = looped(Efda, lambda spec, p, a, b, c, stages: step(spec, p, a, b, c, stages))
