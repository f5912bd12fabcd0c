"""Theorems 3.1 and 4.1: proved, not vacuous, refuted when broken; and where the paper's text does not hold."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
import z3

from mmaformal import Instruction, hopper, volta
from mmaformal.analysis.arithmetic import FloatArithmetic
from mmaformal.proof.composition import Composing
from mmaformal.proof.kernel import NotProvedError
from mmaformal.solver.answers import Holds
from mmaformal.solver.asking import Asker
from mmaformal.solver.portfolio import LazyPortfolio
from mmaformal.studies.narrow_range import Model1
from mmaformal.studies.narrow_range import argument as narrow_range
from mmaformal.studies.narrow_range.bounds import Symbols, proved, relative_error, sharpened, theorem_3_1
from mmaformal.studies.narrow_range.model import split_words
from mmaformal.studies.narrow_range.theorems import THEOREMS, prove_theorem


@pytest.mark.parametrize("number", THEOREMS)
def test_the_theorems_are_proved(number: str) -> None:
    answer = prove_theorem(number)
    assert isinstance(answer, Holds)
    assert len(answer.proof.obligations) > 20
    assert any("sums of real numbers" in rule for rule in answer.proof.rules)


def test_there_is_no_other_theorem() -> None:
    with pytest.raises(ValueError, match=r"no theorem '5\.1'; there are 3\.1, 4\.1"):
        prove_theorem("5.1")


@pytest.mark.parametrize("number", THEOREMS)
def test_no_claim_is_vacuous(number: str) -> None:
    """Each claim's assumptions hold of some real numbers that are not all 0."""
    with LazyPortfolio() as portfolio:
        proving = Composing(Asker(portfolio, 60))
        THEOREMS[number][1](proving)
    for _, claim in proving.steps.values():
        parts = claim.children() if z3.is_and(claim) else [claim]
        for part in (x for x in parts if z3.is_implies(x)):
            solver = z3.Solver()
            solver.set("timeout", 20_000)
            solver.add(part.arg(0), *(x > 0 for x in positive(part.arg(0))))
            assert solver.check() == z3.sat, part


def positive(premise: z3.BoolRef) -> list[z3.ArithRef]:
    """The constants of a premise that stand for sizes: not those that a rounding may make 0."""
    found, todo = {}, [premise]
    while todo:
        x = todo.pop()
        todo += x.children()
        if z3.is_const(x) and x.sort() == z3.RealSort() and not z3.is_rational_value(x):
            found[str(x)] = x
    return [x for name, x in found.items() if name not in ("delta", "eta", "dx", "dy")]


@pytest.mark.parametrize("number", THEOREMS)
@pytest.mark.parametrize(
    "broken", [lambda x, bound: x <= bound, lambda x, bound: z3.And(x <= 2 * bound, -x <= bound)]
)
def test_a_broken_premise_is_refuted(
    number: str, broken: Callable[[z3.ArithRef, z3.ArithRef], z3.BoolRef], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(narrow_range, "is_within", broken)
    with LazyPortfolio() as portfolio, pytest.raises(NotProvedError):
        THEOREMS[number][1](Composing(Asker(portfolio, 60)))


def matrices(seed: int, n: int, model: Model1) -> tuple[np.ndarray, np.ndarray]:
    """Elements near the largest, near what underflows, and ties."""
    rng = np.random.default_rng(seed)
    theta, g = float(model.theta(n)), float(model.input.g_min)

    def made(shape: tuple[int, int]) -> np.ndarray:
        kinds = rng.integers(0, 4, shape)
        sizes = [
            rng.uniform(theta / 2, theta, shape),
            np.full(shape, g * 0.999),
            rng.uniform(0, 4 * g, shape),
        ]
        tie = theta / 2 * (1 + float(model.input.u) * 0.999)
        return np.asarray(np.choose(kinds, [*sizes, np.full(shape, tie)]) * rng.choice((-1.0, 1.0), shape))

    return made((4, n)), made((n, 4))


@pytest.mark.parametrize("subnormals", [True, False])
@pytest.mark.parametrize("formats", [("e2m1", "fp16"), ("e2m3", "fp32"), ("e3m2", "e5m2"), ("e4m3", "fp16")])
def test_no_error_exceeds_what_is_proved(formats: tuple[str, str], subnormals: bool) -> None:
    model = Model1.of(*formats, subnormals=subnormals)
    for n in (1, 2, 7, 40):
        for words in (1, 2, 3):
            s = Symbols.of(model, n, words)
            for seed in range(5):
                A, B = matrices(seed, n, model)
                product = model.matmul(A, B, words=words)
                if not product.overflowed:
                    assert relative_error(product.C, A @ B, A, B) <= float(proved(s)) * (1 + 1e-9)


def test_the_sharpened_bound_is_below_the_papers() -> None:
    for name in ("e2m1", "e2m3", "e3m2", "e4m3", "e5m2", "fp16"):
        model = Model1.of(name, "fp32", subnormals=False)
        for n in (1, 10, 1000):
            s = Symbols.of(model, n)
            assert sharpened(s) <= theorem_3_1(s)
            assert sharpened(s) == pytest.approx(float(proved(s)), rel=1e-4)
    s = Symbols.of(Model1.of("e4m3", "fp32", subnormals=False), 1000)
    assert float(theorem_3_1(s)) == pytest.approx(74.2, rel=0.01)
    assert float(sharpened(s)) == pytest.approx(0.204, rel=0.01)


# ---- where the paper's text does not hold --------------------------------------------------------------------------


def test_omega_is_below_u_but_for_one_format() -> None:
    """§3.2, "for all formats of interest": of fp6-E2M3 without subnormals ω is 1/15, and u 1/16."""
    above = set()
    for name in (
        "e2m1",
        "e2m3",
        "e3m2",
        "e4m3",
        "e5m2",
        "e4m3fnuz",
        "e5m2fnuz",
        "fp16",
        "bf16",
        "tf32",
        "fp32",
    ):
        for subnormals in (True, False):
            x = FloatArithmetic.named(name, subnormals=subnormals)
            if x.g_min / x.f_max >= x.u:
                above.add((name, subnormals, x.g_min / x.f_max))
    assert above == {("e2m3", False, Fraction(1, 15))}


def test_what_words_leave_of_a_row_is_more_than_zeta() -> None:
    """(4.18) with (4.20): a sum of maxima is not the maximum of sums.  One element is rounded, the others vanish."""
    x = FloatArithmetic.named("e4m3", subnormals=False)
    n = 1792
    row = np.full(n, float(x.g_min))
    row[0] = 272.0
    (word,) = split_words(row, x, 1)
    left = np.abs(row - word).sum() / np.abs(row).sum()
    u, g, theta = float(x.u), float(x.g_min), float(x.f_max)
    zeta = max(u, 2 * n * g / theta)
    assert left > 1.6 * zeta
    assert left < u + 2 * n * g / theta  # the sum, which Theorem 4.1 has again


def chained(unit: Instruction, n: int, top: str, factors: tuple[str, str]) -> tuple[Fraction, Fraction]:
    """(d, the exact sum) of top² and n − 1 products, c = 0."""
    a, b = ([unit.a_format.code(x) for x in (top, *[each] * (n - 1))] for each in factors)
    word, c = unit.a_format.word, unit.c_format.word.type(0)
    for k in range(0, n, unit.k):
        c = unit.dot_add(np.array(a[k : k + unit.k], word), np.array(b[k : k + unit.k], word), c)
    values = (unit.a_format.value(x) * unit.b_format.value(y) for x, y in zip(a, b, strict=True))
    return unit.d_format.value(int(c)), sum(values, Fraction(0))


@pytest.mark.parametrize(
    ("unit", "n", "top", "factors", "least"),
    [
        (volta["HMMA.884.F32.F32"], 512, "1", ("2047/8388608", "2047/4194304"), 1.99),
        (hopper["QGMMA.64x8x32.F32.E4M3.E4M3"], 768, "16", ("15/64", "15/128"), 1660),
    ],
)
def test_tensor_cores_are_further_off_than_model_1(
    unit: Instruction, n: int, top: str, factors: tuple[str, str], least: float
) -> None:
    """§2.2 says that they satisfy it; n·U of fp32's U, in units of |x|ᵀ|y|."""
    d, exact = chained(unit, n, top, factors)
    off = abs(d - exact) / exact
    assert off > least * n * Fraction(1, 1 << 24)
    if unit.architecture == "hopper":
        assert float(off) == pytest.approx(0.076, abs=0.0005)
