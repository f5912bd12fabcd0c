"""The largest error there is, against all inputs of few elements, and against others at random."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from mmaformal.analysis.rounding import Floats, round_floats
from mmaformal.studies.narrow_range import Model1
from mmaformal.studies.narrow_range import worst as module
from mmaformal.studies.narrow_range.bounds import Componentwise, Symbols, epsilon
from mmaformal.studies.narrow_range.worst import Worst, intervals, worst_case


def ratios(model: Model1, x: list[Floats], y: list[Floats], theta: float, bound: Componentwise) -> Floats:
    """|e| over its bound, of columns of x and y; 0 where they are not scaled so, or overflow."""
    total = np.zeros_like(x[0])
    for a, b in zip(x, y, strict=True):
        p = round_floats(round_floats(a, model.input) * round_floats(b, model.input), model.accumulation)
        total = round_floats(total + p, model.accumulation)
    v = [a * b for a, b in zip(x, y, strict=True)]
    X, Y = (np.max(np.abs(each), axis=0) for each in (x, y))
    e, sigma = np.abs(total - sum(v)), sum(np.abs(each) for each in v)
    within = [(theta / 2 < each) & (each <= theta) for each in (X, Y)]
    with np.errstate(invalid="ignore"):
        ratio = e / (float(bound.inner) * sigma + float(bound.norms) * X * Y)
    found: Floats = np.where(np.isfinite(total) & within[0] & within[1], ratio, 0)
    return found


def by_trying(model: Model1, n: int) -> float:
    """The largest ratio of inputs at, and just beside, all ends of intervals."""
    theta = model.theta(n)
    bound = epsilon(Symbols.of(model, n))
    ends = {0.0, float(theta), float(theta) / 2, *intervals(model.input, theta)[:, 1:].ravel().tolist()}
    near = sorted({end * (1 + nudge) for end in ends for nudge in (-1e-9, 0, 1e-9)})
    signed = [[*near, *(-x for x in near)], *([near] * (2 * n - 1))]
    if n == 2:
        signed[2] = signed[0]
    columns = np.array(list(product(*signed))).T
    return float(ratios(model, list(columns[:n]), list(columns[n:]), float(theta), bound).max())


@pytest.mark.parametrize("subnormals", [True, False])
@pytest.mark.parametrize(("one", "other"), [("e2m1", "e4m3"), ("e3m2", "e5m2"), ("e2m3", "e4m3")])
def test_one_product_against_all_inputs(one: str, other: str, subnormals: bool) -> None:
    model = Model1.of(one, other, subnormals=subnormals)
    found = worst_case(model, 1)
    assert found.ratio == pytest.approx(by_trying(model, 1), rel=1e-6)
    assert found.measured == pytest.approx(found.ratio, rel=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("subnormals", [True, False])
def test_two_products_against_all_inputs(subnormals: bool) -> None:
    model = Model1.of("e2m1", "e5m2", subnormals=subnormals)
    assert worst_case(model, 2).ratio == pytest.approx(by_trying(model, 2), rel=1e-6)


@pytest.mark.parametrize("n", [2, 3, 4])
@pytest.mark.parametrize("subnormals", [True, False])
def test_no_input_at_random_comes_nearer(n: int, subnormals: bool) -> None:
    model, rng = Model1.of("e2m1", "e5m2", subnormals=subnormals), np.random.default_rng(6)
    found = worst_case(model, n)
    assert found.measured == pytest.approx(found.ratio, rel=1e-6)
    assert not found.overflow
    assert 0.25 < found.ratio < 1
    theta, bound = float(found.theta), epsilon(Symbols.of(model, n))
    x, y = (list(rng.uniform(-theta, theta, (n, 200_000))) for _ in "xy")
    for start in (None, found):
        if start is not None:  # near the worst that was found
            x, y = (
                [c * (1 + rng.uniform(-1e-3, 1e-3, 200_000)) for c in side] for side in (found.x, found.y)
            )
        assert float(ratios(model, x, y=y, theta=theta, bound=bound).max()) <= found.ratio * (1 + 1e-9)


def test_bounds_that_are_too_small_are_exceeded(monkeypatch: pytest.MonkeyPatch) -> None:
    def smaller(s: Symbols) -> Componentwise:
        bound = epsilon(s)
        return Componentwise(bound.inner / 3, bound.norms / 3)

    monkeypatch.setattr(module, "epsilon", smaller)
    found = worst_case(Model1.of("e2m1", "e5m2"), 2)
    assert found.ratio > 1
    assert found.measured > 1


def test_sums_that_overflow_are_said() -> None:
    """With θ of (3.2); with one that is safe there is none."""
    model = Model1.of("e3m2", "e3m2")
    assert worst_case(model, 5).overflow
    safe: Worst = worst_case(model, 5, model.safe_theta(5))
    assert not safe.overflow
    assert safe.ratio < 1


def test_what_is_refused() -> None:
    with pytest.raises(ValueError, match="too many numbers"):
        worst_case(Model1.of("fp16", "fp32"), 1)
    with pytest.raises(ValueError, match="1 or more"):
        worst_case(Model1.of("e2m1", "e5m2"), 0)
