"""The experiments of the paper's §5: errors of Model 1 for n = 10 … 10^6, with and without limits of the exponents.

Matrices are 10 × n and n × 10, of elements ±10^φ, φ uniform in [−10, 10] (§5.1).  For one n all combinations have the
same matrices, which a seed tells.  Rows go to a file as they are made, and those that are there are not made again.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from mmaformal.analysis.arithmetic import FloatArithmetic
from mmaformal.analysis.rounding import Floats, round_floats
from mmaformal.display import ShortRepr
from mmaformal.studies.narrow_range.bounds import (
    Symbols,
    bound_of,
    epsilon,
    relative_error,
    words_without_limits,
)
from mmaformal.studies.narrow_range.model import MOST_WORDS, Model1
from mmaformal.studies.rows import read_rows

#: Input and accumulation formats of a figure's rows of graphs, from top to bottom.
FIGURES = {
    "5.1": (("e5m2", "fp16"), ("e4m3", "fp16")),
    "5.2": (("fp16", "fp32"), ("e5m2", "fp32"), ("e4m3", "fp32")),
}

#: n = 10^x, rounded down, for 40 x from 1 to 6.
LENGTHS = tuple(int(x) for x in np.floor(np.logspace(1, 6, 40)))

SIDE = 10  #: rows of A, and columns of B
SPREAD = 10.0  #: ℓ


@dataclass(frozen=True, repr=False)
class Combination(ShortRepr):
    """A curve: formats, whether there are subnormals, and words."""

    input: str
    accumulation: str
    subnormals: bool
    words: int

    def __str__(self) -> str:
        with_ = "with" if self.subnormals else "without"
        return f"{self.input} in {self.accumulation}, {with_} subnormals, p = {self.words}"

    @property
    def model(self) -> Model1:
        return Model1.of(self.input, self.accumulation, subnormals=self.subnormals)


@dataclass(frozen=True, repr=False)
class CombinationErrors(ShortRepr):
    """A combination's errors for one n."""

    input: str
    accumulation: str
    subnormals: bool
    words: int
    n: int
    seed: int
    error: float  #: (5.1)
    bound: float  #: Theorem 3.1 or 4.1
    error_unbounded: float  #: (5.1), of unbounded exponents
    bound_unbounded: float  #: (4.33)
    nearest: float  #: the largest error over its bound, of elements by (3.23) where there is one word

    @property
    def combination(self) -> Combination:
        return Combination(self.input, self.accumulation, self.subnormals, self.words)

    @property
    def overflowed(self) -> bool:
        """Whether something overflowed, of which the bounds say nothing."""
        return not np.isfinite(self.error)

    @property
    def violated(self) -> bool:
        """Whether an error exceeds its bound."""
        within = self.error_unbounded <= self.bound_unbounded
        return not (within and (self.overflowed or (self.error <= self.bound and self.nearest <= 1)))

    def to_json(self) -> dict[str, object]:
        """Its fields; None for an error that is not known since something overflowed."""
        return {
            name: None if isinstance(value, float) and not np.isfinite(value) else value
            for name, value in asdict(self).items()
        }


def combinations(figures: Iterable[str]) -> list[Combination]:
    """Those of some figures, as they stand there."""
    return of_formats(pair for figure in figures for pair in FIGURES[figure])


def of_formats(pairs: Iterable[tuple[str, str]]) -> list[Combination]:
    """Those of pairs of an input format and an accumulation format, without subnormals and with them.

    Raises ValueError for what is no format, no pair of a model, or binary64, in which the exact product is computed.
    """
    found = []
    for one, other in pairs:
        if FloatArithmetic.named(other).is_binary64:
            raise ValueError(f"errors are measured against products in binary64: no sums in {other}")
        Model1.of(one, other)
        found += [Combination(one, other, x, p) for x in (False, True) for p in range(1, MOST_WORDS + 1)]
    return found


def matrices(n: int, seed: int) -> tuple[Floats, Floats]:
    """A and B of §5.1."""
    rng = np.random.default_rng([seed, n])

    def made(shape: tuple[int, int]) -> Floats:
        signs = rng.integers(0, 2, shape) * 2.0 - 1.0
        found: Floats = 10.0 ** rng.uniform(-SPREAD, SPREAD, shape) * signs
        return found

    return made((SIDE, n)), made((n, SIDE))


def measure(
    wanted: Sequence[Combination], file: Path, lengths: Sequence[int] = LENGTHS, seed: int = 1
) -> Iterator[CombinationErrors]:
    """The rows of all combinations and lengths: those of the file, and the others as they are made, which go there.

    Raises ValueError for a file that holds something else, OSError if it cannot be read or written.
    """
    known = {(row.combination, row.n): row for row in read_rows(file, CombinationErrors) if row.seed == seed}
    for n in lengths:
        yield from (known[each, n] for each in wanted if (each, n) in known)
        left = [each for each in wanted if (each, n) not in known]
        if not left:
            continue
        A, B = matrices(n, seed)
        exact = A @ B
        unbounded: dict[tuple[str, str, int], float] = {}
        for each in left:
            row = _row(each, A, B=B, exact=exact, seed=seed, unbounded=unbounded)
            with file.open("a", encoding="utf-8") as out:
                out.write(json.dumps(asdict(row)) + "\n")
            yield row


def _row(
    each: Combination,
    A: Floats,
    B: Floats,
    exact: Floats,
    seed: int,
    unbounded: dict[tuple[str, str, int], float],
) -> CombinationErrors:
    n, model = A.shape[1], each.model
    product = model.matmul(A, B, words=each.words)
    key = each.input, each.accumulation, each.words
    if key not in unbounded:  # subnormals make no difference to it
        free = model.unbounded.matmul(A, B, words=each.words, theta=product.theta)
        unbounded[key] = relative_error(free.C, exact, A, B)
    s = Symbols.of(model, n, each.words)
    error, bound = relative_error(product.C, exact, A, B), float(bound_of(s))
    nearest = error / bound
    if each.words == 1:
        nearest = float((np.abs(product.C - exact) / epsilon(s).of(A, B)).max())
    return CombinationErrors(
        *(each.input, each.accumulation, each.subnormals, each.words, n, seed),
        error=error,
        bound=bound,
        error_unbounded=unbounded[key],
        bound_unbounded=float(words_without_limits(s)),
        nearest=nearest,
    )


def growth(model: Model1, n: int, *, one_sign: bool, seed: int = 1) -> float:
    """The largest |Ĉ − AB| / |A||B| of elements, of uniform numbers in [−1, 1], or [0, 1], that the input format has.

    What grows with n is the error of sums alone: at most n·U, and some √n·U where errors have random signs.
    """
    rng = np.random.default_rng([seed, n])
    low = 0.0 if one_sign else -1.0
    A, B = (round_floats(rng.uniform(low, 1.0, shape), model.input) for shape in ((SIDE, n), (n, SIDE)))
    C = model.matmul(A, B).C
    return float((np.abs(C - A @ B) / (np.abs(A) @ np.abs(B))).max())
