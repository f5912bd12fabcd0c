"""Keywords `solver`, `memory`, `cache`, `jobs`, `timeout`, `progress`: they do in every function what they say."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.recorded import recorded, save

import mmaformal
from mmaformal import ampere, check, datapath, hopper, probe, sapphire_rapids, verify, volta
from mmaformal.formats import bf16
from mmaformal.hardware import sizes as study
from mmaformal.hardware.sizes import DatapathSize
from mmaformal.queries import classes, mismatches
from mmaformal.recordings.check import FileFailure
from mmaformal.solver.answers import Holds, Unknown
from mmaformal.solver.evidence import EvidenceStore, current_store

HMMA = ampere["HMMA.16816.F32"]
SMALL = datapath["fda(k=1,frac_bits=6,a=e4m3,rho=RNE-FP16)"]
ONES = np.full((2, 16), 0x3C00, np.uint16)
SUMS = np.full((2, 2), 0x41800000, np.uint32)
PRODUCT: dict[str, Any] = {"a_format": "fp16", "b_format": "fp16", "d_format": "fp32"}


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    """Rows of which one is not the model's."""
    arrays = recorded(HMMA, rows=500)
    wrong = arrays["d"] ^ (np.arange(500) == 7).astype(np.uint32)
    return save(tmp_path / "rows.npz", arrays | {"d": wrong})


def asking(rows: Path) -> dict[str, Callable[..., object]]:
    """Functions that ask solvers, with what they need."""
    two = [ONES, ONES.T, SUMS], [SUMS[:1], ONES[:1], ONES.T]
    products = [two[0][2], two[0][0], two[0][1]], two[1]
    return {
        "batch_invariant": lambda **how: mmaformal.batch_invariant(products, **PRODUCT, **how),
        "diagnose": lambda **how: mmaformal.diagnose(rows, jobs=1, **how),
        "diagnose_gemm": lambda **how: mmaformal.diagnose_gemm(ONES, ONES.T, SUMS, **PRODUCT, **how),
        "find_difference": lambda **how: mmaformal.find_difference(HMMA, HMMA, **how),
        "fingerprint": lambda **how: mmaformal.fingerprint([HMMA], **how),
        "identify": lambda **how: mmaformal.identify(HMMA, **how),
        "mismatches": lambda **how: mmaformal.mismatches(rows, **how),
        "verify": lambda **how: verify(SMALL, **how),
    }


@pytest.mark.parametrize("name", sorted(asking(Path())))
def test_a_solver_that_there_is_not_is_refused_at_once(name: str, rows: Path) -> None:
    with pytest.raises(ValueError, match="yices"):
        asking(rows)[name](solver="yices")
    with pytest.raises(ValueError, match="megabytes"):
        asking(rows)[name](memory=-1)


def test_solver_memory_and_cache_are_those_of_each_question(
    rows: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[object, object, Path]] = []

    def answer(*_: object, solver: object, memory: object, **__: object) -> Unknown:
        store = current_store()
        assert store is not None
        asked.append((solver, memory, store.path))
        return Unknown("one?", "not asked", (), 0.0)

    for module in (classes, mismatches):
        monkeypatch.setattr(import_module(module.__name__), "find_difference", answer)
    how: dict[str, Any] = {"solver": "z3", "memory": 999, "cache": tmp_path / "e.db", "timeout": 600.0}
    fma = sapphire_rapids["VFMADD231PH"]
    mmaformal.fingerprint([fma, fma.replace(nan="ANY")], **how)
    first = len(asked)
    assert first
    mmaformal.mismatches(save(tmp_path / "other.npz", of_another()), HMMA, **how)
    assert len(asked) > first
    assert set(asked) == {("z3", 999, tmp_path / "e.db")}


def of_another() -> dict[str, Any]:
    """Rows of hopper's unit, which are not ampere's."""
    arrays = recorded(HMMA, rows=500)
    return arrays | {"d": hopper["HMMA.16816.F32"].dot_add(arrays["a"], arrays["b"], arrays["c"])}


# ---- jobs


@pytest.mark.parametrize("jobs", [0, -1])
def test_jobs_count_from_one(jobs: int, rows: Path, tmp_path: Path) -> None:
    for work in (
        lambda: mmaformal.diagnose(rows, jobs=jobs),
        lambda: mmaformal.mismatches(rows, jobs=jobs),
        lambda: check(rows, jobs=jobs),
        lambda: verify(SMALL, jobs=jobs),
        lambda: mmaformal.errors(HMMA, 1, jobs=jobs),
        lambda: mmaformal.sizes("fda(k=2,frac_bits=8)", jobs=jobs),
        lambda: mmaformal.certify(SMALL, tmp_path, jobs=jobs),
        lambda: mmaformal.max_difference(ampere, hopper, "HMMA.16816.F32", jobs=jobs, timeout=1.0),
    ):
        with pytest.raises(ValueError, match="counts from 1"):
            work()


def test_processes_give_what_one_gives(rows: Path) -> None:
    assert check(rows, jobs=2).to_json() == check(rows).to_json()
    how: dict[str, Any] = {"searches": 2, "seed": 3, "timeout": 1000.0}
    plain, found = (
        mmaformal.max_difference(ampere, hopper, "HMMA.1688.F32", jobs=jobs, **how) for jobs in (None, 2)
    )
    assert plain.to_json() == found.to_json()


def test_an_instruction_is_proved_by_several_processes(tmp_path: Path) -> None:
    told: list[str] = []
    alone = verify(SMALL)
    found = verify(SMALL, jobs=2, solver="bitwuzla", cache=tmp_path / "e.db", progress=told.append)
    assert isinstance(alone, Holds)
    assert isinstance(found, Holds)
    assert {each.digest for each in found.proof.obligations} == {
        each.digest for each in alone.proof.obligations
    }
    assert told[-1] == f"{len(found.proof.obligations)} of {len(found.proof.obligations)} obligations"
    with EvidenceStore(tmp_path / "e.db") as store:
        assert {record.solver for record in store.records()} == {"bitwuzla"}
    late = verify(SMALL.replace(rho="RZ-FP16"), jobs=2, timeout=0.01)
    assert isinstance(late, Unknown)
    assert "used up" in late.why


def test_what_is_no_executor_is_refused(rows: Path) -> None:
    with pytest.raises(TypeError, match=r"executor is one of concurrent\.futures, or of Dask, not 3"):
        check(rows, executor=3)  # type: ignore[arg-type]


# ---- time, and what is being done


def test_a_time_below_zero_for_orders_is_refused(rows: Path) -> None:
    with pytest.raises(ValueError, match="order_timeout is a number of seconds, 0 or more, not -1"):
        mmaformal.diagnose(rows, order_timeout=-1)


def test_files_that_are_not_checked_in_time_say_so(rows: Path) -> None:
    (outcome,) = check(rows, timeout=1e-6)
    assert isinstance(outcome, FileFailure)
    assert "the time was up" in outcome.reason
    assert check(rows, timeout=600.0).to_json() == check(rows).to_json()


def test_work_says_how_far_it_is(rows: Path) -> None:
    said: list[str] = []
    check(rows, progress=said.append)
    assert said == ["rows.npz: 500 of 500 rows read", "rows.npz: 500 of 500 rows"]
    said.clear()
    probe(volta["HMMA.884.F32.F32"], progress=said.append)
    assert [line.partition(";")[0] for line in said] == [
        "products, carries and special values",
        "the order of summation",
        "what sums keep",
        "the model read, on other rows",
    ]


def test_sizes_take_a_format_or_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    def measure(points: Any, *_: object) -> list[DatapathSize]:
        asked.append([each.name for each in points])
        return []

    asked: list[list[str]] = []
    monkeypatch.setattr(study, "measure_all", measure)
    for a_format in (bf16, "bf16"):
        with pytest.raises(KeyError):
            mmaformal.sizes("fda", k=[2], frac_bits=[8], a_format=a_format, jobs=1)
    assert asked[0] == asked[1]
    assert all("a=bf16" in name for name in asked[0])


def test_instructions_go_by_their_names(rows: Path) -> None:
    names = ["hopper HMMA.16816.F32", "ampere HMMA.16816.F32"]
    assert [i.label for i in mmaformal.fingerprint(names, timeout=20.0).instructions] == names
    assert mmaformal.mismatches(rows, HMMA.label, timeout=20.0).instruction is HMMA
