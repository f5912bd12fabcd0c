"""How many bits does the accumulator need above one aligned term?

A sum of n terms of t bits each fits t + ⌈log2 n⌉ bits; often fewer do, since c has one integer bit and products two,
and the largest significands of narrow formats are far from a power of two.  For the carry bits that the largest
significands need it is proved that every partial sum of every step fits, and shown by an input whose sum has the
highest of these bits set that no fewer do.  For four products of fp16 and c these are 3, as Valpey, Li,
Pai and Gopalakrishnan found for a sum of five terms (*An SMT Formalization of Mixed-Precision Matrix Multiplication*,
arXiv 2502.15999).  Where two numbers are added at a time (gps, sfma, the sorted terms of efda), one.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import z3

from mmaformal.cases.inputs import Rows, symbolic_inputs
from mmaformal.cases.run import code_values, run_trace
from mmaformal.encodings import smt
from mmaformal.facts.registry import facts_of
from mmaformal.facts.sums import StepSum
from mmaformal.instruction import Instruction
from mmaformal.proof.kernel import ArgumentError, Link, NotProvedError, prove
from mmaformal.proof.lemmas import within
from mmaformal.proof.related_runs import Pairing
from mmaformal.queries.property import Property
from mmaformal.solver.answers import Answer, Holds, Number, Unknown
from mmaformal.solver.asking import Asker
from mmaformal.spec import DotAdd


def carry_bits(each: StepSum) -> int:
    return sum(each.bounds).bit_length() - max(each.bounds).bit_length()


def argue_width(spec: DotAdd) -> tuple[Pairing, list[StepSum]]:
    """Argue that every partial sum of every step is within the sum of its terms' bounds; return the sums, too."""
    pairing, x = Pairing(), symbolic_inputs(spec)
    trace = smt.dot_add(spec, x.a, x.b, x.c, x.scale_a, x.scale_b)
    found: list[StepSum] = []
    for step in trace.steps:
        for each in facts_of(spec).sums(spec, step):
            found.append(each)
            facts_of(spec).sum_fits(pairing, spec, each)
    if not found:
        raise ArgumentError("no sum of aligned terms")
    totals = [Link(_fits_claim(each), ()) for each in found]
    everything = Link(z3.And([link.claim for link in totals]) if len(totals) > 1 else totals[0].claim, ())
    pairing.derive(
        "accumulate", "all sums are within their bounds", [everything], [_link(each) for each in found]
    )
    pairing.conclude("no sum is beyond its bound", everything)
    _reached(pairing, spec, found)
    return pairing, found


def _link(each: StepSum) -> Link:
    return within(each.total, sum(each.bounds))


def _fits_claim(each: StepSum) -> z3.BoolRef:
    return _link(each).claim


def _reached(pairing: Pairing, spec: DotAdd, found: Sequence[StepSum]) -> None:
    """The largest case, in the SMT encoding: a claim about constants."""
    x = code_values(spec, facts_of(spec).largest_case(spec))
    trace = smt.dot_add(spec, x.a, x.b, x.c, x.scale_a, x.scale_b)
    first = facts_of(spec).sums(spec, trace.steps[0])[0]
    half = 1 << (sum(first.bounds).bit_length() - 1)
    link = Link(first.total >= half, ())
    pairing.derive("witness", "the largest significands need the highest carry bit", [link])


def _run(instruction: Instruction, bound: int) -> None:
    """Runs the case in the executable encoding.  Raises ArgumentError if its sum does not need the highest bit."""
    spec = instruction.spec
    facts = facts_of(spec)
    total = facts.first_sum(run_trace(spec, Rows.of([facts.largest_case(spec)]).codes).steps[0])
    if total is None:
        return  # its sums are in other units there
    reached = int(np.asarray(total).reshape(-1)[0])
    if reached.bit_length() != bound.bit_length():
        raise ArgumentError(
            f"no input is known whose sum has {bound.bit_length()} bits: the largest significands at one exponent "
            f"add up to {reached}"
        )


def _answer(instruction: Instruction, asker: Asker) -> Answer:
    spec = instruction.spec
    question = f"{instruction.label}: carry bits that its sums need above one aligned term, no fewer"
    try:
        pairing, found = argue_width(spec)
        first = found[0]
        _run(instruction, sum(first.bounds))
        term, total = max(first.bounds).bit_length(), sum(first.bounds).bit_length()
        question = (
            f"{instruction.label}: {carry_bits(first)} carry bits above an aligned term of {term} bits hold the sum of "
            f"{len(first.bounds)} ({first.what}), |Σ| ≤ {sum(first.bounds)}, and no fewer than {total} bits do"
        )
        numbers = (
            Number("carry bits", carry_bits(first), "above one aligned term, for the sum of a step"),
            Number("term bits", term, "of the largest aligned term, without its sign"),
            Number("sum bits", total, "of the largest sum of a step, without its sign"),
        )
        return Holds(question, prove(asker, pairing), asker.elapsed, numbers)
    except (NotProvedError, ArgumentError) as error:
        return Unknown(question, str(error), tuple(asker.proved), asker.elapsed)


PROPERTY = Property(
    "accumulator-width",
    "the carry bits that the largest significands need hold every partial sum, and no fewer do",
    _answer,
)
