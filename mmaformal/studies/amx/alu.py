"""Why both encodings' arithmetic of one element gives the same code, for all x, y, z and whatever is skipped.

The executable encoding puts 1 in the place of a factor that is skipped and multiplies; the SMT encoding puts the
other factor in the place of the product.  Both are linked to a product of operands that are made here: 1 or x, 1 or y.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import z3

from mmaformal.cases.encodings import SAMPLES, check_samples, sample_codes
from mmaformal.encodings.amx import executable as executable_amx
from mmaformal.encodings.amx import smt as smt_amx
from mmaformal.encodings.executable import blocks as executable_blocks
from mmaformal.encodings.executable import limbs
from mmaformal.encodings.sfma import smt as sfma
from mmaformal.encodings.smt import blocks
from mmaformal.lanes import BITS, INT64, Range, SymbolicLane, Tracer
from mmaformal.proof.encoding_links import (
    OperandLinks,
    TermLinks,
    flags_and_zeros,
    link_code,
    link_operand,
    link_product,
    link_special,
    link_sticky_sum,
    multiply_long,
    round_and_encode,
    wide_number,
)
from mmaformal.proof.failure import labelled
from mmaformal.proof.kernel import ArgumentError, conjunction
from mmaformal.proof.lemmas import Argument, Link, condition, number
from mmaformal.rounding import Conversion


class _Traces(NamedTuple):
    """One element in both encodings, on the same symbolic codes and operand."""

    rho: Conversion
    codes: dict[str, z3.BitVecRef]  #: of x, y, z
    lanes: dict[str, SymbolicLane]
    operand: z3.BitVecRef
    operand_lane: SymbolicLane
    skip: z3.BitVecRef  #: 3 bits of the operand
    on: executable_amx.Fields
    executable: executable_amx.Alu
    smt: smt_amx.Alu


class _Inputs(NamedTuple):
    """Claims that both encodings read the same codes, and skip the same."""

    codes: dict[str, Link]  #: of x, y, z
    skip: Link


def argue_alu(rho: Conversion) -> Argument:
    """The argument for elements of ρ's format, its lemmas not proved."""
    tracer = Tracer()
    traces = _trace(rho, tracer)
    if not traces.executable.result.range.inside(range_of(rho)):
        raise ArgumentError(f"what an element becomes may be no code of {rho.format}")
    argument = Argument(tracer)
    argument.interfaces = lambda: (*labelled("executable", traces.executable), *labelled("smt", traces.smt))
    read = _inputs(argument, traces)
    skip, executable, smt = traces.skip, traces.executable, traces.smt
    both = z3.Extract(2, 1, skip) == 3
    cases = [Link(z3.Not(both)), Link(both)]
    argument.split("x and y are both skipped, or not", cases, terms=[skip])
    result = link_code(executable.result, smt.result)
    given = [*read.codes.values(), read.skip]
    code = _computed(argument, traces, read, cases[0])
    text = "the code computed, or one of the three, or 0, is the same"
    argument.derive("select", text, [result], [code, *given, cases[0]])
    text = "where x and y are skipped, z or 0 is the same"
    unused = [executable.fma.result.term, smt.computed]
    argument.derive("select", text, [result], [*given, cases[1]], unused)
    argument.conclude(f"an element of {rho.format} becomes the same code in both encodings", result)
    return argument


def range_of(rho: Conversion) -> Range:
    """Return the range of a lane that has a code of ρ's format."""
    bits = rho.format.storage_bits
    return INT64 if bits == BITS else Range(0, (1 << bits) - 1)


def _trace(rho: Conversion, tracer: Tracer) -> _Traces:
    rng = np.random.default_rng(0)
    codes = {name: z3.BitVec(name, rho.format.storage_bits) for name in "xyz"}
    operand = z3.BitVec("operand", BITS)
    lanes = {name: tracer.input(code, sample_codes(rho.format, rng)) for name, code in codes.items()}
    operand_lane = tracer.input(operand, rng.integers(*INT64, SAMPLES))
    on, skip = executable_amx.fields(operand_lane), smt_amx.skips(operand)
    executable = executable_amx.alu(lanes["x"], lanes["y"], lanes["z"], on, rho)
    smt = smt_amx.alu(rho, skip, *codes.values())
    x, y, z = (lane.sample for lane in lanes.values())
    check_samples(executable, executable_amx.alu(x, y, z, executable_amx.fields(operand_lane.sample), rho))
    return _Traces(rho, codes, lanes, operand, operand_lane, skip, on, executable, smt)


def _inputs(argument: Argument, traces: _Traces) -> _Inputs:
    text, operand = "both encodings read the same", link_code(traces.operand_lane, traces.operand)
    argument.derive("inputs", text, [operand], inputs=[traces.operand])
    codes = {name: link_code(traces.lanes[name], code) for name, code in traces.codes.items()}
    for name, link in codes.items():
        argument.derive("inputs", text, [link], inputs=[traces.codes[name]])
    skip = skip_claims(traces.on, traces.skip)
    argument.derive("operand", "the same is skipped", [skip], [operand])
    return _Inputs(codes, skip)


def skip_claims(on: executable_amx.Fields, skip: z3.BitVecRef) -> Link:
    """Claims that both encodings skip the same."""
    flags = (on.skip_x, on.skip_y, on.skip_z)
    each = [
        condition(x, z3.Extract(place, place, skip) == 1) for x, place in zip(flags, (2, 1, 0), strict=True)
    ]
    return Link(conjunction(x.claim for x in each), (skip,), tuple(pair for x in each for pair in x.defined))


def _computed(argument: Argument, traces: _Traces, read: _Inputs, one_at_least: Link) -> Link:
    """The link of the code of the sum, where x and y are not both skipped."""
    rho, skip, fma, smt = traces.rho, traces.skip, traces.executable.fma, traces.smt
    fmt, low = rho.format, sfma.exponents_of(rho.format).low
    made = _operands(traces)
    u, v, w = (blocks.decode(code, fmt) for code in made)
    mine = traces.executable
    links = []
    for name, lane, code, theirs, other in zip(
        "xyz", mine[:3], made, (fma.a, fma.b, fma.c), (u, v, w), strict=True
    ):
        link = link_code(lane, code)
        text = "what is in the place of what is skipped is the same"
        argument.derive("operand", text, [link], [read.codes[name], read.skip])
        links.append(link_operand(argument, link, theirs, other, fmt))
    special = _special(argument, traces, links, (u, v, w), one_at_least)
    exponents, lowest, frame = (
        sfma.exponents_of(fmt),
        fmt.min_exponent,
        sfma.frame_bits(fmt.fraction_bits + 1),
    )
    term = blocks.multiply(u, v, 2 * fmt.bias, exponents, e_zero=lowest)
    addend = blocks.addend(w, fmt.bias, exponents, e_zero=None)
    x, y, z = traces.codes.values()
    if isinstance(fma.product, executable_blocks.Term):
        given = link_product(argument, links[:2], fma.product, term, low)
    else:
        assert fma.long is not None
        shift = frame - 2 * fmt.fraction_bits
        given = multiply_long(argument, (links[0], links[1]), fma.long, fma.product, term, low, shift)
    same = _same_term(
        argument, "the product with 1 is the other factor", (term, smt.product), (x, y), skip, [one_at_least]
    )
    product = _term(fma.product, smt.product, low, frame)
    argument.derive("multiply", "x·y, or x, or y, is the same term", product, [*given, same])
    given = link_product(argument, [links[2]], fma.addend, addend, low)
    same = _same_term(argument, "z, or −0, is that of its code", (addend, smt.addend), (z,), skip, [])
    summand = _term(fma.addend, smt.addend, low)
    argument.derive("multiply", "z, or −0, is the same term", summand, [*given, same])
    total = link_sticky_sum(argument, (product, summand), (fma.total, fma.wide), smt.sum, low, frame)
    return round_and_encode(
        argument,
        [*total, product.sign, summand.sign],
        special=special,
        executable=fma.rounded,
        smt=smt.rounded,
        rho=rho,
        results=(fma.result, smt.computed),
    )


def _operands(traces: _Traces) -> list[z3.BitVecRef]:
    """1 or x, 1 or y, −0 or z."""
    fmt, skip = traces.rho.format, traces.skip
    one, minus_zero = (
        z3.BitVecVal(x, fmt.storage_bits) for x in (fmt.bias << fmt.fraction_bits, fmt.sign_mask)
    )
    return [
        z3.If(z3.Extract(place, place, skip) == 1, instead, code)
        for place, instead, code in zip((2, 1, 0), (one, one, minus_zero), traces.codes.values(), strict=True)
    ]


def _special(
    argument: Argument,
    traces: _Traces,
    links: list[OperandLinks],
    operands: tuple[blocks.Operand, blocks.Operand, blocks.Operand],
    one_at_least: Link,
) -> Link:
    """The link of what special values decide: of the operands made, which is that of those there are."""
    u, v, w = operands
    flags, mine = traces.executable.fma.special, blocks.classify([(u, v)], [w])
    made = link_special(argument, flags_and_zeros(links), flags, mine)
    text = "1 and −0 decide nothing"
    same = equal(mine, traces.smt.special)
    argument.derive("classify", text, [same], [one_at_least], [*traces.codes.values(), traces.skip])
    return link_special(argument, [made, same], flags, traces.smt.special)


def equal(mine: tuple[z3.ExprRef, ...], other: tuple[z3.ExprRef, ...]) -> Link:
    """Return the link that says that terms are the same, so that the others are determined by mine."""
    pairs = [*zip(other, mine, strict=True)]
    return Link(conjunction(x == y for x, y in pairs), mine, tuple(pairs))


def _same_term(
    argument: Argument,
    text: str,
    terms: tuple[blocks.Term, blocks.Term],
    codes: tuple[z3.BitVecRef, ...],
    skip: z3.BitVecRef,
    given: list[Link],
) -> Link:
    """Return the link that says that a term of the operands made is one of those that there are, whatever is
    skipped."""
    same = equal(*terms)
    argument.derive("multiply", text, [same], given, [*codes, skip], each_value_of=skip)
    return same


def _term(
    executable: executable_blocks.Term | limbs.WideTerm, smt: blocks.Term, low: int, frame: int | None = None
) -> TermLinks:
    """The links of a term; with `frame`, of two limbs, so many places above."""
    if isinstance(executable, limbs.WideTerm):
        assert frame is not None
        significand = wide_number(
            executable.significand, smt.significand, below=frame - smt.significand.size() + 2
        )
    else:
        significand = number(executable.significand, smt.significand)
    return TermLinks(
        number(executable.sign, smt.sign), number(executable.exponent, smt.exponent, low=low), significand
    )
