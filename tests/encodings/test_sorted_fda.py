"""sorted_fda: the two largest of three terms first, then the smallest, against rationals and proved equal."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
import z3
from support.fma_numbers import code_of, floor_log2
from support.slow import slow

from mmaformal import datapath
from mmaformal.cases.generate import generate
from mmaformal.cases.run import both_results
from mmaformal.encodings.efda.smt import Term
from mmaformal.encodings.sorted_fda import SortedFda
from mmaformal.encodings.sorted_fda import smt as smt_sorted
from mmaformal.queries.verify import verify
from mmaformal.rounding import Rounding
from mmaformal.solver.answers import Fails, Holds
from mmaformal.spec import DotAdd

POINTS = [
    "two_largest(frac_bits=13,a=e5m2,rho=IEEE-FP16)",
    "two_largest(frac_bits=51,rho=IEEE-RD-FP32)",
    "two_largest(frac_bits=24,last_bits=24,a=bf16,rho=IEEE-RU-FP32,between=0)",
    "two_largest(frac_bits=10,a=e4m3,rho=IEEE-RZ-FP16,between=0,nan=DEFAULT)",
    "two_largest(frac_bits=15,a=e4m3,rho=IEEE-RMM-FP16,chain=2)",
]


def sticky(x: Fraction, unit: Fraction) -> Fraction:
    """A number cut to a multiple of a unit, an odd one where anything is cut off."""
    kept = abs(x) // unit
    kept += kept * unit != abs(x) and kept % 2 == 0
    return kept * unit * (-1 if x < 0 else 1)


def wanted(spec: DotAdd, a: tuple[int, ...], b: tuple[int, ...], c: int) -> int | None:
    """Returns the code of d; None where an operand is special."""
    p = spec.parameters_as(SortedFda)
    x, y, z = spec.a_format, spec.b_format, spec.c_format
    for k in range(0, spec.k, 2):
        pairs = list(zip(a[k : k + 2], b[k : k + 2], strict=True))
        if not z.is_finite(c) or not all(x.is_finite(i) and y.is_finite(j) for i, j in pairs):
            return None
        values = [x.value(i) * y.value(j) for i, j in pairs] + [z.value(c)]
        minus = [x.fields(i)[0] != y.fields(j)[0] for i, j in pairs] + [z.fields(c)[0] == 1]
        down = p.rho.ieee and p.rho.rounding is Rounding.RD
        c = code_of(total_of(values, p), p.rho, any(minus) if down else all(minus))
    return c


def total_of(values: list[Fraction], p: SortedFda) -> Fraction:
    """The sum of all, as a unit has it before it rounds."""
    ordered = sorted(filter(None, values), key=floor_log2_of, reverse=True)  # equals stay as they are
    largest, second, third = (*ordered, *[Fraction(0)] * 3)[:3]
    if not largest:
        return largest
    unit = Fraction(2) ** (floor_log2_of(largest) - p.F)
    sum_ = sticky(largest, unit) + sticky(second, unit)
    exponents = [floor_log2_of(each) for each in ([sum_, third] if p.between else [largest]) if each]
    if not exponents:
        return Fraction(0)
    unit = Fraction(2) ** (max(exponents) - p.G)
    return sticky(sum_, unit) + sticky(third, unit)


def floor_log2_of(x: Fraction) -> int:
    return floor_log2(abs(x))


@pytest.mark.parametrize("name", POINTS)
def test_a_step_is_that_of_rationals(name: str) -> None:
    i = datapath[name]
    rows = generate(i.spec, 400)
    known = 0
    for each, got in zip(rows.cases(), i.dot_add(rows.a, rows.b, rows.c), strict=True):
        right = wanted(i.spec, each.a, each.b, each.c)
        known += right is not None
        assert right is None or int(got) == right, (each, got, right)
    assert known > 200


@pytest.mark.parametrize("name", POINTS)
def test_terms_too(name: str) -> None:
    spec = datapath[name].spec
    rows = generate(spec, 5)
    for each, both in zip(rows.cases(), both_results(spec, rows), strict=True):
        right = wanted(spec, each.a, each.b, each.c)
        assert both[0] == both[1]
        assert right is None or both[0] == right


def test_the_sign_of_what_is_far_below_is_that_of_the_second_term() -> None:
    """2^30 + 2^−48 − 1.5·2^−48 is below 2^30, but the second term is the first one of two with equal exponents."""
    a, b = np.array([0x7800, 0x0001], np.uint16), np.array([0x7800, 0x0001], np.uint16)
    c = np.uint32(0xA7C00000)
    of = {name: int(datapath[f"{name},rho=IEEE-RD-FP32)"].dot_add(a, b, c)) for name in
          ("two_largest(frac_bits=51", "exact(k=2")}  # fmt: skip
    assert of == {"two_largest(frac_bits=51": 0x4E800000, "exact(k=2": 0x4E7FFFFF}


@pytest.mark.parametrize(
    ("bits", "last", "said"), [(9, 11, "F ≥ 10"), (13, 13, "14 ≤ G ≤ 58"), (57, 59, "G ≤ 58")]
)
def test_sums_that_cannot_be_are_refused(bits: int, last: int, said: str) -> None:
    with pytest.raises(KeyError, match=said):
        datapath[f"two_largest(frac_bits={bits},last_bits={last},a=e4m3,rho=IEEE-FP16)"]


@pytest.mark.parametrize("name", slow(POINTS, POINTS[1:]))
def test_both_encodings_are_proved_equal(name: str) -> None:
    assert isinstance(verify(datapath[name], timeout=400), Holds)


def test_the_proof_notices_terms_that_are_not_sorted(monkeypatch: pytest.MonkeyPatch) -> None:
    def as_they_are(x: Term, y: Term, z: Term) -> tuple[Term, Term, Term]:
        swap = z3.ULT(x.exponent, y.exponent)
        both = [[z3.If(swap, u, v) for u, v in zip(*pair, strict=True)] for pair in ((y, x), (x, y))]
        return Term(*both[0]), Term(*both[1]), z

    monkeypatch.setattr(smt_sorted, "sorted_terms", as_they_are)
    assert isinstance(verify(datapath[POINTS[0]], timeout=60), Fails)
