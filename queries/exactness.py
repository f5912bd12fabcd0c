"""When is d the exact sum, rounded once; and when is it exact?

    python -m mmaformal.queries.exactness hopper HMMA.16816.F32

A step of a fused algorithm rounds its exact sum once (with ρ) if alignment cuts nothing off: if no nonzero term has a
set bit below 2^(e_max − F).  A condition on exponents alone that is enough: every nonzero term's exponent is at least
e_max − (F − f), with f the fractional bits of its significand.  The step's result is exact if, besides, that sum is one
of ρ's numbers.  In a chain every step but the last has to be exact.

`rounds_once` and `is_exact` are these conditions on codes, in plain Python; what is proved is that they suffice.
"""

from __future__ import annotations

import sys

from mmaformal.algorithms import DotAdd, Fda, Gdfs
from mmaformal.instruction import Instruction
from mmaformal.queries.fused import prove_alignment
from mmaformal.queries.fused_steps import (
    fused_step,
    prove_e_max,
    prove_highest,
    prove_rounding,
    prove_total,
)
from mmaformal.queries.numerical import NotProvedError, Proving
from mmaformal.queries.property import Property
from mmaformal.solver.answers import Answer, Holds, Proof, Unknown
from mmaformal.solver.asking import Asker


def prove_fused(proving: Proving, spec: DotAdd) -> None:
    """fda and gdfs: a term that has no bit below 2^(e_max − F) is aligned exactly; so is the sum; d is ρ of it."""
    x = fused_step(spec)
    at_most, some = prove_e_max(proving, x)
    for summand, below in zip(x.summands, at_most, strict=True):
        prove_alignment(proving, summand, x.step.e_max, x.F, below)
    prove_total(proving, x, at_most)
    prove_rounding(proving, x, prove_highest(proving, x, at_most, some))


def settle(instruction: Instruction, asker: Asker) -> Answer:
    question = (
        f"{instruction.label}: where no step's alignment cuts anything off, d is the exact sum rounded once"
    )
    proving = Proving(asker)
    if not isinstance(instruction.parameters, (Fda, Gdfs)):
        return Unknown(question, f"no argument for {instruction.algorithm} yet", (), asker.elapsed)
    try:
        prove_fused(proving, instruction.spec)
    except NotProvedError as error:
        return Unknown(question, str(error), proving.obligations, asker.elapsed)
    return Holds(question, Proof(proving.obligations), asker.elapsed)


PROPERTY = Property(
    "exactness",
    "where alignment cuts nothing off, a step's result is its exact sum rounded once, and exact if that is one of ρ's",
    settle,
)
main = PROPERTY.main

if __name__ == "__main__":
    sys.exit(main())
