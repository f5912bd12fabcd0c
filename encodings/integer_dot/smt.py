"""integer_dot, dot product of integers, as bit-vector terms.  Specification: semantics §3.

All sums are made in one width, in which none wraps.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import z3

from mmaformal.encodings.integer_dot import IntegerDot, value_bits
from mmaformal.encodings.smt.blocks import BitVec
from mmaformal.encodings.smt.chain import looped
from mmaformal.encodings.smt.stages import Stages
from mmaformal.formats import Format
from mmaformal.spec import DotAdd


@dataclass(frozen=True)
class IntegerStep:
    """The interfaces between the stages of one step, in order; numbers in two's complement."""

    products: tuple[BitVec, ...]  #: multiply
    addend: BitVec
    groups: tuple[BitVec, ...]  #: accumulate: the sums of groups, clamped; none where there are none
    total: BitVec
    result: BitVec  #: encode


def extended(code: BitVec, fmt: Format, bits: int) -> BitVec:
    """The integer that a code is, in so many bits."""
    more = bits - code.size()
    return z3.SignExt(more, code) if fmt.signed else z3.ZeroExt(more, code)


def _product(x: BitVec, y: BitVec, formats: tuple[Format, Format]) -> BitVec:
    """The product of two codes, as wide as both numbers together."""
    bits = sum(map(value_bits, formats))
    return extended(x, formats[0], bits) * extended(y, formats[1], bits)


def saturated(x: BitVec, bits: int) -> BitVec:
    """A number that is not beyond the largest or the least of so many bits, in the same width."""
    if bits >= x.size():
        return x
    top = z3.BitVecVal((1 << (bits - 1)) - 1, x.size())
    return z3.If(x > top, top, z3.If(x < ~top, ~top, x))


def _sum_of(terms: Sequence[BitVec], bits: int, stages: Stages) -> BitVec:
    """The sum of several terms, in so many bits."""
    if len(terms) == 1:
        return terms[0]
    running = [z3.SignExt(bits - terms[0].size(), terms[0])]
    for term in terms[1:]:
        running.append(running[-1] + z3.SignExt(bits - term.size(), term))
    return stages.made("integer_sum", terms, running[-1], partial=running)


def step(
    spec: DotAdd, p: IntegerDot, a: Sequence[BitVec], b: Sequence[BitVec], c: BitVec, stages: Stages
) -> IntegerStep:
    """One step over L products."""
    formats, bits, d_bits = (spec.a_format, spec.b_format), p.sum_bits(spec), spec.d_format.storage_bits
    products = [
        stages.made("integer_product", [u, v], _product(u, v, formats)) for u, v in zip(a, b, strict=True)
    ]
    groups: list[BitVec] = []
    while p.group and len(groups) * p.group < p.L:
        first = len(groups) * p.group
        total = _sum_of(products[first : first + p.group], bits, stages)
        groups.append(stages.made("integer_clamp", [total], saturated(total, p.inner)))
    addend = stages.made("integer_value", [c], extended(c, spec.c_format, bits))
    total = _sum_of([*(groups or products), addend], bits, stages)
    kept = stages.made("integer_clamp", [total], saturated(total, d_bits)) if p.clamps else total
    result = stages.made("integer_code", [kept], z3.Extract(d_bits - 1, 0, kept))
    return IntegerStep(tuple(products), addend, tuple(groups), total, result)


dot_add = looped(IntegerDot, lambda spec, p, a, b, c, stages: step(spec, p, a, b, c, stages))
