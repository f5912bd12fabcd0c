"""Exactness of a step of pfma: where every fma, and the sum of both partial sums, is a number of fp32, not subnormal.

That a result is exact is said with a code of fp32, any one: z_k that of the k-th fma, s_0 that of both partial sums,
s_1 that of d.  If their numbers are the exact ones, and those are 0 or normal, the unit has those codes.  What is added
last are c and the sum; d is that rounded, and if a code stands for it, d is that.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import z3

from mmaformal.cases.codes import is_finite
from mmaformal.cases.inputs import Codes, Inputs, symbolic_inputs
from mmaformal.cases.one_step import one_step
from mmaformal.encodings.gps.proofs.exactness import index_of, is_sum, kept, not_below, prove_finite
from mmaformal.encodings.pfma import smt as pfma
from mmaformal.encodings.pfma.proofs.exact_fma import ExactFma, prove_decoded, prove_number, prove_operands
from mmaformal.facts.additions import Addition, finite
from mmaformal.facts.exactness import Exact, claims_of
from mmaformal.facts.exactness_codes import Rounding, Roundings, products
from mmaformal.formats import Format, fp32
from mmaformal.proof.composition import FIXED_POINT, Composing, total_of
from mmaformal.proof.definitions import last_index
from mmaformal.rounding import IEEE_FP32
from mmaformal.spec import DotAdd


@dataclass(frozen=True)
class OneStep:
    """One step on symbolic inputs, and the codes that its fmas and sums are to be."""

    spec: DotAdd
    x: Inputs
    step: pfma.Step

    @property
    def inputs(self) -> list[tuple[z3.BitVecRef, Format]]:
        a, b, c = self.spec.a_format, self.spec.b_format, self.spec.c_format
        return [*((code, a) for code in self.x.a), *((code, b) for code in self.x.b), (self.x.c, c)]

    @cached_property
    def fmas(self) -> list[ExactFma]:
        codes = [z3.BitVec(f"z{k}", fp32.storage_bits) for k in range(self.spec.k)]
        return [ExactFma(self.spec, each, z) for each, z in zip(self.step.fmas, codes, strict=True)]

    @cached_property
    def additions(self) -> tuple[Addition, Addition]:
        """Of both partial sums, and of c and that."""
        step, even, odd = self.step, *(each.result for each in self.step.fmas[-2:])
        pair = Addition(pfma.flush(even), pfma.flush(odd), step.pair.result, IEEE_FP32)
        return pair, Addition(pfma.flush(step.c), pfma.flush(step.sum), step.addition.result, IEEE_FP32)

    @property
    def sums(self) -> tuple[z3.BitVecRef, z3.BitVecRef]:
        return z3.BitVec("s0", fp32.storage_bits), z3.BitVec("s1", fp32.storage_bits)

    @property
    def ordinary(self) -> z3.BoolRef:
        return z3.And([is_finite(code, fmt) for code, fmt in self.inputs])

    @cached_property
    def exact_so_far(self) -> z3.BoolRef:
        """That of a, b, c none is subnormal, and all fmas and their sum are numbers, and none subnormal."""
        parts = [kept(code, fmt) for code, fmt in self.inputs] + [each.is_number for each in self.fmas]
        return z3.And([*parts, is_sum(self.additions[0], self.sums[0])])

    @property
    def not_flushed(self) -> z3.BoolRef:
        """Whether the last sum is 0, or not below the least normal number."""
        last = self.additions[1]
        return z3.Or(last.exact == 0, last.at_least(fp32.min_exponent))


def one_of(spec: DotAdd) -> OneStep:
    one = one_step(spec)
    x = symbolic_inputs(one)
    return OneStep(one, x, pfma.step(one, x.a, x.b, x.c))


# ---- proof -----------------------------------------------------------------------------------------------------------


def prove_step(proving: Composing, spec: DotAdd) -> Exact:
    """Raises NotProvedError."""
    one = one_of(spec)
    _, terms = claims_of(proving, lambda: _prove_operands(proving, one))
    made = [_prove_fma(proving, one, k) for k in range(one.spec.k)]
    made.append(_prove_pair(proving, one))
    made.append(_prove_sum_of_all(proving, one.spec.k))
    exact = z3.Implies(one.exact_so_far, z3.And(*made, _prove_last(proving, one)))
    text = (
        "in each step, where no factor and not c is subnormal, and each fma, and the sum of both partial sums, is a"
        f" number of fp32 and not subnormal, d = {IEEE_FP32}(c + Σ a·b) if that is 0 or not subnormal; and if it is a"
        " number of fp32, d is it"
    )
    condition = z3.And(one.exact_so_far, one.not_flushed)
    return Exact(one.ordinary, condition, z3.And(terms, exact), (), text)


def _prove_operands(proving: Composing, one: OneStep) -> None:
    for each in one.fmas:
        prove_operands(proving, each)


def _prove_stays(
    proving: Composing, code: z3.BitVecRef, z: z3.BitVecRef, same: z3.BoolRef, below: z3.BoolRef
) -> z3.BoolRef:
    """That a code of z's magnitude is a number and, z not being subnormal, not flushed; returns that."""
    prove_finite(proving, code, same, z)
    stays = pfma.flush(code) == code
    claim = z3.Implies(z3.And(same, below), stays)
    proving.claim("not flushed", "a number that is not subnormal is not flushed", claim, (), [code])
    number = z3.Implies(z3.And(stays, finite(code, fp32)), finite(pfma.flush(code), fp32))
    proving.claim("flushed number", "and is a number still", number, (), [code])
    return stays


def _prove_fma(proving: Composing, one: OneStep, k: int) -> z3.BoolRef:
    """That where z is the k-th fma's number, the fma is z, with the sign of the exact sum."""
    x, each = one.fmas[k], one.step.fmas[k]
    if k < 2:
        proving.claim("zero", "a partial sum starts at a number", finite(each.codes[2], fp32))
    prove_decoded(proving, x)
    prove_number(proving, x)
    same, is_z = each.result == each.number, x.is_it(each.result)
    claim = z3.Implies(z3.And(same, x.is_it(each.number)), is_z)
    proving.claim("result is z", "so the result is z", claim, (), [each.result, each.number, x.exact])
    return z3.And(is_z, _prove_stays(proving, each.result, x.z, is_z.arg(0), kept(x.z, fp32)))


def _prove_pair(proving: Composing, one: OneStep) -> z3.BoolRef:
    """That where s is the number of both partial sums' sum, that has the code of s."""
    a, s, step = one.additions[0], one.sums[0], one.step
    even, odd = (each.result for each in step.fmas[-2:])
    a.prove(proving)
    a.prove_number(proving, s)
    same, taken = index_of(a.code) == index_of(s), step.sum == a.code
    number = z3.And(same, z3.ULT(index_of(s), last_index(IEEE_FP32)), kept(s, fp32))
    numbers = z3.And(finite(even, fp32), finite(odd, fp32))
    text = "a sum of numbers that is a number, and not subnormal, is not flushed, and no NaN is taken for it"
    proving.claim("taken", text, z3.Implies(z3.And(numbers, number), taken), (), [even, odd, a.code])
    of_sum = index_of(step.sum) == index_of(s)
    proving.claim("taken is s", "so it is s", z3.Implies(z3.And(same, taken), of_sum), (), [step.sum, a.code])
    stays = _prove_stays(proving, step.sum, s, of_sum, kept(s, fp32))
    return z3.And(a.rounded, a.is_kept, same, taken, stays)


def _prove_last(proving: Composing, one: OneStep) -> z3.BoolRef:
    """d = ρ(c + s) if that is 0 or not subnormal, and if it is a number, d is that."""
    a, d, step = one.additions[1], one.sums[1], one.step
    c, sum_ = step.c, step.sum
    of_c = z3.Implies(is_finite(c, fp32), finite(c, fp32))
    proving.claim("c", "c is a number", of_c, (), [c])
    unflushed = z3.Implies(kept(c, fp32), pfma.flush(c) == c)
    proving.claim("kept c", "a c that is not subnormal is not flushed", unflushed, (), [c])
    flushed = z3.Implies(z3.And(pfma.flush(c) == c, finite(c, fp32)), finite(pfma.flush(c), fp32))
    proving.claim("flushed number", "and is a number still", flushed, (), [c])
    a.prove(proving)
    a.prove_number(proving, d)
    numbers = z3.And(finite(c, fp32), finite(sum_, fp32))
    flush = z3.Implies(z3.And(a.finite, one.not_flushed), pfma.flush(a.code) == a.code)
    text = "a sum that is 0, or not below the least normal number, is not flushed"
    proving.claim("flush", text, flush, (), [a.x, a.y])
    chosen = step.result == pfma.flush(a.code)
    text = "where c and the sum are numbers, no NaN is taken for d"
    proving.claim("no NaN", text, z3.Implies(numbers, chosen), (), [c, sum_, a.code])
    stays = step.result == a.code
    claim = z3.Implies(z3.And(chosen, pfma.flush(a.code) == a.code), stays)
    proving.claim("d", "so d is the sum, rounded", claim, (), [step.result, a.code])
    of_d = index_of(step.result) == index_of(d)
    claim = z3.Implies(z3.And(chosen, index_of(a.code) == index_of(d), kept(d, fp32)), of_d)
    proving.claim("d is it", "d is a number, so not flushed either", claim, (), [step.result, a.code])
    return z3.And(a.rounded, a.is_kept, z3.Implies(one.not_flushed, stays), z3.Implies(is_sum(a, d), of_d))


def _prove_sum_of_all(proving: Composing, count: int) -> z3.BoolRef:
    """That where all fmas and the sum of both partial sums are exact, that with c is the sum of all."""
    proving.rests_on(FIXED_POINT)
    bits = 4 << fp32.exponent_bits
    products = [z3.BitVec(f"product{k}", bits) for k in range(count)]
    partial = [z3.BitVec(f"partial{k}", bits) for k in range(count)]
    c, both = z3.BitVecs("addend sum", bits)
    exact = [
        z == own + (partial[k - 2] if k > 1 else 0)
        for k, (z, own) in enumerate(zip(partial, products, strict=True))
    ]
    exact.append(both == partial[-2] + partial[-1])
    claim = z3.Implies(z3.And(exact), c + both == total_of([c, *products]))
    text = "where partial sums and their sum are exact, adding c gives the sum of all"
    return proving.claim("sum of all", text, claim)


# ---- on codes --------------------------------------------------------------------------------------------------------


def on_codes(spec: DotAdd, codes: Codes) -> Roundings:
    terms, L = products(spec, codes), spec.parameters.step_products
    c = spec.c_format.value(codes.c)
    fine = not_below(c, fp32)
    for start in range(0, spec.k, L):
        sides = ((codes.a, spec.a_format), (codes.b, spec.b_format))
        fine = fine and all(
            not_below(fmt.value(side[k]), fmt) for side, fmt in sides for k in range(start, start + L)
        )
        sums = [Fraction(0), Fraction(0)]
        for k, (value, _) in enumerate(terms[start : start + L]):
            sums[k % 2] += value
            fine = fine and not_below(sums[k % 2], fp32)
            yield Rounding(fine, sums[k % 2], IEEE_FP32)
        fine = fine and not_below(sums[0] + sums[1], fp32)
        yield Rounding(fine, sums[0] + sums[1], IEEE_FP32)
        c += sums[0] + sums[1]
        fine = fine and not_below(c, fp32)
        yield Rounding(fine, c, IEEE_FP32)


__all__ = ["OneStep", "on_codes", "one_of", "prove_step"]
