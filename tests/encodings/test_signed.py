"""Units that change signs around a dot product-add, or do not read c (`DotAdd.negated`, `reads_c`)."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from support.recorded import SHARED

from mmaformal import Fails, Holds, Unknown, matmul, power10, prove, sme, verify
from mmaformal.cases.generate import generate
from mmaformal.cases.inputs import Codes, Rows
from mmaformal.cases.numerical import exact_of
from mmaformal.cases.run import compiled_results, results, smt_result
from mmaformal.encodings.executable import signs as executable_signs
from mmaformal.encodings.rnd2 import Rnd2
from mmaformal.encodings.sfma import Sfma
from mmaformal.encodings.smt import signs as smt_signs
from mmaformal.facts import signed
from mmaformal.formats import e4m3, e4m3fnuz, fp16, fp32
from mmaformal.instruction import Instruction
from mmaformal.kernels.choose import choose_kernel
from mmaformal.queries.classes import as_instruction
from mmaformal.recordings import check, read
from mmaformal.rounding import IEEE_FP16, IEEE_FP32, Conversion, NanRule
from mmaformal.shown_stages import exact_dot_add
from mmaformal.spec import DotAdd

HALF = DotAdd(1, fp16, fp16, fp16, fp16, Sfma(IEEE_FP16, NanRule.DEFAULT))
PAIR = DotAdd(2, e4m3, e4m3, fp32, fp32, Rnd2(IEEE_FP32, IEEE_FP32, NanRule.DEFAULT))
FORMS = [("", False), ("a", True), ("c", True), ("d", True), ("cd", True), ("acd", True), ("a", False)]
NAN = 0x7E00


def of(spec: DotAdd, negated: str, reads_c: bool = True) -> DotAdd:
    return spec.replace(negated=negated, reads_c=reads_c)


def negative(codes: Any, fmt: Any) -> Any:
    """Sign bits changed, but those of NaNs: without the code that is tested."""
    magnitudes = np.asarray(codes, np.uint64) & np.uint64(fmt.sign_mask - 1)
    return np.where(magnitudes > fmt.infinity, codes, np.asarray(codes, np.uint64) ^ np.uint64(fmt.sign_mask))


# ---- what it is ------------------------------------------------------------------------------------------------------


def test_letters_are_checked_and_sorted() -> None:
    assert of(HALF, "dac").negated == "acd"
    assert (of(HALF, "cd").plain, HALF.plain) == (HALF, HALF)
    assert "−c, −d" in of(HALF, "dc").text
    assert "c not read" in of(HALF, "", False).text
    with pytest.raises(ValueError, match="some of a, c and d"):
        of(HALF, "b")
    with pytest.raises(ValueError, match="not read cannot be negated"):
        of(HALF, "c", False)
    with pytest.raises(TypeError):
        HALF.replace(negated=1)
    with pytest.raises(ValueError, match="no −0"):
        DotAdd(2, e4m3fnuz, e4m3fnuz, fp32, fp32, Rnd2(IEEE_FP32, IEEE_FP32), negated="a")


@pytest.mark.parametrize(
    ("negated", "reads_c", "told"),
    [
        ("", True, "c + Σ a·b"),
        ("a", True, "c − Σ a·b"),
        ("cd", True, "c − Σ a·b"),
        ("c", True, "Σ a·b − c"),
        ("d", True, "−c − Σ a·b"),
        ("acd", True, "c + Σ a·b"),
        ("", False, "Σ a·b"),
        ("a", False, "−Σ a·b"),
    ],
)
def test_the_exact_sum(negated: str, reads_c: bool, told: str) -> None:
    spec = of(HALF, negated, reads_c)
    assert spec.exact_sum == told
    x, y = spec.product_sign * 6, spec.c_sign * 5
    assert exact_dot_add(spec, [0x4000], [0x4200], 0x4500) == x + y
    assert exact_of(spec, Codes((0x4000,), (0x4200,), 0x4500)) == Fraction(x + y)
    if not reads_c:
        assert exact_dot_add(spec, [0x4000], [0x4200], NAN) == x


def test_a_subtracted_pair_is_in_the_exact_sum() -> None:
    spec = PAIR.replace(negate_pair=True)
    assert (spec.exact_sum, of(spec, "c").exact_sum, of(spec, "a").exact_sum) == (
        "c − Σ a·b", "−c − Σ a·b", "c + Σ a·b",
    )  # fmt: skip


@pytest.mark.parametrize("form", FORMS, ids=str)
@pytest.mark.parametrize("spec", [HALF, PAIR], ids=["sfma", "rnd2"])
def test_all_ways_to_run_it_are_the_plain_unit_on_changed_codes(spec: DotAdd, form: tuple[str, bool]) -> None:
    each = of(spec, *form)
    rows = generate(each, 300)
    x = rows.codes
    fnan = {"a": spec.a_format, "c": spec.c_format}
    a = tuple(_changed(code, fnan["a"]) for code in x.a) if "a" in form[0] else x.a
    c = negative(x.c, spec.c_format) if "c" in form[0] else x.c
    c = c if form[1] else np.full_like(x.c, spec.c_format.sign_mask)
    wanted = results(spec, replace(x, a=a, c=c))
    wanted = negative(wanted, spec.d_format) if "d" in form[0] else wanted
    np.testing.assert_array_equal(results(each, x), wanted)
    np.testing.assert_array_equal(compiled_results(each, x), wanted)
    for row in range(0, 300, 10):
        assert smt_result(each, rows[row]) == wanted[row]


def _changed(codes: Any, fmt: Any) -> Any:
    if fmt.infinity is not None:
        return negative(codes, fmt)
    return np.where((np.asarray(codes) & 0x7F) == 0x7F, codes, np.asarray(codes, np.uint64) ^ np.uint64(0x80))


def test_a_chain_of_those_that_pass_on() -> None:
    down, through = (Instruction("X", "test", 1, 1, of(HALF, negated)) for negated in ("c", "cd"))
    assert not down.spec.passes_on
    assert not of(HALF, "", False).passes_on
    with pytest.raises(ValueError, match="no chain"):
        down.chained(3)
    a, b = [0x3C00, 0x4000, 0x4200], [0x4000, 0x4400, 0xC000]
    whole = through.chained(3).spec
    d = 0x4900
    for x, y in zip(a, b, strict=True):
        d = int(results(through.spec, _columns([x], [y], d))[0])
    assert int(results(whole, _columns(a, b, 0x4900))[0]) == d


def _columns(a: list[int], b: list[int], c: int) -> Any:
    return Rows.of([Codes(tuple(a), tuple(b), c)]).codes


def test_the_gemm_issues_it_one_by_one() -> None:
    i = power10["xvf32gerpn"]
    rng = np.random.default_rng(3)
    A, B = (rng.normal(size=shape).astype(np.float32) for shape in ((3, 5), (5, 4)))
    D = matmul(A, B, instruction=i)
    for row in range(3):
        for column in range(4):
            d: Any = np.float32(0)
            for k in range(5):
                d = i.dot_add(A[row, k : k + 1], B[k : k + 1, column], d)
            assert D[row, column] == d
    assert "signs changed" in choose_kernel(i.spec).description


# ---- proofs ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", [("acd", True), ("d", False)], ids=str)
def test_both_encodings_are_proved_equal(form: tuple[str, bool]) -> None:
    assert isinstance(verify(as_instruction(of(PAIR, *form)), timeout=100), Holds)


@pytest.mark.parametrize("encoding", [smt_signs, executable_signs], ids=["smt", "executable"])
def test_a_change_of_a_sign_that_one_encoding_lacks_is_found(
    encoding: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        encoding.Stages, "change_sign", lambda self, code, fmt: self.code("change_sign", [code], code, fmt)
    )
    assert isinstance(verify(as_instruction(of(PAIR, "d")), timeout=100), Fails)


@pytest.mark.parametrize("name", ["commutativity", "sign-symmetry", "power-of-two-scaling", "every-number"])
@pytest.mark.parametrize("form", [("cd", True), ("d", True), ("a", True)], ids=str)
def test_properties_hold_as_of_the_plain_unit(name: str, form: tuple[str, bool]) -> None:
    assert isinstance(prove(name, as_instruction(of(HALF, *form)), timeout=100), Holds)


@pytest.mark.slow
def test_signs_of_a_may_stand_at_b() -> None:
    assert isinstance(prove("commutativity", sme["BFMOPS"], timeout=200), Holds)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["XVF32GERPN", "XVF32GERNN"])
def test_nans_of_addends_keep_their_place(name: str) -> None:
    assert isinstance(prove("sign-symmetry", power10[name], timeout=300), Holds)


def test_a_sum_of_a_product_alone_needs_no_carry() -> None:
    answer = prove("accumulator-width", power10["XVF32GER"], timeout=100)
    assert isinstance(answer, Holds)
    assert answer.numbers[0].value == 0


@pytest.mark.parametrize("name", ["exactness", "error-bound", "correct-rounding"])
def test_the_exact_sum_is_rounded_once(name: str) -> None:
    answer = prove(name, as_instruction(of(HALF, "cd")), timeout=100)
    assert isinstance(answer, Holds)
    assert any("signs" in each.statement for each in answer.proof.obligations)


def test_a_rounding_that_knows_up_from_down_is_not_reduced() -> None:
    down = HALF.replace(rho=Conversion.named("RD-FP16±0"))
    answer = prove("correct-rounding", as_instruction(of(down, "d")), timeout=100)
    assert not isinstance(answer, Holds)
    assert isinstance(prove("correct-rounding", as_instruction(of(down, "a")), timeout=100), Holds)


@pytest.mark.parametrize(("form", "holds"), [(("cd", True), True), (("", False), True), (("c", True), False)])
def test_d_grows_with_c_if_its_sign_is_changed_twice(form: tuple[str, bool], holds: bool) -> None:
    answer = prove("monotonicity-in-c", as_instruction(of(HALF, *form)), timeout=200)
    assert isinstance(answer, Holds if holds else Fails)


def test_d_falls_with_a_product_that_is_subtracted() -> None:
    answer = prove("monotonicity-in-a-product", as_instruction(of(HALF, "a")), timeout=100)
    assert isinstance(answer, Fails)
    assert "c − Σ a·b" in answer.why


def test_a_claim_about_signs_that_is_wrong_is_not_proved(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(signed, "changed_inputs", lambda spec, x: x)
    answer = prove("correct-rounding", as_instruction(of(HALF, "a")), timeout=60)
    assert isinstance(answer, Unknown)


# ---- the architectures -----------------------------------------------------------------------------------------------


def one(i: Instruction, a: list[int], b: list[int], c: int) -> int:
    return int(results(i.spec, _columns(a, b, c))[0])


@pytest.mark.parametrize(
    ("name", "zero"),
    [("xvbf16ger2pp", 0), ("xvbf16ger2np", 0), ("xvbf16ger2pn", 0), ("xvbf16ger2nn", 1 << 31)],
)
def test_zero_pairs_with_plus_zero(name: str, zero: int) -> None:
    assert one(power10[name], [0, 0], [0, 0], 0) == zero


@pytest.mark.parametrize("name", ["xvf32gernp", "xvf32gernn"])
def test_fma_is_negated_after_it_is_rounded(name: str) -> None:
    assert one(power10[name], [0], [0x3F800000], 0) == 1 << 31


def test_one_times_one_less_one_is_minus_zero_where_the_result_is_negated() -> None:
    assert one(power10["xvf32gernp"], [0x3F800000], [0x3F800000], 0x3F800000) == 1 << 31
    assert one(sme["FMOPS.F32"], [0x3F800000], [0x3F800000], 0x3F800000) == 0


@pytest.mark.parametrize(
    ("a", "b", "nan"),
    [
        ((0x7FC1, 0x7FC2), (0x7FC3, 0x7FC4), 0x7FC10000),
        ((0x3F80, 0x7FC2), (0x7FC3, 0x7FC4), 0x7FC20000),
        ((0x3F80, 0x3F80), (0x7FC3, 0x7FC4), 0x7FC40000),
        ((0x3F80, 0x3F80), (0x7FC3, 0x3F80), 0x7FC30000),
        ((0x3F80, 0x7F80), (0x7FC3, 0x0000), 0x7FC00000),  # an invalid product 1 hides b_0's NaN
        ((0x7F80, 0x7FC2), (0x0000, 0x3F80), 0x7FC20000),  # an invalid product 0 hides none
        ((0x3F80, 0xFF81), (0x3F80, 0x3F80), 0xFFC10000),  # made quiet, with its sign
    ],
)
@pytest.mark.parametrize("name", ["xvbf16ger2", "xvbf16ger2pp", "xvbf16ger2nn"])
def test_which_nan_a_pair_gives(a: tuple[int, int], b: tuple[int, int], nan: int, name: str) -> None:
    i = power10[name]
    assert one(i, [*a], [*b], 0x7F812345) == nan
    assert one(i, [0x3F80, 0], [0x3F80, 0], 0x7F812345) == (0x7FC12345 if i.spec.reads_c else 0x3F800000)
    assert one(sme["BFMOPA"], [*a], [*b], 0) == 0x7FC00000


def test_the_order_of_an_fmas_nans_is_a_parameter() -> None:
    a, b, c = [0x7FA00001], [0x7FA00002], 0x7FA00003
    assert one(power10["xvf32gerpp"], a, b, c) == 0x7FE00001
    assert one(power10["xvf32gernn"], [0], b, c) == 0x7FE00003
    spec = power10["xvf32gerpp"].spec.replace(nan=NanRule.FIRST)
    assert one(as_instruction(spec), [0], b, c) == 0x7FE00002
    assert one(as_instruction(spec), [0], [0x7F800000], 0) == 0xFFC00000
    assert (NanRule.FIRST.order, NanRule.FIRST_ACB.order, NanRule.DEFAULT.order) == (
        ("a", "b", "c"), ("a", "c", "b"), (),
    )  # fmt: skip


def test_names() -> None:
    titled = sme.of_opcode("FMOPS (widening, 2-way, FP16 to FP32)")
    assert [i.name for i in titled] == ["FMOPS.F32.F16", "FMOPS.F32", "FMOPS.F64"]
    assert [i.spec.exact_sum for i in power10 if i.name.startswith("XVF64")] == [
        "Σ a·b", "c + Σ a·b", "c − Σ a·b", "Σ a·b − c", "−c − Σ a·b",
    ]  # fmt: skip


@pytest.mark.parametrize("i", [*sme, *power10], ids=lambda i: i.name)
def test_both_encodings_give_the_same_codes(i: Instruction) -> None:
    """Both encodings agree on cases of all kinds, and on NaNs everywhere."""
    spec, rng = i.spec, np.random.default_rng(5)
    rows = generate(spec, 6)
    some = [*rows.cases(), *(_with_nans(spec, rng) for _ in range(6))]
    found = results(spec, Rows.of(some).codes)
    np.testing.assert_array_equal(found, compiled_results(spec, Rows.of(some)))
    assert [smt_result(spec, codes) for codes in some] == [int(d) for d in found]


def _with_nans(spec: DotAdd, rng: np.random.Generator) -> Codes:
    """Codes half of which are NaNs with payloads."""

    def code(fmt: Any) -> int:
        any_code = int(rng.integers(0, 1 << 62)) & (fmt.codes - 1)
        return any_code | fmt.infinity | 1 if rng.random() < 0.5 else any_code

    factors = [tuple(code(fmt) for _ in range(spec.k)) for fmt in (spec.a_format, spec.b_format)]
    return Codes(factors[0], factors[1], code(spec.c_format))


FILES = sorted(p for name in ("power10", "sme") for p in (SHARED / "emulators").glob(f"{name}_*.npz"))


@pytest.mark.skipif(not FILES, reason="the recordings of emulators are not here")
def test_recordings_of_emulators_nans_and_zeros_included() -> None:
    reports = [check(read(path)) for path in FILES]
    assert sum(each.rows for each in reports) == 56_668
    assert not any(each.mismatches for each in reports)
