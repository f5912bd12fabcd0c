"""emulated, a program over another instruction, as bit-vector terms.  Specification: semantics §3.

Words of factors and scalings are codes (`ieee.rescale`), what a word leaves and what is added to the total are IEEE
additions of fp32 (`ieee.add`); in between are the unit's own terms, whose widths are its file's matter.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import z3

from mmaformal.algorithms import IEEE_FP32, DotAdd, Emulated, Part
from mmaformal.encodings import smt
from mmaformal.encodings.smt.blocks import BitVec, Trace, canonical_nan
from mmaformal.encodings.smt.ieee import Addition, add, convert, rescale
from mmaformal.formats import Format, fp32


class UnitStep(Protocol):
    """A step of the unit, of whichever algorithm."""

    @property
    def result(self) -> BitVec: ...


class Rest(NamedTuple):
    """What a word leaves of what it was made of."""

    minus: BitVec  #: the word in fp32, negated
    subtraction: Addition
    scaled: BitVec  #: times 2^shift: what the next word is made of


class Words(NamedTuple):
    """A factor's words, and what each but the last leaves."""

    codes: tuple[BitVec, ...]
    rests: tuple[Rest, ...]


class Run(NamedTuple):
    """One sum of a part, and the total after it."""

    chain: tuple[Trace[UnitStep], ...]  #: of the unit, for each block the products of words
    scaled: BitVec
    addition: Addition | None  #: None where the sum is the total
    result: BitVec


@dataclass(frozen=True)
class Step:
    """The interfaces of one step, in order."""

    a: tuple[Words, ...]
    b: tuple[Words, ...]
    runs: tuple[Run, ...]
    result: BitVec


def negate(code: BitVec) -> BitVec:
    """With the other sign, NaNs too."""
    top = code.size() - 1
    return z3.Concat(~z3.Extract(top, top, code), z3.Extract(top - 1, 0, code))


def words(factor: BitVec, parameters: Emulated, fmt: Format) -> Words:
    rounding = parameters.rounding
    if rounding is None:
        return Words((factor,), ())
    codes: tuple[BitVec, ...] = (rescale(factor, fp32, rounding),)
    rests: tuple[Rest, ...] = ()
    for _ in range(parameters.words - 1):
        left = rests[-1].scaled if rests else factor
        minus = negate(convert(codes[-1], fmt, fp32))
        subtraction = add(left, minus, IEEE_FP32, canonical_nan(fp32))
        scaled = subtraction.result
        if parameters.shift:
            scaled = rescale(scaled, fp32, IEEE_FP32, parameters.shift)
        rests += (Rest(minus, subtraction, scaled),)
        codes += (rescale(scaled, fp32, rounding),)
    return Words(codes, rests)


def block_sum(parameters: Emulated, part: Part, a: Sequence[Words], b: Sequence[Words], total: BitVec) -> Run:
    """The sum of the products of whole blocks, and the total with it."""
    unit = parameters.unit
    partial = z3.BitVecVal(0, fp32.storage_bits) if part.every > 0 else total
    traces = []
    for start in range(0, len(a), unit.k):
        stop = start + unit.k
        for of_a, of_b in part.products:
            x = [factor.codes[of_a] for factor in a[start:stop]]
            y = [factor.codes[of_b] for factor in b[start:stop]]
            traces.append(smt.dot_add(unit, x, y, partial))
            partial = traces[-1].result
    if part.every == 0:
        return Run(tuple(traces), partial, None, partial)
    scaled = rescale(partial, fp32, IEEE_FP32, -part.shift) if part.shift > 0 else partial
    addition = add(total, scaled, IEEE_FP32, canonical_nan(fp32))
    return Run(tuple(traces), scaled, addition, addition.result)


def step(parameters: Emulated, a: Sequence[BitVec], b: Sequence[BitVec], c: BitVec) -> Step:
    """One step: all of the program, over as many products as it takes."""
    of_a = tuple(words(x, parameters, parameters.unit.a_format) for x in a)
    of_b = tuple(words(x, parameters, parameters.unit.b_format) for x in b)
    runs: list[Run] = []
    for part in parameters.parts:
        products = (part.every or parameters.blocks) * parameters.unit.k
        for start in range(0, len(a), products):
            total = runs[-1].result if runs else c
            some = slice(start, start + products)
            runs.append(block_sum(parameters, part, of_a[some], of_b[some], total))
    return Step(of_a, of_b, tuple(runs), runs[-1].result)


def dot_add(spec: DotAdd, a: Sequence[BitVec], b: Sequence[BitVec], c: BitVec) -> Trace[Step]:
    """The trace of `c + Σ a_k·b_k`: `a` and `b` are K codes each, c one."""
    parameters = spec.parameters
    assert isinstance(parameters, Emulated)
    steps: list[Step] = []
    products = parameters.step_products
    for start in range(0, spec.k, products):
        stop = start + products
        steps.append(step(parameters, a[start:stop], b[start:stop], steps[-1].result if steps else c))
    return Trace(tuple(steps), steps[-1].result)


__all__ = ["Step", "Trace", "dot_add", "step"]
