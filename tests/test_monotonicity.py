"""Monotonicity: what is proved holds, what fails has a witness, and a broken model makes each proof fail."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

import pytest
import z3
from settling import settled

from mmaformal import ampere, blackwell, cdna1, cdna2, cdna3, hopper, rtx_blackwell, volta
from mmaformal.algorithms import (
    IEEE_FP16,
    IEEE_FP64,
    RNE_FP16,
    RZ_E8M13,
    RZ_FP32,
    Conversion,
    DotAdd,
    Rounding,
    Sfma,
)
from mmaformal.cases import descents
from mmaformal.encodings import smt
from mmaformal.encodings.smt import blocks, efda, fda, fdrda, gdfs, gps, lowered, sfma
from mmaformal.facts import monotonicity_groups, monotonicity_rounding
from mmaformal.formats import e2m1, e3m2, fp16
from mmaformal.instruction import Instruction
from mmaformal.proof.definitions import is_correct, last_index
from mmaformal.proof.proving import NotProvedError, Proving
from mmaformal.queries import monotonicity, monotonicity_products
from mmaformal.solver.answers import Fails, Unknown
from mmaformal.solver.asking import Asker
from mmaformal.solver.portfolio import Portfolio


@pytest.fixture
def proving() -> Iterator[Proving]:
    with Portfolio(["bitwuzla"]) as portfolio:
        yield Proving(Asker(portfolio, 60.0))


class HalfFma(Sfma):
    """sfma in a small format, which no instruction has."""

    def check(self, spec: DotAdd) -> None:
        pass


#: Small models: quick, and with every stage.
SMALL = hopper["HMMA.1688.F16"].replace(k=2, L=2, e_zero=None)
CDNA3 = cdna3["v_mfma_f32_32x32x4_2b_f16"]
FMA = DotAdd(2, fp16, fp16, fp16, fp16, HalfFma(IEEE_FP16))
EXACT = cdna1["v_mfma_f32_32x32x4f16"].spec.replace(k=4, L=2, a_format=e3m2, b_format=e2m1)
GROUPS = blackwell["UTCOMMA.F32.E2M1.E2M1.E8"].spec.replace(k=4, L=4, G=2, scale_block=2, F=9)


def one_bit_less(align: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *given: align(*given) & ~1


def test_an_fda_of_just_enough_bits_is_monotone_in_c(proving: Proving) -> None:
    spec = SMALL.spec.replace(F=11)
    assert monotonicity.products_allowed(spec) == spec.k == 2
    monotonicity.prove_addend_fused(proving, spec)


RZ_FP16 = Conversion("RZ-FP16", fp16, 10, Rounding.RZ)


def test_one_product_more_is_monotone_in_c_where_sums_are_cut_toward_zero(proving: Proving) -> None:
    spec = SMALL.spec.replace(F=10, rho=RZ_FP16)
    assert monotonicity.covered(spec) + 1 == monotonicity.products_allowed(spec) == spec.k == 2
    monotonicity.prove_addend_fused(proving, spec)


@pytest.mark.parametrize("change", [{"k": 3, "L": 3}, {"F": 9}, {"rho": RNE_FP16}], ids=str)
def test_but_no_more_nor_fewer_bits(change: dict[str, Any], proving: Proving) -> None:
    spec = SMALL.spec.replace(**{"F": 10, "rho": RZ_FP16, **change})
    assert monotonicity.products_allowed(spec) < spec.k
    with pytest.raises(NotProvedError, match="does not hold"):
        monotonicity.prove_addend_fused(proving, spec)


@pytest.mark.parametrize("instruction", [volta["HMMA.884.F32.F32"], ampere["HMMA.16816.F32"]], ids=str)
def test_many_products_are_not(instruction: Instruction) -> None:
    found = monotonicity.find_addend(instruction)
    assert found is not None
    first, second, n = found
    assert n == monotonicity.products_allowed(instruction.spec) + 1
    witness = descents.shown(instruction, first, second, "c", ())
    values = [instruction.d_format.value(d) for d in witness.results]
    assert values[0] > values[1]
    assert instruction.c_format.value(first.c) < instruction.c_format.value(second.c)


@pytest.mark.parametrize("broken", ["too narrow", "alignment", "rounding"])
def test_monotonicity_of_a_broken_model_is_not_proved(
    broken: str, proving: Proving, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = SMALL.spec
    if broken == "too narrow":
        spec = spec.replace(F=10)  # two products lose two units, and c gains one
    elif broken == "alignment":
        monkeypatch.setattr(fda, "align", one_bit_less(fda.align))
        spec = spec.replace(F=11)
    else:
        whole = blocks.round_code
        monkeypatch.setattr(blocks, "round_code", lambda *given: whole(*given) ^ 1)
    with pytest.raises(NotProvedError, match="does not hold"):
        monotonicity.prove_addend_fused(proving, spec)


@pytest.mark.parametrize(
    "instruction", [hopper["HMMA.16816.F32"], CDNA3, cdna2["v_mfma_f32_32x32x4f16"]], ids=str
)
def test_a_product_made_of_other_factors_gives_less(instruction: Instruction) -> None:
    answer = settled(monotonicity.PRODUCT, instruction)
    assert isinstance(answer, Fails)
    witness = answer.witness
    assert isinstance(witness, descents.Descent)
    values = [
        monotonicity_products.value_of_product(instruction.spec, x, 0)
        for x in (witness.first, witness.second)
    ]
    assert values[0] <= values[1]
    assert descents.descends(instruction, witness.first, witness.second)


NARROW = [
    blackwell["UTCQMMA.F16.E5M2.E5M2"],
    blackwell["UTCQMMA.F16.E5M2.E3M2"],
    blackwell["UTCQMMA.F16.E5M2.E2M1"],
    blackwell["UTCQMMA.F16.E3M2.E2M1"],
    rtx_blackwell["QMMA.16816.F16.E5M2.E5M2"],
]


@pytest.mark.parametrize("instruction", NARROW, ids=str)
def test_products_of_few_bits_can_be_made_of_a_subnormal_number(instruction: Instruction) -> None:
    found = monotonicity_products.find_product(instruction)
    assert found is not None
    values = [monotonicity_products.value_of_product(instruction.spec, x, 0) for x in found]
    exponents = [monotonicity_products.exponent_of(instruction.spec, (x.a[0], x.b[0])) for x in found]
    assert values[0] == values[1]
    assert exponents[0] < exponents[1]
    assert descents.descends(instruction, *found)


# ---- where each rounding is of an exact sum --------------------------------------------------------------------------


@pytest.mark.parametrize("spec", [FMA, EXACT], ids=["sfma", "efda"])
def test_exact_sums_rounded_are_monotone(spec: DotAdd, proving: Proving) -> None:
    monotonicity_rounding.prove_by_rounding(proving, spec)
    assert len(proving.obligations) > 20


def without_signs(terms: Any, bits: int) -> Any:
    return blocks.sum_of([blocks.resize(magnitude, bits) for _, magnitude in terms])


def break_both(broken: str, module: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Break one stage of sfma or efda."""
    multiply, select, whole, classify = (
        blocks.multiply,
        blocks.select_special,
        blocks.round_code,
        blocks.classify,
    )
    chain = module.dot_add

    def signless(a: Any, b: Any, *given: Any, **named: Any) -> Any:
        return multiply(a, b, *given, **named)._replace(sign=a.sign)

    def shifted(a: Any, b: Any, *given: Any, **named: Any) -> Any:
        term = multiply(a, b, *given, **named)
        return term._replace(exponent=z3.If(b.sign == 1, term.exponent + 1, term.exponent))

    def carry_dropped(code: Any, drop: int, sign: Any, rounding: Any) -> Any:
        kept, rounded = z3.Extract(code.size() - 1, drop, code), whole(code, drop, sign, rounding)
        return z3.If(z3.Extract(3, 0, kept) == 15, kept & ~15, rounded)

    def exchanged(special: Any, *given: Any) -> Any:
        nan, plus, minus = special
        return select(blocks.Special(nan, minus, plus), *given)

    def forgetful(products: Any, addends: Any, *given: Any) -> Any:
        return classify(products, [c._replace(nan=z3.BoolVal(False)) for c in addends], *given)

    def first_step(*given: Any) -> Any:
        trace = chain(*given)
        return blocks.Trace(trace.steps, trace.steps[0].result)

    def negated_between(spec: Any, a: Any, b: Any, c: Any) -> Any:
        half, L = spec.replace(k=spec.parameters.step_products), spec.parameters.step_products
        first = chain(half, a[:L], b[:L], c)
        if spec.k == L:
            return first
        second = chain(half, a[L:], b[L:], first.result ^ spec.d_format.sign_mask)
        return blocks.Trace((*first.steps, *second.steps), second.result)

    if broken == "signs of the sum":
        monkeypatch.setattr(blocks, "signed_sum", without_signs)
    elif broken == "sign of a product":
        monkeypatch.setattr(module, "multiply", signless)
    elif broken == "exponent of a product":
        monkeypatch.setattr(module, "multiply", shifted)
    elif broken == "carry":
        monkeypatch.setattr(blocks, "round_code", carry_dropped)
    elif broken == "infinities":
        monkeypatch.setattr(module, "select_special", exchanged)
    elif broken == "NaN":
        monkeypatch.setattr(module, "classify", forgetful)
    elif broken == "sticky bit":
        monkeypatch.setattr(blocks, "sticky_shift_right", blocks.shift_right)
    elif broken == "one side":
        nearest = blocks.round_code
        monkeypatch.setattr(
            blocks,
            "round_code",
            lambda code, drop, sign, rounding: z3.If(
                sign == 1, z3.Extract(code.size() - 1, drop, code), nearest(code, drop, sign, rounding)
            ),
        )
    else:
        broken_chain = first_step if broken == "first step" else negated_between
        name = "sfma" if module is sfma else "efda"
        monkeypatch.setitem(smt._ALGORITHMS, name, broken_chain)


BREAKS = [
    "signs of the sum",
    "sign of a product",
    "exponent of a product",
    "carry",
    "infinities",
    "NaN",
    "sticky bit",
    "one side",
    "first step",
    "negated between steps",
]


@pytest.mark.parametrize("broken", BREAKS)
@pytest.mark.parametrize(("spec", "module"), [(FMA, sfma), (EXACT, efda)], ids=["sfma", "efda"])
def test_a_broken_sum_is_not_proved_monotone(
    spec: DotAdd, module: Any, broken: str, proving: Proving, monkeypatch: pytest.MonkeyPatch
) -> None:
    break_both(broken, module, monkeypatch)
    with pytest.raises(NotProvedError, match="does not hold"):
        monotonicity_rounding.prove_by_rounding(proving, spec)


SORTED = cdna1["v_mfma_f32_32x32x2bf16"].spec.replace(k=4)


@pytest.mark.parametrize(
    "broken",
    ["signs of the sum", "sign of a product", "infinities", "NaN", "first step", "negated between steps"],
)
def test_a_broken_sum_of_sorted_terms_is_not_proved_monotone(
    broken: str, proving: Proving, monkeypatch: pytest.MonkeyPatch
) -> None:
    break_both(broken, efda, monkeypatch)
    with pytest.raises(NotProvedError, match="does not hold"):
        monotonicity_rounding.prove_by_rounding(proving, SORTED)


@pytest.mark.parametrize("rho", [RZ_FP32, RZ_E8M13, RNE_FP16, IEEE_FP64], ids=str)
def test_the_bounds_of_a_number_are_those_of_rounding(rho: Conversion, proving: Proving) -> None:
    monotonicity_rounding.prove_grid(proving, rho)
    bits = rho.fraction_bits + rho.format.exponent_bits
    drop = rho.format.fraction_bits - rho.fraction_bits
    for n in (
        0,
        1,
        (1 << rho.fraction_bits) - 1,
        1 << rho.fraction_bits,
        3 << rho.fraction_bits,
        last_index(rho) - 1,
    ):
        terms = monotonicity_rounding.bounds(
            z3.BitVecVal(n, bits), rho.format.exponent_bits + 6, rho, rho.rounding
        )
        lower, upper, q = (z3.simplify(x) for x in terms)
        ends = [x.as_long() * Fraction(2) ** q.as_signed_long() for x in (lower, upper)]
        middle = (ends[0] + ends[1]) / 2
        if n:
            assert is_correct(n << drop, middle, rho)
            assert not is_correct(n << drop, ends[0] * Fraction(255, 256), rho)
        assert not is_correct(n << drop, ends[1] * Fraction(257, 256), rho)


@pytest.mark.parametrize("rounding", [Rounding.RNA, Rounding.RD, Rounding.RU], ids=lambda r: r.name)
def test_other_roundings_keep_the_order_too(rounding: Rounding, proving: Proving) -> None:
    monotonicity_rounding.prove_grid(proving, Conversion("ρ", fp16, 10, rounding))


def test_of_rounding_to_odd_there_is_no_argument(proving: Proving) -> None:
    with pytest.raises(NotProvedError, match="no argument"):
        monotonicity_rounding.prove_grid(proving, Conversion("ρ", fp16, 10, Rounding.RO))


def test_a_grid_with_a_gap_is_not_proved(proving: Proving, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = monotonicity_rounding.bounds

    def gap(*given: Any) -> Any:
        lower, upper, q = whole(*given)
        return lower, upper - 1, q

    monkeypatch.setattr(monotonicity_rounding, "bounds", gap)
    with pytest.raises(NotProvedError, match="does not hold"):
        monotonicity_rounding.prove_grid(proving, IEEE_FP16)


# ---- gdfs ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("e_zero", [None, pytest.param(-139, marks=pytest.mark.slow)])
def test_gdfs_is_monotone_in_its_products(e_zero: int | None, proving: Proving) -> None:
    monotonicity_groups.prove_groups(proving, GROUPS.replace(e_zero=e_zero))
    assert any(each.name == "composition" for each in proving.obligations)


def break_groups(broken: str, monkeypatch: pytest.MonkeyPatch) -> None:
    scale, fixed_point, whole, align = gdfs.scale, gdfs.fixed_point, blocks.round_code, gdfs.align

    def scaled(total: Any, zero: Any, scales: Any, spec: Any, p: Any) -> Any:
        term = scale(total, zero, scales, spec, p)
        if broken == "sign of a scale":
            return term._replace(sign=term.sign ^ z3.Extract(0, 0, scales[0].field))
        if broken == "exponent of a sum":  # 1 counts double, and is more than 1.5
            return term._replace(exponent=z3.If(total == 4, term.exponent + 1, term.exponent))
        return term._replace(exponent=z3.If(zero, gdfs.exponents_of(spec, p).constant(100), term.exponent))

    if broken == "alignment":
        monkeypatch.setattr(gdfs, "align", lambda *given: align(*given) ^ 1)
    elif broken == "rounding":
        monkeypatch.setattr(blocks, "round_code", lambda *given: whole(*given) ^ 1)
    elif broken == "signs":
        monkeypatch.setattr(gdfs, "signed_sum", without_signs)
    elif broken == "numbers":  # 6 is read as 1.5
        monkeypatch.setattr(
            gdfs, "fixed_point", lambda x: z3.If(fixed_point(x) == 12, z3.BitVecVal(3, 4), fixed_point(x))
        )
    elif broken == "maximum":
        monkeypatch.setattr(gdfs, "maximum", lambda xs: xs[0])
    else:
        monkeypatch.setattr(gdfs, "scale", scaled)


GROUP_BREAKS = [
    "alignment",
    "rounding",
    "signs",
    "numbers",
    "maximum",
    "sign of a scale",
    "exponent of a sum",
    "exponent of zero",
]


@pytest.mark.parametrize("broken", GROUP_BREAKS)
def test_a_broken_gdfs_is_not_proved_monotone(
    broken: str, proving: Proving, monkeypatch: pytest.MonkeyPatch
) -> None:
    break_groups(broken, monkeypatch)
    with pytest.raises(NotProvedError, match="does not hold"):
        monotonicity_groups.prove_groups(proving, GROUPS.replace(F=25) if broken == "rounding" else GROUPS)


def test_a_narrow_gdfs_is_not_proved_monotone(proving: Proving) -> None:
    """A scaled group may be worth a single unit, and two other terms lose almost one each."""
    spec = blackwell["UTCOMMA.F32.E2M1.E2M1.UE4M3.4X"].spec.replace(k=4, L=4, G=2, scale_block=2, F=8)
    with pytest.raises(NotProvedError, match="worth what the other terms lose does not hold"):
        monotonicity_groups.prove_groups(proving, spec)


def test_a_premise_that_was_not_derived_is_noticed(proving: Proving) -> None:
    deriving = monotonicity_groups.Deriving(proving)
    x = z3.BitVec("x", 4)
    premise, claim = z3.ULE(x, 3), z3.ULE(x, 5)
    deriving.derive("step", "from a bound, a larger one", claim, [premise])
    with pytest.raises(NotProvedError, match="does not hold"):
        deriving.conclude([claim], "the larger bound")
    deriving.assume(premise)
    deriving.conclude([claim], "the larger bound")


# ---- what lies before and after a step's own argument ------------------------------------------------------------


@pytest.mark.parametrize("instruction", [SMALL, CDNA3, blackwell["UTCOMMA.F32.E2M1.E2M1.E8"]], ids=str)
def test_zeros_of_c_are_one_number(proving: Proving, instruction: Instruction) -> None:
    monotonicity.prove_zeros(proving, instruction.spec)


def test_zeros_of_c_that_differ_are_noticed(proving: Proving, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = fdrda.classify

    field = blocks.Special._fields[1]

    def infinite_below_zero(products: Any, addends: Any, *rest: Any, **named: Any) -> Any:
        special = whole(products, addends, *rest, **named)
        return special._replace(**{field: z3.Or(special[1], addends[0].sign == 1)})

    monkeypatch.setattr(fdrda, "classify", infinite_below_zero)
    with pytest.raises(NotProvedError, match="does not hold"):
        monotonicity.prove_zeros(proving, CDNA3.spec)


@pytest.mark.parametrize(
    "instruction",
    [cdna2["v_mfma_f32_32x32x4f16"], hopper["mma.m16n8k32.f16.e5m2.e5m2.f16"]],
    ids=lambda i: i.algorithm,
)
def test_instructions_made_of_others_are_not_proved_where_they_are_not_that(
    instruction: Instruction, monkeypatch: pytest.MonkeyPatch
) -> None:
    """c with its sign turned: then d falls where c grows."""
    module = gps if instruction.algorithm == "gps" else lowered
    whole = module.step

    def turned(*given: Any) -> Any:
        *most, c = given
        return whole(*most, c ^ (1 << (c.size() - 1)))

    monkeypatch.setattr(module, "step", turned)
    assert isinstance(settled(monotonicity.ADDEND, instruction, timeout=20), Unknown)
