"""CUDA programs with `wgmma` in them; their kernels are tested where they are recorded with (tests/recorder)."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from mmaformal import ARCHITECTURES, Instruction, ampere, hopper
from mmaformal.cuda import cuda_source
from mmaformal.cuda_programs import cuda_program
from mmaformal.mma import CudaUnavailableError
from mmaformal.wgmma import wgmma_of
from mmaformal.witness import Witness

needs_nvcc = pytest.mark.skipif(shutil.which("nvcc") is None, reason="nvcc is not on PATH")
WGMMAS = [i for i in hopper if wgmma_of(i)]
MIXED = Witness.of(
    ampere["HMMA.16816.F32"],
    hopper["HGMMA.64x8x16.F32"],
    [0x3C00] + [0] * 15,
    [0x3C00] + [0] * 15,
    0xB3000000,
)


def ptx_of(instruction: Instruction) -> str:
    unit = wgmma_of(instruction)
    assert unit is not None
    return unit.ptx


def test_there_are_as_many_as_the_architecture_has() -> None:
    assert len(WGMMAS) == 12
    assert {i.name[:5] for i in WGMMAS} == {"HGMMA", "QGMMA"}


@pytest.mark.parametrize("i", WGMMAS, ids=lambda i: i.name)
def test_the_case_and_what_is_predicted_stand_in_the_program(i: Instruction) -> None:
    a, b = [1, *[0] * (i.k - 1)], [2, *[0] * (i.k - 1)]
    source = cuda_program([(i, 0x12), (i.replace(F=5), 0x34)], a, b, 3)
    digits = i.d_format.storage_bits // 4
    assert source.count(f'"{ptx_of(i)}"') == 1  # one instruction, two models
    assert f"case_c = 0x{3:0{digits}x};" in source
    assert re.search(rf'"hopper {re.escape(i.name)}", 0, 0x{0x12:0{digits}x}, false', source)
    assert re.search(rf'"hopper {re.escape(i.name)}\[F=5\]", 0, 0x{0x34:0{digits}x}, false', source)


def test_a_chain_is_launched_once_for_each_instruction() -> None:
    source = cuda_program([(hopper["HGMMA.64x8x16.F32"].chained(64), 0)], [0] * 64, [0] * 64, 0)
    assert "enum { K = 64 };" in source  # of the case
    assert "enum { K = 16 };" in source  # of one launch
    assert "90, 90, 128, 16, unit_0::kernel" in source


def test_without_wgmma_the_program_is_that_of_mma() -> None:
    cases, zeros = [(hopper["HMMA.16816.F32"], 0)], [0] * 16
    assert cuda_program(cases, zeros, zeros, 0) == cuda_source(cases, zeros, zeros, 0)


def test_what_is_neither_is_refused() -> None:
    blackwell = ARCHITECTURES["blackwell"]
    tcgen05 = next(
        i for i in blackwell if i.name.startswith("UTCHMMA") and i.k == 16 and i.d_format.name == "fp32"
    )
    with pytest.raises(CudaUnavailableError, match="tensor memory"):
        cuda_program([(tcgen05, 0)], [0] * 16, [0] * 16, 0)


@needs_nvcc
def test_a_mixed_program_compiles_and_says_when_there_is_no_gpu(tmp_path: Path) -> None:
    source = MIXED.to_cuda()
    assert f'"{ptx_of(hopper["HGMMA.64x8x16.F32"])}"' in source
    assert "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32" in source
    (tmp_path / "case.cu").write_text(source)
    command = ["nvcc", "-arch=sm_90a", "-Werror", "all-warnings", "-o", "case", "case.cu"]
    built = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    no_gpu = os.environ | {"CUDA_VISIBLE_DEVICES": ""}
    done = subprocess.run([tmp_path / "case"], env=no_gpu, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "cudaGetDeviceProperties(&gpu, 0) failed" in done.stderr
