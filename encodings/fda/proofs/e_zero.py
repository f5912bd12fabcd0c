"""Equality of two fda models that differ only in e_zero, proved stage by stage.

One monolithic query took Bitwuzla ten minutes at K = 16; these obligations take seconds together.  For one step, with
both models reading the same c:

1. *align, e_max*:   the two largest exponents are equal, or every term is zero;
2. *align, terms*:   from 1, each aligned magnitude is the same in both (its shift is the same, or it is zero);
3. *accumulate*:     if every term is zero, so is the sum;
4. *round, encode*:  from 1–3, with the sum and both exponents cut to fresh constants, the results are equal.

Products, signs and special values are one shared term in both, so nothing about multipliers is to be proved.  In
a chain each step's c is the last step's result, which was proved equal.
"""

from __future__ import annotations

from dataclasses import replace

import z3

from mmaformal.cases.inputs import Inputs
from mmaformal.encodings.fda import Fda
from mmaformal.encodings.fda import smt as fda
from mmaformal.encodings.smt.blocks import ExponentRange
from mmaformal.facts.same_steps import prove_same_steps
from mmaformal.proof.composition import Composing
from mmaformal.solver.answers import Proof
from mmaformal.solver.asking import Asker
from mmaformal.spec import DotAdd, LossModel


def applies(x: DotAdd, y: DotAdd) -> bool:
    """Whether both are fda and the same but for e_zero."""
    p, q = x.parameters, y.parameters
    if not p.loss is q.loss is LossModel.TERMS or x.scale_format is not None:
        return False
    assert isinstance(p, Fda)
    assert isinstance(q, Fda)
    return replace(x, parameters=q) == y and replace(p, e_zero=q.e_zero) == q


def _signed(e: z3.BitVecRef, exponents: ExponentRange, bits: int) -> z3.BitVecRef:
    return z3.ZeroExt(bits - exponents.bits, e) + z3.BitVecVal(exponents.low, bits)


def prove_equal(asker: Asker, x: DotAdd, y: DotAdd, inputs: Inputs) -> Proof | None:
    """Prove that x and y agree on all inputs; None if a claim was refuted or not settled in the time given."""
    p, q = x.parameters_as(Fda), y.parameters_as(Fda)
    return prove_same_steps(
        asker,
        inputs,
        p.L,
        (
            lambda k, c: fda.step(x, p, inputs.a[k], inputs.b[k], c),
            lambda k, c: fda.step(y, q, inputs.a[k], inputs.b[k], c),
        ),
        lambda proving, left, right, _: _prove_step(proving, (x, p), (y, q), left, right),
    )


def _prove_step(
    proving: Composing,
    mine: tuple[DotAdd, Fda],
    other: tuple[DotAdd, Fda],
    left: fda.FdaStep,
    right: fda.FdaStep,
) -> z3.BoolRef:
    """Prove that one step of both, from the same c, gives the same code."""
    (x, p), (y, q) = mine, other
    exponents, others = fda.exponents_of(x, p), fda.exponents_of(y, q)
    bits = max(exponents.bits, others.bits) + 2
    zeros = [z3.Or(u.significand == 0, v.significand == 0) for u, v in zip(left.a, left.b, strict=True)]
    zeros.append(left.c.significand == 0)
    same = _signed(left.e_max, exponents, bits) == _signed(right.e_max, others, bits)
    nothing = z3.And(zeros)
    where, e_zeros = f"in one step of {p.L} products", f"e_zero {p.e_zero} and {q.e_zero}"

    text = f"{where}, with {e_zeros} the largest exponents are equal or every term is zero"
    exponents_agree = proving.claim("e_max", text, z3.Or(same, nothing))

    aligned = zip((*left.aligned, left.aligned_c), (*right.aligned, right.aligned_c), zeros, strict=True)
    aligned_agree = []
    for number, (u, v, zero) in enumerate(aligned):
        name = f"term {number}" if number < p.L else "c"
        text = (
            f"{where}, if the largest exponents are equal or {name} is zero, its aligned magnitudes are equal"
        )
        kept = proving.claim(f"align {name}", text, z3.Implies(z3.Or(same, zero), u == v))
        aligned_agree.append(u == v)
        text = f"{where}, so the aligned magnitudes are equal"
        proving.claim(f"aligned {name}", text, u == v, [exponents_agree, kept])
    text = f"{where}, if every term is zero, so is the sum"
    empty = proving.claim("sum of zeros", text, z3.Implies(nothing, left.total == 0))
    text = f"{where}, if the aligned magnitudes are equal, so are the sums"
    sums = proving.claim("sums", text, left.total == right.total, aligned_agree)
    text = f"{where}, the largest exponents are equal, or the sum is zero"
    alike = proving.claim("e_max or nothing", text, z3.Or(same, left.total == 0), [exponents_agree, empty])
    return proving.claim(
        "results",
        f"{where}, if the sums are equal, and the largest exponents are too or the sum is zero, so are the results",
        left.result == right.result,
        [sums, alike],
        hint=[left.total, right.total, left.e_max, right.e_max],
    )
