"""Exactness of a group of gps or oddsum: where every product, and every sum but the last, is a number of fp32, and not
subnormal (`theory/rounded_trees.py`)."""

from __future__ import annotations

from dataclasses import dataclass

import z3

from mmaformal.cases.codes import is_finite, is_zero
from mmaformal.cases.inputs import Inputs, symbolic_inputs
from mmaformal.cases.one_step import one_step
from mmaformal.encodings.gps import Gps
from mmaformal.encodings.gps import smt as gps
from mmaformal.encodings.smt.blocks import Operand
from mmaformal.facts.exact_terms import group_of, prove_groups_chain, prove_tree
from mmaformal.facts.exactness import Exact, claims_of
from mmaformal.formats import Format, fp32
from mmaformal.proof.composition import Composing
from mmaformal.proof.definitions import code_parts, fit, last_index
from mmaformal.proof.sticky_sums import is_sharp
from mmaformal.rounding import IEEE_FP32
from mmaformal.spec import DotAdd
from mmaformal.theory.additions import AdditionFacts, finite
from mmaformal.theory.rounded_trees import (
    TOP,
    TreeSum,
    code_index,
    has_value,
    in_pairs,
    is_ordinary,
    no_subnormal,
    prove_results_finite,
    prove_sum_of_all,
)


def _is_product(u: Operand, v: Operand, z: z3.BitVecRef, spec: DotAdd) -> z3.BoolRef:
    """Whether the product of two numbers has the magnitude of z, a number of fp32 and not subnormal."""
    bits = u.significand.size() + v.significand.size()
    m = fit(u.significand, bits) * fit(v.significand, bits)
    a, b = spec.a_format, spec.b_format
    wide = max(a.exponent_bits, b.exponent_bits, fp32.exponent_bits) + 4
    bias = a.bias + b.bias + a.fraction_bits + b.fraction_bits
    t = fit(u.field, wide) + fit(v.field, wide) - bias
    number = is_sharp(*code_parts(code_index(z), wide, IEEE_FP32), m, t)
    return z3.And(z3.ULT(code_index(z), last_index(IEEE_FP32)), no_subnormal(z, fp32), number)


@dataclass(frozen=True)
class SymbolicGroups:
    """One step on symbolic inputs, and the codes that its products and sums are to be."""

    spec: DotAdd
    x: Inputs
    step: gps.GpsStep

    @property
    def factors(self) -> list[tuple[z3.BitVecRef, Operand, Format]]:
        """Each factor's code, operand and format."""
        a, b = self.spec.a_format, self.spec.b_format
        sides = ((self.x.a, self.step.a, a), (self.x.b, self.step.b, b))
        return [(code, u, fmt) for codes, us, fmt in sides for code, u in zip(codes, us, strict=True)]

    @property
    def z(self) -> list[z3.BitVecRef]:
        """The codes that products are to be."""
        return [z3.BitVec(f"z{k}", fp32.storage_bits) for k in range(len(self.step.products))]

    @property
    def sums(self) -> list[TreeSum]:
        """All sums, the last of them that of c."""
        products, codes = self.step.products, [each.result for each in (*self.step.sums, self.step.addition)]
        sums: list[TreeSum] = []
        values, rho = list(products), self.spec.parameters.last_rounding
        pairs = [*in_pairs(len(products)), None]
        for i, (pair, code) in enumerate(zip(pairs, codes, strict=True)):
            x, y = (self.step.c, values[-1]) if pair is None else (values[pair[0]], values[pair[1] or 0])
            flushed, z = gps.flush_result(code), z3.BitVec(f"s{i}", fp32.storage_bits)
            result = self.step.result if pair is None else flushed
            sums.append(TreeSum(AdditionFacts(x, y, code, rho), flushed, result, z))
            values.append(flushed)
        return sums

    @property
    def so_far(self) -> z3.BoolRef:
        """Whether no factor and not c is subnormal, and products, and all sums but the last, are numbers."""
        parts = [no_subnormal(code, fmt) for code, _, fmt in self.factors] + [no_subnormal(self.x.c, fp32)]
        for u, v, z in zip(self.step.a, self.step.b, self.z, strict=True):
            parts.append(_is_product(u, v, z, self.spec))
        return z3.And(parts + [each.is_exact for each in self.sums[:-1]])


def prove_group_exact(proving: Composing, spec: DotAdd) -> Exact:
    """Raises NotProvedError."""
    one = one_step(spec)
    x = symbolic_inputs(one)
    group = SymbolicGroups(one, x, group_of(one, x))
    _, terms = claims_of(proving, lambda: prove_tree(proving, spec))
    of_c = z3.Implies(is_finite(x.c, fp32), finite(group.step.c, fp32))
    proving.claim("c", "c is a number", of_c)
    for code, u, fmt in group.factors:
        number = z3.Implies(is_finite(code, fmt), z3.Not(z3.Or(u.infinite, u.nan)))
        proving.claim("factor", "a number is decoded as a number", number)
    made = [_prove_product(proving, group, k) for k in range(len(group.z))]
    made.append(prove_sum_of_all(proving, len(group.z), in_pairs(len(group.z))))
    unflushed = z3.Implies(no_subnormal(x.c, fp32), group.step.c == x.c)
    made.append(proving.claim("kept c", "a c that is not subnormal is not flushed", unflushed))
    *inner, last = group.sums
    made += [each.prove(proving) for each in inner]
    exact = z3.Implies(group.so_far, z3.And(*made, last.prove_last(proving)))
    text = (
        "in each step, where no factor and not c is subnormal, and each product, and each sum but the last, is a"
        f" number of fp32 and not subnormal, d = {last.addition.rho}(c + Σ a·b) if that is 0 or not subnormal; and if"
        " it is a number of fp32, d is it"
    )
    condition, numbers = z3.And(group.so_far, last.is_whole), is_ordinary(one, x)
    if not isinstance(spec.parameters, Gps):
        return Exact(numbers, condition, z3.And(terms, exact), (), text)
    chain = _prove_chain(proving, spec)
    return Exact(numbers, condition, z3.And(terms, exact, *chain), (), text, lambda *_: chain)


def _prove_chain(proving: Composing, spec: DotAdd) -> list[z3.BoolRef]:
    """Prove what c is to the first step, and the steps after it."""
    c = symbolic_inputs(spec).c
    first = gps.flush(c, keep_sign=False)
    claim = z3.Implies(no_subnormal(c, fp32), z3.Or(first == c, z3.And(is_zero(c, fp32), first == 0)))
    proving.claim("first c", "a c that is not subnormal is not flushed, a zero is +0", claim)
    return [claim, *prove_groups_chain(proving, spec)]


def _prove_product(proving: Composing, group: SymbolicGroups, k: int) -> z3.BoolRef:
    """Prove that where z is the k-th product's number, the code of that is z's, with its sign."""
    u, v, code, z = group.step.a[k], group.step.b[k], group.step.products[k], group.z[k]
    flags = [flag for y in (u, v) for flag in (y.infinite, y.nan)]
    leading = [
        z3.Or(y.significand == 0, z3.UGE(y.significand, 1 << (y.significand.size() - 1))) for y in (u, v)
    ]
    for each in leading:
        proving.claim("flushed", "an operand is 0, or has its leading bit", each)
    sign = z3.Extract(TOP, TOP, code) == u.sign ^ v.sign
    same = z3.And(code_index(code) == code_index(z), sign)
    claim = z3.Implies(
        z3.And(z3.Not(z3.Or(flags[:2])), z3.Not(z3.Or(flags[2:])), _is_product(u, v, z, group.spec)), same
    )
    cut = [part for y in (u, v) for part in (y.significand, y.field, y.sign)] + flags
    text = "a product that is a number of fp32, and not subnormal, is that number"
    proving.claim("product", text, claim, leading, [x for x in cut if not has_value(x)])
    prove_results_finite(proving, code, same.arg(0), z)
    return same
