"""When is d the exact sum, rounded once; and when is it exact?

    mmaformal prove exactness hopper HMMA.16816.F32

A step of a fused algorithm rounds its exact sum once (with ρ) if alignment cuts nothing off: if no nonzero term has a
set bit below 2^(e_max − F).  A condition on exponents alone that is enough: every nonzero term's exponent is at least
e_max − (F − f), with f the fractional bits of its significand.  The step's result is exact if, besides, that sum is one
of ρ's numbers.  In a chain every step but the last has to be exact.

Proved is, of the numbers in the encoding, that a condition on them suffices; the last obligation says so.
`rounds_once` and `is_exact` are conditions on codes, in plain Python, that are a little stronger.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mmaformal.cases.inputs import Codes
from mmaformal.cases.numerical import exact as exact_sum
from mmaformal.facts.exactness import conclude
from mmaformal.facts.registry import facts_of
from mmaformal.instruction import Instruction
from mmaformal.proof.composition import Composing
from mmaformal.proof.definitions import is_number_of
from mmaformal.proof.kernel import NotProvedError
from mmaformal.queries.property import Property
from mmaformal.solver.answers import Answer, Holds, Unknown
from mmaformal.solver.asking import Asker


def settle(instruction: Instruction, asker: Asker) -> Answer:
    spec, proving = instruction.spec, Composing(asker)
    try:
        text = conclude(proving, spec, facts_of(spec).exactness(proving, spec))
    except NotProvedError as error:
        question = f"{instruction.label}: where alignment cuts nothing off, d is the exact sum, rounded once"
        return Unknown(question, str(error), proving.obligations, asker.elapsed)
    return Holds(f"{instruction.label}: {text}", proving.proof(), asker.elapsed)


# ---- the conditions, on codes --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Exactness:
    """`once`: the condition for d to be the exact sum rounded once; `exact`: for d to be the exact sum."""

    once: bool
    exact: bool


def examine(
    instruction: Instruction,
    a: Sequence[int],
    b: Sequence[int],
    c: int,
    scale_a: Sequence[int] = (),
    scale_b: Sequence[int] = (),
) -> Exactness:
    """The conditions for codes of one dot product-add: K of a and b, one c, and block scales if there are any.

    They suffice and are not necessary.  Raises ValueError for an infinity or a NaN: they are about numbers.
    """
    spec = instruction.spec
    codes = Codes(tuple(a), tuple(b), c, tuple(scale_a), tuple(scale_b))
    if exact_sum(spec, codes) is None:
        raise ValueError("the conditions are about numbers; an input is an infinity or a NaN")
    *before, last = facts_of(spec).exactness_on_codes(spec, codes)
    if not all(step.whole and is_number_of(step.exact, step.rho) for step in before):
        return Exactness(False, False)
    return Exactness(last.whole, last.whole and is_number_of(last.exact, last.rho))


def rounds_once(
    instruction: Instruction,
    a: Sequence[int],
    b: Sequence[int],
    c: int,
    scale_a: Sequence[int] = (),
    scale_b: Sequence[int] = (),
) -> bool:
    """Whether d is known to be the exact sum, rounded once; arguments as `examine`."""
    return examine(instruction, a, b, c, scale_a, scale_b).once


def is_exact(
    instruction: Instruction,
    a: Sequence[int],
    b: Sequence[int],
    c: int,
    scale_a: Sequence[int] = (),
    scale_b: Sequence[int] = (),
) -> bool:
    """Whether d is known to be the exact sum; arguments as `examine`."""
    return examine(instruction, a, b, c, scale_a, scale_b).exact


PROPERTY = Property(
    "exactness",
    "where alignment cuts nothing off, a step's result is its exact sum rounded once, and exact if that is one of ρ's",
    settle,
)
