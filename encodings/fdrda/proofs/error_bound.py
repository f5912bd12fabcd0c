"""The error bounds of a step of fdrda or gfdrda."""

from __future__ import annotations

import z3

from mmaformal.cases.witness import inputs_text
from mmaformal.encodings.fdrda.proofs import bounds, reaching
from mmaformal.facts.errors import CHAIN, prove_steps, prove_terms, too_many
from mmaformal.instruction import Instruction
from mmaformal.proof.composition import (
    Composing,
)
from mmaformal.proof.kernel import NotProvedError
from mmaformal.solver.answers import Answer, Holds, Number, Unknown


def settle(instruction: Instruction, proving: Composing) -> Answer:
    """fdrda and gfdrda: a bound on either side."""
    answer = too_many(instruction, proving)
    if answer is not None:
        return answer
    x, asker = bounds.frame_of(instruction.spec), proving.asker
    low, high = (reaching.text_of(x.losses, above=above) for above in (False, True))
    unit = f"the sum of a step is off at most so far {{}}, in units of 2^(e_max − {x.p.F})"
    numbers = (
        Number("below", x.losses.below, unit.format("below the exact one")),
        Number("above", x.losses.above, unit.format("above it")),
    )
    notes: list[str] = []
    question = (
        f"{instruction.label}: in each step d = {x.spec.parameters.last_rounding}(S) with"
        f" {low} ≤ (S − exact) / 2^(e_max − {x.p.F}) ≤ {high}, and no closer bounds will do,"
        " products below 2^128"
    )
    try:
        none = z3.Not(z3.Or(*x.step.special))
        ordinary, terms = prove_terms(proving, x.spec, x.step)
        conclusion = z3.And(terms, bounds.prove_round_down(proving, x))
        if x.spec != instruction.spec:
            conclusion = z3.And(conclusion, prove_steps(proving, instruction.spec))
            question += CHAIN
        proving.conclude("d is ρ of a sum within these bounds", conclusion, [ordinary, none])
    except NotProvedError as error:
        return Unknown(question, str(error), proving.obligations, asker.elapsed)
    for above in (False, True):
        witness = reaching.reach(instruction, above=above)
        if witness is None:
            why = f"both bounds are proved, but no input was found that reaches {high if above else low}"
            return Unknown(question, why, proving.obligations, asker.elapsed)
        codes = ", ".join(
            map(" ".join, map(str.split, inputs_text(witness.instruction.spec, witness.codes)[-1:]))
        )
        notes.append(f"{high if above else low} reached, with {codes}: {witness.notes[0]}")
    return Holds(question, proving.proof(), asker.elapsed, numbers, tuple(notes))
