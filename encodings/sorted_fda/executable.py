"""sorted_fda, fused dot-add of three sorted terms, executable.  Specification: semantics §3.

Terms are normalised and sorted as efda's are where these are far apart; which two are added first does not depend on
how far.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from mmaformal.encodings.efda.executable import (
    SortedSum,
    in_order,
    normal_terms,
    normalise_sum,
    zero_sign,
)
from mmaformal.encodings.executable.blocks import (
    Lane,
    Operand,
    Rounded,
    Special,
    Term,
    add,
    encode,
    quiet_nan,
    round_sum,
    select_special,
    where,
)
from mmaformal.encodings.executable.chain import looped
from mmaformal.encodings.executable.stages import Code, Stages
from mmaformal.encodings.sorted_fda import SortedFda
from mmaformal.spec import DotAdd


class SortedFdaStep(NamedTuple):
    """The interfaces between the stages of one step, in order."""

    a: tuple[Operand, ...]  #: decode
    b: tuple[Operand, ...]
    c: Operand
    special: Special  #: classify
    products: tuple[Term, ...]  #: multiply
    addend: Term
    sum: SortedSum  #: align, accumulate
    rounded: Rounded  #: normalise & round
    result: Lane  #: encode


def _sum_of(terms: tuple[Term, Term, Term], places: int, p: SortedFda, lowest: int) -> SortedSum:
    """The sums of the two largest of three normalised terms, and of all."""
    x, y, z = in_order(*terms)
    partial = add(x, places, y, places, p.F)
    if p.between:
        first = normalise_sum(partial, p.F + 1, lowest)
    else:
        negative = partial.total < 0
        magnitude = where(negative, -partial.total, partial.total)
        first = Term(where(negative, 1, 0), partial.unit + p.F, magnitude)
    total = add(first, p.F + p.between, z, places, p.G)
    return SortedSum(terms, (x, y, z), partial, first, total)


def step(
    spec: DotAdd, p: SortedFda, a: Sequence[Lane], b: Sequence[Lane], c: Lane, stages: Stages
) -> SortedFdaStep:
    """One step of three terms."""
    x, y = (
        tuple(stages.decode(code, fmt) for code in side)
        for side, fmt in ((a, spec.a_format), (b, spec.b_format))
    )
    z = stages.decode(c, spec.c_format)
    factors = list(zip(x, y, strict=True))
    special = stages.classify(factors, [z])
    products = tuple(stages.multiply(u, v) for u, v in factors)
    addend = stages.addend(z)
    bits = spec.a_format.fraction_bits + spec.b_format.fraction_bits, spec.c_format.fraction_bits
    places, lowest, rho = p.places(spec), p.lowest(spec), p.rho
    sum_ = _sum_of(normal_terms(products, addend, bits, places, lowest), places, p, lowest)
    total = stages.made("sorted_sum", [*products, addend], sum_.total, sum=sum_)
    signs = (*products, addend)
    rounded = round_sum(total, zero_sign(signs, total.total * 0, rho), rho)
    result = select_special(special, encode(rounded, rho), rho, quiet_nan(rho.format))
    stages.made("round_sum", [total, *signs, special], Code(total.total, rounded, result), rho=rho)
    return SortedFdaStep(x, y, z, special, products, addend, sum_, rounded, result)


dot_add = looped(lambda spec, a, b, c, stages: step(spec, spec.parameters_as(SortedFda), a, b, c, stages))
