"""adder_tree: trees of IEEE additions with stages rounded their own way, against rationals and proved equal."""

from __future__ import annotations

import pytest
import z3
from support.fma_numbers import NAN, code_of, exact_sum
from support.slow import slow

from mmaformal import datapath
from mmaformal.cases.generate import generate
from mmaformal.cases.run import both_results
from mmaformal.encodings.adder_tree import AdderTree, parse
from mmaformal.encodings.adder_tree import smt as smt_tree
from mmaformal.formats import Format
from mmaformal.queries.verify import verify
from mmaformal.rounding import IEEE_FP32, Conversion
from mmaformal.solver.answers import Fails, Holds
from mmaformal.spec import DotAdd

TREES = [
    "tree(k=2,a=e5m2,product=IEEE-E5M3,sums=IEEE-E5M3,c=fp16,rho=IEEE-FP16)",
    "tree(k=4,a=fp16,product=IEEE-E8M13,sums=IEEE-E8M13,order=(0+2)+((1+3)+c),rho=IEEE-RD-FP16,c=fp32)",
    "tree(k=4,a=e4m3,b=e5m2,product=IEEE-E5M3,sums=IEEE-E8M13.IEEE-FP32,rho=IEEE-FP32)",
    "tree(k=3,a=bf16,order=c+0+1+2,rho=IEEE-RU-FP32)",
    "tree(k=3,a=bf16,product=IEEE-RZ-BF16,sums=IEEE-RZ-BF16,order=0+(1+(2+c)),rho=IEEE-RZ-BF16)",
    "tree(k=8,a=fp16,rho=IEEE-FP32,nan=DEFAULT)",
]
#: proved within some seconds
SMALL = "tree(k=1,a=e5m2,c=fp16,product=IEEE-FP16,sums=IEEE-FP16,rho=IEEE-E5M3)"


def wanted(spec: DotAdd, a: tuple[int, ...], b: tuple[int, ...], c: int) -> int | str:
    """Returns the code of d, addition by addition; NAN for a NaN."""
    p = spec.parameters_as(AdderTree)

    def product(k: int) -> int | str:
        minus_zero = exact_sum(
            [(a[k], b[k])], spec.d_format.sign_mask, (spec.a_format, spec.b_format, spec.d_format), p.product
        )
        x, y = spec.a_format, spec.b_format
        if minus_zero == NAN or not (x.is_finite(a[k]) and y.is_finite(b[k])):
            return minus_zero
        negative = x.fields(a[k])[0] != y.fields(b[k])[0]
        return code_of(x.value(a[k]) * y.value(b[k]), p.product, negative)

    def converted(code: int, source: Format, rho: Conversion) -> int | str:
        if source.is_finite(code):
            return code_of(source.value(code), rho, bool(source.fields(code)[0]))
        top = rho.format.infinity
        assert top is not None
        return NAN if source.is_nan(code) else top | (rho.format.sign_mask if source.fields(code)[0] else 0)

    def summed(tree: object) -> tuple[int | str, Format]:
        if isinstance(tree, int):
            return (c, spec.c_format) if tree < 0 else (product(tree), p.product.format)
        (x, fx), (y, fy) = (summed(child) for child in tree)  # type: ignore[attr-defined]
        rho = p.of(tree)  # type: ignore[arg-type]
        if NAN in (x, y):
            return NAN, rho.format
        one = fx.code("1")
        return exact_sum([(int(x), one)], int(y), (fx, fx, fy), rho), rho.format

    code, fmt = summed(p.tree)
    if code != NAN and p.of(p.tree) != p.rho:
        code = converted(int(code), fmt, p.rho)
    return NAN if code == NAN or spec.d_format.is_nan(int(code)) else code


@pytest.mark.parametrize("name", TREES)
def test_every_addition_is_that_of_rationals(name: str) -> None:
    spec = datapath[name].spec
    rows = generate(spec, 150)
    for each, got in zip(rows.cases(), datapath[name].dot_add(rows.a, rows.b, rows.c), strict=True):
        right = wanted(spec, each.a, each.b, each.c)
        assert int(got) == right or (right == NAN and spec.d_format.is_nan(int(got))), (each, got, right)


@pytest.mark.parametrize("name", TREES[:4])
def test_terms_too(name: str) -> None:
    spec = datapath[name].spec
    rows = generate(spec, 3)
    for each, both in zip(rows.cases(), both_results(spec, rows), strict=True):
        right = wanted(spec, each.a, each.b, each.c)
        assert all(got == right or (right == NAN and spec.d_format.is_nan(got)) for got in both)


@pytest.mark.parametrize("name", slow([SMALL, *TREES], TREES))
def test_both_encodings_are_proved_equal(name: str) -> None:
    assert isinstance(verify(datapath[name], timeout=400), Holds)


def test_the_proof_notices_another_order(monkeypatch: pytest.MonkeyPatch) -> None:
    real = smt_tree.rounded_products

    def turned(*given: object) -> tuple[object, ...]:
        return real(*given)[::-1]  # type: ignore[arg-type]

    monkeypatch.setattr(smt_tree, "rounded_products", turned)
    name = "tree(k=2,a=e5m2,product=IEEE-E5M3,sums=IEEE-E5M3,c=fp16,order=0+(1+c),rho=IEEE-FP16)"
    assert not isinstance(verify(datapath[name], timeout=60), Holds)


def test_the_proof_notices_a_last_rounding_that_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    real = smt_tree.ieee.rescale

    def toward_zero(code: z3.BitVecRef, source: Format, rho: Conversion) -> z3.BitVecRef:
        return real(code, source, Conversion.named("RZ-E5M3±0"))

    monkeypatch.setattr(smt_tree.ieee, "rescale", toward_zero)
    assert isinstance(verify(datapath[SMALL], timeout=100), Fails)


def test_orders() -> None:
    assert parse("((0+1)+(2+3))+c") == (((0, 1), (2, 3)), -1)
    assert parse("c + 0 + 1") == ((-1, 0), 1)
    assert datapath["tree(k=4)"].parameters.order == "((0+1)+(2+3))+c"
    for wrong in ("0+", "(0+c", "0+1)", "0+0+c", "0+1", "0-1", ""):
        with pytest.raises(ValueError, match="order"):
            AdderTree(IEEE_FP32, (IEEE_FP32,), IEEE_FP32, wrong)


def test_what_a_sum_does_not_hold_is_refused() -> None:
    with pytest.raises((KeyError, ValueError), match="sums of fp16 of what that holds"):
        datapath["tree(k=2,a=fp16,sums=IEEE-FP16,rho=IEEE-FP16,product=IEEE-FP32)"]
