"""Matrix units of Intel's processors, as tables.

Sources: Intel's Software Developer's Manual (`papers.py`) for the order of operations and subnormals; which NaN comes
out, and when a result counts as tiny, was measured (docs/semantics.md §10).
"""

from __future__ import annotations

from mmaformal.architectures.base import Architecture
from mmaformal.encodings.ffma import Ffma
from mmaformal.encodings.pfma import Pfma
from mmaformal.encodings.sfma import Sfma
from mmaformal.formats import bf16, fp16, fp32
from mmaformal.instruction import Instruction
from mmaformal.rounding import IEEE_FP16, NanRule
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
        sources={"L": "SDM, TDPBF16PS; the most products of a tile's row", "tiny": "measured"},
        depths=range(2, _MOST_PRODUCTS + 1, 2),
    )
    pair = Instruction(
        "VDPBF16PS",
        name,
        1,
        1,
        DotAdd(2, bf16, bf16, fp32, fp32, Ffma(), product_order=(1, 0)),
        sources={"product_order": "SDM, VDPBF16PS: the odd product first", "tiny": "measured"},
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
