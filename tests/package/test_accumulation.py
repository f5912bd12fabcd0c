"""Orders of accumulation: what `matmul` gives is what a plain loop gives, as `mmaformal.accumulation` has them."""

from __future__ import annotations

import math
from itertools import groupby
from typing import Any

import numpy as np
import pytest

from mmaformal import Instruction, datapath, hopper, matmul, rtx_blackwell
from mmaformal.accumulation import permutation
from mmaformal.formats import fp16, fp32

FDA = datapath["fda(k=4,frac_bits=12)"]
FMA = datapath["fma(k=1)"]
HALF = hopper["HMMA.16816.F16"]


def part(i: Instruction, products: list[tuple[Any, Any]]) -> np.float32:
    """Return what the instruction gives for so many products, chained, from +0."""
    d = i.d_format.dtype.type(0)  # type: ignore[union-attr]
    for start in range(0, len(products), i.k):
        some = products[start : start + i.k]
        a, b = (
            np.array([each[side] for each in some] + [0] * (i.k - len(some)), np.float16) for side in (0, 1)
        )
        d = i.dot_add(a, b, d)
    return np.float32(d)


def key(a: Any, b: Any) -> tuple[int, int]:
    """Exponent and the first bit of the fraction of |a·b|."""
    if a == 0 or b == 0:
        return -2000, 0
    m, e = math.frexp(abs(float(a) * float(b)))
    return e, int(m >= 0.75)


def reference(i: Instruction, a: Any, b: Any, c: Any, how: str, seed: int = 0) -> Any:
    """One output."""
    pairs = list(zip(a, b, strict=True))
    s, e = np.float32(c), np.float32(0)
    if how == "random":
        pairs = [pairs[k] for k in permutation(len(pairs), seed)]
    if how in ("natural", "random"):
        d = c
        for start in range(0, len(pairs), i.k):
            some = pairs[start : start + i.k]
            x, y = (
                np.array([p[side] for p in some] + [0] * (i.k - len(some)), np.float16) for side in (0, 1)
            )
            d = i.dot_add(x, y, d)
        return d
    if how == "grouped":
        ordered = sorted(pairs, key=lambda p: key(*p))
        for _, members in groupby(ordered, key=lambda p: key(*p)):
            s = s + part(i, list(members))
        return i.d_format.dtype.type(s)  # type: ignore[union-attr]
    if how == "anti-kahan":
        pairs.sort(key=lambda p: key(*p), reverse=True)  # and stable all the same
    for start in range(0, len(pairs), i.k):
        p = part(i, pairs[start : start + i.k])
        if how == "kahan":
            y = p - e
            t = s + y
            e = (t - s) - y
        else:
            y = p + e
            t = s + y
            e = e + ((t - s) - y)
        s = t
    return i.d_format.dtype.type(s)  # type: ignore[union-attr]


ORDERS = ["natural", "random", "grouped", "kahan", "anti-kahan"]


def operands(K: int, seed: int, i: Instruction) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(seed)
    a = (rng.normal(size=(3, K)) * 2.0 ** rng.integers(-6, 6, (3, K))).astype(np.float16)
    b = rng.normal(size=(K, 4)).astype(np.float16)
    b[rng.random(b.shape) < 0.1] = 0
    return a, b, rng.normal(size=(3, 4)).astype(i.d_format.dtype)


@pytest.mark.parametrize("how", ORDERS)
@pytest.mark.parametrize("i", [FDA, FMA, HALF], ids=["fda", "fma", "fp16"])
@pytest.mark.parametrize("K", [1, 37])
def test_a_plain_loop_gives_the_same(i: Instruction, how: Any, K: int) -> None:
    a, b, c = operands(K, 5, i)
    d = matmul(a, b, c, instruction=i, accumulation=how, seed=11)
    for m in range(3):
        for n in range(4):
            assert d[m, n] == reference(i, a[m], b[:, n], c[m, n], how, 11), (m, n)


@pytest.mark.parametrize("how", ORDERS)
def test_threads_and_ranges_of_k_change_nothing(how: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    a, b, c = operands(90, 6, FDA)
    whole = matmul(a, b, c, instruction=FDA, accumulation=how, jobs=1)
    monkeypatch.setattr("mmaformal.gemm._PLANES_K", 16)
    monkeypatch.setattr("mmaformal.accumulation._AT_ONCE", 200)
    assert (matmul(a, b, c, instruction=FDA, accumulation=how, jobs=3) == whole).all()


@pytest.mark.parametrize("how", ORDERS)
def test_nothing_to_add_gives_c(how: Any) -> None:
    c = np.array([[1.5, -2.0]], np.float32)
    d = matmul(
        np.zeros((1, 0), np.float16), np.zeros((0, 2), np.float16), c, instruction=FDA, accumulation=how
    )
    assert (d == c).all()
    none = matmul(
        np.zeros((0, 3), np.float16), np.zeros((3, 2), np.float16), instruction=FDA, accumulation=how
    )
    assert none.shape == (0, 2)


@pytest.mark.parametrize("how", ORDERS)
def test_an_infinity_and_a_nan_come_through(how: Any) -> None:
    a = np.array([[np.inf, 1, 2], [np.nan, 1, 2], [np.inf, 1, -np.inf]], np.float16)
    d = matmul(a, np.ones((3, 1), np.float16), instruction=FDA, accumulation=how)
    assert d[0, 0] == np.inf or how in ("kahan", "anti-kahan")  # whose ∞ − ∞ is a NaN
    assert np.isnan(d[1:]).all()


def test_what_compensation_is_for() -> None:
    """One large product, then small ones, each below half its last place."""
    a = np.ones((1, 4097), np.float16)
    b = np.full((4097, 1), 2.0**-13, np.float16)
    a[0, 0], b[0, 0] = 2.0**7, 2.0**6
    exact = 2.0**13 + 4096 * 2.0**-13
    off = {
        how: abs(float(matmul(a, b, instruction=FMA, accumulation=how)[0, 0]) - exact)  # type: ignore[arg-type]
        for how in ORDERS
    }
    assert off["kahan"] == off["grouped"] == 0 < off["natural"] <= off["anti-kahan"]


def test_seeds_are_orders() -> None:
    a, b, c = operands(64, 8, HALF)
    d = [matmul(a, b, c, instruction=HALF, accumulation="random", seed=seed) for seed in (1, 1, 2)]
    assert (d[0] == d[1]).all()
    assert (d[0] != d[2]).any()


@pytest.mark.parametrize(
    ("how", "told"),
    [
        (
            {"accumulation": "sorted"},
            "accumulation is natural, random, grouped, kahan, anti-kahan, not 'sorted'",
        ),
        ({"accumulation": "kahan", "split_k": 2}, "K is divided, or its accumulation is 'kahan', not both"),
        ({"accumulation": "grouped", "promote_every": 2}, "not both"),
    ],
)
def test_what_does_not_go_together_is_told(how: dict[str, Any], told: str) -> None:
    with pytest.raises(ValueError, match=told):
        matmul(np.ones((2, 8), np.float16), np.ones((8, 2), np.float16), instruction=FDA, **how)


def test_scales_keep_their_products() -> None:
    i = rtx_blackwell["QMMA.SF.16832.F32.E4M3.E4M3.E8"]
    a, s = np.full((2, 64), 0x38, np.uint8), np.full((2, 2), 127, np.uint8)
    given = {"scale_a": s, "scale_b": s, "instruction": i}
    assert (fp32.value(int(matmul(a, a.T.copy(), accumulation="kahan", **given)[0, 0]))) == 64
    with pytest.raises(ValueError, match="block scales"):
        matmul(a, a.T.copy(), accumulation="grouped", **given)
    assert fp16.fraction_bits == 10
