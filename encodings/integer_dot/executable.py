"""integer_dot, dot product of integers, executable.  Specification: semantics §3."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from operator import add
from typing import NamedTuple

from mmaformal.encodings.executable.blocks import Lane, clamp, where
from mmaformal.encodings.executable.chain import looped
from mmaformal.encodings.executable.stages import Stages
from mmaformal.encodings.integer_dot import IntegerDot
from mmaformal.formats import Format
from mmaformal.spec import DotAdd


class IntegerStep(NamedTuple):
    """The interfaces between the stages of one step, in order."""

    products: tuple[Lane, ...]  #: multiply
    addend: Lane
    groups: tuple[Lane, ...]  #: accumulate: the sums of groups, clamped; none where there are none
    total: Lane
    result: Lane  #: encode


def value(code: Lane, fmt: Format) -> Lane:
    """The integer that a code is."""
    return where(code >= fmt.sign_mask, code - fmt.codes, code) if fmt.signed else code


def clamped(x: Lane, bits: int) -> Lane:
    """The nearest integer of so many bits in two's complement."""
    return clamp(x, -(1 << (bits - 1)), (1 << (bits - 1)) - 1)


def _summed(terms: Sequence[Lane], stages: Stages) -> Lane:
    """The sum of several terms."""
    if len(terms) < 2:
        return terms[0]
    partial = tuple(accumulate(terms, add))
    return stages.made("integer_sum", terms, partial[-1], partial=partial)


def step(
    spec: DotAdd, p: IntegerDot, a: Sequence[Lane], b: Sequence[Lane], c: Lane, stages: Stages
) -> IntegerStep:
    """One step over L products."""
    x, y, d = spec.a_format, spec.b_format, spec.d_format
    products = [
        stages.made("integer_product", [u, v], value(u, x) * value(v, y)) for u, v in zip(a, b, strict=True)
    ]
    groups = list[Lane]()
    for start in range(0, p.L, p.group) if p.group else ():
        total = _summed(products[start : start + p.group], stages)
        groups.append(stages.made("integer_clamp", [total], clamped(total, p.inner)))
    addend = stages.made("integer_value", [c], value(c, spec.c_format))
    total = _summed([*(groups or products), addend], stages)
    kept = stages.made("integer_clamp", [total], clamped(total, d.storage_bits)) if p.clamps else total
    result = stages.made("integer_code", [kept], kept & (d.codes - 1))
    return IntegerStep(tuple(products), addend, tuple(groups), total, result)


dot_add = looped(lambda spec, a, b, c, stages: step(spec, spec.parameters_as(IntegerDot), a, b, c, stages))
