"""Matrix units of Arm's processors, as tables.

Source: the Arm Architecture Reference Manual (`papers.py`), pseudocode of BFDotAdd and BFMatMulAdd with FPCR.EBF = 0;
compared with QEMU 7.2 in user mode, an emulator (docs/semantics.md §10).  SME's outer products: pseudocode of FPDotAdd,
BFDotAdd and FPMulAdd, compared with the same (§11).
"""

from __future__ import annotations

from collections.abc import Iterator

from mmaformal.architectures.base import Architecture
from mmaformal.encodings.oddsum import Oddsum
from mmaformal.encodings.rnd2 import Rnd2
from mmaformal.encodings.sfma import Sfma
from mmaformal.formats import Format, bf16, fp16, fp32, fp64
from mmaformal.instruction import Instruction
from mmaformal.rounding import IEEE_FP32, IEEE_FP64, RO_FP32, NanRule
from mmaformal.spec import DotAdd, Parameters

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


#: What rounds nothing (Arm ARM), and is not modelled
_EXACT_OF_SME = {
    **dict.fromkeys(("SMOPA", "SMOPS", "UMOPA", "UMOPS"), "int8 or int16, sums modulo 2^32 or 2^64"),
    **dict.fromkeys(("SUMOPA", "SUMOPS", "USMOPA", "USMOPS"), "int8 or int16, sums modulo 2^32 or 2^64"),
}


def sme() -> Architecture:
    name = "sme"
    odd = {"rho": "Arm ARM, BFRound: round to odd; tiny before rounding is zero"}
    pair = {
        "pair": "Arm ARM, FPDotAdd: the sum of two products, rounded once",
        "rho": "Arm ARM, FPDotAdd: then the sum with ZA",
        "nan": "Arm ARM, FPCR.DN counts as 1",
        "negate_pair": "Arm ARM: factors are negated, no sum",
    }
    fma = {"rho": "Arm ARM, FPMulAdd: rounded once", "nan": "Arm ARM, FPCR.DN counts as 1"}

    def unit(
        title: str, k: int, fmt: Format, parameters: Parameters, sources: dict[str, str]
    ) -> Iterator[Instruction]:
        """The outer product that adds, and the one that subtracts; tiles of a streaming vector of 128 bits."""
        d = fp64 if fmt is fp64 else fp32
        size = 128 // d.storage_bits
        for last in "AS":
            spec = DotAdd(k, fmt, fmt, d, d, parameters, negated="a" if last == "S" else "")
            own = sources | ({"negated": "Arm ARM, outer product and subtract"} if last == "S" else {})
            yield Instruction(title.format(last), name, size, size, spec, sources=own)

    pairs = Rnd2(IEEE_FP32, IEEE_FP32, NanRule.DEFAULT)
    units = [
        *unit("FMOP{}.F32.F16", 2, fp16, pairs, pair),
        *unit("BFMOP{}", 2, bf16, Oddsum(RO_FP32), odd),
        *unit("FMOP{}.F32", 1, fp32, Sfma(IEEE_FP32, NanRule.DEFAULT), fma),
        *unit("FMOP{}.F64", 1, fp64, Sfma(IEEE_FP64, NanRule.DEFAULT), fma),
    ]
    return Architecture(name, "Armv9-A, FEAT_SME, FPCR = 0", units, exact=_EXACT_OF_SME)
