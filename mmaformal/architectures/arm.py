"""Matrix units of Arm's processors, as tables.

Source: the Arm Architecture Reference Manual (`papers.py`): pseudocode of BFDotAdd and BFMatMulAdd, and, of 8-bit
formats, FP8DotAddFP and FP8MatMulAddFP.  With FPCR.EBF = 0, BFDotAdd was compared with QEMU 7.2 in user mode, an
emulator (docs/semantics.md §10); the others are as the text has them, and were never run (docs/specified.md).
SME's outer products: pseudocode of FPDotAdd, BFDotAdd and FPMulAdd, compared with the same (§11).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from mmaformal.architectures.base import SPECIFIED, Architecture, Revision
from mmaformal.encodings.efda import Efda
from mmaformal.encodings.oddsum import Oddsum
from mmaformal.encodings.rnd2 import Rnd2
from mmaformal.encodings.sfma import Sfma
from mmaformal.formats import Format, bf16, e4m3, e5m2, fp16, fp32, fp64
from mmaformal.instruction import Instruction
from mmaformal.rounding import IEEE_FP16, IEEE_FP32, IEEE_FP64, RO_FP32, NanRule
from mmaformal.spec import DotAdd, Parameters

#: Instructions that round nothing (Arm ARM), and are not modelled
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


def armv9_ebf16() -> Architecture:
    """Returns the same instructions, and SME's, with FPCR.EBF = 1: a pair summed and rounded once, then added to c."""
    name = "armv9_ebf16"
    sources = {
        "pair": "Arm ARM, FPDot: one rounding of the sum of two products",
        "rho": "Arm ARM, BFDotAdd, FPAdd; FPCR = 0 but for EBF: to nearest, subnormals kept",
        "nan": "Arm ARM, BFDOT: only the default NaN, as if FPCR.DN is 1",
        "negate_pair": "Arm ARM: no sum is negated",
    }

    def unit(opcode: str, m: int, n: int, k: int, negated: str = "") -> Instruction:
        pairs = Rnd2(IEEE_FP32, IEEE_FP32, NanRule.DEFAULT)
        spec = DotAdd(k, bf16, bf16, fp32, fp32, pairs, negated=negated)
        own = sources | (
            {"negated": "Arm ARM, BFMOPS: the signs of the first factors are changed"} if negated else {}
        )
        return Instruction(opcode, name, m, n, spec, sources=own)

    outer = [unit("BFMOPA", 4, 4, 2), unit("BFMOPS", 4, 4, 2, "a")]
    return Architecture(
        name,
        "FEAT_EBF16, FPCR.EBF = 1",
        [unit("BFDOT", 1, 1, 2), unit("BFMMLA", 2, 2, 4), *outer],
        standing=SPECIFIED,
    )


#: The largest FPMR.LSCALE; of fp16 results the lowest 4 bits count.
_MOST_SCALE = 127


def _scaled(fmt: Format, scale: int) -> Format:
    """Returns the format whose codes are 2^-scale times what they are in another."""
    name = f"{fmt.name}/2^{scale}" if scale else fmt.name
    return replace(fmt, name=name, bias=fmt.bias + scale, dtype=None if scale else fmt.dtype)


def _fpmr(scale: int, saturates: bool) -> Revision:
    """Returns the instructions with another FPMR.LSCALE or FPMR.OSM."""

    def revise(i: Instruction) -> Instruction:
        """Halves of the scale go to a and to b: 2^-S·Σ a·b = Σ (2^-s·a)·(2^-(S-s)·b), exactly."""
        own = scale % 16 if i.d_format is fp16 else scale
        a, b = _scaled(i.spec.a_format, own // 2), _scaled(i.spec.b_format, own - own // 2)
        spec = replace(i.spec, a_format=a, b_format=b)
        if saturates:
            rho = spec.parameters.last_rounding
            spec = spec.replace(rho=f"{rho.name}-SatPropagate")
        return replace(i, spec=spec)

    words = [f"LSCALE = {scale}: the sum of products is scaled by 2^-{scale}"] if scale else []
    words += ["OSM = 1: overflow gives the largest number"] if saturates else []
    name = "-".join((["osm"] if saturates else []) + ([f"lscale-{scale}"] if scale else []))
    return Revision(name, f"FPMR.{', '.join(words)}", revise)


def armv9_fp8() -> Architecture:
    """Returns FDOT, FMMLA and FMOPA of 8-bit formats, with FPMR.LSCALE = 0 and FPMR.OSM = 0.

    FPMR.F8S1 and F8S2 choose the formats of a and b, which stand in the names.  `armv9_fp8@lscale-4` has
    FPMR.LSCALE = 4, `armv9_fp8@osm` FPMR.OSM = 1, and `armv9_fp8@osm-lscale-4` both.
    """
    name = "armv9_fp8"
    sources = {
        "L": "Arm ARM, FDOT, FMMLA, FMOPA: as many products as one element of the result has",
        "nan": "Arm ARM, FP8DotAddFP: the default NaN, whatever FPCR.DN; FPCR.AH = 0",
        "flush_inputs": "Arm ARM, FP8DotAddFP: subnormals kept",
        "minus_zero": "Arm ARM, FP8DotAddFP: the sign of an exact zero as IEEE 754 has it",
        "rho": "Arm ARM, FP8DotAddFP: RN whatever FPCR.RMode, no intermediate rounding, subnormals kept; FPMR.OSM says "
        "whether overflow is infinity or the largest number (FPRoundBase, satoflo)",
    }

    def unit(opcode: str, size: int, k: int, a: Format, b: Format) -> Instruction:
        d, rho = (fp16, IEEE_FP16) if size == 16 else (fp32, IEEE_FP32)
        m = {"FDOT": 1, "FMMLA": 2, "FMOPA": 128 // size}[opcode]
        full = f"{opcode}.F{size}.{a.name.upper()}.{b.name.upper()}"
        spec = DotAdd(k, a, b, d, d, Efda(k, rho, minus_zero=True, nan=NanRule.DEFAULT))
        return Instruction(full, name, m, m, spec, sources=sources)

    shapes = [(opcode, size, size // 8) for opcode in ("FDOT", "FMOPA") for size in (16, 32)]
    shapes += [("FMMLA", 16, 4), ("FMMLA", 32, 8)]
    units = [unit(*shape, a, b) for shape in shapes for a in (e4m3, e5m2) for b in (e4m3, e5m2)]
    settings = [
        _fpmr(scale, osm) for osm in (False, True) for scale in range(_MOST_SCALE + 1) if scale or osm
    ]
    return Architecture(
        name,
        "FEAT_FP8DOT2, FEAT_FP8DOT4, FEAT_F8F16MM, FEAT_F8F32MM, FEAT_SME_F8F16, FEAT_SME_F8F32",
        units,
        settings,
        standing=SPECIFIED,
    )


#: Instructions of SME that round nothing (Arm ARM), and are not modelled
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
