"""The formulas that benchmarks ask solvers as one question say what they are to say."""

from __future__ import annotations

import sys
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import z3
from support.exact import exact_sum

from mmaformal import hopper
from mmaformal.cases.inputs import Codes, Inputs, symbolic_inputs
from mmaformal.cases.run import run
from mmaformal.facts import reaching
from mmaformal.proof.definitions import is_correct, is_faithful

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))
import library_integers
import monolithic

FOUR = hopper["HMMA.16816.F32"].replace(k=4, L=4)


def cases(count: int) -> list[Codes]:
    """Numbers near each other, and any codes."""
    rng = np.random.default_rng(1)
    near = [
        Codes(
            tuple(int(x) for x in rng.integers(0x3800, 0x4400, 4) | rng.integers(0, 2, 4) << 15),
            tuple(int(x) for x in rng.integers(0x3800, 0x4400, 4)),
            int(rng.integers(0x3D000000, 0x43000000) | rng.integers(0, 2) << 31),
        )
        for _ in range(count)
    ]
    low = [Codes(tuple(int(v) for v in rng.integers(0, 1 << 16, 4)), x.b, x.c >> 3) for x in near]
    return [*near, *low]


def value_of(formula: Any, inputs: Inputs, codes: Codes) -> Any:
    pairs = [*zip(inputs.a, codes.a, strict=True), *zip(inputs.b, codes.b, strict=True), (inputs.c, codes.c)]
    values = [(term, z3.BitVecVal(code, term.size())) for term, code in pairs]
    return z3.simplify(z3.substitute(formula, *values))


def test_the_exact_sum_is_that() -> None:
    x = symbolic_inputs(FOUR.spec)
    finite, total, unit = monolithic.exact_sum(FOUR, x)
    for codes in cases(20):
        expected = exact_sum(FOUR.spec, codes)
        assert z3.is_true(value_of(finite, x, codes)) == (expected is not None)
        if expected is not None:
            assert value_of(total, x, codes).as_signed_long() == expected / Fraction(2) ** unit


@pytest.mark.parametrize("faithful", [False, True])
def test_rounding_is_broken_where_it_is(faithful: bool) -> None:
    formula, x = monolithic.rounding(FOUR, faithful), symbolic_inputs(FOUR.spec)
    judge, rho = is_faithful if faithful else is_correct, FOUR.spec.parameters.last_rounding
    cancelling = Codes(
        (0x7800, 0xF800, 0, 0), (0x7800, 0x7800, 0, 0), 0x3A800000
    )  # 2^30 − 2^30 + 2^-10 gives 0
    chosen, found = [*cases(20), cancelling], set()
    for codes, d in zip(chosen, run(FOUR, chosen), strict=True):
        total = exact_sum(FOUR.spec, codes)
        broken = total is not None and not judge(d, total, rho)
        assert z3.is_true(value_of(formula, x, codes)) == broken
        found.add(broken)
    assert found == {False, True}


def test_the_bound_is_broken_by_a_smaller_one_only(monkeypatch: pytest.MonkeyPatch) -> None:
    witness = reaching.reach(FOUR)
    assert witness is not None
    x, n = symbolic_inputs(FOUR.spec), reaching.least_n(FOUR)
    assert z3.is_false(value_of(monolithic.beyond_bound(FOUR), x, witness.codes))
    smaller = type(n)(n.numerator - 1, n.denominator)
    monkeypatch.setattr(monolithic.reaching, "least_n", lambda i: smaller)
    assert z3.is_true(value_of(monolithic.beyond_bound(FOUR), x, witness.codes))


def test_every_property_has_a_formula() -> None:
    from mmaformal.queries.properties import PROPERTIES

    assert set(monolithic.FORMULAS) == set(PROPERTIES)


def test_a_product_that_saturates_in_16_bits_is_counted() -> None:
    """vpmaddubsw adds two products and saturates; of the largest factors nearly every element shows it."""

    def saturating(A: Any, B: Any) -> Any:
        D = [[0] * B.shape[1] for _ in A]
        for row, a in enumerate(A.tolist()):
            for column, b in enumerate(B.T.tolist()):
                terms = [x * y for x, y in zip(a, b, strict=True)]
                pairs = [sum(terms[k : k + 2]) for k in range(0, len(terms), 2)]
                D[row][column] = sum(min(max(x, -(1 << 15)), (1 << 15) - 1) for x in pairs)
        return np.array(D, np.int32)

    def exact(A: Any, B: Any) -> Any:
        return np.array([[sum(map(int.__mul__, a, b)) for b in B.T.tolist()] for a in A.tolist()], np.int32)

    types = (np.uint8, np.int8)
    for product, wrong in ((saturating, True), (exact, False)):
        case = library_integers.IntegerCall("one", "of this test", "uint8", "int8", "int32")
        library_integers.compared(case, types, product, exact, 1, shapes=((5, 6, 7),))
        assert case.outputs == case.extreme == 35
        assert (case.extreme_wrong > 30) == wrong
        assert bool(case.wrong) == wrong
