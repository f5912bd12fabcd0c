"""Whether every result is one that RISC-V's standard allows: what it allows of one input, and what is proved."""

from __future__ import annotations

import contextlib
import random
from fractions import Fraction
from typing import Any

import pytest
import z3

from mmaformal import ARCHITECTURES, hopper, prove, riscv
from mmaformal.analysis import riscv_fp32, riscv_freedom
from mmaformal.analysis.riscv_freedom import (
    NAN,
    TooManyError,
    allowed,
    cuts,
    is_of_standard,
    number_to_odd,
    single,
)
from mmaformal.architectures import datapaths
from mmaformal.cases.generate import generate
from mmaformal.cases.inputs import Codes, Inputs
from mmaformal.cases.symmetries import Symmetries
from mmaformal.cases.witness import CaseWitness
from mmaformal.encodings.rvbna.proofs import model
from mmaformal.formats import Format, bf16, fp32
from mmaformal.instruction import Instruction
from mmaformal.queries import conformance, standard_units
from mmaformal.queries.standard_units import Standard
from mmaformal.solver.answers import Fails, Holds, Unknown
from mmaformal.solver.asking import Asker
from mmaformal.solver.portfolio import DEFAULT_MEMORY, LazyPortfolio
from mmaformal.spec import DotAdd
from mmaformal.witness import WitnessError

SMALL = "vfqwbdota.vv.E4M3.n2"
CONFORMING = ("riscv", "riscv@corrected", "riscv@products", "riscv@pairs", "riscv@fours")
ONE = Fraction(1)


def test_cutting_twice_is_cutting_once() -> None:
    rng = random.Random(5)
    for _ in range(500):
        x = Fraction(rng.randrange(1, 1 << 40)) * rng.choice([1, -1])
        low = rng.randrange(0, 20)
        assert number_to_odd(number_to_odd(x, low), low + 7) == number_to_odd(x, low + 7)


def test_what_a_number_may_become_ends_at_the_precision_of_the_instruction() -> None:
    assert set(cuts(ONE)) == {ONE}
    x = 1 + Fraction(2) ** -26
    assert set(cuts(x)) == {x, 1 + Fraction(2) ** -25, 1 + Fraction(2) ** -24, 1 + Fraction(2) ** -23}
    assert set(cuts(Fraction(2) ** 128)) == {Fraction(2) ** 128, float("inf")}
    assert {single(x) for x in cuts(Fraction(2) ** -160)} == {1}


def test_single_is_to_odd() -> None:
    for code in (0, 1, 0x7FFFFF, 0x800000, 0x3F800001, 0x7F7FFFFF, 0x80000001, 0xFF7FFFFF):
        x = fp32.value(code)
        assert single(x) == code
        if x:
            assert single(x * (1 + Fraction(2) ** -40)) == code | 1
    assert single(Fraction(2) ** 128) == 0x7F800000


@pytest.mark.parametrize("name", ["vfwbdota.vv.n4", "vfqwbdota.alt.vv.E4M3.n4"])
@pytest.mark.parametrize("distribution", ["near", "least", "largest", "special"])
def test_conforming_units_give_what_is_allowed(name: str, distribution: str) -> None:
    units = [ARCHITECTURES[reading][name] for reading in CONFORMING]
    spec, known = units[0].spec, 0
    for codes in generate(spec, 20, 1, [distribution]).cases():  # type: ignore[list-item]
        try:
            right = allowed(spec, codes.a, codes.b, codes.c, 500)
        except TooManyError:
            continue
        known += 1
        for i in units:
            assert int(i.dot_add(list(codes.a), list(codes.b), codes.c)) in right, (i.label, codes)
    assert known > 5


def test_a_product_and_c_have_one_result() -> None:
    spec = riscv["vfwbdota.vv.n8"].spec
    for c in (0x30000000, 0xB0000000, 0x3F800000, 0xBF800000):
        assert len(allowed(spec, [0x3F81] + [0] * 7, [0x3F80] + [0] * 7, c)) == 1


def test_sets_give_more_than_one_result() -> None:
    """2^24 + 1 + 1: to odd at each addition, or summed first."""
    spec = riscv["vfwbdota.vv.n2"].spec
    one, large = 0x3F80, 0x4B80
    assert allowed(spec, [one, one], [one, one], 0x4B800000) == {0x4B800001}
    right = allowed(riscv["vfwbdota.vv.n4"].spec, [large, one, one, one], [one] * 4, 0)
    assert right == {0x4B800001, 0x4B800002}


@pytest.mark.parametrize("reading", ["riscv", "riscv@corrected", "riscv@products"])
def test_conforming_units_are_proved(reading: str) -> None:
    answer = prove("conformance", ARCHITECTURES[reading][SMALL], timeout=200)
    assert isinstance(answer, Holds)
    assert "conforming unit of" in answer.notes[0]


@pytest.mark.slow
@pytest.mark.parametrize("reading", CONFORMING)
@pytest.mark.parametrize("name", ["vfwbdota.vv.n4", "vfwbdota.vv.n8", "vfqwbdota.vv.E4M3.n8"])
def test_more_conforming_units_are_proved(reading: str, name: str) -> None:
    assert isinstance(prove("conformance", ARCHITECTURES[reading][name], timeout=900), Holds)


def not_conforming() -> list[Instruction]:
    one = riscv["vfwbdota.vv.n2"]
    return [
        ARCHITECTURES["riscv@printed-1"]["vfwbdota.vv.n2"],
        ARCHITECTURES["riscv@printed-2"]["vfwbdota.vv.n2"],
        ARCHITECTURES["riscv@printed"][SMALL],
        one.replace(addition="IEEE-FP32"),
        one.replace(rho="RZ-FP32"),
        one.replace(cut="RZ"),
    ]


@pytest.mark.parametrize(
    "spec",
    [datapaths.named("mul_add(k=2,a=fp32)").spec, standard_units.member(riscv["vfwbdota.vv.n2"].spec, 1)],
    ids=["fp32", "the corrected text"],
)
def test_a_unit_that_is_no_chain_of_its_steps_is_not_proved_to_be_one(
    spec: DotAdd, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two products are added in the other order than their steps are."""
    whole = conformance.smt.dot_add

    def turned(spec: DotAdd, a: Any, b: Any, c: Any) -> Any:
        return whole(spec, a[::-1], b[::-1], c)

    with LazyPortfolio(None, DEFAULT_MEMORY) as portfolio:
        asker = Asker(portfolio, 60.0)
        assert conformance._proved_chain(spec, 1, asker) is not None
        monkeypatch.setattr(conformance.smt, "dot_add", turned)
        assert conformance._proved_chain(spec, 1, asker) is None


def test_a_case_of_a_solver_that_is_allowed_is_not_the_last(monkeypatch: pytest.MonkeyPatch) -> None:
    """The standard allows more than what the members give: another case is asked for."""
    search, seen = conformance._SmallestOutside, list[Codes]()
    is_shown = search.is_shown

    def first_is_allowed(self: Any, codes: Codes) -> bool:
        seen.append(codes)
        return len(seen) > 1 and is_shown(self, codes)

    monkeypatch.setattr(search, "drawn", lambda _: None)
    monkeypatch.setattr(search, "is_shown", first_is_allowed)
    unit = ARCHITECTURES["riscv@printed"]["vfqwbdota.vv.E4M3.n2"]
    assert isinstance(prove("conformance", unit, timeout=100), Fails)
    assert len(seen) > 1


@pytest.mark.parametrize(("shown", "verdict"), [(True, "sat"), (False, "unknown")])
def test_a_question_that_leaves_out_cases_is_not_refuted(
    shown: bool, verdict: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """1·1 with any c: where no such case shows it, that is not to be said of all c by those of a solver."""
    unit = riscv["vfwbdota.vv.n2"].replace(addition="IEEE-FP32")
    with LazyPortfolio(None, DEFAULT_MEMORY) as portfolio:
        search = conformance._SmallestOutside(unit, Standard(unit.spec), "", Asker(portfolio, 60.0))
        search.know(Symmetries([0, 0], False, False, "plus"))
        monkeypatch.setattr(search, "is_shown", lambda _: shown)

        def one(inputs: Inputs, _: object) -> list[z3.BoolRef]:
            return [inputs.a[0] == 0x3F80, inputs.b[0] == 0x3F80]

        assert search.ask_within((0,), "1·1", [one])[0].verdict == verdict


@pytest.mark.parametrize("i", not_conforming(), ids=lambda i: i.label)
def test_other_units_have_an_input_outside(i: Instruction) -> None:
    answer = prove("conformance", i, timeout=8)
    assert isinstance(answer, Fails)
    assert isinstance(answer.witness, CaseWitness)
    codes = answer.witness.codes
    d = int(i.dot_add(list(codes.a), list(codes.b), codes.c))
    assert d not in allowed(i.spec, codes.a, codes.b, codes.c)


@pytest.mark.parametrize(
    ("reading", "change", "text"),
    [
        pytest.param(
            *("riscv@printed-1", {}, "a[0]·b[0] = 0x3980·0x3980, a[1]·b[1] = 0x3f80·0x3f80, c = 0x0"),
            marks=pytest.mark.slow,
        ),
        ("riscv", {"addition": "IEEE-FP32"}, "a[0]·b[0] = 0x3f80·0x3f80, c = 0x33800000"),
    ],
)
def test_the_smallest_input_outside_is_proved_minimal(
    reading: str, change: dict[str, str], text: str
) -> None:
    i = ARCHITECTURES[reading]["vfwbdota.vv.n2"]
    answer = prove("conformance", i.replace(**change) if change else i, timeout=300)
    assert isinstance(answer, Fails)
    assert isinstance(answer.witness, CaseWitness)
    assert answer.witness.codes.text == text
    assert all(line.endswith("proved minimal") for line in answer.witness.minimality)
    assert answer.witness.notes[-1].startswith("the unit's symmetries are proved")


ODD = "rho=RO-FP32"
OTHERS = [
    f"exact(k=2,a=bf16,{ODD})",
    f"fma(k=2,a=bf16,{ODD})",
    f"mul_add(k=2,a=bf16,{ODD})",
    f"pair_add(k=2,a=bf16,{ODD})",
    f"tree(k=2,a=bf16,order=(1+c)+0,{ODD},nan=DEFAULT)",
    "exact(k=2,a=fp32)",
    "tree(k=2,a=fp32,order=0+(1+c))",
]


@pytest.mark.parametrize("unit", OTHERS)
def test_units_with_other_trees_conform_and_give_what_is_allowed(unit: str) -> None:
    i = datapaths.named(unit)
    standard = Standard(i.spec)
    assert standard.step_of(i.spec)
    for codes in generate(i.spec, 40, 1).cases():
        d = int(i.dot_add(list(codes.a), list(codes.b), codes.c))
        assert not standard.is_outside(codes, d, not i.spec.nan_is_canonical), (codes, d)
    minus = Codes((fp32.sign_mask >> (32 - i.spec.a_format.storage_bits),) * 2, (0, 0), fp32.sign_mask)
    assert int(i.dot_add(list(minus.a), list(minus.b), minus.c)) in standard.allowed(minus)


@pytest.mark.parametrize(
    "unit",
    [
        "exact(k=2,a=bf16)",
        "exact(k=2,a=bf16,rho=RO-FP32±0)",
        "fma(k=2,a=bf16,rho=RO-FP32,flush_inputs=1)",
        "tree(k=2,a=bf16,rho=RO-FP32,sums=RNE-FP32)",
        "exact(k=2,a=fp32,rho=IEEE-RZ-FP32)",
        "tree(k=2,a=fp32,sums=IEEE-E8M13.IEEE-FP32)",
    ],
)
def test_no_step_of_another_rounding_or_zero_counts_as_the_standards(unit: str) -> None:
    spec = datapaths.named(unit).spec
    assert not Standard(spec).step_of(spec)


def test_a_conforming_unit_of_another_tree_is_proved() -> None:
    answer = prove("conformance", datapaths.named(OTHERS[3]), timeout=200)
    assert isinstance(answer, Holds)
    assert "two exact products, added, then c" in answer.notes[0]
    assert any(rule.startswith("conforming steps") for rule in answer.proof.rules)


def test_sets_summed_in_more_bits_conform() -> None:
    i = riscv["vfwbdota.vv.n2"].replace(F=30)
    assert "6 more bits" in Standard(i.spec).step_of(i.spec)
    assert not Standard(i.spec).step_of(riscv["vfwbdota.vv.n2"].replace(F=20).spec)


def test_the_set_has_the_symmetries_that_the_search_takes_for_granted() -> None:
    """The order of products and of factors, both signs, and which zero products there are, change nothing."""
    for i in (riscv["vfwbdota.vv.n4"], datapaths.named("fma(k=2,a=fp32)")):
        minus = i.spec.a_format.sign_mask
        for codes in generate(i.spec, 12, 3, ["least"]).cases():
            with contextlib.suppress(TooManyError):
                right = Standard(i.spec).allowed(codes)
                assert Standard(i.spec).allowed(Codes(codes.b[::-1], codes.a[::-1], codes.c)) == right
                turned = Codes(*(tuple(x ^ minus for x in side) for side in (codes.a, codes.b)), codes.c)
                assert Standard(i.spec).allowed(turned) == right
    zero = riscv["vfwbdota.vv.n2"].spec
    one = 0x3F80
    assert allowed(zero, [one, 0x8000], [one, 0x4B80], 1) == allowed(zero, [one, 0], [one, 0], 1)


# ---- fp32 ----------------------------------------------------------------------------------------------------------

FP32 = riscv_fp32.allowed_fp32
ONE_CODE, TINY = 0x3F800000, 0x33800000  # 1, 2^-24


def test_what_is_allowed_of_fp32() -> None:
    """1 + 2^-24 + 2^-24: to even each time, or the small ones first."""
    assert FP32([ONE_CODE] * 2, [TINY] * 2, ONE_CODE) == {ONE_CODE, ONE_CODE + 1}
    assert FP32([ONE_CODE], [TINY], ONE_CODE) == {ONE_CODE}
    # (1 + 3 · 2^-23)² − 1: the product exact, or rounded to 1 + 6 · 2^-23
    assert FP32([ONE_CODE + 3], [ONE_CODE + 3], 0xBF800000) == {0x35400000, 0x35400002}
    # a sum that is rounded twice: 1 + 2^-24 + 2^-60, to 40 bits and then to even
    assert FP32([ONE_CODE, TINY], [ONE_CODE, ONE_CODE], 0x21800000) == {ONE_CODE, ONE_CODE + 1}


@pytest.mark.parametrize(
    ("a", "b", "c", "d"),
    [
        (0x80000000, 0x3F800000, 0x80000000, 0x80000000),  # −0 − 0
        (0x80000000, 0x3F800000, 0, 0),
        (0x3F800000, 0x3F800000, 0xBF800000, 0),
        (0x7F800000, 0, 0, NAN),
        (0x7F800001, 0, 0, NAN),
        (0x7F800000, 0x3F800000, 0xFF800000, NAN),
        (0x7F800000, 0xBF800000, 0, 0xFF800000),
        (0x7F7FFFFF, 0x7F7FFFFF, 0, 0x7F800000),
        (0x00000001, 0x3F000000, 0, 0),  # half the least number, to even
        (0x80000001, 0x3F000000, 0, None),  # −0 of an exact product, +0 of a rounded one
    ],
)
def test_special_values_of_fp32(a: int, b: int, c: int, d: int | None) -> None:
    assert FP32([a], [b], c) == ({d} if d is not None else {0, 0x80000000})


def test_what_is_allowed_of_many_products_of_fp32() -> None:
    """Zeros are left out, but for their signs; no less is listed than of the same products and all zeros."""
    rng, minus = random.Random(7), 0x80000000
    for _ in range(30):
        a = [rng.choice([ONE_CODE, TINY, ONE_CODE + 3, 1]) ^ rng.choice([0, minus]) for _ in range(2)]
        c, zeros = rng.choice([ONE_CODE, 0, minus, 0xBF800000]), [rng.choice([0, minus]) for _ in range(3)]
        few, many = a + zeros, a + zeros + zeros * 20
        assert FP32(few, [ONE_CODE] * len(few), c) <= FP32(many, [ONE_CODE] * len(many), c)
    assert FP32([minus] * 64, [ONE_CODE] * 64, minus) == {minus}
    assert FP32([minus] * 63 + [0], [ONE_CODE] * 64, minus) == {0}
    with pytest.raises(TooManyError):
        FP32([ONE_CODE] * 16, [ONE_CODE] * 16, 0)


@pytest.mark.parametrize("n", [2, 64])
@pytest.mark.parametrize("reading", ["riscv", "riscv@products", "riscv@pairs", "riscv@fours"])
def test_units_of_vfbdota_give_what_is_allowed(reading: str, n: int) -> None:
    i = ARCHITECTURES[reading][f"vfbdota.vv.n{n}"]
    assert Standard(i.spec).step_of(i.spec)
    for codes in generate(i.spec, 20, 1, ["least"]).cases():
        kept = tuple(x if k < 3 else 0 for k, x in enumerate(codes.a))
        d = int(i.dot_add(list(kept), list(codes.b), codes.c))
        with contextlib.suppress(TooManyError):
            assert d in FP32(kept, codes.b, codes.c, 400)


@pytest.mark.parametrize("unit", ["fma(k=2,a=fp32)", "mul_add(k=2,a=fp32)"])
def test_chains_of_fp32_are_proved_and_give_what_is_allowed(unit: str) -> None:
    i = datapaths.named(unit)
    assert isinstance(prove("conformance", i, timeout=200), Holds)
    for codes in generate(i.spec, 40, 1).cases():
        d = int(i.dot_add(list(codes.a), list(codes.b), codes.c))
        assert (NAN if fp32.is_nan(d) else d) in FP32(codes.a, codes.b, codes.c)


@pytest.mark.parametrize(
    "i",
    [
        datapaths.named("fma(k=2,a=fp32)").replace(rho="RZ-FP32"),
        datapaths.named("mul_add(k=2,a=fp32)").replace(product="RZ-FP32"),
        ARCHITECTURES["power10"]["XVF32GERPP"],  # whose NaNs are its operands'
        ARCHITECTURES["sme"]["FMOPS.F32"],
    ],
    ids=lambda i: i.label,
)
def test_other_units_of_fp32_have_an_input_outside(i: Instruction) -> None:
    answer = prove("conformance", i, timeout=100)
    assert isinstance(answer, Fails)
    codes = answer.witness.runs[0].codes  # type: ignore[attr-defined]
    assert int(i.dot_add(list(codes.a), list(codes.b), codes.c)) not in FP32(codes.a, codes.b, codes.c)


def sigma(spec: DotAdd, codes: Codes) -> Fraction:
    pairs = zip(codes.a, codes.b, strict=True)
    products = (abs(spec.a_format.value(x) * spec.b_format.value(y)) for x, y in pairs)
    return abs(fp32.value(codes.c)) + sum(products, Fraction(0))


@pytest.mark.parametrize(("fmt", "k"), [(bf16, 2), (bf16, 4), (fp32, 2)], ids=str)
def test_no_result_is_further_off_than_the_bound(fmt: Format, k: int) -> None:
    spec, rng = DotAdd(k, fmt, fmt, fp32, fp32, riscv["vfwbdota.vv.n2"].spec.parameters), random.Random(k)
    most = riscv_freedom.off_at_most(k) if fmt is bf16 else riscv_fp32.fp32_off_at_most(k)
    known, worst = 0, Fraction(0)

    def code(of: Format, near: int) -> int:
        field = of.bias + rng.randrange(-near, near)
        return (
            rng.getrandbits(1) << of.storage_bits - 1
            | field << of.fraction_bits
            | rng.getrandbits(of.fraction_bits)
        )

    for _ in range(60):
        codes = Codes(
            tuple(code(fmt, 3) for _ in range(k)), tuple(code(fmt, 3) for _ in range(k)), code(fp32, 22)
        )
        try:
            right = (
                allowed(spec, codes.a, codes.b, codes.c, 400)
                if fmt is bf16
                else FP32(codes.a, codes.b, codes.c, 400)
            )
        except TooManyError:
            continue
        known, exact = known + 1, _exact(spec, codes)
        worst = max(worst, *(abs(fp32.value(d) - exact) / sigma(spec, codes) for d in right))
    assert known > 10
    assert 0 < worst <= most


def _exact(spec: DotAdd, codes: Codes) -> Fraction:
    pairs = zip(codes.a, codes.b, strict=True)
    return fp32.value(codes.c) + sum(
        (spec.a_format.value(x) * spec.b_format.value(y) for x, y in pairs), Fraction(0)
    )


def test_units_of_other_types_are_not_judged() -> None:
    assert not is_of_standard(hopper["HMMA.16816.F32"].spec)
    assert isinstance(prove("conformance", hopper["HMMA.16816.F32"]), Unknown)


@pytest.mark.slow  # it looks for a proof until its time is over
def test_nothing_holds_by_a_wrong_member(monkeypatch: pytest.MonkeyPatch) -> None:
    """Were the members the printed text, the model would not be proved to be one."""
    right = standard_units.member
    for module in (conformance, standard_units):
        monkeypatch.setattr(module, "member", lambda spec, size: right(spec, size).replace(corrected=()))
    monkeypatch.setattr(
        model, "applies", lambda x, y: x.parameters.step_products == y.parameters.step_products
    )
    monkeypatch.setattr(conformance, "_CASES", 200)
    assert not isinstance(prove("conformance", riscv[SMALL], timeout=30), Holds)


# ---- how far two units can be apart ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "i", [riscv["vfwbdota.vv.n64"], datapaths.named("fma(k=64,a=fp32)")], ids=lambda i: i.name
)
def test_how_far_units_can_be_apart_is_proved(i: Instruction) -> None:
    answer = prove("freedom", i, timeout=100)
    assert isinstance(answer, Holds)
    one, two = (Fraction(x.value) for x in answer.numbers)
    off_at_most = riscv_fp32.fp32_off_at_most if i.a_format == fp32 else riscv_freedom.off_at_most
    most = off_at_most(64)
    assert most <= one < most * Fraction(1 + 2**-20)
    assert 2 * most <= two
    assert any(rule.startswith("roundings of a tree") for rule in answer.proof.rules)


def test_a_bound_below_what_is_proved_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(riscv_freedom, "off_at_most", lambda k: Fraction(k, 1 << 23))
    with pytest.raises(WitnessError, match="above"):
        prove("freedom", riscv["vfwbdota.vv.n4"], timeout=60)
