"""Changes of signs around a dot product-add, as bit-vector terms: a's, c's and d's, and a c that is not read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mmaformal.encodings import smt
from mmaformal.encodings.smt.blocks import BitVec, Inner, Trace
from mmaformal.encodings.smt.stages import Stages
from mmaformal.spec import DotAdd


def dot_add(
    spec: DotAdd,
    a: Sequence[BitVec],
    b: Sequence[BitVec],
    c: BitVec,
    scale_a: Sequence[BitVec] = (),
    scale_b: Sequence[BitVec] = (),
) -> Trace[Any]:
    """The trace of `spec.plain` on the changed codes, with its result changed."""
    before, after = Stages(), Stages()
    taken = tuple(before.change_sign(code, spec.a_format) for code in a) if "a" in spec.negated else tuple(a)
    if not spec.reads_c:
        c = before.constant("constant", spec.c_format.sign_mask, spec.c_format)
    elif "c" in spec.negated:
        c = before.change_sign(c, spec.c_format)
    inner = smt.dot_add(spec.plain, taken, b, c, scale_a, scale_b)
    result = after.change_sign(inner.result, spec.d_format) if "d" in spec.negated else inner.result
    return Trace(inner.steps, result, inner.stages, Inner(taken, c, inner.result, before, after))
