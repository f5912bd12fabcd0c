"""d grows with c, and with each product.

Say that d' is *not below* d if it is no smaller a number, or one of both is a NaN: what is to be shown of the results
of c ≤ c'.  It is not transitive.  For finite c more holds, which is: d' *keeps* d if either both are NaNs, or neither
is, and d ≤ d'.  So d grows with c, from neighbouring codes of c to any two, and from one step to a chain (`OneStep`):

1. *neighbours*:  of finite neighbours c and c', special values are the same, and where there are none, d and d' are in
                  order (the algorithm's own argument); so d' keeps d;
2. *zeros*:       either zero of c gives the same number;
3. *any two*:     so d' keeps d for any two finite c ≤ c' (the rule `successor`); an infinite c gives itself or a NaN,
                  and a NaN gives a NaN; so of any two codes in order, d' is not below d;
4. *chain*:       each step is an instance of that, with the results before as its c.

Where a step is its exact sum rounded once, it grows with c and with each product (`OrderedSums`): numbers in order are
integers in order, so are the exact sums, which differ in one term, and so are the results, since ρ keeps the order
(`Grid.keeps_order`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Generic, TypeAlias, TypeVar

import z3

from mmaformal.cases.codes import is_infinite, is_nan, sign_bit
from mmaformal.cases.inputs import Inputs, symbolic_inputs
from mmaformal.cases.interfaces import AnyStep, Judged, Rounds
from mmaformal.cases.one_step import one_step, scales_of_step
from mmaformal.cases.out_of_order import TwoRuns, not_below, order, two_runs
from mmaformal.encodings.smt.blocks import Term
from mmaformal.formats import Format, Specials
from mmaformal.proof.composition import Composing
from mmaformal.proof.definitions import at_least
from mmaformal.proof.fixed_sums import total_of
from mmaformal.proof.kernel import NotProvedError, demand
from mmaformal.proof.rules import Successor, Theory, instance
from mmaformal.spec import DotAdd
from mmaformal.theory.fixed_point import Shifted, WideNumbers
from mmaformal.theory.numbers import (
    CodedNumber,
    coded_numbers,
    integer_of_code,
    is_at_most,
    larger_product,
    widened,
)
from mmaformal.theory.rounded_sums import RoundsExactly, SumTheorem, grid_of

JudgedT = TypeVar("JudgedT", bound=Judged, covariant=True)
RoundsT = TypeVar("RoundsT", bound=Rounds, covariant=True)


def keeps_order(x: z3.BitVecRef, y: z3.BitVecRef, fmt: Format) -> z3.BoolRef:
    """Whether both are NaNs, or numbers in order."""
    nan, other = is_nan(x, fmt), is_nan(y, fmt)
    return z3.And(nan == other, z3.Or(nan, order(x) <= order(y)))


def is_special(step: Judged) -> z3.BoolRef:
    return z3.Or(*step.special)


def special_flags(step: Judged) -> list[z3.BoolRef]:
    """The special flags that are no constants."""
    return [flag for flag in step.special if not z3.is_true(flag) and not z3.is_false(flag)]


@dataclass(frozen=True)
class Neighbours(Generic[JudgedT]):
    """A step on a finite code of c, and on the next one of larger magnitude and the same sign."""

    rule: Successor
    small: JudgedT
    large: JudgedT

    @property
    def sign(self) -> z3.BitVecRef:
        return self.rule.sign

    @property
    def finite(self) -> z3.BoolRef:
        """Whether both codes are."""
        return self.rule.is_below_last

    @property
    def none(self) -> z3.BoolRef:
        """Whether nothing is special."""
        return z3.Not(z3.Or(is_special(self.small), is_special(self.large)))

    def in_turn(self, up: z3.BoolRef, down: z3.BoolRef) -> z3.BoolRef:
        """The one for c ≥ 0, else the other."""
        return z3.And(z3.Implies(self.sign == 0, up), z3.Implies(self.sign != 0, down))

    @property
    def ordered(self) -> z3.BoolRef:
        """The claim that an algorithm has to prove: where nothing is special, the results are in order."""
        x, y = order(self.small.result), order(self.large.result)
        return z3.Implies(self.none, self.in_turn(x <= y, y <= x))

    def prove_next(
        self,
        proving: Composing,
        x: Term,
        y: Term,
        larger: z3.BoolRef,
        fraction_bits: int,
        also: Sequence[z3.BoolRef] = (),
        from_zero: Sequence[z3.BoolRef] = (),
    ) -> z3.BoolRef:
        """How c changes from a code, x, to the next, y; or it is as `from_zero` says, if zero has its own exponent.

        `larger` says how its significand grows where the exponent stays; `also` is claimed of both, too.
        """
        signs, (e, f) = [term.sign == self.sign for term in (x, y)], (x.exponent, y.exponent)
        carries = x.significand == -1, z3.ULT(e, f), f == e + 1, y.significand == 1 << fraction_bits
        ways = z3.Or(*from_zero, z3.And(f == e, larger), z3.And(carries))
        text = "the next c has no less in its last place, or the next exponent, or is the least after zero"
        return proving.claim("neighbouring c", text, z3.And(*signs, *also, ways), [self.finite])


@dataclass(frozen=True)
class OneStep(Generic[RoundsT]):
    """A step as a function of the code of c: `step` gives its interfaces, all other inputs being constants."""

    step: Callable[[z3.BitVecRef], RoundsT]
    c: z3.BitVecRef
    c_format: Format
    d_format: Format

    def __post_init__(self) -> None:
        fmt = self.c_format
        whole = fmt.signed and 1 + fmt.exponent_bits + fmt.fraction_bits == fmt.storage_bits
        if fmt.specials != Specials.IEEE or not whole:
            raise NotProvedError("d grows with c", "unknown", f"there is no argument for c of {fmt}")

    @property
    def infinity(self) -> int:
        assert self.c_format.infinity is not None
        return self.c_format.infinity

    @property
    def rule(self) -> Successor:
        relation = partial(keeps_order, fmt=self.d_format)
        return Successor(self.c, self.step(self.c).result, relation, self.infinity - 1)

    @property
    def neighbours(self) -> Neighbours[RoundsT]:
        return Neighbours(self.rule, *map(self.step, self.rule.neighbouring))

    def prove(
        self,
        theory: Theory,
        in_order: Callable[[Theory, Neighbours[RoundsT]], None],
    ) -> z3.BoolRef:
        """For any two codes: if c' is not below c, nor is d' below d.  Raises NotProvedError.

        `in_order` is to prove what gives `Neighbours.ordered`, from that both codes are finite.
        """
        rule, fmt = self.rule, self.d_format
        pair = self.neighbours
        in_order(theory, pair)
        self._prove_neighbours(theory, pair)
        theory.holds("zeros of c", "either zero of c gives the same number", rule.zeros)
        theory.holds("≤ and NaN", "if d'' keeps d', and that d, d'' keeps d", rule.transitive)
        theory.holds("d and d", "d keeps itself", rule.reflexive)
        kept = rule.conclude(theory)
        special = self._prove_special(theory)
        either = [instance(theory, special, [(self.c, code)]) for code in rule.codes]
        x, y = rule.codes
        results = rule.at(x), rule.at(y)
        goal = z3.Implies(not_below(rule.codes, self.c_format), not_below(results, fmt))
        text = "of any two codes of c in order, infinities and NaNs among them, the results are in order"
        theory.claim("any two codes", text, goal, [kept, *either])
        return theory.theorem("c ≤ c' ⇒ d ≤ d' in one step", goal)

    def _prove_neighbours(self, theory: Theory, pair: Neighbours[RoundsT]) -> None:
        x, y, rule = pair.small, pair.large, self.rule
        same = z3.And([u == v for u, v in zip(x.special, y.special, strict=True)])
        text = "special values are those of the other inputs, where c is finite"
        theory.claim("special values of neighbours", text, same, [pair.finite])
        outcomes = [prove_outcome(theory, side, self.d_format) for side in (x, y)]
        claim = rule.in_turn(x.result, y.result)
        text = "so the results of neighbouring codes are in order, or NaNs both"
        theory.claim("results of neighbours", text, claim, [same, *outcomes, pair.ordered])
        theory.theorem("d grows from each finite c to the next", rule.neighbours)

    def _prove_special(self, theory: Theory) -> z3.BoolRef:
        """A NaN gives a NaN, and an infinity itself or a NaN."""
        step, c = self.step(self.c), self.c
        nan, plus, minus = step.special
        infinite, negative = is_infinite(c, self.c_format), sign_bit(c, self.c_format) == 1
        claim = z3.And(
            z3.Implies(is_nan(c, self.c_format), nan),
            z3.Implies(z3.And(infinite, z3.Not(negative)), z3.Or(nan, plus)),
            z3.Implies(z3.And(infinite, negative), z3.Or(nan, z3.And(minus, z3.Not(plus)))),
        )
        text = "a NaN is a NaN, and an infinite c is special as itself, or there is a NaN"
        known = theory.claim("special c", text, claim)
        outcome = prove_outcome(theory, step, self.d_format)
        fmt, d = self.d_format, step.result
        assert fmt.infinity is not None
        d_nan = is_nan(d, fmt)
        goal = z3.And(
            z3.Implies(is_nan(c, self.c_format), d_nan),
            z3.Implies(z3.And(infinite, z3.Not(negative)), z3.Or(d_nan, d == fmt.infinity)),
            z3.Implies(z3.And(infinite, negative), z3.Or(d_nan, d == fmt.infinity | fmt.sign_mask)),
        )
        text = "a NaN gives a NaN, and an infinity itself or a NaN"
        theory.claim("result of a special c", text, goal, [known, outcome])
        return theory.theorem(text, goal)


def prove_outcome(proving: Composing, step: Rounds, fmt: Format) -> z3.BoolRef:
    """d is the special value where there is one, whatever the sum is, and else no NaN."""
    nan, plus, minus = step.special
    demand(fmt.specials == Specials.IEEE, "special codes are those of IEEE 754")
    assert fmt.infinity is not None
    d = step.result
    claim = z3.And(
        z3.Implies(nan, is_nan(d, fmt)),
        z3.Implies(z3.And(plus, z3.Not(nan)), d == fmt.infinity),
        z3.Implies(z3.And(minus, z3.Not(z3.Or(plus, nan))), d == fmt.infinity | fmt.sign_mask),
        z3.Implies(z3.Not(is_special(step)), z3.Not(is_nan(d, fmt))),
    )
    text = "d is the NaN or the infinity that the inputs decide, and a number where they decide nothing"
    return proving.claim("special codes", text, claim)


# ---- the chain ---------------------------------------------------------------------------------------------------

#: A step in a chain: what stands for the theorem's constants, but c; and the results in two runs.
ChainStep: TypeAlias = tuple[Sequence[tuple[z3.ExprRef, z3.ExprRef]], tuple[z3.BitVecRef, z3.BitVecRef]]


def is_same(x: z3.BitVecRef, y: z3.BitVecRef) -> z3.BoolRef:
    """Whether two codes are one."""
    return x == y


def is_same_number(x: z3.BitVecRef, y: z3.BitVecRef, fmt: Format) -> z3.BoolRef:
    """Whether two codes are one, or both NaNs."""
    return z3.And(is_nan(x, fmt) == is_nan(y, fmt), z3.Or(is_nan(x, fmt), x == y))


#: Whether two results are the same, as far as it matters to their order.
SameResult: TypeAlias = Callable[[z3.BitVecRef, z3.BitVecRef], z3.BoolRef]


def prove_chain_in_order(
    theory: Theory,
    step: OneStep[Rounds],
    theorem: z3.BoolRef,
    start: tuple[z3.BitVecRef, z3.BitVecRef],
    links: Sequence[ChainStep],
    same: SameResult = is_same,
) -> None:
    """Prove from two c, in order, that what each step of a chain gives is.  Raises NotProvedError.

    `theorem` is what `step.prove` gave; a link's results are to be the same as those of the step alone.
    """
    rule, given = step.rule, start
    text = "a step of the chain is a step of its own, whose c is the result before"
    for i, (pairs, results) in enumerate(links, 1):
        said = instance(theory, theorem, [*pairs, *zip(rule.codes, given, strict=True)])
        first, second = (z3.substitute(rule.result, *pairs, (step.c, c)) for c in given)
        alone = first, second
        demand(
            said.eq(z3.Implies(not_below(given, step.c_format), not_below(alone, step.d_format))),
            "what is said of one step is not what is taken of it",
        )
        same_results(theory, f"step {i}", text, results, alone, step.d_format, same)
        given = results


def prove_steps(
    theory: Theory, runs: TwoRuns, step: OneStep[Rounds], theorem: z3.BoolRef, same: SameResult = is_same
) -> None:
    """Prove `runs.statement` of a model whose steps take the result before as their c.  Raises NotProvedError."""
    links = links_of(runs.spec, runs.first.steps, runs.second.steps)
    conclude_steps(theory, runs, step, theorem, runs.c, links, same)


def prove_steps_in_c(
    theory: Theory,
    spec: DotAdd,
    step: Callable[[DotAdd, Inputs], RoundsT],
    in_order: Callable[[Theory, DotAdd, Neighbours[RoundsT]], None],
    same: SameResult = is_same,
) -> None:
    """Prove `two_runs(spec).statement`, from what `in_order` proves of one step, as in `OneStep.prove`.

    `step` gives the interfaces of one step on any inputs.  Raises NotProvedError.
    """
    one = one_step(spec)
    inputs = symbolic_inputs(one)
    of_c = OneStep(lambda c: step(one, replace(inputs, c=c)), inputs.c, spec.c_format, spec.d_format)
    theorem = of_c.prove(theory, lambda proving, runs: in_order(proving, one, runs))
    prove_steps(theory, two_runs(spec), of_c, theorem, same)


def links_of(
    spec: DotAdd,
    first: Sequence[AnyStep],
    second: Sequence[AnyStep],
    start: int = 0,
) -> list[ChainStep]:
    """Return the links of the steps of two runs, from one on."""
    alone, L = symbolic_inputs(one_step(spec)), spec.parameters.step_products
    x = symbolic_inputs(spec)
    links: list[ChainStep] = []
    for i, pair in list(enumerate(zip(first, second, strict=True)))[start:]:
        k = slice(i * L, (i + 1) * L)
        scales = [scales_of_step(spec, each, k.start) for each in (x.scale_a, x.scale_b)]
        mine = [*x.a[k], *x.b[k], *scales[0], *scales[1]]
        own = [*alone.a, *alone.b, *alone.scale_a, *alone.scale_b]
        links.append((list(zip(own, mine, strict=True)), (pair[0].result, pair[1].result)))
    return links


def conclude_steps(
    theory: Theory,
    runs: TwoRuns,
    step: OneStep[Rounds],
    theorem: z3.BoolRef,
    start: tuple[z3.BitVecRef, z3.BitVecRef],
    links: Sequence[ChainStep],
    same: SameResult = is_same,
) -> None:
    """Prove `runs.statement`, where the first step takes `start` as its c."""
    prove_chain_in_order(theory, step, theorem, start, links, same)
    last: tuple[z3.BitVecRef, z3.BitVecRef] = runs.first.steps[-1].result, runs.second.steps[-1].result
    ends = runs.first.result, runs.second.result
    same_results(theory, "result", "the result is the last step's", ends, last, runs.spec.d_format)
    theory.theorem("c ≤ c' ⇒ d ≤ d', all else the same", runs.statement)


def same_results(
    theory: Theory,
    name: str,
    text: str,
    results: tuple[z3.BitVecRef, z3.BitVecRef],
    others: tuple[z3.BitVecRef, z3.BitVecRef],
    fmt: Format,
    same: SameResult = is_same,
) -> None:
    """Prove that two results are the same as two others, so that they are in order if those are."""
    apart = [(mine, other) for mine, other in zip(results, others, strict=True) if not mine.eq(other)]
    if apart:
        alike = [theory.claim(name, text, same(mine, other)) for mine, other in apart]
        known, claim = not_below(others, fmt), not_below(results, fmt)
        theory.claim(f"{name} in order", text, claim, [*alike, known])


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
    """Prove that d of the whole chain grows with product k, from one step, and from d's growing with c."""
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
    prove_chain_in_order(theory, one, grows, start, links_of(spec, first, second, i + 1))
    ends, last = [trace.result for trace in runs.traces], (first[-1].result, second[-1].result)
    text = "the result is the last step's"
    same_results(theory, f"result, {k}", text, (ends[0], ends[1]), last, spec.d_format)
    theory.theorem(f"d is not smaller if product {k} is not", runs.statement)


def _instance(theory: Theory, theorem: z3.BoolRef, pairs: list[tuple[z3.ExprRef, z3.ExprRef]]) -> z3.BoolRef:
    return instance(theory, theorem, pairs) if pairs else theorem


@dataclass(frozen=True)
class OrderedSums:
    """A model whose steps round their exact sum once, and the theorems of that."""

    model: RoundsExactly
    exact: SumTheorem

    @classmethod
    def of(cls, theory: Theory, model: RoundsExactly) -> OrderedSums:
        """After proving those theorems.  Raises NotProvedError."""
        exact = model.prove(grid_of(theory, model.spec.parameters.last_rounding, model.span))
        exact.grid.prove()
        return cls(model, exact)

    @property
    def spec(self) -> DotAdd:
        return self.model.spec

    @property
    def w(self) -> WideNumbers:
        return self.exact.w

    @property
    def inputs(self) -> Inputs:
        return symbolic_inputs(self.spec)

    def prove_in_c(self) -> tuple[OneStep[Rounds], z3.BoolRef]:
        """Prove that d grows with c in one step; return the step and what `OneStep.prove` gives."""
        spec, inputs = self.spec, self.inputs
        run = self.model.run
        one = OneStep(lambda c: run(replace(inputs, c=c)), inputs.c, spec.c_format, spec.d_format)
        smaller, larger = one.rule.codes
        steps = one.step(smaller), one.step(larger)
        runs = replace(inputs, c=smaller), replace(inputs, c=larger)
        results = not_below((one.rule.at(smaller), one.rule.at(larger)), spec.d_format)
        goal = z3.Implies(not_below((smaller, larger), spec.c_format), results)
        self._prove_larger(runs, steps, len(inputs.a), goal)
        return one, self.w.theory.theorem("c ≤ c' ⇒ d ≤ d' in one step", goal)

    def prove_in_product(self, k: int) -> z3.BoolRef:
        """`larger_product(spec, k).statement`, of one step: the results are those of `model.run`."""
        runs = larger_product(self.spec, k)
        first, second = (self.model.run(x) for x in (runs.x, runs.y))
        in_order = not_below((first.result, second.result), self.spec.d_format)
        self._prove_larger((runs.x, runs.y), (first, second), k, z3.Implies(runs.premises[0], in_order))
        statement = z3.Implies(z3.And(runs.premises), in_order)
        return self.w.theory.theorem("a·b ≤ a'·b' ⇒ d ≤ d' in one step", statement)

    def _prove_larger(
        self, runs: tuple[Inputs, Inputs], steps: tuple[Rounds, Rounds], k: int, goal: z3.BoolRef
    ) -> None:
        """`goal`: that results are in order if the k-th numbers of two runs are, which is its premise."""
        theory, premise, fmt = self.w.theory, goal.arg(0), self.spec.d_format
        x, y = (coded_numbers(self.spec, run)[k] for run in runs)
        integers = self._prove_numbers(x, y)
        result = self._prove_results(runs, steps, k, integers.arg(1))
        special = [is_special(step) for step in steps]
        none = z3.Not(z3.Or(special))
        finite, given = z3.Not(z3.Or(x.infinite, y.infinite)), is_at_most(x, y)
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

    def _prove_numbers(self, x: CodedNumber, y: CodedNumber) -> z3.BoolRef:
        """Prove that of finite numbers in order, the integers are."""
        w, given = self.w, z3.And(is_at_most(x, y), z3.Not(z3.Or(x.infinite, y.infinite)))
        order = self._prove_magnitudes(x, y)
        x, y = (widened(n, w.exponent_bits) for n in (x, y))
        sizes = [Shifted(n.significand, n.exponent) for n in (x, y)]
        rooms = [w.roomy(size, w.point.in_range(size.t)) for size in sizes]
        u, v = (w.value(size) for size in sizes)
        mine, other = integer_of_code(w, x), integer_of_code(w, y)
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

    def _prove_magnitudes(self, x: CodedNumber, y: CodedNumber) -> list[z3.BoolRef]:
        """Prove that `at_least` of two finite numbers, as it is in `is_at_most`, says that a difference is not
        negative."""
        w, bits = self.w, x.exponent.size()
        far, text = (1 << (bits - 2)) - 1, "exponents are in their range"
        narrow = [
            w.theory.claim("exponent", text, z3.And(n.exponent >= -far, n.exponent <= far)) for n in (x, y)
        ]
        wider = [Shifted(n.significand, widened(n, w.exponent_bits).exponent) for n in (x, y)]
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
        """Prove that of runs that differ in the k-th number alone, results are in order if the integers are
        (`ordered`)."""
        w, grid, point = self.w, self.exact.grid, self.w.point
        own, said, values = self.inputs, [], []
        for run in runs:
            pairs = zip([*own.a, *own.b, own.c], [*run.a, *run.b, run.c], strict=True)
            said.append(_instance(w.theory, self.exact.theorem, [(u, v) for u, v in pairs if not u.eq(v)]))
            numbers = [widened(n, w.exponent_bits) for n in coded_numbers(self.spec, run)]
            values.append([integer_of_code(w, n) for n in numbers])
        x, y = (total_of(each) for each in values)
        gain = values[1][k] - values[0][k]
        text = "the exact sums differ as the term does"
        differ = w.theory.claim("difference of sums", text, y - x == gain)
        claim, text = z3.Implies(y - x == gain, (y - x >= 0) == (gain >= 0)), "so they are in order"
        moved = w.theory.claim("sums in order", text, claim)
        first, second = (step.result for step in steps)
        d, e = grid.codes
        kept = instance(w.theory, grid.keeps_order, [(point.x, x), (point.y, y), (d, first), (e, second)])
        none = [z3.Not(is_special(step)) for step in steps]
        ends = order(first) <= order(second)
        claim = z3.Implies(z3.And(*none, ordered), ends)
        return w.theory.claim("results in order", "so are the results", claim, [*said, differ, moved, kept])
