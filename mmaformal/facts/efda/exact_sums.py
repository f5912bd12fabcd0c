"""A step of efda gives d = ρ(c + Σ a·b), as a theorem about codes: all numbers are integers of one fixed point.

`exact_steps` and `sorted_steps` prove what is kept of each term, and what d is ρ of.  These are put together:

1. *sum*:      the sum that is rounded is the exact one, or odd, with room, and less than one unit off (`sorted_sums`
               and `jammed`, or `fixed_sums`);
2. *rounding*: so d is the exact sum rounded (`rounded_sums`);
3. *terms*:    and that is the sum of the numbers of the codes (`sorted_terms`, or `fixed_sums`).
"""

from __future__ import annotations

from dataclasses import dataclass

import z3

from mmaformal.algorithms import Conversion, DotAdd, Efda
from mmaformal.cases.inputs import symbolic_inputs
from mmaformal.encodings.smt import efda
from mmaformal.facts.efda.code_numbers import CodeNumbers
from mmaformal.facts.efda.fixed_sums import FixedSum
from mmaformal.facts.efda.jammed import JammedSum
from mmaformal.facts.efda.near_sums import Shown
from mmaformal.facts.efda.rounded_sums import RoundedOnce
from mmaformal.facts.efda.sorted_sums import SortedSum
from mmaformal.facts.efda.sorted_terms import SortedTerms
from mmaformal.facts.exact_steps import fixed_terms, prove_sticky
from mmaformal.facts.exact_terms import step_of
from mmaformal.facts.fused_steps import one_step
from mmaformal.facts.monotone_sticky import exponents_of, frame_of
from mmaformal.facts.ordered_grid import Grid
from mmaformal.facts.sorted_steps import Sorted, prove_sorted
from mmaformal.proof.fixed_point import FixedPoint
from mmaformal.proof.rules import Theory
from mmaformal.proof.sticky_sums import wide_enough
from mmaformal.proof.wide_numbers import WideNumbers

SPARE = 8  #: bits of the fixed point above the highest number
MARGIN = 4  #: exponents below and above those of a step, for midpoints


@dataclass(frozen=True)
class ExactSum:
    """The theorem of a step, and what it is told in: if nothing is special, d is the sum of the codes' numbers rounded.

    `grid` is not yet proved to keep the order.
    """

    w: WideNumbers
    grid: Grid
    theorem: z3.BoolRef


def prove_exact_sum(theory: Theory, spec: DotAdd) -> ExactSum:
    """Of one step of a model of efda.  Raises NotProvedError."""
    spec = one_step(spec)
    p, step = spec.parameters, step_of(spec, symbolic_inputs(spec))
    assert isinstance(p, Efda)
    if isinstance(step, efda.SortedStep):
        return _prove_sorted(theory, spec, p.rho, step)
    assert isinstance(step, efda.FixedStep)
    return _prove_fixed(theory, spec, p, step)


def _prove_sorted(theory: Theory, spec: DotAdd, rho: Conversion, step: efda.SortedStep) -> ExactSum:
    at = Sorted(spec, step)
    low, high = at.ex.low - at.bits, at.ex.high
    grid = _grid(theory, rho, (low, high), step.sum.total, at.wide)
    prove_sorted(theory, spec, step)
    said, codes = dict(theory.named), CodeNumbers(grid.numbers, spec)
    sums = SortedSum(grid.numbers, at, said)
    shown = JammedSum(grid.numbers, at, said, sums.prove()).prove()
    return _conclude(grid, shown, step, SortedTerms(sums, codes).prove(), codes)


def _prove_fixed(theory: Theory, spec: DotAdd, p: Efda, step: efda.FixedStep) -> ExactSum:
    exponents, frame = exponents_of(spec), frame_of(spec)
    bits = wide_enough(exponents, frame, p.rho)
    grid = _grid(theory, p.rho, (exponents.low - frame, exponents.high), step.sum.total, bits)
    terms, codes = fixed_terms(theory, spec, p, step), CodeNumbers(grid.numbers, spec)
    prove_sticky(theory, terms)
    sums = FixedSum(grid.numbers, step, terms, dict(theory.named), codes)
    shown, same = sums.prove(), sums.prove_codes()
    operands = [*step.a, *step.b, step.c]
    finite = z3.Not(z3.Or([flag for x in operands for flag in (x.infinite, x.nan)]))
    text = "where nothing is special, the operands are finite"
    theory.claim("finite", text, z3.Or(finite, *step.special))
    return _conclude(grid, shown, step, same, codes)


def _grid(
    theory: Theory, rho: Conversion, exponents: tuple[int, int], total: z3.BitVecRef, exponent_bits: int
) -> Grid:
    """The codes of ρ, in a fixed point of numbers between these exponents, of magnitudes no wider than a sum's.

    Its theorems are proved.
    """
    low, high = exponents
    point = FixedPoint(low - MARGIN, high + MARGIN, total.size() + 1, SPARE)
    numbers = WideNumbers(theory, point, exponent_bits)
    numbers.prove()
    return Grid(numbers, rho)


def _conclude(grid: Grid, shown: Shown, step: efda.Step, same: z3.BoolRef, codes: CodeNumbers) -> ExactSum:
    """`same`: that the exact sum is that of the codes."""
    w, code, exact, total = grid.numbers, step.result, shown.exact, codes.total
    once = RoundedOnce(grid, shown.sum, exact, step.special, code)
    rounded = once.prove(shown.claim, shown.in_range, shown.far)
    alike = z3.And(
        grid.rounds(exact, code) == grid.rounds(total, code), grid.is_far(exact) == grid.is_far(total)
    )
    text = "equal numbers are rounded alike"
    alike = w.theory.claim("rounded alike", text, z3.Implies(exact == total, alike), (), [exact, total, code])
    goal = z3.Implies(once.nothing_special, z3.And(grid.rounds(total, code), grid.is_far(total)))
    text = "d is the exact sum of the codes' numbers, rounded once"
    w.follows("rounded sum of codes", text, goal, [rounded, shown.far, alike, same])
    return ExactSum(w, grid, w.theory.theorem(text, goal))
