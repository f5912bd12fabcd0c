"""Matrix units of Intel's processors, as tables.

Sources: Intel's Software Developer's Manual (`papers.py`) for the order of operations and subnormals; which NaN comes
out, and when a result counts as tiny, was measured on Sapphire and Emerald Rapids (docs/semantics.md §10).  AMX-FP16,
AMX-FP8 and AVX10.2 are as the SDM and Intel's Instruction Set Extensions reference (ISE) have them, and were never run.
"""

from __future__ import annotations

from mmaformal.architectures.base import SPECIFIED, Architecture
from mmaformal.encodings.esda import Esda
from mmaformal.encodings.ffma import Ffma
from mmaformal.encodings.pfma import Pfma
from mmaformal.encodings.sfma import Sfma
from mmaformal.formats import Format, bf16, e4m3, e5m2, fp16, fp32
from mmaformal.instruction import Instruction
from mmaformal.rounding import IEEE_FP16, IEEE_FP32, RNE_FP32, NanRule
from mmaformal.spec import DotAdd

#: 16-bit pairs of a row of a tile of 64 bytes, twice; a tile's configuration may say fewer: TDPBF16PS.K2, .K4, …
_MOST_PRODUCTS = 32

#: Instructions that round nothing (SDM), and are not modelled
_EXACT = {
    **dict.fromkeys(("TDPBSSD", "TDPBSUD", "TDPBUSD", "TDPBUUD"), "int8, sums modulo 2^32"),
    **dict.fromkeys(("VPDPBUSD", "VPDPWSSD"), "int8 or int16, sums modulo 2^32"),
    **dict.fromkeys(("VPDPBUSDS", "VPDPWSSDS"), "the same, saturating"),
}


def sapphire_rapids() -> Architecture:
    name = "sapphire_rapids"
    tile = Instruction(
        "TDPBF16PS",
        name,
        16,
        16,
        DotAdd(_MOST_PRODUCTS, bf16, bf16, fp32, fp32, Pfma(_MOST_PRODUCTS)),
        sources={
            "L": "SDM, TDPBF16PS; the most products of a tile's row",
            "tiny": "measured",
            "nan": "measured",
        },
        depths=range(2, _MOST_PRODUCTS + 1, 2),
    )
    pair = Instruction(
        "VDPBF16PS",
        name,
        1,
        1,
        DotAdd(2, bf16, bf16, fp32, fp32, Ffma(), product_order=(1, 0)),
        sources={
            "product_order": "SDM, VDPBF16PS: the odd product first",
            "tiny": "measured",
            "nan": "measured",
        },
    )
    half = Instruction(
        "VFMADD231PH",
        name,
        1,
        1,
        DotAdd(1, fp16, fp16, fp16, fp16, Sfma(IEEE_FP16, NanRule.FIRST)),
        sources={"rho": "SDM, VFMADD231PH; MXCSR as at start", "nan": "measured"},
    )
    return Architecture(name, "Sapphire Rapids, Emerald Rapids", [tile, pair, half], exact=_EXACT)


#: A note on sums of fp16 products with an fp32 number, which are multiples of 2^-72 or that number
_NEVER_TINY = "no matter: no sum of fp16 products and a number that is not subnormal is tiny, unless it is 0"

#: Products of the 8-bit factors of a row of a tile of 64 bytes
_MOST_BYTES = 64


def amx_fp16() -> Architecture:
    """Returns AMX-FP16's instruction; the others of Granite Rapids are those of Sapphire Rapids.

    AMX-COMPLEX's TCMMIMFP16PS is TDPFP16PS of an a whose pairs are exchanged, (imaginary, real); TCMMRLFP16PS is it of
    an a whose imaginary parts have the other sign, its NaNs aside (docs/specified.md).
    """
    name = "amx_fp16"
    tile = Instruction(
        "TDPFP16PS",
        name,
        16,
        16,
        DotAdd(_MOST_PRODUCTS, fp16, fp16, fp32, fp32, Pfma(_MOST_PRODUCTS, nan=NanRule.ANY)),
        sources={
            "L": "SDM, TDPFP16PS: temp1 of even and of odd products, from 0; the most products of a tile's row",
            "tiny": f"SDM, TDPFP16PS: FTZ = 1; {_NEVER_TINY}",
            "nan": "open: the SDM does not say which NaN comes out",
        },
        depths=range(2, _MOST_PRODUCTS + 1, 2),
    )
    return Architecture(
        name,
        "Granite Rapids, AMX-FP16",
        [tile],
        standing=SPECIFIED,
        unsettled={"TDPFP16PS": "which NaN comes out"},
    )


#: Points that the texts leave open (docs/specified.md has the rows that would settle them)
_UNSETTLED = {
    "VDPPHPS": "whether subnormal fp16 counts as zero (the text: input denormals do), or is a normal number of fp32 "
    "before that is asked, as the emulator Bochs has it, and this model; which NaN comes out",
    "TDPBF8PS, TDPBHF8PS, TDPHBF8PS, TDPHF8PS": "the sign of 0 where c is negative and subnormal and the sum 0: −0 by "
    "the ISE (DAZ = 0), +0 by the emulator Bochs; whether +∞, −∞ and ∞ among four products that share a word are ∞, as "
    "Bochs says that Intel's SDE has it, or a NaN, as the ISE and this model have it",
    "TMMULTF32PS": "withdrawn: Intel removed AMX-TF32 in revision 62 of the ISE reference, and no machine has it; "
    "texts differed on whether c is added first or last, a product is fused, a subnormal factor kept; not modelled",
}


def diamond_rapids() -> Architecture:
    """Returns VDPPHPS and the AMX-FP8 instructions; B is E5M2 and H is E4M3, in the order of tsrc1 and tsrc2."""
    name = "diamond_rapids"
    sources = {
        "L": "ISE, TDPBF8PS: all products of a row, summed as 128-bit integers",
        "dot": "ISE, TDPBF8PS, convert_int128_to_fp32: to nearest even; a sum of 0 is +0",
        "rho": "ISE, TDPBF8PS: to nearest even, DAZ = 0",
        "flush": "ISE, TDPBF8PS: FTZ = 1",
        "nan": "ISE, TDPBF8PS: QNaN_indefinite, whatever is a NaN or invalid",
    }

    def tile(opcode: str, a: Format, b: Format) -> Instruction:
        parameters = Esda(_MOST_BYTES, RNE_FP32, IEEE_FP32, flush=True, nan=NanRule.INDEFINITE)
        spec = DotAdd(_MOST_BYTES, a, b, fp32, fp32, parameters)
        depths = range(4, _MOST_BYTES + 1, 4)
        return Instruction(opcode, name, 16, 16, spec, sources=sources, depths=depths)

    pair = Instruction(
        "VDPPHPS",
        name,
        1,
        1,
        DotAdd(2, fp16, fp16, fp32, fp32, Ffma(nan=NanRule.ANY), product_order=(1, 0)),
        sources={
            "product_order": "the emulator Bochs, and GCC's test avx10_2-512-vdpphps-2.c: the odd product first",
            "tiny": f"Intel's Intrinsics Guide, _mm_dpph_ps: two FMA, output denormals are zero; {_NEVER_TINY}",
            "nan": "open: no text says which NaN comes out",
        },
    )
    tiles = [
        tile("TDPBF8PS", e5m2, e5m2),
        tile("TDPBHF8PS", e5m2, e4m3),
        tile("TDPHBF8PS", e4m3, e5m2),
        tile("TDPHF8PS", e4m3, e4m3),
    ]
    return Architecture(
        name,
        "Diamond Rapids, AMX-FP8 and AVX10.2",
        [pair, *tiles],
        standing=SPECIFIED,
        unsettled=_UNSETTLED,
    )
