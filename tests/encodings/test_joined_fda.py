"""joined_fda: one sticky bit for all that alignment cut off, against rationals and proved equal."""

from __future__ import annotations

from fractions import Fraction
from math import floor

import numpy as np
import pytest
import z3
from support.fma_numbers import code_of
from support.slow import slow

from mmaformal import datapath
from mmaformal.cases.generate import generate
from mmaformal.cases.run import both_results
from mmaformal.encodings.joined_fda import JoinedFda
from mmaformal.encodings.joined_fda import smt as smt_joined
from mmaformal.formats import Format
from mmaformal.queries.verify import verify
from mmaformal.solver.answers import Fails, Holds
from mmaformal.spec import DotAdd

POINTS = [
    "joined(k=2,frac_bits=8,a=e4m3,rho=IEEE-FP16)",
    "joined(k=2,frac_bits=10,rho=RNE-FP32)",
    "joined(k=4,frac_bits=24,a=bf16,rho=IEEE-RD-FP32)",
    "joined(k=4,frac_bits=20,a=fp16,c=fp16,rho=IEEE-RU-BF16,e_zero=fields)",
    "joined(k=2,frac_bits=12,a=e5m2,b=e4m3,rho=RNA-FP32,chain=2)",
]


def wanted(spec: DotAdd, a: tuple[int, ...], b: tuple[int, ...], c: int) -> int | None:
    """Returns the code of d; None where an operand is special."""
    p = spec.parameters_as(JoinedFda)

    def exponent(code: int, fmt: Format) -> int:
        return max(fmt.fields(code)[1], 1) - fmt.bias

    x, y, z = spec.a_format, spec.b_format, spec.c_format
    for k in range(0, spec.k, p.L):
        u, v = a[k : k + p.L], b[k : k + p.L]
        if not (all(map(x.is_finite, u)) and all(map(y.is_finite, v)) and z.is_finite(c)):
            return None
        terms = [
            (x.value(i) * y.value(j), exponent(i, x) + exponent(j, y)) for i, j in zip(u, v, strict=True)
        ]
        terms.append((z.value(c), exponent(c, z)))
        if p.e_zero is not None:
            terms = [(t, e if t else p.e_zero) for t, e in terms]
        unit = Fraction(2) ** (max(e for _, e in terms) - p.F)
        kept = [floor(abs(t) / unit) * (1 if t > 0 else -1) for t, _ in terms]
        lost = any(each * unit != t for each, (t, _) in zip(kept, terms, strict=True))
        total = sum(kept)
        magnitude = 2 * abs(total) + lost
        c = code_of((-magnitude if total < 0 else magnitude) * unit / 2, p.rho, False)
    return c


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


def test_a_negative_sum_moves_away_from_zero() -> None:
    """−1 + 2^−24 · 2^-6 is −1 with a bit more in magnitude: rounded down it is below −1, where fda gives −1."""
    a, b, c = np.array([0x0001], np.uint16), np.array([0x2400], np.uint16), np.uint32(0xBF800000)
    joined = datapath["joined(k=1,frac_bits=20,rho=RD-FP32)"].dot_add(a, b, c)
    assert int(joined) == 0xBF800004  # the joined bit is 2^-21
    assert int(datapath["fda(k=1,frac_bits=20,rho=RD-FP32)"].dot_add(a, b, c)) == 0xBF800000


@pytest.mark.parametrize("name", slow(POINTS, POINTS[1:]))
def test_both_encodings_are_proved_equal(name: str) -> None:
    assert isinstance(verify(datapath[name], timeout=400), Holds)


def test_the_proof_notices_a_bit_joined_on_the_wrong_side(monkeypatch: pytest.MonkeyPatch) -> None:
    def beside(total: z3.BitVecRef, lost: list[z3.BoolRef]) -> z3.BitVecRef:
        return z3.Concat(total, z3.If(z3.Or(*lost), z3.BitVecVal(1, 1), z3.BitVecVal(0, 1)))

    monkeypatch.setattr(smt_joined, "join", beside)
    assert isinstance(verify(datapath[POINTS[0]], timeout=60), Fails)


def test_the_proof_notices_a_term_whose_loss_is_not_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    real = smt_joined.is_lost

    def but_for_c(x: object, e_max: z3.BitVecRef, places: int, F: int) -> z3.BoolRef:
        return z3.BoolVal(False) if places == 10 else real(x, e_max, places, F)  # type: ignore[arg-type]

    monkeypatch.setattr(smt_joined, "is_lost", but_for_c)
    assert isinstance(verify(datapath[POINTS[0]], timeout=60), Fails)
