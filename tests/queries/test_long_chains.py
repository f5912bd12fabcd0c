"""Differences of long chains: settled from short ones, in a time that does not grow with their length."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import z3

from mmaformal import ampere, cdna1, cdna2, cdna3, hopper, power10, rtx_blackwell
from mmaformal.formats import Format, Specials, fp16
from mmaformal.instruction import Instruction
from mmaformal.proof.lemmas import LazyPortfolio
from mmaformal.queries import long_chains
from mmaformal.queries.constraints import fixed, nonzero
from mmaformal.queries.find_difference import find_difference
from mmaformal.solver.answers import Different, Equal, Unknown
from mmaformal.solver.asking import Asker
from mmaformal.spec import DotAdd
from mmaformal.witness import case_size, results_differ

LONG = 4096

SPECS = {
    i.label: i.spec
    for i in (
        ampere["HMMA.16816.F32"],
        ampere["HMMA.16816.F16"],
        ampere["DMMA.884"],
        hopper["QGMMA.64x8x32.F32.E4M3.E4M3"],
        hopper["mma.m16n8k32.f32.e4m3.e4m3.f32"],
        rtx_blackwell["OMMA.SF.16864.F32.E2M1.E2M1.UE4M3.4X"],
        cdna1["v_mfma_f32_16x16x16f16"],
        cdna2["v_mfma_f32_16x16x16f16"],
        cdna3["v_mfma_f32_16x16x16_f16"],
        cdna3["v_mfma_f32_16x16x32_fp8_fp8"],
    )
}


_SLOW = ("mma.m16n8k32", "OMMA", "QGMMA")


@pytest.mark.parametrize(
    "label",
    [pytest.param(x, marks=pytest.mark.slow if any(name in x for name in _SLOW) else ()) for x in SPECS],
)
def test_idle_steps_merge(label: str, solvers: LazyPortfolio) -> None:
    assert long_chains.prove_idle_steps_merge(Asker(solvers, 120), SPECS[label])


def counting(spec: DotAdd, *codes: Any) -> Any:
    """A model whose every step, an idle one too, adds one to the code of its c."""

    class Step:
        def __init__(self, result: z3.BitVecRef) -> None:
            self.result = result

    c, steps = codes[2], []
    for _ in range(spec.k // spec.parameters.step_products):
        c = c + 1
        steps.append(Step(c))

    class Trace:
        pass

    trace = Trace()
    trace.steps, trace.result = steps, c  # type: ignore[attr-defined]
    return trace


def first_step_differs(spec: DotAdd, *codes: Any) -> Any:
    """A model whose later steps add one."""
    trace = counting(spec, *codes)
    for step, number in zip(trace.steps, itertools.count(), strict=False):
        step.result = codes[2] + number
    trace.result = trace.steps[-1].result
    return trace


def test_it_is_noticed_that_they_do_not(monkeypatch: pytest.MonkeyPatch, solvers: LazyPortfolio) -> None:
    spec = SPECS["ampere HMMA.16816.F32"]
    for broken in (counting, first_step_differs):
        monkeypatch.setattr(long_chains.smt, "dot_add", broken)
        assert not long_chains.prove_idle_steps_merge(Asker(solvers, 60), spec)


def test_induction_is_about_later_steps(monkeypatch: pytest.MonkeyPatch, solvers: LazyPortfolio) -> None:
    x = SPECS["ampere HMMA.16816.F32"]
    assert long_chains.prove_induction(Asker(solvers, 60), x, x)
    honest = long_chains.smt.dot_add

    def one_side(spec: DotAdd, *codes: Any) -> Any:
        return first_step_differs(spec, *codes) if spec.parameters != x.parameters else honest(spec, *codes)

    monkeypatch.setattr(long_chains.smt, "dot_add", one_side)
    assert long_chains.prove_induction(Asker(solvers, 60), x, x.replace(F=23)) is None


@pytest.mark.slow
def test_the_same_however_long() -> None:
    short, long = (
        find_difference(*(arch["HMMA.16816.F32"].chained(k) for arch in (ampere, hopper)), timeout=300)
        for k in (16, 1 << 18)
    )
    assert isinstance(short, Different)
    assert isinstance(long, Different)
    assert long.witness.x.k == 1 << 18
    assert long.witness.results == short.witness.results
    assert long.witness.size == short.witness.size
    assert long.minimality == short.minimality
    assert all("proved minimal" in line for line in long.minimality)


@pytest.mark.slow
def test_equal_by_induction() -> None:
    x = hopper["HMMA.16816.F32"].chained(LONG)
    answer = find_difference(x, x.replace(e_zero=-134), timeout=300)
    assert isinstance(answer, Equal)
    assert any("later" in each.statement for each in answer.proof.obligations)
    assert isinstance(find_difference(x, x.replace(name="another"), timeout=300), Equal)


def test_short_chains_of_other_nans_are_equal_by_induction() -> None:
    x, y = cdna1["v_mfma_f32_16x16x4f32"], power10["XVF32GERPP"].chained(4)
    answer = find_difference(x, y, cache=False)
    assert isinstance(answer, Equal)
    assert "induction over blocks" in str(answer.proof)


def test_nothing_is_left_out_where_zeros_are_forbidden() -> None:
    x, y = (arch["HMMA.16816.F32"].chained(1 << 20) for arch in (ampere, hopper))
    answer = find_difference(x, y, where=nonzero(), timeout=60)
    assert isinstance(answer, Unknown)
    assert "too long" in answer.why


def test_chains_too_long_to_be_written_down_are_refused() -> None:
    with pytest.raises(ValueError, match="16777216"):
        hopper["HMMA.16816.F32"].chained(1_600_000_000)


# ---- against enumeration -----------------------------------------------------------------------------------------

TINY = Format("tiny", 4, 2, 1, 1, Specials.IEEE, None)


def tiny(**changes: Any) -> Instruction:
    formats = {"a_format": TINY, "b_format": TINY, "c_format": fp16, "d_format": fp16}
    unit = hopper["HMMA.16816.F16"].replace(k=1, L=1, F=4, e_zero=-4, **formats, name="tiny")
    return unit.replace(**changes, name="tiny'") if changes else unit


@pytest.mark.parametrize(
    ("changes", "c"),
    [
        ({"F": 5}, 0x4C01),
        *(
            pytest.param(changes, c, marks=pytest.mark.slow)
            for changes in ({"F": 5}, {"e_zero": 5}, {"F": 3, "e_zero": None})
            for c in (0x0000, 0x8000, 0xCBFF)
        ),
    ],
    ids=str,
)
def test_against_every_case_with_one_product(changes: dict[str, Any], c: int) -> None:
    k = long_chains.SHORT + 1
    x, y = tiny().chained(k), tiny(**changes).chained(k)
    answer = find_difference(x, y, where=fixed(c=c), timeout=300)
    best = min(sizes_of_differences(x, y, c), default=None)
    proved = [line for line in getattr(answer, "minimality", ()) if line.endswith("proved minimal")]
    if best is not None:
        assert isinstance(answer, Different)
        size = answer.witness.size
        assert best <= size
        if any("nonzero product" in line for line in proved):
            assert best[0] == size[0]
        if len(proved) == len(answer.minimality):
            assert best == size
    elif isinstance(answer, Different):
        assert answer.witness.size[0] > 1


def sizes_of_differences(x: Instruction, y: Instruction, code: int) -> Iterator[tuple[int, ...]]:
    """Yield the sizes of all cases of at most one nonzero product, idle ones of one sign before and of one after it."""
    every = np.arange(TINY.codes, dtype=np.uint8)
    a, b = (v.reshape(-1) for v in np.meshgrid(every, every))
    for place in (0, 1, x.k // 2, x.k - 1):
        for before, after in itertools.product((0, TINY.sign_mask), repeat=2):
            rows = np.zeros((2, len(a), x.k), np.uint8)
            rows[0, :, :place], rows[0, :, place + 1 :] = before, after
            rows[0, :, place], rows[1, :, place] = a, b
            d, e = (i.dot_add(rows[0], rows[1], np.uint16(code)) for i in (x, y))
            for row in np.flatnonzero(d != e):
                if results_differ(x.spec, y.spec, int(d[row]), int(e[row])):
                    yield case_size(x.spec, rows[0, row].tolist(), rows[1, row].tolist(), code)
