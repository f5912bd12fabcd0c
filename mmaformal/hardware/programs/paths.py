"""Conditions on data: each way through a function is run, and what they return is put together."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import z3
from numpy.typing import NDArray

from mmaformal.hardware.programs.context import known, meaning_of, negated
from mmaformal.hardware.programs.refusal import refused
from mmaformal.hardware.programs.whole import assume, assumed

#: Ways through a function that are run.
_MOST = 256


@dataclass
class _Way:
    """One way through a function that is being run."""

    chosen: list[bool]  #: what is to be decided at the first conditions
    taken: list[tuple[z3.BoolRef, bool]] = field(default_factory=list)
    known: dict[int, bool] = field(default_factory=dict)
    written: dict[int, tuple[NDArray[np.object_], NDArray[np.object_]]] = field(default_factory=dict)


_WAYS: ContextVar[tuple[_Way, ...]] = ContextVar("ways", default=())


def decide(claim: z3.BoolRef) -> bool:
    """Whether a condition holds in the way that is run.  Raises ProgramError outside of any."""
    if (value := known(claim)) is not None:
        return value
    ways = _WAYS.get()
    for way in reversed(ways):
        if claim.get_id() in way.known:
            return way.known[claim.get_id()]
    if not ways:
        raise refused("a condition on data: write it with where")
    way = ways[-1]
    if len(way.taken) >= _MOST:
        raise refused("a condition on data in a loop: write it with where, or give the loop a fixed number of rounds")
    place = len(way.taken)
    holds = way.chosen[place] if place < len(way.chosen) else True
    way.taken.append((claim, holds))
    _suppose(claim, holds, way)
    return holds


def _suppose(claim: z3.BoolRef, holds: bool, way: _Way) -> None:
    way.known[claim.get_id()] = holds
    other = negated(claim)
    way.known[other.get_id()] = not holds
    _ranges(claim, holds)
    parts = claim.children() if (z3.is_and(claim) and holds) or (z3.is_or(claim) and not holds) else []
    for part in parts:
        _suppose(part, holds, way)


def _ranges(claim: z3.BoolRef, holds: bool) -> None:
    meaning = meaning_of(claim)
    if meaning is not None:
        for key, (low, high) in (meaning.true if holds else meaning.false).items():
            assume(key, low, high)


@contextlib.contextmanager
def under(claim: z3.BoolRef) -> Iterator[None]:
    """Let a claim be known to hold while this is open."""
    way = _Way([])
    token = _WAYS.set((*_WAYS.get()[:-1], *_WAYS.get()[-1:], way))
    with assumed({}):
        _suppose(claim, True, way)
        try:
            yield
        finally:
            _WAYS.reset(token)
            if way.taken:
                raise refused("a condition on data: write it with where")


def journal(data: NDArray[np.object_]) -> None:
    """Keep what an array has before it is written, to run another way from the same values."""
    root = data
    while isinstance(root.base, np.ndarray):
        root = root.base
    for way in _WAYS.get():
        way.written.setdefault(id(root), (root, root.copy()))


def explored(run: Callable[[], Any], merge: Callable[[z3.BoolRef, Any, Any], Any]) -> Any:
    """What a function returns, put together of all ways through it; what it writes likewise.

    Raises ProgramError for more ways than are run.
    """
    waiting: list[list[bool]] = [[]]
    done: list[tuple[list[tuple[z3.BoolRef, bool]], Any, _Way, dict[int, NDArray[np.object_]]]] = []
    while waiting:
        way = _Way(waiting.pop())
        token = _WAYS.set((*_WAYS.get(), way))
        try:
            with assumed({}):
                result = run()
        finally:
            _WAYS.reset(token)
        fresh = range(len(way.chosen), len(way.taken))
        waiting += [[holds for _, holds in way.taken[:i]] + [False] for i in fresh]
        if len(done) + len(waiting) >= _MOST:
            claim = way.taken[-1][0]
            raise refused(f"more than {_MOST} ways through a function ({str(claim)[:40]}…): write it with where")
        last = {number: root.copy() for number, (root, _) in way.written.items()}
        if waiting or done:
            for root, before in way.written.values():
                root[...] = before
        done.append((way.taken, result, way, last))
    if len(done) == 1:
        return done[0][1]
    for number, root in {number: root for _, _, way, _ in done for number, (root, _) in way.written.items()}.items():
        every = [(taken, last.get(number)) for taken, _, _, last in done]
        if all(values is not None for _, values in every) or root is not None:
            kept = root.copy()
            root[...] = _joined([(taken, kept if values is None else values) for taken, values in every], 0, _arrays(merge))
    return _joined([(taken, result) for taken, result, _, _ in done], 0, merge)


def _arrays(merge: Callable[[z3.BoolRef, Any, Any], Any]) -> Callable[[z3.BoolRef, Any, Any], Any]:
    from mmaformal.hardware.programs.elements import chosen_element

    def merged(claim: z3.BoolRef, x: NDArray[np.object_], y: NDArray[np.object_]) -> NDArray[np.object_]:
        made = np.empty(x.shape, object)
        for place in np.ndindex(*x.shape):
            u, v = x[place], y[place]
            made[place] = u if u is v or v is None else v if u is None else chosen_element(claim, u, v)
        return made

    return merged


def _joined(
    every: list[tuple[list[tuple[z3.BoolRef, bool]], Any]], depth: int, merge: Callable[[z3.BoolRef, Any, Any], Any]
) -> Any:
    """Results of ways that are alike up to a condition."""
    if len(every) == 1:
        return every[0][1]
    claim = every[0][0][depth][0]
    sides = [[each for each in every if each[0][depth][1] is holds] for holds in (True, False)]
    if not all(sides):
        raise refused("a function that does not do the same each time that it is called")
    return merge(claim, *(_joined(side, depth + 1, merge) for side in sides))


def exploring(function: Callable[..., Any], merge: Callable[[z3.BoolRef, Any, Any], Any]) -> Callable[..., Any]:
    """A function whose ways are put together each time that it is called."""

    @functools.wraps(function)
    def every_way(*args: Any, **kwargs: Any) -> Any:
        return explored(lambda: function(*args, **kwargs), merge)

    return every_way


__all__ = ["decide", "explored", "exploring", "journal", "under"]
