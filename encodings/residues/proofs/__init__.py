"""Facts of sums by remainders."""

from __future__ import annotations

from mmaformal.cases.encodings import Traces
from mmaformal.encodings.residues import smt as smt_residues
from mmaformal.encodings.residues.proofs import equal, exactness
from mmaformal.facts.exactness import Exact
from mmaformal.facts.protocol import Facts
from mmaformal.instruction import Instruction
from mmaformal.proof.composition import Composing
from mmaformal.proof.lemmas import Argument
from mmaformal.solver.answers import Fails
from mmaformal.spec import DotAdd


class ResiduesFacts(Facts[smt_residues.ResiduesStep]):
    def equal(self, argument: Argument, traces: Traces[smt_residues.ResiduesStep]) -> None:
        equal.link_encodings(argument, traces)

    def exactness(self, proving: Composing, spec: DotAdd) -> Exact:
        return exactness.prove_exact_words(proving, spec)

    def inexact(self, instruction: Instruction, seconds: float) -> Fails | None:
        return exactness.inexact(instruction, seconds)


FACTS = ResiduesFacts("residues")
