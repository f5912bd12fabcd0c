"""d grows with c, of pfma: the sum of the products does not depend on c, and is added to it last; d does not grow with
every product, since a subnormal factor counts as zero.

Which NaN is the result is decided beside the addition.  So what is proved of the addition, subnormals made zero before
and after, is carried over: d is what that gives, or both are NaNs.
"""

from __future__ import annotations

from functools import partial

import z3

from mmaformal.cases.codes import is_nan
from mmaformal.cases.falling_products import falls_with_a_product, flushed_cases
from mmaformal.cases.interfaces import steps_of
from mmaformal.cases.out_of_order import Descends, not_below, two_runs
from mmaformal.encodings.pfma import smt as pfma
from mmaformal.encodings.smt import ieee
from mmaformal.facts.monotone_addition import Added, LastAddition, added
from mmaformal.formats import fp32
from mmaformal.instruction import Instruction
from mmaformal.proof.rules import Theory, instance
from mmaformal.rounding import IEEE_FP32
from mmaformal.spec import DotAdd


def _add(c: z3.BitVecRef, sum_: z3.BitVecRef) -> Added:
    return added(ieee.add(pfma.flush(c), pfma.flush(sum_), IEEE_FP32, pfma.INVALID), pfma.flush)


def is_same(x: z3.BitVecRef, y: z3.BitVecRef) -> z3.BoolRef:
    """Whether two codes are one, or both NaNs."""
    return z3.And(is_nan(x, fp32) == is_nan(y, fp32), z3.Or(is_nan(x, fp32), x == y))


def prove_in_c(theory: Theory, spec: DotAdd) -> None:
    """`two_runs(spec).statement`.  Raises NotProvedError."""
    runs, last = two_runs(spec), LastAddition(fp32, _add)
    theorem, given = last.prove(theory), runs.c
    text = "d is c and the sum of the products, added and flushed, or both are NaNs"
    first, second = (steps_of(run.steps, pfma.Step) for run in (runs.first, runs.second))
    for i, pair in enumerate(zip(first, second, strict=True), 1):
        other = pair[0].sum
        said = instance(
            theory, theorem, [(last.other, other), *zip(last.step.rule.codes, given, strict=True)]
        )
        results, sums = (pair[0].result, pair[1].result), said.arg(1)
        alone = [z3.substitute(last.step.rule.result, (last.other, other), (last.c, c)) for c in given]
        same = [
            theory.claim(f"step {i}", text, is_same(d, number), (), [c, other])
            for d, number, c in zip(results, alone, given, strict=True)
        ]
        claim, order = not_below(results, fp32), "so results are in order where the sums are"
        theory.claim(f"step {i} in order", order, claim, [*same, sums], [*results, *alone])
        given = results
    theory.theorem("c ≤ c' ⇒ d ≤ d', all else the same", runs.statement)


def in_product(instruction: Instruction) -> Descends | None:
    """An input on which a larger product gives a smaller d."""
    return falls_with_a_product(instruction, [partial(flushed_cases, instruction.spec)])
