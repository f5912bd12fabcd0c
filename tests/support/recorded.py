"""Recordings: those beside this checkout, and some made for a test."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from mmaformal.instruction import Instruction
from support.kernel_runs import random_codes

SHARED = Path(__file__).parents[3] / "shared" / "recordings"
#: of processors, those whose instruction is modelled
PROCESSORS = [path for kind in ("emr", "qemu") for path in sorted(SHARED.glob(f"processors/{kind}_*.npz"))]
EMULATORS = sorted(SHARED.glob("emulators/*.npz"))
FILES = sorted(SHARED.glob("*.npz")) + sorted(SHARED.glob("lowered/*.npz")) + PROCESSORS + EMULATORS
NO_SHARED = pytest.mark.skip(reason="no ../shared/recordings beside this checkout")
real_files = pytest.mark.parametrize(
    "path", FILES or [pytest.param(SHARED, marks=NO_SHARED)], ids=lambda p: p.stem
)


def padded(codes: NDArray[Any], k: int) -> NDArray[Any]:
    out = np.zeros((len(codes), k), codes.dtype)
    out[:, : codes.shape[1]] = codes
    return out


def recorded(instruction: Instruction, rows: int, terms: int | None = None, seed: int = 0) -> dict[str, Any]:
    """The arrays of a recording in which the hardware is the model."""
    rng = np.random.default_rng(seed)
    terms = terms or instruction.k
    a = random_codes(rng, instruction.a_format, (rows, terms))
    b = random_codes(rng, instruction.b_format, (rows, terms))
    c = random_codes(rng, instruction.c_format, (rows,))
    d = instruction.dot_add(padded(a, instruction.k), padded(b, instruction.k), c)
    return {"a": a, "b": b, "c": c, "d": d, "meta": meta(instruction, terms)}


def meta(instruction: Instruction, terms: int, **changes: Any) -> dict[str, Any]:
    said = {
        "gpu": "none",
        "architecture": instruction.architecture,
        "instruction": instruction.name,
        "ptx": None,
        "input_format": instruction.a_format.name,
        "output_format": instruction.d_format.name,
        "terms": terms,
    }
    return said | changes


def save(path: Path, arrays: dict[str, Any], *, compressed: bool = True) -> Path:
    arrays = dict(arrays)
    if isinstance(arrays.get("meta"), dict):
        arrays["meta"] = np.array(json.dumps(arrays["meta"]))
    (np.savez_compressed if compressed else np.savez)(path, **arrays)
    return path
