"""Why a step of efda has related results in two runs on related inputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeGuard

from mmaformal.encodings.efda import smt as efda
from mmaformal.facts.related_parts import dropped_terms, products, rounded
from mmaformal.facts.sorted_steps import same_number
from mmaformal.proof.lemmas import Link
from mmaformal.proof.related_runs import (
    RelatedStep,
    Same,
    operand_codes,
    same,
)


def derive(step: RelatedStep[efda.FixedStep | efda.SortedStep]) -> Link:
    left, right = step.left, step.right
    c, factors, zeros = step.operand_c(), step.factors(), step.zeros()
    operands = [left.a, left.b, right.a, right.b]
    terms = products(step, factors)
    special = step.special([c, *factors, *terms, *zeros.values()], operands)
    addend = step.addend(c)
    if _sorts(step):
        return _sorted(step, terms, addend, special, zeros)
    assert isinstance(left, efda.FixedStep)
    assert isinstance(right, efda.FixedStep)
    nothing = dropped_terms(step, zeros, None)
    dot = step.sum_of(left.dot, right.dot, step.order, [[t] for t in terms], nothing=nothing)
    term = step.derive("multiply", "sums are related terms", step.kind.term(left.term, right.term), [dot])
    return rounded(step, left.sum, right.sum, [term, addend], [special])


def _sorts(step: RelatedStep[efda.FixedStep | efda.SortedStep]) -> TypeGuard[RelatedStep[efda.SortedStep]]:
    return isinstance(step.left, efda.SortedStep) and isinstance(step.right, efda.SortedStep)


def _sorted(
    step: RelatedStep[efda.SortedStep],
    terms: Sequence[Link],
    addend: Link,
    special: Link,
    zeros: Mapping[int, Link],
) -> Link:
    left, right = step.left, step.right
    links, permuted = [], isinstance(step.kind, Same) and list(step.order) != sorted(step.order)
    for j, i in enumerate(step.order):
        link = step.kind.term(left.terms[i], right.terms[j])
        links.append(step.derive("align", "normalised terms are related", link, [terms[j]]))
    for i, zero in zeros.items():  # the second run has a constant zero in its place
        x, y = left.a[i], left.b[i]
        link = step.kind.term(left.terms[i], right.terms[i])
        links.append(step.derive("align", "a dropped product is zero", link, [zero], [x.field, y.field]))
    link = step.kind.term(left.terms[-1], right.terms[-1])
    links.append(step.derive("align", "normalised terms are related", link, [addend]))
    if permuted:
        codes = [*(operand_codes(x, y) for x, y in zip(left.a, left.b, strict=True)), []]
        number = same_number(step, links, codes)
        text, result = "one number in two units is rounded alike", same(left.result, right.result)
        return step.derive("round", text, result, [number, special])
    sorted_ = []
    for u, v in zip(left.sorted, right.sorted, strict=True):
        sorted_.append(step.derive("align", "terms are sorted alike", step.kind.term(u, v), links))
    partial = step.kind.summand(left.partial.total, right.partial.total)
    e_partial = same(left.partial.e_max, right.partial.e_max)
    step.derive("accumulate", "partial sums are related", partial, sorted_)
    step.derive("accumulate", "partial sums are at the same exponent", e_partial, sorted_)
    sizes = step.sizes(left.partial.total, right.partial.total, partial)
    normal = step.kind.term(left.normal, right.normal)
    step.derive("accumulate", "partial sums are normalised alike", normal, [sizes, e_partial])
    return _sorted_result(step, [normal, *sorted_], special)


def _sorted_result(step: RelatedStep[efda.SortedStep], given: Sequence[Link], special: Link) -> Link:
    x, y = step.left.sum, step.right.sum
    e_max, total = same(x.e_max, y.e_max), step.kind.summand(x.total, y.total, x.total.size() - 1)
    step.derive("accumulate", "sums are at the same exponent", e_max, given)
    step.derive("accumulate", "sums are related", total, given)
    result = step.kind.code(step.left.result, step.right.result, step.runs.left_spec.d_format)
    sizes = step.sizes(x.total, y.total, total, whole=True)
    return step.derive(
        "round", "related sums are rounded to related results", result, [sizes, e_max, special]
    )
