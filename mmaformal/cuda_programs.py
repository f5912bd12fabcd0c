"""A witness as a CUDA program: `mma.sync` of a warp (`cuda`), or `wgmma` of a warpgroup beside it.

With a `wgmma` in it, the case stands at element [0, 0] of matrices that the kernels make themselves (`cuda.ROW`,
`wgmma`); the host runs a chain of them one by one, each one's d being the next one's c.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from string import Template

from numpy.typing import ArrayLike

from mmaformal import wgmma
from mmaformal.cuda import (
    CHECKS,
    ROW,
    c_constant,
    c_string,
    checked_case,
    cuda_source,
    kernel_source,
    model_row,
    report_source,
)
from mmaformal.display import ShortRepr
from mmaformal.instruction import Instruction
from mmaformal.mma import mma_of


@dataclass(frozen=True, repr=False)
class PtxKernel(ShortRepr):
    """One instruction of PTX as a kernel of rows, and what the GPU needs to have it."""

    ptx: str
    needs: str
    suffix: str
    note: str
    first: int
    last: int
    threads: int
    step: int  #: products of one launch
    source: str  #: to stand in a namespace of its own


def cuda_program(
    cases: Sequence[tuple[Instruction, int]],
    a: ArrayLike,
    b: ArrayLike,
    c: ArrayLike,
    scale_a: ArrayLike | None = None,
    scale_b: ArrayLike | None = None,
) -> str:
    """A self-contained .cu program that runs one dot product-add and compares it with what models predict.

    Arguments, exit codes of the program and errors are those of `cuda.cuda_source`; the instructions may be `wgmma`.
    """
    if all(wgmma.wgmma_of(instruction) is None for instruction, _ in cases):
        return cuda_source(cases, a, b, c, scale_a, scale_b)
    case = checked_case(cases, a, b, c, scale_a, scale_b)
    spec = cases[0][0].spec
    kernels: list[PtxKernel] = []
    models = []
    for instruction, predicted in cases:
        kernel = _kernel(instruction)
        if kernel not in kernels:
            kernels.append(kernel)
        models.append(model_row(instruction, predicted, kernels.index(kernel)))
    words = {name: f"{instruction.format_of(name).word}_t" for name in "abcd"}
    return _PROGRAM.substitute(
        types=spec.types,
        has="\n".join(f"//     {each.ptx}\n//         {each.needs}" for each in kernels),
        K=spec.k,
        case="\n".join(c_constant(name, codes, instruction.format_of(name)) for name, codes in case.items()),
        **{f"{name}_type": word for name, word in words.items()},
        kernels="\n".join(
            f"namespace unit_{n} {{\n\n{each.source}\n}}  // namespace unit_{n}\n"
            for n, each in enumerate(kernels)
        ),
        table="\n".join(_table_row(n, each) for n, each in enumerate(kernels)),
        models="\n".join(models),
        checks=CHECKS,
        report=report_source(spec.d_format),
    )


def _kernel(instruction: Instruction) -> PtxKernel:
    unit = wgmma.wgmma_of(instruction)
    if unit is not None:
        needs = "compute capability 9.0 (-arch=sm_90a)"
        source = f"enum {{ K = {unit.k} }};\n\n{wgmma.wgmma_source(unit)}"
        return PtxKernel(unit.ptx, needs, "a", "", 90, 90, 128, unit.k, source)
    mma = mma_of(instruction)
    source = kernel_source(mma, instruction.issues, "mma", ROW) + "\nusing mma::kernel;\n"
    step = mma.k * instruction.issues
    return PtxKernel(mma.ptx, mma.needs, mma.suffix, mma.note, mma.first, mma.last, 32, step, source)


def _table_row(number: int, kernel: PtxKernel) -> str:
    note = c_string(kernel.note) if kernel.note else "nullptr"
    texts = f"{c_string(kernel.ptx)},\n     {c_string(kernel.needs)}, {c_string(kernel.suffix)},\n     {note}"
    numbers = f"{kernel.first}, {kernel.last}, {kernel.threads}, {kernel.step}"
    return f"    {{{texts},\n     {numbers}, unit_{number}::kernel}},"


_PROGRAM = Template("""\
// One dot product-add on the GPU at hand: d = c + sum over k of a[k] * b[k], at element [0,0] of D, by inline PTX.
// Written by mmaformal.  Types: $types.
//
// Compile and run:
//     nvcc -arch=sm_90a -o case case.cu && ./case
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

enum { K = $K };

// The case, as bit patterns.
$case

// What a kernel is given: row 0 of A, column 0 of B, C[0,0]; all else is zero.
struct Row {
    $a_type a[K];
    $b_type b[K];
    $c_type c;
    $d_type d;
};

$kernels
struct Mma {
    const char *ptx, *needs, *suffix, *note;
    int first, last;  // compute capabilities that have it, 80 for 8.0
    int threads, step;  // products of one launch; the next one continues on its result
    void (*kernel)(struct Row *rows, int *ran);
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

// Runs the instruction, as often as K needs, and sets *d to d[0,0]; false if this build holds no code for it.
static bool run(const Mma &mma, $d_type *d) {
    Row row = {}, *gpu_row = nullptr;
    int ran = 0, *gpu_ran = nullptr;
    CHECK(cudaMalloc(&gpu_row, sizeof row));
    CHECK(cudaMalloc(&gpu_ran, sizeof ran));
    row.c = case_c;
    for (int start = 0; start < K; start += mma.step) {
        for (int k = 0; k < mma.step; ++k) {
            row.a[k] = case_a[start + k];
            row.b[k] = case_b[start + k];
        }
        ran = 0;
        CHECK(cudaMemcpy(gpu_ran, &ran, sizeof ran, cudaMemcpyHostToDevice));
        CHECK(cudaMemcpy(gpu_row, &row, sizeof row, cudaMemcpyHostToDevice));
        mma.kernel<<<1, mma.threads>>>(gpu_row, gpu_ran);
        CHECK(cudaGetLastError());
        CHECK(cudaDeviceSynchronize());
        CHECK(cudaMemcpy(&row, gpu_row, sizeof row, cudaMemcpyDeviceToHost));
        CHECK(cudaMemcpy(&ran, gpu_ran, sizeof ran, cudaMemcpyDeviceToHost));
        if (!ran) break;
        row.c = row.d;
    }
    CHECK(cudaFree(gpu_row));
    CHECK(cudaFree(gpu_ran));
    *d = row.d;
    return ran;
}

$report""")
