"""Why a proof failed: the claim, the line of the argument, values under the names of interfaces, the script."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import z3

from mmaformal import Fails, Unknown, cdna2, hopper, prove
from mmaformal.encodings.sfma import smt as sfma
from mmaformal.encodings.smt import stages
from mmaformal.proof.failure import Failure, examine, labelled
from mmaformal.queries.verify import verify
from mmaformal.solver.asking import Asker
from mmaformal.solver.portfolio import Portfolio

SMALL = hopper["HMMA.1688.F32"].replace(k=2, L=2)


def solved(path: Path) -> z3.CheckSatResult:
    solver = z3.Solver()
    solver.from_file(str(path))
    return solver.check()


def test_a_refuted_lemma_is_told_with_its_line_and_its_interfaces(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    align = stages.align
    monkeypatch.setattr(stages, "align", lambda *given: align(*given) ^ 1)
    answer = verify(SMALL)
    assert isinstance(answer, Fails)
    failure = answer.failure
    assert isinstance(failure, Failure)
    assert (failure.refuted, failure.stage, failure.claim) == (True, "align", "aligned terms are the same")
    assert re.fullmatch(r"\w+/\w+\.py:\d+, link_aligned", failure.place)
    names = [name for name, _ in failure.values]
    assert "smt.steps[0].e_max" in names
    assert all(name.startswith("smt.steps[0].") for name in names)
    assert solved(failure.write_smtlib(tmp_path)) == z3.sat
    told = answer.verbose()
    assert f"argued at: {failure.place}" in told
    assert "smt.steps[0].e_max" in told
    assert json.loads(json.dumps(answer.to_json()))["failed_at"]["claim"] == failure.claim
    assert "smt.steps[0].e_max" not in str(answer), "a person asks for it with --verbose"


def test_values_are_those_for_which_a_claim_does_not_hold() -> None:
    x, y, flag = z3.BitVec("x", 8), z3.BitVec("y", 8), z3.Bool("f")
    s, t, u = z3.BitVec("t0_8", 8), z3.BitVec("t1_8", 8), z3.Bool("t2")
    refuted = z3.And(u, s == 0xF0, t == s + 1)
    cut = [(x + y, s), (y, t), (flag, u)]
    with Portfolio() as portfolio:
        values = examine(Asker(portfolio, 20), refuted, cut, labelled("run", [x + y, y]))
    assert values == (
        ("run[0]", "0xf0 = 240 (-16 in two's complement)"),
        ("run[1]", "0xf1 = 241 (-15 in two's complement)"),
        ("f", "true"),
    )


def test_a_claim_under_claims_is_told_too(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(sfma, "frame_bits", lambda precision: 2 * precision)
    instruction = cdna2["v_mfma_f32_16x16x4f32"].replace(k=1)
    answer: Any = prove("correct-rounding-of-each-step", instruction, timeout=60)
    assert isinstance(answer, Unknown)
    failure: Any = answer.failure
    assert failure.refuted
    assert "boundaries are even multiples of the last place" in failure.claim
    assert re.fullmatch(r"facts/exact_steps\.py:\d+, prove_kept_sum", failure.place)
    assert failure.values
    assert [path.name for path in answer.write_smtlib(tmp_path)][-1] == "failing.smt2"


def test_what_holds_has_no_failure() -> None:
    answer = verify(SMALL)
    assert "failed_at" not in answer.to_json()
    assert "where the proof failed" not in answer.verbose()
