"""Programs for AMD's GPUs: compiled for the device where clang is, and run on an emulated GPU."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from numpy.typing import NDArray
from support.emulated_gpu import compiled

from mmaformal import ARCHITECTURES, cdna1, cdna2, cdna3
from mmaformal.formats import fp64
from mmaformal.instruction import Instruction
from mmaformal.recorder import RecorderError, program_of, record
from mmaformal.recorder.amd import TARGETS, Mfma, mfma_of
from mmaformal.recorder.rows import read_outputs, stream

UNITS = [i for name in TARGETS for i in ARCHITECTURES[name]]


def test_the_function_is_the_instructions_own() -> None:
    names = {i.label: mfma_of(i).builtin.removeprefix("__builtin_amdgcn_mfma_") for i in UNITS}
    assert names["cdna1 v_mfma_f32_32x32x4bf16"] == "f32_32x32x4bf16"
    assert names["cdna3 v_mfma_f32_16x16x4_4b_bf16"] == "f32_16x16x4bf16_1k"
    assert names["cdna3 v_mfma_f32_32x32x16_fp8_bf8"] == "f32_32x32x16_fp8_bf8"
    for i in UNITS:
        unit = mfma_of(i)
        assert unit.factors * 64 == i.m * i.k * unit.blocks
        assert f"{unit.builtin}(x, y, z, 0, 0, 0)" in program_of(i, here=False).source


def test_no_hipcc_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(
        RecorderError, match="needs an AMD GPU and hipcc, and there is no hipcc here: --source"
    ):
        record(cdna3["v_mfma_f32_16x16x8_xf32"], tmp_path / "x.npz")


# ---- compilation for the device --------------------------------------------------------------------------------

#: A stand-in for as much of HIP as the programs name.
_HIP = """
#pragma once
#include <stddef.h>
#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
struct dim3 { unsigned x, y, z; dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1) : x(x), y(y), z(z) {} };
#define threadIdx (Coordinates{__builtin_amdgcn_workitem_id_x()})
#define blockIdx (Coordinates{__builtin_amdgcn_workgroup_id_x()})
struct Coordinates { unsigned x; };
enum hipError_t { hipSuccess };
enum { hipMemcpyHostToDevice, hipMemcpyDeviceToHost };
struct hipDeviceProp_t { char name[9], gcnArchName[9]; };
extern "C" {
const char *hipGetErrorString(hipError_t);
hipError_t hipGetDeviceProperties(hipDeviceProp_t *, int), hipDriverGetVersion(int *), hipMalloc(void **, size_t);
hipError_t hipMemcpy(void *, const void *, size_t, int), hipGetLastError(), hipDeviceSynchronize();
unsigned __hipPushCallConfiguration(dim3, dim3, size_t = 0, void * = nullptr);
hipError_t hipLaunchKernel(const void *, dim3, dim3, void **, size_t, void *);
}
"""

CLANG = next((name for name in ("clang", "clang-19", "clang-18", "clang-17") if shutil.which(name)), None)


@pytest.mark.parametrize(
    "i",
    [pytest.param(i, marks=() if n % 9 == 0 else pytest.mark.slow) for n, i in enumerate(UNITS)],
    ids=lambda i: i.label,
)
def test_the_device_code_compiles(i: Instruction, tmp_path: Path) -> None:
    """To the instruction of the name."""
    if CLANG is None:
        pytest.skip("no clang of 17 or later on PATH")
    (tmp_path / "hip").mkdir()
    (tmp_path / "hip" / "hip_runtime.h").write_text(_HIP)
    (tmp_path / "x.hip").write_text(program_of(i, here=False).source)
    target = TARGETS[i.architecture]
    command = [
        CLANG,
        "-x",
        "hip",
        "--cuda-device-only",
        "-nogpulib",
        "-nogpuinc",
        f"--offload-arch={target}",
        "-I.",
    ]
    command += ["-O1", "-Werror", "-S", "-o", "x.s", "x.hip"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    unknown = f"unsupported HIP gpu architecture: {target}", f"invalid target ID '{target}'"
    if done.returncode and any(text in done.stderr for text in unknown):
        pytest.skip(f"this clang does not know {target}")
    assert done.returncode == 0, done.stderr[:3000]
    assert re.findall(r"v_mfma\S+", (tmp_path / "x.s").read_text()) == [i.name]


# ---- on an emulated GPU ----------------------------------------------------------------------------------------

EMULATED = [
    cdna1["v_mfma_f32_32x32x2bf16"],
    cdna1["v_mfma_f32_16x16x8bf16"],
    cdna2["v_mfma_f64_16x16x4f64"],
    cdna2["v_mfma_f64_4x4x4f64"],
    cdna2["v_mfma_f32_16x16x1f32"],
    cdna2["v_mfma_f32_4x4x4f16"],
    cdna3["v_mfma_f32_32x32x8_f16"],
    cdna3["v_mfma_f32_16x16x8_xf32"],
    cdna3["v_mfma_f32_32x32x16_fp8_bf8"],
]

#: A wave of 64 threads; the built-in function looks up in tables what a lane holds, and adds whole numbers, each
#: product with the weight of its place.
_GPU = r"""
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <thread>
#include <vector>
#define __global__
#define __device__ static
struct Index { unsigned x; };
static thread_local Index threadIdx, blockIdx;
static pthread_barrier_t wave;
template <typename F, typename... Args> void launch(int blocks, int lanes, F kernel, Args... args) {
    pthread_barrier_init(&wave, nullptr, lanes);
    std::vector<std::thread> threads;
    for (int lane = 0; lane < lanes; ++lane)
        threads.emplace_back([=] {
            threadIdx.x = lane;
            for (blockIdx.x = 0; blockIdx.x < unsigned(blocks); ++blockIdx.x) {
                kernel(args...);
                pthread_barrier_wait(&wave);
            }
        });
    for (auto &thread : threads) thread.join();
}
enum hipError_t { hipSuccess, hipErrorNoDevice };
enum { hipMemcpyHostToDevice, hipMemcpyDeviceToHost };
struct hipDeviceProp_t { char name[16], gcnArchName[32]; };
static const char *hipGetErrorString(hipError_t) { return "no device"; }
static hipError_t hipGetDeviceProperties(hipDeviceProp_t *gpu, int) {
    strcpy(gpu->name, "emulated");
    strcpy(gpu->gcnArchName, getenv("TARGET"));
    return *gpu->gcnArchName ? hipSuccess : hipErrorNoDevice;
}
static hipError_t hipDriverGetVersion(int *version) { *version = 6; return hipSuccess; }
static hipError_t hipMalloc(void **p, size_t size) { *p = malloc(size); return hipSuccess; }
static hipError_t hipMemcpy(void *to, const void *from, size_t size, int) { memcpy(to, from, size); return hipSuccess; }
static hipError_t hipGetLastError() { return hipSuccess; }
static hipError_t hipDeviceSynchronize() { return hipSuccess; }

struct Unit { int m, k, blocks, factors, results, factor_bytes, result_bytes; const int *a, *b, *d; };
static unsigned char held_x[64][64], held_y[64][64], held_z[64][256];
static uint64_t from_bytes(const unsigned char *p, int bytes) { uint64_t x = 0; memcpy(&x, p, bytes); return x; }
template <typename X, typename Z> Z multiply(const Unit &u, X x, X y, Z z) {
    const int lane = threadIdx.x;
    memcpy(held_x[lane], &x, sizeof x);
    memcpy(held_y[lane], &y, sizeof y);
    memcpy(held_z[lane], &z, sizeof z);
    pthread_barrier_wait(&wave);
    if (lane == 0) {
        static uint64_t A[16][32][32], B[16][32][32], D[16][32][32];
        for (int l = 0; l < 64; ++l) {
            for (int i = 0; i < u.factors; ++i) {
                const int *p = u.a + 3 * (l * u.factors + i), *q = u.b + 3 * (l * u.factors + i);
                A[p[0]][p[1]][p[2]] = from_bytes(held_x[l] + i * u.factor_bytes, u.factor_bytes);
                B[q[0]][q[1]][q[2]] = from_bytes(held_y[l] + i * u.factor_bytes, u.factor_bytes);
            }
            for (int i = 0; i < u.results; ++i) {
                const int *p = u.d + 3 * (l * u.results + i);
                D[p[0]][p[1]][p[2]] = from_bytes(held_z[l] + i * u.result_bytes, u.result_bytes);
            }
        }
        for (int block = 0; block < u.blocks; ++block)
            for (int i = 0; i < u.m; ++i)
                for (int j = 0; j < u.m; ++j)
                    for (int k = 0; k < u.k; ++k) D[block][i][j] += (k + 1) * A[block][i][k] * B[block][k][j];
        for (int l = 0; l < 64; ++l)
            for (int i = 0; i < u.results; ++i) {
                const int *p = u.d + 3 * (l * u.results + i);
                memcpy(held_z[l] + i * u.result_bytes, &D[p[0]][p[1]][p[2]], u.result_bytes);
            }
    }
    pthread_barrier_wait(&wave);
    memcpy(&z, held_z[lane], sizeof z);
    return z;
}
"""


def described(unit: Mfma) -> tuple[list[int], list[int], list[int]]:
    """(block, row, column) of what each lane holds of A, B and D, as AMD's lab notes describe it in words."""
    m, blocks, wide = unit.m, unit.blocks, unit.d is fp64

    def factor(lane: int, i: int) -> tuple[int, int, int]:  # block, line, k
        line = lane % m
        if m == 4 and wide:  # lanes 0-15 have the first column of each of four matrices, 4 lanes each
            return lane % 16 // 4, line, lane // 16
        if blocks > 1:  # m lanes have a matrix each, an element for each column
            return lane // m, line, i
        return 0, line, lane // m * unit.factors + i  # groups of m lanes skip as many columns as a lane has

    def result(lane: int, i: int) -> tuple[int, int, int]:
        if wide:
            if m == 4:  # lanes 0-15 cover the first row of each of the four
                return lane % 16 // 4, lane // 16, lane % 4
            return 0, 4 * i + lane // 16, lane % 16  # consecutive registers skip 4 rows
        if m == 4:  # consecutive registers are rows; 4 lanes have a matrix
            return lane // 4, i, lane % 4
        if m == 16:  # 4 registers have a matrix; groups of 16 lanes skip 4 rows
            return i // 4, i % 4 + 4 * (lane // 16), lane % 16
        # 16 registers have a matrix, 4 of them 8 rows; the last 32 lanes skip 4 rows
        return i // 16, i % 4 + 4 * (lane // 32) + 8 * (i % 16 // 4), lane % 32

    a, b, d = [], [], []
    for lane in range(64):
        for i in range(unit.factors):
            block, line, k = factor(lane, i)
            a += [block, line, k]
            b += [block, k, line]
        for i in range(unit.results):
            d += result(lane, i)
    return a, b, d


def emulated_program(i: Instruction, namespace: str) -> str:
    source, unit = program_of(i, here=False).source, mfma_of(i)
    source, includes = re.subn(r"(?m)^#include .*$", "", source)
    source, launches = re.subn(r"kernel<<<n, 64>>>\(", "launch(n, 64, kernel, ", source)
    call = f"{unit.builtin}(x, y, z, 0, 0, 0)"
    assert (includes, launches, source.count(call)) == (5, 1, 1)
    source = source.replace(call, "multiply(unit, x, y, z)").replace("_Float16", "uint16_t")
    tables = zip("abd", described(unit), strict=True)
    text = "".join(f"static const int of_{x}[] = {{{', '.join(map(str, table))}}};\n" for x, table in tables)
    sizes = [
        unit.m,
        unit.k,
        unit.blocks,
        unit.factors,
        unit.results,
        unit.a.word_bits // 8,
        unit.d.word_bits // 8,
    ]
    text += f"static const Unit unit = {{{', '.join(map(str, sizes))}, of_a, of_b, of_d}};\n"
    target = f"__{TARGETS[i.architecture]}__"
    return f"#define {target}\nnamespace {namespace} {{\n{text}{source}\n}}\n#undef {target}\n#undef CHECK\n"


Runner = Callable[..., "subprocess.CompletedProcess[bytes]"]


@pytest.fixture(scope="module")
def emulate(tmp_path_factory: pytest.TempPathFactory) -> Runner:
    text = [_GPU, *(emulated_program(i, f"program_{n}") for n, i in enumerate(EMULATED))]
    every = compiled(tmp_path_factory, text, len(EMULATED), "-O1")

    def run(i: Instruction, rows: bytes, target: str | None = None) -> Any:
        environment = os.environ | {
            "TARGET": f"{TARGETS[i.architecture]}:sramecc+" if target is None else target
        }
        command = [every, str(EMULATED.index(i))]
        return subprocess.run(
            command, env=environment, input=rows, capture_output=True, timeout=60, check=False
        )

    return run


def expected(i: Instruction, records: NDArray[Any]) -> list[int]:
    found = []
    for row in records:
        terms = ((k + 1) * int(row["a"][k]) * int(row["b"][k]) for k in range(i.k))
        found.append(sum(terms, int(row["c"])) % i.d_format.codes)
    return found


@pytest.mark.parametrize("i", EMULATED, ids=lambda i: i.label)
def test_rows_reach_every_place(emulate: Runner, i: Instruction, tmp_path: Path) -> None:
    rows = i.m * i.n * mfma_of(i).blocks + 20
    done = emulate(i, b"".join(stream(i, rows, 0)))
    assert done.returncode == 0, done.stderr
    (tmp_path / "out").write_bytes(done.stdout)
    outputs = read_outputs(tmp_path / "out")
    (records,) = outputs.blocks()
    assert records["d"].tolist() == expected(i, records)
    assert outputs.ran_on["device"] == "emulated"
    assert len(set(records["d"].tolist())) > rows / 4


@pytest.mark.parametrize(
    ("target", "why"),
    [
        ("gfx906", "cdna2 v_mfma_f64_4x4x4f64: this GPU (emulated, gfx906) is no cdna2 (gfx90a)"),
        ("", "hipGetDeviceProperties(&gpu, 0) failed: no device"),
    ],
)
def test_another_gpu_or_none_is_said(emulate: Runner, target: str, why: str) -> None:
    i = cdna2["v_mfma_f64_4x4x4f64"]
    done = emulate(i, b"".join(stream(i, 1, 0)), target)
    assert (done.returncode, done.stderr.decode().strip()) == (2, why)
