"""The golden vectors made with mmasim 2.1.1 (tests/golden/make.py)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import z3

from mmaformal import ARCHITECTURES, Instruction
from mmaformal.encodings import smt
from mmaformal.formats import Format
from mmaformal.spec import DotAdd

FILES = sorted((Path(__file__).parents[1] / "golden").glob("*.npz"))


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


def evaluate_smt(spec: DotAdd, arrays: dict[str, Any], row: int) -> int:
    """The SMT encoding on one row, by substituting constants and simplifying."""

    def values(name: str, fmt: Format) -> list[z3.BitVecRef]:
        return [z3.BitVecVal(int(code), fmt.storage_bits) for code in np.atleast_1d(arrays[name][row])]

    inputs = [values("a", spec.a_format), values("b", spec.b_format), values("c", spec.c_format)[0]]
    if spec.scale_format is not None:
        inputs += [values(name, spec.scale_format) for name in ("scale_a", "scale_b")]
    result: int = z3.simplify(smt.dot_add(spec, *inputs).result).as_long()
    return result
