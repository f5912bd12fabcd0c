"""Claims that an answer makes of its smallest case, and cases that show such a claim to be false."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import z3
from numpy.typing import NDArray

from mmaformal.cases.inputs import Inputs, Rows
from mmaformal.formats import Format
from mmaformal.queries.constraints import Constraint
from mmaformal.spec import DotAdd


def claims(minimality: Sequence[str]) -> list[tuple[int, bool]]:
    """The number in each line but the last, and whether it is called minimal."""
    *lines, last = minimality
    assert last.startswith("first in order of place and code: ")
    found = []
    for line in lines:
        what, _, verdict = line.rpartition(": ") if "(" not in line else line.partition(": best found")
        number = int("≠" in what) if what.startswith("c ") else int(re.findall(r"\d+", what)[0])
        found.append((number, verdict == "proved minimal"))
    return found


def refuted(minimality: Sequence[str], sizes: Sequence[Sequence[int]]) -> str | None:
    """The first claim of minimality that a case of one of these sizes shows to be false; None if there is none.

    A claim is about the cases that are as small in all that comes before it.
    """
    numbers = claims(minimality)
    for i, (number, proved) in enumerate(numbers):
        before = [n for n, _ in numbers[:i]]
        smaller = [size for size in sizes if list(size[:i]) == before and size[i] < number]
        if proved and smaller:
            return f"{minimality[i]}, but there is a case of size {min(map(tuple, smaller))}"
    return None


# ---- every case of a few codes ---------------------------------------------------------------------------------------

#: Codes that a case's are chosen from, by side: the same codes at every place, or a list for each place.
Choices = Mapping[str, Sequence[int] | Sequence[Sequence[int]]]


def places(spec: DotAdd) -> Iterator[tuple[str, int, Format]]:
    """The inputs in order, each by side and place, with its format."""
    for side, fmt, count in (
        ("a", spec.a_format, spec.k),
        ("b", spec.b_format, spec.k),
        ("c", spec.c_format, 1),
        ("scale_a", spec.scale_format, spec.scales),
        ("scale_b", spec.scale_format, spec.scales),
    ):
        for k in range(count):
            assert fmt is not None
            yield side, k, fmt


def chosen_from(choices: Choices, side: str, k: int, fmt: Format) -> Sequence[int]:
    """The codes of one input; all there are where nothing is said.  A bit that is ignored is 0."""
    given = choices.get(side)
    if given is None:
        return range(fmt.codes if fmt.signed or not fmt.has_zero or fmt.storage_bits < 8 else fmt.codes // 2)
    return given[k] if isinstance(given[0], Sequence) else given  # type: ignore[return-value]


def every_case(spec: DotAdd, choices: Choices) -> Rows:
    """All cases of the chosen codes."""
    axes = [np.array(chosen_from(choices, *place), np.uint64) for place in places(spec)]
    columns = [x.reshape(-1) for x in np.meshgrid(*axes, indexing="ij")]
    n = spec.k, 2 * spec.k, 2 * spec.k + 1, 2 * spec.k + 1 + spec.scales
    none = np.zeros((len(columns[0]), 0), np.uint64)
    sides = (columns[: n[0]], columns[n[0] : n[1]], columns[n[2] : n[3]], columns[n[3] :])
    a, b, scale_a, scale_b = (np.stack(x, -1) if x else none for x in sides)
    return Rows(a, b, columns[n[1]], scale_a, scale_b)


def measures(spec: DotAdd, rows: Rows) -> NDArray[np.int64]:
    """Return for each case what `smallest.size` says, counted by tables."""

    def table(fmt: Format, codes: NDArray[Any]) -> NDArray[np.int64]:
        distinct, back = np.unique(codes, return_inverse=True)
        found = []
        for code in map(int, distinct):
            sign, field, fraction = fmt.fields(code)
            finite = fmt.is_finite(code)
            zero = finite and fmt.value(code) == 0
            exponent = 0 if zero else abs((max(field, 1) if fmt.has_zero else field) - fmt.bias)
            found.append((zero, finite, 0 if zero else fraction.bit_count(), exponent, sign))
        return np.array(found, np.int64).reshape(-1, 5)[back.reshape(codes.shape)]

    a, b, c = (
        table(fmt, codes)
        for fmt, codes in ((spec.a_format, rows.a), (spec.b_format, rows.b), (spec.c_format, rows.c))
    )
    zero = (a[..., 1] * b[..., 1] * (a[..., 0] | b[..., 0])) == 1
    bits, exponents = (((a[..., i] + b[..., i]) * ~zero).sum(-1) for i in (2, 3))
    signs = a[..., 4].sum(-1) + b[..., 4].sum(-1) + c[..., 4]
    of_scales = np.zeros((2, len(rows.c)), np.int64)
    if spec.scale_format is not None:
        for side in (rows.scale_a, rows.scale_b):
            of_scales += table(spec.scale_format, side)[..., 2:4].sum(-2).T
    return np.stack(
        [
            (~zero).sum(-1),
            1 - c[..., 0],
            bits + c[..., 2] + of_scales[0],
            exponents + c[..., 3] + of_scales[1],
            exponents,
            signs,
        ],
        -1,
    )


def least(sizes: NDArray[np.int64]) -> list[int]:
    """The smallest of several sizes."""
    found: list[int] = sizes[np.lexsort(sizes.T[::-1])[0]].tolist()
    return found


def is_nan(codes: NDArray[np.uint64], fmt: Format) -> NDArray[np.bool_]:
    """Which codes are NaNs."""
    distinct, back = np.unique(codes, return_inverse=True)
    nans = np.array([fmt.is_nan(int(code)) for code in distinct], bool)
    found: NDArray[np.bool_] = nans[back.reshape(codes.shape)]
    return found


@dataclass(frozen=True)
class Chosen(Constraint):
    """A constraint that the inputs' codes are of those chosen, the same ones for every place of a side."""

    choices: Mapping[str, Sequence[int]]

    def on_inputs(self, spec: DotAdd, inputs: Inputs) -> list[z3.BoolRef]:
        sides: dict[str, Sequence[z3.BitVecRef]] = {
            "a": inputs.a,
            "b": inputs.b,
            "c": [inputs.c],
            "scale_a": inputs.scale_a,
            "scale_b": inputs.scale_b,
        }
        return [
            z3.Or([x == code for code in codes]) for side, codes in self.choices.items() for x in sides[side]
        ]
