"""An answer that affirms is about both encodings: their equality is among its obligations, or it is not affirmed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from mmaformal import find_difference, hopper
from mmaformal.cases.encodings import WingWitness, compare
from mmaformal.encodings.executable import fda
from mmaformal.facts import both_encodings
from mmaformal.facts.equality import argue
from mmaformal.proof.lemmas import Scripts
from mmaformal.queries.output_range import NEVER_MINUS_ZERO
from mmaformal.queries.zero_padding import PROPERTY as ZERO_PADDING
from mmaformal.queries.zero_padding import padding
from mmaformal.solver.answers import Equal, Fails, Holds, Proof, Unknown
from mmaformal.solver.asking import Asker
from mmaformal.solver.evidence import EvidenceStore, digest, recording
from mmaformal.solver.portfolio import Portfolio

ONE = hopper["QGMMA.64x8x32.F32.E4M3.E4M3"].replace(k=1, L=1, name="one product")


@pytest.fixture(scope="module")
def evidence(tmp_path_factory: pytest.TempPathFactory) -> Any:
    with EvidenceStore(tmp_path_factory.mktemp("evidence") / "evidence.db") as store, recording(store):
        yield store


@pytest.fixture
def one_bit_less(monkeypatch: pytest.MonkeyPatch) -> None:
    align = fda.align
    monkeypatch.setattr(fda, "align", lambda *given: align(*given) & ~1)


def lemmas(spec: Any) -> set[str]:
    scripts = Scripts()
    return {digest(scripts[lemma]) for lemma in argue(spec).lemmas.values()}


def test_a_property_that_holds_has_the_equality_of_the_encodings_among_its_obligations(evidence: Any) -> None:
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


def test_a_property_of_one_encoding_alone_fails_with_an_input(evidence: Any, one_bit_less: None) -> None:
    answer = NEVER_MINUS_ZERO.prove(ONE)
    assert isinstance(answer, Fails), answer
    assert isinstance(answer.witness, WingWitness)
    assert compare(ONE, answer.witness.codes) == answer.witness
    assert "two encodings of hopper one product differ" in answer.why


def test_equal_is_about_both_encodings(evidence: Any) -> None:
    answer = find_difference(ONE, ONE.replace(e_zero=-134))
    assert isinstance(answer, Equal), answer
    assert lemmas(ONE.spec) < {o.digest for o in answer.proof.obligations}


def test_instructions_with_unequal_encodings_are_not_equal(evidence: Any, one_bit_less: None) -> None:
    answer = find_difference(ONE, ONE.replace(e_zero=-134))
    assert isinstance(answer, Unknown), answer
    assert "differ" in answer.why


def test_without_time_for_the_encodings_nothing_is_affirmed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(both_encodings.equality, "settle", lambda i, *_: Unknown("q", "no time", (), 0.0))
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


def test_what_is_not_traced_of_a_long_chain_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(both_encodings.equality, "settle", lambda i, *_: Holds("q", Proof(()), 0.0))
    monkeypatch.setattr(both_encodings, "_PROVED", {})
    equal = Equal("q", Proof(()), 0.0)
    long, short = (replace(ONE, spec=ONE.spec.replace(k=n * ONE.parameters.step_products)) for n in (128, 64))
    with Portfolio() as portfolio:
        asker = Asker(portfolio, 10)
        settled = both_encodings.equal_in_both_encodings(equal, [long, long], asker)
        assert isinstance(settled, Equal)
        assert settled.words == (both_encodings.IN_WORDS,)
        assert "in words" in str(settled)
        assert both_encodings.equal_in_both_encodings(equal, [short], asker).words == ()  # type: ignore[union-attr]
