"""The mutation tool: what its operators make, what it calls a mutant, and mutants of each kind asked for."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import mutants
import mutate
import pytest
import z3
from hypothesis import given
from hypothesis import strategies as st

from mmaformal import ARCHITECTURES
from mmaformal.cases.evaluate import evaluate
from mmaformal.facts.registry import all_facts

ROOT = Path(__file__).resolve().parents[2]

#: Text of a function, and some of the changes that are made of it, by their operators.
MADE = {
    "return x - y": {"swap: y - x", "drop: x", "drop: y", "other: x + y", "off by one: x - y + 1", "name: y"},
    "return x << 2": {"swap: 2 << x", "other: x >> 2", "drop: x", "constant: 3", "constant: 1"},
    "return x.sign ^ y.sign": {"other: x.sign | y.sign", "drop: y.sign", "drop: x.sign"},
    'if v == "sat":\n        return 1': {"compare: v != 'sat'", "settled: v != 'unsat'"},
    "return x < 3": {"compare: x <= 3", "swap: 3 < x"},
    "return z3.ULT(x, y)": {"name: z3.ULE", "swap: z3.ULT(y, x)"},
    "return z3.And(x, y)": {"name: z3.Or", "drop: z3.And(x)", "drop: z3.And(y)"},
    "return x and not y": {"other: x or not y", "drop: x", "drop: not y", "negate: y"},
    "return where(x, y, z)": {"branches: where(x, z, y)", "branch: y", "branch: z"},
    "return y if x else z": {"branches: z if x else y", "branch: y", "branch: z"},
    "return flush(x)": {"unwrap: x"},
    "return x.fraction_bits": {"width: x.fraction_bits + 1", "width: x.fraction_bits - 1"},
    "return Rounding.RNE": {"name: Rounding.RZ"},
    "return [x, *y]": {"drop: [x]", "drop: [*y]"},
    "return f(x, k=True)": {"drop: f(x)", "negate: False"},
    "return x[1:n]": {"slice: x", "slice: x[1 + 1:n]", "slice: x[1:n - 1]"},
    "return [z for z in x if z]": {"drop: z in x", "iterate: list(x)[1:]", "iterate: list(x)[:-1]"},
    "if x:\n        y = 0\n    return y": {"negate: not x", "guard: False", "guard: True"},
    "f(x)\n    y += x\n    y = g(y)": {"statement: pass"},
}


@pytest.mark.parametrize("body", MADE)
def test_operators_make_what_they_are_named_for(body: str) -> None:
    source = f'def function(x, y, z):\n    """Text."""\n    assert x > 1, y\n    {body}\n'
    made = mutate.of_source("file.py", source.encode())
    said = [
        f"{m.operator}: {m.new.removeprefix('(').removesuffix(')') if m.new[0] == '(' else m.new}"
        for m in made
    ]
    assert set(said) >= MADE[body]
    assert len({m.id for m in made}) == len(made)
    for mutant in made:
        compile(mutant.text, "file.py", "exec")
        assert mutant.text != source
        assert mutant.text.startswith(source[: source.index(body)])


def test_every_file_and_every_change_by_hand_is_there() -> None:
    for targets in mutants.SUBJECTS.values():
        for target in targets:
            assert mutate.path_of(target.file).exists()
            for mutant in mutate.extra(target):
                compile(mutant.text, target.file, "exec")
            for test in target.asked:
                assert (
                    target.proved
                    or (ROOT / test.partition("::")[0]).exists()
                    or not test.startswith("tests/")
                )
    files = {target.file for targets in mutants.SUBJECTS.values() for target in targets}
    by_hand = {line.split(": ")[0] for line in mutants.EXTRA.splitlines() if line[0] not in "-+"}
    assert by_hand <= files
    made = sum(len(mutate.extra(t)) for targets in mutants.SUBJECTS.values() for t in targets)
    assert made == sum(line[0] not in "-+" for line in mutants.EXTRA.splitlines())
    for file, old, _, why in mutants.EQUAL:
        assert old in mutate.path_of(file).read_text(encoding="utf-8"), f"{file}: {why}"


def test_every_algorithm_is_asked_in_both_encodings() -> None:
    asked = [t for t in mutants.SUBJECTS["encodings"] if t.proved]
    labels = [each.split(" ", 1) for target in asked for each in target.asked]
    algorithms = {ARCHITECTURES[arch][name].algorithm for arch, name in labels}
    assert set(all_facts()) == algorithms
    encodings = [t.file.removeprefix("encodings/").removesuffix(".py").split("/")[-1] for t in asked]
    assert encodings.count("smt") == encodings.count("executable") == len(mutants.INSTRUCTIONS)


def test_a_sample_is_drawn_by_its_seed() -> None:
    target = next(t for t in mutants.SUBJECTS["encodings"] if t.file == "encodings/executable/blocks.py")
    drawn = [m.id for m in mutate.sample(target, 1, 2)]
    assert drawn == [m.id for m in mutate.sample(target, 1, 2)]
    assert drawn != [m.id for m in mutate.sample(target, 2, 2)]
    every = mutate.sample(target, 1, 0)
    assert len(every) == len(mutate.of_target(target)) > 100
    functions = {m.function for m in every}
    assert all(sum(f":{each}:" in name for name in drawn) <= 2 for each in functions)


def test_what_passes_is_equal_only_if_it_is_proved_or_said_to_be(monkeypatch: pytest.MonkeyPatch) -> None:
    proved, tested = mutants.SUBJECTS["encodings"][0], mutants.SUBJECTS["proofs"][0]
    mutant = mutate.of_target(tested)[0]
    statuses = ("fails", "stopped", "passes")
    assert [mutate.verdict(proved, mutant, s) for s in statuses] == ["caught", "stopped", "equal"]
    assert [mutate.verdict(tested, mutant, s) for s in statuses] == ["caught", "stopped", "survived"]
    monkeypatch.setattr(mutate, "EQUAL", ((mutant.file, mutant.old, mutant.new, "because"),))
    assert mutate.verdict(tested, mutant, "passes") == "equal"


def test_one_mutant_of_an_encoding_and_then_none_again(tmp_path: Path) -> None:
    command = [sys.executable, str(ROOT / "tools" / "mutate.py"), "encodings", "--limit", "0"]
    command += ["--results", str(tmp_path / "r.jsonl"), "--write", str(tmp_path / "table.md")]
    command += ["--only", "executable/blocks.py:classify_product:drop:6"]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
    assert run.stdout.splitlines()[-1] == "1 caught, 0 stopped, 0 equal, 0 survived"
    assert [json.loads(line)["status"] for line in (tmp_path / "r.jsonl").read_text().splitlines()] == [
        "fails"
    ]
    assert "| drop | 1 | 1 | 0 | 0 | 0 |" in (tmp_path / "table.md").read_text()
    again = subprocess.run(command, capture_output=True, text=True, check=False)
    assert again.stdout == run.stdout
    assert len((tmp_path / "r.jsonl").read_text().splitlines()) == 1


def test_tests_that_fail_without_a_change_see_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(mutate, "ask", lambda target, mutant, timeout: ("stopped", "no module"))
    monkeypatch.setattr(mutate, "_tested", lambda tests, mutant, timeout: ("stopped", "no module"))
    command = ["encodings", "--only", "executable/blocks.py:classify_product:drop:6", "--limit", "0"]
    assert mutate.main([*command, "--results", str(tmp_path / "r.jsonl")]) == 2
    assert "is asked fails without a change" in capsys.readouterr().err
    assert not (tmp_path / "r.jsonl").exists()


@pytest.mark.slow
def test_a_mutant_is_tested_on_a_copy(tmp_path: Path) -> None:
    target = mutants.Target(
        "witness.py", ("tests/package/test_witness.py", "-k", "case_size or zero_product")
    )
    mutant = next(
        m for m in mutate.of_file("witness.py") if m.function == "_product_is_zero" and m.operator == "other"
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("PYTEST_ADDOPTS", raising=False)
        assert mutate.ask(target, mutant, 300)[0] == "fails"
        assert mutate.ask(target, None, 300) == ("passes", "")


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
