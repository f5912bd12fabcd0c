"""A CUDA program that puts one dot product-add to the GPU at hand and says which model the GPU agrees with.

The program is self-contained: inline PTX `mma.sync`, the case as bit patterns, and what each model predicts.
Every thread loads its fragments from whole matrices in memory by the (row, column) formulas of the PTX ISA.
They stand here once, as text that means the same in C and in Python: the program contains it, the tests
evaluate it.

Sources: PTX ISA, chapter "Warp Level Matrix Multiply-Accumulate Instructions": sections "Matrix Fragments for
mma.…" for the layouts, "Multiply-and-Accumulate Instruction: mma" for packing and for which targets have what
(section numbers change from version to version, titles do not).  What ptxas of CUDA 13.0 makes of the
instructions on sm_75, 80, 89, 90, 100 and 120 was read off its SASS.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from string import Template
from textwrap import indent
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

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
from mmaformal.instruction import Instruction, as_codes


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
class Registers(ShortRepr):
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
    "fp64": Registers("double", "d", from_bits="__longlong_as_double", to_bits="__double_as_longlong"),
    "fp32": Registers("float", "f", from_bits="__uint_as_float", to_bits="__float_as_uint"),
    "tf32": Registers("uint32_t", "r"),
    "bf16": Registers("uint32_t", "r", per_register=2, bits=16),
    "fp16": Registers("uint32_t", "r", per_register=2, bits=16),
    "e5m2": Registers("uint32_t", "r", per_register=4, bits=8),
    "e4m3": Registers("uint32_t", "r", per_register=4, bits=8),
    "e3m2": Registers("uint32_t", "r", per_register=4, bits=8),
    "e2m3": Registers("uint32_t", "r", per_register=4, bits=8),
    "e2m1": Registers("uint32_t", "r", per_register=4, bits=8, shift=2),  # the central 4 bits
}

_NIBBLES = Registers("uint32_t", "r", per_register=8, bits=4)  # e2m1 of the k64 instructions, without padding
_SCALES = Registers("uint32_t", "r", per_register=4, bits=8)

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

    def registers(self, operand: str) -> Registers:
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
        """What to give nvcc as -arch; sm_70, which CUDA 13 has no more, only on request (see `needs`)."""
        return f"sm_{max(self.first, 75)}{self.suffix}"

    @property
    def suffix(self) -> str:
        return "a" if self.kind else ""

    @property
    def needs(self) -> str:
        """What it takes to run it, in words."""
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
    if instruction.algorithm == "emulated":
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


# ---- the program -----------------------------------------------------------------------------------------

#: name of the matrix in the program → of its element type's operand, and how many elements it has
_MATRICES = {"A": ("a", "mma.m * K"), "B": ("b", "K * mma.n"), "C": ("c", "mma.m * mma.n")}
_SCALE_MATRICES = {"SA": ("scale_a", "mma.m * SCALES"), "SB": ("scale_b", "SCALES * mma.n")}


def cuda_source(
    cases: Sequence[tuple[Instruction, int]],
    a: ArrayLike,
    b: ArrayLike,
    c: ArrayLike,
    scale_a: ArrayLike | None = None,
    scale_b: ArrayLike | None = None,
) -> str:
    """A self-contained .cu program that runs one dot product-add and compares it with what models predict.

    cases: each model with the bit pattern of d that it predicts.  All have the same K and types; they may be
    different PTX instructions (one chained from several issues, say), and each one that the GPU has is run.
    a, b: shape (K,); c: shape (); with block scales of S products, scale_a, scale_b: shape (K/S,), else None
    or empty.  Bit patterns, or floats of the instructions' types, as in `Instruction.dot_add`.

    The case stands at element [0,0]: row 0 of A is a, column 0 of B is b, C[0,0] is c, all else is zero.  The
    program prints the GPU's name, compute capability and d[0,0].  It exits with 0 if the GPU agrees with a
    model, 1 if it agrees with none, 2 if nothing could be run.  Any NaN agrees with a predicted NaN, unless
    the model says which NaN (`DotAdd.nan_is_canonical`).

    Raises CudaUnavailableError (a ValueError) for an instruction that is no warp-level `mma.sync`, ValueError
    for cases of different K or types, codes that do not exist and wrong shapes, TypeError for wrong dtypes.
    """
    case = checked_case(cases, a, b, c, scale_a, scale_b)
    spec, d = cases[0][0].spec, cases[0][0].d_format
    programs: list[tuple[Mma, int]] = []  # each distinct instruction with the number of times it is issued
    models = []
    for instruction, predicted in cases:
        program = (mma_of(instruction), instruction.issues)
        if program not in programs:
            programs.append(program)
        models.append(model_row(instruction, predicted, programs.index(program)))

    mma = programs[0][0]
    matrices = _MATRICES | (_SCALE_MATRICES if spec.scales else {})
    types = {matrix: _c_type(mma.format(operand)) for matrix, (operand, _) in matrices.items()}
    newest = max((mma for mma, _ in programs), key=lambda mma: mma.first)
    return _PROGRAM.substitute(
        target=newest.target,
        checks=CHECKS,
        has="\n".join(f"//     {mma.ptx}\n//         {mma.needs}" for mma, _ in programs),
        types=spec.types,
        sizes=f"enum {{ K = {spec.k}" + (f", SCALES = {spec.scales}" if spec.scales else "") + " };",
        case="\n".join(c_constant(name, codes, mma.format(name)) for name, codes in case.items()),
        kernels="\n".join(
            kernel_source(mma, issues, f"mma_{number}") for number, (mma, issues) in enumerate(programs)
        ),
        parameters=_parameters(mma),
        table="\n".join(_row(number, mma, issues) for number, (mma, issues) in enumerate(programs)),
        models="\n".join(models),
        D=_c_type(d),
        vectors="\n".join(f"    std::vector<{types[x]}> {x}({size});" for x, (_, size) in matrices.items()),
        place_scales=_PLACE_SCALES if spec.scales else "",
        uploads="\n".join(f"    {types[x]} *gpu_{x} = on_gpu({x});" for x in matrices),
        arguments=", ".join(f"gpu_{x}" for x in matrices),
        frees="\n".join(f"    CHECK(cudaFree(gpu_{x}));" for x in matrices),
        report=report_source(d),
    )


def checked_case(
    cases: Sequence[tuple[Instruction, int]],
    a: ArrayLike,
    b: ArrayLike,
    c: ArrayLike,
    scale_a: ArrayLike | None = None,
    scale_b: ArrayLike | None = None,
) -> dict[str, NDArray[Any]]:
    """The codes of a case by the names of operands.  Raises as `cuda_source`, but for instructions that are no mma."""
    if not cases:
        raise ValueError("cases is empty: give at least one (instruction, predicted bit pattern of d)")
    first = cases[0][0]
    for instruction, predicted in cases:
        _check_case(first, instruction, predicted)
    spec = first.spec
    case = {
        "a": _codes(first, "a", a, spec.a_format, (spec.k,)),
        "b": _codes(first, "b", b, spec.b_format, (spec.k,)),
        "c": _codes(first, "c", c, spec.c_format, ()),
    }
    for name, scale in (("scale_a", scale_a), ("scale_b", scale_b)):
        given = np.empty(0, np.uint8) if scale is None else scale
        codes = _codes(first, name, given, spec.scale_format or ue8m0, (spec.scales,))
        if spec.scales:
            case[name] = codes
    return case


def model_row(instruction: Instruction, predicted: int, program: int) -> str:
    """A model's row in the program's table: its name, which of `mmas` it is of, and what it predicts."""
    d = instruction.d_format
    any_nan = d.is_nan(int(predicted)) and not instruction.spec.nan_is_canonical
    return f"    {{{c_string(instruction.label)}, {program}, {_hex(int(predicted), d)}, {str(any_nan).lower()}}},"


def report_source(d: Format) -> str:
    """The end of a program: `main`, which runs each of `mmas` and compares its d with the models'."""
    return REPORT.substitute(
        D=_c_type(d),
        exponent_bits=d.exponent_bits,
        fraction_bits=d.fraction_bits,
        bias=d.bias,
        digits=d.storage_bits // 4,
    )


@dataclass(frozen=True, repr=False)
class Memory(ShortRepr):
    """Where a kernel finds its operands, as C in `lane`, `i` and the functions a_row(lane, i), a_col(lane, i), …"""

    parameters: str
    a: str  #: the code of an element of A, k being the products before this issue
    b: str
    c: str
    scale_a: str
    scale_b: str
    store: str  #: a statement, `%s` being the code of an element of D
    begin: str = ""  #: statements before all others


#: A row as the only one of its matrices that is not zero.
ROW = Memory(
    parameters="struct Row *rows, int *ran",
    a="a_row(lane, i) == at_i ? row.a[k + a_col(lane, i)] : 0",
    b="b_col(lane, i) == at_j ? row.b[k + b_row(lane, i)] : 0",
    c="c_row(lane, i) == at_i && c_col(lane, i) == at_j ? row.c : 0",
    scale_a="scale_a_row(lane, i) == at_i ? row.scale_a[k / BLOCK + scale_a_col(lane, i)] : 0",
    scale_b="scale_b_col(lane, i) == at_j ? row.scale_b[k / BLOCK + scale_b_row(lane, i)] : 0",
    store="if (d_row(lane, i) == at_i && d_col(lane, i) == at_j) row.d = %s;",
    begin="struct Row &row = rows[blockIdx.x];\nconst int at_i = blockIdx.x % M, at_j = blockIdx.x / M % N;\n",
)


def kernel_source(mma: Mma, issues: int = 1, namespace: str = "mma_0", memory: Memory | None = None) -> str:
    """The kernel, in a namespace of its own, that runs a chain of `issues` of one instruction on one warp.

    Its operands are whole matrices, unless `memory` says otherwise.
    """
    memory = memory or _matrices(mma)
    registers = {name: mma.registers(name) for name in mma.fragments}
    elements = {name: count for name, (_, count) in mma.fragments.items()}
    size = {name: -(-count // registers[name].per_register) for name, count in elements.items()}
    scale_names = [name for name in elements if name.startswith("scale")]

    def fill(name: str, code: str) -> str:
        declaration = f"{registers[name].type} {name}[{size[name]}] = {{}};\n"
        return (
            declaration
            + f"for (int i = 0; i < {elements[name]}; ++i)\n    {registers[name].load(name, code)}"
        )

    def constraints(name: str) -> str:
        write = "=" if name == "d" else ""
        texts = [f'"{write}{registers[name].constraint}"({name}[{r}])' for r in range(size[name])]
        return (",\n" + " " * 23).join(", ".join(texts[r : r + 4]) for r in range(0, len(texts), 4))

    positions = "\n".join(
        f"__device__ int {name}_{axis}(int lane, int i) {{ return {getattr(fragment, axis)}; }}"
        for name, (fragment, _) in mma.fragments.items()
        for axis in ("row", "col")
    )
    sizes = f"enum {{ M = {mma.m}, N = {mma.n}, K = {mma.k * issues} }};"
    inputs = [
        fill("a", memory.a),
        fill("b", memory.b),
    ]
    if mma.scale:
        sizes += f"\nenum {{ BLOCK = {mma.scale_block}, SCALES = K / BLOCK }};"
        inputs.append(fill("scale_a", memory.scale_a))
        inputs.append(fill("scale_b", memory.scale_b))

    numbers = iter(range(sum(size.values())))
    d, a, b, c = ("{" + ", ".join(f"%{next(numbers)}" for _ in range(size[name])) + "}" for name in "dabc")
    store = f"for (int i = 0; i < {elements['d']}; ++i)\n"
    store += f"    {memory.store % registers['d'].store('d')}"
    if mma.by_quadpair:
        store = f"if (((lane >> 2) & 3) == 0)\n{indent(store, '    ')}"
    return _KERNEL.substitute(
        namespace=namespace,
        ptx=mma.ptx,
        sections='", "'.join(mma.sections),
        note=f"// {mma.note[0].upper()}{mma.note[1:]}.\n" if mma.note else "",
        quadpairs=_QUADPAIRS if mma.by_quadpair else "",
        sizes=sizes,
        step=mma.k,
        positions=positions,
        parameters=memory.parameters,
        guard=mma.guard,
        begin=indent(memory.begin, " " * 4),
        fill_c=indent(fill("c", memory.c), " " * 4),
        result=f"{registers['d'].type} d[{size['d']}]",
        fill_inputs=indent("\n".join(inputs), " " * 8),
        d=d,
        a=a,
        b=b,
        c=c,
        scales="".join(f", %{next(numbers)}, {{0, 0}}" for _ in scale_names),
        outputs=constraints("d"),
        inputs=(",\n" + " " * 23).join(constraints(name) for name in ["a", "b", "c", *scale_names]),
        carry=f"        for (int r = 0; r < {size['c']}; ++r) c[r] = d[r];\n" if issues > 1 else "",
        store=indent(store, "    "),
    )


def _check_case(first: Instruction, instruction: Instruction, predicted: int) -> None:
    """Raise ValueError unless the case can be put to both, and the prediction is a code."""
    if instruction.k != first.k:
        raise ValueError(
            f"{first.label} has K = {first.k}, {instruction.label} has K = {instruction.k}: "
            "chain the shorter one with .chained(K)"
        )
    if instruction.spec.types != first.spec.types:
        raise ValueError(
            f"{first.label} is {first.spec.types}, {instruction.label} is {instruction.spec.types}: "
            "one case cannot be put to both"
        )
    if not 0 <= predicted < first.d_format.codes:
        raise ValueError(
            f"{instruction.label} is said to give {predicted:#x}, which is no {first.d_format} code: "
            f"codes are 0 to {first.d_format.codes - 1:#x}"
        )


def _codes(
    instruction: Instruction, name: str, x: ArrayLike, fmt: Format, shape: tuple[int, ...]
) -> NDArray[Any]:
    codes = as_codes(x, fmt, name)
    if codes.shape != shape:
        raise ValueError(f"{instruction.label} needs {name} of shape {shape} here, not {codes.shape}")
    return codes


def _matrices(mma: Mma) -> Memory:
    """Whole matrices, row by row."""
    return Memory(
        parameters=_parameters(mma),
        a="A[a_row(lane, i) * K + k + a_col(lane, i)]",
        b="B[(k + b_row(lane, i)) * N + b_col(lane, i)]",
        c="C[c_row(lane, i) * N + c_col(lane, i)]",
        scale_a="SA[scale_a_row(lane, i) * SCALES + k / BLOCK + scale_a_col(lane, i)]",
        scale_b="SB[(k / BLOCK + scale_b_row(lane, i)) * N + scale_b_col(lane, i)]",
        store="D[d_row(lane, i) * N + d_col(lane, i)] = %s;",
    )


def _parameters(mma: Mma) -> str:
    """The kernel's, and those of a pointer to it."""
    matrices = _MATRICES | (_SCALE_MATRICES if mma.scale else {})
    inputs = [f"const {_c_type(mma.format(operand))} *{matrix}" for matrix, (operand, _) in matrices.items()]
    return ", ".join([*inputs, f"{_c_type(mma.d)} *D", "int *ran"])


def _row(number: int, mma: Mma, issues: int) -> str:
    """The instruction's row in the program's table."""
    title = mma.ptx + (f", {issues} in a chain" if issues > 1 else "")
    note = c_string(mma.note) if mma.note else "nullptr"
    return (
        f"    {{{c_string(title)},\n     {c_string(mma.needs)}, {c_string(mma.suffix)},\n     {note},\n"
        f"     {mma.first}, {mma.last}, mma_{number}::M, mma_{number}::N, mma_{number}::kernel}},"
    )


def _c_type(fmt: Format) -> str:
    return f"{fmt.word}_t"


def _hex(code: int, fmt: Format) -> str:
    return f"0x{code:0{fmt.word_bits // 4}x}" + ("ull" if fmt.word_bits == 64 else "")


def c_constant(name: str, codes: NDArray[Any], fmt: Format) -> str:
    if codes.ndim == 0:
        return f"static const {_c_type(fmt)} case_{name} = {_hex(int(codes), fmt)};"
    texts = [_hex(code, fmt) for code in codes.tolist()]
    lines = (", ".join(texts[start : start + 8]) for start in range(0, len(texts), 8))
    body = "".join(f"    {line},\n" for line in lines)
    return f"static const {_c_type(fmt)} case_{name}[] = {{\n{body}}};"


def c_string(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


_QUADPAIRS = """\
// Each quadpair of lanes computes a product of its own; here all four are given the same matrices, and the
// first one's result is kept.
"""

_KERNEL = Template("""\
// $ptx
// PTX ISA: "$sections".
${note}\
namespace $namespace {

$sizes
enum { STEP = $step };  // of K, by one instruction; the next one continues on its result

// Row and column, in its matrix, of the i-th element that a lane holds.
$positions

${quadpairs}\
__global__ void kernel($parameters) {
#if $guard
    const int lane = threadIdx.x;
$begin\
$fill_c
    $result;
    for (int k = 0; k < K; k += STEP) {
$fill_inputs
        asm volatile("$ptx "
                     "$d, $a, $b, "
                     "$c$scales;"
                     : $outputs
                     : $inputs);
${carry}\
    }
$store
    *ran = 1;
#endif
}

}  // namespace $namespace
""")

#: What to do about a call of CUDA that failed.
CHECKS = """\
static const char *advice(cudaError_t error) {
    switch (error) {
    case cudaErrorNoDevice:
        return "No NVIDIA GPU is visible: look at nvidia-smi and at CUDA_VISIBLE_DEVICES.";
    case cudaErrorInsufficientDriver:
        return "The NVIDIA driver is missing or older than this nvcc: update it, or use an older nvcc.";
    case cudaErrorNoKernelImageForDevice:
        return "This build is for other GPUs: compile again with this one's -arch (for 7.5, sm_75).";
    case cudaErrorMemoryAllocation:
        return "The GPU has no memory left: wait, or choose another one with CUDA_VISIBLE_DEVICES.";
    default:
        return "See whether nvidia-smi works and names a CUDA version no older than nvcc's, then run again.";
    }
}

static void check(cudaError_t error, const char *call) {
    if (error == cudaSuccess) return;
    fflush(stdout);
    fprintf(stderr, "%s failed: %s (%s)\\n", call, cudaGetErrorString(error), cudaGetErrorName(error));
    fprintf(stderr, "%s\\n", advice(error));
    exit(2);
}
#define CHECK(call) check(call, #call)
"""

_PLACE_SCALES = """
    for (int i = 0; i < SCALES; ++i) {
        SA[i] = case_scale_a[i];
        SB[i * mma.n] = case_scale_b[i];
    }"""

#: The end of a program: what `run` of each of `mmas` gives, against the models.
REPORT = Template("""\
enum { EXPONENT_BITS = $exponent_bits, FRACTION_BITS = $fraction_bits, BIAS = $bias };  // of d

static double value(uint64_t code) {
    const int top = (1 << EXPONENT_BITS) - 1;
    const int exponent = int(code >> FRACTION_BITS) & top;
    const uint64_t fraction = code & ((uint64_t(1) << FRACTION_BITS) - 1);
    const double sign = (code >> (EXPONENT_BITS + FRACTION_BITS)) & 1 ? -1 : 1;
    if (exponent == top) return fraction ? NAN : sign * INFINITY;
    if (exponent == 0) return sign * ldexp(double(fraction), 1 - BIAS - FRACTION_BITS);
    return sign * ldexp(double(fraction | uint64_t(1) << FRACTION_BITS), exponent - BIAS - FRACTION_BITS);
}

int main() {
    cudaDeviceProp gpu;
    CHECK(cudaGetDeviceProperties(&gpu, 0));
    printf("GPU: %s, compute capability %d.%d\\n", gpu.name, gpu.major, gpu.minor);
    const int capability = 10 * gpu.major + gpu.minor;

    bool any_ran = false;
    std::string agrees;
    for (int i = 0; i < int(sizeof mmas / sizeof *mmas); ++i) {
        const Mma &mma = mmas[i];
        printf("%s\\n", mma.ptx);
        if (mma.note) printf("    (%s)\\n", mma.note);
        if (capability < mma.first || capability > mma.last) {
            printf("    not run: it needs %s\\n", mma.needs);
            continue;
        }
        $D d;
        if (!run(mma, &d)) {
            printf("    not run: this build has no code for it, compile again with -arch=sm_%d%s\\n",
                   capability, mma.suffix);
            continue;
        }
        any_ran = true;
        printf("    d[0,0] = 0x%0${digits}llx (%a)\\n", static_cast<unsigned long long>(d), value(d));
        for (const Model &model : models) {
            if (model.mma != i) continue;
            const bool same = model.any_nan ? std::isnan(value(d)) : d == model.d;
            const unsigned long long predicted = model.d;
            printf("    %s: ", model.name);
            if (model.any_nan)
                printf("some NaN, ");
            else
                printf("0x%0${digits}llx (%a), ", predicted, value(predicted));
            printf(same ? "agrees\\n" : "differs\\n");
            if (same) agrees += std::string(agrees.empty() ? "" : " and ") + model.name;
        }
    }
    if (!any_ran) {
        printf("Nothing could be run.\\n");
        return 2;
    }
    if (agrees.empty()) {
        printf("The GPU agrees with none of the models whose instruction was run.\\n");
        return 1;
    }
    printf("The GPU agrees with %s.\\n", agrees.c_str());
    return 0;
}
""")

_PROGRAM = Template("""\
// One dot product-add on the GPU at hand: d[0,0] = c[0,0] + sum over k of a[0,k] * b[k,0], by inline PTX.
// Written by mmaformal.  Types: $types.
//
// Compile and run:
//     nvcc -arch=$target -o case case.cu && ./case
//
// The instructions, and what they need:
$has
//
// Exit code: 0 if the GPU agrees with one of the models, 1 if with none, 2 if nothing could be run.

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include <cuda_runtime.h>

// The case, as bit patterns.
$sizes
$case

$kernels
struct Mma {
    const char *ptx, *needs, *suffix, *note;
    int first, last;  // compute capabilities that have it, 80 for 8.0
    int m, n;
    void (*kernel)($parameters);
};

static const Mma mmas[] = {
$table
};

struct Model {
    const char *name;
    int mma;       // which of mmas
    uint64_t d;    // what it predicts
    bool any_nan;  // it predicts a NaN, but not which
};

static const Model models[] = {
$models
};

$checks
template <typename T>
static T *on_gpu(const std::vector<T> &host) {
    T *gpu = nullptr;
    CHECK(cudaMalloc(&gpu, host.size() * sizeof(T)));
    CHECK(cudaMemcpy(gpu, host.data(), host.size() * sizeof(T), cudaMemcpyHostToDevice));
    return gpu;
}

// Runs one instruction (or chain) and sets *d to d[0,0]; false if this build holds no code for it.
static bool run(const Mma &mma, $D *d) {
    // Row by row: A is m x K, B is K x n, C and D are m x n.  For other matrices, fill these in.
$vectors
    std::vector<$D> D(mma.m * mma.n);
    std::vector<int> ran(1);
    for (int k = 0; k < K; ++k) {
        A[k] = case_a[k];
        B[k * mma.n] = case_b[k];
    }
    C[0] = case_c;$place_scales

$uploads
    $D *gpu_D = on_gpu(D);
    int *gpu_ran = on_gpu(ran);
    mma.kernel<<<1, 32>>>($arguments, gpu_D, gpu_ran);
    CHECK(cudaGetLastError());
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaMemcpy(D.data(), gpu_D, D.size() * sizeof($D), cudaMemcpyDeviceToHost));
    CHECK(cudaMemcpy(ran.data(), gpu_ran, sizeof(int), cudaMemcpyDeviceToHost));
$frees
    CHECK(cudaFree(gpu_D));
    CHECK(cudaFree(gpu_ran));
    *d = D[0];
    return ran[0];
}

$report""")
