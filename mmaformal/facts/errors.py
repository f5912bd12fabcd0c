"""Error bounds: what is said of steps and chains alike."""

from __future__ import annotations

import z3

from mmaformal.cases.inputs import symbolic_inputs, with_products, zeros
from mmaformal.cases.numerical import exact, shown
from mmaformal.cases.witness import CaseWitness
from mmaformal.facts.exact_terms import AnyFused, prove_chain, prove_inputs
from mmaformal.instruction import Instruction
from mmaformal.proof.composition import FIXED_POINT, Composing, total_of
from mmaformal.solver.answers import Answer, Fails, Unknown
from mmaformal.spec import DotAdd
from mmaformal.witness import WitnessError


def prove_steps(proving: Composing, spec: DotAdd) -> z3.BoolRef:
    """That each step of a chain is one step of the model, with the result before as its c; and that the error of the
    last result is the sum of the errors of all."""
    claims, count = prove_chain(proving, spec), spec.k // spec.parameters.step_products
    bits = 4 << spec.d_format.exponent_bits
    proving.rests_on(FIXED_POINT)
    d = [z3.BitVec(f"d{i}", bits) for i in range(count + 1)]  # c, and the results
    sums = [z3.BitVec(f"sum{i}", bits) for i in range(count)]  # of the products of a step
    errors = [after - (before + own) for before, after, own in zip(d[:-1], d[1:], sums, strict=True)]
    text = "the error of the last result is the sum of the errors of all steps"
    error = d[-1] - total_of([d[0], *sums]) == total_of(errors)
    return z3.And(*claims, proving.claim("errors of steps", text, error))


def prove_terms(proving: Composing, spec: DotAdd, step: AnyFused) -> tuple[z3.BoolRef, z3.BoolRef]:
    """That the terms are the products and c of the codes: (that every input is a number, all that was claimed)."""
    before = set(proving.steps)
    ordinary = prove_inputs(proving, spec, symbolic_inputs(spec), step)
    return ordinary, z3.And([claim for key, (_, claim) in proving.steps.items() if key not in before])


#: What is said of a chain.
CHAIN = "; where every step's result is a number, the error of the last is the sum of the steps' errors"

#: Bits of products' significands whose losses are found by listing them all: some hundred megabytes.
LISTED = 26


def too_many(instruction: Instruction, proving: Composing) -> Unknown | None:
    """The answer where significands of products have too many bits to be listed."""
    spec = instruction.spec
    bits = spec.a_format.fraction_bits + spec.b_format.fraction_bits + 2
    if bits <= LISTED:
        return None
    question = f"{instruction.label}: |S − exact| ≤ n · 2^(e_max − F)"
    why = f"the significands of products of {bits} bits are too many to list; {LISTED} bits are listed"
    return Unknown(question, why, (), proving.asker.elapsed)


def no_bound_where_flushed(instruction: Instruction, proving: Composing) -> Answer:
    """Return the input that shows that errors of a unit that flushes have no bound."""
    question = f"{instruction.label}: |d − exact| is at most the rounding of each step's sums"
    why = "it is not so that errors are bounded by those of rounding"
    return Fails(question, flushed(instruction), why, proving.asker.elapsed)


def flushed(instruction: Instruction) -> CaseWitness:
    """Return the input on which a subnormal factor counts as zero, and its product is lost.

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
