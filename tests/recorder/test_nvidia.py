"""Programs for NVIDIA's GPUs: assembled where nvcc is, and run on an emulated GPU, which checks where rows are put."""

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
from support.emulated_gpu import ASM, RUNTIME, compiled, emulated_asm, emulated_unit

from mmaformal import ARCHITECTURES
from mmaformal.formats import e2m1
from mmaformal.instruction import Instruction
from mmaformal.mma import MMAS, mma_of
from mmaformal.recorder import RecorderError, program_of, record, write_program
from mmaformal.recorder.nvidia import GENERATIONS, mma_kernel
from mmaformal.recorder.rows import Outputs, RowLayout, read_outputs, stream
from mmaformal.wgmma import Wgmma, wgmma_of

RTX, HOPPER = ARCHITECTURES["rtx_blackwell"], ARCHITECTURES["hopper"]
GPUS = [i for name in GENERATIONS for i in ARCHITECTURES[name]]


def has_program(i: Instruction) -> bool:
    try:
        return bool(program_of(i, here=False))
    except RecorderError:
        return False


def test_every_instruction_but_tcgen05_has_a_program() -> None:
    without = [i for i in GPUS if not has_program(i)]
    assert {i.name.partition(".")[0] for i in without} == {"UTCHMMA", "UTCQMMA", "UTCOMMA", "OMMA"}
    assert [i.name for i in without if i.name.startswith("OMMA")] == ["OMMA.SF.16864.F32.E2M1.E2M1.E8.4X"]
    with pytest.raises(RecorderError, match=r"OMMA.* there is no program for it: PTX has blocks of 16"):
        program_of(RTX["OMMA.SF.16864.F32.E2M1.E2M1.E8.4X"], here=False)


def test_the_ptx_is_the_instructions_own() -> None:
    for i in HOPPER:
        unit = wgmma_of(i)
        if unit is None:
            assert mma_of(i).ptx in program_of(i, here=False).source
        else:
            short = unit.ptx.replace(".mma_async.sync.aligned", "")
            assert short in i.aliases
            assert f"{unit.ptx} " in program_of(i, here=False).source


@pytest.mark.parametrize("architecture", GENERATIONS)
def test_programs_name_a_target(architecture: str, tmp_path: Path) -> None:
    i = next(iter(ARCHITECTURES[architecture]))
    carried = write_program(i, tmp_path, rows=1)
    assert (
        f"nvcc -O2 -arch=sm_{GENERATIONS[architecture].first} -o record {i.name}.cu && ./record"
        in carried.command
    )


# ---- compilation -----------------------------------------------------------------------------------------------

needs_nvcc = pytest.mark.skipif(shutil.which("nvcc") is None, reason="nvcc is not on PATH")
WGMMAS = [i for i in HOPPER if wgmma_of(i)]


@needs_nvcc
@pytest.mark.parametrize(
    "i",
    [
        HOPPER["HGMMA.64x8x16.F32"],
        *(pytest.param(i, marks=pytest.mark.slow) for i in [*WGMMAS, HOPPER["HGMMA.64x256x16.F16"]]),
    ],
    ids=lambda i: i.name,
)
def test_wgmma_assembles(i: Instruction, tmp_path: Path) -> None:
    text = f"#include <cstdint>\nenum {{ K = {i.k} }};\n{RowLayout(i).c_struct}\n{mma_kernel(i).text}"
    (tmp_path / "kernel.cu").write_text(text)
    command = ["nvcc", "-arch=sm_90a", "-cubin", "-keep", "-Werror", "all-warnings", "kernel.cu"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    unit = wgmma_of(i)
    assert unit is not None
    assert f"{unit.ptx} " in (tmp_path / "kernel.ptx").read_text()  # the guard has not left it out


@needs_nvcc
@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in GENERATIONS if name != "volta"])
def test_a_program_of_each_architecture_compiles(name: str, tmp_path: Path) -> None:
    """The last instruction of each compiles: with block scales, if there are any.  (nvcc 13 knows no Volta.)"""
    i = [each for each in ARCHITECTURES[name] if has_program(each)][-1]
    program = program_of(i, here=False)
    (tmp_path / "x.cu").write_text(program.source)
    command = program.build("x.cu", "x")
    done = subprocess.run(
        [*command, "-Werror", "all-warnings"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


@needs_nvcc
def test_no_gpu_is_said_in_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    with pytest.raises(RecorderError, match=r"^cudaGetDeviceProperties\(&gpu, 0\) failed: [^\n]*$"):
        record(ARCHITECTURES["ampere"]["HMMA.1688.F32"], tmp_path / "x.npz", rows=100)


def test_no_nvcc_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(
        RecorderError, match="needs an NVIDIA GPU and nvcc, and there is no nvcc here: --source"
    ):
        record(HOPPER["HMMA.1688.F32"], tmp_path / "x.npz")


# ---- on an emulated GPU ----------------------------------------------------------------------------------------

#: Every way to load, pack, scale and store; m64n16 has two core matrices along N.
EMULATED = [
    ARCHITECTURES["turing"]["HMMA.884.F32.F16"],
    HOPPER["HMMA.1688.F16"],
    HOPPER["HMMA.1684.F32.TF32"],
    HOPPER["DMMA.16x8x8"],
    HOPPER["mma.m16n8k32.f32.e5m2.e4m3.f32"],
    RTX["QMMA.16832.F16.E2M1.E3M2"],
    RTX["QMMA.SF.16832.F32.E4M3.E2M3.E8"],
    RTX["OMMA.SF.16864.F32.E2M1.E2M1.UE4M3.4X"],
    HOPPER["HGMMA.64x8x16.F32.BF16"],
    HOPPER["HGMMA.64x16x16.F16"],
    HOPPER["HGMMA.64x8x8.F32.TF32"],
    HOPPER["QGMMA.64x8x32.F16.E4M3.E5M2"],
]

#: wgmma by the text of the PTX ISA: what a thread holds is looked up in tables, B lies in core matrices of 8 rows of 16
#: bytes, whose distances along K and N are in the descriptor.
_WGMMA = """
#define __shared__ static
#define __syncthreads() pthread_barrier_wait(&warp)
static unsigned char *shared_memory;
enum { SHARED = 0x1400 };  // where it lies, as a descriptor says it
static uint64_t __cvta_generic_to_shared(unsigned char *p) { shared_memory = p; return SHARED; }
static unsigned char held_a[128][64], held_d[128][1024];
static uint64_t from_bytes(const unsigned char *p, int bytes) { uint64_t x = 0; memcpy(&x, p, bytes); return x; }
template <typename D, typename A>
void wgmma(int n, int k, int a_bytes, int d_bytes, const int *a_of, const int *d_of, D &d, const A &a, uint64_t b) {
    memcpy(held_a[threadIdx.x], a, sizeof a);
    memcpy(held_d[threadIdx.x], d, sizeof d);
    pthread_barrier_wait(&warp);
    if (threadIdx.x == 0) {
        static uint64_t A_[64][64], C_[64][256];
        const int each_a = 64 * k / 128, each_d = 64 * n / 128;
        for (int t = 0; t < 128; ++t) {
            for (int i = 0; i < each_a; ++i) {
                const int *p = a_of + 2 * (t * each_a + i);
                A_[p[0]][p[1]] = from_bytes(held_a[t] + i * a_bytes, a_bytes);
            }
            for (int i = 0; i < each_d; ++i) {
                const int *p = d_of + 2 * (t * each_d + i);
                C_[p[0]][p[1]] = from_bytes(held_d[t] + i * d_bytes, d_bytes);
            }
        }
        const uint64_t start = (b & 0x3FFF) << 4, leading = (b >> 16 & 0x3FFF) << 4, stride = (b >> 32 & 0x3FFF) << 4;
        for (int t = 0; t < 128; ++t)
            for (int i = 0; i < each_d; ++i) {
                const int *p = d_of + 2 * (t * each_d + i);
                uint64_t sum = C_[p[0]][p[1]];
                for (int x = 0; x < k; ++x) {
                    const int byte = x * a_bytes;
                    uint64_t at = start - SHARED + p[1] / 8 * stride + byte / 16 * leading;
                    at += p[1] % 8 * 16 + byte % 16;
                    sum += (x + 1) * A_[p[0]][x] * from_bytes(shared_memory + at, a_bytes);
                }
                memcpy(held_d[t] + i * d_bytes, &sum, d_bytes);
            }
    }
    pthread_barrier_wait(&warp);
    memcpy(d, held_d[threadIdx.x], sizeof d);
}
"""

_WGMMA_ASM = re.compile(
    r'asm volatile\("\{\\n".*?"(?P<ptx>wgmma\.mma_async\S+) "\s*"(?P<operands>[^"]*), add, (?P<flags>[^"]*);\\n"'
    r"(?P<rest>.*?)\);\n    for",
    re.DOTALL,
)


def printed_wgmma(unit: Wgmma) -> tuple[list[int], list[int]]:
    """Rows and columns of what each thread holds of A and of D, by the formulas of "Register Fragments"."""

    def a(t: int, i: int) -> tuple[int, int]:
        group, in_group, warp = t % 32 // 4, t % 4, t // 32
        if unit.a.word_bits == 32:
            return 16 * warp + (group if i in (0, 2) else group + 8), in_group if i in (
                0,
                1,
            ) else in_group + 4
        if unit.a.word_bits == 16:
            row = group if i in (0, 1, 4, 5) else group + 8
            return 16 * warp + row, in_group * 2 + (i & 1) + (0 if i < 4 else 8)
        row = group if 0 <= i < 4 or 8 <= i < 12 else group + 8
        return 16 * warp + row, in_group * 4 + (i & 3) + (0 if i < 8 else 16)

    def d(t: int, i: int) -> tuple[int, int]:
        group, in_group, warp = t % 32 // 4, t % 4, t // 32
        return 16 * warp + (group if i % 4 in (0, 1) else group + 8), 8 * (i // 4) + in_group * 2 + (i & 1)

    return (
        [x for t in range(128) for i in range(unit.k // 2) for x in a(t, i)],
        [x for t in range(128) for i in range(unit.n // 2) for x in d(t, i)],
    )


def emulated_program(i: Instruction, namespace: str) -> str:
    """The program in a namespace, its CUDA spelled for the emulated GPU."""
    source = program_of(i, here=False).source
    source, includes = re.subn(r"(?m)^#include .*$", "", source)
    source, launches = re.subn(r"(\S*kernel)<<<n, (\d+)>>>\(", r"launch_blocks(n, \2, \1, ", source)
    assert (includes, launches) == (5, 1)
    unit, tables = wgmma_of(i), ""
    if unit is None:
        source, found = ASM.subn(emulated_asm, source)
    else:
        of_a, of_d = (", ".join(map(str, x)) for x in printed_wgmma(unit))
        tables = f"static const int of_a[] = {{{of_a}}}, of_d[] = {{{of_d}}};\n"
        source = source.replace('asm volatile("fence.proxy.async.shared::cta;" ::: "memory");', "")
        sizes = f"{unit.n}, {unit.k}, {unit.a.word_bits // 8}, {unit.d.word_bits // 8}"
        source, found = _WGMMA_ASM.subn(f"wgmma({sizes}, of_a, of_d, d, a, b);\n    for", source)
    assert (found, source.count("asm volatile")) == (1, 0)
    capability = 10 * GENERATIONS[i.architecture].first
    feature = "__CUDA_ARCH_FEAT_SM90_ALL" if unit else "__CUDA_ARCH_FAMILY_SPECIFIC__"
    return (
        f"#define __CUDA_ARCH__ {capability}\n#define {feature} 1\nnamespace {namespace} {{\n{tables}{source}\n}}\n"
        f"#undef __CUDA_ARCH__\n#undef {feature}\n#undef CHECK\n"
    )


Runner = Callable[..., "subprocess.CompletedProcess[bytes]"]


@pytest.fixture(scope="module")
def emulate(tmp_path_factory: pytest.TempPathFactory) -> Runner:
    text = ["#include <stdint.h>", RUNTIME, _WGMMA, *(emulated_unit(n, mma) for n, mma in enumerate(MMAS))]
    text += [emulated_program(i, f"program_{n}") for n, i in enumerate(EMULATED)]
    every = compiled(tmp_path_factory, text, len(EMULATED))

    def run(i: Instruction, rows: bytes, capability: int | None = None, fails: str = "") -> Any:
        first = GENERATIONS[i.architecture].first
        environment = os.environ | {"CAPABILITY": str(capability or first), "FAILS": fails}
        return subprocess.run(
            [every, str(EMULATED.index(i))],
            env=environment, input=rows, capture_output=True, timeout=60, check=False,
        )  # fmt: skip

    return run


def expected(i: Instruction, records: NDArray[Any]) -> list[int]:
    """Return what the emulated unit makes of rows."""
    found = []
    padded = e2m1 if i.k == 32 else None  # in the central bits of its byte
    for row in records:
        d = int(row["c"])
        for k in range(i.k):
            a = int(row["a"][k]) << 2 * (i.a_format is padded)
            term = (k + 1) * a * (int(row["b"][k]) << 2 * (i.b_format is padded))
            if i.spec.scales:
                block = k // i.spec.scale_block
                term *= 3 * int(row["scale_a"][block]) + int(row["scale_b"][block])
            d += term
        found.append(d % i.d_format.codes)
    return found


def outputs_of(done: Any, folder: Path) -> Outputs:
    assert done.returncode == 0, done.stderr
    (folder / "out").write_bytes(done.stdout)
    return read_outputs(folder / "out")


@pytest.mark.parametrize("i", EMULATED, ids=lambda i: i.label)
def test_rows_reach_every_place(emulate: Runner, i: Instruction, tmp_path: Path) -> None:
    rows = i.m * i.n + 20 if i.m < 64 else 75 * i.n // 2  # of wgmma, more than half of the columns
    outputs = outputs_of(emulate(i, b"".join(stream(i, rows, 0))), tmp_path)
    (records,) = outputs.blocks()
    assert records["d"].tolist() == expected(i, records)
    assert outputs.ran_on["device"] == "emulated"
    assert len(set(records["d"].tolist())) > rows / 3


def test_another_generation_is_refused(emulate: Runner) -> None:
    done = emulate(HOPPER["HMMA.1688.F16"], b"".join(stream(HOPPER["HMMA.1688.F16"], 1, 0)), 80)
    assert done.returncode == 2
    assert done.stderr.decode().strip() == (
        "hopper HMMA.1688.F16: this GPU (emulated, compute capability 8.0) is no hopper (compute capability 9.0)"
    )


@pytest.mark.parametrize(
    ("fails", "advice"), [("cudaGetDeviceProperties", "CUDA_VISIBLE_DEVICES"), ("launch", "compile again")]
)
def test_cuda_errors_say_what_to_do(emulate: Runner, fails: str, advice: str) -> None:
    i = HOPPER["HMMA.1688.F16"]
    done = emulate(i, b"".join(stream(i, 1, 0)), None, fails)
    assert (done.returncode, advice in done.stderr.decode()) == (2, True)
