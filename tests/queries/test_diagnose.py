"""Recordings made by a model are explained by that model; wrong ones by nothing."""

from __future__ import annotations

import importlib
import json
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.commands import run
from support.recorded import SHARED, save
from support.slow import slow

from mmaformal import ARCHITECTURES, find_difference
from mmaformal.cases.generate import DISTRIBUTIONS, Distribution, generate
from mmaformal.cases.inputs import Codes, Rows, zeros
from mmaformal.cases.run import compiled_results, results
from mmaformal.encodings.efda import Efda
from mmaformal.encodings.fda import Fda
from mmaformal.encodings.fdrda import Fdrda
from mmaformal.encodings.ffma import Ffma
from mmaformal.encodings.fma import Fma
from mmaformal.encodings.gfdrda import Gfdrda
from mmaformal.encodings.gps import Gps
from mmaformal.encodings.lowered import Lowered
from mmaformal.encodings.pfma import Pfma
from mmaformal.encodings.sfma import Sfma
from mmaformal.formats import FORMATS, fp16
from mmaformal.queries.classes import Classes, ModelClass
from mmaformal.queries.diagnose import Diagnosis, diagnose
from mmaformal.rounding import IEEE_FP16, IEEE_FP32, RZ_FP32, Conversion, NanRule, Rounding, Tininess
from mmaformal.solver.answers import Different, Unknown
from mmaformal.solver.deadline import check_time
from mmaformal.spaces import algorithms, details, models
from mmaformal.spaces.common import Types, orders
from mmaformal.spec import DotAdd

module = importlib.import_module("mmaformal.queries.classes")

RD_FP32 = Conversion.named("RD-FP32")

#: F and e_zero of units: two of one function, and one that keeps less
KINDS = [(20, -60), (20, -61), (4, -60)]


def recording(
    folder: Path,
    spec: DotAdd,
    rows: int = 900,
    distributions: Sequence[Distribution] = (*DISTRIBUTIONS, "edge"),
    **changes: Any,
) -> Path:
    """Rows of every distribution, as a file; `changes` are of its arrays."""
    x = generate(spec, rows, seed=1, distributions=distributions)
    words = [fmt.word for fmt in (spec.a_format, spec.b_format, spec.c_format)]
    a, b, c = (codes.astype(word) for codes, word in zip((x.a, x.b, x.c), words, strict=True))
    d = results(spec, x.codes).astype(spec.d_format.word)
    meta = {
        "architecture": "hopper",
        "instruction": "HMMA.16816.F32",
        "input_format": spec.a_format.name,
        "output_format": spec.d_format.name,
        "terms": spec.k,
    }
    for name, i in ((n, i) for arch in ARCHITECTURES.values() for n, i in arch.items()):
        if (i.a_format, i.b_format, i.c_format, i.d_format) == Types.of(spec)[:4] and i.k >= spec.k:
            meta |= {"architecture": i.architecture, "instruction": name}
            break
    return save(folder / "rows.npz", {"a": a, "b": b, "c": c, "d": d, "meta": meta} | changes)


def made(parameters: Any, k: int, a: str = "fp16", d: str = "fp32", order: tuple[int, ...] = ()) -> DotAdd:
    one, other = FORMATS[a], FORMATS[d]
    return DotAdd(k, one, one, other, other, parameters, product_order=order)


MADE = {
    "fda": made(Fda(25, 4, RZ_FP32, -130), 4),
    "fda, an odd F, rounded down": made(Fda(29, 2, RD_FP32, None), 4),
    "fda, other steps": made(Fda(24, 2, RZ_FP32, -133), 4, order=(0, 2, 1, 3)),
    "efda": made(Efda(2, IEEE_FP32), 4, "bf16"),
    "gps": made(Gps(4), 4, "bf16"),
    "sfma": made(Sfma(IEEE_FP32), 4, "fp32"),
    "pfma": made(Pfma(4), 4, "bf16"),
    "fdrda": made(Fdrda(24, 4, IEEE_FP32), 4),
    "fdrda, a bit less": made(Fdrda(24, 4, IEEE_FP32, sum_bits=30), 4),
    "gfdrda": made(Gfdrda(24, 4, IEEE_FP32), 4),
    "lowered": made(Lowered(25, 2, RZ_FP32, -133, fp16, (0, 2, 1, 3), IEEE_FP32), 4, "e5m2"),
}


def without_solvers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "find_difference", lambda *_, **__: Unknown("one?", "not asked", (), 0.0))


@pytest.mark.parametrize("name", slow(MADE, {*MADE} - {"gps", "sfma", "pfma", "efda"}))
@pytest.mark.parametrize("solved", slow([False, True], [True]))  # what is equal, and what distinguishes
def test_what_made_the_rows_is_found(
    name: str, solved: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not solved:
        without_solvers(monkeypatch)
    spec = MADE[name]
    found = diagnose(recording(tmp_path, spec), only=[spec.parameters.algorithm], timeout=60, jobs=1)
    assert spec in [each for one in found.classes for each in one.members]
    assert len(found.families) == 1


@pytest.mark.parametrize("tiny", Tininess)
def test_when_a_result_is_tiny_is_found(
    tiny: Tininess, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    without_solvers(monkeypatch)
    spec = made(Ffma(tiny), 2, "bf16", order=(1, 0))
    found = diagnose(
        recording(tmp_path, spec, distributions=(*DISTRIBUTIONS, "tiny")), only=["ffma"], timeout=60, jobs=1
    )
    assert [each for one in found.classes for each in one.members] == [spec]


def test_a_row_that_is_wrong_is_explained_by_nothing(tmp_path: Path) -> None:
    spec = MADE["gps"]
    x = generate(spec, 300, seed=1, distributions=(*DISTRIBUTIONS, "edge"))
    d = results(spec, x.codes).astype(np.uint32)
    finite = np.nonzero((d & 0x7F800000) != 0x7F800000)[0]
    d[finite[7]] ^= 1
    found = diagnose(recording(tmp_path, spec, 300, d=d), only=["gps"], timeout=60, jobs=1)
    assert not found
    (miss, *_) = found.nearest
    assert (miss.model, miss.wrong, miss.row) == (spec, 1, finite[7])
    assert miss.gives == miss.recorded ^ 1
    assert "nothing tried explains all of 300 rows" in str(found)
    assert "<Diagnosis: nothing tried explains all of" in repr(found)
    assert "<Diagnosis: the time was up early: nothing tried explains" in repr(replace(found, complete=False))


@pytest.mark.parametrize("row", [7, 290])
def test_a_wrong_row_of_a_later_block_is_found(
    row: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importlib.import_module("mmaformal.queries.diagnose"), "_ROWS", 128)
    spec = MADE["gps"]
    d = results(spec, generate(spec, 300, seed=1, distributions=(*DISTRIBUTIONS, "edge")).codes).astype(
        np.uint32
    )
    d[row] = 0x12345678
    found = diagnose(recording(tmp_path, spec, 300, d=d), only=["gps"], timeout=60, jobs=1)
    assert not found
    (miss,) = (each for each in found.nearest if each.model == spec)
    assert (miss.wrong, miss.row, miss.recorded) == (1, row, 0x12345678)
    assert diagnose(recording(tmp_path, spec, 300), only=["gps"], timeout=60, jobs=1)


def test_rows_of_two_units_are_explained_by_nothing(tmp_path: Path) -> None:
    one, other = MADE["gps"], made(Gps(2), 4, "bf16")
    x = generate(one, 300, seed=1, distributions=(*DISTRIBUTIONS, "edge"))
    d = np.where(np.arange(300) % 2, results(one, x.codes), results(other, x.codes)).astype(np.uint32)
    assert not diagnose(recording(tmp_path, one, 300, d=d), only=["gps"], timeout=60, jobs=1)


@pytest.fixture(scope="module")
def open_ones(tmp_path_factory: pytest.TempPathFactory) -> Diagnosis:
    """The diagnosis of rows without zeros and special values, which leave much open."""
    spec = made(Fda(25, 1, RZ_FP32, -130), 1)
    rng = np.random.default_rng(1)
    a, b = (rng.integers(0x3000, 0x4800, (400, 1)) | (rng.integers(0, 2, (400, 1)) << 15) for _ in "ab")
    c = rng.integers(0x3E000000, 0x41000000, 400)

    none = np.empty((400, 0), np.uint64)
    rows = Rows(a.astype(np.uint64), b.astype(np.uint64), c.astype(np.uint64), none, none)
    d = results(spec, rows.codes).astype(np.uint32)
    arrays = {"a": a.astype(np.uint16), "b": b.astype(np.uint16), "c": c.astype(np.uint32), "d": d}
    path = recording(tmp_path_factory.mktemp("open"), spec, 400, **arrays)
    with pytest.MonkeyPatch.context() as patch:
        without_solvers(patch)
        return diagnose(path, only=["fda"], timeout=60, jobs=1)


def test_what_the_rows_leave_open_is_told(open_ones: Diagnosis) -> None:
    assert len(open_ones.families) == 1
    assert "not told by these rows: rho (RZ-FP32, RZ-FP32±0), e_zero (" in str(open_ones)


def test_members_of_several_algorithms_are_printed(open_ones: Diagnosis) -> None:
    model = made(Fda(25, 4, RZ_FP32, -130), 4)
    others = made(Pfma(4), 4, "bf16"), made(Gps(4), 4, "bf16")
    several = ModelClass(model, model, open=(model.replace(F=26), *others))
    text = str(replace(open_ones, classes=(several,)))
    assert "not told by these rows: F (25 … 26)" in text
    assert "no input tried tells it from pfma L=4 and 1 more" in text


def test_the_tests_tell_all_classes_apart(open_ones: Diagnosis) -> None:
    assert len(open_ones.classes) > 1
    given = [tuple(test.gives[i] for test in open_ones.tests) for i in range(len(open_ones.classes))]
    assert len(set(given)) == len(open_ones.classes)
    for test in open_ones.tests[:2]:
        codes = Rows.of([test.case]).codes
        assert tuple(int(results(each.model, codes)[0]) for each in open_ones.classes) == test.gives


def test_a_class_is_split_by_an_input_that_a_solver_finds(monkeypatch: pytest.MonkeyPatch) -> None:
    """No random case does: there is one, and its product is zero."""
    monkeypatch.setattr(module, "generate", lambda spec, *_, **__: Rows.of([zeros(spec)]))
    specs = [made(Fda(F, 1, Conversion.named("RNE-FP16"), e_zero), 1, "e2m1", "fp16") for F, e_zero in KINDS]
    found, tests = module.Classes([(spec, spec) for spec in specs], 40, lambda _: None).found()
    assert [each.members for each in found] == [tuple(specs[:2]), tuple(specs[2:])]
    assert [len(each.same) for each in found] == [1, 0]
    (test,) = tests
    assert [int(results(each.model, Rows.of([test.case]).codes)[0]) for each in found] == list(test.gives)
    assert test.gives[0] != test.gives[1]


@pytest.mark.slow
def test_what_only_a_solver_tells_apart_is_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A solver tells apart what explains a file: no random case has a product that is not zero."""
    monkeypatch.setattr(module, "generate", lambda spec, *_, **__: Rows.of([zeros(spec)]))
    nothing = np.zeros((1, 4), np.uint16)
    c = np.array([0x3F800000], np.uint32)
    path = recording(tmp_path, MADE["gps"], 1, a=nothing, b=nothing, c=c, d=c)
    found = diagnose(path, only=["gps"], timeout=60, jobs=1)
    classes = [each for each in found.classes for G in (2, 4) if made(Gps(G), 4, "bf16") in each.members]
    assert len(classes) == 2
    assert classes[0] != classes[1]


# ---- the space -------------------------------------------------------------------------------------------------------


def test_every_algorithm_has_a_space() -> None:
    assert {i.algorithm for arch in ARCHITECTURES.values() for i in arch} == set(algorithms())


def test_every_model_of_the_registry_is_in_the_space() -> None:
    """One step of it, of at most eight products; at their full K there are too many to list them here."""
    seen = set()
    for i in (i for arch in ARCHITECTURES.values() for i in arch):
        k = i.parameters.step_products
        if i.spec.scale_format is not None or i.a_format != i.b_format or i.c_format != i.d_format or k > 8:
            continue
        spec = i.spec.in_order.replace(k=k)
        if spec in seen or i.parameters in {x.parameters for x in seen}:
            continue
        seen.add(spec)
        near = [
            each
            for each in models(Types.of(spec), k, i.algorithm)
            if getattr(each.parameters, "F", 0) == getattr(spec.parameters, "F", 0) and not each.product_order
        ]
        assert any(spec.parameters == each.parameters for x in near for each in details(x)), i.label
    assert len(seen) > 8


def test_orders_are_of_other_steps() -> None:
    assert list(orders(4, 4)) == []
    assert (0, 2, 1, 3) in list(orders(4, 2))
    assert all(sorted(order) == list(range(8)) for order in orders(8, 2))


def test_a_detail_is_itself_first() -> None:
    spec = made(Fda(25, 4, Conversion.named("RZ-FP32"), None), 4)
    assert next(details(spec)) == spec
    assert Rounding.RZ is spec.parameters["rho"].rounding


# ---- recordings, and the command -------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.skipif(not SHARED.exists(), reason="no ../shared/recordings beside this checkout")
@pytest.mark.parametrize(
    ("name", "family"),
    [
        ("v100_fp16_fp32", "fda F=23 L=4 ρ=RZ-FP32"),
        ("processors/emr_tdpbf16ps", "pfma L=32"),
    ],
)
def test_recorded_units_are_named(name: str, family: str) -> None:
    found = diagnose(SHARED / f"{name}.npz", timeout=20, jobs=1)
    assert len(found.families) == 1
    assert str(found).splitlines()[1].startswith(f"1. {family}")


def test_the_command_names_the_model(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = recording(tmp_path, MADE["gps"], 300)
    status, out, _ = run(capsys, "diagnose", str(path), "--only", "gps", "--jobs", "1")
    assert status == 0
    assert "1 model of 5 tried explains 300 rows of 4 products, bf16 × bf16 + fp32 → fp32" in out
    assert "1. gps G=4" in out
    status, out, _ = run(capsys, "diagnose", str(path), "--only", "gps", "--jobs", "2", "--json")
    assert json.loads(out)[0]["classes"][0]["model"] == "gps G=4"
    status, out, _ = run(capsys, "diagnose", str(path), "--only", "efda", "--jobs", "1")
    assert status == 1
    assert "nearest: efda" in out


OWN: list[dict[str, Any]] = [
    {"architecture": "my_unit", "instruction": "DOT4"},
    {"architecture": "hopper", "instruction": "HMMA.99999"},
    {"architecture": "hopper", "instruction": "HMMA.16816.F32"},  # which takes other types
    {},
]


@pytest.mark.parametrize("names", OWN, ids=str)
def test_units_that_no_table_has_are_diagnosed_like_any_other(
    names: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    meta = {"input_format": "bf16", "output_format": "fp32"} | names
    path = recording(tmp_path, MADE["gps"], 300, meta=meta)
    assert {each.model for each in diagnose(path, only=["gps"], timeout=60, jobs=1).classes} == {MADE["gps"]}
    status, out, _ = run(capsys, "diagnose", str(path), "--only", "gps", "--jobs", "1")
    assert status == 0
    assert "1. gps G=4" in out


def test_a_unit_that_no_table_has_needs_its_formats(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = recording(tmp_path, MADE["gps"], 20, meta={"architecture": "my_unit", "instruction": "DOT4"})
    status, _, err = run(capsys, "diagnose", str(path))
    assert status == 2
    assert "input_format" in err
    assert len(err.splitlines()) == 1


def few_rows(folder: Path) -> Path:
    """Rows that thousands of models explain."""
    return recording(folder, made(Fda(25, 2, RZ_FP32, -133), 2, "bf16"), 12, distributions=DISTRIBUTIONS[:1])


@pytest.mark.parametrize("timeout", slow([1.0, 5.0], [5.0]))
@pytest.mark.parametrize("jobs", slow([1, 2], [2]))
def test_no_answer_is_later_than_its_limit(timeout: float, jobs: int, tmp_path: Path) -> None:
    path = few_rows(tmp_path)
    spec = made(Fda(25, 2, RZ_FP32, -133), 2, "bf16")
    compiled_results(spec, generate(spec, 1).codes)  # a kernel is compiled to its end
    start = time.monotonic()
    found = diagnose(path, only=["fda"], timeout=timeout, jobs=jobs)
    assert time.monotonic() - start < timeout + 2
    assert not found.complete
    assert "the time was up" in str(found)


@pytest.mark.parametrize("words", [["rows.npz", "--only", "gpx"], ["nothing.npz"]])
def test_wrong_use_is_told_in_a_line(
    words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    recording(tmp_path, MADE["gps"], 20)
    monkeypatch.chdir(tmp_path)
    status, _, err = run(capsys, "diagnose", *words)
    assert status == 2
    assert len(err.splitlines()) == 1


@pytest.mark.parametrize("only_solvers", [False, True])
def test_an_input_that_is_not_made_smaller_in_time_tells_all_the_same(
    only_solvers: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    units = (ARCHITECTURES["hopper"]["HMMA.16816.F32"], ARCHITECTURES["cdna3"]["v_mfma_f32_16x16x16_f16"])
    found = Classes([(i.spec, i.spec) for i in units], 60, lambda line: None, only_solvers=only_solvers)
    halved: list[object] = []

    def never_ends(spec: DotAdd, case: Codes, shows: Any, candidates: Any) -> object:
        smaller = list(candidates(spec, case))
        halved.extend(x for x, so in zip(smaller, shows(smaller), strict=True) if so)
        while True:
            check_time()

    monkeypatch.setattr(module, "shrink", never_ends)
    monkeypatch.setattr(module, "_SMALLER", 0.5)
    groups, (test,) = found.found()
    assert len(groups) == len(set(test.gives)) == 2
    assert found.distinguished
    assert not halved or test.case == halved[0]


FMA = DotAdd(1, fp16, fp16, fp16, fp16, Sfma(IEEE_FP16))


@pytest.mark.parametrize(
    ("specs", "answers"),
    [
        ([FMA.replace(nan=NanRule.DEFAULT), FMA.replace(nan=NanRule.FIRST)], []),
        (
            [
                FMA.replace(nan=NanRule.DEFAULT),
                FMA.replace(parameters=Fma(IEEE_FP16, NanRule.FIRST)),
            ],
            [Different],
        ),
    ],
    ids=["of one algorithm", "of two"],
)
def test_models_that_give_different_nans_alone_are_asked_about_once_at_most(
    specs: list[DotAdd], answers: list[type], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where a NaN's code is not known all NaNs are one: an input that tells two of them apart tells nothing here."""
    asked: list[object] = []

    def noted(*given: Any, **how: Any) -> object:
        asked.append(find_difference(*given, **how))
        return asked[-1]

    monkeypatch.setattr(module, "find_difference", noted)
    found = Classes([(spec, spec) for spec in specs], 60, lambda line: None)
    found.nans_known = False
    (together,), tests = found.found()
    assert [type(answer) for answer in asked] == answers
    assert {together.model, *together.open} == set(specs)
    assert not tests
