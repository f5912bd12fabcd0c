"""The argument that both encodings of a specification agree, and the search for an input on which they do not."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import z3

from mmaformal.cases.encodings import codes_of_model, compare_encodings, trace
from mmaformal.cases.generate import generate
from mmaformal.cases.inputs import Codes, Inputs, Rows, symbolic_inputs
from mmaformal.cases.just_below import just_below
from mmaformal.cases.run import SmtEncoding, run
from mmaformal.cases.shrink import fewer_products, shrink, size
from mmaformal.cases.witness import CaseWitness
from mmaformal.facts.protocol import UnsupportedError
from mmaformal.facts.registry import facts_of
from mmaformal.instruction import Instruction
from mmaformal.lanes import LaneError, Tracer
from mmaformal.proof.encoding_links import link_code
from mmaformal.proof.failure import labelled, with_failure
from mmaformal.proof.kernel import ArgumentError, NotProvedError, prove
from mmaformal.proof.lemmas import Argument
from mmaformal.solver.answers import Answer, Fails, Holds, Obligation, Unknown
from mmaformal.solver.asking import Asker, Settled
from mmaformal.spec import DotAdd
from mmaformal.witness import WitnessError

#: Numbers of cases that are run before a solver is asked for one: a few hundred show most errors, thousands more.
_CASES = (500, 20_000)


#: Seconds for each kind of input in the search for a witness, before those left open are asked for longer.
_PATIENCE = (5.0, 30.0, 1e9)


def question_of(instruction: Instruction) -> str:
    return f"both encodings of {instruction.label} give the same code for every input, and nothing wraps"


def argue_equality(spec: DotAdd) -> Argument:
    """The argument that both encodings agree, and its lemmas, none of them proved.

    Raises UnsupportedError; LaneError or ArgumentError if the encodings do not have the structure to argue about.
    """
    tracer = Tracer()
    traces = trace(spec, symbolic_inputs(spec), tracer)
    argument = Argument(tracer)
    argument.interfaces = lambda: (
        *labelled("executable", traces.executable),
        *labelled("smt", traces.smt),
    )
    facts_of(spec).equal(argument, traces)
    # Whatever an argument ends with: it is the code of d that has to be the same.
    argument.conclude(
        "in both encodings d is the same code", link_code(traces.executable.result, traces.smt.result)
    )
    return argument


def settle_equality(instruction: Instruction, asker: Asker) -> Answer:
    """`Holds`, `Fails` or `Unknown` in the time that the asker has left."""
    question = question_of(instruction)
    known: tuple[Obligation, ...] = ()
    try:
        return Holds(question, prove(asker, argue_equality(instruction.spec)), asker.elapsed)
    except UnsupportedError as error:
        return Unknown(question, str(error), (), asker.elapsed)
    except (LaneError, ArgumentError, NotProvedError) as error:
        why, known = str(error), tuple(asker.proved)
    witness = find_witness(asker, instruction)
    if witness is not None:
        answer: Answer = Fails(question, witness, f"The proof failed: {why}", asker.elapsed)
    else:
        answer = Unknown(question, f"{why}; no input was found that shows it", known, asker.elapsed)
    return with_failure(answer, asker)


def find_witness(asker: Asker, instruction: Instruction) -> CaseWitness | None:
    """An input on which the encodings differ or an operation wraps; None if the asker's time does not suffice."""
    witness = _sample(instruction)
    if witness is not None:
        return witness
    left = list(_kinds_of_inputs(instruction.spec))
    for patience in _PATIENCE:
        kinds, left = left, []
        for inputs in kinds:
            if asker.left <= 0:
                return None
            try:
                outcome = _differ(asker, instruction.spec, inputs, patience)
            except LaneError:  # what the executable encoding does cannot be said of symbolic lanes
                return None
            if outcome.verdict == "unknown":
                left.append(inputs)
            if outcome.verdict != "sat":
                continue
            codes = codes_of_model(inputs, outcome.model)
            witness = compare_encodings(instruction, codes)
            if witness is None:
                raise WitnessError(f"symbolic lanes or a solver are wrong: both encodings agree on {codes}")
            return witness
    return None


def _sample(instruction: Instruction) -> CaseWitness | None:
    """Run both encodings on codes of all distributions."""
    spec, encoding = instruction.spec, SmtEncoding(instruction.spec)

    def shows(cases: Sequence[Codes]) -> list[bool]:
        return [
            x != y for x, y in zip(run(instruction, cases), encoding.results(Rows.of(cases)), strict=True)
        ]

    for cases in _tried(spec):
        found = [codes for codes, shown in zip(cases, shows(cases), strict=True) if shown]
        if found:
            least = min(found, key=lambda codes: size(spec, codes))
            return compare_encodings(instruction, shrink(spec, least, shows, fewer_products))
    return None


def _tried(spec: DotAdd) -> Iterator[list[Codes]]:
    few, many = _CASES
    yield generate(spec, few).cases()
    yield just_below(spec, 4 * few)
    yield generate(spec, many).cases()


def _differ(asker: Asker, spec: DotAdd, inputs: Inputs, limit: float) -> Settled:
    """Ask for codes on which the encodings differ, or an operation wraps."""
    tracer = Tracer(strict=False)
    traces = trace(spec, inputs, tracer)
    differ = traces.executable.result.fit(spec.d_format.storage_bits) != traces.smt.result
    statement = "the encodings agree on inputs of one kind"
    return asker.satisfy(
        "search", statement, [z3.Or(differ, *tracer.violations)], inputs.constants(), limit=limit, whole=False
    )


def _kinds_of_inputs(spec: DotAdd) -> Iterator[Inputs]:
    """Few products first; then many, but equal ones; then all."""
    last = spec.k - 1
    for few in dict.fromkeys([(0,), (0, min(1, last)), (0, min(2, last)), (0, last)]):
        pinned = {f"{side}{k}": 0 for side in "ab" for k in range(spec.k) if k not in few}
        yield symbolic_inputs(spec, pinned)
    everything = symbolic_inputs(spec)
    for period in (1, 2):
        order = [k % period for k in range(spec.k)]
        yield replace(
            everything, a=tuple(everything.a[k] for k in order), b=tuple(everything.b[k] for k in order)
        )
    yield everything
