"""Why both encodings give the same code: words, remainders byte by byte, digits, and the number that they are."""

from __future__ import annotations

from collections.abc import Sequence

import z3

from mmaformal.cases.encodings import Traces
from mmaformal.encodings.residues import Residues, executable, smt
from mmaformal.encodings.smt.blocks import product_range, resize
from mmaformal.facts.registry import facts_of
from mmaformal.lanes import SymbolicLane
from mmaformal.proof.encoding_links import (
    CodeLinks,
    InnerTraces,
    OperandLinks,
    flags_and_zeros,
    least_excluded,
    link_code,
    link_inputs,
    link_operand,
    link_special,
    round_and_encode,
    summands,
    wide_number,
)
from mmaformal.proof.lemmas import Argument, Link, number
from mmaformal.spec import DotAdd


def link_encodings(argument: Argument, traces: Traces[smt.ResiduesStep]) -> None:
    """Derives the links of every step.  Raises ArgumentError."""
    spec, p = traces.spec, traces.spec.parameters_as(Residues)
    a, b, c, *_ = link_inputs(argument, traces)
    for i, (mine, other) in enumerate(zip(traces.executable.steps, traces.smt.steps, strict=True)):
        assert isinstance(mine, executable.ResiduesStep)
        some = slice(i * p.products, (i + 1) * p.products)
        dot = _dot(argument, spec, p, (a[some], b[some]), mine, other)
        one = link_code(mine.one, other.one)
        argument.derive("constant", "both have the same one", [one])
        links = CodeLinks([one], [dot], c, [], [])
        inner = InnerTraces(p.addition, traces.inputs, traces.lanes, mine.addition, other.addition, links)
        facts_of(p.addition).equal(argument, inner)
        c = link_code(mine.result, other.result)


def _dot(
    argument: Argument,
    spec: DotAdd,
    p: Residues,
    codes: tuple[Sequence[Link], Sequence[Link]],
    mine: executable.ResiduesStep,
    other: smt.ResiduesStep,
) -> Link:
    """Derive the link of the code of the sum, before c is added."""
    operands = [
        [
            link_operand(argument, code, u[n], v[n], fmt)
            for code, u, v in zip(codes[n], mine.operands, other.operands, strict=True)
        ]
        for n, fmt in enumerate((spec.a_format, spec.b_format))
    ]
    pairs = [x for pair in zip(*operands, strict=True) for x in pair]
    special = link_special(argument, flags_and_zeros(pairs), mine.special, other.special)
    tops, words = [], []
    for n, fmt in enumerate((spec.a_format, spec.b_format)):
        made = ((mine.a, other.a), (mine.b, other.b))[n]
        exponents = [x.exponent for x in operands[n]]
        top, below = argument.largest("align", "exponents", mine.tops[n], other.tops[n], exponents, -fmt.bias)
        tops.append(top)
        given = zip(operands[n], below, *made, strict=True)
        words.append([_word(argument, x, [top, under], u, v) for x, under, u, v in given])
    left = [_sum(argument, words, t, mine.sums[t], other.sums[t]) for t in range(len(p.moduli))]
    total = _whole(argument, _digits(argument, left, mine.digits, other.digits), mine.whole, other)
    low = product_range(spec.a_format, spec.b_format).low + 2 - 2 * p.bits
    unit = number(mine.whole.unit, other.exponent, low=low)
    argument.derive("align", "the last places of the sums are the same", [unit], tops)
    results = mine.dot, other.dot
    return round_and_encode(argument, [*total, unit], special, mine.rounded, other.rounded, p.rho, results)


def _divided(
    argument: Argument,
    made: tuple[Sequence[SymbolicLane], executable.ByteRemainders],
    other: tuple[Sequence[z3.BitVecRef], Sequence[z3.BitVecRef]],
    bytes_: Sequence[Link],
) -> Link:
    """Derive the link of what a number leaves of a modulus, from those of its bytes."""
    above: list[Link] = []
    for lane, term, byte in zip(made[1].parts, other[1], reversed(bytes_), strict=True):
        link = number(lane, term)
        argument.derive("remainder", "with the next byte the same is left", [link], [*above, byte])
        above = [link]
    return above[0]


def _bytes(
    argument: Argument, lanes: Sequence[SymbolicLane], terms: Sequence[z3.BitVecRef], given: Sequence[Link]
) -> list[Link]:
    links = [number(lane, term) for lane, term in zip(lanes, terms, strict=True)]
    for link in links:
        argument.derive("remainder", "bytes of equal numbers are the same", [link], given)
    return links


def _word(
    argument: Argument,
    x: OperandLinks,
    top: Sequence[Link],
    mine: executable.FactorWord,
    other: smt.FactorWord,
) -> list[Link]:
    """Derive the links of the remainders of a word."""
    magnitude = number(mine.magnitude, other.magnitude)
    argument.derive("word", "words are the same", [magnitude], [x.exponent, x.significand, *top])
    bytes_ = _bytes(argument, mine.bytes, other.bytes, [magnitude])
    found = []
    made = zip(mine.left, other.left, mine.remainders, other.remainders, strict=True)
    for division, terms, lane, term in made:
        left = _divided(argument, (mine.bytes, division), (other.bytes, terms), bytes_)
        found.append(number(lane, term, signed=True))
        text = "remainders next to zero are the same"
        argument.derive("remainder", text, [found[-1]], [left, x.sign])
    return found


def _sum(
    argument: Argument,
    words: Sequence[Sequence[Sequence[Link]]],
    t: int,
    mine: executable.SumOfRemainders,
    other: smt.SumOfRemainders,
) -> Link:
    """Derive the link of what the sum of the products of the t-th remainders leaves."""
    links = []
    terms = summands(other.total, len(mine.products))
    for u, v, lane, term in zip(*words, mine.products, terms, strict=True):
        links.append(number(lane, term, signed=True))
        text = "products of remainders are the same"
        argument.derive("multiply", text, [links[-1]], [u[t], v[t]])
    total = argument.add_up("accumulate", "products of remainders", mine.total, other.total, links)
    bytes_ = _bytes(argument, mine.bytes, other.bytes, [total])
    return _divided(argument, (mine.bytes, mine.division), (other.bytes, other.left), bytes_)


def _digits(
    argument: Argument,
    left: Sequence[Link],
    mine: Sequence[executable.Digit],
    other: Sequence[smt.Digit],
) -> list[Link]:
    """Derive the links of the digits."""
    found: list[Link] = []
    for own, u, v in zip(left, mine, other, strict=True):
        for before, (difference, x), (other_difference, y) in zip(found, u.steps, v.steps, strict=False):
            between = number(difference, other_difference)
            argument.derive("digit", "differences leave the same", [between], [own, before])
            own = number(x, y)
            argument.derive("digit", "times the inverse they leave the same", [own], [between])
        found.append(own)
    return found


def _part(lane: SymbolicLane, whole: z3.BitVecRef, low: int) -> tuple[SymbolicLane, z3.BitVecRef]:
    """A part of a number that is put together, and these bits of the number."""
    size = executable.PART
    wide = resize(whole, max(whole.size(), low + size))
    return lane, z3.Extract(low + size - 1, low, wide)


def _put(put: executable.Put, whole: z3.BitVecRef) -> Link:
    """Return the link that says that three parts are a number."""
    parts = [number(*_part(lane, whole, n * executable.PART)) for n, lane in enumerate(put)]
    wide = resize(whole, max(whole.size(), 3 * executable.PART) + 1)
    none = z3.LShR(wide, 3 * executable.PART) == 0
    return Link(
        z3.And(none, *(each.claim for each in parts)),
        (whole,),
        tuple(pair for each in parts for pair in each.defined),
        tuple(put),
    )


def _whole(
    argument: Argument, digits: Sequence[Link], mine: executable.Recombined, other: smt.ResiduesStep
) -> list[Link]:
    """Derive the links of the number of the digits, less ⌊P/2⌋."""
    whole: list[Link] = []
    for put, term, digit in zip(mine.steps, other.wholes, reversed(digits), strict=True):
        link = _put(put, term)
        text = "with the next digit the numbers are the same"
        argument.derive("put together", text, [link], [*whole, digit])
        whole = [link]
    total = [wide_number(mine.total, other.total, signed=True), least_excluded(other.total)]
    argument.derive("put together", "less half of P they are the same", total, whole)
    return total
