"""Exactness of a step of pfma: where every fma, and the sum of both partial sums, is a number of fp32, not subnormal
(`theory/rounded_trees.py`), d is the exact sum, rounded once.

An fma adds two terms with a sticky last place (`exact_steps.prove_kept_sum`): the sum is the exact one, or it is odd
with room, and less than one unit off.  No number is so close to an odd sum.  So where the exact sum is a number of
fp32, and not subnormal, the sum that is rounded is that number, and rounding and flushing leave it as it is.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import z3

from mmaformal.cases.codes import is_finite
from mmaformal.cases.inputs import Inputs, symbolic_inputs
from mmaformal.cases.one_step import one_step
from mmaformal.encodings.pfma import smt as pfma
from mmaformal.encodings.smt.blocks import encode
from mmaformal.encodings.smt.stages import Stages
from mmaformal.facts.exact_steps import Sticky, prove_kept_sum, prove_off
from mmaformal.facts.exact_terms import prove_addend, prove_flushed, prove_product, prove_sum_of_both
from mmaformal.facts.exactness import Exact, claims_of
from mmaformal.formats import fp32
from mmaformal.proof.composition import Composing
from mmaformal.proof.definitions import code_parts, fit
from mmaformal.proof.sticky_sums import has_room, is_around, is_odd, is_sharp, magnitude_of, wide_enough
from mmaformal.rounding import IEEE_FP32
from mmaformal.spec import DotAdd
from mmaformal.theory.additions import AdditionFacts, finite
from mmaformal.theory.rounded_trees import (
    TOP,
    TreeShape,
    TreeSum,
    code_index,
    is_normal,
    is_ordinary,
    no_subnormal,
    operand_codes_of,
    prove_results_finite,
    prove_sum_of_all,
)


@dataclass(frozen=True)
class ExactFma:
    """An fma, and z, a code that its exact sum is to be."""

    spec: DotAdd
    step: pfma.FmaStages
    z: z3.BitVecRef

    @property
    def sticky(self) -> Sticky:
        """The sum of product and addend, and the code that it is rounded to."""
        x, step, rho = self.step, self.step, IEEE_FP32
        bits, ex = (
            self.spec.a_format.fraction_bits + self.spec.b_format.fraction_bits,
            pfma.exponents_of(self.spec),
        )
        terms = x.product, bits, x.addend, fp32.fraction_bits
        code = encode(step.rounded, rho)
        return Sticky(*terms, step.sum, pfma.FRAME, ex, rho, step.special, code, tuple(self.invariants))

    @property
    def unit(self) -> z3.BitVecRef:
        """The exponent of the last place of the sum that is rounded."""
        e_max, ex = self.step.sum.e_max, pfma.exponents_of(self.spec)
        return fit(e_max, wide_enough(ex, pfma.FRAME, IEEE_FP32)) + (ex.low - pfma.FRAME)

    @property
    def is_number(self) -> z3.BoolRef:
        """Whether the sum that is rounded has the magnitude of z, a number of fp32 and not subnormal."""
        m, unit = magnitude_of(self.step.sum.total)[1], self.unit
        return z3.And(
            is_normal(self.z), is_sharp(*code_parts(code_index(self.z), unit.size(), IEEE_FP32), m, unit)
        )

    def is_it(self, code: z3.BitVecRef) -> z3.BoolRef:
        """Whether a code has the magnitude of z and, unless that is 0, the sign of the sum."""
        total = self.step.sum.total
        sign = z3.Or(total == 0, (z3.Extract(TOP, TOP, code) == 1) == magnitude_of(total)[0])
        return z3.And(code_index(code) == code_index(self.z), sign)

    @property
    def invariants(self) -> list[z3.BoolRef]:
        """The claims about terms of finite operands: a term has its leading bit, or is zero with the least exponent."""
        x, y, M = self.step.product, self.step.addend, fp32.fraction_bits
        a, b, ex = self.spec.a_format, self.spec.b_format, pfma.exponents_of(self.spec)
        least = ex.constant(pfma.LEAST)
        zeros = [z3.And(v.significand == 0, v.exponent == least) for v in (x, y)]
        return [
            z3.Or(z3.UGE(x.significand, 1 << (a.fraction_bits + b.fraction_bits)), zeros[0]),
            z3.Or(z3.UGE(y.significand, 1 << M), zeros[1]),
            z3.ULE(x.exponent, ex.constant(a.max_exponent + b.max_exponent)),
            z3.And(z3.UGE(y.exponent, least), z3.ULE(y.exponent, ex.constant(fp32.max_exponent))),
        ]


# ---- operands --------------------------------------------------------------------------------------------------------


def prove_fma_operands(proving: Composing, x: ExactFma) -> None:
    """Prove that the product and the addend are those of the codes, a subnormal one as zero."""
    each, spec, ex = x.step, x.spec, pfma.exponents_of(x.spec)
    formats = (spec.a_format, spec.b_format, fp32)
    for code, operand, fmt in zip(each.codes, (each.a, each.b, each.c), formats, strict=True):
        prove_flushed(proving, code, operand, fmt)
        proving.claim("field", "an exponent field is not 0", z3.UGE(operand.field, 1))
    bias = spec.a_format.bias + spec.b_format.bias
    prove_product(proving, each.product, (each.a, each.b), (), bias, ex)
    prove_addend(proving, each.addend, each.c, fp32.bias, ex)


def prove_fma_decoded(proving: Composing, x: ExactFma) -> z3.BoolRef:
    """Prove that operands of numbers are numbers, their terms as `invariants` says, and the result is the code of the
    number; returns the first."""
    each, (a, b, c), spec = x.step, x.step.codes, x.spec
    numbers = [is_finite(a, spec.a_format), is_finite(b, spec.b_format), finite(c, fp32)]
    operands = (each.a, each.b, each.c)
    decoded = [z3.Not(z3.Or(y.infinite, y.nan)) for y in operands]
    for number, claim in zip(numbers, decoded, strict=True):
        text = "a number is decoded as a number"
        proving.claim("operand", text, z3.Implies(number, claim))
    for invariant in x.invariants:
        text = (
            "a term of numbers is zero with the least exponent, or has its leading bit; and is in its range"
        )
        proving.claim("term", text, z3.Implies(z3.And(numbers), invariant))
    text, same = "where nothing is special, the result is the number", each.result == each.number
    proving.claim("result", text, z3.Implies(z3.And(decoded), same))
    return z3.And(decoded)


# ---- the sum of an fma -----------------------------------------------------------------------------------------------


def _prove_number(proving: Composing, x: ExactFma) -> None:
    """Prove, from the invariants, that where the exact sum is z the sum that is rounded is, and so is the fma.

    Raises NotProvedError.
    """
    s, unit = x.sticky, x.unit
    prove_sum_of_both(proving, "sum of both", s.sum, (s.x.sign, s.y.sign))
    known, number = prove_kept_sum(proving, s), code_parts(code_index(x.z), unit.size(), IEEE_FP32)
    m = magnitude_of(s.sum.total)[1]
    room = has_room(s.sum.total, s.sum.e_max, s.exponents, s.frame, s.rho)
    around = is_around(m, unit, *number)
    claim = z3.Implies(z3.And(is_normal(x.z), is_odd(s.sum.total), room), z3.Not(around))
    text = (
        "no number is less than one unit from an odd sum with room, so none is an exact sum that is not kept"
    )
    proving.claim("no number around", text, claim, known)
    claim = z3.Implies(x.is_number, x.is_it(x.step.number))
    text = "a sum that is a number of fp32, and not subnormal, is that number"
    proving.claim("number of an fma", text, claim, [known[0].arg(0)])


def shape_of(count: int) -> TreeShape:
    """Return the shape of two chains of fmas, in turn, whose results are added."""
    chains = [(k, count + k - 2 if k > 1 else None) for k in range(count)]
    return [*chains, (2 * count - 2, 2 * count - 1)]


@dataclass(frozen=True)
class SymbolicFmaStep:
    """One step on symbolic inputs, and the codes that its fmas and sums are to be."""

    spec: DotAdd
    x: Inputs
    step: pfma.PfmaStep

    @cached_property
    def fmas(self) -> list[ExactFma]:
        codes = [z3.BitVec(f"z{k}", fp32.storage_bits) for k in range(self.spec.k)]
        return [ExactFma(self.spec, each, z) for each, z in zip(self.step.fmas, codes, strict=True)]

    @cached_property
    def sums(self) -> tuple[TreeSum, TreeSum]:
        """The sum of both partial sums, and of c and that."""
        step, even, odd = self.step, *(each.result for each in self.step.fmas[-2:])
        sides = ((even, odd, step.pair, step.sum), (step.c, step.sum, step.addition, step.result))
        first, last = (
            TreeSum(
                AdditionFacts(pfma.flush(x), pfma.flush(y), added.result, IEEE_FP32),
                pfma.flush(added.result),
                result,
                z3.BitVec(f"s{i}", fp32.storage_bits),
                (x, y),
            )
            for i, (x, y, added, result) in enumerate(sides)
        )
        return first, last

    @cached_property
    def so_far(self) -> z3.BoolRef:
        """Whether of a, b, c none is subnormal, and all fmas and their sum are numbers, and none subnormal."""
        parts = [no_subnormal(code, fmt) for code, fmt in operand_codes_of(self.spec, self.x)]
        return z3.And([*parts, *(each.is_number for each in self.fmas), self.sums[0].is_exact])


def prove_step(proving: Composing, spec: DotAdd) -> Exact:
    """Raises NotProvedError."""
    spec = one_step(spec)
    x = symbolic_inputs(spec)
    one = SymbolicFmaStep(spec, x, pfma.step(spec, x.a, x.b, x.c, Stages()))
    _, terms = claims_of(proving, lambda: _prove_operands(proving, one))
    made = [_prove_fma(proving, one, k) for k in range(spec.k)]
    made.append(prove_sum_of_all(proving, spec.k, shape_of(spec.k)))
    made.append(prove_off(proving, 4 << fp32.exponent_bits))
    made.append(_prove_c(proving, one.step.c))
    (pair, last), sum_ = one.sums, one.step.sum
    made += [
        pair.prove(proving),
        prove_stays(proving, sum_, pair.z, pair.result_is_z, no_subnormal(pair.z, fp32)),
    ]
    exact = z3.Implies(one.so_far, z3.And(*made, last.prove_last(proving)))
    text = (
        "in each step, where no factor and not c is subnormal, and each fma, and the sum of both partial sums, is a"
        f" number of fp32 and not subnormal, d = {IEEE_FP32}(c + Σ a·b) if that is 0 or not subnormal; and if it is a"
        " number of fp32, d is it"
    )
    return Exact(is_ordinary(spec, x), z3.And(one.so_far, last.is_whole), z3.And(terms, exact), (), text)


def _prove_operands(proving: Composing, one: SymbolicFmaStep) -> None:
    for each in one.fmas:
        prove_fma_operands(proving, each)


def prove_stays(
    proving: Composing, code: z3.BitVecRef, z: z3.BitVecRef, same: z3.BoolRef, below: z3.BoolRef
) -> z3.BoolRef:
    """Prove that a code of z's magnitude is a number and, z not being subnormal, not flushed; returns that."""
    prove_results_finite(proving, code, same, z)
    stays = pfma.flush(code) == code
    claim = z3.Implies(z3.And(same, below), stays)
    proving.claim("stays", "a number that is not subnormal is not flushed", claim, (), [code])
    _prove_flushed_number(proving, code)
    return stays


def _prove_flushed_number(proving: Composing, code: z3.BitVecRef) -> None:
    number = z3.Implies(z3.And(pfma.flush(code) == code, finite(code, fp32)), finite(pfma.flush(code), fp32))
    proving.claim("flushed number", "and is a number still", number, (), [code])


def _prove_c(proving: Composing, c: z3.BitVecRef) -> z3.BoolRef:
    """Prove that a c that is not subnormal is not flushed, and a number."""
    proving.claim("c", "c is a number", z3.Implies(is_finite(c, fp32), finite(c, fp32)), (), [c])
    _prove_flushed_number(proving, c)
    unflushed = z3.Implies(no_subnormal(c, fp32), pfma.flush(c) == c)
    return proving.claim("kept c", "a c that is not subnormal is not flushed", unflushed, (), [c])


def _prove_fma(proving: Composing, one: SymbolicFmaStep, k: int) -> z3.BoolRef:
    """Prove that where z is the k-th fma's number, the fma is z, with the sign of the exact sum."""
    x, each = one.fmas[k], one.step.fmas[k]
    if k < 2:
        proving.claim("zero", "a partial sum starts at a number", finite(each.codes[2], fp32))
    prove_fma_decoded(proving, x)
    _, kept_sum = claims_of(proving, lambda: _prove_number(proving, x))
    same, is_z = each.result == each.number, x.is_it(each.result)
    claim = z3.Implies(z3.And(same, x.is_it(each.number)), is_z)
    proving.claim("result is z", "so the result is z", claim, (), [each.result, each.number, each.sum.total])
    return z3.And(
        kept_sum, is_z, prove_stays(proving, each.result, x.z, is_z.arg(0), no_subnormal(x.z, fp32))
    )
