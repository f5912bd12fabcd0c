"""From z3 terms to questions: scripts, proofs of lemmas with cut points, a time budget for a whole query."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import z3

from mmaformal.solver.answers import Obligation
from mmaformal.solver.portfolio import Outcome, Portfolio

#: Below this many seconds a question is not worth asking.
_LEAST = 0.05


def smtlib(assertions: Iterable[z3.BoolRef]) -> str:
    """An SMT-LIB 2 script of the conjunction, which stock solvers accept."""
    solver = z3.Solver()
    solver.add(*map(_without_unary, assertions))
    return "(set-logic QF_BV)\n" + "".join(
        line + "\n" for line in solver.to_smt2().splitlines() if not line.startswith((";", "(set-info"))
    )


def _without_unary(term: z3.ExprRef) -> z3.ExprRef:
    """The term without `(and x)` and `(or x)`, which z3 prints and the standard does not have."""
    done: dict[int, z3.ExprRef] = {}
    stack = [term]
    while stack:
        t = stack[-1]
        children = t.children()
        todo = [child for child in children if child.get_id() not in done]
        if todo:
            stack.extend(todo)
            continue
        stack.pop()
        parts = [done[child.get_id()] for child in children]
        if len(parts) == 1 and (z3.is_and(t) or z3.is_or(t)):
            done[t.get_id()] = parts[0]
        elif any(not part.eq(child) for part, child in zip(parts, children, strict=True)):
            done[t.get_id()] = t.decl()(*parts)
        else:
            done[t.get_id()] = t
    return done[term.get_id()]


class Asker:
    """Puts z3 terms to a portfolio within one time budget and keeps a record of what was proved."""

    def __init__(self, portfolio: Portfolio, timeout: float) -> None:
        self.portfolio = portfolio
        self.timeout = timeout
        self.start = time.monotonic()
        self.deadline = self.start + timeout
        self.proved: list[Obligation] = []
        self._known: dict[int, tuple[z3.BoolRef, Obligation]] = {}  # by the id of the renamed question

    @property
    def elapsed(self) -> float:
        return time.monotonic() - self.start

    @property
    def left(self) -> float:
        return self.deadline - time.monotonic()

    def satisfy(
        self,
        name: str,
        statement: str,
        assertions: Sequence[z3.BoolRef],
        constants: Mapping[str, int] | None = None,
        limit: float | None = None,
    ) -> Outcome:
        """Look for a model of the assertions; `unsat` is recorded as the obligation `statement`.

        A question that differs from a refuted one in the names of its constants alone is not asked again.
        `limit`, in seconds, shortens what is left of the budget for this question alone.
        """
        question = z3.And(*assertions)
        form = renamed(question)
        if form.get_id() in self._known:
            known = self._known[form.get_id()][1]
            self.proved.append(replace(known, name=name, statement=statement, seconds=0.0))
            return Outcome("unsat", known.solver, known.version, 0.0)
        simplified = z3.simplify(question)
        if z3.is_false(simplified):
            outcome = Outcome("unsat", "z3", f"{z3.get_version_string()} simplifier", 0.0)
            script = smtlib([question])  # evidence must be the question itself, not its simplified answer
        else:
            script = smtlib([simplified])
            available = self.left if limit is None else min(self.left, limit)
            if available < _LEAST:
                return Outcome("unknown", "", "", 0.0, why="the time given was used up")
            outcome = self.portfolio.ask(script, constants or {}, available)
        if outcome.verdict == "unsat":
            proved = Obligation(name, statement, script, outcome.solver, outcome.version, outcome.seconds)
            self.proved.append(proved)
            self._known[form.get_id()] = (form, proved)
        return outcome

    def prove(
        self,
        name: str,
        statement: str,
        claim: z3.BoolRef,
        using: Sequence[z3.BoolRef] = (),
        cut: Sequence[z3.ExprRef] = (),
        limit: float | None = None,
    ) -> Outcome:
        """Prove `claim` for all inputs, from claims proved before (`using`).

        Each term in `cut` is replaced by a fresh constant wherever it occurs, in claim and premises alike: what
        holds for any value of a term holds for its own.  So `unsat` is a proof of the claim itself, while `sat`
        may only mean that too much was cut away.
        """
        fresh = [(term, z3.Const(f"cut{i}", term.sort())) for i, term in enumerate(cut)]
        goal = z3.And(*using, z3.Not(claim))
        goal = z3.substitute(goal, *fresh) if fresh else goal
        return self.satisfy(name, statement, [goal], limit=limit)


def constants_of(term: z3.ExprRef) -> list[z3.ExprRef]:
    """The uninterpreted constants of a term, in the order in which they first occur."""
    found: dict[int, z3.ExprRef] = {}
    seen: set[int] = set()
    stack = [term]
    while stack:
        t = stack.pop()
        if t.get_id() in seen:
            continue
        seen.add(t.get_id())
        if z3.is_const(t) and t.decl().kind() == z3.Z3_OP_UNINTERPRETED:
            found[t.get_id()] = t
        stack.extend(reversed(t.children()))
    return list(found.values())


def renamed(term: z3.BoolRef) -> z3.BoolRef:
    """The term with its constants called v0, v1, … in the order in which they occur."""
    pairs = [(c, z3.Const(f"v{i}", c.sort())) for i, c in enumerate(constants_of(term))]
    return z3.substitute(term, *pairs) if pairs else term
