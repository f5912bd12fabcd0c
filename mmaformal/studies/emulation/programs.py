"""The loss of a whole product on a program over instructions (`emulated`), from what is proved of its unit and words.

Let w(a) = max(|a|, 2^least), `least` being by default the exponent from which words lose nothing to underflow (of
a program without words, that of the least normal number of the factor's format), w(c) = max(|c|, 2^-126), and Y = Σ
w(a)·w(b).  Where every first word is finite and no sum overflows,

    |d − (c + Σ a·b)| ≤ α · Y + β · w(c) + γ,

    α = ε + Σ Ω_i·(Q_i·(1 + g_i) − 1),     β = Q − 1,     γ = Q · what sums outside add.

The sum is over the operations on the total that take the first block: Ω_i is the share of their products' weights in
Y, g_i what a sum that is added outside is off (the unit's own product, `analysis/units`), Q_i the product of 1 + f of
this and all later operations of all programs, Q that of all operations: f is what the unit is off, or 2^-24 where a sum
is added outside.  Products of words are off by ε·Y.  `sums` has these claims, and why they give the bound,
`words` those about words, and `program_bound` the proof.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from mmaformal.analysis.rounding import Floats
from mmaformal.analysis.units import Unit, magnitudes, raised, up, weights
from mmaformal.display import ShortRepr
from mmaformal.encodings.emulated import Emulated, Part
from mmaformal.formats import fp32
from mmaformal.instruction import Instruction
from mmaformal.operands import Matrix
from mmaformal.studies.emulation.sums import HALF_PLACE, lost, operations_of_program, share
from mmaformal.studies.emulation.words import WordCut

#: The unit roundoff of an addition to nearest in fp32.
UNIT_ROUNDOFF = Fraction(1, 1 << 24)


class Constants(NamedTuple):
    """The constants of the bound, of a product of some K."""

    alpha: Fraction
    beta: Fraction
    gamma: Fraction
    epsilon: Fraction  #: of alpha, what products of words are off


@dataclass(frozen=True, repr=False)
class Program(ShortRepr):
    """A program's unit, and how its factors are cut."""

    instruction: Instruction
    unit: Unit
    a: WordCut
    b: WordCut

    @classmethod
    def of(cls, instruction: Instruction, least: int | None = None) -> Program:
        """`least`: another exponent from which factors count as they are.

        Raises ValueError for an instruction that is no program, or whose unit or words have no such bound.
        """
        p = instruction.spec.parameters
        if not p.is_program:
            raise ValueError(f"{instruction.label} is no program over another instruction")
        assert isinstance(p, Emulated)
        if p.rounding is None and least is not None:
            raise ValueError(f"{instruction.label} cuts no words: no exponent is chosen")
        if p.common:
            raise ValueError(
                f"{instruction.label} cuts words by an exponent in common: no bound of those is known"
            )
        if p.rounding is None and instruction.a_format != p.unit.a_format:
            raise ValueError(f"{instruction.label} converts its factors: no bound of those is proved")
        unit = Unit.of(_unit_of(instruction))
        if unit.flushing is not None:
            raise ValueError(
                f"{unit.instruction.label} takes subnormal numbers for zero: its own bound is not proved"
            )
        return cls(
            instruction,
            unit,
            WordCut.of(p, p.unit.a_format, least),
            WordCut.of(p, p.unit.b_format, least),
        )

    @property
    def parameters(self) -> Emulated:
        return self.instruction.spec.parameters_as(Emulated)

    def programs(self, K: int) -> int:
        """How many follow one another for K products, K padded to whole instructions."""
        instructions = max(-(-K // self.instruction.k), 1)
        return instructions * (self.instruction.k // self.parameters.step_products)

    def chain(self, part: Part) -> int:
        """Products that the unit adds up in a sum of a part that is added outside."""
        return part.every * len(part.products) * self.parameters.unit.k

    def constants(self, K: int) -> Constants:
        """For K products, K padded to whole instructions."""
        p, programs = self.parameters, self.programs(K)
        _, one = self._weighted(Fraction(1))
        alpha, Q = self._weighted(raised(one, programs - 1))
        outside = Fraction(0)
        for part in p.parts:
            if part.every:
                least = Fraction(2) ** (fp32.min_exponent - part.shift)
                each = self.unit.factor(self.chain(part)) * least + (HALF_PLACE if part.shift else 0)
                outside += programs * -(-p.blocks // part.every) * each
        epsilon = lost(p, self.a, self.b)
        return Constants(alpha + epsilon, Q - 1, Q * outside, epsilon)

    def _weighted(self, after: Fraction) -> tuple[Fraction, Fraction]:
        """(what the first block's weights count in G − σ; what c's count in G), where all that comes after the program
        counts `after`: from the last operation to the first."""
        p, Q, alpha = self.parameters, after, Fraction(0)
        for part in reversed(p.parts):
            f, of_sum, sums = self.unit.factor(p.unit.k), Fraction(0), p.blocks - 1
            if part.every:
                f, of_sum, sums = (
                    UNIT_ROUNDOFF,
                    self.unit.factor(self.chain(part)),
                    -(-p.blocks // part.every) - 1,
                )
            own = operations_of_program(part)
            Q *= raised(1 + f, sums * len(own))
            for one in reversed(own):
                Q *= 1 + f
                alpha += share(one, p, self.a, self.b) * (Q * (1 + of_sum) - 1)
        return alpha, up(Q)

    def bound(self, A: Matrix, B: Matrix, C: Matrix | None = None) -> Floats:
        """At most so far each element of `matmul(A, B, C)` is from the exact C + A·B, if it is finite.

        Operands as `matmul` takes them, K at least 1.  Raises as it does, and ValueError for K = 0.
        """
        i = self.instruction
        if not np.shape(A)[1]:
            raise ValueError("no products, of which there is no bound: K = 0")
        a = np.maximum(magnitudes(A, i.a_format, "A"), 2.0**self.a.least)
        b = np.maximum(magnitudes(B, i.b_format, "B"), 2.0**self.b.least)
        c = 2.0**fp32.min_exponent if C is None else weights(C, i.c_format, "C")
        K = a.shape[1]
        # Zeros that K is padded with count as the least; sums in binary64 are rounded, each by at most 2^-53.
        padded = -(-K // i.k) * i.k
        Y = a @ b + (padded - K) * 2.0 ** (self.a.least + self.b.least)
        alpha, beta, gamma, _ = (float(each) for each in self.constants(K))
        found: Floats = (1 + (K + 16) * 2.0**-52) * (alpha * Y + beta * c + gamma)
        return found


def _unit_of(instruction: Instruction) -> Instruction:
    """A program's unit, named as the program tells it."""
    p = instruction.spec.parameters_as(Emulated)
    architecture, _, name = instruction.sources.get("unit", "the unit").partition(" ")
    return Instruction(name or "unit", architecture, instruction.m, instruction.n, p.unit)
