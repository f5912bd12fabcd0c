"""Sums of words that have an exponent in common are exact: sums of integers, each of at most 2^24 (Ozaki et al., 2012).

Of one factor x, whose exponent field is at most the largest, which is that of a number:

1. *aligned*:   x, scaled, is at most 2^common;
2. *integer*:   what 1.5 · 2^23 makes of a number of at most 2^common is an integer of at most 2^common;
3. *word*:      φ gives that integer; what it leaves is, scaled, at most 2^common again, and nothing else is lost.

Of one step of the unit, an fda with F ≥ 23, whose a and b are such integers, and c one of at most 2^24 − Q, where Q is
the step's products times 2^(2 · common):

4. *product*:   a product is the integer m_a · m_b; where it is not zero, its exponent is not negative;
5. *unit*:      so e_max ≤ 23 ≤ F, and each aligned term is its integer times 2^(F − e_max);
6. *sum*:       so the accumulator is N · 2^(F − e_max), N being the sum of all integers;
7. *result*:    d is N, and never −0.

Of the program: words are those of the factors, no factor's exponent is above that in common; a part's steps are the
unit's, each c the result before, the first +0; after n steps the sum is at most n · Q; it is scaled back and added to
the total, and d is the last total.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import z3

from mmaformal.cases.codes import is_finite
from mmaformal.cases.inputs import Inputs, symbolic_inputs
from mmaformal.cases.one_step import one_step
from mmaformal.encodings import smt
from mmaformal.encodings.emulated import Emulated
from mmaformal.encodings.emulated import smt as emulated
from mmaformal.encodings.smt.blocks import BitVec, Bool, Operand, canonical_nan, decode, negate_if, resize
from mmaformal.encodings.smt.ieee import Amount, add, rescale
from mmaformal.facts.exact_terms import prove_inputs
from mmaformal.facts.exactness import Exact
from mmaformal.facts.fused_steps import Fused, fused_step, prove_e_max, prove_highest
from mmaformal.facts.protocol import UnsupportedError
from mmaformal.formats import Format, fp32
from mmaformal.proof.composition import Composing, Rule
from mmaformal.proof.fixed_sums import accumulate, limited
from mmaformal.proof.fused import prove_largest
from mmaformal.proof.kernel import demand
from mmaformal.rounding import IEEE_FP32
from mmaformal.spec import DotAdd, LossModel

#: fp32 has every integer of at most 2^24; one below 2^24 has an exponent of at most 23.
_MOST = fp32.fraction_bits + 1

EACH = Rule(
    "each factor and each step",
    "what is proved of one factor with any exponent in common, and of one step with any integers, holds of all of them,"
    " one after the other",
)


class IntegerWord(NamedTuple):
    """A number that is to be an integer of at most 2^bits."""

    x: Operand
    is_one: Bool
    magnitude: BitVec
    places: BitVec  #: twice the significand is magnitude · 2^places


def integer_word(code: BitVec, fmt: Format, bits: int) -> IntegerWord:
    """The integer that a code is, where it is one of at most 2^bits; bits is at most the significand's."""
    x, M = decode(code, fmt), fmt.fraction_bits
    demand(bits <= M + 1, "an integer has more bits than the significand")
    twice = z3.Concat(x.significand, z3.BitVecVal(0, 1))
    places = z3.BitVecVal(M + 1 + fmt.bias, twice.size()) - resize(x.field, twice.size())
    magnitude = z3.LShR(twice, places)
    normal = z3.And(z3.UGE(x.field, fmt.bias), z3.ULE(x.field, fmt.bias + bits))
    whole = z3.And(magnitude << places == twice, z3.ULE(magnitude, 1 << bits))
    return IntegerWord(x, z3.Or(x.significand == 0, z3.And(normal, whole)), magnitude, places)


def prove_program(proving: Composing, spec: DotAdd) -> Exact:
    """Raises NotProvedError."""
    p = spec.parameters_as(Emulated)
    if not p.common:
        raise UnsupportedError(p.algorithm, "when d is the exact sum")
    claims = _prove_flow(proving, spec)
    for fmt in dict.fromkeys((p.unit.a_format, p.unit.b_format)):
        claims += prove_words(proving, p, fmt)
    claims.append(_prove_step(proving, p.unit, p.common))
    proving.rests_on(EACH)
    text = (
        f"each sum on the unit is exact, that of products w · v of words of the factors, integers with |w|, |v| ≤"
        f" 2^{p.common}, and at most 2^{_MOST}; d is c and {len(p.parts)} such sums, each times a power of two, in fp32"
    )
    return Exact(z3.BoolVal(True), z3.BoolVal(True), z3.And(claims), tuple(claims), text, _chain)


def _chain(proving: Composing, spec: DotAdd) -> Sequence[z3.BoolRef]:
    raise UnsupportedError("emulated", "when a chain of programs is exact")


# ---- words -----------------------------------------------------------------------------------------------------------


def prove_words(proving: Composing, p: Emulated, fmt: Format) -> list[Bool]:
    """Prove that each word of a number is an integer of at most 2^common.  Raises NotProvedError."""
    x, largest = z3.BitVec("x", fp32.storage_bits), z3.BitVec("largest", fp32.exponent_bits)
    words = emulated.words(x, p, fmt, emulated.Common((), largest))
    of_x = z3.Extract(30, fp32.fraction_bits, x)
    given = z3.And(z3.ULE(of_x, largest), z3.ULT(largest, 255))
    assert words.aligned is not None
    left, bits = words.aligned, p.common
    text = f"a factor, scaled, is at most 2^{bits}"
    known = proving.claim("aligned", text, z3.Implies(given, _at_most(left, bits)))
    claims = [_prove_scaled(proving, x, largest, left, bits)]
    for n, (code, whole) in enumerate(zip(words.codes, words.wholes, strict=True)):
        if n:
            text = f"what a word leaves, scaled, is at most 2^{bits}"
            after, small = words.rests[n - 1].scaled, _at_most(left, bits)
            rest = proving.claim("rest", text, z3.Implies(small, _at_most(after, bits)))
            claims.append(_prove_left(proving, (left, bits), words, n - 1, fmt, p.shift))
            known = proving.claim("next", text, z3.Implies(given, _at_most(after, bits)), [known, rest])
            left = after
        small, made = _at_most(left, bits), whole.down.result
        is_whole, is_word = integer_word(made, fp32, bits).is_one, integer_word(code, fmt, bits).is_one
        text = f"1.5 · 2^23 makes an integer of what is at most 2^{bits}"
        exact = proving.claim("integer", text, z3.Implies(small, is_whole))
        word = proving.claim("word", "φ gives that integer", z3.Implies(is_whole, is_word))
        text = f"a word is an integer of at most 2^{bits}"
        claims.append(proving.claim("words", text, z3.Implies(given, is_word), [known, exact, word]))
    return claims


def _prove_scaled(proving: Composing, x: BitVec, largest: BitVec, aligned: BitVec, bits: int) -> Bool:
    """Prove that a factor is scaled by 2^(common − (largest − bias + 1)): exactly, where neither is subnormal."""
    u, v = decode(x, fp32), decode(aligned, fp32)
    field = resize(u.field, 12) + (bits + fp32.bias - 1) - resize(largest, 12)
    normal = z3.And(z3.UGE(u.significand, 1 << fp32.fraction_bits), field > 0, z3.ULE(u.field, largest))
    same = z3.And(v.sign == u.sign, v.significand == u.significand, resize(v.field, 12) == field)
    text = "a factor is scaled exactly, where it is not subnormal before or after"
    return proving.claim("scaled factor", text, z3.Implies(z3.And(normal, z3.ULT(largest, 255)), same))


def _prove_left(
    proving: Composing, of: tuple[BitVec, int], words: emulated.SplitWords, n: int, fmt: Format, shift: int
) -> Bool:
    """Prove that a word and what it leaves, scaled back, are what it was made of: exactly, in a fixed point."""
    left, bits = of
    last, after = fp32.min_exponent - fp32.fraction_bits, words.rests[n].scaled
    width = bits - last + shift + 4
    word = integer_word(words.codes[n], fmt, bits)
    whole = negate_if(word.x.sign, resize(word.magnitude, width)) << (-last + shift)
    claim = _placed(left, width) << shift == whole + _placed(after, width)
    text = f"what a word is made of is the word and 2^-{shift} of what it leaves"
    return proving.claim("left", text, z3.Implies(_at_most(left, bits), claim))


def _placed(code: BitVec, width: int) -> BitVec:
    """The number of a code of fp32 in units of its least subnormal one."""
    x = decode(code, fp32)
    return negate_if(x.sign, resize(x.significand, width) << resize(x.field - 1, width))


def _at_most(code: BitVec, exponent: int) -> Bool:
    """Return the claim that a code of fp32 is a number of at most 2^exponent."""
    return z3.ULE(z3.Extract(30, 0, code), (fp32.bias + exponent) << fp32.fraction_bits)


# ---- a step of the unit ----------------------------------------------------------------------------------------------


class IntegerTerm(NamedTuple):
    """A term of a step, as an integer."""

    magnitude: BitVec
    most: int
    given: Bool  #: that its codes are integers
    said: Bool  #: that it is at most `most`, and zero, or significand · 2^exponent
    claim: Bool  #: that it is what is said where that is given


class Frame(NamedTuple):
    """The frame that all terms are compared in: so wide that none of them wraps in units of 2^(e_max − F)."""

    bits: int
    amount: BitVec  #: F − e_max
    small: Bool  #: e_max ≤ 23
    whole: Bool  #: e_max ≥ 0

    def scaled(self, x: BitVec) -> BitVec:
        return x << self.amount


def _prove_step(proving: Composing, unit: DotAdd, bits: int) -> Bool:
    """Prove that a step of words, and an integer c, gives the integer that is their sum.  Raises NotProvedError."""
    p = unit.parameters
    if p.loss is not LossModel.TERMS or fp32.fraction_bits > p.kept_places(unit):
        raise UnsupportedError(p.algorithm, "why sums of integers are exact")
    one = one_step(unit)
    inputs = symbolic_inputs(one)
    x, formats = fused_step(one, inputs), (unit.a_format, unit.b_format)
    numbers = prove_inputs(proving, one, inputs, x.step)
    words = [
        [integer_word(code, fmt, bits) for code, fmt in zip(pair, formats, strict=True)]
        for pair in zip(inputs.a, inputs.b, strict=True)
    ]
    c, reach = integer_word(inputs.c, fp32, _MOST), (1 << _MOST) - _step_most(unit, bits)
    small = z3.ULE(c.magnitude, z3.BitVecVal(reach, c.magnitude.size()))
    at_most, some = prove_e_max(proving, x)
    terms = [_prove_product(proving, x, k, pair, bits) for k, pair in enumerate(words)]
    terms.append(_prove_c(proving, x, c, small, reach))
    given = z3.And([term.given for term in terms])
    frame = _prove_unit(proving, x, terms, some, given)
    total = _prove_sum(proving, x, frame, terms, at_most, given)
    ranged = prove_highest(proving, x, at_most, some)
    finite = _prove_finite(
        proving, one, inputs, [*(each for pair in words for each in pair), c], given, numbers
    )
    return _prove_result(proving, x, frame, total, given, [*ranged, finite])


def _step_most(unit: DotAdd, bits: int) -> int:
    """Return what the products of a step add up to at most."""
    return unit.parameters.step_products << 2 * bits


def _is_placed(x: Fused, k: int, magnitude: BitVec, most: int) -> Bool:
    """Return the claim that the k-th term is an integer: zero, or of an exponent E ≥ 0, and significand · 2^E."""
    summand, low = x.summands[k], x.exponents.low
    S, e, M = summand.term.significand, summand.term.exponent, summand.fraction_bits
    width = S.size() + fp32.fraction_bits + M + 2
    moved = resize(S, width) << resize(e - z3.BitVecVal(-low, e.size()), width)
    same = z3.And(z3.UGE(e, -low), moved == resize(magnitude, width) << M)
    zero = z3.And(S == 0, magnitude == 0)
    return z3.And(z3.ULE(e, fp32.fraction_bits - low), z3.ULE(magnitude, most), z3.Or(zero, same))


def _prove_product(
    proving: Composing, x: Fused, k: int, pair: Sequence[IntegerWord], bits: int
) -> IntegerTerm:
    """With 2^i and 2^j, the scales of both integers, 4 · S = (m_a · 2^i) · (m_b · 2^j) = (m_a · m_b) · 2^(i + j).

    No solver multiplies: what is left is an identity of polynomials, and shifts.
    """
    summand, low = x.summands[k], x.exponents.low
    S, e, M = summand.term.significand, summand.term.exponent, summand.fraction_bits
    width = S.size() + 2 * bits + 4  # nothing wraps
    given, operands = z3.And([each.is_one for each in pair]), [each.x.significand for each in pair]
    u, v = (resize(each.magnitude, width) for each in pair)
    twos = [resize(significand, width) << 1 for significand in operands]
    i, j = (z3.BitVecVal(1, width) << resize(each.places, width) for each in pair)
    m, four, plain, scaled = u * v, resize(S, width) << 2, twos[0] * twos[1], (u * i) * (v * j)

    text = "a word's significand is its integer, scaled"
    equal = [twos[0] == u * i, twos[1] == v * j]
    factors = [
        proving.claim("factor", text, z3.Implies(each.is_one, claim))
        for each, two, own, same in zip(pair, twos, (u, v), equal, strict=True)
        for claim in [z3.And(same, z3.Implies(two == 0, own == 0), z3.ULE(own, 1 << bits))]
    ]
    nothing, some = (S == 0, m == 0), z3.Or([two == 0 for two in twos])
    text = "a product is zero where a factor is"
    zero = proving.claim("zero", text, nothing[0] == some)
    idle = proving.claim("zero integer", text, z3.Implies(z3.Or(u == 0, v == 0), nothing[1]))
    text = f"a product of words is at most 2^{2 * bits}"
    bounds = z3.And(z3.ULE(u, 1 << bits), z3.ULE(v, 1 << bits))
    most = proving.claim("product at most", text, z3.Implies(bounds, z3.ULE(m, 1 << 2 * bits)))

    left = z3.BitVecVal(M + 2 - low, width) - resize(e, width)
    power, not_high = z3.BitVecVal(1, width) << left, z3.ULE(e, 2 * bits - low)
    text = "a product of words that is not zero has an exponent from 0 on, and both scales give it"
    own = z3.And(z3.UGE(e, -low), i * j == power)
    claim = z3.Implies(given, z3.And(not_high, z3.Or(some, own)))
    exponent = proving.claim("scales", text, claim)
    text = "four times a product is that of both significands, doubled"
    doubled = proving.claim("doubled", text, four == plain)
    text = "equal factors have equal products"
    same = proving.claim("substituted", text, z3.Implies(z3.And(equal), plain == scaled))
    is_power = z3.Implies(i * j == power, m * (i * j) == m * power)
    scale = proving.claim("scale", text, is_power)
    text = "factors of a product may change places"
    identity = proving.claim("identity", text, scaled == m * (i * j))
    text = "so four times a product is its integer, scaled"
    is_scaled, shifted = four == m * power, four == m << left
    using = [*factors, doubled, same, scale, identity, exponent]
    product = proving.claim("scaled", text, z3.Implies(z3.And(given, z3.Not(some)), is_scaled), using)
    moved = proving.claim("shifted", text, z3.Implies(is_scaled, shifted))
    text = "a product of words is that integer"
    said = _is_placed(x, k, m, 1 << 2 * bits)
    sized = z3.And(not_high, z3.UGE(e, -low), z3.ULE(m, 1 << 2 * bits))
    placed = proving.claim("placed", text, z3.Implies(z3.And(sized, shifted), said))
    using = [*factors, product, moved, exponent, most, placed, zero, idle]
    claim = proving.claim("product of words", text, z3.Implies(given, said), using)
    return IntegerTerm(m, 1 << 2 * bits, given, said, claim)


def _prove_c(proving: Composing, x: Fused, c: IntegerWord, small: Bool, most: int) -> IntegerTerm:
    said, given = _is_placed(x, len(x.summands) - 1, c.magnitude, most), z3.And(c.is_one, small)
    return IntegerTerm(
        c.magnitude, most, given, said, proving.claim("c", "c is that integer", z3.Implies(given, said))
    )


def _prove_unit(proving: Composing, x: Fused, terms: Sequence[IntegerTerm], some: Bool, given: Bool) -> Frame:
    """Prove that where all codes are integers, e_max ≤ 23."""
    e_max, low = x.step.e_max, x.exponents.low
    bits, top = x.step.total.size() + x.F + 2, fp32.fraction_bits - low
    amount = z3.BitVecVal(x.F - low, bits) - resize(e_max, bits)
    frame = Frame(bits, amount, z3.ULE(e_max, top), z3.UGE(e_max, -low))
    exponents = [s.term.exponent for s in x.summands]
    each = [z3.ULE(e, top) for e in exponents]
    text = "an integer's exponent is at most 23"
    claims = [
        proving.claim("exponent", text, z3.Implies(term.given, small), [term.claim])
        for term, small in zip(terms, each, strict=True)
    ]
    text = "so e_max is at most 23"
    claim = z3.Implies(z3.And(each), frame.small)
    largest = proving.claim("largest", text, claim, [some])
    proving.claim("unit", text, z3.Implies(given, frame.small), [*claims, largest])
    return frame


def _prove_sum(
    proving: Composing,
    x: Fused,
    frame: Frame,
    terms: Sequence[IntegerTerm],
    at_most: Sequence[Bool],
    given: Bool,
) -> tuple[BitVec, Bool]:
    """(the sum of the integers; that where all codes are integers, the accumulator is that, scaled; it is 0 or e_max
    not negative; and how large both are at most)."""
    bits = frame.bits
    within = [z3.ULE(s.aligned, bound) for s, bound in zip(x.summands, x.bounds, strict=True)]
    added = accumulate(proving, x.step.total, x.whole.signed, x.bounds, within, bits)
    number, most, known = z3.BitVecVal(0, bits), 0, z3.BoolVal(True)
    for k, (summand, term) in enumerate(zip(x.summands, terms, strict=True)):
        mine = _prove_aligned(proving, x, frame, k, (term, at_most[k], given))
        m, sign = resize(term.magnitude, bits), summand.term.sign
        signed, value = negate_if(sign, m), added.terms[k]
        text = "an integer's negative, scaled, is that of it, scaled"
        claim = z3.Implies(mine.arg(1).arg(0), value == frame.scaled(signed))
        negated = proving.claim("negated", text, claim)
        before, number = number, number + signed if k else signed
        below, most = most, most + term.most
        text = "the sum of integers, scaled, is that of both, scaled"
        claim = frame.scaled(number) == frame.scaled(before) + frame.scaled(signed)
        together = proving.claim("together", text, claim)
        text = "so is the sum of the integers 0, or e_max not negative; and no sum is too large"
        so_far = z3.And(z3.Or(before == 0, frame.whole), limited(before, below))
        of_number = z3.Or(number == 0, frame.whole), limited(number, most)
        claim = z3.Implies(z3.And(so_far, *mine.arg(1).children()[1:]), z3.And(of_number))
        sized = proving.claim("number", text, claim)
        text = "so the accumulator's terms add up to the integers, scaled"
        claim = z3.Implies(given, z3.And(added.sums[k] == frame.scaled(number), *of_number))
        known = proving.claim("sum", text, claim, [*([known] if k else []), mine, negated, together, sized])
    text = "so the accumulator is the sum of the integers, scaled"
    _, whole, small = known.arg(1).children()
    in_range = limited(x.step.total, added.reach)
    said = z3.And(added.value == frame.scaled(number), whole, in_range, small)
    using = [known, added.prove_total(proving)]
    return number, proving.claim("accumulated", text, z3.Implies(given, said), using)


def _prove_aligned(
    proving: Composing, x: Fused, frame: Frame, k: int, of: tuple[IntegerTerm, Bool, Bool]
) -> Bool:
    """Prove of the k-th term that, aligned, it is its integer, scaled, where all codes are integers."""
    (term, below, given), m = of, resize(of[0].magnitude, frame.bits)
    aligned = resize(x.summands[k].aligned, frame.bits)
    same = z3.And(aligned == frame.scaled(m), z3.Or(m == 0, frame.whole), z3.ULE(m, term.most))
    text = "an aligned term is its integer, scaled"
    claim = z3.Implies(z3.And(term.said, frame.small), same)
    placed = proving.claim("aligned", text, claim, [below])
    using = [term.claim, z3.Implies(given, frame.small), placed]
    return proving.claim("placed", text, z3.Implies(given, same), using)


def _prove_finite(
    proving: Composing, one: DotAdd, x: Inputs, integers: Sequence[IntegerWord], given: Bool, numbers: Bool
) -> Bool:
    """Prove that integers are numbers."""
    codes = [y for pair in zip(x.a, x.b, strict=True) for y in pair]
    formats = [*(one.a_format, one.b_format) * len(x.a), one.c_format]
    claims = [
        proving.claim("number", "an integer is a number", z3.Implies(each.is_one, is_finite(code, fmt)))
        for each, code, fmt in zip(integers, [*codes, x.c], formats, strict=True)
    ]
    return proving.claim("numbers", "so every input is a number", z3.Implies(given, numbers), claims)


def _prove_result(
    proving: Composing,
    x: Fused,
    frame: Frame,
    total: tuple[BitVec, Bool],
    given: Bool,
    known: Sequence[Bool],
) -> Bool:
    """Prove that d is the sum of the integers."""
    number, added = total
    *ranged, finite = known
    d, special = x.step.result, z3.Or(*x.step.special)
    result = integer_word(d, fp32, _MOST)
    is_it = negate_if(result.x.sign, resize(result.magnitude, frame.bits)) == number
    is_sum = z3.And(result.is_one, is_it, d != fp32.sign_mask)
    said = z3.And(added.arg(1), frame.small)
    text = "d is that integer"
    claim = z3.Implies(z3.And(said, z3.Not(special)), is_sum)
    rounded = proving.claim("result", text, claim, ranged)
    text = "where a and b are words, and c an integer, d is the integer that is their sum, and not −0"
    none = z3.Implies(finite.arg(1), z3.Not(special))
    using = [added, z3.Implies(given, frame.small), finite, none, rounded]
    return proving.claim("step", text, z3.Implies(given, is_sum), using)


def _between(x: BitVec, bound: BitVec) -> Bool:
    """−bound ≤ x ≤ bound"""
    return z3.And(x <= bound, -bound <= x)


# ---- all of a part ---------------------------------------------------------------------------------------------------


def _prove_flow(proving: Composing, spec: DotAdd) -> list[Bool]:
    """Prove that words are those of the factors, with exponents in common that no factor's is above; that a part's
    steps are
    steps of the unit on them, each c the result before, the first +0; and what the total is after each part, and d."""
    p, x = spec.parameters_as(Emulated), symbolic_inputs(spec)
    if spec.k != p.step_products:
        raise UnsupportedError(p.algorithm, "when a chain of programs is exact")
    if any(len(part.products) > 1 or part.every != p.blocks for part in p.parts):
        raise UnsupportedError(p.algorithm, "when a sum of several products of words is exact")
    trace = smt.dot_add(spec, x.a, x.b, x.c)
    (step,) = trace.steps
    assert isinstance(step, emulated.EmulatedStep)
    claims = [
        *_prove_sides(proving, p, (x.a, step.a, p.unit.a_format, step.commons[0])),
        *_prove_sides(proving, p, (x.b, step.b, p.unit.b_format, step.commons[1])),
    ]
    one, total = one_step(p.unit), x.c
    for part, run in zip(p.parts, step.runs, strict=True):
        ((i, j),), c = part.products, z3.BitVecVal(0, fp32.storage_bits)
        results = [each.result for each_trace in run.chain for each in each_trace.steps]
        text = "a step of a part is one of the unit, on words, whose c is the result before, the first +0"
        for n, result in enumerate(results):
            some = slice(n * one.k, (n + 1) * one.k)
            a, b = ([y.codes[word] for y in side[some]] for side, word in ((step.a, i), (step.b, j)))
            alone = smt.dot_add(one, a, b, c).result
            claims.append(proving.claim("step of a part", text, result == alone))
            c = result
        tops = [resize(each.largest, fp32.exponent_bits + 1) for each in step.commons]
        places = Amount(tops[0] + tops[1], -part.shift - 2 * (p.common + fp32.bias - 1))
        after = add(total, rescale(c, fp32, IEEE_FP32, places), IEEE_FP32, canonical_nan(fp32)).result
        text = "after a part the total is the one before and the sum, scaled back, added in fp32"
        claims.append(proving.claim("total", text, run.result == after))
        total = run.result
    text = "d is the last total"
    claims.append(proving.claim("last total", text, z3.And(step.result == total, trace.result == total)))
    return [*claims, _prove_growth(proving, p.unit, p.common, spec.k // one.k)]


def _prove_sides(
    proving: Composing,
    p: Emulated,
    side: tuple[Sequence[BitVec], Sequence[emulated.SplitWords], Format, emulated.Common],
) -> list[Bool]:
    """Prove of all a, or all b, that words are a factor's, and its exponent field not above the one in common."""
    codes, words, fmt, common = side
    fields = [z3.Extract(30, fp32.fraction_bits, code) for code in codes]
    at_most, _ = prove_largest(proving, "fields", common.largest, fields)
    claims, text = list(at_most), "a factor's words are those of its code and the exponent in common"
    for code, made in zip(codes, words, strict=True):
        told = emulated.words(code, p, fmt, emulated.Common((), common.largest)).codes
        same = z3.And([u == v for u, v in zip(made.codes, told, strict=True)])
        claims.append(proving.claim("words of a factor", text, same))
    return claims


def _prove_growth(proving: Composing, unit: DotAdd, bits: int, count: int) -> Bool:
    """Prove that no sum before the last of so many steps is above what a step's c may be."""
    most, width = _step_most(unit, bits), 2 * _MOST
    c, own, n = (z3.BitVec(name, width) for name in ("c", "own", "n"))
    given = z3.And(z3.ULT(n, count), _between(c, n * most), _between(own, z3.BitVecVal(most, width)))
    fits = _between(c, z3.BitVecVal((1 << _MOST) - most, width))
    claim = z3.Implies(given, z3.And(fits, _between(c + own, (n + 1) * most)))
    text = f"after n steps a sum is at most n · {most}, and after all of them but the last at most 2^{_MOST} − {most}"
    return proving.claim("sums", text, claim)
