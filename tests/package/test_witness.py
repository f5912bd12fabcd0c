"""Witnesses and the telling of computations: what is printed is what was computed."""

from __future__ import annotations

import json
import random
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mmaformal import ARCHITECTURES, Instruction, ampere, cdna2, hopper
from mmaformal.formats import FORMATS, fp32
from mmaformal.shown_stages import (
    code_text,
    decimal_text,
    exact_dot_add,
    explain_case,
    explain_difference,
    number_text,
    shown_steps,
    ulps_apart,
)
from mmaformal.witness import Witness, WitnessError, case_size, product_is_zero, results_differ

X, Y = ampere["HMMA.16816.F32"], hopper["HMMA.16816.F32"]
ONE = 0x3C00
A, B, C = [ONE] + [0] * 15, [ONE] + [0] * 15, 0xB3000000  # 1·1 − 2^-25


def test_the_results_are_those_of_the_executables() -> None:
    w = Witness.of(X, Y, A, B, C)
    assert w.results == (0x3F800000, 0x3F7FFFFF) == w.rerun()
    assert w.size == (1, 1, 0, 25)
    for i, result in zip((X, Y), w.results, strict=True):
        assert int(i.dot_add(w.a, w.b, w.c)) == result


def test_a_case_is_a_sum_whose_negative_numbers_stand_in_brackets() -> None:
    assert Witness.of(X, Y, A, B, C).case_text == "0x1p+0·0x1p+0 + (-0x1p-25)"
    negative = [ONE | 0x8000] + [0] * 15
    assert Witness.of(X, Y, negative, B, C ^ 0x80000000).case_text == "(-0x1p+0)·0x1p+0 + 0x1p-25"


def test_no_difference_is_no_witness() -> None:
    with pytest.raises(WitnessError, match="both give"):
        Witness.of(X, Y, A, B, 0)


def test_matrices_have_the_case_at_the_origin() -> None:
    w = Witness.of(X, Y, A, B, C)
    matrices = w.matrices()
    assert [m.shape for m in matrices] == [(16, 16), (16, 8), (16, 8)]
    for i, result in zip((X, Y), w.results, strict=True):
        D = i.run(*matrices)
        assert int(D[0, 0]) == result
        assert not np.delete(D.reshape(-1), 0).any()


def test_json_holds_everything_to_run_it_again() -> None:
    w = Witness.of(X, Y, A, B, C)
    case = json.loads(json.dumps(w.to_json()))
    a, b = ([int(x, 16) for x in case[side]] for side in "ab")
    for model in case["models"]:
        i = ARCHITECTURES[model["architecture"]][model["instruction"]]
        assert int(i.dot_add(a, b, int(case["c"], 16))) == int(model["result"], 16)


def test_text_names_what_is_lost_and_where_they_part() -> None:
    text = str(Witness.of(X, Y, A, B, C))
    assert "(15 products +0·+0 not shown)" in text
    assert "exact c + Σ a·b: 0x1.ffffffp-1" in text
    assert "1 ulp apart" in text
    assert "where they part: align, c" in text
    assert "(lost -0x1p-25)" in text


def test_witnesses_can_be_compared_and_kept_in_sets() -> None:
    w = Witness.of(X, Y, A, B, C)
    assert w == w
    assert w != Witness.of(X, Y, A, B, C)  # by identity, without a word on the truth of arrays
    assert len({w, w}) == 1


def test_scales_are_part_of_the_case() -> None:
    x = ARCHITECTURES["rtx_blackwell"]["QMMA.SF.16832.F32.E4M3.E4M3.E8"]
    y = x.replace(F=20)
    a, b = [0x38, *[0] * 31], [0x38, *[0] * 31]
    w = Witness.of(x, y, a, b, 0x3F800020, [0x80], [0x81])  # 8 + 1 + 2^-18
    case = json.loads(json.dumps(w.to_json()))
    assert (case["scale_a"], case["scale_b"], case["scale_format"]) == (["0x80"], ["0x81"], "ue8m0")
    assert w.rerun() == w.results
    assert w.size == (1, 1, 1, 1 + 2)
    assert "scale_a[0]" in str(w)
    assert w.matrices()[0].shape == (x.m, x.k)


def test_cuda_runs_this_case() -> None:
    source = Witness.of(X, Y, A, B, C).to_cuda()
    assert "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32" in source
    assert "b3000000" in source.lower()


def test_case_size_orders_cases() -> None:
    spec = X.spec
    zero = [0] * 16
    assert case_size(spec, zero, zero, 0) == (0, 0, 0, 0)
    assert case_size(spec, A, zero, 0) == (0, 0, 0, 0)  # 1·0 is no nonzero product
    assert case_size(spec, A, B, 0x80000000) == (1, 0, 0, 0)
    assert case_size(spec, [0x3C01, *zero[1:]], B, 0) == (1, 0, 1, 0)
    assert case_size(spec, [0x0001, *zero[1:]], B, 0x40000000) == (1, 1, 1, 14 + 1)


def test_zero_times_infinity_is_no_zero_product() -> None:
    zero, one, infinity, nan = 0x8000, ONE, 0x7C00, 0x7E00
    assert product_is_zero(zero, X.a_format, one, X.b_format)
    assert product_is_zero(one, X.a_format, zero, X.b_format)
    for special in (infinity, nan):
        assert not product_is_zero(zero, X.a_format, special, X.b_format)
        assert not product_is_zero(special, X.a_format, zero, X.b_format)


def test_nans_differ_where_both_payloads_are_known() -> None:
    known, unknown = X.spec, cdna2["v_mfma_f32_16x16x16f16"].spec
    assert (known.nan_is_canonical, unknown.nan_is_canonical) == (True, False)
    one, other = 0x7FC00000, 0x7FFFFFFF
    assert results_differ(known, known, one, other)
    assert not results_differ(known, unknown, one, other)
    assert not results_differ(unknown, unknown, one, other)
    assert results_differ(unknown, unknown, one, 0)
    assert not results_differ(known, known, one, one)


# ---- numbers as text


@given(st.sampled_from(["fp16", "bf16", "fp32", "e5m2", "e4m3", "e2m1", "fp64"]), st.data())
def test_numbers_are_printed_exactly(name: str, data: st.DataObject) -> None:
    fmt = FORMATS[name]
    code = data.draw(st.integers(0, fmt.codes - 1).filter(fmt.is_finite))
    value = fmt.value(code)
    shown = code_text(code, fmt).split()
    assert int(shown[0], 16) == code
    assert Fraction(float.fromhex(shown[1])) == value
    decimal = decimal_text(value)
    if not decimal.startswith("≈"):
        assert Fraction(decimal) == value
    assert fmt.code(shown[1]) == code or value == 0


def test_number_text() -> None:
    assert number_text(Fraction(3, 8)) == "0x1.8p-2 = 0.375"
    assert number_text(Fraction(1, 3 * 2**0 + 1)) == "0x1p-2 = 0.25"


def test_ulps() -> None:
    assert ulps_apart(0x3F800000, 0x3F7FFFFF, fp32) == 1
    assert ulps_apart(0x00000001, 0x80000001, fp32) == 2
    assert ulps_apart(0x00000000, 0x80000000, fp32) == 0
    assert ulps_apart(0x7F800000, 0x7F7FFFFF, fp32) == 1
    assert ulps_apart(0x7FC00000, 0, fp32) is None


# ---- the telling


def one_of_each() -> list[Instruction]:
    """The first instruction of each algorithm."""
    found: dict[str, Instruction] = {}
    for architecture in (*ARCHITECTURES.values(), *(ARCHITECTURES[x] for x in ("datapath", "emulation"))):
        for i in architecture:
            found.setdefault(i.algorithm, i)
    return list(found.values())


@pytest.mark.parametrize("i", one_of_each(), ids=lambda i: i.algorithm)
def test_every_algorithm_is_shown(i: Instruction) -> None:
    one = [i.a_format.code("1"), i.b_format.code("1")]
    scale = i.spec.scale_format
    scales = [[scale.code("1")] * i.spec.scales] * 2 if scale is not None else []
    (step, *_) = shown_steps(i, *([x] * i.k for x in one), i.c_format.code("1"), *scales)
    assert len(step.rows) > 1


def random_case(i: Instruction, rng: random.Random, finite: bool) -> list[object]:
    def code(fmt: object) -> int:
        while True:
            c = rng.getrandbits(fmt.storage_bits)  # type: ignore[attr-defined]
            if not finite or fmt.is_finite(c):  # type: ignore[attr-defined]
                return c

    s = i.spec
    case: list[object] = [[code(s.a_format) if rng.random() < 0.7 else 0 for _ in range(i.k)]]
    case += [[code(s.b_format) for _ in range(i.k)], code(s.c_format)]
    if s.scale_format is not None:
        case += [[code(s.scale_format) for _ in range(s.scales)] for _ in "ab"]
    return case


@pytest.mark.parametrize("i", one_of_each(), ids=lambda i: i.algorithm)
def test_the_last_line_is_the_result(i: Instruction) -> None:
    rng = random.Random(i.label)
    for number in range(60):
        case = random_case(i, rng, finite=number % 3 != 0)
        text = explain_case(i, *case)  # type: ignore[arg-type]
        last = text.splitlines()[-1]
        if "passes unchanged" not in last:
            if i.a_format.is_integer:  # an integer alone may be a number
                case = [
                    np.array(x, f.word)
                    for x, f in zip(case, (i.a_format, i.b_format, i.c_format), strict=True)
                ]
            code = int(i.dot_add(*case)) % i.d_format.codes  # type: ignore[arg-type]
            assert code_text(code, i.d_format) in last


@pytest.mark.parametrize("name", ["HMMA.16816.F32", "HMMA.16816.F16", "HMMA.16816.F32.BF16"])
def test_kept_and_lost_add_up_to_the_exact_sum(name: str) -> None:
    i = hopper[name]
    rng = random.Random(name)
    for _ in range(100):
        a, b, c = random_case(i, rng, finite=True)
        exact = exact_dot_add(i.spec, a, b, c)  # type: ignore[arg-type]
        text = explain_case(i, a, b, c)  # type: ignore[arg-type]
        aligned = [line for line in text.splitlines() if line.strip().startswith("align") and "0x" in line]
        told = Fraction(0)
        for line in aligned:
            for word in line.replace("(lost ", "").replace(")", "").split():
                if "0x" in word:
                    told += Fraction(float.fromhex(word))
        assert told == exact


def test_different_structures_are_told_one_after_the_other() -> None:
    a, b = [ONE] * 16, [ONE] * 16
    text = explain_difference(X, Y, a, b, C)
    assert "they do not add the same terms in one step" in text
    assert "takes 2 steps" in text
    assert "takes 1 step here" in text
