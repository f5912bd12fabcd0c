"""Facts of oddsum: a step has the interfaces of gps, with one pair of products, and other roundings."""

from __future__ import annotations

from typing import TypeAlias

from mmaformal.cases.encodings import Traces
from mmaformal.cases.inputs import Codes
from mmaformal.cases.out_of_order import Descends
from mmaformal.encodings.gps.proofs import equal, error_bound, exactness, ranges, related
from mmaformal.encodings.gps.smt import flush_result
from mmaformal.encodings.oddsum import smt as smt_oddsum
from mmaformal.encodings.oddsum.proofs import monotonicity
from mmaformal.facts.exactness import Exact
from mmaformal.facts.exactness_codes import Roundings
from mmaformal.facts.protocol import Facts, Known
from mmaformal.facts.sums import Sum, addition
from mmaformal.instruction import Instruction
from mmaformal.proof.composition import Composing
from mmaformal.proof.lemmas import Argument, Link
from mmaformal.proof.related_runs import Step as RelatedStep
from mmaformal.proof.rules import Theory
from mmaformal.solver.answers import Answer
from mmaformal.spec import DotAdd

Step: TypeAlias = smt_oddsum.Step


class OddsumFacts(Facts[Step]):
    unreachable = (ranges.no_subnormals,)

    def equal(self, argument: Argument, traces: Traces[Step]) -> None:
        equal.derive(argument, traces)

    def related(self, step: RelatedStep[Step]) -> Link:
        return related.derive(step)

    def of_result(self, step: Step) -> Known:
        return Known(lambda code: flush_result(code) == code, [step.addition.result])

    def sums(self, spec: DotAdd, step: Step) -> list[Sum]:
        return [addition(each) for each in (*step.sums, step.addition)]

    def exactness(self, proving: Composing, spec: DotAdd) -> Exact:
        return exactness.prove_group(proving, spec)

    def exactness_on_codes(self, spec: DotAdd, codes: Codes) -> Roundings:
        return exactness.on_codes(spec, codes)

    def error_bound(self, instruction: Instruction, proving: Composing) -> Answer:
        return error_bound.settle(instruction, proving)

    def monotone_in_c(self, instruction: Instruction, theory: Theory) -> None:
        monotonicity.prove_in_c(theory, instruction.spec)

    def monotone_in_product(self, instruction: Instruction, theory: Theory) -> Descends | None:
        return monotonicity.in_product(instruction)


FACTS = OddsumFacts("oddsum")
