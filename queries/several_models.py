"""Where no model explains a unit: the nearest, and two of which one or the other explains every answer."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mmaformal.architectures.known import known_as
from mmaformal.cases.inputs import Rows
from mmaformal.display import ShortRepr
from mmaformal.queries.asking_units import sure_by_algorithm
from mmaformal.queries.special_rules import SpecialRules, rows_without_special, wrong
from mmaformal.solver.deadline import checking
from mmaformal.spaces import details
from mmaformal.spaces.common import Types
from mmaformal.spec import DotAdd

#: Rows that all models are compared on; how many that explain most are tried as the first of two, and how many as the
#: second.
_TRIED, _FIRSTS, _SECONDS = 200, 400, 8
#: Fewer rows than these are no sign of a second model.
_LEAST = 8
#: Models that are compared on all rows.
_NEAREST = 8

#: Special values are one class each: what is done with them is not what tells models apart here.
ASIDE = SpecialRules(one_nan=True, one_zero=True)


@dataclass(frozen=True, repr=False)
class CandidateModels(ShortRepr):
    """Models, and which of them are right on which of a few rows without special values."""

    specs: Sequence[DotAdd]
    right: NDArray[np.bool_]  #: models × a few rows
    rows: Rows  #: without special values, all of them
    d: NDArray[np.uint64]
    detailed: bool  #: whether the models stand for all that they may do with special values
    sure: Mapping[
        str, NDArray[np.bool_]
    ]  #: by algorithm, the rows on which that does not show; all, if not `detailed`

    @staticmethod
    def of(specs: Sequence[DotAdd], rows: Rows, d: NDArray[np.uint64], detailed: bool) -> CandidateModels:
        """Compared on rows without special values, if there are any, spread over all."""
        kept = rows_without_special(rows, d, Types.of(specs[0]))
        if kept.any():
            rows, d = rows.at(kept), d[kept]
        few = np.arange(len(d))[:: max(1, len(d) // _TRIED)]
        sure = sure_by_algorithm(specs, rows) if detailed else {}
        right = np.stack([~wrong(x, rows.at(few), d[few], ASIDE) for x in checking(specs)])
        if detailed:
            right |= np.stack([~sure[x.parameters.algorithm][few] for x in specs])
        return CandidateModels(specs, right, rows, d, detailed, sure)

    def survivors(self) -> list[DotAdd]:
        """The models that explain every row without special values."""
        few = (self.specs[int(i)] for i in np.nonzero(self.right.all(axis=1))[0])
        return [spec for spec in checking(few) if not self._wrong(spec).any()]

    def nearest(self) -> list[DotAdd]:
        """The models that explain most rows, the nearest first."""
        best = np.argsort(-self.right.sum(axis=1), kind="stable")[:_NEAREST]
        found = [self.specs[i] for i in best]
        return sorted(found, key=lambda x: (int(self._wrong(x).sum()), not known_as(x)))

    def pair(self, timeout: float) -> tuple[DotAdd, DotAdd] | None:
        """Two models of which one or the other explains every row, and each alone some of them."""
        deadline = time.monotonic() + timeout
        order = np.argsort(-self.right.sum(axis=1), kind="stable")[:_FIRSTS]
        for first in sorted(order, key=lambda i: not known_as(self.specs[i])):  # of the tables, if there are
            if time.monotonic() > deadline:
                break
            rest = ~self.right[first]
            others = np.nonzero(self.right[:, rest].all(axis=1))[0][:_SECONDS] if rest.any() else ()
            if not len(others):
                continue
            one = self.specs[first]
            left = np.nonzero(self._wrong(one))[0]
            if len(left) < _LEAST:
                continue
            for other in checking(sorted((self.specs[i] for i in others), key=lambda x: not known_as(x))):
                if not self._wrong(other)[left].any():
                    return one, other
        return None

    def with_details(self, spec: DotAdd) -> Iterator[DotAdd]:
        """The model with all that it may do with special values."""
        yield from checking(details(spec)) if self.detailed else [spec]

    def _wrong(self, spec: DotAdd) -> NDArray[np.bool_]:
        found = wrong(spec, self.rows, self.d, ASIDE)
        return found & self.sure[spec.parameters.algorithm] if self.detailed else found
