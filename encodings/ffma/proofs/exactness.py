"""Exactness of a step of ffma: where no operand is subnormal and the sum is not tiny, d is the exact sum, rounded once.

The sum of product and addend has a sticky last place; that it rounds as the exact sum does is
`exact_steps.prove_sticky`.  What remains are operands that are flushed, and a result that is: tiny is told by the sum.
"""

from __future__ import annotations

import z3

from mmaformal.cases.codes import is_finite
from mmaformal.cases.inputs import symbolic_inputs
from mmaformal.cases.one_step import one_step
from mmaformal.encodings.pfma import smt as pfma
from mmaformal.encodings.pfma.proofs.exactness import ExactFma, prove_fma_decoded, prove_fma_operands
from mmaformal.facts.exact_steps import prove_off, prove_sticky
from mmaformal.facts.exact_terms import prove_sum_of_both
from mmaformal.facts.exactness import Exact, claims_of, prove_own_numbers
from mmaformal.formats import fp32
from mmaformal.proof.composition import Composing
from mmaformal.proof.definitions import at_least, fit
from mmaformal.proof.sticky_sums import e_max_in_range, is_odd, is_small, magnitude_of
from mmaformal.rounding import IEEE_FP32
from mmaformal.spec import DotAdd
from mmaformal.theory.additions import finite
from mmaformal.theory.rounded_trees import no_subnormal


def one_of(spec: DotAdd) -> ExactFma:
    """One step, on symbolic inputs."""
    one = one_step(spec)
    x = symbolic_inputs(one)
    return ExactFma(one, pfma.fma(one, x.a[0], x.b[0], x.c), z3.BitVec("z", fp32.storage_bits))


def magnitude_and_unit(x: ExactFma) -> tuple[z3.BitVecRef, z3.BitVecRef]:
    """(magnitude of the sum that is rounded, the exponent of its last place)."""
    return magnitude_of(x.step.sum.total)[1], x.unit


def not_tiny(x: ExactFma) -> z3.BoolRef:
    """Whether the sum that is rounded is 0, or not below the least normal number."""
    m, unit = magnitude_and_unit(x)
    return z3.Or(m == 0, at_least(m, unit, z3.BitVecVal(1, 1), z3.BitVecVal(pfma.LEAST, unit.size())))


def prove_step(proving: Composing, spec: DotAdd) -> Exact:
    """Raises NotProvedError."""
    x = one_of(spec)
    a, b, c = x.step.codes
    _, claims = claims_of(proving, lambda: _prove_claims(proving, x))
    off, own = prove_off(proving, 4 << fp32.exponent_bits), prove_own_numbers(proving, IEEE_FP32)
    formats = (spec.a_format, spec.b_format, fp32)
    ordinary = z3.And([is_finite(code, fmt) for code, fmt in zip((a, b, c), formats, strict=True)])
    subnormals = [no_subnormal(code, fmt) for code, fmt in zip((a, b, c), formats, strict=True)]
    text = (
        "in each step, where no factor and not c is subnormal, and the exact sum is 0 or not below the least normal"
        f" number, d = {IEEE_FP32}(c + a·b): both terms are aligned exactly, or to an odd integer less than one unit"
        f" from it, and then d is {IEEE_FP32} of all that is less than one unit from the sum of those;"
        f" {IEEE_FP32} of a number of fp32 is that number"
    )
    return Exact(ordinary, z3.And(*subnormals, not_tiny(x)), z3.And(claims, off, own), (), text)


def _prove_claims(proving: Composing, x: ExactFma) -> None:
    step = x.step
    c, signs = step.codes[2], [step.product.sign, step.addend.sign]
    text = "c is a number"
    proving.claim("c", text, z3.Implies(is_finite(c, fp32), finite(c, fp32)))
    prove_fma_operands(proving, x)
    decoded = prove_fma_decoded(proving, x)
    text = "where every operand is a number, nothing is special"
    none = z3.Not(z3.Or(*step.special))
    proving.claim("not special", text, z3.Implies(decoded, none))
    prove_sum_of_both(proving, "sum of both", step.sum, (signs[0], signs[1]))
    prove_sticky(proving, x.sticky)
    _prove_flushed(proving, x, x.sticky.result, signs)


def _prove_flushed(proving: Composing, x: ExactFma, code: z3.BitVecRef, signs: list[z3.BitVecRef]) -> None:
    """Prove that a sum that is not tiny is not flushed; and that where the one that is rounded is, the exact one is."""
    (m, unit), sum_, ex = magnitude_and_unit(x), x.step.sum, pfma.exponents_of(x.spec)
    in_range, whole, small = e_max_in_range(sum_.e_max, ex, IEEE_FP32), not_tiny(x), is_small(sum_.total)
    text = "a sum that is 0, or not below the least normal number, is not flushed"
    claim, inside = z3.Implies(whole, x.step.number == code), [sum_.total, sum_.e_max, *signs]
    proving.claim("not flushed", text, claim, [in_range, small], inside)
    least, next_up = z3.BitVecVal(pfma.LEAST, unit.size()), fit(m, m.size() + 1) + 1
    below = at_least(z3.BitVecVal(1, 1), least, next_up, unit)
    text = "where an odd sum is tiny, so is all that is less than one unit from it"
    claim = z3.Implies(z3.And(is_odd(sum_.total), z3.Not(whole)), below)
    proving.claim("tiny around", text, claim, [in_range, small], [sum_.total, sum_.e_max])
