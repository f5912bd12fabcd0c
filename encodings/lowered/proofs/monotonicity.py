"""d grows with c, of lowered instructions: what the fda steps give does not depend on c, which is added to it last."""

from __future__ import annotations

import z3

from mmaformal.cases.falling_products import falls_with_a_product, random_searches
from mmaformal.cases.interfaces import steps_of
from mmaformal.cases.out_of_order import Descends, two_runs
from mmaformal.encodings.lowered import Lowered
from mmaformal.encodings.lowered import smt as lowered
from mmaformal.encodings.smt import ieee
from mmaformal.encodings.smt.blocks import canonical_nan
from mmaformal.facts.monotone_addition import Added, LastAddition, added
from mmaformal.instruction import Instruction
from mmaformal.proof.rules import Theory
from mmaformal.spec import DotAdd
from mmaformal.theory.monotone_steps import Link, conclude_steps


def prove_in_c(theory: Theory, spec: DotAdd) -> None:
    """`two_runs(spec).statement`.  Raises NotProvedError."""
    p, fmt = spec.parameters, spec.d_format
    assert isinstance(p, Lowered)

    def add(c: z3.BitVecRef, dot: z3.BitVecRef) -> Added:
        return added(ieee.add(dot, c, p.addition, canonical_nan(fmt)))

    runs, last = two_runs(spec), LastAddition(fmt, add)
    theorem = last.prove(theory)
    links: list[Link] = [
        ([(last.other, x.dot)], (x.result, y.result))
        for x, y in zip(steps_of(runs.first.steps, lowered.Step), runs.second.steps, strict=True)
    ]
    conclude_steps(theory, runs, last.step, theorem, runs.c, links)


def in_product(instruction: Instruction) -> Descends | None:
    """An input on which a larger product gives a smaller d."""
    spec, p = instruction.spec, instruction.parameters
    assert isinstance(p, Lowered)
    return falls_with_a_product(instruction, random_searches(spec, 24, order=p.order))
