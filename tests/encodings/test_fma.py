"""fma of any formats, and IEEE 754's roundings: against rationals, and both encodings proved equal."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest
import z3
from support import fma_numbers
from support.fma_numbers import exact_sum, nan_of
from support.slow import slow

from mmaformal import datapath, find_difference, prove
from mmaformal.cases.generate import generate
from mmaformal.cases.run import both_results
from mmaformal.encodings.fma import Fma
from mmaformal.encodings.fma import smt as smt_fma
from mmaformal.encodings.smt.blocks import StickySum
from mmaformal.formats import e4m3, e5m2, fp32
from mmaformal.proof.definitions import is_correct, is_faithful
from mmaformal.queries.verify import verify
from mmaformal.rounding import DETERMINISTIC, Conversion, Rounding, Tininess
from mmaformal.solver.answers import Different, Fails, Holds, Unknown
from mmaformal.spec import DotAdd

ROUNDINGS = ("", "RZ-", "RD-", "RU-", "RNA-")

#: fma in every format, a wider or narrower d, flushed before and after, with each rule of NaNs
FMAS = [
    *(f"fma(a=e5m2,rho=IEEE-{each}E5M2)" for each in ROUNDINGS),
    *(f"fma(a=bf16,rho=IEEE-{each}BF16)" for each in ROUNDINGS),
    "fma(a=e4m3,b=e5m2,rho=IEEE-E4M3)",
    "fma(a=e4m3,rho=IEEE-RD-E4M3-SatFinite)",
    "fma(a=e4m3,b=e5m2,c=fp32,rho=IEEE-RU-E4M3)",
    "fma(a=e4m3,rho=IEEE-RMM-FP16,nan=DEFAULT,ones=1)",
    "fma(a=e5m2,rho=IEEE-RD-BF16,nan=FIRST)",
    "fma(a=fp16,rho=IEEE-RTZ-FP16,nan=FIRST_ACB)",
    "fma(a=fp16,rho=IEEE-RD-FP16,tiny=BEFORE)",
    "fma(a=fp16,rho=IEEE-RNA-FP16,tiny=AFTER)",
    "fma(a=fp16,rho=IEEE-RU-FP16,tiny=AFTER,flush_inputs=1)",
    "fma(a=fp16,c=fp32,rho=IEEE-FP16)",
    "fma(a=fp16,c=fp16,rho=IEEE-RD-FP32)",
    "fma(a=bf16,c=bf16,rho=IEEE-RU-FP16,nan=DEFAULT)",
    "fma(a=bf16,rho=IEEE-FP32,tiny=AFTER,flush_inputs=1,nan=FIRST)",
    "fma(a=tf32,rho=IEEE-RZ-FP32)",
    "fma(a=tf32,c=tf32,rho=IEEE-E8M10)",
    "fma(a=e4m3,c=fp16,rho=IEEE-E5M3)",
    "fma(a=fp16,rho=IEEE-RU-E8M13)",
    "fma(a=fp32,rho=IEEE-RD-FP32,tiny=AFTER)",
    "fma(a=fp32,c=fp32,rho=IEEE-RU-FP16)",
    "fma(a=fp32,c=fp64,rho=IEEE-RNA-FP64)",
    "fma(a=bf16,c=fp64,rho=IEEE-RZ-FP16,tiny=AFTER,flush_inputs=1,nan=DEFAULT,ones=1)",
    "fma(a=fp64,rho=IEEE-RU-FP64,nan=FIRST)",
    "fma(a=fp64,c=fp32,rho=IEEE-FP32)",
]
#: proved within a few seconds
QUICK = ["fma(a=bf16,rho=IEEE-RD-BF16)", "fma(a=e4m3,b=e5m2,rho=IEEE-E4M3)", "fma(a=e5m2,rho=IEEE-RZ-E5M2)"]
OTHERS = [name for name in FMAS if name not in QUICK]


def wanted(spec: DotAdd, a: int, b: int, c: int) -> int | None:
    """Returns the code of d by rationals; None for any NaN."""
    p, formats = spec.parameters, (spec.a_format, spec.b_format, spec.c_format)
    own = p if isinstance(p, Fma) else Fma(p.last_rounding)
    code = exact_sum([(a, b)], c, formats, own.rho, own.flush_inputs, own.tiny)
    if isinstance(code, int):
        return code
    return nan_of(own.nan, own.ones, list(zip((a, b, c), formats, strict=True)), own.rho)


def assert_exact(spec: DotAdd, got: int, a: int, b: int, c: int) -> None:
    right = wanted(spec, a, b, c)
    assert got == right or (right is None and spec.d_format.is_nan(got)), (
        hex(a),
        hex(b),
        hex(c),
        hex(got),
        right,
    )


@pytest.mark.parametrize("name", FMAS)
def test_an_fma_is_the_exact_one_rounded_once(name: str) -> None:
    i = datapath[name]
    rows = generate(i.spec, 400)
    for each, got in zip(rows.cases(), i.dot_add(rows.a, rows.b, rows.c), strict=True):
        assert_exact(i.spec, int(got), each.a[0], each.b[0], each.c)


@pytest.mark.parametrize("name", slow(FMAS, [name for name in FMAS if "64" in name or name not in FMAS[::3]]))
def test_terms_too(name: str) -> None:
    spec = datapath[name].spec
    rows = generate(spec, 4)
    for each, both in zip(rows.cases(), both_results(spec, rows), strict=True):
        for got in both:
            assert_exact(spec, got, each.a[0], each.b[0], each.c)


def test_a_rounding_without_a_definition_is_not_judged() -> None:
    answer = prove("correct-rounding", datapath["fma(k=4,a=fp16,rho=RNE-E4M3)"])
    assert isinstance(answer, Unknown)
    assert "no definition of rounding with RNE-E4M3" in answer.why


def test_a_sum_whose_exponents_are_all_below_the_least_that_matters_is_judged() -> None:
    answer = prove("correct-rounding", datapath["exact(k=2,a=e4m3,b=e4m3,c=fp16,rho=RNE-FP16)"], timeout=60.0)
    assert isinstance(answer, Holds)


@pytest.mark.parametrize("rounding", DETERMINISTIC)
def test_every_mode_is_known_where_numbers_are_flushed_after_rounding(rounding: Rounding) -> None:
    """A mode that both encodings took for another alike would be proved equal."""
    smt_fma.goes_away(rounding, z3.BitVecVal(0, 1))
    with pytest.raises(KeyError):
        smt_fma.goes_away("another", z3.BitVecVal(0, 1))  # type: ignore[arg-type]


@pytest.mark.parametrize("tiny", ["kept", "BEFORE", "AFTER"])
@pytest.mark.parametrize("rounding", ROUNDINGS)
def test_around_the_least_normal_number(rounding: str, tiny: str) -> None:
    """Products and c of e5m2 whose sum is near 2^−14, the least normal number of fp16 and of e5m2."""
    near = [e5m2.sign_mask * s + m for s in (0, 1) for m in (*range(1, 9), 0x11, 0x3C, 0x3D)]
    i = datapath[f"fma(a=e5m2,rho=IEEE-{rounding}E5M2,tiny={tiny})"]
    cases = np.array(list(itertools.product(near, near, near)), np.uint8)
    got = i.dot_add(cases[:, :1], cases[:, 1:2], cases[:, 2])
    for (a, b, c), code in zip(cases.tolist(), got, strict=True):
        assert_exact(i.spec, int(code), a, b, c)


@pytest.mark.parametrize("name", slow([*QUICK, *OTHERS], OTHERS))
def test_both_encodings_are_proved_equal(name: str) -> None:
    answer = verify(datapath[name], timeout=500)
    assert isinstance(answer, Holds), answer


def test_the_proof_notices_a_sum_that_is_cut_where_it_is_jammed(monkeypatch: pytest.MonkeyPatch) -> None:
    def cut(x: StickySum, exponents: smt_fma.ExponentRange, least: int) -> tuple[z3.BitVecRef, z3.BitVecRef]:
        floor, real = exponents.constant(least), shifted(x, exponents, least)
        return z3.If(z3.ULT(x.e_max, floor), real[0] & ~z3.BitVecVal(1, real[0].size()), real[0]), real[1]

    shifted = smt_fma.shifted_to_least
    monkeypatch.setattr(smt_fma, "shifted_to_least", cut)
    assert isinstance(verify(datapath["fma(a=bf16,c=bf16,rho=IEEE-RU-FP16)"], timeout=60), Fails)


def test_the_proof_notices_when_a_result_is_tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    real = smt_fma.is_tiny

    def before(p: Fma, *given: object) -> z3.BoolRef:
        return real(Fma(p.rho, tiny=Tininess.BEFORE), *given)  # type: ignore[arg-type]

    monkeypatch.setattr(smt_fma, "is_tiny", before)
    assert isinstance(verify(datapath["fma(a=e5m2,rho=IEEE-E5M2,tiny=AFTER)"], timeout=60), Fails)


def test_ieee_conversions_by_name() -> None:
    assert Conversion.named("IEEE-RTZ-FP32") == Conversion.named("IEEE-RZ-FP32")
    assert Conversion.named("IEEE-RNE-FP32").name == "IEEE-FP32"
    assert Conversion.named("IEEE-RMM-BF16").rounding is Rounding.RNA
    assert Conversion.named("IEEE-RU-E8M10").format == fp32
    assert Conversion.named("IEEE-RZ-E4M3-SatFinite").format == e4m3
    for wrong in ("IEEE-RO-FP32", "IEEE-RX-FP32", "IEEE-BINARY8P4SE", "IEEE-RD", "IEEE-E6M9"):
        with pytest.raises(ValueError, match=r"no ρ named|no format of IEEE"):
            Conversion.named(wrong)
    with pytest.raises(ValueError, match="told apart"):
        Conversion("RNE", fp32, 23, Rounding.RNE, signed_zero=True, ieee=True)


@pytest.mark.parametrize(
    ("rounding", "sign", "code"), [("RZ", 1, 0x7BFF), ("RD", 1, 0x7BFF), ("RU", 1, 0x7C00)]
)
def test_what_overflows(rounding: str, sign: int, code: int) -> None:
    """2^15 · 2, by hand; the largest number of fp16 is 0x7BFF.  Without `ieee` it is infinity."""
    for name, right in ((f"IEEE-{rounding}-FP16", code), (f"{rounding}-FP16±0", 0x7C00)):
        got = datapath[f"fma(a=fp16,rho={name})"].dot_add(
            np.array([0x7800], np.uint16), np.array([0x4000], np.uint16), np.uint16(0)
        )
        assert int(got) == right


def test_an_exact_zero_is_negative_with_rd_alone() -> None:
    """1·1 − 1, and 0·1 − 0."""
    for rounding in ("RNE", "RZ", "RU", "RNA", "RD"):
        i = datapath[f"fma(a=fp16,rho=IEEE-{rounding}-FP16)"]
        a, b, c = (
            np.array([[0x3C00], [0]], np.uint16),
            np.array([[0x3C00]] * 2, np.uint16),
            np.array([0xBC00, 0x8000]),
        )
        assert [int(x) for x in i.dot_add(a, b, c.astype(np.uint16))] == [0x8000 * (rounding == "RD")] * 2


@pytest.mark.parametrize("rounding", ["RZ", "RD", "RU"])
def test_the_definition_of_rounding_overflows_so_too(rounding: str) -> None:
    rho = Conversion.named(f"IEEE-{rounding}-E5M2")
    for x in (Fraction(57344), Fraction(57345), Fraction(65536), Fraction(10) ** 9, Fraction(1, 3)):
        for value in (x, -x):
            code = fma_numbers.code_of(value, rho, False)
            assert is_correct(code, value, rho)
            assert is_faithful(code, value, rho)
            assert not is_correct(code ^ 1, value, rho)


@pytest.mark.slow
@pytest.mark.parametrize("rounding", ["RZ", "RD", "RU", "RNA"])
def test_an_fma_of_ieee_754_is_correctly_rounded(rounding: str) -> None:
    i = datapath[f"fma(a=fp16,rho=IEEE-{rounding}-FP16)"]
    assert isinstance(prove("correct-rounding", i, timeout=300), Holds)


def test_two_fma_are_told_apart_by_the_smallest_input() -> None:
    """2^8 · 2^8 is infinity to nearest, the largest number toward zero."""
    left, right = (datapath[f"fma(a=e5m2,rho={rho})"] for rho in ("IEEE-E5M2", "IEEE-RZ-E5M2"))
    answer = find_difference(left, right, timeout=60)
    assert isinstance(answer, Different)
    assert answer.witness.results == (0x7C, 0x7B)


@pytest.mark.parametrize(
    "name", ["commutativity", "sign-symmetry", "no-nan-from-finite", "accumulator-width"]
)
def test_properties(name: str) -> None:
    assert isinstance(prove(name, datapath["fma(a=e5m2,rho=IEEE-E5M2,nan=DEFAULT)"], timeout=60), Holds)


def test_a_downward_rounding_breaks_the_symmetry_of_signs() -> None:
    answer = prove("sign-symmetry", datapath["fma(a=e5m2,rho=IEEE-RD-E5M2)"], timeout=60)
    assert isinstance(answer, Fails)


def test_what_is_refused() -> None:
    for name in (
        "fma(a=fp32,b=fp64,rho=IEEE-FP64)",  # products of 77 bits
        "fma(a=tf32,rho=IEEE-FP32,nan=FIRST)",  # whose NaNs?
        "fma(a=e4m3,rho=IEEE-E4M3,tiny=BEFORE)",
        "fma(a=fp16,rho=IEEE-FP16,ones=1)",
    ):
        with pytest.raises((KeyError, ValueError), match="fma needs"):
            datapath[name]
