"""The error bound of a step of fda or gdfs."""

from __future__ import annotations

import z3

from mmaformal.cases.one_step import one_step
from mmaformal.cases.witness import inputs_text
from mmaformal.facts.alignment import (
    cases_of,
    prove_fused,
)
from mmaformal.facts.errors import CHAIN, prove_steps, prove_terms, too_many
from mmaformal.facts.fused_steps import fused_step
from mmaformal.facts.reaching import reach
from mmaformal.instruction import Instruction
from mmaformal.proof.composition import (
    Composing,
)
from mmaformal.proof.kernel import NotProvedError
from mmaformal.solver.answers import Answer, Holds, Number, Unknown
from mmaformal.spec import LossModel


def settle(instruction: Instruction, proving: Composing) -> Answer:
    spec, asker = one_step(instruction.spec), proving.asker
    answer = None if spec.parameters.loss is LossModel.GROUPS else too_many(instruction, proving)
    if answer is not None:
        return answer
    x = fused_step(spec)
    case = max(cases_of(spec, x), key=lambda case: case.n)
    n = Number("n", case.n, f"what the sum of a step is off at most, in units of 2^(e_max − {x.F})")
    question = (
        f"{instruction.label}: in each step d = {spec.parameters.last_rounding}(S) with "
        f"|S − exact| ≤ n · 2^(e_max − {x.F}), {n.text}, and no smaller n will do"
    )
    try:
        ordinary, terms = prove_terms(proving, spec, x.step)
        conclusion = z3.And(terms, prove_fused(proving, spec, x))
        if spec != instruction.spec:
            conclusion = z3.And(conclusion, prove_steps(proving, instruction.spec))
            question += CHAIN
        none = z3.Not(z3.Or(*x.step.special))
        proving.conclude("d is ρ of a sum within these bounds", conclusion, [ordinary, none])
    except NotProvedError as error:
        return Unknown(question, str(error), proving.obligations, asker.elapsed)
    witness = reach(instruction)
    if witness is None:
        why = "the bound is proved, but no input was found that reaches it"
        return Unknown(question, why, proving.obligations, asker.elapsed)
    reached = " ".join(inputs_text(witness.instruction.spec, witness.codes)[-1].split())
    note = f"reached (`reaching.reach`), with {reached}: {witness.notes[0]}"
    return Holds(question, proving.proof(), asker.elapsed, (n,), (note,))
