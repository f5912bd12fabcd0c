"""What a whole product loses on an instruction, from what is proved of each of its steps.

One step of a fused algorithm adds L products and c as S, and rounds once, d = ρ(S).  `queries/error_bound` proves

    |S − (c + Σ a·b)| ≤ n · 2^(e_max − F),                e_max the largest exponent of the step,

with the least n there is.  Let w(x) = max(|x|, the least normal number of x's format), so that 2^e_max is at most the
largest of w(a)·w(b) and w(c), times the scales.  Then of a chain of m steps, where nothing overflows,

    |d − (c + Σ a·b)| ≤ ((1 + U)^m − 1) · (w(c) + Σ w(a)·w(b)),   U = ν + u_ρ + ν·u_ρ,   ν = n · 2^−F,

u_ρ being 2^−f for a ρ that cuts to f fractional bits, and half of that for one that rounds to nearest.

For let σ_i be w(c) + Σ w(a)·w(b) of the first i steps, and E_i the error of the i-th result.  A step adds at most ν
times the larger of σ_i − σ_(i−1) and w(d_(i−1)) ≤ σ_(i−1) + E_(i−1), hence at most ν·(σ_i + E_(i−1)); and ρ at most
u_ρ·|S|, or of a tiny S u_ρ times the least normal number.  So E_i ≤ (1 + U)·E_(i−1) + U·σ_i, and no σ_i exceeds σ_m.

What stands here in place of the paper's n·U is thus a step's constant and the number of steps, not of products.  An
instruction that is made of others (`lowered`) adds c in the end, and steps of its own count one each.  Of dpa_e9s12 n
is argued where it stands, and not proved.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from mmaformal.algorithms import (
    Conversion,
    DotAdd,
    DpaE9s12,
    Efda,
    Fda,
    Fdrda,
    Ffma,
    Gdfs,
    Gps,
    Lowered,
    Oddsum,
    Pfma,
    Rounding,
    Sfma,
    Wfma,
)
from mmaformal.analysis.rounding import Floats
from mmaformal.display import ShortRepr
from mmaformal.encodings.executable.blocks import decode
from mmaformal.facts.alignment import cases_of
from mmaformal.facts.fdrda.bounds import losses_of
from mmaformal.facts.fused_steps import fused_step, one_step
from mmaformal.facts.lowered.error_bound import Inner
from mmaformal.formats import Format
from mmaformal.gemm import Matrix, as_operand
from mmaformal.instruction import Instruction


@dataclass(frozen=True, repr=False)
class Stage(ShortRepr):
    """Steps of one kind: what their sum is off at most, n · 2^(e_max − F), and the rounding after it."""

    n: Fraction
    F: int
    rho: Conversion
    products: int  #: that a step takes; 0 of a step that adds c alone

    @property
    def nu(self) -> Fraction:
        return self.n / (1 << self.F)

    @property
    def u_rho(self) -> Fraction:
        """The most that ρ is off, relative to what is rounded."""
        nearest = self.rho.rounding in (Rounding.RNE, Rounding.RNA)
        return Fraction(1, 1 << (self.rho.fraction_bits + nearest))

    @property
    def U(self) -> Fraction:
        """What stands in place of the unit roundoff: for all products of a step, and the rounding."""
        return self.nu + self.u_rho + self.nu * self.u_rho


@dataclass(frozen=True, repr=False)
class Unit(ShortRepr):
    """An instruction's steps, the first of a product apart where they differ."""

    instruction: Instruction
    stages: tuple[Stage, ...]  #: that each K of the instruction goes through, once or per `products`

    @classmethod
    def of(cls, instruction: Instruction) -> Unit:
        """Raises ValueError for an algorithm of which no such bound is known: those that flush subnormals have none."""
        return cls(instruction, _stages(instruction.spec))

    def factor(self, K: int) -> Fraction:
        """(1 + U)^m − 1 for K products, K padded to whole instructions.

        What enters is rounded up to 96 bits, since the exact numbers are long.
        """
        k = self.instruction.k
        instructions = max(-(-K // k), 1)
        power = Fraction(1)
        for stage in self.stages:
            power *= _power(1 + stage.U, instructions * (k // stage.products if stage.products else 1))
        return power - 1

    def bound(
        self,
        A: Matrix,
        B: Matrix,
        C: Matrix | None = None,
        *,
        scale_a: Matrix | None = None,
        scale_b: Matrix | None = None,
    ) -> Floats:
        """At most so far each element of `matmul(A, B, C)` is from the exact C + A·B, if it is finite.

        Operands as `matmul` takes them.  Raises as it does.
        """
        i, spec = self.instruction, self.instruction.spec
        a, b = weights(A, i.a_format, "A"), weights(B, i.b_format, "B")
        if spec.scale_format is not None:
            if scale_a is None or scale_b is None:
                raise ValueError(f"{i.label} needs scale_a and scale_b")
            s, t = (
                weights(scale_a, spec.scale_format, "scale_a"),
                weights(scale_b, spec.scale_format, "scale_b"),
            )
            a = a * np.repeat(s, spec.scale_block, axis=1)[:, : a.shape[1]]
            b = b * np.repeat(t, spec.scale_block, axis=0)[: b.shape[0]]
        least = float(i.c_format.value(1 << (i.c_format.fraction_bits + i.c_format.ignored_low_bits)))
        c = least if C is None else weights(C, i.c_format, "C")
        # What is added up in binary64 is rounded, each sum and product by at most 2^-53: as many and some more.
        rounding = 1 + (a.shape[1] + 8) * 2.0**-52
        found: Floats = float(self.factor(a.shape[1])) * rounding * (a @ b + c)
        return found


def weights(x: Matrix, fmt: Format, name: str) -> Floats:
    """w of each element: its magnitude, or the least normal number of its format if that is larger."""
    operand = decode(as_operand(x, fmt, name).codes.astype(np.int64), fmt.layout)
    least = 2.0**fmt.min_exponent
    if fmt.has_zero:
        magnitude = np.ldexp(operand.significand.astype(np.float64), operand.exponent - fmt.fraction_bits)
    else:
        magnitude = np.ldexp(1.0, operand.exponent)
    found: Floats = np.maximum(np.where(operand.nan | operand.infinite, np.inf, magnitude), least)
    return found


def _stages(spec: DotAdd) -> tuple[Stage, ...]:
    p = spec.parameters
    rho = p.last_rounding
    if isinstance(p, (Fda, Lowered)) and p.cut is not Rounding.RZ:
        raise ValueError(
            f"{p.algorithm} has no bound relative to its terms: none is proved where they are cut to odd"
        )
    if isinstance(p, Lowered):
        inner = Inner(spec, p)
        count = len(p.order) // p.L
        n = max(case.n for first in (True, False)[:count] for case in inner.cases(first)[1])
        return (Stage(n, p.F, p.rho, p.L), Stage(Fraction(0), p.F, p.addition, 0))
    L = p.step_products
    if isinstance(p, (Fda, Gdfs)):
        step = fused_step(one_step(spec))
        n = max(case.n for case in cases_of(one_step(spec), step))
        return (Stage(n, step.F, rho, L),)
    if isinstance(p, Fdrda):
        losses = losses_of(one_step(spec), p)
        return (Stage(max(losses.below, losses.above), p.F, rho, L),)
    if isinstance(p, DpaE9s12):  # of the halves' products, the one of the largest exponent is kept whole
        halves = 4 * L if spec.a_format.fraction_bits > 11 else L
        return (Stage(Fraction(halves - 1), p.L - 3 - p.carries(spec), rho, L),)
    if isinstance(p, (Sfma, Efda, Wfma)):
        return (Stage(Fraction(0), 0, rho, L),)
    why = "it takes subnormal numbers for zero" if isinstance(p, _FLUSHING) else "none is proved of its steps"
    raise ValueError(f"{p.algorithm} has no bound relative to its terms: {why}")


#: Whose results are off by a whole subnormal number, however small the terms.
_FLUSHING = (Gps, Pfma, Ffma, Oddsum)

_BITS = 96


def _power(x: Fraction, m: int) -> Fraction:
    """x^m, rounded up where it is long."""
    found = Fraction(1)
    while m:
        if m & 1:
            found = _up(found * x)
        x, m = _up(x * x), m >> 1
    return found


def _up(x: Fraction) -> Fraction:
    scale = 1 << _BITS
    return Fraction(-((-x.numerator * scale) // x.denominator), scale)
