"""A prover of links between nodes, as the matching of designs has one: z3, asked directly."""

from __future__ import annotations

from collections.abc import Sequence

import z3

from mmaformal.hardware.graph import Graph
from mmaformal.hardware.sums import CaseValues
from mmaformal.proof.kernel import Link


class Prover:
    """Proves links with z3, and keeps them."""

    def __init__(self, values: dict[int, CaseValues] | None = None) -> None:
        self.graph, self.values, self.proved = Graph(), values or {}, list[Link]()
        self.codes: list[Link] = []
        self.below: list[tuple[set[int], Link]] = []

    def attempt(
        self, link: Link, given: Sequence[Link], patience: float, cut: Sequence[z3.ExprRef] = ()
    ) -> bool:
        solver = z3.Solver()
        solver.add(*(each.claim for each in given), z3.Not(link.claim))
        self.proved += [link] if solver.check() == z3.unsat else []
        return link in self.proved
