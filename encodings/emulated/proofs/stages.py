"""Stages that only emulations have: an exponent in common, and the unit's results, of which its own facts know."""

from __future__ import annotations

from mmaformal.facts.registry import facts_of
from mmaformal.facts.related import argue_chain, runs_in_order
from mmaformal.proof.encoding_links import CodeLinks, InnerTraces, link_code
from mmaformal.proof.kernel import ArgumentError
from mmaformal.proof.lemmas import Link, number
from mmaformal.proof.related_runs import Runs
from mmaformal.proof.related_stages import RelatedRuns
from mmaformal.proof.simulation import Simulation
from mmaformal.stages import Stage


def _largest_field(run: Simulation, mine: Stage, other: Stage) -> Link:
    links: list[Link] = []
    for code, lane, field in zip(mine.inputs, mine.given["fields"], other.given["fields"], strict=True):
        text = "exponent fields of equal codes are equal"
        links += run.argument.derive("common", text, [number(lane, field)], [run.of(code)])
    return run.argument.largest("common", "exponent fields", mine.output, other.output, links, 0)[0]


def _unit(run: Simulation, mine: Stage, other: Stage) -> Link:
    """The link of a result of the unit, as its own facts derive it from those of its operands."""
    unit = other.given["unit"]
    *factors, c = (run.of(x) for x in mine.inputs)
    a, b = ([side[k] for k in unit.taken] for side in (factors[: unit.k], factors[unit.k :]))
    traces = mine.given["trace"], other.given["trace"]
    links = CodeLinks(a, b, c, [], [])
    inner = InnerTraces(unit.in_order, run.traces.inputs, run.traces.lanes, *traces, links)
    facts_of(unit).equal(run.argument, inner)
    return link_code(mine.output, other.output)


def _related_field(run: RelatedRuns, other: Stage, mine: Stage) -> Link:
    raise ArgumentError("no argument is known where words have an exponent in common")


def _related_unit(run: RelatedRuns, other: Stage, mine: Stage) -> Link:
    """The link of the unit's results in two runs; words are those of one factor alone, wherever it is in its block."""
    unit, left, right = mine.given["unit"], other.given["trace"], mine.given["trace"]
    k, (*factors, c) = unit.k, mine.inputs
    pairs = [*zip(other.inputs[:k], other.inputs[k : 2 * k], strict=True)]
    placed = [run.place(x) for x in factors]
    match = run.order(pairs, [*zip(placed[:k], placed[k:], strict=True)])
    words = run.known(factors)  # one of a NaN is the same NaN of either sign
    runs = Runs(run.kind, unit, unit, left, right, match, nans_keep_sign=bool(words))
    return argue_chain(run.argument, runs_in_order(runs), run.of(c), words)


EQUAL = {"largest_field": _largest_field, "unit": _unit}
RELATED = {"largest_field": _related_field, "unit": _related_unit}
