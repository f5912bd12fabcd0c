"""Units that take their products in an order of their own."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from support import exact
from support.slow import slow

from mmaformal import Different, Equal, Fails, Holds, find_difference, hopper, matmul, prove
from mmaformal.cases.generate import generate
from mmaformal.cases.run import results, smt_result
from mmaformal.encodings import executable
from mmaformal.encodings.fda import Fda
from mmaformal.facts import chains
from mmaformal.facts.both_encodings import proved_for
from mmaformal.formats import e5m2, fp16, fp32, ue8m0
from mmaformal.instruction import Instruction
from mmaformal.proof.kernel import ArgumentError
from mmaformal.queries.verify import verify
from mmaformal.shown_stages import explain_case
from mmaformal.spec import DotAdd

#: products 0, 2, then 1, 3, then 4, 6, …
ORDER = (0, 2, 1, 3)
BLOCK = Fda(F=12, L=2, rho="RZ-FP32", e_zero=-133)
SPEC = DotAdd(8, fp16, fp16, fp32, fp32, BLOCK, product_order=ORDER)
SMALL = DotAdd(4, e5m2, e5m2, fp32, fp32, BLOCK, product_order=ORDER)
HALVES = DotAdd(4, e5m2, e5m2, fp16, fp16, Fda(F=5, L=2, rho="RNE-FP16", e_zero=-40), product_order=ORDER)


def unit(spec: DotAdd, name: str = "X") -> Instruction:
    return Instruction(name, "test", 8, 8, spec)


def test_an_order_is_a_permutation_of_whole_steps() -> None:
    assert SPEC.taken == [0, 2, 1, 3, 4, 6, 5, 7]
    assert [SPEC.class_of(k) for k in range(8)] == [0, 1, 0, 1, 2, 3, 2, 3]
    assert (SPEC.period, SPEC.in_order.product_order, SPEC.in_order.taken) == (4, (), [*range(8)])
    assert SPEC.replace(product_order=(0, 1, 2, 3)) == SPEC.in_order
    assert "order 0,2,1,3" in repr(SPEC)
    for order, why in (
        ((0, 0, 1, 2), "permutation"),
        ((0, 2, 1), "whole steps"),
        ((0, 2, 1, 4, 5, 3), "whole orders"),
    ):
        with pytest.raises(ValueError, match=why):
            SPEC.replace(product_order=order)
    scaled: dict[str, Any] = {"scale_format": ue8m0, "scale_block": 4}
    with pytest.raises(ValueError, match="block scales"):
        SPEC.replace(**scaled)


def test_both_encodings_and_a_rational_reference_agree() -> None:
    rows = generate(SPEC, 400)
    found = results(SPEC, rows.codes)
    assert (found != results(SPEC.in_order, rows.codes)).any()
    for i in range(0, 400, 8):
        x = rows[i]
        assert smt_result(SPEC, x) == int(found[i]) == exact.dot_add(SPEC, x.a, x.b, x.c)


def test_the_gemm_takes_products_in_that_order() -> None:
    rng = np.random.default_rng(3)
    A, B = (rng.normal(size=shape).astype(np.float16) for shape in ((5, 24), (24, 7)))
    D = matmul(A, B, instruction=unit(SPEC))
    for i in range(5):
        for j in range(7):
            d: Any = np.float32(0)
            for k in range(0, 24, 8):
                d = unit(SPEC).dot_add(A[i, k : k + 8], B[k : k + 8, j], d)
            assert D[i, j] == d
    assert (matmul(A, B, instruction=unit(SPEC.in_order)) != D).any()


def test_the_encodings_are_proved_equal() -> None:
    answer = verify(unit(SMALL))
    assert isinstance(answer, Holds), answer


def test_an_encoding_that_takes_them_otherwise_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong(spec: DotAdd, *codes: Any, **named: Any) -> Any:
        return given(spec.in_order if spec.product_order else spec, *codes, **named)

    given = executable.dot_add
    chains.check_order(SMALL)
    monkeypatch.setattr(executable, "dot_add", wrong)
    assert isinstance(verify(unit(SMALL)), Fails)
    with pytest.raises((ArgumentError, NameError, AttributeError)):
        chains.check_order(SMALL)


@pytest.mark.parametrize(
    "name",
    slow(
        ["order-independence", "sign-symmetry", "error-bound", "order-independence-across-blocks"],
        ["order-independence-across-blocks"],
    ),
)
def test_properties_are_those_of_the_products_as_they_are_taken(name: str) -> None:
    answers = [prove(name, unit(spec)) for spec in (SMALL, SMALL.in_order)]
    assert type(answers[0]) is type(answers[1])
    assert isinstance(answers[0], Fails if name.endswith("blocks") else Holds)
    if isinstance(answers[0], Holds):
        assert any("renumbering" in rule for rule in answers[0].proof.rules)
        assert not any("renumbering" in rule for rule in answers[1].proof.rules)  # type: ignore[union-attr]
    assert "numbered as they are taken" in answers[0].question


@pytest.mark.parametrize("spec", slow([HALVES, SMALL], [SMALL]), ids=lambda spec: spec.d_format.name)
def test_orders_differ_by_the_smallest_input(spec: DotAdd) -> None:
    answer = find_difference(unit(spec, "Y"), unit(spec.in_order))
    assert isinstance(answer, Different), answer
    assert "proved minimal" in answer.minimality[0]
    same = find_difference(unit(spec), unit(spec.replace(product_order=(2, 0, 3, 1)), "Y"))
    assert isinstance(same, Equal), same


def test_stages_are_told_with_the_numbers_of_products() -> None:
    one = fp16.code("1")
    told = str(explain_case(unit(SPEC), [0, 0, one, 0, 0, 0, 0, 0], [one] * 8, 0))
    first = told[: told.index("step 2")]
    assert "a[2]·b[2]" in first
    assert "a[1]·b[1]" not in first


def test_long_chains_repeat_the_order() -> None:
    long = SMALL.replace(k=4096)
    short = proved_for(long)
    assert short.k == 8
    assert "loops were followed" in chains.follow(long, short)
    x = generate(long, 4)
    assert int(results(long, x.codes)[0]) == exact.dot_add(long, x[0].a, x[0].b, x[0].c)
    hopper_like = replace(hopper["HMMA.1688.F32"], name="H")
    assert hopper_like.replace(product_order=(1, 0, *range(2, 8))).spec.class_of(0) == 0
