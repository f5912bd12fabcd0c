"""What a proof needs to know of an algorithm: one `Facts` for each, in a folder of its name (`registry`).

A method that an algorithm does not have raises NoArgumentError, which every query answers with `Unknown`: a new
algorithm starts with none of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

from mmaformal.proof.lemmas import ArgumentError
from mmaformal.proof.proving import NotProvedError

if TYPE_CHECKING:
    from mmaformal.algorithms import DotAdd
    from mmaformal.cases.encodings import Traces
    from mmaformal.instruction import Instruction
    from mmaformal.proof.composition import Composing
    from mmaformal.proof.lemmas import Argument, Link
    from mmaformal.proof.related_runs import Step
    from mmaformal.proof.scaling import Two
    from mmaformal.solver.answers import Answer


class NoArgumentError(ArgumentError, NotProvedError):
    """An algorithm's facts do not have what a proof needs."""

    def __init__(self, algorithm: str, what: str) -> None:
        Exception.__init__(self, f"no argument for {algorithm}: {what}")
        self.refuted = False


class Facts:
    """What is known of an algorithm, for proofs; here, nothing.

    Facts that need no z3 are methods of its `Parameters`.
    """

    def __init__(self, algorithm: str) -> None:
        self.algorithm = algorithm

    def lack(self, what: str) -> NoReturn:
        raise NoArgumentError(self.algorithm, what)

    # ---- both encodings

    def equal(self, argument: Argument, traces: Traces) -> None:
        """Derive, step by step, that both encodings give the same code."""
        self.lack("why both encodings agree")

    # ---- two runs on related inputs

    def related(self, step: Step) -> Link:
        """Derive, for a step of two runs on related inputs, the link of its results."""
        self.lack("why two runs on related inputs have related results")

    def scaled(self, two: Two) -> Link:
        """Derive, for a step of two runs, the second with a and c doubled, the link of its results."""
        self.lack("what doubling a and c does")

    # ---- one run, against the exact sum

    def exactness(self, proving: Composing, spec: DotAdd) -> None:
        """Prove that where the conditions of `exactness_on_codes` hold, d is the exact sum, rounded once."""
        self.lack("when d is the exact sum")

    def error_bound(self, instruction: Instruction, proving: Composing) -> Answer:
        """What each step's sum is off at most before it is rounded, and an input that reaches that."""
        self.lack("what its sums are off")

    # ---- two runs in order

    def monotone_in_c(self, instruction: Instruction, proving: Composing) -> Answer:
        """Whether c ≤ c' gives d ≤ d'."""
        self.lack("whether d follows c")
