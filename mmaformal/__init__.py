"""mmaformal: a formal model of matrix-multiply units, and a verifier over it.

from mmaformal import ampere, hopper, find_difference, prove, check
print(find_difference(ampere, hopper, "HMMA.16816.F32"))
print(prove("order-independence", hopper["HMMA.16816.F32"]))
print(check("recordings/*.npz"))

A command and its function have one name: `mmaformal max-difference` is `mmaformal.max_difference`.  `diff` is another
name of `find_difference`.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import TYPE_CHECKING

from mmaformal import _interrupts as _interrupts
from mmaformal.extras import how_to_install
from mmaformal.version import __version__ as __version__

if TYPE_CHECKING:
    from mmaformal.architectures import (
        ARCHITECTURES,
        Architecture,
        UnknownArchitectureError,
        UnknownInstructionError,
    )
    from mmaformal.gemm import matmul
    from mmaformal.hardware.blackbox import DesignUnit, from_rtl
    from mmaformal.hardware.sizes import Sizes, sizes
    from mmaformal.hardware.verilog import Netlist, verilog
    from mmaformal.instruction import Instruction
    from mmaformal.probes.report import Probed, probe
    from mmaformal.queries.batch_invariant import BatchInvariance, batch_invariant
    from mmaformal.queries.bound import bound
    from mmaformal.queries.certify import Certificates, certify
    from mmaformal.queries.check_certificate import Checked, check_certificate
    from mmaformal.queries.diagnose import Diagnosis, diagnose
    from mmaformal.queries.diagnose_gemm import GemmDiagnosis, diagnose_gemm
    from mmaformal.queries.errors import errors
    from mmaformal.queries.explain import explain
    from mmaformal.queries.explained import Explanation
    from mmaformal.queries.find_difference import find_difference
    from mmaformal.queries.find_difference import find_difference as diff
    from mmaformal.queries.fingerprint import Fingerprint, fingerprint
    from mmaformal.queries.identify import Identified, identify
    from mmaformal.queries.max_difference import Apart, max_difference
    from mmaformal.queries.mismatches import Mismatches, mismatches
    from mmaformal.queries.properties import PROPERTIES, prove
    from mmaformal.queries.replay_model import ReplayedModel, replay_model
    from mmaformal.queries.roundoff import roundoff
    from mmaformal.queries.signoff import signoff
    from mmaformal.queries.signoff_all import Kinds, signoff_all
    from mmaformal.queries.verify import verify
    from mmaformal.recorder.units import record
    from mmaformal.recordings.read import Recording
    from mmaformal.recordings.report import Checks, check
    from mmaformal.result import Result
    from mmaformal.solver.answers import Answer, Different, Equal, Fails, Holds, Number, Proof, Unknown
    from mmaformal.statistics import Statistics
    from mmaformal.structures import Structure, replay
    from mmaformal.studies.emulation.less_accurate import less_accurate
    from mmaformal.witness import Witness

    volta: Architecture
    turing: Architecture
    ampere: Architecture
    ada: Architecture
    hopper: Architecture
    blackwell: Architecture
    rtx_blackwell: Architecture
    cdna1: Architecture
    cdna2: Architecture
    cdna3: Architecture
    sapphire_rapids: Architecture
    armv8_6: Architecture
    sme: Architecture
    power10: Architecture
    apple_amx: Architecture
    riscv: Architecture
    e9s12: Architecture
    datapath: Architecture
    emulation: Architecture

__all__ = [
    "ARCHITECTURES",
    "PROPERTIES",
    "Answer",
    "Apart",
    "Architecture",
    "BatchInvariance",
    "Certificates",
    "Checked",
    "Checks",
    "DesignUnit",
    "Diagnosis",
    "Different",
    "Equal",
    "Explanation",
    "Fails",
    "Fingerprint",
    "GemmDiagnosis",
    "Holds",
    "Identified",
    "Instruction",
    "Kinds",
    "Mismatches",
    "Netlist",
    "Number",
    "Probed",
    "Proof",
    "Recording",
    "ReplayedModel",
    "Result",
    "Sizes",
    "Statistics",
    "Structure",
    "Unknown",
    "UnknownArchitectureError",
    "UnknownInstructionError",
    "Witness",
    "ada",
    "ampere",
    "apple_amx",
    "armv8_6",
    "batch_invariant",
    "blackwell",
    "bound",
    "cdna1",
    "cdna2",
    "cdna3",
    "certify",
    "check",
    "check_certificate",
    "datapath",
    "diagnose",
    "diagnose_gemm",
    "diff",
    "e9s12",
    "emulation",
    "errors",
    "explain",
    "find_difference",
    "fingerprint",
    "from_rtl",
    "hopper",
    "identify",
    "less_accurate",
    "matmul",
    "max_difference",
    "mismatches",
    "power10",
    "probe",
    "prove",
    "record",
    "replay",
    "replay_model",
    "riscv",
    "roundoff",
    "rtx_blackwell",
    "sapphire_rapids",
    "signoff",
    "signoff_all",
    "sizes",
    "sme",
    "turing",
    "verify",
    "verilog",
    "volta",
]

#: Where each name is; all are imported once they are used: NumPy and the architectures by the first name, z3 by the
#: first query, numba by the first kernel, none by `import mmaformal`.
_LAZY = {
    name: f"mmaformal.{module}"
    for module, names in {
        "architectures": "ARCHITECTURES Architecture UnknownArchitectureError UnknownInstructionError",
        "gemm": "matmul",
        "hardware.blackbox": "DesignUnit from_rtl",
        "hardware.sizes": "Sizes sizes",
        "hardware.verilog": "Netlist verilog",
        "instruction": "Instruction",
        "probes.report": "Probed probe",
        "queries.batch_invariant": "BatchInvariance batch_invariant",
        "queries.bound": "bound",
        "queries.certify": "Certificates certify",
        "queries.check_certificate": "Checked check_certificate",
        "queries.diagnose": "Diagnosis diagnose",
        "queries.diagnose_gemm": "GemmDiagnosis diagnose_gemm",
        "queries.errors": "errors",
        "queries.explain": "explain",
        "queries.explained": "Explanation",
        "queries.find_difference": "find_difference",
        "queries.fingerprint": "Fingerprint fingerprint",
        "queries.identify": "Identified identify",
        "queries.max_difference": "Apart max_difference",
        "queries.mismatches": "Mismatches mismatches",
        "queries.properties": "PROPERTIES prove",
        "queries.replay_model": "ReplayedModel replay_model",
        "queries.roundoff": "roundoff",
        "queries.signoff": "signoff",
        "queries.signoff_all": "Kinds signoff_all",
        "queries.verify": "verify",
        "recorder.units": "record",
        "recordings.read": "Recording",
        "recordings.report": "Checks check",
        "result": "Result",
        "solver.answers": "Answer Different Equal Fails Holds Number Proof Unknown",
        "statistics": "Statistics",
        "structures": "Structure replay",
        "studies.emulation.less_accurate": "less_accurate",
        "witness": "Witness",
    }.items()
    for name in names.split()
}
#: Other names of what is there: those that stay, and those of the version before, which are taken with a warning.
_ALSO = {"diff": "find_difference"}
_OLD = {"explain_mismatches": "mismatches"}


def __getattr__(name: str) -> object:
    if name in _OLD:
        from mmaformal.renamed import warn

        warn(f"mmaformal.{name} is mmaformal.{_OLD[name]} now", above=2)
        return getattr(sys.modules[__name__], _OLD[name])
    if name in _ALSO:
        value = globals()[name] = getattr(sys.modules[__name__], _ALSO[name])
        return value
    if name not in _LAZY:
        if name in __all__:
            value = globals()[name] = __getattr__("ARCHITECTURES")[name]  # type: ignore[index]
            return value
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
