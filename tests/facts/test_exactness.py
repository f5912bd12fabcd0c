"""Exactness: the condition proved to suffice is no stronger than that on codes; a proof with a part missing fails."""

from __future__ import annotations

import random
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import z3
from support import exact as reference
from support.exact import exact_sum
from support.rounded_once import examine
from support.settling import one_bit_less, settled
from support.slow import slow

from mmaformal import blackwell, cdna1, cdna2, cdna3, hopper, rtx_blackwell, sapphire_rapids, volta
from mmaformal.architectures import datapaths
from mmaformal.cases.evaluate import evaluate
from mmaformal.cases.generate import generate
from mmaformal.cases.inputs import Codes, zeros
from mmaformal.encodings.fda.proofs import exactness as fused
from mmaformal.encodings.fdrda import smt as fdrda
from mmaformal.encodings.fdrda.proofs import exactness as down
from mmaformal.encodings.gfdrda import smt as gfdrda
from mmaformal.encodings.gps import smt as gps
from mmaformal.encodings.lowered import Lowered
from mmaformal.encodings.pfma import smt as pfma
from mmaformal.encodings.pfma.proofs import exactness as of_pfma
from mmaformal.encodings.smt import blocks, ieee, stages
from mmaformal.facts import exactness as common
from mmaformal.facts.registry import facts_of
from mmaformal.formats import fp16
from mmaformal.instruction import Instruction
from mmaformal.proof.composition import Composing
from mmaformal.proof.kernel import NotProvedError
from mmaformal.queries import exactness
from mmaformal.rounding import IEEE_FP16, IEEE_FP32
from mmaformal.solver.answers import Holds, Unknown
from mmaformal.solver.asking import Asker
from mmaformal.solver.portfolio import LazyPortfolio
from mmaformal.theory import additions, rounded_trees

FDA = volta["HMMA.884.F32.F32"]
SCALED = rtx_blackwell["QMMA.SF.16832.F32.E3M2.E2M1.E8"]
GROUPS = blackwell["UTCOMMA.F32.E2M1.E2M1.UE4M3.4X"]
DOWN, HALVES = cdna3["v_mfma_f32_16x16x16_bf16"], cdna3["v_mfma_f32_16x16x32_fp8_fp8"]
PAIRS, TWO = cdna2["v_mfma_f32_16x16x16f16"], cdna2["v_mfma_f32_16x16x8bf16"]
LOWERED = hopper["mma.m16n8k32.f16.e4m3.e5m2.f16"]
PFMA = sapphire_rapids["TDPBF16PS"].replace(k=4, L=4)
EXACT_SUMS = cdna1["v_mfma_f32_32x32x4bf16"]
HOPPER = hopper["HMMA.16816.F32"]
GROUPED = datapaths.named("gfda(k=4,group=2,frac_bits=12,a=e4m3,group_bits=14)")
CODES = [FDA, HOPPER, SCALED, GROUPS, GROUPED, DOWN, HALVES, PAIRS, TWO, PFMA]

#: Such steps with fewer products.
FEW_GROUPS, FEW_DOWN = GROUPS.replace(k=4, L=4, G=2, scale_block=2), DOWN.replace(k=4, L=4)
FEW_HALVES, FEW_LOWERED = HALVES.replace(k=8, L=4), LOWERED.replace(k=4, L=2, order=(0, 2, 1, 3))
FEW_EXACT = EXACT_SUMS.replace(k=2)


# ---- the condition on codes ------------------------------------------------------------------------------------------


def one(instruction: Instruction) -> Instruction:
    spec = instruction.spec
    return instruction.replace(k=spec.parameters.step_products)


def condition(spec: Any, monkeypatch: pytest.MonkeyPatch) -> z3.BoolRef:
    """The one that the conclusion has, with every claim taken for proved."""
    with monkeypatch.context() as patch:
        patch.setattr(Composing, "claim", lambda self, name, text, claim, *rest, **more: claim)
        with LazyPortfolio() as portfolio:
            return facts_of(spec).exactness(Composing(Asker(portfolio, 60)), spec).condition


def named(spec: Any, codes: Codes) -> dict[str, int]:
    sides = {"a": codes.a, "b": codes.b, "sa": codes.scale_a, "sb": codes.scale_b}
    return {f"{name}{k}": x for name, side in sides.items() for k, x in enumerate(side)} | {"c": codes.c}


def of_pairs(spec: Any, codes: Codes) -> dict[str, int]:
    """Codes of gps's products and sums."""
    level = [spec.a_format.value(x) * spec.b_format.value(y) for x, y in zip(codes.a, codes.b, strict=True)]
    given = {f"z{k}": reference.convert(x, IEEE_FP32) for k, x in enumerate(level)}
    sums: list[Fraction] = []
    while len(level) > 1:
        level = [x + y for x, y in zip(level[::2], level[1::2], strict=True)]
        sums += level
    return given | {f"s{i}": reference.convert(x, IEEE_FP32) for i, x in enumerate(sums)}


def of_fmas(spec: Any, codes: Codes) -> dict[str, int]:
    """Codes of pfma's partial sums, and of the sum of both."""
    sums, given = [Fraction(0), Fraction(0)], {}
    for k, (x, y) in enumerate(zip(codes.a, codes.b, strict=True)):
        sums[k % 2] += spec.a_format.value(x) * spec.b_format.value(y)
        given[f"z{k}"] = reference.convert(sums[k % 2], IEEE_FP32)
    return given | {"s0": reference.convert(sum(sums), IEEE_FP32)}


#: The codes that say of an algorithm's inner results which numbers they are to be.
INNER = {PAIRS: of_pairs, TWO: of_pairs, PFMA: of_fmas}


def cases(spec: Any) -> list[Codes]:
    """Returns rows of many distributions, and some with few bits, of which many are exact."""
    rng = random.Random(5)
    few = [
        Codes(
            tuple(spec.a_format.code(rng.choice(["0", "1", "2", "3", "4", ".5"])) for _ in range(spec.k)),
            tuple(spec.b_format.code(rng.choice(["0", "1", "2", "4", "-1", "-2"])) for _ in range(spec.k)),
            spec.c_format.code(rng.choice(("0", "1", "-3", "0x1p-9", "0x1p12"))),
            zeros(spec).scale_a,
            zeros(spec).scale_b,
        )
        for _ in range(60)
    ]
    return few + generate(spec, 150, 3, ["numbers"]).cases() + generate(spec, 150, 5).cases()


@pytest.mark.parametrize("instruction", slow(CODES, [HOPPER, TWO]), ids=str)
def test_codes_that_round_once_fulfil_what_is_proved_to_suffice(
    instruction: Instruction, monkeypatch: pytest.MonkeyPatch
) -> None:
    step = one(instruction)
    spec, numbers, once = step.spec, [], []
    formula = condition(spec, monkeypatch)
    for codes in cases(spec):
        if exact_sum(spec, codes) is not None:
            inner = INNER[instruction](spec, codes) if instruction in INNER else {}
            numbers.append(named(spec, codes) | inner)
            once.append(examine(step, codes).once)
    said = list(zip(once, evaluate(formula, columns(numbers)), strict=True))
    assert (True, False) not in said
    assert said.count((True, True)) > 20
    assert said.count((False, False)) > 20


def columns(rows: list[dict[str, int]]) -> dict[str, Any]:
    return {name: np.array([row[name] for row in rows], object) for name in rows[0]}


@pytest.mark.parametrize("instruction", slow([LOWERED, FEW_LOWERED], [LOWERED]), ids=str)
def test_the_same_of_the_inner_steps_of_lowered(
    instruction: Instruction, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec, rows = instruction.spec, []
    p = spec.parameters_as(Lowered)
    formula = condition(spec, monkeypatch)
    for codes in cases(spec):
        if exact_sum(spec, codes) is None or not examine(instruction, codes).once:
            continue
        dot = Fraction(0)
        for first in range(0, spec.k, p.L):
            sides = [
                [fmt.value(side[k]) for k in p.order[first : first + p.L]]
                for side, fmt in ((codes.a, spec.a_format), (codes.b, spec.b_format))
            ]
            a, b = (tuple(p.operands.code(float(x).hex()) for x in side) for side in sides)
            rows.append(named(spec, Codes(a, b, spec.d_format.code(float(dot).hex()))))
            dot += sum((x * y for x, y in zip(*sides, strict=True)), Fraction(0))
    assert len(rows) > 20
    assert all(evaluate(formula, columns(rows)))


# ---- the proof -------------------------------------------------------------------------------------------------------


def a_place_less(whole: Callable[..., Any]) -> Callable[..., Any]:
    """The condition that a number has no bit below, one place lower."""
    return lambda x, places: whole(x, max(places - 1, 0))


def toward_zero(whole: Callable[..., Any]) -> Callable[..., Any]:
    return lambda x, amount, rounding: blocks.shift_right_signed(x, amount + 1, rounding) << 1


def no_claim(name: str) -> Callable[..., Any]:
    """`Composing.claim` that leaves out the claims of that name: nothing else is proved less."""
    whole = Composing.claim

    def claim(self: Any, called: str, text: str, said: Any, *rest: Any, **more: Any) -> Any:
        return said if called == name else whole(self, called, text, said, *rest, **more)

    return claim


BROKEN: dict[str, tuple[Instruction, Any, str, Callable[[Any], Any]]] = {
    "fda: a bit less is kept": (FDA, stages, "align", one_bit_less),
    "fda: a weaker condition": (FDA, common, "no_bit_below", a_place_less),
    "gdfs: a weaker condition": (FEW_GROUPS, common, "no_bit_below", a_place_less),
    "fda: that an aligned term has no error is left out": (
        FDA,
        Composing,
        "claim",
        lambda f: no_claim("product no error"),
    ),
    "fda: another fixed point": (FDA, fused, "wide", lambda f: lambda x, bits: f(x, bits) << 1),
    "fda: that operands are numbers is left out": (
        FDA,
        Composing,
        "claim",
        lambda f: no_claim("not special"),
    ),
    "fdrda: a bit less of the dot product": (FEW_DOWN, fdrda, "shift_right_signed", toward_zero),
    "fdrda: a weaker condition of products": (FEW_DOWN, common, "no_bit_below", a_place_less),
    "fdrda: a weaker condition of sums": (FEW_DOWN, down, "no_bit_below", a_place_less),
    "fdrda: that c is cut exactly is left out": (FEW_DOWN, Composing, "claim", lambda f: no_claim("c cut")),
    "fdrda: another sum is rounded": (FEW_DOWN, down, "rounded_down", lambda f: lambda x: x.step.total),
    "gfdrda: a bit less of groups": (FEW_HALVES, gfdrda, "shift_right_signed", toward_zero),
    "gfdrda: a weaker condition of sums": (FEW_HALVES, down, "no_bit_below", a_place_less),
    "gfdrda: that groups are exact is left out": (
        FEW_HALVES,
        Composing,
        "claim",
        lambda f: no_claim("exact group"),
    ),
    "gps: additions without a sticky bit": (PAIRS, ieee, "sticky_shift_right", lambda f: blocks.shift_right),
    "gps: numbers may be subnormal": (
        PAIRS,
        rounded_trees,
        "no_subnormal",
        lambda f: lambda code, fmt: z3.BoolVal(True),
    ),
    "gps: that a sum is its number is left out": (
        PAIRS,
        Composing,
        "claim",
        lambda f: no_claim("number of fp32"),
    ),
    "gps: products lose a bit": (TWO, gps, "multiply", lambda f: lambda *given: f(*given) & ~(1 << 16)),
    "lowered: an addition without a sticky bit": (
        FEW_LOWERED,
        ieee,
        "sticky_shift_right",
        lambda f: blocks.shift_right,
    ),
    "lowered: a bit less is kept": (FEW_LOWERED, stages, "align", one_bit_less),
    "pfma: a product's last bit is lost": (
        PFMA,
        stages,
        "multiply",
        lambda f: lambda *given, **more: (x := f(*given, **more))._replace(significand=x.significand & ~1),
    ),
    "pfma: an fma's sum has another sign": (
        PFMA,
        stages,
        "sticky_sum",
        lambda f: lambda *given: (x := f(*given))._replace(total=-x.total),
    ),
    "pfma: a place less in the frame": (PFMA, pfma, "FRAME", lambda frame: frame - 3),
    "pfma: sums without a sticky bit": (PFMA, ieee, "sticky_shift_right", lambda f: blocks.shift_right),
    "pfma: no tiny number is flushed away": (
        PFMA,
        of_pfma,
        "no_subnormal",
        lambda f: lambda code, fmt: z3.BoolVal(True),
    ),
    "pfma: the sum may be subnormal": (
        PFMA,
        rounded_trees,
        "no_subnormal",
        lambda f: lambda code, fmt: z3.BoolVal(True),
    ),
    "pfma: NaNs are taken for numbers": (
        PFMA,
        pfma,
        "nan_or",
        lambda f: lambda x, y, code: f(x, y, code) ^ 1,
    ),
    "pfma: that an fma is its number is left out": (
        PFMA,
        Composing,
        "claim",
        lambda f: no_claim("number of an fma"),
    ),
    "lowered: conversions are left out": (FEW_LOWERED, Composing, "claim", lambda f: no_claim("from zero")),
}


SLOW = [
    "fda: a weaker condition",
    "fda: that operands are numbers is left out",
    "fdrda: that c is cut exactly is left out",
    "fdrda: another sum is rounded",
    "pfma: a place less in the frame",
    "gps: additions without a sticky bit",
    "gps: numbers may be subnormal",
    "gps: that a sum is its number is left out",
    "gfdrda: that groups are exact is left out",
    "lowered: conversions are left out",
    "pfma: sums without a sticky bit",
    "pfma: no tiny number is flushed away",
    "pfma: the sum may be subnormal",
    "pfma: NaNs are taken for numbers",
    "pfma: that an fma is its number is left out",
]


@pytest.mark.parametrize("broken", slow(BROKEN, SLOW))
def test_a_part_that_is_broken_or_missing_is_found(broken: str, monkeypatch: pytest.MonkeyPatch) -> None:
    instruction, module, name, change = BROKEN[broken]
    monkeypatch.setattr(module, name, change(getattr(module, name)))
    answer = settled(exactness.PROPERTY, one(instruction))
    assert isinstance(answer, Unknown), answer
    assert "does not hold" in answer.why


WHOLE = [SCALED, GROUPS, HALVES, LOWERED, EXACT_SUMS, PFMA]


@pytest.mark.parametrize(
    "instruction",
    slow([*WHOLE, FEW_GROUPS, FEW_HALVES, FEW_LOWERED, FEW_EXACT], WHOLE),
    ids=str,
)
def test_it_is_proved_with_a_conclusion(instruction: Instruction) -> None:
    answer = settled(exactness.PROPERTY, instruction)
    assert isinstance(answer, Holds), answer
    assert answer.proof.obligations[-1].name.startswith("composition")
    assert any(each.name.startswith("composition") for each in answer.proof.obligations)


NEEDED_OF_A_SUM = [
    "operands",
    "smaller operand",
    "sum of what is kept",
    "borrow",
    "rest of a sum",
    "sign of a sum",
]


@pytest.mark.parametrize("missing", slow(["", *NEEDED_OF_A_SUM], NEEDED_OF_A_SUM[3:]))
def test_what_is_kept_of_a_sum_rests_on_each_claim(missing: str, monkeypatch: pytest.MonkeyPatch) -> None:
    x, y = z3.BitVecs("x y", fp16.storage_bits)
    code = ieee.add(x, y, IEEE_FP16, blocks.quiet_nan(fp16)).result
    a = additions.AdditionFacts(x, y, code, IEEE_FP16)
    claim = Composing.claim

    def without(self: Composing, name: str, *given: Any, **named: Any) -> Any:
        before = len(self.inferences)
        said = claim(self, name, *given, **named)
        if name == missing and len(self.inferences) > before:
            self._inferences.pop()
        return said

    monkeypatch.setattr(Composing, "claim", without)
    with LazyPortfolio() as portfolio:
        proving = Composing(Asker(portfolio, 60.0))
        a.prove(proving)
        if not missing:
            proving.conclude("what is kept is the sum", z3.Implies(a.finite, a.is_kept))
            return
        with pytest.raises(NotProvedError, match="does not hold"):
            proving.conclude("what is kept is the sum", z3.Implies(a.finite, a.is_kept))
