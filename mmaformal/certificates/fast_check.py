"""The checker of derivations (`check.py`), compiled: it accepts a part of what that accepts, much faster.

Numbers of steps have to follow on those of the clauses, one by one, and no clause is taken away.  What it does not
accept is for `check.py` to accept or to refuse, with the line.
"""

from __future__ import annotations

import re

import numpy as np
from numpy.typing import NDArray

from mmaformal.certificates.compiling import compiled_function

_Bytes = NDArray[np.uint8]
_SPACE, _MINUS, _ZERO, _END = 32, 45, 48, 10


def accepts(clauses: str, derivation: str) -> bool:
    """Return whether an LRAT text derives the empty clause from the clauses of a DIMACS text."""
    head, _, body = clauses.partition("\n")
    told = re.fullmatch(r"p cnf ([0-9]{1,9}) ([0-9]{1,9})", head)
    if told is None:
        return False
    given, steps = (np.frombuffer(text.encode("ascii", "replace"), np.uint8) for text in (body, derivation))
    return bool(_accepts(given, steps, int(told[1]), int(told[2])))


@compiled_function
def _integer(text: _Bytes, at: int) -> tuple[int, int]:
    """Return the integer at a place, and where what follows it begins; -1 if there is none of at most nine digits."""
    sign = 1
    if at < len(text) and text[at] == _MINUS:
        sign, at = -1, at + 1
    value, begin = 0, at
    while at < len(text) and _ZERO <= text[at] < _ZERO + 10:
        value = 10 * value + (int(text[at]) - _ZERO)
        at += 1
    if at == begin or at - begin > 9 or at == len(text):
        return 0, -1
    return sign * value, at


@compiled_function
def _row(text: _Bytes, at: int, row: NDArray[np.int64]) -> tuple[int, int]:
    """Read a line of integers; return how many there are and where the next line begins, -1 if it is none or longer."""
    count = 0
    while count < len(row):
        value, at = _integer(text, at)
        if at < 0:
            return 0, -1
        row[count] = value
        count += 1
        if text[at] == _END:
            return count, at + 1
        if text[at] != _SPACE:
            return 0, -1
        at += 1
    return 0, -1


@compiled_function
def _store(
    row: NDArray[np.int64], count: int, arena: NDArray[np.int64], used: int, variables: int
) -> NDArray[np.int64]:
    """Return the arena with so many literals of a row; an empty one if one is no literal."""
    if used + count > len(arena):
        arena = np.append(arena, np.zeros(len(arena) + count, np.int64))
    for i in range(count):
        if row[i] == 0 or abs(row[i]) > variables:
            return arena[:0]
        arena[used + i] = row[i]
    return arena


@compiled_function
def _accepts(body: _Bytes, derivation: _Bytes, variables: int, given: int) -> bool:
    lines = given + 2
    for byte in derivation:
        lines += byte == _END
    starts, row = np.zeros(lines + 1, np.int64), np.zeros(1 << 20, np.int64)
    arena, used, at = np.zeros(1 << 12, np.int64), 0, 0
    for number in range(1, given + 1):
        count, at = _row(body, at, row)
        if at < 0 or row[count - 1] != 0:
            return False
        arena = _store(row, count - 1, arena, used, variables)
        if len(arena) == 0:
            return False
        used += count - 1
        starts[number + 1] = used
    if at != len(body):
        return False
    false, mark, at, number = np.zeros(2 * variables + 1, np.int64), 0, 0, given
    while at < len(derivation):
        count, at = _row(derivation, at, row)
        number, split = number + 1, 1
        if at < 0 or row[0] != number or row[count - 1] != 0:
            return False
        while row[split] != 0:
            split += 1
        if split == count - 1:
            return False
        arena = _store(row[1:], split - 1, arena, used, variables)
        mark += 1
        if len(arena) == 0 or not _follows(
            row[1:split], row[split + 1 : count - 1], number, starts, arena, false, mark
        ):
            return False
        if split == 1:
            return True
        used += split - 1
        starts[number + 1] = used
    return False


@compiled_function
def _follows(
    clause: NDArray[np.int64],
    hints: NDArray[np.int64],
    number: int,
    starts: NDArray[np.int64],
    arena: NDArray[np.int64],
    false: NDArray[np.int64],
    mark: int,
) -> bool:
    """Return whether the hints show that a clause follows; `false` has `mark` at literals that are false."""
    middle = len(false) // 2
    for literal in clause:
        false[middle + literal] = mark
    for hint in hints:
        if not 0 < hint < number:
            return False
        left = 0
        for place in range(starts[hint], starts[hint + 1]):
            if false[middle + arena[place]] != mark:
                if left:
                    return False
                left = arena[place]
        if not left:
            return True
        false[middle - left] = mark
    return False
