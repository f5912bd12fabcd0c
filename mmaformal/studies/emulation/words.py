"""How much of an fp32 factor its words are, and how large each is: for all factors whose first word is finite.

Let y_0 = a, x_i = φ(y_i) its i-th word, and y_(i+1) = 2^s · (y_i − x_i) what is left of it, s the program's shift, so
that a = Σ x_i · 2^(−s·i) + what is left after the last.  φ rounds to nearest, to f fraction bits, and g is its format's
last place of all.  If |y| ≤ 2^t, then y is 2^t, a number of the format, or its last place there is at most 2^(t−1−f):

    |y − φ(y)| ≤ 2^max(t − f − 2, g − 1).

From |a| ≤ 2^(E+1), E the larger of a's exponent and `least`, this gives |y_i|·2^(−s·i) ≤ 2^(E − p_i), and 2^E is at
most w(a) = max(|a|, 2^least).  So relative to w(a) what is left after i words is at most r_i = 2^(−p_i), and a word at
most r_i + r_(i+1).

The claims are about codes: one of fp32 is at most that of 2^t; differences are integers in units of y's last place.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import z3

from mmaformal.cases.codes import is_finite
from mmaformal.display import ShortRepr
from mmaformal.encodings.emulated import Emulated
from mmaformal.encodings.emulated import smt as emulated
from mmaformal.encodings.smt.blocks import BitVec, Bool, decode, resize
from mmaformal.formats import Format, fp32
from mmaformal.proof.composition import Composing
from mmaformal.proof.definitions import fit
from mmaformal.proof.kernel import ArgumentError
from mmaformal.rounding import Rounding

_BITS = 12  #: of an exponent, in two's complement


@dataclass(frozen=True, repr=False)
class WordCut(ShortRepr):
    """The sizes of words, and of what they leave of a factor, relative to w(a) = max(|a|, 2^least)."""

    format: Format  #: of the words
    shift: int
    least: int
    places: tuple[int, ...]  #: p_i: after i words, from one on, no more than 2^(−p_i) is left

    @classmethod
    def of(cls, p: Emulated, fmt: Format, least: int | None = None) -> WordCut:
        """Return the cut into words of a format; `least` is by default the least exponent at which nothing underflows.

        Raises ValueError for a φ that does not round to nearest, or a `least` that fp32 does not reach.
        """
        if p.rounding is None:
            return cls(fmt, 0, fmt.min_exponent, ())
        if p.rounding.rounding not in (Rounding.RNE, Rounding.RNA):
            raise ValueError(f"words by {p.rounding} are not the nearest ones: no bound of them is known")
        f, last = fmt.fraction_bits, fmt.min_exponent - fmt.fraction_bits
        if least is None:
            least = max(last - p.shift * (p.words - 1) - 2 + p.words * (f + 2), fp32.min_exponent)
        if not fp32.min_exponent <= least <= fmt.max_exponent:
            raise ValueError(f"an exponent of {fp32.min_exponent} to {fmt.max_exponent}, not {least}")
        places, top = [], least + 1
        for i in range(p.words):
            left = max(top - f - 2, last - 1)
            places.append(least - left + p.shift * i)
            top = left + p.shift
        return cls(fmt, p.shift, least, tuple(places))

    @property
    def left(self) -> tuple[Fraction, ...]:
        """r_i: what is left after i words, at most; 1 after none."""
        return Fraction(1), *(Fraction(2) ** -each for each in self.places)

    @property
    def loss(self) -> Fraction:
        """The most that all words leave; 0 where the factor is its own word."""
        return self.left[-1] if self.places else Fraction(0)

    @property
    def sizes(self) -> tuple[Fraction, ...]:
        """At most so large is the weight max(|x_i|, the least normal number) · 2^(−s·i) of each word."""
        if not self.places:
            return (Fraction(1),)
        normal = self.format.min_exponent - self.least
        return tuple(
            max(r + after, Fraction(2) ** (normal - self.shift * i))
            for i, (r, after) in enumerate(zip(self.left, self.left[1:], strict=False))
        )


@dataclass(frozen=True)
class WordStage:
    """A word's interfaces: what it is made of, the word, what it leaves, and what the next is made of."""

    y: BitVec
    word: BitVec
    rest: BitVec
    scaled: BitVec
    top: BitVec  #: |y| ≤ 2^top


def prove_words_of(proving: Composing, p: Emulated, fmt: Format, cut: WordCut) -> None:
    """The claims above, of any factor whose first word is finite.  Raises NotProvedError, ArgumentError."""
    a = z3.BitVec("a", fp32.storage_bits)
    x = decode(a, fp32)
    # One word more than there is: its rest is what the last one leaves.
    found = emulated.words(a, replace(p, words=p.words + 1), fmt)
    if not all(u.eq(v) for u, v in zip(emulated.words(a, p, fmt).codes, found.codes, strict=False)):
        raise ArgumentError(f"{p}: with one word more the others are others")
    field = z3.If(z3.UGE(x.field, cut.least + fp32.bias), x.field, cut.least + fp32.bias)
    exponent = fit(field, _BITS) - fp32.bias
    given = is_finite(found.codes[0], fmt)
    span = z3.And(exponent >= cut.least, exponent <= fmt.max_exponent)
    text = "a factor whose first word is finite is less than 2^(E + 1), E between the least exponent and φ's largest"
    size = _at_most(a, exponent + 1)
    start = proving.claim("factor", text, z3.And(size, span), [given])
    text = "the larger one of |a| and the least is 2^E at least"
    weight = z3.Or(
        exponent == cut.least,
        z3.And(z3.UGE(x.significand, 1 << fp32.fraction_bits), exponent == fit(x.field, _BITS) - fp32.bias),
    )
    proving.claim("weight of a factor", text, weight)
    stages, y, top = [], a, exponent + 1
    for i, (rest, places) in enumerate(zip(found.rests, cut.places, strict=True)):
        stages.append(WordStage(y, found.codes[i], rest.subtraction.result, rest.scaled, top))
        y, left = rest.scaled, _left_of(top, fmt)
        text = f"what is left after {i + 1} words is at most 2^−{places} of 2^E"
        small = left - p.shift * i <= exponent - places
        proving.claim("what is left", text, small, [span])
        top = left + p.shift if p.shift else left
    known = start
    for i, stage in enumerate(stages):
        text = "exponents of what is left are in a narrow range"
        narrow = proving.claim("range", text, _narrow_range(stage.top, fmt, i), [span])
        known = prove_word(proving, p, fmt, stage, i, [known, narrow])
    proving.conclude_all(given)


def prove_word(
    proving: Composing, p: Emulated, fmt: Format, stage: WordStage, i: int, known: Sequence[Bool]
) -> Bool:
    """The claims of the i-th word, of which `known` says how large y is; what is known of the next one's y."""
    y, top, left = stage.y, stage.top, _left_of(stage.top, fmt)
    finite, size, narrow = is_finite(stage.word, fmt), _at_most(y, top), _narrow_range(top, fmt, i)
    proving.claim("size", "a word is of what is no larger", z3.And(size, narrow), known)
    if i:
        text = "a word of what is no larger than a power of two that is a number of φ's is finite"
        proving.claim("word", text, finite, [size, narrow])
    text = "what a word leaves is the difference, exactly"
    proving.claim("rest", text, is_difference(stage, fmt), [finite])
    text = f"a word of {p.rounding} leaves at most 2^max(t − f − 2, g − 1) of what is at most 2^t"
    small = _at_most(stage.rest, left)
    proving.claim("loss", text, small, [size, narrow, finite])
    if not p.shift:
        return small
    text = f"what is left is scaled by 2^{p.shift} exactly"
    scaled = z3.And(_at_most(stage.scaled, left + p.shift), is_scaled(stage.rest, stage.scaled, p.shift))
    proving.claim("scaled", text, scaled, [small, narrow])
    of_next: Bool = scaled.arg(0)
    return of_next


# ---- numbers ---------------------------------------------------------------------------------------------------------


def _left_of(top: BitVec, fmt: Format) -> BitVec:
    """max(t − f − 2, g − 1)."""
    below, least = top - (fmt.fraction_bits + 2), fmt.min_exponent - fmt.fraction_bits - 1
    return z3.If(below > least, below, z3.BitVecVal(least, _BITS))


def _narrow_range(top: BitVec, fmt: Format, i: int) -> Bool:
    """Return the claim that an exponent is far from the least one of its bits, and φ's largest at most; of the first
    word, one more."""
    return z3.And(top >= -(1 << _BITS - 3), top <= fmt.max_exponent + (i == 0))


def _at_most(code: BitVec, exponent: BitVec) -> Bool:
    """Whether the magnitude of a code of fp32 is at most 2^exponent."""
    M, least = fp32.fraction_bits, fp32.min_exponent - fp32.fraction_bits
    wide = z3.SignExt(fp32.storage_bits - _BITS, exponent)
    subnormal = z3.If(
        wide >= least, z3.BitVecVal(1, fp32.storage_bits) << (wide - least), z3.BitVecVal(0, 32)
    )
    power = z3.If(wide >= fp32.min_exponent, (wide + fp32.bias) << M, subnormal)
    return z3.ULE(code & (fp32.sign_mask - 1), power)


def is_difference(stage: WordStage, fmt: Format) -> Bool:
    """Return the claim that the rest is y − word: as integers, in units of y's last place, and that none of them
    wraps."""
    y, x, rest = decode(stage.y, fp32), decode(stage.word, fmt), decode(stage.rest, fp32)
    M, f = fp32.fraction_bits, fmt.fraction_bits
    bits = 2 * M + f + 8
    up = fit(x.field, _BITS) - fit(y.field, _BITS) + (fp32.bias + M - fmt.bias - f)
    word = fit(x.significand, bits) << z3.SignExt(bits - _BITS, up)
    fits = z3.Or(x.significand == 0, z3.And(up >= 0, up <= M + 2))
    difference = _signed(y.sign, fit(y.significand, bits)) - _signed(x.sign, word)
    down = fit(y.field, bits) - fit(rest.field, bits)
    small = z3.And(difference <= 1 << M + 2, difference >= -(1 << M + 2))
    held = z3.And(small, z3.Or(difference == 0, z3.ULE(down, M + 1)))
    same = difference << down == _signed(rest.sign, fit(rest.significand, bits))
    return z3.And(fits, z3.ULE(rest.field, y.field), held, same)


def is_scaled(code: BitVec, scaled: BitVec, shift: int) -> Bool:
    """Return the claim that a code is that of 2^shift times the number of another one, both of fp32."""
    x, z = decode(code, fp32), decode(scaled, fp32)
    bits = x.significand.size() + shift
    up = resize(z.field, bits) - resize(x.field, bits)
    same = resize(z.significand, bits) << up == resize(x.significand, bits) << shift
    number = z3.And(z3.ULE(x.field, z.field), z3.ULE(up, shift), same)
    return z3.And(is_finite(scaled, fp32), z.sign == x.sign, number)


def _signed(sign: BitVec, magnitude: BitVec) -> BitVec:
    return z3.If(sign == 1, -magnitude, magnitude)
