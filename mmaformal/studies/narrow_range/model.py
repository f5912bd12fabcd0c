"""Model 1 (§2.1): a product of matrices whose elements are rounded to one format, and added up in another.

    C = Λ^-1 (fl(ΛA) fl(BM)) M^-1                            (3.1)
    C = Λ^-1 (Σ_{i + j < p} u^(i+j) A^(i) B^(j)) M^-1        (4.31), of p words

Each product, and each sum, is rounded to the accumulation format, one product after the other; of words, those of
i = 0 first, j rising.  u^(i+j) is applied after the product was rounded, and rounds nothing.

(4.3), and what follows from it, leaves u^j out of the sum that is subtracted; (4.4) says what is meant:

    w^(i) = fl((w − Σ_{j < i} u^j w^(j)) / u^i)
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from mmaformal.analysis import scaling
from mmaformal.analysis.arithmetic import FloatArithmetic, as_floats
from mmaformal.analysis.rounding import WIDTH, Floats, add_rounded_products, round_floats
from mmaformal.checked import integer
from mmaformal.display import ShortRepr
from mmaformal.kernels.rows import processors

#: Products of one element of C that are computed between two looks at whether the user wants to stop.
_AT_ONCE = 1 << 16

#: Words that a number may be.
MOST_WORDS = 3

#: Exponents of scaled elements within which products and sums of unbounded arithmetics stay within binary64.
_MOST_EXPONENT = 400


@dataclass(frozen=True)
class Model1:
    """An input format and an accumulation format; ValueError if the latter has fewer bits, or a narrower range."""

    input: FloatArithmetic
    accumulation: FloatArithmetic

    def __post_init__(self) -> None:
        one, other = self.input, self.accumulation
        fits = other.t >= one.t and (
            not other.bounded or (other.e_min <= one.e_min and one.f_max <= other.f_max)
        )
        if not fits:
            raise ValueError(
                f"{other} accumulates no products of {one}: it has fewer bits or a narrower range"
            )

    def __str__(self) -> str:
        return f"{self.input} accumulated in {self.accumulation}"

    @classmethod
    def of(
        cls,
        input_format: str | FloatArithmetic,
        accumulation_format: str | FloatArithmetic,
        *,
        subnormals: bool = True,
        bounded: bool = True,
    ) -> Model1:
        """Return the model of two formats (`Arithmetic.named`), both with subnormals and limits or both without."""
        one, other = (
            each if isinstance(each, FloatArithmetic) else FloatArithmetic.named(each, subnormals=subnormals)
            for each in (input_format, accumulation_format)
        )
        model = cls(one, other)
        return model if bounded else model.unbounded

    @cached_property
    def unbounded(self) -> Model1:
        """This model without limits of the exponents."""
        return Model1(self.input.unbounded, self.accumulation.unbounded)

    def theta(self, n: int) -> Fraction:
        """θ of (3.2); also without limits, where it is that of the formats with them."""
        return scaling.theta(self.input, self.accumulation, n)

    def safe_theta(self, n: int, words: int = 1) -> Fraction:
        """A θ with which nothing overflows, which (3.2) does not promise (`scaling`)."""
        return scaling.safe_theta(self.input, self.accumulation, n, words)

    def matmul(self, A: object, B: object, *, words: int = 1, theta: Fraction | None = None) -> ScaledProduct:
        """C = A·B; θ is that of (3.2) unless it is given.

        Raises ValueError for matrices that do not fit each other or the model, TypeError for what is no matrix.
        """
        a, b = as_floats(A, "A"), as_floats(B, "B")
        if a.shape[1] != b.shape[0]:
            raise ValueError(f"A {a.shape} and B {b.shape} do not fit")
        if not 1 <= integer(words, "words") <= MOST_WORDS:
            raise ValueError(f"words are 1 to {MOST_WORDS}, not {words}")
        limit = self.theta(a.shape[1]) if theta is None else theta
        if limit <= 0:
            raise ValueError(f"θ is above 0, not {limit}")
        left = scaling.powers(np.abs(a).max(axis=1), limit)
        right = scaling.powers(np.abs(b).max(axis=0), limit)
        total = _sum(self, a, b=b, scales=(left, right), words=words)
        with np.errstate(invalid="ignore"):
            C = total[:, : b.shape[1]] / left[:, None] / right
        return ScaledProduct(self, words, limit, left, right, C)


@dataclass(frozen=True, repr=False)
class ScaledProduct(ShortRepr):
    """C as the model computes it, and how it was scaled."""

    model: Model1
    words: int
    theta: Fraction
    row_scales: Floats  #: Λ's diagonal
    column_scales: Floats  #: M's
    C: Floats

    @property
    def overflowed(self) -> bool:
        """Whether a result is an infinity, or the NaN that sums become after one."""
        return not np.isfinite(self.C).all()


def split_words(x: Floats, arithmetic: FloatArithmetic, p: int) -> Iterator[Floats]:
    """The first p words of each number (4.3)."""
    rest, u = x, float(arithmetic.u)
    for i in range(p):
        word = round_floats(rest / u**i, arithmetic)
        yield word
        if i + 1 < p:
            rest = (
                rest - word * u**i
            )  # exact: nothing is rounded that is nearer to its word than half of itself


def _sum(model: Model1, a: Floats, b: Floats, scales: tuple[Floats, Floats], words: int) -> Floats:
    """Σ u^(i+j) A^(i) B^(j), rounded at each operation; columns are padded."""
    (m, n), q = a.shape, b.shape[1]
    left, right = scales
    total = np.zeros((m, -(-q // WIDTH) * WIDTH))
    padded = np.zeros((min(_AT_ONCE, n), total.shape[1]))
    u = float(model.input.u)
    workers = min(processors(), m)
    rows = [slice(m * w // workers, m * (w + 1) // workers) for w in range(workers)]
    with ThreadPoolExecutor(workers) as pool:
        for i, j in scaling.pairs_of_words(words):
            for start in range(0, n, _AT_ONCE):
                x, y = left[:, None] * a[:, start : start + _AT_ONCE], b[start : start + _AT_ONCE] * right
                for each in (x, y):
                    _check_range(model, each)
                *_, one = split_words(x, model.input, i + 1)
                *_, other = split_words(y, model.input, j + 1)
                here = padded[: len(other)]
                here[:, :q] = other
                scale = u ** (i + j)

                def add(part: slice, one: Floats = one, here: Floats = here, scale: float = scale) -> None:
                    add_rounded_products(one[part], here, total[part], scale, model.accumulation)

                list(pool.map(add, rows))
    return total


def _check_range(model: Model1, x: Floats) -> None:
    """Raises ValueError where unbounded exponents would leave those of binary64, which computes."""
    if model.input.is_binary64 or model.accumulation.bounded:
        return
    magnitudes = np.abs(x[x != 0])
    low, high = 2.0**-_MOST_EXPONENT, 2.0**_MOST_EXPONENT
    if magnitudes.size and (magnitudes.min() < low or magnitudes.max() > high):
        raise ValueError("without limits, elements of a row or column are at most 2^400 apart from θ")
