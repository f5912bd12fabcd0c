"""Matrix units of Intel's processors, as tables.

Sources: Intel's Software Developer's Manual (`papers.py`) for the order of operations and subnormals; which NaN comes
out, and when a result counts as tiny, was measured on Sapphire and Emerald Rapids (docs/semantics.md §10).  The AMX-FP8
of Diamond Rapids is as Intel's text for it has it, and was never run (docs/specified.md).
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

#: bf16 pairs of a row of a tile of 64 bytes, twice; a tile's configuration may say fewer: TDPBF16PS.K2, .K4, …
_MOST_PRODUCTS = 32

#: What rounds nothing (SDM), and is not modelled
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


def granite_rapids() -> Architecture:
    """Returns AMX-FP16's instruction; the others of Granite Rapids are those of Sapphire Rapids."""
    name = "granite_rapids"
    tile = Instruction(
        "TDPFP16PS",
        name,
        16,
        16,
        DotAdd(_MOST_PRODUCTS, fp16, fp16, fp32, fp32, Pfma(_MOST_PRODUCTS, nan=NanRule.ANY)),
        sources={
            "L": "SDM, TDPFP16PS; the most products of a tile's row",
            "tiny": "SDM, TDPFP16PS: FTZ; no result is below the least number either way, but c alone",
            "nan": "open: the SDM does not say which NaN comes out",
        },
        depths=range(2, _MOST_PRODUCTS + 1, 2),
    )
    return Architecture(
        name,
        "AMX-FP16",
        [tile],
        standing=SPECIFIED,
        unsettled={"TDPFP16PS": "which NaN comes out"},
    )


#: 8-bit products of a row of a tile of 64 bytes, four times
_MOST_BYTES = 64

#: What the texts leave open, and what would have to be written
_UNSETTLED = {
    "VDPPHPS": "in part open: whether subnormal fp16 counts as zero (the text: input denormals do) or is a normal "
    "number of fp32 before that is asked, as Bochs has it, and this model; which NaN comes out; when a result is tiny",
    "TMMULTF32PS": "in part open: texts differ on whether c is added first or last, and say not whether a product and "
    "its addition are fused, nor which NaN comes out; not modelled",
}


def diamond_rapids() -> Architecture:
    """Returns the AMX-FP8 instructions; B is E5M2 and H is E4M3, in the order of tsrc1 and tsrc2."""
    name = "diamond_rapids"
    sources = {
        "L": "ISE, TDPBF8PS: all products of a row, summed as 128-bit integers",
        "dot": "ISE, convert_int128_to_fp32: to nearest even; the sum 0 is +0",
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
            "product_order": "GCC's test of it, and the emulator Bochs: the odd product first",
            "tiny": "open: text says that output denormals are flushed, not when a result is one",
            "nan": "open: no text says which NaN comes out",
        },
    )
    return Architecture(
        name,
        "AMX-FP8, AVX10.2",
        [
            pair,
            tile("TDPBF8PS", e5m2, e5m2),
            tile("TDPBHF8PS", e5m2, e4m3),
            tile("TDPHBF8PS", e4m3, e5m2),
            tile("TDPHF8PS", e4m3, e4m3),
        ],
        standing=SPECIFIED,
        unsettled=_UNSETTLED,
    )
