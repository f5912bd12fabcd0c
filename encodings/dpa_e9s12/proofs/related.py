"""Why a step of dpa_e9s12 has related results in two runs: on the same products, in another order or exchanged, one
zero product fewer, or negated.

Of negated inputs it holds only where no product loses a bit, since products are rounded down: of fp16 factors that are
numbers, and of one fp32 product.
"""

from __future__ import annotations

from collections.abc import Sequence

import z3

from mmaformal.encodings.dpa_e9s12.smt import BIAS
from mmaformal.encodings.dpa_e9s12.smt import DpaE9s12Step as DpaStep
from mmaformal.encodings.smt.blocks import all_of, any_of
from mmaformal.facts.protocol import UnsupportedError
from mmaformal.formats import fp16, fp32
from mmaformal.proof.lemmas import Link, at_most
from mmaformal.proof.related_runs import Same, operand_codes, same
from mmaformal.proof.related_steps import RelatedStep, rounded

#: Products of halves of exchanged factors: the two in the middle change places.
_EXCHANGED = (0, 2, 1, 3)


def derive(step: RelatedStep[DpaStep]) -> Link:
    left, right = step.left, step.right
    if step.dropped:
        raise UnsupportedError("dpa_e9s12", "how runs on other than the same products are related")
    c, factors = step.operand_c(), step.factors()
    terms, order = _terms(step, factors)
    special = step.special([c, *factors, *terms], [left.a, left.b, right.a, right.b])
    addend = step.addend(c)
    exponents = [[product.exponent for product in run.products] for run in (left, right)]
    e_max = step.largest(left.e_max, exponents[0], right.e_max, exponents[1], terms)
    if isinstance(step.kind, Same):
        total = step.sum_of(left.partials[-1], right.partials[-1], order, [[term] for term in terms], [e_max])
        zero = [
            step.derive(
                "multiply",
                "the signs of an exact zero are the same",
                same(left.zero_sign, right.zero_sign),
                [*terms, addend],
            )
        ]
    else:
        total, zero = _opposite_sum(step, special, terms, e_max), []
    dot = step.derive(
        "multiply", "sums are related terms", step.kind.term(left.term, right.term), [total, e_max]
    )
    return rounded(step, left.sum, right.sum, [dot, addend], [special, *zero])


def _terms(step: RelatedStep[DpaStep], factors: Sequence[Link]) -> tuple[list[Link], Sequence[int]]:
    """The links of all E9S12 products, in the second run's order, and the places of those in the first's."""
    left, right = step.left, step.right
    each = len(left.products) // len(left.a)
    links, order = [], []
    for j, i in enumerate(step.order):
        exchanged = isinstance(step.kind, Same) and not right.a[j].significand.eq(left.a[i].significand)
        places = _EXCHANGED if each == 4 and exchanged else range(each)
        for t, place in enumerate(places):
            operands = [left.a[i], left.b[i], right.a[j], right.b[j]]
            mine, other = left.products[each * i + place], right.products[each * j + t]
            links.append(step.product(mine, other, operands, [factors[j]] if factors else []))
            order.append(each * i + place)
    return links, order


# ---- negated inputs -------------------------------------------------------------------------------------------------


def _opposite_sum(step: RelatedStep[DpaStep], special: Link, terms: Sequence[Link], e_max: Link) -> Link:
    """The sum of negated products is the negated sum, where all factors are numbers; else a special value decides."""
    left, right = step.left, step.right
    finite = _numbers(step, special)
    ranges, top = _ranges(step, finite)
    order = range(len(left.products))
    exponents = [product.exponent for product in left.products]
    parts = []
    for e, term, inside in zip(exponents, terms, ranges, strict=True):
        below = at_most(e, left.e_max)
        step.argument.under(left.e_max, exponents, below, e)
        parts.append([term, inside, below, top])
    bits = left.partials[-1].size() - 1 - (len(left.products) - 1).bit_length()
    return step.sum_of(left.partials[-1], right.partials[-1], order, parts, [e_max], bits)


def _numbers(step: RelatedStep[DpaStep], special: Link) -> Link:
    """Split: all factors are numbers, which is returned; or a special value decides, and results are related."""
    left, right = step.left, step.right
    factors = [x for side in (left.a, left.b) for x in side]
    flags = [flag for x in factors for flag in (x.infinite, x.nan)]
    some, none = Link(any_of(flags), tuple(flags)), Link(all_of([z3.Not(flag) for flag in flags]))
    step.argument.split("a factor is no number, or all are", [some, none], terms=flags)
    decided = Link(any_of(list(left.special)), tuple(left.special))
    text = "a factor that is no number makes a special value"
    inputs = [part for x in (*factors, left.c) for part in (x.sign, x.significand)]
    step.derive("classify", text, decided, [some], [*inputs, left.c.infinite, left.c.nan])
    result = step.kind.code(left.result, right.result, step.runs.left_spec.d_format)
    text = "special results are related"
    step.derive("encode", text, result, [decided, special], [*left.rounded, *right.rounded])
    return none


def _ranges(step: RelatedStep[DpaStep], finite: Link) -> tuple[list[Link], Link]:
    """Of each E9S12 product, that it is zero, or so near to the largest exponent that placing loses no bit."""
    left, spec = step.left, step.runs.left_spec
    fmt, bits = spec.a_format, left.e_max.size()
    each = len(left.products) // len(left.a)
    if fmt == fp16:
        low, high = (2 * (e + BIAS) for e in (fmt.min_exponent, fmt.max_exponent))
        least, most, zeros, span = z3.BitVecVal(low, bits), z3.BitVecVal(high, bits), 2, high - low
    elif fmt == fp32 and len(left.a) == 1:
        x, y = (unpacked[0][1].exponent for unpacked in (left.x, left.y))
        least = z3.ZeroExt(bits - x.size(), x) + z3.ZeroExt(bits - y.size(), y)
        zeros, span = 0, 24
        most = least + span
    else:
        raise UnsupportedError(
            "dpa_e9s12", "that no product is rounded, where its negative is another number"
        )
    inside: list[Link] = []
    for k, product in enumerate(left.products):
        m, e = product.significand, product.exponent
        claim = z3.And(
            z3.Or(m == 0, z3.UGE(e, least)),
            z3.ULE(e, most),
            z3.ULE(least, most),
            most - least == span,
            *([z3.Extract(zeros - 1, 0, m) == 0] if zeros else []),
        )
        a, b = left.a[k // each], left.b[k // each]
        text = "a product is zero, or has an exponent in its range"
        link = Link(claim, (m, e, least, most) if not z3.is_bv_value(least) else (m, e))
        inside.append(step.derive("multiply", text, link, [finite], operand_codes(a, b)))
    below = {x.exponent.get_id(): link for x, link in zip(left.products, inside, strict=True)}
    return inside, step.argument.at_most_all(left.e_max, most, below)
