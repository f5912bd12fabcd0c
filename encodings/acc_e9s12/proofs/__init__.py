"""Facts of acc_e9s12: why both encodings' steps give the same code."""

from __future__ import annotations

from collections.abc import Sequence

import z3

from mmaformal.cases.encodings import Traces
from mmaformal.encodings.acc_e9s12 import AccE9s12
from mmaformal.encodings.acc_e9s12 import executable as executable_acc
from mmaformal.encodings.acc_e9s12 import smt as smt_acc
from mmaformal.encodings.acc_e9s12.smt import AccE9s12Step
from mmaformal.encodings.dpa_e9s12 import smt as smt_dpa
from mmaformal.encodings.executable.blocks import Term
from mmaformal.encodings.smt import blocks as smt_blocks
from mmaformal.facts.operands import step_operands
from mmaformal.facts.protocol import Facts
from mmaformal.proof.encoding_links import (
    OperandLinks,
    TermLinks,
    flags_and_zeros,
    least_excluded,
    link_inputs,
    link_special,
    round_and_encode,
    wide_number,
)
from mmaformal.proof.lemmas import Argument, Link, number


def _link_encodings(argument: Argument, traces: Traces[smt_acc.AccE9s12Step]) -> None:
    spec, parameters = traces.spec, traces.spec.parameters_as(AccE9s12)
    a, b, c, *_ = link_inputs(argument, traces)
    highest = 1 << (smt_acc.kept(spec, parameters) + 2)
    for i, (executable, smt) in enumerate(zip(traces.executable.steps, traces.smt.steps, strict=True)):
        assert isinstance(executable, executable_acc.AccE9s12Step)
        products = range(i * parameters.D, (i + 1) * parameters.D)
        x, y, z = step_operands(argument, spec, (a, b, c), products, executable, smt)
        special = link_special(argument, flags_and_zeros([*x, *y, z]), executable.special, smt.special)
        each = len(smt.passes[-1].products) // parameters.N
        operands = [[z]] * 2 + [[u, v] for u, v in zip(x, y, strict=True) for _ in range(each)]
        so_far: SoFar | None = None
        for one, other in zip(executable.passes, smt.passes, strict=True):
            mine, operands = operands[: len(other.products)], operands[len(other.products) :]
            terms = [
                _product(argument, *each) for each in zip(mine, one.products, other.products, strict=True)
            ]
            so_far = link_pass(argument, terms, so_far, one, other, highest)
        assert so_far is not None
        rounding = executable.rounded, smt.rounded, parameters.rho, (executable.result, smt.result)
        total = [so_far.total, least_excluded(so_far.total.term), so_far.e_max]
        argument.derive("accumulate", "the sum is not the least number", [total[1]], [so_far.room])
        c = round_and_encode(argument, total, special, *rounding)


class SoFar:
    """The links of what is accumulated, of its room, and of its exponents."""

    def __init__(self, total: Link, room: Link, e_max: Link, exponent: Link, terms: int) -> None:
        self.total, self.room, self.e_max, self.exponent, self.terms = total, room, e_max, exponent, terms


def _product(
    argument: Argument, operands: Sequence[OperandLinks], lane: Term, term: smt_blocks.Term
) -> TermLinks:
    links = TermLinks(
        number(lane.sign, term.sign),
        number(lane.exponent, term.exponent),
        number(lane.significand, term.significand),
    )
    given = [link for x in operands for link in (x.sign, x.exponent, x.significand)]
    argument.derive("multiply", "products of E9S12 numbers are the same", links, given)
    return links


def link_pass(
    argument: Argument,
    terms: Sequence[TermLinks],
    before: SoFar | None,
    executable: executable_acc.Pass,
    smt: smt_acc.Pass,
    highest: int,
) -> SoFar:
    """The links after a pass; no placed term is `highest` or more in magnitude."""
    below = smt_dpa.GUARD
    e_max = number(executable.e_max, smt.e_max)
    exponents = [term.exponent for term in terms] + ([before.exponent] if before else [])
    argument.derive("align", "the largest exponents are the same", [e_max], exponents)
    orders = [Link(z3.ULE(link.term, smt.e_max), (link.term, smt.e_max)) for link in exponents]
    argument.derive("align", "no exponent is above the largest", orders, inputs=[x.term for x in exponents])
    running = wide_number(executable.before, smt.before, signed=True, below=below)
    most = before.terms if before else 0
    room = _within(smt.before, highest * most)
    given = [e_max, before.total, before.room, before.exponent, orders[-1]] if before else []
    argument.derive("align", "what is accumulated is shifted alike", [running, room], given)
    count = most
    parts = zip(executable.partials[1:], smt.partials[1:], strict=True)
    for term, order, lanes, placed, (lane, partial) in zip(
        terms, orders, executable.placed, smt.placed, parts, strict=False
    ):
        link, inside = wide_number(lanes, placed, signed=True, below=below), _within(placed, highest)
        argument.derive("align", "products are placed alike", [link, inside], [e_max, order, *term])
        count += 1
        sums, more = wide_number(lane, partial, signed=True, below=below), _within(partial, highest * count)
        argument.derive("accumulate", "partial sums are equal", [sums, more], [running, room, link, inside])
        running, room = sums, more
    exponent = number(executable.exponent, smt.exponent)
    argument.derive("accumulate", "the accumulator has the same exponent", [exponent], [running, e_max])
    return SoFar(running, room, e_max, exponent, count)


def _within(x: z3.BitVecRef, bound: int) -> Link:
    if bound == 0:
        return Link(x == 0, (x,))
    return Link(z3.And(x < bound, x > -bound), (x,)) if bound < 1 << (x.size() - 1) else least_excluded(x)


class AccE9s12Facts(Facts[AccE9s12Step]):
    def equal(self, argument: Argument, traces: Traces[AccE9s12Step]) -> None:
        _link_encodings(argument, traces)


FACTS = AccE9s12Facts("acc_e9s12")
