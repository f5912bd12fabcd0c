"""The mutation harness: that its changes can be made, that it tells a proof from a miss, and two mutants."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import kernel_mutants
import mutate
import proof_mutants
import pytest
import search_mutants
import tested
import z3
from hypothesis import given
from hypothesis import strategies as st
from mutants import MUTANTS

from mmaformal import ARCHITECTURES
from mmaformal.cases.evaluate import evaluate
from mmaformal.facts.registry import found

ROOT = Path(__file__).resolve().parents[2]


def test_every_mutant_can_be_made(tmp_path: Path) -> None:
    assert len({(m.file, m.old, m.new, m.instruction) for m in MUTANTS}) == len(MUTANTS)
    texts = {m.file: (ROOT / "encodings" / m.file).read_text() for m in MUTANTS}
    for mutant in MUTANTS:
        assert texts[mutant.file].count(mutant.old) == 1, f"{mutant.file}: {mutant.what}"
        mutated = texts[mutant.file].replace(mutant.old, mutant.new)
        compile(mutated, mutant.file, "exec")
        assert mutated != texts[mutant.file]
    mutate.mutate(MUTANTS[0], tmp_path / "copy")
    assert (tmp_path / "copy" / MUTANTS[0].file).read_text().count(MUTANTS[0].new) == 1


def test_mutants_are_of_both_wings_and_of_every_algorithm() -> None:
    assert len(MUTANTS) >= 60
    wings = Counter(m.encoding for m in MUTANTS)
    assert min(wings["executable"], wings["smt"]) >= 30
    instructions = [m.instruction.split(" ", 1) for m in MUTANTS]
    asked = {ARCHITECTURES[arch][name].algorithm for arch, name in instructions}
    listed = [*ARCHITECTURES.values(), *(ARCHITECTURES[x] for x in ("datapath", "emulation"))]
    assert asked == {i.algorithm for arch in listed for i in arch}
    assert set(found()) == asked


def test_only_what_was_expected_is_no_miss() -> None:
    change = next(m for m in MUTANTS if not m.same)
    none = next(m for m in MUTANTS if m.same)
    answers = ("fails", "holds", "unknown", "crash")
    assert [mutate.verdict(change, {"answer": a}) for a in answers] == ["caught", *["MISSED"] * 3]
    assert [mutate.verdict(none, {"answer": a}) for a in answers] == ["MISSED", "no change", *["MISSED"] * 2]


def test_two_mutants_and_then_none_again(tmp_path: Path) -> None:
    command = [sys.executable, str(ROOT / "tools" / "mutate.py"), "--results", str(tmp_path / "r.jsonl")]
    command += ["--evidence", str(tmp_path / "e.db"), "--write", str(tmp_path / "table.md")]
    for words in ("ties are rounded to odd", "c is added last"):
        command += ["--only", words]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
    assert run.stdout.splitlines()[-1] == "1 caught, 1 no change, 0 MISSED"
    kept = [json.loads(line) for line in (tmp_path / "r.jsonl").read_text().splitlines()]
    assert [entry["answer"] for entry in kept] == ["holds", "fails"]
    witness = kept[1]["witness"]
    in_executable, in_smt = (each["d"] for each in witness["runs"])
    assert in_executable != in_smt or "wraps" in witness["notes"][0]
    table = (tmp_path / "table.md").read_text()
    assert table.count("| caught |") == 1
    assert table.count("| no change |") == 1
    again = subprocess.run(command, capture_output=True, text=True, check=False)
    assert again.stdout == run.stdout
    assert len((tmp_path / "r.jsonl").read_text().splitlines()) == 2


# ---- trying cases by the thousand


@given(st.lists(st.integers(0, 200), min_size=1, max_size=40), st.lists(st.integers(0, 255), min_size=6))
def test_terms_on_many_values_are_what_z3_makes_of_each(choices: list[int], values: list[int]) -> None:
    import numpy as np

    x, y = z3.BitVecs("x y", 8)
    terms = [x, y, z3.BitVecVal(129, 8), z3.BitVecVal(3, 8)]
    for n in choices:
        u, v, w = (terms[(n * k + k) % len(terms)] for k in (1, 3, 7))
        tests = [u <= v, z3.ULT(u, v), u > v, z3.UGE(u, v), u == v, z3.And(u != v, z3.Or(w == u, x < y))]
        made = [
            u + v, u - v, u * v, -u, ~u, u & v, u | v, u ^ v, u << v, z3.LShR(u, v), u >> v,
            z3.If(tests[n % 6], u, v), z3.If(z3.Xor(tests[n % 6], tests[n % 5]), w, v),
            z3.If(z3.Implies(tests[n % 6], z3.Not(tests[n % 4])), w, v),
            z3.Concat(z3.Extract(2, 0, u), z3.Extract(7, 3, v)),
            z3.Extract(9, 2, z3.SignExt(4, u) + z3.ZeroExt(4, v)),
        ]  # fmt: skip
        terms.append(made[n % len(made)])
    half = len(values) // 2
    columns = {"x": np.array(values[:half], object), "y": np.array(values[-half:], object)}
    got = np.broadcast_to(evaluate(terms[-1], columns), half)
    for i in range(half):
        pairs = [(x, z3.BitVecVal(values[i], 8)), (y, z3.BitVecVal(values[len(values) - half + i], 8))]
        assert int(got[i]) == z3.simplify(z3.substitute(terms[-1], *pairs)).as_long()


def test_what_is_no_bit_vector_is_not_evaluated() -> None:
    with pytest.raises(ValueError, match="bit-vectors"):
        evaluate(z3.Int("n") + 1, {"n": 3})


# ---- mutants that tests are to see


@pytest.mark.parametrize(
    ("module", "least"), [(kernel_mutants, 50), (search_mutants, 100), (proof_mutants, 40)]
)
def test_every_mutant_that_tests_see_can_be_made(module: Any, least: int) -> None:
    assert len({(m.file, m.old, m.new) for m in module.MUTANTS}) == len(module.MUTANTS) >= least
    for mutant in module.MUTANTS:
        text = (ROOT / mutant.file).read_text()
        assert text.count(mutant.old) == 1, f"{mutant.file}: {mutant.what}"
        compile(text.replace(mutant.old, mutant.new), mutant.file, "exec")
        for test in mutant.tests:
            assert (
                test.startswith("-")
                or " or " in test
                or "::" in test
                or (ROOT / test).exists()
                or test.isalpha()
            )


def test_a_mutant_is_in_the_copy(tmp_path: Path) -> None:
    tested.layout(tmp_path, kernel_mutants.MUTANTS[0])
    assert kernel_mutants.MUTANTS[0].new in (tmp_path / "mmaformal" / "kernels" / "fused.py").read_text()


def test_a_mutant_is_missed_unless_it_is_what_was_expected() -> None:
    change = next(m for m in kernel_mutants.MUTANTS if not m.same)
    none = next(m for m in kernel_mutants.MUTANTS if m.same)
    statuses = ("fails", "passes", "broken", "time limit")
    assert [tested.verdict(change, s) for s in statuses] == ["caught", *["MISSED"] * 3]
    assert [tested.verdict(none, s) for s in statuses] == ["MISSED", "no change", *["MISSED"] * 2]


def test_tests_of_one_file_are_tried_together() -> None:
    every = [
        ("tests/a.py::x",),
        ("tests/a.py::y", "tests/a.py::x"),
        ("tests/b.py::z",),
        ("tests/a.py", "-k", "w"),
    ]
    assert tested.same_file(every[0], every) == ("tests/a.py::x", "tests/a.py::y")
    assert tested.same_file(every[2], every) == every[2]
    assert tested.same_file(every[3], every) == every[3]


@pytest.mark.slow
def test_a_mutant_is_tested_on_a_copy(tmp_path: Path) -> None:
    command = [
        sys.executable,
        str(ROOT / "tools" / "tested.py"),
        "kernel_mutants",
        "--only",
        "for any rounding",
    ]
    command += ["--results", str(tmp_path / "r.jsonl"), "--write", str(tmp_path / "table.md")]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
    assert run.stdout.splitlines()[-1] == "1 caught, 0 no change, 0 MISSED"
    assert (tmp_path / "table.md").read_text().count("| caught |") == 1
