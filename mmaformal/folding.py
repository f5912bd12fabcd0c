"""Long chains evaluated quickly: equal steps, one after another, do nothing more once one has given back its c.

Each step of a chain is a function of its products and of the result of the step before.  So in a run of equal steps,
once two in a row give the same result, all that follow give it too.  `fold` leaves those out, having seen the two
results; a chain of a million products, few of which are not zero, becomes one of a few steps.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mmaformal.display import ShortRepr
from mmaformal.spec import DotAdd

if TYPE_CHECKING:
    from mmaformal.encodings.executable.blocks import AnyExecutableStep, Lane, Trace

#: Chains of no more steps than this are evaluated as they are.
SHORT = 16


@dataclass(frozen=True, repr=False)
class FoldedChain(ShortRepr):
    """A chain without the steps that its trace shows to do nothing more."""

    spec: DotAdd
    trace: Trace[AnyExecutableStep]  #: of the executable encoding
    stand_for: tuple[
        range, ...
    ]  #: for each step of the trace those of the whole chain's, from 0, that it tells of
    kept: NDArray[Any]  #: for each product of the trace its place in the whole chain


def step_of(spec: DotAdd) -> int:
    """Products of a step, or of as many as have whole block scales and orders."""
    return spec.period


def fold(
    spec: DotAdd,
    a: NDArray[Any],
    b: NDArray[Any],
    c: int | NDArray[np.int64],
    scale_a: NDArray[Any] | None = None,
    scale_b: NDArray[Any] | None = None,
) -> FoldedChain:
    """Evaluate dot product-adds of `spec` in the executable encoding.

    a, b: codes, of shape (rows, K), or (K,) for one row, which is evaluated on Python's integers; c: (rows,), or one
    int; scales: (rows, K / block) or (K / block,).
    """
    from mmaformal.encodings import executable

    size = step_of(spec)
    count = spec.k // size
    sides = {"a": a, "b": b}
    if spec.scale_format is not None and scale_a is not None and scale_b is not None:
        sides |= {"scale_a": scale_a, "scale_b": scale_b}
    parts = {name: side.reshape(*side.shape[:-1], count, -1) for name, side in sides.items()}
    starts, ends = _runs(list(parts.values()), count)
    keep = np.minimum(ends - starts, 2 if count > SHORT else count)
    while True:
        kept = np.concatenate([np.arange(s, s + n) for s, n in zip(starts, keep, strict=True)])
        short = {name: part[..., kept, :].reshape(*part.shape[:-2], -1) for name, part in parts.items()}
        lanes = {name: _lanes(side) for name, side in short.items()}
        spec_kept = spec if len(kept) == count else spec.replace(k=len(kept) * size)
        trace = executable.dot_add(spec_kept, c=c, **lanes)
        inner = len(trace.steps) // len(kept)
        lasts = np.cumsum(keep)  # the index among those kept after each run's last
        open_ = [
            i
            for i in np.flatnonzero(keep < ends - starts)
            if not _same(*(trace.steps[(lasts[i] - back) * inner - 1].result for back in (1, 0)))
        ]
        if not open_:
            break
        keep[open_] = np.minimum(2 * keep[open_], (ends - starts)[open_])
    stand_for = []
    for start, end, n in zip(starts.tolist(), ends.tolist(), keep.tolist(), strict=True):
        for i in range(start, start + n):
            stop = end if i == start + n - 1 else i + 1
            # Of several steps that share scales each is told; those left out go with the last.
            stand_for += [range(i * inner + j, i * inner + j + 1) for j in range(inner - 1)]
            stand_for.append(range(i * inner + inner - 1, stop * inner))
    places = (kept[:, None] * size + np.arange(size)).reshape(-1)
    return FoldedChain(spec_kept, trace, tuple(stand_for), places)


def _runs(parts: Sequence[NDArray[Any]], count: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """Where each run of equal steps starts, and where it ends; steps are on the last but one axis."""
    new = np.zeros(count - 1, bool)
    for part in parts:
        unlike = part[..., 1:, :] != part[..., :-1, :]
        axes = (*range(unlike.ndim - 2), unlike.ndim - 1)
        new |= unlike.any(axis=axes)
    starts = np.concatenate([[0], np.flatnonzero(new) + 1])
    return starts, np.append(starts[1:], count)


def _lanes(side: NDArray[Any]) -> list[int] | list[NDArray[np.int64]]:
    return side.tolist() if side.ndim == 1 else [lane.astype(np.int64) for lane in side.T]


def _same(x: Lane, y: Lane) -> bool:
    return bool(np.all(x == y))
