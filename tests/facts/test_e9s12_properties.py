"""Properties of the dot product-add of E9S12 halves: what holds, what is refuted, and broken models, not proved."""

from __future__ import annotations

from fractions import Fraction

import pytest
import z3
from support.e9s12_numbers import nearest
from support.rounded_once import examine

from mmaformal import PROPERTIES, e9s12
from mmaformal.cases.generate import generate
from mmaformal.cases.inputs import Codes
from mmaformal.cases.numerical import exact_of
from mmaformal.cases.run import run
from mmaformal.encodings.dpa_e9s12 import smt as smt_dpa
from mmaformal.encodings.dpa_e9s12.proofs import losses
from mmaformal.instruction import Instruction
from mmaformal.proof.kernel import NotProvedError, Theorem, prove
from mmaformal.queries import power_of_two_scaling, sign_symmetry
from mmaformal.solver.answers import Answer, Fails, Holds, Unknown
from mmaformal.solver.asking import Asker
from mmaformal.solver.portfolio import DEFAULT_MEMORY, LazyPortfolio

HOLD = [
    ("power-of-two-scaling", "DP4A.FP16"),
    ("power-of-two-scaling", "DP4A.FP32"),
    ("sign-symmetry", "DP16A.FP16"),
    ("sign-symmetry", "DP1A.FP32"),
    ("accumulator-width", "DP4A.FP16"),
    ("accumulator-width", "DP16A.BF16"),
    ("monotonicity-in-c", "DP4A.BF16"),
    ("monotonicity-in-c", "DP4A.FP32"),
    ("monotonicity-in-a-product", "DP4A.FP16"),
    ("monotonicity-in-a-product", "DP1A.FP32"),
    ("exactness", "DP4A.BF16"),
    ("exactness", "DP4A.FP32"),
    ("error-bound", "DP4A.BF16"),
    ("error-bound", "DP4A.FP32"),
]
QUICK = {("accumulator-width", "DP4A.FP16")}

FAIL = [
    ("zero-padding", "DP16A.FP16"),
    ("zero-padding", "DP16A.BF16"),
    ("monotonicity-in-a-product", "DP4A.BF16"),
    ("monotonicity-in-a-product", "DP4A.FP32"),
]


def settled(name: str, instruction: Instruction, timeout: float = 300.0) -> Answer:
    with LazyPortfolio(None, DEFAULT_MEMORY) as portfolio:
        return PROPERTIES[name].settle(instruction, Asker(portfolio, timeout))


@pytest.mark.parametrize(
    ("name", "of"), [pytest.param(*each, marks=() if each in QUICK else pytest.mark.slow) for each in HOLD]
)
def test_what_holds(name: str, of: str) -> None:
    assert isinstance(settled(name, e9s12[of]), Holds)


@pytest.mark.parametrize(
    ("name", "of"), [pytest.param(*each, marks=pytest.mark.slow if each == FAIL[1] else ()) for each in FAIL]
)
def test_what_fails(name: str, of: str) -> None:
    assert isinstance(settled(name, e9s12[of], 20.0), Fails)


def not_proved(argument: Theorem) -> str:
    """Why an argument fails."""
    with LazyPortfolio(None, DEFAULT_MEMORY) as portfolio, pytest.raises(NotProvedError) as error:
        prove(Asker(portfolio, 60.0), argument)
    assert error.value.refuted
    return str(error.value)


def test_negated_inputs_where_a_product_loses_its_last_place() -> None:
    spec = e9s12["DP4A.FP16"].replace(accumulator_bits=82).spec
    why = not_proved(sign_symmetry.argue_negated(sign_symmetry.relation_negated(spec)))
    assert "aligned terms are related" in why


def test_doubled_inputs_of_a_unit_that_does_not_look_at_exponents(monkeypatch: pytest.MonkeyPatch) -> None:
    """Products that are shifted by a part of the exponent are not the same after it goes up."""
    right = smt_dpa.place

    def place(x: smt_dpa.Term, e_max: z3.BitVecRef, F: int, bits: int) -> z3.BitVecRef:
        return right(x._replace(exponent=x.exponent & 0x3FE), e_max, F, bits)

    monkeypatch.setattr(smt_dpa, "place", place)
    assert "where the largest exponent goes up, terms are the same" in not_proved(
        power_of_two_scaling.argue_doubled(e9s12["DP1A.FP32"].spec)
    )


def test_four_products_of_halves_need_no_carries() -> None:
    """The paper counts log2 of all E9S12 products; those of one pair of fp32 factors fit the bits of one."""
    for of, bits in (("DP1A.FP32", 0), ("DP4A.FP32", 2)):
        answer = settled("accumulator-width", e9s12[of])
        assert isinstance(answer, Holds)
        assert answer.numbers[0].value == bits


@pytest.mark.slow
def test_c_beside_a_sum_that_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    """With no sticky place the sum with a larger c may be the smaller."""
    monkeypatch.setattr(smt_dpa, "GUARD", 23 - 82)
    assert isinstance(settled("monotonicity-in-c", e9s12["DP1A.FP32"], 120.0), Unknown)


@pytest.mark.parametrize("of", ["DP4A.BF16", "DP16A.BF16", "DP4A.FP32"])
def test_exactness_on_codes(of: str) -> None:
    """Where the condition holds d is the exact sum, rounded; and it tells both ways."""
    i = e9s12[of]
    cases = generate(i.spec, 600, 0, ["numbers", "sparse", "near", "edge"]).cases()
    held = 0
    for codes, d in zip(cases, run(i, cases), strict=True):
        value = exact_of(i.spec, codes)
        if value is None:
            continue
        said = examine(i, codes)
        if said.once:
            held += 1
            assert value == 0 or d == nearest(value)
            assert not said.exact or i.d_format.value(d) == value
    assert held > 50


def test_a_bit_below_the_accumulator() -> None:
    """1·1 and the last product that is kept, or the next one."""
    i = e9s12["DP4A.BF16"]
    one, minus = i.a_format.code("1"), i.c_format.code("-1")
    for power, kept in ((39, True), (40, False)):
        low = [i.a_format.code(f"0x1p-{39}"), i.b_format.code(f"0x1p-{power}")]
        codes = Codes((one, low[0], 0, 0), (one, low[1], 0, 0), minus)
        assert examine(i, codes).once == kept
        d = i.dot_add(list(codes.a), list(codes.b), codes.c)
        assert (i.d_format.value(d) == Fraction(1, 1 << 39 + power)) == kept


def test_the_least_bound_is_reached() -> None:
    for of in ("DP4A.BF16", "DP16A.BF16", "DP4A.FP32"):
        witness = losses.reach(e9s12[of])
        assert "n units" in witness.notes[0]
