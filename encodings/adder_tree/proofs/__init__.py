"""Facts of adder_tree."""

from __future__ import annotations

from typing import TypeAlias

from mmaformal.encodings.adder_tree import smt as smt_tree
from mmaformal.facts.protocol import Facts
from mmaformal.facts.sums import StepSum, sum_in_ieee
from mmaformal.spec import DotAdd

Step: TypeAlias = smt_tree.TreeStep


class TreeFacts(Facts[Step]):
    def sums(self, spec: DotAdd, step: Step) -> list[StepSum]:
        return [sum_in_ieee(each) for each in step.sums]


FACTS = TreeFacts("adder_tree")
