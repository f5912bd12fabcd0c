"""The facts that proofs need about an algorithm: one `Facts` for each, in a folder of its name (`registry`).

A method that an algorithm does not have raises UnsupportedError, which every query answers with `Unknown`: a new
algorithm starts with none of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Generic, NamedTuple, NoReturn, TypeVar

import z3

from mmaformal.facts import sums
from mmaformal.proof import simulation
from mmaformal.proof.kernel import ArgumentError, NotProvedError, Rule
from mmaformal.theory import monotone

if TYPE_CHECKING:
    from mmaformal.cases.encodings import Traces
    from mmaformal.cases.inputs import Codes, Inputs
    from mmaformal.cases.interfaces import Adds, AnyStep
    from mmaformal.cases.out_of_order import OutOfOrder
    from mmaformal.encodings.executable.blocks import Lane
    from mmaformal.encodings.smt.blocks import Trace
    from mmaformal.facts.exactness import Exact
    from mmaformal.facts.sums import StepSum
    from mmaformal.formats import Format
    from mmaformal.instruction import Instruction
    from mmaformal.proof.composition import Composing
    from mmaformal.proof.doubled_runs import LinkOf
    from mmaformal.proof.lemmas import Argument, Link
    from mmaformal.proof.related_runs import Pairing
    from mmaformal.proof.related_stages import RelatedLink
    from mmaformal.proof.related_steps import RelatedStep as RelatedStep
    from mmaformal.proof.rules import Theory
    from mmaformal.proof.simulation import StageLink
    from mmaformal.solver.answers import Answer, Fails, Proof
    from mmaformal.solver.asking import Asker
    from mmaformal.spec import DotAdd
    from mmaformal.stages import Stage
    from mmaformal.theory.rounded_sums import RoundsExactly


StepT = TypeVar("StepT", bound="AnyStep")  #: a step of the SMT encoding


class UnsupportedError(ArgumentError, NotProvedError):
    """An algorithm's facts do not have what a proof needs."""

    def __init__(self, algorithm: str, what: str) -> None:
        Exception.__init__(self, f"no argument for {algorithm}: {what}")
        self.refuted, self.verdict = False, "unknown"


class ResultFact(NamedTuple):
    """A fact about codes, and the terms from which it follows of one."""

    of: Callable[[z3.BitVecRef], z3.BoolRef]
    made_of: Sequence[z3.ExprRef]


class LastAddition(NamedTuple):
    """A proof that d is c plus what the products are alone."""

    text: str  #: what is proved, with its conditions
    proof: Proof


class Lossless(NamedTuple):
    """The types and numbers that decide how many fractional places an alignment needs, to lose nothing."""

    a: Format
    b: Format
    c: Format | None  #: None: products are added from zero, and c later
    L: int
    e_zero: int | None


class Facts(Generic[StepT]):
    """Facts about an algorithm, for proofs; in this class none is known.

    Facts that need no z3 are methods of its `Parameters`.
    """

    def __init__(self, algorithm: str) -> None:
        self.algorithm = algorithm

    def unsupported(self, what: str) -> NoReturn:
        """Raise UnsupportedError: there is no proof of this."""
        raise UnsupportedError(self.algorithm, what)

    #: links of the stages that no other algorithm has: of both encodings, and of two runs on related inputs
    stage_links: Mapping[str, StageLink] = MappingProxyType({})
    related_links: Mapping[str, RelatedLink] = MappingProxyType({})

    # ---- both encodings

    def equal(self, argument: Argument, traces: Traces[StepT]) -> None:
        """Derive that both encodings give the same code: stage by stage, if they record their stages."""
        if not traces.smt.stages:
            self.unsupported("why both encodings agree")
        simulation.link_stages(argument, traces, self.stage_links)

    # ---- two runs on related inputs

    def nan_of_operands(self, spec: DotAdd) -> bool:
        """Whether a NaN result is one of the operands', so that which one it is may depend on their order."""
        return False

    def related(self, step: RelatedStep[StepT]) -> Link:
        """Derive, for a step of two runs on related inputs, the link of its results."""
        self.unsupported("why two runs on related inputs have related results")

    def scaling_breaker(self, spec: DotAdd) -> Codes | None:
        """A case in which doubling a and c is likely not to double d."""
        return None

    #: what doubling a and c does to stages that are this algorithm's own, by their names
    doubled_links: Mapping[str, LinkOf] = MappingProxyType({})

    def stages(self, spec: DotAdd, trace: Trace[StepT], c: z3.BitVecRef) -> Sequence[Stage]:
        """The stages of a run on this c: those that the encoding recorded."""
        return trace.stages or self.unsupported("what doubling a and c does")

    # ---- two models

    def but_for_nans(self, spec: DotAdd) -> DotAdd | None:
        """A simpler model, of which it is proved that it differs only in which NaN it gives; None if there is none."""
        return None

    def same_but_nans(self, spec: DotAdd, other: DotAdd) -> Pairing:
        """The argument that both give the same code for every input, or NaNs both."""
        self.unsupported("which NaN it gives")

    def may_agree(self, x: DotAdd, y: DotAdd) -> bool:
        """Whether two models of this algorithm differ so little that `prove_agreement` may prove them equal."""
        return False

    def may_agree_on_few(self, x: DotAdd, y: DotAdd, products: int) -> bool:
        """Return whether `prove_agreement` may prove them equal on inputs with so many nonzero products at most."""
        return False

    def prove_agreement(self, asker: Asker, x: DotAdd, y: DotAdd, inputs: Inputs) -> Proof | None:
        """Prove that x and y agree on all inputs; None if a claim was not proved."""
        self.unsupported("why two models agree")

    def rounds_exactly(self, spec: DotAdd) -> RoundsExactly | None:
        """A step, of which it is proved that it rounds the exact sum of its codes' numbers once; None if it is not."""
        return None

    def may_pass_c_on(self, spec: DotAdd) -> bool:
        """Whether it is worth asking if a step whose products are zero passes its c on."""
        return False

    def adds_c_last(self, asker: Asker, spec: DotAdd) -> LastAddition | None:
        """Whether a step's d is c plus the d of c = 0, added in fp32 by IEEE 754; None where that is not proved."""
        return None

    # ---- sums

    def sums(self, spec: DotAdd, step: StepT) -> list[StepSum]:
        """The accumulations of a step."""
        self.unsupported("which sums a step has")

    def sums_without_c(self, spec: DotAdd, step: StepT) -> list[StepSum]:
        """Return the accumulations of a step of a unit that does not read c."""
        self.unsupported("which sums a step has where c is not read")

    def significand_is_small(
        self, pairing: Pairing, spec: DotAdd, step: Adds, significand: z3.BitVecRef, size: Link
    ) -> None:
        """Derive `size`: that no term's significand is above the largest."""
        sums.significand_is_small(pairing, spec, step, significand, size)

    def sum_fits(self, pairing: Pairing, spec: DotAdd, each: StepSum) -> None:
        """Derive that every partial sum of one of `sums` is within the sum of its terms' bounds."""
        sums.prove_sums_fit(pairing, spec, each, self.significand_is_small)

    def largest_case(self, spec: DotAdd) -> Codes:
        """An input whose first sum is the largest."""
        return sums.largest_case(spec)

    def first_sum(self, step: object) -> Lane:
        """The lane of the executable encoding's first sum, in the unit of the SMT encoding's; None if it has another
        unit."""
        return None

    # ---- codes of results

    def no_nan(
        self, pairing: Pairing, spec: DotAdd, step: StepT, assumed: dict[int, Link], c: Link, finite: Link
    ) -> Link:
        """Derive that a step of finite operands gives no NaN.

        `assumed` says of codes that they are finite, `c` that c is no NaN, and `finite` that the first step's c is
        finite, or of later steps what `c` does.
        """
        self.unsupported("why finite inputs give no NaN")

    def never_minus_zero(
        self, pairing: Pairing, spec: DotAdd, steps: Sequence[StepT], c: z3.BitVecRef
    ) -> Link:
        """Derive that the last step's result is not −0."""
        self.unsupported("why the result is never −0")

    #: ways to prove that a number is never the result: each gives the argument, the code, and what every result is
    unreachable: Sequence[Callable[[DotAdd], tuple[Pairing, int, str]]] = ()

    #: the same of a unit that does not read c
    unreachable_without_c: Sequence[Callable[[DotAdd], tuple[Pairing, int, str]]] = ()

    def every_exact_sum(self, spec: DotAdd) -> Rule:
        """The rule that every number of d's format is the exact sum of some input."""
        self.unsupported("which numbers its exact sums are")

    def of_result(self, step: StepT) -> ResultFact | None:
        """Return a fact about every result of a step; None if it may be any code."""
        return None

    # ---- one run, against the exact sum

    def rounds_exact_sum(self, proving: Composing, spec: DotAdd) -> None:
        """Prove that a step's result is its exact sum, rounded once."""
        self.unsupported("why a step rounds its exact sum")

    def rounds_exact_sum_without_c(self, proving: Composing, spec: DotAdd) -> None:
        """Prove that a step of a unit that does not read c rounds its exact sum; `spec` is the plain one, its c −0."""
        self.rounds_exact_sum(proving, spec)

    def lossless_of(self, spec: DotAdd) -> Lossless | None:
        """Return what the places that no alignment may lose depend on; None if it is not proved that none is lost."""
        return None

    def lossless(self, proving: Composing, spec: DotAdd) -> str:
        """Prove that no step loses a bit; returns what was proved, for a person."""
        self.unsupported("why alignment loses no bit")

    def exactness(self, proving: Composing, spec: DotAdd) -> Exact:
        """Prove, of one step, when d is the exact sum, rounded once."""
        self.unsupported("when d is the exact sum")

    def inexact(self, instruction: Instruction, seconds: float) -> Fails | None:
        """Return an input whose sum is not what it is said to be; None if none is known."""
        return None

    def error_bound(self, instruction: Instruction, proving: Composing) -> Answer:
        """Return what each step's sum is off at most before it is rounded, and an input that reaches that."""
        self.unsupported("what its sums are off")

    # ---- two runs in order

    def monotone_in_c(self, instruction: Instruction, theory: Theory) -> OutOfOrder | None:
        """Prove that c ≤ c' gives d ≤ d' (`two_runs(spec).statement`), or find an input on which it does not.

        Here of a model that rounds one exact sum once.
        """
        model = self.rounds_exactly(instruction.spec) or self.unsupported("whether d follows c")
        monotone.prove_in_c(theory, instruction.spec, model)
        return None

    def monotone_in_product(self, instruction: Instruction, theory: Theory) -> OutOfOrder | None:
        """Prove that a larger product gives no smaller d (`larger_product(spec, k).statement`), or find an input.

        Here of a model that rounds one exact sum once.
        """
        model = self.rounds_exactly(instruction.spec) or self.unsupported("whether d follows a product")
        monotone.prove_in_products(theory, instruction.spec, model)
        return None
