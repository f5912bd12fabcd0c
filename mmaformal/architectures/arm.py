"""Matrix units of Arm's processors, as tables.

Source: the Arm Architecture Reference Manual (`papers.py`), pseudocode of BFDotAdd and BFMatMulAdd with FPCR.EBF = 0;
compared with QEMU 7.2 in user mode, an emulator (docs/semantics.md §10).
"""

from __future__ import annotations

from mmaformal.architectures.base import Architecture
from mmaformal.encodings.oddsum import Oddsum
from mmaformal.formats import bf16, fp32
from mmaformal.instruction import Instruction
from mmaformal.rounding import RO_FP32
from mmaformal.spec import DotAdd

#: What rounds nothing (Arm ARM), and is not modelled
_EXACT = dict.fromkeys(
    ("SMMLA", "UMMLA", "USMMLA", "SDOT", "UDOT", "USDOT", "SUDOT"), "int8, sums modulo 2^32"
)


def armv8_6() -> Architecture:
    sources = {"rho": "Arm ARM, BFRound: round to odd; tiny before rounding is zero"}
    name = "armv8_6"

    def unit(opcode: str, m: int, n: int, k: int) -> Instruction:
        spec = DotAdd(k, bf16, bf16, fp32, fp32, Oddsum(RO_FP32))
        return Instruction(opcode, name, m, n, spec, sources=sources)

    processors = "Armv8.6-A and later, FEAT_BF16 (Neoverse V1, N2), FPCR.EBF = 0"
    return Architecture(name, processors, [unit("BFDOT", 1, 1, 2), unit("BFMMLA", 2, 2, 4)], exact=_EXACT)
