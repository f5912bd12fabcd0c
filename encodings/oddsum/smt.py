"""oddsum, pairs rounded to odd, as bit-vector terms.  Specification: semantics §10 (Arm, BFDOT and BFMMLA).

The interfaces are those of gps, with one group of two products.  A product is `gps.multiply`'s, which rounds nothing:
16 significand bits are an fp32 number, too large for one, or tiny.  Sums are `ieee.add` with ρ.

Tiny is |x| < 2^-126 before rounding.  A sum of two fp32 numbers that is tiny is a multiple of 2^-149, a subnormal
number and its own code: looking at the code is looking before rounding.
"""

from __future__ import annotations

from collections.abc import Sequence

from mmaformal.encodings.gps.smt import NAN, GpsStep, flush_result, multiply
from mmaformal.encodings.oddsum import Oddsum
from mmaformal.encodings.pfma.smt import decode_flushed
from mmaformal.encodings.smt.blocks import BitVec, Trace
from mmaformal.encodings.smt.chain import chained
from mmaformal.encodings.smt.ieee import add
from mmaformal.rounding import Conversion
from mmaformal.spec import DotAdd


def step(spec: DotAdd, rho: Conversion, a: Sequence[BitVec], b: Sequence[BitVec], c: BitVec) -> GpsStep:
    """One pair of products, added to c, which is any code."""
    x, y = (
        tuple(decode_flushed(code, fmt) for code in codes)
        for codes, fmt in ((a, spec.a_format), (b, spec.b_format))
    )
    first, second = (multiply(u, v, spec.a_format, spec.b_format) for u, v in zip(x, y, strict=True))
    pair = add(first, second, rho, NAN)
    group, start = flush_result(pair.result), flush_result(c)
    addition = add(start, group, rho, NAN)
    return GpsStep(
        x,
        y,
        products=(first, second),
        sums=(pair,),
        group=group,
        c=start,
        addition=addition,
        result=flush_result(addition.result),
    )


def dot_add(spec: DotAdd, a: Sequence[BitVec], b: Sequence[BitVec], c: BitVec) -> Trace[GpsStep]:
    """The trace of `c + Σ a_k·b_k`: `a` and `b` are K codes each, c one."""
    parameters = spec.parameters
    assert isinstance(parameters, Oddsum)
    return chained(spec, lambda k, c: step(spec, parameters.rho, a[k], b[k], c), c)


__all__ = ["GpsStep", "Trace", "dot_add", "step"]
