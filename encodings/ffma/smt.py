"""ffma, flushed fused multiply-add in order, as bit-vector terms.  Specification: semantics §10 (Intel, VDPBF16PS).

A step is one fma of pfma, whose addend is the result before, c at first.
"""

from __future__ import annotations

from collections.abc import Sequence

from mmaformal.encodings.ffma import Ffma
from mmaformal.encodings.pfma import on_taken
from mmaformal.encodings.pfma.smt import FmaStages, widened
from mmaformal.encodings.pfma.smt import fma as step
from mmaformal.encodings.smt.blocks import BitVec, Trace
from mmaformal.encodings.smt.chain import chained
from mmaformal.encodings.smt.stages import Stages
from mmaformal.spec import DotAdd


def dot_add(spec: DotAdd, a: Sequence[BitVec], b: Sequence[BitVec], c: BitVec) -> Trace[FmaStages]:
    """The trace of `c + Σ a_k·b_k`: `a` and `b` are K codes each, c one."""
    assert isinstance(spec.parameters, Ffma)
    stages, taken = Stages(), on_taken(spec)
    a, b = widened(a, spec.a_format, stages), widened(b, spec.b_format, stages)
    return chained(spec, lambda k, c: step(taken, a[k.start], b[k.start], c, stages), c, stages)
