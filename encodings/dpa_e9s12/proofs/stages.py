"""The stages of a step of dpa_e9s12, related in both encodings and in two runs.

Two runs on the same products, in another order or exchanged, have related results, and so have two on negated inputs
where no product loses a bit, since products are rounded down: of fp16 factors that are numbers, and of one fp32
product.
"""

from __future__ import annotations

from collections.abc import Sequence

import z3

from mmaformal.cases.encodings import Traces
from mmaformal.encodings.dpa_e9s12 import DpaE9s12
from mmaformal.encodings.dpa_e9s12 import executable as executable_dpa
from mmaformal.encodings.dpa_e9s12 import smt as smt_dpa
from mmaformal.encodings.dpa_e9s12.smt import BIAS, DpaE9s12Step
from mmaformal.encodings.smt.blocks import Trace, all_of, any_of
from mmaformal.encodings.smt.stages import Aligned, Code
from mmaformal.facts.operands import begun, step_operands
from mmaformal.facts.protocol import UnsupportedError
from mmaformal.formats import fp16, fp32
from mmaformal.proof.encoding_links import (
    OperandLinks,
    TermLinks,
    add_long,
    flags_and_zeros,
    link_inputs,
    link_product,
    link_special,
    round_and_encode,
    wide_number,
)
from mmaformal.proof.lemmas import Argument, Link, at_most, condition, number
from mmaformal.proof.related_runs import Same, operand_codes, same
from mmaformal.proof.related_steps import RelatedStep, rounded
from mmaformal.spec import DotAdd
from mmaformal.stages import Recorded, Stage

# ---- both encodings ------------------------------------------------------------------------------------------------


def link_encodings(argument: Argument, traces: Traces[DpaE9s12Step]) -> None:
    spec, parameters = traces.spec, traces.spec.parameters_as(DpaE9s12)
    a, b, c, *_ = link_inputs(argument, traces)
    for i, (executable, smt) in enumerate(zip(traces.executable.steps, traces.smt.steps, strict=True)):
        assert isinstance(executable, executable_dpa.DpaE9s12Step)
        products = range(i * parameters.N, (i + 1) * parameters.N)
        x, y, z = step_operands(argument, spec, (a, b, c), products, executable, smt)
        special = link_special(argument, flags_and_zeros([*x, *y, z]), executable.special, smt.special)
        low = smt_dpa.exponents_of(spec, parameters.accumulator_bits, len(smt.products)).low
        addend = link_product(argument, [z], executable.addend, smt.addend, low)
        terms = _products(argument, x, y, executable, smt)
        dot = _sum(argument, terms, executable, smt)
        total = _with_c(argument, dot, addend, executable, smt, low)
        zero = number(executable.zero_sign, smt.zero_sign)
        signs = [addend.sign, *(each.sign for each in terms)]
        argument.derive("accumulate", "the signs of an exact zero are the same", [zero], signs)
        rounding = executable.rounded, smt.rounded, parameters.rho, (executable.result, smt.result)
        c = round_and_encode(argument, [*total, zero], special, *rounding)


def link_unpacked(
    argument: Argument,
    x: OperandLinks,
    executable: Sequence[executable_dpa.E9S12],
    smt: Sequence[smt_dpa.E9S12],
) -> list[list[Link]]:
    """The links of an operand's E9S12 numbers."""
    links = [
        [
            number(u.sign, v.sign),
            number(u.exponent, v.exponent),
            number(u.significand, v.significand),
            condition(u.zero, v.zero),
        ]
        for u, v in zip(executable, smt, strict=True)
    ]
    together = [link for each in links for link in each]
    argument.derive("unpack", "E9S12 numbers are the same", together, [x.sign, x.exponent, x.significand])
    return links


def _products(
    argument: Argument,
    x: Sequence[OperandLinks],
    y: Sequence[OperandLinks],
    executable: executable_dpa.DpaE9s12Step,
    smt: DpaE9s12Step,
) -> list[TermLinks]:
    xs, ys = (
        [link_unpacked(argument, *each) for each in zip(operands, lanes, terms, strict=True)]
        for operands, lanes, terms in ((x, executable.x, smt.x), (y, executable.y, smt.y))
    )
    pairs = [(u, v) for us, vs in zip(xs, ys, strict=True) for u in us for v in vs]
    found = []
    for (u, v), lane, term in zip(pairs, executable.products, smt.products, strict=True):
        links = TermLinks(
            number(lane.sign, term.sign),
            number(lane.exponent, term.exponent),
            number(lane.significand, term.significand),
        )
        argument.derive("multiply", "products of E9S12 numbers are the same", links, [*u, *v])
        found.append(links)
    return found


def _sum(
    argument: Argument,
    terms: Sequence[TermLinks],
    executable: executable_dpa.DpaE9s12Step,
    smt: DpaE9s12Step,
) -> tuple[Link, Link, Link]:
    """The links of the sum of products, that it is not the least number, and of their largest exponent."""
    exponents = [term.exponent for term in terms]
    e_max, below = argument.largest("align", "exponents", executable.e_max, smt.e_max, exponents, 0)
    width = smt.placed[0].size()
    highest = 1 << (smt_dpa.kept(width, len(terms)) + 2)
    running: Link | None = None
    for i, (term, order, lanes, summand) in enumerate(
        zip(terms, below, executable.placed, smt.placed, strict=True)
    ):
        link = wide_number(lanes, summand, signed=True, below=smt_dpa.GUARD)
        inside = Link(z3.And(summand < highest, summand > -highest), (summand,))
        given = [e_max, order, *term]
        argument.derive("align", "products are placed alike", [link, inside], given)
        if running is None:
            running, bound = link, inside
            continue
        total, most = smt.partials[i], highest * (i + 1)
        sums = wide_number(executable.partials[i], total, signed=True, below=smt_dpa.GUARD)
        room = Link(
            z3.And(total < most, total > -most) if most < 1 << (width - 1) else total != most, (total,)
        )
        argument.derive("accumulate", "partial sums are equal", [sums, room], [running, bound, link, inside])
        running, bound = sums, room
    assert running is not None
    return running, bound, e_max


def _with_c(
    argument: Argument,
    dot: Sequence[Link],
    addend: TermLinks,
    executable: executable_dpa.DpaE9s12Step,
    smt: DpaE9s12Step,
    low: int,
) -> list[Link]:
    """The links of the sum with c, and of its exponent."""
    u, v = executable.term, smt.term
    significand = wide_number(u.significand, v.significand, below=smt_dpa.GUARD)
    term = [number(u.sign, v.sign), number(u.exponent, v.exponent, low=low), significand]
    argument.derive("accumulate", "the sum of products is the same term", term, dot)
    signs = v.sign, smt.addend.sign
    return add_long(argument, term, y=addend, executable=executable.wide, signs=signs, smt=smt.sum, low=low)


# ---- two runs on related inputs ------------------------------------------------------------------------------------

#: Products of halves of exchanged factors: the two in the middle change places.
_EXCHANGED = (0, 2, 1, 3)


def link_runs(step: RelatedStep[DpaE9s12Step]) -> Link:
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


def _terms(step: RelatedStep[DpaE9s12Step], factors: Sequence[Link]) -> tuple[list[Link], Sequence[int]]:
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


def _opposite_sum(step: RelatedStep[DpaE9s12Step], special: Link, terms: Sequence[Link], e_max: Link) -> Link:
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


def _numbers(step: RelatedStep[DpaE9s12Step], special: Link) -> Link:
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


def _ranges(step: RelatedStep[DpaE9s12Step], finite: Link) -> tuple[list[Link], Link]:
    """Derive that each E9S12 product is zero, or so near to the largest exponent that placing loses no bit."""
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


# ---- what doubling a and c does ------------------------------------------------------------------------------------


def stages_of(spec: DotAdd, trace: Trace[DpaE9s12Step], c: z3.BitVecRef) -> Sequence[Stage]:
    """The stages of a run; the sum of products has no place of its own for each, so it is one of signed numbers."""
    record, rho = Recorded(), spec.parameters.rho  # type: ignore[attr-defined]
    for step in trace.steps:
        begun(record, spec, step, c)
        each = len(step.products) // len(step.a)
        for i, x in enumerate(step.products):
            record.made("multiply", [step.a[i // each], step.b[i // each]], x)
        record.made("addend", [step.c], step.addend)
        record.made("largest", step.products, step.e_max)
        total = Aligned(step.placed, step.partials[-1])
        record.made("accumulate", [*step.products, step.e_max], total)
        record.made("as_term", [total, step.e_max], step.term)
        record.made("sticky_sum", [step.term, step.addend], step.sum)
        code = Code(step.sum.total, step.rounded, step.result)
        record.made("round_sum", [step.sum, *step.products, step.addend, step.special], code, rho=rho)
        c = step.result
    return record
