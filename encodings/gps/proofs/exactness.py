"""Exactness of a group of gps or oddsum: where every product, and every sum but the last, is a number of fp32, and
not subnormal.

That a number is exact is said with a code of fp32, any one: z_k that of the k-th product, s_i that of the i-th sum.
If their numbers are the exact ones, and those are 0 or normal, the unit has those codes.  What is added last are c and
the last of these; d is that sum rounded, and if a code stands for it, d is that.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import z3

from mmaformal.cases.codes import exponent_field, is_finite, is_zero
from mmaformal.cases.inputs import Codes, Inputs, symbolic_inputs
from mmaformal.cases.one_step import one_step
from mmaformal.encodings.gps import Gps
from mmaformal.encodings.gps import smt as gps
from mmaformal.encodings.smt.blocks import Operand
from mmaformal.facts.additions import Addition, finite
from mmaformal.facts.exact_terms import group_of, prove_groups_chain, prove_tree
from mmaformal.facts.exactness import Exact, claims_of
from mmaformal.facts.exactness_codes import Rounding, Roundings, products
from mmaformal.formats import Format, fp32
from mmaformal.proof.composition import FIXED_POINT, Composing, total_of
from mmaformal.proof.definitions import fit, is_number_of, last_index, read
from mmaformal.proof.sticky_sums import is_sharp
from mmaformal.rounding import IEEE_FP32, Conversion
from mmaformal.spec import DotAdd

_TOP = fp32.storage_bits - 1


def index_of(code: z3.BitVecRef) -> z3.BitVecRef:
    return z3.Extract(_TOP - 1, 0, code)


def kept(code: z3.BitVecRef, fmt: Format) -> z3.BoolRef:
    """Whether a code is not subnormal."""
    return z3.Or(exponent_field(code, fmt) != 0, is_zero(code, fmt))


def is_product(u: Operand, v: Operand, z: z3.BitVecRef, spec: DotAdd) -> z3.BoolRef:
    """Whether the product of two numbers has the magnitude of z, a number of fp32 and not subnormal."""
    bits = u.significand.size() + v.significand.size()
    m = fit(u.significand, bits) * fit(v.significand, bits)
    a, b = spec.a_format, spec.b_format
    wide = max(a.exponent_bits, b.exponent_bits, fp32.exponent_bits) + 4
    bias = a.bias + b.bias + a.fraction_bits + b.fraction_bits
    t = fit(u.field, wide) + fit(v.field, wide) - bias
    number = is_sharp(*read(index_of(z), wide, IEEE_FP32), m, t)
    return z3.And(z3.ULT(index_of(z), last_index(IEEE_FP32)), kept(z, fp32), number)


def is_sum(a: Addition, z: z3.BitVecRef) -> z3.BoolRef:
    return z3.And(a.is_sum(z), kept(z, fp32))


@dataclass(frozen=True)
class Group:
    """One step on symbolic inputs, and the codes that its products and sums are to be."""

    spec: DotAdd
    x: Inputs
    step: gps.Step

    @property
    def rho(self) -> Conversion:
        return self.spec.parameters.last_rounding

    @property
    def factors(self) -> list[tuple[z3.BitVecRef, Operand, Format]]:
        """(code, operand, format)."""
        a, b = self.spec.a_format, self.spec.b_format
        sides = ((self.x.a, self.step.a, a), (self.x.b, self.step.b, b))
        return [(code, u, fmt) for codes, us, fmt in sides for code, u in zip(codes, us, strict=True)]

    @property
    def z(self) -> list[z3.BitVecRef]:
        """Those of products."""
        return [z3.BitVec(f"z{k}", fp32.storage_bits) for k in range(len(self.step.products))]

    @property
    def additions(self) -> list[tuple[Addition, z3.BitVecRef]]:
        """(addition, its result flushed), the last of them that of c."""
        level, left, out = list(self.step.products), list(self.step.sums), []
        while len(level) > 1:
            pairs = list(zip(level[::2], level[1::2], strict=True))
            codes = [left.pop(0).result for _ in pairs]
            level = [gps.flush_result(code) for code in codes]
            out += [
                (Addition(u, v, code, self.rho), flushed)
                for (u, v), code, flushed in zip(pairs, codes, level, strict=True)
            ]
        last = Addition(self.step.c, level[0], self.step.addition.result, self.rho)
        return [*out, (last, self.step.result)]

    @property
    def sums(self) -> list[z3.BitVecRef]:
        """Those of sums, the last of them that of d."""
        return [z3.BitVec(f"s{i}", fp32.storage_bits) for i in range(len(self.additions))]

    @property
    def conditions(self) -> list[z3.BoolRef]:
        """Of factors and c, then of products, then of all sums but the last."""
        parts = [kept(code, fmt) for code, _, fmt in self.factors] + [kept(self.x.c, fp32)]
        for u, v, z in zip(self.step.a, self.step.b, self.z, strict=True):
            parts.append(is_product(u, v, z, self.spec))
        return parts + [is_sum(a, s) for (a, _), s in zip(self.additions[:-1], self.sums, strict=False)]

    @property
    def not_flushed(self) -> z3.BoolRef:
        """Whether the last sum is 0, or not below the least normal number."""
        (last, _) = self.additions[-1]
        return z3.Or(last.exact == 0, last.at_least(fp32.min_exponent))


def one_group(spec: DotAdd) -> Group:
    one = one_step(spec)
    x = symbolic_inputs(one)
    return Group(one, x, group_of(one, x))


def condition(spec: DotAdd) -> z3.BoolRef:
    """Of one step, given codes z of products and s of sums."""
    group = one_group(spec)
    return z3.And(*group.conditions, group.not_flushed)


# ---- proof -----------------------------------------------------------------------------------------------------------


def prove_group(proving: Composing, spec: DotAdd) -> Exact:
    """Raises NotProvedError."""
    group = one_group(spec)
    _, terms = claims_of(proving, lambda: prove_tree(proving, spec))
    ordinary = z3.And([is_finite(code, fmt) for code, _, fmt in group.factors] + [is_finite(group.x.c, fp32)])
    of_c = z3.Implies(is_finite(group.x.c, fp32), finite(group.step.c, fp32))
    proving.claim("c", "c is a number", of_c)
    for code, u, fmt in group.factors:
        number = z3.Implies(is_finite(code, fmt), z3.Not(z3.Or(u.infinite, u.nan)))
        proving.claim("factor", "a number is decoded as a number", number)
    made = [_prove_product(proving, group, k) for k in range(len(group.z))]
    made.append(_prove_sum_of_all(proving, len(group.z)))
    unflushed = z3.Implies(kept(group.x.c, fp32), group.step.c == group.x.c)
    made.append(proving.claim("kept c", "a c that is not subnormal is not flushed", unflushed))
    *inner, (last, result) = group.additions
    for (a, flushed), s in zip(inner, group.sums, strict=False):
        made.append(_prove_sum(proving, a, flushed, s))
    so_far = z3.And(group.conditions)
    d = group.sums[-1]
    last.prove_number(proving, d)
    of_d = index_of(result) == index_of(d)
    stays = z3.Implies(group.not_flushed, result == last.code)
    proving.claim(
        "flush",
        "a sum that is 0, or not below the least normal number, is not flushed",
        z3.Implies(last.finite, stays),
        (),
        [last.x, last.y],
    )
    same = index_of(last.code) == index_of(d)
    text = "d is a number, so not flushed either"
    proving.claim("d", text, z3.Implies(z3.And(same, kept(d, fp32)), of_d), (), [last.code])
    last.prove(proving)
    of_last = z3.And(last.rounded, last.is_kept, stays, z3.Implies(is_sum(last, d), of_d))
    exact = z3.Implies(so_far, z3.And(*made, of_last))
    text = (
        "in each step, where no factor and not c is subnormal, and each product, and each sum but the last, is a"
        f" number of fp32 and not subnormal, d = {group.rho}(c + Σ a·b) if that is 0 or not subnormal; and if it is a"
        " number of fp32, d is it"
    )
    condition = z3.And(so_far, group.not_flushed)
    if not isinstance(spec.parameters, Gps):
        return Exact(ordinary, condition, z3.And(terms, exact), (), text)
    chain = _prove_chain(proving, spec)
    return Exact(ordinary, condition, z3.And(terms, exact, *chain), (), text, lambda *_: chain)


def _prove_chain(proving: Composing, spec: DotAdd) -> list[z3.BoolRef]:
    """What c is to the first step, and the steps after it."""
    c = symbolic_inputs(spec).c
    first = gps.flush(c, keep_sign=False)
    claim = z3.Implies(kept(c, fp32), z3.Or(first == c, z3.And(is_zero(c, fp32), first == 0)))
    proving.claim("first c", "a c that is not subnormal is not flushed, a zero is +0", claim)
    return [claim, *prove_groups_chain(proving, spec)]


def _prove_product(proving: Composing, group: Group, k: int) -> z3.BoolRef:
    """That where z is the k-th product's number, the code of that is z's, with its sign."""
    u, v, code, z = group.step.a[k], group.step.b[k], group.step.products[k], group.z[k]
    flags = [flag for y in (u, v) for flag in (y.infinite, y.nan)]
    leading = [
        z3.Or(y.significand == 0, z3.UGE(y.significand, 1 << (y.significand.size() - 1))) for y in (u, v)
    ]
    for each in leading:
        proving.claim("flushed", "an operand is 0, or has its leading bit", each)
    sign = z3.Extract(_TOP, _TOP, code) == u.sign ^ v.sign
    same = z3.And(index_of(code) == index_of(z), sign)
    claim = z3.Implies(
        z3.And(z3.Not(z3.Or(flags[:2])), z3.Not(z3.Or(flags[2:])), is_product(u, v, z, group.spec)), same
    )
    cut = [part for y in (u, v) for part in (y.significand, y.field, y.sign)] + flags
    text = "a product that is a number of fp32, and not subnormal, is that number"
    proving.claim("product", text, claim, leading, [x for x in cut if not _constant(x)])
    prove_finite(proving, code, same.arg(0), z)
    return same


def _constant(x: z3.ExprRef) -> bool:
    return bool(z3.is_bv_value(x) or z3.is_true(x) or z3.is_false(x))


def prove_finite(proving: Composing, code: z3.BitVecRef, same: z3.BoolRef, z: z3.BitVecRef) -> None:
    claim = z3.Implies(z3.And(same, z3.ULT(index_of(z), last_index(IEEE_FP32))), finite(code, fp32))
    proving.claim("number", "a code that is a number's is no infinity and no NaN", claim, (), [code])


def _prove_sum(proving: Composing, a: Addition, flushed: z3.BitVecRef, s: z3.BitVecRef) -> z3.BoolRef:
    """That where s is a sum's number, the code of that, flushed or not, is s's."""
    a.prove_number(proving, s)
    rounded = a.prove(proving)
    same, not_flushed = index_of(a.code) == index_of(s), flushed == a.code
    claim = z3.Implies(z3.And(same, kept(s, fp32)), z3.And(not_flushed, index_of(flushed) == index_of(s)))
    proving.claim("not flushed", "a number that is not subnormal is not flushed", claim, (), [a.code])
    prove_finite(proving, flushed, index_of(flushed) == index_of(s), s)
    return z3.And(a.rounded, a.is_kept, same, not_flushed) if rounded is not None else same


def _prove_sum_of_all(proving: Composing, count: int) -> z3.BoolRef:
    """That where sums of pairs are exact, the last one, with c, is that of all."""
    proving.rests_on(FIXED_POINT)
    bits = 1 << (fp32.exponent_bits + 2)
    products = [z3.BitVec(f"product{k}", bits) for k in range(count)]
    c, level, exact = z3.BitVec("addend", bits), products, []
    while len(level) > 1:
        sums = [z3.BitVec(f"sum{len(level)}_{i}", bits) for i in range(len(level) // 2)]
        exact += [s == u + v for s, u, v in zip(sums, level[::2], level[1::2], strict=True)]
        level = sums
    claim = z3.Implies(z3.And(exact), c + level[0] == total_of([c, *products]))
    text = "where the sums of pairs are exact, adding c to the last gives the sum of all"
    return proving.claim("sum of all", text, claim)


# ---- on codes --------------------------------------------------------------------------------------------------------


def on_codes(spec: DotAdd, codes: Codes) -> Roundings:
    L, rho, terms = spec.parameters.step_products, spec.parameters.last_rounding, products(spec, codes)
    c = spec.c_format.value(codes.c)
    fine = not_below(c, fp32)
    for start in range(0, spec.k, L):
        sides = ((codes.a, spec.a_format), (codes.b, spec.b_format))
        factors = [(fmt.value(side[k]), fmt) for side, fmt in sides for k in range(start, start + L)]
        level = [x for x, _ in terms[start : start + L]]
        fine = fine and all(not_below(x, fmt) for x, fmt in factors)
        fine = fine and all(is_number_of(x, IEEE_FP32) for x in level)
        while len(level) > 1:
            fine = fine and all(not_below(x, fp32) for x in level)
            level = [x + y for x, y in zip(level[::2], level[1::2], strict=True)]
            for x in level:
                yield Rounding(fine, x, rho)
        c += level[0]
        fine = fine and not_below(level[0], fp32) and not_below(c, fp32)
        yield Rounding(fine, c, rho)


def not_below(x: Fraction, fmt: Format) -> bool:
    """Whether a number is 0, or not below the least normal one."""
    return x == 0 or abs(x) >= Fraction(2) ** fmt.min_exponent


__all__ = ["condition", "index_of", "is_sum", "kept", "not_below", "on_codes", "prove_finite", "prove_group"]
