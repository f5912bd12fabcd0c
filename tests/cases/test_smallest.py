"""Smallest cases against all cases there are, where there are few; and the laws that the search for them rests on."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
import z3
from hypothesis import given, settings
from hypothesis import strategies as st
from support.minimality import claims, measures

from mmaformal import ampere, cdna1, cdna2, cdna3, find_difference, hopper, rtx_blackwell
from mmaformal.cases.codes import both
from mmaformal.cases.inputs import Codes, Rows, symbolic_inputs
from mmaformal.cases.questions import multisets
from mmaformal.cases.relations import Relation
from mmaformal.cases.shrink import lessen, size
from mmaformal.cases.smallest import _in_row
from mmaformal.encodings.fda import Fda
from mmaformal.encodings.smt import blocks, stages
from mmaformal.facts import laws
from mmaformal.facts.laws import Laws
from mmaformal.facts.settling import _Smallest as Smallest
from mmaformal.facts.settling import smallest_breaking as smallest_of
from mmaformal.formats import Format, Specials, e2m1, e5m2, fp32
from mmaformal.instruction import Instruction
from mmaformal.queries import order_independence, output_range, sign_symmetry, zero_padding
from mmaformal.rounding import RNE_FP32, Conversion, Rounding
from mmaformal.solver.answers import Different
from mmaformal.solver.asking import Asker
from mmaformal.solver.portfolio import LazyPortfolio, Outcome
from mmaformal.spec import DotAdd

# ---- properties: every case there is

#: Numbers of three bits: 0, 1, 2, 3, and their opposites.
TINY = Format("e1m1", 3, 1, 1, 0, Specials.NONE, None)
RNE_E5M2 = Conversion("RNE-E5M2", e5m2, 2, Rounding.RNE)
SIGNED = Conversion("IEEE-E5M2", e5m2, 2, Rounding.RNE, signed_zero=True)
RD_E5M2 = Conversion("RD-E5M2", e5m2, 2, Rounding.RD, signed_zero=True)


def fda_of(k: int, a: Format, b: Format, rho: Conversion, F: int, L: int, e_zero: int | None) -> DotAdd:
    return DotAdd(k, a, b, rho.format, rho.format, Fda(F, L, rho, e_zero))


def cases(spec: DotAdd) -> Rows:
    """All of them; of three products, all with the b that is given."""
    axes = [np.arange(spec.a_format.codes)] * spec.k
    axes += [np.arange(spec.b_format.codes)] * spec.k if spec.k < 3 else [np.array([code]) for code in B]
    axes.append(np.arange(spec.c_format.codes))
    columns = [x.reshape(-1).astype(np.uint64) for x in np.meshgrid(*axes, indexing="ij")]
    none = np.zeros((len(columns[0]), 0), np.uint64)
    return Rows(np.stack(columns[: spec.k], -1), np.stack(columns[spec.k : -1], -1), columns[-1], none, none)


B = 3, 2, 5  #: what b is where it is given


def one_run(k: int, related: Callable[[Any], Any], allowed: Callable[[Any], Any]) -> Relation:
    spec = fda_of(k, TINY, TINY, RNE_E5M2, 6, k, -9)
    return Relation(spec, spec, None, lambda x, _: related(x), "", allowed)


#: name → a relation that some case breaks, over few enough cases
BROKEN: dict[str, Relation] = {
    "order across steps": order_independence.relation_reordered(
        fda_of(2, TINY, TINY, RNE_E5M2, 1, 1, -9), (1, 0)
    ),
    "rounding down is not symmetric": sign_symmetry.relation_negated(
        fda_of(1, e2m1, e2m1, RD_E5M2, 9, 1, -20)
    ),
    "zeros with exponents of their fields": zero_padding.relation_padded(
        zero_padding.padding(fda_of(2, e2m1, TINY, RNE_E5M2, 1, 2, None))
    ),
    "zeros above all": zero_padding.relation_padded(
        zero_padding.padding(fda_of(2, TINY, TINY, RNE_E5M2, 1, 2, 4))
    ),
    "minus four": Relation(
        fda_of(2, TINY, TINY, SIGNED, 9, 2, -9),
        fda_of(2, TINY, TINY, SIGNED, 9, 2, -9),
        None,
        lambda x, _: x != e5m2.code("-4"),
        "",
    ),
    "a sum of three": one_run(
        3, lambda x: x != e5m2.code("-3.5"), lambda x: both(*(x.b[k] == B[k] for k in range(3)))
    ),
    # The sign of this zero product, which matters to nothing, cannot be had with zeros alone.
    "a zero product of −3": one_run(1, lambda x: x != e5m2.code("-1"), lambda x: x.a[0] == 7),
}


SLOW = {"order across steps", "zeros with exponents of their fields", "zeros above all", "a sum of three"}


@pytest.mark.parametrize("name", [pytest.param(x, marks=[pytest.mark.slow] * (x in SLOW)) for x in BROKEN])
def test_the_smallest_case_is_that_of_all(solvers: LazyPortfolio, name: str) -> None:
    relation = BROKEN[name]
    every = cases(relation.left)
    broken = relation.runs(every)[2]
    assert broken.any()
    sizes = measures(relation.left, every)[broken]
    least = sizes[np.lexsort(sizes.T[::-1])[0]].tolist()
    start = every[int(np.flatnonzero(broken)[-1])]
    codes, minimality = smallest_of(Asker(solvers, 300), relation, start)
    own = measures(relation.left, Rows.of([codes]))[0].tolist()
    assert [number for number, _ in claims(minimality)] == own == list(size(relation.left, codes))
    assert own == least, minimality
    assert all(line.endswith("proved minimal") for line in minimality), minimality


# ---- which cases are alike


def test_minus_zeros_of_products_are_looked_at(solvers: LazyPortfolio) -> None:
    for instruction in (ampere["DMMA.884"].replace(k=2), ampere["DMMA.884"].replace(k=1, name="k1")):
        answer: Any = output_range.answer_minus_zero(instruction, Asker(solvers, 60))
        codes = answer.witness.codes
        assert size(instruction.spec, codes)[0] == 0
        assert answer.witness.minimality[0] == "0 nonzero products: proved minimal"
        assert [number for number, _ in claims(answer.witness.minimality)] == list(
            size(instruction.spec, codes)
        )


@pytest.mark.parametrize(
    ("instruction", "order", "exchange", "signs", "zeros"),
    [
        (ampere["HMMA.1688.F32"].replace(k=2, L=2), True, True, True, {"plus", "signed"}),
        (hopper.revision("paper-v1")["HMMA.1688.F32"].replace(k=2, L=2), True, True, True, set()),
        (ampere["DMMA.884"], True, True, True, {"signed"}),
        (cdna1["f32_32x32x8f16"].replace(k=2, L=2), True, True, True, {"plus", "signed"}),
        (cdna3["f32_32x32x8_f16"].replace(k=2, L=2), True, True, True, {"plus", "signed"}),
        (cdna3["f32_32x32x16_fp8_fp8"].replace(k=4, L=4), True, True, False, {"plus", "signed"}),
        (rtx_blackwell["OMMA.SF.16864.F32.E2M1.E2M1.UE4M3.4X"].replace(k=4, G=2, L=4, scale_block=4), True, True, True,
         {"plus", "signed"}),
    ],
    ids=lambda x: x.label if isinstance(x, Instruction) else "",
)  # fmt: skip
def test_laws(
    solvers: LazyPortfolio,
    instruction: Instruction,
    order: bool,
    exchange: bool,
    signs: bool,
    zeros: set[str],
) -> None:
    laws, spec = Laws(Asker(solvers, 100)), instruction.spec
    assert laws.order(spec) == order
    assert laws.exchange(spec) == exchange
    assert laws.signs(spec) == signs
    assert laws.zeros(spec) == zeros


@pytest.mark.slow
def test_a_zero_product_of_gps_is_not_any_zero_product(solvers: LazyPortfolio) -> None:
    laws = Laws(Asker(solvers, 100))
    spec = cdna2["f32_32x32x4bf16"].spec.replace(k=2)
    assert laws.zeros(spec) == set()
    assert not laws.signs(spec)  # −0 becomes +0
    assert laws.exchange(spec)


def test_laws_that_an_encoding_breaks_are_not_proved(monkeypatch: pytest.MonkeyPatch) -> None:
    """One product that is not commutative, has a sign of its own, or is zero with an exponent of its own."""
    spec = ampere["HMMA.1688.F32"].spec.replace(k=2, L=2)
    multiply = stages.multiply
    one = z3.BitVecVal(1, 1)

    def left(x: Any, a: Any, b: Any, *_: Any) -> Any:
        return x._replace(significand=z3.If(a.field == 3, x.significand | 1, x.significand))

    def sign(x: Any, a: Any, b: Any, *_: Any) -> Any:
        return x._replace(significand=z3.If(a.sign == one, x.significand | 1, x.significand))

    def zero(x: Any, a: Any, b: Any, *_: Any) -> Any:
        exponent = z3.If(z3.And(blocks.is_zero(a), b.field == 7), x.exponent + 9, x.exponent)
        return x._replace(exponent=exponent)

    for change, law in ((left, "exchange"), (sign, "signs"), (zero, "zeros")):
        monkeypatch.setattr(stages, "multiply", lambda *args, change=change: change(multiply(*args), *args))
        laws.forget_laws()
        with LazyPortfolio() as solvers:
            assert not getattr(Laws(Asker(solvers, 60)), law)(spec), law
        monkeypatch.setattr(stages, "multiply", multiply)
        laws.forget_laws()
        with LazyPortfolio() as solvers:
            assert getattr(Laws(Asker(solvers, 60)), law)(spec), law


def test_a_case_has_no_bits_that_the_unit_ignores() -> None:
    spec = ampere["HMMA.1688.F32.TF32"].spec.replace(k=1, L=1)
    inputs = symbolic_inputs(spec, {"b0": 0x3F801234})
    codes = inputs.codes(spec, {"a0": 0xFFFFFFFF, "c": 0xFFFFFFFF})
    assert (codes.a, codes.b, codes.c) == ((0xFFFFE000,), (0x3F801234,), 0xFFFFFFFF)


def test_what_no_solver_settles_is_open(solvers: LazyPortfolio, monkeypatch: pytest.MonkeyPatch) -> None:
    relation = BROKEN["minus four"]
    asker = Asker(solvers, 60)
    unknown = Outcome("unknown", "", "", 0.0, why="too hard")
    monkeypatch.setattr(asker, "satisfy", lambda *_, **__: unknown)
    search = Smallest(asker, relation)
    assert search.with_products(0, lambda: 9.0) is None
    assert search.products_open(1) == "0 not settled: too hard"
    assert search.products_open(0) == ""


def test_of_products_alike_some_are_chosen() -> None:
    rng = random.Random(0)
    for _ in range(200):
        sizes = [rng.randint(1, 3) for _ in range(rng.randint(0, 5))]
        count = rng.randint(0, 8)
        every = itertools.combinations_with_replacement(range(len(sizes)), count)
        of_each = [tuple(choice.count(i) for i in range(len(sizes))) for choice in every]
        some = [n for n in of_each if all(x <= y for x, y in zip(n, sizes, strict=True))]
        assert list(multisets(sizes, count)) == some


def test_ways_are_found_where_few_of_many_are_possible() -> None:
    # 12 kinds of 3 products: of 10^9 ways to take 36 kinds, one takes no more than there are.
    assert list(multisets([3] * 12, 36)) == [(3,) * 12]


# ---- ties


@pytest.mark.parametrize("backend", ["z3", "bitwuzla"])
def test_whichever_solver_answers_the_case_is_the_same(backend: str) -> None:
    one = Instruction("X", "test", 16, 8, DotAdd(2, e2m1, e2m1, fp32, fp32, Fda(3, 2, RNE_FP32, -60)))
    answer = find_difference(one, one.replace(F=4), where="c=0x40000000", solver=[backend])
    assert isinstance(answer, Different)
    assert answer.minimality[-1] == "first in order of place and code: proved minimal"
    found = Codes(tuple(answer.witness.a.tolist()), tuple(answer.witness.b.tolist()), int(answer.witness.c))
    assert found == FIRST


FIRST = Codes((2, 6), (2, 6), 0x40000000)


def test_codes_are_compared_product_by_product() -> None:
    assert _in_row(Codes((1, 2), (3, 4), 5, (6,), (7,))) == [1, 3, 2, 4, 5, 6, 7]


@settings(max_examples=200)
@given(st.data())
def test_a_lessened_case_is_no_larger_shows_the_same_and_is_no_later_in_order(data: st.DataObject) -> None:
    spec = fda_of(3, TINY, TINY, SIGNED, 8, 3, None)

    def code(fmt: Format) -> st.SearchStrategy[int]:
        return st.integers(0, fmt.codes - 1)

    def drawn() -> Codes:
        a, b = (tuple(data.draw(code(TINY)) for _ in range(3)) for _ in "ab")
        return Codes(a, b, data.draw(code(e5m2)), (), ())

    x = drawn()
    wanted = data.draw(st.sets(st.integers(0, 63), min_size=1))  # hashes of the cases that show something

    def shows(cases: Sequence[Codes]) -> list[bool]:
        return [each == x or hash(each) % 64 in wanted for each in cases]

    found = lessen(spec, x, shows)
    assert shows([found]) == [True]
    assert size(spec, found) <= size(spec, x)
    assert _in_row(found) <= _in_row(x)


def test_zero_products_are_lessened_to_zeros_that_show_the_same() -> None:
    """Where a minus sign of the products is needed, b has it, which comes after a."""
    spec, minus = fda_of(2, e5m2, e5m2, SIGNED, 8, 2, None), e5m2.sign_mask

    def shows(cases: Sequence[Codes]) -> list[bool]:
        return [all((a ^ b) & minus for a, b in zip(x.a, x.b, strict=True)) and x.c == minus for x in cases]

    x = Codes((minus, 0), (0x3F, 0xBB), minus, (), ())
    assert lessen(spec, x, shows) == Codes((0, 0), (minus, minus), minus, (), ())
