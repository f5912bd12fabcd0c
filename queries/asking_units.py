"""Asking a unit: cases to choose from, what each of many models gives for each, and all that was answered."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mmaformal.cases.codes import exponent, is_finite, is_zero, one_nan, some_nan
from mmaformal.cases.generate import Distribution, generate
from mmaformal.cases.inputs import Rows
from mmaformal.cases.run import quick_results
from mmaformal.formats import Format
from mmaformal.queries.elimination import ordinary_rows
from mmaformal.queries.special_rules import SpecialRules
from mmaformal.solver.deadline import checking
from mmaformal.spaces import models, sure
from mmaformal.spaces.common import Types
from mmaformal.spec import DotAdd

#: Cases to choose from.
POOL = 256
#: Models that the cases are drawn for: where bits are cut off depends on them.
_DRAWN_FOR = 8
#: The most models whose columns of results are all compared; of more, some are.
_COMPARED = 4096

#: bit patterns a (n, K), b (n, K), c (n,), and block scales (n, K / block) of a and b, if there are any → d (n,)
AskedUnit = Callable[..., ArrayLike]


class Asked:
    """A unit, and all that it was asked."""

    def __init__(self, unit: AskedUnit, types: Types) -> None:
        self.unit, self.types, self.calls = unit, types, 0
        self.kept: list[tuple[Rows, NDArray[np.uint64]]] = []

    def answer(self, rows: Rows, keep: bool = True) -> NDArray[np.uint64]:
        """The codes of d; asked and answered are kept."""
        words = [fmt.word for fmt in (self.types.a, self.types.b, self.types.c)]
        sides = [x.astype(word) for x, word in zip((rows.a, rows.b, rows.c), words, strict=True)]
        if self.types.scale is not None:
            sides += [x.astype(self.types.scale.word) for x in (rows.scale_a, rows.scale_b)]
        self.calls += 1
        d = np.asarray(self.unit(*sides))
        if d.shape != (len(rows),) or d.dtype.kind not in "ui":
            raise ValueError(
                f"the unit gave {d.dtype} of shape {d.shape} for {len(rows)} rows: d is one code each"
            )
        codes: NDArray[np.uint64] = d.astype(np.uint64)
        if (codes >= self.types.d.codes).any():
            raise ValueError(f"the unit gave {int(codes.max()):#x}, which is no code of {self.types.d}")
        if keep:
            self.kept.append((rows, codes))  # both or none, if the time is up here
        return codes

    def all(self) -> tuple[Rows, NDArray[np.uint64]]:
        """Everything that it was asked, and its answers."""
        if not self.kept:
            side, none = np.empty((0, 0), np.uint64), np.empty(0, np.uint64)
            return Rows(side, side, none, side, side), none
        answers = [codes for _, codes in self.kept]
        return Rows.join([rows for rows, _ in self.kept]), np.concatenate(answers)


# ---- models and cases ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Table:
    """The results of some models on some cases."""

    specs: tuple[DotAdd, ...]
    rows: Rows
    d: NDArray[np.uint64]  #: models × cases; NaNs that a model does not know are one code
    #: of families: models × cases, whether it gives that whatever its details are
    sure: NDArray[np.bool_] | None
    tells: NDArray[np.bool_]  #: models × cases, whether it gives this and nothing else

    @staticmethod
    def of(
        specs: Sequence[DotAdd], rows: Rows, *, families: bool = False, rules: SpecialRules | None = None
    ) -> Table:
        """Return the results of models on cases that the unit takes as they are."""
        given = ((spec, quick_results(spec, rows.codes)) for spec in checking(specs))
        d = [x if spec.nan_is_canonical else one_nan(x, spec.d_format) for spec, x in given]
        table = np.stack(d)
        if rules:
            table = rules.results(table, specs[0].d_format)
        if families:
            table[table == specs[0].d_format.sign_mask] = 0
        sure = sure_of(specs, rows) if families else None
        unknown = np.array([[not spec.nan_is_canonical] for spec in specs]) & (
            table == some_nan(specs[0].d_format)
        )
        return Table(tuple(specs), rows, table, sure, ~unknown if sure is None else sure & ~unknown)

    def under(self, rules: SpecialRules) -> Table:
        """Return the table of a unit with rules of its own, on the cases that it takes as they are."""
        taken = rules.inputs(self.rows, Types.of(self.specs[0]))
        same = (taken.a == self.rows.a).all(axis=1) & (taken.b == self.rows.b).all(axis=1)
        same &= taken.c == self.rows.c
        d = rules.results(self.d[:, same], self.specs[0].d_format)
        sure = None if self.sure is None else self.sure[:, same]
        return Table(self.specs, self.rows.at(same), d, sure, self.tells[:, same])

    def agree(self, case: int, d: np.uint64) -> NDArray[np.bool_]:
        """The models that give this for a case."""
        fmt = self.specs[0].d_format
        families = self.sure is not None
        same = self.d[:, case] == (0 if families and d == fmt.sign_mask else d)
        if self.sure is not None:
            same |= ~self.sure[:, case]
        if fmt.is_nan(int(d)):
            any_nan = np.array([not spec.nan_is_canonical for spec in self.specs])
            same |= any_nan & (self.d[:, case] == some_nan(fmt))
        return np.asarray(same)

    def best(self, left: NDArray[np.intp], but: Collection[int] = ()) -> int | None:
        """The case whose answer leaves the fewest of these models, on average; None if none tells any apart."""
        some = left[:: max(1, len(left) // _COMPARED)]
        least, best = float(len(some)) ** 2, None
        for case in checking(set(range(len(self.rows))).difference(but)):
            column = self.d[some, case]
            given = column[self.tells[some, case]]
            if len(counts := np.unique(given, return_counts=True)[1]) < 2:
                continue
            unsure = len(some) - len(given)  # they are left, whatever the answer
            remaining = float((counts.astype(np.float64) * (counts + unsure)).sum()) + unsure * len(some)
            if remaining < least:
                least, best = remaining, case
        return best


def pool(specs: Sequence[DotAdd], count: int, distributions: Sequence[Distribution], seed: int) -> Rows:
    """Cases drawn for some of these models."""
    rng = np.random.default_rng(seed)
    some = [specs[i] for i in rng.choice(len(specs), min(_DRAWN_FOR, len(specs)), replace=False)]
    return Rows.join(
        [generate(x, -(-count // len(some)), seed + i, distributions) for i, x in enumerate(some)]
    )


def ordinary_cases(rows: Rows, types: Types, seed: int) -> Rows:
    """Cases, made of these, in which nothing is zero or special."""
    dense = _dense(rows, types, seed)
    return dense.at(ordinary_rows(dense, types))


def sure_of(specs: Sequence[DotAdd], rows: Rows) -> NDArray[np.bool_]:
    """For each model and each of some ordinary cases, whether the model's details do not show."""
    of = sure_by_algorithm(specs, rows)
    return np.stack([of[spec.parameters.algorithm] for spec in specs])


def sure_by_algorithm(specs: Sequence[DotAdd], rows: Rows) -> dict[str, NDArray[np.bool_]]:
    """Return for each of some algorithms, on some ordinary cases, whether its details do not show."""
    types = Types.of(specs[0])
    products = exponent(rows.a, types.a) + exponent(rows.b, types.b)
    c = exponent(rows.c, types.c)
    return {name: sure(name, products, c) for name in algorithms_of(specs)}


def _zero(codes: NDArray[np.uint64], fmt: Format) -> NDArray[np.bool_]:
    return np.asarray(
        is_zero(codes.astype(np.int64), fmt) if fmt.has_zero else np.zeros(codes.shape, np.bool_)
    )


@lru_cache(maxsize=2)
def everything(types: Types, k: int, algorithms: tuple[str, ...]) -> Table:
    """All models of these algorithms, but for details, on ordinary cases."""
    specs = [spec for name in algorithms for spec in checking(models(types, k, name))]
    if not specs:
        raise ValueError(f"no model of {', '.join(algorithms)} takes {types}, K = {k}")
    rows, sure_ones = list[Rows](), 0
    for seed in checking(range(40)):
        rows.append(ordinary_cases(pool(specs, POOL, ("near", "edge", "bits"), seed), types, seed))
        of = [
            next(spec for spec in specs if spec.parameters.algorithm == name) for name in algorithms_of(specs)
        ]
        good = sure_of(of, rows[-1]).all(axis=0)
        if sure_ones < POOL // 2:  # at least half of them so that all models are sure
            rows[-1] = rows[-1].at(np.argsort(~good, kind="stable")[: max(16, 2 * int(good.sum()))])
            sure_ones += int(good.sum())
        if sum(map(len, rows)) >= POOL:
            break
    return Table.of(specs, Rows.join(rows).at(slice(0, POOL)), families=True)


def algorithms_of(specs: Sequence[DotAdd]) -> set[str]:
    return {spec.parameters.algorithm for spec in specs}


def _dense(rows: Rows, types: Types, seed: int) -> Rows:
    """Return the rows with factors of other products in place of those that are zero or special."""
    rng = np.random.default_rng(seed)

    def filled(side: NDArray[np.uint64], fmt: Format) -> NDArray[np.uint64]:
        good = np.asarray(is_finite(side.astype(np.int64), fmt)) & ~_zero(side, fmt)
        places = np.argsort(~good, axis=1, kind="stable")  # the good ones first
        chosen = rng.integers(0, 1 << 20, side.shape) % np.maximum(good.sum(axis=1, keepdims=True), 1)
        other = np.take_along_axis(side, np.take_along_axis(places, chosen, axis=1), axis=1)
        return np.where(good, side, other)

    return Rows(filled(rows.a, types.a), filled(rows.b, types.b), rows.c, rows.scale_a, rows.scale_b)
