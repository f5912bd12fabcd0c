"""fl(x) = x(1 + δ) + η: proved of all formats; not proved of a broken one; and what it says is what rounding does."""

from __future__ import annotations

import json
from collections.abc import Callable
from fractions import Fraction
from itertools import pairwise
from typing import Any

import pytest
import z3

from mmaformal.analysis.arithmetic import FloatArithmetic
from mmaformal.cli import main
from mmaformal.encodings.smt.blocks import Operand, decode
from mmaformal.facts import rounding_model
from mmaformal.formats import FORMATS
from mmaformal.proof.kernel import NotProvedError, prove
from mmaformal.queries.roundoff import NAMES, of_format, roundoff
from mmaformal.solver.answers import Holds, Unknown
from mmaformal.solver.asking import Asker
from mmaformal.solver.portfolio import LazyPortfolio


def test_it_is_proved_of_all_formats() -> None:
    with LazyPortfolio(["bitwuzla"]) as portfolio:
        for name in NAMES:
            for subnormals in (True, False):
                for nearest in (True, False):
                    answer = of_format(FORMATS[name], portfolio, subnormals=subnormals, nearest=nearest)
                    assert isinstance(answer, Holds), answer
                    factor = 1 if nearest else 2
                    u, g = (number.value for number in answer.numbers)
                    if name != "fp64":
                        arithmetic = FloatArithmetic.of(FORMATS[name], subnormals=subnormals)
                        assert (u, g) == (factor * arithmetic.u, factor * arithmetic.g_min)


@pytest.mark.parametrize("subnormals", [True, False])
@pytest.mark.parametrize("name", ["e2m1", "e2m3", "e3m2", "e5m2", "e4m3", "e4m3fnuz"])
def test_what_is_proved_is_so(name: str, subnormals: bool) -> None:
    """All numbers, and all eighths between neighbours, rounded by definition."""
    arithmetic = FloatArithmetic.of(FORMATS[name], subnormals=subnormals)
    numbers = sorted(
        {abs(FORMATS[name].value(c)) for c in range(FORMATS[name].codes) if FORMATS[name].is_finite(c)}
    )
    worst_delta = worst_eta = Fraction(0)
    for v, w in pairwise(numbers):
        for x in (v + Fraction(k, 8) * (w - v) for k in range(9)):
            for signed in (x, -x):
                rounded = arithmetic.fl(signed)
                assert rounded is not None
                if x >= arithmetic.f_min:
                    worst_delta = max(worst_delta, abs(rounded - signed) / x)
                else:
                    worst_eta = max(worst_eta, abs(rounded - signed))
    assert worst_delta == arithmetic.u / (1 + arithmetic.u)
    assert worst_eta == arithmetic.g_min


def refuted(name: str = "e4m3", **how: bool) -> str:
    answer = roundoff(name, solver=["bitwuzla"], **how)
    assert isinstance(answer, Unknown)
    return answer.why


def changed(**fields: Callable[[Operand], Any]) -> Callable[..., Operand]:
    def broken(code: z3.BitVecRef, fmt: Any) -> Operand:
        x = decode(code, fmt)
        return x._replace(**{name: make(x) for name, make in fields.items()})

    return broken


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"significand": lambda x: x.significand & ~4}, "one last place above"),
        ({"field": lambda x: x.field | 1}, "one last place above"),
        ({"significand": lambda x: z3.If(x.sign == 1, x.significand ^ 1, x.significand)}, "other sign"),
    ],
    ids=["a bit less", "exponents", "negative numbers"],
)
def test_a_broken_format_is_not_proved(
    monkeypatch: pytest.MonkeyPatch, fields: dict[str, Any], said: str
) -> None:
    monkeypatch.setattr(rounding_model, "decode", changed(**fields))
    assert said in refuted()


def test_a_broken_rounding_is_not_proved(monkeypatch: pytest.MonkeyPatch) -> None:
    real = rounding_model.Real
    with monkeypatch.context() as patch:
        patch.setattr(real, "nearest", lambda self, odd: z3.Not(self.up))
        assert "off by at most u" in refuted()
    with monkeypatch.context() as patch:  # a tie, or less than one, goes up
        patch.setattr(real, "nearest", lambda self, odd: self.up == z3.UGE(self.quarters, 1))
        assert "off by at most u" in refuted(subnormals=False)
    with monkeypatch.context() as patch:
        patch.setattr(real, "off", lambda self, bits: z3.BitVecVal(3, bits))
        assert "off by at most u" in refuted()


@pytest.mark.parametrize("name", ["e4m3", "fp32"])
def test_what_is_rounded_to_odd_is_off_by_no_more_than_a_last_place(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    with LazyPortfolio(["bitwuzla"]) as portfolio:
        asker = Asker(portfolio, 100)
        assert prove(asker, rounding_model.argue_rounding(FORMATS[name], to_odd=True)).obligations
        monkeypatch.setattr(rounding_model.Real, "off", lambda self, bits: z3.BitVecVal(5, bits))
        with pytest.raises(NotProvedError, match="off by at most 2u"):
            prove(asker, rounding_model.argue_rounding(FORMATS[name], to_odd=True))


def test_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["roundoff", "e2m1", "fp16", "--no-cache"]) == 0
    said = capsys.readouterr().out
    assert "Holds: e2m1, to nearest, with subnormals" in said
    assert "u = 0.0004882812" in said
    assert main(["roundoff", "e4m3", "--toward-zero", "--no-subnormals", "--json", "--no-cache"]) == 0
    (told,) = json.loads(capsys.readouterr().out)
    assert (told["format"], told["answer"]) == ("e4m3", "holds")
    assert main(["roundoff", "ue8m0"]) == 2
    assert "nothing is rounded to a format 'ue8m0'" in capsys.readouterr().err
