"""Exactness of a step of pfma: where every fma, and the sum of both partial sums, is a number of fp32, not subnormal
(`theory/rounded_trees.py`)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import z3

from mmaformal.cases.codes import is_finite
from mmaformal.cases.inputs import Inputs, symbolic_inputs
from mmaformal.cases.one_step import one_step
from mmaformal.encodings.pfma import smt as pfma
from mmaformal.encodings.pfma.proofs.exact_fma import ExactFma, prove_decoded, prove_number, prove_operands
from mmaformal.facts.exactness import Exact, claims_of
from mmaformal.formats import fp32
from mmaformal.proof.composition import Composing
from mmaformal.rounding import IEEE_FP32
from mmaformal.spec import DotAdd
from mmaformal.theory.additions import Addition, finite
from mmaformal.theory.rounded_trees import (
    RoundedSum,
    Shape,
    codes_of,
    kept,
    ordinary,
    prove_finite,
    prove_sum_of_all,
)


def shape_of(count: int) -> Shape:
    """Return the shape of two chains of fmas, in turn, whose results are added."""
    chains = [(k, count + k - 2 if k > 1 else None) for k in range(count)]
    return [*chains, (2 * count - 2, 2 * count - 1)]


@dataclass(frozen=True)
class OneStep:
    """One step on symbolic inputs, and the codes that its fmas and sums are to be."""

    spec: DotAdd
    x: Inputs
    step: pfma.PfmaStep

    @cached_property
    def fmas(self) -> list[ExactFma]:
        codes = [z3.BitVec(f"z{k}", fp32.storage_bits) for k in range(self.spec.k)]
        return [ExactFma(self.spec, each, z) for each, z in zip(self.step.fmas, codes, strict=True)]

    @cached_property
    def sums(self) -> tuple[RoundedSum, RoundedSum]:
        """The sum of both partial sums, and of c and that."""
        step, even, odd = self.step, *(each.result for each in self.step.fmas[-2:])
        sides = ((even, odd, step.pair, step.sum), (step.c, step.sum, step.addition, step.result))
        first, last = (
            RoundedSum(
                Addition(pfma.flush(x), pfma.flush(y), added.result, IEEE_FP32),
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
        parts = [kept(code, fmt) for code, fmt in codes_of(self.spec, self.x)]
        return z3.And([*parts, *(each.is_number for each in self.fmas), self.sums[0].is_exact])


def prove_step(proving: Composing, spec: DotAdd) -> Exact:
    """Raises NotProvedError."""
    spec = one_step(spec)
    x = symbolic_inputs(spec)
    one = OneStep(spec, x, pfma.step(spec, x.a, x.b, x.c))
    _, terms = claims_of(proving, lambda: _prove_operands(proving, one))
    made = [_prove_fma(proving, one, k) for k in range(spec.k)]
    made.append(prove_sum_of_all(proving, spec.k, shape_of(spec.k)))
    made.append(_prove_c(proving, one.step.c))
    (pair, last), sum_ = one.sums, one.step.sum
    made += [pair.prove(proving), prove_stays(proving, sum_, pair.z, pair.result_is_z, kept(pair.z, fp32))]
    exact = z3.Implies(one.so_far, z3.And(*made, last.prove_last(proving)))
    text = (
        "in each step, where no factor and not c is subnormal, and each fma, and the sum of both partial sums, is a"
        f" number of fp32 and not subnormal, d = {IEEE_FP32}(c + Σ a·b) if that is 0 or not subnormal; and if it is a"
        " number of fp32, d is it"
    )
    return Exact(ordinary(spec, x), z3.And(one.so_far, last.is_whole), z3.And(terms, exact), (), text)


def _prove_operands(proving: Composing, one: OneStep) -> None:
    for each in one.fmas:
        prove_operands(proving, each)


def prove_stays(
    proving: Composing, code: z3.BitVecRef, z: z3.BitVecRef, same: z3.BoolRef, below: z3.BoolRef
) -> z3.BoolRef:
    """Prove that a code of z's magnitude is a number and, z not being subnormal, not flushed; returns that."""
    prove_finite(proving, code, same, z)
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
    unflushed = z3.Implies(kept(c, fp32), pfma.flush(c) == c)
    return proving.claim("kept c", "a c that is not subnormal is not flushed", unflushed, (), [c])


def _prove_fma(proving: Composing, one: OneStep, k: int) -> z3.BoolRef:
    """Prove that where z is the k-th fma's number, the fma is z, with the sign of the exact sum."""
    x, each = one.fmas[k], one.step.fmas[k]
    if k < 2:
        proving.claim("zero", "a partial sum starts at a number", finite(each.codes[2], fp32))
    prove_decoded(proving, x)
    prove_number(proving, x)
    same, is_z = each.result == each.number, x.is_it(each.result)
    claim = z3.Implies(z3.And(same, x.is_it(each.number)), is_z)
    proving.claim("result is z", "so the result is z", claim, (), [each.result, each.number, x.exact])
    return z3.And(is_z, prove_stays(proving, each.result, x.z, is_z.arg(0), kept(x.z, fp32)))
