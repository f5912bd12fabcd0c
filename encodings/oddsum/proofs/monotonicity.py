"""d grows with c, of oddsum: a pair of products does not depend on c, and is added to it last; d does not grow with
every product, since a subnormal factor counts as zero."""

from __future__ import annotations

from functools import partial

import z3

from mmaformal.cases.falling_products import falls_with_a_product, flushed_cases
from mmaformal.cases.interfaces import steps_of
from mmaformal.cases.out_of_order import Descends, two_runs
from mmaformal.encodings.gps import smt as gps
from mmaformal.encodings.smt import ieee
from mmaformal.facts.monotone_addition import Added, LastAddition, added
from mmaformal.formats import fp32
from mmaformal.instruction import Instruction
from mmaformal.proof.rules import Theory
from mmaformal.rounding import Conversion
from mmaformal.spec import DotAdd
from mmaformal.theory.monotone_steps import Link, conclude_steps


def _add(rho: Conversion, c: z3.BitVecRef, group: z3.BitVecRef) -> Added:
    return added(ieee.add(gps.flush_result(c), group, rho, gps.NAN), gps.flush_result)


def prove_in_c(theory: Theory, spec: DotAdd) -> None:
    """`two_runs(spec).statement`.  Raises NotProvedError."""
    runs, last = two_runs(spec), LastAddition(fp32, partial(_add, spec.parameters.last_rounding))
    theorem = last.prove(theory)
    links: list[Link] = [
        ([(last.other, x.group)], (x.result, y.result))
        for x, y in zip(steps_of(runs.first.steps, gps.Step), runs.second.steps, strict=True)
    ]
    conclude_steps(theory, runs, last.step, theorem, runs.c, links)


def in_product(instruction: Instruction) -> Descends | None:
    """An input on which a larger product gives a smaller d."""
    return falls_with_a_product(instruction, [partial(flushed_cases, instruction.spec)])
