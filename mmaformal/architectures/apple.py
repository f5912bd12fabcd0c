"""The matrix coprocessor of Apple's processors (AMX), as a table.

Source: corsix/amx (`papers.py`), fma.md and fma.c.  Here are the dot product-adds that steps in matrix mode make on one
lane of Z; what an instruction does to the state is `mmaformal.apple`.
"""

from __future__ import annotations

from mmaformal.architectures.base import Architecture
from mmaformal.encodings.sfma import Sfma
from mmaformal.encodings.wfma import Wfma
from mmaformal.formats import fp16, fp32
from mmaformal.instruction import Instruction
from mmaformal.rounding import IEEE_FP16, IEEE_FP32, IEEE_FP64, Conversion, NanRule
from mmaformal.spec import DotAdd


def apple_amx() -> Architecture:
    name = "apple_amx"
    sources = {"rho": "corsix/amx, fma.md", "nan": "corsix/amx, fma.md: the DN bit of FPCR"}

    def fma(opcode: str, lanes: int, rho: Conversion) -> Instruction:
        fmt = rho.format
        spec = DotAdd(1, fmt, fmt, fmt, fmt, Sfma(rho, NanRule.DEFAULT))
        return Instruction(opcode, name, lanes, lanes, spec, sources=sources)

    wide = DotAdd(1, fp16, fp16, fp32, fp32, Wfma(IEEE_FP32))
    return Architecture(
        name,
        "M1 to M4",
        [
            fma("fma16", 32, IEEE_FP16),
            Instruction(
                "fma16.F32", name, 32, 32, wide, sources={"rho": "corsix/amx, fma.md, mixed lane widths"}
            ),
            fma("fma32", 16, IEEE_FP32),
            fma("fma64", 8, IEEE_FP64),
        ],
    )
