"""Golden vectors made with mmasim 2.1.1 (tests/golden/make.py): both encodings reproduce every one of them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from support.golden_vectors import FILES, evaluate_smt, instruction_of, kept_rows, load, scales

from mmaformal import ARCHITECTURES
from mmaformal.witness import results_differ


def test_there_are_golden_vectors_for_every_behaviour_mmasim_has() -> None:
    """It does not have lowered PTX, nor processors, nor designs."""
    covered = {
        label for path in FILES for output in load(path)[1]["outputs"] for label in output["instructions"]
    }
    missing = {i.label for a in ARCHITECTURES.values() for i in a if i.label not in covered}
    processors = ("sapphire_rapids ", "armv", "sme ", "power10 ", "riscv ", "apple_amx ", "e9s12 ")
    others = ("hopper mma.", "blackwell mma.", *processors)
    assert all(i.startswith(others) for i in missing), missing


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_executable(path: Path) -> None:
    arrays, meta = load(path)
    for output in meta["outputs"]:
        rows = kept_rows(meta, output)
        assert rows.sum() >= 490
        for spec in {instruction_of(label).spec for label in output["instructions"]}:
            i = next(x for x in map(instruction_of, output["instructions"]) if x.spec == spec)
            mine = i.dot_add(arrays["a"], arrays["b"], arrays["c"], *scales(arrays))
            wrong = [
                row
                for row in np.flatnonzero((mine != arrays[output["key"]]) & rows)
                if results_differ(spec, spec, int(mine[row]), int(arrays[output["key"]][row]))
            ]
            assert not wrong, f"{i.label}: rows {wrong[:5]}"


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
@pytest.mark.parametrize("cases", [1, pytest.param(4, marks=pytest.mark.slow)])
def test_smt(path: Path, cases: int) -> None:
    """So many cases of each output; tests/golden/check_smt.py takes more."""
    arrays, meta = load(path)
    rng = np.random.default_rng(list(path.stem.encode()))
    for output in meta["outputs"]:
        i = instruction_of(output["instructions"][0])
        for row in rng.choice(np.flatnonzero(kept_rows(meta, output)), cases, replace=False):
            expected = int(arrays[output["key"]][row])
            result = evaluate_smt(i.spec, arrays, int(row))
            assert not results_differ(i.spec, i.spec, result, expected), f"{i.label}: row {row}"
