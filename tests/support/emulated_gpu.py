"""A GPU, emulated: g++ with a small stand-in for the CUDA runtime, where the threads of a block are threads.

`mma.sync` unpacks their registers by the layouts as the PTX ISA prints them (transcribed here, apart from the formulas
under test).  Its arithmetic is deliberately no matrix unit's: integers, with a weight for each position, so that a
misplaced element changes the result.  What it checks is the program, not a model.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from mmaformal.formats import fp16, fp32
from mmaformal.mma import MMAS, Mma

Position = Callable[[int, int], tuple[int, int]]  # (lane, i) → (row, column)


def printed_layouts(mma: Mma) -> dict[str, Position]:
    """The formulas of the PTX ISA's sections "Matrix Fragments for mma.…", case by case as they are printed."""
    if mma.by_quadpair:

        def line(lane: int) -> int:
            return lane % 4 if lane < 16 else (lane % 4) + 4

        def c_f32(lane: int, i: int) -> tuple[int, int]:
            x = (lane & 0b1) + (i & 0b10)
            return x if lane < 16 else x + 4, (i & 0b100) + (lane & 0b10) + (i & 0b1)

        def c_f16(lane: int, i: int) -> tuple[int, int]:
            return line(lane), i

        accumulator = {fp16: c_f16, fp32: c_f32}
        return {
            "a": lambda lane, i: (line(lane), i),
            "b": lambda lane, i: (i, line(lane)),
            "c": accumulator[mma.c],
            "d": accumulator[mma.d],
        }

    def grouped(position: Callable[[int, int, int], tuple[int, int]]) -> Position:
        return lambda lane, i: position(lane >> 2, lane % 4, i)

    tf32_k4 = (lambda g, t, i: (g if i == 0 else g + 8, t), lambda g, t, i: (t, g))
    tf32_k8 = (
        lambda g, t, i: (g if i in (0, 2) else g + 8, t if i in (0, 1) else t + 4),
        lambda g, t, i: (t if i == 0 else t + 4, g),
    )
    a, b = {
        # (m, k, bits of a container): A, B
        (8, 4, 64): (lambda g, t, i: (g, t), lambda g, t, i: (t, g)),
        (16, 4, 32): tf32_k4,
        (16, 4, 64): tf32_k4,
        (16, 8, 32): tf32_k8,
        (16, 8, 64): tf32_k8,
        (16, 16, 64): (
            lambda g, t, i: (g if i % 2 == 0 else g + 8, (i * 2) + t if i % 2 == 0 else (i * 2) - 2 + t),
            lambda g, t, i: (t + (i * 4), g),
        ),
        (16, 8, 16): (
            lambda g, t, i: (g if i in (0, 1) else g + 8, t * 2 + (i & 0x1)),
            lambda g, t, i: ((t * 2) + i, g),
        ),
        (16, 16, 16): (
            lambda g, t, i: (
                g if 0 <= i < 2 or 4 <= i < 6 else g + 8,
                (t * 2) + (i & 0x1) if i < 4 else (t * 2) + (i & 0x1) + 8,
            ),
            lambda g, t, i: ((t * 2) + (i & 0x1) if i < 2 else (t * 2) + (i & 0x1) + 8, g),
        ),
        (16, 16, 8): (
            lambda g, t, i: (g if i < 4 else g + 8, (t * 4) + (i & 0x3)),
            lambda g, t, i: ((t * 4) + i, g),
        ),
        (16, 32, 8): (
            lambda g, t, i: (
                g if 0 <= i < 4 or 8 <= i < 12 else g + 8,
                (t * 4) + (i & 0x3) if i < 8 else (t * 4) + (i & 0x3) + 16,
            ),
            lambda g, t, i: ((t * 4) + (i & 0x3) if i < 4 else (t * 4) + (i & 0x3) + 16, g),
        ),
        (16, 64, 4): (
            lambda g, t, i: (
                g if 0 <= i < 8 or 16 <= i < 24 else g + 8,
                (t * 8) + (i & 0x7) if i < 16 else (t * 8) + (i & 0x7) + 32,
            ),
            lambda g, t, i: ((t * 8) + (i & 0x7) if i < 8 else (t * 8) + (i & 0x7) + 32, g),
        ),
    }[mma.m, mma.k, container_bits(mma, "a")]

    def c(g: int, t: int, i: int) -> tuple[int, int]:
        return g if i < 2 else g + 8, (t * 2) + (i & 0x1)

    layouts = {"a": grouped(a), "b": grouped(b), "c": grouped(c), "d": grouped(c)}
    if mma.scale:  # "Block Scaling for mma.sync", its figures on the selection by thread-id
        layouts["scale_a"] = grouped(lambda g, t, i: (g if t in (0, 2) else g + 8, i))
        layouts["scale_b"] = grouped(lambda g, t, i: (i, g))
    return layouts


def container_bits(mma: Mma, name: str) -> int:
    """Bits from one element to the next in a register; the k64 instructions pack e2m1 without padding."""
    return 4 if mma.k == 64 and name in ("a", "b") else mma.format(name).word_bits


def is_read(lane: int, name: str) -> bool:
    """Whether a lane contributes to an operand: not every one does to the scales, with selectors {0, 0}."""
    return lane % 4 in {"scale_a": (0, 1), "scale_b": (0,)}.get(name, (0, 1, 2, 3))


def shapes(mma: Mma) -> dict[str, tuple[int, int]]:
    plain = {"a": (mma.m, mma.k), "b": (mma.k, mma.n), "c": (mma.m, mma.n), "d": (mma.m, mma.n)}
    return plain | ({"scale_a": (mma.m, mma.scales), "scale_b": (mma.scales, mma.n)} if mma.scale else {})


RUNTIME = r"""
#include <pthread.h>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

enum cudaError_t {
    cudaSuccess, cudaErrorNoDevice, cudaErrorInsufficientDriver, cudaErrorNoKernelImageForDevice,
    cudaErrorMemoryAllocation
};
enum { cudaMemcpyHostToDevice, cudaMemcpyDeviceToHost };
struct cudaDeviceProp { char name[16]; int major, minor; };
static cudaError_t outcome(const char *call, cudaError_t failure) {
    return !strcmp(getenv("FAILS"), call) ? failure : cudaSuccess;
}
static const char *cudaGetErrorString(cudaError_t) { return "emulated"; }
static const char *cudaGetErrorName(cudaError_t) { return "emulated"; }
static cudaError_t cudaGetDeviceProperties(cudaDeviceProp *gpu, int) {
    const int capability = atoi(getenv("CAPABILITY"));
    strcpy(gpu->name, "emulated");
    gpu->major = capability / 10;
    gpu->minor = capability % 10;
    return outcome("cudaGetDeviceProperties", cudaErrorNoDevice);
}
template <typename T> cudaError_t cudaMalloc(T **p, size_t size) {
    *p = (T *)malloc(size);
    return outcome("cudaMalloc", cudaErrorMemoryAllocation);
}
static cudaError_t cudaMemcpy(void *to, const void *from, size_t size, int) {
    memcpy(to, from, size);
    return cudaSuccess;
}
static cudaError_t cudaFree(void *p) { free(p); return cudaSuccess; }
static cudaError_t cudaGetLastError() { return outcome("launch", cudaErrorNoKernelImageForDevice); }
static cudaError_t cudaDriverGetVersion(int *version) { *version = 13000; return cudaSuccess; }
static cudaError_t cudaDeviceSynchronize() { return cudaSuccess; }
template <typename To, typename From> To cast(From from) { To to; memcpy(&to, &from, sizeof to); return to; }
#define __uint_as_float cast<float, uint32_t>
#define __float_as_uint cast<uint32_t, float>
#define __longlong_as_double cast<double, uint64_t>
#define __double_as_longlong cast<uint64_t, double>
#define __global__
#define __device__ static

struct Index { int x; };
static thread_local Index threadIdx, blockIdx;
static pthread_barrier_t warp;
template <typename F, typename... Args> void launch_blocks(int blocks, int threads, F kernel, Args... args) {
    pthread_barrier_init(&warp, nullptr, threads);
    std::vector<std::thread> lanes;
    for (int lane = 0; lane < threads; ++lane)
        lanes.emplace_back([=] {
            threadIdx.x = lane;
            for (blockIdx.x = 0; blockIdx.x < blocks; ++blockIdx.x) {
                kernel(args...);
                pthread_barrier_wait(&warp);
            }
        });
    for (auto &lane : lanes) lane.join();
}
template <typename F, typename... Args> void launch(F kernel, Args... args) {
    launch_blocks(1, 32, kernel, args...);
}

struct Operand {
    int bits, count;      // of an element; how many of them a lane holds
    const int *position;  // row and column of each, lane by lane; row -1: not read
    unsigned char registers[32][64];
    uint64_t matrix[4][64 * 64];
    template <typename Use> void each(bool quadpairs, Use use) {
        for (int lane = 0; lane < 32; ++lane)
            for (int i = 0; i < count; ++i) {
                const int *p = position + 2 * (lane * count + i);
                const int q = quadpairs ? lane / 4 % 4 : 0;
                if (p[0] >= 0)
                    use(registers[lane] + i * bits / 8, i * bits % 8, matrix[q][p[0] * 64 + p[1]]);
            }
    }
    void gather(bool quadpairs) {
        each(quadpairs, [this](unsigned char *from, int shift, uint64_t &to) {
            to = 0;
            memcpy(&to, from, (bits + 7) / 8);
            if (bits < 64) to = (to >> shift) & ((uint64_t(1) << bits) - 1);
        });
    }
    void scatter(bool quadpairs) {
        each(quadpairs, [this](unsigned char *to, int, uint64_t &from) { memcpy(to, &from, bits / 8); });
    }
};
struct Unit { int m, n, k, block; bool quadpairs; Operand a, b, c, d, scale_a, scale_b; };

template <typename T> void deposit(Operand &x, const T &registers) {
    memcpy(x.registers[threadIdx.x], registers, sizeof registers);
}
template <typename A, typename B, typename C, typename D>
void multiply(Unit &u, D &d, const A &a, const B &b, const C &c) {
    deposit(u.a, a);
    deposit(u.b, b);
    deposit(u.c, c);
    pthread_barrier_wait(&warp);
    if (threadIdx.x == 0) {
        for (Operand *x : {&u.a, &u.b, &u.c, &u.scale_a, &u.scale_b}) x->gather(u.quadpairs);
        for (int q = 0; q < (u.quadpairs ? 4 : 1); ++q)
            for (int i = 0; i < u.m; ++i)
                for (int j = 0; j < u.n; ++j) {
                    uint64_t sum = u.c.matrix[q][i * 64 + j];
                    for (int k = 0; k < u.k; ++k) {
                        uint64_t term = (k + 1) * u.a.matrix[q][i * 64 + k] * u.b.matrix[q][k * 64 + j];
                        if (u.block)
                            term *= 3 * u.scale_a.matrix[q][i * 64 + k / u.block]
                                    + u.scale_b.matrix[q][k / u.block * 64 + j];
                        sum += term;
                    }
                    u.d.matrix[q][i * 64 + j] = sum;
                }
        u.d.scatter(u.quadpairs);
    }
    pthread_barrier_wait(&warp);
    memcpy(d, u.d.registers[threadIdx.x], sizeof d);
}
template <typename A, typename B, typename C, typename D, typename S>
void multiply(Unit &u, D &d, const A &a, const B &b, const C &c, const S &scale_a, const S &scale_b) {
    deposit(u.scale_a, scale_a);
    deposit(u.scale_b, scale_b);
    multiply(u, d, a, b, c);
}
"""


def emulated_unit(number: int, mma: Mma) -> str:
    """C++ data of this `mma.sync`, with positions as the PTX ISA prints them."""
    lines, operands = [], []
    printed = printed_layouts(mma)
    for name in ("a", "b", "c", "d", "scale_a", "scale_b"):
        if name not in printed:
            operands.append("{8, 0, nullptr}")
            continue
        rows, cols = shapes(mma)[name]
        lanes = sum(is_read(lane, name) for lane in range(32)) // (4 if mma.by_quadpair else 1)
        count = rows * cols // lanes
        numbers = [
            str(x)
            for lane in range(32)
            for i in range(count)
            for x in (printed[name](lane, i) if is_read(lane, name) else (-1, -1))
        ]
        lines.append(f"static const int {name}_{number}[] = {{{', '.join(numbers)}}};")
        operands.append(f"{{{container_bits(mma, name)}, {count}, {name}_{number}}}")
    sizes = f"{mma.m}, {mma.n}, {mma.k}, {mma.scale_block}, {str(mma.by_quadpair).lower()}"
    lines.append(f"static Unit unit_{number} = {{{sizes}, {', '.join(operands)}}};")
    return "\n".join(lines)


ASM = re.compile(
    r'asm volatile\("(?P<ptx>\S+) "\s*"(?P<operands>[^"]*)"\s*"(?P<more>[^"]*);"(?P<constraints>[^;]*)\);'
)


def emulated_asm(asm: re.Match[str]) -> str:
    """The call that stands for an asm statement, with its operands read off it."""
    number = next(n for n, mma in enumerate(MMAS) if mma.ptx == asm["ptx"])
    bound = re.findall(r'"=?[rfd]"\((\w+)\[(\d+)\]\)', asm["constraints"])
    vectors = re.findall(r"\{([^}]*)\}|(%\d+)", asm["operands"] + asm["more"])
    names = []
    for vector in ((one or many).split(", ") for many, one in vectors):
        if vector != ["0", "0"]:  # the selectors of the scales
            registers = [bound[int(operand.removeprefix("%"))] for operand in vector]
            assert [int(r) for _, r in registers] == list(range(len(registers)))
            assert len({name for name, _ in registers}) == 1
            names.append(registers[0][0])
    assert sum(len((one or many).split(", ")) for many, one in vectors if many != "0, 0") == len(bound)
    return f"multiply(unit_{number}, {', '.join(names)});"


def compiled(factory: pytest.TempPathFactory, text: Sequence[str], programs: int, *options: str) -> Path:
    """Return a program that runs the n-th of those in the text, whose `main` is in the namespace `program_n`."""
    if shutil.which("g++") is None:
        pytest.skip("g++ is not on PATH")
    folder = factory.mktemp("emulated")
    table = ", ".join(f"program_{n}::main" for n in range(programs))
    main = f"int main(int, char **argv) {{ int (*all[])() = {{{table}}}; return all[atoi(argv[1])](); }}"
    (folder / "all.cpp").write_text("\n".join([*text, main]))
    command = ["g++", "-std=c++17", "-pthread", "-w", *options, "-o", "all", "all.cpp"]
    built = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr[:4000]
    return folder / "all"
