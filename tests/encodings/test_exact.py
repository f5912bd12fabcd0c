"""Exact sums of products and c, rounded once with IEEE 754's roundings: against rationals, and proved equal."""

from __future__ import annotations

import numpy as np
import pytest
import z3
from support.fma_numbers import NAN, exact_sum

from mmaformal import datapath, prove
from mmaformal.cases.generate import generate
from mmaformal.cases.run import both_results
from mmaformal.encodings.efda import Efda
from mmaformal.encodings.efda import smt as smt_efda
from mmaformal.kernels.rows import dot_add as rows_of
from mmaformal.queries.verify import verify
from mmaformal.solver.answers import Fails, Holds, Unknown
from mmaformal.spec import DotAdd

#: in fixed point, of three sorted terms, and in a row of limbs
SUMS = [
    "exact(k=2,a=fp16,rho=IEEE-RD-FP32)",
    "exact(k=4,a=fp16,c=fp32,rho=IEEE-RU-FP16,flush_inputs=1,nan=DEFAULT)",
    "exact(k=8,a=e4m3,b=e5m2,c=fp32,rho=IEEE-RZ-BF16)",
    "exact(k=2,a=e4m3,rho=IEEE-E5M2,chain=2)",
    "exact(k=2,a=bf16,c=bf16,rho=IEEE-RNA-BF16)",
    "exact(k=2,a=bf16,rho=IEEE-RD-FP32,flush_inputs=1)",
    "exact(k=2,a=tf32,rho=IEEE-FP32)",
    "exact(k=3,a=bf16,rho=IEEE-RD-FP32)",
    "exact(k=4,a=bf16,c=bf16,rho=IEEE-RU-BF16)",
    "exact(k=1,a=fp32,rho=IEEE-FP32)",
    "exact(k=2,a=fp32,rho=IEEE-RZ-FP32)",
    "exact(k=8,a=tf32,rho=IEEE-RNA-FP32)",
    "exact(k=32,a=fp16,rho=IEEE-FP32)",
]


def wanted(spec: DotAdd, a: tuple[int, ...], b: tuple[int, ...], c: int) -> int | str:
    """Returns the code of d, step by step; NAN for a NaN."""
    p = spec.parameters_as(Efda)
    code: int | str = c
    for k in range(0, spec.k, p.L):
        if code == NAN:
            return NAN
        factors = list(zip(a[k : k + p.L], b[k : k + p.L], strict=True))
        formats = spec.a_format, spec.b_format, spec.c_format
        code = exact_sum(factors, int(code), formats, p.rho, p.flush_inputs)
    return code


def same(spec: DotAdd, got: int, right: int | str) -> bool:
    return got == right or (right == NAN and spec.d_format.is_nan(got))


@pytest.mark.parametrize("name", SUMS)
def test_a_step_is_the_exact_sum_rounded_once(name: str) -> None:
    i = datapath[name]
    rows = generate(i.spec, 250)
    for each, got in zip(rows.cases(), i.dot_add(rows.a, rows.b, rows.c), strict=True):
        assert same(i.spec, int(got), wanted(i.spec, each.a, each.b, each.c)), (each, got)


@pytest.mark.parametrize("name", SUMS)
def test_terms_too(name: str) -> None:
    spec = datapath[name].spec
    rows = generate(spec, 4)
    for each, both in zip(rows.cases(), both_results(spec, rows), strict=True):
        right = wanted(spec, each.a, each.b, each.c)
        assert all(same(spec, got, right) for got in both), (each, both)


def test_cancellation_over_all_of_the_range() -> None:
    """2^100·2^100 − 2^100·2^100 + 2^-126·2^-149, and c: nothing is lost."""
    i = datapath["exact(k=4,a=fp32,c=fp32,rho=IEEE-RU-FP32)"]
    big, small, one = 0x71800000, 0x00800000, 0x3F800000
    a = np.array([[big, big ^ 0x80000000, small, 0], [big, big ^ 0x80000000, small, one]], np.uint32)
    b = np.array([[big, big, 1, 0], [big, big, 1, one]], np.uint32)
    c = np.array([0, 0xBF800000], np.uint32)
    assert [int(x) for x in i.dot_add(a, b, c)] == [1, 1]  # the least number above 2^-275


def test_no_compiled_kernel_is_taken_for_it() -> None:
    """Rows, which run through a kernel where there is one, are the executable's."""
    for name in SUMS[:3] + SUMS[7:9]:
        spec = datapath[name].spec
        rows = generate(spec, 200)
        plain = datapath[name].dot_add(rows.a, rows.b, rows.c)
        assert np.array_equal(rows_of(spec, rows.a, rows.b, rows.c), plain)


@pytest.mark.slow
@pytest.mark.parametrize("name", SUMS)
def test_both_encodings_are_proved_equal(name: str) -> None:
    assert isinstance(verify(datapath[name], timeout=1200), Holds)


@pytest.mark.slow
@pytest.mark.parametrize("broken", ["no sticky bit", "a limb too high"])
def test_the_proof_notices_what_the_leading_limbs_lose(monkeypatch: pytest.MonkeyPatch, broken: str) -> None:
    real = smt_efda.window_of

    def wrong(
        magnitude: z3.BitVecRef, low: int, count: int, exponents: smt_efda.ExponentRange
    ) -> tuple[z3.BitVecRef, z3.BitVecRef]:
        window, at = real(magnitude, low, count, exponents)
        if broken == "no sticky bit":
            return window & ~z3.BitVecVal(1, window.size()), at
        return window, z3.If(at == exponents.constant(low + 48), exponents.constant(low + 96), at)

    monkeypatch.setattr(smt_efda, "window_of", wrong)
    assert isinstance(verify(datapath["exact(k=3,a=e4m3,b=bf16,rho=IEEE-FP32)"], timeout=900), Fails)


def test_properties_say_where_there_is_no_argument() -> None:
    i = datapath["exact(k=3,a=bf16,rho=IEEE-FP32)"]
    for name in ("error-bound", "exactness", "accumulator-width"):
        answer = prove(name, i, timeout=30)
        assert isinstance(answer, Unknown)
        assert "no argument for efda: " in answer.why


def test_what_is_refused() -> None:
    for name in (
        "exact(k=2,a=fp64,rho=IEEE-FP32)",
        "exact(k=2,a=fp16,rho=IEEE-FP64)",
        "exact(k=2,rho=IEEE-FP32,nan=FIRST)",
    ):
        with pytest.raises((KeyError, ValueError), match="efda needs"):
            datapath[name]
