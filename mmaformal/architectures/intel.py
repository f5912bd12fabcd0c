"""Matrix units of Intel's processors, as tables.

Sources: Intel's Software Developer's Manual (`papers.py`) for the order of operations and subnormals; which NaN comes
out, and when a result counts as tiny, was measured (docs/semantics.md §10).
"""

from __future__ import annotations

from mmaformal.algorithms import DotAdd, Pfma
from mmaformal.architectures.base import Architecture
from mmaformal.formats import bf16, fp32
from mmaformal.instruction import Instruction

#: bf16 pairs of a row of a tile of 64 bytes; a tile's configuration may say fewer (`.replace(k=…, L=…)`)
_MOST_PRODUCTS = 32


def sapphire_rapids() -> Architecture:
    spec = DotAdd(_MOST_PRODUCTS, bf16, bf16, fp32, fp32, Pfma(_MOST_PRODUCTS))
    sources = {"L": "SDM, TDPBF16PS; the most products of a tile's row"}
    instruction = Instruction("TDPBF16PS", "sapphire_rapids", 16, 16, spec, sources=sources)
    return Architecture("sapphire_rapids", "Sapphire Rapids, Emerald Rapids", [instruction])
