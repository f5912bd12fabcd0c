"""Trees of rounded operations of fp32 that flush subnormals: where every result but the last is a number, and not
subnormal, d is the exact sum, rounded once.

That a result is exact is said with a code of fp32, any one: z_k that of the k-th product, s_i that of the i-th sum.  If
their numbers are the exact ones, and those are 0 or normal, the unit has those codes.  What is added last are c and the
last of these; d is that sum rounded, and if a code stands for it, d is that.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import z3

from mmaformal.cases.codes import exponent_field, is_finite, is_zero
from mmaformal.cases.inputs import Inputs
from mmaformal.formats import Format, fp32
from mmaformal.proof.composition import Composing
from mmaformal.proof.definitions import last_index
from mmaformal.proof.fixed_sums import FIXED_POINT, total_of
from mmaformal.rounding import IEEE_FP32
from mmaformal.spec import DotAdd
from mmaformal.theory.additions import AdditionFacts, finite

TOP = fp32.storage_bits - 1

#: Sums in turn: of each the places of its terms, products first, then the sums so far; None is +0.
TreeShape: TypeAlias = Sequence[tuple[int, int | None]]


def in_pairs(count: int) -> TreeShape:
    """Return the shape of a tree of products that are added in pairs, and then those sums."""
    level, out, following = list(range(count)), [], count
    while len(level) > 1:
        pairs = list(zip(level[::2], level[1::2], strict=True))
        level = list(range(following, following + len(pairs)))
        following += len(pairs)
        out += pairs
    return out


def has_value(x: z3.ExprRef) -> bool:
    return bool(z3.is_bv_value(x) or z3.is_true(x) or z3.is_false(x))


def code_index(code: z3.BitVecRef) -> z3.BitVecRef:
    return z3.Extract(TOP - 1, 0, code)


def no_subnormal(code: z3.BitVecRef, fmt: Format) -> z3.BoolRef:
    """Whether a code is not subnormal."""
    return z3.Or(exponent_field(code, fmt) != 0, is_zero(code, fmt))


def is_normal(z: z3.BitVecRef) -> z3.BoolRef:
    """Whether z is a number of fp32, and not subnormal."""
    return z3.And(z3.ULT(code_index(z), last_index(IEEE_FP32)), no_subnormal(z, fp32))


def operand_codes_of(spec: DotAdd, x: Inputs) -> list[tuple[z3.BitVecRef, Format]]:
    """Return the codes of a step's factors and c, each with its format."""
    sides = ((x.a, spec.a_format), (x.b, spec.b_format))
    return [*((code, fmt) for codes, fmt in sides for code in codes), (x.c, spec.c_format)]


def is_ordinary(spec: DotAdd, x: Inputs) -> z3.BoolRef:
    """Whether every input is a number."""
    return z3.And([is_finite(code, fmt) for code, fmt in operand_codes_of(spec, x)])


def prove_results_finite(proving: Composing, code: z3.BitVecRef, same: z3.BoolRef, z: z3.BitVecRef) -> None:
    claim = z3.Implies(z3.And(same, z3.ULT(code_index(z), last_index(IEEE_FP32))), finite(code, fp32))
    proving.claim("number", "a code that is a number's is no infinity and no NaN", claim, (), [code])


@dataclass(frozen=True)
class TreeSum:
    """A sum of a tree, and z, a code that it is to be."""

    addition: AdditionFacts
    flushed: z3.BitVecRef  #: its code, flushed
    result: z3.BitVecRef  #: what the unit has of it: that, where the `inputs` are numbers
    z: z3.BitVecRef
    inputs: tuple[z3.BitVecRef, ...] = ()  #: what a NaN is chosen by, beside the addition

    @property
    def is_exact(self) -> z3.BoolRef:
        """Whether the exact sum has the magnitude of z, a number of fp32 and not subnormal."""
        return z3.And(self.addition.is_sum(self.z), no_subnormal(self.z, fp32))

    @property
    def is_whole(self) -> z3.BoolRef:
        """Whether the exact sum is 0, or not below the least normal number."""
        return z3.Or(self.addition.exact == 0, self.addition.at_least(fp32.min_exponent))

    @property
    def result_is_z(self) -> z3.BoolRef:
        """Whether the result has the magnitude of z."""
        return code_index(self.result) == code_index(self.z)

    def prove(self, proving: Composing) -> z3.BoolRef:
        """Prove that where z is the sum's number, the result has z's magnitude, and is a number."""
        a, z, code = self.addition, self.z, self.addition.code
        a.prove(proving)
        a.prove_number(proving, z)
        same, stays = code_index(code) == code_index(z), self.result == code
        text = "a number that is not subnormal is not flushed"
        claim = z3.Implies(z3.And(same, no_subnormal(z, fp32)), self.flushed == code)
        proving.claim("not flushed", text, claim, (), [code])
        self._prove_chosen(proving)
        claim = z3.Implies(z3.And(same, stays), self.result_is_z)
        proving.claim("result is z", "so the result is z", claim, (), [self.result, code])
        prove_results_finite(proving, self.result, self.result_is_z, z)
        return z3.And(a.rounded, a.is_kept, same, stays)

    def prove_last(self, proving: Composing) -> z3.BoolRef:
        """Prove that d is the sum, rounded, if that is not flushed; and if it is a number, d is that."""
        a, z, code = self.addition, self.z, self.addition.code
        a.prove(proving)
        a.prove_number(proving, z)
        text = "a sum that is 0, or not below the least normal number, is not flushed"
        claim = z3.Implies(z3.And(a.finite, self.is_whole), self.flushed == code)
        proving.claim("flush", text, claim, (), [a.x, a.y])
        chosen, stays = self._prove_chosen(proving), self.result == code
        same, of_d = code_index(code) == code_index(z), self.result_is_z
        claim = z3.Implies(z3.And(chosen, same, no_subnormal(z, fp32)), of_d)
        proving.claim("d", "d is a number, so not flushed either", claim, (), [code, self.result])
        return z3.And(a.rounded, a.is_kept, z3.Implies(self.is_whole, stays), z3.Implies(self.is_exact, of_d))

    def _prove_chosen(self, proving: Composing) -> z3.BoolRef:
        """Prove that where the inputs are numbers, the result is the sum's code, flushed; returns that it is."""
        chosen = self.result == self.flushed
        if not self.inputs:
            return chosen
        numbers = z3.And([finite(code, fp32) for code in self.inputs])
        text = "where numbers are added, no NaN is taken for the sum"
        cut = [*self.inputs, self.addition.code]
        proving.claim("no NaN", text, z3.Implies(numbers, chosen), (), cut)
        code = self.addition.code
        claim = z3.Implies(z3.And(chosen, self.flushed == code), self.result == code)
        proving.claim("same code", "so it is the sum's code", claim, (), [self.result, self.flushed, code])
        return chosen


def prove_sum_of_all(proving: Composing, count: int, shape: TreeShape) -> z3.BoolRef:
    """Prove that where the sums of a tree are exact, the last one, with c, is that of all."""
    proving.rests_on(FIXED_POINT)
    bits = 4 << fp32.exponent_bits
    products = [z3.BitVec(f"product{k}", bits) for k in range(count)]
    c, values, exact = z3.BitVec("addend", bits), list(products), []
    for i, (x, y) in enumerate(shape):
        values.append(z3.BitVec(f"sum{i}", bits))
        exact.append(values[-1] == values[x] + (0 if y is None else values[y]))
    claim = z3.Implies(z3.And(exact), c + values[-1] == total_of([c, *products]))
    text = "where the sums of a tree are exact, adding c to the last gives the sum of all"
    return proving.claim("sum of all", text, claim)
