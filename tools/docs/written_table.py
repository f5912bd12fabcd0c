"""Count what units took to write, files and lines, for docs/specified.md.

python tools/docs/written_table.py
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from pathlib import Path

from mmaformal.architectures import arm, intel

ROOT = Path(__file__).parents[2]

#: Parts and what was written for them: files or folders, with `*` in their names, or functions.
PARTS: tuple[tuple[str, tuple[str | Callable[..., object], ...]], ...] = (
    ("`power10`, the table", ("mmaformal/architectures/power.py",)),
    ("`sme`, the table", (arm.sme,)),
    ("`armv9_fp8`, `armv9_ebf16`, the tables", (arm.armv9_fp8, arm.armv9_ebf16)),
    ("AMX-FP8, AVX10.2, the table", (intel.diamond_rapids,)),
    ("`riscv`, the table", ("mmaformal/architectures/riscv.py",)),
    (
        "signs of operands and results, around any algorithm",
        (
            "encodings/smt/signs.py",
            "encodings/executable/signs.py",
            "mmaformal/kernels/signed.py",
            "mmaformal/facts/signed.py",
        ),
    ),
    ("the pair rounded once (rnd2, a new algorithm)", ("encodings/rnd2/*.py",)),
    ("its properties", ("encodings/rnd2/proofs/*.py",)),
    ("an exact sum of fp8 (esda, a new algorithm)", ("encodings/esda/*.py", "encodings/esda/proofs/*.py")),
    ("RISC-V's pseudo-code as printed (rvbna, a new algorithm)", ("encodings/rvbna/*.py",)),
    ("its text is the model", ("encodings/rvbna/proofs/*.py",)),
    (
        "what the standard leaves open",
        (
            "mmaformal/analysis/riscv_f*.py",
            *(
                f"queries/{name}.py"
                for name in ("conformance", "standard_units", "freedom", "signoff_standard")
            ),
        ),
    ),
    ("rounding and saturation of P3109", ("encodings/*/saturating.py", "encodings/*/stochastic.py")),
    ("Apple AMX but for its fused multiply-adds", ("mmaformal/apple/*.py",)),
    (
        "tests of these",
        (
            "tests/encodings/test_rnd2.py",
            "tests/encodings/test_rvbna.py",
            "tests/queries/test_conformance.py",
        ),
    ),
)


def counted(part: str | Callable[..., object]) -> list[tuple[str, int]]:
    """Return the lines of each file that a pattern names, docstrings included; or of a function.

    Raises ValueError for a pattern that names none.
    """
    if not isinstance(part, str):
        file = Path(inspect.getsourcefile(part) or "").relative_to(ROOT)
        return [(f"{file}:{part.__name__}", len(inspect.getsource(part).splitlines()))]
    found = sorted(ROOT.glob(part))
    if not found:
        raise ValueError(f"no file {part}")
    return [
        (str(path.relative_to(ROOT)), len(path.read_text(encoding="utf-8").splitlines())) for path in found
    ]


def main() -> int:
    print("| for | where | files | lines |\n|---|---|---:|---:|")
    for text, parts in PARTS:
        files = [each for part in parts for each in counted(part)]
        where = ", ".join(f"`{part}`" if isinstance(part, str) else f"`{part.__name__}()`" for part in parts)
        print(f"| {text} | {where} | {len(files)} | {sum(lines for _, lines in files)} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
