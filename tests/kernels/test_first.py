"""First products are made on NumPy's lanes, to the same bits, until the compiled kernel pays; then by that."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.kernel_runs import random_codes

from mmaformal import ARCHITECTURES, Instruction, hopper, matmul, rtx_blackwell
from mmaformal.kernels import first, kernel_for, rows
from mmaformal.kernels.first import LanesKernel, lanes_of
from mmaformal.kernels.kernel import CodeArray, Kernel
from mmaformal.kernels.plain import PlainKernel

H = hopper["HMMA.16816.F32"]
#: one instruction of each specification
UNITS = list({i.spec: i for arch in ARCHITECTURES.values() for i in arch}.values())


@pytest.fixture(autouse=True)
def as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lanes are used as they are outside of tests."""
    monkeypatch.setattr(first, "MANY", rows.MANY)
    monkeypatch.setattr(rows, "PATIENCE", 2.0)


def made(
    kernel: Kernel, a: CodeArray, b: CodeArray, c: CodeArray, scales: tuple[Any, Any], steps: int
) -> CodeArray:
    d = c.astype(max((kernel.spec.c_format.word, kernel.spec.d_format.word), key=lambda word: word.itemsize))
    kernel.run(kernel.rows(a, scales[0]), kernel.columns(b, scales[1]), d, 0, steps)
    return d


def operands(
    i: Instruction, m: int, n: int, steps: int
) -> tuple[CodeArray, CodeArray, CodeArray, tuple[Any, Any]]:
    rng, k = np.random.default_rng(5), i.k * steps
    sides = (i.a_format, (m, k)), (i.b_format, (k, n)), (i.c_format, (m, n))
    a, b, c = (random_codes(rng, fmt, shape) for fmt, shape in sides)
    if (fmt := i.spec.scale_format) is None:
        return a, b, c, (None, None)
    each = i.spec.scales * steps
    return a, b, c, (random_codes(rng, fmt, (m, each)), random_codes(rng, fmt, (each, n)))


@pytest.mark.parametrize("i", UNITS, ids=lambda i: i.label)
def test_lanes_beside_each_other_are_those_of_rows(i: Instruction) -> None:
    steps = 2 if i.c_format == i.d_format else 1
    given = operands(i, 3, 5, steps)
    assert (made(LanesKernel(i.spec), *given, steps) == made(PlainKernel(i.spec), *given, steps)).all()


def test_small_products_are_made_on_lanes_and_many_compiled(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    lanes, many = LanesKernel(H.spec), rows.MANY * first.UNCOMPILED
    assert lanes.for_products(many - 1) is lanes
    assert lanes.for_products(many) is kernel_for(H.spec)
    assert lanes.for_products(1) is kernel_for(H.spec)  # it is there now


def test_a_kernel_that_was_compiled_before_pays_sooner(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    LanesKernel(H.spec).for_products(rows.MANY * first.UNCOMPILED)
    again, other = LanesKernel(H.spec), LanesKernel(H.replace(F=21).spec)
    assert again.for_products(rows.MANY - 1) is again
    assert again.for_products(rows.MANY) is kernel_for(H.spec)
    assert other.for_products(rows.MANY) is other  # one kernel says nothing of another


@pytest.mark.parametrize("home", ["/proc/none", "/dev/null"])
def test_lanes_need_no_folder(home: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", home)
    lanes = LanesKernel(H.spec)
    assert lanes.for_products(rows.MANY * first.UNCOMPILED) is kernel_for(H.spec)


@pytest.mark.parametrize("i", [H, rtx_blackwell["QMMA.SF.16832.F32.E4M3.E4M3.E8"]], ids=lambda i: i.label)
def test_what_is_left_is_made_by_the_compiled_kernel(i: Instruction, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(first, "_OUTPUTS", 20)
    given = operands(i, 9, 10, 2)
    plain = made(PlainKernel(i.spec), *given, 2)
    lanes = LanesKernel(i.spec)

    class Clock:
        now = 0.0

        def thread_time(self) -> float:
            self.now += 0.7
            return self.now

    monkeypatch.setattr(first, "time", Clock())
    monkeypatch.setattr(first, "UNCOMPILED", 1)
    assert (made(lanes, *given, 2) == plain).all()
    assert lanes.seconds == pytest.approx(0.7)  # one part; with four more it would be 3.5 s
    assert lanes.compiled is kernel_for(i.spec)


#: how K is divided, and the ways through `matmul`
HOW: list[dict[str, Any]] = [{}, {"jobs": 2}, {"split_k": 2}, {"promote_every": 1}]


def test_both_ways_of_matmul_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    i = H.replace(F=21)  # of which nothing was made yet
    rng = np.random.default_rng(0)
    a, b = random_codes(rng, H.a_format, (20, 48)), random_codes(rng, H.b_format, (48, 30))
    found = [matmul(a, b, instruction=i, **how) for how in HOW]
    assert lanes_of(i.spec).compiled is i.quick.kernel is None
    assert lanes_of(i.spec).seconds > 0
    monkeypatch.setattr(first, "MANY", 0)
    compiled = [matmul(a, b, instruction=i, **how) for how in HOW]
    assert i.quick.kernel is kernel_for(i.spec)
    for one, other in zip(found, compiled, strict=True):
        assert (one == other).all()


SMALL = """
import sys
import numpy as np
from mmaformal import hopper, matmul

A = np.ones((64, 64), np.float16)
D = matmul(A, A, instruction=hopper["HMMA.16816.F32"])
assert (D == 64).all()
sys.exit("numba" in sys.modules)
"""


def test_a_first_small_product_does_not_even_import_numba() -> None:
    assert subprocess.run([sys.executable, "-c", SMALL]).returncode == 0
