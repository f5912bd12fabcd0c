"""Make the golden vectors in this folder: what mmasim 2.1.1 returns, per distinct behaviour, on every input family.

    python tests/golden/make.py        (in the environment of tests/oracle/README.md; seeded, so it repeats itself)

One file per set of input types and K; in it the inputs `a`, `b`, `c` (and `scale_a`, `scale_b`), and an output `d0`,
`d1`, … for each `DotAdd` that takes them. `meta` (JSON) says which instructions each output is for, how many cases of
which family there are, and where an instruction's output is left out because mmasim slips there (tests/oracle,
`SLIPS`): those rows are listed, not replaced by our own results.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Hashable
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "oracle"))

from compare_mmasim import SLIPS, Oracle, _equal, find_oracle  # noqa: E402
from families import FAMILIES, Cases, generate  # noqa: E402

from mmaformal import ARCHITECTURES, Instruction  # noqa: E402
from mmaformal.spec import DotAdd  # noqa: E402

SEED = 20261120
PER_FAMILY = 34  # 510 cases over 15 families


def signature(spec: DotAdd) -> tuple[Hashable, ...]:
    return (
        spec.a_format,
        spec.b_format,
        spec.c_format,
        spec.d_format,
        spec.k,
        spec.scale_format,
        spec.scale_block,
    )


def file_name(spec: DotAdd) -> str:
    scales = f"-{spec.scale_format}x{spec.scale_block}" if spec.scale_format else ""
    return f"{spec.a_format}-{spec.b_format}-{spec.c_format}-{spec.d_format}-k{spec.k}{scales}.npz"


def joined(parts: list[Cases]) -> Cases:
    def column(name: str) -> Any:
        values = [getattr(part, name) for part in parts]
        return None if values[0] is None else np.concatenate(values)

    return Cases(*(column(name) for name in ("a", "b", "c", "scale_a", "scale_b")))


def slips(instruction: Instruction, oracle: Oracle, cases: Cases, theirs: Any) -> list[int]:
    """Rows on which mmasim returns what one of its known slips predicts, and that is not what the rule gives."""
    scales = () if oracle.operands.scale is None else (cases.scale_a, cases.scale_b)
    mine = instruction.dot_add(cases.a, cases.b, cases.c, *scales)
    d, payload = oracle.operands.d, oracle.nan_payload_specified
    known = np.zeros(len(cases), np.bool_)
    for slip in SLIPS:
        if slip.applies(instruction, oracle):
            predicted = slip.predict(instruction, cases)
            known |= _equal(d, predicted, theirs, nan_payload_specified=payload) & ~_equal(
                d, predicted, mine, nan_payload_specified=payload
            )
    return [int(i) for i in np.flatnonzero(known)]


def main() -> None:
    groups: dict[tuple[Hashable, ...], dict[DotAdd, list[Instruction]]] = {}
    for architecture in ARCHITECTURES.values():
        for instruction in architecture:
            spec = instruction.spec
            groups.setdefault(signature(spec), {}).setdefault(spec, []).append(instruction)
    for old in HERE.glob("*.npz"):
        old.unlink()
    for specs in groups.values():
        arrays: dict[str, Any] = {}
        outputs = []
        cases: Cases | None = None
        for spec, instructions in specs.items():
            oracles = ((i, find_oracle(i)) for i in instructions)
            found = next(((i, oracle) for i, oracle in oracles if oracle is not None), None)
            if found is None:
                continue
            instruction, oracle = found
            if cases is None:
                cases = joined([generate(family, oracle.operands, PER_FAMILY, SEED) for family in FAMILIES])
            key = f"d{len(outputs)}"
            arrays[key] = oracle.dot_add(cases)
            outputs.append(
                {
                    "key": key,
                    "instructions": [i.label for i in instructions],
                    "algorithm": f"{spec.parameters.algorithm} {spec.parameters.describe()}",
                    "oracle": oracle.name,
                    "left_out": slips(instruction, oracle, cases, arrays[key]),
                }
            )
        if cases is None:
            continue
        arrays |= {"a": cases.a, "b": cases.b, "c": cases.c}
        if cases.scale_a is not None:
            arrays |= {"scale_a": cases.scale_a, "scale_b": cases.scale_b}
        families = dict.fromkeys(FAMILIES, PER_FAMILY)
        meta = {"made_with": "mmasim 2.1.1", "seed": SEED, "families": families, "outputs": outputs}
        arrays["meta"] = np.array(json.dumps(meta))
        np.savez_compressed(HERE / file_name(next(iter(specs))), **arrays)
    size = sum(path.stat().st_size for path in HERE.glob("*.npz"))
    print(f"{len(list(HERE.glob('*.npz')))} files, {size / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
