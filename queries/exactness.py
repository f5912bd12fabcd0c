"""When is d the exact sum, rounded once; and when is it exact?

    mmaformal prove exactness hopper HMMA.16816.F32

A step of a fused algorithm rounds its exact sum once (with ρ) if alignment cuts nothing off: if no nonzero term has a
set bit below 2^(e_max − F).  A condition on exponents alone that is enough: every nonzero term's exponent is at least
e_max − (F − f), with f the fractional bits of its significand.  The step's result is exact if, besides, that sum is one
of ρ's numbers.  In a chain every step but the last has to be exact.

Proved is, of the numbers in the encoding, that a condition on them suffices; the last obligation says so.
"""

from __future__ import annotations

from mmaformal.facts.exactness import conclude_exact
from mmaformal.facts.registry import facts_of
from mmaformal.instruction import Instruction
from mmaformal.proof.composition import Composing
from mmaformal.proof.kernel import NotProvedError
from mmaformal.queries.property import Property
from mmaformal.solver.answers import Answer, Holds, Unknown
from mmaformal.solver.asking import Asker


def _settle(instruction: Instruction, asker: Asker) -> Answer:
    spec, proving = instruction.spec, Composing(asker)
    wrong = facts_of(spec).inexact(instruction, asker.elapsed)
    if wrong is not None:
        return wrong
    try:
        text = conclude_exact(proving, spec, facts_of(spec).exactness(proving, spec))
    except NotProvedError as error:
        question = f"{instruction.label}: where alignment cuts nothing off, d is the exact sum, rounded once"
        return Unknown(question, str(error), proving.obligations, asker.elapsed)
    return Holds(f"{instruction.label}: {text}", proving.proof(), asker.elapsed)


PROPERTY = Property(
    "exactness",
    "where alignment cuts nothing off, a step's result is its exact sum rounded once, and exact if that is one of ρ's",
    _settle,
)
