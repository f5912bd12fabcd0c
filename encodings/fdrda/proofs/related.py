"""Why a step of fdrda or gfdrda has related results in two runs on related inputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias, TypeGuard

import z3

from mmaformal.encodings.fdrda import smt as smt_fdrda
from mmaformal.encodings.gfdrda import smt as gfdrda
from mmaformal.encodings.smt.blocks import (
    product_range,
)
from mmaformal.proof.lemmas import Link, at_most
from mmaformal.proof.related_runs import operand_codes, same, terms_of
from mmaformal.proof.related_steps import RelatedStep, dropped_terms, products

AnyFdrda: TypeAlias = smt_fdrda.FdrdaStep | gfdrda.GfdrdaStep


def _has_groups(step: RelatedStep[AnyFdrda]) -> TypeGuard[RelatedStep[gfdrda.GfdrdaStep]]:
    return isinstance(step.left, gfdrda.GfdrdaStep) and isinstance(step.right, gfdrda.GfdrdaStep)


def derive(step: RelatedStep[AnyFdrda]) -> Link:
    left, right = step.left, step.right
    c, factors, zeros = step.operand_c(), step.factors(), step.zeros()
    operands = [left.a, left.b, right.a, right.b]
    terms = products(step, factors)
    quiet = [step.quiet(i, zero) for i, zero in zeros.items()]
    special = step.special([c, *factors, *terms, *zeros.values(), *quiet], operands)
    exponents = [[p.exponent for p in s.products] for s in (left, right)]
    if _has_groups(step):
        dot, e_products = _groups(step, terms, exponents, zeros)
    else:
        below = [step.not_largest(i, left.products[i], exponents[0][0], z) for i, z in zeros.items()]
        tops = left.e_products, exponents[0], right.e_products, exponents[1]
        e_products = step.largest(*tops, terms, below)
        given = [[t] for t in terms]
        nothing = dropped_terms(step, zeros, left.e_products)
        dot = step.sum_of(left.dot, right.dot, step.order, given, [e_products], nothing=nothing)
    e_dot = step.derive(
        "align",
        "the exponents of the dot products are equal",
        same(left.e_dot, right.e_dot),
        [e_products, *factors, *zeros.values()],
        terms_of(operands),
    )
    addend = step.addend(c)
    if left.total.size() == right.total.size():
        return step.result(dot, [e_dot, addend, special])
    extra = left.total.size() - right.total.size()
    if _has_groups(step):
        groups = enumerate(step.right.groups)
        each = [step.argument.bounded(x, len(right.aligned[g::2])) for g, x in groups]
        bounds = [step.bounded_groups(each)]
    else:
        bounds = [step.argument.bounded(right.dot, len(right.products))]
    e_max = step.derive(
        "align", "the largest exponents are equal", same(left.e_max, right.e_max), [e_dot, addend]
    )
    wide = z3.SignExt(extra, right.total)
    least = -1 << (right.total.size() - 1)
    claim = z3.And(left.total == wide, right.total != least)
    total = Link(claim, (right.total,), ((left.total, wide),))
    step.derive(
        "accumulate", "the sums with c are the same number", total, [dot, *bounds, e_dot, addend, e_max]
    )
    reach = _reach(step)
    return step.result(total, [e_max, special, *reach], (left.total, right.total))


def _reach(step: RelatedStep[AnyFdrda]) -> list[Link]:
    """That the first run's largest exponent is in the range that exponents are held in."""
    left, spec = step.left, step.runs.left_spec
    own, wide = product_range(spec.a_format, spec.b_format), smt_fdrda.exponents_of(spec)
    if isinstance(left, gfdrda.GfdrdaStep):
        return []  # the bits of exponents hold nothing else
    highest = z3.BitVecVal(own.high - own.low, own.bits)
    below = {}
    for x, y, product in zip(left.a, left.b, left.products, strict=True):
        link = at_most(product.exponent, highest)
        codes = operand_codes(x, y)
        below[product.exponent.get_id()] = step.derive("multiply", "exponents are in range", link, [], codes)
    text = "the largest exponents are in range"
    top = step.argument.at_most_all(left.e_products, highest, below)
    last = z3.BitVecVal(wide.high - wide.low, wide.bits)
    operands = terms_of([left.a, left.b])
    dot = step.derive("align", text, at_most(left.e_dot, last), [top], operands)
    c = step.derive("multiply", "c's exponent is in range", at_most(left.addend.exponent, last), [step.c])
    first = z3.BitVecVal(spec.c_format.min_exponent - wide.low, wide.bits)
    low = step.derive("multiply", "c's exponent is in range", at_most(first, left.addend.exponent), [step.c])
    return [
        step.derive("align", text, at_most(left.e_max, last), [dot, c]),
        step.derive("align", text, at_most(first, left.e_max), [low], [left.e_dot]),
    ]


def _groups(
    step: RelatedStep[gfdrda.GfdrdaStep],
    terms: Sequence[Link],
    exponents: Sequence[Sequence[z3.BitVecRef]],
    zeros: Mapping[int, Link],
) -> tuple[Link, Link]:
    left, right = step.left, step.right
    sums, tops = [], []
    count = len(left.groups)
    for g in range(count):
        mine = range(g, len(step.order), count)
        links = [terms[j] for j in mine]
        lefts = exponents[0][g::count]
        rights = [exponents[1][k] for k in mine]
        own = {i: zero for i, zero in zeros.items() if i % count == g}
        below = [step.not_largest(i, left.products[i], lefts[0], zero) for i, zero in own.items()]
        top = step.largest(left.e_groups[g], lefts, right.e_groups[g], rights, links, below)
        inside = [step.order[j] // count for j in mine]
        nothing = dropped_terms(step, own, left.e_groups[g], lambda i: i // count)
        given = [[t] for t in links]
        sums.append(step.sum_of(left.groups[g], right.groups[g], inside, given, [top], nothing=nothing))
        tops.append(top)
    e_products = step.largest(left.e_products, left.e_groups, right.e_products, right.e_groups, tops)
    dot = step.sum_of(
        left.dot,
        right.dot,
        list(range(count)),
        [[s, t] for s, t in zip(sums, tops, strict=True)],
        [e_products],
    )
    return dot, e_products
