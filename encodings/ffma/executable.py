"""ffma, flushed fused multiply-add in order, executable.  Specification: semantics §10 (Intel, VDPBF16PS).

`d = c`, then `d = fma(a_k, b_k, d)` for k = 0 … K-1, each fma one of pfma.
"""

from __future__ import annotations

from collections.abc import Sequence

from mmaformal.encodings.executable.blocks import Lane, Trace
from mmaformal.encodings.executable.chain import chain
from mmaformal.encodings.executable.stages import Stages
from mmaformal.encodings.pfma import on_taken
from mmaformal.encodings.pfma.executable import FmaStages, converted, recorded_fma
from mmaformal.spec import DotAdd


def dot_add(
    spec: DotAdd,
    a: Sequence[Lane],
    b: Sequence[Lane],
    c: Lane,
    scale_a: Sequence[Lane] = (),
    scale_b: Sequence[Lane] = (),
) -> Trace[FmaStages]:
    """The trace of `c + Σ a_k·b_k`: K codes a, K codes b, one c; no scales."""
    stages, taken = Stages(), on_taken(spec)
    a, b = converted(stages, a, spec.a_format), converted(stages, b, spec.b_format)
    return chain(spec, lambda k, c: recorded_fma(stages, taken, a[k.start], b[k.start], c), c, stages)
