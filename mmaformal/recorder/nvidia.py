"""Units of NVIDIA's GPUs: CUDA with inline PTX.  One warp, or warpgroup, computes one row.

Row r stands at element (i, j) of a matrix D, i and j going through all of them as r grows; all other elements are +0.
So a unit whose elements were not alike would be seen.

Sources: as `mmaformal/mma.py`; the compute capabilities of architectures: CUDA C++ Programming Guide, "Compute
Capabilities".
"""

from __future__ import annotations

from dataclasses import dataclass
from string import Template

from mmaformal import wgmma
from mmaformal.cuda import CHECKS, ROW, kernel_source
from mmaformal.display import ShortRepr
from mmaformal.instruction import Instruction
from mmaformal.mma import mma_or_why_not
from mmaformal.recorder.program import (
    RecorderError,
    RecorderProgram,
    compiler_words,
    program_source,
    tool_found,
)
from mmaformal.recorder.rows import RowLayout

#: Rows that are on the GPU at a time.
_ROWS = 1 << 16


@dataclass(frozen=True, repr=False)
class Generation(ShortRepr):
    """Which GPUs are of an architecture, by compute capability: 80 is 8.0."""

    first: int
    last: int

    @property
    def text(self) -> str:
        ends = [f"{x // 10}.{x % 10}" for x in dict.fromkeys((self.first, self.last))]
        return f"compute capability {' to '.join(ends)}"


GENERATIONS = {
    "volta": Generation(70, 70),
    "turing": Generation(75, 75),
    "ampere": Generation(80, 88),
    "ada": Generation(89, 89),
    "hopper": Generation(90, 90),
    "blackwell": Generation(100, 103),
    "rtx_blackwell": Generation(120, 121),
}


@dataclass(frozen=True, repr=False)
class DeviceKernel(ShortRepr):
    """The part of a program that runs on the GPU."""

    text: str
    name: str
    threads: int  #: of a block, which computes one row
    suffix: str  #: of the target: "a" where the instruction is of one generation only


def mma_program(
    instruction: Instruction, compiler: str | None = None, *, here: bool = True
) -> RecorderProgram:
    """The program of a GPU's unit.  Raises RecorderError, one line, for what is missing."""
    if instruction.architecture not in GENERATIONS:
        raise RecorderError(f"{instruction.label}: no GPU of NVIDIA's is known to be of that architecture")
    generation = GENERATIONS[instruction.architecture]
    kernel = mma_kernel(instruction)
    unit = _UNIT.substitute(
        kernel=kernel.text,
        checks=CHECKS,
        name=kernel.name,
        threads=kernel.threads,
        label=instruction.label,
        architecture=instruction.architecture,
        generation=generation.text,
        first=generation.first,
        last=generation.last,
        suffix=kernel.suffix,
    )
    tools: tuple[str, ...] = (compiler or "nvcc",)
    if here:
        tools = compiler_words(compiler) if compiler else (_nvcc(instruction),)
    text = program_source(RowLayout(instruction), headers=_HEADERS, unit=unit, block=_ROWS)
    return RecorderProgram(text, ".cu", tools, ("-O2", f"-arch=sm_{generation.first}{kernel.suffix}"))


def mma_kernel(instruction: Instruction) -> DeviceKernel:
    """Return the kernel that runs the instruction, by `mma.sync` or `wgmma`.  Raises RecorderError if neither does."""
    mma, why = mma_or_why_not(instruction)
    if mma is not None:
        return DeviceKernel(kernel_source(mma, memory=ROW), "mma_0::kernel", 32, mma.suffix)
    unit = wgmma.wgmma_of(instruction)
    if unit is None or unit.k != instruction.k:
        raise RecorderError(f"{instruction.label}: there is no program for it: {why}")
    return DeviceKernel(wgmma.wgmma_source(unit), "kernel", 128, "a")


def _nvcc(instruction: Instruction) -> str:
    compiler = tool_found(("nvcc",))
    if compiler is None:
        raise RecorderError(
            f"{instruction.label} needs an NVIDIA GPU and nvcc, and there is no nvcc here: --source writes the program"
        )
    return compiler


_HEADERS = """\
#include <cstdlib>

#include <cuda_runtime.h>"""

_UNIT = Template("""\
$kernel
$checks

static struct Row *gpu_rows;
static int *gpu_ran;

static const char *prepare(char *device, size_t size) {
    static char why[512];
    static const int not_yet = 0;
    int driver = 0;
    cudaDeviceProp gpu;
    CHECK(cudaGetDeviceProperties(&gpu, 0));
    const int capability = 10 * gpu.major + gpu.minor;
    if (capability < $first || capability > $last) {
        snprintf(why, sizeof why, "$label: this GPU (%s, compute capability %d.%d) is no $architecture ($generation)",
                 gpu.name, gpu.major, gpu.minor);
        return why;
    }
    CHECK(cudaDriverGetVersion(&driver));
    snprintf(device, size, "\\"device\\": \\"%s\\", \\"compute_capability\\": \\"%d.%d\\", \\"cuda\\": \\"%d.%d\\"",
             gpu.name, gpu.major, gpu.minor, driver / 1000, driver % 1000 / 10);
    CHECK(cudaMalloc(&gpu_rows, ROWS * sizeof *gpu_rows));
    CHECK(cudaMalloc(&gpu_ran, sizeof *gpu_ran));
    CHECK(cudaMemcpy(gpu_ran, &not_yet, sizeof not_yet, cudaMemcpyHostToDevice));
    return 0;
}

static const char *run(struct Row *rows, int n) {
    int ran = 0;
    CHECK(cudaMemcpy(gpu_rows, rows, n * sizeof *rows, cudaMemcpyHostToDevice));
    $name<<<n, $threads>>>(gpu_rows, gpu_ran);
    CHECK(cudaGetLastError());
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaMemcpy(rows, gpu_rows, n * sizeof *rows, cudaMemcpyDeviceToHost));
    CHECK(cudaMemcpy(&ran, gpu_ran, sizeof ran, cudaMemcpyDeviceToHost));
    return ran ? 0 : "this build has no code for this GPU: compile again with its own -arch (for 12.1, sm_121$suffix)";
}""")
