"""Conditions on data: each way through what depends on one is run, and what they return and write is put together."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from types import CellType, FunctionType, ModuleType
from typing import Any, TypeAlias

import numpy as np
import z3

from mmaformal.hardware.tracing.context import denied, known, meaning_of, state
from mmaformal.hardware.tracing.refusal import refused
from mmaformal.hardware.tracing.whole import assume, assumed, keep

#: Ways that are run until they meet again.
_MOST = 256

Decisions: TypeAlias = "list[tuple[z3.BoolRef, bool]]"
Merge: TypeAlias = "Callable[[z3.BoolRef, Any, Any], Any]"


@dataclass
class _Way:
    """One way that is being run."""

    chosen: list[bool]  #: what is to be decided at the first conditions
    taken: Decisions = field(default_factory=list)
    known: dict[int, bool] = field(default_factory=dict)


_WAYS: ContextVar[tuple[_Way, ...]] = ContextVar("ways", default=())


def branch_taken(claim: z3.BoolRef) -> bool:
    """Whether a condition holds in the way that is run.  Raises ProgramError outside of any, and after too many."""
    if (value := decided(claim)) is not None:
        return value
    ways = _WAYS.get()
    if not ways:
        raise refused("a condition on data")
    way = ways[-1]
    place = len(way.taken)
    if place >= _MOST:
        raise refused("a loop whose end depends on the inputs: give it a fixed number of rounds")
    holds = way.chosen[place] if place < len(way.chosen) else True
    way.taken.append((claim, holds))
    _suppose(claim, holds, way)
    return holds


def decided(claim: z3.BoolRef) -> bool | None:
    """Whether a condition is known to hold, or not to, in the way that is run."""
    for way in reversed(_WAYS.get()):
        if claim.get_id() in way.known:
            return way.known[claim.get_id()]
    return known(claim)


def _suppose(claim: z3.BoolRef, holds: bool, way: _Way) -> None:
    way.known[keep(claim).get_id()] = holds
    way.known[denied(claim).get_id()] = not holds
    meaning = meaning_of(claim)
    if meaning is not None:
        for key, (low, high) in (meaning.true if holds else meaning.false).items():
            assume(key, low, high)
    parts = claim.children() if (z3.is_and(claim) and holds) or (z3.is_or(claim) and not holds) else []
    for part in parts:
        _suppose(part, holds, way)


@contextlib.contextmanager
def under(claim: z3.BoolRef) -> Iterator[None]:
    """Let a claim be known to hold while this is open."""
    way = _Way([])
    token = _WAYS.set((*_WAYS.get(), way))
    with assumed({}):
        _suppose(claim, True, way)
        try:
            yield
        finally:
            _WAYS.reset(token)
    if way.taken:
        raise refused("a condition on a value whose type depends on the inputs")


def explored(run: Callable[[], Any], merge: Merge, roots: Iterable[Any] = ()) -> Any:
    """Return what a function returns, put together of all ways through it; what it writes likewise.

    roots: what it may write is reached from these.  Raises ProgramError for more ways than are run, and where they
    leave things that cannot be put together.
    """
    before = _Memory(roots)
    waiting: list[list[bool]] = [[]]
    done: list[tuple[Decisions, Any, list[Any]]] = []
    while waiting:
        way = _Way(waiting.pop())
        token = _WAYS.set((*_WAYS.get(), way))
        try:
            with assumed({}):
                result = run()
                result = result.narrowed() if hasattr(type(result), "narrowed") else result
        finally:
            _WAYS.reset(token)
        fresh = range(len(way.chosen), len(way.taken))
        waiting += [[holds for _, holds in way.taken[:i]] + [False] for i in fresh]
        if len(done) + len(waiting) >= _MOST:
            raise refused(
                f"more than {_MOST} ways through a function: write a loop's conditions without continue"
            )
        if not waiting and not done:
            return result
        if before.iterators:
            raise refused("an iterator is used on both sides of a condition on data: make it a list")
        done.append((way.taken, result, before.contents()))
        before.restore()
    before.put(
        [_joined([(taken, found[i]) for taken, _, found in done], 0, merge) for i in range(len(before))]
    )
    return _joined([(taken, result) for taken, result, _ in done], 0, merge)


def _joined(every: Sequence[tuple[Decisions, Any]], depth: int, merge: Merge) -> Any:
    """Results of ways that are alike up to a condition."""
    if len(every) == 1:
        return every[0][1]
    if any(len(taken) <= depth for taken, _ in every):
        raise refused("a function that does not do the same each time that it is called")
    claim = every[0][0][depth][0]
    sides = [[each for each in every if each[0][depth][1] is holds] for holds in (True, False)]
    if not all(sides) or any(not taken[depth][0].eq(claim) for taken, _ in every):
        raise refused("a function that does not do the same each time that it is called")
    return merge(claim, *(_joined(side, depth + 1, merge) for side in sides))


# ---- what a program may write ----


class _Memory:
    """Lists, dictionaries, sets, arrays and objects of the program that are reached from some values."""

    def __init__(self, roots: Iterable[Any]) -> None:
        self._all: list[Any] = []
        self.iterators = False  #: whether one is reached, which cannot be put back
        seen: dict[int, Any] = {}
        stack = list(roots)
        while stack:
            x = stack.pop()
            if isinstance(x, np.ndarray):
                while isinstance(x.base, np.ndarray):
                    x = x.base
            if id(x) in seen or isinstance(x, _PLAIN):
                continue
            seen[id(x)] = x
            if isinstance(x, tuple):
                stack += x
            elif isinstance(x, FunctionType):
                stack += [cell.cell_contents for cell in x.__closure__ or () if _filled(cell)]
            elif isinstance(x, np.ndarray | set | list | dict):
                self._all.append(x)
                stack += x if isinstance(x, list) else x.values() if isinstance(x, dict) else ()
            elif isinstance(getattr(type(x), "memory", None), property):
                stack.append(x.memory)
            elif isinstance(x, Iterator):
                self.iterators = True
            elif type(x).__module__ in state().modules and hasattr(x, "__dict__"):
                self._all.append(x)
                stack += vars(x).values()
        self._before = self.contents()

    def __len__(self) -> int:
        return len(self._all)

    def contents(self) -> list[Any]:
        """Return what each of them holds now, as copies."""
        return [
            x.copy() if isinstance(x, list | dict | set | np.ndarray) else dict(vars(x)) for x in self._all
        ]

    def restore(self) -> None:
        """Give each what it had at first."""
        self.put(self._before)

    def put(self, contents: Sequence[Any]) -> None:
        """Give each what is given."""
        for x, held in zip(self._all, contents, strict=True):
            if isinstance(x, list):
                x[:] = held
            elif isinstance(x, np.ndarray):
                if x.flags.writeable:
                    x[...] = held
            else:
                into = x if isinstance(x, dict | set) else vars(x)
                into.clear()
                into.update(held)


_PLAIN = (int, float, str, bytes, complex, type(None), type, ModuleType)


def _filled(cell: CellType) -> bool:
    try:
        return cell.cell_contents is not None
    except ValueError:
        return False
