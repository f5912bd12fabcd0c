"""An algorithm that is made of known stages: both encodings are proved equal, two runs related, and a run is shown,
without a word about it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import z3

from mmaformal.cases.encodings import InputLanes, Traces, sample_codes
from mmaformal.cases.inputs import Inputs
from mmaformal.encodings import smt
from mmaformal.encodings.executable import blocks
from mmaformal.encodings.executable import stages as executable_stages
from mmaformal.encodings.smt import stages as smt_stages
from mmaformal.encodings.smt.blocks import product_range
from mmaformal.encodings.smt.ieee import Addition
from mmaformal.formats import e4m3, fp32
from mmaformal.lanes import SymbolicLane, Tracer
from mmaformal.proof import related_stages
from mmaformal.proof.encoding_links import link_code
from mmaformal.proof.kernel import ArgumentError, NotProvedError, prove
from mmaformal.proof.lemmas import Argument
from mmaformal.proof.related_runs import Opposite, Pairing, RunRelation, Same
from mmaformal.proof.simulation import link_stages
from mmaformal.renderers import stages as shown_stages
from mmaformal.rounding import IEEE_FP32, Rounding
from mmaformal.solver.asking import Asker
from mmaformal.solver.portfolio import Portfolio

PLACES = 34  #: fraction bits that lose nothing of a sum of two e4m3 products
NAN = 0x7FC00000


def pair_executable(
    a: Sequence[SymbolicLane], b: Sequence[SymbolicLane], c: SymbolicLane
) -> blocks.Trace[Any]:
    """c + (a0·b0 + a1·b1), the pair summed exactly and rounded, then added to c."""
    stages = executable_stages.Stages()
    factors = [(stages.decode(x, e4m3), stages.decode(y, e4m3)) for x, y in zip(a, b, strict=True)]
    special = stages.classify(factors)
    products = [stages.multiply(x, y) for x, y in factors]
    e_max = stages.largest(products)
    total = stages.accumulate([(x, 6) for x in products], e_max, PLACES)
    pair = stages.round(total, e_max, PLACES, IEEE_FP32, special, NAN)
    d = stages.add(c, pair.result, IEEE_FP32, NAN)
    return blocks.Trace((d,), d.result, stages)


def pair_smt(a: Sequence[z3.BitVecRef], b: Sequence[z3.BitVecRef], c: z3.BitVecRef) -> smt.Trace[Addition]:
    stages, exponents = smt_stages.Stages(), product_range(e4m3, e4m3)
    factors = [(stages.decode(x, e4m3), stages.decode(y, e4m3)) for x, y in zip(a, b, strict=True)]
    special = stages.classify(factors)
    products = [stages.multiply(x, y, 2 * e4m3.bias, exponents) for x, y in factors]
    e_max = stages.largest(products, exponents)
    total = stages.accumulate([(x, 6) for x in products], e_max, PLACES, None)
    pair = stages.round(total, e_max, exponents, PLACES, IEEE_FP32, exponents.low, special, NAN)
    d = stages.add(c, pair.result, IEEE_FP32, NAN)
    return smt.Trace((d,), d.result, stages)


def argue(
    mine: Callable[..., Any] = pair_executable, other: Callable[..., smt.Trace[Any]] = pair_smt
) -> Argument:
    """The argument that both functions give the same code."""
    tracer = Tracer()
    names = {"a": [z3.BitVec(f"a{k}", 8) for k in (0, 1)], "b": [z3.BitVec(f"b{k}", 8) for k in (0, 1)]}
    c = z3.BitVec("c", 32)
    rng = np.random.default_rng(0)
    lanes = {
        side: tuple(tracer.input(x, sample_codes(e4m3, rng)) for x in codes) for side, codes in names.items()
    }
    own = InputLanes(lanes["a"], lanes["b"], tracer.input(c, sample_codes(fp32, rng)), (), ())
    inputs = Inputs(tuple(names["a"]), tuple(names["b"]), c)
    traces: Traces[Any] = Traces(
        None,  # type: ignore[arg-type]
        inputs,
        own,
        mine(own.a, own.b, own.c),
        other(inputs.a, inputs.b, inputs.c),
    )
    argument = Argument(tracer)
    link_stages(argument, traces)
    argument.conclude("d is the same code", link_code(traces.executable.result, traces.smt.result))
    return argument


@pytest.fixture
def asker() -> Any:
    with Portfolio(["bitwuzla"]) as portfolio:
        yield Asker(portfolio, 60.0)


def test_a_new_algorithm_of_known_stages(asker: Asker) -> None:
    assert prove(asker, argue())


def test_one_that_loses_a_place_in_one_encoding(asker: Asker, monkeypatch: pytest.MonkeyPatch) -> None:
    align = executable_stages.align
    monkeypatch.setattr(executable_stages, "align", lambda *given: align(*given) & ~1)
    with pytest.raises(NotProvedError, match="does not hold"):
        prove(asker, argue())


def test_one_whose_encodings_have_other_stages() -> None:
    def longer(*given: Any) -> Any:
        trace = pair_executable(*given)
        trace.stages.add(trace.result, trace.result, IEEE_FP32, NAN)
        return trace

    with pytest.raises(ArgumentError, match="more stages"):
        argue(mine=longer)


def test_a_stage_that_is_given_what_no_stage_made() -> None:
    def beside(a: Sequence[SymbolicLane], b: Sequence[SymbolicLane], c: SymbolicLane) -> Any:
        return pair_executable(a, b, c + 0)

    with pytest.raises(ArgumentError, match="what no stage before it made"):
        argue(mine=beside)


def test_recorded_stages_are_in_order() -> None:
    made = pair_executable([1, 2], [3, 4], 5)
    names = [stage.name for stage in made.stages]
    assert names == ["decode"] * 4 + [
        "classify",
        "multiply",
        "multiply",
        "largest",
        "accumulate",
        "round",
        "add",
    ]


# ---- two runs on related inputs


Codes = tuple[Sequence[z3.BitVecRef], Sequence[z3.BitVecRef], z3.BitVecRef]


def exchanged(a: Sequence[z3.BitVecRef], b: Sequence[z3.BitVecRef], c: z3.BitVecRef) -> Codes:
    """Both products in the other order, and their factors too."""
    return b[::-1], a[::-1], c


def negated(a: Sequence[z3.BitVecRef], b: Sequence[z3.BitVecRef], c: z3.BitVecRef) -> Codes:
    return [x ^ e4m3.sign_mask for x in a], b, c ^ fp32.sign_mask


def argue_related(
    kind: RunRelation, image: Callable[..., Codes], other: Callable[..., smt.Trace[Any]] = pair_smt
) -> Pairing:
    """The argument that runs on inputs and on their image have related results."""
    a, b = ([z3.BitVec(f"{side}{k}", 8) for k in (0, 1)] for side in "ab")
    codes = a, b, z3.BitVec("c", 32)
    x, y = pair_smt(*codes), other(*image(*codes))
    pairing = Pairing()
    c = kind.code(codes[2], image(*codes)[2], fp32)
    pairing.derive("inputs", "both c are related", [c], inputs=[codes[2]])
    related_stages.related(pairing, kind, (x.stages, y.stages), [c], [])
    pairing.conclude("the results are related", kind.code(x.result, y.result, fp32))
    return pairing


@pytest.mark.parametrize(("kind", "image"), [(Same(), exchanged), (Opposite(), negated)])
def test_related_runs_of_a_new_algorithm(
    kind: RunRelation, image: Callable[..., Codes], asker: Asker
) -> None:
    assert prove(asker, argue_related(kind, image))


def test_runs_of_which_one_loses_a_place(asker: Asker, monkeypatch: pytest.MonkeyPatch) -> None:
    def one_less(*given: Any) -> smt.Trace[Any]:
        align = smt_stages.align
        with monkeypatch.context() as broken:
            broken.setattr(smt_stages, "align", lambda *x: align(*x) & ~1)
            return pair_smt(*given)

    with pytest.raises(NotProvedError, match="does not hold"):
        prove(asker, argue_related(Same(), exchanged, one_less))


def test_negated_inputs_where_sums_are_rounded_down(asker: Asker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(globals(), "IEEE_FP32", replace(IEEE_FP32, rounding=Rounding.RD))
    with pytest.raises(NotProvedError, match="does not hold"):
        prove(asker, argue_related(Opposite(), negated))


def test_products_of_other_sums(asker: Asker) -> None:
    def with_others(a: Any, b: Any, c: Any) -> Codes:
        return [a[0], z3.BitVec("other", 8)], b, c

    with pytest.raises(ArgumentError, match="change from one step to another"):
        argue_related(Same(), with_others)


# ---- how a run is shown


def test_a_new_algorithm_is_shown() -> None:
    one, half, c = e4m3.code("1"), e4m3.code("0.5"), fp32.code("0x1p-30")
    ((*rows,),) = (step.rows for step in shown_stages.steps(pair_executable([one, half], [one, half], c), c))
    assert [(row.stage, row.label, row.text) for row in rows] == [
        ("align", "largest exponent", "0"),
        ("align", "a[0]·b[0]", "0x1p+0"),
        ("align", "a[1]·b[1]", "0x1p-2"),
        ("accumulate", "sum", "0x1.4p+0"),
        ("round", "rounded away", "nothing"),
        ("encode", "d", "0x3fa00000  0x1.4p+0 = 1.25"),
        ("accumulate", "sum", "0x1.40000004p+0"),
        ("round", "rounded away", "0x1p-30"),
        ("encode", "d", "0x3fa00000  0x1.4p+0 = 1.25"),
    ]
