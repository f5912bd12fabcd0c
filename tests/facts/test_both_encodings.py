"""An answer that affirms is about both encodings: their equality is among its obligations, or it is not affirmed."""

from __future__ import annotations

import inspect
from dataclasses import replace
from types import FunctionType
from typing import Any

import pytest
from support.proofs import some_proof

from mmaformal import find_difference, hopper
from mmaformal.architectures import ARCHITECTURES
from mmaformal.cases.encodings import compare_encodings
from mmaformal.cases.witness import CaseWitness
from mmaformal.encodings.executable import stages
from mmaformal.encodings.fda import executable as fda
from mmaformal.encodings.fda import smt as fda_smt
from mmaformal.encodings.smt import blocks
from mmaformal.facts import both_encodings, chains
from mmaformal.facts.equality import argue_equality
from mmaformal.proof.kernel import ArgumentError, Scripts
from mmaformal.queries.output_range import NEVER_MINUS_ZERO
from mmaformal.queries.zero_padding import PROPERTY as ZERO_PADDING
from mmaformal.queries.zero_padding import padding
from mmaformal.solver.answers import Equal, Fails, Holds, Unknown
from mmaformal.solver.asking import Asker
from mmaformal.solver.evidence import digest
from mmaformal.solver.portfolio import Portfolio

ONE = hopper["QGMMA.64x8x32.F32.E4M3.E4M3"].replace(k=1, L=1, name="one product")


@pytest.fixture
def one_bit_less(monkeypatch: pytest.MonkeyPatch) -> None:
    align = stages.align
    monkeypatch.setattr(stages, "align", lambda *given: align(*given) & ~1)


def lemmas(spec: Any) -> set[str]:
    scripts = Scripts()
    return {digest(scripts[lemma]) for lemma in argue_equality(spec).lemmas.values()}


def test_a_property_that_holds_has_the_equality_of_the_encodings_among_its_obligations() -> None:
    answer = NEVER_MINUS_ZERO.prove(ONE)
    assert isinstance(answer, Holds), answer
    proved = {o.digest for o in answer.proof.obligations}
    assert lemmas(ONE.spec) < proved
    two = ONE.replace(k=2, L=2)
    answer = ZERO_PADDING.prove(two)
    assert isinstance(answer, Holds), answer
    proved = {o.digest for o in answer.proof.obligations}
    assert padding(two.spec).shorter == ONE.replace(L=1, k=1).spec
    assert lemmas(two.spec) | lemmas(ONE.spec) < proved


def test_a_property_of_one_encoding_alone_fails_with_an_input(one_bit_less: None) -> None:
    answer = NEVER_MINUS_ZERO.prove(ONE)
    assert isinstance(answer, Fails), answer
    assert isinstance(answer.witness, CaseWitness)
    assert compare_encodings(ONE, answer.witness.codes) == answer.witness
    assert "two encodings of hopper one product differ" in answer.why


def test_equal_is_about_both_encodings() -> None:
    answer = find_difference(ONE, ONE.replace(e_zero=-134))
    assert isinstance(answer, Equal), answer
    assert lemmas(ONE.spec) < {o.digest for o in answer.proof.obligations}


def test_instructions_with_unequal_encodings_are_not_equal(one_bit_less: None) -> None:
    answer = find_difference(ONE, ONE.replace(e_zero=-134))
    assert isinstance(answer, Unknown), answer
    assert "differ" in answer.why


def test_without_time_for_the_encodings_nothing_is_affirmed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        both_encodings.equality, "settle_equality", lambda i, *_: Unknown("q", "no time", (), 0.0)
    )
    monkeypatch.setattr(both_encodings, "_PROVED", {})
    answer = NEVER_MINUS_ZERO.prove(ONE)
    assert isinstance(answer, Unknown)
    assert "no time" in answer.why
    assert answer.obligations


def test_a_long_chain_is_one_of_two_steps() -> None:
    spec = hopper["HMMA.16816.F32"].spec
    assert both_encodings.proved_for(spec) == spec
    assert both_encodings.proved_for(spec.replace(k=64 * 16)).k == 64 * 16
    assert both_encodings.proved_for(spec.replace(k=4096)).k == 32


def test_a_long_chain_is_proved_by_a_rule_that_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        both_encodings.equality, "settle_equality", lambda i, *_: Holds("q", some_proof(), 0.0)
    )
    monkeypatch.setattr(both_encodings, "_PROVED", {})
    equal = Equal("q", some_proof(), 0.0)
    long, short = (replace(ONE, spec=ONE.spec.replace(k=n * ONE.parameters.step_products)) for n in (128, 64))
    with Portfolio() as portfolio:
        asker = Asker(portfolio, 10)
        settled = both_encodings.equal_in_both_encodings(equal, [long, long], asker)
        assert isinstance(settled, Equal)
        assert len(settled.proof.rules) == 1
        assert "by the rule: induction over steps" in str(settled.proof)
        assert both_encodings.equal_in_both_encodings(equal, [short], asker).proof.rules == ()  # type: ignore[union-attr]


LONG = [
    ("hopper", "HMMA.16816.F32", 4096),
    pytest.param("blackwell", "UTCQMMA.SF.F32.E4M3.E4M3.E8", 8192, marks=pytest.mark.slow),
    ("blackwell", "UTCOMMA.F32.E2M1.E2M1.E8", 8192),
    ("cdna1", "v_mfma_f32_16x16x4f32", 512),
    ("cdna1", "v_mfma_f32_32x32x8f16", 512),
    ("cdna2", "v_mfma_f32_16x16x16f16", 512),
    ("cdna3", "v_mfma_f32_16x16x16_f16", 1024),
    ("cdna3", "v_mfma_f32_16x16x32_fp8_fp8", 2048),
    ("hopper", "mma.m16n8k32.f32.e4m3.e4m3.f32", 4096),
]


@pytest.mark.parametrize(("architecture", "name", "k"), LONG)
def test_both_loops_of_a_long_chain_are_followed(architecture: str, name: str, k: int) -> None:
    long = ARCHITECTURES[architecture][name].spec.replace(k=k)
    short = both_encodings.proved_for(long)
    assert short != long
    assert "loops were followed" in chains.follow(long, short)


#: changes of a loop, or of a step, that a chain of two steps does not show
BROKEN = {
    "a later step's c": ("chain", "c = steps[-1].result", "c = steps[-1].result if start < 3 else steps[0].result"),
    "a later step's products": ("dot_add", "a[k], b[k], c", "a[k], b[k if k.start < 3 else slice(0, L)], c"),
    "the last step": ("chain", "return Trace(tuple(steps), c, stages)", "return Trace(tuple(steps), c if spec.k < 99 else steps[-2].result)"),  # noqa: E501
    "the number of steps": ("chain", "range(0, spec.k, size)", "range(0, min(spec.k, 99), size)"),
    "the result": ("chain", ", c, stages)", ", c if spec.k < 99 else c * 1, stages)"),
}  # fmt: skip


def changed(function: Any, old: str, new: str) -> Any:
    """A function with a line of its text changed."""
    text = inspect.getsource(function)
    assert old in text
    names = function.__globals__ | {"L": ONE.parameters.step_products}
    file = inspect.getfile(function)
    exec(compile("from __future__ import annotations\n" + text.replace(old, new), file, "exec"), names)
    made = names[function.__name__]
    return FunctionType(made.__code__, names, function.__name__, made.__defaults__)


@pytest.mark.parametrize("what", BROKEN)
def test_a_loop_that_goes_another_way_later_is_noticed(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    long = ONE.spec.replace(k=128)
    assert chains.follow(long, both_encodings.proved_for(long))
    name, old, new = BROKEN[what]
    monkeypatch.setattr(fda, name, changed(getattr(fda, name), old, new))
    with pytest.raises(ArgumentError):
        chains.follow(long, both_encodings.proved_for(long))


def test_a_step_that_looks_at_the_length_of_the_chain_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    long, step = ONE.spec.replace(k=128), fda.step

    def knows(spec: Any, *given: Any) -> Any:
        made = step(spec, *given)
        return made if spec.k < 99 else replace(made, result=made.result ^ 1)

    monkeypatch.setattr(fda, "step", knows)
    with pytest.raises(ArgumentError, match="is another one"):
        chains.follow(long, both_encodings.proved_for(long))


def test_every_function_of_both_encodings_is_looked_at() -> None:
    known = {id(each) for held in both_encodings._encodings().values() for each in held}
    for module in (stages, blocks, fda, fda_smt):
        assert {id(each) for each in vars(module).values()} <= known, module


@pytest.mark.parametrize("module", [stages, fda, fda_smt], ids=lambda module: module.__name__)
def test_a_proof_is_not_remembered_of_other_functions(module: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither of those that all algorithms share, nor of an algorithm's own."""
    before = both_encodings._encodings()
    assert both_encodings._are_the_same(before, both_encodings._encodings())
    name = next(name for name, each in vars(module).items() if inspect.isfunction(each))
    monkeypatch.setattr(module, name, lambda *_: None)
    assert not both_encodings._are_the_same(before, both_encodings._encodings())
