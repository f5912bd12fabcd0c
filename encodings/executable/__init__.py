"""The executable wing: `dot_add` runs a `DotAdd` on lanes (see `blocks`) and returns its trace."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mmaformal.algorithms import DotAdd
from mmaformal.encodings.executable import efda, fda, fdrda, gdfs, gfdrda, gps, lowered, sfma
from mmaformal.encodings.executable.blocks import Lane, Trace

_ALGORITHMS: dict[str, Callable[..., Trace]] = {
    "sfma": sfma.dot_add,
    "gps": gps.dot_add,
    "fda": fda.dot_add,
    "gdfs": gdfs.dot_add,
    "fdrda": fdrda.dot_add,
    "gfdrda": gfdrda.dot_add,
    "efda": efda.dot_add,
    "lowered": lowered.dot_add,
}


def dot_add(
    spec: DotAdd,
    a: Sequence[Lane],
    b: Sequence[Lane],
    c: Lane,
    scale_a: Sequence[Lane] = (),
    scale_b: Sequence[Lane] = (),
) -> Trace:
    """Run `spec` on lanes: K codes a, K codes b, one c, and `spec.scales` scales of each side.

    Shapes are the caller's responsibility.  The result is `.result` of the trace; the interfaces of each
    step, in the order of the stages, are in its `.steps`.
    """
    return _ALGORITHMS[spec.parameters.algorithm](spec, a, b, c, scale_a, scale_b)
