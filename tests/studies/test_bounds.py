"""The paper's bounds and those of units: their numbers, and that nothing exceeds them."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray
from support.kernel_runs import random_codes
from support.settling import settled
from support.slow import slow

from mmaformal import ARCHITECTURES, Instruction, ampere, cdna2, cdna3, hopper, rtx_blackwell
from mmaformal.analysis.units import Unit
from mmaformal.facts.reaching import reach
from mmaformal.queries import error_bound
from mmaformal.solver.answers import Holds
from mmaformal.statistics import sample
from mmaformal.studies.narrow_range import DEVICES, Model1
from mmaformal.studies.narrow_range.bounds import (
    BOUNDS,
    Componentwise,
    Symbols,
    bound_of,
    epsilon,
    epsilon_1,
    probabilistic,
    relative_error,
)


def exact(A: NDArray[np.float64], B: NDArray[np.float64]) -> NDArray[np.float64]:
    """Rounded to binary64 once, of few elements."""
    rows = [[Fraction(x) for x in row] for row in A.tolist()]
    columns = [[Fraction(x) for x in column] for column in B.T.tolist()]
    return np.array(
        [[float(sum((x * y for x, y in zip(r, c, strict=True)), Fraction(0))) for c in columns] for r in rows]
    )


def test_bounds_are_those_published() -> None:
    """The first line of fp8-e4m3_binary16_subnormals0_words_1.dat: its bound is (3.26) with f_min in the place of
    g_min = f_min/2, and its bound without range limits is (3.28)."""
    s = Symbols.of(Model1.of("e4m3", "fp16", subnormals=False), 10)
    assert float(BOUNDS["3.28"](s)) == pytest.approx(1.298828e-01, rel=1e-6)
    of_inputs = 4 * s.n**2 * s.omega
    assert float(BOUNDS["3.26"](s) + of_inputs) == pytest.approx(2.071094e-01, rel=1e-6)


def test_bounds_fit_each_other() -> None:
    for pairs in DEVICES.values():
        for one, other in pairs:
            for subnormals in (True, False):
                model = Model1.of(one, other, subnormals=subnormals)
                for n in (1, 10, 10**4):
                    s = Symbols.of(model, n)
                    assert BOUNDS["3.28"](s) <= BOUNDS["3.26"](s) <= BOUNDS["3.25"](s)
                    free = Symbols.of(model.unbounded, n)
                    assert BOUNDS["3.26"](free) == BOUNDS["3.27"](s)
                    for p in (1, 2, 3):
                        s = Symbols.of(model, n, p)
                        assert BOUNDS["4.33"](s) <= BOUNDS["4.32"](s)
                        assert s.u**p <= s.zeta
                        assert probabilistic(s) <= BOUNDS["4.33"](s)


def test_componentwise_bound_by_hand() -> None:
    s = Symbols(
        3, u=Fraction(1, 8), U=Fraction(1, 16), theta=Fraction(2), g_min=Fraction(1, 4), G_min=Fraction(1, 32)
    )
    assert s.omega == Fraction(1, 8)
    assert epsilon_1(s) == Componentwise(Fraction(17, 64), 12 * Fraction(1, 8) * Fraction(10, 8))
    assert epsilon(s, c=0).inner == Fraction(17, 64) * Fraction(19, 16) + Fraction(3, 16)
    assert epsilon(s).norms - epsilon(s, c=0).norms == 4 * 5 * Fraction(1, 32) / 4


@pytest.mark.parametrize("words", [1, 2, 3])
@pytest.mark.parametrize("subnormals", [True, False])
@pytest.mark.parametrize(
    ("one", "other"), [("e4m3", "fp16"), ("e5m2", "fp16"), ("fp16", "fp32"), ("bf16", "fp32")]
)
def test_no_bound_is_exceeded(one: str, other: str, words: int, subnormals: bool) -> None:
    """Exponents near each other, far from each other, and all elements at ties."""
    model, rng = Model1.of(one, other, subnormals=subnormals), np.random.default_rng(4)
    for n, reach_ in ((1, 0.3), (7, 0.3), (40, 3.0), (40, 10.0), (200, 10.0)):
        A, B = (
            10.0 ** rng.uniform(-reach_, reach_, shape) * rng.choice([-1, 1], shape)
            for shape in ((2, n), (n, 3))
        )
        theta = model.safe_theta(n, words)
        for each in (model, model.unbounded):
            product = each.matmul(A, B, words=words, theta=theta)
            s, C = Symbols.of(product.model, n, words, product.theta), exact(A, B)
            assert relative_error(product.C, C, A, B) <= bound_of(s)
            if words == 1:
                assert (np.abs(product.C - C) <= epsilon(s).of(A, B)).all()


# ---- units -----------------------------------------------------------------------------------------------------------

SOME = [
    hopper["HMMA.16816.F32"],
    hopper["HMMA.1688.F16"],
    hopper["QGMMA.64x8x32.F32.E4M3.E4M3"],
    hopper["mma.m16n8k32.f32.e4m3.e4m3.f32"],
    rtx_blackwell["OMMA.SF.16864.F32.E2M1.E2M1.UE4M3.4X"],
    cdna3["v_mfma_f32_32x32x8_f16"],
    cdna3["v_mfma_f32_32x32x16_fp8_fp8"],
    cdna2["v_mfma_f32_16x16x4f32"],
]


@pytest.mark.parametrize("instruction", SOME, ids=lambda i: i.label)
def test_no_unit_exceeds_its_bound(instruction: Instruction) -> None:
    """Random codes, which are of all magnitudes, and codes of like magnitudes; chains of four steps."""
    i, spec, unit = instruction, instruction.spec, Unit.of(instruction)
    rng, k = np.random.default_rng(5), 4 * instruction.k
    scales, count = {}, 0
    if spec.scale_format is not None:
        for name, shape in (
            ("scale_a", (16, k // spec.scale_block)),
            ("scale_b", (k // spec.scale_block, 16)),
        ):
            scales[name] = rng.integers(40, 72, shape).astype(spec.scale_format.word)
    for spread in (None, 3, 1):
        operands = []
        for fmt, shape in ((i.a_format, (16, k)), (i.b_format, (k, 16)), (i.c_format, (16, 16))):
            codes = random_codes(rng, fmt, shape)
            if spread is not None:
                places = fmt.fraction_bits + fmt.ignored_low_bits
                exponents = rng.integers(fmt.bias, fmt.bias + spread, shape).astype(fmt.word)
                codes = codes & fmt.word.type(
                    fmt.sign_mask | ((1 << places) - 1)
                ) | exponents << fmt.word.type(places)
            operands.append(codes)
        A, B, C = operands
        errors = sample(i, A, B, C, **scales).errors
        with np.errstate(invalid="ignore", over="ignore"):
            bound = unit.bound(A, B, C, **scales)
        told = np.isfinite(errors)
        count += int(told.sum())
        assert (np.abs(errors[told]) <= bound[told]).all()
    assert count > 400


PROVED = [
    hopper["HMMA.1688.F16"].replace(k=1, L=1, e_zero=None),
    hopper["HMMA.16816.F32"],
    hopper["HMMA.1688.F16"],
    cdna3["v_mfma_f32_32x32x4_2b_f16"],
]


@pytest.mark.parametrize("instruction", slow(PROVED, PROVED[1:]), ids=lambda i: i.label)
def test_the_constant_is_the_one_that_is_proved(instruction: Instruction) -> None:
    answer = settled(error_bound.PROPERTY, instruction)
    assert isinstance(answer, Holds)
    (stage,) = Unit.of(instruction).stages
    assert max(number.value for number in answer.numbers) == stage.n


def test_roundoffs_of_units() -> None:
    """Ampere keeps 24 places below the largest term and cuts, as Hopper does with 25; FP16 results are rounded to
    nearest; CDNA3 rounds to nearest in the end."""
    for instruction, F, u in (
        (ampere["HMMA.16816.F32"], 24, 23),
        (hopper["HMMA.16816.F32"], 25, 23),
        (hopper["HMMA.16816.F16"], 25, 11),
        (cdna3["v_mfma_f32_32x32x8_f16"], 24, 24),
        (cdna2["v_mfma_f32_16x16x4f32"], 0, 24),
    ):
        (stage,) = Unit.of(instruction).stages
        assert (stage.F, stage.u_rho) == (F, Fraction(1, 1 << u))


def test_the_input_that_loses_most_is_within_the_bound() -> None:
    """The witness of `error_bound`, whose sum is off by n · 2^(e_max − F); how near the bound it comes."""
    instruction = hopper["HMMA.16816.F32"]
    witness = reach(instruction)
    assert witness is not None
    codes, fmt = witness.codes, instruction.a_format
    A, B, C = np.array([codes.a], fmt.word), np.array([codes.b], fmt.word).T, np.array([[codes.c]], np.uint32)
    error = abs(float(sample(instruction, A, B, C).errors[0, 0]))
    bound = float(Unit.of(instruction).bound(A, B, C)[0, 0])
    assert 0.2 < error / bound <= 1


def test_which_instructions_have_a_bound() -> None:
    """All but those that round pairs, and the pseudo-code; flushing adds an absolute part."""
    flushed = {"gps", "pfma", "ffma", "oddsum"}
    for architecture in ARCHITECTURES.values():
        for instruction in (architecture[name] for name in sorted({i.name for i in architecture})[::25]):
            algorithm = instruction.spec.parameters.algorithm
            if algorithm in ("rnd2", "rvbna"):
                with pytest.raises(ValueError, match="has no bound relative to its terms"):
                    Unit.of(instruction)
                continue
            unit = Unit.of(instruction)
            assert 0 < unit.factor(instruction.k) <= unit.factor(1000 * instruction.k)
            assert (unit.absolute(instruction.k) > 0) == (algorithm in flushed)


@pytest.mark.parametrize(
    ("architecture", "name"),
    [
        ("cdna2", "v_mfma_f32_16x16x16f16"),
        ("sapphire_rapids", "TDPBF16PS"),
        ("sapphire_rapids", "VDPBF16PS"),
        ("armv8_6", "BFDOT"),
    ],
)
def test_where_subnormal_numbers_are_zero(architecture: str, name: str) -> None:
    """Operands of the least normal numbers' size, and below: what is lost of them and of results is in the bound."""
    i, rng = ARCHITECTURES[architecture][name], np.random.default_rng(0)
    M = i.a_format.fraction_bits
    low = i.a_format.bias // 2 if i.a_format.min_exponent == i.d_format.min_exponent else 0

    def codes(shape: tuple[int, int], field: int) -> NDArray[np.uint16]:
        fields = np.maximum(rng.integers(field - 3, field + 3, shape), 0)
        signs = rng.integers(0, 2, shape) << (i.a_format.storage_bits - 1)
        return (signs | fields << M | rng.integers(0, 1 << M, shape)).astype(np.uint16)

    for fields in ((low, low), (1, i.a_format.bias), (i.a_format.bias, i.a_format.bias)):
        A, B = codes((64, 4 * i.k), fields[0]), codes((4 * i.k, 64), fields[1])
        C = (rng.integers(0, 2, (64, 64)) << 31 | rng.integers(0, 1 << 24, (64, 64))).astype(np.uint32)
        errors = np.abs(sample(i, A, B, C).errors)
        assert (errors <= Unit.of(i).bound(A, B, C)).all()
        assert (errors > 0).any()


def test_the_factor_is_not_below_the_power() -> None:
    unit = Unit.of(hopper["HMMA.16816.F32"])
    exactly = (1 + unit.stages[0].U) ** 60 - 1
    assert exactly <= unit.factor(60 * 16) <= exactly * (1 + Fraction(1, 1 << 60))
