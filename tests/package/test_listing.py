"""Looking names up, `list` and `show`, `mmaformal.prove` and `mmaformal.check`: what a newcomer meets first."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.commands import run

import mmaformal
from mmaformal import (
    ARCHITECTURES,
    PROPERTIES,
    Fails,
    Holds,
    Instruction,
    UnknownArchitectureError,
    UnknownInstructionError,
    ampere,
    cdna1,
    cdna2,
    cdna3,
    hopper,
    volta,
)
from mmaformal.accumulator import SumWidth, accumulator_in_words, sum_width
from mmaformal.architectures.papers import PAPERS
from mmaformal.cases.inputs import symbolic_inputs
from mmaformal.encodings import smt
from mmaformal.facts.registry import facts_of
from mmaformal.formats import fp16
from mmaformal.listing import instruction_in_words as told
from mmaformal.listing import instruction_tables, matching
from mmaformal.queries import accumulator_width
from mmaformal.queries.lossless_width import lossless_width_of
from mmaformal.spec import DotAdd

EVERY = [i for architecture in ARCHITECTURES.values() for i in architecture]


# ---- an architecture as a collection -------------------------------------------------------------------------------


@pytest.mark.parametrize("architecture", ARCHITECTURES.values(), ids=str)
def test_an_architecture_is_a_collection_of_its_instructions(architecture: mmaformal.Architecture) -> None:
    assert (
        len(architecture) == len(list(architecture)) == len(architecture.keys()) == len(architecture.values())
    )
    for name, instruction in architecture.items():
        assert name in architecture
        assert name.lower() in architecture
        assert architecture[name] is architecture[f" {name.lower()} "] is instruction
        assert instruction in architecture.find(name)
    completions = architecture._ipython_key_completions_()
    assert set(architecture.keys()) <= set(completions)
    assert all(name in architecture for name in completions)


def test_architectures_are_found_in_any_case() -> None:
    assert ARCHITECTURES["HOPPER"] is hopper
    assert "Hopper" in ARCHITECTURES
    assert ARCHITECTURES["Hopper@Paper-V1"] is ARCHITECTURES["hopper@paper-v1"]
    with pytest.raises(UnknownArchitectureError, match=r"^no architecture 'hoper'; did you mean hopper\?$"):
        ARCHITECTURES["hoper"]
    assert "hopper@paper-v1" in ARCHITECTURES._ipython_key_completions_()
    with pytest.raises(TypeError, match=r"takes a name, such as 'HMMA.1688.F32', not 3"):
        hopper[3]  # type: ignore[index]


# ---- patterns --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("architecture", "pattern", "found"),
    [
        ("hopper", "HMMA", 8),
        ("hopper", "hmma*", 8),
        ("hopper", "HMMA.16816", 3),
        ("hopper", "HMMA.16816.F32", 1),  # a name in full is that one, though others start so
        ("hopper", "HMMA.16816.F32*", 2),
        ("hopper", "*.BF16", 3),
        ("hopper", "HMMA.168[18]*.F16", 2),
        ("hopper", "mma.m16n8k32", 8),
        ("hopper", "QGMMA.64x8x32.F32.f8type.f8type", 4),
        ("rtx_blackwell", "QMMA.16832.F32.f8f6f4type.f8f6f4type", 25),
        ("rtx_blackwell", "QMMA.16832.F32.F8TYPE.f8f6f4type", 10),
        ("blackwell", "UTCOMMA.4X", 2),
        ("cdna3", "v_mfma_f32_16x16x32", 4),
        ("cdna3", "f32_16x16x32", 4),
        ("hopper", "", 32),
        ("hopper", "QMMA", 0),
        ("hopper", "GMMA", 0),
        ("hopper", "HMMA?16816?F32", 1),
    ],
)
def test_patterns_and_beginnings(architecture: str, pattern: str, found: int) -> None:
    assert len(ARCHITECTURES[architecture].find(pattern)) == found


def test_a_beginning_is_no_name() -> None:
    assert "HMMA" not in hopper
    with pytest.raises(UnknownInstructionError) as caught:
        hopper["HMMA"]
    (line,) = str(caught.value).splitlines()
    assert line == (
        "hopper has no instruction 'HMMA'. Nearest on hopper: HMMA.1688.F32, HMMA.1688.F16, HMMA.16816.F32, "
        "HMMA.16816.F16, … (8 start so)."
    )


def test_matching_over_all_architectures() -> None:
    assert {i.architecture for i in matching("DMMA*")} == {
        "ampere",
        "ada",
        "hopper",
        "blackwell",
        "rtx_blackwell",
    }
    with pytest.raises(
        UnknownInstructionError,
        match=r"no architecture and no instruction is called 'HHGMMA.* nearest: HGMMA",
    ):
        matching("HHGMMA.64x8x16.F32")


# ---- list and show ---------------------------------------------------------------------------------------------------


def names_in_the_table() -> list[tuple[str, str]]:
    """(architecture, name) for each cell of `mmaformal list` that says what an instruction does."""
    names, head = [], []
    for line in instruction_tables().splitlines():
        cells = re.split(r"\s{2,}", line.strip())
        if cells[0] == "instruction":
            head = cells
        elif head and len(cells) == len(head) and not cells[0].startswith("-"):
            names += [(head[i], cells[0]) for i in range(1, len(cells)) if cells[i] != "–"]
    return names


def test_every_name_that_list_prints_is_taken_by_show(capsys: pytest.CaptureFixture[str]) -> None:
    names = names_in_the_table()
    assert len(names) > 150
    covered: set[str] = set()
    for architecture, name in names:
        found = ARCHITECTURES[architecture].find(name)
        assert found, f"{architecture} {name}"
        covered |= {i.label for i in found}
        if "type" in name:
            assert run(capsys, "show", architecture, name)[0] == 0
    assert covered == {i.label for i in EVERY}
    for i in EVERY:
        assert ARCHITECTURES[i.architecture].find(i.name) == (i,)


def test_show_lists_what_a_beginning_means(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, err = run(capsys, "show", "Hopper", "hmma")
    assert (status, err) == (0, "")
    assert [line.split()[0] for line in out.splitlines() if line.startswith("HMMA")] == list(hopper.keys())[
        :8
    ]
    several = json.loads(run(capsys, "show", "hopper", "hmma", "--json")[1])
    assert [each["name"] for each in several] == list(hopper.keys())[:8]
    assert (
        json.loads(run(capsys, "show", "HOPPER", "hgmma.64x8x16.f16", "--json")[1])["name"]
        == "HGMMA.64x8x16.F16"
    )
    status, out, err = run(capsys, "show", "hopper", "QMMA")
    assert (status, out) == (2, "")
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("words", "names"),
    [
        (["QGMMA*"], ["hopper"]),
        (["hmma.884"], ["turing", "volta"]),
        (["hopper", "QGMMA*"], ["hopper"]),
        (["Hopper@Paper-v1", "QGMMA"], ["hopper@paper-v1"]),
        (["CDNA1"], ["cdna1"]),
    ],
)
def test_list_takes_patterns(words: list[str], names: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    listed = json.loads(run(capsys, "list", *words, "--json")[1])
    assert sorted({each["architecture"] for each in listed}) == names
    status, out, err = run(capsys, "list", *words)
    assert (status, err) == (0, "")
    assert all(each["name"] in out for each in listed)


def test_list_names_the_revisions(capsys: pytest.CaptureFixture[str]) -> None:
    out = run(capsys, "list")[1]
    for architecture in ARCHITECTURES.values():
        for revision in architecture.revisions:
            assert f"{architecture.name}@{revision}" in out
            assert f"{architecture.name}@{revision}" in run(capsys, "list", architecture.name)[1]


@pytest.mark.parametrize("words", [["hoper"], ["hopper", "QMMA"], ["nothing*"], ["hoper", "HMMA"]])
def test_what_is_not_there_is_a_line(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    status, out, err = run(capsys, "list", *words)
    assert (status, out) == (2, "")
    assert err.count("\n") == 1


def test_every_model_is_told_in_words() -> None:
    for i in [*EVERY, *ARCHITECTURES["cdna3@paper-v1"], *ARCHITECTURES["hopper@paper-v1"]]:
        text = told(i)
        assert "seed" not in text
        assert "no source recorded" not in text
        lines = text.splitlines()
        assert any(line.startswith("  accumulator:") for line in lines[:6]), i.label
        assert max(map(len, (line for line in lines if " order = " not in line and "," not in line))) <= 80
        once = " ".join(text.split())
        for name in i.parameters:
            assert re.search(rf" {name} = [^:]+: [(\w]", once), f"{i.label} does not say what {name} is"
        for short, title in PAPERS.items():
            assert (title in once) == any(short in source for source in i.sources.values())


def test_what_is_kept_is_told_first() -> None:
    def first(i: Instruction) -> str:
        return " ".join(accumulator_in_words(i.spec))

    assert first(hopper["HMMA.16816.F32"]).startswith(
        "keeps 25 fractional bits below the largest term of a step"
    )
    assert "takes 32 bits and a sign: 27 of one term, 5 for carries" in first(hopper["HMMA.16816.F32"])
    assert "keeps 13 fractional bits" in first(hopper["QGMMA.64x8x32.F32.E4M3.E4M3"])
    assert "rounded to fp64 (53 significant bits)" in first(hopper["DMMA.884"])
    assert "no wide accumulator" in first(cdna2["f32_4x4x4f16"])
    assert "the sum of 4 products and c is exact" in first(cdna1["f32_4x4x4f16"])
    assert "of its group" in first(cdna3["f32_16x16x32_fp8_fp8"])
    assert "sum_bits = not cut" in told(ARCHITECTURES["cdna3@paper-v1"]["f32_16x16x16_f16"])
    assert "sum_bits=uncut" in str(ARCHITECTURES["cdna3@paper-v1"]["f32_16x16x16_f16"])


def smallest() -> list[DotAdd]:
    """For each algorithm and types of operands the specification of fewest products per step, and that step alone."""
    found: dict[Any, DotAdd] = {}
    for i in EVERY:
        s, p = i.spec, i.parameters
        if s.scale_format is None:
            s = s.in_order.replace(k=p.step_products)
        if s.k > 16 and p.algorithm != "gdfs":
            continue
        key = p.algorithm, s.a_format, s.c_format, s.scale_format
        if key not in found or s.k < found[key].k:
            found[key] = s
    return list(found.values())


@pytest.mark.parametrize("spec", smallest(), ids=lambda s: f"{s.parameters.algorithm} {s.types}")
def test_the_widths_told_are_those_that_are_proved(spec: DotAdd) -> None:
    """`accumulator-width` proves of these bounds that they hold and that no fewer bits do."""
    width = sum_width(spec)
    if width is None:
        assert spec.parameters.algorithm in (
            "sfma",
            "wfma",
            "gps",
            "efda",
            "ffma",
            "oddsum",
            "rnd2",
            "dpa_e9s12",
            "acc_e9s12",
        )
        return
    x = symbolic_inputs(spec)
    step = smt.dot_add(spec, x.a, x.b, x.c, x.scale_a, x.scale_b).steps[0]
    first = facts_of(spec).sums(spec, step)[0]
    bounds, carry = first.bounds, accumulator_width.carry_bits(first)
    assert width == SumWidth(max(bounds).bit_length(), sum(bounds).bit_length())
    assert width.carry == carry


# ---- prove and check ------------------------------------------------------------------------------------------


def test_prove_takes_a_name() -> None:
    i = volta["HMMA.884.F16.F16"]
    answer = mmaformal.prove("Lossless_Width", i)
    assert isinstance(answer, Fails)
    assert answer.number is not None
    assert (answer.number.name, answer.number.value) == ("F", lossless_width_of(fp16, fp16, fp16).F)
    assert type(mmaformal.prove(PROPERTIES["lossless-width"], i)) is Fails
    with pytest.raises(ValueError, match="no property 'losless-width'; there are lossless-width"):
        mmaformal.prove("losless-width", i)
    assert mmaformal.prove("lossless-width", "v100 HMMA.884.F16.F16").question == answer.question
    with pytest.raises(KeyError, match="hopper has no instruction 'HMMA'"):
        mmaformal.prove("lossless-width", "hopper HMMA")
    with pytest.raises(TypeError, match=r"expected an Instruction or its name .* not int"):
        mmaformal.prove("lossless-width", 884)  # type: ignore[arg-type]


def test_an_answer_has_its_numbers() -> None:
    answer = mmaformal.prove("accumulator-width", volta["HMMA.884.F32.F32"].replace(k=1, L=1))
    assert isinstance(answer, Holds)
    assert [(each.name, each.value) for each in answer.numbers] == [
        ("carry bits", 1),
        ("term bits", 25),
        ("sum bits", 26),
    ]
    assert "1 carry bits" in str(answer).splitlines()[0]


def test_check_takes_patterns_and_folders(tmp_path: Path) -> None:
    i = ampere["HMMA.16816.F32"]
    rng = np.random.default_rng(0)
    a, b = (rng.integers(0, 1 << 16, (20, 16), np.uint16) for _ in range(2))
    c = rng.integers(0, 1 << 32, 20, np.uint32)
    meta = {"architecture": "ampere", "instruction": i.name, "ptx": None, "gpu": "none", "terms": 16}
    meta |= {"input_format": "fp16", "output_format": "fp32"}
    for name, flip in (("right", 0), ("wrong", 1)):
        d = i.dot_add(a, b, c) ^ np.uint32(flip)
        np.savez(tmp_path / f"{name}.npz", a=a, b=b, c=c, d=d, meta=json.dumps(meta))
    every = mmaformal.check(tmp_path)
    assert [each.path.name for each in every] == ["right.npz", "wrong.npz"]
    assert every.summary == "2 files: 1 matches, 1 does not match"
    assert (every.matches, every.exit_code) == (False, 1)
    assert [row["mismatches"] for row in every.rows()] == [0, 20]
    assert "smallest mismatching row" in str(every)
    right = mmaformal.check(str(tmp_path / "r*.npz"))
    assert (len(right), right.matches, right.exit_code) == (1, True, 0)
    assert mmaformal.check([tmp_path / "right.npz"])[0].to_json() == right[0].to_json()
    assert not mmaformal.check(tmp_path / "right.npz", replace={"F": 10}).matches
    assert mmaformal.check(tmp_path / "none.npz").summary == "1 file: 1 could not be checked"
    with pytest.raises(FileNotFoundError, match="no file matches"):
        mmaformal.check(str(tmp_path / "x*.npz"))
    (tmp_path / "empty").mkdir()
    with pytest.raises(FileNotFoundError, match="has no recordings"):
        mmaformal.check(tmp_path / "empty")
