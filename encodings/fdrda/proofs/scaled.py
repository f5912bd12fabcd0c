"""The stages of fdrda and gfdrda, and what doubling a and c does to their sums (`proof/doubled_stages`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TypeAlias

import z3

from mmaformal.encodings.fdrda.smt import FdrdaStep
from mmaformal.encodings.gfdrda.smt import GfdrdaStep
from mmaformal.encodings.smt.blocks import Term, Trace, all_of
from mmaformal.encodings.smt.stages import Aligned, Code
from mmaformal.facts.scaling import begun
from mmaformal.proof.doubled_runs import DoubledRuns, DoubledSum, DoubledTerm
from mmaformal.proof.doubled_stages import as_term
from mmaformal.proof.lemmas import Link
from mmaformal.proof.related_runs import same
from mmaformal.spec import DotAdd
from mmaformal.stages import Recorded, Stage

AnyFdrda: TypeAlias = FdrdaStep | GfdrdaStep


def stages_of(spec: DotAdd, trace: Trace[AnyFdrda], c: z3.BitVecRef) -> Sequence[Stage]:
    """The stages of a run; sums of products are terms in two's complement, which have no sign of their own."""
    record, rho = Recorded(), spec.parameters.rho  # type: ignore[attr-defined]
    for step in trace.steps:
        begun(record, spec, step, c)
        for x, y, product in zip(step.a, step.b, step.products, strict=True):
            record.made("multiply", [x, y], product)
        record.made("addend", [step.c], step.addend)
        terms: Sequence[Term] = step.products
        if isinstance(step, GfdrdaStep):
            terms = _groups(record, step)
        record.made("largest", terms, step.e_products)
        dot = record.made("accumulate", [*terms, step.e_products], Aligned((), step.dot))
        inputs = [dot, step.e_products, *step.products]
        term = record.made("sum_of_products", inputs, _signed(step.e_dot, step.dot))
        record.made("largest", [term, step.addend], step.e_max)
        cuts = step.dot_cut, step.c_cut
        total = record.made("add_c", [term, step.addend, step.e_max], Aligned(cuts, step.total))
        code = Code(step.total, step.rounded, step.result)
        record.made("round", [total, step.e_max, step.special], code, rho=rho)
        c = step.result
    return record


def _groups(record: Recorded, step: GfdrdaStep) -> list[Term]:
    """Records the sums of groups; returns them as terms."""
    count, terms = len(step.groups), []
    for g, (top, total) in enumerate(zip(step.e_groups, step.groups, strict=True)):
        products = step.products[g::count]
        record.made("largest", products, top)
        made = record.made("accumulate", [*products, top], Aligned((), total))
        terms.append(record.made("as_term", [made, top], _signed(top, total)))
    return terms


def _signed(exponent: z3.BitVecRef, total: z3.BitVecRef) -> Term:
    return Term(z3.BitVecVal(0, 1), exponent, total)


def sum_of_products(run: DoubledRuns, left: Stage, right: Stage) -> DoubledTerm:
    """The link of a sum of products as a term, whose exponent may depend on whether all of them are zero."""
    _, top, *products = left.inputs
    _, other, *others = right.inputs
    zero = z3.BitVecVal(run.of(products[0]).zero, top.size())
    links, text = [], "of the doubled products, those that are zero have the least exponent, and no others"
    for x, y in zip(products, others, strict=True):
        z, also = x.exponent.arg(0), y.exponent.arg(0)
        link = Link(z == (y.exponent == zero), (z, y.exponent), ((also, z),))
        links.append(run.derive("multiply", text, link, [each.link for each in run.operands[id(x)]]))
    z, also = (all_of([x.exponent.arg(0) for x in each]) for each in (products, others))
    link = Link(z == (other == zero), (z, other), ((also, z),))
    text = "all products are zero if the largest exponent is the least"
    return as_term(run, left, right, (run.derive("align", text, link, links), z, also))


def add_c(run: DoubledRuns, left: Stage, right: Stage) -> DoubledSum:
    """The link of a sum of products and c, both cut as signed numbers at the larger exponent: it is the same, or half
    that of the second run, rounded down."""
    (*lefts, e_max), (*rights, other) = left.inputs, right.inputs
    top: DoubledSum = run.of(e_max)
    x, y = left.output, right.output
    given = [*(term.link for term in top.terms), *run.orders((e_max, lefts), (other, rights))]
    text = "where the largest exponent goes up, the sums with c are the same"
    total = run.derive("accumulate", text, same(x.total, y.total), [*given, top.up])
    half = y.total >> 1
    claim = z3.And(y.total != 1 << (y.total.size() - 1), x.total == half)
    text = "where it is c's least one, the first sum is half the second, rounded down"
    dot, c = top.terms
    assert dot.size is not None
    _, bound = dot.size()
    known = [*given, c.above, bound, top.still]
    small = run.derive("accumulate", text, Link(claim, (y.total,), ((x.total, half),)), known)
    return replace(top, where_up=[total], where_still=[small])


LINKS = {"sum_of_products": sum_of_products, "add_c": add_c}
