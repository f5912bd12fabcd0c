"""The CUDA program: fragment layouts against the PTX ISA, compilation where nvcc is, a run on an emulated GPU.

tests/support/emulated_gpu.py is that GPU.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from support.emulated_gpu import (
    ASM,
    RUNTIME,
    Position,
    compiled,
    emulated_asm,
    emulated_unit,
    is_read,
    printed_layouts,
    shapes,
)

from mmaformal.architectures import ARCHITECTURES
from mmaformal.architectures.base import canonical_name
from mmaformal.cuda import cuda_source, kernel_source
from mmaformal.encodings.fda import Fda
from mmaformal.formats import Format, e2m1, e4m3, fp16, fp32, fp64, ue8m0
from mmaformal.instruction import Instruction
from mmaformal.mma import MMAS, CudaUnavailableError, Mma, mma_of
from mmaformal.rounding import IEEE_FP64, RNE_FP16, RZ_FP32
from mmaformal.spec import DotAdd

HMMA = [i for arch in ARCHITECTURES.values() for i in arch if i.name.startswith("HMMA.")]
RHO = {fp16: RNE_FP16, fp32: RZ_FP32, fp64: IEEE_FP64}


@dataclass(frozen=True)
class Unmodelled(Fda):
    """Parameters of an instruction of which only shape and types matter; any types go."""

    @property
    def nan_is_canonical(self) -> bool:
        return False

    def check(self, spec: DotAdd) -> None:
        pass


def unmodelled(mma: Mma, name: str = "test") -> Instruction:
    parameters = Unmodelled(F=24, L=mma.k, rho=RHO[mma.d], e_zero=None)
    spec = DotAdd(mma.k, mma.a, mma.b, mma.c, mma.d, parameters, mma.scale, mma.scale_block)
    return Instruction(name, "test", mma.m, mma.n, spec)


def chain(mma: Mma, issues: int, name: str = "test") -> Instruction:
    return unmodelled(mma, name).chained(mma.k * issues)


def find(ptx: str) -> Mma:
    return next(mma for mma in MMAS if mma.ptx == f"mma.sync.aligned.{ptx}")


QUADPAIRS = find("m8n8k4.row.col.f32.f16.f16.f32")
SIXTEEN = find("m16n8k16.row.col.f32.f16.f16.f32")
BLOCKS_OF_32 = find("m16n8k64.row.col.kind::mxf4nvf4.block_scale.scale_vec::2X.f32.e2m1.e2m1.f32.ue8m0")


# ---- layouts -----------------------------------------------------------------------------------------------


def our_layouts(mma: Mma) -> dict[str, Position]:
    def position(row: str, col: str) -> Position:
        held = compile(f"({row}), ({col})", "fragment", "eval")  # text is compiled at each `eval`
        return lambda lane, i: eval(held, {"lane": lane, "i": i})

    return {name: position(fragment.row, fragment.col) for name, (fragment, _) in mma.fragments.items()}


@pytest.mark.parametrize("mma", MMAS, ids=lambda mma: mma.ptx)
def test_every_element_is_held_by_exactly_one_thread(mma: Mma) -> None:
    products = 4 if mma.by_quadpair else 1
    for name, position in our_layouts(mma).items():
        held = [
            ((lane // 4) % products, *position(lane, i))
            for lane in range(32)
            for i in range(mma.fragments[name][1])
            if is_read(lane, name)
        ]
        rows, cols = shapes(mma)[name]
        everything = {(q, r, c) for q in range(products) for r in range(rows) for c in range(cols)}
        assert len(held) == len(everything), name
        assert set(held) == everything, name


@pytest.mark.parametrize("mma", MMAS, ids=lambda mma: mma.ptx)
def test_layouts_are_those_of_the_ptx_isa(mma: Mma) -> None:
    ours, printed = our_layouts(mma), printed_layouts(mma)
    assert ours.keys() == printed.keys()
    for name, (_, count) in mma.fragments.items():
        for lane in range(32):
            for i in range(count):
                assert ours[name](lane, i) == printed[name](lane, i), (name, lane, i)


# ---- which instruction -------------------------------------------------------------------------------------


def ptx_names(instruction: Instruction) -> set[str]:
    """Return the names as the tables spell them; a lowered instruction has no other name."""
    names = map(canonical_name, (instruction.name, *instruction.aliases))
    return {name for name in names if name.startswith("mma.")}


def as_alias(mma: Mma) -> str:
    """The PTX as the tables spell it."""
    return canonical_name(mma.ptx)


@pytest.mark.parametrize("instruction", HMMA, ids=lambda i: i.label)
def test_every_hmma_row_has_its_ptx(instruction: Instruction) -> None:
    assert as_alias(mma_of(instruction)) in ptx_names(instruction)


def ptx_of(instruction: Instruction) -> str | None:
    try:
        return as_alias(mma_of(instruction))
    except CudaUnavailableError:
        return None


def test_a_row_of_the_tables_gets_its_own_ptx_or_none() -> None:
    rows = [instruction for architecture in ARCHITECTURES.values() for instruction in architecture]
    without = [i for i in rows if (ptx_of(i) not in ptx_names(i) if ptx_names(i) else ptx_of(i) is not None)]
    unverified = {(ue8m0, 16)}  # block scales that nvcc 13.0 does not assemble
    assert [i.label for i in without if (i.spec.scale_format, i.spec.scale_block) not in unverified] == []


def test_ptx_of_chained_and_hypothetical_instructions() -> None:
    hopper = ARCHITECTURES["hopper"]
    # Of the shape and types of HMMA.16816.F32, but two instructions on hardware, and other arithmetic.
    assert mma_of(hopper["HMMA.1688.F32"].chained(16)) is mma_of(hopper["HMMA.1688.F32"])
    assert mma_of(hopper["HMMA.16816.F32"].replace(F=30)) is mma_of(hopper["HMMA.16816.F32"])
    assert mma_of(hopper["HMMA.16816.F32"].chained(32).replace(F=30, name="mine")).k == 16


def like(
    name: str, architecture: str, m: int, n: int, k: int, a: Format, scale: Format | None = None
) -> Instruction:
    spec = DotAdd(k, a, a, fp32, fp32, Unmodelled(24, k, RZ_FP32, None), scale, 16 if scale else 0)
    return Instruction(name, architecture, m, n, spec)


@pytest.mark.parametrize(
    ("instruction", "why"),
    [
        (like("HGMMA.64x8x16.F32", "hopper", 64, 8, 16, fp16), "wgmma"),
        (like("QGMMA.64x8x32.F32.E4M3.E4M3", "hopper", 64, 8, 32, e4m3), "wgmma"),
        (like("UTCHMMA.F32", "blackwell", 64, 8, 16, fp16), "tcgen05"),
        (like("v_mfma_f32_16x16x16f16", "cdna3", 16, 16, 16, fp16), "AMD"),
        (like("E8.4X", "mine", 16, 8, 64, e2m1, ue8m0), r"ISA 9\.1"),
        (like("K=32", "mine", 16, 8, 32, fp16), r"k8 and k16.*\.chained\(K\)"),
        (like("m=7", "mine", 7, 8, 16, fp16), "no warp-level mma.sync has shape m7n8k16"),
    ],
    ids=lambda x: x.name if isinstance(x, Instruction) else "",
)
def test_instructions_without_mma_sync_say_why(instruction: Instruction, why: str) -> None:
    vector, scales = [0] * instruction.k, [127] * instruction.spec.scales
    with pytest.raises(CudaUnavailableError, match=rf"(?s){why}.*matrices\(\)"):
        cuda_source([(instruction, 0)], vector, vector, 0, scales, scales)


# ---- the source --------------------------------------------------------------------------------------------


def test_source_holds_the_case_and_the_models() -> None:
    volta = ARCHITECTURES["volta"]["HMMA.884.F32.F32"].chained(16)
    hopper = ARCHITECTURES["hopper"]["HMMA.16816.F32"]
    a, b = np.random.default_rng(0).integers(0, 1 << 16, (2, 16), dtype=np.uint16)
    source = cuda_source([(volta, 0x12345678), (hopper, 0x9ABCDEF0)], a, b, np.uint32(0x0BADF00D))
    for code in (*a, *b):
        assert f"0x{code:04x}" in source
    assert "case_c = 0x0badf00d;" in source
    assert '{"volta HMMA.884.F32.F32[K=16]", 0, 0x12345678, false}' in source
    assert '{"hopper HMMA.16816.F32", 1, 0x9abcdef0, false}' in source
    assert '"mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f32 "' in source
    assert '"mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "' in source
    assert "nvcc -arch=sm_80 " in source


def test_floats_are_taken_as_by_dot_add() -> None:
    ampere = ARCHITECTURES["ampere"]["HMMA.1688.F32"]
    a, b = np.arange(8, dtype=np.float16), np.ones(8, np.float16)
    as_floats = cuda_source([(ampere, 0)], a, b, np.float32(1.5))
    assert as_floats == cuda_source([(ampere, 0)], a.view(np.uint16), b.view(np.uint16), 0x3FC00000)


def test_names_cannot_break_out_of_the_source() -> None:
    named = ARCHITECTURES["ampere"]["HMMA.1688.F32"].replace(name='"\\\n#error')
    assert r'"ampere \"\\\n#error"' in cuda_source([(named, 0)], [0] * 8, [0] * 8, 0)


def test_wrong_arguments_are_refused() -> None:
    ampere = ARCHITECTURES["ampere"]
    f32, f16, k8 = ampere["HMMA.16816.F32"], ampere["HMMA.16816.F16"], ampere["HMMA.1688.F32"]
    zeros = [0] * 16
    with pytest.raises(ValueError, match="empty"):
        cuda_source([], zeros, zeros, 0)
    with pytest.raises(ValueError, match=r"K = 16.*K = 8.*chain"):
        cuda_source([(f32, 0), (k8, 0)], zeros, zeros, 0)
    with pytest.raises(ValueError, match="one case cannot be put to both"):
        cuda_source([(f32, 0), (f16, 0)], zeros, zeros, 0)
    with pytest.raises(ValueError, match="no fp16 code"):
        cuda_source([(f16, 0x10000)], zeros, zeros, 0)
    with pytest.raises(ValueError, match=r"a of shape \(16,\)"):
        cuda_source([(f32, 0)], zeros[1:], zeros, 0)
    with pytest.raises(ValueError, match=r"c of shape \(\)"):
        cuda_source([(f32, 0)], zeros, zeros, zeros)
    with pytest.raises(ValueError, match=r"scale_a of shape \(0,\)"):
        cuda_source([(f32, 0)], zeros, zeros, 0, [127], [127])
    with pytest.raises(ValueError, match=r"scale_b of shape \(2,\)"):
        cuda_source([(unmodelled(BLOCKS_OF_32), 0)], [0] * 64, [0] * 64, 0, [127, 127])
    with pytest.raises(TypeError, match="b is float64"):
        cuda_source([(f32, 0)], zeros, np.zeros(16), 0)


# ---- compilation -------------------------------------------------------------------------------------------

needs_nvcc = pytest.mark.skipif(shutil.which("nvcc") is None, reason="nvcc is not on PATH")


@needs_nvcc
@pytest.mark.parametrize("target", sorted({mma.target for mma in MMAS}))
def test_every_kernel_assembles(target: str, tmp_path: Path) -> None:
    known = subprocess.run(["nvcc", "--list-gpu-code"], capture_output=True, text=True, check=True).stdout
    if target.rstrip("a") not in known.split():
        pytest.skip(f"this nvcc does not know {target}")
    ours = [mma for mma in MMAS if mma.target == target]
    kernels = [kernel_source(mma, namespace=f"mma_{n}") for n, mma in enumerate(ours)]
    (tmp_path / "kernels.cu").write_text("#include <cstdint>\n" + "\n".join(kernels))
    command = ["nvcc", f"-arch={target}", "-cubin", "-keep", "-Werror", "all-warnings", "kernels.cu"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    ptx = (tmp_path / "kernels.ptx").read_text()
    assert [mma.ptx for mma in ours if f"{mma.ptx} " not in ptx] == []  # no guard has left one out


@needs_nvcc
def test_program_compiles_and_says_when_there_is_no_gpu(tmp_path: Path) -> None:
    volta = ARCHITECTURES["volta"]["HMMA.884.F32.F32"].chained(16)
    hopper = ARCHITECTURES["hopper"]["HMMA.16816.F32"]
    (tmp_path / "case.cu").write_text(cuda_source([(volta, 0), (hopper, 0)], [0] * 16, [0] * 16, 0))
    command = ["nvcc", "-arch=sm_80", "-Werror", "all-warnings", "-o", "case", "case.cu"]
    built = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert built.returncode == 0, built.stderr
    no_gpu = os.environ | {"CUDA_VISIBLE_DEVICES": ""}
    done = subprocess.run([tmp_path / "case"], env=no_gpu, capture_output=True, text=True)
    assert done.returncode == 2
    assert "cudaGetDeviceProperties(&gpu, 0) failed" in done.stderr
    assert "nvidia-smi" in done.stderr or "driver" in done.stderr


# ---- the program on an emulated GPU ------------------------------------------------------------------------


def emulated_source(source: str, arch: int, namespace: str) -> str:
    """The program with its CUDA spellings replaced, in a namespace, so that many make one executable."""
    source, includes = re.subn(r"(?m)^#include .*$", "", source)
    source, units = ASM.subn(emulated_asm, source)
    source, launches = re.subn(r"mma\.kernel<<<1, 32>>>\(", "launch(mma.kernel, ", source)
    assert includes == 7
    assert units == source.count("__global__")
    assert launches == 1
    family = "#define __CUDA_ARCH_FAMILY_SPECIFIC__ 1200\n" if arch == 1200 else ""
    return (
        f"#define __CUDA_ARCH__ {arch}\n{family}namespace {namespace} {{\n{source}\n}}\n"
        "#undef __CUDA_ARCH__\n#undef __CUDA_ARCH_FAMILY_SPECIFIC__\n#undef CHECK\n"
    )


@dataclass(frozen=True)
class Case:
    a: Sequence[int]
    b: Sequence[int]
    c: int
    scale_a: Sequence[int] = ()
    scale_b: Sequence[int] = ()


def random_case(mma: Mma, issues: int) -> Case:
    rng = np.random.default_rng(MMAS.index(mma))

    def codes(fmt: Format, count: int) -> list[int]:
        return [int.from_bytes(rng.bytes(8), "little") % fmt.codes for _ in range(count)]

    k = mma.k * issues
    a, b, c = codes(mma.a, k), codes(mma.b, k), codes(mma.c, 1)[0]
    if mma.scale is None:
        return Case(a, b, c)
    return Case(a, b, c, codes(mma.scale, mma.scales * issues), codes(mma.scale, mma.scales * issues))


def emulated_result(mma: Mma, case: Case) -> int:
    """Return what the emulated unit makes of the case, as often as it is issued."""

    def contained(code: int, fmt: Format) -> int:
        return code << 2 if fmt is e2m1 and mma.k == 32 else code  # in the central bits of its byte

    d = case.c
    for start in range(0, len(case.a), mma.k):
        for k in range(mma.k):
            term = (k + 1) * contained(case.a[start + k], mma.a) * contained(case.b[start + k], mma.b)
            if mma.scale:
                block = (start + k) // mma.scale_block
                term *= 3 * case.scale_a[block] + case.scale_b[block]
            d += term
        d %= mma.d.codes
    return d


@dataclass(frozen=True)
class Build:
    """A program and the target to compile it for."""

    source: str
    arch: int

    @staticmethod
    def of(models: Sequence[tuple[Instruction, int]], case: Case, arch: int) -> Build:
        def array(codes: Sequence[int]) -> np.ndarray:
            return np.array(codes, np.uint64)  # NumPy's own choice for a list beyond int64 is a float

        spec = models[0][0].spec
        c = np.uint64(case.c)
        scales = (array(case.scale_a), array(case.scale_b)) if spec.scales else ()
        return Build(cuda_source(models, array(case.a), array(case.b), c, *scales), arch)


#: PTX, number of issues, __CUDA_ARCH__ to compile for: every way to load, pack, carry and store.
UNITS = [
    ("m8n8k4.row.col.f32.f16.f16.f32", 4, 700),
    ("m8n8k4.row.col.f32.f16.f16.f16", 1, 750),
    ("m8n8k4.row.col.f16.f16.f16.f16", 2, 750),
    ("m16n8k8.row.col.f16.f16.f16.f16", 2, 750),
    ("m16n8k16.row.col.f32.f16.f16.f32", 1, 800),
    ("m16n8k16.row.col.f32.bf16.bf16.f32", 2, 800),
    ("m16n8k4.row.col.f32.tf32.tf32.f32", 4, 800),
    ("m16n8k8.row.col.f32.tf32.tf32.f32", 1, 800),
    ("m8n8k4.row.col.f64.f64.f64.f64", 2, 800),
    ("m16n8k16.row.col.f64.f64.f64.f64", 1, 900),
    ("m16n8k16.row.col.f16.e4m3.e5m2.f16", 1, 890),
    ("m16n8k32.row.col.f32.e5m2.e4m3.f32", 2, 890),
    ("m16n8k32.row.col.kind::f8f6f4.f32.e2m1.e3m2.f32", 1, 1200),
    ("m16n8k32.row.col.kind::f8f6f4.f16.e5m2.e2m1.f16", 2, 1200),
    ("m16n8k32.row.col.kind::mxf8f6f4.block_scale.scale_vec::1X.f32.e4m3.e2m3.f32.ue8m0", 2, 1200),
    ("m16n8k64.row.col.kind::mxf4nvf4.block_scale.scale_vec::2X.f32.e2m1.e2m1.f32.ue8m0", 1, 1200),
    ("m16n8k64.row.col.kind::mxf4nvf4.block_scale.scale_vec::4X.f32.e2m1.e2m1.f32.ue4m3", 2, 1200),
]


def builds() -> dict[str, Build]:
    made = {}
    for ptx, issues, arch in UNITS:
        mma = find(ptx)
        case = random_case(mma, issues)
        d = emulated_result(mma, case)
        made[f"{ptx} x{issues}"] = Build.of(
            [(chain(mma, issues, "right"), d), (chain(mma, issues, "wrong"), d ^ 1)], case, arch
        )

    ones = Case([1] * 16, [1] * 16, 5)
    two = [
        (chain(QUADPAIRS, 4, "first"), emulated_result(QUADPAIRS, ones)),
        (chain(SIXTEEN, 1, "second"), emulated_result(SIXTEEN, ones)),
    ]
    assert two[0][1] != two[1][1]
    for arch in (700, 750, 800):
        made[f"two instructions, {arch}"] = Build.of(two, ones, arch)

    def returning(code: int) -> Case:  # the emulated unit gives c where a and b are 0
        return Case([0] * 16, [0] * 16, code)

    nan, other_nan, infinity = 0x7FFFFFFF, 0xFFC00001, 0x7F800000
    some_nan = [(chain(SIXTEEN, 1), nan)]
    known_nan = [(ARCHITECTURES["ampere"]["HMMA.16816.F32"], nan)]
    assert known_nan[0][0].spec.nan_is_canonical
    made["wrong"] = Build.of([(chain(SIXTEEN, 1), 6)], returning(5), 800)
    made["some NaN, another NaN"] = Build.of(some_nan, returning(other_nan), 800)
    made["some NaN, infinity"] = Build.of(some_nan, returning(infinity), 800)
    made["known NaN, another NaN"] = Build.of(known_nan, returning(other_nan), 800)
    made["known NaN, itself"] = Build.of(known_nan, returning(nan), 800)
    return made


Done = subprocess.CompletedProcess[str]
Runner = Callable[..., Done]


@pytest.fixture(scope="module")
def emulate(tmp_path_factory: pytest.TempPathFactory) -> Runner:
    """Runs one of `builds` on an emulated GPU of a compute capability, with one CUDA call failing if asked."""
    programs = builds()
    text = [RUNTIME, *(emulated_unit(n, mma) for n, mma in enumerate(MMAS))]
    text += [emulated_source(b.source, b.arch, f"program_{n}") for n, b in enumerate(programs.values())]
    every = compiled(tmp_path_factory, text, len(programs))

    def run(program: str, capability: int, fails: str = "") -> Done:
        environment = os.environ | {"CAPABILITY": str(capability), "FAILS": fails}
        argument = str(list(programs).index(program))
        return subprocess.run([every, argument], env=environment, capture_output=True, text=True, timeout=60)

    return run


@pytest.mark.parametrize(("ptx", "issues", "arch"), UNITS)
def test_operands_reach_their_places(emulate: Runner, ptx: str, issues: int, arch: int) -> None:
    mma = find(ptx)
    d = emulated_result(mma, random_case(mma, issues))
    done = emulate(f"{ptx} x{issues}", arch // 10)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"d[0,0] = 0x{d:0{mma.d.storage_bits // 4}x} " in done.stdout
    assert re.search(r"test wrong\S*: 0x.*, differs\n", done.stdout)
    name = chain(mma, issues, "right").label
    assert done.stdout.endswith(f"The GPU agrees with {name}.\n")


@pytest.mark.parametrize(
    ("arch", "capability", "agrees"),
    [(700, 70, "first[K=16]"), (750, 75, "first[K=16]"), (800, 80, "second"), (800, 120, "second")],
)
def test_each_gpu_runs_the_instruction_it_has(
    emulate: Runner, arch: int, capability: int, agrees: str
) -> None:
    done = emulate(f"two instructions, {arch}", capability)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"compute capability {capability // 10}.{capability % 10}\n" in done.stdout
    assert done.stdout.count("not run: it needs compute capability") == 1
    assert done.stdout.endswith(f"The GPU agrees with test {agrees}.\n")


@pytest.mark.parametrize(
    ("program", "capability", "code", "says"),
    [
        ("wrong", 80, 1, "agrees with none"),
        ("wrong", 75, 2, "needs compute capability 8.0 or later (-arch=sm_80)"),
        ("two instructions, 750", 90, 2, "compile again with -arch=sm_90"),
        ("two instructions, 700", 61, 2, "Nothing could be run"),
        ("some NaN, another NaN", 80, 0, "some NaN, agrees"),
        ("some NaN, infinity", 80, 1, "some NaN, differs"),
        ("known NaN, another NaN", 80, 1, "0x7fffffff (nan), differs"),
        ("known NaN, itself", 80, 0, "0x7fffffff (nan), agrees"),
    ],
)
def test_exit_codes(emulate: Runner, program: str, capability: int, code: int, says: str) -> None:
    done = emulate(program, capability)
    assert says in done.stdout
    assert done.returncode == code


@pytest.mark.parametrize(
    ("fails", "advice"),
    [
        ("cudaGetDeviceProperties", "CUDA_VISIBLE_DEVICES"),
        ("cudaMalloc", "no memory left"),
        ("launch", "compile again"),
    ],
)
def test_cuda_errors_say_what_to_do(emulate: Runner, fails: str, advice: str) -> None:
    done = emulate("wrong", 80, fails)
    assert done.returncode == 2
    assert advice in done.stderr
