"""Where the wrong elements of a matrix are, in words: rows, columns, or a block of both."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from mmaformal.display import counted

#: Rows or columns that are listed one by one, at most.
_LISTED = 4


def where_wrong(wrong: NDArray[np.bool_]) -> str:
    """Returns `all in row 17`, `rows 16 to 31, columns 0 to 7`, …: of a matrix, or of a batch of them.

    `wrong`: True for each wrong element, of which there is one at least; two axes, or more before them.
    """
    told = list[str]()
    if wrong.ndim > 2:
        count = counted(int(wrong.any(axis=(-2, -1)).sum()), "product")
        of_any = np.asarray(wrong.reshape(-1, *wrong.shape[-2:]).any(axis=0))
        return f"{where_wrong(of_any)}, of {count} of the batch"
    rows, columns = (np.flatnonzero(wrong.any(axis=axis)) for axis in (1, 0))
    few = len(rows) * wrong.shape[1] <= len(columns) * wrong.shape[0]
    first, second = (
        (("row", rows, 0), ("column", columns, 1)) if few else (("column", columns, 1), ("row", rows, 0))
    )
    for name, places, axis in (first, second):
        if len(places) < wrong.shape[axis]:
            told.append(_places(name, places.tolist()))
    box = wrong[np.ix_(rows, columns)]
    if box.all():
        return "all of " + ", ".join(told) if told else "every element"
    if not told:
        return "in every row and column"
    return ("all in " if len(told) == 1 else "all within ") + ", ".join(told)


def _places(name: str, places: Sequence[int]) -> str:
    """Returns `row 17`, `rows 3, 5 and 9`, `rows 16 to 31`, or how many there are of which."""
    if len(places) == 1:
        return f"{name} {places[0]}"
    steps = {y - x for x, y in pairwise(places)}
    if len(places) > 2 and len(steps) == 1:
        (step,) = steps
        every = "" if step == 1 else f" in steps of {step}"
        return f"{name}s {places[0]} to {places[-1]}{every}"
    if len(places) <= _LISTED:
        return f"{name}s {', '.join(map(str, places[:-1]))} and {places[-1]}"
    return f"{len(places)} {name}s from {places[0]} to {places[-1]}"
