"""Where Ootomo and Yokota's product of two numbers is the nearest fp32 number, so that no other program's is nearer.

Of one nonzero product a·b, with c = 0, whose b is a number of fp16 and whose a has 23 significant bits at most, and an
exponent from −13 on, as long as its first word is finite:

1. *words*:       a is the sum of its words A + A'/2^s; b is B, its second word 0;
2. *product*:     the unit gives A·B, and A'·B, exactly: a product of two words has 22 bits;
3. *idle*:        the product of A and the second word of b is 0, and leaves A'·B as it is, and so does c = 0 with A·B;
4. *scaled*:      A'·B/2^s is exact, too;
5. *addition*:    d is the exact sum of both, rounded once, to nearest.

That (A + A'/2^s)·B = A·B + A'·B/2^s is the distributive law, a rule that the proof tells.
Numbers are integers of a fixed point whose last place is below that of all of these.
"""

from __future__ import annotations

from dataclasses import dataclass

import z3

from mmaformal.cases.codes import is_finite
from mmaformal.encodings import smt
from mmaformal.encodings.emulated import Emulated
from mmaformal.encodings.emulated import smt as emulated
from mmaformal.encodings.smt.blocks import BitVec, Bool, Operand, decode, resize
from mmaformal.encodings.smt.ieee import convert
from mmaformal.facts.protocol import UnsupportedError
from mmaformal.formats import Format, fp16, fp32
from mmaformal.proof.composition import Composing, Rule
from mmaformal.rounding import IEEE_FP32
from mmaformal.spec import DotAdd
from mmaformal.theory.additions import AdditionFacts, finite

DISTRIBUTIVE = Rule("distributive law", "(x + y) · z = x · z + y · z, of numbers")

#: exponents of a of which all 23 bits are in its words
LEAST = -13

_LAST = 2 * (fp16.min_exponent - fp16.fraction_bits) - fp32.fraction_bits - 11  #: the last place of all
_BITS = -_LAST + 2 * fp16.max_exponent + 6


def _placed(sign: BitVec, significand: BitVec, place: BitVec) -> BitVec:
    magnitude = resize(significand, _BITS) << resize(place, _BITS)
    return z3.If(sign == 1, -magnitude, magnitude)


def _number(code: BitVec, fmt: Format, shift: int = 0) -> BitVec:
    """The number of a code times 2^-shift, whose last place is not below the last of all; 0 of a zero."""
    x = decode(code, fmt)
    place = resize(x.field, 16) - (fmt.bias + fmt.fraction_bits + shift + _LAST)
    return z3.If(x.significand == 0, z3.BitVecVal(0, _BITS), _placed(x.sign, x.significand, place))


def reaches(code: BitVec, shift: int = 0) -> Bool:
    """Return the claim that an fp32 code is 0, or a number whose last place, times 2^-shift, is not below the last of
    all, and not so large that the fixed point does not hold it."""
    x = decode(code, fp32)
    least = fp32.bias + fp32.fraction_bits + _LAST + shift
    most = fp32.bias + 2 * fp16.max_exponent + 3
    return z3.Or(x.significand == 0, z3.And(z3.UGE(x.field, least), z3.ULE(x.field, most)))


@dataclass(frozen=True)
class WordProduct:
    """The exact product of two words."""

    x: Operand
    y: Operand

    @property
    def significand(self) -> BitVec:
        bits = self.x.significand.size() + self.y.significand.size()
        return resize(self.x.significand, bits) * resize(self.y.significand, bits)

    @property
    def number(self) -> BitVec:
        place = resize(self.x.field, 16) + resize(self.y.field, 16)
        place = place - (2 * (fp16.bias + fp16.fraction_bits) + _LAST)
        return _placed(self.x.sign ^ self.y.sign, self.significand, place)

    @property
    def zero(self) -> Bool:
        """Return the claim that it is zero exactly where a factor is."""
        some = z3.Or(self.x.significand == 0, self.y.significand == 0)
        return (self.significand == 0) == some


@dataclass(frozen=True)
class StepTerms:
    """The terms of a step whose first product alone is not zero."""

    a: BitVec
    b: BitVec
    step: emulated.EmulatedStep
    shift: int

    @classmethod
    def of(cls, spec: DotAdd) -> StepTerms:
        """Raises UnsupportedError for another program than Ootomo and Yokota's in fp16, of one block."""
        p, a, b = spec.parameters_as(Emulated), z3.BitVec("a0", 32), z3.BitVec("b0", 32)
        parts = [(part.products, bool(part.every)) for part in p.parts]
        scheme = parts == [(((0, 0),), True), (((1, 0), (0, 1)), True)] and not p.parts[0].shift
        if (
            not scheme
            or p.unit.a_format != fp16
            or p.blocks != 1
            or spec.k != p.step_products
            or p.shift != 11
        ):
            raise UnsupportedError("emulated", "when one product is the nearest")
        idle = [z3.BitVecVal(0, 32)] * (spec.k - 1)
        trace = smt.dot_add(spec, [a, *idle], [b, *idle], z3.BitVecVal(0, 32))
        (step,) = trace.steps
        return cls(a, b, step, p.shift)

    @property
    def words(self) -> tuple[BitVec, BitVec, BitVec, BitVec]:
        """Both words of a, then both of b."""
        (x, y), (u, v) = self.step.a[0].codes, self.step.b[0].codes
        return x, y, u, v


def nearest_condition(a: BitVec, b: BitVec, first: BitVec, of_b: BitVec) -> Bool:
    """Return the condition on a and b, and on their first words, under which the product is the nearest number."""
    x, y = decode(a, fp32), decode(b, fp32)
    bits = z3.And(z3.UGE(x.field, fp32.bias + LEAST), z3.Extract(0, 0, a) == 0, is_finite(first, fp16))
    return z3.And(z3.Or(bits, x.significand == 0), z3.Not(x.nan), z3.Not(y.nan), is_whole_word(b, of_b))


def is_whole_word(code: BitVec, word: BitVec) -> Bool:
    """Return the claim that a code of fp32 and a finite one of fp16 are the same number."""
    return z3.And(is_finite(word, fp16), convert(word, fp16, fp32) == code)


def prove_one_product(proving: Composing, spec: DotAdd) -> None:
    """Raises NotProvedError."""
    t = StepTerms.of(spec)
    a, a_, b, b_ = t.words
    given = nearest_condition(t.a, t.b, a, b)
    first, second = t.step.runs
    main, total = first.chain[0].result, first.result
    own, both = second.chain[0].result, second.chain[1].result
    numbers = z3.And([is_finite(word, fp16) for word in (a, a_, b, b_)])
    empty = decode(b_, fp16).significand == 0

    sums = _number(t.a, fp32) == _number(a, fp16) + _number(a_, fp16, t.shift)
    text = "a is the sum of its words, and the second of b is 0"
    of_a = proving.claim("words of a", text, z3.Implies(given, z3.And(sums, is_finite(a_, fp16))))
    of_b = proving.claim("words of b", text, z3.Implies(given, z3.And(empty, numbers)), [of_a])
    made = []
    for name, x, y, code in (("main", a, b, main), ("correction", a_, b, own)):
        pair = WordProduct(decode(x, fp16), decode(y, fp16))
        text = "a product of words is zero where a factor is"
        zero = proving.claim(f"{name}: zero", text, pair.zero)
        exact = z3.And(is_finite(code, fp32), reaches(code, t.shift), _number(code, fp32) == pair.number)
        claim = z3.Implies(z3.And(is_finite(x, fp16), is_finite(y, fp16)), exact)
        text = "the unit gives a product of two words exactly"
        made.append(proving.claim(f"{name}: product", text, claim, [zero]))
    made += _sums(proving, t, (main, total, own, both))
    conclusion = z3.And(
        sums,
        empty,
        _number(total, fp32) == WordProduct(decode(a, fp16), decode(b, fp16)).number,
        _number(second.scaled, fp32) << t.shift == WordProduct(decode(a_, fp16), decode(b, fp16)).number,
        finite(total, fp32),
        finite(second.scaled, fp32),
    )
    text = "both summands of d are products of words"
    proving.claim("summands", text, z3.Implies(given, conclusion), [of_a, of_b, *made])
    addition = AdditionFacts(total, second.scaled, second.result, IEEE_FP32)
    addition.prove(proving)
    proving.rests_on(DISTRIBUTIVE)
    right = z3.And(conclusion, addition.rounded, addition.is_kept)
    proving.conclude("where that is given, d is a·b rounded once", z3.Implies(given, right), [given])


def _sums(proving: Composing, t: StepTerms, codes: tuple[BitVec, BitVec, BitVec, BitVec]) -> list[Bool]:
    """Prove that a zero product, c = 0 and the scaling leave a number as it is."""
    main, total, own, both = codes
    a, _, _, b_ = t.words
    scaled = t.step.runs[1].scaled
    plus = [z3.If(code == fp32.sign_mask, z3.BitVecVal(0, 32), code) for code in (main, own)]
    pair = WordProduct(decode(a, fp16), decode(b_, fp16))
    none = proving.claim("idle: zero", "a product of words is zero where a factor is", pair.zero)
    idle = z3.And(
        is_finite(own, fp32), is_finite(a, fp16), is_finite(b_, fp16), decode(b_, fp16).significand == 0
    )
    text = "a zero product leaves the unit's c as it is"
    x, y = decode(both, fp32), decode(scaled, fp32)
    zero = x.significand == 0
    same = z3.And(y.sign == x.sign, y.significand == x.significand, z3.Or(zero, y.field == x.field - t.shift))
    holds = z3.And(is_finite(scaled, fp32), same)
    room = z3.Or(zero, z3.UGT(x.field, t.shift))
    return [
        proving.claim("idle", text, z3.Implies(idle, both == plus[1]), [none]),
        proving.claim(
            "start",
            "c = 0 leaves a sum as it is",
            z3.Implies(is_finite(main, fp32), total == plus[0]),
        ),
        proving.claim(
            "scaled",
            "what is not too small is scaled exactly",
            z3.Implies(z3.And(is_finite(both, fp32), room), holds),
        ),
    ]
