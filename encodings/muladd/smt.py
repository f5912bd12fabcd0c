"""muladd, multiplier and adder apart, as bit-vector terms.  Specification: semantics §3; TensorGauge §IV-B.

Widths of a product of significands of m and n bits: m + n bits, and as many zeros above as keep the exponent of the top
bit from falling below φ's least (`normalise_and_round`).  The addition is `ieee.add`.
"""

from __future__ import annotations

from dataclasses import dataclass

from mmaformal.encodings.muladd import Muladd
from mmaformal.encodings.smt.blocks import (
    BitVec,
    Operand,
    Rounded,
    Special,
    Term,
    product_range,
    quiet_nan,
)
from mmaformal.encodings.smt.chain import looped
from mmaformal.encodings.smt.ieee import Addition
from mmaformal.encodings.smt.stages import Stages
from mmaformal.rounding import Conversion
from mmaformal.spec import DotAdd


@dataclass(frozen=True)
class RoundedProduct:
    """The interfaces of one product, in order."""

    special: Special  #: classify
    exact: Term  #: multiply
    total: BitVec  #: the same, in two's complement
    rounded: Rounded  #: normalise & round
    result: BitVec  #: encode


@dataclass(frozen=True)
class MuladdStep:
    """A product, and its addition."""

    a: tuple[Operand]  #: decode
    b: tuple[Operand]
    product: RoundedProduct
    addition: Addition
    result: BitVec


def rounded_product(spec: DotAdd, pi: Conversion, x: Operand, y: Operand, stages: Stages) -> RoundedProduct:
    """The code of φ(a·b)."""
    exponents = product_range(spec.a_format, spec.b_format)
    special = stages.classify([(x, y)])
    exact = stages.multiply(x, y, spec.a_format.bias + spec.b_format.bias, exponents)
    places = spec.a_format.fraction_bits + spec.b_format.fraction_bits
    code = stages.round_product(exact, exponents, places, pi, special, quiet_nan(pi.format))
    return RoundedProduct(special, exact, code.total, code.rounded, code.result)


def step(spec: DotAdd, parameters: Muladd, a: BitVec, b: BitVec, c: BitVec, stages: Stages) -> MuladdStep:
    """One product, added to c."""
    x, y = stages.decode(a, spec.a_format), stages.decode(b, spec.b_format)
    product = rounded_product(spec, parameters.product, x, y, stages)
    addition = stages.add(c, product.result, parameters.rho, quiet_nan(parameters.rho.format))
    return MuladdStep((x,), (y,), product, addition, addition.result)


dot_add = looped(Muladd, lambda spec, p, a, b, c, stages: step(spec, p, a[0], b[0], c, stages))
