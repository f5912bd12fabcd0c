"""Facts of dpa_e9s12."""

from __future__ import annotations

from mmaformal.algorithms import DotAdd
from mmaformal.cases.encodings import Traces
from mmaformal.cases.inputs import Codes
from mmaformal.encodings.smt.dpa_e9s12 import Step
from mmaformal.facts.dpa_e9s12 import equal, exact, related
from mmaformal.facts.exact_steps import always_exact, error_bound, prove_step, rounded_once
from mmaformal.facts.exactness import Exact
from mmaformal.facts.exactness_codes import Roundings
from mmaformal.facts.ranges import RoundedSum
from mmaformal.formats import fp16
from mmaformal.instruction import Instruction
from mmaformal.proof.composition import Composing
from mmaformal.proof.lemmas import Argument, Link
from mmaformal.proof.related_runs import Step as RelatedStep
from mmaformal.solver.answers import Answer


class DpaE9s12Facts(RoundedSum[Step]):
    def equal(self, argument: Argument, traces: Traces[Step]) -> None:
        equal.derive(argument, traces)

    def related(self, step: RelatedStep[Step]) -> Link:
        return related.derive(step)

    def exactness(self, proving: Composing, spec: DotAdd) -> Exact:
        if spec.a_format != fp16:
            self.lack("when d is the exact sum, of products that may lose bits")
        return rounded_once(proving, spec, exact.prove_exact)

    def exactness_on_codes(self, spec: DotAdd, codes: Codes) -> Roundings:
        if spec.a_format != fp16:
            self.lack("when d is the exact sum, of products that may lose bits")
        return always_exact(spec, codes)

    def error_bound(self, instruction: Instruction, proving: Composing) -> Answer:
        if instruction.a_format != fp16:
            self.lack("its sums are off by what `mmaformal e9s12 error` says")
        return error_bound(instruction, proving, exact.prove_exact)

    def rounds_exact_sum(self, proving: Composing, spec: DotAdd) -> None:
        prove_step(proving, spec, exact.prove_exact)


FACTS = DpaE9s12Facts("dpa_e9s12")
