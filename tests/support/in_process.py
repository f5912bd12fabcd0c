"""A solver in this process: questions about few bits are answered at once, however busy the machine is."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import z3

from mmaformal.solver.asking import Asker, Settled
from mmaformal.solver.portfolio import Outcome, Portfolio

OPEN = Settled("unknown", "", "", 0.0, why="too hard")


class Here(Portfolio):
    """z3, as the tests' own process has it."""

    def __init__(self) -> None:
        pass

    def ask(self, script: str, constants: Mapping[str, int], timeout: float) -> Outcome:
        solver = z3.SolverFor("QF_BV")
        solver.set("timeout", int(timeout * 1000))
        solver.from_string(script)
        verdict = str(solver.check())
        if verdict == "unknown":
            return OPEN
        model = dict.fromkeys(constants, 0)
        if verdict == "sat":
            found = solver.model()
            model |= {each.name(): found[each].as_long() for each in found.decls() if each.name() in model}
        return Outcome("sat" if verdict == "sat" else "unsat", "z3", "", 0.0, model)


class Forgetful(Asker):
    """An asker that settles no question of some names."""

    def __init__(self, settles_not: Callable[[str], bool] = lambda _: False, timeout: float = 40.0) -> None:
        super().__init__(Here(), timeout)
        self.settles_not = settles_not

    def satisfy(
        self,
        name: str,
        statement: str,
        assertions: Sequence[z3.BoolRef],
        constants: Mapping[str, int] | None = None,
        limit: float | None = None,
        *,
        whole: bool,
    ) -> Settled:
        if self.settles_not(name):
            return OPEN
        return super().satisfy(name, statement, assertions, constants, limit, whole=whole)
