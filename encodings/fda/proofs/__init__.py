"""Facts of fda; and codes that it never gives."""

from __future__ import annotations

import z3

from mmaformal.cases.codes import is_nan
from mmaformal.cases.inputs import Inputs, symbolic_inputs
from mmaformal.cases.out_of_order import OutOfOrder
from mmaformal.encodings import smt
from mmaformal.encodings.executable.blocks import Lane
from mmaformal.encodings.fda import Fda
from mmaformal.encodings.fda import executable as executable_fda
from mmaformal.encodings.fda import smt as smt_fda
from mmaformal.encodings.fda.proofs import e_zero, exactness, monotonicity
from mmaformal.facts.exactness import Exact
from mmaformal.facts.protocol import Lossless
from mmaformal.facts.ranges import RoundsOneSum
from mmaformal.facts.sums import (
    StepSum,
    aligned_terms,
    largest_product,
    product_places,
    sum_of_terms,
)
from mmaformal.instruction import Instruction
from mmaformal.proof.composition import Composing
from mmaformal.proof.lemmas import ArgumentError, Link
from mmaformal.proof.related_runs import Pairing, operand_codes
from mmaformal.proof.rules import Theory
from mmaformal.rounding import Rounding
from mmaformal.solver.answers import Answer, Proof
from mmaformal.solver.asking import Asker
from mmaformal.spec import DotAdd


def ends_in_zeros(spec: DotAdd) -> tuple[Pairing, int, str]:
    """Return a pairing that proves the low bits that ρ does not keep zero.  Raises ArgumentError if it keeps all."""
    rho = spec.parameters.rho  # type: ignore[attr-defined]
    bits = rho.format.fraction_bits - rho.fraction_bits
    if bits == 0:
        raise ArgumentError("ρ keeps every bit")
    pairing, x = Pairing(), symbolic_inputs(spec)
    step = smt.dot_add(spec, x.a, x.b, x.c, x.scale_a, x.scale_b).steps[-1]
    numbers = z3.Or(is_nan(step.result, spec.d_format), z3.Extract(bits - 1, 0, step.result) == 0)
    link = Link(numbers, ())
    text = f"the low {bits} bits of every number are zero"
    pairing.derive("encode", text, [link], [], [*step.special, *step.rounded])
    pairing.conclude(text, link)
    return pairing, 1, text


def too_large(spec: DotAdd) -> tuple[Pairing, int, str]:
    """Return a pairing that proves that no sum of fda is rounded to the largest finite number."""
    pairing, x = Pairing(), symbolic_inputs(spec)
    step = smt.dot_add(spec, x.a, x.b, x.c, x.scale_a, x.scale_b).steps[-1]
    exponents = smt_fda.exponents_of(spec, spec.parameters)  # type: ignore[arg-type]
    highest = z3.BitVecVal(exponents.high - exponents.low, exponents.bits)
    below = {}
    for operands, term in [
        *(((u, v), p) for u, v, p in zip(step.a, step.b, step.products, strict=True)),
        ((step.c,), step.addend),
    ]:
        link = Link(z3.ULE(term.exponent, highest), (term.exponent,))
        codes = [code for each in operands for code in operand_codes(each)]
        pairing.derive("multiply", "exponents are in range", [link], [], codes)
        below[term.exponent.get_id()] = link
    top = pairing.at_most_all(step.e_max, highest, below)
    largest = spec.d_format.infinity
    assert largest is not None
    largest -= 1
    link = Link(step.result != largest, ())
    text = "no sum is rounded to the largest finite number"
    pairing.derive("round", text, [link], [top], [step.total, *step.special])
    pairing.conclude(text, link)
    return pairing, largest, text


class FdaFacts(RoundsOneSum[smt_fda.FdaStep]):
    unreachable = (ends_in_zeros, too_large)

    def may_agree(self, x: DotAdd, y: DotAdd) -> bool:
        return e_zero.applies(x, y)

    def prove_agreement(self, asker: Asker, x: DotAdd, y: DotAdd, inputs: Inputs) -> Proof | None:
        return e_zero.prove_equal(asker, x, y, inputs)

    def may_pass_c_on(self, spec: DotAdd) -> bool:
        return spec.scale_format is None

    def sums(self, spec: DotAdd, step: smt_fda.FdaStep) -> list[StepSum]:
        return self.sums_of(spec, step, largest_product(spec))

    def sums_of(
        self, spec: DotAdd, step: smt_fda.FdaStep, product: int, c: int | None = None
    ) -> list[StepSum]:
        """Return the sums of a step with another largest significand of products, and of c."""
        F, products = spec.parameters_as(Fda).F, step.products
        parts = aligned_terms(spec, step, F, products, product, product_places(spec), c)
        return [sum_of_terms(step, "products and c", step.total, parts, step.e_max)]

    def first_sum(self, step: object) -> Lane:
        assert isinstance(step, executable_fda.FdaStep)
        return step.total

    def exactness(self, proving: Composing, spec: DotAdd) -> Exact:
        return exactness.prove_fused(proving, spec)

    def error_bound(self, instruction: Instruction, proving: Composing) -> Answer:
        p = instruction.spec.parameters_as(Fda)
        if p.cut is not Rounding.RZ:
            self.unsupported("what terms that are cut to odd are off")
        return exactness.error_bound(instruction, proving)

    def monotone_in_c(self, instruction: Instruction, theory: Theory) -> OutOfOrder | None:
        return monotonicity.in_c(instruction, theory)

    def monotone_in_product(self, instruction: Instruction, theory: Theory) -> OutOfOrder | None:
        return monotonicity.in_product(instruction)

    def lossless_of(self, spec: DotAdd) -> Lossless | None:
        p = spec.parameters_as(Fda)
        formats = spec.a_format, spec.b_format, spec.c_format
        return Lossless(*formats, p.L, p.e_zero) if spec.scale_format is None else None

    def lossless(self, proving: Composing, spec: DotAdd) -> str:
        return exactness.prove_lossless(proving, spec)

    def rounds_exact_sum(self, proving: Composing, spec: DotAdd) -> None:
        self.lossless(proving, spec)


FACTS = FdaFacts("fda")
