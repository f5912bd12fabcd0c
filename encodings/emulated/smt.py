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
from mmaformal.encodings.smt.chain import chained
from mmaformal.encodings.smt.ieee import Addition, Amount, add, convert, rescale
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
    """What a word leaves of what it was made of."""

    minus: BitVec  #: the word in fp32, negated
    subtraction: Addition
    scaled: BitVec  #: times 2^shift: what the next word is made of


class Whole(NamedTuple):
    """A number rounded to an integer: 1.5 · 2^23 added, and subtracted."""

    up: Addition
    down: Addition


class Words(NamedTuple):
    """A factor's words, and what each but the last leaves; with an exponent in common, how each became an integer."""

    codes: tuple[BitVec, ...]
    rests: tuple[Rest, ...]
    aligned: BitVec | None = None  #: the factor times 2^(common − exponent in common)
    wholes: tuple[Whole, ...] = ()


class Common(NamedTuple):
    """The exponent that the factors of a step have in common."""

    fields: tuple[BitVec, ...]
    largest: BitVec


class Run(NamedTuple):
    """One sum of a part, and the total after it."""

    start: BitVec  #: the first chain's c
    chain: tuple[Trace[UnitStep], ...]  #: of the unit, for each block the products of words
    scaled: BitVec
    addition: Addition | None  #: None where the sum is the total
    result: BitVec


@dataclass(frozen=True)
class EmulatedStep:
    """The interfaces of one step, in order."""

    a: tuple[Words, ...]
    b: tuple[Words, ...]
    runs: tuple[Run, ...]
    result: BitVec
    commons: tuple[Common, ...] = ()  #: of a and b


def negate(code: BitVec) -> BitVec:
    """With the other sign, NaNs too."""
    top = code.size() - 1
    return z3.Concat(~z3.Extract(top, top, code), z3.Extract(top - 1, 0, code))


def whole(x: BitVec) -> Whole:
    up = add(x, z3.BitVecVal(_INTEGERS, fp32.storage_bits), IEEE_FP32, canonical_nan(fp32))
    minus = negate(z3.BitVecVal(_INTEGERS, fp32.storage_bits))
    return Whole(up, add(up.result, minus, IEEE_FP32, canonical_nan(fp32)))


def words(
    factor: BitVec,
    parameters: Emulated,
    fmt: Format,
    common: Common | None = None,
    own: Format | None = None,
) -> Words:
    """Words of `fmt`, of a factor of fp32, or, without φ, of its `own` format (by default `fmt`)."""
    rounding = parameters.rounding
    if rounding is None:
        return Words((convert(factor, own or fmt, fmt),), ())
    left, aligned = factor, None
    if common is not None:  # 2^(common − (largest − bias + 1)); 255 − largest is its complement
        low = parameters.common + fp32.bias - 1 - ((1 << fp32.exponent_bits) - 1)
        left = aligned = rescale(factor, fp32, IEEE_FP32, Amount(~common.largest, low))
    codes: tuple[BitVec, ...] = ()
    rests: tuple[Rest, ...] = ()
    wholes: tuple[Whole, ...] = ()
    for _ in range(parameters.words):
        if codes:
            minus = negate(convert(codes[-1], fmt, fp32))
            subtraction = add(left, minus, IEEE_FP32, canonical_nan(fp32))
            left = subtraction.result
            if parameters.shift:
                left = rescale(left, fp32, IEEE_FP32, parameters.shift)
            rests += (Rest(minus, subtraction, left),)
        if common is not None:
            wholes += (whole(left),)
        codes += (rescale(wholes[-1].down.result if wholes else left, fp32, rounding),)
    return Words(codes, rests, aligned, wholes)


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
    a: Sequence[Words],
    b: Sequence[Words],
    total: BitVec,
    commons: Sequence[Common],
) -> Run:
    """The sum of the products of whole blocks, and the total with it."""
    unit = parameters.unit
    start = partial = z3.BitVecVal(0, fp32.storage_bits) if part.every > 0 else total
    traces = []
    for block in range(0, len(a), unit.k):
        stop = block + unit.k
        for of_a, of_b in part.products:
            x = [factor.codes[of_a] for factor in a[block:stop]]
            y = [factor.codes[of_b] for factor in b[block:stop]]
            traces.append(smt.dot_add(unit, x, y, partial))
            partial = traces[-1].result
    if part.every == 0:
        return Run(start, tuple(traces), partial, None, partial)
    scaled = descaled(partial, part, parameters, commons)
    addition = add(total, scaled, IEEE_FP32, canonical_nan(fp32))
    return Run(start, tuple(traces), scaled, addition, addition.result)


def step(
    spec: DotAdd, parameters: Emulated, a: Sequence[BitVec], b: Sequence[BitVec], c: BitVec
) -> EmulatedStep:
    """One step: all of the program, over as many products as it takes."""
    commons = tuple(map(common_exponent, (a, b))) if parameters.common else ()
    each = commons or (None, None)
    of_a = tuple(words(x, parameters, parameters.unit.a_format, each[0], spec.a_format) for x in a)
    of_b = tuple(words(x, parameters, parameters.unit.b_format, each[1], spec.b_format) for x in b)
    runs: list[Run] = []
    for part in parameters.parts:
        products = (part.every or parameters.blocks) * parameters.unit.k
        for start in range(0, len(a), products):
            total = runs[-1].result if runs else c
            some = slice(start, start + products)
            runs.append(block_sum(parameters, part, of_a[some], of_b[some], total, commons))
    return EmulatedStep(of_a, of_b, tuple(runs), runs[-1].result, commons)


def dot_add(spec: DotAdd, a: Sequence[BitVec], b: Sequence[BitVec], c: BitVec) -> Trace[EmulatedStep]:
    """The trace of `c + Σ a_k·b_k`: `a` and `b` are K codes each, c one."""
    parameters = spec.parameters
    assert isinstance(parameters, Emulated)
    return chained(spec, lambda k, c: step(spec, parameters, a[k], b[k], c), c)


__all__ = ["EmulatedStep", "Trace", "dot_add", "step"]
