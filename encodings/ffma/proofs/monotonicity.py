"""d grows with c, of ffma.

The sums of the product and two neighbouring c are in order, and so are the codes that they are rounded to
(`monotone_sticky`).  Flushing keeps that: what is tiny is told by the magnitude of the sum.  Which NaN is the result is
decided beside the sum, so d is what that gives, or both are NaNs.
"""

from __future__ import annotations

from functools import partial

import z3

from mmaformal.cases.inputs import Inputs
from mmaformal.cases.out_of_order import order
from mmaformal.encodings.pfma import smt as pfma
from mmaformal.encodings.smt.blocks import BitVec, encode, select_special
from mmaformal.facts.monotone_fused import rounding_of_pair
from mmaformal.facts.monotone_sticky import StickyPair, StickyStep, prove_pair_in_order
from mmaformal.formats import fp32
from mmaformal.proof.rules import Theory
from mmaformal.rounding import IEEE_FP32
from mmaformal.spec import DotAdd
from mmaformal.theory.monotone import Neighbours, is_same_number, prove_steps_in_c, special_flags


def _with_code(step: pfma.FmaStages, code: BitVec) -> pfma.FmaStages:
    """Return the step with this code as result where nothing is special, and with one and the same NaN."""
    return step._replace(result=select_special(step.special, code, fp32, pfma.INVALID))


def _flushed(spec: DotAdd, x: Inputs) -> pfma.FmaStages:
    step = pfma.fma(spec, x.a[0], x.b[0], x.c)
    return _with_code(step, step.number)


def prove_in_c(theory: Theory, spec: DotAdd) -> None:
    """`two_runs(spec).statement`.  Raises NotProvedError."""
    prove_steps_in_c(theory, spec, _flushed, _prove_in_order, partial(is_same_number, fmt=fp32))


def _prove_in_order(theory: Theory, spec: DotAdd, runs: Neighbours[pfma.FmaStages]) -> None:
    """Prove what gives `runs.ordered`.  Raises NotProvedError."""
    sides = runs.small, runs.large
    codes = [encode(side.rounded, IEEE_FP32) for side in sides]
    rounded = [_with_code(side, code) for side, code in zip(sides, codes, strict=True)]
    plain: Neighbours[StickyStep] = Neighbours(runs.rule, *rounded)
    ex = pfma.exponents_of(spec)
    pair = StickyPair.of(spec, plain, ex, least=pfma.LEAST, fraction_bits=fp32.fraction_bits)
    prove_pair_in_order(theory, pair)
    text = "so the results are in order"
    ways = [theory.named["rise of e_max"], *(theory.named[f"rounding with e_max {n} higher"] for n in (0, 1))]
    theory.claim("ordered", text, plain.ordered, ways)
    known = [theory.named[name] for name in ("rise of e_max", "totals, 0", "totals, 1", "ordered")]
    for side, code in zip(sides, codes, strict=True):
        known += [rounding_of_pair(pair).is_small(side.sum.total), *_prove_number(theory, spec, side, code)]
    text = "where sums are in order, so are their codes, those of tiny ones zero"
    cut = [*pair.E, pair.x.total, pair.y.total, *codes, *(side.number for side in sides), runs.sign]
    theory.claim(
        "flushed in order",
        text,
        runs.ordered,
        known,
        [*cut, *(f for side in sides for f in special_flags(side))],
    )


def _prove_number(theory: Theory, spec: DotAdd, step: pfma.FmaStages, code: BitVec) -> list[z3.BoolRef]:
    """Prove that a rounded sum has the sign of the sum, or is zero; and that it is flushed to zero, or is the
    number."""
    total = step.sum.total
    claim = z3.Or(order(code) == 0, (order(code) < 0) == (total < 0))
    sign = theory.claim("sign of a code", "a rounded sum is zero, or has the sum's sign", claim)
    claim = order(step.number) == z3.If(step.tiny, z3.BitVecVal(0, fp32.storage_bits), order(code))
    text = "the number is the code of the rounded sum, or zero where that is tiny"
    number = theory.claim("number or zero", text, claim)
    above = pfma.exponents_of(spec).constant(
        pfma.LEAST + 3
    )  # the least where the sum itself is not looked at
    bound = 1 << pfma.FRAME - 3
    below = z3.And(step.sum.e_max == above, total < bound, total > -bound)
    text = "where the sum itself is not looked at, one that is tiny has the code of a subnormal number"
    tiny = theory.claim("tiny by its code", text, z3.Implies(below, step.tiny))
    return [sign, number, tiny]
