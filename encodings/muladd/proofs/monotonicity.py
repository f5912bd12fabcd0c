"""d grows with c, of muladd: a rounded product does not depend on c, and is added to it last."""

from __future__ import annotations

import z3

from mmaformal.cases.interfaces import steps_of
from mmaformal.cases.out_of_order import two_runs
from mmaformal.encodings.muladd import Muladd
from mmaformal.encodings.muladd import smt as muladd
from mmaformal.encodings.smt import ieee
from mmaformal.encodings.smt.blocks import quiet_nan
from mmaformal.facts.monotone_addition import Added, LastAddition, added
from mmaformal.proof.rules import Theory
from mmaformal.spec import DotAdd
from mmaformal.theory.monotone_steps import Link, conclude_steps


def prove_in_c(theory: Theory, spec: DotAdd) -> None:
    """`two_runs(spec).statement`.  Raises NotProvedError."""
    p, fmt = spec.parameters, spec.d_format
    assert isinstance(p, Muladd)

    def add(c: z3.BitVecRef, product: z3.BitVecRef) -> Added:
        return added(ieee.add(c, product, p.rho, quiet_nan(fmt)))

    runs, last = two_runs(spec), LastAddition(fmt, add)
    theorem = last.prove(theory)
    links: list[Link] = [
        ([(last.other, x.product.result)], (x.result, y.result))
        for x, y in zip(steps_of(runs.first.steps, muladd.Step), runs.second.steps, strict=True)
    ]
    conclude_steps(theory, runs, last.step, theorem, runs.c, links)
