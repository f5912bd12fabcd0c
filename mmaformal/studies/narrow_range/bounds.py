"""The paper's bounds, by its numbers and in its symbols, as exact numbers.

    from mmaformal.studies.narrow_range import Model1
    from mmaformal.studies.narrow_range.bounds import Symbols, BOUNDS
    print(float(BOUNDS["3.25"](Symbols.of(Model1.of("e4m3", "fp16"), n=1000))))

(3.21) and (3.23) are componentwise: what is multiplied with |a_i|^T|b_j|, and what with ‖a_i‖∞ ‖b_j‖∞.  The others are
multiplied with ‖A‖∞ ‖B‖∞, but for (3.27), which is with |A| |B|.  (3.26) to (3.28), (4.28), (4.32) and (4.33) hold to
first order (≲); (3.22) says what E is, and (4.29) to (4.31) what is computed, which is `model`.

That nothing overflows is assumed; (3.2) alone does not see to it (`scaling`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from mmaformal.analysis.recommend import norm
from mmaformal.analysis.rounding import Floats
from mmaformal.display import ShortRepr
from mmaformal.studies.narrow_range.model import Model1


@dataclass(frozen=True, repr=False)
class Symbols(ShortRepr):
    """The symbols of the bounds.  G_min and g_min are 0 where exponents have no limits."""

    n: int  #: products of an element of C
    u: Fraction
    U: Fraction
    theta: Fraction
    g_min: Fraction
    G_min: Fraction
    p: int = 1  #: words

    @classmethod
    def of(cls, model: Model1, n: int, p: int = 1, theta: Fraction | None = None) -> Symbols:
        """Those of a model; θ is that of (3.2) unless it is given."""
        one, other = model.input, model.accumulation
        limit = model.theta(n) if theta is None else theta
        return cls(n, one.u, other.u, limit, one.g_min, other.g_min, p)

    @property
    def omega(self) -> Fraction:
        """(3.15)."""
        return self.g_min / self.theta

    @property
    def zeta(self) -> Fraction:
        """(4.20)."""
        return max(self.u**self.p, 2 * self.n * self.u ** (self.p - 1) * self.omega)

    @property
    def largest_c(self) -> int:
        """The most underflows in the accumulation format that an element of C can meet: c ≤ 2n − 1."""
        return 2 * self.n - 1


@dataclass(frozen=True, repr=False)
class Componentwise(ShortRepr):
    """A bound x · |a_i|^T|b_j| + y · ‖a_i‖∞ ‖b_j‖∞."""

    inner: Fraction
    norms: Fraction

    def of(self, A: Floats, B: Floats) -> Floats:
        """Return the bound of each element of A·B."""
        one, other = np.abs(A), np.abs(B)
        found: Floats = float(self.inner) * (one @ other) + float(self.norms) * np.outer(
            one.max(axis=1), other.max(axis=0)
        )
        return found


def epsilon_1(s: Symbols) -> Componentwise:
    """(3.14): what rounding to the input format does."""
    return Componentwise(2 * s.u + s.u**2, 4 * s.n * s.omega * (1 + s.u + s.omega))


def epsilon(s: Symbols, c: int | None = None) -> Componentwise:
    """(3.21), (3.23): of an element with c accumulation underflows, 2n − 1 unless they were counted."""
    first, nU = epsilon_1(s), s.n * s.U
    underflows = 4 * (s.largest_c if c is None else c) * s.G_min / s.theta**2
    return Componentwise(first.inner * (1 + nU) + nU, first.norms * (1 + nU) + underflows)


def theorem_3_1(s: Symbols) -> Fraction:
    """(3.24), (3.25)."""
    n, u, nU, omega = s.n, s.u, s.n * s.U, s.omega
    inputs = 2 * u + u**2 + 4 * n**2 * omega * (1 + u + omega)
    return inputs * (1 + nU) + nU + 8 * n**2 * s.G_min / s.theta**2


def sharpened(s: Symbols) -> Fraction:
    """(3.25) with 4nω(1 + u) + 4n²ω² in the place of 4n²ω(1 + u + ω): sums of magnitudes are bounded by ‖A‖∞ and n‖B‖∞
    at once, and not each by n times the largest (`argument`)."""
    n, u, nU, omega = s.n, s.u, s.n * s.U, s.omega
    inputs = 2 * u + u**2 + 4 * n * omega * (1 + u) + 4 * n**2 * omega**2
    return inputs * (1 + nU) + nU + 8 * n**2 * s.G_min / s.theta**2


def proved(s: Symbols) -> Fraction:
    """The bound that follows from (2.3), (2.4) and (3.4) alone, of any number of words: `argument`.

    With R = (1 + U)^N, N = np(p + 1)/2 products added one after the other: a + 4nb/θ + 4nk/θ², where
    aP + b(Σ|X| + Σ|Y|) + k bounds the error of an element before it is scaled back.
    """
    n, u, p, theta = s.n, s.u, s.p, s.theta
    N = n * p * (p + 1) // 2
    R = (1 + s.U) ** N
    v, q = u**p, s.g_min / u
    left_out = (1 + u) ** 2 * sum(u ** (i + j) for i in range(p) for j in range(p) if i + j >= p)
    alpha, beta, kappa = 2 * v + v**2 + left_out, q * (v + v**2 + left_out), q**2 * (v**2 + left_out)
    if p == 1:  # the products' magnitudes are the exact ones, and what they are off
        size = 1 + alpha, beta, kappa
    else:
        whole = ((1 + u) * sum(u**i for i in range(p))) ** 2
        size = whole, whole * q, whole * q**2
    a, b, k = (x + (R - 1) * y for x, y in zip((alpha, beta, kappa), size, strict=True))
    constant = n * k + (2 * N - 1) * R * s.G_min
    return a + 4 * n * b / theta + 4 * n * constant / theta**2


def simplified(s: Symbols) -> Fraction:
    """(3.26): (3.25) without terms of second order."""
    return without_limits(s) + 4 * s.n**2 * s.omega + 8 * s.n**2 * s.G_min / s.theta**2


def without_limits(s: Symbols) -> Fraction:
    """(3.27), (3.28): of unbounded exponents (P. Blanchard et al., 2020, Theorem 3.2)."""
    return 2 * s.u + s.n * s.U


def _words(s: Symbols) -> Fraction:
    """(4.28): of p words."""
    return 2 * s.zeta + s.zeta**2 + (s.p - 1) * s.u**s.p + _accumulated(s)


def theorem_4_1(s: Symbols) -> Fraction:
    """(4.32): of p words."""
    return (s.p + 1) * s.u**s.p + 4 * s.n * s.u ** (s.p - 1) * s.omega + _accumulated(s)


def words_without_limits(s: Symbols) -> Fraction:
    """(4.33): of p words, with unbounded exponents (M. Fasi et al., 2023, Theorem 2.1)."""
    return (s.p + 1) * s.u**s.p + (s.n + s.p**2) * s.U


def _accumulated(s: Symbols) -> Fraction:
    """(4.27): what accumulating the products of words adds."""
    return (s.n + s.p**2) * s.U + 4 * s.p * (s.p + 1) * s.n**2 * s.G_min / s.theta**2


def probabilistic(s: Symbols) -> Fraction:
    """(3.28), or (4.33), with √n for n: how rounding errors of random signs grow, most likely and to first order.

    (N. J. Higham and T. Mary, *A new approach to probabilistic rounding error analysis*, 2019.)  It is no bound: where
    sums stagnate errors are not of random signs, and their constant, for a probability of interest, is a few units.
    """
    root = Fraction(float(np.sqrt(s.n)))
    return (s.p + 1) * s.u**s.p + root * s.U


#: The normwise bounds, and (3.27), by their numbers.
BOUNDS: dict[str, Callable[[Symbols], Fraction]] = {
    "3.24": theorem_3_1,
    "3.25": theorem_3_1,
    "3.26": simplified,
    "3.27": without_limits,
    "3.28": without_limits,
    "4.20": lambda s: s.zeta,
    "4.28": _words,
    "4.32": theorem_4_1,
    "4.33": words_without_limits,
}


def bound_of(s: Symbols) -> Fraction:
    """The paper's bound of ‖Ĉ − AB‖∞ / (‖A‖∞ ‖B‖∞): Theorem 3.1 for one word, Theorem 4.1 for more."""
    return theorem_3_1(s) if s.p == 1 else theorem_4_1(s)


def relative_error(C: Floats, exact: Floats, A: Floats, B: Floats) -> float:
    """(5.1): ‖Ĉ − C‖∞ / (‖A‖∞ ‖B‖∞)."""
    return norm(C - exact) / norm(A) / norm(B)
