"""rnd2, a pair of products rounded once, then added, executable.  Specification: semantics §11.

`d = c`, then for k = 0, 2 … K-2: the exact sum of two products, rounded with φ to a code of ρ's format, then
`d = pair + d`, an IEEE 754 addition rounded with ρ.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from mmaformal.encodings.executable.blocks import (
    Addition,
    Lane,
    Sum,
    Term,
    Trace,
    add,
    encode,
    quiet_nan,
    round_sum,
    select_special,
)
from mmaformal.encodings.executable.chain import chain
from mmaformal.encodings.executable.stages import Code, Stages
from mmaformal.encodings.rnd2 import Rnd2
from mmaformal.spec import DotAdd


class Rnd2Step(NamedTuple):
    """A pair of products, and its addition to c."""

    products: tuple[Term, Term]  #: multiply
    total: Sum  #: align, accumulate
    pair: Code  #: normalise & round, encode
    addition: Addition
    result: Lane


def step(
    spec: DotAdd, parameters: Rnd2, a: Sequence[Lane], b: Sequence[Lane], c: Lane, stages: Stages
) -> Rnd2Step:
    """The pair of two products, added to c."""
    phi, nan, bits = (
        parameters.pair,
        quiet_nan(spec.d_format),
        spec.a_format.fraction_bits + spec.b_format.fraction_bits,
    )
    factors = [
        (stages.decode(x, spec.a_format), stages.decode(y, spec.b_format)) for x, y in zip(a, b, strict=True)
    ]
    special = stages.classify(factors)
    first, second = (stages.multiply(x, y, parameters.zero_exponent(spec)) for x, y in factors)
    total = add(first, bits, second, bits, parameters.frame(spec))
    stages.made("sticky_sum", [first, second], total, wide=None)
    rounded = round_sum(total, first.sign & second.sign, phi)
    code = Code(total.total, rounded, select_special(special, encode(rounded, phi), phi, nan))
    pair = stages.made("round_sum", [total, first, second, special], code, rho=phi)
    addition = stages.add(c, pair.result, parameters.rho, nan)
    return Rnd2Step((first, second), total, pair, addition, addition.result)


def dot_add(
    spec: DotAdd,
    a: Sequence[Lane],
    b: Sequence[Lane],
    c: Lane,
    scale_a: Sequence[Lane] = (),
    scale_b: Sequence[Lane] = (),
) -> Trace[Rnd2Step]:
    """The trace of `c + Σ a_k·b_k`: K codes a, K codes b, one c; no scales."""
    parameters, stages = spec.parameters, Stages()
    assert isinstance(parameters, Rnd2)
    return chain(spec, lambda k, c: step(spec, parameters, a[k], b[k], c, stages), c, stages)
