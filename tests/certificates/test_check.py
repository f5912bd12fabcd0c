"""Checkers of derivations accept what the elaborator writes, and nothing that was changed."""

from __future__ import annotations

import ast
import random
import subprocess
import sys
from pathlib import Path

import pytest

from mmaformal.certificates import blaster, check, circuits, equalities, expressions
from mmaformal.certificates.blaster import clauses_of
from mmaformal.certificates.check import RefusedError, check_derivation, clauses_in
from mmaformal.certificates.elaboration import ElaborationError, elaborated
from mmaformal.certificates.fast_check import accepts
from mmaformal.certificates.lemmas import LemmaFiles, NoCertificate, derivation_text, write_certificate
from mmaformal.certificates.refuting import NotRefutedError, dimacs, refutation, sat_solver

SQUARES = """(set-logic QF_BV)
(declare-fun x () (_ BitVec 5))
(declare-fun y () (_ BitVec 5))
(define-fun $0 () (_ BitVec 5) (bvadd x y))
(assert (distinct (bvmul $0 $0) (bvadd (bvadd (bvmul x x) (bvmul y y)) (bvshl (bvmul x y) (_ bv1 5)))))
(check-sat)
"""


@pytest.fixture(scope="module")
def texts() -> tuple[str, str]:
    """The clauses of a lemma, and their derivation."""
    pytest.importorskip("pysat", reason="no SAT solver that writes proofs")
    variables, clauses = clauses_of(SQUARES)
    text = dimacs(variables, clauses)
    return text, derivation_text(elaborated(variables, clauses, refutation(text, 60.0, sat_solver())))


def accepted(clauses: str, derivation: str) -> bool:
    """Whether the plain checker accepts; the compiled one must not accept more."""
    try:
        check_derivation(clauses_in(clauses, "cnf"), derivation.splitlines(), "lrat")
    except RefusedError:
        assert not accepts(clauses, derivation)
        return False
    return True


def test_a_derivation_is_accepted_by_both_checkers(texts: tuple[str, str]) -> None:
    assert accepted(*texts)
    assert accepts(*texts)
    assert len(texts[1].splitlines()) > 100


def test_a_derivation_with_one_literal_changed_is_refused_with_its_line(texts: tuple[str, str]) -> None:
    clauses, derivation = texts
    lines, draw, refused = derivation.splitlines(), random.Random(3), 0
    for _ in range(60):
        place = draw.randrange(len(lines))
        number, *rest = lines[place].split()
        end = rest.index("0")
        if not end:
            continue
        which = draw.randrange(end)
        rest[which] = str(-int(rest[which]))
        changed = [*lines[:place], " ".join([number, *rest]), *lines[place + 1 :]]
        # another clause may follow too, and do: what counts is that nothing false is derived
        if not accepted(clauses, "\n".join(changed) + "\n"):
            refused += 1
            with pytest.raises(RefusedError, match=r"^lrat, line \d+: "):
                check_derivation(clauses_in(clauses, "cnf"), changed, "lrat")
    assert refused > 40


#: Functions that make of a derivation's lines, and a place, one that must be refused.
BROKEN = {
    "a hint left out": lambda lines, at: [*lines[:at], _without_hint(lines[at]), *lines[at + 1 :]],
    "no hints": lambda lines, at: [*lines[:at], lines[at].split(" 0 ")[0] + " 0 0", *lines[at + 1 :]],
    "the end left out": lambda lines, at: lines[:-1],
    "a hint that comes later": lambda lines, at: [lines[-1]],
    "a number twice": lambda lines, at: [*lines[:at], lines[at - 1], *lines[at:]],
    "a word": lambda lines, at: [*lines[:at], lines[at] + " x", *lines[at + 1 :]],
    "an empty line": lambda lines, at: [*lines[:at], "", *lines[at:]],
    "nothing": lambda lines, at: [],
    "the empty clause without hints": lambda lines, at: ["1000000 0 0"],
    "a hint of what is not there": lambda lines, at: ["1000000 0 999999 0"],
}


def _without_hint(line: str) -> str:
    head, hints = line.split(" 0 ", 1)
    return f"{head} 0 {' '.join(hints.split()[1:-1])} 0"


@pytest.mark.parametrize("kind", BROKEN)
def test_a_broken_derivation_is_refused(kind: str, texts: tuple[str, str]) -> None:
    clauses, derivation = texts
    lines, draw = derivation.splitlines(), random.Random(kind)
    for _ in range(10):
        broken = BROKEN[kind](lines, draw.randrange(1, len(lines)))
        assert not accepted(clauses, "".join(f"{line}\n" for line in broken))


def test_clauses_that_can_be_met_have_no_derivation() -> None:
    clauses = "p cnf 2 3\n1 2 0\n-1 2 0\n1 -2 0\n"
    assert not accepted(clauses, "4 2 0 1 2 0\n5 0 4 3 1 0\n")
    assert accepted(
        clauses.replace("p cnf 2 3", "p cnf 2 4") + "-1 -2 0\n", "5 2 0 1 2 0\n6 1 0 5 3 0\n7 0 5 6 4 0\n"
    )


@pytest.mark.parametrize(
    "clauses",
    [
        "",
        "p cnf 1 1\n",
        "p cnf 1 1\n2 0\n",
        "p cnf 1 1\n1\n",
        "p cnf 1 1\n1 0 0\n",
        "p cnf x 1\n1 0\n",
        "p cnf 1 2\n1 0\n",
    ],
)
def test_what_is_no_list_of_clauses_is_refused(clauses: str) -> None:
    assert not accepted(clauses, "2 0 1 0\n")


def test_a_clause_that_does_not_follow_is_not_elaborated() -> None:
    with pytest.raises(ElaborationError, match="does not follow"):
        elaborated(3, [(1, 2), (-1, 2)], "3 0\n0\n")


def test_the_checker_needs_python_and_nothing_else(tmp_path: Path) -> None:
    tree = ast.parse(Path(check.__file__).read_text(encoding="utf-8"))
    imported = {
        name.partition(".")[0]
        for node in ast.walk(tree)
        for name in (
            [each.name for each in node.names]
            if isinstance(node, ast.Import)
            else [node.module or ""]
            if isinstance(node, ast.ImportFrom)
            else []
        )
    }
    assert imported <= sys.stdlib_module_names


def test_the_blaster_imports_its_circuits_and_reader_alone() -> None:
    own_modules = {f"mmaformal.certificates.{name}" for name in ("circuits", "equalities", "expressions")}
    reader = {"mmaformal.certificates.expressions"}
    for module, allowed in (
        (blaster, own_modules),
        (equalities, reader),
        (circuits, set()),
        (expressions, set()),
    ):
        tree = ast.parse(Path(module.__file__).read_text(encoding="utf-8"))
        own = {
            x.module
            for x in ast.walk(tree)
            if isinstance(x, ast.ImportFrom) and "mmaformal" in (x.module or "")
        }
        assert own == allowed


def test_a_lemma_that_does_not_hold_has_no_certificate(tmp_path: Path) -> None:
    pytest.importorskip("pysat", reason="no SAT solver that writes proofs")
    found = write_certificate(SQUARES.replace("bvshl", "bvadd"), tmp_path, 20.0)
    assert isinstance(found, NoCertificate)
    assert "meets the clauses" in found.why
    assert not list(tmp_path.iterdir())


def test_a_lemma_of_real_numbers_says_that_it_is_not_read(tmp_path: Path) -> None:
    pytest.importorskip("pysat", reason="no SAT solver that writes proofs")
    found = write_certificate("(set-logic QF_NRA)\n(check-sat)\n", tmp_path, 20.0)
    assert isinstance(found, NoCertificate)
    assert "not a command" in found.why


def test_two_orders_of_a_sum_have_a_certificate(tmp_path: Path) -> None:
    pytest.importorskip("pysat", reason="no SAT solver that writes proofs")
    names = [f"t{i}" for i in range(17)]
    declared = "".join(f"(declare-fun {name} () (_ BitVec 33))\n" for name in names)
    left = right = names[0]
    for name, other in zip(names[1:], names[:0:-1], strict=True):
        left, right = f"(bvadd {left} {name})", f"(bvadd {right} {other})"
    script = f"(set-logic QF_BV)\n{declared}(assert (distinct {left} {right}))\n(check-sat)\n"
    found = write_certificate(script, tmp_path, 60.0)
    assert isinstance(found, LemmaFiles)
    assert found.multiplied_out


def test_a_time_limit_holds(tmp_path: Path) -> None:
    pytest.importorskip("pysat", reason="no SAT solver that writes proofs")
    wide = SQUARES.replace("5)", "40)")
    variables, clauses = clauses_of(wide)
    with pytest.raises(NotRefutedError, match="not settled"):
        refutation(dimacs(variables, clauses), 1.0, sat_solver())


def test_the_program_in_python_refutes_too(tmp_path: Path, texts: tuple[str, str]) -> None:
    worker = Path(check.__file__).with_name("sat_worker.py")
    (tmp_path / "cnf").write_text(texts[0], encoding="ascii")
    run = subprocess.run([sys.executable, "-P", worker, tmp_path / "cnf", tmp_path / "drat"], check=False)
    assert run.returncode == 20
    variables, clauses = clauses_of(SQUARES)
    assert elaborated(variables, clauses, (tmp_path / "drat").read_text())
