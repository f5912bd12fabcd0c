"""d grows with c, of a step of fdrda or gfdrda: no sum wraps, that of products does not depend on c, and every cut is
toward −∞, on a grid that the next c can only make coarser by one bit."""

from __future__ import annotations

import z3

from mmaformal.cases.falling_products import falls_with_a_product, random_searches
from mmaformal.cases.out_of_order import OutOfOrder
from mmaformal.encodings.fdrda import Fdrda
from mmaformal.encodings.fdrda import smt as fdrda
from mmaformal.encodings.fdrda.proofs.bounds import prove_sum_of_groups, step_of
from mmaformal.encodings.fdrda.proofs.stages import AnyFdrda
from mmaformal.encodings.gfdrda import smt as gfdrda
from mmaformal.instruction import Instruction
from mmaformal.proof.composition import Composing
from mmaformal.proof.fixed_sums import accumulate, limited, wide
from mmaformal.proof.rules import Theory
from mmaformal.spec import DotAdd
from mmaformal.theory.monotone import Neighbours, prove_steps_in_c


def prove_ranges(proving: Composing, p: Fdrda, step: AnyFdrda) -> None:
    """No sum of products wraps, and how large they, what is left of them, and c are at most."""
    sums = step.groups if isinstance(step, gfdrda.GfdrdaStep) else (step.dot,)
    bound, text = fdrda.dot_bound(p, p.L), "a sum of products is at most that of their bounds"
    for members, total in zip(p.members(), sums, strict=True):
        terms = [(step.products[k].sign, step.aligned[k]) for k in members]
        bounds = [(1 << magnitude.size()) - 1 for _, magnitude in terms]
        small = [z3.ULE(magnitude, each) for (_, magnitude), each in zip(terms, bounds, strict=True)]
        known = accumulate(proving, total, terms, bounds, small).prove_range(proving)
        proving.claim("range of a sum", text, limited(total, sum(bounds)), [known])
    if isinstance(step, gfdrda.GfdrdaStep):
        known = prove_sum_of_groups(proving, p, step).prove_range(proving)
        proving.claim("range of both", text, limited(step.dot, bound), [known])
    text, cut = "the dot product is no larger when cut", limited(step.dot_cut, bound << (p.dot_bits - p.F))
    proving.claim("range of the dot product", text, cut, [limited(step.dot, bound)])
    proving.claim("range of c", "c is below 2", limited(step.c_cut, 1 << (p.F + 1)))


def prove_in_c(theory: Theory, spec: DotAdd) -> None:
    """`two_runs(spec).statement`.  Raises NotProvedError."""
    prove_steps_in_c(theory, spec, step_of, _prove_in_order)


def _prove_in_order(proving: Composing, spec: DotAdd, runs: Neighbours[AnyFdrda]) -> None:
    """Prove what gives `runs.ordered`, from that both c are finite.  Raises NotProvedError."""
    p, fmt, ex = spec.parameters_as(Fdrda), spec.c_format, fdrda.exponents_of(spec)
    x, y = runs.small, runs.large
    bound = fdrda.dot_bound(p, p.L)
    e0, e1, E0, E1 = x.addend.exponent, y.addend.exponent, x.e_max, y.e_max
    s0, s1, M = x.addend.significand, y.addend.significand, fmt.fraction_bits
    low, high = ex.constant(fmt.min_exponent), ex.constant(ex.high)
    ranges, larger = (z3.UGE(e0, low), z3.ULE(e1, high)), z3.And(s1 == s0 + 1, s0 != -1)
    step = runs.prove_next(proving, x.addend, y.addend, larger, M, ranges)
    risen = [z3.And(E0 + rise == E1, z3.ULE(E0, E1)) for rise in (0, 1)]
    maxima = proving.claim(
        "e_max of neighbours",
        "e_max stays, or rises by one with c",
        z3.And(
            z3.ULE(x.e_dot, E0),
            z3.ULE(e0, E0),
            z3.ULE(e1, E1),
            z3.Or(E1 == E0, z3.And(risen[1], e0 == E0, e1 == E1, s0 == -1)),
        ),
        [step],
    )
    proving.claim("rise of e_max", "so it rises by 0 or 1", z3.Or(risen), [maxima])
    for side in (x, y):
        prove_ranges(proving, p, side)
    text = "e_max is in its range"
    highest = proving.claim("e_max in range", text, z3.ULE(E1, high))
    lowest = proving.claim("least e_max", text, z3.UGE(E0, low), [step, maxima])
    small = limited(x.dot, bound)  # from `prove_ranges`
    reach = (bound + (1 << (p.F + 1))) << (p.dot_bits - p.F)
    for rise, way in enumerate(risen):
        bits = x.total.size() + rise + 1
        a, b = wide(x.total, bits), wide(y.total, bits) << rise
        ordered = runs.in_turn(a <= b, a >= b)
        in_range = z3.And([z3.And(t <= reach, t >= -reach) for t in (x.total, y.total)])
        sums = proving.claim(
            f"sums of neighbours, {rise}",
            f"where e_max rises by {rise}, the sum with the larger c is the larger",
            z3.Implies(way, z3.And(ordered, in_range)),
            [step, maxima, small],
        )
        text = f"sums in order are rounded in order, where e_max is {rise} higher for the larger c"
        claim = z3.Implies(way, runs.ordered)
        given = [sums, highest, lowest]
        proving.claim(f"rounding with e_max {rise} higher", text, claim, given)


def in_product(instruction: Instruction) -> OutOfOrder | None:
    """An input on which a larger product gives a smaller d."""
    spec, p = instruction.spec, instruction.spec.parameters_as(Fdrda)
    return falls_with_a_product(instruction, random_searches(spec, p.F))
