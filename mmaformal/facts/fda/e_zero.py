"""Equality of two fda models that differ only in e_zero, proved stage by stage.

One monolithic query took Bitwuzla ten minutes at K = 16; these obligations take seconds together.  For one step, with
both models reading the same c:

1. *align, e_max*:   the two largest exponents are equal, or every term is zero;
2. *align, terms*:   from 1, each aligned magnitude is the same in both (its shift is the same, or it is zero);
3. *accumulate*:     if every term is zero, so is the sum;
4. *round, encode*:  from 1–3, with the sum and both exponents cut to fresh constants, the results are equal.

Products, signs and special values are one shared term in both, so nothing about multipliers is to be proved.  A
chain follows by induction: the c of a step is an arbitrary input here, so it may be the last step's equal result.
"""

from __future__ import annotations

from dataclasses import replace

import z3

from mmaformal.algorithms import DotAdd, Fda
from mmaformal.cases.inputs import Inputs
from mmaformal.encodings.smt import fda
from mmaformal.encodings.smt.blocks import ExponentRange
from mmaformal.solver.asking import Asker


def applies(x: DotAdd, y: DotAdd) -> bool:
    """Whether both are fda and the same but for e_zero."""
    p, q = x.parameters, y.parameters
    if not (isinstance(p, Fda) and isinstance(q, Fda)) or x.scale_format is not None:
        return False
    return replace(x, parameters=q) == y and replace(p, e_zero=q.e_zero) == q


def _signed(e: z3.BitVecRef, exponents: ExponentRange, bits: int) -> z3.BitVecRef:
    return z3.ZeroExt(bits - exponents.bits, e) + z3.BitVecVal(exponents.low, bits)


def prove_equal(asker: Asker, x: DotAdd, y: DotAdd, inputs: Inputs, limit: float) -> bool:
    """Prove that x and y agree on all inputs; False if an obligation was refuted or not settled in `limit` s."""
    p, q = x.parameters, y.parameters
    assert isinstance(p, Fda)
    assert isinstance(q, Fda)
    k = slice(0, p.L)
    left = fda.step(x, p, inputs.a[k], inputs.b[k], inputs.c)
    right = fda.step(y, q, inputs.a[k], inputs.b[k], inputs.c)
    exponents, others = fda.exponents_of(x, p), fda.exponents_of(y, q)
    bits = max(exponents.bits, others.bits) + 2

    factors = [*zip(left.a, left.b, strict=True)]
    zeros = [z3.Or(a.significand == 0, b.significand == 0) for a, b in factors]
    zeros.append(left.c.significand == 0)
    same = _signed(left.e_max, exponents, bits) == _signed(right.e_max, others, bits)
    exponents_agree = z3.Or(same, z3.And(zeros))
    where = f"in one step of {p.L} products"
    e_zeros = f"e_zero {p.e_zero} and {q.e_zero}"

    def prove(name: str, statement: str, claim: z3.BoolRef, **how: list[z3.ExprRef]) -> bool:
        return asker.prove(name, statement, claim, limit=limit, **how).verdict == "unsat"

    if not prove(
        "e_max",
        f"{where}, with {e_zeros} the largest exponents are equal or every term is zero",
        exponents_agree,
    ):
        return False

    aligned = zip((*left.aligned, left.aligned_c), (*right.aligned, right.aligned_c), zeros, strict=True)
    aligned_agree = []
    for number, (mine, other, zero) in enumerate(aligned):
        aligned_agree.append(mine == other)
        name = f"term {number}" if number < p.L else "c"
        if not prove(
            f"align {name}",
            f"{where}, if the largest exponents are equal or {name} is zero, its aligned magnitudes are equal",
            z3.Implies(z3.Or(same, zero), mine == other),
            cut=[left.e_max, right.e_max],
        ):
            return False
    if not prove(
        "sum of zeros",
        f"{where}, if every term is zero, so is the sum",
        z3.Implies(z3.And(zeros), left.total == 0),
    ):
        return False
    totals_agree = left.total == right.total
    if not prove(
        "sums",
        f"{where}, if the aligned magnitudes are equal, so are the sums",
        totals_agree,
        using=aligned_agree,
        cut=[*left.aligned, left.aligned_c, *right.aligned, right.aligned_c],
    ):
        return False
    return prove(
        "results",
        f"{where}, if the sums are equal, and the largest exponents are too or the sum is zero, "
        "so are the results; hence in every step of the chain",
        left.result == right.result,
        using=[totals_agree, z3.Or(same, left.total == 0)],
        cut=[left.total, right.total, left.e_max, right.e_max],
    )
