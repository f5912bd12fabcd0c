"""Both encodings of an algorithm that is made of known stages are proved equal without a word about it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
import z3

from mmaformal.cases.encodings import Lanes, Traces, sample
from mmaformal.cases.inputs import Inputs
from mmaformal.encodings import smt
from mmaformal.encodings.executable import blocks
from mmaformal.encodings.executable import stages as executable_stages
from mmaformal.encodings.smt import stages as smt_stages
from mmaformal.encodings.smt.blocks import product_range
from mmaformal.encodings.smt.ieee import Addition
from mmaformal.formats import e4m3, fp32
from mmaformal.lanes import Lane, Tracer
from mmaformal.proof.encoding_links import same_code
from mmaformal.proof.kernel import ArgumentError, NotProvedError, prove
from mmaformal.proof.lemmas import Argument
from mmaformal.proof.simulation import simulate
from mmaformal.rounding import IEEE_FP32
from mmaformal.solver.asking import Asker
from mmaformal.solver.portfolio import Portfolio

PLACES = 34  #: fraction bits that lose nothing of a sum of two e4m3 products
NAN = 0x7FC00000


def pair_executable(a: Sequence[Lane], b: Sequence[Lane], c: Lane) -> blocks.Trace[Any]:
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
    lanes = {side: tuple(tracer.input(x, sample(e4m3, rng)) for x in codes) for side, codes in names.items()}
    own = Lanes(lanes["a"], lanes["b"], tracer.input(c, sample(fp32, rng)), (), ())
    inputs = Inputs(tuple(names["a"]), tuple(names["b"]), c)
    traces: Traces[Any] = Traces(
        None,  # type: ignore[arg-type]
        inputs,
        own,
        mine(own.a, own.b, own.c),
        other(inputs.a, inputs.b, inputs.c),
    )
    argument = Argument(tracer)
    simulate(argument, traces)
    argument.conclude("d is the same code", same_code(traces.executable.result, traces.smt.result))
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
    def beside(a: Sequence[Lane], b: Sequence[Lane], c: Lane) -> Any:
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
