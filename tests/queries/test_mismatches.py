"""Wrong models put in on purpose are caught, grouped rightly, and told by the smallest input; noise is told as such."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Sequence
from fractions import Fraction
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.recorded import SHARED, save
from support.recorded import meta as meta_of
from support.slow import slow

from mmaformal import ARCHITECTURES, cli, mismatches
from mmaformal.cases.generate import DISTRIBUTIONS, Distribution, generate
from mmaformal.cases.run import results
from mmaformal.instruction import Instruction
from mmaformal.queries.mismatches import Mismatches
from mmaformal.queries.mismatching_rows import STAGES
from mmaformal.recordings.check import NotModelledError
from mmaformal.recordings.read import read
from mmaformal.rounding import Rounding
from mmaformal.solver.answers import Different


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """The smallest inputs are looked for, for a second each."""
    monkeypatch.setattr(import_module("mmaformal.queries.mismatches"), "_EACH", 1.0)


def recording(
    folder: Path,
    true: Instruction,
    rows: int = 3000,
    distributions: Sequence[Distribution] = (*DISTRIBUTIONS, "edge"),
    **changes: Any,
) -> Path:
    """Rows of every distribution, as a unit would give them that is this model."""
    spec = true.spec
    x = generate(spec, rows, seed=1, distributions=distributions)
    sides = zip((x.a, x.b, x.c), (spec.a_format, spec.b_format, spec.c_format), strict=True)
    a, b, c = (codes.astype(fmt.word) for codes, fmt in sides)
    d = results(spec, x.codes).astype(spec.d_format.word)
    arrays = {"a": a, "b": b, "c": c, "d": d, "meta": meta_of(true, spec.k)}
    if spec.scale_format is not None:
        arrays |= {name: getattr(x, name).astype(spec.scale_format.word) for name in ("scale_a", "scale_b")}
    return save(folder / "rows.npz", arrays | changes)


def instruction(label: str) -> Instruction:
    arch, name = label.split()
    return ARCHITECTURES[arch][name]


LOWERED = "hopper mma.m16n8k32.f32.e4m3.e4m3.f32"

#: a unit, the wrong value of a parameter, and the kind of mismatch that shows
WRONG: dict[str, tuple[str, dict[str, Any], str]] = {
    "F": ("volta HMMA.884.F32.F32", {"F": 24}, "alignment: bits kept"),
    "e_zero as in the paper": ("volta HMMA.884.F32.F32", {"e_zero": None}, "alignment: exponent of zero"),
    "RNE for RZ": ("volta HMMA.884.F32.F32", {"rho": "RNE-FP32"}, "output rounding"),
    "32 bits for 31": ("cdna3 v_mfma_f32_32x32x8_f16", {"sum_bits": 32}, "sum with c: bits kept"),
    "31 bits for 32": ("cdna3 v_mfma_f32_32x32x8_f16", {"dot_bits": 31}, "sum of products: bits kept"),
    "a cut toward zero": (
        "cdna3 v_mfma_f32_32x32x8_f16",
        {"cut": Rounding.RZ},
        "alignment: how bits are cut off",
    ),
    "a NaN": ("sapphire_rapids VFMADD231PH", {"nan": "DEFAULT"}, "special values: which NaN"),
    "flushed before rounding": (
        "sapphire_rapids VDPBF16PS",
        {"tiny": "BEFORE"},
        "output rounding: when a result is tiny, and flushed",
    ),
    "groups": ("cdna2 v_mfma_f32_32x32x8f16", {"G": 2}, "products of a group"),
    "steps": ("turing HMMA.1688.F32", {"L": 4}, "products of a step"),
    "other products first": (LOWERED, {"order": tuple(range(32))}, "order of products"),
}


#: searches that take longer than a minute; of the others all of the minimality is proved
LONG = {"e_zero as in the paper", "steps", "other products first", "groups", "flushed before rounding"}
#: what other rows show
RARE: dict[str, tuple[Distribution, ...]] = {"flushed before rounding": (*DISTRIBUTIONS, "tiny")}


@pytest.mark.parametrize("name", slow(WRONG, {*WRONG} - {"F", "a NaN"}))
def test_a_wrong_model_is_caught_and_its_parameter_named(name: str, tmp_path: Path) -> None:
    label, change, kind = WRONG[name]
    true = instruction(label)
    path = recording(tmp_path, true, distributions=RARE.get(name, (*DISTRIBUTIONS, "edge")))
    found = mismatches(path, true.replace(**change), timeout=100)
    ((parameter, _),) = change.items()
    assert [(group.kind, group.change) for group in found.groups] == [
        (kind, (parameter, true.spec.parameters[parameter]))
    ]
    assert found.explained_by is not None
    assert found.explained_by.spec == true.spec
    assert label in found.tabled
    (group,) = found.groups
    assert isinstance(group.answer, Different)
    wrong, changed = group.answer.witness.results
    assert wrong != changed
    if name not in LONG:
        assert all("proved minimal" in each for each in group.answer.minimality)


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("wrong", slow(["BEFORE", "AFTER"], ["AFTER"]))
def test_flushing_before_rounding_is_named(wrong: str, tmp_path: Path) -> None:
    """Rows of a unit that flushes what is tiny after rounding, against a model that does so before; and the reverse."""
    unit = instruction("sapphire_rapids VDPBF16PS")
    true = unit.replace(tiny="AFTER" if wrong == "BEFORE" else "BEFORE")
    path = recording(tmp_path, true, 600, (*DISTRIBUTIONS, "tiny"), meta=meta_of(unit, 2))
    found = mismatches(path, unit.replace(tiny=wrong), timeout=100)
    (group,) = found.groups
    assert group.kind == "output rounding: when a result is tiny, and flushed"
    assert group.change == ("tiny", true.spec.parameters["tiny"])
    assert found.explained_by is not None
    assert found.explained_by.spec == true.spec
    assert isinstance(group.answer, Different)
    assert {int(x) & 0x7FFFFFFF for x in group.answer.witness.results} == {0x00800000, 0}


@pytest.mark.usefixtures("quick")
def test_the_smallest_of_a_group_is_a_row_that_it_explains(tmp_path: Path) -> None:
    true = instruction("volta HMMA.884.F32.F32")
    wrong = true.replace(F=24)
    path = recording(tmp_path, true)
    (group,) = mismatches(path, wrong, timeout=100).groups
    block, row = read(path).load(), group.smallest
    assert (row.a, row.b) == (tuple(map(int, block.a[row.row])), tuple(map(int, block.b[row.row])))
    assert row.recorded == int(block.d[row.row])
    assert row.modelled == int(wrong.dot_add(block.a[row.row], block.b[row.row], block.c[row.row]))
    assert group.rows == int((wrong.dot_add(block.a, block.b, block.c) != block.d).sum())


@pytest.mark.usefixtures("quick")
def test_two_wrong_parameters_are_two_groups(tmp_path: Path) -> None:
    true = instruction("volta HMMA.884.F32.F32")
    found = mismatches(recording(tmp_path, true), true.replace(F=24, rho="RNE-FP32"), timeout=100)
    kinds = {group.kind for group in found.groups}
    assert kinds == {"alignment: bits kept", "output rounding", "several of these together"}
    assert found.explained_by is not None
    assert found.explained_by.spec == true.spec
    assert found.count == sum(group.rows for group in found.groups)


@pytest.mark.usefixtures("quick")
def test_rows_with_block_scales_are_explained_too(tmp_path: Path) -> None:
    true = next(i for i in ARCHITECTURES["blackwell"] if i.algorithm == "gdfs")
    found = mismatches(recording(tmp_path, true), true.replace(F=34), timeout=100)
    assert found.explained_by is not None
    assert found.explained_by.spec == true.spec
    (group,) = found.groups
    assert group.change == ("F", 35)
    assert isinstance(group.answer, Different)


@pytest.mark.usefixtures("quick")
def test_noise_is_explained_by_nothing(tmp_path: Path) -> None:
    true = instruction("volta HMMA.884.F32.F32")
    d = read(recording(tmp_path, true)).load().d.copy()
    ordinary = np.nonzero(((d & 0x7F800000) != 0x7F800000) & ((d & 0x7F800000) != 0))[0]
    d[ordinary[7]] ^= 1
    d[ordinary[8]] ^= 1 << 20
    found = mismatches(recording(tmp_path, true, d=d), true, timeout=100)
    assert found.explained_by is None
    assert [(group.kind, group.rows, group.smallest.row) for group in found.groups] == [
        ("unexplained: one unit in the last place", 1, ordinary[7]),
        ("unexplained: more than one unit in the last place", 1, ordinary[8]),
    ]
    assert "`mmaformal diagnose` tries all models" in str(found)


def nearest_aligned(true: Instruction, a: Sequence[int], b: Sequence[int], c: int) -> int | None:
    """A V100's step, but that terms are aligned to the nearest, ties away: no model of the space; None if special."""
    spec, p = true.spec, true.parameters
    sides = [(spec.a_format, a), (spec.b_format, b), (spec.c_format, (c,))]
    if not all(fmt.is_finite(x) and fmt.value(x) for fmt, codes in sides for x in codes):
        return None
    one, other, last = ([fmt.value(x) for x in codes] for fmt, codes in sides)
    exponents = [  # of products as they are multiplied: not normalised
        (spec.a_format.fields(x)[1] or 1) + (spec.b_format.fields(y)[1] or 1) - 30
        for x, y in zip(a, b, strict=True)
    ]
    exponents.append((spec.c_format.fields(c)[1] or 1) - 127)
    terms = [*(x * y for x, y in zip(one, other, strict=True)), *last]
    unit = Fraction(2) ** (max(exponents) - int(str(p["F"])))
    total = sum((1 if t > 0 else -1) * math.floor(abs(t) / unit + Fraction(1, 2)) for t in terms) * unit
    if not total:
        return 0
    size, exponent = abs(total), -126
    while size >= Fraction(2) ** (exponent + 1):
        exponent += 1
    places = math.floor(size / Fraction(2) ** (exponent - 23))
    bits = (exponent + 127 << 23) + (places - (1 << 23)) if places >> 23 else places
    return bits | (0x80000000 if total < 0 else 0)


@pytest.mark.usefixtures("quick")
def test_a_change_that_does_not_explain_everything_is_a_candidate(tmp_path: Path) -> None:
    """The unit is no model of the space: its alignment is to the nearest."""
    true, rng = instruction("volta HMMA.884.F32.F32"), np.random.default_rng(0)
    a, b = (rng.standard_normal((600, 4)).astype(np.float16).view(np.uint16) for _ in "ab")
    c = rng.standard_normal(600).astype(np.float32).view(np.uint32)
    d = np.asarray(true.dot_add(a, b, c)).astype(np.uint32)
    right = d.copy()
    for row in range(len(d)):
        code = nearest_aligned(true, a[row].tolist(), b[row].tolist(), int(c[row]))
        assert code is not None
        d[row] = code
    found = mismatches(recording(tmp_path, true, a=a, b=b, c=c, d=d), true, timeout=100)
    assert found.count == int((d != right).sum())
    assert found.explained_by is None
    (group,) = (each for each in found.groups if each.change is not None)
    assert (group.change, group.cause) == (("F", 24), False)
    assert "1. candidate, for it does not explain every row: alignment: bits kept, F = 24, not 23" in str(
        found
    )
    assert f"mends {group.rows} rows, spoils {group.spoils}" in str(found)
    assert not found.to_json()["groups"][0]["cause"]  # type: ignore[index]


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("share", [0.05, 0.5, 0.95])
def test_of_noise_no_cause_is_named(share: float, tmp_path: Path) -> None:
    """Results that are off by a place in rows by chance; where most are, changes mend more than they spoil."""
    true, rng = instruction("volta HMMA.884.F32.F32"), np.random.default_rng(3)
    d = read(recording(tmp_path, true)).load().d.copy()
    off = (rng.random(len(d)) < share) & ((d & 0x7F800000) != 0x7F800000) & ((d & 0x7FFFFFFF) > 1)
    d[off] = d[off].astype(np.int64) + rng.choice([-1, 1], int(off.sum()))
    found = mismatches(recording(tmp_path, true, d=d), true, timeout=100)
    assert [group.change for group in found.groups if group.change is not None] == []
    assert found.count == off.sum()


def test_no_answer_is_later_than_its_limit(tmp_path: Path) -> None:
    true = instruction("hopper QGMMA.64x8x32.F32.E4M3.E4M3")
    path = recording(tmp_path, true, 20_000)
    start = time.monotonic()
    found = mismatches(path, true.replace(F=14), timeout=1)
    assert time.monotonic() - start < 3
    assert found


def test_a_model_that_is_right_has_no_mismatches(tmp_path: Path) -> None:
    true = instruction("volta HMMA.884.F32.F32")
    found = mismatches(recording(tmp_path, true))
    assert not found
    assert str(found) == "volta HMMA.884.F32.F32 explains all of 3,000 rows"


def test_every_parameter_has_a_stage() -> None:
    used = {name for arch in ARCHITECTURES.values() for i in arch for name in i.parameters}
    assert used == set(STAGES) - {"product_order"}


def test_what_no_table_has_is_told(tmp_path: Path) -> None:
    path = recording(tmp_path, instruction("volta HMMA.884.F32.F32"))
    given = read(path)
    object.__setattr__(given, "instruction", None)
    with pytest.raises(NotModelledError, match="is not modelled yet"):
        mismatches(given)


# ---- the command -----------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("quick")
def test_the_command_groups_and_writes_a_program(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, program = recording(tmp_path, instruction("volta HMMA.884.F32.F32")), tmp_path / "test.cu"
    assert cli.main(["mismatches", str(path)]) == 0
    assert "explains all of 3,000 rows" in capsys.readouterr().out
    words = ["mismatches", str(path), "--replace", "F=24", "--cuda", str(program)]
    assert cli.main(words) == 1
    assert "1. alignment: bits kept, F = 23, not 24" in capsys.readouterr().out
    assert "mma.sync" in program.read_text(encoding="utf-8")
    assert cli.main([*words[:4], "--timeout", "100", "--json"]) == 1
    told = json.loads(capsys.readouterr().out)
    assert told["groups"][0]["change"] == {"F": "23"}
    assert "volta HMMA.884.F32.F32" in told["tabled"]


@pytest.mark.parametrize(
    "words", [["nothing.npz"], ["rows.npz", "--replace", "G=2"], ["rows.npz", "--replace", "F=99"]]
)
def test_wrong_use_is_told_in_a_line(
    words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    recording(tmp_path, instruction("volta HMMA.884.F32.F32"), 20)
    monkeypatch.chdir(tmp_path)
    assert cli.main(["mismatches", *words]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1


@pytest.mark.usefixtures("quick")
@pytest.mark.skipif(not SHARED.exists(), reason="no ../shared/recordings beside this checkout")
def test_recorded_outputs_name_the_right_parameter() -> None:
    """A real V100, and Arm's instruction under QEMU, gave these outputs."""

    def told(name: str, **change: object) -> Mismatches:
        given = read(SHARED / f"{name}.npz")
        assert given.instruction is not None
        return mismatches(given, given.instruction.replace(**change), timeout=100)

    v100 = told("v100_fp16_fp32", F=24)
    bfdot = told("processors/qemu_bfdot", rho="RZ-FP32±0")
    for found, value in ((v100, "F=23"), (bfdot, "RO-FP32±0")):
        assert found.explained_by is not None
        assert value in found.explained_by.spec.text
        assert len(found.groups) == 1
