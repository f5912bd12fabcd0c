"""muladd, multiplier and adder apart, executable.  Specification: semantics §3; TensorGauge §IV-B ("Adder/multiplier").

`d = c`, then for k = 0 … K-1: the product a_k·b_k, rounded with φ to a code of ρ's format, then `d = d + product`, an
IEEE 754 addition rounded with ρ.
"""

from __future__ import annotations

from typing import NamedTuple

from mmaformal.encodings.executable.blocks import Lane, Operand, Rounded, Special, Term, quiet_nan
from mmaformal.encodings.executable.chain import looped
from mmaformal.encodings.executable.ieee import Addition
from mmaformal.encodings.executable.stages import Stages
from mmaformal.encodings.muladd import Muladd
from mmaformal.rounding import Conversion
from mmaformal.spec import DotAdd


class RoundedProduct(NamedTuple):
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

    product: RoundedProduct
    addition: Addition
    result: Lane


def rounded_product(spec: DotAdd, pi: Conversion, a: Lane, b: Lane, stages: Stages) -> RoundedProduct:
    """The code of φ(a·b)."""
    x, y = stages.decode(a, spec.a_format), stages.decode(b, spec.b_format)
    special, exact = stages.classify([(x, y)]), stages.multiply(x, y)
    places = spec.a_format.fraction_bits + spec.b_format.fraction_bits
    code = stages.round_product(exact, places, pi, special, quiet_nan(pi.format))
    return RoundedProduct(x, y, special, exact, code.total, code.rounded, code.result)


def step(spec: DotAdd, p: Muladd, a: Lane, b: Lane, c: Lane, stages: Stages) -> MuladdStep:
    """`ρ(c + product)`, where the product is rounded."""
    product = rounded_product(spec, p.product, a, b, stages)
    addition = stages.add(c, product.result, p.rho, quiet_nan(p.rho.format))
    return MuladdStep(product, addition, addition.result)


dot_add = looped(lambda spec, a, b, c, stages: step(spec, spec.parameters_as(Muladd), a[0], b[0], c, stages))
