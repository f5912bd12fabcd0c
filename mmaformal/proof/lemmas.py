"""Links between lanes and terms, and arguments about sums and maxima of them.

An `Argument` is a theorem about traces of the executable encoding, whose lanes bring their rules as lemmas.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import reduce

import z3

from mmaformal.lanes import SymbolicFlag, SymbolicLane, Tracer, fit
from mmaformal.proof.kernel import ArgumentError as ArgumentError
from mmaformal.proof.kernel import Lemma, Theorem, conjunction, demand
from mmaformal.proof.kernel import Link as Link
from mmaformal.solver.portfolio import LazyPortfolio as LazyPortfolio

# ---- links -----------------------------------------------------------------------------------------------------


def number(
    lane: SymbolicLane,
    term: z3.BitVecRef,
    *,
    signed: bool = False,
    low: int = 0,
    idle: tuple[z3.BoolRef, int] | None = None,
) -> Link:
    """Return the link that says that the lane is the number `low + term`.

    With `idle`, a condition and a value: where that holds, the lane is the value and the term is 0.
    """
    idle_bits = idle[1].bit_length() if idle is not None else 0
    bits = max(lane.term.size(), term.size(), low.bit_length() + 1, idle_bits) + 2
    right = fit(term, signed, bits)
    right = right + low if low else right
    extra = []
    if idle is not None:
        where, value = idle
        right = z3.If(where, z3.BitVecVal(value, bits), right)
        extra = [z3.Implies(where, term == 0)]
    claim = conjunction([lane.fit(bits) == right, *extra])
    return Link(claim, (term,), ((lane.term, fit(right, True, lane.term.size())),), (lane,))


@dataclass(frozen=True)
class Idle:
    """Which of several terms say nothing, and the number that their lanes have instead."""

    flags: Sequence[z3.BoolRef]
    value: int

    @property
    def all(self) -> z3.BoolRef:
        return self.first(len(self.flags))

    def first(self, n: int) -> z3.BoolRef:
        """Whether the first n are idle; contains `first(n - 1)`."""
        return reduce(z3.And, self.flags[:n])


def condition(mine: SymbolicFlag, other: z3.BoolRef) -> Link:
    """Return the link that says that a flag and a condition are the same."""
    return Link(mine.term == other, (other,), ((mine.term, other),), flags=(mine,))


def at_most(x: z3.BitVecRef, y: z3.BitVecRef) -> Link:
    return Link(z3.ULE(x, y), (x, y))


def within(x: z3.BitVecRef, bound: int) -> Link:
    """Return the link that says that x is not beyond ±bound, in two's complement.  Raises ArgumentError if it has no
    bits for more."""
    demand(bound < 1 << (x.size() - 1), f"{x.size()} bits do not hold ±{bound}")
    return Link(z3.And(x <= bound, x >= -bound), (x,))


def _residue(lane: SymbolicLane, term: z3.BitVecRef) -> Link:
    """Return the link that says that lane and term are the same modulo 2 to the width of the term."""
    value = lane.fit(term.size())
    return Link(value == term, (lane.term,), ((term, value),), (lane,))


# ---- arguments -------------------------------------------------------------------------------------------------


class Argument(Theorem):
    """A theorem about traces; `tracer` is that of the lanes: the rules of their operations are the first lemmas."""

    def __init__(self, tracer: Tracer) -> None:
        super().__init__()
        if not tracer.strict:
            raise ArgumentError("a trace of operations that may wrap has no rules to prove")
        self._tracer, self._rules_before = tracer, len(tracer.rules)
        for rule in tracer.rules.values():
            text = f"{rule.where}: {rule.statement}"
            self._add(Lemma("64-bit lanes", text, z3.Not(rule.claim), rule.hard))

    @property
    def lanes(self) -> tuple[Sequence[SymbolicLane], Sequence[z3.BoolRef]]:
        """All lanes of the trace, each in its range, and the rules that give the ranges, operation by operation."""
        return self._tracer.made, [rule.claim for rule in self._tracer.rules.values()]

    def _look_at(self, links: Iterable[Link]) -> None:
        """The rules of the trace are lemmas, so that each lane is in its range, operation by operation."""
        nodes = [node for link in links for each in (link.lanes, link.flags) for node in each]
        if any(node.tracer is not self._tracer for node in nodes):
            raise ArgumentError("a lane is of another trace, whose rules are no lemmas here")
        self._tracer.own(*nodes)

    def conclude(
        self, statement: str, conclusion: Link | z3.BoolRef, whole: Sequence[z3.BoolRef] = ()
    ) -> None:
        if len(self._tracer.rules) != self._rules_before:
            raise ArgumentError("lanes were computed after the argument began: their rules are no lemmas")
        super().conclude(statement, conclusion, whole)

    # ---- sums and maxima: both encodings have the same operands in different orders ---------------------------------

    def add_up(
        self, stage: str, what: str, total: SymbolicLane, sum_: z3.BitVecRef, summands: Sequence[Link]
    ) -> Link:
        """Return the link that says that a sum of lanes is a two's complement sum, from the links of its summands, in
        the lanes' order.

        Partial sum by partial sum in the lanes' order, modulo 2^n, n the width of `sum_`, which adds the same terms
        in an order of its own.
        """
        terms = [link.term for link in summands]
        link = number(total, sum_, signed=True)
        partials = _partial_sums(total, [summand.lane for summand in summands])
        if partials is None:
            return self.derive(stage, f"{what}: the sums are equal", [link], summands)[0]
        text = f"{what}: the partial sums are equal"
        running = terms[0]
        given: list[Link] = []
        for lane, summand, term in zip(partials, summands, terms, strict=True):
            running = running + term if given else term
            given = [*self.derive(stage, text, [_residue(lane, running)], [*given, summand])]
        text = f"{what}: the order of summation does not matter"
        same = Link(running == sum_, (running,), ((sum_, running),))
        self.derive(stage, text, [same], inputs=terms)
        return self.derive(stage, f"{what}: the sums are equal", [link], [*given, same])[0]

    def largest(
        self,
        stage: str,
        what: str,
        top: SymbolicLane,
        maximum: z3.BitVecRef,
        candidates: Sequence[Link],
        low: int,
        idle: Idle | None = None,
    ) -> tuple[Link, list[Link]]:
        """Derive that a maximum of lanes is `low` + a maximum of unsigned terms, from the links of the candidates; and
        that each term is at most that maximum.  With `idle`, the maximum is idle if all candidates are.

        The maximum of the terms in the lanes' order follows the lanes one by one.  It is equal to `maximum`, for
        neither is above the other: each is at least every term, and at most what all terms are at most.
        """

        def follows(lane: SymbolicLane, term: z3.BitVecRef, n: int) -> Link:
            return number(lane, term, low=low, idle=(idle.first(n), idle.value) if idle is not None else None)

        terms, n = [link.term for link in candidates], len(candidates)
        link = follows(top, maximum, n)
        below = self.not_below(stage, what, maximum, terms)
        text = f"{what}: the largest are equal"
        chain = _maxima(top, [candidate.lane for candidate in candidates])
        if chain is None:
            return self.derive(stage, text, [link], candidates, idle.flags if idle is not None else ())[
                0
            ], below
        step = f"{what}: the larger of two is the same"
        running, following = terms[0], candidates[0]
        for i, (lane, candidate, term) in enumerate(zip(chain, candidates[1:], terms[1:], strict=True), 2):
            running = z3.If(z3.UGT(running, term), running, term)
            flags = [idle.first(i - 1), idle.flags[i - 1]] if idle is not None else []
            (following,) = self.derive(
                stage, step, [follows(lane, running, i)], [following, candidate], flags
            )
        same = self.same_maximum(stage, what, running, maximum, terms, below)
        flags = [idle.all] if idle is not None else []
        return self.derive(stage, text, [link], [following, same], flags)[0], below

    def same_maximum(
        self,
        stage: str,
        what: str,
        running: z3.BitVecRef,
        maximum: z3.BitVecRef,
        terms: Sequence[z3.BitVecRef],
        below_maximum: Sequence[Link],
    ) -> Link:
        """Return the link that says that two maxima of the same terms are equal, from what is known of one
        (`not_below`)."""
        text = f"{what}: maxima of the same are equal"
        same = Link(running == maximum, (running,), ((maximum, running),))
        if running.eq(maximum) or not is_maximum(maximum, terms):
            return self.derive(stage, text, [same], inputs=terms)[0]
        below_running = self.not_below(stage, what, running, terms)
        order = [
            self._not_above(
                stage, what, small, large, {x.get_id(): y for x, y in zip(terms, below, strict=True)}
            )
            for small, large, below in ((running, maximum, below_maximum), (maximum, running, below_running))
        ]
        return self.derive(stage, text, [same], order)[0]

    def not_below(
        self, stage: str, what: str, tree: z3.BitVecRef, terms: Sequence[z3.BitVecRef]
    ) -> list[Link]:
        """Derive that each term is at most a maximum of all, from the top of its tree down."""
        links = [at_most(term, tree) for term in terms]
        if not is_maximum(tree, terms):
            return [*self.derive(stage, f"{what}: none is above the largest", links, inputs=terms)]
        stack = [(tree, self.derive(stage, f"{what}: x ≤ x", [at_most(tree, tree)], inputs=[tree])[0])]
        leaves = {term.get_id() for term in terms}
        while stack:
            node, below = stack.pop()
            if node.get_id() in leaves:
                continue
            operands = node.arg(1), node.arg(2)
            for x in operands:
                text = f"{what}: neither of two is above the larger"
                (step,) = self.derive(stage, text, [at_most(x, node)], inputs=operands)
                if node is not tree:
                    (step,) = self.derive(
                        stage, f"{what}: ≤ is transitive", [at_most(x, tree)], [step, below]
                    )
                stack.append((x, step))
        return links

    def _not_above(
        self, stage: str, what: str, tree: z3.BitVecRef, bound: z3.BitVecRef, below: dict[int, Link]
    ) -> Link:
        """Return the link that says that a maximum is at most what all its terms are at most."""
        if tree.get_id() in below:
            return below[tree.get_id()]
        parts = [self._not_above(stage, what, tree.arg(i), bound, below) for i in (1, 2)]
        return self.derive(
            stage, f"{what}: the larger of two is not above a bound of both", [at_most(tree, bound)], parts
        )[0]


def is_maximum(tree: z3.ExprRef, terms: Sequence[z3.ExprRef]) -> bool:
    """Whether a term is made of the given ones by `If(UGT(x, y), x, y)` alone."""
    leaves = {term.get_id() for term in terms}
    stack = [tree]
    while stack:
        node = stack.pop()
        if node.get_id() in leaves:
            continue
        if not z3.is_app_of(node, z3.Z3_OP_ITE) or not z3.is_app_of(node.arg(0), z3.Z3_OP_UGT):
            return False
        test, x, y = node.children()
        if not (test.arg(0).eq(x) and test.arg(1).eq(y)):
            return False
        stack += [x, y]
    return True


def _partial_sums(total: SymbolicLane, summands: Sequence[SymbolicLane]) -> list[SymbolicLane] | None:
    """The lanes that hold `x0`, `x0 + x1`, …, the last of them `total`; None if it was not made so."""
    partials = []
    lane = total
    for summand in reversed(summands):
        partials.append(lane)
        if lane is summand and len(partials) == len(summands):
            return partials[::-1]
        if lane.op != "+" or lane.operands[1] is not summand:
            return None
        lane = lane.operands[0]  # type: ignore[assignment]
    return partials[::-1] if lane.range == (0, 0) else None


def _maxima(top: SymbolicLane, candidates: Sequence[SymbolicLane]) -> list[SymbolicLane] | None:
    """The lanes that hold the larger of the first two, of that and the third, …; None if it was not made so.

    The larger of the first two is the second itself where the first, a constant, is never above it.
    """
    chain = []
    lane = top
    for candidate in reversed(candidates[1:]):
        chain.append(lane)
        if candidate is candidates[1] and lane is candidate:
            return chain[::-1]
        if lane.op != "select" or lane.operands[2] is not candidate:
            return None
        lane = lane.operands[1]  # type: ignore[assignment]
    return chain[::-1] if lane is candidates[0] else None
