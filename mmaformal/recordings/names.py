"""Which instruction a recording means: one of the tables, one that no table has yet, or none that exists.

The names are those of docs/semantics.md §6: SASS (MMA-Sim Table III), PTX with its qualifiers in PTX order,
and `v_mfma_…` (MMA-Sim Table IV).
"""

from __future__ import annotations

import re

from mmaformal.architectures import ARCHITECTURES, Architecture, ptx
from mmaformal.architectures.base import canonical_name
from mmaformal.instruction import Instruction

# The grammars are of canonical names: lower case, and less what canonical_name leaves out.
_NARROW = r"(?:e4m3|e5m2|e3m2|e2m3|e2m1)"
_OUT = r"f(?:16|32)"
_WIDE_IN = r"(?:bf16|tf32)"
_MNK = r"[1-9]\d{0,2}x[1-9]\d{0,2}x[1-9]\d{0,2}"
_SHAPE = rf"(?:(?:8|16)8(?:4|8|16|32|64)|{_MNK})"  # 884 is m8 n8 k4; 16x8x4 and 64x256x16 are spelled out
_QMMA_TYPES = rf"{_OUT}\.{_NARROW}\.{_NARROW}"
_OMMA_TYPES = r"f32\.e2m1\.e2m1\.(?:e8|ue8m0|ue4m3)(?:\.4x)?"

#: An opcode with its types; UTC… opcodes have no shape (semantics §6: the types come from a descriptor)
_SASS = re.compile(
    rf"""dmma\.{_SHAPE}
    |hmma\.{_SHAPE}\.{_OUT}(?:\.{_OUT}|\.{_WIDE_IN})?
    |qmma\.{_SHAPE}\.{_QMMA_TYPES}
    |qmma\.sf\.{_SHAPE}\.{_QMMA_TYPES}\.(?:e8|ue8m0)
    |omma\.sf\.{_SHAPE}\.{_OMMA_TYPES}
    |hgmma\.{_MNK}\.{_OUT}(?:\.{_WIDE_IN})?
    |qgmma\.{_MNK}\.{_QMMA_TYPES}
    |utchmma\.{_OUT}(?:\.{_WIDE_IN})?
    |utcqmma\.{_QMMA_TYPES}
    |utcqmma\.sf\.{_QMMA_TYPES}\.(?:e8|ue8m0)
    |utcomma(?:\.sf)?\.{_OMMA_TYPES}""",
    re.VERBOSE | re.ASCII,
)

_PTX_TYPE = rf"(?:f16|bf16|tf32|f32|f64|{_NARROW})"
_PTX_SHAPE = r"m[1-9]\d{0,2}n[1-9]\d{0,2}k[1-9]\d{0,2}"
_PTX_SCALING = r"(?:\.kind::(?:f16|tf32|f8f6f4|mxf8f6f4|mxf4|mxf4nvf4))?(?:\.block(?:16|32))?"

#: Executable by every later GPU too: PTX is compiled to whatever instructions that GPU has
_PORTABLE_PTX = re.compile(
    rf"""mma\.{_PTX_SHAPE}{_PTX_SCALING}(?:\.{_PTX_TYPE}){{4}}(?:\.ue8m0|\.ue4m3)?
    |wmma\.mma\.{_PTX_SHAPE}(?:\.{_PTX_TYPE}){{2,4}}""",
    re.VERBOSE | re.ASCII,
)
#: Names of instructions of one GPU generation only (the PTX targets sm_90a, sm_100a)
_SPECIFIC_PTX = re.compile(
    rf"""wgmma\.{_PTX_SHAPE}(?:\.{_PTX_TYPE}){{3}}
    |tcgen05\.mma\.{_PTX_SHAPE}{_PTX_SCALING}(?:\.{_PTX_TYPE}){{3}}(?:\.ue8m0|\.ue4m3)?""",
    re.VERBOSE | re.ASCII,
)
_MFMA = re.compile(
    rf"""f(?:32|64)_{_MNK}(?:_[1-9]\d?b)?_?
    (?:f64|f32|xf32|f16|bf16(?:_1k)?|(?:fp8|bf8)_(?:fp8|bf8))""",
    re.VERBOSE | re.ASCII,
)

#: Names of instructions of bf16 and fp16, on processors of Intel
_INTEL = re.compile(r"tdp(?:bf16|fp16)ps(?:\.k[1-9]\d?)?|vdpbf16ps|vfmadd(?:132|213|231)ph", re.ASCII)

#: Names of instructions of bf16, on Arm's processors
_ARM = re.compile(
    r"bfdot|bfmmla|bfmlal[bt]|bfmopa|(?:fdot|fmmla)\.f(?:16|32)(?:\.(?:e4m3|e5m2)){2}", re.ASCII
)

#: Outer products of Arm's SME, and of Power's MMA
_SME = re.compile(r"fmop[as](?:\.f(?:16|32|64))*|bfmop[as]", re.ASCII)
_MMA = re.compile(r"xv(?:f16|bf16)ger2(?:pp|np|pn|nn)?|xvf(?:32|64)ger(?:pp|np|pn|nn)?", re.ASCII)


#: RISC-V's dot products, with the type of a where it has several, and the products of one sum
_RISCV = re.compile(r"vf(?:q?w)?bdota(?:\.alt)?\.vv(?:\.e4m3|\.e5m2)?(?:\.n[1-9]\d?)?", re.ASCII)

#: Those of corsix/amx that multiply floats
_AMX = re.compile(r"fm[as](?:16|32|64)(?:\.f32)?", re.ASCII)

#: Operators of E9S12 halves, by the products and the type of their factors
_E9S12 = re.compile(r"dp[1-9]\d{0,2}a(?:cc[1-9]\d{0,2})?\.(?:fp16|bf16|fp32)", re.ASCII)


def look_up(architecture: Architecture, name: str) -> Instruction | None:
    """The instruction `name` of an architecture, or None if it may well exist but is not modelled yet.

    *Not modelled yet* is decided so: the name follows the grammar of SASS, PTX, v_mfma, Intel's manual, Arm's,
    corsix/amx or the paper on E9S12, whichever the architecture's vendor uses, and the tables do not say that this
    architecture lacks it.  They do where another architecture has a SASS or v_mfma name, `wgmma` or `tcgen05`, or where
    only *newer* ones have a `mma` of PTX: an older one's `mma` is compiled to something on every newer GPU, and that is
    not modelled.

    Raises UnknownInstructionError for every other name; its message lists the nearest ones and who has it.
    """
    if name in architecture:
        return architecture[name]
    spelling = canonical_name(name)
    if spelling.startswith(("mma.", "wgmma.", "tcgen05.")) and ptx.short_name(name) is None:
        return architecture[name]  # raises: PTX has no such form
    portable = _PORTABLE_PTX.fullmatch(spelling) is not None
    if not any(grammar.fullmatch(spelling) for grammar in _grammars(architecture)):
        return architecture[name]  # raises

    by_age = list(ARCHITECTURES)
    owners = [other for other in by_age if name in ARCHITECTURES[other]]
    if portable:
        older = by_age[: by_age.index(architecture.name.partition("@")[0])]  # hopper@paper-v1 is a hopper
        lacking = bool(owners) and not any(owner in older for owner in owners)
    else:
        lacking = bool(owners)
    return architecture[name] if lacking else None  # raises if lacking


def _grammars(architecture: Architecture) -> tuple[re.Pattern[str], ...]:
    """Those of its vendor: NVIDIA's, if its instructions do not say otherwise."""
    names = [canonical_name(instruction.name) for instruction in architecture]
    for grammar in (_MFMA, _INTEL, _SME, _ARM, _MMA, _RISCV, _AMX, _E9S12):
        if any(map(grammar.fullmatch, names)):
            return (grammar,)
    return _SASS, _PORTABLE_PTX, _SPECIFIC_PTX
