"""d(2a, b, 2c) = 2·d(a, b, c): each algorithm's argument, and models that break it, of which it is not proved."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import z3

from mmaformal import ARCHITECTURES, ampere, blackwell, cdna1, cdna2, cdna3, hopper, riscv
from mmaformal import prove as prove_property
from mmaformal.architectures import datapaths
from mmaformal.cases.codes import magnitude
from mmaformal.cases.generate import generate
from mmaformal.cases.inputs import Rows, symbolic_inputs
from mmaformal.encodings.efda import smt as efda
from mmaformal.encodings.fdrda import smt as fdrda
from mmaformal.encodings.gdfs.proofs.sums import group_that_cancels
from mmaformal.encodings.gps import smt as gps
from mmaformal.encodings.sfma import smt as sfma
from mmaformal.encodings.smt import blocks, ieee, stages
from mmaformal.formats import Format, e4m3, fp16, fp32
from mmaformal.instruction import Instruction
from mmaformal.proof.kernel import ArgumentError, NotProvedError, prove
from mmaformal.queries import power_of_two_scaling
from mmaformal.queries.power_of_two_scaling import argue_doubled, relation_doubled, settle_scaling
from mmaformal.solver.answers import Fails, Holds, Unknown
from mmaformal.solver.asking import Asker
from mmaformal.solver.portfolio import LazyPortfolio
from mmaformal.spec import DotAdd

FDRDA = cdna3["v_mfma_f32_32x32x4_2b_f16"].spec
FDRDA_BF16 = cdna3["v_mfma_f32_32x32x4_2b_bf16"].spec
LONG_GFDRDA = cdna3["v_mfma_f32_32x32x16_fp8_fp8"].spec
GFDRDA = LONG_GFDRDA.replace(k=8, L=8)
SFMA = cdna1["v_mfma_f32_32x32x1f32"].spec
FIXED_POINT = cdna1["v_mfma_f32_32x32x4f16"].spec
SORTED = cdna1["v_mfma_f32_32x32x2bf16"].spec
GPS = cdna2["v_mfma_f32_32x32x4f16"].spec
FDA = ampere["HMMA.16816.F32.BF16"].spec.replace(k=4, L=4)
GFDA = datapaths.gfda(k=4, group=2, frac_bits=10, a="e4m3").spec
MULADD = datapaths.mul_add(k=2, a="e4m3").spec
RND2 = datapaths.pair_add(k=2, a="e4m3").spec
LONG_LOWERED = hopper["mma.m16n8k32.f16.e4m3.e4m3.f16"].spec
LOWERED = LONG_LOWERED.replace(k=4, L=2, order=(0, 2, 1, 3))


def proved(solvers: LazyPortfolio, spec: DotAdd) -> bool:
    try:
        prove(Asker(solvers, 60), argue_doubled(spec))
    except (NotProvedError, ArgumentError):
        return False
    return True


@pytest.mark.parametrize(
    "spec",
    [
        *(FDRDA, GFDRDA, SFMA, GPS, LOWERED, FDA, GFDA, MULADD, RND2),
        *(
            pytest.param(spec, marks=pytest.mark.slow)
            for spec in (FIXED_POINT, SORTED, FDRDA_BF16, LONG_GFDRDA, LONG_LOWERED)
        ),
    ],
    ids=[
        *("fdrda", "gfdrda", "sfma", "gps", "lowered", "fda", "gfda", "muladd", "rnd2"),
        *("fixed-point", "sorted", "bf16", "gfdrda of many products", "lowered of many products"),
    ],
)
def test_doubling_is_proved(solvers: LazyPortfolio, spec: DotAdd) -> None:
    assert proved(solvers, spec)


def test_what_is_claimed_is_within_range_somewhere() -> None:
    """Among random cases there are some that the claim is about, with sums that are rounded; and it holds of them."""
    for spec in (FDRDA, GFDRDA, SFMA, FIXED_POINT, SORTED, GPS, LOWERED, FDA, GFDA, MULADD, RND2):
        each, cases = relation_doubled(spec), generate(spec, 4000)
        first, second, broken = each.runs(cases)
        numbers = each.allowed(cases.codes) & (magnitude(first, spec.d_format) != 0)
        assert np.count_nonzero(numbers) > 20
        assert not broken.any()
        assert (second[numbers] != first[numbers]).all()


# ---- models that break it ----------------------------------------------------------------------------------------


def cleared(code: Any, fmt: Format, places: int = 1) -> Any:
    """A code whose last places are cleared if its exponent field is even: fewer places in every other binade."""
    low = fmt.ignored_low_bits + fmt.fraction_bits
    return z3.If(z3.Extract(low, low, code) == 0, code & -(1 << places), code)


@pytest.mark.parametrize(
    ("module", "spec"),
    [
        *((fdrda, FDRDA), (fdrda, GFDRDA), (sfma, SFMA), (efda, FIXED_POINT)),
        pytest.param(efda, SORTED, marks=pytest.mark.slow),
    ],
    ids=["fdrda", "gfdrda", "sfma", "fixed-point", "sorted"],
)
def test_rounding_that_knows_the_exponent(
    solvers: LazyPortfolio, monkeypatch: pytest.MonkeyPatch, module: Any, spec: DotAdd
) -> None:
    encode = module.encode
    monkeypatch.setattr(module, "encode", lambda x, rho: cleared(encode(x, rho), fp32))
    assert not proved(solvers, spec)


def test_products_and_sums_that_know_the_exponent(
    solvers: LazyPortfolio, monkeypatch: pytest.MonkeyPatch
) -> None:
    multiply, add = gps.multiply, stages.add
    monkeypatch.setattr(gps, "multiply", lambda *given: cleared(multiply(*given), fp32, 8))
    assert not proved(solvers, GPS)

    def add_cleared(*given: Any) -> Any:
        addition = add(*given)
        return addition._replace(result=cleared(addition.result, fp16))

    monkeypatch.setattr(stages, "add", add_cleared)
    assert not proved(solvers, LOWERED)


def test_converted_operands_that_know_the_exponent(
    solvers: LazyPortfolio, monkeypatch: pytest.MonkeyPatch
) -> None:
    convert = ieee.convert
    monkeypatch.setattr(
        ieee, "convert", lambda code, source, target: convert(cleared(code, e4m3), source, target)
    )
    assert not proved(solvers, LOWERED)


def grown(x: Any) -> Any:
    """A term whose significand has its last place set if its exponent is odd."""
    return x._replace(significand=x.significand | blocks.resize(x.exponent & 1, x.significand.size()))


def higher_zero(f: Callable[..., Any]) -> Callable[..., Any]:
    """Terms whose zeros have a higher exponent."""
    return lambda *given: f(*given)._replace(
        exponent=z3.If(f(*given).significand == 0, f(*given).exponent + 40, f(*given).exponent)
    )


BROKEN = {
    "products": ("multiply", lambda f: lambda *given: grown(f(*given))),
    "c": ("addend", lambda f: lambda *given: grown(f(*given))),
    "zeros": ("multiply", higher_zero),
    "alignment": ("align", lambda f: lambda x, e_max, *rest: f(x, e_max | 1, *rest)),
    "an exponent that is higher": ("maximum", lambda f: lambda xs: f(xs) + (f(xs) & 1)),
    "rounding": ("encode", lambda f: lambda x, rho: cleared(f(x, rho), rho.format, 20)),
    "the unit of what is rounded": (
        "normalise_and_round",
        lambda f: lambda x, e_max, *rest: f(x, e_max | 1, *rest),
    ),
}


@pytest.mark.parametrize("spec", [FDA, GFDA], ids=["fda", "gfda"])
@pytest.mark.parametrize("what", BROKEN)
def test_stages_that_know_the_exponent(
    solvers: LazyPortfolio, monkeypatch: pytest.MonkeyPatch, spec: DotAdd, what: str
) -> None:
    name, change = BROKEN[what]
    monkeypatch.setattr(stages, name, change(getattr(stages, name)))
    assert not proved(solvers, spec)


@pytest.mark.parametrize(
    ("what", "spec"),
    [("products", MULADD), ("rounding", MULADD), ("products", RND2)],
    ids=["muladd's products", "muladd's rounding", "rnd2's products"],
)
def test_products_rounded_by_themselves(
    solvers: LazyPortfolio, monkeypatch: pytest.MonkeyPatch, what: str, spec: DotAdd
) -> None:
    name, change = BROKEN[what]
    monkeypatch.setattr(stages, name, change(getattr(stages, name)))
    assert not proved(solvers, spec)


@pytest.mark.parametrize("kind", [datapaths.mul_add, datapaths.pair_add])
def test_products_that_may_be_subnormal(solvers: LazyPortfolio, kind: Callable[..., Instruction]) -> None:
    """A product that is rounded before it is added loses other bits where it is subnormal."""
    assert not proved(solvers, kind(k=2, a="bf16").spec)


def test_groups_below_the_exponent_of_zeros(solvers: LazyPortfolio) -> None:
    assert not proved(solvers, GFDA.replace(e_zero=-4))


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("align", lambda f: lambda x, e_max, *rest: f(x, e_max | 1, *rest)),
        ("c_at", lambda f: lambda e_max, *rest: f(e_max | 1, *rest)),
        ("exponent_of_dot", lambda f: lambda *given: f(*given) | 1),
    ],
    ids=["products", "c", "the exponent of their sum"],
)
def test_fdrda_that_aligns_otherwise(
    solvers: LazyPortfolio, monkeypatch: pytest.MonkeyPatch, name: str, change: Callable[[Any], Any]
) -> None:
    monkeypatch.setattr(fdrda, name, change(getattr(fdrda, name)))
    assert not proved(solvers, FDRDA)


def test_zero_products_with_the_exponents_of_their_fields(solvers: LazyPortfolio) -> None:
    assert not proved(solvers, FDRDA.replace(skip_zero_products=False))


def test_another_exponent_of_a_zero_product_of_an_fma(
    solvers: LazyPortfolio, monkeypatch: pytest.MonkeyPatch
) -> None:
    def multiply(a: Any, b: Any, bias: int, exponents: Any, e_zero: int) -> Any:
        return blocks.multiply(a, b, bias, exponents, e_zero + 40)

    monkeypatch.setattr(sfma, "multiply", multiply)
    assert not proved(solvers, SFMA)


def test_fixed_point_with_too_few_places_for_c(
    solvers: LazyPortfolio, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(efda, "places_below", lambda q: q - 1)
    assert not proved(solvers, FIXED_POINT)


def test_a_zero_that_is_sorted_above_small_terms(
    solvers: LazyPortfolio, monkeypatch: pytest.MonkeyPatch
) -> None:
    normalised = efda.normalised

    def higher(*given: Any) -> Any:
        return normalised(*given[:-1], given[-1] + 200)

    monkeypatch.setattr(efda, "normalised", higher)
    assert not proved(solvers, SORTED)


def test_terms_that_are_near_by_their_own_exponent(
    solvers: LazyPortfolio, monkeypatch: pytest.MonkeyPatch
) -> None:
    sticky_sum = efda.sticky_sum

    def cut(x: Any, x_bits: int, y: Any, y_bits: int, frame: int) -> Any:
        return sticky_sum(x, x_bits, y._replace(exponent=y.exponent & -2), y_bits, frame)

    monkeypatch.setattr(efda, "sticky_sum", cut)
    assert not proved(solvers, SORTED)


# ---- where it fails ----------------------------------------------------------------------------------------------


def test_groups_that_cancel_keep_their_exponent(solvers: LazyPortfolio) -> None:
    instruction = blackwell["UTCOMMA.F32.E2M1.E2M1.UE4M3.4X"]
    each, codes = relation_doubled(instruction.spec), group_that_cancels(instruction.spec)
    first, second, broken = each.runs(Rows.of([codes]))
    assert broken[0]
    # The first run has lost the last bit of c, the second has not.
    assert codes.c - 1 == first[0]
    assert codes.c + (1 << fp32.fraction_bits) == second[0]
    assert isinstance(settle_scaling(instruction, Asker(solvers, 3)), Fails)


def test_no_argument_where_products_may_be_flushed(solvers: LazyPortfolio) -> None:
    assert not proved(solvers, cdna2["v_mfma_f32_32x32x2bf16"].spec)


def test_inner_steps_of_a_lowered_instruction_are_steps() -> None:
    """Both encodings have the same results, of which something is assumed."""
    cases = generate(LOWERED, 1)
    codes = cases[0]
    names = {f"a{k}": x for k, x in enumerate(codes.a)} | {f"b{k}": x for k, x in enumerate(codes.b)}
    terms = power_of_two_scaling.results_of_steps(LOWERED, symbolic_inputs(LOWERED, names | {"c": codes.c}))
    assert len(terms) == 3
    mine = [int(x[0]) for x in power_of_two_scaling.results_of_steps(LOWERED, cases.codes)]
    assert [z3.simplify(term).as_long() for term in terms] == mine


@pytest.mark.slow
def test_sums_that_begin_with_zero_are_doubled() -> None:
    assert isinstance(
        prove_property("power-of-two-scaling", riscv["vfqwbdota.vv.E4M3.n2"], timeout=200), Holds
    )


def test_a_sum_whose_largest_exponent_would_wrap_is_not_taken_for_one_in_range() -> None:
    """The exponents of fp8 products and fp16 have six bits here, which the rounding's own may exceed."""
    unit = ARCHITECTURES["armv9_fp8"]["FDOT.F16.E4M3.E4M3"]
    assert isinstance(prove_property("power-of-two-scaling", unit, timeout=200), Holds)


def test_what_has_no_argument_is_unknown() -> None:
    """An exact sum, rounded, then added to c: its step has one inner step."""
    unit = ARCHITECTURES["diamond_rapids"]["TDPBF8PS.K4"]
    found = prove_property("power-of-two-scaling", unit, timeout=15)
    assert isinstance(found, Unknown)
