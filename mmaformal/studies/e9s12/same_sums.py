"""Why both encodings' multi-additions of E9S12 halves give the same code, for all terms."""

from __future__ import annotations

import numpy as np
import z3

from mmaformal.cases.encodings import check_samples, sample_codes
from mmaformal.encodings.acc_e9s12.proofs import SoFar, link_pass
from mmaformal.encodings.dpa_e9s12.executable import FRACTION
from mmaformal.encodings.dpa_e9s12.proofs.stages import link_unpacked
from mmaformal.encodings.executable.blocks import Term
from mmaformal.encodings.ma_e9s12 import executable as executable_ma
from mmaformal.encodings.ma_e9s12 import smt as smt_ma
from mmaformal.encodings.smt import blocks as smt_blocks
from mmaformal.lanes import SymbolicLane, Tracer
from mmaformal.proof.encoding_links import (
    TermLinks,
    flags_and_zeros,
    least_excluded,
    link_code,
    link_operand,
    link_special,
    round_and_encode,
)
from mmaformal.proof.failure import labelled
from mmaformal.proof.kernel import ArgumentError
from mmaformal.proof.lemmas import Argument, Link, number
from mmaformal.studies.e9s12.operators import MultiAddition


def constants_of_terms(operator: MultiAddition) -> list[z3.BitVecRef]:
    """The terms, as constants."""
    return [z3.BitVec(f"x{k}", operator.fmt.storage_bits) for k in range(operator.D)]


def argue_same_sums(operator: MultiAddition) -> Argument:
    """The argument that both encodings agree, its lemmas not proved.

    Raises LaneError or ArgumentError if the encodings do not have the structure to argue about.
    """
    tracer, rng, fmt = Tracer(), np.random.default_rng(0), operator.fmt
    codes = constants_of_terms(operator)
    lanes = [tracer.input(code, sample_codes(fmt, rng)) for code in codes]
    own = operator.fmt, operator.N, operator.accumulator_bits, operator.rho
    executable, smt = executable_ma.multi_add(*own, lanes), smt_ma.multi_add(*own, codes)
    check_samples(executable, executable_ma.multi_add(*own, [lane.sample for lane in lanes]))
    argument = Argument(tracer)
    argument.interfaces = lambda: (*labelled("executable", executable), *labelled("smt", smt))
    read = [link_code(lane, code) for lane, code in zip(lanes, codes, strict=True)]
    for link, code in zip(read, codes, strict=True):
        argument.derive("inputs", "both encodings read the same code", [link], inputs=[code])
    operands = [
        link_operand(argument, link, x, y, fmt) for link, x, y in zip(read, executable.x, smt.x, strict=True)
    ]
    special = link_special(argument, flags_and_zeros(operands), executable.special, smt.special)
    halves = [
        half
        for operand, one, other in zip(operands, executable.halves, smt.halves, strict=True)
        for half in link_unpacked(argument, operand, one, other)
    ]
    so_far: SoFar | None = None
    for one, other in zip(executable.passes, smt.passes, strict=True):
        mine, halves = halves[: len(other.products)], halves[len(other.products) :]
        terms = [_term(argument, *each) for each in zip(mine, one.products, other.products, strict=True)]
        so_far = link_pass(argument, terms, so_far, one, other, 1 << (operator.F + 1))
    if so_far is None:
        raise ArgumentError(f"{operator} has no pass")
    room = least_excluded(so_far.total.term)
    argument.derive("accumulate", "the sum is not the least number", [room], [so_far.room])
    total = [so_far.total, room, so_far.e_max]
    rounding = executable.rounded, smt.rounded, operator.rho, (executable.result, smt.result)
    result = round_and_encode(argument, total, special, *rounding)
    argument.conclude("in both encodings d is the same code", result)
    return argument


def _term(argument: Argument, half: list[Link], lane: Term, term: smt_blocks.Term) -> TermLinks:
    """The links of an E9S12 number as a term: the executable encoding's significand has 11 zeros below."""
    links = TermLinks(
        number(lane.sign, term.sign),
        number(lane.exponent, term.exponent),
        _shifted(lane.significand, term.significand, FRACTION),
    )
    argument.derive("unpack", "E9S12 numbers are the same terms", links, half)
    return links


def _shifted(lane: SymbolicLane, term: z3.BitVecRef, places: int) -> Link:
    """Return the link that says that the lane is the number `term · 2^places`."""
    padded = z3.Concat(term, z3.BitVecVal(0, places))
    link = number(lane, padded)
    return Link(link.claim, (term,), link.defined, link.lanes)
