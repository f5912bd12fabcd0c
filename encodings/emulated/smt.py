"""emulated, a program over another instruction, as bit-vector terms.  Specification: semantics §3.

Words of factors and scalings are codes (`ieee.rescale`), what a word leaves and what is added to the total are IEEE
additions of fp32 (`ieee.add`); in between are the unit's own terms, whose widths are its file's matter.  An exponent
in common is the largest exponent field, unsigned; what scales by it is an `ieee.Amount`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import z3

from mmaformal.encodings import smt
from mmaformal.encodings.emulated import Emulated, Part
from mmaformal.encodings.smt.blocks import BitVec, Trace, canonical_nan, maximum, resize
from mmaformal.encodings.smt.chain import looped
from mmaformal.encodings.smt.ieee import Addition, Amount, convert, rescale
from mmaformal.encodings.smt.stages import Stages
from mmaformal.formats import Format, fp32
from mmaformal.rounding import IEEE_FP32
from mmaformal.spec import DotAdd

#: 1.5 · 2^23: the last place of what it is added to is 1, if that is not beyond ±2^22
_INTEGERS = (fp32.bias + fp32.fraction_bits) << fp32.fraction_bits | 1 << (fp32.fraction_bits - 1)


class UnitStep(Protocol):
    """A step of the unit, of whichever algorithm."""

    @property
    def result(self) -> BitVec: ...


class Rest(NamedTuple):
    """The rest that a word leaves of what it was made of."""

    minus: BitVec  #: the word in fp32, negated
    subtraction: Addition
    scaled: BitVec  #: times 2^shift: what the next word is made of


class Whole(NamedTuple):
    """A number rounded to an integer: 1.5 · 2^23 added, and subtracted."""

    up: Addition
    down: Addition


class SplitWords(NamedTuple):
    """A factor's words, and what each but the last leaves; with an exponent in common, how each became an integer."""

    codes: tuple[BitVec, ...]
    rests: tuple[Rest, ...]
    aligned: BitVec | None = None  #: the factor times 2^(common − exponent in common)
    wholes: tuple[Whole, ...] = ()


class Common(NamedTuple):
    """The exponent that the factors of a step have in common."""

    fields: tuple[BitVec, ...]
    largest: BitVec


class SumRun(NamedTuple):
    """One sum of a part, and the total after it."""

    start: BitVec  #: the first chain's c
    chain: tuple[Trace[UnitStep], ...]  #: of the unit, for each block the products of words
    scaled: BitVec
    addition: Addition | None  #: None where the sum is the total
    result: BitVec


@dataclass(frozen=True)
class EmulatedStep:
    """The interfaces of one step, in order."""

    a: tuple[SplitWords, ...]
    b: tuple[SplitWords, ...]
    runs: tuple[SumRun, ...]
    result: BitVec
    commons: tuple[Common, ...] = ()  #: of a and b


def negate(code: BitVec) -> BitVec:
    """With the other sign, NaNs too."""
    top = code.size() - 1
    return z3.Concat(~z3.Extract(top, top, code), z3.Extract(top - 1, 0, code))


def whole(x: BitVec, stages: Stages) -> Whole:
    constant = stages.code("constant", [], z3.BitVecVal(_INTEGERS, fp32.storage_bits), fp32)
    up = stages.add(x, constant, IEEE_FP32, canonical_nan(fp32))
    minus = stages.code("constant", [], negate(constant), fp32)
    return Whole(up, stages.add(up.result, minus, IEEE_FP32, canonical_nan(fp32)))


def words(
    factor: BitVec,
    parameters: Emulated,
    fmt: Format,
    common: Common | None = None,
    own: Format | None = None,
    stages: Stages | None = None,
) -> SplitWords:
    """Words of `fmt`, of a factor of fp32, or, without φ, of its `own` format (by default `fmt`)."""
    rounding = parameters.rounding
    stages = Stages() if stages is None else stages
    if rounding is None:
        return SplitWords((factor if own is None else stages.convert(factor, own, fmt),), ())
    left, aligned = factor, None
    if common is not None:  # 2^(common − (largest − bias + 1)); 255 − largest is its complement
        low = parameters.common + fp32.bias - 1 - ((1 << fp32.exponent_bits) - 1)
        scaled = rescale(factor, fp32, IEEE_FP32, Amount(~common.largest, low))
        left = aligned = stages.code("scale", [factor, common.largest], scaled, fp32)
    codes: tuple[BitVec, ...] = ()
    rests: tuple[Rest, ...] = ()
    wholes: tuple[Whole, ...] = ()
    for _ in range(parameters.words):
        if codes:
            minus = stages.code("negate", [codes[-1]], negate(convert(codes[-1], fmt, fp32)), fp32)
            subtraction = stages.add(left, minus, IEEE_FP32, canonical_nan(fp32))
            left = subtraction.result
            if parameters.shift:
                left = stages.code("scale", [left], rescale(left, fp32, IEEE_FP32, parameters.shift), fp32)
            rests += (Rest(minus, subtraction, left),)
        if common is not None:
            wholes += (whole(left, stages),)
        last = wholes[-1].down.result if wholes else left
        codes += (stages.code("word", [last], rescale(last, fp32, rounding), fmt),)
    return SplitWords(codes, rests, aligned, wholes)


def common_exponent(factors: Sequence[BitVec]) -> Common:
    low = fp32.fraction_bits
    fields = tuple(z3.Extract(low + fp32.exponent_bits - 1, low, x) for x in factors)
    return Common(fields, maximum(fields))


def descaled(sum_: BitVec, part: Part, parameters: Emulated, commons: Sequence[Common]) -> BitVec:
    """A part's sum, as it is added to the total."""
    shift: int | Amount = -part.shift
    if commons:
        bits = fp32.exponent_bits + 1
        of_a, of_b = (resize(each.largest, bits) for each in commons)
        shift = Amount(of_a + of_b, -part.shift - 2 * (parameters.common + fp32.bias - 1))
    return rescale(sum_, fp32, IEEE_FP32, shift) if shift != 0 else sum_


def block_sum(
    parameters: Emulated,
    part: Part,
    a: Sequence[SplitWords],
    b: Sequence[SplitWords],
    total: BitVec,
    commons: Sequence[Common],
    stages: Stages,
) -> SumRun:
    """The sum of the products of whole blocks, and the total with it."""
    unit = parameters.unit
    start = partial = stages.zero(fp32) if part.every > 0 else total
    traces = []
    for block in range(0, len(a), unit.k):
        stop = block + unit.k
        for of_a, of_b in part.products:
            x = [factor.codes[of_a] for factor in a[block:stop]]
            y = [factor.codes[of_b] for factor in b[block:stop]]
            traces.append(smt.dot_add(unit, x, y, partial))
            partial = stages.made("unit", [*x, *y, partial], traces[-1].result, trace=traces[-1], unit=unit)
    if part.every == 0:
        return SumRun(start, tuple(traces), partial, None, partial)
    scaled = descaled(partial, part, parameters, commons)
    if commons or part.shift:
        stages.code("scale", [partial, *(each.largest for each in commons)], scaled, fp32)
    addition = stages.add(total, scaled, IEEE_FP32, canonical_nan(fp32))
    return SumRun(start, tuple(traces), scaled, addition, addition.result)


def step(
    spec: DotAdd, p: Emulated, a: Sequence[BitVec], b: Sequence[BitVec], c: BitVec, stages: Stages
) -> EmulatedStep:
    """One step: all of the program, over as many products as it takes."""
    commons = tuple(map(common_exponent, (a, b))) if p.common else ()
    for codes, common in zip((a, b), commons, strict=False):
        stages.made("largest_field", codes, common.largest, fields=common.fields)
    each = commons or (None, None)
    of_a = tuple(words(x, p, p.unit.a_format, each[0], spec.a_format, stages) for x in a)
    of_b = tuple(words(x, p, p.unit.b_format, each[1], spec.b_format, stages) for x in b)
    runs: list[SumRun] = []
    for part in p.parts:
        products = (part.every or p.blocks) * p.unit.k
        for start in range(0, len(a), products):
            total = runs[-1].result if runs else c
            some = slice(start, start + products)
            runs.append(block_sum(p, part, of_a[some], of_b[some], total, commons, stages))
    return EmulatedStep(of_a, of_b, tuple(runs), runs[-1].result, commons)


dot_add = looped(Emulated, lambda spec, p, a, b, c, stages: step(spec, p, a, b, c, stages))
