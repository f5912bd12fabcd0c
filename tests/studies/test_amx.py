"""Claims about Apple AMX for all operands and states: they hold, and where an encoding is broken they are seen to
fail."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import pytest
import z3
from support.slow import slow

from mmaformal.apple import AmxState, execute
from mmaformal.apple.operand import OPS, AmxOperand
from mmaformal.apple.witness import AmxWitness, least_state
from mmaformal.cli import main
from mmaformal.cli.amx import CLAIM_NAMES
from mmaformal.encodings.amx import executable, smt
from mmaformal.encodings.smt.blocks import Term
from mmaformal.lanes import Tracer
from mmaformal.proof.kernel import ArgumentError, prove
from mmaformal.proof.lemmas import Argument
from mmaformal.rounding import IEEE_FP16
from mmaformal.solver.answers import Answer, Fails, Holds, Unknown
from mmaformal.solver.asking import Asker
from mmaformal.solver.evidence import EvidenceStore, recording
from mmaformal.solver.portfolio import LazyPortfolio
from mmaformal.studies.amx import prover as query
from mmaformal.studies.amx import terms
from mmaformal.studies.amx.alu import argue_alu
from mmaformal.studies.amx.claims import CLAIMS, AmxClaim
from mmaformal.studies.amx.prover import BOTH, STATEMENTS, AmxProver
from mmaformal.studies.amx.terms import execute_terms


def claim_of(name: str) -> AmxClaim:
    (claim,) = (each for each in CLAIMS if each.name == name)
    return claim


def of_terms(claim: str, name: str) -> Answer:
    """A claim about the SMT encoding alone, which is quicker."""
    with LazyPortfolio() as portfolio:
        return query._of_terms("?", claim_of(claim), name, Asker(portfolio, 60.0))


def test_the_command_knows_all_claims() -> None:
    assert set(CLAIM_NAMES) == set(STATEMENTS)


def test_elements_of_fp16_become_the_same_in_both_encodings() -> None:
    with LazyPortfolio() as portfolio:
        proof = prove(Asker(portfolio, 120.0), argue_alu(IEEE_FP16))
    assert "in both encodings" in proof.obligations[-1].statement


def test_an_argument_that_began_before_its_lanes_were_computed_concludes_nothing() -> None:
    tracer = Tracer()
    argument = Argument(tracer)
    lane = tracer.input(z3.BitVec("x", 8), np.arange(256))
    assert lane + 1 is not lane
    with pytest.raises(ArgumentError, match="their rules are no lemmas"):
        argument.conclude("nothing", z3.BoolVal(True))


@pytest.fixture(autouse=True)
def _terms_are_of_the_encoding_as_it_is() -> Iterator[None]:
    """Keep what is known of the right encoding from a broken one, and the other way round."""
    terms._alu.cache_clear()
    yield
    terms._alu.cache_clear()


def shown(answer: Answer) -> AmxWitness:
    assert isinstance(answer, Fails), answer
    assert isinstance(answer.witness, AmxWitness)
    return answer.witness


@pytest.mark.slow
def test_a_claim_that_does_not_hold_is_shown_with_a_state_and_an_operand(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    right = smt.row_mask
    monkeypatch.setattr(smt, "row_mask", lambda operand, stride: right(operand, stride) | 1)
    witness = shown(of_terms("vector-mode", "fma64"))
    operand = AmxOperand.decode(witness.operand)
    assert operand.vector
    assert operand.z_row
    after = execute_terms(witness.state, "fma64", witness.operand)
    assert after.row(0) != witness.state.row(0)
    assert execute(witness.state, "fma64", witness.operand).row(0) == witness.state.row(0)
    assert "all rows but z_row are kept" in str(witness)
    assert json.loads(json.dumps(witness.to_json()))["operand"] == f"{witness.operand:#018x}"


def test_an_operation_that_is_not_the_table_s_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(smt, "_choose", lambda no_y, no_x, x, y, both: z3.If(no_y, x, z3.If(no_x, x, both)))
    witness = shown(of_terms("operations", "fma16"))
    operand = AmxOperand.decode(witness.operand)
    assert (operand.skip_x, operand.skip_y, operand.skip_z) == (1, 0, 0)
    assert execute(witness.state, "fma16", witness.operand) != execute_terms(
        witness.state, "fma16", witness.operand
    )


def _other_lanes_of_x(pairs: list[list[smt.LaneElement]]) -> list[list[smt.LaneElement]]:
    """Rows of even lanes of X have odd ones, and the other way round."""
    return [
        [each._replace(x=other.x) for each, other in zip(row, pairs[r ^ 1], strict=True)]
        for r, row in enumerate(pairs)
    ]


def _half(term: Term) -> Term:
    return term._replace(significand=z3.LShR(term.significand, 1))


class Broken(NamedTuple):
    """A function of the SMT encoding with a defect that one claim is about, and what is said then."""

    claim: str
    name: str
    function: str
    change: Callable[[Callable[..., Any]], Callable[..., Any]]
    note: str


BROKEN = (
    Broken("disabled-lanes", "fma64", "enable_mask", lambda right: lambda *given: right(*given) | 1,
           "disabled lanes of row 0 keep their bytes"),
    Broken("matrix-mode", "fma64", "row_mask", lambda right: lambda operand, stride: right(operand, stride // 2),
           "rows that are not congruent to z_row modulo 8 are kept"),
    Broken("interleaved", "fma16", "_pairs", lambda right: lambda *given: _other_lanes_of_x(right(*given)),
           "lanes i of X and j of Y make what is at the place of (i, j)"),
    Broken("ignored-bits", "fma64", "skips", lambda right: lambda operand: right(operand)
           | z3.ZeroExt(2, smt.field(operand, 26, 1)),
           "Z does not depend on the ignored bits"),
    Broken("additions", "fma16", "_alone", lambda right: lambda *given: _half(right(*given)),
           "element 0 of row 0 becomes"),
)  # fmt: skip


@pytest.mark.parametrize("broken", slow(BROKEN, BROKEN[:4]), ids=lambda broken: broken.claim)
def test_each_claim_is_seen_to_fail(broken: Broken, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(smt, broken.function, broken.change(getattr(smt, broken.function)))
    witness = shown(of_terms(broken.claim, broken.name))
    assert broken.note in str(witness)
    if broken.claim != "interleaved":  # which is about lanes; what they make may be the same
        after = execute(witness.state, broken.name, witness.operand)
        assert after != execute_terms(witness.state, broken.name, witness.operand)


def test_encodings_that_differ_are_seen_on_a_state(monkeypatch: pytest.MonkeyPatch) -> None:
    right = smt.loaded
    monkeypatch.setattr(smt, "loaded", lambda pool, offset: right(pool, offset | 1))
    state = AmxState(x=bytes(range(256)) * 2)
    operand = AmxOperand(vector=1, skip_y=1, skip_z=1, x_offset=4).encode()
    assert query._differ(state, "fma64", operand)
    least = least_state(state, lambda trial: query._differ(trial, "fma64", operand))
    assert not any(least.x[256:])
    assert (
        "byte 0 of row 0 becomes 0x04 in the executable encoding, 0x05"
        in query._parting(least, "fma64", operand).note
    )


def test_wrong_use_is_told() -> None:
    with pytest.raises(ValueError, match="no claim 'nothing'"):
        AmxProver().prove("nothing", "fma32")
    with pytest.raises(ValueError, match="no AMX instruction 'fma8'"):
        AmxProver().prove(BOTH, "fma8")
    assert main(["amx", "nothing"]) == 2


def test_a_claim_about_another_instruction_is_wrong_use() -> None:
    assert main(["amx", "interleaved", "--instruction", "fma32"]) == 2


def test_no_time_is_unknown(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["amx", BOTH, "--instruction", "fma64", "--timeout", "0.3", "--no-cache"]) == 3
    assert capsys.readouterr().out.startswith("UNKNOWN  fma64  both-encodings")


# ---- long ones -----------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("name", list(OPS))
def test_all_claims_hold(name: str) -> None:
    with AmxProver() as prover:
        for claim in CLAIM_NAMES[:-1]:
            answer = prover.prove(claim, name, 1800.0)
            if claim == "interleaved" and name != "fma16":
                assert isinstance(answer, Unknown)
            elif (claim, name) != ("additions", "fma64"):
                assert isinstance(answer, Holds), str(answer)


def _changed(right: Callable[..., Any], change: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *given: change(right(*given))


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EvidenceStore]:
    """A store in which what was proved for one mutant is not asked again for the next."""
    with EvidenceStore(tmp_path_factory.mktemp("amx") / "evidence.db") as store:
        yield store


#: One change each: which encoding, which of its functions, and what becomes of its result.
MUTANTS: dict[str, tuple[Any, str, Callable[[Any], Any]]] = {
    "a lane more is enabled": (smt, "enable_mask", lambda mask: mask | 1),
    "a row more changes": (smt, "row_mask", lambda mask: mask | 4),
    "bytes are read from the next place on": (
        smt, "loaded", lambda row: z3.Concat(z3.Extract(7, 0, row), z3.Extract(511, 8, row))
    ),
    "the last stage of a rotation is left out": (
        executable, "rotated", lambda stages: [*stages[:-2], stages[-2], stages[-2][:64]]
    ),
    "a lane less is enabled": (executable, "enabled", lambda flag: flag ^ True),
    "an fp16 NaN keeps its sign": (smt, "widened", lambda code: code | 1),
    "bytes of an element are swapped": (executable, "as_bytes", lambda parts: parts[::-1]),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("mutant", list(MUTANTS))
def test_a_change_of_one_encoding_is_shown(
    mutant: str, store: EvidenceStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    encoding, function, change = MUTANTS[mutant]
    monkeypatch.setattr(encoding, function, _changed(getattr(encoding, function), change))
    with recording(store), AmxProver() as prover:
        witness = shown(prover.prove(BOTH, "fma32", timeout=600.0))
    assert execute(witness.state, "fma32", witness.operand) != execute_terms(
        witness.state, "fma32", witness.operand
    )
