"""The trusted base is listed in full, and as it is (docs/trusted-base.md)."""

from __future__ import annotations

from pathlib import Path

import pytest
import trusted_base as base

AGAIN = "run `python tools/trusted_base.py --write`"


def test_the_table_is_that_of_the_sources() -> None:
    """The files and the reasons exactly; the lines to a tenth, so that small changes are none of the table."""
    told = base.listed(base.DOCUMENT.read_text(encoding="utf-8"))
    parts = {part.path: part for group in base.parts().values() for part in group}
    assert set(told) == set(parts), AGAIN
    for path, (lines, reason) in told.items():
        assert reason == parts[path].reason, f"{path}: {AGAIN}"
        assert abs(lines - parts[path].lines) <= max(25, lines // 10), f"{path}: {AGAIN}"


def test_whoever_makes_a_proof_is_listed(tmp_path: Path) -> None:
    makes = {
        "from mmaformal.proof.kernel import direct\n": "makes proofs",
        "from mmaformal.proof.kernel import Theorem, by_rule\n": "names a rule",
        "from mmaformal.solver.asking import obligation\n": "makes proofs",
        "from mmaformal.proof.composition import Rule\n": "names a rule",
        "def f(proving): proving.rests_on(RULE)\n": "names a rule",
        "def f(theorem): theorem.conclude('so', True)\n": "states a conclusion",
        "def f(proof): return Holds('so', proof, 0.0)\n": "says `Holds`",
        "def f(proof): return answers.Equal('so', proof, 0.0)\n": "says `Equal`",
    }
    for text, done in makes.items():
        assert base.uses(text) == [done]
    assert base.uses("from mmaformal.proof.kernel import Theorem\nx = prove('commutativity')\n") == []
    assert {"queries/signing.py", "mmaformal/facts/settling.py"} <= {part.path for part in base.stating()}


def test_only_code_is_counted(tmp_path: Path) -> None:
    file = tmp_path / "x.py"
    said = 'def f() -> str:\n    """Returns."""\n    return "# no"\n'
    file.write_text(f'"""What\n\nit is."""\n\n# why\nx = 1  # one\n\n\n{said}')
    assert base.lines_of(file) == 3


@pytest.mark.parametrize("group", list(base.BASE))
def test_every_file_that_is_named_is_there(group: str) -> None:
    for part in base.BASE[group]:
        assert part.lines > 0, part.path
        assert part.reason


def test_a_statement_with_certificates_rests_on_few_lines() -> None:
    """The files are the table's, and are counted once each."""
    paths = [part.path for group in base.BASE.values() for part in group]
    assert set(base.ARGUED) <= set(paths)
    assert 500 < base.argued() < 2500
