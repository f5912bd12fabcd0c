"""`where`: what each constraint allows, against the values of every code; its text; what the search makes of it."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence
from fractions import Fraction

import numpy as np
import pytest
import z3
from hypothesis import example, given
from hypothesis import strategies as st

from mmaformal import Different, Equal, ampere, find_difference, hopper, rtx_blackwell
from mmaformal.cases import codes as terms
from mmaformal.cases.generate import generate
from mmaformal.cases.inputs import Inputs, symbolic_inputs
from mmaformal.encodings.fda import Fda
from mmaformal.formats import FORMATS, Format, bf16, e2m1, e4m3, e4m3fnuz, e5m2, fp16, fp32, tf32
from mmaformal.instruction import Instruction
from mmaformal.queries.constraints import (
    Constraint,
    as_constraints,
    finite,
    finite_magnitudes_within,
    fixed,
    magnitude,
    nonzero,
    normal,
    parse_constraint,
)
from mmaformal.rounding import RZ_FP32
from mmaformal.solver.asking import constants_of
from mmaformal.spec import DotAdd

SMALL = [fmt for fmt in FORMATS.values() if fmt.storage_bits <= 8]
inf = float("inf")


def codes_of(fmt: Format, seed: int = 0, count: int = 60) -> list[int]:
    """All codes of a small format; of another one those around every border and some at random."""
    if fmt.storage_bits <= 8:
        return list(range(fmt.codes))
    rng = random.Random(seed)
    low = fmt.ignored_low_bits
    one = 1 << low
    top = ((1 << fmt.exponent_bits) - 1) << (fmt.fraction_bits + low)
    least_normal = one << fmt.fraction_bits
    borders = [0, one, least_normal - one, least_normal, top - one, top, top + one, fmt.sign_mask - 1]
    codes = borders + [rng.randrange(fmt.sign_mask) for _ in range(count)]
    return codes + [code | fmt.sign_mask for code in codes]


def holds(term: z3.BoolRef, x: z3.BitVecRef, code: int) -> bool:
    value = z3.simplify(z3.substitute(term, (x, z3.BitVecVal(code, x.size()))))
    assert z3.is_true(value) or z3.is_false(value)
    return z3.is_true(value)


# ---- what is said of codes


@pytest.mark.parametrize("fmt", FORMATS.values(), ids=str)
def test_what_is_said_of_a_code_is_what_the_format_says(fmt: Format) -> None:
    x = z3.BitVec("x", fmt.storage_bits)
    said: dict[Callable[..., z3.BoolRef], Callable[[int], bool]] = {
        terms.is_nan: fmt.is_nan,
        terms.is_infinite: fmt.is_infinite,
        terms.is_finite: fmt.is_finite,
        terms.is_zero: lambda code: fmt.is_finite(code) and fmt.value(code) == 0,
    }
    for term, truth in said.items():
        formula = term(x, fmt)
        for code in codes_of(fmt):
            assert holds(formula, x, code) == truth(code), f"{term.__name__} of {fmt} {code:#x}"
        codes = codes_of(fmt)  # of an array, the same
        said_of_all = term(np.array(codes, object if fmt.storage_bits == 64 else np.int64), fmt)
        assert np.array_equal(said_of_all, [truth(code) for code in codes]), f"{term.__name__} of {fmt}"


@pytest.mark.parametrize("fmt", FORMATS.values(), ids=str)
def test_the_measures_of_a_code_are_those_of_its_fields(fmt: Format) -> None:
    x = z3.BitVec("x", fmt.storage_bits)
    bits = terms.significand_bits(x, fmt)
    distance = terms.exponent_distance(x, fmt)
    sign = terms.sign_bit(x, fmt)

    def number(term: z3.BitVecRef, code: int) -> int:
        return int(z3.simplify(z3.substitute(term, (x, z3.BitVecVal(code, x.size())))).as_long())

    for code in codes_of(fmt, count=20):
        s, field, fraction = fmt.fields(code)
        zero = fmt.is_finite(code) and fmt.value(code) == 0
        exponent = (max(field, 1) if fmt.has_zero else field) - fmt.bias
        assert sum(number(bit, code) for bit in bits) == fraction.bit_count()
        assert number(distance, code) == (0 if zero else abs(exponent))
        assert number(sign, code) == s


@given(st.lists(st.integers(0, 31), max_size=6), st.integers(0, 100))
@example([1], 64)  # the bound has more bits than the sum may have
def test_at_most_adds_up(values: list[int], bound: int) -> None:
    formula = z3.And(terms.sum_at_most([z3.BitVecVal(v, 5) for v in values], bound))
    assert z3.is_true(z3.simplify(formula)) == (sum(values) <= bound)


def test_at_most_does_not_wrap() -> None:
    many = [z3.BitVecVal(2047, 11)] * 513  # more than 2^20 in all
    assert z3.is_false(z3.simplify(z3.And(terms.sum_at_most(many, 2047 * 513 - (1 << 20)))))
    assert z3.is_true(z3.simplify(z3.And(terms.sum_at_most(many, 2047 * 513))))


# ---- each constraint, on every code


def spec_of(a: Format, b: Format, c: Format, k: int = 2) -> DotAdd:
    return DotAdd(k, a, b, c, fp32, Fda(8, k, RZ_FP32, -133))


def allowed(constraint: Constraint, fmt: Format, side: str) -> set[int]:
    """The codes that the constraint allows at one place while 1 stands at the others."""
    formats = {s: fmt if s == side else e4m3 for s in "abc"}
    spec = spec_of(*formats.values())
    inputs = symbolic_inputs(spec)
    x = {"a": inputs.a[1], "b": inputs.b[0], "c": inputs.c}[side]
    others = [("a", inputs.a[0]), ("a", inputs.a[1]), ("b", inputs.b[0]), ("b", inputs.b[1]), ("c", inputs.c)]
    ones = [(t, z3.BitVecVal(formats[s].code("1"), t.size())) for s, t in others if not t.eq(x)]
    formula = z3.substitute(z3.And(z3.BoolVal(True), *constraint.on_inputs(spec, inputs)), *ones)
    return {code for code in codes_of(fmt) if holds(formula, x, code)}


@pytest.mark.parametrize("side", "abc")
@pytest.mark.parametrize("fmt", [e2m1, e4m3, e4m3fnuz, e5m2, tf32, fp16], ids=str)
def test_each_constraint_allows_what_it_says(fmt: Format, side: str) -> None:
    def value(code: int) -> Fraction | None:
        return fmt.value(code) if fmt.is_finite(code) else None

    def is_normal_or_zero(code: int) -> bool:
        return value(code) is not None and (value(code) == 0 or fmt.fields(code)[1] > 0)

    def is_within(code: int) -> bool:
        v = value(code)
        return v is not None and (v == 0 or Fraction(1, 2) <= abs(v) <= 2)

    truths: list[tuple[Constraint, Callable[[int], bool]]] = [
        (finite(), fmt.is_finite),
        (normal(), is_normal_or_zero),
        (nonzero(), lambda code: value(code) != 0),
        (magnitude(0.5, 2), is_within),
        (magnitude(0.5, 2, side), is_within),
        (magnitude(0.5, 2, "abc".replace(side, "")), lambda _: True),
    ]
    for constraint, truth in truths:
        expected = {code for code in codes_of(fmt) if truth(code)}
        assert allowed(constraint, fmt, side) == expected, str(constraint)


@given(
    st.sampled_from([fmt for fmt in (*SMALL, fp16, bf16, tf32) if fmt.has_zero]),
    st.fractions(0, 1000) | st.floats(0, 1e30) | st.just(0),
    st.fractions(0, 1000) | st.floats(0, 1e30) | st.just(inf),
)
def test_a_magnitude_range_holds_the_codes_between(fmt: Format, x: Fraction, y: Fraction) -> None:
    low, high = sorted((x, y))
    within = finite_magnitudes_within(fmt, low, high)
    for code in codes_of(fmt, count=20):
        _, field, fraction = fmt.fields(code)
        if not fmt.is_finite(code) or fmt.is_nan(code & ~fmt.sign_mask):
            continue
        assert (((field << fmt.fraction_bits) | fraction) in within) == (low <= abs(fmt.value(code)) <= high)


def test_finite_asks_it_of_the_result_too() -> None:
    d = z3.BitVec("d", 32)
    (formula,) = finite().on_result(spec_of(e4m3, e4m3, fp32), d)
    assert {c for c in codes_of(fp32) if holds(formula, d, c)} == set(filter(fp32.is_finite, codes_of(fp32)))


def test_finite_asks_it_of_scales_too() -> None:
    spec = blackwell_scaled()
    formulas = finite().on_inputs(spec, symbolic_inputs(spec))
    names = {str(c) for f in formulas for c in constants_of(f)}
    assert {"sa0", "sb0"} <= names


def blackwell_scaled() -> DotAdd:
    from mmaformal import rtx_blackwell

    return rtx_blackwell["QMMA.SF.16832.F32.E4M3.E2M3.E8"].spec


# ---- text


@pytest.mark.parametrize(
    ("text", "constraint"),
    [
        ("finite", finite()),
        (" normal ", normal()),
        ("nonzero", nonzero()),
        ("magnitude 0.5 2", magnitude(Fraction(1, 2), Fraction(2))),
        ("magnitude 0x1p-8 256", magnitude(Fraction(1, 256), Fraction(256))),
        ("magnitude 1/3 1e3 ac", magnitude(Fraction(1, 3), Fraction(1000), "ac")),
        ("c=0x0", fixed(c=0)),
        ("c = 0x11", fixed(c=17)),
        ("a3=0x3c00", fixed(a={3: 0x3C00})),
        ("b[12] = 0x3C00", fixed(b={12: 0x3C00})),
    ],
)
def test_constraints_read_from_text(text: str, constraint: Constraint) -> None:
    assert parse_constraint(text) == constraint
    assert as_constraints([text, constraint]) == (constraint, constraint)
    assert as_constraints(text) == as_constraints(constraint) == (constraint,)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "finit",
        "normal numbers",
        "magnitude",
        "magnitude 1",
        "magnitude 2 1",
        "magnitude -1 1",
        "magnitude a b",
        "magnitude 1 2 abd",
        "magnitude 1/0 2",
        "magnitude 0x1p9999 0x1p9999",
        "magnitude 1 nan",
        "c",
        "c=",
        "c=x",
        "c=-1",
        "d=0x0",
        "a=0x0",
        "a-1=0x0",
        "a0=1.5",
        "c3=0x0",
        "c=0x",
        "c=5",
        "a0=15",
    ],
)
def test_text_that_is_no_constraint_is_a_value_error(text: str) -> None:
    with pytest.raises(ValueError, match=re.escape(repr(text))):
        parse_constraint(text)


def test_wrong_constraints_are_errors_that_say_so() -> None:
    for low, high in ((2, 1), (-1, 1), (float("nan"), 1), (0, float("nan"))):
        with pytest.raises(ValueError, match="0 ≤ low ≤ high"):
            magnitude(low, high)
    for operands in ("", "d", "ab d"):
        with pytest.raises(ValueError, match="a, b, c"):
            magnitude(1, 2, operands)
    for wrong in (5, [5], finite, [finite], [None]):
        with pytest.raises(TypeError, match="no constraint"):
            as_constraints(wrong)  # type: ignore[arg-type]


def test_fixed_positions_and_codes_exist() -> None:
    spec = spec_of(e2m1, e4m3, fp32)
    assert fixed(a={0: 15}, b={1: 255}, c=7).pins(spec) == {"a0": 15, "b1": 255, "c": 7}
    for wrong in (fixed(a={2: 0}), fixed(b={-1: 0}), fixed(a={0: 16}), fixed(b={0: 256}), fixed(c=-1)):
        with pytest.raises(ValueError, match=r"there is no|has no code"):
            wrong.pins(spec)


def test_what_is_said_in_words_is_exact() -> None:
    assert str(magnitude(0.1234567890123, Fraction(1, 3))) == "0.1234567890123 ≤ |a, b, c| ≤ 1/3 or zero"
    assert str(fixed(a={0: 1}, b={2: 3}, c=4)) == "a[0] = 0x1, b[2] = 0x3, c = 0x4"
    assert len({str(each) for each in (finite(), normal(), nonzero())}) == 3


# ---- in the search


def model(k: int, F: int, *formats: Format) -> Instruction:
    a, b, c = formats
    return Instruction("X", f"F{F}", 16, 8, DotAdd(k, a, b, c, fp32, Fda(F, k, RZ_FP32, -133)))


X, Y = model(2, 4, e4m3, e4m3, e5m2), model(2, 5, e4m3, e4m3, e5m2)


def _values(codes: Sequence[int], fmt: Format) -> list[Fraction]:
    return [fmt.value(int(code)) for code in codes]


def test_a_witness_satisfies_each_constraint() -> None:
    wanted = [normal(), "nonzero", magnitude(0.5, 64, "a"), "magnitude 0.25 3 b", "finite"]
    answer = find_difference(X, Y, where=wanted, solver="z3")
    assert isinstance(answer, Different)
    w = answer.witness
    a, b = _values(w.a, e4m3), _values(w.b, e4m3)
    c = e5m2.value(int(w.c))
    assert all(Fraction(1, 2) <= abs(v) <= 64 for v in a)
    assert all(Fraction(1, 4) <= abs(v) <= 3 for v in b)
    assert c
    assert e5m2.fields(int(w.c))[1] > 0
    assert all(map(fp32.is_finite, w.results))
    assert w.size[0] == 2
    assert all(str(each) in answer.question for each in as_constraints(wanted))


def test_fixed_inputs_are_what_they_are_fixed_to() -> None:
    # tf32 words whose low bits the unit ignores come back as given; a factor fixed where nothing else is needed stays.
    x, y = (i["HMMA.1688.F32.TF32"].replace(k=2, L=2, F=F) for i, F in ((ampere, 9), (hopper, 10)))
    y = y.replace(e_zero=x.parameters["e_zero"])
    pins = fixed(a={0: 0x3F801234, 1: 0x40000001}, b={0: 0x3F800FFF}, c=0x3F800000)
    answer = find_difference(x, y, where=pins, solver="z3")
    assert isinstance(answer, Different)
    w = answer.witness
    assert w.a.tolist() == [0x3F801234, 0x40000001]
    assert (int(w.b[0]), int(w.c)) == (0x3F800FFF, 0x3F800000)
    assert answer.minimality[0] == "2 nonzero products: proved minimal"


def test_products_that_are_fixed_stay_in_the_case() -> None:
    answer = find_difference(
        X, Y, where=[fixed(a={1: e4m3.code("-1")}, b={1: e4m3.code("1.75")})], solver="z3"
    )
    assert isinstance(answer, Different)
    assert e4m3.value(int(answer.witness.a[1])) == -1
    assert all(line.endswith("proved minimal") for line in answer.minimality)
    assert answer.witness.size[0] == 1


def test_inputs_fixed_twice_must_agree() -> None:
    with pytest.raises(ValueError, match="c is fixed to 0x0 and to 0x1"):
        find_difference(X, Y, where=["c=0x0", fixed(c=1)])
    with pytest.raises(ValueError, match="positions are 0 to 1"):
        find_difference(X, Y, where="a2=0x0")
    with pytest.raises(ValueError, match="no code 0x100"):
        find_difference(X, Y, where="a0=0x100")
    agreed = find_difference(X, Y, where=["c=0x0", fixed(c=0)], solver="z3")
    assert isinstance(agreed, Different)


@pytest.mark.parametrize(
    "where",
    [
        ["nonzero", "c=0x0"],
        ["finite", "c=0x7c"],
        ["magnitude 3 3.1 a", "nonzero", "magnitude 3.01 3.2 a"],
        ["normal", "a0=0x1"],
    ],
)
def test_constraints_that_nothing_satisfies_are_no_proof(where: list[str]) -> None:
    with pytest.raises(ValueError, match="no input satisfies"):
        find_difference(X, Y, where=where, solver="z3")


def test_results_that_nothing_satisfies_are_no_proof(terms_alone: None) -> None:
    x, y = model(1, 24, bf16, bf16, fp32), model(1, 25, bf16, bf16, fp32)
    overflow = ["a0=0x5f80", "b0=0x5f80"]  # 2^64 · 2^64
    with pytest.raises(ValueError, match="no input satisfies"):
        find_difference(x, y, where=[*overflow, "finite", "magnitude 0 1 c"], solver="z3")
    assert isinstance(find_difference(x, y, where=[*overflow, "magnitude 0 1 c"], solver="z3"), Equal)


def test_codes_of_a_model_are_those_of_its_terms() -> None:
    spec = spec_of(tf32, e4m3, fp32)
    inputs = symbolic_inputs(spec, {"b0": 0x81}, zeros=["a1"], positive=["b1"], bare=True)
    names = inputs.constants()
    assert set(names) == {"a0", "a1", "b1", "c"}
    model_of = {name: (1 << bits) - 1 for name, bits in names.items()}
    codes = inputs.codes(spec, model_of)
    assert codes.a == (0xFF800000, 0x80000000)
    assert codes.b == (0x81, 0x78)
    assert codes.c == 0xFF800000
    assert isinstance(inputs, Inputs)
    scaled = rtx_blackwell["OMMA.SF.16864.F32.E2M1.E2M1.UE4M3.4X"].spec  # scales have no sign
    inputs = symbolic_inputs(scaled, {}, bare=True)
    codes = inputs.codes(scaled, {name: (1 << bits) - 1 for name, bits in inputs.constants().items()})
    assert set(codes.scale_a + codes.scale_b) == {0x78}


def test_cases_of_rows_are_all_of_them() -> None:
    spec = spec_of(fp16, fp16, fp32)
    rows = generate(spec, 5)
    cases = rows.cases()
    assert len(cases) == len(rows)
    assert [case.c for case in cases] == [int(code) for code in rows.c]
