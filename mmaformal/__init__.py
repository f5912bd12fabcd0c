"""mmaformal: a formal model of matrix-multiply units, and a verifier over it.

from mmaformal import ampere, hopper, find_difference
print(find_difference(ampere, hopper, "HMMA.16816.F32"))
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mmaformal.architectures import ARCHITECTURES, Architecture, UnknownInstructionError
from mmaformal.instruction import Instruction

if TYPE_CHECKING:
    from mmaformal.gemm import matmul
    from mmaformal.queries.find_difference import find_difference
    from mmaformal.solver.answers import Answer, Different, Equal, Unknown

__version__ = "0.1.0"

volta = ARCHITECTURES["volta"]
turing = ARCHITECTURES["turing"]
ampere = ARCHITECTURES["ampere"]
ada = ARCHITECTURES["ada"]
hopper = ARCHITECTURES["hopper"]
blackwell = ARCHITECTURES["blackwell"]
rtx_blackwell = ARCHITECTURES["rtx_blackwell"]
cdna1 = ARCHITECTURES["cdna1"]
cdna2 = ARCHITECTURES["cdna2"]
cdna3 = ARCHITECTURES["cdna3"]

__all__ = [
    "ARCHITECTURES",
    "Answer",
    "Architecture",
    "Different",
    "Equal",
    "Instruction",
    "Unknown",
    "UnknownInstructionError",
    "ada",
    "ampere",
    "blackwell",
    "cdna1",
    "cdna2",
    "cdna3",
    "find_difference",
    "hopper",
    "matmul",
    "rtx_blackwell",
    "turing",
    "volta",
]

_LAZY = {  # z3 is imported by the first query, numba by the first kernel, not by `import mmaformal`
    "find_difference": "mmaformal.queries.find_difference",
    "Answer": "mmaformal.solver.answers",
    "Different": "mmaformal.solver.answers",
    "Equal": "mmaformal.solver.answers",
    "Unknown": "mmaformal.solver.answers",
    "matmul": "mmaformal.gemm",
}


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        from importlib import import_module

        return getattr(import_module(_LAZY[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
