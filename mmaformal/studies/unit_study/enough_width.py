"""How many fractional bits an alignment needs for its error to be below half a last place of what is rounded.

Of a step that aligns terms to the largest exponent e_max with F fractional bits, and rounds S to p fractional bits,
`error_bound` proves |S − exact| ≤ n · 2^(e_max − F) for the least such n.  A last place of an S with
|S| ≥ 2^(e_max − g) is at least 2^(e_max − g − p), so alignment is off by less than half of one if

    n < 2^(F − p − 1 − g),                  g: binades that S may lie below the largest term, by cancellation.

The least such F is looked for with the n that are computed, and what stands for it is the proof of the error bound at
that F; that one bit fewer is too few, the proof that n is the least at F − 1.  Without a limit of g there is no such F
short of the one that loses nothing at all (`lossless_width`): cancellation leaves any error over.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from mmaformal.analysis.units import Unit
from mmaformal.display import ShortRepr
from mmaformal.instruction import Instruction
from mmaformal.queries import error_bound
from mmaformal.solver.answers import Answer, Holds

#: The widest alignment that the encodings hold.
MOST = 48


@dataclass(frozen=True, repr=False)
class Enough(ShortRepr):
    """The least F, and the answers that it rests on."""

    F: int
    n: Fraction
    before: Fraction  #: n at F − 1, which is too large there
    answers: tuple[Answer, Answer]  #: the error bounds at F and at F − 1

    @property
    def proved(self) -> bool:
        """Whether both bounds were proved, and are those that were computed."""
        first = [answer.numbers[0].value for answer in self.answers if isinstance(answer, Holds)]
        return first == [self.n, self.before]

    @property
    def obligations(self) -> int:
        return sum(len(each.proof.obligations) for each in self.answers if isinstance(each, Holds))


def n_and_p(instruction: Instruction) -> tuple[Fraction, int]:
    """n of the first alignment, as it is computed, and p of the rounding after it."""
    stage = Unit.of(instruction).stages[0]
    return stage.n, stage.rho.fraction_bits


def is_enough(instruction: Instruction, F: int, cancelled: int = 0) -> bool:
    """Whether n < 2^(F − p − 1 − g)."""
    n, p = n_and_p(instruction)
    return n < Fraction(2) ** (F - p - 1 - cancelled)


def enough(design: Callable[[int], Instruction], cancelled: int = 0, timeout: float = 120.0) -> Enough | None:
    """The least F, of the datapath that `design` makes of it, with its proofs; None if there is none up to `MOST`."""
    wide = next((F for F in range(2, MOST + 1) if is_enough(design(F), F, cancelled)), None)
    if wide is None:
        return None
    settled = [error_bound.PROPERTY.prove(design(F), timeout=timeout) for F in (wide, wide - 1)]
    return Enough(wide, n_and_p(design(wide))[0], n_and_p(design(wide - 1))[0], (settled[0], settled[1]))
