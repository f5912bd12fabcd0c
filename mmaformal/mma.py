"""`mma.sync`, PTX's warp-level product of matrices: which shapes, types and GPUs have it, and which thread holds what.

Every thread loads its fragments from whole matrices in memory by the (row, column) formulas of the PTX ISA.  They
stand here once, as text that means the same in C and in Python: programs (`mmaformal.cuda`) contain it, the tests
evaluate it.

Sources: PTX ISA, chapter "Warp Level Matrix Multiply-Accumulate Instructions": sections "Matrix Fragments for
mma.…" for the layouts, "Multiply-and-Accumulate Instruction: mma" for packing and for which targets have what
(section numbers change from version to version, titles do not).  What ptxas of CUDA 13.0 makes of the
instructions on sm_75, 80, 89, 90, 100 and 120 was read off its SASS.
"""

from __future__ import annotations

from dataclasses import dataclass

from mmaformal.display import ShortRepr
from mmaformal.formats import (
    Format,
    bf16,
    e2m1,
    e2m3,
    e3m2,
    e4m3,
    e5m2,
    fp16,
    fp32,
    fp64,
    tf32,
    ue4m3,
    ue8m0,
)
from mmaformal.instruction import Instruction


class CudaUnavailableError(ValueError):
    """No CUDA program can be written for this instruction; the message says why and what to do instead."""


# ---- fragments -------------------------------------------------------------------------------------------


@dataclass(frozen=True, repr=False)
class Fragment(ShortRepr):
    """Which element of its matrix a thread holds as the i-th: expressions in `lane` (0 to 31) and `i`."""

    row: str
    col: str


_GROUP = "lane >> 2"  # the PTX ISA's groupID; lane & 3 is its threadID_in_group

#: A and B by how many elements one register holds; the m8 shape of fp64 is the same with i = 0.
A_FRAGMENTS = {
    1: Fragment("(lane >> 2) + 8 * (i & 1)", "(lane & 3) + 4 * (i >> 1)"),
    2: Fragment("(lane >> 2) + 8 * ((i >> 1) & 1)", "2 * (lane & 3) + (i & 1) + 8 * (i >> 2)"),
    4: Fragment("(lane >> 2) + 8 * ((i >> 2) & 1)", "4 * (lane & 3) + (i & 3) + 16 * (i >> 3)"),
    8: Fragment("(lane >> 2) + 8 * ((i >> 3) & 1)", "8 * (lane & 3) + (i & 7) + 32 * (i >> 4)"),
}
_B = {
    1: Fragment("(lane & 3) + 4 * i", _GROUP),
    2: Fragment("2 * (lane & 3) + (i & 1) + 8 * (i >> 1)", _GROUP),
    4: Fragment("4 * (lane & 3) + (i & 3) + 16 * (i >> 2)", _GROUP),
    8: Fragment("8 * (lane & 3) + (i & 7) + 32 * (i >> 3)", _GROUP),
}
_C = Fragment("(lane >> 2) + 8 * (i >> 1)", "2 * (lane & 3) + (i & 1)")

#: Block scales, for the selectors {byte-id 0, thread-id 0}: of each four lanes the first two give the scales
#: of a row of A each, the first one those of a column of B.  (The others hold the same, and are not read.)
_SCALE_A = Fragment("(lane >> 2) + 8 * (lane & 1)", "i")
_SCALE_B = Fragment("i", _GROUP)

#: m8n8k4 on fp16: four products at once, one by each quadpair (lanes 4q to 4q+3 and 16+4q to 16+4q+3).
_QUADPAIR_LINE = "(lane & 3) + 4 * (lane >> 4)"
_QUADPAIR_A = Fragment(_QUADPAIR_LINE, "i")
_QUADPAIR_B = Fragment("i", _QUADPAIR_LINE)
_QUADPAIR_C = {
    "fp16": Fragment(_QUADPAIR_LINE, "i"),
    "fp32": Fragment("(lane & 1) + (i & 2) + 4 * (lane >> 4)", "(i & 4) + (lane & 2) + (i & 1)"),
}


@dataclass(frozen=True, repr=False)
class FragmentRegisters(ShortRepr):
    """How elements of a format sit in registers: `per_register` containers of `bits` bits, low to high."""

    type: str
    constraint: str  #: of the inline assembly operand
    per_register: int = 1
    bits: int = 0
    shift: int = 0  #: the element's lowest bit in its container
    from_bits: str = ""
    to_bits: str = ""

    def load(self, array: str, code: str) -> str:
        """C statement that puts the bit pattern `code` in place as element i of `array`."""
        if self.per_register == 1:
            return f"{array}[i] = {self.from_bits}({code});" if self.from_bits else f"{array}[i] = {code};"
        place = f"{self.bits} * (i % {self.per_register})" + (f" + {self.shift}" if self.shift else "")
        return f"{array}[i / {self.per_register}] |= uint32_t({code}) << ({place});"

    def store(self, array: str) -> str:
        """C expression for the bit pattern of element i of `array`."""
        if self.per_register == 1:
            return f"{self.to_bits}({array}[i])"
        return f"{array}[i / {self.per_register}] >> ({self.bits} * (i % {self.per_register}))"


REGISTERS = {
    "fp64": FragmentRegisters(
        "double", "d", from_bits="__longlong_as_double", to_bits="__double_as_longlong"
    ),
    "fp32": FragmentRegisters("float", "f", from_bits="__uint_as_float", to_bits="__float_as_uint"),
    "tf32": FragmentRegisters("uint32_t", "r"),
    "bf16": FragmentRegisters("uint32_t", "r", per_register=2, bits=16),
    "fp16": FragmentRegisters("uint32_t", "r", per_register=2, bits=16),
    "e5m2": FragmentRegisters("uint32_t", "r", per_register=4, bits=8),
    "e4m3": FragmentRegisters("uint32_t", "r", per_register=4, bits=8),
    "e3m2": FragmentRegisters("uint32_t", "r", per_register=4, bits=8),
    "e2m3": FragmentRegisters("uint32_t", "r", per_register=4, bits=8),
    "e2m1": FragmentRegisters("uint32_t", "r", per_register=4, bits=8, shift=2),  # the central 4 bits
}

_NIBBLES = FragmentRegisters(
    "uint32_t", "r", per_register=8, bits=4
)  # e2m1 of the k64 instructions, without padding
_SCALES = FragmentRegisters("uint32_t", "r", per_register=4, bits=8)

_PTX_TYPES = {"fp64": "f64", "fp32": "f32", "fp16": "f16"}  # the others are called the same


# ---- instructions ----------------------------------------------------------------------------------------


@dataclass(frozen=True, repr=False)
class Mma(ShortRepr):
    """One `mma.sync`: shape, types, and the compute capabilities (80 for 8.0) that have it, first to last."""

    m: int
    n: int
    k: int
    a: Format
    b: Format
    c: Format
    d: Format
    first: int
    last: int = 9999
    kind: str = ""  #: if any, it needs a target with suffix, sm_120a
    scale: Format | None = None  #: of block scales, one for each `scale_block` of k
    scale_block: int = 0
    note: str = ""

    @property
    def ptx(self) -> str:
        words = ["mma.sync.aligned", f"m{self.m}n{self.n}k{self.k}.row.col"]
        if self.kind:
            words.append(f"kind::{self.kind}")
        if self.scale:
            words.append(f"block_scale.scale_vec::{self.scales}X")
        words += [_PTX_TYPES.get(f.name, f.name) for f in (self.d, self.a, self.b, self.c)]
        if self.scale:
            words.append(self.scale.name)
        return ".".join(words)

    @property
    def scales(self) -> int:
        """How many scales each row of A and column of B has."""
        return self.k // self.scale_block if self.scale else 0

    @property
    def by_quadpair(self) -> bool:
        """Whether each quadpair of lanes computes a product of its own, four in all."""
        return self.k == 4 and self.a is fp16

    @property
    def fragments(self) -> dict[str, tuple[Fragment, int]]:
        """For each matrix its layout and how many elements each thread holds."""
        if self.by_quadpair:
            a, b = _QUADPAIR_A, _QUADPAIR_B
            c, d = _QUADPAIR_C[self.c.name], _QUADPAIR_C[self.d.name]
        else:
            per_register = self.registers("a").per_register
            a, b, c, d = A_FRAGMENTS[per_register], _B[per_register], _C, _C
        threads = 8 if self.by_quadpair else 32
        fragments = {
            "a": (a, self.m * self.k // threads),
            "b": (b, self.k * self.n // threads),
            "c": (c, self.m * self.n // threads),
            "d": (d, self.m * self.n // threads),
        }
        if self.scale:
            fragments |= {"scale_a": (_SCALE_A, self.scales), "scale_b": (_SCALE_B, self.scales)}
        return fragments

    def format(self, operand: str) -> Format:
        """The format of a, b, c, d, scale_a or scale_b."""
        formats = {"a": self.a, "b": self.b, "c": self.c, "d": self.d}
        if self.scale:
            formats |= {"scale_a": self.scale, "scale_b": self.scale}
        return formats[operand]

    def registers(self, operand: str) -> FragmentRegisters:
        """How the operand's elements sit in registers."""
        if operand.startswith("scale"):
            return _SCALES
        if operand in ("a", "b") and self.k == 64:
            return _NIBBLES
        return REGISTERS[self.format(operand).name]

    @property
    def sections(self) -> list[str]:
        """Titles of the PTX ISA's sections on where elements and scales go."""
        kind = ""
        if (self.m, self.k) == (8, 4):
            kind = f" with .{_PTX_TYPES[self.a.name]} floating point type"
        elif self.k == 16:  # the 8-bit floats share the layout of, and the section with, the 8-bit integers
            kind = " with integer type" if self.a.storage_bits == 8 else " with floating point type"
        fragments = f"Matrix Fragments for mma.m{self.m}n{self.n}k{self.k}{kind}"
        return [fragments, *(["Block Scaling for mma.sync"] if self.scale else [])]

    @property
    def target(self) -> str:
        """The architecture to give nvcc as -arch; sm_70, which CUDA 13 has no more, only on request (see `needs`)."""
        return f"sm_{max(self.first, 75)}{self.suffix}"

    @property
    def suffix(self) -> str:
        return "a" if self.kind else ""

    @property
    def needs(self) -> str:
        """The compute capability, and the nvcc, that it takes to run it, in words."""
        if self.first == 70:
            return "compute capability 7.0 (-arch=sm_70, nvcc 12 or older) or 7.5 (-arch=sm_75)"
        if self.kind:
            return f"compute capability {self.first // 10}.x (-arch={self.target}; 12.1: sm_121a)"
        return f"compute capability {self.first / 10} or later (-arch={self.target})"

    @property
    def guard(self) -> str:
        """Preprocessor condition under which the target has it."""
        condition = f"__CUDA_ARCH__ >= {10 * self.first}"
        if self.last < 9999:
            condition += f" && __CUDA_ARCH__ < {10 * (self.last + 1)}"
        if self.kind:
            condition += " && (defined(__CUDA_ARCH_FAMILY_SPECIFIC__) || defined(__CUDA_ARCH_FEAT_SM120_ALL))"
        return condition


_EMULATED = "later GPUs have no such instruction: there ptxas emulates it with FFMA, which no model describes"
_LOWERED = "QMMA on 8.9 and 12.0; on 9.0 and 10.0 ptxas lowers it to two HMMA on fp16 and an addition"
_SPLIT = "DMMA.16x8 on 9.0; on 10.0 and 12.0 ptxas issues several DMMA.8x8x4 instead"

_F8 = (e4m3, e5m2)
_F8F6F4 = (e4m3, e5m2, e3m2, e2m3, e2m1)

#: Source of the first compute capabilities: "Target ISA Notes" of the section on mma; ptxas accepts and refuses
#: accordingly.  The last ones: above 7.5, m8n8k4 is no instruction any more; kind:: is of one family.
MMAS: tuple[Mma, ...] = (
    *(
        Mma(8, 8, 4, fp16, fp16, c, d, first=70, last=75, note=_EMULATED)
        for c, d in ((fp32, fp32), (fp16, fp32), (fp16, fp16))
    ),
    *(Mma(16, 8, 8, fp16, fp16, d, d, first=75) for d in (fp32, fp16)),
    *(Mma(16, 8, 16, fp16, fp16, d, d, first=80) for d in (fp32, fp16)),
    *(Mma(16, 8, k, bf16, bf16, fp32, fp32, first=80) for k in (8, 16)),
    *(Mma(16, 8, k, tf32, tf32, fp32, fp32, first=80) for k in (4, 8)),
    Mma(8, 8, 4, fp64, fp64, fp64, fp64, first=80),
    *(Mma(16, 8, k, fp64, fp64, fp64, fp64, first=90, note=_SPLIT) for k in (4, 8, 16)),
    *(
        Mma(16, 8, k, a, b, d, d, first=89, note=_LOWERED)
        for k in (16, 32)
        for a in _F8
        for b in _F8
        for d in (fp32, fp16)
    ),
    *(
        Mma(16, 8, 32, a, b, d, d, first=120, last=129, kind="f8f6f4")
        for a in _F8F6F4
        for b in _F8F6F4
        if a not in _F8 or b not in _F8
        for d in (fp32, fp16)
    ),
    *(
        Mma(16, 8, 32, a, b, fp32, fp32, first=120, last=129, kind="mxf8f6f4", scale=ue8m0, scale_block=32)
        for a in _F8F6F4
        for b in _F8F6F4
    ),
    *(
        Mma(16, 8, 64, e2m1, e2m1, fp32, fp32, 120, 129, kind="mxf4nvf4", scale=scale, scale_block=block)
        for scale, block in ((ue8m0, 32), (ue4m3, 16))
    ),
)


def mma_of(instruction: Instruction) -> Mma:
    """The `mma.sync` that this instruction, or each link of this chain, is.

    A hypothetical instruction (`replace`) is found by its shape and types, as every other.  Raises
    CudaUnavailableError if there is none.
    """
    mma, why = mma_or_why_not(instruction)
    if mma is not None:
        return mma
    raise CudaUnavailableError(
        f"no CUDA program for {instruction.label}: {why}.  "
        "A witness's matrices() gives A, B and C to put through a kernel of your own"
    )


def mma_or_why_not(instruction: Instruction) -> tuple[Mma | None, str]:
    """The `mma.sync` that this instruction, or each link of this chain, is, and otherwise why it is none."""
    why = _elsewhere(instruction)
    if why:
        return None, why
    same_types = _of_types(instruction)
    for mma in same_types:
        if mma.k * instruction.issues == instruction.k:
            return mma, ""
    shape = f"m{instruction.m}n{instruction.n}k{instruction.k}"
    why = f"no warp-level mma.sync has shape {shape} and types {instruction.spec.types}"
    if same_types:
        have = " and ".join(f"k{mma.k}" for mma in same_types)
        why += f" (there is {have}: a longer product is .chained(K) from one of these)"
    return None, why


def _of_types(instruction: Instruction) -> list[Mma]:
    """Every `mma.sync` that has the instruction's m, n and types."""
    spec = instruction.spec
    wanted = (spec.a_format, spec.b_format, spec.c_format, spec.d_format, spec.scale_format, spec.scale_block)
    return [
        mma
        for mma in MMAS
        if (mma.m, mma.n) == (instruction.m, instruction.n)
        and (mma.a, mma.b, mma.c, mma.d, mma.scale, mma.scale_block) == wanted
    ]


def _elsewhere(instruction: Instruction) -> str:
    """Why the instruction is no `mma.sync` that is known here, going by its name; empty if it may be one."""
    name = instruction.name.upper()
    if instruction.parameters.is_program:
        return "it is a program over an instruction, not one of the GPU's"
    if name.startswith("V_MFMA") or instruction.architecture.startswith("cdna"):
        return "it is AMD's and would need HIP, which is not written here"
    if name.startswith(("HGMMA", "QGMMA")):
        return "it is wgmma, on matrices in shared memory, not mma.sync on registers"
    if name.startswith("UTC"):
        return "it is tcgen05.mma, on matrices in shared and tensor memory, not mma.sync on registers"
    if (instruction.spec.scale_format, instruction.spec.scale_block) == (ue8m0, 16):
        return "PTX has blocks of 16 with ue8m0 scales since ISA 9.1 only, which was not at hand to try"
    return ""
