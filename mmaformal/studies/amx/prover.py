"""Proofs about Apple AMX for all operands and all states: both encodings are equal, and its tables are right.

    from mmaformal.studies.amx.prover import AmxProver
    with AmxProver() as prover:
        print(prover.prove("disabled-lanes", "fma32"))

`mmaformal amx` is the command.  That both encodings make the same state is argued in `alu` and `flow`;
every other claim is proved of the SMT encoding (`claims`), and its `Holds` rests on the encodings' equality too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import z3

from mmaformal.apple import AmxState, execute
from mmaformal.apple.operand import NUMBERS, OPS, AmxOperand
from mmaformal.apple.state import SIZES
from mmaformal.apple.witness import AmxWitness, least_state
from mmaformal.encodings.amx import smt as amx
from mmaformal.lanes import LaneError
from mmaformal.proof.failure import with_failure
from mmaformal.proof.kernel import ArgumentError, NotProvedError, by_rule, direct, prove, together
from mmaformal.queries.verify import ProverOfMany
from mmaformal.solver.answers import Answer, Fails, Holds, Proof, Unknown
from mmaformal.solver.asking import Asker, constants_of
from mmaformal.solver.deadline import checked_timeout
from mmaformal.solver.portfolio import DEFAULT_MEMORY
from mmaformal.solver.session import Solver
from mmaformal.studies.amx import alu as amx_alu
from mmaformal.studies.amx import flow as amx_flow
from mmaformal.studies.amx import lanes as amx_lanes
from mmaformal.studies.amx.claims import CLAIMS, OPERAND, AmxClaim, AmxQuestion, ElementOperation
from mmaformal.studies.amx.terms import ConstantValues, execute_terms, named_words

BOTH = "both-encodings"
STATEMENTS = {BOTH: "both encodings make the same state of every state"} | {
    each.name: each.statement for each in CLAIMS
}
LANES = "lanes"
STATEMENTS[LANES] = "both encodings make the same of single lanes, in instructions beside fma"
NAMES = tuple(OPS)

_INSTANCE = (
    "instance: both encodings compute an element as one function of its operands and of bits 27 to 29; that the "
    "functions are equal was proved for all of them, so they are wherever the flow of data has an element"
)

#: States that are tried where a proof failed.
_TRIED = 40


class AmxProver(ProverOfMany):
    """Proves one of `STATEMENTS` after another, of fma16, fma32 or fma64 and all operands and states."""

    def __init__(self, solver: Solver = None, memory: int = DEFAULT_MEMORY) -> None:
        super().__init__(solver, memory)
        self._equal: dict[str, Proof] = {}

    def prove(self, claim: str, name: str, timeout: float = 600.0) -> Answer:
        """`Holds`, `Fails` or `Unknown`; `timeout` in seconds.  Raises ValueError for no claim or instruction."""
        if claim not in STATEMENTS:
            raise ValueError(f"no claim {claim!r}; there are {', '.join(STATEMENTS)}")
        known = OPS if claim != LANES else [each for each in NUMBERS if each not in OPS]
        if name not in known:
            raise ValueError(f"no AMX instruction {name!r} here; there are {', '.join(known)}")
        asker = Asker(self.portfolio, checked_timeout(timeout))
        question = f"apple_amx {name}: {STATEMENTS[claim]}, whatever the operand"
        return asker.within(question, lambda: with_failure(self._prove(question, claim, name, asker), asker))

    def _prove(self, question: str, claim: str, name: str, asker: Asker) -> Answer:
        if claim == LANES:
            return _lanes(question, name, asker)
        if claim == BOTH:
            return self._both(question, name, asker)
        (chosen,) = (each for each in CLAIMS if each.name == claim)
        answer = _of_terms(question, chosen, name, asker)
        if not isinstance(answer, Holds):
            return answer
        equal = self._both(question, name, asker)
        if not isinstance(equal, Holds):
            return _of_one_encoding(answer, equal)
        return Holds(question, together(equal.proof, answer.proof), asker.elapsed)

    def _both(self, question: str, name: str, asker: Asker) -> Answer:
        if name not in self._equal:
            answer = _both(question, name, asker)
            if not isinstance(answer, Holds):
                return answer
            self._equal[name] = answer.proof
        return Holds(question, self._equal[name], asker.elapsed)


# ---- both encodings -------------------------------------------------------------------------------------------------


def _both(question: str, name: str, asker: Asker) -> Answer:
    try:
        formats = [amx.RHO[name], *([amx.RHO["fma32"]] if name == "fma16" else [])]
        elements = [prove(asker, amx_alu.argue_alu(rho)) for rho in formats]
        return Holds(
            question, by_rule(_INSTANCE, *elements, prove(asker, amx_flow.argue_flow(name))), asker.elapsed
        )
    except (LaneError, ArgumentError, NotProvedError) as error:
        why = str(error)
    for state, operand in _states(asker):
        if _differ(state, name, operand):
            return Fails(question, _parting(state, name, operand), f"The proof failed: {why}", asker.elapsed)
    return Unknown(question, f"{why}; no state was found that shows it", tuple(asker.proved), asker.elapsed)


def _lanes(question: str, name: str, asker: Asker) -> Answer:
    proofs: list[Proof] = []
    try:
        proofs += [prove(asker, amx_alu.argue_alu(rho)) for rho in amx_lanes.conversions_of(name)]
        proofs += [prove(asker, make()) for make in amx_lanes.arguments(name).values()]
        return Holds(question, by_rule(_INSTANCE, *proofs), asker.elapsed)
    except (LaneError, ArgumentError, NotProvedError) as error:
        known = tuple(o for proof in proofs for o in proof.obligations)
        return Unknown(question, str(error), known, asker.elapsed)


def _of_one_encoding(answer: Holds, equal: Answer) -> Answer:
    if isinstance(equal, Fails):
        why = f"It was proved of the SMT encoding, but the executable encoding differs from it. {equal.why}"
        return Fails(answer.question, equal.witness, why, equal.seconds)
    assert isinstance(equal, Unknown)
    why = f"it is proved of the SMT encoding, but not that both encodings are equal: {equal.why}"
    return Unknown(answer.question, why, answer.proof.obligations, equal.seconds)


def _states(asker: Asker) -> Iterator[tuple[AmxState, int]]:
    """Random states and operands, all lanes enabled in one of two, while there is time."""
    rng = np.random.default_rng(0)
    lanes = AmxOperand(x_enable_mode=3, x_enable_value=31, y_enable_mode=3, y_enable_value=31).encode()
    for n in range(_TRIED):
        if asker.left <= 0:
            return
        operand = int(rng.integers(0, 1 << 64, dtype=np.uint64))
        yield _random(rng), operand & ~lanes if n % 2 else operand


def _random(rng: np.random.Generator) -> AmxState:
    """Bytes of few values, so that codes are equal, special and near each other often enough."""
    some = rng.choice(np.array([0, 1, 0x3C, 0x3F, 0x7C, 0x7F, 0x80, 0xBC, 0xFF], np.uint8), 512 + 512 + 4096)
    data = np.where(rng.random(len(some)) < 0.5, some, rng.integers(0, 256, len(some), np.uint8)).tobytes()
    return AmxState(data[:512], data[512:1024], data[1024:])


def _differ(state: AmxState, name: str, operand: int) -> bool:
    return execute(state, name, operand) != execute_terms(state, name, operand)


def _parting(state: AmxState, name: str, operand: int) -> AmxWitness:
    state = least_state(state, lambda trial: _differ(trial, name, operand))
    mine, other = execute(state, name, operand).z, execute_terms(state, name, operand).z
    n = next(n for n, (x, y) in enumerate(zip(mine, other, strict=True)) if x != y)
    became = f"becomes {mine[n]:#04x} in the executable encoding, {other[n]:#04x} in the SMT encoding"
    return AmxWitness(name, operand, state, f"byte {n % 64} of row {n // 64} {became}")


# ---- claims about the SMT encoding ----------------------------------------------------------------------------------


def _of_terms(question: str, claim: AmxClaim, name: str, asker: Asker) -> Answer:
    proofs: list[Proof] = []
    for each in claim.questions(name):
        try:
            proofs.append(_settled(each, claim, asker))
        except NotProvedError as error:
            known = tuple(o for proof in proofs for o in proof.obligations)
            witness = _witness(each, name, asker) if error.refuted else None
            if witness is None:
                return Unknown(question, str(error), known, asker.elapsed)
            return Fails(question, witness, f"It does not hold that {each.statement}.", asker.elapsed)
    if not proofs:
        return Unknown(question, f"it says nothing of {name}", (), asker.elapsed)
    return Holds(question, together(*proofs), asker.elapsed)


def _settled(question: AmxQuestion, claim: AmxClaim, asker: Asker) -> Proof:
    """Raises NotProvedError."""
    if question.theorem is not None:
        return prove(asker, question.theorem)
    outcome = asker.satisfy(claim.name, question.statement, [z3.Not(question.formula)], whole=True)
    if outcome.verdict != "unsat":
        raise NotProvedError(question.statement, outcome.verdict, outcome.why)
    return direct(outcome)


def _witness(question: AmxQuestion, name: str, asker: Asker) -> AmxWitness | None:
    """A state and an operand that show that it does not hold, re-run on them; None if none is found."""
    constants = {
        str(c): c.size() for c in constants_of(question.formula) if str(c) in ("operand", "other", *"xyz")
    }
    outcome = asker.satisfy("search", question.statement, [z3.Not(question.formula)], constants, whole=False)
    if outcome.verdict != "sat":
        return None
    if question.operation is not None:
        return _operation(question.operation, name, outcome.model)
    operand = outcome.model.get("operand", 0)
    given: ConstantValues = [(OPERAND, z3.BitVecVal(operand, 64))]
    other = outcome.model.get("other", 0)
    given.append((z3.BitVec("other", 64), z3.BitVecVal(other, 64)))

    def shows(state: AmxState) -> bool:
        pairs = [*given, *named_words(state)]
        for run in question.runs:
            pairs += run.elements.values(pairs)
        return bool(z3.is_false(z3.simplify(z3.substitute(question.formula, *pairs))))

    for state, _ in _states(asker):
        if shows(state):
            note = f"it does not hold that {question.statement}"
            if len(question.runs) > 1:
                note += f" (those of {other:#018x}, in their places, make another Z)"
            return AmxWitness(name, operand, least_state(state, shows), note)
    return None


def _operation(operation: ElementOperation, name: str, model: Mapping[str, int]) -> AmxWitness:
    """Element 0 of row 0, in vector mode."""
    fmt = operation.rho.format
    codes = [model.get(code, 0) for code in "xyz"]
    pairs = [
        (z3.BitVec(c, fmt.storage_bits), z3.BitVecVal(v, fmt.storage_bits))
        for c, v in zip("xyz", codes, strict=True)
    ]
    became, expected = (
        z3.simplify(z3.substitute(term, *pairs)).as_long() for term in (operation.result, operation.expected)
    )
    x, y, z = (code.to_bytes(fmt.storage_bits // 8, "little") for code in codes)
    skips = {
        f"skip_{side}": (operation.skip >> place) & 1 for side, place in zip("xyz", (2, 1, 0), strict=True)
    }
    operand = AmxOperand(vector=1, **skips).encode()
    state = AmxState(x.ljust(SIZES["x"], b"\0"), y.ljust(SIZES["y"], b"\0"), z.ljust(SIZES["z"], b"\0"))
    note = f"element 0 of row 0 becomes {fmt.text(became)}, by the table {fmt.text(expected)}"
    return AmxWitness(name, operand, state, note)
