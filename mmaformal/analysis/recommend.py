"""How to scale two matrices for an instruction, how large the error can be then, and how large it is on the model.

    from mmaformal.analysis.recommend import element_bounds, recommend_scaling
    print(recommend_scaling(A, B, hopper["QGMMA.64x8x32.F32.E4M3.E4M3"]))

A and B are of binary64; C = Λ^-1 (fl(ΛA) fl(BM)) M^-1 as in (3.1), the product in the middle being the instruction's,
in chains.  θ is as large as can be without overflow, so that least is lost to underflow; a and b may have one each:

- they are numbers of the formats of a and b, so that what is at most θ is rounded to at most θ;
- no result exceeds (1 + factor)·K·θ_a·θ_b and what w adds (`units`), which is at most the largest number of d's format.

The bound is of these very A and B: what rounding them does is known exactly, and what the instruction does to the
rounded ones at most is `Unit.bound`.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from mmaformal.analysis.arithmetic import FloatArithmetic, as_floats
from mmaformal.analysis.rounding import Floats, round_floats
from mmaformal.analysis.scaling import powers, root_below
from mmaformal.analysis.units import Unit
from mmaformal.display import HtmlText, short_text
from mmaformal.formats import Format
from mmaformal.gemm import matmul
from mmaformal.instruction import Instruction
from mmaformal.operands import Matrix

#: The share that inexact sums and products of binary64 add to a bound, for each product.
_ROUNDING = 2.0**-50


def element_bounds(
    A: Matrix,
    B: Matrix,
    instruction: Instruction,
    C: Matrix | None = None,
    *,
    scale_a: Matrix | None = None,
    scale_b: Matrix | None = None,
) -> Floats:
    """At most so far each finite element of `matmul(A, B, C, instruction=…)` is from the exact C + A·B.

    Operands as `matmul` takes them.  Raises as it does, and ValueError for an instruction that has no such bound.
    """
    return Unit.of(instruction).bound(A, B, C, scale_a=scale_a, scale_b=scale_b)


@dataclass(frozen=True, repr=False)
class ScaledProductOutcome(HtmlText):
    """A product of matrices on an instruction, their rows and columns scaled."""

    row_scales: Floats  #: Λ's diagonal
    column_scales: Floats  #: M's
    C: Floats
    bound: Floats  #: at most so far each element is from that of A·B
    error: Floats  #: and so far it is, on the model

    @property
    def overflows(self) -> bool:
        return not np.isfinite(self.C).all()

    def relative(self, x: Floats, A: Floats, B: Floats) -> float:
        """The norm of x, as in (5.1)."""
        return norm(x) / (norm(A) * norm(B) or 1.0)

    def __repr__(self) -> str:
        shape = " × ".join(map(str, self.C.shape))
        return short_text(self, f"{shape}, error {np.max(self.error):.3g}, bound {np.max(self.bound):.3g}")


@dataclass(frozen=True, repr=False)
class Recommendation(HtmlText):
    """How to scale A and B, what that gives, and what no scaling would have given."""

    instruction: Instruction
    theta: tuple[Fraction, Fraction]  #: of A's rows, and of B's columns
    scaled: ScaledProductOutcome
    unscaled: ScaledProductOutcome
    A: Floats
    B: Floats

    def __str__(self) -> str:
        a, b = (f"{float(x):.6g}" for x in self.theta)
        lines = [f"{self.instruction.label}: rows of A scaled to at most {a}, columns of B to at most {b}"]
        for name, each in (("scaled", self.scaled), ("not scaled", self.unscaled)):
            if each.overflows:
                lines.append(f"  {name:10}  overflows")
                continue
            most, seen = (each.relative(x, self.A, self.B) for x in (each.bound, each.error))
            lines.append(f"  {name:10}  error {seen:.3g}, at most {most:.3g}, relative to ‖A‖∞ ‖B‖∞")
        return "\n".join(lines)

    def __repr__(self) -> str:
        return short_text(self, self.instruction.label, repr(self.scaled))


def recommend_scaling(A: object, B: object, instruction: Instruction) -> Recommendation:
    """The scaling of A's rows and B's columns by powers of two with which nothing overflows and least is lost.

    Raises ValueError for matrices that do not fit each other, for an instruction that has no error bound, and if no
    scaling keeps K products from overflowing; TypeError for what is no matrix.
    """
    a, b = as_floats(A, "A"), as_floats(B, "B")
    if a.shape[1] != b.shape[0]:
        raise ValueError(f"A {a.shape} and B {b.shape} do not fit")
    unit = Unit.of(instruction)
    limits = thetas(unit, a.shape[1])
    exact = _exact(a, b)
    ones = np.ones(len(a)), np.ones(b.shape[1])
    left, right = powers(np.abs(a).max(axis=1), limits[0]), powers(np.abs(b).max(axis=0), limits[1])
    scaled = _outcome(unit, a, b=b, left=left, right=right, exact=exact)
    unscaled = _outcome(unit, a, b=b, left=ones[0], right=ones[1], exact=exact)
    return Recommendation(instruction, limits, scaled, unscaled, a, b)


def thetas(unit: Unit, K: int) -> tuple[Fraction, Fraction]:
    """The largest θ of A and of B with which nothing overflows in K products.  Raises ValueError if there are none."""
    i = unit.instruction
    one, other = FloatArithmetic.of(i.a_format), FloatArithmetic.of(i.b_format)
    d, c_least = FloatArithmetic.of(i.d_format), Fraction(2) ** i.c_format.min_exponent
    padded = max(-(-K // i.k), 1) * i.k
    most = (d.f_max / (1 + unit.factor(K)) - c_least) / padded
    if one.f_max * other.f_max <= most:
        return one.f_max, other.f_max
    try:
        if one.f_max <= other.f_max:
            left = one.below(min(one.f_max, root_below(most)))
            return left, other.below(most / left)
        right = other.below(min(other.f_max, root_below(most)))
        return one.below(most / right), right
    except ValueError:
        raise ValueError(f"{i.label}: no scaling keeps {K} products from overflowing") from None


def _outcome(
    unit: Unit, a: Floats, b: Floats, left: Floats, right: Floats, exact: Floats
) -> ScaledProductOutcome:
    i, spec = unit.instruction, unit.instruction.spec
    x, y = left[:, None] * a, b * right
    one, other = (round_floats(v, FloatArithmetic.of(f)) for v, f in ((x, i.a_format), (y, i.b_format)))
    scales: dict[str, Matrix] = {}
    if spec.scale_format is not None:
        blocks = -(-a.shape[1] // spec.scale_block)
        unity = spec.scale_format.word.type(spec.scale_format.code("1"))
        scales = {
            "scale_a": np.full((len(a), blocks), unity),
            "scale_b": np.full((blocks, b.shape[1]), unity),
        }
    nothing = np.full(exact.shape, np.inf)
    if not (np.isfinite(one).all() and np.isfinite(other).all()):
        return ScaledProductOutcome(left, right, np.full(exact.shape, np.nan), nothing, nothing)
    A, B = _of_format(one, i.a_format), _of_format(other, i.b_format)
    with np.errstate(all="ignore"):
        D = np.asarray(matmul(A, B, instruction=i, **scales)).astype(np.float64)
        total = D / left[:, None] / right
        off_x, off_y = np.abs(one - x), np.abs(other - y)  # both exact: neighbours of one magnitude
        rounding = off_x @ np.abs(y) + np.abs(one) @ off_y
        most = (rounding + unit.bound(A, B, **scales)) / left[:, None] / right
        most = most * (1 + a.shape[1] * _ROUNDING)
    return ScaledProductOutcome(left, right, total, most, np.abs(total - exact))


def _of_format(x: Floats, fmt: Format) -> Matrix:
    """Numbers of a format as its floats."""
    assert fmt.dtype is not None
    return x.astype(fmt.dtype)


def _exact(a: Floats, b: Floats) -> Floats:
    """A·B to the precision of NumPy's longdouble, which has 64 bits on x86, rounded to binary64."""
    found: Floats = (a.astype(np.longdouble) @ b.astype(np.longdouble)).astype(np.float64)
    return found


def norm(x: Floats) -> float:
    """Return ‖x‖∞."""
    return float(np.abs(x).sum(axis=1).max())
