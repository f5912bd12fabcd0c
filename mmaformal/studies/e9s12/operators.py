"""The multi-addition operator of E9S12 halves: a sum of numbers, aligned once and rounded once, without products.

    from mmaformal.studies.e9s12.operators import OPERATORS
    OPERATORS["MA8.FP32"]([1.0, 2.0**-60, -1.0, 0, 0, 0, 0, 0])

A dot product-add has pairs; this has terms, so it is no `Instruction`.  What is proved of it: docs/e9s12.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mmaformal.display import short_text
from mmaformal.encodings.dpa_e9s12.executable import FRACTION
from mmaformal.encodings.ma_e9s12.executable import multi_add
from mmaformal.formats import Format, bf16, fp16, fp32
from mmaformal.instruction import read_operand
from mmaformal.rounding import IEEE_FP32, Conversion


@dataclass(frozen=True, repr=False)
class MultiAddition:
    """`d = ρ(φ(Σ_D x_i))`, D terms of one format in passes of N (Desrentes et al. §III-D, §IV-D b), d of fp32.

    Raises ValueError for D that is not two or more and a multiple of N, formats but fp16, bf16 and fp32, a ρ of
    another than fp32, and `accumulator_bits` that do not hold the terms, or are above 85.
    """

    name: str
    fmt: Format
    D: int  #: terms in all
    N: int  #: terms of a pass
    accumulator_bits: int  #: bits of the accumulator, its sign and carries included
    rho: Conversion = IEEE_FP32

    def __post_init__(self) -> None:
        if self.fmt not in (fp16, bf16, fp32):
            raise ValueError(f"{self.name}: terms of fp16, bf16 or fp32, not {self.fmt}")
        if self.N < 1 or self.D < 2 or self.D % self.N:
            raise ValueError(f"{self.name}: D two or more, a multiple of N ≥ 1, not {self.D} and {self.N}")
        if self.rho.format != fp32:
            raise ValueError(f"{self.name}: a rounding to fp32, not {self.rho}")
        least = 2 + FRACTION + self.carries
        if not least <= self.accumulator_bits <= 85:
            raise ValueError(f"{self.name}: {least} ≤ accumulator_bits ≤ 85, not {self.accumulator_bits}")

    @property
    def halves(self) -> int:
        """E9S12 numbers of a term."""
        return 2 if self.fmt == fp32 else 1

    @property
    def carries(self) -> int:
        """Bits of the accumulator above those that one E9S12 number needs."""
        return (self.D * self.halves - 1).bit_length()

    @property
    def F(self) -> int:
        """Fractional bits of the accumulator, below the largest exponent."""
        return self.accumulator_bits - 2 - self.carries

    def __call__(self, x: ArrayLike) -> NDArray[Any]:
        """The sums of x[..., D] as x[...]: floats are numbers, integers are codes, and so is what comes back.

        Raises ValueError for another length, or a number that the format does not have.
        """
        operand = read_operand(x, self.fmt, f"{self.name}'s terms")
        if operand.codes.ndim < 1 or operand.codes.shape[-1] != self.D:
            raise ValueError(f"{self.name} adds {self.D} terms along the last axis, not {np.shape(x)}")
        columns = np.moveaxis(operand.codes, -1, 0).astype(np.int64)
        trace = multi_add(self.fmt, self.N, self.accumulator_bits, self.rho, list(columns))
        codes = np.asarray(trace.result).astype(fp32.word)
        return codes.view(np.float32) if operand.kind == "floats" else codes

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        passes = f" in passes of {self.N}" if self.N < self.D else ""
        return short_text(
            self, f"{self.name}: {self.D} terms of {self.fmt}{passes}, {self.accumulator_bits} bits"
        )


def _named(*operators: MultiAddition) -> dict[str, MultiAddition]:
    return {each.name: each for each in operators}


#: 16 E9S12 terms with the bits of §IV-B, L, 81 + log2 16; two terms; and passes of half as many (§IV-D).
OPERATORS = _named(
    MultiAddition("MA8.FP32", fp32, 8, 8, 85),
    MultiAddition("MA16.FP16", fp16, 16, 16, 85),
    MultiAddition("MA16.BF16", bf16, 16, 16, 85),
    MultiAddition("MA2.FP32", fp32, 2, 2, 83),
    MultiAddition("MA8X2.FP32", fp32, 8, 4, 85),
)
