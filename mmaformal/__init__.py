"""mmaformal: a formal model of matrix-multiply units, and a verifier over it.

from mmaformal import ampere, hopper, find_difference, prove, check
print(find_difference(ampere, hopper, "HMMA.16816.F32"))
print(prove("order-independence", hopper["HMMA.16816.F32"]))
print(check("recordings/*.npz"))
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from mmaformal.architectures import (
    ARCHITECTURES,
    Architecture,
    UnknownArchitectureError,
    UnknownInstructionError,
)
from mmaformal.extras import how_to_install
from mmaformal.instruction import Instruction
from mmaformal.version import __version__ as __version__

if TYPE_CHECKING:
    from mmaformal.gemm import matmul
    from mmaformal.probes import Probed, probe
    from mmaformal.queries.diagnose import diagnose
    from mmaformal.queries.diagnose_gemm import diagnose_gemm
    from mmaformal.queries.find_difference import find_difference
    from mmaformal.queries.fingerprint import fingerprint
    from mmaformal.queries.identify import identify
    from mmaformal.queries.mismatches import explain_mismatches
    from mmaformal.queries.properties import PROPERTIES, prove
    from mmaformal.recorder.units import record
    from mmaformal.recordings.report import check
    from mmaformal.result import Result
    from mmaformal.solver.answers import Answer, Different, Equal, Fails, Holds, Number, Proof, Unknown
    from mmaformal.structures import Structure, replay
    from mmaformal.witness import Witness

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
sapphire_rapids = ARCHITECTURES["sapphire_rapids"]
armv8_6 = ARCHITECTURES["armv8_6"]
apple_amx = ARCHITECTURES["apple_amx"]
e9s12 = ARCHITECTURES["e9s12"]
datapath = ARCHITECTURES["datapath"]
emulation = ARCHITECTURES["emulation"]

__all__ = [
    "ARCHITECTURES",
    "PROPERTIES",
    "Answer",
    "Architecture",
    "Different",
    "Equal",
    "Fails",
    "Holds",
    "Instruction",
    "Number",
    "Probed",
    "Proof",
    "Result",
    "Structure",
    "Unknown",
    "UnknownArchitectureError",
    "UnknownInstructionError",
    "Witness",
    "ada",
    "ampere",
    "apple_amx",
    "armv8_6",
    "blackwell",
    "cdna1",
    "cdna2",
    "cdna3",
    "check",
    "datapath",
    "diagnose",
    "diagnose_gemm",
    "e9s12",
    "emulation",
    "explain_mismatches",
    "find_difference",
    "fingerprint",
    "hopper",
    "identify",
    "matmul",
    "probe",
    "prove",
    "record",
    "replay",
    "rtx_blackwell",
    "sapphire_rapids",
    "turing",
    "volta",
]

_LAZY = {  # z3 is imported by the first query, numba by the first kernel, not by `import mmaformal`
    "find_difference": "mmaformal.queries.find_difference",
    "prove": "mmaformal.queries.properties",
    "PROPERTIES": "mmaformal.queries.properties",
    "check": "mmaformal.recordings.report",
    "record": "mmaformal.recorder.units",
    "Result": "mmaformal.result",
    "matmul": "mmaformal.gemm",
    "diagnose": "mmaformal.queries.diagnose",
    "diagnose_gemm": "mmaformal.queries.diagnose_gemm",
    "fingerprint": "mmaformal.queries.fingerprint",
    "identify": "mmaformal.queries.identify",
    "explain_mismatches": "mmaformal.queries.mismatches",
    "probe": "mmaformal.probes",
    "Probed": "mmaformal.probes",
    "Structure": "mmaformal.structures",
    "replay": "mmaformal.structures",
    "Witness": "mmaformal.witness",
    **dict.fromkeys(
        ("Answer", "Different", "Equal", "Fails", "Holds", "Number", "Proof", "Unknown"),
        "mmaformal.solver.answers",
    ),
}


def __getattr__(name: str) -> object:
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        value = globals()[name] = getattr(import_module(_LAZY[name]), name)
    except ModuleNotFoundError as error:
        if (told := how_to_install(error)) is None:
            raise
        raise ImportError(f"mmaformal.{name}: {told}") from None
    return value


def __dir__() -> list[str]:
    return sorted({*__all__, *(name for name in globals() if name.startswith("__"))})
