"""RISC-V's bulk-normalised dot products: the model, and the standard's pseudo-code, printed and corrected (§11)."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from math import floor
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from support.recorded import SHARED

from mmaformal import ARCHITECTURES, find_difference, riscv, verify
from mmaformal.architectures import Architecture
from mmaformal.cases.falling_products import (
    exponent_of_factors,
    find_product,
    random_searches,
    value_of_product,
)
from mmaformal.cases.generate import generate
from mmaformal.cases.inputs import Codes, Inputs, Rows, symbolic_inputs
from mmaformal.cases.run import both_results
from mmaformal.encodings.executable import blocks, stages
from mmaformal.encodings.lowered.proofs import pairs
from mmaformal.encodings.rvbna import Rvbna
from mmaformal.encodings.rvbna import smt as rvbna
from mmaformal.encodings.rvbna.proofs import model
from mmaformal.encodings.smt import stages as smt_stages
from mmaformal.facts import orders
from mmaformal.formats import Format, e3m2, fp16, fp32
from mmaformal.instruction import Instruction
from mmaformal.proof.kernel import ArgumentError, NotProvedError, prove
from mmaformal.proof.rules import Theory
from mmaformal.recordings import check, read
from mmaformal.rounding import Conversion, Rounding
from mmaformal.solver.answers import Different, Equal, Fails, Holds
from mmaformal.solver.asking import Asker
from mmaformal.solver.portfolio import LazyPortfolio
from mmaformal.spec import DotAdd
from mmaformal.theory.numbers import larger_product

PRINTED, CORRECTED = ARCHITECTURES["riscv@printed"], ARCHITECTURES["riscv@corrected"]
READINGS = (
    "riscv",
    "riscv@printed",
    "riscv@printed-1",
    "riscv@printed-2",
    "riscv@printed-3",
    "riscv@corrected",
)
NAN = 0x7FC00000
FILES = sorted(SHARED.glob("emulators/rvbna_*.npz"))


def run(i: Instruction, a: list[int], b: list[int], c: int = 0) -> int:
    """Returns d, in which both encodings have to agree; products that are not given are 0·0."""
    rest = [0] * (i.k - len(a))
    ((mine, other),) = both_results(i.spec, Rows.of([Codes((*a, *rest), (*b, *rest), c)]))
    assert mine == other
    return mine


# ---- in exact arithmetic, with no line of the encodings ------------------------------------------------------------


def to_odd(x: Fraction, place: int) -> Fraction:
    """Returns x cut toward zero at 2^place, the last bit set if anything was lost."""
    grid = Fraction(2) ** place
    whole = floor(abs(x) / grid)
    whole |= whole * grid != abs(x)
    return whole * grid * (1 if x > 0 else -1)


def single(x: Fraction) -> int:
    """Returns fp32's code of x rounded to odd; zero is +0, and what is too large infinity."""
    if not x:
        return 0
    sign = (x < 0) << 31
    exponent = max(next(e for e in range(-400, 400) if abs(x) < Fraction(2) ** (e + 1)), -126)
    if exponent > 127:
        return sign | 0x7F800000
    whole = int(abs(to_odd(x, exponent - 23)) / Fraction(2) ** (exponent - 23))
    return sign | (whole + ((exponent + 126) << 23))


def reference(i: Instruction, a: list[int], b: list[int], c: int) -> int:
    """Returns d for finite inputs, in the words of semantics §11."""
    x, y = i.a_format, i.b_format
    exponents, products = [], []
    for u, v in zip(a, b, strict=True):
        product = x.value(u) * y.value(v)
        products.append(product)
        if product:
            fields = [
                max(code >> fmt.fraction_bits & ((1 << fmt.exponent_bits) - 1), 1) - fmt.bias
                for code, fmt in ((u, x), (v, y))
            ]
            exponents.append(sum(fields))
    place = max(exponents, default=0) - 23 - (i.k.bit_length() - 1)
    dot = single(sum((to_odd(p, place) for p in products), Fraction(0)))
    if fp32.is_finite(dot):
        return single(fp32.value(dot) + fp32.value(c))
    return dot


def some_rows(i: Instruction, count: int, seed: int = 3) -> Iterator[tuple[list[int], list[int], int]]:
    """Numbers of near exponents, of all exponents, with zeros and subnormals among them."""
    rng = random.Random(seed)
    for _ in range(count):
        near, zeros = rng.random() < 0.6, rng.random()

        def code(fmt: Format, near: bool = near, zeros: float = zeros) -> int:
            while True:
                x = rng.getrandbits(fmt.storage_bits)
                if near:
                    low, few = fmt.bias - 8, 16
                    x &= ~(((1 << fmt.exponent_bits) - 1) << fmt.fraction_bits)
                    x |= (
                        max(0, low + rng.randrange(few)) % ((1 << fmt.exponent_bits) - 1) << fmt.fraction_bits
                    )
                if rng.random() < zeros / 2:
                    x &= fmt.sign_mask | rng.choice([0, 1])
                if fmt.is_finite(x):
                    return x

        a, b = ([code(fmt) for _ in range(i.k)] for fmt in (i.a_format, i.b_format))
        yield a, b, rng.choice([0, 1 << 31, rng.getrandbits(30), code(fp32)])


@pytest.mark.parametrize("name", ["vfwbdota.vv.n4", "vfqwbdota.vv.E5M2.n8", "vfqwbdota.alt.vv.E4M3.n2"])
@pytest.mark.parametrize("reading", ["riscv", "riscv@corrected"])
def test_the_model_and_the_corrected_text_are_the_words_of_the_standard(reading: str, name: str) -> None:
    i = ARCHITECTURES[reading][name]
    for a, b, c in some_rows(i, 60):
        assert run(i, a, b, c) == reference(i, a, b, c), (a, b, c)


@pytest.mark.parametrize("reading", READINGS)
@pytest.mark.parametrize("name", ["vfwbdota.vv.n2", "vfqwbdota.alt.vv.E5M2.n16"])
def test_encodings_agree_on_codes_of_all_kinds(reading: str, name: str) -> None:
    i, rng = ARCHITECTURES[reading][name], random.Random(11)
    corners = {
        fmt: [
            *(0, 1, 1 << fmt.fraction_bits, ((1 << fmt.exponent_bits) - 1) << fmt.fraction_bits),
            *(fmt.sign_mask, fmt.sign_mask | 1, fmt.sign_mask - 1, (1 << fmt.storage_bits) - 1),
        ]
        for fmt in (i.a_format, i.b_format, fp32)
    }

    def code(fmt: Format) -> int:
        return rng.choice([rng.choice(corners[fmt]), 0, rng.getrandbits(fmt.storage_bits)])

    cases = [
        Codes(
            tuple(code(i.a_format) for _ in range(i.k)),
            tuple(code(i.b_format) for _ in range(i.k)),
            code(fp32),
        )
        for _ in range(60)
    ]
    for codes, (mine, other) in zip(cases, both_results(i.spec, Rows.of(cases)), strict=True):
        assert mine == other, codes


# ---- what is recorded ----------------------------------------------------------------------------------------------

KNOWN = [
    ("vfwbdota.vv.n4", [0x3F80, 0x3F80], [0x3F80, 0x3380], 0, 0x3F800001),  # 1·1 + 1·2^-24
    ("vfwbdota.vv.n4", [0x3F80], [0x3F80], 0x30000000, 0x3F800001),  # 1·1 + 2^-31
    ("vfwbdota.vv.n4", [0x8000], [0], 1 << 31, 0),  # a zero is +0
    ("vfwbdota.vv.n4", [0x7F80], [0], 0, NAN),
    ("vfwbdota.vv.n4", [0x7F80], [0x3F80], 0xFF800000, NAN),
    ("vfwbdota.vv.n4", [0x3F80], [0x3F80], 0xFFFFFFFF, NAN),
    ("vfwbdota.vv.n4", [0x7F7F], [0x7F7F], 0, 0x7F800000),
    ("vfwbdota.vv.n4", [0x1A00], [0x1A00], 0, 1),  # 2^-75·2^-75
    ("vfqwbdota.vv.E4M3.n4", [0x30, 0x01], [0x70, 0x01], 0, 0x42800001),
    ("vfqwbdota.vv.E5M2.n4", [0x7C], [0x78], 0, 0x7F800000),
]


@pytest.mark.parametrize(("name", "a", "b", "c", "d"), KNOWN)
@pytest.mark.parametrize("reading", ["riscv", "riscv@corrected"])
def test_known_answers(reading: str, name: str, a: list[int], b: list[int], c: int, d: int) -> None:
    assert run(ARCHITECTURES[reading][name], a, b, c) == d


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_no_row_of_spike_is_another(path: Path) -> None:
    report = check(read(path))
    assert report.rows > 0
    assert report.mismatches == 0


# ---- the text as it is printed -------------------------------------------------------------------------------------

WRONG = [
    # expression, n, a, b, printed, meant
    (1, 2, [0x3F80, 0x3F80], [0x3F80, 0x3380], 0x3F800000, 0x3F800001),
    (1, 64, [0x3F80, 0x3F80], [0x3F80, 0x3380], 0x3F800000, 0x3F800001),
    (2, 2, [0x2180], [0x1E00], 0x00000002, 0x00400000),  # 2^-60·2^-67
    (2, 4, [0x2180], [0x1E00], 0x00000004, 0x00400000),
    (2, 8, [0x2180], [0x1E00], 0x00000008, 0x00400000),
    (2, 16, [0x2180], [0x1E00], 0x00000010, 0x00400000),
    (3, 4, [0x1A00], [0x1A00], 0x00000000, 0x00000001),
    (3, 4, [0x2101], [0x1A01], 0x00002080, 0x00002081),
]


def test_a_subnormal_result_runs_into_the_exponent() -> None:
    """2^-75·2^-75, by the text as it is printed: a normal number."""
    name = "vfwbdota.vv.n4"
    assert run(PRINTED[name], [0x1A00], [0x1A00]) == 0x02000000
    assert run(ARCHITECTURES["riscv@printed-2"][name], [0x1A00], [0x1A00]) == 0x02000001
    assert run(riscv[name], [0x1A00], [0x1A00]) == 1


@pytest.mark.parametrize(("wrong", "n", "a", "b", "printed", "meant"), WRONG)
def test_what_each_printed_expression_gives(
    wrong: int, n: int, a: list[int], b: list[int], printed: int, meant: int
) -> None:
    name = f"vfwbdota.vv.n{n}"
    assert run(ARCHITECTURES[f"riscv@printed-{wrong}"][name], a, b) == printed
    assert run(CORRECTED[name], a, b) == run(riscv[name], a, b) == meant
    if wrong != 3:  # where the second is wrong too, the third is not seen
        assert run(PRINTED[name], a, b) == printed


def test_of_fp8_only_the_first_expression_matters() -> None:
    name = "vfqwbdota.vv.E4M3.n4"
    for a, b, c in some_rows(riscv[name], 100):
        right = run(riscv[name], a, b, c)
        assert run(ARCHITECTURES["riscv@printed-2"][name], a, b, c) == right
        assert run(ARCHITECTURES["riscv@printed-3"][name], a, b, c) == right
    assert run(PRINTED[name], [0x01, 0x30], [0x01, 0x70]) == 0x42800000
    assert run(PRINTED["vfqwbdota.alt.vv.E5M2.n4"], [0x01, 0x04], [0x01, 0x54]) == 0x3B800000


@pytest.mark.parametrize(
    ("opcode", "a", "b", "printed"),
    [
        ("vfqwbdota.vv.E4M3", [0x08, 0x68], [0x08, 0x68], 0x45800000),
        ("vfqwbdota.vv.E5M2", [0x04, 0x3C], [0x08, 0x58], 0x41800000),
        ("vfqwbdota.alt.vv.E4M3", [0x08, 0x38], [0x04, 0x4C], 0x41800000),
        ("vfqwbdota.alt.vv.E5M2", [0x0C, 0x3C], [0x0C, 0x3C], 0x3F800000),
        ("vfwbdota.vv", [0x3980, 0x3F80], [0x3980, 0x3F80], 0x3F800000),
    ],
)
@pytest.mark.parametrize("n", [2, 64])
def test_two_products_show_the_first_expression(
    opcode: str, a: list[int], b: list[int], printed: int, n: int
) -> None:
    name = f"{opcode}.n{n}"
    assert run(PRINTED[name], a, b) == run(ARCHITECTURES["riscv@printed-1"][name], a, b) == printed
    assert run(riscv[name], a, b) == printed + 1


def test_read_as_ieees_encoding_e4m3_has_infinities() -> None:
    """256·0 is a NaN and 256·1 infinite; of e5m2 and bf16 nothing changes."""
    name = "vfqwbdota.vv.E4M3.n2"
    text = ARCHITECTURES["riscv@printed-ieee"]
    assert run(text[name], [0x78], [0]) == NAN
    assert run(text[name], [0x78], [0x38]) == 0x7F800000
    assert run(text[name], [0x77], [0x38]) == run(riscv[name], [0x77], [0x38])
    answer = find_difference(text[name], riscv[name], timeout=200)
    assert isinstance(answer, Different)
    assert sorted((*answer.witness.a, *answer.witness.b, answer.witness.c)) == [0, 0, 0, 0, 0x78]
    assert all(line.endswith("proved minimal") for line in answer.minimality)
    for other in ("vfwbdota.vv.n2", "vfqwbdota.alt.vv.E5M2.n2"):
        printed, spec = PRINTED[other], text[other].spec
        rows = generate(spec, 60, 1)
        assert both_results(spec, rows) == both_results(printed.spec, rows)


def test_expressions_that_the_text_does_not_have_are_refused() -> None:
    for wrong in ((4,), (2, 1), (1, 1)):
        with pytest.raises(ValueError, match="in order"):
            Rvbna(4, wrong)
    with pytest.raises(ValueError, match="power of two"):
        Rvbna(3)


# ---- what is proved ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("of", [PRINTED, CORRECTED, ARCHITECTURES["riscv@printed-ieee"]])
def test_both_encodings_of_the_text_are_equal(of: Architecture) -> None:
    assert isinstance(verify(of["vfqwbdota.vv.E4M3.n2"], timeout=200), Holds)


def test_both_encodings_of_the_largest_model_are_equal() -> None:
    """The largest of its 64 exponents, and of that of c = 0, which is never above, is found one by one."""
    assert isinstance(verify(riscv["vfwbdota.vv.n64"], timeout=200), Holds)


def test_the_least_exponent_in_place_of_the_largest_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stages, "maximum", blocks.minimum)
    assert isinstance(verify(riscv["vfqwbdota.vv.E4M3.n2"], timeout=60), Fails)


def test_a_change_of_one_encoding_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    right = rvbna.round_normal
    monkeypatch.setattr(
        rvbna, "round_normal", lambda shifted, lzc, p: right(shifted, lzc, replace(p, corrected=()))
    )
    assert isinstance(verify(CORRECTED["vfqwbdota.vv.E4M3.n2"], timeout=200), Fails)


def test_the_corrected_text_is_the_model() -> None:
    assert isinstance(find_difference(CORRECTED, riscv, "vfwbdota.vv.n2", timeout=200), Equal)


@pytest.mark.slow
@pytest.mark.parametrize("name", [i.name for i in riscv.instructions if i.name != "vfwbdota.vv.n2"])
def test_the_corrected_text_is_every_model(name: str) -> None:
    assert isinstance(find_difference(CORRECTED, riscv, name, timeout=900), Equal)


@pytest.mark.parametrize("wrong", [(), (2, 3)])
def test_the_argument_does_not_hold_of_a_wrong_expression(wrong: tuple[int, ...]) -> None:
    name = "vfqwbdota.vv.E4M3.n2"
    text = CORRECTED[name].replace(corrected=wrong).spec
    with LazyPortfolio() as portfolio:
        asker = Asker(portfolio, 100)
        assert model.prove_equal(asker, text, riscv[name].spec, symbolic_inputs(text)) is None


@pytest.mark.parametrize("encoding", [rvbna, smt_stages])
def test_the_argument_does_not_hold_of_another_largest_exponent(
    encoding: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first of the exponents in place of the largest, in the text or in the model."""
    monkeypatch.setattr(encoding, "maximum", lambda exponents: exponents[0])
    text, of = CORRECTED["vfqwbdota.vv.E4M3.n2"].spec, riscv["vfqwbdota.vv.E4M3.n2"].spec
    with LazyPortfolio() as portfolio:
        assert model.prove_equal(Asker(portfolio, 100), text, of, symbolic_inputs(text)) is None


def sparse(spec: DotAdd, products: int) -> Inputs:
    """Inputs with nonzero products at the first places only."""
    return symbolic_inputs(spec, {f"{side}{k}": 0 for side in "ab" for k in range(products, spec.k)})


@pytest.mark.parametrize(("products", "alike"), [(1, True), (2, False)])
def test_one_product_shows_nothing_of_the_first_expression(products: int, alike: bool) -> None:
    name = "vfqwbdota.vv.E4M3.n4"
    text, of = ARCHITECTURES["riscv@printed-1"][name].spec, riscv[name].spec
    assert model.applies_to_one(text, of)
    with LazyPortfolio() as portfolio:
        proof = model.prove_equal(Asker(portfolio, 100), text, of, sparse(text, products))
    assert (proof is not None) == alike


def test_where_the_argument_is_not_tried() -> None:
    """Not of subnormal sums that are rounded as printed, nor of another number of products."""
    bf16, fp8 = "vfwbdota.vv.n4", "vfqwbdota.vv.E5M2.n4"
    for wrong in (2, 3):
        printed = ARCHITECTURES[f"riscv@printed-{wrong}"]
        assert not model.applies(printed[bf16].spec, riscv[bf16].spec)
        assert not model.applies_to_one(printed[bf16].spec, riscv[bf16].spec)
        assert model.applies(printed[fp8].spec, riscv[fp8].spec)
    assert not model.applies(ARCHITECTURES["riscv@printed-1"][fp8].spec, riscv[fp8].spec)
    assert not model.applies(CORRECTED[bf16].spec, ARCHITECTURES["riscv@pairs"][bf16].spec)


@pytest.mark.parametrize("order", [(1, 0), (1, 2, 3, 0)], ids=str)
def test_the_order_of_products_does_not_matter(order: tuple[int, ...]) -> None:
    spec = PRINTED[f"vfqwbdota.vv.E4M3.n{len(order)}"].spec
    with LazyPortfolio() as portfolio:
        assert prove(Asker(portfolio, 100), orders.argue_order(spec, order)).obligations


def test_that_order_does_not_matter_is_not_proved_of_a_sum_that_has_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    right = rvbna.signed_sum
    monkeypatch.setattr(rvbna, "signed_sum", lambda terms, bits: right([*terms, terms[0]], bits))
    spec = PRINTED["vfqwbdota.vv.E4M3.n2"].spec
    with LazyPortfolio() as portfolio, pytest.raises((ArgumentError, NotProvedError)):
        prove(Asker(portfolio, 100), orders.argue_order(spec, (1, 0)))


@pytest.mark.slow
@pytest.mark.parametrize("name", [i.name for i in riscv.instructions])
def test_the_smallest_input_of_the_first_expression_is_proved(name: str) -> None:
    answer = find_difference(ARCHITECTURES["riscv@printed-1"][name], riscv[name], timeout=900)
    assert isinstance(answer, Different)
    assert all("proved minimal" in text for text in answer.minimality)


@pytest.mark.slow
@pytest.mark.parametrize("wrong", [2, 3])
@pytest.mark.parametrize("name", [i.name for i in riscv.instructions if i.name.startswith("vfq")])
def test_other_expressions_do_not_matter_of_fp8(name: str, wrong: int) -> None:
    assert isinstance(
        find_difference(ARCHITECTURES[f"riscv@printed-{wrong}"][name], riscv[name], timeout=900), Equal
    )


@pytest.mark.slow
@pytest.mark.parametrize("reading", ["riscv@printed", "riscv@printed-2", "riscv@printed-3"])
@pytest.mark.parametrize("name", [i.name for i in riscv.instructions if i.name.startswith("vfwb")])
def test_of_bf16_each_reading_has_a_smallest_input(name: str, reading: str) -> None:
    answer = find_difference(ARCHITECTURES[reading][name], riscv[name], timeout=500)
    assert isinstance(answer, Different)
    assert all("proved minimal" in text for text in answer.minimality)


#: Pairs of small formats, whose sums are of fp16.
_ODD = Conversion.named("RO-FP16")
SMALL = riscv["vfqwbdota.vv.E4M3.n2"].spec.replace(
    a_format=e3m2,
    b_format=e3m2,
    c_format=fp16,
    d_format=fp16,
    F=11,
    rho=_ODD,
    addition=replace(_ODD, name="RO-FP16±0", signed_zero=True),
    e_zero=-6,
)


@pytest.mark.slow
@pytest.mark.parametrize("spec", [SMALL, riscv["vfqwbdota.vv.E4M3.n2"].spec], ids=["e3m2", "e4m3"])
def test_d_grows_with_a_product_of_a_pair_that_loses_nothing(spec: DotAdd) -> None:
    with LazyPortfolio() as portfolio:
        theory = Theory(Asker(portfolio, 600.0))
        pairs.prove_in_products(theory, spec)
    assert all(theory.proves(larger_product(spec, k).statement) for k in range(2))


@pytest.mark.parametrize(
    ("change", "why"),
    [({"F": 9}, "ρ's boundaries"), ({"cut": Rounding.RZ}, "exact, or odd and less than one unit off")],
    ids=["too few places", "cut toward zero"],
)
def test_that_d_grows_is_not_proved_of_a_pair_that_loses_something(change: dict[str, Any], why: str) -> None:
    with LazyPortfolio() as portfolio, pytest.raises(NotProvedError, match=f"{why}.* does not hold"):
        pairs.prove_in_products(Theory(Asker(portfolio, 60.0)), SMALL.replace(**change))


@pytest.mark.parametrize("name", ["vfqwbdota.vv.E5M2.n2", "vfqwbdota.alt.vv.E4M3.n2"])
def test_d_falls_with_a_product_of_larger_exponents(name: str) -> None:
    """One number made of a subnormal factor has a larger exponent, so that the other product is cut elsewhere."""
    i = riscv[name]
    found = find_product(i, random_searches(i.spec, i.parameters.F, order=i.parameters.order))
    assert found is not None
    first, second = found
    assert value_of_product(i.spec, first, 0) == value_of_product(i.spec, second, 0)
    exponents = [exponent_of_factors(i.spec, (x.a[0], x.b[0])) for x in found]
    assert exponents[0] != exponents[1]
