"""Changes of signs around a dot product-add, executable: a's, c's and d's, and a c that is not read."""

from __future__ import annotations

from collections.abc import Sequence

from mmaformal.encodings import executable
from mmaformal.encodings.executable.blocks import AnyExecutableStep, Inner, Lane, Trace
from mmaformal.encodings.executable.stages import Stages
from mmaformal.spec import DotAdd


def dot_add(
    spec: DotAdd,
    a: Sequence[Lane],
    b: Sequence[Lane],
    c: Lane,
    scale_a: Sequence[Lane] = (),
    scale_b: Sequence[Lane] = (),
) -> Trace[AnyExecutableStep]:
    """The trace of `spec.plain` on the changed codes, with its result changed."""
    before, after = Stages(), Stages()
    if "a" in spec.negated:
        a = [before.change_sign(code, spec.a_format) for code in a]
    if "c" in spec.negated:
        c = before.change_sign(c, spec.c_format)
    if not spec.reads_c:
        c = before.constant("constant", c, spec.c_format.sign_mask, spec.c_format)
    trace = executable.dot_add(spec.plain, a, b, c, scale_a, scale_b)
    d = trace.result
    if "d" in spec.negated:
        d = after.change_sign(d, spec.d_format)
    return Trace(trace.steps, d, trace.stages, Inner(tuple(a), c, trace.result, before, after))
