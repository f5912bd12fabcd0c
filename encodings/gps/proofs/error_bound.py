"""gps has no error bound: it flushes."""

from __future__ import annotations

from mmaformal.cases.inputs import with_products, zeros
from mmaformal.cases.numerical import exact, shown
from mmaformal.cases.witness import CaseWitness
from mmaformal.instruction import Instruction
from mmaformal.proof.composition import (
    Composing,
)
from mmaformal.solver.answers import Answer, Fails
from mmaformal.witness import WitnessError


def settle(instruction: Instruction, proving: Composing) -> Answer:
    question = f"{instruction.label}: |d − exact| is at most the rounding of each step's sums"
    why = "it is not so that errors are bounded by those of rounding"
    return Fails(question, flushed(instruction), why, proving.asker.elapsed)


def flushed(instruction: Instruction) -> CaseWitness:
    """gps: a subnormal factor counts as zero, whatever it is multiplied with.

    Raises WitnessError if the product is not lost.
    """
    spec = instruction.spec
    a, b = 1 << spec.a_format.ignored_low_bits, spec.b_format.code(f"0x1p{spec.b_format.max_exponent}")
    codes = with_products(zeros(spec), {0: (a, b)})
    notes = ("a subnormal factor counts as zero, so a product that d's format holds exactly is lost",)
    witness, value = shown(instruction, codes, notes), exact(spec, codes)
    if (
        value is None
        or witness.results != (0,)
        or value <= spec.d_format.value(1 << spec.d_format.fraction_bits)
    ):
        raise WitnessError(f"{instruction.label}: {codes} was to be flushed, and is not")
    return witness
