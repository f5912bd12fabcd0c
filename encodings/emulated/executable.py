"""emulated, a program over another instruction, executable.  Specification: semantics §3.

1. Each factor is cut in words of the unit's formats: word = φ(rest), then rest = 2^shift · (rest − word) by an IEEE
   subtraction of fp32 and an exact scaling, as often as there are words.  Without φ it is its only word, converted
   exactly where its format is narrower than the unit's.
   With an exponent in common, e being the largest exponent field of all a (or b) of the step, a factor is first
   scaled by 2^(common − (e − bias + 1)), so that it is below 2^common, and each rest is rounded to an integer before φ:
   1.5 · 2^23 is added to it, and subtracted.
2. The total is c.  Part by part, and within it block by block, the unit takes the part's products of words, each
   result being the next one's c.  Where a part has sums of its own, each starts at +0 and is added to the total, times
   2^-shift, and what the scalings of a and b took, by an IEEE addition.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import NamedTuple

from mmaformal.encodings import executable
from mmaformal.encodings.emulated import Emulated, Part
from mmaformal.encodings.executable.blocks import AnyExecutableStep, Lane, Trace, canonical_nan, maximum
from mmaformal.encodings.executable.chain import looped
from mmaformal.encodings.executable.ieee import Addition, convert, convert_exactly
from mmaformal.encodings.executable.stages import Stages
from mmaformal.formats import Format, fp32
from mmaformal.rounding import IEEE_FP32
from mmaformal.spec import DotAdd

_NAN = canonical_nan(fp32)

#: The code of 1.5 · 2^23: to nearest, its sum with x is an integer, whose last place is 1, for |x| ≤ 2^22.
_INTEGERS = 0x4B400000


class Rest(NamedTuple):
    """The rest that a word leaves of what it was made of."""

    minus: Lane  #: the word in fp32, negated
    subtraction: Addition
    scaled: Lane  #: times 2^shift: what the next word is made of


class Whole(NamedTuple):
    """A number made an integer: 1.5 · 2^23 was added, and subtracted."""

    up: Addition
    down: Addition


class SplitWords(NamedTuple):
    """A factor's words, and what each but the last leaves; with an exponent in common, how each became an integer."""

    codes: tuple[Lane, ...]
    rests: tuple[Rest, ...]
    aligned: Lane = 0  #: the factor in units of the first word; without an exponent in common unused
    wholes: tuple[Whole, ...] = ()


class Common(NamedTuple):
    """The exponent that the factors of a step have in common."""

    fields: tuple[Lane, ...]
    largest: Lane


class SumRun(NamedTuple):
    """One sum: the unit's traces, one for each product of words of each of its blocks, and where it goes."""

    start: Lane  #: the first chain's c
    chain: tuple[Trace[AnyExecutableStep], ...]
    scaled: Lane  #: the sum times 2^-shift
    addition: Addition | None  #: to the total; None where the sum is the total
    result: Lane  #: the total


@dataclass(frozen=True)
class EmulatedStep:
    """The interfaces of one step, in order."""

    a: tuple[SplitWords, ...]
    b: tuple[SplitWords, ...]
    runs: tuple[SumRun, ...]
    result: Lane
    commons: tuple[Common, ...] = ()  #: of a and b


def common_exponent(codes: Sequence[Lane]) -> Common:
    """The largest exponent field of fp32 codes: they are below 2^(largest − bias + 1)."""
    fields = tuple((code >> fp32.fraction_bits) & ((1 << fp32.exponent_bits) - 1) for code in codes)
    return Common(fields, reduce(maximum, fields))


def whole(x: Lane, stages: Stages) -> Whole:
    """x to the nearest integer."""
    up = stages.add(x, stages.code("constant", [], x * 0 + _INTEGERS, fp32), IEEE_FP32, _NAN)
    minus = stages.code("constant", [], x * 0 + (_INTEGERS | fp32.sign_mask), fp32)
    return Whole(up, stages.add(up.result, minus, IEEE_FP32, _NAN))


def words_of(
    x: Lane,
    p: Emulated,
    fmt: Format,
    largest: Lane | None = None,
    narrower: Format | None = None,
    stages: Stages | None = None,
) -> SplitWords:
    """The words of a factor, codes of `fmt`; with an exponent in common, `largest` is its field.

    Without φ the factor is a code of `narrower`, where it is not one of `fmt`.
    """
    stages = Stages() if stages is None else stages
    if p.rounding is None:
        return SplitWords((x if narrower is None else stages.convert(x, narrower, fmt),), ())
    aligned: Lane = 0
    if largest is not None:
        scaled = convert(x, fp32, IEEE_FP32, p.common + fp32.bias - 1 - largest)
        x = aligned = stages.code("scale", [x, largest], scaled, fp32)
    codes: list[Lane] = []
    rests, wholes = [], []
    while len(codes) < p.words:
        if codes:
            negated = convert_exactly(codes[-1], fmt, fp32) ^ fp32.sign_mask
            minus = stages.code("negate", [codes[-1]], negated, fp32)
            subtraction = stages.add(x, minus, IEEE_FP32, _NAN)
            x = subtraction.result
            if p.shift:
                x = stages.code("scale", [x], convert(x, fp32, IEEE_FP32, p.shift), fp32)
            rests.append(Rest(minus, subtraction, x))
        if largest is not None:
            wholes.append(whole(x, stages))
        left = wholes[-1].down.result if wholes else x
        codes.append(stages.code("word", [left], convert(left, fp32, p.rounding), fmt))
    return SplitWords(tuple(codes), tuple(rests), aligned, tuple(wholes))


def _run(
    p: Emulated,
    part: Part,
    blocks: range,
    a: Sequence[SplitWords],
    b: Sequence[SplitWords],
    total: Lane,
    commons: Sequence[Common],
    stages: Stages,
) -> SumRun:
    """One sum of a part, over some blocks."""
    start = partial = stages.zero(total) if part.every else total
    chain = []
    for block in blocks:
        some = slice(block * p.unit.k, (block + 1) * p.unit.k)
        for i, j in part.products:
            x, y = [each.codes[i] for each in a[some]], [each.codes[j] for each in b[some]]
            trace = executable.dot_add(p.unit, x, y, partial)
            partial = stages.made("unit", [*x, *y, partial], trace.result, trace=trace)
            chain.append(trace)
    if not part.every:
        return SumRun(start, tuple(chain), partial, None, partial)
    if commons:
        tops = [each.largest for each in commons]
        scale = tops[0] + tops[1] - 2 * (p.common + fp32.bias - 1) - part.shift
        scaled = stages.code("scale", [partial, *tops], convert(partial, fp32, IEEE_FP32, scale), fp32)
    elif part.shift:
        scaled = stages.code("scale", [partial], convert(partial, fp32, IEEE_FP32, -part.shift), fp32)
    else:
        scaled = partial
    addition = stages.add(total, scaled, IEEE_FP32, _NAN)
    return SumRun(start, tuple(chain), scaled, addition, addition.result)


def step(
    spec: DotAdd, p: Emulated, a: Sequence[Lane], b: Sequence[Lane], total: Lane, stages: Stages
) -> EmulatedStep:
    """One step over `p.step_products` products."""
    commons = (common_exponent(a), common_exponent(b)) if p.common else ()
    for codes, common in zip((a, b), commons, strict=False):
        stages.made("largest_field", codes, common.largest, fields=common.fields)
    of_a, of_b = (each.largest for each in commons) if commons else (None, None)
    x = tuple(words_of(code, p, p.unit.a_format, of_a, spec.a_format, stages) for code in a)
    y = tuple(words_of(code, p, p.unit.b_format, of_b, spec.b_format, stages) for code in b)
    runs = []
    for part in p.parts:
        size = part.every or p.blocks
        for first in range(0, p.blocks, size):
            blocks = range(first, min(first + size, p.blocks))
            runs.append(_run(p, part, blocks, x, y, total, commons, stages))
            total = runs[-1].result
    return EmulatedStep(x, y, tuple(runs), total, commons)


dot_add = looped(lambda spec, a, b, c, stages: step(spec, spec.parameters_as(Emulated), a, b, c, stages))
