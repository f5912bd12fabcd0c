"""NVIDIA Tensor Cores, as tables: which instructions an architecture has, and the parameters of each.

Sources: seed 000 (MMA-Sim) Table III for the instructions and §IV-C, §IV-D for the algorithms; docs/semantics.md §5
for the parameters where later measurements correct the paper (e_zero; F of HMMA.884 on turing), §6 for the names.
"""

from __future__ import annotations

from dataclasses import dataclass

from mmaformal.algorithms import RNE_FP16, RZ_FP32, DotAdd, Fda
from mmaformal.architectures.base import Architecture
from mmaformal.formats import Format, bf16, fp16, fp32, tf32
from mmaformal.instruction import Instruction


@dataclass(frozen=True)
class Unit:
    """A row of the parameter table: what one generation's multiply-add tree is built like."""

    name: str
    gpus: str
    F: int  #: fractional bits kept at the alignment
    step_bytes: int  #: bytes of A that one step takes
    e_zero_fp16: int  #: exponent of an exact zero, fp16 output
    e_zero_fp32: int  #: the same, fp32 output

    def fda(self, k: int, a_format: Format, d_format: Format) -> Fda:
        to_fp16 = d_format is fp16
        return Fda(
            F=self.F,
            L=min(k, self.step_bytes * 8 // a_format.storage_bits),
            rho=RNE_FP16 if to_fp16 else RZ_FP32,
            e_zero=self.e_zero_fp16 if to_fp16 else self.e_zero_fp32,
        )


VOLTA = Unit("volta", "V100", 23, 8, -19, -131)
TURING = Unit("turing", "T4", 24, 16, -20, -132)
AMPERE = Unit("ampere", "A100, A2, A30", 24, 16, -20, -132)
ADA = Unit("ada", "RTX 4090, L40S, RTX 1000 Ada", 24, 16, -20, -132)
HOPPER = Unit("hopper", "H100, H200", 25, 32, -21, -133)
BLACKWELL = Unit("blackwell", "B200", 25, 32, -21, -133)
RTX_BLACKWELL = Unit("rtx_blackwell", "RTX PRO 6000", 25, 32, -21, -133)


@dataclass(frozen=True)
class Row:
    """An instruction: SASS name, PTX spelling, shape, types."""

    name: str
    ptx: str
    m: int
    n: int
    k: int
    a: Format
    c: Format
    d: Format


HMMA_884 = (
    Row("HMMA.884.F32.F32", "mma.m8n8k4.f32.f16.f16.f32", 8, 8, 4, fp16, fp32, fp32),
    Row("HMMA.884.F32.F16", "mma.m8n8k4.f32.f16.f16.f16", 8, 8, 4, fp16, fp16, fp32),
    Row("HMMA.884.F16.F16", "mma.m8n8k4.f16.f16.f16.f16", 8, 8, 4, fp16, fp16, fp16),
)
HMMA_1688 = (
    Row("HMMA.1688.F32", "mma.m16n8k8.f32.f16.f16.f32", 16, 8, 8, fp16, fp32, fp32),
    Row("HMMA.1688.F16", "mma.m16n8k8.f16.f16.f16.f16", 16, 8, 8, fp16, fp16, fp16),
)
HMMA_AMPERE = (
    Row("HMMA.16816.F32", "mma.m16n8k16.f32.f16.f16.f32", 16, 8, 16, fp16, fp32, fp32),
    Row("HMMA.16816.F16", "mma.m16n8k16.f16.f16.f16.f16", 16, 8, 16, fp16, fp16, fp16),
    Row("HMMA.16816.F32.BF16", "mma.m16n8k16.f32.bf16.bf16.f32", 16, 8, 16, bf16, fp32, fp32),
    Row("HMMA.1688.F32.BF16", "mma.m16n8k8.f32.bf16.bf16.f32", 16, 8, 8, bf16, fp32, fp32),
    Row("HMMA.1688.F32.TF32", "mma.m16n8k8.f32.tf32.tf32.f32", 16, 8, 8, tf32, fp32, fp32),
    Row("HMMA.1684.F32.TF32", "mma.m16n8k4.f32.tf32.tf32.f32", 16, 8, 4, tf32, fp32, fp32),
)

_FDA_SOURCES = {
    "F": "seed 000 (MMA-Sim) §IV-C step 3, Table III",
    "L": "seed 000 §IV-D, Table III (CoFDA); docs/semantics.md §5 (bytes of A per step)",
    "rho": "seed 000 §IV-C step 5; docs/semantics.md §4",
    "e_zero": "docs/semantics.md §5 (measured later; corrects seed 000 §IV-C step 2, see §9)",
}


def _hmma(unit: Unit, rows: tuple[Row, ...], **sources: str) -> list[Instruction]:
    return [
        Instruction(
            name=row.name,
            architecture=unit.name,
            m=row.m,
            n=row.n,
            spec=DotAdd(row.k, row.a, row.a, row.c, row.d, unit.fda(row.k, row.a, row.d)),
            aliases=(row.ptx,),
            sources=_FDA_SOURCES | sources,
        )
        for row in rows
    ]


def _architecture(unit: Unit, instructions: list[Instruction]) -> Architecture:
    return Architecture(unit.name, unit.gpus, instructions)


def volta() -> Architecture:
    return _architecture(VOLTA, _hmma(VOLTA, HMMA_884))


def turing() -> Architecture:
    as_volta = Unit("turing", "T4", VOLTA.F, VOLTA.step_bytes, VOLTA.e_zero_fp16, VOLTA.e_zero_fp32)
    corrected = "docs/semantics.md §5, §9 (as volta; corrects F = 24 of seed 000 Table III)"
    return _architecture(TURING, _hmma(as_volta, HMMA_884, F=corrected) + _hmma(TURING, HMMA_1688))


def ampere() -> Architecture:
    return _architecture(AMPERE, _hmma(AMPERE, HMMA_1688 + HMMA_AMPERE))


def ada() -> Architecture:
    return _architecture(ADA, _hmma(ADA, HMMA_1688 + HMMA_AMPERE))


def hopper() -> Architecture:
    return _architecture(HOPPER, _hmma(HOPPER, HMMA_1688 + HMMA_AMPERE))


def blackwell() -> Architecture:
    return _architecture(BLACKWELL, _hmma(BLACKWELL, HMMA_1688 + HMMA_AMPERE))


def rtx_blackwell() -> Architecture:
    return _architecture(RTX_BLACKWELL, _hmma(RTX_BLACKWELL, HMMA_1688 + HMMA_AMPERE))
