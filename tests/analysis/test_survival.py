"""Bits that survive beside a larger term, as the model of each unit says they do."""

from __future__ import annotations

import pytest

from mmaformal import cdna1, hopper, power10, volta
from mmaformal.instruction import Instruction
from mmaformal.survival import survival


@pytest.mark.parametrize(
    "instruction",
    [
        volta["HMMA.884.F32.F32"],
        hopper["HMMA.16816.F32"],
        hopper["HGMMA.64x8x8.F32.TF32"],
        hopper["QGMMA.64x8x32.F32.E4M3.E4M3"],
        hopper["QGMMA.64x8x32.F32.E4M3.E4M3"].replace(F=7),
    ],
    ids=lambda i: f"{i.label}, F={i.parameters.F}",
)
def test_fused_sums_keep_F_places_below_the_larger_term(instruction: Instruction) -> None:
    found, F = survival(instruction.spec), instruction.parameters["F"]
    assert found is not None
    assert found.bits == instruction.a_format.fraction_bits + 1
    assert list(found.kept) == [min(found.bits, max(0, F - n + 1)) for n in range(len(found.kept))]
    assert found.kept[-2:] == (0, 0)


def test_exact_sums_lose_nothing_and_negated_products_have_no_such_curve() -> None:
    found = survival(cdna1["v_mfma_f32_32x32x8f16"].spec)
    assert found is not None
    assert set(found.kept) == {found.bits}
    assert survival(power10["XVF16GER2NP"].spec) is None


def test_ranges_are_told_in_words() -> None:
    found = survival(hopper["QGMMA.64x8x32.F32.E4M3.E4M3"].spec)
    assert found is not None
    assert found.in_words == "0–10: 4; 11: 3; 12: 2; 13: 1; 14–15: 0"
