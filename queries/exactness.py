"""When is d the exact sum, rounded once; and when is it exact?

    python -m mmaformal.queries.exactness hopper HMMA.16816.F32

A step of a fused algorithm rounds its exact sum once (with ρ) if alignment cuts nothing off: if no nonzero term has a
set bit below 2^(e_max − F).  A condition on exponents alone that is enough: every nonzero term's exponent is at least
e_max − (F − f), with f the fractional bits of its significand.  The step's result is exact if, besides, that sum is one
of ρ's numbers.  In a chain every step but the last has to be exact.

`rounds_once` and `is_exact` are these conditions on codes, in plain Python; what is proved is that they suffice.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import z3

from mmaformal.algorithms import (
    IEEE_FP32,
    Conversion,
    DotAdd,
    Efda,
    Fda,
    Fdrda,
    Gdfs,
    Gfdrda,
    Gps,
    Lowered,
    Sfma,
)
from mmaformal.cases.inputs import Codes, symbolic_inputs
from mmaformal.cases.numerical import exact as exact_sum
from mmaformal.facts.exact_steps import prove_addition, prove_products, prove_step
from mmaformal.facts.exact_terms import (
    prove_chain,
    prove_groups_chain,
    prove_inputs,
    prove_lowered,
    prove_tree,
)
from mmaformal.facts.fused_steps import (
    fused_step,
    one_step,
    prove_e_max,
    prove_highest,
    prove_rounding,
    prove_total,
)
from mmaformal.facts.round_down import prove_round_down
from mmaformal.formats import Format, fp32
from mmaformal.instruction import Instruction
from mmaformal.proof.composition import Composing
from mmaformal.proof.definitions import grid_value, index_below, last_index
from mmaformal.proof.fused import prove_alignment
from mmaformal.proof.proving import NotProvedError, Proving
from mmaformal.queries.property import Property
from mmaformal.solver.answers import Answer, Holds, Unknown
from mmaformal.solver.asking import Asker


def prove_fused(proving: Proving, spec: DotAdd) -> z3.BoolRef:
    """fda and gdfs: terms are those of the codes; one that has no bit below 2^(e_max − F) is aligned exactly; so is the
    sum; d is ρ of it.  Returns that every input is a number."""
    x, one = fused_step(spec), one_step(spec)
    ordinary = prove_inputs(proving, one, symbolic_inputs(one), x.step)
    prove_chain(proving, spec)
    at_most, some = prove_e_max(proving, x)
    for summand, below in zip(x.summands, at_most, strict=True):
        prove_alignment(proving, summand, x.step.e_max, x.F, below)
    prove_total(proving, x, at_most)
    prove_rounding(proving, x, prove_highest(proving, x, at_most, some))
    return ordinary


def prove(proving: Proving, spec: DotAdd) -> None:
    """That the conditions of `rounds_once` suffice.  Raises NotProvedError."""
    p = spec.parameters
    if isinstance(p, (Fda, Gdfs)):
        ordinary = prove_fused(proving, spec)
        if isinstance(proving, Composing):
            proving.conclude_all(ordinary)
    elif isinstance(p, (Sfma, Efda)):
        prove_step(proving, spec)
    elif isinstance(p, Lowered):
        prove_lowered(proving, spec)
        prove_chain(proving, spec)
        prove_fused(proving, p.inner_dot_add(spec))
        prove_addition(proving, p.addition)
    elif isinstance(p, Gps):
        prove_tree(proving, spec)
        prove_groups_chain(proving, spec)
        prove_products(proving, spec)
        prove_addition(proving, IEEE_FP32)
    else:
        prove_round_down(proving, spec)


def settle(instruction: Instruction, asker: Asker) -> Answer:
    question = f"{instruction.label}: where `rounds_once` says so, d is the exact sum, rounded once"
    proving = Composing(asker)
    try:
        prove(proving, instruction.spec)
    except NotProvedError as error:
        return Unknown(question, str(error), proving.obligations, asker.elapsed)
    return Holds(question, proving.unconcluded(), asker.elapsed, words=in_words(instruction.spec))


def in_words(spec: DotAdd) -> tuple[str, ...]:
    """What no obligation states."""
    condition = (
        "that the codes on which `rounds_once` is true fulfil what the obligations assume of their stages"
    )
    if isinstance(spec.parameters, (Fda, Gdfs, Sfma, Efda)):
        return (condition,)
    return (condition, "that the obligations, one or more for each stage, give the statement")


# ---- the conditions, on codes --------------------------------------------------------------------------------------


def lowest_bit(x: Fraction) -> int:
    """The exponent of the lowest set bit of a dyadic number that is not 0."""
    numerator = abs(x.numerator)
    return (numerator & -numerator).bit_length() - x.denominator.bit_length()


def is_number_of(x: Fraction, rho: Conversion) -> bool:
    """Whether ρ(x) = x."""
    below = index_below(x, rho)
    return below < last_index(rho) and grid_value(below, rho) == abs(x)


@dataclass(frozen=True)
class Exactness:
    """`once`: the condition for d to be the exact sum rounded once; `exact`: for d to be the exact sum."""

    once: bool
    exact: bool


def examine(
    instruction: Instruction,
    a: Sequence[int],
    b: Sequence[int],
    c: int,
    scale_a: Sequence[int] = (),
    scale_b: Sequence[int] = (),
) -> Exactness:
    """The conditions for codes of one dot product-add: K of a and b, one c, and block scales if there are any.

    They suffice and are not necessary.  Raises ValueError for an infinity or a NaN: they are about numbers.
    """
    spec = instruction.spec
    codes = Codes(tuple(a), tuple(b), c, tuple(scale_a), tuple(scale_b))
    if exact_sum(spec, codes) is None:
        raise ValueError("the conditions are about numbers; an input is an infinity or a NaN")
    steps = list(_steps(spec, codes))
    before, (aligned, x, rho) = steps[:-1], steps[-1]
    if not all(kept and is_number_of(value, own) for kept, value, own in before):
        return Exactness(False, False)
    return Exactness(aligned, aligned and is_number_of(x, rho))


def rounds_once(instruction: Instruction, *codes: Any) -> bool:
    """Whether d is known to be the exact sum, rounded once; arguments as `examine`."""
    return examine(instruction, *codes).once


def is_exact(instruction: Instruction, *codes: Any) -> bool:
    """Whether d is known to be the exact sum; arguments as `examine`."""
    return examine(instruction, *codes).exact


#: Of each rounding in order: whether its operands are exact, the exact number, and the rounding.
Roundings = Iterator[tuple[bool, Fraction, Conversion]]


def _steps(spec: DotAdd, codes: Codes) -> Roundings:
    """The roundings of a computation, as long as each one before is exact: then d's of steps are exact sums."""
    p = spec.parameters
    c = spec.c_format.value(codes.c)
    terms = [_term(spec, codes, k) for k in range(spec.k)]
    L = p.step_products
    for start in range(0, spec.k, L):
        part = terms[start : start + L]
        if isinstance(p, Fda):
            yield _aligned([*part, _addend(c, spec.c_format)], p.F, p.e_zero), c + _sum(part), p.rho
        elif isinstance(p, Gdfs):
            groups = [_group(spec, codes, start + g) for g in range(0, L, p.G)]
            yield _aligned([*groups, _addend(c, spec.c_format)], p.F, p.e_zero), c + _sum(part), p.rho
        elif isinstance(p, (Sfma, Efda)):
            yield True, c + _sum(part), p.rho
        elif isinstance(p, Lowered):
            dot, inner = Fraction(0), p.inner
            for first in range(0, L, p.L):
                some = [part[k] for k in p.order[first : first + p.L]]
                whole = dot + _sum(some)
                yield _aligned([*some, _addend(dot, spec.d_format)], p.F, p.e_zero), whole, inner.rho
                dot += _sum(some)
            yield True, c + dot, p.addition
        elif isinstance(p, Gps):
            yield from _pairwise(spec, codes, start, c)
        else:
            assert isinstance(p, Fdrda)
            yield _round_down(p, part, _addend(c, spec.c_format)), c + _sum(part), p.rho
        c += _sum(part)


Number = tuple[Fraction, int]  #: a value and the exponent it is aligned by


def _sum(terms: Sequence[Number]) -> Fraction:
    return sum((value for value, _ in terms), Fraction(0))


def _exponent(code: int, fmt: Format) -> int:
    field = fmt.fields(code)[1]
    return (max(field, 1) if fmt.has_zero else field) - fmt.bias


def _term(spec: DotAdd, codes: Codes, k: int) -> Number:
    """A product and its exponent: of the factors' fields, and of the scales'."""
    value = spec.a_format.value(codes.a[k]) * spec.b_format.value(codes.b[k])
    exponent = _exponent(codes.a[k], spec.a_format) + _exponent(codes.b[k], spec.b_format)
    if spec.scale_format is not None:
        for scale in (codes.scale_a[k // spec.scale_block], codes.scale_b[k // spec.scale_block]):
            value *= spec.scale_format.value(scale)
            exponent += _exponent(scale, spec.scale_format)
    return value, exponent


def _group(spec: DotAdd, codes: Codes, start: int) -> Number:
    p, scale = spec.parameters, spec.scale_format
    assert isinstance(p, Gdfs)
    assert scale is not None
    block = start // spec.scale_block
    exponent = _exponent(codes.scale_a[block], scale) + _exponent(codes.scale_b[block], scale)
    return _sum([_term(spec, codes, k) for k in range(start, start + p.G)]), exponent


def _addend(c: Fraction, fmt: Format) -> Number:
    """c, which may be an exact result of a step, and its exponent."""
    if not c:
        return c, fmt.min_exponent
    top = abs(c.numerator).bit_length() - c.denominator.bit_length()
    top = top if abs(c) >= Fraction(2) ** top else top - 1
    return c, max(top, fmt.min_exponent)


def _aligned(terms: Sequence[Number], F: int, e_zero: int | None) -> bool:
    """Whether no term has a bit below 2^(e_max - F).

    A zero counts with e_zero or the exponent of its fields, whichever is larger: that may only say no.
    """
    e_max = max(e if value or e_zero is None else max(e, e_zero) for value, e in terms)
    return all(value == 0 or lowest_bit(value) >= e_max - F for value, _ in terms)


def _pairwise(spec: DotAdd, codes: Codes, start: int, c: Fraction) -> Roundings:
    p, normal = spec.parameters, Fraction(2) ** fp32.min_exponent
    assert isinstance(p, Gps)
    level, fine = [], abs(c) >= normal or c == 0
    for k in range(start, start + p.G):
        a, b = spec.a_format.value(codes.a[k]), spec.b_format.value(codes.b[k])
        fine = fine and all(
            x == 0 or abs(x) >= Fraction(2) ** fmt.min_exponent
            for x, fmt in ((a, spec.a_format), (b, spec.b_format))
        )
        level.append(a * b)
    fine = fine and all(is_number_of(x, IEEE_FP32) for x in level)
    while len(level) > 1:
        fine = fine and all(x == 0 or abs(x) >= normal for x in level)
        level = [x + y for x, y in zip(level[::2], level[1::2], strict=True)]
        for x in level:
            yield fine, x, IEEE_FP32
    total = c + level[0]
    yield fine and all(x == 0 or abs(x) >= normal for x in (level[0], total)), total, IEEE_FP32


def _round_down(p: Fdrda, terms: Sequence[Number], c: Number) -> bool:
    """fdrda and gfdrda: no term loses a bit where it is aligned, nor the sum where it is cut to `sum_bits`."""
    groups = [terms[0::2], terms[1::2]] if isinstance(p, Gfdrda) else [terms]
    e_dot = max(e for _, e in terms)
    e_max = max(e_dot, c[1])
    dot, total = _sum(terms), _sum([*terms, c])

    def has_bits(x: Fraction, lowest: int) -> bool:
        return x == 0 or lowest_bit(x) >= lowest

    if isinstance(p, Gfdrda) and c[0] and c[1] < e_max - p.c_reach:
        return False
    top = _addend(total, fp32)[1]
    return (
        # What counts as infinite is told by the exponent, also of a product of subnormals, which may be far smaller.
        all(e + (abs(x) >= Fraction(2) ** (e + 1)) <= fp32.max_exponent for x, e in terms if x)
        and all(has_bits(x, max(e for _, e in group) - p.F) for group in groups for x, _ in group)
        and all(has_bits(_sum(group), e_dot - p.F) for group in groups)
        and has_bits(dot, e_max - p.dot_bits)
        and has_bits(c[0], e_max - p.F)
        and (p.sum_bits is None or has_bits(total, top - p.sum_bits))
    )


PROPERTY = Property(
    "exactness",
    "where alignment cuts nothing off, a step's result is its exact sum rounded once, and exact if that is one of ρ's",
    settle,
)
main = PROPERTY.main

if __name__ == "__main__":
    sys.exit(main())
