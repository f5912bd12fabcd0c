"""fma_flags: the exceptions of a fused multiply-add, against rationals, all inputs of small formats, and proved."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest
import z3
from support.fma_numbers import code_of, floor_log2, flushed, is_tiny, to_multiple
from support.slow import slow

from mmaformal import datapath
from mmaformal.architectures.datapaths import flags_of
from mmaformal.cases.generate import DISTRIBUTIONS, generate
from mmaformal.cases.inputs import Codes
from mmaformal.cases.run import both_results, compiled_results
from mmaformal.encodings.fma_flags import FmaFlags
from mmaformal.encodings.fma_flags import smt as smt_flags
from mmaformal.formats import Format, bf16
from mmaformal.queries.verify import verify
from mmaformal.solver.answers import Fails, Holds
from mmaformal.spec import DotAdd

POINTS = [
    "flags(a=e5m2,rho=IEEE-E5M2)",
    "flags(rho=IEEE-RU-FP16,tiny=BEFORE)",
    "flags(a=bf16,rho=IEEE-RZ-FP32,hides=1)",
    "flags(a=e5m2,b=fp16,c=bf16,rho=IEEE-RD-BF16,flush_inputs=1)",
    "flags(a=fp32,rho=IEEE-RMM-FP32)",
]


def wanted(spec: DotAdd, case: Codes) -> int:
    """The exceptions by IEEE 754-2019 §7, in rationals."""
    p, formats = spec.parameters_as(FmaFlags), (spec.a_format, spec.b_format, spec.c_format)
    codes = (*case.a, *case.b, case.c)
    if p.flush_inputs:
        codes = tuple(flushed(code, fmt) for code, fmt in zip(codes, formats, strict=True))
    (a, b, c), (A, B, C) = codes, formats

    def signals(code: int, fmt: Format) -> bool:
        return fmt.is_nan(code) and not fmt.fields(code)[2] >> (fmt.fraction_bits - 1)

    if any(map(signals, codes, formats)):
        return 16
    nans = [fmt.is_nan(code) for code, fmt in zip(codes, formats, strict=True)]
    if nans[0] or nans[1]:
        return 0
    infinite = A.is_infinite(a) or B.is_infinite(b)
    if infinite and 0 in [fmt.value(x) for x, fmt in ((a, A), (b, B)) if fmt.is_finite(x)]:
        return 0 if p.hides and nans[2] else 16
    if nans[2]:
        return 0
    negative = A.fields(a)[0] != B.fields(b)[0]
    if infinite and C.is_infinite(c):
        return 16 if negative != (C.fields(c)[0] == 1) else 0
    if infinite or C.is_infinite(c):
        return 0
    return of_number(A.value(a) * B.value(b) + C.value(c), p)


def of_number(x: Fraction, p: FmaFlags) -> int:
    """Returns what an exact sum raises."""
    rho, fmt = p.rounds, p.rounds.format
    if not x:
        return 0
    unbounded = to_multiple(x, Fraction(2) ** (floor_log2(abs(x)) - rho.fraction_bits), rho.rounding)
    overflow = abs(unbounded) > fmt.value(fmt.largest)
    code = code_of(x, rho, False)
    inexact = overflow or fmt.value(code) != x
    return 4 * overflow + 2 * (inexact and is_tiny(x, rho, p.tiny)) + inexact


@pytest.mark.parametrize("name", POINTS)
def test_exceptions_are_those_of_rationals(name: str) -> None:
    spec = datapath[name].spec
    rows = generate(spec, 1500, distributions=(*DISTRIBUTIONS, "edge"))
    found = set[int]()
    for case, got in zip(rows.cases(), compiled_results(spec, rows), strict=True):
        assert int(got) == wanted(spec, case), case
        found.add(int(got))
    assert found >= {0, 1, 16} | ({5} if spec.c_format != bf16 else set())
    few = generate(spec, 6)
    for case, both in zip(few.cases(), both_results(spec, few), strict=True):
        assert both[0] == both[1] == wanted(spec, case)


@pytest.mark.slow
def test_all_inputs_of_e2m1_to_e5m2() -> None:
    i = datapath["flags(a=e2m1,b=e2m1,c=e5m2,rho=IEEE-E5M2)"]
    codes = np.array(list(itertools.product(range(16), range(16), range(256))), np.uint8)
    got = i.dot_add(codes[:, :1], codes[:, 1:2], codes[:, 2])
    for (a, b, c), flags in zip(codes.tolist(), got, strict=True):
        assert int(flags) == wanted(i.spec, Codes((a,), (b,), c)), (a, b, c)


def test_what_rounds_up_to_the_least_normal_number_is_tiny_before_alone() -> None:
    """1.25·2^−14 · 0.75 is 2^−14 less a sixteenth: with one place more it rounds to 2^−14, and is not tiny after."""
    case = np.array([0x05], np.uint8), np.array([0x3A], np.uint8), np.uint8(0)
    assert int(datapath["flags(a=e5m2,rho=IEEE-E5M2)"].dot_add(*case)) == 1
    assert int(datapath["flags(a=e5m2,rho=IEEE-E5M2,tiny=BEFORE)"].dot_add(*case)) == 3


def test_the_flags_of_an_fma_are_those_of_its_types() -> None:
    for given, wanted in (("a=fp16,rho=IEEE-RZ-FP16", "rho=IEEE-RZ-FP16"), ("a=fp32", "a=fp32")):
        assert flags_of(datapath[f"fma({given})"]).spec == datapath[f"flags({wanted})"].spec
    for name in ("fma(k=2)", "mul_add(k=1)", "fma(a=bf16,c=bf16,rho=IEEE-BF16,tiny=AFTER)"):
        with pytest.raises(ValueError, match=r"no single fma|flushes results"):
            flags_of(datapath[name])


@pytest.mark.parametrize("name", slow(POINTS, POINTS[1:]))
def test_both_encodings_are_proved_equal(name: str) -> None:
    assert isinstance(verify(datapath[name], timeout=400), Holds)


def test_the_proof_notices_infinities_of_one_sign(monkeypatch: pytest.MonkeyPatch) -> None:
    real = smt_flags.invalid

    def wrong(p: FmaFlags, operands: list[tuple[object, z3.BitVecRef, Format]]) -> z3.BoolRef:
        both = z3.And(operands[0][0].infinite, operands[2][0].infinite)  # type: ignore[attr-defined]
        return z3.Or(real(p, operands), both)  # type: ignore[arg-type]

    monkeypatch.setattr(smt_flags, "invalid", wrong)
    assert isinstance(verify(datapath[POINTS[0]], timeout=60), Fails)
