"""The SMT wing: `dot_add` builds the bit-vector terms of a `DotAdd` and returns their trace."""

from __future__ import annotations

from collections.abc import Sequence

from mmaformal.algorithms import DotAdd
from mmaformal.encodings.smt import fda
from mmaformal.encodings.smt.blocks import BitVec

_ALGORITHMS = {"fda": fda.dot_add}


def dot_add(spec: DotAdd, a: Sequence[BitVec], b: Sequence[BitVec], c: BitVec) -> fda.Trace:
    """The terms of `spec` over K codes `a`, K codes `b` and one `c`, each as wide as its format's storage."""
    return _ALGORITHMS[spec.parameters.algorithm](spec, a, b, c)
