"""Why two runs on related inputs have related results, step by step (`proof/related_runs`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol, TypeGuard

import z3

from mmaformal.cases.inputs import Inputs
from mmaformal.cases.interfaces import Adds, AnyStep, Judged
from mmaformal.encodings import smt
from mmaformal.encodings.smt.blocks import (
    Inner,
    Operand,
    all_of,
    any_of,
)
from mmaformal.facts.registry import facts_of
from mmaformal.proof import related_stages
from mmaformal.proof.failure import labelled
from mmaformal.proof.lemmas import ArgumentError, Link
from mmaformal.proof.related_runs import (
    Opposite,
    Pairing,
    Runs,
    Same,
    SameButNans,
    operand_codes,
    same,
)
from mmaformal.proof.related_steps import RelatedStep
from mmaformal.spec import DotAdd


class Classifies(Judged, Adds, Protocol):
    """A step that decodes its operands, and tells their special values apart."""


def _decodes_c(step: RelatedStep[AnyStep]) -> TypeGuard[RelatedStep[Classifies]]:
    return isinstance(getattr(step.left, "c", None), Operand)


def argue_chain(argument: Pairing, runs: Runs, c: Link, known: Sequence[Link] = ()) -> Link:
    """From the link of c, and of other codes that are made before, step by step, to that of d.

    Raises ArgumentError if products are not matched within steps.
    """
    if runs.left.stages and runs.right.stages:
        stages = runs.left.stages, runs.right.stages
        links = facts_of(runs.left_spec).related_links
        codes = [c, *known]
        zeros = runs.dropped.values()
        return related_stages.related(argument, runs.kind, stages, codes, zeros, links, runs.turned)
    n, m = (spec.parameters.step_products for spec in (runs.left_spec, runs.right_spec))
    for s, (left, right) in enumerate(zip(runs.left.steps, runs.right.steps, strict=True)):
        order = [k - s * n for k in runs.match[s * m : (s + 1) * m]]
        if not all(0 <= k < n for k in order):
            raise ArgumentError("no argument is known where products change from one step to another")
        dropped = {k - s * n: link for k, link in runs.dropped.items() if s * n <= k < (s + 1) * n}
        step = RelatedStep(argument, runs, left=left, right=right, c=c, order=order, dropped=dropped)
        facts = facts_of(runs.left_spec)
        one_nan = isinstance(runs.kind, Opposite) and not facts.nan_of_operands(runs.left_spec)
        c = _unless_nan(step) if one_nan and _decodes_c(step) else facts.related(step)
    return c


def _unless_nan(step: RelatedStep[Classifies]) -> Link:
    """The link of the results: that of numbers if there is no NaN to keep its sign, else that both are NaN."""
    left, right, argument = step.left, step.right, step.argument
    pairs = [(left.c, right.c)]
    if step.runs.nans_keep_sign:
        factors, others = ([x.a] if isinstance(x.a, Operand) else x.a for x in (left, right))
        pairs += [(factors[i], others[j]) for j, i in enumerate(step.order)]
    flags = [x.nan for x, _ in pairs if not z3.is_false(x.nan)]
    some, none = Link(any_of(flags), ()), Link(all_of([z3.Not(flag) for flag in flags]), ())
    argument.split("there is a NaN or not", [some, none], terms=flags)

    alike = []
    for x, y in pairs:
        if not z3.is_false(x.nan):
            link = Link(x.nan == y.nan, (x.nan, y.nan))
            given, inputs = ([step.c], []) if x is left.c else ([], operand_codes(x, y))
            alike.append(step.derive("classify", "negated NaNs are NaNs", link, given, inputs))
    yes, nans = z3.BoolVal(True), (left.special.nan, right.special.nan)
    both_nan = Link(z3.And(*nans), (), tuple((nan, yes) for nan in nans))
    step.derive("classify", "a NaN makes the result a NaN", both_nan, [*alike, some])
    result = step.kind.code(left.result, right.result, step.runs.left_spec.d_format)
    step.derive("encode", "two NaN results are related", result, [both_nan])

    for flag in flags:
        link = Link(z3.Not(flag), ())
        step.no_nan[flag.get_id()] = step.derive("cases", "none is a NaN", link, [none], flags)
    return facts_of(step.runs.left_spec).related(step)


def runs_in_order(runs: Runs) -> Runs:
    """Return the runs with products counted as they are taken."""
    if not (runs.left_spec.product_order or runs.right_spec.product_order):
        return runs
    place = {k: n for n, k in enumerate(runs.left_spec.taken)}
    return replace(
        runs,
        left_spec=runs.left_spec.in_order,
        right_spec=runs.right_spec.in_order,
        match=[place[runs.match[k]] for k in runs.right_spec.taken],
        dropped={place[k]: link for k, link in runs.dropped.items()},
    )


def argue_same(x: DotAdd, y: DotAdd, inputs: Inputs, other: Inputs, order: Sequence[int]) -> Pairing:
    """Argue that y gives on other inputs, with the same c, the code that x gives on inputs; `order` says which of the
    first run's products each of the second's is."""
    pairing = Pairing()
    left, right = (
        smt.dot_add(spec, z.a, z.b, z.c, z.scale_a, z.scale_b) for spec, z in ((x, inputs), (y, other))
    )
    text = "both runs read the same c"
    (c,) = pairing.derive("inputs", text, [same(inputs.c, other.c)], inputs=[inputs.c])
    runs = Runs(Same(), x, y, left, right, order)
    return argue_related(runs, c, "the results are equal", pairing, (left.result, right.result))


def argue_related(
    runs: Runs, c: Link, statement: str, argument: Pairing, results: tuple[z3.BitVecRef, z3.BitVecRef]
) -> Pairing:
    """The argument that the results of both runs are related, from the link of both c.

    Whatever the last step gives: it is the codes of d that are to be related.
    """
    runs = runs_in_order(runs)
    if type(runs.kind) is Same and facts_of(runs.left_spec).nan_of_operands(runs.left_spec):
        runs = replace(runs, kind=SameButNans())
    argument.interfaces = lambda: (
        *labelled("first.steps", runs.left.steps),
        *labelled("second.steps", runs.right.steps),
    )
    if runs.left.inner is None:
        argue_chain(argument, runs, c)
    else:
        _signed(argument, runs, c)
    argument.conclude(statement, runs.kind.code(*results, runs.left_spec.d_format))
    return argument


def _turned(left: Inner, right: Inner) -> list[tuple[z3.BitVecRef, z3.BitVecRef]]:
    """Codes whose signs one of two runs alone changes, each beside what the other one has: −a and a', if a' is a."""
    first, second = ({stage.output.get_id(): stage for stage in side.before} for side in (left, right))
    mine = [
        (stage.output, stage.inputs[0]) for key, stage in first.items() if stage.inputs and key not in second
    ]
    other = [
        (stage.inputs[0], stage.output) for key, stage in second.items() if stage.inputs and key not in first
    ]
    return [*mine, *other] if mine and other else []


def _signed(argument: Pairing, runs: Runs, c: Link) -> None:
    """Argue that runs of units that change signs are related: what is between the changes, and these."""
    left, right, fmt = runs.left.inner, runs.right.inner, runs.left_spec.d_format
    assert left is not None
    if right is None:
        raise ArgumentError("only one of two runs changes signs")
    within = replace(
        runs,
        left_spec=runs.left_spec.plain,
        right_spec=runs.right_spec.plain,
        left=replace(runs.left, result=left.result, inner=None),
        right=replace(runs.right, result=right.result, inner=None),
        turned=_turned(left, right) if type(runs.kind) is Same else (),
    )
    start = c
    if not (left.c.eq(right.c) and runs.left_spec.reads_c and "c" not in runs.left_spec.negated):
        start = runs.kind.code(left.c, right.c, runs.left_spec.c_format)
        read = [c] if runs.left_spec.reads_c else []
        argument.derive("signs", "related c with their signs changed are related", [start], read)
    argue_chain(argument, within, start)
    if "d" in runs.left_spec.negated:
        given = runs.kind.code(left.result, right.result, fmt)
        link = runs.kind.code(runs.left.result, runs.right.result, fmt)
        argument.derive("signs", "related results with their signs changed are related", [link], [given])
