"""Is d the exact sum, rounded once?  Correctly, to ρ of it; or at least faithfully, to one of its two neighbours?

    mmaformal prove correct-rounding hopper HMMA.16816.F32

Both are asked of the whole instruction, for all inputs that are numbers, and correct rounding also of each step of a
chain on its own.  ρ is the instruction's last rounding, and its neighbours those of ρ's own grid (RZ-E8M13 has 13
fractional bits).  A zero of either sign is zero; infinity is the number after the largest.

Fused units round their aligned terms before they add, so products that cancel leave an error that no ulp of d bounds:
both fail.  They hold where a step is exact up to its one rounding and K is one step: sfma and efda (`exact_steps` has
the proof), and fda where its alignment is wide enough to lose nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import partial

from mmaformal.cases.inputs import Codes
from mmaformal.cases.numerical import exact_of, find_case, shown_exact
from mmaformal.cases.one_step import as_one_step
from mmaformal.facts.protocol import UnsupportedError
from mmaformal.facts.registry import facts_of
from mmaformal.instruction import Instruction
from mmaformal.proof.composition import Composing
from mmaformal.proof.definitions import (
    grid_value,
    index_below,
    is_correct,
    is_faithful,
    last_index,
)
from mmaformal.proof.kernel import NotProvedError
from mmaformal.queries.property import Property
from mmaformal.rounding import Conversion
from mmaformal.shown_stages import code_text
from mmaformal.solver.answers import Answer, Fails, Holds, Unknown
from mmaformal.solver.asking import Asker
from mmaformal.spec import DotAdd
from mmaformal.witness import WitnessError

Judge = Callable[[int, Fraction, Conversion], bool]  #: of a code, the exact sum and ρ


def neighbours_text(x: Fraction, rho: Conversion) -> str:
    """The two numbers of ρ's that x lies between."""
    below = index_below(x, rho)
    drop = rho.format.fraction_bits - rho.fraction_bits
    sign = rho.format.sign_mask if x < 0 else 0
    if below < last_index(rho) and grid_value(below, rho) == abs(x):
        return f"the exact sum is a number of {rho}"
    ends = [
        code_text(i << drop | (sign if i else 0), rho.format)
        for i in (below, below + 1)
        if i <= last_index(rho)
    ]
    return f"its neighbours in {rho} are {' and '.join(ends)}"


def _breaks(spec: DotAdd, judge: Judge, codes: Codes, result: int) -> bool:
    x = exact_of(spec, codes)
    return x is not None and not judge(result, x, spec.parameters.last_rounding)


def _settle(judge: Judge, what: str, instruction: Instruction, asker: Asker) -> Answer:
    """Return an input whose result the judge does not allow, a proof that there is none, or why neither is known."""
    spec, rho = instruction.spec, instruction.spec.parameters.last_rounding
    question, breaks = f"{instruction.label}: {what}", partial(_breaks, spec, judge)
    try:
        codes, why = (
            find_case(instruction, breaks),
            "no input was found that breaks it, and no proof is known",
        )
    except NotProvedError as error:  # rounding to ρ has no definition
        codes, why = None, str(error)
    if codes is None:
        return _proved(question, why, spec, asker)
    x = exact_of(spec, codes)
    notes = (neighbours_text(x, rho),) if x is not None else ()
    witness = shown_exact(instruction, codes, notes, ("made smaller step by step, not proved minimal",))
    if not breaks(codes, witness.results[0]):
        raise WitnessError(f"{instruction.label}: {codes} was to be rounded wrongly, and is not")
    return Fails(question, witness, f"it is not so that {what}", asker.elapsed)


def _proved(question: str, why: str, spec: DotAdd, asker: Asker) -> Answer:
    """Return a proof that d is the exact sum of one step, rounded once; Unknown where there is none."""
    if spec.k != spec.parameters.step_products:
        return Unknown(question, why, (), asker.elapsed)
    proving = Composing(asker)
    try:
        facts_of(spec).rounds_exact_sum(proving, spec)
    except UnsupportedError as error:
        return Unknown(question, f"{why}: {error}", (), asker.elapsed)
    except NotProvedError as error:
        return Unknown(question, why if error.refuted else str(error), proving.obligations, asker.elapsed)
    return Holds(question, proving.proof(), asker.elapsed)


def _step_of(instruction: Instruction) -> Instruction:
    """The instruction with the K of one step."""
    step = as_one_step(instruction)
    return instruction if step.k == instruction.k else step.replace(name=f"{instruction.name}[one step]")


def _settle_step(instruction: Instruction, asker: Asker) -> Answer:
    return _settle(is_correct, "a step on its own is correctly rounded", _step_of(instruction), asker)


CORRECT = Property(
    "correct-rounding",
    "d is the exact c + Σ a·b, rounded once with ρ",
    partial(_settle, is_correct, "d is correctly rounded"),
)
FAITHFUL = Property(
    "faithful-rounding",
    "d is one of the two neighbours of the exact c + Σ a·b among ρ's numbers, or that itself",
    partial(_settle, is_faithful, "d is faithfully rounded"),
)
STEP = Property(
    "correct-rounding-of-each-step",
    "each step's result is its exact c + Σ a·b, rounded once with ρ",
    _settle_step,
)
