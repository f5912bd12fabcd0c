"""Why both encodings' steps of dpa_e9s12 give the same code."""

from __future__ import annotations

from collections.abc import Sequence

import z3

from mmaformal.cases.encodings import Traces
from mmaformal.encodings.dpa_e9s12 import DpaE9s12
from mmaformal.encodings.dpa_e9s12 import executable as executable_dpa
from mmaformal.encodings.dpa_e9s12 import smt as smt_dpa
from mmaformal.facts.operands import step_operands
from mmaformal.proof.encoding_links import (
    OperandLinks,
    TermLinks,
    add_long,
    classify,
    flags_and_zeros,
    inputs,
    multiply,
    round_and_encode,
    wide_number,
)
from mmaformal.proof.lemmas import Argument, Link, condition, number


def derive(argument: Argument, traces: Traces[smt_dpa.DpaE9s12Step]) -> None:
    spec, parameters = traces.spec, traces.spec.parameters
    assert isinstance(parameters, DpaE9s12)
    a, b, c, *_ = inputs(argument, traces)
    for i, (executable, smt) in enumerate(zip(traces.executable.steps, traces.smt.steps, strict=True)):
        assert isinstance(executable, executable_dpa.DpaE9s12Step)
        products = range(i * parameters.N, (i + 1) * parameters.N)
        x, y, z = step_operands(argument, spec, (a, b, c), products, executable, smt)
        special = classify(argument, flags_and_zeros([*x, *y, z]), executable.special, smt.special)
        low = smt_dpa.exponents_of(spec, parameters.L, len(smt.products)).low
        addend = multiply(argument, [z], executable.addend, smt.addend, low)
        terms = _products(argument, x, y, executable, smt)
        dot = _sum(argument, terms, executable, smt)
        total = _with_c(argument, dot, addend, executable, smt, low)
        zero = number(executable.zero_sign, smt.zero_sign)
        signs = [addend.sign, *(each.sign for each in terms)]
        argument.derive("accumulate", "the signs of an exact zero are the same", [zero], signs)
        rounding = executable.rounded, smt.rounded, parameters.rho, (executable.result, smt.result)
        c = round_and_encode(argument, [*total, zero], special, *rounding)


def unpack(
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
    smt: smt_dpa.DpaE9s12Step,
) -> list[TermLinks]:
    xs, ys = (
        [unpack(argument, *each) for each in zip(operands, lanes, terms, strict=True)]
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
    smt: smt_dpa.DpaE9s12Step,
) -> tuple[Link, Link, Link]:
    """The links of the sum of products, that it is not the least number, and of their largest exponent."""
    exponents = [term.exponent for term in terms]
    e_max, below = argument.largest("align", "exponents", executable.e_max, smt.e_max, exponents, 0)
    L = smt.placed[0].size()
    highest = 1 << (smt_dpa.kept(L, len(terms)) + 2)
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
        room = Link(z3.And(total < most, total > -most) if most < 1 << (L - 1) else total != most, (total,))
        argument.derive("accumulate", "partial sums are equal", [sums, room], [running, bound, link, inside])
        running, bound = sums, room
    assert running is not None
    return running, bound, e_max


def _with_c(
    argument: Argument,
    dot: Sequence[Link],
    addend: TermLinks,
    executable: executable_dpa.DpaE9s12Step,
    smt: smt_dpa.DpaE9s12Step,
    low: int,
) -> list[Link]:
    """The links of the sum with c, and of its exponent."""
    u, v = executable.term, smt.term
    significand = wide_number(u.significand, v.significand, below=smt_dpa.GUARD)
    term = [number(u.sign, v.sign), number(u.exponent, v.exponent, low=low), significand]
    argument.derive("accumulate", "the sum of products is the same term", term, dot)
    signs = v.sign, smt.addend.sign
    return add_long(argument, term, y=addend, executable=executable.wide, signs=signs, smt=smt.sum, low=low)
