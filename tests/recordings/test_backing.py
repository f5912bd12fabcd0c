"""The backing of each model: the facts are those of the recordings and of the comparison with mmasim."""

from __future__ import annotations

import json
from importlib.resources import files
from pathlib import Path

import evidence
import pytest
from support.recorded import FILES, SHARED

from mmaformal import (
    ARCHITECTURES,
    ampere,
    blackwell,
    cdna1,
    cdna3,
    cli,
    hopper,
    power10,
    riscv,
    sme,
    turing,
)
from mmaformal.listing import instruction_in_words
from mmaformal.recordings.backing import EMULATOR, FILE, NONE, SPECIFICATION, backing, backing_page

ROOT = Path(__file__).parents[2]
FACTS = json.loads((files("mmaformal.recordings") / FILE).read_text(encoding="utf-8"))


@pytest.mark.skipif(not FILES, reason="no ../shared/recordings beside this checkout")
def test_the_facts_are_those_of_the_recordings() -> None:
    assert [evidence.measured(path) for path in FILES] == FACTS["recordings"]


def test_the_facts_are_those_of_the_comparison_with_mmasim() -> None:
    text = (ROOT / "tables" / "validation-mmasim.md").read_text(encoding="utf-8")
    assert evidence.of_mmasim(text) == FACTS["mmasim"]
    assert len(FACTS["mmasim"]) == 316
    with pytest.raises(ValueError, match=r"mmasim disagrees with volta HMMA\.884\.F32\.F32"):
        evidence.of_mmasim(text.replace("| 100,005 | 0 |", "| 100,005 | 3 |", 1))


def test_the_page_is_the_facts() -> None:
    assert (ROOT / "tables" / "evidence.md").read_text(encoding="utf-8") == backing_page()


def test_every_row_of_the_tables_has_a_line() -> None:
    for architecture in ARCHITECTURES.values():
        for instruction in architecture:
            backed = backing(instruction)
            assert backed is not None
            assert bool(backed.recorded) == any(
                each["instruction"] == instruction.label for each in FACTS["recordings"]
            )
            assert backed.kind != NONE, instruction.label
            if backed.kind in (EMULATOR, SPECIFICATION):
                assert backed.whose, "whose emulator or text it is"
            else:
                assert backed.recorded or backed.alike or backed.mmasim, instruction.label
            said = " ".join(instruction_in_words(instruction).split())
            assert f"evidence: {backed.text()}" in said


def text(instruction: object) -> str:
    backed = backing(instruction)  # type: ignore[arg-type]
    assert backed is not None
    return backed.text()


def test_what_is_said() -> None:
    a100 = "recorded outputs, all reproduced: A100, 3,000 rows, 8 of 16 products, the first of 2 steps only"
    assert text(ampere["HMMA.16816.F32"]).startswith(a100)
    assert text(hopper["HGMMA.64x128x16.F32"]).startswith(
        "none recorded; taken to be like hopper HMMA.16816.F32;"
    )
    assert text(turing["HMMA.884.F16.F16"]).startswith(
        "none recorded; taken to be like volta HMMA.884.F16.F16;"
    )
    lowered = blackwell["mma.m16n8k32.f32.e5m2.e5m2.f32"]
    assert text(lowered).startswith(
        "none recorded; taken to be like blackwell mma.m16n8k32.f32.e4m3.e4m3.f32; mmasim"
    )
    assert (
        text(cdna3["f32_16x16x16_f16"])
        == "no recorded output; mmasim 2.1.1 agrees on 100,005 dot product-adds"
    )
    assert "mmasim 2.1.1, whose authors had no such GPU, agrees" in text(cdna1["f32_4x4x4f16"])


def test_what_a_simulator_gave_is_not_hardware() -> None:
    """Nothing of these three exists to be had but code that imitates them."""
    for architecture in (power10, riscv, sme):
        for instruction in architecture:
            backed = backing(instruction)
            assert backed is not None
            texts = SPECIFICATION if instruction.name.startswith("vfbdota") else EMULATOR
            assert backed.kind == texts, instruction.label


@pytest.mark.skipif(not FILES, reason="no ../shared/recordings beside this checkout")
def test_check_says_in_each_line_what_is_no_hardware(capsys: pytest.CaptureFixture[str]) -> None:
    files_ = [SHARED / "h100_fp16_fp32.npz", SHARED / "emulators" / "rvbna_bf16_n4.npz"]
    assert cli.main(["check", *map(str, files_)]) == 0
    hardware, emulated, _ = capsys.readouterr().out.splitlines()
    assert hardware.endswith("0 mismatches (0.0%)")
    assert emulated.endswith("(behind the model: emulator: Spike, by RISC-V International)")


def test_what_is_no_row_has_none() -> None:
    h = hopper["HMMA.16816.F32"]
    for other in (h.replace(F=24), h.chained(32), hopper.revision("paper-v1")["HMMA.16816.F32"]):
        assert backing(other) is None
        assert "evidence:" not in instruction_in_words(other)
