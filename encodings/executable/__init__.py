"""The executable wing: `dot_add` runs a `DotAdd` on lanes (see `blocks`) and returns its trace."""

from __future__ import annotations

from collections.abc import Sequence

from mmaformal.algorithms import DotAdd
from mmaformal.encodings.executable import fda
from mmaformal.encodings.executable.blocks import Lane

_ALGORITHMS = {"fda": fda.dot_add}


def dot_add(spec: DotAdd, a: Sequence[Lane], b: Sequence[Lane], c: Lane) -> fda.Trace:
    """Run `spec` on lanes; shapes are the caller's responsibility.  The result is `.result` of the trace."""
    return _ALGORITHMS[spec.parameters.algorithm](spec, a, b, c)
