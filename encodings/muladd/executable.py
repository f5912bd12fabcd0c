"""muladd, multiplier and adder apart, executable.  Specification: semantics §3; TensorGauge §IV-B ("Adder/multiplier").

`d = c`, then for k = 0 … K-1: the product a_k·b_k, rounded with φ to a code of ρ's format, then `d = d + product`, an
IEEE 754 addition rounded with ρ.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from mmaformal.encodings.executable.blocks import Lane, Operand, Rounded, Special, Term, Trace, quiet_nan
from mmaformal.encodings.executable.chain import chain
from mmaformal.encodings.executable.ieee import Addition
from mmaformal.encodings.executable.stages import Stages
from mmaformal.encodings.muladd import Muladd
from mmaformal.rounding import Conversion
from mmaformal.spec import DotAdd


class Product(NamedTuple):
    """The interfaces of one product, in order."""

    a: Operand  #: decode
    b: Operand
    special: Special  #: classify
    exact: Term  #: multiply
    total: Lane  #: the same, signed
    rounded: Rounded  #: normalise & round
    result: Lane  #: encode


class MuladdStep(NamedTuple):
    """A product, and its addition."""

    product: Product
    addition: Addition
    result: Lane


def rounded_product(spec: DotAdd, pi: Conversion, a: Lane, b: Lane, stages: Stages) -> Product:
    """The code of φ(a·b)."""
    x, y = stages.decode(a, spec.a_format), stages.decode(b, spec.b_format)
    special, exact = stages.classify([(x, y)]), stages.multiply(x, y)
    places = spec.a_format.fraction_bits + spec.b_format.fraction_bits
    code = stages.round_product(exact, places, pi, special, quiet_nan(pi.format))
    return Product(x, y, special, exact, code.total, code.rounded, code.result)


def dot_add(
    spec: DotAdd,
    a: Sequence[Lane],
    b: Sequence[Lane],
    c: Lane,
    scale_a: Sequence[Lane] = (),
    scale_b: Sequence[Lane] = (),
) -> Trace[MuladdStep]:
    """The trace of `c + Σ a_k·b_k`: K codes a, K codes b, one c; no scales."""
    parameters = spec.parameters_as(Muladd)
    rho, stages = parameters.rho, Stages()

    def multiply_add(k: slice, c: Lane) -> MuladdStep:
        product = rounded_product(spec, parameters.product, a[k.start], b[k.start], stages)
        addition = stages.add(c, product.result, rho, quiet_nan(rho.format))
        return MuladdStep(product, addition, addition.result)

    return chain(spec, multiply_add, c, stages)
