"""How far d is from the exact sum: the tightest bound of the form n · 2^(e_max − F) + rounding.

    mmaformal prove error-bound hopper HMMA.16816.F32

One step of a fused algorithm rounds S = Σ (aligned terms) once, d = ρ(S), and

    |S − (c + Σ a·b)| ≤ n · 2^(e_max − F),

e_max the step's largest exponent.  n is a fraction: the most that alignment can cut off all terms together, counted
for the significands and exponents that the formats have.  It is proved for all inputs that are numbers, and reached:
the witness is an input whose |S − exact| *is* n · 2^(e_max − F), so no smaller n holds.  With ρ = RZ, d is then less
than one last place of d from S; with RNE, at most half of one (`exactness` proves that d = ρ(S) by definition).

A term loses at most λ < 1 units, and one that has the exponent e_max at most λ₀ (0 if its last place is not below the
unit).  Either c has the largest exponent, and all L products lose: n = L·λ + λ₀; or a product has it, and the others
and c lose: n = (L − 1)·λ + λ₀ + λ_c.  Products of one scale block lie close to each other, and lose less then.

In a chain each step's result enters the next exactly, so the errors of the steps, each with its own e_max, add up:
d_m − (c + Σ P_i) = Σ (d_i − (d_(i−1) + P_i)), P_i the sum of the products of the i-th step.

Every term, and every sum, is an integer of one fixed point (`composition`), so what is lost is a difference; and that
the lemmas give the bound is the last obligation.
"""

from __future__ import annotations

from mmaformal.facts.registry import facts_of
from mmaformal.instruction import Instruction
from mmaformal.proof.composition import Composing
from mmaformal.proof.kernel import NotProvedError
from mmaformal.queries.property import Property
from mmaformal.solver.answers import Answer, Unknown
from mmaformal.solver.asking import Asker


def settle_step_error(instruction: Instruction, asker: Asker) -> Answer:
    try:
        return facts_of(instruction.spec).error_bound(instruction, Composing(asker))
    except NotProvedError as error:
        return Unknown(f"{instruction.label}: |S − exact| ≤ n · 2^(e_max − F)", str(error), (), asker.elapsed)


PROPERTY = Property(
    "error-bound",
    "in each step d = ρ(S) and |S − exact| ≤ n · 2^(e_max − F), for a number n that no smaller one can replace",
    settle_step_error,
)
