"""An answer is about both encodings: what was proved of the SMT encoding's terms is proved of the executable
encoding too.

Properties and differences are settled on terms of the SMT encoding.  `Holds` and `Equal` are said of an instruction,
not of one way to write it down, so they rest on `verify` as well, for every specification that the answer is about:
its obligations become the answer's.  Those that the store of evidence has are not asked again.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import replace
from typing import TypeVar

from mmaformal.encodings import executable
from mmaformal.facts import equality
from mmaformal.facts.chains import follow
from mmaformal.instruction import Instruction
from mmaformal.proof.kernel import ArgumentError, by_rule, together
from mmaformal.solver.answers import Answer, Equal, Fails, Holds, Proof, Unknown
from mmaformal.solver.asking import Asker
from mmaformal.spec import DotAdd

Affirmed = TypeVar("Affirmed", Holds, Equal)

#: A chain of more steps than this is a chain of two, for the equality of the encodings.
LONG_CHAIN = 64

#: Proofs made in this process.  They are about the encodings that there were: a function put in another's place (as
#: tests do, to see a proof fail) makes other encodings.
_PROVED: dict[DotAdd, tuple[dict[str, tuple[object, ...]], Proof]] = {}


def forget_equalities() -> None:
    """Forget what was proved in this process, so that it is asked again."""
    _PROVED.clear()


def _encodings() -> dict[str, tuple[object, ...]]:
    """Return what each module of the two encodings holds: those that all algorithms share, and an algorithm's own."""
    package, own = executable.__name__.rpartition(".")[0], {"executable", "smt"}
    return {
        name: tuple(vars(module).values())
        for name, module in tuple(sys.modules.items())
        if name.startswith(f"{package}.") and not own.isdisjoint(name.split("."))
    }


def _are_the_same(before: dict[str, tuple[object, ...]], now: dict[str, tuple[object, ...]]) -> bool:
    """Whether all modules that there were hold the same objects; one that was imported since is no part of a proof."""
    return all(
        len(values) == len(now.get(name, ())) and all(x is y for x, y in zip(values, now[name], strict=True))
        for name, values in before.items()
    )


def _proof(instruction: Instruction, asker: Asker) -> Answer:
    """The answer of `verify`, from memory if it was `Holds`."""
    before, proof = _PROVED.get(instruction.spec, ({}, None))
    if proof is not None and _are_the_same(before, _encodings()):
        return Holds(equality.question_of(instruction), proof, 0.0)
    answer = equality.settle_equality(instruction, asker)
    if isinstance(answer, Holds):
        _PROVED[instruction.spec] = _encodings(), answer.proof  # now that all that it is about is imported
    return answer


def proved_for(spec: DotAdd) -> DotAdd:
    """The specification whose encodings are proved equal where an answer is about `spec`.

    A long chain counts as one of two steps, whose loop is followed (`chains`).
    """
    step = spec.parameters.step_products
    if spec.k <= LONG_CHAIN * step:
        return spec
    return spec.replace(k=2 * spec.period) if spec.k % (2 * spec.period) == 0 else spec


def of_both_encodings(
    answer: Affirmed, instruction: Instruction, specs: Iterable[DotAdd], asker: Asker
) -> Affirmed | Fails | Unknown:
    """The answer with the proof that both encodings of each specification are equal put before its own.

    `Fails` with an input on which they are not, `Unknown` if that is not settled in the time that the asker has left.
    """
    specs = tuple(specs)
    before: list[Proof] = []
    for spec in dict.fromkeys(map(proved_for, specs)):
        name = (
            instruction.name if spec == instruction.spec else f"{instruction.name} ({spec.types}, K={spec.k})"
        )
        equal = _proof(replace(instruction, spec=spec, name=name), asker)
        if isinstance(equal, Fails):
            why = (
                f"The two encodings of {equal.witness.instruction.label} differ, so that nothing holds of both: "  # type: ignore[attr-defined]
                f"the statement was proved of the SMT encoding alone.  {equal.why}"
            )
            return Fails(answer.question, equal.witness, why, asker.elapsed)
        if not isinstance(equal, Holds):
            assert isinstance(equal, Unknown)
            why = (
                f"it is proved of the SMT encoding, but not that both encodings are equal: {equal.why}; "
                f"`mmaformal verify` takes longer over that, and what it proved is remembered"
            )
            return Unknown(answer.question, why, together(*before, answer.proof).obligations, asker.elapsed)
        before.append(equal.proof)
    proof = together(*before, answer.proof)
    try:
        for spec in dict.fromkeys(specs):
            if proved_for(spec) != spec:
                proof = by_rule(follow(spec, proved_for(spec)), proof)
    except ArgumentError as error:
        return Unknown(
            answer.question, f"it is proved of the SMT encoding: {error}", proof.obligations, asker.elapsed
        )
    return replace(answer, proof=proof, seconds=asker.elapsed)


def equal_in_both_encodings(
    answer: Equal, instructions: Iterable[Instruction], asker: Asker
) -> Equal | Unknown:
    """An `Equal` of terms as one of instructions; `Unknown` where the encodings of one differ or are not settled."""
    for instruction in instructions:
        settled = of_both_encodings(answer, instruction, [instruction.spec], asker)
        if isinstance(settled, Fails):
            return Unknown(answer.question, f"{settled.why}\n{settled.witness}", (), asker.elapsed)
        if isinstance(settled, Unknown):
            return settled
        answer = settled
    return answer
