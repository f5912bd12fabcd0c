"""AMD Matrix Cores, as tables: which instructions an architecture has, and the parameters of each.

Sources: MMA-Sim (`papers.py`) Table IV for the instructions of cdna2 and cdna3, §IV-A, B, F to I for the algorithms;
docs/semantics.md §5 and §6 for cdna1, and §3 where later measurements correct the paper (fdrda, gfdrda).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from mmaformal.architectures.base import Architecture, Revision
from mmaformal.display import ShortRepr
from mmaformal.encodings.efda import Efda
from mmaformal.encodings.fdrda import Fdrda
from mmaformal.encodings.gfdrda import Gfdrda
from mmaformal.encodings.gps import Gps
from mmaformal.encodings.sfma import Sfma
from mmaformal.formats import bf16, e4m3fnuz, e5m2fnuz, fp16, fp32, fp64, tf32
from mmaformal.instruction import Instruction
from mmaformal.rounding import IEEE_FP32, IEEE_FP64
from mmaformal.spec import DotAdd, LossModel, Parameters, with_changes

PREFIX = "v_mfma_"

#: what the names call the formats; `bf16_1k` is cdna2's second kind of bf16
TYPES = {
    "f64": fp64, "f32": fp32, "xf32": tf32, "f16": fp16, "bf16": bf16, "bf16_1k": bf16, "fp8": e4m3fnuz,
    "bf8": e5m2fnuz,
}  # fmt: skip


@dataclass(frozen=True, repr=False)
class AmdRow(ShortRepr):
    """An instruction: m×n×k, the matrices it multiplies at once, its types, and its names.

    cdna1 and cdna2 write `f32_32x32x4f16`, cdna3 `f32_32x32x4_2b_f16`, and so does MMA-Sim Table IV for both.
    The spelling that is not the architecture's own is an alias.
    """

    shape: str
    blocks: int
    a: str
    b: str = ""  #: as a, where empty

    @property
    def d(self) -> str:
        return "f64" if self.a == "f64" else "f32"

    @property
    def old_name(self) -> str | None:
        """The name on cdna1 and cdna2; None where only cdna3 has the instruction."""
        return None if self.a in ("xf32", "fp8", "bf8") else f"{PREFIX}{self.d}_{self.shape}{self.a}"

    @property
    def new_name(self) -> str | None:
        """The name on cdna3; None for the first kind of bf16, which it does not have."""
        if self.a == "bf16":
            return None
        blocks = f"{self.blocks}b_" if self.blocks > 1 else ""
        types = "bf16" if self.a == "bf16_1k" else f"{self.a}_{self.b}" if self.b else self.a
        return f"{PREFIX}{self.d}_{self.shape}_{blocks}{types}"


F64 = (AmdRow("16x16x4", 1, "f64"), AmdRow("4x4x4", 4, "f64"))
F32 = (
    AmdRow("32x32x2", 1, "f32"),
    AmdRow("32x32x1", 2, "f32"),
    AmdRow("16x16x4", 1, "f32"),
    AmdRow("16x16x1", 4, "f32"),
    AmdRow("4x4x1", 16, "f32"),
)
XF32 = (AmdRow("16x16x8", 1, "xf32"), AmdRow("32x32x4", 1, "xf32"))
_K_8_4_16 = (("32x32x8", 1), ("32x32x4", 2), ("16x16x16", 1), ("16x16x4", 4), ("4x4x4", 16))
F16 = tuple(AmdRow(shape, blocks, "f16") for shape, blocks in _K_8_4_16)
BF16_1K = tuple(AmdRow(shape, blocks, "bf16_1k") for shape, blocks in _K_8_4_16)
BF16 = (
    AmdRow("32x32x4", 1, "bf16"),
    AmdRow("32x32x2", 2, "bf16"),
    AmdRow("16x16x8", 1, "bf16"),
    AmdRow("16x16x2", 4, "bf16"),
    AmdRow("4x4x2", 16, "bf16"),
)
F8 = tuple(
    AmdRow(shape, 1, a, b)
    for shape in ("16x16x32", "32x32x16")
    for a in ("bf8", "fp8")
    for b in ("bf8", "fp8")
)

_SFMA = {"rho": "MMA-Sim §IV-A (IEEE fma)", "nan": "not recorded"}
_GPS = {"G": "MMA-Sim §IV-B, Table IV"}
_FDRDA = {
    "F": "MMA-Sim §IV-F steps 4, 6",
    "L": "MMA-Sim §IV-G, Table IV (CoFDRDA); docs/semantics.md §5",
    "rho": "MMA-Sim §IV-F step 8",
    "dot_bits": "mmasim 2.1.1, where MMA-Sim §IV-F step 6 has 31; docs/semantics.md §3, §9",
    "sum_bits": "mmasim 2.1.1, not in MMA-Sim; docs/semantics.md §3, §9",
    "skip_zero_products": "mmasim 2.1.1, not in MMA-Sim; docs/semantics.md §3, §9",
    "cut": "MMA-Sim §IV-F step 6",
    "inputs_first": "mmasim 2.1.1, where MMA-Sim §IV-F steps 1 to 3 have it; docs/semantics.md §3, §9",
}
_GFDRDA = _FDRDA | {
    "F": "MMA-Sim §IV-H steps 4, 6, 8",
    "L": "MMA-Sim §IV-I; docs/semantics.md §5",
    "c_reach": "MMA-Sim §IV-H step 8",
}
_EFDA = dict.fromkeys(
    ("L", "rho", "minus_zero", "nan", "flush_inputs"),
    "mmasim 2.1.1 (cdna1 is not in MMA-Sim); docs/semantics.md §3, §5",
)


@dataclass(frozen=True, repr=False)
class TypeRule(ShortRepr):
    """An architecture's rule for one of the types: the algorithm, with L or G as if K were large."""

    rows: tuple[AmdRow, ...]
    parameters: Parameters
    sources: dict[str, str]


SFMA_FP32 = TypeRule(F32, Sfma(IEEE_FP32), _SFMA)
SFMA_FP64 = TypeRule(F64, Sfma(IEEE_FP64), _SFMA)

CDNA1 = (
    SFMA_FP32,
    TypeRule(F16, Efda(L=4, rho=IEEE_FP32), _EFDA),
    TypeRule(BF16, Efda(L=2, rho=IEEE_FP32), _EFDA),
)
CDNA2 = (
    SFMA_FP64,
    SFMA_FP32,
    TypeRule(F16, Gps(G=4), _GPS),
    TypeRule(BF16, Gps(G=2), _GPS),
    TypeRule(BF16_1K, Gps(G=4), _GPS),
)
CDNA3 = (
    SFMA_FP64,
    SFMA_FP32,
    TypeRule(XF32, Fdrda(F=24, L=4, rho=IEEE_FP32), _FDRDA),
    TypeRule(F16, Fdrda(F=24, L=8, rho=IEEE_FP32), _FDRDA),
    TypeRule(BF16_1K, Fdrda(F=24, L=8, rho=IEEE_FP32), _FDRDA),
    TypeRule(F8, Gfdrda(F=24, L=16, rho=IEEE_FP32), _GFDRDA),
)


def _instructions(
    architecture: str, kinds: tuple[TypeRule, ...], *, new_names: bool
) -> Iterator[Instruction]:
    for kind in kinds:
        for row in kind.rows:
            names = (row.new_name, row.old_name) if new_names else (row.old_name, row.new_name)
            name, *aliases = (each for each in names if each is not None)
            m, n, k = map(int, re.findall(r"\d+", row.shape))
            a, b, d = TYPES[row.a], TYPES[row.b or row.a], TYPES[row.d]
            parameters = kind.parameters
            if (L := parameters.step_products) > k and "L" in parameters:
                parameters = with_changes(parameters, {"L": min(L, k)})
            yield Instruction(
                name=name,
                architecture=architecture,
                m=m,
                n=n,
                spec=DotAdd(k, a, b, d, d, parameters),
                aliases=tuple(aliases),
                sources=kind.sources,
            )


# ---- revisions -------------------------------------------------------------------------------------------


def _as_in_the_paper(instruction: Instruction) -> Instruction:
    """MMA-Sim as printed: the dot product is cut to 31 bits, the sum is not cut, zero products count, and an
    infinite input or c is the result (step 1) before products can overflow (step 2)."""
    if instruction.parameters.loss is not LossModel.ROUND_DOWN:
        return instruction
    changes = {"dot_bits": 31, "sum_bits": None, "skip_zero_products": False, "inputs_first": True}
    return replace(
        instruction,
        spec=instruction.spec.replace(**changes),
        sources={**instruction.sources, **dict.fromkeys(changes, "MMA-Sim §IV-F, H")},
    )


PAPER = Revision(
    "paper-v1",
    "MMA-Sim as printed: the dot product cut to 31 bits, the sum not cut, zero products counted, infinite inputs "
    "before products that overflow",
    _as_in_the_paper,
)


# ---- the architectures -----------------------------------------------------------------------------------


def cdna1() -> Architecture:
    return Architecture("cdna1", "MI100", _instructions("cdna1", CDNA1, new_names=False))


def cdna2() -> Architecture:
    """The default is what MMA-Sim says, so there is no revision of it."""
    return Architecture("cdna2", "MI210, MI250X", _instructions("cdna2", CDNA2, new_names=False))


def cdna3() -> Architecture:
    return Architecture("cdna3", "MI300X", _instructions("cdna3", CDNA3, new_names=True), (PAPER,))
