"""Attention by blocks of keys: the model is a plain loop's, its bound holds, is proved, and fails when broken."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import z3
from numpy.typing import NDArray

from mmaformal import hopper
from mmaformal.analysis.flash_attention import FlashAttention, FlashRun
from mmaformal.analysis.units import Unit
from mmaformal.architectures import datapaths
from mmaformal.facts import product_bound
from mmaformal.formats import fp64
from mmaformal.gemm import values
from mmaformal.proof.composition import Composing
from mmaformal.proof.kernel import NotProvedError
from mmaformal.queries.bound import rounded_up
from mmaformal.queries.flash_attention import attention_bound
from mmaformal.solver.answers import Holds
from mmaformal.solver.asking import Asker
from mmaformal.solver.portfolio import DEFAULT_MEMORY, LazyPortfolio

MUL_ADD = datapaths.mul_add(a="fp32")
QGMMA = hopper["QGMMA.64x8x32.F32.E4M3.E4M3"]
Array = NDArray[Any]


def normal(*shapes: tuple[int, int], seed: int = 0, dtype: Any = np.float32) -> list[Array]:
    rng = np.random.default_rng(seed)
    return [rng.standard_normal(shape).astype(dtype) for shape in shapes]


def loop(q: Array, K: Array, V: Array, keys: int, promote: int | None) -> Array:
    """One query's output by single operations in fp32."""
    zero, largest = np.float32(0), np.float32(-np.inf)
    o, total = np.zeros(V.shape[1], np.float32), zero
    for first in range(0, len(K), keys):
        scores = []
        for key in K[first : first + keys]:
            s = zero
            for x, y in zip(q, key, strict=True):
                s = s + x * y
            scores.append(s * np.float32(len(q) ** -0.5))
        before, largest = largest, max([largest, *scores])
        alpha = np.exp(before - largest)
        p = np.exp(np.array(scores) - largest)
        o, total = o * alpha, total * alpha
        for each in p:
            total = total + each
        part = np.zeros_like(o)
        for n, (weight, value) in enumerate(zip(p, V[first : first + keys], strict=True)):
            if promote is None:
                o = o + weight * value
            else:
                part = part + weight * value
                if (n + 1) % promote == 0 or n + 1 == len(p):
                    o, part = o + part, np.zeros_like(o)
    return np.asarray(o / total)


@pytest.mark.parametrize("promote", [None, 1, 3])
def test_the_model_is_a_plain_loop(promote: int | None) -> None:
    Q, K, V = normal((5, 8), (23, 8), (23, 4))
    run = FlashAttention(MUL_ADD, 7, promote).run(Q, K, V)
    assert run.d.tolist() == [loop(q, K, V, 7, promote).tolist() for q in Q]


def test_it_is_attention() -> None:
    Q, K, V = normal((40, 16), (40, 16), (40, 8))
    for causal in (False, True):
        scores = Q.astype(float) @ K.T.astype(float) / 4
        scores[np.triu_indices(40, 1 if causal else 40)] = -np.inf
        weights = np.exp(scores)
        wanted = weights @ V / weights.sum(axis=1, keepdims=True)
        d = FlashAttention(MUL_ADD, 16).run(Q, K, V, causal=causal).d
        assert np.allclose(d, wanted, atol=1e-6)


def exact(run: FlashRun) -> list[list[Fraction]]:
    """The output before it is divided, of the weights as they are, without a rounding."""
    i = run.attention.instruction
    rows, columns = run.o.shape
    x = [[Fraction(0)] * columns for _ in range(rows)]
    for each in run.blocks:
        p, v = values(each.p, i.a_format, fp64), values(each.v, i.b_format, fp64)
        for row in range(rows):
            alpha = Fraction(float(each.alpha[row, 0]))
            for column in range(columns):
                terms = sum(
                    (
                        Fraction(float(a)) * Fraction(float(b))
                        for a, b in zip(p[row], v[:, column], strict=True)
                    ),
                    Fraction(0),
                )
                x[row][column] = alpha * x[row][column] + terms
    return x


def used(run: FlashRun) -> tuple[float, float]:
    """The most of the bounds that an element takes: of O, and of D."""
    x, f, sigma = exact(run), run.attention.factor(run.N), run.sigma()
    of_o = [
        abs(Fraction(float(o)) - x[m][n]) / (f * Fraction(sigma[m, n])) for (m, n), o in np.ndenumerate(run.o)
    ]
    bound = run.bound()
    of_d = [
        abs(Fraction(float(d)) - x[m][n] / Fraction(float(run.total[m, 0]))) / Fraction(bound[m, n])
        for (m, n), d in np.ndenumerate(run.d)
    ]
    return float(max(of_o)), float(max(of_d))


@pytest.mark.parametrize("promote", [None, 1, 2])
def test_the_bound_holds_and_a_rescaling_that_is_left_out_breaks_it(promote: int | None) -> None:
    Q, K, V = normal((6, 32), (300, 32), (300, 3), dtype=ml_dtypes.float8_e4m3fn)
    V = abs(V)  # so that what is cut off does not cancel
    run = FlashAttention(QGMMA, 96, promote).run(Q, K, V)
    of_o, of_d = used(run)
    assert 0.001 < of_o <= 1
    assert 0.001 < of_d <= 1
    kept = run.blocks[1]
    broken = replace(run, blocks=(run.blocks[0], kept._replace(alpha=kept.alpha * 0 + 2), *run.blocks[2:]))
    assert used(broken)[0] > 1


def test_more_promotion_is_a_smaller_bound() -> None:
    factors = [FlashAttention(QGMMA, 128, n).factor(4096) for n in (None, 4, 2, 1)]
    assert factors == sorted(factors, reverse=True)
    assert factors[0] > 20 * factors[-1]
    assert FlashAttention(QGMMA, 128).factor(1) >= Fraction(1, 1 << 24)


@pytest.mark.parametrize(("promote", "keys"), [(None, 300), (1, 300), (2, 300), (2, 17), (9, 300)])
def test_the_factor_is_that_of_each_rounding(promote: int | None, keys: int) -> None:
    """One for each α, and for each sum that is added, or of the chain that goes on, block by block."""
    unit, u = Unit.of(QGMMA), Fraction(1, 1 << 24)
    Q = longest = Fraction(1)
    for first in range(0, keys, 96):
        size, Q = min(96, keys - first), Q * (1 + u)
        if promote is None:
            Q *= 1 + unit.factor(size)
        else:
            for start in range(0, size, promote * 32):
                longest = max(longest, 1 + unit.factor(min(promote * 32, size - start)))
                Q *= 1 + u
    found, wanted = FlashAttention(QGMMA, 96, promote).factor(keys), Q * longest - 1
    assert wanted <= found <= wanted * (1 + Fraction(1, 1 << 40))


def proved() -> bool:
    with LazyPortfolio(None, DEFAULT_MEMORY) as portfolio:
        proving = Composing(Asker(portfolio, 60.0))
        try:
            product_bound.prove_rescaled(proving)
        except NotProvedError as error:
            if not error.refuted:
                raise
            return False
        return bool(proving.proof().obligations)


@pytest.mark.parametrize("wide", ["u*alpha*before", "-u*alpha*before", "u*least", "E"])
def test_what_is_off_by_more_than_is_said_is_refuted(monkeypatch: pytest.MonkeyPatch, wide: str) -> None:
    right, seen = product_bound.is_within, []

    def wider(x: z3.ArithRef, bound: z3.ArithRef) -> z3.BoolRef:
        if str(bound) != wide:
            return right(x, bound)
        seen.append(str(bound))
        return right(x, 2 * bound)

    assert proved()
    monkeypatch.setattr(product_bound, "is_within", wider)
    assert not proved()
    assert seen


@pytest.mark.parametrize(
    ("attention", "keys"),
    [
        (FlashAttention(MUL_ADD, 16), 100),
        pytest.param(FlashAttention(QGMMA, 128, 4), 4096, marks=pytest.mark.slow),
    ],
    ids=["mul_add", "hopper QGMMA"],
)
def test_the_bound_is_proved(attention: FlashAttention, keys: int) -> None:
    answer = attention_bound(attention, keys, timeout=400)
    assert isinstance(answer, Holds)
    assert answer.numbers[0].value == rounded_up(attention.factor(keys))
    assert "by the rule: steps of a product" in str(answer)


def test_what_is_refused() -> None:
    Q, K, V = normal((5, 8), (3, 8), (3, 4))
    for wrong, said in (
        (lambda: FlashAttention(hopper["HMMA.16816.F16"]), "to fp32 without scales"),
        (lambda: FlashAttention(MUL_ADD, 0), "keys is 0"),
        (lambda: FlashAttention(MUL_ADD).run(Q, K, V, causal=True), "each query sees a key"),
        (lambda: FlashAttention(MUL_ADD).run(Q, K.T, V), "are needed"),
    ):
        with pytest.raises(ValueError, match=said):
            wrong()
