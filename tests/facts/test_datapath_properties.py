"""Properties of the algorithms of the design space: what holds is proved, of a broken model it is not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from settling import settled
from slow import slow

from mmaformal.architectures import datapaths
from mmaformal.encodings.smt import gfda, muladd
from mmaformal.queries.properties import PROPERTIES
from mmaformal.solver.answers import Holds
from mmaformal.witness import WitnessError

GROUPS = ("gfda(k=4,group=2,frac_bits=9,a=e4m3,rho=RZ-FP32)", "gfda(k=6,group=3,frac_bits=20,a=bf16,cut=RO)")
#: Properties that are proved of groups.
PROVED = ("order-independence", "commutativity", "sign-symmetry")


@pytest.mark.parametrize("point", slow(GROUPS, GROUPS[1:]))
@pytest.mark.parametrize("name", PROVED)
def test_groups(name: str, point: str) -> None:
    assert isinstance(settled(PROPERTIES[name], datapaths.named(point)), Holds)


@pytest.mark.parametrize(
    ("name", "function", "change"),
    [
        ("order-independence", "maximum", lambda real: lambda xs: xs[0] if len(xs) == 2 else real(xs)),
        ("sign-symmetry", "signed_sum", lambda real: lambda terms, bits: real(terms, bits) + 1),
    ],
)
def test_broken_groups(
    name: str, function: str, change: Callable[[Any], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gfda, function, change(getattr(gfda, function)))
    with pytest.raises(
        WitnessError, match="the two encodings do not agree"
    ):  # one is broken: it is seen to be
        settled(PROPERTIES[name], datapaths.named(GROUPS[0]), timeout=20)


def test_products_and_sums_apart() -> None:
    i = datapaths.named("mul_add(k=2,a=e4m3,product=RNE-E5M8,rho=RNE-FP16)")
    assert isinstance(settled(PROPERTIES["monotonicity-in-c"], i), Holds)


def test_a_broken_addition_does_not_follow_c(monkeypatch: pytest.MonkeyPatch) -> None:
    real = muladd.add
    monkeypatch.setattr(muladd, "add", lambda c, *given: real(c ^ 1, *given))
    i = datapaths.named("mul_add(k=1,a=e4m3,rho=RNE-FP16)")
    assert not isinstance(settled(PROPERTIES["monotonicity-in-c"], i, timeout=20), Holds)
