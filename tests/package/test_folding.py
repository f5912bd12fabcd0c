"""Long chains are evaluated by leaving out equal steps that do nothing more."""

from __future__ import annotations

import random
import time

import numpy as np
import pytest

from mmaformal import ada, ampere, cdna1, cdna2, cdna3, hopper, rtx_blackwell
from mmaformal.encodings import executable
from mmaformal.folding import SHORT, fold, step_of
from mmaformal.instruction import Instruction
from mmaformal.shown_stages import exact_dot_add, explain_case, explain_difference

UNITS = [
    ampere["HMMA.16816.F32"],
    ampere["HMMA.16816.F16"],
    ampere["DMMA.884"],
    ada["QMMA.16832.F32.E4M3.E4M3"],
    hopper["mma.m16n8k32.f32.e4m3.e4m3.f32"],
    rtx_blackwell["OMMA.SF.16864.F32.E2M1.E2M1.UE4M3.4X"],
    rtx_blackwell["QMMA.SF.16832.F32.E4M3.E4M3.E8"],
    cdna1["v_mfma_f32_16x16x16f16"],
    cdna2["v_mfma_f32_16x16x16f16"],
    cdna3["v_mfma_f32_16x16x16_f16"],
    cdna3["v_mfma_f32_16x16x32_fp8_fp8"],
]


def chain_of(unit: Instruction, steps: int) -> Instruction:
    return unit.chained(np.lcm(unit.k, step_of(unit.spec)) * steps)


def random_chain(i: Instruction, rng: random.Random, rows: int) -> list[np.ndarray]:
    """Codes of a chain with runs of equal steps: of zeros, of numbers, now and then of anything."""
    spec, size = i.spec, step_of(i.spec)
    sides = []
    for fmt, width in (
        (spec.a_format, size),
        (spec.b_format, size),
        *(((spec.scale_format, size // spec.scale_block),) * 2 if spec.scale_format else ()),
    ):
        pool = []
        for distribution in ("zero", "small", "any", "minus"):
            step = np.zeros((rows, width), fmt.word)
            if fmt.has_zero and distribution == "minus" and fmt.sign_mask:
                step[:] = fmt.sign_mask
            elif distribution != "zero" or not fmt.has_zero:
                finite = [c for c in (rng.randrange(fmt.codes) for _ in range(40)) if fmt.is_finite(c)]
                codes = [rng.randrange(fmt.codes)] if distribution == "any" else finite
                step[:] = np.array(rng.choices(codes, k=rows * width), fmt.word).reshape(rows, width)
            pool.append(step)
        sides.append(pool)
    chosen: list[list[np.ndarray]] = [[] for _ in sides]
    while len(chosen[0]) < spec.k // size:
        run = rng.choice([1, 1, 2, 3, 10, 30])
        which = rng.choices(range(4), weights=[6, 2, 1, 1])[0]
        for side, pool in zip(chosen, sides, strict=True):
            side += [pool[which]] * run
    codes = [np.concatenate(side[: spec.k // size], axis=1) for side in chosen]
    c = np.array([rng.randrange(spec.c_format.codes) for _ in range(rows)], spec.c_format.word)
    return [codes[0], codes[1], c, *codes[2:]]


@pytest.mark.parametrize("unit", UNITS, ids=lambda i: i.label)
def test_folding_changes_no_result(unit: Instruction) -> None:
    i = chain_of(unit, SHORT + 8)
    rng = random.Random(unit.label)
    a, b, c, *scales = random_chain(i, rng, 3)
    lanes = [[lane.astype(np.int64) for lane in x.T] for x in (a, b, *scales)]
    wanted = executable.dot_add(i.spec, lanes[0], lanes[1], c.astype(np.int64), *lanes[2:])
    mask = i.d_format.codes - 1
    assert [int(x) for x in i.dot_add(a, b, c, *scales)] == [int(x) & mask for x in wanted.result]
    row = fold(i.spec, a[0], b[0], int(c[0]), *(x[0] for x in scales))
    assert row.trace.result & mask == int(wanted.result[0]) & mask
    told = [n for numbers in row.stand_for for n in numbers]
    assert told == list(range(len(wanted.steps)))
    # Those left out give what the step that stands for them gives; where several make one, the last of them.
    inner = len(wanted.steps) // (i.k // step_of(i.spec))
    for numbers, step in zip(row.stand_for, row.trace.steps, strict=True):
        for n in {numbers.start, *(n for n in numbers if (n + 1) % inner == 0)}:
            assert int(wanted.steps[n].result[0]) & mask == step.result & mask


def test_a_sum_that_grows_is_not_folded() -> None:
    i = ampere["HMMA.16816.F32"].chained(16 * 100)
    ones = np.full(i.k, 0x3C00, np.uint16)
    assert i.dot_add(ones, ones, np.uint32(0)) == np.float32(1600).view(np.uint32)


def test_a_quarter_of_a_million_products_are_told() -> None:
    k = 1 << 18
    x, y = (arch["HMMA.16816.F32"].chained(k) for arch in (ampere, hopper))
    a = [0] * k
    b = [0] * k
    a[k // 2] = b[k // 2] = 0x3C00
    start = time.monotonic()
    text = explain_difference(x, y, a, b, 0xCC000000)
    assert f"a[{k // 2}]·b[{k // 2}]" in text
    assert "where they part: align" in text
    lines = explain_case(x, a, b, 0xCC000000).splitlines()
    assert len(lines) < 30
    assert any(line.startswith(f"steps 3 to {k // 16} of {k // 8}") or "all alike" in line for line in lines)
    assert exact_dot_add(x.spec, a, b, 0xCC000000) == 1 - 2**25
    assert time.monotonic() - start < 60  # some seconds; hours if every step were run
