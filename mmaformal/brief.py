"""Inputs and stages in few lines: what is the same is said once, and of much that differs the first part is shown."""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from itertools import groupby, pairwise
from typing import TypeVar

KeyT = TypeVar("KeyT", bound=Hashable)

#: The most lines of stages, groups of equal inputs and places in a list that are shown where not all is asked for.
MOST_LINES, MOST_GROUPS, MOST_PLACES = 36, 8, 6

_PRODUCT = re.compile(r"a\[(\d+)\]·b\[\1\]")


def places_text(numbers: Sequence[int], whole: bool = True) -> str:
    """`3`, `0…511`, `0, 2, 5…7`; of many, where not the whole is asked for, the first and how many there are."""
    runs = [
        [number for _, number in run]
        for _, run in groupby(enumerate(numbers), lambda pair: pair[1] - pair[0])
    ]
    texts = [str(run[0]) if len(run) == 1 else f"{run[0]}…{run[-1]}" for run in runs]
    if whole or len(texts) <= MOST_PLACES:
        return ", ".join(texts)
    steps = {y - x for x, y in pairwise(numbers)}
    if len(steps) == 1:
        return f"{numbers[0]}, {numbers[1]}, …, {numbers[-1]}"
    return f"{', '.join(texts[: MOST_PLACES - 1])}, … ({len(numbers)} of them)"


def places_by_key(keys: Iterable[tuple[int, KeyT]]) -> dict[KeyT, list[int]]:
    """The places of each key, in the order in which the keys come."""
    found: dict[KeyT, list[int]] = {}
    for place, key in keys:
        found.setdefault(key, []).append(place)
    return found


def more(count: int, what: str) -> str:
    """How the lines that are not shown are named."""
    return f"… {count:,} more {what}{'' if count == 1 else 's'} (verbose: all)"


def _is_product(label: str) -> bool:
    return _PRODUCT.fullmatch(label) is not None


def rows_together(rows: Sequence[tuple[str, ...]], at: int) -> list[tuple[str, ...]]:
    """Rows of a table, those of products that follow each other and say the same as one; labels are in column `at`."""

    def said(row: tuple[str, ...]) -> tuple[object, ...]:
        label = "" if _is_product(row[at]) else row[at]
        return (*row[:at], label, *row[at + 1 :])

    out: list[tuple[str, ...]] = []
    for _, run in groupby(rows, said):
        some = list(run)
        if len(some) < 3 or not _is_product(some[0][at]):
            out += some
            continue
        numbers = [int(match[1]) for row in some if (match := _PRODUCT.fullmatch(row[at]))]
        where = places_text(numbers, whole=False)
        out.append((*some[0][:at], f"a[{where}]·b[{where}]", *some[0][at + 1 :]))
    return out


def first_rows(rows: Sequence[tuple[str, ...]], at: int) -> list[tuple[str, ...]]:
    """Return `rows_together` with few products of too many: those that differ (`≠` in the first column) come first."""
    rows = rows_together(rows, at)
    if len(rows) <= MOST_LINES:
        return rows
    products = [row for row in rows if row[at].startswith("a[")]
    shown = set(sorted(products, key=lambda row: row[0] != "≠")[:MOST_GROUPS])
    if len(products) <= MOST_GROUPS:
        return rows
    out = [row for row in rows if row not in products or row in shown]
    last = max(i for i, row in enumerate(out) if row in shown)
    note = [""] * len(rows[0])
    note[at - 1], note[at] = products[0][at - 1], more(len(products) - len(shown), "row")
    return [*out[: last + 1], tuple(note), *out[last + 1 :]]


def products_text(
    products: Mapping[int, KeyT], name: Callable[[str, KeyT], str], single: Callable[[int, KeyT], str]
) -> list[str]:
    """Products in one line: each by itself, or, of many, equal ones together by their places."""
    if len(products) <= MOST_GROUPS:
        return [single(place, key) for place, key in products.items()]
    groups = places_by_key(products.items())
    texts = [name(places_text(where, whole=False), key) for key, where in list(groups.items())[:MOST_GROUPS]]
    return [*texts, *([f"… ({len(groups) - MOST_GROUPS} more)"] if len(groups) > MOST_GROUPS else [])]
