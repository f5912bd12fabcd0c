"""Golden vectors made with mmasim 2.1.1 (tests/golden/make.py): both wings reproduce every one of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import z3

from mmaformal import ARCHITECTURES, Instruction
from mmaformal.algorithms import DotAdd
from mmaformal.encodings import smt
from mmaformal.formats import Format
from mmaformal.witness import results_differ

FILES = sorted((Path(__file__).parent / "golden").glob("*.npz"))

#: Cases per output that the SMT wing evaluates here; tests/golden/check_smt.py takes more.
SMT_CASES = 4


def instruction_of(label: str) -> Instruction:
    architecture, _, name = label.partition(" ")
    return ARCHITECTURES[architecture][name]


def load(path: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    with np.load(path, allow_pickle=False) as file:
        arrays = {name: file[name] for name in file.files}
    return arrays, json.loads(str(arrays.pop("meta")))


def kept_rows(meta: dict[str, Any], output: dict[str, Any]) -> Any:
    rows = np.ones(sum(meta["families"].values()), np.bool_)
    rows[output["left_out"]] = False
    return rows


def scales(arrays: dict[str, Any]) -> list[Any]:
    return [arrays[name] for name in ("scale_a", "scale_b") if name in arrays]


def test_there_are_golden_vectors_for_every_behaviour_mmasim_has() -> None:
    """It does not have lowered PTX, nor processors."""
    covered = {
        label for path in FILES for output in load(path)[1]["outputs"] for label in output["instructions"]
    }
    missing = {i.label for a in ARCHITECTURES.values() for i in a if i.label not in covered}
    assert all(i.startswith(("hopper mma.", "blackwell mma.", "sapphire_rapids ")) for i in missing), missing


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


def evaluate_smt(spec: DotAdd, arrays: dict[str, Any], row: int) -> int:
    """The SMT wing on one row, by substituting constants and simplifying."""

    def values(name: str, fmt: Format) -> list[z3.BitVecRef]:
        return [z3.BitVecVal(int(code), fmt.storage_bits) for code in np.atleast_1d(arrays[name][row])]

    inputs = [values("a", spec.a_format), values("b", spec.b_format), values("c", spec.c_format)[0]]
    if spec.scale_format is not None:
        inputs += [values(name, spec.scale_format) for name in ("scale_a", "scale_b")]
    result: int = z3.simplify(smt.dot_add(spec, *inputs).result).as_long()
    return result


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_smt(path: Path) -> None:
    arrays, meta = load(path)
    rng = np.random.default_rng(list(path.stem.encode()))
    for output in meta["outputs"]:
        i = instruction_of(output["instructions"][0])
        for row in rng.choice(np.flatnonzero(kept_rows(meta, output)), SMT_CASES, replace=False):
            expected = int(arrays[output["key"]][row])
            result = evaluate_smt(i.spec, arrays, int(row))
            assert not results_differ(i.spec, i.spec, result, expected), f"{i.label}: row {row}"
