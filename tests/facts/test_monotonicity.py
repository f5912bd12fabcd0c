"""Monotonicity: what is proved holds, what fails has a witness, and a broken model makes each proof fail."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import pytest
import z3
from support.settling import one_bit_less, settled
from support.slow import slow

from mmaformal import ampere, blackwell, cdna1, cdna2, cdna3, hopper, rtx_blackwell, sapphire_rapids, volta
from mmaformal.cases import out_of_order
from mmaformal.cases.falling_products import exponent_of_factors, find_product, narrow_cases, value_of_product
from mmaformal.cases.out_of_order import not_below, two_runs
from mmaformal.cases.witness import CaseWitness
from mmaformal.encodings import smt
from mmaformal.encodings.efda import smt as efda
from mmaformal.encodings.fda.proofs import monotonicity as of_fda
from mmaformal.encodings.fdrda import smt as fdrda
from mmaformal.encodings.fdrda.proofs import monotonicity as of_fdrda
from mmaformal.encodings.ffma.proofs import monotonicity as of_ffma
from mmaformal.encodings.gdfs import smt as gdfs
from mmaformal.encodings.gdfs.proofs import monotonicity as of_gdfs
from mmaformal.encodings.gps import smt as gps
from mmaformal.encodings.gps.proofs import FACTS as GPS
from mmaformal.encodings.joined_fda import JoinedFda
from mmaformal.encodings.lowered import smt as lowered
from mmaformal.encodings.pfma import smt as pfma
from mmaformal.encodings.pfma.proofs import FACTS as PFMA_FACTS
from mmaformal.encodings.sfma import Sfma
from mmaformal.encodings.sfma import smt as sfma
from mmaformal.encodings.smt import blocks, ieee, stages
from mmaformal.facts import (
    monotone_addition,
    monotone_fused,
)
from mmaformal.facts.registry import facts_of
from mmaformal.formats import Format, e2m1, e3m2, e4m3, e5m2, fp16, fp32
from mmaformal.instruction import Instruction
from mmaformal.proof.composition import Composing
from mmaformal.proof.kernel import NotProvedError
from mmaformal.proof.rules import Theory
from mmaformal.queries import monotonicity
from mmaformal.queries.properties import PROPERTIES
from mmaformal.rounding import IEEE_FP16, RNE_FP16, Conversion, Rounding
from mmaformal.solver.answers import Fails, Unknown
from mmaformal.spec import DotAdd
from mmaformal.theory import monotone
from mmaformal.theory.monotone import OneStep
from mmaformal.theory.numbers import larger_product
from mmaformal.theory.rounded_sums import RoundsExactly


class HalfFma(Sfma):
    """sfma in a small format, which no instruction has."""

    def check(self, spec: DotAdd) -> None:
        pass


#: Small models: quick, and with every stage.
SMALL = hopper["HMMA.1688.F16"].replace(k=2, L=2, e_zero=None)
CDNA2 = cdna2["v_mfma_f32_32x32x4f16"]
CDNA3 = cdna3["v_mfma_f32_32x32x4_2b_f16"]
FDRDA = CDNA3.spec.replace(k=2, L=2)
E5M2 = hopper["mma.m16n8k32.f16.e5m2.e5m2.f16"]
LOWERED = E5M2.replace(k=4, L=2, order=(0, 2, 1, 3))
PFMA = sapphire_rapids["TDPBF16PS"].replace(k=4, L=2)
FMA = DotAdd(2, fp16, fp16, fp16, fp16, HalfFma(IEEE_FP16))
EXACT = cdna1["v_mfma_f32_32x32x4f16"].spec.replace(k=4, L=2, a_format=e3m2, b_format=e2m1)
GROUPS = blackwell["UTCOMMA.F32.E2M1.E2M1.E8"].spec.replace(k=4, L=4, G=2, scale_block=2, F=9)


def test_an_fda_of_just_enough_bits_is_monotone_in_c(theory: Theory) -> None:
    spec = SMALL.spec.replace(F=11)
    assert monotone_fused.products_allowed(spec) == spec.k == 2
    monotone_fused.prove_in_c(theory, spec)
    assert theory.proves(two_runs(spec).statement)
    assert theory.obligations[-1].name == "composition"


RZ_FP16 = Conversion("RZ-FP16", fp16, 10, Rounding.RZ)


def test_one_product_more_is_monotone_in_c_where_sums_are_cut_toward_zero(theory: Theory) -> None:
    spec = SMALL.spec.replace(F=10, rho=RZ_FP16)
    assert monotone_fused.covered(spec) + 1 == monotone_fused.products_allowed(spec) == spec.k == 2
    monotone_fused.prove_in_c(theory, spec)


@pytest.mark.parametrize("change", [{"k": 3, "L": 3}, {"F": 9}, {"rho": RNE_FP16}], ids=str)
def test_but_no_more_nor_fewer_bits(change: dict[str, Any], theory: Theory) -> None:
    spec = SMALL.spec.replace(**{"F": 10, "rho": RZ_FP16, **change})
    assert monotone_fused.products_allowed(spec) < spec.k
    with pytest.raises(NotProvedError, match="does not hold"):
        monotone_fused.prove_in_c(theory, spec)


#: With this exponent of c = 0, e_max may rise by more than a sum has places.
LOW_ZERO = -50


@pytest.mark.slow
@pytest.mark.parametrize(("k", "F", "rho"), [(2, 11, RNE_FP16), (2, 10, RZ_FP16), (5, 12, RZ_FP16)], ids=str)
@pytest.mark.parametrize("e_zero", [-21, LOW_ZERO])
def test_c_after_0_is_covered_however_far_e_max_rises(
    k: int, F: int, rho: Conversion, e_zero: int, theory: Theory
) -> None:
    spec = SMALL.spec.replace(k=k, L=k, F=F, rho=rho, e_zero=e_zero)
    assert monotone_fused.products_allowed(spec) == spec.k
    monotone_fused.prove_in_c(theory, spec)
    assert theory.proves(two_runs(spec).statement)


@pytest.mark.parametrize("far", ["not asked for", "asked for too late", "a unit too many"])
def test_a_far_rise_that_is_not_told_of_is_noticed(
    far: str, theory: Theory, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = monotone_fused.FusedPair.rises.fget
    assert whole is not None

    def rises(pair: monotone_fused.FusedPair) -> list[monotone_fused.Rise]:
        *near, more = whole(pair)
        if far == "not asked for":
            return near
        if far == "asked for too late":
            E0, E1 = pair.E
            return [*near, replace(more, happens=z3.And(more.happens, z3.UGE(E1 - E0, 3)))]
        return [*near, replace(more, unit=more.unit << 1)]

    monkeypatch.setattr(monotone_fused.FusedPair, "rises", property(rises))
    with pytest.raises(NotProvedError, match="does not hold"):
        monotone_fused.prove_in_c(theory, SMALL.spec.replace(F=11, e_zero=-21))


@pytest.mark.parametrize("instruction", [volta["HMMA.884.F32.F32"], ampere["HMMA.16816.F32"]], ids=str)
def test_many_products_are_not(instruction: Instruction) -> None:
    found = of_fda.find_addend(instruction)
    assert found is not None
    first, second, n = found
    assert n == monotone_fused.products_allowed(instruction.spec) + 1
    witness = out_of_order.shown_out_of_order(instruction, first, second, "c", ())
    values = [instruction.d_format.value(d) for d in witness.results]
    assert values[0] > values[1]
    assert instruction.c_format.value(first.c) < instruction.c_format.value(second.c)


@pytest.mark.parametrize("broken", ["too narrow", "alignment", "rounding"])
def test_monotonicity_of_a_broken_model_is_not_proved(
    broken: str, theory: Theory, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = SMALL.spec
    if broken == "too narrow":
        spec = spec.replace(F=10)  # two products lose two units, and c gains one
    elif broken == "alignment":
        monkeypatch.setattr(stages, "align", one_bit_less(stages.align))
        spec = spec.replace(F=11)
    else:
        whole = blocks.round_code
        monkeypatch.setattr(blocks, "round_code", lambda *given: whole(*given) ^ 1)
    with pytest.raises(NotProvedError, match="does not hold"):
        monotone_fused.prove_in_c(theory, spec)


@pytest.mark.parametrize("instruction", [hopper["HMMA.16816.F32"], CDNA3, CDNA2], ids=str)
def test_a_product_made_of_other_factors_gives_less(instruction: Instruction) -> None:
    answer = settled(monotonicity.PRODUCT, instruction)
    assert isinstance(answer, Fails)
    witness = answer.witness
    assert isinstance(witness, CaseWitness)
    firsts = [run.codes for run in witness.runs]
    values = [value_of_product(instruction.spec, x, 0) for x in firsts]
    assert values[0] <= values[1]
    assert out_of_order.is_out_of_order(instruction, *firsts)


NARROW = [
    blackwell["UTCQMMA.F16.E5M2.E5M2"],
    blackwell["UTCQMMA.F16.E5M2.E3M2"],
    blackwell["UTCQMMA.F16.E5M2.E2M1"],
    blackwell["UTCQMMA.F16.E3M2.E2M1"],
    rtx_blackwell["QMMA.16816.F16.E5M2.E5M2"],
]


@pytest.mark.parametrize("instruction", NARROW, ids=str)
def test_products_of_few_bits_can_be_made_of_a_subnormal_number(instruction: Instruction) -> None:
    spec = instruction.spec
    found = find_product(instruction, [partial(narrow_cases, spec, instruction.parameters.F)])
    assert found is not None
    values = [value_of_product(spec, x, 0) for x in found]
    exponents = [exponent_of_factors(spec, (x.a[0], x.b[0])) for x in found]
    assert values[0] == values[1]
    assert exponents[0] < exponents[1]
    assert out_of_order.is_out_of_order(instruction, *found)


# ---- where each rounding is of an exact sum --------------------------------------------------------------------------


def model_of(spec: DotAdd) -> RoundsExactly:
    model = facts_of(spec).rounds_exactly(spec)
    assert model is not None
    return model


@pytest.mark.parametrize("spec", [FMA, pytest.param(EXACT, marks=pytest.mark.slow)], ids=["sfma", "efda"])
def test_exact_sums_rounded_are_monotone(spec: DotAdd, theory: Theory) -> None:
    monotone.prove_in_c(theory, spec, model_of(spec))
    assert theory.proves(two_runs(spec).statement)


def without_signs(terms: Any, bits: int) -> Any:
    return blocks.sum_of([blocks.resize(magnitude, bits) for _, magnitude in terms])


def break_both(broken: str, module: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Break one stage of sfma or efda."""
    select, whole, classify, chain = (
        blocks.select_special,
        blocks.round_code,
        blocks.classify,
        module.dot_add,
    )

    def carry_dropped(code: Any, drop: int, sign: Any, rounding: Any, random: Any) -> Any:
        kept, rounded = z3.Extract(code.size() - 1, drop, code), whole(code, drop, sign, rounding, random)
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
    elif broken == "carry":
        monkeypatch.setattr(blocks, "round_code", carry_dropped)
    elif broken == "infinities":
        monkeypatch.setattr(module, "select_special", exchanged)
    elif broken == "NaN":
        monkeypatch.setattr(module, "classify", forgetful)
    else:
        broken_chain = first_step if broken == "first step" else negated_between
        name = "sfma" if module is sfma else "efda"
        monkeypatch.setitem(smt._ALGORITHMS, name, broken_chain)


BREAKS = ["signs of the sum", "carry", "infinities", "NaN", "first step", "negated between steps"]
BREAKS_OF = [(algorithm, broken) for algorithm in ("sfma", "efda") for broken in BREAKS]


@pytest.mark.parametrize(
    "case", slow(BREAKS_OF, [each for each in BREAKS_OF if each[1] not in ("signs of the sum", "carry")])
)
def test_a_broken_sum_is_not_proved_monotone(
    case: tuple[str, str], theory: Theory, monkeypatch: pytest.MonkeyPatch
) -> None:
    algorithm, broken = case
    spec, module = (FMA, sfma) if algorithm == "sfma" else (EXACT, efda)
    break_both(broken, module, monkeypatch)
    with pytest.raises(NotProvedError, match="does not hold"):
        monotone.prove_in_c(theory, spec, model_of(spec))


@pytest.mark.slow
def test_exact_sums_rounded_are_monotone_in_each_product(theory: Theory) -> None:
    monotone.prove_in_products(theory, FMA, model_of(FMA))
    assert all(theory.proves(larger_product(FMA, k).statement) for k in range(FMA.k))


def break_products(broken: str, monkeypatch: pytest.MonkeyPatch) -> None:
    sticky, multiply, frame = blocks.sticky_shift_right, sfma.multiply, sfma.frame_bits

    def cut(x: Any, amount: Any) -> Any:
        return blocks.shift_right(x, amount)

    def multiplied(a: Any, b: Any, *given: Any, **named: Any) -> Any:
        term = multiply(a, b, *given, **named)
        if broken == "sign of a product":
            return term._replace(sign=a.sign)
        if broken == "product of odd numbers":
            return term._replace(significand=term.significand & ~1)
        if broken == "exponent of zero":
            largest = z3.BitVecVal(-1, term.exponent.size())
            return term._replace(exponent=z3.If(term.significand == 0, largest, term.exponent))
        return term._replace(exponent=term.exponent ^ 1)

    if broken == "no sticky bit":
        monkeypatch.setattr(blocks, "sticky_shift_right", cut)
    elif broken == "odd":
        monkeypatch.setattr(blocks, "sticky_shift_right", lambda *given: sticky(*given) ^ 1)
    elif broken == "narrow":
        monkeypatch.setattr(sfma, "frame_bits", lambda precision: frame(precision) - 1)
    else:
        monkeypatch.setattr(sfma, "multiply", multiplied)


PRODUCT_BREAKS = [
    "no sticky bit",
    "odd",
    "narrow",
    "sign of a product",
    "product of odd numbers",
    "exponent of zero",
    "exponent of a product",
]


@pytest.mark.parametrize(
    "broken",
    slow(
        [*BREAKS, *PRODUCT_BREAKS],
        [
            "infinities",
            "NaN",
            "first step",
            "negated between steps",
            "product of odd numbers",
            "exponent of a product",
            "exponent of zero",
        ],
    ),
)
def test_a_broken_sum_is_not_proved_monotone_in_products(
    broken: str, theory: Theory, monkeypatch: pytest.MonkeyPatch
) -> None:
    if broken in BREAKS:
        break_both(broken, sfma, monkeypatch)
    else:
        break_products(broken, monkeypatch)
    with pytest.raises(NotProvedError, match="does not hold"):
        monotone.prove_in_products(theory, FMA, model_of(FMA))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["integers in order", "sums in order", "results in order", "specials"])
def test_a_claim_of_products_left_out_is_noticed(
    name: str, theory: Theory, monkeypatch: pytest.MonkeyPatch
) -> None:
    forget(name, monkeypatch)
    with pytest.raises(NotProvedError, match=r"does not hold"):
        monotone.prove_in_products(theory, FMA, model_of(FMA))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["numbers", "difference of sums"])
def test_without_a_claim_of_products_nothing_is_proved(
    name: str, theory: Theory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Uncut, what follows is neither proved nor refuted in the time given."""
    forget(name, monkeypatch)
    with pytest.raises(NotProvedError):
        monotone.prove_in_products(theory, FMA, model_of(FMA))


# ---- gdfs ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("e_zero", [None, pytest.param(-139, marks=pytest.mark.slow)])
def test_gdfs_is_monotone_in_its_products(e_zero: int | None, theory: Theory) -> None:
    spec = GROUPS.replace(e_zero=e_zero)
    of_gdfs.prove_in_products(theory, spec)
    assert all(theory.proves(larger_product(spec, k).statement) for k in range(spec.k))
    assert not theory.proves(two_runs(spec).statement)


def break_groups(broken: str, monkeypatch: pytest.MonkeyPatch) -> None:
    scale, fixed_point, whole, align = gdfs.scale, gdfs.fixed_point, blocks.round_code, stages.align

    def scaled(total: Any, zero: Any, scales: Any, spec: Any, p: Any) -> Any:
        term = scale(total, zero, scales, spec, p)
        if broken == "sign of a scale":
            return term._replace(sign=term.sign ^ z3.Extract(0, 0, scales[0].field))
        if broken == "exponent of a sum":  # 1 counts double, and is more than 1.5
            return term._replace(exponent=z3.If(total == 4, term.exponent + 1, term.exponent))
        return term._replace(exponent=z3.If(zero, gdfs.exponents_of(spec, p).constant(100), term.exponent))

    if broken == "alignment":
        monkeypatch.setattr(stages, "align", lambda *given: align(*given) ^ 1)
    elif broken == "rounding":
        monkeypatch.setattr(blocks, "round_code", lambda *given: whole(*given) ^ 1)
    elif broken == "signs":
        for module in (gdfs, stages):
            monkeypatch.setattr(module, "signed_sum", without_signs)
    elif broken == "numbers":  # 6 is read as 1.5
        monkeypatch.setattr(
            gdfs, "fixed_point", lambda x: z3.If(fixed_point(x) == 12, z3.BitVecVal(3, 4), fixed_point(x))
        )
    elif broken == "maximum":
        monkeypatch.setattr(stages, "maximum", lambda xs: xs[0])
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
    broken: str, theory: Theory, monkeypatch: pytest.MonkeyPatch
) -> None:
    break_groups(broken, monkeypatch)
    with pytest.raises(NotProvedError, match="does not hold"):
        of_gdfs.prove_in_products(theory, GROUPS.replace(F=25) if broken == "rounding" else GROUPS)


def test_a_narrow_gdfs_is_not_proved_monotone(theory: Theory) -> None:
    """A scaled group may be worth a single unit, and two other terms lose almost one each."""
    spec = blackwell["UTCOMMA.F32.E2M1.E2M1.UE4M3.4X"].spec.replace(k=4, L=4, G=2, scale_block=2, F=8)
    with pytest.raises(NotProvedError, match="worth what the other terms lose does not hold"):
        of_gdfs.prove_in_products(theory, spec)


# ---- from neighbours to any two codes, from a step to a chain ------------------------------------------------------


HALF_STEP = SMALL.spec.replace(F=11)


def forget(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Prove a claim, and leave it out of what the conclusion is drawn from."""
    claim = Composing.claim

    def without(self: Theory, called: str, *given: Any, **named: Any) -> Any:
        before = len(self.inferences)
        said = claim(self, called, *given, **named)
        if called == name and len(self.inferences) > before:
            self._inferences.pop()
        return said

    monkeypatch.setattr(Composing, "claim", without)


NEEDED = [
    "neighbouring c",
    "e_max of neighbours",
    "rise of e_max",
    "product on two grids, 1",
    "c on two grids, 0",
    "partial sum 1",
    "difference of sums 2, 1",
    "difference 1, 0",
    "difference with c, 1",
    "totals, 0",
    "rounding with e_max 1 higher",
    "e_max in range",
    "special values of neighbours",
    "special codes",
    "results of neighbours",
    "special c",
    "any two codes",
]


#: of those that a quick one is like
ALIKE = [
    "e_max of neighbours",
    "c on two grids, 0",
    "partial sum 1",
    "difference 1, 0",
    "totals, 0",
    "e_max in range",
    "special values of neighbours",
    "special c",
]


@pytest.mark.parametrize("name", slow(NEEDED, ALIKE))
def test_a_claim_left_out_is_noticed(name: str, theory: Theory, monkeypatch: pytest.MonkeyPatch) -> None:
    forget(name, monkeypatch)
    with pytest.raises(NotProvedError, match=r"from all of these.*does not hold"):
        monotone_fused.prove_in_c(theory, HALF_STEP)


NEEDED_FROM_ZERO = [
    "product on two grids, more",
    "c on two grids, more",
    "coarser unit",
    "difference of sums 1, more",
    "difference 1, more",
    "difference with c, more",
    "finer sum, more",
    "finer accumulator, more",
    "totals, more",
    "rounding with e_max more higher",
]


@pytest.mark.slow
@pytest.mark.parametrize("name", NEEDED_FROM_ZERO)
def test_a_claim_left_out_where_c_is_0_is_noticed(
    name: str, theory: Theory, monkeypatch: pytest.MonkeyPatch
) -> None:
    forget(name, monkeypatch)
    with pytest.raises(NotProvedError, match=r"from all of these.*does not hold"):
        monotone_fused.prove_in_c(theory, HALF_STEP.replace(e_zero=LOW_ZERO))


@pytest.mark.parametrize("rule", ["neighbours", "zeros", "transitive"])
def test_a_broken_step_breaks_a_premise_of_the_rule(
    rule: str, theory: Theory, monkeypatch: pytest.MonkeyPatch
) -> None:
    if rule == "neighbours":  # the largest c counts as zero
        whole = stages.decode

        def decode(code: Any, fmt: Any) -> Any:
            x = whole(code, fmt)
            top = z3.Extract(code.size() - 2, 0, code) == fmt.infinity - 1
            return x._replace(significand=z3.If(top, z3.BitVecVal(0, x.significand.size()), x.significand))

        monkeypatch.setattr(stages, "decode", decode)
    elif rule == "zeros":  # −0 is an infinity
        classify = stages.classify

        def classified(products: Any, addends: Any, *rest: Any, **named: Any) -> Any:
            special = classify(products, addends, *rest, **named)
            minus_zero = z3.And(addends[0].sign == 1, addends[0].significand == 0)
            return special._replace(positive_infinity=z3.Or(special.positive_infinity, minus_zero))

        monkeypatch.setattr(stages, "classify", classified)
    else:  # with a NaN between them, two numbers are in any order
        monkeypatch.setattr(monotone, "keeps_order", lambda x, y, fmt: not_below((x, y), fmt))
    with pytest.raises(NotProvedError, match="does not hold"):
        monotone_fused.prove_in_c(theory, HALF_STEP)


def test_a_chain_that_takes_another_c_is_noticed(theory: Theory, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = smt._ALGORITHMS["fda"]

    def forgetful(spec: Any, a: Any, b: Any, c: Any, *scales: Any) -> Any:
        if spec.k == 2:
            return whole(spec, a, b, c, *scales)
        first = whole(spec.replace(k=2), a[:2], b[:2], c)
        second = whole(spec.replace(k=2), a[2:], b[2:], c ^ first.result)
        return blocks.Trace((*first.steps, *second.steps), second.result)

    monotone_fused.prove_in_c(theory, HALF_STEP.replace(k=4))
    monkeypatch.setitem(smt._ALGORITHMS, "fda", forgetful)
    with pytest.raises(NotProvedError, match="does not hold"):
        monotone_fused.prove_in_c(theory, HALF_STEP.replace(k=4))


def test_c_of_a_format_without_infinities_has_no_argument() -> None:
    c = z3.BitVec("c", 8)
    with pytest.raises(NotProvedError, match="no argument for c of e4m3"):
        OneStep(lambda code: code, c, e4m3, fp32)


# ---- fdrda, gps, lowered ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "spec",
    slow([FDRDA.replace(dot_bits=24, sum_bits=24), FDRDA, CDNA3.spec], [FDRDA, CDNA3.spec]),
    ids=["fewer bits", "K=2", "K=4"],
)
def test_fdrda_is_monotone_in_c(spec: DotAdd, theory: Theory) -> None:
    of_fdrda.prove_in_c(theory, spec)
    assert theory.proves(two_runs(spec).statement)


@pytest.mark.parametrize("broken", ["cut", "rounding", "c"])
def test_a_broken_fdrda_is_not(broken: str, theory: Theory, monkeypatch: pytest.MonkeyPatch) -> None:
    if broken == "cut":
        whole = fdrda.shift_right_signed
        monkeypatch.setattr(fdrda, "shift_right_signed", lambda *given: whole(*given) ^ 1)
    elif broken == "rounding":
        round_code = blocks.round_code
        monkeypatch.setattr(blocks, "round_code", lambda *given: round_code(*given) ^ 1)
    else:
        c_at = fdrda.c_at
        monkeypatch.setattr(fdrda, "c_at", lambda *given: -c_at(*given))
    with pytest.raises(NotProvedError, match="does not hold"):
        of_fdrda.prove_in_c(theory, FDRDA)


FFMA = sapphire_rapids["VDPBF16PS"].spec.in_order.replace(k=1)


def break_ffma(broken: str, monkeypatch: pytest.MonkeyPatch) -> None:
    sticky, round_code, signed_sum = blocks.sticky_shift_right, blocks.round_code, blocks.signed_sum
    if broken == "sticky place":
        monkeypatch.setattr(blocks, "sticky_shift_right", lambda *given: sticky(*given) ^ 4)
    elif broken == "rounding":
        monkeypatch.setattr(blocks, "round_code", lambda *given: round_code(*given) ^ 1)
    else:
        monkeypatch.setattr(blocks, "signed_sum", lambda *given: signed_sum(*given) ^ 2)


@pytest.mark.slow
def test_ffma_is_monotone_in_c(theory: Theory) -> None:
    of_ffma.prove_in_c(theory, FFMA)
    assert theory.proves(two_runs(FFMA).statement)


@pytest.mark.parametrize("broken", ["sticky place", "rounding", "sum"])
def test_a_broken_ffma_is_not(broken: str, theory: Theory, monkeypatch: pytest.MonkeyPatch) -> None:
    break_ffma(broken, monkeypatch)
    with pytest.raises(NotProvedError, match="does not hold"):
        of_ffma.prove_in_c(theory, FFMA)


def half_addition(nan: int = blocks.quiet_nan(fp16)) -> monotone_addition.MonotoneLastAddition:
    return monotone_addition.MonotoneLastAddition(
        fp16, lambda c, x: monotone_addition.addition_of_c(ieee.add(c, x, IEEE_FP16, nan))
    )


def test_an_addition_is_monotone(theory: Theory) -> None:
    theorem = half_addition().prove(theory)
    assert theory.proves(theorem)


@pytest.mark.parametrize("broken", ["sticky bit", "rounding", "NaN"])
def test_a_broken_addition_is_not(broken: str, theory: Theory, monkeypatch: pytest.MonkeyPatch) -> None:
    nan = blocks.quiet_nan(fp16)
    if broken == "sticky bit":
        whole = ieee.sticky_shift_right
        monkeypatch.setattr(ieee, "sticky_shift_right", lambda *given: whole(*given) ^ 4)
    elif broken == "rounding":
        round_code = blocks.round_code
        monkeypatch.setattr(blocks, "round_code", lambda *given: round_code(*given) ^ 1)
    else:
        nan = 0
    with pytest.raises(NotProvedError, match="does not hold"):
        half_addition(nan).prove(theory)


def test_flushing_in_another_order_is_noticed(theory: Theory, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = gps.flush
    monkeypatch.setattr(gps, "flush", lambda code, keep_sign: whole(code, keep_sign=keep_sign) ^ (1 << 31))
    monkeypatch.setattr(
        monotone_addition.MonotoneLastAddition, "prove", lambda self, theory: z3.BoolVal(True)
    )
    with pytest.raises(NotProvedError, match=r"flushing keeps the order.*does not hold"):
        GPS.monotone_in_c(CDNA2, theory)


@pytest.mark.parametrize(
    "broken",
    slow(
        ["flush", "NaN of the addition", "NaN", "a number for a NaN", "c later"],
        ["flush", "NaN of the addition"],
    ),
)
def test_a_broken_pfma_is_not(broken: str, theory: Theory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither a break of the step alone, nor one of what links it to that of the unit, is proved."""
    if broken == "flush":
        flush = pfma.flush
        monkeypatch.setattr(pfma, "flush", lambda code: flush(code) ^ (1 << 31))
    elif broken == "NaN of the addition":
        monkeypatch.setattr(pfma, "INVALID", 0)
    else:
        monkeypatch.setattr(
            monotone_addition.MonotoneLastAddition, "prove", lambda self, _: self.assumed(theory)
        )
        monkeypatch.setattr(monotone_addition.MonotoneLastAddition, "assumed", _assumed, raising=False)
        nan_or, add = pfma.nan_or, pfma.add
        if broken == "NaN":
            monkeypatch.setattr(pfma, "nan_or", lambda x, y, code: code ^ (1 << 31))
        elif broken == "a number for a NaN":
            monkeypatch.setattr(pfma, "quiet", lambda code, *_: z3.BitVecVal(0, 32))
        else:
            assert nan_or
            monkeypatch.setattr(pfma, "add", lambda x, y, *given: add(y, x ^ (1 << 31), *given))
    with pytest.raises(NotProvedError, match="does not hold"):
        PFMA_FACTS.monotone_in_c(PFMA, theory)


def _assumed(last: Any, theory: Theory) -> z3.BoolRef:
    """Take what is proved of the addition for a theorem: the break is elsewhere."""
    rule = last.step.rule
    results = rule.at(rule.codes[0]), rule.at(rule.codes[1])
    theorem = z3.Implies(not_below(rule.codes, fp32), not_below(results, fp32))
    theory._theorems[theorem.get_id()] = theorem
    return theorem


@pytest.mark.slow
def test_pfma_is_monotone_in_c(theory: Theory) -> None:
    PFMA_FACTS.monotone_in_c(PFMA, theory)
    assert theory.proves(two_runs(PFMA.spec).statement)


@pytest.mark.parametrize(
    "instruction",
    slow([CDNA2, E5M2, LOWERED], [CDNA2, E5M2]),
    ids=lambda i: f"{i.algorithm} K={i.k}",
)
def test_instructions_made_of_others_are_not_proved_where_they_are_not_that(
    instruction: Instruction, monkeypatch: pytest.MonkeyPatch
) -> None:
    """c with its sign turned: then d falls where c grows."""
    module = gps if instruction.algorithm == "gps" else lowered
    whole = module.step

    def turned(*given: Any) -> Any:
        c = next(x for x in reversed(given) if isinstance(x, z3.BitVecRef))
        return whole(*(x ^ (1 << (x.size() - 1)) if x is c else x for x in given))

    monkeypatch.setattr(module, "step", turned)
    assert isinstance(settled(monotonicity.ADDEND, instruction, timeout=20), Unknown)


# ---- where no argument is known --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["monotonicity-in-c", "monotonicity-in-a-product"])
def test_a_witness_is_looked_for_where_no_argument_is_known(name: str) -> None:
    rho = Conversion("RU-E5M2", e5m2, 2, Rounding.RU)
    spec = DotAdd(2, e2m1, e2m1, e5m2, e5m2, JoinedFda(8, 2, rho, -5))
    answer = settled(PROPERTIES[name], Instruction("unit", "joined", 1, 1, spec))
    assert isinstance(answer, Fails)
    first, second = (run.result for run in answer.witness.runs)
    places = [out_of_order.position(d, e5m2) for d in (first, second)]
    assert None not in places
    assert places[0] > places[1]


@pytest.mark.parametrize("fmt", [e5m2, e2m1, fp16], ids=str)
def test_the_next_code_is_the_next_number(fmt: Format) -> None:
    codes = [code for code in range(fmt.codes) if fmt.is_finite(code)]
    for code in codes if len(codes) < 300 else codes[::997]:
        above = out_of_order.next_above(code, fmt)
        larger = [each for each in codes if fmt.value(each) > fmt.value(code)]
        if larger:
            assert above is not None
            assert fmt.value(above) == min(map(fmt.value, larger))
        else:
            assert above is None or not fmt.is_finite(above)
