"""apple_amx: dot product-adds of one lane of Z, against recordings, the state, other units, and what is proved."""

from __future__ import annotations

import numpy as np
import pytest
from support.recorded import SHARED

from mmaformal import ampere, apple_amx, cdna3, find_difference, matmul
from mmaformal.apple import AmxOperand, AmxState, execute
from mmaformal.cases.generate import generate
from mmaformal.cases.inputs import Rows
from mmaformal.cases.run import both_results
from mmaformal.formats import bf16, fp16, fp32
from mmaformal.instruction import Instruction
from mmaformal.queries.verify import verify
from mmaformal.shown_stages import explain_case
from mmaformal.solver.answers import Different, Equal, Holds

HALF = SHARED / "processors" / "emr_vfmadd231ph.npz"
NAMES = ("fma16", "fma16.F32", "fma32", "fma64")


def lane_of_z(i: Instruction, a: int, b: int, c: int) -> int:
    """d by the instruction that acts on a state: lane 0 of X and Y, element 0 of row 0."""
    size, wide = i.a_format.storage_bits // 8, i.d_format.storage_bits // 8
    x, y, z = a.to_bytes(size, "little"), b.to_bytes(size, "little"), c.to_bytes(wide, "little")
    state = AmxState(x.ljust(512, b"\0"), y.ljust(512, b"\0"), z.ljust(4096, b"\0"))
    name, _, onto = i.name.partition(".")
    after = execute(state, name, AmxOperand(z_f32=int(onto == "F32")))
    return int.from_bytes(after.z[:wide], "little")


@pytest.mark.parametrize("name", NAMES)
def test_a_dot_product_add_is_what_the_instruction_makes_of_one_lane(name: str) -> None:
    i = apple_amx[name]
    cases = generate(i.spec, 12).cases()
    for codes, (mine, other) in zip(cases, both_results(i.spec, Rows.of(cases)), strict=True):
        assert mine == other == lane_of_z(i, codes.a[0], codes.b[0], codes.c)


@pytest.mark.skipif(not HALF.exists(), reason=f"no {HALF.name}")
def test_fma16_is_the_fma_of_another_processor_but_for_its_nans() -> None:
    with np.load(HALF) as d:
        a, b, c, expected = (d[name] for name in "abcd")
    found = apple_amx["fma16"].dot_add(a, b, c)
    nan = (expected & 0x7FFF) > 0x7C00
    assert len(expected) == 6016
    np.testing.assert_array_equal(found[~nan], expected[~nan])
    assert set(found[nan].tolist()) == {0x7E00}


@pytest.mark.parametrize("name", NAMES)
def test_kernels_are_the_executable_encoding(name: str) -> None:
    i = apple_amx[name].chained(5)
    rows = generate(i.spec, 60).cases()
    a = np.array([codes.a for codes in rows], i.a_format.word)
    b = np.array([codes.b for codes in rows], i.b_format.word).T
    c = np.array([[codes.c] * len(rows) for codes in rows], i.c_format.word)
    found = matmul(a, b, c, instruction=i)
    expected = i.dot_add(a[:, None, :], b.T[None, :, :], c)
    np.testing.assert_array_equal(found, expected)


def test_factors_of_bf16_are_widened_too() -> None:
    i = apple_amx["fma16.F32"].replace(a_format=bf16, b_format=bf16)
    cases = generate(i.spec, 50).cases()
    for codes, (mine, other) in zip(cases, both_results(i.spec, Rows.of(cases)), strict=True):
        wide = apple_amx["fma32"].dot_add([codes.a[0] << 16], [codes.b[0] << 16], codes.c)
        assert mine == other == int(wide)
    with pytest.raises(ValueError, match="a and b that fp32 holds"):
        i.replace(a_format=fp32, b_format=fp16)


def test_a_chain_is_told_step_by_step() -> None:
    told = explain_case(apple_amx["fma16.F32"].chained(2), [0x3C00, 0x4000], [0x3C00, 0x3C00], 0x3F800000)
    assert told.count("multiply") == 2
    assert "0x40800000" in told


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_both_encodings_are_equal(name: str) -> None:
    assert isinstance(verify(apple_amx[name], timeout=600.0), Holds)


@pytest.mark.slow
def test_fp32_and_fp64_are_other_units_chains_and_fp16_is_none() -> None:
    cdna, dmma = cdna3["v_mfma_f32_16x16x4_f32"], ampere["DMMA.884"]
    assert isinstance(find_difference(apple_amx["fma32"].chained(4), cdna, timeout=300.0), Equal)
    assert isinstance(find_difference(apple_amx["fma64"].chained(4), dmma, timeout=900.0), Equal)
    wide = apple_amx["fma16.F32"].chained(8)
    assert isinstance(find_difference(wide, ampere["HMMA.1688.F32"], timeout=300.0), Different)
