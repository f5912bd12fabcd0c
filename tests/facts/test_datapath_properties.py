"""Properties of the algorithms of the design space: what holds is proved, of a broken model it is not."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from support import exact as reference
from support.exact import exact_sum
from support.rounded_once import examine
from support.settling import settled
from support.slow import slow

from mmaformal.architectures import datapaths
from mmaformal.cases.generate import generate
from mmaformal.cases.run import run
from mmaformal.encodings.fda import Fda
from mmaformal.encodings.fma import proofs as one_format
from mmaformal.encodings.smt import stages
from mmaformal.formats import e2m1, e5m2
from mmaformal.instruction import Instruction
from mmaformal.queries.properties import PROPERTIES
from mmaformal.rounding import RNE_FP16, Conversion, NanRule, Rounding
from mmaformal.solver.answers import Fails, Holds, Unknown
from mmaformal.spec import DotAdd
from mmaformal.witness import WitnessError

GROUPS = ("gfda(k=4,group=2,frac_bits=9,a=e4m3,rho=RZ-FP32)", "gfda(k=6,group=3,frac_bits=20,a=bf16,cut=RO)")
#: Properties that are proved of groups.
PROVED = ("order-independence", "commutativity", "sign-symmetry")


@pytest.mark.parametrize("point", slow(GROUPS, GROUPS[1:]))
@pytest.mark.parametrize("name", PROVED)
def test_groups(name: str, point: str) -> None:
    assert isinstance(settled(PROPERTIES[name], datapaths.named(point)), Holds)


@pytest.mark.parametrize(
    ("name", "function", "change"),
    [
        ("order-independence", "maximum", lambda real: lambda xs: xs[0] if len(xs) == 2 else real(xs)),
        ("sign-symmetry", "signed_sum", lambda real: lambda terms, bits: real(terms, bits) + 1),
    ],
)
def test_broken_groups(
    name: str, function: str, change: Callable[[Any], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stages, function, change(getattr(stages, function)))
    with pytest.raises(
        WitnessError, match="the two encodings do not agree"
    ):  # one is broken: it is seen to be
        settled(PROPERTIES[name], datapaths.named(GROUPS[0]), timeout=20)


def test_products_and_sums_apart() -> None:
    i = datapaths.named("mul_add(k=2,a=e4m3,product=RNE-E5M8,rho=RNE-FP16)")
    assert isinstance(settled(PROPERTIES["monotonicity-in-c"], i), Holds)


def test_a_broken_addition_does_not_follow_c(monkeypatch: pytest.MonkeyPatch) -> None:
    real = stages.add
    monkeypatch.setattr(stages, "add", lambda c, *given: real(c ^ 1, *given))
    i = datapaths.named("mul_add(k=1,a=e4m3,rho=RNE-FP16)")
    assert not isinstance(settled(PROPERTIES["monotonicity-in-c"], i, timeout=20), Holds)


SHORT = datapaths.named("mul_add(k=2,a=e4m3,product=RNE-E5M3,rho=RNE-FP16)")


def test_exactness_of_products_and_sums_apart() -> None:
    assert isinstance(settled(PROPERTIES["exactness"], SHORT), Holds)


@pytest.mark.parametrize(
    ("function", "change"),
    [
        (
            "multiply",
            lambda real: lambda x, y, *rest, **more: real(x._replace(sign=~x.sign), y, *rest, **more),
        ),
        (
            "normalise_and_round",
            lambda real: (
                lambda total, e, ex, places, pi, low: real(
                    total, e, ex, places, replace(pi, rounding=Rounding.RZ), low
                )
            ),
        ),
        ("add", lambda real: lambda c, *given: real(c ^ 1, *given)),
    ],
    ids=["sign of a product", "rounding of a product", "last bit of c"],
)
def test_exactness_of_broken_products_and_sums(
    function: str, change: Callable[[Any], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stages, function, change(getattr(stages, function)))
    assert isinstance(settled(PROPERTIES["exactness"], SHORT, timeout=20), Unknown)


NARROW = datapaths.named("gfda(k=4,group=2,frac_bits=8,a=e4m3,group_bits=9,rho=RNE-FP16)")


def test_exactness_of_groups() -> None:
    assert isinstance(settled(PROPERTIES["exactness"], NARROW), Holds)


@pytest.mark.parametrize(
    ("function", "change"),
    [
        ("align", lambda real: lambda *given: real(*given) & ~1),
        ("maximum", lambda real: lambda xs: real(xs[:-1]) if len(xs) == 2 else real(xs)),
        ("negate_if", lambda real: lambda sign, x: x),
    ],
    ids=["alignment", "exponent of a group", "size of a group's sum"],
)
def test_exactness_of_broken_groups(
    function: str, change: Callable[[Any], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stages, function, change(getattr(stages, function)))
    assert isinstance(settled(PROPERTIES["exactness"], NARROW, timeout=20), Unknown)


@pytest.mark.parametrize("point", [SHORT, NARROW], ids=str)
def test_codes_that_are_said_to_round_once_do(point: Instruction) -> None:
    spec, found = point.spec, []
    for codes in generate(spec, 2000, 3, ["numbers"]).cases():
        exact = exact_sum(spec, codes)
        if exact is not None and examine(point, codes).once:
            d = int(run(point, [codes])[0])
            found.append(d == reference.convert(exact, RNE_FP16) or (d == 0x8000 and exact == 0))
    assert all(found)
    assert 20 < len(found) < 1500


TWO_GROUPS = datapaths.named("gfda(k=4,group=2,frac_bits=12,a=e4m3,rho=RNE-FP16)")


def test_two_groups_follow_c_but_not_products() -> None:
    assert isinstance(settled(PROPERTIES["monotonicity-in-c"], TWO_GROUPS), Holds)
    assert isinstance(settled(PROPERTIES["monotonicity-in-a-product"], TWO_GROUPS), Fails)


def test_more_groups_than_c_gains_what_they_lose_are_not_proved_to_follow_c() -> None:
    i = datapaths.named("gfda(k=8,group=2,frac_bits=10,a=e4m3,rho=RNE-FP16)")
    assert isinstance(settled(PROPERTIES["monotonicity-in-c"], i, timeout=20), Unknown)


def test_broken_groups_do_not_follow_c(monkeypatch: pytest.MonkeyPatch) -> None:
    real = stages.align
    monkeypatch.setattr(stages, "align", lambda *given: real(*given) ^ 1)
    assert isinstance(settled(PROPERTIES["monotonicity-in-c"], TWO_GROUPS, timeout=20), Unknown)


# ---- fda wide enough ----------------------------------------------------------------------------------------------

WIDE = Instruction(
    "unit",
    "wide",
    1,
    1,
    DotAdd(2, e2m1, e2m1, e5m2, e5m2, Fda(20, 2, Conversion("RNE-E5M2", e5m2, 2, Rounding.RNE), 0)),
)


@pytest.mark.parametrize("name", ["correct-rounding", "faithful-rounding"])
def test_an_alignment_that_loses_nothing_rounds_the_exact_sum(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert isinstance(settled(PROPERTIES[name], WIDE), Holds)
    assert not isinstance(settled(PROPERTIES[name], WIDE.replace(F=19)), Holds)
    real = stages.align
    monkeypatch.setattr(stages, "align", lambda *given: real(*given) & ~1)
    assert not isinstance(settled(PROPERTIES[name], WIDE, timeout=30), Holds)


# ---- fma ------------------------------------------------------------------------------------------------------------

BYTE = datapaths.named("fma(k=1,a=e5m2,rho=IEEE-E5M2,nan=DEFAULT)")
LONG_FMA = [
    "fma(k=1,a=bf16,rho=IEEE-BF16,nan=DEFAULT)",
    "fma(k=1,a=fp16,rho=IEEE-RD-FP16,nan=FIRST)",
]
ROUNDED = ("exactness", "error-bound", "correct-rounding-of-each-step")
ORDERED = ("monotonicity-in-c", "monotonicity-in-a-product")


@pytest.mark.parametrize("name", [*ROUNDED, *ORDERED])
@pytest.mark.parametrize("point", slow([BYTE.name, *LONG_FMA], LONG_FMA))
def test_of_an_fma_of_one_format_is_proved_what_is_of_sfma(name: str, point: str) -> None:
    if name in ORDERED and point == LONG_FMA[1]:
        pytest.skip("that it grows is not settled where it rounds down")
    answer = settled(PROPERTIES[name], datapaths.named(point))
    assert isinstance(answer, Holds), answer


@pytest.mark.parametrize("name", [*ROUNDED, *ORDERED])
@pytest.mark.parametrize("bits", slow([1, 2], [2]))
def test_an_fma_that_is_another_sfma_does_not(bits: int, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is concluded of an fma from an sfma that keeps a bit less, or has another NaN."""
    real, fmt = one_format.SfmaOfAnyFormat, BYTE.d_format
    other = Conversion("other", fmt, bits, Rounding.RNE, True)
    nan = NanRule.DEFAULT if bits == 1 else NanRule.FIRST
    monkeypatch.setattr(one_format, "SfmaOfAnyFormat", lambda **_: real(rho=other, nan=nan))
    answer = settled(PROPERTIES[name], BYTE, timeout=60)
    assert isinstance(answer, Unknown), answer
    assert re.search(
        "does not hold|shown of RNE and RO to all places|no input was found that breaks it", answer.why
    )


@pytest.mark.parametrize(
    "point", ["fma(k=1,a=e5m2,rho=IEEE-E5M2,flush_inputs=1)", "fma(k=1,a=e5m2,rho=IEEE-FP16)"]
)
def test_of_other_fma_it_is_said_that_there_is_no_argument(point: str) -> None:
    answer = settled(PROPERTIES["error-bound"], datapaths.named(point), timeout=20)
    assert isinstance(answer, Unknown), answer
    assert "no argument for fma" in str(answer)


def test_signs_of_an_fma_that_flushes_its_results() -> None:
    """The stage that flushes gives a code without a number beside it, and is still related to its double."""
    point = datapaths.named("fma(k=1,a=e5m2,rho=IEEE-E5M2,flush_inputs=1,tiny=AFTER)")
    assert isinstance(settled(PROPERTIES["sign-symmetry"], point), Holds)


@pytest.mark.slow
def test_exact_sums_with_signs_of_zeros_grow_with_c() -> None:
    """A sum of zeros that are all −0 is −0; the theorem of the exact sum knows that sign."""
    i = datapaths.named("exact(k=1,a=e4m3,c=e5m2,rho=IEEE-E5M2)")
    assert isinstance(settled(PROPERTIES["monotonicity-in-c"], i), Holds)
