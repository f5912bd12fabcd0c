"""d grows with c: from neighbouring codes of c to any two, and from one step to a chain of them.

Say that d' is *not below* d if it is no smaller a number, or one of both is a NaN: what is to be shown of the results
of c ≤ c'.  It is not transitive.  For finite c more holds, which is: d' *keeps* d if either both are NaNs, or neither
is, and d ≤ d'.  So

1. *neighbours*:  of finite neighbours c and c', special values are the same, and where there are none, d and d' are in
                  order (the algorithm's own argument); so d' keeps d;
2. *zeros*:       either zero of c gives the same number;
3. *any two*:     so d' keeps d for any two finite c ≤ c' (the rule `successor`); an infinite c gives itself or a NaN,
                  and a NaN gives a NaN; so of any two codes in order, d' is not below d;
4. *chain*:       each step is an instance of that, with the results before as its c.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Generic, TypeAlias, TypeVar

import z3

from mmaformal.cases.codes import is_infinite, is_nan, sign_bit
from mmaformal.cases.inputs import Inputs, symbolic_inputs
from mmaformal.cases.interfaces import AnyStep, Judged, Rounds
from mmaformal.cases.one_step import one_step, scales_of_step
from mmaformal.cases.out_of_order import TwoRuns, not_below, order
from mmaformal.formats import Format, Specials
from mmaformal.proof.composition import Composing
from mmaformal.proof.kernel import NotProvedError, demand
from mmaformal.proof.rules import Successor, Theory, instance
from mmaformal.spec import DotAdd

JudgedT = TypeVar("JudgedT", bound=Judged, covariant=True)
RoundsT = TypeVar("RoundsT", bound=Rounds, covariant=True)


def keeps(x: z3.BitVecRef, y: z3.BitVecRef, fmt: Format) -> z3.BoolRef:
    """Whether both are NaNs, or numbers in order."""
    nan, other = is_nan(x, fmt), is_nan(y, fmt)
    return z3.And(nan == other, z3.Or(nan, order(x) <= order(y)))


def any_special(step: Judged) -> z3.BoolRef:
    return z3.Or(*step.special)


def flags(step: Judged) -> list[z3.BoolRef]:
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
        return z3.Not(z3.Or(any_special(self.small), any_special(self.large)))

    @property
    def ordered(self) -> z3.BoolRef:
        """What an algorithm has to show: where nothing is special, the results are in order."""
        x, y = order(self.small.result), order(self.large.result)
        plus = self.sign == 0
        in_order = z3.And(z3.Implies(plus, x <= y), z3.Implies(z3.Not(plus), y <= x))
        return z3.Implies(self.none, in_order)


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
        relation = partial(keeps, fmt=self.d_format)
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
    assert fmt.infinity is not None
    demand(fmt.specials == Specials.IEEE, "special codes are those of IEEE 754")
    d = step.result
    claim = z3.And(
        z3.Implies(nan, is_nan(d, fmt)),
        z3.Implies(z3.And(plus, z3.Not(nan)), d == fmt.infinity),
        z3.Implies(z3.And(minus, z3.Not(z3.Or(plus, nan))), d == fmt.infinity | fmt.sign_mask),
        z3.Implies(z3.Not(any_special(step)), z3.Not(is_nan(d, fmt))),
    )
    text = "d is the NaN or the infinity that the inputs decide, and a number where they decide nothing"
    return proving.claim("special codes", text, claim)


# ---- the chain ---------------------------------------------------------------------------------------------------

#: Of a step in a chain: what stands for the theorem's constants, but c; and the results in two runs.
Link: TypeAlias = tuple[Sequence[tuple[z3.ExprRef, z3.ExprRef]], tuple[z3.BitVecRef, z3.BitVecRef]]


def is_same(x: z3.BitVecRef, y: z3.BitVecRef) -> z3.BoolRef:
    """Whether two codes are one."""
    return x == y


def is_same_number(x: z3.BitVecRef, y: z3.BitVecRef, fmt: Format) -> z3.BoolRef:
    """Whether two codes are one, or both NaNs."""
    return z3.And(is_nan(x, fmt) == is_nan(y, fmt), z3.Or(is_nan(x, fmt), x == y))


#: Whether two results are the same, as far as it matters to their order.
Same: TypeAlias = Callable[[z3.BitVecRef, z3.BitVecRef], z3.BoolRef]


def prove_chain(
    theory: Theory,
    step: OneStep[Rounds],
    theorem: z3.BoolRef,
    start: tuple[z3.BitVecRef, z3.BitVecRef],
    links: Sequence[Link],
    same: Same = is_same,
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


def prove_steps(theory: Theory, runs: TwoRuns, step: OneStep[Rounds], theorem: z3.BoolRef) -> None:
    """The same of a model whose steps take the result before as their c: `runs.statement`.  Raises NotProvedError."""
    links = links_of(runs.spec, runs.first.steps, runs.second.steps)
    conclude_steps(theory, runs, step, theorem, runs.c, links)


def links_of(
    spec: DotAdd,
    first: Sequence[AnyStep],
    second: Sequence[AnyStep],
    start: int = 0,
    taken: Callable[[Inputs], Inputs] = lambda x: x,
    inner: DotAdd | None = None,
) -> list[Link]:
    """Of the steps of two runs, from one on; each is a step of `inner`, if that is another model, on the codes that
    `taken` makes of the inputs."""
    alone, L = symbolic_inputs(one_step(inner or spec)), spec.parameters.step_products
    x = taken(symbolic_inputs(spec))
    links: list[Link] = []
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
    links: Sequence[Link],
    same: Same = is_same,
) -> None:
    """Prove `runs.statement`, where the first step takes `start` as its c."""
    prove_chain(theory, step, theorem, start, links, same)
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
    same: Same = is_same,
) -> None:
    """Prove that two results are the same as two others, so that they are in order if those are."""
    pairs = list(zip(results, others, strict=True))
    alike = [theory.claim(name, text, same(mine, other)) for mine, other in pairs]
    if not all(mine.eq(other) for mine, other in pairs):
        known, claim = not_below(others, fmt), not_below(results, fmt)
        theory.claim(f"{name} in order", text, claim, [*alike, known])
