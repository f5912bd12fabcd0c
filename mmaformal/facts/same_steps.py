"""Two models whose steps give the same code for the same c, chained: equal at every length."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import z3

from mmaformal.cases.inputs import Inputs
from mmaformal.cases.interfaces import AnyStep
from mmaformal.proof.composition import Composing
from mmaformal.proof.cuts import compared
from mmaformal.proof.kernel import NotProvedError
from mmaformal.solver.answers import Proof
from mmaformal.solver.asking import Asker

X = TypeVar("X", bound=AnyStep)
Y = TypeVar("Y", bound=AnyStep)

#: A step of some products and c.
Taking = Callable[[slice, z3.BitVecRef], X]


def prove_same_steps(
    asker: Asker,
    inputs: Inputs,
    size: int,
    steps: tuple[Taking[X], Taking[Y]],
    same: Callable[[Composing, X, Y, z3.BitVecRef], z3.BoolRef],
) -> Proof | None:
    """Prove that two models agree on all inputs; None if a claim was refuted or not settled in the time given.

    size: products of a step.  same: proves and returns that both steps, of the same codes and this c, give one code.
    """
    proving, c, other_c = Composing(asker), inputs.c, inputs.c
    try:
        for start in range(0, len(inputs.a), size):
            taken = slice(start, start + size)
            left, right = (step(taken, c) for step in steps)
            equal = same(proving, left, right, c)  # type: ignore[arg-type]
            if other_c is not c:
                after = steps[1](taken, other_c).result
                text = "a step from the same c gives the same result"
                same_result = right.result == after
                both = [c == other_c]
                from_other = proving.claim("next step", text, same_result, both, compared(both))
                text = "so in a chain the results of each step are equal"
                equal = proving.claim("next result", text, left.result == after, [equal, from_other])
                other_c = after
            else:
                other_c = right.result
            c = left.result
        proving.conclude("both give the same code for every input", equal)
    except NotProvedError:
        return None
    return proving.proof()
