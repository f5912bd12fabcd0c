"""Products made by a known structure are diagnosed as that, and as nothing else; wrong ones as nothing."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import z3
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from support.commands import run
from support.recorded import SHARED, save
from support.slow import slow

from mmaformal import (
    Structure,
    ampere,
    apple_amx,
    armv8_6,
    cdna1,
    diagnose_gemm,
    hopper,
    replay,
    sapphire_rapids,
)
from mmaformal.architectures.datapaths import mul_add
from mmaformal.encodings.pfma import smt as smt_pfma
from mmaformal.facts import last_addition
from mmaformal.formats import Format, bf16, fp16, fp32, fp64, tf32
from mmaformal.instruction import Instruction
from mmaformal.proof.lemmas import LazyPortfolio
from mmaformal.queries import structure_classes
from mmaformal.queries.structure_classes import ORDERS, StructureClasses, additions, same_but_for_nans
from mmaformal.queries.structure_search import LANES, chained_ones
from mmaformal.recorder.library import LibraryCall, draw_factors
from mmaformal.recordings.products import read_product
from mmaformal.solver.answers import Unknown
from mmaformal.solver.asking import Asker

AMX = sapphire_rapids["TDPBF16PS"]
HMMA = hopper["HMMA.16816.F32.BF16"]
DMMA = ampere["DMMA.884"]
FMA = cdna1["v_mfma_f32_32x32x1f32"]
TYPES = {"a_format": "bf16", "b_format": "bf16"}


FILES = sorted((SHARED / "gemm").glob("emr_torch_bf16_*.npz"))


def operands(M: int, K: int, N: int, seed: int = 1) -> tuple[NDArray[np.uint16], NDArray[np.uint16]]:
    """Half of the products are the others' opposites, shuffled: what is left is rounding errors, and all of D."""
    random = np.random.default_rng(seed)
    a, b = (
        (random.integers(0, 2, n) << 15) | random.integers(0x3E00, 0x4100, n)
        for n in ((M, K // 2), (K // 2, N))
    )
    order = random.permutation(K)
    a, b = np.concatenate([a, a], 1)[:, order], np.concatenate([b, b ^ 0x8000])[order]
    return a.astype(np.uint16), b.astype(np.uint16)


@pytest.mark.parametrize(
    "structure",
    [
        Structure(AMX, d_format=bf16),
        Structure(AMX, 96, d_format=bf16),
        Structure(AMX, 96, halved=32, d_format=bf16),
        Structure(AMX, 64, order="pairwise", d_format=bf16),
        Structure(AMX, lanes=4, order="halves", d_format=bf16),
        Structure(HMMA, 32, d_format=bf16),
        Structure(HMMA, d_format=bf16),
    ],
    ids=str,
)
def test_what_made_it_is_found(structure: Structure) -> None:
    a, b = operands(12, 256, 12)
    d = replay(a, b, structure)
    found = diagnose_gemm(a, b, d, d_format="bf16", instructions=[AMX, HMMA], **TYPES)
    (kept,) = found.structures
    assert kept == structure or structure in [each.structure for each in found.same]
    assert all(each.proof is not None or "the same additions" in each.why for each in found.same)
    assert (replay(a, b, kept) == d).all()


def test_sums_of_fp64_are_added_in_fp64() -> None:
    a, b = draw_factors(LibraryCall(fp64, (6, 24, 6)), np.random.default_rng(0))
    for structure in (Structure(DMMA, total=fp64), Structure(DMMA, 8, total=fp64)):
        d = replay(a, b, structure)
        found = diagnose_gemm(a, b, d, a_format="fp64", b_format="fp64", d_format="fp64", instructions=[DMMA])
        assert {(each.block, each.total) for each in found.structures} == {(structure.block, fp64)}


def test_one_wrong_element_is_explained_by_nothing_and_named() -> None:
    a, b = operands(6, 96, 6)
    d = replay(a, b, Structure(AMX, d_format=bf16))
    d[3, 4] ^= 1
    found = diagnose_gemm(a, b, d, d_format="bf16", instructions=[AMX], **TYPES)
    assert not found
    nearest = found.nearest[0]
    assert (nearest.wrong, nearest.row, nearest.column) == (1, 3, 4)
    assert nearest.recorded == nearest.gives ^ 1
    assert "1 element wrong" in str(found)
    assert "nothing tried explains all 36 elements" in str(found)


def test_designs_on_paper_make_no_product() -> None:
    a, b = draw_factors(LibraryCall(fp32, (2, 4, 2)), np.random.default_rng(0))
    d = replay(a, b, Structure(FMA))
    found = diagnose_gemm(a, b, d, a_format="fp32", b_format="fp32", d_format="fp32", timeout=1)
    assert FMA in found.instructions
    assert [i.architecture for i in found.instructions] == ["cdna1", "datapath"]  # an fma; multiply, then add


def floats(M: int, K: int, N: int, fmt: Format, seed: int = 0) -> tuple[NDArray[Any], NDArray[Any]]:
    """Small integers, whose products and sums are exact in whatever order, so that everything explains them."""
    rng = np.random.default_rng(seed)
    codes = np.array([fmt.code(x) for x in ("1", "2", "-1")], fmt.word)
    return codes[rng.integers(0, 3, (M, K))], codes[rng.integers(0, 3, (K, N))]


@given(
    st.sampled_from(
        [(bf16, bf16), (bf16, fp32), (fp16, fp16), (fp16, fp32), (fp32, fp32), (fp64, fp64), (tf32, fp32)]
    ),
    *(st.integers(1, n) for n in (3, 9, 3)),
)
@settings(max_examples=12, deadline=None)
def test_small_products_are_explained_by_many_and_crash_nothing(
    formats: tuple[Format, Format], M: int, K: int, N: int
) -> None:
    fmt, d_format = formats
    a, b = floats(M, K, N, fmt)
    units = [i for arch in (cdna1, apple_amx, sapphire_rapids, armv8_6, hopper, ampere) for i in arch]
    first = next(i for i in units if chained_ones([i], fmt, fmt, d_format))
    d = replay(a, b, Structure(first, total=fp64 if fmt == fp64 else fp32, d_format=d_format))
    types = {"a_format": fmt, "b_format": fmt, "d_format": d_format}
    found = diagnose_gemm(a, b, d, instructions=units, timeout=1, **types)
    assert found.structures
    assert str(found)
    assert json.dumps(found.to_json())


def test_a_thousand_blocks_are_compared_without_recursion() -> None:
    """A tree of one product each, added in order, is as deep as it has leaves."""
    exact = [Structure(FMA, FMA.k), Structure(FMA, FMA.k, halved=2 * FMA.k)]
    with LazyPortfolio() as portfolio:
        classes = StructureClasses(exact, 1200 * FMA.k, Asker(portfolio, 10))
        classes.find()
    assert classes.kept == exact[:1]


def test_units_of_ieee_fma_are_one_answer_by_its_plain_name() -> None:
    a, b = draw_factors(LibraryCall(fp32, (6, 24, 6)), np.random.default_rng(0))
    units = [FMA, apple_amx["fma32"]]
    d = replay(a, b, Structure(FMA, 8))
    types = {"a_format": "fp32", "b_format": "fp32", "d_format": "fp32"}
    found = diagnose_gemm(a, b, d, instructions=units, **types)
    (structure,) = found.structures
    assert "each a chain of IEEE fma" in found.summary
    assert "units of cdna1, cdna2, cdna3," in str(found)
    (same,) = [each for each in found.same if each.structure.instruction != structure.instruction]
    assert same.proof is not None
    assert {same.structure.instruction, structure.instruction} == set(units)


@pytest.mark.slow
def test_exact_products_that_are_added_are_an_fma() -> None:
    """A product of two fp16 numbers is exact in fp32, so that rounding it first changes nothing."""
    a, b = draw_factors(LibraryCall(fp16, (6, 24, 6)), np.random.default_rng(0))
    units = [mul_add(k=1, a="fp16"), apple_amx["fma16.F32"]]
    d = replay(a, b, Structure(units[0], 8))
    types = {"a_format": "fp16", "b_format": "fp16", "d_format": "fp32"}
    found = diagnose_gemm(a, b, d, instructions=units, **types)
    (structure,) = found.structures
    others = [each for each in found.same if each.structure.instruction != structure.instruction]
    assert others
    assert all(each.proof is not None for each in others)


def test_more_time_is_given_where_one_exact_sum_is_rounded(monkeypatch: pytest.MonkeyPatch) -> None:
    limits = []

    def asked(x: Instruction, y: Instruction, timeout: float, **_: object) -> Unknown:
        limits.append(timeout)
        return Unknown("", "", (), 0.0)

    monkeypatch.setattr(structure_classes, "find_difference", asked)
    fma, exact, rounded = (
        i.spec
        for i in (
            apple_amx["fma16.F32"],
            *(mul_add(k=1, a="fp16", product=x) for x in ("IEEE-FP32", "RNE-E8M10")),
        )
    )
    with LazyPortfolio() as portfolio:
        for other in (exact, rounded):
            monkeypatch.setattr(structure_classes, "_differ_somewhere", lambda *_: False)
            assert structure_classes.steps_equal(fma, other, Asker(portfolio, 1000)) is None
    assert limits == [150, 30]


@pytest.mark.parametrize(
    ("x", "y"), [(apple_amx["fma16"], sapphire_rapids["VFMADD231PH"]), (DMMA, apple_amx["fma64"])], ids=str
)
def test_fmas_that_differ_in_their_nans_are_proved_the_same(x: Instruction, y: Instruction) -> None:
    with LazyPortfolio() as portfolio:
        assert same_but_for_nans(x.spec.replace(k=1), y.spec.replace(k=1), Asker(portfolio, 60)) is not None


def test_fmas_that_round_otherwise_are_not() -> None:
    spec = apple_amx["fma16"].spec
    with LazyPortfolio() as portfolio:
        assert same_but_for_nans(spec, spec.replace(rho="RZ-FP16±0"), Asker(portfolio, 60)) is None


def test_no_answer_is_later_than_its_limit() -> None:
    a, b = operands(64, 2048, 64)
    start = time.monotonic()
    found = diagnose_gemm(a, b, np.zeros((64, 64), np.uint16), d_format="bf16", timeout=1, **TYPES)
    assert time.monotonic() - start < 3
    assert not found.complete
    assert "the time was up" in str(found)


def test_a_nan_is_any_nan() -> None:
    a, b = operands(4, 64, 4)
    a[1, 5], b[5, 2] = 0x7F80, 0  # ∞ · 0
    d = replay(a, b, Structure(AMX, d_format=bf16))
    d[1, 2] = 0xFFC1
    assert diagnose_gemm(a, b, d, d_format="bf16", instructions=[AMX], **TYPES).structures


# ---- structures that are one function ----------------------------------------------------------------------------


def settled() -> last_addition.LastAddition | None:
    with LazyPortfolio() as portfolio:
        return last_addition.of_flushed_pairs(Asker(portfolio, 60), AMX.spec)


def test_an_amx_instruction_adds_c_last() -> None:
    found = settled()
    assert found is not None
    assert found.proof.obligations


def test_not_where_sums_are_subnormal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(last_addition, "subnormal", lambda code: z3.BoolVal(False))
    assert settled() is None


def test_not_to_the_sign_of_a_zero(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(last_addition, "like", lambda x, y: x == y)
    assert settled() is None


def test_not_if_c_went_in_first(monkeypatch: pytest.MonkeyPatch) -> None:
    step = smt_pfma.step

    def c_first(spec: Any, a: Any, b: Any, c: z3.BitVecRef, stages: Any) -> smt_pfma.PfmaStep:
        first = step(spec, a, b, c, stages)
        rule = spec.parameters.nan
        _, result = smt_pfma.add(c, smt_pfma.add(c, first.sum, stages, rule)[1], stages, rule)
        return smt_pfma.PfmaStep(first.fmas, first.pair, first.sum, c, first.addition, result)

    monkeypatch.setattr(smt_pfma, "step", c_first)
    assert settled() is None


@pytest.mark.parametrize("steps", range(1, 9))
def test_structures_that_add_alike_give_the_same(steps: int) -> None:
    """All structures of up to eight instructions, on sums none of which is subnormal."""
    a, b = operands(12, steps * 32, 12, seed=steps)
    by_tree: dict[int, list[bytes]] = {}
    numbers: dict[tuple[int, int], int] = {}
    for order in ORDERS:
        for block, lanes in [*((32 * n, 1) for n in range(1, steps + 1)), *((None, n) for n in (1, *LANES))]:
            structure = Structure(AMX, block, lanes, order=order)
            d = replay(a, b, structure)
            by_tree.setdefault(additions(structure, steps * 32, numbers), []).append(
                (d & 0x7FFFFFFF).tobytes()
            )
    assert all(len(set(same)) == 1 for same in by_tree.values())
    assert len({same[0] for same in by_tree.values()}) == len(by_tree)


# ---- recordings ------------------------------------------------------------------------------------------------------


@pytest.mark.skipif(not FILES, reason="no ../shared/recordings beside this checkout")
@pytest.mark.parametrize("path", slow(FILES, FILES[2:]), ids=lambda path: path.stem)
def test_products_by_a_library_are_explained_by_one_structure(path: Path) -> None:
    x = read_product(path)
    found = diagnose_gemm(x.A, x.B, x.D, d_format="bf16", instructions=[AMX], **TYPES)
    (structure,) = found.structures
    assert (replay(x.A, x.B, structure) == x.D).all()
    assert structure.block == {"b": 2048, "d": 1024}.get(path.stem[-1])


@pytest.mark.skipif(not FILES, reason="no ../shared/recordings beside this checkout")
@pytest.mark.parametrize("units", [[FMA], [FMA, apple_amx["fma32"]]])
def test_the_fp32_product_is_blocks_whose_last_two_are_even(units: list[Instruction]) -> None:
    """By MKL: 384, 320 and 320 of 1024 products.  Of fmas, whichever instruction is one."""
    x = read_product(SHARED / "gemm" / "emr_torch_fp32_a.npz")
    types = {"a_format": "fp32", "b_format": "fp32", "d_format": "fp32"}
    found = diagnose_gemm(x.A, x.B, x.D, instructions=units, **types)
    (structure,) = found.structures
    assert (structure.block, [sum(map(len, chain)) for chain in structure.chains(1024)]) == (
        384,
        [384, 320, 320],
    )
    assert (replay(x.A, x.B, structure) == x.D).all()
    assert {structure.instruction, *(each.structure.instruction for each in found.same)} == set(units)


@pytest.mark.slow
@pytest.mark.skipif(not FILES, reason="no ../shared/recordings beside this checkout")
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_and_by_no_other_instruction(path: Path) -> None:
    x = read_product(path)
    (structure,) = diagnose_gemm(x.A, x.B, x.D, d_format="bf16", **TYPES).structures
    assert structure.instruction == AMX


# ---- files and the command -------------------------------------------------------------------------------------------


def product_file(folder: Path, **changes: Any) -> Path:
    a, b = operands(4, 32, 4)
    meta = TYPES | {"d_format": "bf16", "library": "a test"}
    arrays = {"A": a, "B": b, "D": replay(a, b, Structure(AMX, d_format=bf16)), "meta": meta}
    return save(folder / "product.npz", arrays | changes)


def test_the_command_tells_the_structure(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    a, b = operands(24, 32, 24)  # so many, that no chain of VDPBF16PS gives them all
    path = str(product_file(tmp_path, A=a, B=b, D=replay(a, b, Structure(AMX, d_format=bf16))))
    status, out, _ = run(capsys, "diagnose-gemm", path, "--arch", "sapphire_rapids")
    assert status == 0
    assert out.splitlines()[0] == "product.npz (a test)"
    assert "a chain of sapphire_rapids TDPBF16PS over K, 32 at a time" in out.splitlines()[1]
    status, out, _ = run(capsys, "diagnose-gemm", path, "--arch", "sapphire_rapids", "--json")
    (told,) = json.loads(out)
    assert told["explained"]
    assert told["structures"][0]["instruction"] == "TDPBF16PS"


def test_the_command_says_that_nothing_explains_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = str(product_file(tmp_path, D=np.full((4, 4), 0x4049, np.uint16)))
    status, out, _ = run(capsys, "diagnose-gemm", path, "--arch", "sapphire_rapids")
    assert status == 1
    assert "nothing tried explains all 16 elements" in out


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"D": np.zeros((4, 5), np.uint16)}, "M×K, K×N and M×N are needed"),
        ({"A": np.zeros((4, 32), np.float32)}, "A is float32, but bf16 bit patterns are uint16"),
        ({"A": np.zeros((0, 32), np.uint16)}, "a matrix with elements is needed"),
        ({"meta": {"a_format": "bf16", "b_format": "bf16"}}, "meta lacks 'd_format'"),
        (
            {"meta": {"a_format": "bf17", "b_format": "bf16", "d_format": "bf16"}},
            "meta has 'a_format': 'bf17'",
        ),
    ],
)
def test_a_file_that_is_none(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], changes: dict[str, Any], said: str
) -> None:
    status, _, err = run(capsys, "diagnose-gemm", str(product_file(tmp_path, **changes)))
    assert status == 2
    assert said in err
    assert len(err.splitlines()) == 1


def test_types_that_no_instruction_takes() -> None:
    zeros = np.zeros((2, 2), np.uint16)
    with pytest.raises(ValueError, match="no instruction chains bf16 × fp16"):
        diagnose_gemm(zeros, zeros, zeros, a_format="bf16", b_format="fp16", d_format="bf16")
    with pytest.raises(ValueError, match="no format 'float9'"):
        diagnose_gemm(zeros, zeros, zeros, a_format="float9", b_format="fp16", d_format="bf16")


def test_floats_say_their_formats() -> None:
    a, b = np.ones((2, 8), ml_dtypes.bfloat16), np.ones((8, 2), ml_dtypes.bfloat16)
    d = np.full((2, 2), 8, np.float32)
    found = diagnose_gemm(a, b, d, instructions=[AMX])
    assert found.structures
    named = diagnose_gemm(a, b, d, a_format="bf16", b_format="bf16", d_format="fp32", instructions=[AMX])
    assert found.structures == named.structures
    codes = a.view(np.uint16)
    assert diagnose_gemm(codes, b, d, a_format="bf16", instructions=[AMX]).structures == named.structures
    for x in (codes, a.astype(np.float32).tolist(), a.astype(np.complex64)):
        with pytest.raises(ValueError, match=r"^A is .*, no array of floats: a_format says what it holds$"):
            diagnose_gemm(x, b, d, instructions=[AMX])
    with pytest.raises(ValueError, match="no instruction chains fp64 × bf16"):
        diagnose_gemm(a.astype(np.float64), b, d)


def added_last(instruction: Instruction) -> last_addition.LastAddition | None:
    with LazyPortfolio() as portfolio:
        return last_addition.of_exact_products(Asker(portfolio, 200), instruction.spec.replace(k=1))


def test_a_multiplier_and_an_adder_add_c_last() -> None:
    found = added_last(mul_add(k=1, a="fp16"))
    assert found is not None
    assert found.proof.obligations


def test_only_where_they_round_as_an_addition_in_fp32_does(monkeypatch: pytest.MonkeyPatch) -> None:
    assert added_last(mul_add(k=1, a="fp16", rho="RZ-FP32±0")) is None
    monkeypatch.setattr(last_addition, "_is_ieee", lambda spec: True)
    assert added_last(mul_add(k=1, a="fp16", rho="RZ-FP32±0")) is None  # and the proof sees it


def test_an_fma_of_products_that_fp32_holds_adds_c_last() -> None:
    """fp16's products are exact in fp32, so a chain of fma is blocks of one, added in order; fp32's are not."""
    assert added_last(apple_amx["fma16.F32"]) is not None
    assert added_last(apple_amx["fma32"]) is None
