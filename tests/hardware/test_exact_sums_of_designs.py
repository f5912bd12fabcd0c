"""Sums in fixed point beside the model of an exact sum."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mmaformal import datapath
from mmaformal.cases.evaluate import evaluate
from mmaformal.cases.generate import DISTRIBUTIONS, generate
from mmaformal.cases.inputs import symbolic_inputs
from mmaformal.encodings import smt
from mmaformal.hardware.exact_sums import ExactSum, exact_sum
from mmaformal.hardware.matching import values_of


def sum_of(model: str) -> ExactSum | None:
    spec = datapath[model].spec
    x = symbolic_inputs(spec)
    return exact_sum(spec, smt.dot_add(spec, x.a, x.b, x.c).steps)


@pytest.mark.parametrize(
    "model",
    [
        "exact(k=2,a=e5m2,rho=IEEE-FP16)",
        "exact(k=1,a=e4m3,c=fp16,rho=IEEE-RZ-FP16)",
        "exact(k=2,a=fp16,rho=IEEE-FP16)",
    ],
)
def test_the_models_sum_is_that_in_fixed_point_shifted(model: str) -> None:
    found, spec = sum_of(model), datapath[model].spec
    assert found is not None
    rows = generate(spec, 500, seed=5, distributions=(*DISTRIBUTIONS, "edge"))
    values = values_of(symbolic_inputs(spec), rows)
    for each in (found.with_c, found.shifted):
        assert evaluate(each.claim, values).all()
    assert not evaluate(replace(found, shift=found.shift + 1).shifted.claim, values).all()


@pytest.mark.parametrize(
    "model",
    ["exact(k=2,a=bf16,rho=IEEE-FP32)", "exact(k=2,a=fp16,rho=IEEE-FP32)", "fma(a=fp16,rho=IEEE-FP16)"],
)
def test_other_sums_have_none(model: str) -> None:
    assert sum_of(model) is None
