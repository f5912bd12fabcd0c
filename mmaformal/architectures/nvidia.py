"""NVIDIA Tensor Cores, as tables: which instructions an architecture has, and the parameters of each.

Sources: MMA-Sim (`papers.py`) Table III for the instructions and §IV-A, C to E for the algorithms;
docs/semantics.md §5 for the parameters where later measurements correct the paper (e_zero; F of HMMA.884 on
turing) and §6 for the names and for the PTX that is lowered to several instructions.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import chain

from mmaformal.architectures.base import Architecture, Revision
from mmaformal.display import ShortRepr
from mmaformal.encodings.fda import Fda
from mmaformal.encodings.gdfs import Gdfs
from mmaformal.encodings.lowered import Lowered
from mmaformal.encodings.sfma import Sfma
from mmaformal.formats import (
    Format,
    bf16,
    e2m1,
    e2m3,
    e3m2,
    e4m3,
    e5m2,
    fp16,
    fp32,
    fp64,
    tf32,
    ue4m3,
    ue8m0,
)
from mmaformal.instruction import FreeSizes, Instruction
from mmaformal.rounding import IEEE_FP16, IEEE_FP32, IEEE_FP64, RNE_FP16, RZ_E8M13, RZ_FP32, Conversion
from mmaformal.spec import DotAdd, LossModel, Parameters


@dataclass(frozen=True, repr=False)
class TreeParameters(ShortRepr):
    """A row of the parameter table: what one generation's multiply-add tree is built like."""

    name: str
    gpus: str
    F: int  #: fractional bits kept at the alignment
    step_bytes: int  #: bytes of A that one step takes
    e_zero_fp16: int  #: exponent of an exact zero, fp16 output
    e_zero_fp32: int  #: the same, fp32 output
    F_fp8: int | None = None  #: of fp8 operands, where it is not F
    rho_fp8: Conversion = RZ_FP32  #: of fp8 operands and fp32 output

    def fda(self, k: int, a_format: Format, d_format: Format) -> Fda:
        to_fp16 = d_format is fp16
        fp8 = a_format.word_bits == 8
        return Fda(
            F=self.F_fp8 if fp8 and self.F_fp8 else self.F,
            L=min(k, self.step_bytes * 8 // a_format.word_bits),
            rho=RNE_FP16 if to_fp16 else self.rho_fp8 if fp8 else RZ_FP32,
            e_zero=self.e_zero_fp16 if to_fp16 else self.e_zero_fp32,
        )


VOLTA = TreeParameters("volta", "V100", 23, 8, -19, -131)
TURING = TreeParameters("turing", "T4", 24, 16, -20, -132)
AMPERE = TreeParameters("ampere", "A100, A2, A30", 24, 16, -20, -132)
ADA = TreeParameters("ada", "RTX 4090, L40S, RTX 1000 Ada", 24, 16, -20, -132, F_fp8=13, rho_fp8=RZ_E8M13)
HOPPER = TreeParameters("hopper", "H100, H200", 25, 32, -21, -133, F_fp8=13, rho_fp8=RZ_E8M13)
BLACKWELL = TreeParameters("blackwell", "B200", 25, 32, -21, -133)
RTX_BLACKWELL = TreeParameters("rtx_blackwell", "RTX PRO 6000", 25, 32, -21, -133)

#: MMA-Sim §IV-E; docs/semantics.md §3
GDFS = Gdfs(F=35, G=16, L=64, rho=RZ_FP32, e_zero=-139)

F8 = (e4m3, e5m2)
F8F6F4 = (e4m3, e5m2, e2m3, e3m2, e2m1)

#: what the names call the formats
PTX = {fp64: "f64", fp32: "f32", tf32: "tf32", bf16: "bf16", fp16: "f16", ue8m0: "ue8m0", ue4m3: "ue4m3"}
PTX |= {f: f.name for f in F8F6F4}
SASS = {fp32: "F32", fp16: "F16", ue8m0: "E8", ue4m3: "UE4M3"} | {f: f.name.upper() for f in F8F6F4}


@dataclass(frozen=True, repr=False)
class NvidiaRow(ShortRepr):
    """An instruction: SASS name, PTX spellings, shape, types, block scales."""

    name: str
    ptx: tuple[str, ...]
    shape: tuple[int, int, int]  #: m, n, k
    types: tuple[Format, Format, Format, Format]  #: of a, b, c, d
    scale: tuple[Format | None, int] = (None, 0)  #: format, block
    sizes: FreeSizes | None = None


def _mma(name: str, m: int, n: int, k: int, a: Format, c: Format, d: Format, *more_names: str) -> NvidiaRow:
    ptx = f"mma.m{m}n{n}k{k}.{PTX[d]}.{PTX[a]}.{PTX[a]}.{PTX[c]}"
    return NvidiaRow(name, (ptx, *more_names), (m, n, k), (a, a, c, d))


HMMA_884 = (
    _mma("HMMA.884.F32.F32", 8, 8, 4, fp16, fp32, fp32),
    _mma("HMMA.884.F32.F16", 8, 8, 4, fp16, fp16, fp32),
    _mma("HMMA.884.F16.F16", 8, 8, 4, fp16, fp16, fp16),
)
HMMA_1688 = (
    _mma("HMMA.1688.F32", 16, 8, 8, fp16, fp32, fp32),
    _mma("HMMA.1688.F16", 16, 8, 8, fp16, fp16, fp16),
)
HMMA_AMPERE = (
    _mma("HMMA.16816.F32", 16, 8, 16, fp16, fp32, fp32),
    _mma("HMMA.16816.F16", 16, 8, 16, fp16, fp16, fp16),
    _mma("HMMA.16816.F32.BF16", 16, 8, 16, bf16, fp32, fp32),
    _mma("HMMA.1688.F32.BF16", 16, 8, 8, bf16, fp32, fp32),
    _mma("HMMA.1688.F32.TF32", 16, 8, 8, tf32, fp32, fp32),
    _mma("HMMA.1684.F32.TF32", 16, 8, 4, tf32, fp32, fp32),
)
DMMA_884 = (_mma("DMMA.884", 8, 8, 4, fp64, fp64, fp64, "DMMA.8x8x4"),)
DMMA_HOPPER = tuple(_mma(f"DMMA.16x8x{k}", 16, 8, k, fp64, fp64, fp64) for k in (16, 8, 4))


def _qmma(k: int, a: Format, b: Format, d: Format, kind: str = "") -> NvidiaRow:
    types = f"{PTX[d]}.{PTX[a]}.{PTX[b]}.{PTX[d]}"
    plain = f"mma.m16n8k{k}.{types}"
    spellings: tuple[str, ...] = (plain,)
    if kind:
        of_kind = f"mma.m16n8k{k}.kind::{kind}.{types}"
        spellings = (of_kind, plain) if a in F8 and b in F8 else (of_kind,)
    return NvidiaRow(f"QMMA.168{k}.{SASS[d]}.{SASS[a]}.{SASS[b]}", spellings, (16, 8, k), (a, b, d, d))


QMMA_16832 = tuple(_qmma(32, a, b, d) for d in (fp32, fp16) for a in F8 for b in F8)
QMMA_16816 = tuple(_qmma(16, a, b, d) for d in (fp32, fp16) for a in F8 for b in F8)
QMMA_F8F6F4 = tuple(_qmma(32, a, b, d, "f8f6f4") for d in (fp32, fp16) for a in F8F6F4 for b in F8F6F4)


def _qmma_sf(a: Format, b: Format) -> NvidiaRow:
    ptx = f"mma.m16n8k32.kind::mxf8f6f4.block32.f32.{PTX[a]}.{PTX[b]}.f32.ue8m0"
    name = f"QMMA.SF.16832.F32.{SASS[a]}.{SASS[b]}.E8"
    return NvidiaRow(name, (ptx,), (16, 8, 32), (a, b, fp32, fp32), (ue8m0, 32))


QMMA_SF = tuple(_qmma_sf(a, b) for a in F8F6F4 for b in F8F6F4)


@dataclass(frozen=True, repr=False)
class MxFp4(ShortRepr):
    """e2m1 with block scales: which, how PTX calls it, and how its SASS name ends."""

    scale: Format
    block: int
    kinds: tuple[str, ...]
    ending: str


MX_FP4 = (
    MxFp4(ue8m0, 32, ("mxf4", "mxf4nvf4"), "E8"),
    MxFp4(ue8m0, 16, ("mxf4nvf4",), "E8.4X"),
    MxFp4(ue4m3, 16, ("mxf4nvf4",), "UE4M3.4X"),
)
E2M1_TYPES = (e2m1, e2m1, fp32, fp32)


def _omma_sf(mx: MxFp4) -> NvidiaRow:
    ptx = (
        f"mma.m16n8k64.kind::{kind}.block{mx.block}.f32.e2m1.e2m1.f32.{PTX[mx.scale]}" for kind in mx.kinds
    )
    name = f"OMMA.SF.16864.F32.E2M1.E2M1.{mx.ending}"
    return NvidiaRow(name, tuple(ptx), (16, 8, 64), E2M1_TYPES, (mx.scale, mx.block))


OMMA_SF = tuple(map(_omma_sf, MX_FP4))

_EIGHTS, _SIXTEENS = range(8, 257, 8), range(16, 257, 16)
WGMMA_SIZES = FreeSizes(((64, _EIGHTS),))
#: PTX ISA, table "Various combinations of .kind and shapes", dense, without .ws: m256 is a pair of CTAs'
#: (.cta_group::2, UTC….2CTA in SASS), which takes m128 too, with n a multiple of 16.
TCGEN05_SIZES = FreeSizes(((64, _EIGHTS), (128, _EIGHTS), (256, _SIXTEENS)))
TCGEN05_SCALED_SIZES = FreeSizes(((128, _EIGHTS), (256, _SIXTEENS)))


def _wgmma(name: str, k: int, a: Format, b: Format, d: Format) -> NvidiaRow:
    ptx = f"wgmma.m64n8k{k}.{PTX[d]}.{PTX[a]}.{PTX[b]}"
    return NvidiaRow(name, (ptx,), (64, 8, k), (a, b, d, d), sizes=WGMMA_SIZES)


HGMMA = (
    _wgmma("HGMMA.64x8x8.F32.TF32", 8, tf32, tf32, fp32),
    _wgmma("HGMMA.64x8x16.F32", 16, fp16, fp16, fp32),
    _wgmma("HGMMA.64x8x16.F16", 16, fp16, fp16, fp16),
    _wgmma("HGMMA.64x8x16.F32.BF16", 16, bf16, bf16, fp32),
)
QGMMA = tuple(
    _wgmma(f"QGMMA.64x8x32.{SASS[d]}.{SASS[a]}.{SASS[b]}", 32, a, b, d)
    for d in (fp32, fp16)
    for a in F8
    for b in F8
)


def _tcgen05(name: str, k: int, kind: str, a: Format, b: Format, d: Format) -> NvidiaRow:
    ptx = f"tcgen05.mma.m64n8k{k}.kind::{kind}.{PTX[d]}.{PTX[a]}.{PTX[b]}"
    return NvidiaRow(name, (ptx,), (64, 8, k), (a, b, d, d), sizes=TCGEN05_SIZES)


UTCHMMA = (
    _tcgen05("UTCHMMA.F32.TF32", 8, "tf32", tf32, tf32, fp32),
    _tcgen05("UTCHMMA.F32", 16, "f16", fp16, fp16, fp32),
    _tcgen05("UTCHMMA.F16", 16, "f16", fp16, fp16, fp16),
    _tcgen05("UTCHMMA.F32.BF16", 16, "f16", bf16, bf16, fp32),
)
UTCQMMA = tuple(
    _tcgen05(f"UTCQMMA.{SASS[d]}.{SASS[a]}.{SASS[b]}", 32, "f8f6f4", a, b, d)
    for d in (fp32, fp16)
    for a in F8F6F4
    for b in F8F6F4
)


def _utcqmma_sf(a: Format, b: Format) -> NvidiaRow:
    ptx = f"tcgen05.mma.m128n8k32.kind::mxf8f6f4.block32.f32.{PTX[a]}.{PTX[b]}.ue8m0"
    name = f"UTCQMMA.SF.F32.{SASS[a]}.{SASS[b]}.E8"
    return NvidiaRow(name, (ptx,), (128, 8, 32), (a, b, fp32, fp32), (ue8m0, 32), TCGEN05_SCALED_SIZES)


UTCQMMA_SF = tuple(_utcqmma_sf(a, b) for a in F8F6F4 for b in F8F6F4)


def _utcomma(mx: MxFp4) -> NvidiaRow:
    ptx = (
        f"tcgen05.mma.m128n8k64.kind::{kind}.block{mx.block}.f32.e2m1.e2m1.{PTX[mx.scale]}"
        for kind in mx.kinds
    )
    name = f"UTCOMMA.F32.E2M1.E2M1.{mx.ending}"
    return NvidiaRow(name, tuple(ptx), (128, 8, 64), E2M1_TYPES, (mx.scale, mx.block), TCGEN05_SCALED_SIZES)


UTCOMMA = tuple(map(_utcomma, MX_FP4))

#: mma.m16n8k32 with fp8 operands where there is no such instruction (docs/semantics.md §6, "Lowered PTX")
LOWERED_FP8 = tuple(
    NvidiaRow(f"mma.m16n8k32.{PTX[d]}.{PTX[a]}.{PTX[b]}.{PTX[d]}", (), (16, 8, 32), (a, b, d, d))
    for d in (fp32, fp16)
    for a in F8
    for b in F8
)
LOWERED_ORDER = (*(k for k in range(32) if k % 4 < 2), *(k for k in range(32) if k % 4 >= 2))

SOURCES = {
    "sfma": {"rho": "MMA-Sim §IV-A (IEEE fma)", "nan": "not recorded"},
    "fda": {
        "F": "MMA-Sim §IV-C step 3, Table III",
        "L": "MMA-Sim §IV-D, Table III (CoFDA); docs/semantics.md §5 (bytes of A per step)",
        "rho": "MMA-Sim §IV-C step 5; docs/semantics.md §4",
        "cut": "MMA-Sim §IV-C step 3",
        "e_zero": "mmasim 2.1.1, which corrects MMA-Sim §IV-C step 2; docs/semantics.md §5, §9",
    },
    "gdfs": {
        "F": "MMA-Sim §IV-E step 4",
        "G": "MMA-Sim §IV-E step 3",
        "L": "MMA-Sim Table III (K = 64)",
        "rho": "MMA-Sim §IV-E step 7; docs/semantics.md §3",
        "e_zero": "mmasim 2.1.1, not in MMA-Sim; docs/semantics.md §3",
    },
    "lowered": dict.fromkeys(
        ("F", "L", "rho", "e_zero", "operands", "order", "addition", "cut", "nan"),
        "docs/semantics.md §6, from recordings of H100, H200 and B200",
    ),
}


def _instruction(unit: TreeParameters, row: NvidiaRow, parameters: Parameters, **sources: str) -> Instruction:
    m, n, k = row.shape
    return Instruction(
        name=row.name,
        architecture=unit.name,
        m=m,
        n=n,
        spec=DotAdd(k, *row.types, parameters, *row.scale),
        aliases=row.ptx,
        sources=SOURCES[parameters.algorithm] | sources,
        sizes=row.sizes,
    )


def _fda(unit: TreeParameters, *tables: Iterable[NvidiaRow], **sources: str) -> Iterator[Instruction]:
    for row in chain(*tables):
        a, _, _, d = row.types
        yield _instruction(unit, row, unit.fda(row.shape[2], a, d), **sources)


def _sfma(unit: TreeParameters, *tables: Iterable[NvidiaRow]) -> Iterator[Instruction]:
    for row in chain(*tables):
        yield _instruction(unit, row, Sfma(IEEE_FP64))


def _gdfs(unit: TreeParameters, table: Iterable[NvidiaRow]) -> Iterator[Instruction]:
    for row in table:
        yield _instruction(unit, row, GDFS)


def _lowered(unit: TreeParameters, table: Iterable[NvidiaRow]) -> Iterator[Instruction]:
    """Each half of the products is one HMMA.16816 of the unit: its parameters are those of fp16 operands."""
    for row in table:
        d = row.types[3]
        half = unit.fda(16, fp16, d)
        addition = IEEE_FP16 if d is fp16 else IEEE_FP32
        parameters = Lowered(half.F, half.L, half.rho, half.e_zero, fp16, LOWERED_ORDER, addition)
        yield _instruction(unit, row, parameters)


# ---- revisions -------------------------------------------------------------------------------------------


def _revised(instruction: Instruction, source: str, **changes: object) -> Instruction:
    return replace(
        instruction,
        spec=instruction.spec.replace(**changes),
        sources={**instruction.sources, **dict.fromkeys(changes, source)},
    )


def _as_in_the_paper(instruction: Instruction) -> Instruction | None:
    """MMA-Sim as printed.

    Its fp16 overflow bound, "(2 − 2^11) × 2^15", is negative and would make every result infinite: read as
    (2 − 2^−11) · 2^15 it is the default's.  On the sign of a zero result it is silent: here a negative sum
    that is rounded to zero gives −0, as IEEE 754 has it.
    """
    parameters, source = instruction.parameters, "MMA-Sim"
    if parameters.made_of(instruction.spec) is not None:
        return None
    if "e_zero" not in parameters:
        return instruction
    changes: dict[str, object] = {"e_zero": None, "rho": parameters.last_rounding.with_signed_zero()}
    if instruction.architecture == "turing" and instruction.name.startswith("HMMA.884"):
        changes["F"] = TURING.F
    return _revised(instruction, source, **changes)


def _with_earlier_e_zero(instruction: Instruction) -> Instruction:
    p = instruction.parameters
    e_zero = p["e_zero"] if p.loss is LossModel.TERMS else None
    if instruction.d_format is not fp16 or not isinstance(e_zero, int):
        return instruction
    return _revised(instruction, "mmasim 2.0.1; docs/semantics.md §9", e_zero=e_zero - 1)


REVISIONS = (
    Revision(
        "paper-v1", "MMA-Sim as printed: zero terms keep the exponent of their fields", _as_in_the_paper
    ),
    Revision(
        "earlier-e-zero", "e_zero one less where the output is fp16, as in mmasim 2.0.1", _with_earlier_e_zero
    ),
)


# ---- the architectures -----------------------------------------------------------------------------------


def _architecture(unit: TreeParameters, *instructions: Iterable[Instruction]) -> Architecture:
    return Architecture(unit.name, unit.gpus, chain(*instructions), REVISIONS)


def volta() -> Architecture:
    return _architecture(VOLTA, _fda(VOLTA, HMMA_884))


def turing() -> Architecture:
    as_volta = replace(VOLTA, name="turing")
    corrected = "mmasim 2.1.1, as volta, which corrects F = 24 of MMA-Sim Table III; docs/semantics.md §5, §9"
    return _architecture(TURING, _fda(as_volta, HMMA_884, F=corrected), _fda(TURING, HMMA_1688))


def ampere() -> Architecture:
    return _architecture(AMPERE, _fda(AMPERE, HMMA_1688, HMMA_AMPERE), _sfma(AMPERE, DMMA_884))


def ada() -> Architecture:
    return _architecture(ADA, _fda(ADA, HMMA_1688, HMMA_AMPERE, QMMA_16832, QMMA_16816), _sfma(ADA, DMMA_884))


def hopper() -> Architecture:
    return _architecture(
        HOPPER,
        _fda(HOPPER, HMMA_1688, HMMA_AMPERE, HGMMA, QGMMA),
        _sfma(HOPPER, DMMA_884, DMMA_HOPPER),
        _lowered(HOPPER, LOWERED_FP8),
    )


def blackwell() -> Architecture:
    return _architecture(
        BLACKWELL,
        _fda(BLACKWELL, HMMA_1688, HMMA_AMPERE, UTCHMMA, UTCQMMA, UTCQMMA_SF),
        _gdfs(BLACKWELL, UTCOMMA),
        _sfma(BLACKWELL, DMMA_884),
        _lowered(BLACKWELL, LOWERED_FP8),
    )


def rtx_blackwell() -> Architecture:
    return _architecture(
        RTX_BLACKWELL,
        _fda(RTX_BLACKWELL, HMMA_1688, HMMA_AMPERE, QMMA_F8F6F4, QMMA_16816, QMMA_SF),
        _gdfs(RTX_BLACKWELL, OMMA_SF),
        _sfma(RTX_BLACKWELL, DMMA_884),
    )
