"""A CUDA program that puts one dot product-add to the GPU at hand and says which model the GPU agrees with.

The program is self-contained: inline PTX `mma.sync` (`mmaformal.mma`), the case as bit patterns, and what each model
predicts.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from string import Template
from textwrap import indent
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mmaformal.display import ShortRepr
from mmaformal.formats import Format, ue8m0
from mmaformal.instruction import Instruction, as_codes
from mmaformal.mma import Mma, mma_of

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
    scale_names = ["scale_a", "scale_b"] if mma.scale else []
    positions = "\n".join(
        f"__device__ int {name}_{axis}(int lane, int i) {{ return {getattr(fragment, axis)}; }}"
        for name, (fragment, _) in mma.fragments.items()
        for axis in ("row", "col")
    )
    sizes = f"enum {{ M = {mma.m}, N = {mma.n}, K = {mma.k * issues} }};"
    if mma.scale:
        sizes += f"\nenum {{ BLOCK = {mma.scale_block}, SCALES = K / BLOCK }};"
    inputs = [_fill(mma, name, getattr(memory, name)) for name in ("a", "b", *scale_names)]
    numbers = itertools.count()
    d, a, b, c = (_operand(mma, name, numbers) for name in "dabc")
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
        fill_c=indent(_fill(mma, "c", memory.c), " " * 4),
        result=f"{mma.registers('d').type} d[{_size(mma, 'd')}]",
        fill_inputs=indent("\n".join(inputs), " " * 8),
        d=d,
        a=a,
        b=b,
        c=c,
        scales="".join(f", %{next(numbers)}, {{0, 0}}" for _ in scale_names),
        outputs=_constraints(mma, "d"),
        inputs=_NEXT.join(_constraints(mma, name) for name in ("a", "b", "c", *scale_names)),
        carry=f"        for (int r = 0; r < {_size(mma, 'c')}; ++r) c[r] = d[r];\n" if issues > 1 else "",
        store=indent(_store(mma, memory), "    "),
    )


#: between operands that stand on lines of their own
_NEXT = ",\n" + " " * 23


def _size(mma: Mma, name: str) -> int:
    """Return how many registers an operand takes."""
    return -(-mma.fragments[name][1] // mma.registers(name).per_register)


def _fill(mma: Mma, name: str, code: str) -> str:
    """Return the statements that declare an operand's registers and load its elements, `code` being one's."""
    registers = mma.registers(name)
    declaration = f"{registers.type} {name}[{_size(mma, name)}] = {{}};\n"
    return (
        f"{declaration}for (int i = 0; i < {mma.fragments[name][1]}; ++i)\n    {registers.load(name, code)}"
    )


def _operand(mma: Mma, name: str, numbers: Iterator[int]) -> str:
    """Return an operand as the assembly has it: its registers by the next numbers."""
    return "{" + ", ".join(f"%{next(numbers)}" for _ in range(_size(mma, name))) + "}"


def _constraints(mma: Mma, name: str) -> str:
    """Return what the assembly says of an operand's registers."""
    write = "=" if name == "d" else ""
    texts = [f'"{write}{mma.registers(name).constraint}"({name}[{r}])' for r in range(_size(mma, name))]
    return _NEXT.join(", ".join(texts[r : r + 4]) for r in range(0, len(texts), 4))


def _store(mma: Mma, memory: Memory) -> str:
    """Return the statements that store D's elements, of the first product only where there are four."""
    each = memory.store % mma.registers("d").store("d")
    store = f"for (int i = 0; i < {mma.fragments['d'][1]}; ++i)\n    {each}"
    return f"if (((lane >> 2) & 3) == 0)\n{indent(store, '    ')}" if mma.by_quadpair else store


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

#: Checks of CUDA's calls, with advice on one that failed.
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
