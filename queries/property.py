"""The form of a property: a name, a statement about all inputs, and a function that settles it for an instruction.

A file of this folder that states a property has a `PROPERTY`; `properties` lists them all.  An answer is `Holds` with
a proof, `Fails` with a witness that both encodings reproduce, or `Unknown`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from mmaformal.display import ShortRepr
from mmaformal.facts.both_encodings import of_both_encodings
from mmaformal.facts.chains import check_order
from mmaformal.facts.registry import facts_of
from mmaformal.instruction import Instruction
from mmaformal.proof.failure import with_failure
from mmaformal.proof.kernel import ArgumentError, NotProvedError, by_rule, prove
from mmaformal.proof.related_runs import Pairing
from mmaformal.renamed import keywords
from mmaformal.solver.answers import Answer, Holds, Unknown
from mmaformal.solver.asking import Asker
from mmaformal.solver.deadline import checked_timeout
from mmaformal.solver.portfolio import DEFAULT_MEMORY
from mmaformal.solver.session import Cache, Solver, session
from mmaformal.spec import DotAdd

_RENUMBERED = (
    "renumbering: what holds for all inputs of a unit holds of one that takes the same products in another order; both "
    "encodings were seen to take them in the specification's"
)


_BUT_FOR_NANS = (
    "NaNs: what holds of a unit holds of one that gives the same code for every input, or another NaN where it gives a "
    "NaN; no property looks at the code of a NaN"
)


def nans_aside(spec: DotAdd) -> str:
    """Returns what a statement about equal codes adds where a NaN is an operand's: any two NaNs count as equal."""
    return ", which NaN aside" if spec.parameters.first_nan else ""


def numbered_as_taken(instruction: Instruction) -> Instruction:
    """The instruction, its products numbered as they are taken: a statement about all inputs is the same of both."""
    if not instruction.spec.product_order:
        return instruction
    name = f"{instruction.name}[products numbered as they are taken]"
    return replace(instruction, spec=instruction.spec.in_order, name=name, aliases=())


@dataclass(frozen=True, repr=False)
class Property(ShortRepr):
    """A statement about all inputs of an instruction."""

    name: str  #: as in `mmaformal prove NAME ARCH INSTRUCTION`: words with hyphens
    statement: str  #: one sentence, for a person; ends without a full stop
    settle: Callable[[Instruction, Asker], Answer]  #: by the terms of the SMT encoding
    about: Callable[[DotAdd], Sequence[DotAdd]] = lambda spec: [spec]  #: whose results it is about
    of_integers: bool = False  #: whether it is asked of integers too

    @keywords(backends="solver")
    def prove(
        self,
        instruction: Instruction,
        *,
        timeout: float = 120.0,
        memory: int = DEFAULT_MEMORY,
        solver: Solver = None,
        cache: Cache = False,
    ) -> Answer:
        """`Holds`, `Fails` or `Unknown`; `timeout` in seconds, `memory` in megabytes for each process of `solver`.

        `Holds` is about both encodings: their equality, for every specification that the statement is about, is among
        its obligations.  What `cache`, or a store of evidence in use (`with recording(store)`), has is not asked again.

        Raises TypeError or ValueError for a timeout that is none, NoSolverError if no such solver is
        installed, WitnessError if a witness does not hold when both encodings re-run it.
        """
        checked_timeout(timeout)
        with session(solver, memory, cache) as portfolio:
            asker = Asker(portfolio, timeout)
            question = f"{instruction.label}: {self.statement}"
            with asker.limit:
                return self._prove(instruction, asker)
            return asker.late(question)

    def _prove(self, instruction: Instruction, asker: Asker) -> Answer:
        given, instruction = instruction, numbered_as_taken(instruction)
        answer = self.of_terms(instruction, asker)
        if isinstance(answer, Holds):
            answer = of_both_encodings(answer, instruction, self.about(instruction.spec), asker)
        if isinstance(answer, Holds) and given is not instruction:
            check_order(given.spec)
            answer = replace(answer, proof=by_rule(_RENUMBERED, answer.proof))
        return with_failure(answer, asker)

    def of_terms(self, instruction: Instruction, asker: Asker) -> Answer:
        """Settle the property of an instruction, or of a model that differs only in which NaN it gives, if any: no
        property looks at a NaN's code."""
        instruction = numbered_as_taken(instruction)
        spec = instruction.spec
        if spec.parameters.is_integer and not self.of_integers:
            question = f"{instruction.label}: {self.statement}"
            why = f"no argument for {spec.parameters.algorithm}: this is asked of floating-point numbers"
            return Unknown(question, why, (), asker.elapsed)
        other = facts_of(spec).but_for_nans(spec)
        if other is None:
            return self.settle(instruction, asker)
        answer = self.settle(replace(instruction, spec=other), asker)
        if not isinstance(answer, Holds):
            return answer
        try:
            same = prove(asker, *(_same_but_nans(each) for each in self.about(spec)))
        except (NotProvedError, ArgumentError) as error:
            return Unknown(
                answer.question, f"which NaN it gives: {error}", tuple(asker.proved), asker.elapsed
            )
        question = answer.question + nans_aside(spec)
        return replace(answer, question=question, proof=by_rule(_BUT_FOR_NANS, same, answer.proof))


def _same_but_nans(spec: DotAdd) -> Pairing:
    facts = facts_of(spec)
    other = facts.but_for_nans(spec)
    assert other is not None
    return facts.same_but_nans(spec, other)
