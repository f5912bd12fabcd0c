"""oddsum, pairs rounded to odd, as bit-vector terms.  Specification: semantics §10 (Arm, BFDOT and BFMMLA).

The interfaces are those of gps, with one group of two products.  A product is `gps.multiply`'s, which rounds nothing:
16 significand bits are an fp32 number, too large for one, or tiny.  Sums are `ieee.add` with ρ.

Tiny is |x| < 2^-126 before rounding.  A sum of two fp32 numbers that is tiny is a multiple of 2^-149, a subnormal
number and its own code: looking at the code is looking before rounding.
"""

from __future__ import annotations

from collections.abc import Sequence

from mmaformal.encodings.gps.smt import NAN, GpsStep, flush_result, product
from mmaformal.encodings.oddsum import Oddsum
from mmaformal.encodings.pfma.smt import decode_flushed
from mmaformal.encodings.smt.blocks import BitVec
from mmaformal.encodings.smt.chain import looped
from mmaformal.encodings.smt.stages import Stages
from mmaformal.formats import fp32
from mmaformal.rounding import Conversion
from mmaformal.spec import DotAdd


def step(
    spec: DotAdd, rho: Conversion, a: Sequence[BitVec], b: Sequence[BitVec], c: BitVec, stages: Stages
) -> GpsStep:
    """One pair of products, added to c, which is any code."""
    each = [product(spec, u, v, decode_flushed, stages) for u, v in zip(a, b, strict=True)]
    x, y, (first, second) = zip(*each, strict=True)
    pair = stages.add(first, second, rho, NAN)
    group = stages.code("flush", [pair.result], flush_result(pair.result), fp32)
    start = stages.code("flush", [c], flush_result(c), fp32)
    addition = stages.add(start, group, rho, NAN)
    return GpsStep(
        x,
        y,
        products=(first, second),
        sums=(pair,),
        group=group,
        c=start,
        addition=addition,
        result=stages.code("flush", [addition.result], flush_result(addition.result), fp32),
    )


dot_add = looped(Oddsum, lambda spec, p, a, b, c, stages: step(spec, p.rho, a, b, c, stages))
