"""Terms that are added up are what the codes stand for: proved of every algorithm, and not of other terms."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import z3
from support.settling import settled

from mmaformal import ampere, blackwell, cdna1, cdna2, cdna3, hopper, rtx_blackwell, volta
from mmaformal.cases.inputs import symbolic_inputs
from mmaformal.cases.one_step import one_step
from mmaformal.encodings import smt
from mmaformal.encodings.fda import smt as fda
from mmaformal.encodings.fdrda import smt as fdrda
from mmaformal.encodings.gdfs import smt as gdfs
from mmaformal.encodings.gps import smt as gps
from mmaformal.encodings.sfma import smt as sfma
from mmaformal.encodings.smt import blocks, ieee, stages
from mmaformal.facts.exact_terms import prove_inputs, prove_links, prove_lowered, prove_tree
from mmaformal.instruction import Instruction
from mmaformal.proof.composition import Composing
from mmaformal.proof.kernel import NotProvedError
from mmaformal.queries import error_bound, exactness, rounding
from mmaformal.solver.answers import Unknown
from mmaformal.solver.asking import Asker
from mmaformal.solver.portfolio import LazyPortfolio

FDA, CHAIN = volta["HMMA.884.F32.F32"], ampere["HMMA.16816.F32"]
SCALED = rtx_blackwell["QMMA.SF.16832.F32.E3M2.E2M1.E8"]
GROUPS = blackwell["UTCOMMA.F32.E2M1.E2M1.UE4M3.4X"]
DOWN, HALVES = cdna3["v_mfma_f32_16x16x16_bf16"], cdna3["v_mfma_f32_16x16x32_fp8_fp8"]
ALL = {"fda": FDA, "fda, scaled": SCALED, "gdfs": GROUPS, "fdrda": DOWN, "gfdrda": HALVES}


@pytest.fixture
def proving() -> Iterator[Composing]:
    with LazyPortfolio() as portfolio:
        yield Composing(Asker(portfolio, 60))


def terms(proving: Composing, instruction: Instruction) -> None:
    spec = one_step(instruction.spec)
    x = symbolic_inputs(spec)
    (step,) = smt.dot_add(spec, x.a, x.b, x.c, x.scale_a, x.scale_b).steps
    prove_inputs(proving, spec, x, step)


@pytest.mark.parametrize("name", ALL)
def test_terms_are_the_products_and_c(proving: Composing, name: str) -> None:
    terms(proving, ALL[name])
    assert len(proving.obligations) > 5


def with_operand(whole: Callable[..., Any], **changes: Callable[[Any], Any]) -> Callable[..., Any]:
    """A function of two operands that sees the second one changed."""

    def of_changed(x: Any, y: Any, *rest: Any, **named: Any) -> Any:
        seen = y._replace(**{name: change(getattr(y, name)) for name, change in changes.items()})
        return whole(x, seen, *rest, **named)

    return of_changed


def after(whole: Callable[..., Any], **changes: Callable[[Any], Any]) -> Callable[..., Any]:
    """A function whose result is changed."""

    def changed(*given: Any) -> Any:
        out = whole(*given)
        return out._replace(**{name: change(getattr(out, name)) for name, change in changes.items()})

    return changed


def never(flag: Any) -> Any:
    return z3.BoolVal(False)


POSITIVE = {"sign": lambda sign: z3.BitVecVal(0, 1)}
BREAKS: dict[str, tuple[str, Any, str, Callable[[Any], Any]]] = {
    "b's sign is ignored": ("fda", stages, "multiply", lambda f: with_operand(f, **POSITIVE)),
    "b loses a bit": ("fda", stages, "multiply", lambda f: with_operand(f, significand=lambda s: s & -2)),
    "exponents are one more": ("fda", stages, "multiply", lambda f: after(f, exponent=lambda e: e + 1)),
    "a code loses a bit": ("fda", stages, "decode", lambda f: after(f, significand=lambda s: s & -2)),
    "c loses its sign": ("fda", stages, "addend", lambda f: after(f, **POSITIVE)),
    "infinities are numbers": ("fda", stages, "decode", lambda f: after(f, infinite=never)),
    "finite codes are special": (
        "fda",
        stages,
        "classify",
        lambda f: after(f, nan=lambda nan: z3.BoolVal(True)),
    ),
    "scales count twice": ("fda, scaled", stages, "multiply", lambda f: lambda *g: f(*g[:5], (*g[5], *g[5]))),
    "a group loses its sign": ("gdfs", gdfs, "scale", lambda f: after(f, **POSITIVE)),
    "a group's exponent is one less": ("gdfs", gdfs, "scale", lambda f: after(f, exponent=lambda e: e - 1)),
    "e2m1 loses a bit": ("gdfs", gdfs, "fixed_point", lambda f: lambda x: f(x) & 14),
    "fdrda ignores b's sign": ("fdrda", fdrda, "multiply", lambda f: with_operand(f, **POSITIVE)),
    "smaller products overflow": (
        "fdrda",
        fdrda,
        "overflows",
        lambda f: lambda p, ex: z3.UGE(p.exponent, ex.constant(fdrda.OVERFLOW - 1)),
    ),
    "gfdrda: exponents are one more": (
        "gfdrda",
        fdrda,
        "multiply",
        lambda f: after(f, exponent=lambda e: e + 1),
    ),
}


@pytest.mark.parametrize("broken", BREAKS)
def test_other_terms_are_not(proving: Composing, broken: str, monkeypatch: pytest.MonkeyPatch) -> None:
    name, module, function, change = BREAKS[broken]
    monkeypatch.setattr(module, function, change(getattr(module, function)))
    with pytest.raises(NotProvedError, match="does not hold"):
        terms(proving, ALL[name])


LOWERED, PAIRS = hopper["mma.m16n8k32.f32.e4m3.e5m2.f32"], cdna2["v_mfma_f32_16x16x16f16"]


def only_the_first(add: Callable[..., Any]) -> Callable[..., Any]:
    return lambda x, y, *rest: add(x, x, *rest)


BUILT: dict[str, tuple[Instruction, Any, str, Callable[[Any], Any]]] = {
    "converted codes lose a bit": (LOWERED, ieee, "convert", lambda f: lambda *g: f(*g) & ~256),
    "c is not added": (LOWERED, stages, "add", only_the_first),
    "products are taken twice": (
        LOWERED,
        ieee,
        "convert",
        lambda f: lambda *g: f(z3.BitVec("a0", 8), *g[1:]),
    ),
    "sums are not flushed": (PAIRS, gps, "flush_result", lambda f: lambda code: code),
    "one of a pair is added twice": (PAIRS, stages, "add", only_the_first),
    "subnormals are not flushed": (PAIRS, gps, "decode_flushed", lambda f: blocks.decode),
    "b's sign is ignored": (PAIRS, gps, "decode_flushed", lambda f: after(f, **POSITIVE)),
}


def built(proving: Composing, instruction: Instruction) -> None:
    (prove_lowered if instruction is LOWERED else prove_tree)(proving, instruction.spec)


@pytest.mark.parametrize("instruction", [LOWERED, PAIRS], ids=str)
def test_instructions_made_of_others_are_that(proving: Composing, instruction: Instruction) -> None:
    built(proving, instruction)


@pytest.mark.parametrize("broken", BUILT)
def test_others_are_not(proving: Composing, broken: str, monkeypatch: pytest.MonkeyPatch) -> None:
    instruction, module, function, change = BUILT[broken]
    monkeypatch.setattr(module, function, change(getattr(module, function)))
    with pytest.raises(NotProvedError, match="does not hold"):
        built(proving, instruction)


def test_a_chain_that_starts_anew_is_none(proving: Composing, monkeypatch: pytest.MonkeyPatch) -> None:
    prove_links(proving, CHAIN.spec)
    whole = fda.dot_add

    def forgetful(spec: Any, a: Any, b: Any, c: Any, *scales: Any) -> Any:
        if len(a) == 8:
            return whole(spec, a, b, c, *scales)
        steps = [whole(one_step(spec), a[k : k + 8], b[k : k + 8], c, *scales).steps[0] for k in (0, 8)]
        return smt.Trace(tuple(steps), steps[-1].result)

    monkeypatch.setitem(smt._ALGORITHMS, "fda", forgetful)
    with pytest.raises(NotProvedError, match="does not hold"):
        prove_links(proving, CHAIN.spec)


@pytest.mark.parametrize(
    ("proof", "instruction", "module"),
    [
        (exactness.PROPERTY, FDA, stages),
        (exactness.PROPERTY, DOWN, fdrda),
        (error_bound.PROPERTY, FDA, stages),
        (error_bound.PROPERTY, DOWN, fdrda),
        (rounding.STEP, cdna1["v_mfma_f32_32x32x1f32"], sfma),
        (rounding.STEP, cdna1["v_mfma_f32_32x32x4f16"], stages),
    ],
    ids=lambda x: getattr(x, "name", getattr(x, "__name__", "")),
)
def test_a_property_of_other_terms_is_not_proved(
    proof: Any, instruction: Instruction, module: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "multiply", with_operand(module.multiply, **POSITIVE))
    answer = settled(proof, instruction, timeout=20)
    assert isinstance(answer, Unknown), answer
