"""d grows with c, and with each product, where a step is its exact sum rounded once (`rounded_exactly`).

1. *terms*:  of numbers in order, as codes have them, the integers of the fixed point are in order;
2. *sums*:   so are the exact sums, which differ in one term;
3. *order*:  so are the results, since ρ keeps the order (`Grid.keeps_order`);
4. *special values* and *chain*, as for other algorithms (`monotone_steps`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import cast

import z3

from mmaformal.cases.inputs import Inputs, symbolic_inputs
from mmaformal.cases.interfaces import AnyStep, Rounds
from mmaformal.cases.one_step import one_step
from mmaformal.cases.out_of_order import not_below, order, two_runs
from mmaformal.encodings import smt
from mmaformal.proof.definitions import at_least
from mmaformal.proof.kernel import NotProvedError
from mmaformal.proof.larger_products import Number, at_most, larger_product
from mmaformal.proof.rules import Theory, instance
from mmaformal.proof.wide_numbers import Scaled, WideNumbers
from mmaformal.spec import DotAdd
from mmaformal.theory.code_numbers import integer_of, numbers_of, total_of, widened
from mmaformal.theory.monotone_steps import (
    OneStep,
    any_special,
    links_of,
    prove_chain,
    prove_outcome,
    prove_steps,
    same_results,
)
from mmaformal.theory.rounded_exactly import ExactSum, RoundsExactly, grid_of


def prove_in_c(theory: Theory, spec: DotAdd, model: RoundsExactly) -> None:
    """`two_runs(spec).statement`, `model` being a step.  Raises NotProvedError."""
    one, theorem = OrderedSums.of(theory, model).prove_in_c()
    prove_steps(theory, two_runs(spec), one, theorem)


def prove_in_products(theory: Theory, spec: DotAdd, model: RoundsExactly) -> None:
    """`larger_product(spec, k).statement` of each k, `model` being a step.  Raises NotProvedError."""
    sums, L = OrderedSums.of(theory, model), spec.parameters.step_products
    theorems = [sums.prove_in_product(j) for j in range(L)]
    one, grows = sums.prove_in_c()
    for k in range(spec.k):
        _prove_product(theory, spec, k, theorems[k % L], one, grows)


def _prove_product(
    theory: Theory, spec: DotAdd, k: int, theorem: z3.BoolRef, one: OneStep[Rounds], grows: z3.BoolRef
) -> None:
    """Of the whole chain, from one step, and from its growing with c."""
    L = spec.parameters.step_products
    i, j = divmod(k, L)
    runs, alone = larger_product(spec, k), larger_product(one_step(spec), j)
    first, second = (trace.steps for trace in runs.traces)
    c = first[i - 1].result if i else runs.x.c
    at = slice(i * L, (i + 1) * L)
    own = [*alone.x.a, *alone.x.b, alone.y.a[j], alone.y.b[j], alone.x.c]
    mine = [*runs.x.a[at], *runs.x.b[at], runs.y.a[k], runs.y.b[k], c]
    pairs = [(u, v) for u, v in zip(own, mine, strict=True) if not u.eq(v)]
    _instance(theory, theorem, pairs)
    said = [z3.substitute(trace.result, *pairs) if pairs else trace.result for trace in alone.traces]
    start = first[i].result, second[i].result
    text = "a step of the chain is a step of its own, whose c is the result before"
    same_results(theory, f"product {k}", text, start, (said[0], said[1]), spec.d_format)
    prove_chain(theory, one, grows, start, links_of(spec, first, second, i + 1))
    ends, last = [trace.result for trace in runs.traces], (first[-1].result, second[-1].result)
    text = "the result is the last step's"
    same_results(theory, f"result, {k}", text, (ends[0], ends[1]), last, spec.d_format)
    theory.theorem(f"d is not smaller if product {k} is not", runs.statement)


def _instance(theory: Theory, theorem: z3.BoolRef, pairs: list[tuple[z3.ExprRef, z3.ExprRef]]) -> z3.BoolRef:
    return instance(theory, theorem, pairs) if pairs else theorem


def _rounds(step: AnyStep) -> Rounds:
    """A step of a model that rounds its exact sum: it has special values, and what is rounded."""
    return cast("Rounds", step)


def _step(spec: DotAdd, x: Inputs) -> Rounds:
    return _rounds(smt.dot_add(spec, x.a, x.b, x.c).steps[0])


@dataclass(frozen=True)
class OrderedSums:
    """A model whose steps round their exact sum once, and the theorems of that."""

    spec: DotAdd
    exact: ExactSum

    @classmethod
    def of(cls, theory: Theory, model: RoundsExactly) -> OrderedSums:
        """After proving those theorems.  Raises NotProvedError."""
        spec = model.spec
        exact = model.prove(grid_of(theory, spec.parameters.last_rounding, model.span))
        exact.grid.prove()
        return cls(spec, exact)

    @property
    def w(self) -> WideNumbers:
        return self.exact.w

    @property
    def inputs(self) -> Inputs:
        return symbolic_inputs(self.spec)

    def prove_in_c(self) -> tuple[OneStep[Rounds], z3.BoolRef]:
        """What `OneStep.prove` gives."""
        spec, inputs = self.spec, self.inputs
        one = OneStep(lambda c: _step(spec, replace(inputs, c=c)), inputs.c, spec.c_format, spec.d_format)
        smaller, larger = one.rule.codes
        steps = one.step(smaller), one.step(larger)
        runs = replace(inputs, c=smaller), replace(inputs, c=larger)
        results = not_below((one.rule.at(smaller), one.rule.at(larger)), spec.d_format)
        goal = z3.Implies(not_below((smaller, larger), spec.c_format), results)
        self._prove_larger(runs, steps, len(inputs.a), goal)
        return one, self.w.theory.theorem("c ≤ c' ⇒ d ≤ d' in one step", goal)

    def prove_in_product(self, k: int) -> z3.BoolRef:
        """`larger_product(spec, k).statement`, of one step."""
        runs = larger_product(self.spec, k)
        first, second = (_rounds(trace.steps[0]) for trace in runs.traces)
        goal = z3.Implies(runs.premises[0], runs.in_order)
        self._prove_larger((runs.x, runs.y), (first, second), k, goal)
        return self.w.theory.theorem("a·b ≤ a'·b' ⇒ d ≤ d' in one step", runs.statement)

    def _prove_larger(
        self, runs: tuple[Inputs, Inputs], steps: tuple[Rounds, Rounds], k: int, goal: z3.BoolRef
    ) -> None:
        """`goal`: that results are in order if the k-th numbers of two runs are, which is its premise."""
        theory, premise, fmt = self.w.theory, goal.arg(0), self.spec.d_format
        x, y = (numbers_of(self.spec, run)[k] for run in runs)
        integers = self._prove_numbers(x, y)
        result = self._prove_results(runs, steps, k, integers.arg(1))
        special = [any_special(step) for step in steps]
        none = z3.Not(z3.Or(special))
        finite, given = z3.Not(z3.Or(x.infinite, y.infinite)), at_most(x, y)
        # Of products nothing is known but what the premise says of them.
        text = "where nothing is special, the numbers are finite and in order"
        claim = z3.Implies(z3.And(premise, none), z3.And(finite, given))
        known = theory.claim("numbers", text, claim)
        first, second = (step.result for step in steps)
        ends = order(first) <= order(second)
        claim = z3.Implies(z3.And(premise, none), ends)
        ordered = theory.claim("results", "so are the results", claim, [known, integers, result])
        (nan, plus, minus), (nan_y, plus_y, _) = (step.special for step in steps)
        ways = z3.Or(none, nan, nan_y, z3.And(minus, z3.Not(plus)), z3.And(plus_y, z3.Not(nan_y)))
        text = "where something is special, there is a NaN, or the first is −∞, or the second +∞"
        ways = theory.claim("specials", text, z3.Implies(premise, ways))
        outcomes = [prove_outcome(theory, step, fmt) for step in steps]
        mine = z3.Implies(premise, not_below((first, second), fmt))
        theory.claim("in order", "so the results are in order", mine, [ways, *outcomes, ordered])
        if not mine.eq(goal):
            raise NotProvedError("the results are in order", "unknown", "they are not those of the steps")

    # ---- numbers in order are integers in order

    def _prove_numbers(self, x: Number, y: Number) -> z3.BoolRef:
        """That of finite numbers in order, the integers are."""
        w, given = self.w, z3.And(at_most(x, y), z3.Not(z3.Or(x.infinite, y.infinite)))
        order = self._prove_magnitudes(x, y)
        x, y = (widened(n, w.exponent_bits) for n in (x, y))
        sizes = [Scaled(n.significand, n.exponent) for n in (x, y)]
        rooms = [w.roomy(size, w.point.in_range(size.t)) for size in sizes]
        u, v = (w.value(size) for size in sizes)
        mine, other = integer_of(w, x), integer_of(w, y)
        goal, cases, text = other - mine >= 0, [], "numbers in order are integers in order"
        zero = z3.And(x.significand == 0, y.significand == 0)
        ways = (
            ((0, 0), v - u >= 0, v - u),
            ((1, 1), u - v >= 0, -v - (-u)),
            ((1, 0), z3.BoolVal(True), v + u),
            ((0, 1), zero, -v - u),
        )
        for (s, t), condition, difference in ways:
            where = z3.And(x.sign == s, y.sign == t)
            claim = z3.Implies(where, other - mine == difference)
            same = w.theory.claim("difference by sign", "with their signs", claim)
            claim = z3.Implies(condition, difference >= 0)
            grows = w.theory.claim(f"difference, {s}, {t}", text, claim, rooms)
            claim = z3.Implies(other - mine == difference, goal == (difference >= 0))
            moved = w.theory.claim("equal differences", text, claim)
            claim = z3.Implies(z3.And(where, given), condition)
            said = w.theory.claim("way", "by their signs", claim, order)
            claim = z3.Implies(z3.And(where, given), goal)
            cases.append(w.theory.claim("in order", text, claim, [same, grows, moved, said]))
        return w.theory.claim("integers in order", text, z3.Implies(given, goal), cases)

    def _prove_magnitudes(self, x: Number, y: Number) -> list[z3.BoolRef]:
        """That `at_least` of two finite numbers, as it is in `at_most`, says that a difference is not negative."""
        w, bits = self.w, x.exponent.size()
        far, text = (1 << (bits - 2)) - 1, "exponents are in their range"
        narrow = [
            w.theory.claim("exponent", text, z3.And(n.exponent >= -far, n.exponent <= far)) for n in (x, y)
        ]
        wider = [Scaled(n.significand, widened(n, w.exponent_bits).exponent) for n in (x, y)]
        ranges = [w.theory.claim("wide exponent", text, w.point.in_range(size.t)) for size in wider]
        claims = []
        for i, j in ((1, 0), (0, 1)):
            (m, t), (n, q) = ((z.significand, z.exponent) for z in ((x, y)[i], (x, y)[j]))
            old, new = at_least(m, t, n, q), at_least(*wider[i], *wider[j])
            text = "widths do not matter"
            same = w.theory.claim("wider exponents", text, old == new, narrow)
            u, v = w.value(wider[i]), w.value(wider[j])
            known = [same, w.difference(wider[i], wider[j], ranges)]
            claims.append(w.theory.claim("magnitudes", "that is the difference", old == (u - v >= 0), known))
        return claims

    # ---- sums in order are rounded to results in order

    def _prove_results(
        self, runs: tuple[Inputs, Inputs], steps: tuple[Rounds, Rounds], k: int, ordered: z3.BoolRef
    ) -> z3.BoolRef:
        """That of runs that differ in the k-th number alone, results are in order if the integers are (`ordered`)."""
        w, grid, point = self.w, self.exact.grid, self.w.point
        own, said, values = self.inputs, [], []
        for run in runs:
            pairs = zip([*own.a, *own.b, own.c], [*run.a, *run.b, run.c], strict=True)
            said.append(_instance(w.theory, self.exact.theorem, [(u, v) for u, v in pairs if not u.eq(v)]))
            numbers = [widened(n, w.exponent_bits) for n in numbers_of(self.spec, run)]
            values.append([integer_of(w, n) for n in numbers])
        x, y = (total_of(each) for each in values)
        gain = values[1][k] - values[0][k]
        text = "the exact sums differ as the term does"
        differ = w.theory.claim("difference of sums", text, y - x == gain)
        claim, text = z3.Implies(y - x == gain, (y - x >= 0) == (gain >= 0)), "so they are in order"
        moved = w.theory.claim("sums in order", text, claim)
        first, second = (step.result for step in steps)
        d, e = grid.codes
        kept = instance(w.theory, grid.keeps_order, [(point.x, x), (point.y, y), (d, first), (e, second)])
        none = [z3.Not(any_special(step)) for step in steps]
        ends = order(first) <= order(second)
        claim = z3.Implies(z3.And(*none, ordered), ends)
        return w.theory.claim("results in order", "so are the results", claim, [*said, differ, moved, kept])
