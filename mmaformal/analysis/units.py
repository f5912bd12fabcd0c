"""The loss of a whole product on an instruction, from what is proved of each of its steps.

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
instruction that is made of others (`lowered`) adds c in the end, and steps of its own count one each.  That this
follows from what is proved of steps, `queries/bound` proves; of acc_e9s12 n is argued where it stands.

Units that take subnormal numbers for zero (`Flushing`) make a tree of roundings to fp32, whose depth is that of a
product's way: `first` roundings until it is added to what c became, and one for each such addition, m in all.  Each
operation may besides put a tiny result to zero, which is less than `least`, the least normal number of fp32.  So of the
numbers a', b', c' that are left of the operands,

    |d − (c' + Σ a'·b')| ≤ ((1 + u)^(first + m) − 1) · (|c'| + Σ |a'·b'|) + operations · (1 + u)^(first + m) · least,

and what is lost of the operands is added to the bound.  This is argued, not proved.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from mmaformal.analysis.rounding import Floats
from mmaformal.cases.one_step import one_step
from mmaformal.display import ShortRepr
from mmaformal.encodings.acc_e9s12 import AccE9s12
from mmaformal.encodings.dpa_e9s12.proofs.losses import places_kept
from mmaformal.encodings.executable.blocks import decode
from mmaformal.encodings.fdrda import Fdrda
from mmaformal.encodings.fdrda.proofs.bounds import losses_of
from mmaformal.encodings.lowered import Lowered
from mmaformal.encodings.lowered.proofs.exactness import InnerSteps
from mmaformal.facts.alignment import cases_of
from mmaformal.facts.fused_steps import fused_step
from mmaformal.formats import Format, fp16, fp32
from mmaformal.instruction import Instruction
from mmaformal.operands import Matrix, as_operand
from mmaformal.rounding import Conversion, Rounding
from mmaformal.spec import DotAdd, Flushing, LossModel


@dataclass(frozen=True, repr=False)
class SumStage(ShortRepr):
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
        return Fraction(1, 1 << _kept(self.rho))

    @property
    def U(self) -> Fraction:
        """The number in place of the unit roundoff: for all products of a step, and the rounding."""
        return self.nu + self.u_rho + self.nu * self.u_rho


@dataclass(frozen=True, repr=False)
class Unit(ShortRepr):
    """An instruction's steps, the first of a product apart where they differ."""

    instruction: Instruction
    stages: tuple[SumStage, ...]  #: that each K of the instruction goes through, once or per `products`
    flushing: Flushing | None = None

    @classmethod
    def of(cls, instruction: Instruction) -> Unit:
        """Raises ValueError for an algorithm of which no bound is known, or whose parameters allow none."""
        spec, e_zero = instruction.spec, getattr(instruction.spec.parameters, "e_zero", None)
        least = spec.c_format.min_exponent
        if spec.d_format.min_exponent > least:
            raise ValueError(
                f"{instruction.label} has no bound relative to its terms: d is subnormal where c is not"
            )
        of_products = spec.a_format.min_exponent + spec.b_format.min_exponent
        if isinstance(e_zero, int) and e_zero > max(least, of_products):  # of which w is that at least
            raise ValueError(
                f"{instruction.label} has no bound relative to its terms: zeros count as 2^{e_zero}"
            )
        return cls(instruction, _stages(instruction.spec), instruction.spec.parameters.flushing)

    def factor(self, K: int) -> Fraction:
        """(1 + U)^m − 1 for K products, K padded to whole instructions.

        What enters is rounded up to 96 bits, since the exact numbers are long.  `absolute` comes besides.
        """
        k, L = self.instruction.k, self.instruction.spec.parameters.step_products
        instructions = max(-(-K // k), 1)
        power = Fraction(1) if self.flushing is None else raised(1 + self.stages[0].U, self.flushing.first)
        for stage in self.stages:  # c is added once in each step
            power *= raised(1 + stage.U, instructions * (k // (stage.products or L)))
        return power - 1

    def promoted_factor(self, K: int, every: int) -> Fraction:
        """Return `factor` if after `every` instructions the accumulator joins a total in fp32, and is +0 again.

        Relative to the weights of all terms, and the least normal number once for each such sum.
        """
        sums = -(-max(-(-K // self.instruction.k), 1) // every)
        one = self.factor(min(every * self.instruction.k, K))
        return (1 + one) * raised(1 + Fraction(1, 1 << 24), sums) - 1

    def absolute(self, K: int) -> Fraction:
        """Return what results put to zero may add to the error of K products, K padded to whole instructions."""
        if self.flushing is None:
            return Fraction(0)
        links = max(-(-K // self.instruction.k), 1) * self.instruction.k // self.stages[0].products
        least = Fraction(2) ** self.instruction.d_format.min_exponent
        return links * self.flushing.operations * (1 + self.factor(K)) * least

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

        Operands as `matmul` takes them, K at least 1.  Raises as it does, and ValueError for K = 0.
        """
        if not np.shape(A)[1]:
            raise ValueError("no products, of which there is no bound: K = 0")
        if self.flushing is not None:
            return self._flushed_bound(A, B, C)
        K = np.shape(A)[1]
        found: Floats = float(self.factor(K)) * self.sigma(A, B, C, scale_a=scale_a, scale_b=scale_b)
        return found

    def sigma(
        self,
        A: Matrix,
        B: Matrix,
        C: Matrix | None = None,
        *,
        scale_a: Matrix | None = None,
        scale_b: Matrix | None = None,
        sums: int = 1,
    ) -> Floats:
        """σ = w(c) + Σ w(a)·w(b) of each element of `matmul(A, B, C)`, rounded up; infinite of what is no number.

        sums: that start at +0 each and are added, with the least normal number as the weight of each such c; C, if
        given, is added besides.  Raises as `bound`.
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
        c = least * sums if C is None else weights(C, i.c_format, "C") + (least * sums if sums > 1 else 0.0)
        # What is added up in binary64 is rounded, each sum and product by at most 2^-53: as many and some more.
        rounding = 1 + (a.shape[1] + 8) * 2.0**-52
        with np.errstate(over="ignore", invalid="ignore"):
            found: Floats = rounding * (a @ b + c)
        return found

    def _flushed_bound(self, A: Matrix, B: Matrix, C: Matrix | None) -> Floats:
        i = self.instruction
        a, lost_a = _left(A, i.a_format, "A")
        b, lost_b = _left(B, i.b_format, "B")
        c, lost_c = (0.0, 0.0) if C is None else _left(C, i.c_format, "C")
        K = a.shape[1]
        lost = (a + lost_a) @ lost_b + lost_a @ b + lost_c
        rounding = 1 + (K + 8) * 2.0**-52
        found: Floats = rounding * (float(self.factor(K)) * (a @ b + c) + lost + float(self.absolute(K)))
        return found


def _kept(rho: Conversion) -> int:
    """Returns the places of what a rounding is off at most, relative to what is rounded."""
    return rho.fraction_bits + (rho.rounding in (Rounding.RNE, Rounding.RNA))


def weights(x: Matrix, fmt: Format, name: str) -> Floats:
    """w of each element: its magnitude, or the least normal number of its format if that is larger."""
    found: Floats = np.maximum(magnitudes(x, fmt, name), 2.0**fmt.min_exponent)
    return found


def magnitudes(x: Matrix, fmt: Format, name: str) -> Floats:
    """|x| of each element; infinite of what is no number."""
    operand = decode(as_operand(x, fmt, name).codes.astype(np.int64), fmt.layout)
    if fmt.has_zero:
        magnitude = np.ldexp(operand.significand.astype(np.float64), operand.exponent - fmt.fraction_bits)
    else:
        magnitude = np.ldexp(1.0, operand.exponent)
    return np.where(operand.nan | operand.infinite, np.inf, magnitude)


def _left(x: Matrix, fmt: Format, name: str) -> tuple[Floats, Floats]:
    """Magnitudes of what is left of each element where subnormal numbers are zero, and of what is lost."""
    magnitude = magnitudes(x, fmt, name)
    normal = magnitude >= 2.0**fmt.min_exponent
    return np.where(normal, magnitude, 0.0), np.where(normal, 0.0, magnitude)


def _stages(spec: DotAdd) -> tuple[SumStage, ...]:
    p, one = spec.parameters, one_step(spec)
    rho, L = p.last_rounding, p.step_products
    if p.cuts_to_odd and p.loss is not LossModel.INNER:
        raise ValueError(
            f"{p.algorithm} has no bound relative to its terms: none is proved where they are cut to odd"
        )
    match p.loss:
        case LossModel.NOTHING | LossModel.OPERATIONS:
            return (SumStage(Fraction(0), 0, rho, L),)
        case LossModel.INNER:
            return _inner_stages(spec)
        case LossModel.PRODUCTS if p.product_rounding is not None:
            # A product that is rounded is off by 2^−F of itself, or of the least normal number, as if it were aligned.
            return (SumStage(Fraction(1), _kept(p.product_rounding), rho, L),)
        case LossModel.TERMS | LossModel.GROUPS:
            n = max(case.n for case in cases_of(one, fused_step(one)))
        case LossModel.ROUND_DOWN:
            assert isinstance(p, Fdrda)
            losses = losses_of(one, p)
            n = max(losses.below, losses.above)
        case LossModel.HALVES:
            none = spec.a_format == fp16 or (spec.a_format, L) == (fp32, 1)
            n = Fraction(0) if none else places_kept(one).n
        case (
            LossModel.PASSES
        ):  # argued: each term, c's two and what is accumulated in each pass lose less than one
            assert isinstance(p, AccE9s12)
            terms = (4 if spec.a_format == fp32 else 1) * p.D + 2
            n = Fraction(terms + p.D // p.N)
        case LossModel.PROGRAM:
            other = (
                "a program over instructions has another bound: `mmaformal bound`, studies/emulation/programs"
            )
            words = f"{p.algorithm}: what its words lose is said by `mmaformal prove exactness`"
            raise ValueError(other if p.is_program else words)
        case _:
            raise ValueError(f"{p.algorithm} has no bound relative to its terms: none is proved of its steps")
    return (SumStage(n, p.kept_places(spec), rho, L),)


def _inner_stages(spec: DotAdd) -> tuple[SumStage, ...]:
    """Those of the inner steps, and of the addition of c.

    A term that is cut to odd is less than one unit off, and the one with the largest exponent nothing.
    """
    if spec.parameters.made_of(spec) is None:
        what = spec.parameters.algorithm
        raise ValueError(f"{what} has no bound relative to its terms: none is proved of its steps")
    p = spec.parameters_as(Lowered)
    inner = InnerSteps(spec, p)
    count = len(p.order) // p.L
    if p.cuts_to_odd:
        kept = spec.a_format.fraction_bits + spec.b_format.fraction_bits <= p.F
        if count > 1 or p.operands is not None or not kept:
            raise ValueError(
                f"{p.algorithm} has no bound relative to its terms: none is proved of terms cut to odd"
            )
        return (SumStage(Fraction(p.L - 1), p.F, p.rho, p.L), SumStage(Fraction(0), p.F, p.addition, 0))
    n = max(case.n for first in (True, False)[:count] for case in inner.cases(first)[1])
    return (SumStage(n, p.F, p.rho, p.L), SumStage(Fraction(0), p.F, p.addition, 0))


_BITS = 96


def raised(x: Fraction, m: int) -> Fraction:
    """x^m, rounded up where it is long."""
    found = Fraction(1)
    while m:
        if m & 1:
            found = up(found * x)
        x, m = up(x * x), m >> 1
    return found


def up(x: Fraction) -> Fraction:
    scale = 1 << _BITS
    return Fraction(-((-x.numerator * scale) // x.denominator), scale)
