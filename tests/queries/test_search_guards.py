"""Guards of searches, of what they may take for granted, and what not: each has a case in which it matters.

Questions are answered in this process, so that each of these tests takes a moment.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
import z3
from support.in_process import OPEN, Forgetful, Here
from support.proofs import NOTHING, refuted, some_proof

from mmaformal import rtx_blackwell
from mmaformal.cases.codes import is_nan, is_zero, sign_bit
from mmaformal.cases.inputs import Codes, Inputs, Rows, symbolic_inputs
from mmaformal.cases.questions import FoundCase
from mmaformal.cases.relations import Relation, witness_of
from mmaformal.cases.run import code_values, smt_result
from mmaformal.cases.symmetries import symmetry_classes
from mmaformal.encodings import smt
from mmaformal.encodings.efda import Efda
from mmaformal.encodings.fda import Fda
from mmaformal.encodings.fda import smt as smt_fda
from mmaformal.encodings.gps import Gps
from mmaformal.encodings.smt import stages
from mmaformal.facts import both_encodings, orders, settling
from mmaformal.facts.laws import Laws
from mmaformal.facts.settling import _Smallest as Breaks
from mmaformal.formats import FORMATS, Format, Specials, e2m1, e2m3, e3m2, e5m2, fp32
from mmaformal.instruction import Instruction
from mmaformal.proof.kernel import direct
from mmaformal.proof.lemmas import ArgumentError
from mmaformal.queries import long_chains
from mmaformal.queries.constraints import Constraint, as_constraints, finite, fixed
from mmaformal.queries.find_difference import _Search as Differences
from mmaformal.queries.long_chains import LongChains
from mmaformal.rounding import RNE_FP32, RZ_FP32, Conversion, Rounding
from mmaformal.solver.answers import Different, Equal, Holds, Unknown
from mmaformal.solver.asking import Asker, restated
from mmaformal.spec import DotAdd, Parameters
from mmaformal.witness import Witness, WitnessError

ZERO, ONE, TWO = (fp32.code(x) for x in ("0", "1", "2"))


def unit(
    k: int, parameters: Parameters, name: str = "X", a: Format = e2m1, b: Format = e2m1, c: Format = fp32
) -> Instruction:
    return Instruction(name, "test", 16, 8, DotAdd(k, a, b, c, fp32, parameters))


def fda(F: int, L: int = 1, e_zero: int | None = -60, rho: Conversion = RZ_FP32) -> Fda:
    return Fda(F, L, rho, e_zero)


def differences(x: Instruction, y: Instruction, *where: Constraint | str, asker: Any = None) -> Differences:
    return Differences(x, y, as_constraints(where), asker or Forgetful(), None)


@dataclass(frozen=True)
class Said(Constraint):
    """A constraint that says anything of the inputs."""

    what: Callable[[Inputs], z3.BoolRef]

    def on_inputs(self, spec: DotAdd, inputs: Inputs) -> list[z3.BoolRef]:
        return [self.what(inputs)]


# ---- which cases are alike: two models


PAIR = unit(2, fda(3, 2)), unit(2, fda(4, 2), "Y")


@pytest.mark.parametrize(
    ("models", "said", "classes", "exchange", "signs", "zeros"),
    [
        (PAIR, None, 1, True, True, "plus"),
        ((PAIR[0], unit(2, fda(4, 2, None), "Y")), None, 1, True, True, "any"),
        pytest.param(
            *((unit(2, Efda(2, RNE_FP32)), unit(2, Gps(2), "Y")), None, None, True, False, "any"),
            marks=pytest.mark.slow,
        ),
        (PAIR, lambda x: z3.And(sign_bit(x.b[0], e2m1) == 1, sign_bit(x.b[1], e2m1) == 1), 1, False, False, "any"),
        (PAIR, lambda x: z3.ULE(x.a[0] & 7, 1), 2, False, True, "plus"),
        (PAIR, lambda x: z3.And(x.b[0] & 7 != 0, x.b[1] & 7 != 0), 1, False, True, "any"),
        (PAIR, lambda x: x.a[0] == x.a[1], 2, False, False, "any"),
    ],
    ids=["all", "zeros of one", "signs of one", "minus signs", "one small a", "no zero b", "equal factors"],
)  # fmt: skip
def test_what_is_alike_is_so_in_both_models_and_where_it_is_allowed(
    models: tuple[Instruction, Instruction],
    said: Any,
    classes: int | None,
    exchange: bool,
    signs: bool,
    zeros: str,
) -> None:
    found = differences(*models, *([Said(said)] if said else [])).find_licences()
    assert classes in (None, len(set(found.classes)))
    assert (found.exchange, found.signs, found.zeros) == (exchange, signs, zeros)


def test_which_formats_have_a_minus_zero() -> None:
    for fmt in FORMATS.values():
        minus = fmt.signed and fmt.has_zero and fmt.is_finite(fmt.sign_mask) and fmt.value(fmt.sign_mask) == 0
        assert fmt.has_minus_zero == minus, fmt


def test_a_law_that_is_not_settled_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("satisfy", "decide"):
        monkeypatch.setattr(Asker, name, lambda *_, **__: OPEN)
    laws, spec = Laws(Asker(Here(), 60)), PAIR[0].spec
    assert not laws.order(spec)
    assert not laws.exchange(spec)
    assert not laws.signs(spec)
    assert laws.zeros(spec) == set()


def test_products_of_two_scales_within_a_step_are_not_alike() -> None:
    scaled = rtx_blackwell["QMMA.SF.16832.F32.E5M2.E3M2.E8"]
    spec = scaled.replace(k=4, L=4, scale_block=2, a_format=e2m1, b_format=e2m1).spec
    assert orders.products_together(spec) == [[0, 1], [2, 3]]
    assert len(set(symmetry_classes(spec, spec))) == 2
    one_scale = spec.replace(scale_block=4)
    assert len(set(symmetry_classes(one_scale, spec))) == 2
    assert orders.across_blocks(spec) == [(2, 3, 0, 1)]
    moved = orders.reordered(spec, (2, 3, 0, 1))(Codes((1, 2, 3, 4), (5, 6, 7, 8), 9, (10, 11), (12, 13)))
    assert moved == Codes((3, 4, 1, 2), (7, 8, 5, 6), 9, (11, 10), (13, 12))


def test_products_change_places_across_steps_with_the_same_scales_only() -> None:
    scaled = rtx_blackwell["QMMA.SF.16832.F32.E5M2.E3M2.E8"]
    spec = scaled.replace(k=4, L=1, scale_block=2, a_format=e2m1, b_format=e2m1).spec
    assert orders.across_blocks(spec) == [(1, 0, 2, 3), (0, 1, 3, 2), (2, 3, 0, 1)]
    assert orders.within_blocks(spec) == []
    pairs = spec.replace(L=2)
    assert orders.within_blocks(pairs) == [(1, 0, 2, 3), (0, 1, 3, 2)]


# ---- idle steps


class Step:
    """A step that is made up, with what a proof may cut of it."""

    def __init__(self, result: z3.BitVecRef) -> None:
        self.result = result
        self.total, self.e_max = z3.BitVecs("total e_max", 8)


def made_up(broken: str) -> Callable[..., Any]:
    """A step that gives back its c where it is idle, +0 for −0, and else 1, or a NaN from a NaN; but for one thing."""
    minus = 1 << 31

    def dot_add(spec: DotAdd, a: Sequence[Any], b: Sequence[Any], c: Any, *_: Any) -> Any:
        def code(value: int) -> z3.BitVecRef:
            return z3.BitVecVal(value, 32)

        c = c if isinstance(c, z3.BitVecRef) else code(c)
        idle = z3.And([is_zero(x, e2m1) for x in (*a, *b)])
        busy = z3.If(is_nan(c, fp32), c, code(ONE))
        if broken == "tells −0":
            busy = z3.If(c == minus, code(TWO), busy)
        elif broken == "forgets NaN":
            busy = code(ONE)
        elif broken == "gives −0":
            busy = z3.If(c == TWO, code(minus), busy)
        kept = z3.If(c == minus, code(0), c)
        if broken == "changes c":
            kept = z3.If(c == ONE, code(TWO), kept)
        result = z3.If(idle, kept, busy)
        return smt.Trace((Step(result),), result)

    return dot_add


@pytest.mark.parametrize("broken", ["", "changes c", "tells −0", "forgets NaN", "gives −0"])
def test_idle_steps_are_left_out_if_nothing_tells_them(broken: str, monkeypatch: pytest.MonkeyPatch) -> None:
    x = unit(2, fda(3))
    monkeypatch.setattr(smt, "dot_add", made_up(broken))
    assert differences(x, x)._idle_steps_pass(x.spec) == (not broken)


#: An idle step cuts what the step before it gives.
CUTS = unit(2, fda(3, 1, 3)), unit(2, fda(3, 2, 3), "Y")


def test_an_idle_step_that_cuts_its_c_is_not_left_out() -> None:
    c = fp32.code("0x1.4p+0")
    search = differences(*CUTS, fixed(c=c))
    assert not search._idle_steps_pass(CUTS[0].spec)
    for active in ((0,), (1,)):
        inputs = code_values(
            CUTS[0].spec, Codes((2, 0) if active == (0,) else (0, 2), (2, 0) if active == (0,) else (0, 2), c)
        )
        for i in CUTS:
            sparse = z3.simplify(search._result(i.spec, inputs, active))
            whole = z3.simplify(search._result(i.spec, inputs, None))
            assert sparse.eq(whole)


def test_products_keep_their_places_where_order_is_not_proved(monkeypatch: pytest.MonkeyPatch) -> None:
    x = PAIR[0]
    inputs = symbolic_inputs(x.spec, {"a0": 0, "b0": 0})
    proved = differences(*PAIR)._result(x.spec, inputs, (1,))
    monkeypatch.setattr(Laws, "order", lambda *_: False)
    search = differences(*PAIR)
    assert search._result(x.spec, inputs, (1,)).eq(search._result(x.spec, inputs, None))
    assert not proved.eq(search._result(x.spec, inputs, (1,)))


# ---- the smallest case


def test_each_way_to_place_products_is_looked_at() -> None:
    x, y = unit(3, fda(3, 3)), unit(3, fda(4, 3), "Y")
    search = differences(x, y)
    assert [list(search.ways(n)) for n in range(4)] == [[()], [(0,)], [(0, 1)], [(0, 1, 2)]]
    pinned = differences(x, y, fixed(b={1: 3}))
    assert list(pinned.ways(1)) == [(0,), (1,)]
    assert sorted(pinned.ways(2)) == [(0, 1), (0, 2)]
    forced = differences(x, y, fixed(a={2: 1}, b={2: 3}))
    assert [list(forced.ways(n)) for n in range(3)] == [[], [(2,)], [(0, 2)]]


def test_a_zero_product_may_have_a_large_factor_on_either_side() -> None:
    """Zero products have the exponents of their fields, and only those of a zero a reach far enough."""
    x, y = (unit(1, fda(F, 1, None), f"F{F}", e2m1, e3m2, e2m3) for F in (3, 4))
    for where in ([], [fixed(a={0: 0})]):
        answer = differences(x, y, *where).answer()
        assert isinstance(answer, Different)
        assert answer.minimality[0] == "0 nonzero products: proved minimal"
        assert answer.witness.a.tolist() in ([0], [8])
    beside, said = differences(x, y, fixed(a={0: 0})).inputs(())
    assert beside.b[0].eq(z3.BitVec("b0", 6))
    assert len(said) == 1


ONE_PRODUCT = unit(1, fda(2)), unit(1, fda(3), "Y")
#: At the second place there are smaller exponents.
TWO_PLACES = unit(2, fda(1, 1, -2)), unit(2, fda(2, 1, -2), "Y"), fixed(b={0: 5, 1: 3}, c=ZERO)


@pytest.mark.parametrize(
    ("name", "case", "open_"),
    [
        ("at most", ONE_PRODUCT, ["c ≠", "significand", "sum of", "of that", "minus"]),
        ("lesser codes", ONE_PRODUCT, ["first in order"]),
        ("the same at other places", TWO_PLACES, ["first in order"]),
        ("0 products", ONE_PRODUCT, ["1 nonzero"]),
    ],
    ids=["bounds", "codes", "places", "products"],
)
def test_what_is_not_settled_is_not_called_minimal(name: str, case: Any, open_: list[str]) -> None:
    answer = differences(*case, asker=Forgetful(lambda text: name in text)).answer()
    assert isinstance(answer, Different)
    for line in answer.minimality:
        named = any(line.startswith(each) for each in open_) and ": 0: " not in line
        assert line.endswith("too hard)" if named else ": proved minimal"), line


def test_a_question_within_bounds_that_its_words_do_not_tell_is_no_proof() -> None:
    search = differences(*ONE_PRODUCT)
    nothing = [z3.BoolVal(False)]
    outcome, _ = search.ask_within((0,), "minus signs at most 3", [lambda *_: nothing])
    assert outcome.verdict == "unsat"
    with pytest.raises(ArgumentError, match="under premises"):
        direct(outcome)


def test_places_that_an_argument_rules_out_are_no_proof(monkeypatch: pytest.MonkeyPatch) -> None:
    search = differences(*ONE_PRODUCT)
    monkeypatch.setattr(search, "nothing_at", lambda _: True)
    assert search.with_products(1, lambda: 60.0) is None
    with pytest.raises(ArgumentError, match="an argument rules these places out"):
        direct(*search.questions)


def test_what_is_settled_is_called_minimal() -> None:
    for case in (ONE_PRODUCT, TWO_PLACES):
        settled = differences(*case).answer()
        assert isinstance(settled, Different)
        assert all(line.endswith("proved minimal") for line in settled.minimality)
        assert len(case) == 2 or settled.witness.a.tolist()[0] == 0


def test_of_cases_as_small_as_each_other_the_first_is_taken() -> None:
    x, y = unit(1, fda(1)), unit(1, fda(2), "Y")
    search = differences(x, y, fixed(c=ZERO))
    found, why = search._first(found_at(x, y, Codes((15,), (3,), ZERO)), [], [(0,)])
    pairs = [(a, b) for a in range(16) for b in range(8) if a & 7 >= b]  # which stand for all
    of_a, of_b = (np.array([[pair[side]] for pair in pairs], np.uint8) for side in (0, 1))
    differ = x.dot_add(of_a, of_b, np.uint32(0)) != y.dot_add(of_a, of_b, np.uint32(0))
    first = min(pair for pair, each in zip(pairs, differ, strict=True) if each)
    assert (found.codes.a + found.codes.b, why) == (first, "")
    assert first != (15, 3)


def found_at(x: Instruction, y: Instruction, codes: Codes) -> FoundCase:
    seen = tuple(smt_result(i.spec, codes) for i in (x, y))
    return FoundCase(codes, tuple(range(x.k)), seen)


def test_fewer_products_are_asked_for_from_the_first_number_not_tried(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    module = __import__("importlib").import_module("mmaformal.queries.find_difference")
    monkeypatch.setattr(module, "_SPARSE", 0)
    x, y = unit(3, fda(2, 3)), unit(3, fda(3, 3), "Y")
    search, found = differences(x, y), found_at(x, y, Codes((3, 2, 2), (3, 2, 2), ZERO))
    found, count = search._fewer_products(found, search._not_tried(found))
    assert count == 1
    assert sum(map(bool, found.codes.a)) == 1


def test_the_best_so_far_is_the_smallest_so_far() -> None:
    x, y = unit(1, fda(1)), unit(1, fda(2), "Y")
    asker = Forgetful()
    search = differences(x, y, asker=asker)
    small, large = (found_at(x, y, Codes((a,), (3,), c)) for a, c in ((3, ZERO), (15, fp32.code("1.5"))))
    for each in (small, large):
        search.note(each)
        assert asker.best is not None
        answer = asker.best()
        assert isinstance(answer, Different)
        assert answer.witness.a.tolist() == [3]
        assert not any(line.endswith("proved minimal") for line in answer.minimality)


def test_what_no_solver_settles_is_not_equal() -> None:
    x, y = unit(1, fda(12), c=e2m3), unit(1, fda(9), "Y", c=e2m3)  # nothing is lost
    assert isinstance(differences(x, y).answer(), Equal)
    asker = Forgetful(lambda name: name == "all inputs at once")
    answer = differences(x, y, asker=asker).answer()
    assert isinstance(answer, Unknown)
    assert answer.why == "too hard"


def test_constraints_on_results_are_about_both() -> None:
    nearest, cut = (Conversion(f"{r.name}-E5M2", e5m2, 2, r) for r in (Rounding.RNE, Rounding.RZ))
    x, y = (
        Instruction(r.name, "test", 16, 8, DotAdd(1, e5m2, e5m2, e5m2, e5m2, Fda(20, 1, r, -40)))
        for r in (nearest, cut)
    )
    largest = e5m2.code("57344")
    case = Codes((e5m2.code("1"),), (e5m2.code("4096"),), largest)
    assert [e5m2.is_finite(smt_result(i.spec, case)) for i in (x, y)] == [False, True]
    for pair in ((x, y), (y, x)):
        for where, shown in (((), True), ((finite(),), False)):
            said, _ = differences(*pair, *where).shows(code_values(x.spec, case), None)
            assert z3.is_true(z3.simplify(z3.And(said))) == shown


# ---- two runs: which cases are alike


TINY = Format("e1m1", 3, 1, 1, 0, Specials.NONE, None)
TO_E5M2 = Conversion("RNE-E5M2", e5m2, 2, Rounding.RNE)


def tiny(e_zero: int | None = -9, L: int = 2, factors: Format = TINY) -> DotAdd:
    return DotAdd(2, factors, factors, e5m2, e5m2, Fda(6, L, TO_E5M2, e_zero))


def related(
    image: Callable[[Any], Any] | None = None,
    allowed: Callable[[Any], Any] = lambda _: True,
    left: DotAdd | None = None,
    right: DotAdd | None = None,
) -> Relation:
    left = left or tiny()
    return Relation(left, right or left, image, lambda x, y: x == y, "changed", allowed)


def negated_first(x: Any) -> Any:
    return replace(x, a=(x.a[0] ^ 4, *x.a[1:]))


def into_c(x: Any) -> Any:
    """The first factor in c too."""
    return replace(x, c=x.c ^ z3.ZeroExt(5, x.a[0]))


@pytest.mark.parametrize(
    ("relation", "classes"),
    [
        (related(), 1),
        (related(lambda x: replace(x, a=x.a[::-1], b=x.b[::-1])), 1),
        (related(negated_first), 2),
        (related(into_c), 2),
        (related(allowed=lambda x: x.a[0] == x.a[1]), 2),
        (related(allowed=lambda x: x.a[0] == 0), 2),
        (related(lambda x: x, left=tiny(L=2), right=tiny(L=1)), 2),
    ],
    ids=["one run", "exchanged", "one negated", "in c", "equal factors", "one zero", "other steps"],
)
def test_products_are_alike_in_both_runs_and_in_what_is_allowed(relation: Relation, classes: int) -> None:
    asker = Forgetful()
    found = Breaks(asker, relation)._classes(symbolic_inputs(relation.left), Laws(asker))
    assert len(set(found)) == classes


@pytest.mark.parametrize(
    ("relation", "exchange", "signs", "zeros"),
    [
        (related(lambda x: replace(x, c=x.c ^ 128)), True, True, "signed"),
        (related(lambda x: x, left=tiny(factors=e2m1), right=tiny(None, factors=e2m1)), True, True, "any"),
        (related(lambda x: x, allowed=lambda x: x.b[0] & 3 != 0), False, True, "any"),
        (related(lambda x: x, allowed=lambda x: x.b[0] & 4 != 0), False, False, "any"),
    ],
    ids=["c negated", "zeros of one", "no zero", "a minus sign"],
)
def test_what_stands_for_other_cases_breaks_a_relation_as_they_do(
    relation: Relation, exchange: bool, signs: bool, zeros: str
) -> None:
    found = Breaks(Forgetful(), relation).find_licences()
    assert (found.exchange, found.signs, found.zeros) == (exchange, signs, zeros)


def test_no_products_are_tried_before_one() -> None:
    """A case of one product was found; c alone breaks it too."""
    relation = replace(related(), related=lambda x, _: x != e5m2.code("1"))
    codes = Codes((1, 0), (1, 0), 0)
    assert smt_result(relation.left, codes) == e5m2.code("1")
    found, minimality = settling.smallest_breaking(Forgetful(), relation, codes)
    assert found.c == e5m2.code("1")
    assert minimality[0] == "0 nonzero products: proved minimal"


# ---- two runs: settling


def settled(monkeypatch: pytest.MonkeyPatch, verdicts: Sequence[str]) -> Any:
    """Return the answer to relations of which no argument is known, where solvers say this and that."""
    answers = iter(verdicts)
    given: list[Any] = []

    def ask(self: Any, active: Any, name: str, *_: Any, **__: Any) -> Any:
        if active is not None:  # with zeros alone; that is no proof of anything else
            self.asker.proved.append(restated(NOTHING, "of zeros alone", NOTHING.statement))
            return refuted(NOTHING), None
        verdict = next(answers)
        given.append(verdict)
        if verdict == "unsat":
            self.asker.proved.append(NOTHING)
            return refuted(NOTHING), None
        return (OPEN if verdict == "unknown" else replace(OPEN, verdict=verdict, solver="z3", why="")), None

    def no_argument() -> Iterator[Any]:
        raise ArgumentError("there is no argument")

    monkeypatch.setattr(settling, "sample_broken", lambda *_: None)
    monkeypatch.setattr(Breaks, "ask", ask)
    one = Instruction("X", "test", 16, 8, tiny())
    return settling.settle(one, Forgetful(), "q", [related() for _ in verdicts], no_argument)


def test_relations_hold_if_each_is_settled(monkeypatch: pytest.MonkeyPatch) -> None:
    answer = settled(monkeypatch, ["unsat", "unsat"])
    assert isinstance(answer, Holds)
    assert answer.proof.obligations == (NOTHING, NOTHING)
    for verdicts in (["unsat", "unknown"], ["unknown", "unsat"], ["unknown"]):
        assert isinstance(settled(monkeypatch, verdicts), Unknown)


def test_a_relation_of_no_inputs_is_about_nothing() -> None:
    one = Instruction("X", "test", 16, 8, tiny())

    def holds(allowed: Any) -> Any:
        return settling.settle(one, Forgetful(), "q", [related(allowed=allowed)], list)

    assert not holds(lambda x: x.c == x.c).notes
    empty = holds(lambda x: x.c != x.c)
    assert isinstance(empty, Holds)
    assert "about nothing" in str(empty)


def test_a_witness_of_a_relation_is_one_in_both_encodings(monkeypatch: pytest.MonkeyPatch) -> None:
    one = Instruction("X", "test", 16, 8, tiny())
    relation = replace(related(), related=lambda x, _: x != e5m2.code("1"))
    codes = Codes((0, 0), (0, 0), e5m2.code("1"))
    assert witness_of(one, relation, codes).results == (e5m2.code("1"),)
    step = smt_fda.step

    def wrong(*args: Any, **more: Any) -> Any:
        made = step(*args, **more)
        return replace(made, result=made.result ^ 1)

    monkeypatch.setattr(smt_fda, "step", wrong)
    with pytest.raises(WitnessError, match="do not agree"):
        witness_of(one, relation, codes)


def test_a_case_that_is_not_allowed_breaks_nothing() -> None:
    relation = replace(related(allowed=lambda x: x.a[0] == 3), related=lambda x, _: x != e5m2.code("1"))
    rows = Rows.of([Codes((a, 0), (0, 0), e5m2.code("1")) for a in (0, 3)])
    assert relation.runs(rows)[2].tolist() == [False, True]
    broken = [z3.simplify(relation.broken(code_values(relation.left, rows[i]))) for i in (0, 1)]
    assert [z3.is_true(each) for each in broken] == [False, True]


# ---- both encodings


def test_the_encodings_of_both_instructions_have_to_be_equal(monkeypatch: pytest.MonkeyPatch) -> None:
    x, y = PAIR
    monkeypatch.setattr(both_encodings, "_PROVED", {})
    for open_ in PAIR:

        def settle(i: Instruction, *_: Any, open_: Instruction = open_) -> Any:
            return Unknown("q", "no time", (), 0.0) if i.spec == open_.spec else Holds("q", some_proof(), 0.0)

        monkeypatch.setattr(both_encodings.equality, "settle_equality", settle)
        settled = both_encodings.equal_in_both_encodings(Equal("q", some_proof(), 0.0), (x, y), Forgetful())
        assert isinstance(settled, Unknown)
    answer = both_encodings.of_both_encodings(Holds("q", some_proof(), 0.0), x, [x.spec, y.spec], Forgetful())
    assert isinstance(answer, Unknown)


def test_two_steps_of_a_long_chain_have_whole_scales() -> None:
    spec = rtx_blackwell["QMMA.SF.16832.F32.E5M2.E3M2.E8"].replace(L=8).spec
    assert (spec.parameters.step_products, spec.scale_block) == (8, 32)
    assert both_encodings.proved_for(spec.replace(k=64 * 64)).k == 64
    assert both_encodings.proved_for(spec.replace(k=64 * 8)).k == 64 * 8


def test_what_was_proved_of_other_encodings_is_proved_again(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def settle(i: Instruction, *_: Any) -> Any:
        asked.append(i.spec)
        return Holds("q", some_proof(), 0.0)

    monkeypatch.setattr(both_encodings, "_PROVED", {})
    monkeypatch.setattr(both_encodings.equality, "settle_equality", settle)
    x = PAIR[0]

    def again() -> int:
        both_encodings.of_both_encodings(Holds("q", some_proof(), 0.0), x, [x.spec], Forgetful())
        return len(asked)

    assert (again(), again()) == (1, 1)
    monkeypatch.setattr(stages, "align", lambda *_: None)
    assert (again(), again()) == (2, 2)


# ---- long chains


SHORT = 3  #: blocks of a chain that stands for those with one nonzero product
LONG = long_chains.SHORT + 1
UNITS = unit(1, Efda(1, Conversion("RZ-E8M2", fp32, 2, Rounding.RZ))), unit(1, Efda(1, RZ_FP32), "Y")


class Told:
    """A record of what `LongChains` asks, with what it is told: witnesses of so many nonzero products, or others."""

    def __init__(
        self, passes: Sequence[bool] = (False, False), products: Sequence[int] = (), answer: Any = None
    ):
        self.passes, self.products, self.given = passes, iter(products), answer
        self.asked: list[tuple[int, int]] = []  # how long, and under how many constraints

    def __call__(self, x: Instruction, y: Instruction, where: Any, asker: Any, progress: Any) -> Any:
        self.asked.append((x.k, len(where)))
        return _Short(self, x, y, len(where))


class _Short:
    def __init__(self, told: Told, x: Instruction, y: Instruction, constraints: int) -> None:
        self.told, self.x, self.y, self.constraints = told, x, y, constraints

    def _idle_steps_pass(self, spec: DotAdd) -> bool:
        return self.told.passes[spec.parameters != self.told.first]

    def answer(self) -> Any:
        if self.told.given is not None:
            return self.told.given(self.constraints)
        count = next(self.told.products)
        # 1.5 · 1.5 needs three bits of a fraction, what goes before it none
        a = [2] * (count - 1) + [3] + [0] * (self.x.k - count)
        b = [4] * (count - 1) + [3] + [0] * (self.x.k - count)
        lines = [
            f"{count} nonzero products: proved minimal",
            "first in order of place and code: proved minimal",
        ]
        return Different("q", Witness.of(self.x, self.y, a, b, ZERO), tuple(lines), (), 0.0)


def long(
    told: Told, *where: Constraint | str, units: Any = UNITS, alike: bool = True, length: int = LONG
) -> Any:
    told.first = units[0].parameters  # type: ignore[attr-defined]
    x, y = (i.chained(length) for i in units)
    return LongChains(
        told,
        x,
        y,
        as_constraints(where),
        Forgetful(),
        None,
        "q",
        lambda _: alike,  # type: ignore[arg-type]
    ).answer()


NOT_MERGED = "best found (that steps of zero products merge is not proved)"


def test_a_difference_of_a_short_chain_is_one_of_the_long_one() -> None:
    told = Told(products=[1])
    answer = long(told)
    assert told.asked == [(SHORT, 0)]
    assert answer.witness.x.k == LONG
    assert answer.minimality[0] == "1 nonzero products: proved minimal"
    merged = long_chains.prove_idle_steps_merge
    assert merged(Forgetful(), UNITS[0].spec)


def test_it_is_minimal_if_idle_steps_merge_and_zeros_are_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    assert NOT_MERGED in long(Told(products=[1]), alike=False).minimality[0]
    monkeypatch.setattr(
        long_chains, "prove_idle_steps_merge", lambda asker, spec: spec.parameters == UNITS[0].parameters
    )
    assert NOT_MERGED in long(Told(products=[1])).minimality[0]


def test_more_products_than_a_short_chain_stands_for_are_not_minimal() -> None:
    told = Told(products=[2, 2])
    assert "proved minimal" in long(told).minimality[0]
    assert [k for k, _ in told.asked] == [3, 5]
    told = Told(products=[3, 3])
    answer = long(told)
    assert isinstance(answer, Different)
    assert "longer ones were not tried" in answer.minimality[0]
    assert answer.witness.x.k == LONG


def test_a_case_without_an_idle_block_is_tried_with_some() -> None:
    answer = long(Told(products=[3, 5]))  # three products in three blocks, five in five
    assert isinstance(answer, Different)
    assert answer.witness.size[0] == 3
    assert answer.witness.a.tolist() == [2, 2, 3] + [0] * (LONG - 3)


def test_idle_steps_are_left_out_if_both_sides_pass_them() -> None:
    units = unit(1, fda(1)), unit(1, fda(5), "Y")
    for passes, blocks in (((True, True), 1), ((True, False), 3), ((False, True), 3)):
        told = Told(passes, products=[1])
        assert isinstance(long(told, units=units), Different)
        assert told.asked[-1] == (blocks, 0)


def test_equal_by_induction_only_from_every_accumulator(monkeypatch: pytest.MonkeyPatch) -> None:
    equal, proved = Equal("q", some_proof(), 0.0), [True]
    monkeypatch.setattr(long_chains, "prove_induction", lambda *_: [refuted(NOTHING)] if proved[0] else None)
    assert isinstance(long(Told(answer=lambda _: equal)), Equal)
    told = Told(answer=lambda _: equal)
    assert isinstance(long(told, "finite"), Equal)
    assert told.asked == [(SHORT, 1), (1, 0)]
    # equal where the constraint holds, but not from every accumulator
    open_ = Unknown("q", "", (), 0.0)
    assert isinstance(
        long(Told(answer=lambda constraints: equal if constraints else open_), "finite"), Unknown
    )
    proved[0] = False
    assert isinstance(long(Told(answer=lambda _: equal)), Unknown)


def test_constraints_on_single_products_leave_nothing_out() -> None:
    for where in (fixed(a={7: 3}), "nonzero"):
        told = Told(products=[1])
        assert isinstance(long(told, where, length=5000), Unknown)
        assert told.asked == []
        told = Told(products=[1])
        assert isinstance(long(told, where), Different)
        assert told.asked == [(LONG, 1)]


def test_nans_that_are_forgotten_are_no_induction(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two NaNs count as one where payloads are free: what follows must not tell them apart."""
    specs = [unit(1, Efda(1, rho)).spec for rho in (RZ_FP32, RNE_FP32)]
    assert not specs[0].nan_is_canonical

    def forgets(spec: DotAdd, a: Any, b: Any, c: Any, *_: Any) -> Any:
        steps = []
        for _ in range(spec.k):
            c = z3.If(is_nan(c, fp32), z3.BitVecVal(ONE, 32), c)
            steps.append(Step(c))
        return smt.Trace(tuple(steps), c)

    monkeypatch.setattr(smt, "dot_add", forgets)
    assert long_chains.prove_induction(Forgetful(), specs[0], specs[1]) is None
