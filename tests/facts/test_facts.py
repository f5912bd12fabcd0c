"""One place per algorithm: folders of facts are found by their names, and what lacks is `Unknown`, never an error."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest

from mmaformal import ARCHITECTURES, ampere
from mmaformal.encodings import executable, smt
from mmaformal.encodings.fda import Fda
from mmaformal.facts.protocol import Facts, UnsupportedError
from mmaformal.facts.registry import all_facts, facts_of
from mmaformal.instruction import Instruction
from mmaformal.queries.properties import PROPERTIES, prove
from mmaformal.queries.verify import verify
from mmaformal.renderers import renderer_of
from mmaformal.solver.answers import Fails, Holds, Unknown


@dataclass(frozen=True, repr=False)
class Unheard(Fda):
    """fda under a name that nothing knows."""

    algorithm: ClassVar[str] = "unheard"


@pytest.fixture
def unheard(monkeypatch: pytest.MonkeyPatch) -> Instruction:
    """An instruction whose algorithm has both encodings and nothing else, and records no stages."""
    for encoding in (executable, smt):
        table: dict[str, Any] = encoding._ALGORITHMS
        fda = table["fda"]
        monkeypatch.setitem(table, "unheard", lambda *given, fda=fda: replace(fda(*given), stages=()))
    i = ampere["HMMA.1688.F32"]
    p = i.spec.parameters_as(Fda)
    spec = replace(i.spec, k=4, parameters=Unheard(p.F, 4, p.rho, p.e_zero))
    return replace(i, spec=spec, name="UNHEARD", aliases=())


def test_every_folder_is_found_and_every_algorithm_has_one() -> None:
    folder = Path(smt.__file__ or "").resolve().parents[1]
    named = {path.parents[1].name for path in folder.glob("*/proofs/__init__.py")}
    tabled = {
        i.algorithm
        for a in (*ARCHITECTURES.values(), *(ARCHITECTURES[x] for x in ("datapath", "emulation")))
        for i in a
    }
    tabled |= {i.algorithm for x in ("riscv@printed", "diamond_rapids") for i in ARCHITECTURES[x]}
    tabled.add(ARCHITECTURES["datapath"]["fma(a=bf16,nan=DEFAULT)"].algorithm)
    assert set(all_facts()) == named == tabled
    for name, facts in all_facts().items():
        assert facts.algorithm == name
        assert type(facts) is not Facts


def test_every_encoding_is_found() -> None:
    for name in all_facts():
        assert executable._ALGORITHMS[name].__module__ == f"mmaformal.encodings.{name}.executable"
        assert smt._ALGORITHMS[name].__module__ == f"mmaformal.encodings.{name}.smt"


def test_facts_of_an_algorithm_without_a_folder_have_no_argument(unheard: Instruction) -> None:
    facts = facts_of(unheard.spec)
    assert type(facts) is Facts
    with pytest.raises(UnsupportedError, match=r"^no argument for unheard: why both encodings agree$"):
        facts.equal(None, SimpleNamespace(smt=SimpleNamespace(stages=())))  # type: ignore[arg-type]


def test_equality_needs_no_argument_where_the_stages_are_known(
    unheard: Instruction, monkeypatch: pytest.MonkeyPatch
) -> None:
    for encoding in (executable, smt):
        table: dict[str, Any] = encoding._ALGORITHMS
        monkeypatch.setitem(table, "unheard", table["fda"])
    assert isinstance(verify(unheard, timeout=60), Holds)


def test_equality_without_an_argument_is_unknown(unheard: Instruction) -> None:
    answer = verify(unheard, timeout=20)
    assert isinstance(answer, Unknown)
    assert "no argument for unheard: why both encodings agree" in answer.why


@pytest.mark.parametrize("name", PROPERTIES)
def test_a_property_without_an_argument_is_unknown_or_fails(name: str, unheard: Instruction) -> None:
    """Where cases that are run show that it fails, it does; nothing is proved."""
    answer = prove(name, unheard, timeout=3)
    assert isinstance(answer, (Unknown, Fails)), answer


def test_nothing_to_permute_is_unknown_too(unheard: Instruction) -> None:
    """An order of one product: a theorem still, and so in need of an argument."""
    answer = prove("order-independence", unheard.replace(k=1, L=1), timeout=3)
    assert isinstance(answer, Unknown), answer


def test_it_is_told_by_its_results(unheard: Instruction) -> None:
    trace = executable.dot_add(unheard.spec, [0] * 4, [0] * 4, 0x3F800000)
    (step,) = renderer_of(unheard.spec)(unheard.spec, trace, 0x3F800000)
    assert [(row.label, row.text) for row in step.rows] == [("d", "0x3f800000  0x1p+0 = 1")]
