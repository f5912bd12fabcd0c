"""Units of AMD's GPUs: HIP with the compiler's built-in functions of v_mfma.  One wave computes one row.

Row r stands at element (i, j) of block b of D, all of them in turn as r grows; all other elements are +0.

Sources: "AMD Instinct MI200 Instruction Set Architecture" and that of MI300, chapter "Matrix Arithmetic Instructions";
AMD lab notes, "AMD matrix cores" (ROCm blogs), for which lane holds which element; LLVM, BuiltinsAMDGPU, for the
functions and their types.
"""

from __future__ import annotations

from dataclasses import dataclass
from string import Template

from mmaformal.architectures import amd
from mmaformal.display import ShortRepr
from mmaformal.formats import Format, fp16, fp32, fp64, tf32
from mmaformal.instruction import Instruction
from mmaformal.recorder.program import (
    RecorderError,
    RecorderProgram,
    compiler_words,
    program_source,
    tool_found,
)
from mmaformal.recorder.rows import RowLayout

_ROWS = 1 << 16
LANES = 64

#: The compiler's names of the GPUs of an architecture.
TARGETS = {"cdna1": "gfx908", "cdna2": "gfx90a", "cdna3": "gfx942"}

_ALL_ROWS = (*amd.F64, *amd.F32, *amd.XF32, *amd.F16, *amd.BF16, *amd.BF16_1K, *amd.F8)
_BLOCKS = {name: row.blocks for row in _ALL_ROWS for name in (row.old_name, row.new_name) if name is not None}

#: Places in C and D, by m (which is n) and whether it is fp64: row and block of a lane's i-th element.  Its column is
#: lane % n.
_RESULTS = {
    (32, False): ("i % 4 + 4 * (lane / 32) + 8 * (i / 4 % 4)", "i / 16"),
    (16, False): ("i % 4 + 4 * (lane / 16)", "i / 4"),
    (4, False): ("i", "lane / 4"),
    (16, True): ("4 * i + lane / 16", "0"),
    (4, True): ("lane / 16", "lane / 4 % 4"),
}


@dataclass(frozen=True, repr=False)
class Mfma(ShortRepr):
    """One v_mfma: matrices of m × k and k × m, `blocks` of them at once."""

    builtin: str
    m: int
    k: int
    blocks: int
    a: Format
    b: Format
    d: Format  #: and of c

    @property
    def factors(self) -> int:
        """Elements of A that a lane holds, as many of B."""
        return self.m * self.k * self.blocks // LANES

    @property
    def results(self) -> int:
        return self.m * self.m * self.blocks // LANES

    @property
    def factor_type(self) -> str:
        """The type of the built-in function's first two arguments."""
        if self.a.word_bits == 8:
            return "long"
        scalar = {fp64: "double", fp32: "float", tf32: "float", fp16: "_Float16"}.get(self.a, "short")
        return _vector(scalar, self.a.word_bits // 8, self.factors)

    @property
    def result_type(self) -> str:
        return _vector("double" if self.d is fp64 else "float", self.d.word_bits // 8, self.results)


def mfma_of(instruction: Instruction) -> Mfma:
    """The v_mfma that an instruction is.  The functions have the names of cdna1 and cdna2, where there are such."""
    i = instruction
    name = i.aliases[0] if i.architecture == "cdna3" and i.aliases else i.name
    builtin = f"__builtin_amdgcn_{name.removeprefix('v_')}"
    return Mfma(builtin, i.m, i.k, _BLOCKS[i.name], i.a_format, i.b_format, i.d_format)


def hip_program(
    instruction: Instruction, compiler: str | None = None, *, here: bool = True
) -> RecorderProgram:
    """The program of a GPU's unit.  Raises RecorderError, one line, for what is missing."""
    target = TARGETS[instruction.architecture]
    tools: tuple[str, ...] = (compiler or "hipcc",)
    if here:
        tools = compiler_words(compiler) if compiler else (_hipcc(instruction),)
    unit = _UNIT.substitute(
        kernel=_kernel_source(mfma_of(instruction), target),
        target=target,
        lanes=LANES,
        label=instruction.label,
        architecture=instruction.architecture,
    )
    text = program_source(RowLayout(instruction), headers=_HEADERS, unit=unit, block=_ROWS)
    return RecorderProgram(text, ".hip", tools, ("-O2", f"--offload-arch={target}"))


def _kernel_source(mfma: Mfma, target: str) -> str:
    """The kernel that computes rows[blockIdx.x] by one wave."""
    row, block = _RESULTS[mfma.m, mfma.d is fp64]
    return _KERNEL.substitute(
        target=target,
        builtin=mfma.builtin,
        m=mfma.m,
        blocks=mfma.blocks,
        factors=mfma.factors,
        results=mfma.results,
        factor_word=f"{mfma.a.word}_t",
        result_word=f"{mfma.d.word}_t",
        factor_type=mfma.factor_type,
        result_type=mfma.result_type,
        row=row,
        block=block,
    )


def _vector(scalar: str, size: int, count: int) -> str:
    return scalar if count == 1 else f"{scalar} __attribute__((__vector_size__({size * count})))"


def _hipcc(instruction: Instruction) -> str:
    compiler = tool_found(("hipcc",))
    if compiler is None:
        raise RecorderError(
            f"{instruction.label} needs an AMD GPU and hipcc, and there is no hipcc here: --source writes the program"
        )
    return compiler


_KERNEL = Template("""\
enum { M = $m, N = M, BLOCKS = $blocks, FACTORS = $factors, RESULTS = $results };

// Of the i-th element of A that a lane holds: row, block and k.  Of B: column, block and k.
__device__ int factor_line(int lane, int i) { return lane % M; }
__device__ int factor_block(int lane, int i) { return lane / M % BLOCKS; }
__device__ int factor_k(int lane, int i) { return i + FACTORS * (lane / (M * BLOCKS)); }
// Of the i-th element of C and D.
__device__ int result_row(int lane, int i) { return $row; }
__device__ int result_col(int lane, int i) { return lane % N; }
__device__ int result_block(int lane, int i) { return $block; }

typedef $factor_type Factors;
typedef $result_type Results;

__global__ void kernel(struct Row *rows, int *ran) {
#ifdef __${target}__
    struct Row &row = rows[blockIdx.x];
    const int lane = threadIdx.x;
    const int at_i = blockIdx.x % M, at_j = blockIdx.x / M % N, at_block = blockIdx.x / (M * N) % BLOCKS;
    $factor_word a[FACTORS], b[FACTORS];
    $result_word d[RESULTS];
    for (int i = 0; i < FACTORS; ++i) {
        const bool mine = factor_block(lane, i) == at_block;
        a[i] = mine && factor_line(lane, i) == at_i ? row.a[factor_k(lane, i)] : 0;
        b[i] = mine && factor_line(lane, i) == at_j ? row.b[factor_k(lane, i)] : 0;
    }
    bool here[RESULTS];
    for (int i = 0; i < RESULTS; ++i) {
        here[i] = result_block(lane, i) == at_block && result_row(lane, i) == at_i && result_col(lane, i) == at_j;
        d[i] = here[i] ? row.c : 0;
    }
    Factors x, y;
    Results z;
    __builtin_memcpy(&x, a, sizeof x);
    __builtin_memcpy(&y, b, sizeof y);
    __builtin_memcpy(&z, d, sizeof z);
    z = $builtin(x, y, z, 0, 0, 0);
    __builtin_memcpy(d, &z, sizeof z);
    for (int i = 0; i < RESULTS; ++i)
        if (here[i]) row.d = d[i];
    *ran = 1;
#endif
}
""")

_HEADERS = """\
#include <stdlib.h>

#include <hip/hip_runtime.h>"""

_UNIT = Template("""\
$kernel
static void check(hipError_t error, const char *call) {
    if (error == hipSuccess) return;
    fprintf(stderr, "%s failed: %s\\n", call, hipGetErrorString(error));
    exit(2);
}
#define CHECK(call) check(call, #call)

static struct Row *gpu_rows;
static int *gpu_ran;

static const char *prepare(char *device, size_t size) {
    static char why[512];
    static const int not_yet = 0;
    int driver = 0;
    hipDeviceProp_t gpu;
    CHECK(hipGetDeviceProperties(&gpu, 0));
    if (strncmp(gpu.gcnArchName, "$target", strlen("$target"))) {
        snprintf(why, sizeof why, "$label: this GPU (%s, %s) is no $architecture ($target)", gpu.name, gpu.gcnArchName);
        return why;
    }
    CHECK(hipDriverGetVersion(&driver));
    snprintf(device, size, "\\"device\\": \\"%s\\", \\"target\\": \\"%s\\", \\"hip\\": %d", gpu.name, gpu.gcnArchName,
             driver);
    CHECK(hipMalloc((void **)&gpu_rows, ROWS * sizeof *gpu_rows));
    CHECK(hipMalloc((void **)&gpu_ran, sizeof *gpu_ran));
    CHECK(hipMemcpy(gpu_ran, &not_yet, sizeof not_yet, hipMemcpyHostToDevice));
    return 0;
}

static const char *run(struct Row *rows, int n) {
    int ran = 0;
    CHECK(hipMemcpy(gpu_rows, rows, n * sizeof *rows, hipMemcpyHostToDevice));
    kernel<<<n, $lanes>>>(gpu_rows, gpu_ran);
    CHECK(hipGetLastError());
    CHECK(hipDeviceSynchronize());
    CHECK(hipMemcpy(rows, gpu_rows, n * sizeof *rows, hipMemcpyDeviceToHost));
    CHECK(hipMemcpy(&ran, gpu_ran, sizeof ran, hipMemcpyDeviceToHost));
    return ran ? 0 : "this build has no code for this GPU: compile again with --offload-arch=$target";
}""")
