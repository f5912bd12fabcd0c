"""That a step rounds the exact sum of its codes' numbers once, as a theorem: of whichever algorithm.

`Shown` says what the sum that is rounded is (`exact_steps.TwoTerms`, `jammed`); `conclude` makes the theorem of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import z3

from mmaformal.cases.inputs import Inputs
from mmaformal.cases.interfaces import Rounds
from mmaformal.encodings.smt.blocks import Operand
from mmaformal.proof.composition import Composing
from mmaformal.proof.fixed_point import FixedPoint
from mmaformal.proof.kernel import demand
from mmaformal.proof.rules import Theory
from mmaformal.proof.wide_numbers import WideNumbers
from mmaformal.rounding import Conversion
from mmaformal.spec import DotAdd
from mmaformal.theory.near_sums import Shown
from mmaformal.theory.ordered_grid import Grid
from mmaformal.theory.rounded_sums import RoundedOnce
from mmaformal.theory.signs_of_sums import SignOfSum

SPARE = 8  #: bits of the fixed point above the highest number
MARGIN = 4  #: exponents below and above those of a step, for midpoints


class Span(NamedTuple):
    """What a fixed point has to hold: numbers between two exponents, of magnitudes no wider than a sum's."""

    low: int
    high: int
    size: int
    exponent_bits: int  #: of exponents in two's complement, as a step's claims have them

    def with_(self, other: Span) -> Span:
        """What holds both; their exponents have as many bits."""
        demand(self.exponent_bits == other.exponent_bits, "exponents of one width")
        return Span(
            min(self.low, other.low),
            max(self.high, other.high),
            max(self.size, other.size),
            self.exponent_bits,
        )


def grid_of(theory: Theory, rho: Conversion, span: Span) -> Grid:
    """The codes of ρ in a fixed point; its theorems are proved.  That the grid keeps the order is not yet."""
    point = FixedPoint(span.low - MARGIN, span.high + MARGIN, span.size + 1, SPARE)
    numbers = WideNumbers(theory, point, span.exponent_bits)
    numbers.prove()
    return Grid(numbers, rho)


@dataclass(frozen=True)
class ExactSum:
    """A step, and its theorem: if nothing is special, and `given` holds, d is `total` rounded, and has its sign."""

    grid: Grid
    step: Rounds
    given: z3.BoolRef
    total: z3.BitVecRef  #: the exact sum, by the codes alone
    zero: z3.BitVecRef  #: the sign of an exact zero
    theorem: z3.BoolRef  #: that d is the sum rounded
    signed: z3.BoolRef  #: and has its sign

    @property
    def w(self) -> WideNumbers:
        return self.grid.numbers


def prove_finite(proving: Composing, step: Rounds, operands: Sequence[Operand]) -> z3.BoolRef:
    """That where nothing is special, the operands are numbers."""
    finite = z3.Not(z3.Or([flag for x in operands for flag in (x.infinite, x.nan)]))
    text = "where nothing is special, the operands are finite"
    return proving.claim("finite", text, z3.Or(finite, *step.special))


def conclude(
    grid: Grid,
    shown: Shown,
    step: Rounds,
    zero: z3.BitVecRef,
    same: z3.BoolRef,
    total: z3.BitVecRef,
    given: z3.BoolRef | None = None,
) -> ExactSum:
    """The theorem of a step, from what was shown of its sum.  Raises NotProvedError.

    `same`: that the exact sum is `total`, where nothing is special and `given` holds.
    """
    theory, exact, code = grid.numbers.theory, shown.exact, step.result
    once = RoundedOnce(grid, shown.sum, exact, step.special, code)
    rounded = once.prove(shown.claim, shown.in_range, shown.far)
    signs = SignOfSum(once, zero)
    signed = signs.prove(shown.claim, shown.in_range, shown.far)
    alike = z3.And(
        grid.rounds(exact, code) == grid.rounds(total, code),
        grid.is_far(exact) == grid.is_far(total),
        (exact == 0) == (total == 0),
        (exact < 0) == (total < 0),
    )
    text = "equal numbers are rounded alike"
    alike = theory.claim("rounded alike", text, z3.Implies(exact == total, alike))
    none = once.nothing_special if given is None else z3.And(once.nothing_special, given)
    goal = z3.Implies(none, z3.And(grid.rounds(total, code), grid.is_far(total)))
    of_sign = z3.Implies(none, signs.signed(total == 0, total < 0))
    known = [rounded, signed, shown.far, alike, same]
    text = "d is the exact sum of the codes' numbers, rounded once"
    both = z3.And(goal, of_sign)
    grid.numbers.follows("rounded sum of codes", text, both, known)
    theory.theorem(text, both)
    return ExactSum(
        grid,
        step,
        z3.BoolVal(True) if given is None else given,
        total,
        zero,
        theorem=theory.theorem(text, goal),
        signed=theory.theorem("d has the sign of the exact sum", of_sign),
    )


class RoundsExactly(Protocol):
    """A model of one step that rounds the exact sum of its codes' numbers once, wherever `given` holds."""

    @property
    def spec(self) -> DotAdd: ...
    @property
    def inputs(self) -> Inputs:
        """The codes whose numbers it adds up."""
        ...

    @property
    def step(self) -> Rounds: ...
    @property
    def given(self) -> z3.BoolRef: ...
    @property
    def zero(self) -> z3.BitVecRef:
        """The sign of an exact zero."""
        ...

    @property
    def span(self) -> Span: ...
    def prove(self, grid: Grid) -> ExactSum:
        """Raises NotProvedError."""
        ...
