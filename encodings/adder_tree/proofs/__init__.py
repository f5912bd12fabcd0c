"""Facts of adder_tree."""

from __future__ import annotations

from mmaformal.encodings.adder_tree import smt as smt_tree
from mmaformal.facts.protocol import Facts
from mmaformal.facts.sums import StepSum, sum_in_ieee
from mmaformal.spec import DotAdd


class TreeFacts(Facts[smt_tree.TreeStep]):
    def sums(self, spec: DotAdd, step: smt_tree.TreeStep) -> list[StepSum]:
        return [sum_in_ieee(each) for each in step.sums]


FACTS = TreeFacts("adder_tree")
