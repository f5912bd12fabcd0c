"""The dot product-add operator of E9S12 halves, as a table.

Source: Desrentes, Dupont de Dinechin and de Dinechin (`papers.py`), a design that was synthesised, not a product: the
sizes of its §V (16 products of fp16 and bf16, 4 of fp32), and the size-4 operator of its abstract.  L = 81 + log2 of
the E9S12 products (§IV-B).  DP4ACC8 is the operator of 4 products with the looped accumulator of §IV-D, for 8 of them
in 2 passes, and DP1ACC2 the one of one fp32 product; the paper names no size, and with L = 85 as many places are kept.
"""

from __future__ import annotations

from mmaformal.architectures.base import Architecture
from mmaformal.encodings.acc_e9s12 import AccE9s12
from mmaformal.encodings.dpa_e9s12 import DpaE9s12
from mmaformal.formats import Format, bf16, fp16, fp32
from mmaformal.instruction import Instruction
from mmaformal.rounding import IEEE_FP32
from mmaformal.spec import DotAdd

#: name, type of a and b, products, L
_OPERATORS = (
    ("DP16A.FP16", fp16, 16, 85),
    ("DP16A.BF16", bf16, 16, 85),
    ("DP4A.FP32", fp32, 4, 85),
    ("DP4A.FP16", fp16, 4, 83),
    ("DP4A.BF16", bf16, 4, 83),
    ("DP1A.FP32", fp32, 1, 83),
)


_SOURCES = {
    "N": "Desrentes et al. §V",
    "accumulator_bits": "Desrentes et al. §IV-B",
    "rho": "Desrentes et al. §IV",
    "detects_zeros": "Desrentes et al. §IV-B, d",
}

#: name, type of a and b, products in all, of a pass, accumulator_bits
_LOOPED = (
    ("DP4ACC8.FP16", fp16, 8, 4, 85),
    ("DP4ACC8.BF16", bf16, 8, 4, 85),
    ("DP1ACC2.FP32", fp32, 2, 1, 85),
)


def _looped(name: str, factors: Format, D: int, N: int, accumulator_bits: int) -> Instruction:
    spec = DotAdd(D, factors, factors, fp32, fp32, AccE9s12(D, N, accumulator_bits, IEEE_FP32))
    sources = {
        "D": "chosen",
        "N": "Desrentes et al. §IV-D",
        "accumulator_bits": "chosen",
        "rho": "Desrentes et al. §IV",
    }
    return Instruction(name, "e9s12", 1, 1, spec, sources=sources)


def _instruction(name: str, factors: Format, products: int, accumulator_bits: int) -> Instruction:
    return Instruction(
        name,
        "e9s12",
        1,
        1,
        DotAdd(products, factors, factors, fp32, fp32, DpaE9s12(products, accumulator_bits, IEEE_FP32)),
        sources=_SOURCES,
    )


def e9s12() -> Architecture:
    return Architecture(
        "e9s12",
        "Desrentes et al.'s operator",
        [*(_instruction(*each) for each in _OPERATORS), *(_looped(*each) for each in _LOOPED)],
    )
