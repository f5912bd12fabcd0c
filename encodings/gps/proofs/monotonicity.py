"""d grows with c, of gps: the sum of a group does not depend on c, and is added to it last."""

from __future__ import annotations

from functools import partial

import z3

from mmaformal.cases.falling_products import falls_with_a_product, flushed_cases
from mmaformal.cases.interfaces import steps_of
from mmaformal.cases.out_of_order import Descends, not_below, two_runs
from mmaformal.encodings.gps import Gps
from mmaformal.encodings.gps import smt as gps
from mmaformal.encodings.smt import ieee
from mmaformal.facts.monotone_addition import Added, LastAddition, added
from mmaformal.formats import fp32
from mmaformal.instruction import Instruction
from mmaformal.proof.rules import Theory
from mmaformal.rounding import IEEE_FP32
from mmaformal.spec import DotAdd
from mmaformal.theory.monotone_steps import Link, conclude_steps


def _add(c: z3.BitVecRef, group: z3.BitVecRef) -> Added:
    return added(ieee.add(c, group, IEEE_FP32, gps.NAN), gps.flush_result)


def prove_in_c(theory: Theory, spec: DotAdd) -> None:
    """`two_runs(spec).statement`.  Raises NotProvedError."""
    assert isinstance(spec.parameters, Gps)
    runs, last = two_runs(spec), LastAddition(fp32, _add)
    theorem = last.prove(theory)
    links: list[Link] = [
        ([(last.other, x.group)], (x.result, y.result))
        for x, y in zip(steps_of(runs.first.steps, gps.Step), runs.second.steps, strict=True)
    ]
    start = gps.flush(runs.c[0], keep_sign=False), gps.flush(runs.c[1], keep_sign=False)
    text = "flushing keeps the order of numbers, and NaNs"
    claim = z3.Implies(not_below(runs.c, fp32), not_below(start, fp32))
    theory.claim("flush", text, claim)
    conclude_steps(theory, runs, last.step, theorem, start, links)


def in_product(instruction: Instruction) -> Descends | None:
    """An input on which a larger product gives a smaller d."""
    return falls_with_a_product(instruction, [partial(flushed_cases, instruction.spec)])
