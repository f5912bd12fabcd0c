"""Memory for planes, kept from one block to the next: fresh memory costs more than what is written to it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from math import prod
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

#: bytes that one room may keep
_MOST = 1 << 26


class Room:
    """One array of bytes for each use; what is taken again for a use takes the place of what was there."""

    def __init__(self) -> None:
        self._kept: dict[object, NDArray[np.uint8]] = {}
        self.part: tuple[object, ...] = ()  #: which part of several is made now

    def array(self, use: object, shape: tuple[int, ...], dtype: DTypeLike) -> NDArray[Any]:
        """An array with whatever is in it."""
        size = prod(shape) * np.dtype(dtype).itemsize
        key = (*self.part, use)
        kept = self._kept.get(key)
        if kept is None or len(kept) < size:
            kept = self._kept[key] = np.empty(size, np.uint8)
        return kept[:size].view(dtype).reshape(shape)

    @property
    def size(self) -> int:
        """Return the bytes that it holds."""
        return sum(map(len, self._kept.values()))


class _Rooms(threading.local):
    def __init__(self) -> None:
        self.current: Room | None = None
        self.spare: list[Room] = []


_rooms = _Rooms()


def current() -> Room | None:
    """The room that this thread's arrays are taken from; None where they are to last."""
    return _rooms.current


@contextmanager
def reused() -> Iterator[None]:
    """Planes that are made meanwhile in this thread last until the end, or until others of that use are made.

    Within one another, each has a room of its own.
    """
    room, before = _rooms.spare.pop() if _rooms.spare else Room(), _rooms.current
    _rooms.current = room
    try:
        yield
    finally:
        _rooms.current = before
        if room.size <= _MOST:
            _rooms.spare.append(room)


@contextmanager
def part_of_several(part: object) -> Iterator[None]:
    """Planes that are made meanwhile last beside those of other parts, as long as these do."""
    room = _rooms.current
    if room is None:
        yield
        return
    before, room.part = room.part, (*room.part, part)
    try:
        yield
    finally:
        room.part = before
